//! How often and when retries happen, and how others behave meanwhile: losses are scripted or due to a client out of
//! range. Also the invariants under any backoffs.

use crate::common::{Channel, TestPacket, channel};
use tacit_link::loss::Loss;
use tacit_link::wifi::air::{AirFrame, Frame, Outcome};
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{AmsduLimit, BssConfig, Protection, StationConfig, StationId};
use tacit_packet::units::{BitRate, Duration, Instant, Ratio};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);
const TWO: StationId = StationId(2);
const THREE: StationId = StationId(3);

/// SIFS of 802.11 at 5 GHz.
const SIFS: Duration = us(16);
const SLOT: Duration = us(9);
/// DIFS; AIFS of best effort is one slot longer.
const DIFS: Duration = us(34);
/// SIFS, a slot, and 20 us until a PPDU is detected.
const ACK_TIMEOUT: Duration = us(45);
/// An ACK or a CTS at 6 Mb/s.
const CTS_AT_6: Duration = us(44);
/// The longest backoff with the smallest window.
const LONGEST_BACKOFF: Duration = us(15 * 9);

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + us(micros)
}

fn config(standard: Standard, mbps: u64, clients: usize) -> BssConfig {
    let client = StationConfig::new(Mode::for_rate(standard, BitRate::from_mbps(mbps)).unwrap());
    BssConfig { beacon_interval: None, ..BssConfig::new(standard, vec![client; clients]) }
}

fn scripted(losses: impl IntoIterator<Item = u64>) -> Loss {
    Loss::Scripted(losses.into_iter().collect())
}

struct Harness {
    bss: Channel,
    delivered: Vec<u32>,
    next: u32,
}

impl Harness {
    fn new(config: BssConfig, seed: u64) -> Self {
        let mut bss = channel(config, seed, "retries", Duration::from_secs(10));
        bss.record_air();
        Self { bss, delivered: Vec::new(), next: 0 }
    }

    /// Queues `count` packets for `to` at `from` at `now`, with consecutive numbers.
    fn send(&mut self, now: Instant, from: StationId, to: StationId, count: u32) {
        self.run_to(now);
        for _ in 0..count {
            assert!(self.bss.enqueue(
                now,
                from.first_function(),
                to.first_function(),
                TestPacket::full(self.next)
            ));
            self.next += 1;
        }
    }

    fn run_to(&mut self, until: Instant) {
        while let Some(now) = self.bss.poll_timeout().filter(|now| *now < until) {
            self.bss.handle_timeout(now);
            self.delivered.extend(std::iter::from_fn(|| self.bss.poll_deliver()).map(|of| of.payload.number));
            while self.bss.poll_drained().is_some() {}
        }
    }

    /// The frames of the next ten seconds.
    fn frames(&mut self) -> Vec<AirFrame<TestPacket>> {
        self.run_to(Instant::ZERO + Duration::from_secs(10));
        self.bss.check().unwrap();
        std::iter::from_fn(|| self.bss.poll_air()).collect()
    }
}

fn end(frame: &AirFrame<TestPacket>) -> Instant {
    frame.at + frame.duration
}

/// Seven attempts double the window six times. A station that gives up starts with the smallest window again.
#[test]
fn after_the_last_try_the_window_is_the_smallest_again() {
    for seed in 1..=10 {
        let mut c = config(Standard::A, 54, 1);
        c.retry_limit = 6;
        c.stations[0].downlink_loss = scripted(0..7);
        let mut h = Harness::new(c, seed);
        h.send(at(1_000), AP, ONE, 2);
        let frames = h.frames();
        assert_eq!((h.delivered.as_slice(), frames.len()), (&[1][..], 9), "seven tries, data and ACK");
        let wait = frames[7].at - end(&frames[6]);
        assert!(wait <= ACK_TIMEOUT + LONGEST_BACKOFF, "{wait} with seed {seed}");
    }
}

/// At 6 Mb/s an attempt takes 2 ms: the last one is in progress after 5 ms.
#[test]
fn mpdus_older_than_their_lifetime_are_given_up() {
    let mut c = config(Standard::A, 6, 1);
    (c.lifetime, c.retry_limit) = (us(5_000), 100);
    c.stations[0].downlink_loss = scripted(0..100);
    let mut h = Harness::new(c, 1);
    h.send(at(1_000), AP, ONE, 1);
    let frames = h.frames();
    assert_eq!(h.bss.counters(AP).mpdus_dropped, 1);
    let (last, before) = frames.split_last().unwrap();
    assert!(end(last) + ACK_TIMEOUT > at(6_000));
    assert!(before.iter().all(|frame| end(frame) + ACK_TIMEOUT <= at(6_000)), "{}", frames.len());
}

/// The limit applies to consecutive requests: requests for an earlier Block Ack do not count for a later one.
#[test]
fn an_answered_request_lets_the_next_be_tried_as_often() {
    let mut c = config(Standard::N, 150, 1);
    c.retry_limit = 2;
    // Twice, a Block Ack and the responses to two requests are lost.
    c.stations[0].link_ack_loss = scripted([0, 1, 2, 4, 5, 6]);
    let mut h = Harness::new(c, 1);
    h.send(at(1_000), AP, ONE, 3);
    h.send(at(50_000), AP, ONE, 3);
    h.frames();
    let counters = h.bss.counters(AP);
    assert_eq!((counters.block_ack_requests, counters.mpdus_dropped), (6, 0));
    assert_eq!(h.delivered, [0, 1, 2, 3, 4, 5]);
}

/// RTS collisions of earlier packets do not count for later packets either: two clients that always have data lose
/// frequent RTS, but none reaches the retry limit.
#[test]
fn an_answered_rts_lets_the_next_be_tried_as_often() {
    let mut c = config(Standard::A, 54, 2);
    (c.protection, c.short_retry_limit) = (Protection::RtsCts { above: 0 }, 7);
    let mut h = Harness::new(c, 1);
    h.send(at(1_000), ONE, AP, 400);
    h.send(at(1_000), TWO, AP, 400);
    h.frames();
    let counters = h.bss.counters(ONE);
    assert!(counters.missed_cts > 20, "{}", counters.missed_cts);
    assert_eq!((counters.mpdus_dropped, h.delivered.len()), (0, 800));
}

/// MPDUs given up after RTS without CTS already have sequence numbers. A request tells the recipient to continue
/// without them; otherwise it would hold back those that follow.
#[test]
fn after_unanswered_rts_a_request_moves_the_recipients_window() {
    let mut c = config(Standard::N, 150, 1);
    (c.protection, c.short_retry_limit) = (Protection::RtsCts { above: 0 }, 2);
    c.stations[0].away = Some((at(0), at(2_000)));
    let mut h = Harness::new(c, 1);
    h.send(at(1_000), AP, ONE, 2);
    h.send(at(10_000), AP, ONE, 3);
    let frames = h.frames();
    assert_eq!(h.bss.counters(AP).mpdus_dropped, 2);
    assert_eq!(h.delivered, [2, 3, 4]);
    let start = frames.iter().find_map(|frame| match frame.frame {
        Frame::BlockAckReq { start } => Some(start),
        _ => None,
    });
    assert_eq!(start, Some(2));
}

/// The SYNC bit of each data PPDU, once per A-MPDU.
fn syncs(frames: &[AirFrame<TestPacket>]) -> Vec<bool> {
    let mut last = None;
    let of = |frame: &AirFrame<TestPacket>| match frame.frame {
        Frame::Data { sync, .. } if last.replace(frame.at) != Some(frame.at) => Some(sync),
        _ => None,
    };
    frames.iter().filter_map(of).collect()
}

/// TCP/HACK's SYNC bit (paper figure 8): an MPDU after an acknowledgment that was given up, or one retransmitted
/// because an ACK was missing, does not prove that the acknowledgment arrived. An MPDU after an acknowledgment that
/// arrived does prove it.
#[test]
fn sync_tells_that_the_transmitter_goes_on_without_an_acknowledgment() {
    let mut c = config(Standard::N, 150, 1);
    c.retry_limit = 2;
    // No request after the first PPDU is answered.
    c.stations[0].link_ack_loss = scripted(0..4);
    let mut h = Harness::new(c, 1);
    for millis in [1_000, 20_000, 40_000] {
        h.send(at(millis), AP, ONE, 3);
    }
    assert_eq!(syncs(&h.frames()), [false, true, false]);

    let mut c = config(Standard::N, 150, 1);
    c.stations[0].downlink_loss = scripted([0]);
    let mut h = Harness::new(c, 1);
    for millis in [1_000, 20_000] {
        h.send(at(millis), AP, ONE, 1);
    }
    assert_eq!(syncs(&h.frames()), [false, true, false]);
}

/// A station that received two overlapping frames does not know that no ACK follows, so it waits EIFS: SIFS and an ACK
/// at the lowest rate before DIFS (802.11-2020 clause 10.3.7).
#[test]
fn a_bystander_waits_for_eifs_after_a_collision() {
    for seed in 1..=40 {
        let mut h = Harness::new(config(Standard::A, 54, 3), seed);
        h.send(at(1_000), ONE, AP, 1);
        h.send(at(1_000), TWO, AP, 1);
        h.send(at(1_100), THREE, AP, 1);
        let frames = h.frames();
        assert_eq!((frames[0].outcome, frames[1].outcome), (Outcome::Collided, Outcome::Collided));
        let bystander = frames.iter().find(|frame| frame.transmitter == THREE).unwrap();
        let wait = bystander.at - end(&frames[0]);
        assert!(wait >= SIFS + CTS_AT_6 + DIFS, "{wait} with seed {seed}");
    }
}

/// An RTS to a client out of range, while another client gets packets to send. Returns the frames of the channel for
/// this seed, with `hidden` stations among those without packets.
fn unanswered_rts(
    seed: u64,
    away: (Instant, Instant),
    hidden: &[(StationId, StationId)],
) -> Vec<AirFrame<TestPacket>> {
    let mut c = config(Standard::A, 6, 4);
    (c.protection, c.hidden) = (Protection::RtsCts { above: 0 }, hidden.to_vec());
    c.stations[0].away = Some(away);
    let mut h = Harness::new(c, seed);
    h.send(at(1_000), AP, ONE, 1);
    h.send(at(1_010), TWO, AP, 1);
    let frames = h.frames();
    assert!(matches!(frames[0].frame, Frame::Rts) && frames[0].transmitter == AP);
    frames
}

/// The exchange would have lasted 2 ms. Bystanders that hear no frame after the RTS reset their NAV after two SIFS, a
/// CTS, the time to detect a PPDU and two slots (802.11-2020 clause 10.3.2.4). The sender waits for the CTS timeout.
#[test]
fn an_unanswered_rts_keeps_others_off_no_longer_than_a_cts_would_take() {
    let reset = SIFS * 2 + CTS_AT_6 + us(20) + SLOT * 2;
    for hidden in [vec![], vec![(THREE, StationId(4))]] {
        let mut bystanders = 0;
        for seed in 1..=200 {
            let frames = unanswered_rts(seed, (at(0), at(100_000)), &hidden);
            let wait = frames[1].at - end(&frames[0]);
            if frames[1].transmitter == TWO {
                bystanders += 1;
                let allowed = reset + DIFS..=reset + DIFS + LONGEST_BACKOFF;
                assert!(allowed.contains(&wait), "{wait} with seed {seed}");
            } else {
                assert!(wait >= ACK_TIMEOUT, "{wait} with seed {seed}");
            }
        }
        assert!(bystanders > 20, "{bystanders} with {hidden:?} hidden");
    }
}

/// No ACK follows, so the medium is idle while the NAV is set. A packet that comes then waits for the NAV, DIFS and a
/// backoff, as behind a frame.
#[test]
fn a_packet_that_comes_during_a_nav_draws_a_backoff() {
    for hidden in [vec![], vec![(THREE, StationId(4))]] {
        let frames = |seed, second: Option<Instant>| {
            let mut c = BssConfig { hidden: hidden.clone(), ..config(Standard::A, 6, 4) };
            c.stations[0].away = Some((at(0), at(100_000)));
            let mut h = Harness::new(c, seed);
            h.send(at(1_000), AP, ONE, 1);
            second.into_iter().for_each(|at| h.send(at, TWO, AP, 1));
            h.frames()
        };
        let nav_begins = end(&frames(1, None)[0]);
        let waits = (1..=50).filter_map(|seed| {
            let frames = frames(seed, Some(nav_begins + us(20)));
            (frames[1].transmitter == TWO).then(|| frames[1].at - end(&frames[0]) - frames[0].reserves)
        });
        let waits: Vec<Duration> = waits.collect();
        let backoffs = waits.iter().filter(|wait| **wait > DIFS).count();
        assert!(waits.iter().all(|wait| *wait >= DIFS), "{waits:?} with {hidden:?} hidden");
        assert!(backoffs > 5, "{waits:?} with {hidden:?} hidden");
    }
}

/// Only the sender of the RTS misses the CTS. The other stations received it and defer for the time that it reserves.
#[test]
fn a_cts_reserves_even_if_no_data_follows() {
    let mut bystanders = 0;
    for seed in 1..=20 {
        let frames = unanswered_rts(seed, (at(1_001), at(1_100)), &[]);
        let cts = &frames[1];
        assert!(matches!(cts.frame, Frame::Cts) && cts.outcome == Outcome::Errored);
        if let Some(bystander) = frames[2..].iter().find(|frame| frame.transmitter == TWO) {
            bystanders += 1;
            assert!(bystander.at >= end(cts) + cts.reserves + DIFS, "with seed {seed}");
        }
    }
    assert!(bystanders > 5, "{bystanders}");
}

/// Packets and bytes are counted where they arrive, never twice, even with losses, retransmissions and gaps.
#[test]
fn each_arrival_is_counted_and_passed_up_once() {
    let share = |percent: f64| Loss::Bernoulli(Ratio::from_fraction(percent / 100.0).unwrap());
    let amsdu = Some(AmsduLimit::Bytes7935);
    for (standard, mbps, amsdu) in
        [(Standard::A, 54, None), (Standard::N, 150, None), (Standard::N, 150, amsdu)]
    {
        for (data, link_acks) in [(0.0, 0.0), (20.0, 0.0), (0.0, 20.0), (30.0, 30.0), (0.0, 100.0)] {
            let mut config = BssConfig { amsdu, ..config(standard, mbps, 2) };
            for client in &mut config.stations {
                (client.downlink_loss, client.link_ack_loss) = (share(data), share(link_acks));
            }
            let mut bss = channel(config, 1, "counts", Duration::from_secs(10));
            let (ap, clients) = (AP.first_function(), [ONE, TWO].map(StationId::first_function));
            let (mut packets, mut bytes) = (0, 0);
            for number in 0..600_u32 {
                bss.enqueue(
                    Instant::ZERO,
                    ap,
                    clients[number as usize % 2],
                    TestPacket::of_len(number, 40 + u64::from(number) * 37 % 1_460),
                );
            }
            while let Some(now) = bss.poll_timeout() {
                bss.handle_timeout(now);
                while let Some(delivery) = bss.poll_deliver() {
                    packets += 1;
                    bytes += delivery.payload.bytes;
                }
            }
            let counters = bss.counters(AP);
            assert_eq!(
                (counters.arrived, counters.arrived_bytes),
                (packets, bytes),
                "{standard:?}, {data} and {link_acks} %"
            );
            assert!(packets > 10, "{standard:?}, {data} and {link_acks} %: {packets}");
        }
    }
}
