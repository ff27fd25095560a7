//! Whole transfers, over paths drawn at random, and changes from one path to another.

use std::sync::Arc;

use proptest::prelude::*;
use tacit_congestion::Algorithm;
use tacit_packet::Endpoint;
use tacit_packet::endpoint::Event;
use tacit_packet::tack::packet::{Block, Body, Data, Stamp, Sync, Tack};
use tacit_packet::units::{BitRate, Bytes, Duration, SeqNumber};
use tacit_tack_proto::{AckClock, Config, Lists, LossReports, RateFrom, StartUp, Timing};

use crate::joined::Random;
use crate::script::{FULL, Script, at_ms};
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

/// A sender's peer, which has all that the sender sent up to some packet.
struct Peer {
    script: Script,
    /// The number after the last that it has, and the bytes of all.
    next: u32,
    bytes: u32,
    /// Losses that it reports, in 65,536ths.
    loss: u16,
    /// When its acknowledgments leave, in milliseconds of its clock.
    left: u32,
}

impl Peer {
    fn new(config: Config) -> Self {
        Self { script: Script::established(config), next: 0, bytes: 0, loss: 0, left: 0 }
    }

    /// Data that the sender, which has more to send, lets go at `now`. The peer has it.
    fn takes(&mut self, now: u64) -> Vec<Data> {
        self.script.end_timeout(now);
        let mut taken = Vec::new();
        for (number, body) in self.script.numbered(at_ms(now)) {
            self.next = number + 1;
            if let Body::Data(data) = body {
                self.bytes += u32::from(data.payload_len);
                taken.push(data);
            }
        }
        taken
    }

    /// It acknowledges at `now` all that it has: of a packet that left `rtt_ms` before.
    fn acknowledges(&mut self, now: u64, rtt_ms: u32) {
        let own_now = self.script.stamp_at(at_ms(now));
        let tack = Tack {
            departed: Stamp(own_now.0.wrapping_sub(rtt_ms * 1000)),
            cumulative: SeqNumber(self.next),
            received: SeqNumber(self.bytes),
            window: SeqNumber(1 << 30),
            loss: self.loss,
            left: Stamp(self.left * 1000),
            ..Tack::default()
        };
        self.script.give(at_ms(now), Body::Tack(Arc::new(tack)));
    }

    /// `rounds` round trips of 20 ms from `from` on, with one packet each. Returns when they are over, and what the data told.
    fn rounds(&mut self, from: u64, rounds: u64) -> (u64, Vec<Sync>) {
        let mut announced = Vec::new();
        for round in 0..rounds {
            let now = from + 20 * round;
            self.script.end.write(u64::from(FULL));
            announced.extend(self.takes(now).into_iter().filter_map(|data| data.sync));
            self.acknowledges(now + 20, 20);
        }
        (from + 20 * rounds, announced)
    }

    fn changes_path(&mut self, now: u64) {
        self.script.end.on_path_changed(at_ms(now));
    }
}

/// RFC 9000 section 9.4. What the receiver knows is of the old path, and the start-up lasts as long as the first one.
#[test]
fn the_first_packet_on_another_path_tells_the_receiver_of_a_start_up() {
    for rounds in [0, 1, 20] {
        let mut peer = Peer::new(Config::default());
        let (now, _) = peer.rounds(10, rounds);
        peer.script.end.write(2 * u64::from(FULL));
        let last = peer.takes(now);
        assert!(last.len() > 1, "{last:?}");
        peer.changes_path(now);
        peer.script.end.write(u64::from(FULL));
        let first = peer.takes(now)[0].sync.expect("it tells");
        assert_eq!((first.rtt_min_us, first.startup), (0, true), "after {rounds} round trips");
        let (_, announced) = peer.rounds(now + 20, 8);
        assert!(
            !announced.is_empty() && announced.iter().all(|sync| sync.startup),
            "after {rounds}: {announced:?}"
        );
    }
}

/// Section 5.1, equations 6 to 8: the blocks that a receiver is asked for make up for losses, of this path.
#[test]
fn on_another_path_no_loss_is_known() {
    let mut peer = Peer::new(Config::default());
    peer.script.number = 0;
    // Of the packets both ways most are lost.
    peer.loss = 60_000;
    for _ in 0..300 {
        peer.script.number += 4;
        peer.acknowledges(12, 20);
    }
    peer.script.takes(at_ms(12));
    let (now, announced) = peer.rounds(20, 2);
    assert!(announced.iter().any(|sync| sync.blocks > 4), "{announced:?}");
    peer.changes_path(now);
    peer.script.end.write(u64::from(FULL));
    assert_eq!(peer.takes(now)[0].sync.map(|sync| sync.blocks), Some(4));
}

/// The time after which a silent peer is asked doubles with each time in vain, and begins at the least on another path.
#[test]
fn silence_on_the_old_path_does_not_count_on_another() {
    let asked_after = |silent: u64| {
        let mut peer = Peer::new(Config::default());
        peer.script.end.write(3 * u64::from(FULL));
        peer.takes(10);
        let mut probes = 0;
        let mut now = 10;
        while probes < silent {
            now += 1;
            probes += u64::from(!peer.takes(now).is_empty());
        }
        peer.changes_path(now);
        let due = peer.script.end.poll_timeout().expect("data is under way");
        due.saturating_since(at_ms(now))
    };
    assert_eq!(asked_after(4), asked_after(1));
    assert!(asked_after(1) < Duration::from_millis(1_500), "{:?}", asked_after(1));
}

/// One window cut for the losses of a round trip (RFC 9002 section 7.3.2), of one path.
#[test]
fn losses_on_another_path_cut_its_window_though_the_old_one_had_some() {
    let mut config = Config::default();
    config.congestion.algorithm = Algorithm::NewReno;
    let mut script = Script::established(config);
    let send = |script: &mut Script, now: u64| {
        script.end.write(6 * u64::from(FULL));
        script.end_timeout(now);
        script.numbered(at_ms(now)).into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    // The peer lacks the first of these, and says nothing of the last two of the old path.
    let tack = |cumulative: u32, lost: u32, last: u32, packets: u32| {
        let block = |first, last| Block { first: SeqNumber(first), last: SeqNumber(last) };
        Body::Tack(Arc::new(Tack {
            cumulative: SeqNumber(cumulative),
            acked: vec![block(lost + 1, last)],
            unacked: vec![block(lost, lost)],
            repeated: 1,
            received: SeqNumber(packets * u32::from(FULL)),
            window: SeqNumber(1 << 30),
            delay_us: u32::MAX,
            ..Tack::default()
        }))
    };
    let old = send(&mut script, 10);
    assert_eq!(old.len(), 6);
    script.give(at_ms(40), tack(old[0], old[0], old[3], 3));
    assert_eq!(script.end.stats().fast_recoveries, Some(1));
    script.end.on_path_changed(at_ms(50));
    let new = send(&mut script, 50);
    assert!(new.len() > 3, "{new:?}");
    let cwnd = script.end.stats().cwnd;
    script.give(at_ms(90), tack(old[4], new[0], new[2], 5));
    let stats = script.end.stats();
    assert_eq!(stats.fast_recoveries, Some(2));
    assert!(stats.cwnd < cwnd, "{:?} of {cwnd:?}", stats.cwnd);
}

/// How often the receiver may acknowledge follows from the queue of its acknowledgments, of this path.
#[test]
fn on_another_path_acknowledgments_do_not_queue_yet() {
    let mut peer = Peer::new(Config::default());
    let (mut now, mut announced) = (10, Vec::new());
    // They leave each 4 ms and arrive each 36 ms.
    for ack in 0..30 {
        peer.script.end.write(u64::from(FULL));
        announced.extend(peer.takes(now).into_iter().filter_map(|data| data.sync));
        (now, peer.left) = (now + 36, 4 * ack);
        peer.acknowledges(now, 20 + 32 * ack);
    }
    assert!(announced.iter().any(|sync| sync.ack_interval_ms > 0), "{announced:?}");
    peer.changes_path(now);
    peer.script.end.write(u64::from(FULL));
    assert_eq!(peer.takes(now)[0].sync.map(|sync| sync.ack_interval_ms), Some(0));
}

#[test]
fn the_pace_of_the_old_path_holds_nothing_back_on_another() {
    let mut peer = Peer::new(Config::default());
    peer.script.end.write(1_000 * u64::from(FULL));
    peer.takes(10);
    peer.acknowledges(110, 100);
    assert!(!peer.takes(110).is_empty());
    assert_eq!(peer.takes(110), [], "the rest waits for its time");
    peer.changes_path(110);
    assert!(!peer.takes(110).is_empty());
}
