//! Stations that do not hear each other.

use crate::common;
use crate::common::{Channel, FULL, TestPacket, channel, short_queue};
use tacit_link::queue::QueueLimit;
use tacit_link::wifi::air::{AirFrame, Frame, Outcome};
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{AirtimeUse, BssConfig, Decibels, Eifs, Protection, StationConfig, StationId};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

const SPAN: Duration = Duration::from_secs(5);

/// Clients at 6 Mb/s, where a frame takes 2 ms; those in `hidden` do not hear each other.
fn config(clients: usize, hidden: &[(u16, u16)], protection: Protection) -> BssConfig {
    let mode = Mode::for_rate(Standard::A, BitRate::from_mbps(6)).unwrap();
    let station = StationConfig { uplink_queue: short_queue(), ..StationConfig::new(mode) };
    BssConfig {
        hidden: hidden.iter().map(|(a, b)| (StationId(*a), StationId(*b))).collect(),
        protection,
        beacon_interval: None,
        ..BssConfig::new(Standard::A, vec![station; clients])
    }
}

/// Packets per second that reach the access point if all clients always have some.
fn saturate(config: BssConfig) -> (f64, Channel) {
    let clients = config.stations.len() as u16;
    let mut bss = channel(config, 1, "hidden", SPAN);
    let delivered = common::saturate(&mut bss, SPAN, |bss, now| {
        for id in (1..=clients).map(StationId) {
            while bss.has_room(id.first_function(), StationId::AP.first_function(), Bytes(1500))
                && bss.enqueue(now, id.first_function(), StationId::AP.first_function(), FULL)
            {}
        }
    });
    (delivered as f64 / SPAN.as_secs_f64(), bss)
}

const RTS: Protection = Protection::RtsCts { above: 0 };

#[test]
fn the_hidden_pair_collapses_and_rts_rescues_it() {
    let (heard, _) = saturate(config(2, &[], Protection::None));
    let (hidden, bss) = saturate(config(2, &[(1, 2)], Protection::None));
    let (rescued, with_rts) = saturate(config(2, &[(1, 2)], RTS));
    println!("packets/s: {heard} in earshot, {hidden} hidden, {rescued} hidden with RTS/CTS");
    // A frame of 2 ms overlaps with most others, because backoffs are much shorter.
    assert!(hidden < 0.5 * heard);
    assert!(rescued > 0.85 * heard);
    assert!(bss.collisions() > 100);
    let counters = with_rts.counters(StationId(1));
    assert!(counters.missed_cts > 0 && counters.collided_ppdus < counters.data_ppdus / 50);
}

#[test]
fn both_media_agree_where_everybody_hears_everybody() {
    // Two of the five are hidden from each other, but neither sends: the hidden-station model must give the same
    // result.
    let (common, _) = saturate_first(config(5, &[], Protection::None));
    let (spatial, _) = saturate_first(config(5, &[(4, 5)], Protection::None));
    let (with_rts, _) = saturate_first(config(5, &[], RTS));
    let (spatial_rts, _) = saturate_first(config(5, &[(4, 5)], RTS));
    println!("packets/s: {common} and {spatial}, RTS/CTS {with_rts} and {spatial_rts}");
    assert!((spatial / common - 1.0).abs() < 0.01);
    assert!((spatial_rts / with_rts - 1.0).abs() < 0.01);
}

/// The SIFS between the frames of an exchange belong to that exchange too.
#[test]
fn the_airtime_of_stations_makes_that_of_the_channel() {
    for protection in [Protection::None, Protection::CtsToSelf { above: 0 }, RTS] {
        let (_, bss) = saturate(config(3, &[(1, 2)], protection));
        // Up to the last event: later time is not yet charged to a station.
        let channel = bss.airtime(Instant::ZERO);
        let stations = || (0..=3).map(|id| bss.station_airtime(StationId(id)));
        for what in AirtimeUse::ALL.into_iter().filter(|what| *what != AirtimeUse::Idle) {
            let charged: Duration = stations().map(|airtime| airtime.get(what)).sum();
            assert_eq!(charged, channel.get(what), "{} with {protection:?}", what.name());
        }
        assert!(channel.get(AirtimeUse::LinkAck) > Duration::ZERO);
    }
}

/// Throughput with only the first three clients sending, and the channel afterwards.
fn saturate_first(mut config: BssConfig) -> (f64, Channel) {
    for station in &mut config.stations[3..] {
        station.uplink_queue = QueueLimit { packets: Some(0), bytes: None }.into();
    }
    saturate(config)
}

fn frames(bss: &mut Channel) -> Vec<AirFrame<TestPacket>> {
    while let Some(now) = bss.poll_timeout() {
        bss.handle_timeout(now);
    }
    while bss.poll_deliver().is_some() {}
    std::iter::from_fn(|| bss.poll_air()).collect()
}

#[test]
fn two_that_do_not_hear_each_other_overlap() {
    let mut bss = channel(config(2, &[(1, 2)], Protection::None), 1, "hidden", SPAN);
    bss.record_air();
    let start = Instant::ZERO + Duration::from_millis(1);
    assert!(bss.enqueue(start, StationId(1).first_function(), StationId::AP.first_function(), FULL));
    bss.handle_timeout(start);
    // Half a frame later, the other client finds the channel idle and begins.
    let later = start + Duration::from_millis(1);
    assert!(bss.enqueue(later, StationId(2).first_function(), StationId::AP.first_function(), FULL));
    let heard = frames(&mut bss);
    let [first, second] = [&heard[0], &heard[1]];
    assert_eq!((first.at, second.at), (start, later));
    assert_eq!((first.outcome, second.outcome), (Outcome::Collided, Outcome::Collided));
    // Both retry until they succeed.
    let received = heard.iter().filter(|frame| matches!(frame.frame, Frame::Ack { .. })).count();
    assert_eq!(received, 2);
    bss.check().unwrap();
}

/// Only what another frame overlaps is lost: the data behind a CTS-to-self arrives if the other frame has ended.
#[test]
fn data_behind_a_collided_cts_to_self_arrives() {
    let mut config = config(2, &[], Protection::CtsToSelf { above: 500 });
    config.stations[1].mode = Mode::for_rate(Standard::A, BitRate::from_mbps(54)).unwrap();
    let mut bss = channel(config, 1, "hidden", SPAN);
    bss.record_air();
    let start = Instant::ZERO + Duration::from_millis(1);
    // The CTS lasts 44 us, the short packet 36.
    for (client, packet) in [(1, FULL), (2, TestPacket::ack(1))] {
        assert!(bss.enqueue(
            start,
            StationId(client).first_function(),
            StationId::AP.first_function(),
            packet
        ));
    }
    let heard = frames(&mut bss);
    let of = |client| heard.iter().filter(move |frame| frame.transmitter == StationId(client));
    assert_eq!([1, 2].map(|client| of(client).next().unwrap().at), [start; 2]);
    let outcomes = |client| of(client).map(|frame| frame.outcome).collect::<Vec<_>>();
    assert_eq!([1, 2].map(outcomes), [[Outcome::Collided, Outcome::Received]; 2]);
    assert_eq!(bss.collisions(), 1);
}

/// An access at which all packets are too old sends nothing, and no countdown but its own ends.
#[test]
fn an_access_without_a_frame_leaves_the_other_countdowns_alone() {
    for seed in 1..=30 {
        let second_begins = |waiting: &[(u16, u64)]| {
            let config = BssConfig { lifetime: Duration::from_millis(1), ..config(3, &[], Protection::None) };
            let mut bss = channel(config, seed, "hidden", SPAN);
            bss.record_air();
            let start = Instant::ZERO + Duration::from_millis(1);
            let ap = StationId::AP.first_function();
            // The frame lasts 2 ms.
            assert!(bss.enqueue(start, ap, StationId(3).first_function(), FULL));
            bss.handle_timeout(start);
            for (client, after_us) in waiting {
                let at = start + Duration::from_micros(*after_us);
                assert!(bss.enqueue(at, StationId(*client).first_function(), ap, FULL));
            }
            let heard = frames(&mut bss);
            assert!(heard.iter().all(|frame| frame.transmitter != StationId(1)));
            heard.iter().find(|frame| frame.transmitter == StationId(2)).unwrap().at
        };
        assert_eq!(second_begins(&[(1, 100), (2, 2_000)]), second_begins(&[(2, 2_000)]), "seed {seed}");
    }
}

/// Sends one frame per SNR in `snr_db` to an access point with capture; all but the first begin `after` it.
fn overlap<const N: usize>(snr_db: [i32; N], after: Duration) -> [Outcome; N] {
    let hidden = [(1, 2), (1, 3), (2, 3)].into_iter().filter(|(_, b)| usize::from(*b) <= N);
    let hidden: Vec<_> = hidden.collect();
    let mut config = BssConfig { capture: true, ..config(N, &hidden, Protection::None) };
    for (station, db) in config.stations.iter_mut().zip(snr_db) {
        station.snr = Some(Decibels::from_millis(db * 1_000));
    }
    let mut bss = channel(config, 1, "hidden", SPAN);
    bss.record_air();
    let start = Instant::ZERO + Duration::from_millis(1);
    assert!(bss.enqueue(start, StationId(1).first_function(), StationId::AP.first_function(), FULL));
    bss.handle_timeout(start);
    for id in 2..=N as u16 {
        assert!(bss.enqueue(
            start + after,
            StationId(id).first_function(),
            StationId::AP.first_function(),
            FULL
        ));
    }
    let heard = frames(&mut bss);
    bss.check().unwrap();
    let first_of = |id| heard.iter().find(|frame| frame.transmitter == StationId(id)).unwrap().outcome;
    core::array::from_fn(|place| first_of(place as u16 + 1))
}

/// Interference adds up: a frame that is received despite each of two others may be lost to both together.
#[test]
fn interference_is_that_of_all_together() {
    let half_a_frame = Duration::from_millis(1);
    assert_eq!(overlap([40, 36], half_a_frame)[0], Outcome::Received);
    assert_eq!(overlap([40, 36, 36], half_a_frame), [Outcome::Collided; 3]);
}

/// No station receives while it sends, even if no other frame is on the air.
#[test]
fn two_that_send_to_each_other_at_once_hear_nothing() {
    let mut bss = channel(config(3, &[(2, 3)], Protection::None), 1, "hidden", SPAN);
    bss.record_air();
    let start = Instant::ZERO + Duration::from_millis(1);
    assert!(bss.enqueue(start, StationId::AP.first_function(), StationId(1).first_function(), FULL));
    assert!(bss.enqueue(start, StationId(1).first_function(), StationId::AP.first_function(), FULL));
    let heard = frames(&mut bss);
    assert_eq!([heard[0].at, heard[1].at], [start; 2]);
    assert_eq!([heard[0].outcome, heard[1].outcome], [Outcome::Collided; 2]);
    bss.check().unwrap();
}

/// BPSK 1/2 needs 3 dB: 40 dB is received despite 30, and 32 is not. A later frame is never received, at any power,
/// because the receiver is locked onto the first. A stronger frame that begins at the same time takes its place.
#[test]
fn the_access_point_keeps_the_first_frame_if_it_stands_out() {
    let half_a_frame = Duration::from_millis(1);
    assert_eq!(overlap([40, 30], half_a_frame), [Outcome::Received, Outcome::Collided]);
    assert_eq!(overlap([32, 30], half_a_frame), [Outcome::Collided; 2]);
    assert_eq!(overlap([30, 40], half_a_frame), [Outcome::Collided; 2]);
    assert_eq!(overlap([30, 40], Duration::ZERO), [Outcome::Collided, Outcome::Received]);
}

#[test]
fn capture_saves_the_nearer_of_a_hidden_pair() {
    let near_and_far = |capture| {
        let mut config = config(2, &[(1, 2)], Protection::None);
        config.capture = capture;
        config.stations[0].snr = Some(Decibels::from_millis(35_000));
        config.stations[1].snr = Some(Decibels::from_millis(15_000));
        let (all, bss) = saturate(config);
        (all, [1, 2].map(|id| bss.counters(StationId(id)).delivered_bytes))
    };
    let ((without, [near, far]), (with, [near_captured, far_captured])) =
        (near_and_far(false), near_and_far(true));
    println!(
        "packets/s: {without}, {with} with capture; bytes {near}, {far}, and {near_captured}, {far_captured}"
    );
    assert!(with > 1.5 * without);
    assert!(near_captured > 2 * near && near_captured > 2 * far_captured);
}

/// From the end of two frames that overlap, the second begun `after` the first, to the frame of a third client that hears
/// both: the least over many backoffs.
fn least_wait(hidden: &[(u16, u16)], eifs: Eifs, after: Duration) -> Duration {
    let next = |seed| {
        let config = BssConfig { eifs, ..config(3, hidden, Protection::None) };
        let mut bss = channel(config, seed, "hidden", SPAN);
        bss.record_air();
        let start = Instant::ZERO + Duration::from_millis(1);
        for (client, at) in [(1, start), (2, start + after), (3, start + Duration::from_micros(100))] {
            while let Some(now) = bss.poll_timeout().filter(|now| *now < at) {
                bss.handle_timeout(now);
            }
            assert!(bss.enqueue(
                at,
                StationId(client).first_function(),
                StationId::AP.first_function(),
                FULL
            ));
        }
        let heard = frames(&mut bss);
        assert_eq!([heard[0].at, heard[1].at], [start, start + after]);
        assert_eq!([heard[0].outcome, heard[1].outcome], [Outcome::Collided; 2]);
        (heard[2].transmitter == StationId(3)).then(|| heard[2].at - (heard[1].at + heard[1].duration))
    };
    (1..=100).filter_map(next).min().unwrap()
}

/// Of two frames that begin together a bystander finds no preamble; where one begins first, it does, and that frame ends
/// with an error. DIFS is 34 us, EIFS 94; the first backoff may be 0.
#[test]
fn eifs_follows_only_what_could_be_detected() {
    let [difs, eifs] = [34, 94].map(Duration::from_micros);
    let later = Duration::from_micros(20);
    for hidden in [&[][..], &[(1, 2)]] {
        assert_eq!(least_wait(hidden, Eifs::Detected, Duration::ZERO), difs, "{hidden:?}");
        assert_eq!(least_wait(hidden, Eifs::Never, Duration::ZERO), difs, "{hidden:?}");
        assert_eq!(least_wait(hidden, Eifs::Overlapping, Duration::ZERO), eifs, "{hidden:?}");
    }
    assert_eq!(least_wait(&[(1, 2)], Eifs::Detected, later), eifs);
    assert_eq!(least_wait(&[(1, 2)], Eifs::Never, later), difs);
}

#[test]
fn one_that_hears_the_other_waits() {
    let mut bss = channel(config(3, &[(1, 3)], Protection::None), 1, "hidden", SPAN);
    bss.record_air();
    let start = Instant::ZERO + Duration::from_millis(1);
    assert!(bss.enqueue(start, StationId(1).first_function(), StationId::AP.first_function(), FULL));
    bss.handle_timeout(start);
    assert!(bss.enqueue(
        start + Duration::from_millis(1),
        StationId(2).first_function(),
        StationId::AP.first_function(),
        FULL
    ));
    let heard = frames(&mut bss);
    assert!(heard.iter().all(|frame| frame.outcome == Outcome::Received));
    assert_eq!(heard.len(), 4, "two exchanges");
    assert!(heard[2].at >= heard[1].at + heard[1].duration + Duration::from_micros(34));
}

#[test]
fn a_cts_keeps_the_hidden_one_quiet() {
    let mut bss = channel(config(2, &[(1, 2)], RTS), 1, "hidden", SPAN);
    bss.record_air();
    let start = Instant::ZERO + Duration::from_millis(1);
    assert!(bss.enqueue(start, StationId(1).first_function(), StationId::AP.first_function(), FULL));
    bss.handle_timeout(start);
    // It does not hear the data, but it has heard the CTS.
    assert!(bss.enqueue(
        start + Duration::from_millis(1),
        StationId(2).first_function(),
        StationId::AP.first_function(),
        FULL
    ));
    let heard = frames(&mut bss);
    assert!(heard.iter().all(|frame| frame.outcome == Outcome::Received));
    let ack = heard.iter().find(|frame| matches!(frame.frame, Frame::Ack { .. })).unwrap();
    let second = heard.iter().find(|frame| frame.transmitter == StationId(2)).unwrap();
    assert!(second.at > ack.at + ack.duration);
}
