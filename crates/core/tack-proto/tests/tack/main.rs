//! TACK from outside: packet scripts, whole transfers, hostile peers.
#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../../../packet/tests/common/joined.rs"]
mod joined;

mod driver;
mod hostile;
mod known;
mod life;
mod lines;
mod live;
mod losses;
mod lossy;
mod paths;
mod rules;
mod script;
mod sender;
mod short;
mod slow_uplink;
mod streams;
mod tack_wire;

use joined::{Link, Pipe, ends};
use tacit_packet::units::{BitRate, Duration, Instant};
use tacit_tack_proto::{Config, Connection};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A client that connects to a server over `up` and `down`.
fn between(client: Config, server: Config, up: Link, down: Link) -> Pipe<Connection> {
    let [local, remote] = ends();
    let client = Connection::connect(client, local, 7, Instant::ZERO);
    let mut pipe = Pipe::between(client, Connection::listen(server, remote, 8), up, down);
    pipe.wire = true;
    pipe
}

/// How long the client takes to bring `bytes` across.
fn transfer_time(pipe: &mut Pipe<Connection>, bytes: u64) -> Duration {
    pipe.client.write(bytes);
    let began = pipe.now;
    for _ in 0..10_000 {
        pipe.run_for(ms(20));
        if pipe.server.delivered_bytes() == bytes {
            return pipe.now.saturating_since(began);
        }
    }
    panic!("{} of {bytes} bytes in 200 s", pipe.server.delivered_bytes());
}

/// Two ends of one configuration, `rate` and half of `rtt` each way.
fn pipe(config: Config, rate: BitRate, rtt: Duration) -> Pipe<Connection> {
    let link = || Link::new(Some(rate), rtt / 2);
    between(config, config, link(), link())
}

/// As [`pipe`], without bytes: for long runs.
fn long_pipe(config: Config, rate: BitRate, rtt: Duration) -> Pipe<Connection> {
    let mut pipe = pipe(config, rate, rtt);
    pipe.wire = false;
    pipe
}
