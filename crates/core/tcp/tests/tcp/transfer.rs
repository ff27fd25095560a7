//! Whole transfers between two ends: no data is lost, duplicated or stalled, and rates match the theory.

use std::num::NonZeroU64;

use proptest::prelude::*;
use tacit_congestion::Algorithm;
use tacit_congestion::cubic::{self, SlowStart};
use tacit_packet::IpVersion;
use tacit_packet::endpoint::Event;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_tcp::{
    AckPolicy, Config, Counters, DelayedAcks, LossDetection, ReadPolicy, Reading, ReceiveAutotuning,
    Recovery, State, Undo,
};

use crate::pipe::{Link, Pipe, Random};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn pipe(config: Config, rate: BitRate, delay: Duration) -> Pipe {
    Pipe::new(config, config, Link::new(Some(rate), delay), Link::new(Some(rate), delay))
}

#[test]
fn a_transfer_completes_and_both_ends_close() {
    let mut pipe = pipe(Config::default(), BitRate::from_mbps(100), ms(10));
    pipe.client.write(1_000_000);
    pipe.client.close();
    pipe.run_for(ms(2_000));
    assert_eq!(pipe.server.state(), State::CloseWait);
    pipe.server.close();
    assert!(pipe.run_to_close(secs(120)));
    assert_eq!(pipe.server.counters().delivered_bytes, 1_000_000);
    assert_eq!(pipe.client.counters().segments_retransmitted, 0);
    assert_eq!(pipe.client_events, [Event::Connected, Event::SendDone, Event::PeerClosed, Event::Closed]);
    assert_eq!(pipe.server_events, [Event::Connected, Event::PeerClosed, Event::Closed]);
}

/// The simulator passes structs; their encoded bytes must give the same result.
#[test]
fn every_packet_of_a_transfer_survives_the_wire() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        let config = Config { ip, ..Config::default() };
        let mut pipe = pipe(config, BitRate::from_mbps(20), ms(10));
        pipe.wire = true;
        pipe.up.lose_every = 30;
        pipe.down.lose_every = 40;
        for side in [&mut pipe.client, &mut pipe.server] {
            side.write(300_000);
            side.close();
        }
        assert!(pipe.run_to_close(secs(200)));
        assert_eq!(pipe.server.counters().delivered_bytes, 300_000);
        assert_eq!(pipe.client.segment_payload(), 1500 - ip.header_len() - 20 - 12);
    }
}

#[test]
fn data_flows_both_ways_at_once() {
    let mut pipe = pipe(Config::default(), BitRate::from_mbps(20), ms(10));
    pipe.up.lose_every = 50;
    pipe.down.lose_every = 70;
    for side in [&mut pipe.client, &mut pipe.server] {
        side.write(2_000_000);
        side.close();
    }
    assert!(pipe.run_to_close(secs(200)));
    assert_eq!(pipe.server.counters().delivered_bytes, 2_000_000);
    assert_eq!(pipe.client.counters().delivered_bytes, 2_000_000);
}

/// Bytes per second delivered to the server between `from` and `to`.
fn goodput(pipe: &mut Pipe, from: Duration, span: Duration) -> f64 {
    pipe.client.write(u64::MAX);
    pipe.run_for(from);
    let before = pipe.server.counters().delivered_bytes;
    pipe.run_for(span);
    (pipe.server.counters().delivered_bytes - before) as f64 / span.as_secs_f64()
}

fn assert_within(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{value} is not within {tolerance} of {expected}");
}

#[test]
fn goodput_is_the_window_over_the_round_trip() {
    // A small receive buffer limits the window; the path is faster than needed.
    let config = Config { receive_buffer: Bytes(64 * 1448), ..Config::default() };
    let mut pipe = pipe(config, BitRate::from_mbps(1000), ms(25));
    let rate = goodput(&mut pipe, secs(2), secs(4));
    // A window is sent in a burst, and its ACKs open it again a round trip later.
    assert_within(rate, 64.0 * 1448.0 / 0.050, 0.02);
}

#[test]
fn goodput_is_the_bottleneck_rate() {
    for congestion in [Algorithm::NewReno, Algorithm::CUBIC] {
        let config = Config { congestion: congestion.into(), ..Config::default() };
        let mut pipe = pipe(config, BitRate::from_mbps(50), ms(10));
        pipe.up.queue = ms(60);
        let rate = goodput(&mut pipe, secs(10), secs(5));
        assert_within(rate, 50e6 / 8.0 * 1448.0 / 1500.0, 0.02);
    }
}

/// Average window in segments over a long run with every n-th data segment lost, on a path whose round-trip time does
/// not depend on the rate.
fn average_window(
    config: Config,
    lose_every: u64,
    round_trip: Duration,
    warm_up: Duration,
    run: Duration,
) -> f64 {
    let mut pipe =
        Pipe::new(config, config, Link::new(None, round_trip / 2), Link::new(None, round_trip / 2));
    pipe.up.lose_every = lose_every;
    let rate = goodput(&mut pipe, warm_up, run);
    rate / 1448.0 * round_trip.as_secs_f64()
}

/// The deterministic model of the "square root" formula: every n-th segment is lost, so the window grows from W/2 to W
/// in W/2 round trips, and n = 3/8 W^2. The average is then sqrt(3/2 n) = 1.22 / sqrt(p). With byte counting (RFC 3465)
/// the constant is the same for delayed ACKs; if ACKs were counted it would be sqrt(3/4 n).
#[test]
fn reno_follows_the_square_root_formula() {
    for every in [1, 2] {
        for n in [500, 2_000] {
            let ack_policy = DelayedAcks { every, quick_ack_segments: 0, ..DelayedAcks::default() }.into();
            let config = Config { congestion: Algorithm::NewReno.into(), ack_policy, ..Config::default() };
            let window = average_window(config, n, ms(100), secs(100), secs(400));
            assert_within(window, (1.5 * n as f64).sqrt(), 0.10);
        }
    }
}

/// Independent losses of the same rate are clustered with long gaps, in which the window grows more, so the average is
/// a little higher: 1.31 / sqrt(p) (Ott, Kemperman and Mathis, "The stationary behavior of ideal TCP congestion
/// avoidance", 1996).
#[test]
fn independent_losses_average_a_little_more() {
    let ack_policy = AckPolicy::every(1);
    let config = Config { congestion: Algorithm::NewReno.into(), ack_policy, ..Config::default() };
    let half = Link::new(None, ms(50));
    let mut pipe = Pipe::new(config, config, half.clone(), half);
    pipe.up.lose_one_in = 1_000;
    let rate = goodput(&mut pipe, secs(100), secs(3_000));
    assert_within(rate / 1448.0 * 0.1, 1.31 * 1_000f64.sqrt(), 0.05);
}

/// RFC 9438 section 5.1: AVG_W_cubic = (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4), which
/// also assumes a loss every 1/p segments.
#[test]
fn cubic_follows_its_response_function() {
    let config = Config { ack_policy: AckPolicy::every(1), ..Config::default() };
    for n in [10_000u64, 30_000] {
        let round_trip = ms(100);
        let window = average_window(config, n, round_trip, secs(60), secs(160));
        let formula = 1.054 * round_trip.as_secs_f64().powf(0.75) * (n as f64).powf(0.75);
        assert_within(window, formula, 0.10);
    }
}

/// Where the cubic curve is slower than Reno, CUBIC is AIMD(9/17, 0.7) until W_est has reached the window before the
/// loss, which gives the same average as Reno: sqrt(3/2 n).
#[test]
fn cubic_on_short_paths_is_friendly_to_reno() {
    let config = Config { ack_policy: AckPolicy::every(1), ..Config::default() };
    let window = average_window(config, 1_000, ms(10), secs(20), secs(100));
    assert_within(window, (1.5 * 1_000f64).sqrt(), 0.10);
}

#[test]
fn hystart_leaves_slow_start_without_loss() {
    let run = |slow_start| {
        let congestion = Algorithm::Cubic(cubic::Config { slow_start }).into();
        let config = Config { congestion, ..Config::default() };
        let mut pipe = pipe(config, BitRate::from_mbps(50), ms(25));
        pipe.up.queue = ms(50);
        pipe.client.write(u64::MAX);
        pipe.run_for(secs(1));
        (pipe.up.dropped, pipe.client.counters())
    };
    let (dropped, counters) = run(SlowStart::HyStart);
    assert_eq!((dropped, counters.fast_recoveries), (0, 0));
    assert!(counters.ssthresh < u64::MAX);
    let (dropped, counters) = run(SlowStart::Standard);
    assert!(dropped > 100 && counters.fast_recoveries == 1);
}

/// Slow start overshoots the queue, and SACK repairs some two hundred losses in one recovery. (The send buffer keeps
/// half of the window below the capacity of path and queue. Otherwise the halved window would be about that capacity, a
/// few retransmissions would be lost as well, and without RACK that requires a timeout.)
#[test]
fn a_queue_overflow_is_repaired_without_a_timeout() {
    let config =
        Config { congestion: Algorithm::NewReno.into(), send_buffer: Bytes(600 * 1448), ..Config::default() };
    let mut pipe = pipe(config, BitRate::from_mbps(50), ms(25));
    pipe.up.queue = ms(40);
    pipe.client.write(30_000_000);
    pipe.run_for(secs(20));
    assert!(pipe.up.dropped > 200);
    assert_eq!(pipe.server.counters().delivered_bytes, 30_000_000);
    assert_eq!((pipe.client.counters().timeouts, pipe.client.counters().fast_recoveries), (0, 1));
}

#[test]
fn a_slow_reader_is_never_overrun_and_never_stalls() {
    let config = Config { receive_buffer: Bytes(20_000), ..Config::default() };
    let mut pipe = pipe(config, BitRate::from_mbps(10), ms(5));
    pipe.server.set_read_policy(ReadPolicy::Manual);
    pipe.client.write(300_000);
    pipe.client.close();
    let mut random = Random(7);
    let mut read = 0;
    for _ in 0..2_000 {
        pipe.run_for(ms(random.next() % 40));
        assert!(pipe.server.readable() <= 20_000 + 128);
        read += pipe.server.read(random.next() % 5_000);
    }
    assert_eq!((read, pipe.server.state()), (300_000, State::CloseWait));
    assert_eq!(pipe.server.counters().dropped_bytes, 0);
}

/// The worst path we test: what holds on it holds everywhere.
#[derive(Clone, Debug)]
struct Weather {
    config: Config,
    lose_one_in: u64,
    delay_one_in: u64,
    double_one_in: u64,
    seed: u64,
    bytes: (u64, u64),
}

fn ack_policy() -> impl Strategy<Value = AckPolicy> {
    prop_oneof![
        (1u32..9).prop_map(AckPolicy::every),
        prop::sample::select(vec![
            AckPolicy::linux(),
            AckPolicy::quic_ack2(),
            AckPolicy::quic_ackfreq(30, ms(100), 0, Reading::ALL),
            AckPolicy::quinn(),
            AckPolicy::aioquic(),
            AckPolicy::mvfst(),
            AckPolicy::chrome(),
            AckPolicy::neqo(),
            AckPolicy::picoquic(),
            AckPolicy::tack_lite(),
        ]),
    ]
}

/// Every way of detecting and repairing losses.
pub fn recovery_choices() -> impl Strategy<Value = Config> {
    let detections = prop::sample::select(vec![LossDetection::DupAck, LossDetection::RackTlp]);
    let recoveries = prop::sample::select(vec![Recovery::Rfc6675, Recovery::Prr]);
    let undos = prop::sample::select(vec![Undo::Never, Undo::Eifel, Undo::FRto, Undo::All]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (detections, recoveries, undos, flags).prop_map(
        |(loss_detection, recovery, undo, (dsack, ecn, grows))| Config {
            loss_detection,
            recovery,
            undo,
            dsack,
            ecn,
            receive_autotuning: if grows { ReceiveAutotuning::LINUX } else { ReceiveAutotuning::Off },
            ..Config::default()
        },
    )
}

fn weather() -> impl Strategy<Value = Weather> {
    let congestion = prop_oneof![Just(Algorithm::NewReno), Just(Algorithm::CUBIC), Just(Algorithm::BBR)];
    let config = (
        congestion,
        any::<bool>(),
        any::<bool>(),
        ack_policy(),
        prop::sample::select(vec![5_000u64, 60_000, 4 << 20]),
        prop::sample::select(vec![None, NonZeroU64::new(9_000)]),
        recovery_choices(),
    )
        .prop_map(|(congestion, timestamps, sack, ack_policy, buffer, window_update_bytes, recovery)| {
            Config {
                congestion: congestion.into(),
                timestamps,
                sack,
                receive_buffer: Bytes(buffer),
                window_update_bytes,
                ack_policy,
                ..recovery
            }
        });
    // Fifteen failures in a row, which end a connection, must not occur.
    let one_in = || prop_oneof![Just(0u64), 6u64..100];
    (config, one_in(), one_in(), one_in(), any::<u64>(), (0u64..400_000, 0u64..100_000)).prop_map(
        |(config, lose_one_in, delay_one_in, double_one_in, seed, bytes)| Weather {
            config,
            lose_one_in,
            delay_one_in,
            double_one_in,
            seed,
            bytes,
        },
    )
}

fn consistent(counters: &Counters) -> bool {
    counters.bytes_sent >= counters.bytes_acked + counters.bytes_retransmitted
        && counters.segments_sent >= counters.data_segments_sent + counters.acks_sent
}

proptest! {
    // A quarter of the cases in PROPTEST_CASES, because each case is a whole transfer.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    /// Every byte is delivered once and in order (the receiver counts only bytes in order), both ends close, and
    /// neither waits forever.
    #[test]
    fn any_weather_is_survived(weather in weather()) {
        let rate = BitRate::from_mbps(20);
        let mut pipe = pipe(weather.config, rate, ms(10));
        for (number, link) in [&mut pipe.up, &mut pipe.down].into_iter().enumerate() {
            link.lose_one_in = weather.lose_one_in;
            link.delay_one_in = weather.delay_one_in;
            link.double_one_in = weather.double_one_in;
            link.jitter = ms(30);
            link.random = Random(weather.seed.wrapping_add(number as u64));
        }
        pipe.client.write(weather.bytes.0);
        pipe.client.close();
        pipe.server.write(weather.bytes.1);
        pipe.server.close();
        prop_assert!(pipe.run_to_close(secs(3_600)), "{:?} {:?}", pipe.client.state(), pipe.server.state());
        prop_assert_eq!(pipe.server.counters().delivered_bytes, weather.bytes.0);
        prop_assert_eq!(pipe.client.counters().delivered_bytes, weather.bytes.1);
        prop_assert!(!pipe.client_events.contains(&Event::TimedOut));
        prop_assert!(!pipe.server_events.contains(&Event::TimedOut));
        prop_assert!(consistent(&pipe.client.counters()));
        prop_assert!(consistent(&pipe.server.counters()));
        prop_assert!(pipe.now > Instant::ZERO);
    }
}
