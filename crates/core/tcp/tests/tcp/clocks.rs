//! Receivers whose timestamp clock is slow or wrong.

use std::collections::BTreeSet;

use tacit_congestion::Algorithm;
use tacit_packet::units::{BitRate, Duration, Instant, SeqNumber};
use tacit_packet::{Endpoint as _, Transport};
use tacit_tcp::{Config, Connection, Profile};

use crate::joined::ends;
use crate::pipe::{Link, Pipe};

/// Timestamps of a receiver with these ticks on its SYN-ACK, sampled each 250 us for 400 ms.
fn stamps(tick: Option<Duration>, iss: u32) -> Vec<u32> {
    let [near, far] = ends();
    let mut client = Connection::connect(Config::default(), near, SeqNumber(1), Instant::ZERO);
    let syn = client.poll_transmit(Instant::ZERO).expect("a SYN");
    let mut seen = Vec::new();
    for us in (0..400_000).step_by(250) {
        let now = Instant::ZERO + Duration::from_micros(us);
        let config = Config { timestamp_tick: tick, ..Config::default() };
        let mut server = Connection::listen(config, far, SeqNumber(iss));
        server.handle_packet(now, syn.clone());
        let Some(Transport::Tcp(answer)) = server.poll_transmit(now).map(|packet| packet.transport) else {
            panic!("no answer at {now}");
        };
        seen.push(answer.timestamps.expect("agreed on").value);
    }
    seen
}

#[test]
fn a_clock_ticks_as_often_as_it_says() {
    for (tick_ms, ticks) in [(1, 400), (4, 100), (10, 40), (100, 4)] {
        let seen = stamps(Some(Duration::from_millis(tick_ms)), 77);
        assert!(seen.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) <= 1), "{tick_ms} ms");
        let passed = seen[seen.len() - 1].wrapping_sub(seen[0]);
        assert!((ticks - 1..=ticks).contains(&passed), "{passed} ticks of {tick_ms} ms");
        // Each tick except the first and the last is seen for its full length.
        let samples = |value: u32| seen.iter().filter(|other| **other == value).count() as u64;
        assert_eq!(samples(seen[0].wrapping_add(1)), tick_ms * 4);
    }
}

#[test]
fn clocks_tick_in_phases_of_their_own_unless_none_is_given() {
    let first_tick = |tick, iss| {
        let seen = stamps(tick, iss);
        seen.iter().position(|value| *value != seen[0]).unwrap()
    };
    let phases =
        |tick: Option<Duration>| (1..40).map(|iss| first_tick(tick, iss * 7_919)).collect::<BTreeSet<_>>();
    assert_eq!(phases(None).into_iter().collect::<Vec<_>>(), [4], "in step");
    // Sampled each 250 us, a tick of 10 ms has 40 phases.
    assert!(phases(Some(Duration::from_millis(10))).len() > 15);
}

/// 300 kB over 8 Mb/s and 40 ms, to a receiver with the tick in `config`; ACKs return over `up`.
fn transfer(config: Config, up: Link) -> Option<Duration> {
    let down = Link::new(Some(BitRate::from_mbps(8)), Duration::from_millis(20));
    let usual = Config { timestamp_tick: None, ..config };
    let mut pipe = Pipe::new(usual, config, down, up);
    pipe.client.write(300_000);
    pipe.client.close();
    pipe.server.close();
    let until = Instant::ZERO + Duration::from_secs(60);
    while pipe.server.delivered_bytes() < 300_000 {
        if !pipe.step(until) {
            return None;
        }
    }
    Some(pipe.now - Instant::ZERO)
}

fn back() -> Link {
    Link::new(Some(BitRate::from_mbps(8)), Duration::from_millis(20))
}

/// Senders that do not use the receiver's clock.
const OTHERS: [Algorithm; 4] = [Algorithm::CUBIC, Algorithm::NewReno, Algorithm::BBR, Algorithm::Copa];

fn configs(algorithms: &[Algorithm]) -> impl Iterator<Item = Config> {
    algorithms.iter().flat_map(|algorithm| {
        [Profile::Classic, Profile::Linux]
            .map(|profile| Config { congestion: (*algorithm).into(), ..profile.config() })
    })
}

#[test]
fn a_slow_clock_of_the_receiver_costs_a_sender_of_other_kinds_nothing() {
    for config in configs(&OTHERS) {
        let usual = transfer(config, back()).unwrap();
        for tick_ms in [1, 4, 10, 100] {
            let config = Config { timestamp_tick: Some(Duration::from_millis(tick_ms)), ..config };
            assert_eq!(transfer(config, back()), Some(usual), "{tick_ms} ms, {config:?}");
        }
    }
}

/// A receiver's wrong timestamp, from the time and the right timestamp.
type Restamp = fn(Instant, u32) -> Option<u32>;

/// Milliseconds since the clock went wrong, shortly after the handshake; `None` before that.
fn wrong_for(now: Instant) -> Option<u32> {
    let wrong_from = Instant::ZERO + Duration::from_millis(150);
    (now >= wrong_from).then(|| (now - wrong_from).as_millis() as u32)
}

/// For each wrong clock, the limit in milliseconds for 300 kB, which usually take about 350.
const CLOCKS: [(&str, Restamp, u64); 5] = [
    // PAWS refuses older timestamps (RFC 7323 section 5.3) until the clock has caught up.
    ("steps back", |now, stamp| Some(stamp.wrapping_sub(wrong_for(now).map_or(0, |_| 100))), 1_500),
    ("stops", |now, stamp| Some(stamp.wrapping_sub(wrong_for(now).unwrap_or(0))), 1_000),
    ("runs twice as fast", |_, stamp| Some(stamp.wrapping_mul(2)), 1_000),
    ("steps forward", |now, stamp| Some(stamp.wrapping_add(wrong_for(now).map_or(0, |_| 60_000))), 1_000),
    ("gains a tenth", |now, stamp| Some(stamp.wrapping_add(wrong_for(now).unwrap_or(0) / 10)), 1_000),
];

#[test]
fn a_wrong_clock_stalls_nobody() {
    for config in configs(&OTHERS).chain(configs(&[Algorithm::RRE])) {
        for (what, restamp, limit_ms) in CLOCKS {
            let mut up = back();
            up.restamp = Some(restamp);
            let took = transfer(config, up);
            // RRE uses that clock and is slow while the clock is wrong: for 8.4 s with one at twice the rate.
            let limit_ms = if config.congestion.algorithm == Algorithm::RRE { 10_000 } else { limit_ms };
            let in_time = took.is_some_and(|took| took < Duration::from_millis(limit_ms));
            assert!(in_time, "{what}: {took:?}, {config:?}");
        }
    }
}

/// 0.1 Mb/s is a packet per 116 ms, with nothing in flight for most of the time; the receive rate is still measured.
#[test]
fn rre_finds_a_link_that_comes_back_at_eighty_times_the_rate() {
    let config = Config { congestion: Algorithm::RRE.into(), ..Profile::Linux.config() };
    let down = Link::new(Some(BitRate::from_bps(100_000)), Duration::from_millis(20));
    let mut pipe = Pipe::new(config, config, down, back());
    pipe.client.write(u64::MAX);
    pipe.run_for(Duration::from_secs(20));
    let delivered = |pipe: &Pipe| pipe.server.delivered_bytes();
    let slow = delivered(&pipe);
    assert!((150_000..250_000).contains(&slow), "{slow} bytes in 20 s");
    pipe.up.rate = Some(BitRate::from_mbps(8));
    pipe.run_for(Duration::from_secs(15));
    let before = delivered(&pipe);
    pipe.run_for(Duration::from_secs(5));
    let rate = (delivered(&pipe) - before) * 8 / 5;
    assert!(rate > 7_200_000, "{rate} b/s of 8 Mb/s after 15 s");
}
