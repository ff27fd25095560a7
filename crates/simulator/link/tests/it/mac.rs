//! A channel frame by frame: each test is a script of losses and the resulting frames.

use crate::common::{Channel, Delivery, TestPacket, channel};
use tacit_link::loss::Loss;
use tacit_link::queue::QueueLimit;
use tacit_link::wifi::air::{AirFrame, Frame, Outcome};
use tacit_link::wifi::phy::{Band, Format, GuardInterval, Mode, ModeChoice, Standard, Variant};
use tacit_link::wifi::{
    AirtimeUse, AmsduLimit, BssConfig, Decibels, Protection, RateControl, StationConfig, StationId,
};
use tacit_packet::units::{BitRate, Duration, Instant};

const AP: StationId = StationId::AP;
const CLIENT: StationId = StationId(1);

fn config(standard: Standard, mbps: u64) -> BssConfig {
    let client = StationConfig::new(Mode::for_rate(standard, BitRate::from_mbps(mbps)).unwrap());
    BssConfig { beacon_interval: None, ..BssConfig::new(standard, vec![client]) }
}

struct Harness {
    bss: Channel,
    now: Instant,
    frames: Vec<AirFrame<TestPacket>>,
    delivered: Vec<u32>,
    delivered_at: Instant,
}

impl Harness {
    fn new(config: BssConfig) -> Self {
        let mut bss = channel(config, 1, "test", Duration::from_secs(10));
        bss.record_air();
        Self {
            bss,
            now: Instant::ZERO,
            frames: Vec::new(),
            delivered: Vec::new(),
            delivered_at: Instant::ZERO,
        }
    }

    /// Queues `count` packets for the client at the access point, with consecutive numbers.
    fn send(&mut self, count: u32) {
        let first = self.bss.counters(AP).accepted as u32;
        for number in first..first + count {
            assert!(self.bss.enqueue(
                self.now,
                AP.first_function(),
                CLIENT.first_function(),
                TestPacket::full(number)
            ));
        }
    }

    /// Runs until no event is left, and checks the accounts.
    fn run(&mut self) {
        while let Some(at) = self.bss.poll_timeout() {
            assert!(at >= self.now, "time runs forward");
            self.now = at;
            self.bss.handle_timeout(at);
            while let Some(Delivery { payload: TestPacket { number, .. }, .. }) = self.bss.poll_deliver() {
                self.delivered.push(number);
                self.delivered_at = at;
            }
            while let Some(frame) = self.bss.poll_air() {
                self.frames.push(frame);
            }
        }
        self.bss.check().unwrap();
        assert_eq!(self.bss.airtime(self.now).total(), self.now - Instant::ZERO);
        let in_order = self.frames.windows(2).all(|pair| pair[0].at <= pair[1].at);
        assert!(in_order, "frames come in the order of transmission");
        let alone: Vec<_> = self.frames.iter().filter(|frame| frame.outcome != Outcome::Collided).collect();
        let overlap = alone
            .windows(2)
            .any(|pair| pair[0].at != pair[1].at && pair[0].at + pair[0].duration > pair[1].at);
        assert!(!overlap, "the medium is never double-booked");
    }

    /// The exchanges in short form: `D3!` is data of three MPDUs that did not arrive, `D3` data of three, `A` ACK,
    /// `B` Block Ack, `R` Block Ack Request, `rts` and `cts`; `x` follows a lost or collided response.
    fn story(&self) -> String {
        let mut story = Vec::new();
        let mut frames = self.frames.iter().peekable();
        while let Some(frame) = frames.next() {
            let lost = if frame.outcome == Outcome::Received { "" } else { "x" };
            story.push(match &frame.frame {
                Frame::Data { .. } => {
                    let mut mpdus = vec![frame];
                    while let Some(next) = frames.next_if(|next| next.at == frame.at) {
                        mpdus.push(next);
                    }
                    let heard = mpdus.iter().any(|mpdu| mpdu.outcome == Outcome::Received);
                    format!("D{}{}", mpdus.len(), if heard { "" } else { "!" })
                }
                Frame::Ack { .. } => format!("A{lost}"),
                Frame::BlockAck { .. } => format!("B{lost}"),
                Frame::BlockAckReq { .. } => format!("R{lost}"),
                Frame::Rts => format!("rts{lost}"),
                Frame::Cts => format!("cts{lost}"),
                Frame::CfEnd => "end".into(),
                Frame::Beacon => "beacon".into(),
                Frame::Trigger(_) => "trigger".into(),
                Frame::MultiStaBlockAck(_) => "multi-STA block ack".into(),
                Frame::QosNull { .. } | Frame::TriggeredResponse(_) => "null".into(),
                Frame::ActionNoAck { .. } => "action".into(),
            });
        }
        story.join(" ")
    }

    fn all_delivered(&self, count: u32) -> bool {
        self.delivered == (0..count).collect::<Vec<_>>()
    }
}

fn scripted(losses: impl IntoIterator<Item = u64>) -> Loss {
    Loss::Scripted(losses.into_iter().collect())
}

/// Packets of a saturated download that arrive within `span` at `snr_db`.
fn delivered_at(snr_db: i32, mbps: u64, rate_control: RateControl, span: Duration) -> usize {
    let mut c = config(Standard::N, mbps);
    c.rate_control = rate_control;
    c.stations[0].snr = Some(Decibels::from_millis(snr_db * 1_000));
    let mut h = Harness::new(c);
    let settle = Duration::from_secs(1);
    let mut arrived = 0;
    while h.now < Instant::ZERO + settle + span {
        while h.bss.queued(AP.first_function(), CLIENT.first_function()) < 128 {
            h.bss.enqueue(h.now, AP.first_function(), CLIENT.first_function(), TestPacket::full(0));
        }
        h.now = h.bss.poll_timeout().unwrap();
        h.bss.handle_timeout(h.now);
        while h.bss.poll_deliver().is_some() {
            arrived += usize::from(h.now > Instant::ZERO + settle);
        }
        while h.bss.poll_drained().is_some() || h.bss.poll_air().is_some() {}
    }
    arrived
}

#[test]
fn minstrel_finds_the_rate_that_carries_most() {
    for snr_db in [8, 16, 24, 32] {
        let span = Duration::from_secs(2);
        let fixed = |mbps| delivered_at(snr_db, mbps, RateControl::Fixed, span);
        let best = [15, 30, 45, 60, 90, 120, 135, 150].map(fixed).into_iter().max().unwrap();
        let found = delivered_at(snr_db, 150, RateControl::Minstrel, span);
        println!("{snr_db} dB: {found} packets, {best} at the best fixed rate");
        assert!(found as f64 > 0.9 * best as f64, "{snr_db} dB: {found} of {best}");
    }
}

#[test]
fn one_frame_takes_the_standards_time() {
    let mut h = Harness::new(config(Standard::A, 54));
    h.now = Instant::ZERO + Duration::from_millis(1);
    h.send(1);
    h.run();
    assert_eq!(h.story(), "D1 A");
    // The channel has been idle for long: no backoff and no wait. 1536 bytes at 54 Mb/s take 248 us, SIFS 16, ACK 28.
    assert_eq!(h.frames[0].at, Instant::ZERO + Duration::from_millis(1));
    assert_eq!(h.frames[1].at - h.frames[0].at, Duration::from_micros(248 + 16));
    assert_eq!(h.frames[1].duration, Duration::from_micros(28));
}

/// One MPDU of 1538 bytes at 65 Mb/s of 802.11n at 2.4 GHz: 36 us of preamble, 48 symbols of 4 us, 6 us of signal
/// extension; SIFS 10; an ERP-OFDM ACK at 24 Mb/s, 28 us plus 6.
#[test]
fn an_exchange_at_2_4_ghz_takes_the_times_of_erp() {
    let variant = Variant { band: Band::Ghz2_4, ..Variant::for_standard(Standard::N) };
    let choice = ModeChoice { mcs: Some(7), streams: Some(1), width_mhz: Some(20), ..ModeChoice::default() };
    let choice = ModeChoice { guard_interval: Some(GuardInterval::Ns800), ..choice };
    let mut c = config(Standard::N, 65);
    c.variant = variant;
    c.stations[0].mode = Mode::choose(Standard::N, variant, choice).unwrap();
    let mut h = Harness::new(c);
    h.now = Instant::ZERO + Duration::from_millis(1);
    h.send(1);
    h.run();
    assert_eq!(h.story(), "D1 A");
    assert_eq!(h.frames[0].duration, Duration::from_micros(36 + 48 * 4 + 6));
    assert_eq!(h.frames[1].at - h.frames[0].at, Duration::from_micros(36 + 48 * 4 + 6 + 10));
    assert_eq!(h.frames[1].duration, Duration::from_micros(28 + 6));
}

#[test]
fn a_lost_frame_is_sent_again_with_the_same_number() {
    let mut c = config(Standard::A, 54);
    c.stations[0].downlink_loss = scripted([0, 1]);
    let mut h = Harness::new(c);
    h.send(2);
    h.run();
    assert_eq!(h.story(), "D1! D1! D1 A D1 A");
    assert!(h.all_delivered(2));
    let counters = h.bss.counters(AP);
    assert_eq!((counters.delivered_first_try, counters.delivered_after_retry, counters.retries), (1, 1, 2));
    assert_eq!(counters.missed_link_acks, 2);
}

#[test]
fn a_lost_ack_makes_a_duplicate_that_is_not_passed_up() {
    let mut c = config(Standard::A, 54);
    c.stations[0].link_ack_loss = scripted([0]);
    let mut h = Harness::new(c);
    h.send(2);
    h.run();
    assert_eq!(h.story(), "D1 Ax D1 A D1 A");
    assert!(h.all_delivered(2));
}

#[test]
fn the_retry_limit_gives_a_frame_up() {
    let mut c = config(Standard::A, 54);
    c.retry_limit = 3;
    c.stations[0].downlink_loss = scripted(0..4);
    let mut h = Harness::new(c);
    h.send(2);
    h.run();
    assert_eq!(h.story(), "D1! D1! D1! D1! D1 A");
    assert_eq!(h.delivered, [1]);
    assert_eq!(h.bss.counters(AP).mpdus_dropped, 1);
}

#[test]
fn packets_are_aggregated_and_only_lost_ones_sent_again() {
    let mut c = config(Standard::N, 150);
    c.stations[0].downlink_loss = scripted([0, 3]);
    let mut h = Harness::new(c);
    h.send(10);
    h.run();
    assert_eq!(h.story(), "D10 B D2 B");
    assert!(h.all_delivered(10), "{:?}", h.delivered);
    let counters = h.bss.counters(AP);
    assert_eq!((counters.delivered_first_try, counters.delivered_after_retry), (8, 2));
}

#[test]
fn a_full_batch_is_forty_two_and_the_window_sixty_four() {
    let mut c = config(Standard::N, 150);
    c.stations[0].downlink_loss = scripted([0, 42]);
    let mut h = Harness::new(c);
    h.send(100);
    h.run();
    // The first MPDU is lost twice. The second batch holds it and the remaining 22 of the window of 64. Then it is sent
    // alone, because no new MPDU fits until it has arrived.
    assert_eq!(h.story(), "D42 B D23 B D1 A D36 B");
    assert!(h.all_delivered(100));
    let first = &h.frames[0].frame;
    assert!(matches!(first, Frame::Data { more_data: true, .. }));
    let last = h.frames.iter().rev().find_map(|f| match f.frame {
        Frame::Data { more_data, .. } => Some((more_data, f.ampdu.unwrap().last)),
        _ => None,
    });
    assert_eq!(last, Some((false, true)));
}

#[test]
fn a_missing_block_ack_is_asked_for() {
    let mut c = config(Standard::N, 150);
    c.stations[0].link_ack_loss = scripted([0]);
    let mut h = Harness::new(c);
    h.send(5);
    h.run();
    assert_eq!(h.story(), "D5 Bx R B");
    assert!(h.all_delivered(5));
    assert_eq!(h.bss.counters(AP).delivered_first_try, 5);
    assert_eq!(h.bss.counters(AP).block_ack_requests, 1);
}

#[test]
fn when_nothing_arrived_the_request_says_so() {
    let mut c = config(Standard::N, 150);
    c.stations[0].downlink_loss = scripted(0..5);
    let mut h = Harness::new(c);
    h.send(5);
    h.run();
    assert_eq!(h.story(), "D5! R B D5 B");
    assert!(h.all_delivered(5));
    assert_eq!(h.bss.counters(AP).delivered_after_retry, 5);
}

#[test]
fn after_the_last_request_the_window_moves_on() {
    let mut c = config(Standard::N, 150);
    c.retry_limit = 2;
    c.stations[0].link_ack_loss = scripted(0..4);
    let mut h = Harness::new(c);
    h.send(5);
    h.run();
    assert_eq!(h.story(), "D5 Bx R Bx R Bx R Bx");
    h.send(3);
    h.run();
    assert!(h.story().ends_with("D3 B"), "{}", h.story());
    assert!(h.all_delivered(8), "they had arrived; only the acknowledgment had not");
    assert_eq!(h.bss.counters(AP).mpdus_dropped, 5);
}

#[test]
fn a_given_up_frame_does_not_hold_the_others_back() {
    let mut c = config(Standard::N, 150);
    c.retry_limit = 1;
    // The first of ten is lost, and lost again when sent alone.
    c.stations[0].downlink_loss = scripted([0, 10]);
    let mut h = Harness::new(c);
    h.send(10);
    h.run();
    assert_eq!(h.story(), "D10 B D1! R B");
    assert_eq!(h.delivered, (1..10).collect::<Vec<_>>());
    assert!(
        h.delivered_at < Instant::ZERO + Duration::from_millis(10),
        "a request, not the timeout, released them"
    );
}

#[test]
fn packets_that_waited_too_long_are_dropped() {
    let mut c = config(Standard::N, 15);
    c.lifetime = Duration::from_millis(20);
    c.ampdu_mpdus = Some(4);
    let mut h = Harness::new(c);
    h.send(100);
    h.run();
    let counters = h.bss.counters(AP);
    assert!(counters.mpdus_dropped > 0);
    assert_eq!(counters.mpdus_dropped + h.delivered.len() as u64, 100);
    assert!(h.now < Instant::ZERO + Duration::from_millis(40));
}

#[test]
fn the_queue_limit_drops_at_the_door() {
    let mut c = config(Standard::N, 150);
    c.stations[0].downlink_queue = QueueLimit { packets: Some(3), bytes: None }.into();
    let mut h = Harness::new(c);
    h.send(3);
    assert!(!h.bss.enqueue(h.now, AP.first_function(), CLIENT.first_function(), TestPacket::full(3)));
    h.run();
    assert!(h.all_delivered(3));
    assert_eq!(h.bss.counters(AP).queue_drops, 1);
}

#[test]
fn beacons_keep_their_schedule() {
    let mut c = config(Standard::A, 54);
    c.beacon_interval = Some(Duration::from_micros(102_400));
    let mut h = Harness::new(c);
    let end = Instant::ZERO + Duration::from_secs(10);
    while let Some(at) = h.bss.poll_timeout().filter(|at| *at < end) {
        h.bss.handle_timeout(at);
    }
    let beacons = std::iter::from_fn(|| h.bss.poll_air()).count();
    assert_eq!(beacons, 97);
    // wifi.md: about 0.2 % of the time.
    let share = h.bss.airtime(end).get(AirtimeUse::Beacon).as_secs_f64() / 10.0;
    assert!((0.001..0.003).contains(&share), "{share}");
}

#[test]
fn stations_that_start_together_collide_and_recover() {
    let mut c = config(Standard::A, 54);
    c.stations.push(c.stations[0].clone());
    let mut h = Harness::new(c);
    h.now = Instant::ZERO + Duration::from_millis(1);
    assert!(h.bss.enqueue(h.now, CLIENT.first_function(), AP.first_function(), TestPacket::full(1)));
    assert!(h.bss.enqueue(h.now, StationId(2).first_function(), AP.first_function(), TestPacket::full(2)));
    h.run();
    assert_eq!(h.bss.collisions(), 1);
    assert!(h.story().starts_with("D2! "), "two PPDUs at once: {}", h.story());
    h.delivered.sort_unstable();
    assert_eq!(h.delivered, [1, 2]);
    assert_eq!(h.bss.airtime(h.now).get(AirtimeUse::Collision), Duration::from_micros(248));
}

#[test]
fn idle_stations_cost_no_events() {
    let accesses = |stations: usize| {
        let mut c = config(Standard::N, 150);
        c.stations = vec![c.stations[0].clone(); stations];
        let mut h = Harness::new(c);
        h.send(1_000);
        h.run();
        (h.bss.accesses(), h.now)
    };
    assert_eq!(accesses(1), accesses(500));
}

proptest::proptest! {
    /// Under any losses, packets are passed up in order and without duplicates; with enough retries, none is missing.
    #[test]
    fn every_packet_arrives_once_and_in_order(
        data in proptest::collection::btree_set(0_u64..200, 0..60),
        acks in proptest::collection::btree_set(0_u64..30, 0..10),
        count in 1_u32..150,
        standard in proptest::sample::select(vec![(Standard::A, 54), (Standard::N, 150)]),
    ) {
        let mut c = config(standard.0, standard.1);
        c.retry_limit = 100;
        c.stations[0].downlink_loss = scripted(data);
        c.stations[0].link_ack_loss = scripted(acks);
        let mut h = Harness::new(c);
        h.send(count);
        h.run();
        proptest::prop_assert!(h.all_delivered(count), "{:?} after {}", h.delivered, h.story());
    }
}

/// Two overlapping PPDUs: a long one from the access point to client `to` of two, and a short one from client 1.
fn collide_long_with_short(capture: bool, to: StationId) -> Harness {
    let mut c = config(Standard::N, 150);
    c.capture = capture;
    c.stations.push(c.stations[0].clone());
    let mut h = Harness::new(c);
    h.now = Instant::ZERO + Duration::from_millis(1);
    for number in 0..10 {
        assert!(h.bss.enqueue(h.now, AP.first_function(), to.first_function(), TestPacket::full(number)));
    }
    assert!(h.bss.enqueue(h.now, CLIENT.first_function(), AP.first_function(), TestPacket::full(100)));
    h.run();
    h
}

#[test]
fn without_capture_a_collision_takes_everything() {
    let h = collide_long_with_short(false, StationId(2));
    assert!(h.story().contains("R B D10 B"), "{}", h.story());
}

#[test]
fn a_transmitting_station_captures_nothing() {
    let h = collide_long_with_short(true, CLIENT);
    assert!(h.story().contains("R B D10 B"), "{}", h.story());
}

#[test]
fn with_capture_the_tail_of_the_longer_ppdu_survives() {
    let h = collide_long_with_short(true, StationId(2));
    // The short PPDU covers the first MPDUs; the addressee acknowledges the others.
    assert!(h.story().starts_with("D11 B"), "{}", h.story());
    let retries = h.bss.counters(AP).retries;
    assert!((1..10).contains(&retries), "{retries} of 10 had to be sent again");
    let mut downlink: Vec<_> = h.delivered.iter().filter(|number| **number < 100).copied().collect();
    downlink.sort_unstable();
    assert_eq!(downlink, (0..10).collect::<Vec<_>>());
}

/// The access point sends `count` packets to one client at `mbps` with `protection`, after 1 ms without traffic.
fn protected(standard: Standard, mbps: u64, protection: Protection, count: u32) -> Harness {
    let mut h = Harness::new(BssConfig { protection, ..config(standard, mbps) });
    h.now = Instant::ZERO + Duration::from_millis(1);
    h.send(count);
    h.run();
    h
}

#[test]
fn an_rts_asks_and_a_cts_allows() {
    let h = protected(Standard::A, 54, Protection::RtsCts { above: 0 }, 1);
    assert_eq!(h.story(), "rts cts D1 A");
    let us = |duration: Duration| duration.as_micros();
    // At 24 Mb/s, 20 bytes take 28 us and 14 bytes 28 us; SIFS 16, data 248, ACK 28.
    let at: Vec<u64> = h.frames.iter().map(|frame| us(frame.at - h.frames[0].at)).collect();
    assert_eq!(at, [0, 28 + 16, 2 * (28 + 16), 2 * (28 + 16) + 248 + 16]);
    // Each Duration field reserves until the end of the ACK.
    let ends: Vec<u64> =
        h.frames.iter().zip(&at).map(|(frame, at)| at + us(frame.duration) + us(frame.reserves)).collect();
    assert_eq!(ends, [at[3] + 28; 4]);
    let airtime = h.bss.airtime(h.now);
    assert_eq!(us(airtime.get(AirtimeUse::Protection)), 2 * (28 + 16));
    assert_eq!(h.bss.station_airtime(AP).get(AirtimeUse::Protection), airtime.get(AirtimeUse::Protection));
    assert_eq!(h.bss.counters(AP).rts, 1);
    assert_eq!((h.frames[1].transmitter, h.frames[1].receiver), (CLIENT, Some(AP)));
}

#[test]
fn the_threshold_decides_by_the_bytes_of_the_ppdu() {
    // A single MPDU has 1538 bytes.
    let h = protected(Standard::N, 150, Protection::RtsCts { above: 1_538 }, 1);
    assert_eq!(h.story(), "D1 A");
    let h = protected(Standard::N, 150, Protection::RtsCts { above: 1_537 }, 1);
    assert_eq!(h.story(), "rts cts D1 A");
    let h = protected(Standard::N, 150, Protection::RtsCts { above: 10_000 }, 45);
    assert_eq!(h.story(), "rts cts D42 B D3 B");
}

#[test]
fn a_cts_to_self_is_at_a_rate_that_802_11b_understands() {
    use tacit_link::wifi::phy::BasicRates;
    let mut c = config(Standard::G, 54);
    c.variant = Variant { basic_rates: BasicRates::Dsss, ..Variant::for_standard(Standard::G) };
    c.protection = Protection::CtsToSelf { above: 0 };
    let mut h = Harness::new(c);
    h.now = Instant::ZERO + Duration::from_millis(1);
    h.send(1);
    h.run();
    assert_eq!(h.story(), "cts D1 A");
    let [cts, data, ack] = &h.frames[..] else { panic!("three frames") };
    assert_eq!((cts.mode.format, cts.mode.rate()), (Format::Dsss, BitRate::from_mbps(11)));
    assert_eq!((cts.transmitter, cts.receiver), (AP, Some(AP)));
    // 14 bytes at 11 Mb/s take 192 + 11 us, SIFS 10; data 20 + 228 + 6, SIFS, ACK 34.
    assert_eq!((data.at - cts.at).as_micros(), 203 + 10);
    assert_eq!((ack.at - data.at).as_micros(), 254 + 10);
    assert_eq!(cts.reserves.as_micros(), 10 + 254 + 10 + 34);
    assert_eq!(h.bss.counters(AP).cts_to_self, 1);
    // PPDUs that 802.11b can decode need no protection.
    let h = protected(Standard::G, 11, Protection::CtsToSelf { above: 0 }, 1);
    assert_eq!(h.story(), "D1 A");
}

#[test]
fn colliding_rts_cost_no_more_than_themselves() {
    let mut c = config(Standard::N, 150);
    c.protection = Protection::RtsCts { above: 0 };
    c.stations.push(c.stations[0].clone());
    let mut h = Harness::new(c);
    h.now = Instant::ZERO + Duration::from_millis(1);
    for number in 0..10 {
        assert!(h.bss.enqueue(
            h.now,
            AP.first_function(),
            StationId(2).first_function(),
            TestPacket::full(number)
        ));
    }
    assert!(h.bss.enqueue(h.now, CLIENT.first_function(), AP.first_function(), TestPacket::full(100)));
    h.run();
    assert!(h.story().starts_with("rtsx rtsx rts cts D"), "{}", h.story());
    assert_eq!(h.bss.airtime(h.now).get(AirtimeUse::Collision), Duration::from_micros(28));
    // No data was sent, so no MPDU counts as attempted.
    let counters = h.bss.counters(AP);
    assert_eq!((counters.missed_cts, counters.retries, counters.data_mpdus), (1, 0, 10));
    assert_eq!(counters.delivered_first_try, 10);
}

#[test]
fn unanswered_rts_are_given_up_at_the_short_retry_limit() {
    let mut c = config(Standard::A, 54);
    c.protection = Protection::RtsCts { above: 0 };
    c.short_retry_limit = 2;
    // Too much noise for any frame.
    c.stations[0].snr = Some(Decibels::from_db(-15.0));
    let mut h = Harness::new(c);
    h.send(2);
    h.run();
    assert_eq!(h.story(), "rtsx rtsx rtsx rtsx rtsx rtsx");
    let counters = h.bss.counters(AP);
    assert_eq!((counters.rts, counters.missed_cts, counters.mpdus_dropped), (6, 6, 2));
    assert_eq!((counters.data_ppdus, counters.missed_link_acks), (0, 0));
}

#[test]
fn a_cts_to_self_does_not_notice_a_collision() {
    let mut c = config(Standard::A, 54);
    c.protection = Protection::CtsToSelf { above: 0 };
    c.stations.push(c.stations[0].clone());
    let mut h = Harness::new(c);
    h.now = Instant::ZERO + Duration::from_millis(1);
    assert!(h.bss.enqueue(h.now, CLIENT.first_function(), AP.first_function(), TestPacket::full(1)));
    assert!(h.bss.enqueue(h.now, StationId(2).first_function(), AP.first_function(), TestPacket::full(2)));
    h.run();
    assert!(h.story().starts_with("ctsx ctsx D2! cts D1 A"), "{}", h.story());
    assert_eq!(h.bss.airtime(h.now).get(AirtimeUse::Collision), Duration::from_micros(28 + 16 + 248));
}

proptest::proptest! {
    /// Under any losses, protection does not change which packets arrive.
    #[test]
    fn every_packet_arrives_once_and_in_order_behind_rts(
        data in proptest::collection::btree_set(0_u64..200, 0..40),
        acks in proptest::collection::btree_set(0_u64..30, 0..10),
        count in 1_u32..150,
        above in 0_u32..20_000,
        standard in proptest::sample::select(vec![(Standard::B, 11), (Standard::G, 54), (Standard::Ac, 780)]),
    ) {
        let mut c = config(standard.0, standard.1);
        c.retry_limit = 100;
        c.protection = Protection::RtsCts { above };
        c.stations[0].downlink_loss = scripted(data);
        c.stations[0].link_ack_loss = scripted(acks);
        let mut h = Harness::new(c);
        h.send(count);
        h.run();
        proptest::prop_assert!(h.all_delivered(count), "{:?} after {}", h.delivered, h.story());
    }
}

/// Number of packets in each MPDU on the air, in order.
fn msdus(h: &Harness) -> Vec<usize> {
    let packets = |frame: &AirFrame<TestPacket>| match &frame.frame {
        Frame::Data { rest, .. } => Some(1 + rest.len()),
        _ => None,
    };
    h.frames.iter().filter_map(packets).collect()
}

#[test]
fn packets_share_an_mpdu_up_to_the_limit() {
    let with = |standard, mbps, amsdu, ampdu_mpdus, count| {
        let mut c = config(standard, mbps);
        (c.amsdu, c.ampdu_mpdus) = (Some(amsdu), ampdu_mpdus);
        let mut h = Harness::new(c);
        h.send(count);
        h.run();
        assert!(h.all_delivered(count), "{:?}", h.delivered);
        (msdus(&h), h)
    };
    // Subframes of 14 + 8 + 1500 bytes, padded to 1524: two are 3046 bytes, five 7618.
    assert_eq!(with(Standard::N, 150, AmsduLimit::Bytes3839, None, 5).0, [2, 2, 1]);
    assert_eq!(with(Standard::N, 150, AmsduLimit::Bytes7935, Some(1), 7).0, [5, 2]);
    // In an A-MPDU of HT, MPDUs are limited to 4095 bytes; VHT allows 7991.
    assert_eq!(with(Standard::N, 150, AmsduLimit::Bytes7935, None, 5).0, [2, 2, 1]);
    assert_eq!(with(Standard::Ac, 390, AmsduLimit::Bytes7935, None, 12).0, [5, 5, 2]);
    // 26 + 3046 + 4 bytes, with a delimiter before them in VHT.
    let (_, h) = with(Standard::N, 150, AmsduLimit::Bytes3839, None, 2);
    assert_eq!(h.frames[0].duration, h.frames[0].mode.ppdu_duration(3_076));
    let (_, h) = with(Standard::Ac, 390, AmsduLimit::Bytes3839, None, 2);
    assert_eq!(h.frames[0].duration, h.frames[0].mode.ppdu_duration(4 + 3_076));
    // An A-MPDU of 65,535 bytes holds 21 subframes of 3080 bytes, plus one or two packets if they fit.
    let (sizes, h) = with(Standard::N, 150, AmsduLimit::Bytes3839, None, 100);
    assert_eq!(sizes[..21], [2; 21]);
    assert!(h.story().starts_with("D21 B"), "{}", h.story());
}

#[test]
fn one_lost_mpdu_loses_all_of_its_packets_and_nothing_else() {
    let mut c = config(Standard::N, 150);
    c.amsdu = Some(AmsduLimit::Bytes3839);
    // Of the MPDUs with packets 0 and 1, 2 and 3, 4 and 5, the second is lost.
    c.stations[0].downlink_loss = scripted([1]);
    let mut h = Harness::new(c);
    h.send(6);
    h.run();
    assert_eq!(h.story(), "D3 B D1 A");
    assert_eq!(msdus(&h), [2, 2, 2, 2]);
    assert!(h.all_delivered(6), "{:?}", h.delivered);
    let counters = h.bss.counters(AP);
    assert_eq!((counters.delivered_first_try, counters.delivered_after_retry), (4, 2));
    assert_eq!((counters.data_mpdus, counters.retries), (4, 1));
}

#[test]
fn an_mpdu_that_is_given_up_takes_its_packets_along() {
    let mut c = config(Standard::N, 150);
    (c.amsdu, c.retry_limit) = (Some(AmsduLimit::Bytes3839), 0);
    c.stations[0].downlink_loss = scripted([1]);
    let mut h = Harness::new(c);
    h.send(6);
    h.run();
    assert_eq!(h.delivered, [0, 1, 4, 5]);
    assert_eq!(h.bss.counters(AP).mpdus_dropped, 2);
}

proptest::proptest! {
    /// For any assignment of packets to MPDUs and any losses, each packet arrives once and in order.
    #[test]
    fn every_packet_arrives_once_and_in_order_in_amsdus(
        data in proptest::collection::btree_set(0_u64..100, 0..40),
        acks in proptest::collection::btree_set(0_u64..30, 0..10),
        count in 1_u32..200,
        ampdu_mpdus in proptest::option::of(1_u32..10),
        standard in proptest::sample::select(vec![(Standard::N, 150), (Standard::Ac, 390)]),
        amsdu in proptest::sample::select(vec![AmsduLimit::Bytes3839, AmsduLimit::Bytes7935]),
    ) {
        let mut c = config(standard.0, standard.1);
        c.retry_limit = 100;
        (c.amsdu, c.ampdu_mpdus) = (Some(amsdu), ampdu_mpdus);
        c.stations[0].downlink_loss = scripted(data);
        c.stations[0].link_ack_loss = scripted(acks);
        let mut h = Harness::new(c);
        h.send(count);
        h.run();
        proptest::prop_assert!(h.all_delivered(count), "{:?} after {}", h.delivered, h.story());
    }
}
