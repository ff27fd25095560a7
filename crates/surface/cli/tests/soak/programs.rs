//! Programs whose TCP connections the proxy carries: some echo, some stop reading.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crate::site::Site;
use crate::weather::Draws;
use crate::{World, add};

/// Maximum time that a program waits for the next bytes, beside the longest outage. A connection is given up after 10 s of
/// silence and re-established after waits of up to 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// Maximum duration of an exchange, beside the longest outage.
const BOUND: Duration = Duration::from_secs(180);
const FLOODED: u8 = 7;

/// A server on a local port that sends endlessly to every client.
pub fn flood() -> u16 {
    let flood = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = flood.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut tcp in flood.incoming().flatten() {
            std::thread::spawn(move || while tcp.write_all(&[FLOODED; 1 << 16]).is_ok() {});
        }
    });
    port
}

/// Requests a port from the proxy; `None` if it refuses.
fn connect_through(world: &World, proxy: &str, port: u16) -> Option<TcpStream> {
    let mut tcp = TcpStream::connect(proxy).unwrap();
    let silence = Some(SILENCE + world.outage);
    tcp.set_read_timeout(silence).unwrap();
    tcp.set_write_timeout(silence).unwrap();
    // RFC 1928 sections 3 and 4: no authentication; CONNECT to an IPv4 address.
    tcp.write_all(&[&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes()].concat()).ok()?;
    let mut answers = [0; 12];
    let came = tcp.read_exact(&mut answers);
    came.inspect_err(no_silence).ok()?;
    (answers[3] == 0).then_some(tcp)
}

/// A connection that is closed or reset is not a defect, but silence is.
fn no_silence(error: &std::io::Error) {
    let is_silence = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    assert!(!is_silence, "a program hears nothing for longer than any outage");
}

/// Sends bytes and reads them back. Returns true if all came back, false after an error.
fn echo(tcp: &TcpStream, bytes: &[u8]) -> bool {
    scope(|scope| {
        let sending = scope.spawn(move || {
            let sent = (&*tcp).write_all(bytes).and_then(|()| tcp.shutdown(Shutdown::Write));
            sent.inspect_err(no_silence).is_ok()
        });
        let mut back = Vec::new();
        let mut reader = tcp;
        let read = reader.read_to_end(&mut back);
        if let Err(error) = &read {
            no_silence(error);
        }
        let sent = sending.join().unwrap();
        assert!(bytes.starts_with(&back), "other bytes came back");
        match (read, sent) {
            // A regular end means that all data was received.
            (Ok(_), true) => {
                assert!(back == bytes, "{} of {} bytes came back, and an end", back.len(), bytes.len());
                true
            }
            _ => false,
        }
    })
}

/// Reads some bytes of an endless stream, pauses, and then continues or leaves.
fn stall(world: &World, tcp: &mut TcpStream, draws: &mut Draws) {
    let mut bytes = vec![0; 100_000];
    let mut take = |tcp: &mut TcpStream| {
        let read = tcp.read_exact(&mut bytes);
        assert!(read.is_err() || bytes.iter().all(|byte| *byte == FLOODED), "other bytes came");
        read.inspect_err(no_silence).is_ok()
    };
    if !take(tcp) {
        return;
    }
    add(&world.done.stalls);
    world.sleep(draws.below(8_000));
    if draws.happens(50) {
        for _ in 0..draws.below(100) {
            if !take(tcp) {
                return;
            }
        }
    }
}

/// Runs one program after another.
pub fn lane(world: &World, site: &Site, lane: u64, echo_port: u16, flood_port: u16) {
    let mut draws = Draws::new(world.seed, lane);
    loop {
        let Some(turn) = world.turn() else { return };
        let begun = Instant::now();
        if draws.happens(30) {
            if let Some(mut tcp) = connect_through(world, &site.socks, flood_port) {
                stall(world, &mut tcp, &mut draws);
            }
        } else {
            let most = [10, 10_000, 1_000_000][draws.below(3) as usize];
            let count = draws.below(most) as usize;
            let bytes = draws.bytes(count);
            match connect_through(world, &site.socks, echo_port) {
                Some(tcp) if echo(&tcp, &bytes) => add(&world.done.echoes),
                Some(_) => add(&world.done.echoes_broken),
                None => sleep(Duration::from_millis(100)),
            }
        }
        assert!(begun.elapsed() < BOUND + world.outage, "a program took {:?}", begun.elapsed());
        drop(turn);
        world.sleep(draws.below(300));
    }
}
