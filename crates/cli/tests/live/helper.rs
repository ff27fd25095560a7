//! Programs for the sides of a hop that no package has: this test binary, told to be one.

use std::net::UdpSocket;
use std::time::Duration;

/// What is at the other end of the hop.
fn peer() -> String {
    std::env::var("TACIT_PEER").unwrap()
}

/// Words that run the helper `name` of this file's `module`.
pub fn words(module: &str, name: &str) -> Vec<String> {
    let binary = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let test = format!("{module}::{name}");
    [&binary, "--exact", &test, "--ignored", "--nocapture", "--test-threads=1"].map(str::to_owned).to_vec()
}

/// Sizes of datagrams: empty, small, an MTU's worth, and two that take fragments.
const SIZES: [usize; 5] = [0, 1, 1_472, 1_473, 9_000];

#[test]
#[ignore = "runs inside a hop"]
fn udp_echo() {
    let socket = UdpSocket::bind("0.0.0.0:7007").unwrap();
    let mut buffer = [0; 65_535];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..len], from).unwrap();
    }
}

#[test]
#[ignore = "runs inside a hop"]
fn udp_ask() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((peer(), 7007)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    for size in SIZES {
        let sent: Vec<u8> = (0..size).map(|place| (place * 31 % 251) as u8).collect();
        socket.send(&sent).unwrap();
        let mut buffer = [0; 65_535];
        let len = socket.recv(&mut buffer).unwrap();
        assert_eq!(sent, &buffer[..len], "{size} octets");
    }
}
