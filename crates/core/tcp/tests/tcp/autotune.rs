//! Receive windows that grow with the path (dynamic right-sizing).

use tacit_congestion::Algorithm;
use tacit_congestion::cubic::{self, SlowStart};
use tacit_packet::units::{BitRate, Bytes, Duration};
use tacit_tcp::{Config, ReadPolicy, ReceiveAutotuning};

use crate::pipe::{Link, Pipe};

fn growing(timestamps: bool) -> Config {
    Config {
        receive_buffer: ReceiveAutotuning::LINUX_START,
        receive_autotuning: ReceiveAutotuning::LINUX,
        send_buffer: Bytes(16 << 20),
        congestion: Algorithm::Cubic(cubic::Config { slow_start: SlowStart::Standard }).into(),
        timestamps,
        ..Config::default()
    }
}

fn pipe(config: Config, mbps: u64, round_trip_ms: u64) -> Pipe {
    let link = || Link::new(Some(BitRate::from_mbps(mbps)), Duration::from_millis(round_trip_ms / 2));
    Pipe::new(config, config, link(), link())
}

fn bytes_per_second(pipe: &mut Pipe, from_s: u64, span_s: u64) -> u64 {
    pipe.run_for(Duration::from_secs(from_s));
    let before = pipe.server.counters().delivered_bytes;
    pipe.run_for(Duration::from_secs(span_s));
    (pipe.server.counters().delivered_bytes - before) / span_s
}

/// 100 Mb/s times 200 ms is 2.5 MB, twenty times the initial buffer.
#[test]
fn a_long_fat_path_is_filled() {
    for timestamps in [true, false] {
        let mut pipe = pipe(growing(timestamps), 100, 200);
        pipe.client.write(u64::MAX);
        let rate = bytes_per_second(&mut pipe, 5, 5);
        assert!(rate > 11_500_000, "{rate} bytes/s, timestamps {timestamps}");
        let buffer = pipe.server.counters().receive_buffer;
        assert!((2_500_000..=6 << 20).contains(&buffer), "{buffer}");
    }
}

/// With the initial buffer the rate would be a twentieth of that.
#[test]
fn a_buffer_that_does_not_grow_holds_the_same_path_down() {
    let config = Config { receive_autotuning: ReceiveAutotuning::Off, ..growing(true) };
    let mut pipe = pipe(config, 100, 200);
    pipe.client.write(u64::MAX);
    let rate = bytes_per_second(&mut pipe, 5, 5);
    assert!(rate < 700_000, "{rate} bytes/s");
}

/// A slow path gets a buffer for its round trips, a twentieth of the limit, however long it lasts.
#[test]
fn a_slow_path_takes_little_memory() {
    let config = Config { congestion: Algorithm::NewReno.into(), ..growing(true) };
    let mut pipe = pipe(config, 1, 200);
    pipe.up.queue = Duration::from_millis(100);
    pipe.client.write(u64::MAX);
    let rate = bytes_per_second(&mut pipe, 10, 20);
    assert!(rate > 100_000, "{rate} bytes/s");
    let buffer = pipe.server.counters().receive_buffer;
    // Three times twice the 37.5 kB in path and queue, spare segments, and the initial burst.
    assert!(buffer < 400_000, "{buffer}");
}

/// An application that reads slowly gets no more memory, because only the bytes it reads count.
#[test]
fn an_application_that_does_not_read_gets_no_larger_buffer() {
    let mut pipe = pipe(growing(true), 100, 200);
    pipe.server.set_read_policy(ReadPolicy::Manual);
    pipe.client.write(u64::MAX);
    for _ in 0..100 {
        pipe.run_for(Duration::from_millis(100));
        pipe.server.read(5_000);
    }
    let counters = pipe.server.counters();
    assert_eq!(counters.receive_buffer, 131_072);
    assert!(pipe.server.readable() <= 131_072 + 128);
}
