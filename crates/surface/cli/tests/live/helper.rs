//! Programs for the ends of a hop that no package provides. Each is this test binary, started with a helper's name.

use std::io::ErrorKind;
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Address of the other end of the hop.
fn peer() -> String {
    std::env::var("TACIT_PEER").unwrap()
}

/// The command line that runs the helper `name` of this file's `module`.
pub fn words(module: &str, name: &str) -> Vec<String> {
    let binary = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let test = format!("{module}::{name}");
    [&binary, "--exact", &test, "--ignored", "--nocapture", "--test-threads=1"].map(str::to_owned).to_vec()
}

/// Sizes of datagrams: empty, small, exactly one MTU, and two that need fragments.
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
        assert_eq!(sent, &buffer[..len], "{size} bytes");
    }
}

/// A packet in each direction: the peer's discard port is closed, so it answers with an error.
#[test]
#[ignore = "runs inside a hop"]
fn tcp_refused() {
    let refused = TcpStream::connect((peer(), 9)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

/// Measures how late a program on this machine can be, with a thread that repeatedly sleeps for a millisecond.
struct Lateness(Arc<AtomicU64>);

impl Lateness {
    fn watch() -> Self {
        let worst_us = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&worst_us);
        std::thread::spawn(move || {
            loop {
                const NAP: Duration = Duration::from_millis(1);
                #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
                let slept_from = Instant::now();
                #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
                std::thread::sleep(NAP);
                let late = slept_from.elapsed().saturating_sub(NAP);
                theirs.fetch_max(late.as_micros() as u64, Ordering::Relaxed);
            }
        });
        Self(worst_us)
    }

    fn worst_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Echoes each request, with the maximum lateness of this program in microseconds.
#[test]
#[ignore = "runs inside a hop"]
fn udp_echo_lateness() {
    let lateness = Lateness::watch();
    let socket = UdpSocket::bind("0.0.0.0:7007").unwrap();
    let mut buffer = [0; 12];
    loop {
        let (_, from) = socket.recv_from(&mut buffer[..4]).unwrap();
        buffer[4..].copy_from_slice(&lateness.worst_us().to_be_bytes());
        socket.send_to(&buffer, from).unwrap();
    }
}

/// Number of requests that [`udp_times`] sends, and the interval between them.
pub const QUESTIONS: u32 = 60;
const QUESTION_EVERY: Duration = Duration::from_millis(50);

/// Prints the round-trip time in microseconds of each response from [`udp_echo_lateness`], including duplicates, and
/// finally the maximum lateness of either program.
#[test]
#[ignore = "runs inside a hop"]
fn udp_times() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((peer(), 7007)).unwrap();
    #[allow(clippy::disallowed_methods, reason = "this is the edge where time is real")]
    let start = Instant::now();
    let lateness = Lateness::watch();
    let mut server_worst_us = 0;
    let mut sent_at = Vec::new();
    while sent_at.len() < QUESTIONS as usize || start.elapsed() < QUESTION_EVERY * (QUESTIONS + 10) {
        let due = QUESTION_EVERY * sent_at.len() as u32;
        if sent_at.len() < QUESTIONS as usize && start.elapsed() >= due {
            socket.send(&(sent_at.len() as u32).to_be_bytes()).unwrap();
            sent_at.push(start.elapsed());
        }
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let mut answer = [0; 12];
        if let Ok(12) = socket.recv(&mut answer) {
            let took = start.elapsed();
            let (number, late) = answer.split_first_chunk().unwrap();
            let asked = sent_at[u32::from_be_bytes(*number) as usize];
            println!("\nround trip {} us", (took - asked).as_micros());
            server_worst_us = server_worst_us.max(u64::from_be_bytes(late.try_into().unwrap()));
        }
    }
    println!("\nlate by {} us", lateness.worst_us());
    println!("late by {server_worst_us} us");
}
