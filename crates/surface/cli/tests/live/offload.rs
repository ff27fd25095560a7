//! Large packets that the kernel leaves to the device to segment, as seen by programs and in the report.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};

use super::helper::words;
use super::support::{machine, report};

/// Number of bytes that a connection carries, and the longest segment over IPv6 with timestamps and an MTU of 1500.
const POURED: usize = 4 << 20;
const SEGMENT_V6: usize = 1500 - 40 - 32;
/// Number of datagrams sent in one call, and their length.
const AT_ONCE: usize = 20;
const DATAGRAM: usize = 1_201;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place * 31 % 251) as u8).collect()
}

#[test]
#[ignore = "runs inside a hop"]
fn pour() {
    let listener = TcpListener::bind("[::]:7009").unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&pattern(POURED)).unwrap();
}

#[test]
#[ignore = "runs inside a hop"]
fn drink() {
    let peer = std::env::var("TACIT_PEER6").unwrap();
    let mut stream = TcpStream::connect((peer.as_str(), 7009)).unwrap();
    let mut read = Vec::new();
    stream.read_to_end(&mut read).unwrap();
    assert!(read == pattern(POURED), "{} bytes", read.len());
}

#[test]
fn large_segments_cross_as_small_ones_and_arrive_as_they_were() {
    let Some(_machine) = machine(&["ip"]) else { return };
    let (pour, drink) = (words("offload", "pour"), words("offload", "drink"));
    let all = ["--json", "--"].map(str::to_owned).into_iter().chain(drink);
    let all: Vec<_> = all.chain(["--server".to_owned(), "--".to_owned()]).chain(pour).collect();
    let report = report(&all.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(report["exit_status"], 0);
    // If the timing is not valid, there are no counts. The content has been compared in any case.
    if report["valid"] == true {
        let segments = report["transfer"]["down"]["end"]["data_segments"].as_u64().unwrap();
        assert!(segments >= (POURED / SEGMENT_V6) as u64, "{segments} segments");
    }
}

#[test]
#[ignore = "runs inside a hop"]
fn spray() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((std::env::var("TACIT_PEER").unwrap(), 7007)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // A kernel before 4.18 does not support this. If the device does not segment, the kernel does.
    setsockopt(&socket, UdpGsoSegment, &(DATAGRAM as i32)).unwrap();
    let sent = pattern(DATAGRAM * AT_ONCE - 7);
    socket.send(&sent).unwrap();
    let mut back = Vec::new();
    while back.len() < sent.len() {
        let mut buffer = [0; 65_535];
        let len = socket.recv(&mut buffer).unwrap();
        assert!(len <= DATAGRAM);
        back.extend_from_slice(&buffer[..len]);
    }
    assert!(back == sent);
}

#[test]
fn datagrams_of_one_call_are_packets_of_their_own() {
    let Some(_machine) = machine(&["ip"]) else { return };
    let (echo, spray) = (words("helper", "udp_echo"), words("offload", "spray"));
    let all = ["--json", "--"].map(str::to_owned).into_iter().chain(spray);
    let all: Vec<_> = all.chain(["--server".to_owned(), "--".to_owned()]).chain(echo).collect();
    assert_eq!(report(&all.iter().map(String::as_str).collect::<Vec<_>>())["exit_status"], 0);
}
