//! Each program that was compiled serves itself over loopback.
#![expect(clippy::disallowed_methods, reason = "a program of another process has no event")]
#![cfg(any(feature = "quiche", feature = "tquic", feature = "msquic"))]

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn exchanges_with_itself(program: &str) {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let server = Command::new(program).args(["serve", &address]).stdout(Stdio::null()).spawn().unwrap();
    let _server = Server(server);
    let flags = ["fetch", &address, "--bytes", "70000", "--objects", "3", "--times", "2"];
    // A client that comes before the server listens may be refused.
    for _ in 0..50 {
        let output = Command::new(program).args(flags).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        if output.status.success() {
            assert!(stdout.starts_with("{\"bytes\":420000,\"duration_s\":"), "{stdout}");
            let times =
                stdout.split_once("\"times_s\":[").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
            assert_eq!(times.split(", ").count(), 2, "{stdout}");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{program} does not reach itself");
}

#[cfg(feature = "quiche")]
#[test]
fn objects_come_whole_over_quiche() {
    exchanges_with_itself(env!("CARGO_BIN_EXE_quiche-peer"));
}

#[cfg(feature = "tquic")]
#[test]
fn objects_come_whole_over_tquic() {
    exchanges_with_itself(env!("CARGO_BIN_EXE_tquic-peer"));
}

#[cfg(feature = "msquic")]
#[test]
fn objects_come_whole_over_msquic() {
    exchanges_with_itself(env!("CARGO_BIN_EXE_msquic-peer"));
}
