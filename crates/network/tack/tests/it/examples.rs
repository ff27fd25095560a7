//! The programs in `examples/`, run like a user runs them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A program that is killed when the test ends.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Parses "listening on ADDRESS with the key KEY": returns the address and, if present, the key.
    fn listens(&mut self) -> (String, Option<String>) {
        let line = self.line();
        let rest = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
        match rest.split_once(" with the key ") {
            Some((address, key)) => (address.to_owned(), Some(key.to_owned())),
            None => (rest.to_owned(), None),
        }
    }
}

/// Cargo builds examples next to the tests of their package.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "build it first: cargo build -p tacit-tack --example {name}");
    path
}

fn start(name: &str, arguments: &[&str]) -> Running {
    let mut child = Command::new(program(name)).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    Running { child, out }
}

fn output(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(program(name)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn echo_answers_with_the_message() {
    let mut server = start("echo", &["server", "127.0.0.1:0"]);
    let (address, key) = server.listens();
    let key = key.unwrap();
    for message in ["hello", "again"] {
        assert_eq!(output("echo", &["client", &address, &key, message]), message);
    }
    let usage = Command::new(program("echo")).output().unwrap();
    assert!(!usage.status.success() && String::from_utf8_lossy(&usage.stderr).contains("usage: echo server"));
}

#[test]
fn file_sends_a_file_to_the_known_client() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let contents: Vec<u8> = (0..3_000_000u32).map(|place| (place / 7) as u8).collect();
    std::fs::write(at("sent"), &contents).unwrap();
    let client_key = output("file", &["key", &at("client.key")]);
    let mut sender = start("file", &["send", "127.0.0.1:0", &client_key, &at("sent")]);
    let (address, server_key) = sender.listens();
    let received =
        output("file", &["receive", &address, &server_key.unwrap(), &at("client.key"), &at("copy")]);
    assert_eq!(received, "received 3000000 bytes");
    assert!(std::fs::read(at("copy")).unwrap() == contents, "the copy differs");
    let sent = sender.line();
    assert!(sent.starts_with("sent 3"), "{sent}");
    assert!(sender.child.wait().unwrap().success());
}

#[test]
fn proxy_carries_tcp() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let target_address = target.local_addr().unwrap().to_string();
    let mut exit = start("proxy", &["exit", "127.0.0.1:0", &target_address]);
    let (exit_address, key) = exit.listens();
    let mut entry = start("proxy", &["entry", "127.0.0.1:0", &exit_address, &key.unwrap()]);
    let (entry_address, _) = entry.listens();
    let answering = std::thread::spawn(move || {
        let (mut tcp, _) = target.accept().unwrap();
        let mut request = Vec::new();
        tcp.read_to_end(&mut request).unwrap();
        request.reverse();
        tcp.write_all(&request).unwrap();
    });
    let mut program = TcpStream::connect(entry_address).unwrap();
    program.write_all(b"through the tunnel").unwrap();
    program.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    program.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"lennut eht hguorht");
    answering.join().unwrap();
}
