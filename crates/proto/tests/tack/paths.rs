//! Whole transfers, over paths drawn at random.

use proptest::prelude::*;
use tacit_proto::congestion::Algorithm;
use tacit_proto::endpoint::Event;
use tacit_proto::tack::{AckClock, Config, Lists, LossReports, RateFrom, StartUp, Timing};
use tacit_proto::units::{BitRate, Bytes, Duration};

use crate::joined::Random;
use crate::{long_pipe, ms, pipe};

#[derive(Clone, Debug)]
struct Weather {
    config: Config,
    lose_one_in: [u64; 2],
    delay_one_in: u64,
    double_one_in: u64,
    stall: bool,
    slower: bool,
    seed: u64,
    bytes: [u64; 2],
}

fn config() -> impl Strategy<Value = Config> {
    let algorithm = prop_oneof![Just(Algorithm::TACK_BBR), Just(Algorithm::CUBIC), Just(Algorithm::NewReno)];
    let clock = prop_oneof![
        2 => Just(AckClock::USUAL),
        1 => (2u8..9, 1u8..33, 0u64..60).prop_map(|(beta, every, least)| {
            AckClock::Tack { beta, every, min_interval: ms(least) }
        }),
        1 => (2u8..9, 1u8..9).prop_map(|(beta, every)| AckClock::Paper { beta, every }),
        1 => Just(AckClock::Delayed { every: 2, delay: ms(40) }),
    ];
    (algorithm, clock, any::<[bool; 6]>()).prop_map(
        |(algorithm, ack_clock, [poor, late, newest, sender, usual, long])| {
            let mut config = Config::default();
            config.congestion.algorithm = algorithm;
            config.ack_clock = ack_clock;
            config.lists = if poor { Lists::Poor } else { Lists::Rich };
            config.loss_reports = if late { LossReports::WithTack } else { LossReports::Instant };
            config.timing = if newest { Timing::Newest } else { Timing::LeastDelay };
            config.rate_from = if sender { RateFrom::Sender } else { RateFrom::Receiver };
            config.start_up = if usual { StartUp::AsAlways } else { StartUp::Often };
            config.mtu = Bytes(if long { 1200 } else { 1500 });
            config.idle_timeout = Duration::from_secs(3_600);
            config
        },
    )
}

fn weather() -> impl Strategy<Value = Weather> {
    let losses = || prop::sample::select(vec![0u64, 2, 5, 30, 200]);
    (
        config(),
        [losses(), losses()],
        prop::sample::select(vec![0u64, 3, 20]),
        prop::sample::select(vec![0u64, 5, 50]),
        any::<[bool; 2]>(),
        any::<u64>(),
        [0u64..300_000, 0u64..60_000],
    )
        .prop_map(|(config, lose_one_in, delay_one_in, double_one_in, [stall, slower], seed, bytes)| {
            Weather { config, lose_one_in, delay_one_in, double_one_in, stall, slower, seed, bytes }
        })
}

proptest! {
    /// Losses both ways of up to a half, reordering, duplicates, a stall, a slower path: every byte once and in order,
    /// both ends close, and within a bounded time.
    #[test]
    fn any_weather_is_survived(weather in weather()) {
        let mut pipe = pipe(weather.config, BitRate::from_mbps(20), ms(20));
        for (number, link) in [&mut pipe.up, &mut pipe.down].into_iter().enumerate() {
            link.lose_one_in = weather.lose_one_in[number];
            link.delay_one_in = weather.delay_one_in;
            link.double_one_in = weather.double_one_in;
            link.jitter = ms(30);
            link.random = Random(weather.seed.wrapping_add(number as u64));
        }
        pipe.client.write(weather.bytes[0]);
        pipe.client.close();
        pipe.server.write(weather.bytes[1]);
        pipe.server.close();
        pipe.run_for(ms(100));
        if weather.stall {
            let before = pipe.up.lose_one_in;
            pipe.up.lose_one_in = 1;
            pipe.run_for(ms(1_500));
            pipe.up.lose_one_in = before;
        }
        if weather.slower {
            pipe.up.rate = Some(BitRate::from_mbps(2));
        }
        let mut left = 2_000;
        while left > 0 && !(pipe.client_events.ends_with(&[Event::Closed]) && pipe.server_events.ends_with(&[Event::Closed])) {
            pipe.run_for(Duration::from_secs(1));
            left -= 1;
        }
        prop_assert!(left > 0, "{:?} {:?}\n{:?}\n{:?}", pipe.client_events, pipe.server_events, pipe.client.stats(), pipe.server.stats());
        prop_assert_eq!(pipe.server.delivered_bytes(), weather.bytes[0]);
        prop_assert_eq!(pipe.client.delivered_bytes(), weather.bytes[1]);
        let (client, server) = (pipe.client.stats(), pipe.server.stats());
        prop_assert_eq!((client.bytes_acked, server.bytes_acked), (weather.bytes[0], weather.bytes[1]));
    }
}

/// Above 50 Mb/s without loss one packet in a hundred is acknowledged, and the round trip is known within 1 %.
#[test]
fn acks_are_few_and_round_trips_exact() {
    for (mbps, rtt) in [(60, 80), (300, 80), (60, 200), (300, 10)] {
        let mut pipe = long_pipe(Config::default(), BitRate::from_mbps(mbps), ms(rtt));
        pipe.up.queue = ms(2 * rtt);
        pipe.client.write(u64::MAX);
        pipe.run_for(Duration::from_secs(4));
        let before = (pipe.client.stats(), pipe.server.stats());
        pipe.run_for(Duration::from_secs(8));
        let (client, server) = (pipe.client.stats(), pipe.server.stats());
        let data = client.data_packets_sent - before.0.data_packets_sent;
        let acks = server.acks_sent - before.1.acks_sent;
        assert!(acks * 50 < data, "{mbps} Mb/s, {rtt} ms: {acks} ACKs of {data} packets");
        let measured = pipe.client.rtt_min().unwrap().as_micros();
        assert!(measured.abs_diff(rtt * 1000) <= rtt * 10, "{measured} us instead of {rtt} ms");
    }
}

/// RFC 8899: the path takes more than the base, and a packet is soon as long as it may be.
#[test]
fn longer_packets_are_found_to_pass() {
    let config = Config { mtu: Bytes(1280), max_mtu: Bytes(9000), ..Config::default() };
    let mut pipe = pipe(config, BitRate::from_mbps(100), ms(20));
    pipe.client.write(20_000_000);
    pipe.run_for(Duration::from_secs(4));
    let stats = pipe.client.stats();
    assert_eq!(pipe.server.delivered_bytes(), 20_000_000);
    assert!(stats.data_packets_sent < 20_000_000 / 8_000, "{stats:?}");
}
