//! Which client the access point serves next.

use crate::common::{self, Channel, FULL, TestPacket, channel, short_queue};
use tacit_link::loss::Loss;
use tacit_link::queue::QueueLimit;
use tacit_link::wifi::air::{Frame, Outcome};
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{ApScheduler, BssConfig, StationConfig, StationId};
use tacit_packet::units::{BitRate, Duration, Instant, Ratio};

/// 802.11n at 150 Mb/s.
fn config(clients: usize, ap_scheduler: ApScheduler) -> BssConfig {
    let client = StationConfig::new(Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap());
    BssConfig { beacon_interval: None, ap_scheduler, ..BssConfig::new(Standard::N, vec![client; clients]) }
}

/// The order in which packets arrive. The access point gets one packet for each of `clients`, a microsecond apart,
/// before the channel is free for the first time.
fn order(config: BssConfig, clients: &[u16]) -> Vec<u32> {
    let mut bss = channel(config, 1, "scheduler", Duration::from_secs(1));
    for (number, client) in (0..).zip(clients) {
        let at = Instant::ZERO + Duration::from_micros(u64::from(number));
        assert!(bss.enqueue(
            at,
            StationId::AP.first_function(),
            StationId(*client).first_function(),
            TestPacket::full(number)
        ));
    }
    let mut order = Vec::new();
    while let Some(now) = bss.poll_timeout() {
        bss.handle_timeout(now);
        order.extend(std::iter::from_fn(|| bss.poll_deliver()).map(|delivery| delivery.payload.number));
        while bss.poll_drained().is_some() {}
    }
    bss.check().unwrap();
    order
}

#[test]
fn the_access_point_serves_in_turn_or_by_age() {
    let served = |ap_scheduler| {
        let config = BssConfig { ampdu_mpdus: Some(2), ..config(3, ap_scheduler) };
        order(config, &[2, 2, 2, 2, 1, 3, 2, 2])
    };
    assert_eq!(served(ApScheduler::RoundRobin), [0, 1, 4, 5, 2, 3, 6, 7]);
    assert_eq!(served(ApScheduler::FirstComeFirstServed), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// A packet to be retransmitted is older than the waiting packets of others, so it is sent first.
#[test]
fn retransmissions_go_before_younger_packets() {
    let lossy = |ap_scheduler| {
        let mut config = config(2, ap_scheduler);
        config.stations[0].downlink_loss = Loss::Scripted(vec![0]);
        order(config, &[1, 1, 2, 2])
    };
    assert_eq!(
        lossy(ApScheduler::RoundRobin),
        [2, 3, 0, 1],
        "one waits in the reorder buffer until nought has come"
    );
    assert_eq!(lossy(ApScheduler::FirstComeFirstServed), [0, 1, 2, 3]);
}

/// What the access point sends to two clients: `1` for data to the first, `R1` for a Block Ack Request. The first PPDU to the first
/// client is lost; `behind` packets wait behind it, and one more comes at `comes_at`.
fn served_after_a_loss(ap_scheduler: ApScheduler, behind: usize, comes_at: Instant) -> Vec<String> {
    let mut config = BssConfig { ampdu_mpdus: Some(2), ..config(2, ap_scheduler) };
    config.stations[0].downlink_loss = Loss::Scripted(vec![0, 1]);
    let mut bss = channel(config, 1, "scheduler", Duration::from_secs(1));
    bss.record_air();
    let (ap, clients) = (StationId::AP.first_function(), [1, 2].map(|id| StationId(id).first_function()));
    for client in [0, 0, 1, 1, 1, 1].into_iter().chain(std::iter::repeat_n(0, behind)) {
        assert!(bss.enqueue(Instant::ZERO, ap, clients[client], FULL));
    }
    let mut coming = Some(comes_at);
    let mut story = Vec::new();
    let mut last = None;
    while let Some(now) = bss.poll_timeout() {
        if let Some(at) = coming.take_if(|at| *at <= now) {
            bss.enqueue(at, ap, clients[0], FULL);
            continue;
        }
        bss.handle_timeout(now);
        while bss.poll_deliver().is_some() || bss.poll_drained().is_some() {}
        while let Some(frame) = bss.poll_air() {
            let request = match frame.frame {
                Frame::Data { .. } => "",
                Frame::BlockAckReq { .. } => "R",
                _ => continue,
            };
            if last.replace(frame.at) != Some(frame.at) {
                story.push(format!("{request}{}", frame.receiver.map_or(0, StationId::index)));
            }
        }
    }
    bss.check().unwrap();
    story
}

/// The request that follows a lost PPDU is next, whether packets waited behind that or came while it was on the air.
#[test]
fn a_collision_costs_no_turn_whatever_the_queue() {
    for ap_scheduler in [ApScheduler::RoundRobin, ApScheduler::FirstComeFirstServed, ApScheduler::Airtime] {
        for (behind, us) in (0..3).flat_map(|behind| (0..1_000).step_by(20).map(move |us| (behind, us))) {
            let comes_at = Instant::ZERO + Duration::from_micros(us);
            let story = served_after_a_loss(ap_scheduler, behind, comes_at);
            let lost = story.iter().position(|frame| frame == "1").unwrap();
            assert_eq!(story[lost + 1], "R1", "{ap_scheduler:?}, {behind} behind, {us} us: {story:?}");
        }
    }
}

const SPAN: Duration = Duration::from_secs(20);

/// Packets that arrive at three clients with these rates of 802.11a, while the access point always has
/// packets for all, and the total duration of the PPDUs to each. Every second packet for `lossy` is lost.
fn saturated(ap_scheduler: ApScheduler, mbps: [u64; 3], lossy: Option<usize>) -> ([f64; 3], [Duration; 3]) {
    let modes = mbps.map(|mbps| Mode::for_rate(Standard::A, BitRate::from_mbps(mbps)).unwrap());
    let stations =
        modes.map(|mode| StationConfig { downlink_queue: short_queue(), ..StationConfig::new(mode) });
    let mut config =
        BssConfig { beacon_interval: None, ap_scheduler, ..BssConfig::new(Standard::A, stations.to_vec()) };
    if let Some(lossy) = lossy {
        config.stations[lossy].downlink_loss = Loss::Bernoulli(Ratio::from_fraction(0.5).unwrap());
    }
    let mut bss = channel(config, 1, "scheduler", SPAN);
    let clients = [1, 2, 3].map(|id| StationId(id).first_function());
    let mut delivered = [0.0; 3];
    bss.record_air();
    let mut airtime = [Duration::ZERO; 3];
    let fill = |bss: &mut Channel, now| {
        for client in clients {
            while bss.enqueue(now, StationId::AP.first_function(), client, FULL) {}
        }
        while let Some(frame) = bss.poll_air() {
            if let (StationId::AP, Some(receiver)) = (frame.transmitter, frame.receiver) {
                airtime[receiver.index() - 1] += frame.duration;
                delivered[receiver.index() - 1] += f64::from(u8::from(frame.outcome == Outcome::Received));
            }
        }
    };
    common::saturate(&mut bss, SPAN, fill);
    (delivered, airtime)
}

/// Heusse et al., "Performance Anomaly of 802.11b" (INFOCOM 2003): with equal turns, one slow client slows down all.
/// With equal airtime, each client gets as many PPDUs as fit in its third.
#[test]
fn a_slow_client_gets_as_much_time_and_not_as_many_packets() {
    let mbps = [54, 24, 6];
    let (in_turn, _) = saturated(ApScheduler::RoundRobin, mbps, None);
    assert!((in_turn[0] / in_turn[2] - 1.0).abs() < 0.01, "{in_turn:?}");
    let (by_airtime, airtime) = saturated(ApScheduler::Airtime, mbps, None);
    println!("in turn {in_turn:?}, by airtime {by_airtime:?}");
    let all = airtime.iter().map(|time| time.as_secs_f64()).sum::<f64>();
    for time in airtime {
        let share = time.as_secs_f64() / all;
        assert!((share - 1.0 / 3.0).abs() < 0.003, "{airtime:?}");
    }
    // PPDUs of 1536 bytes: 20 us, and 57, 129 or 514 symbols of 4 us.
    let lasts_us = [248.0, 536.0, 2_076.0];
    let ratio = by_airtime[0] / by_airtime[2];
    assert!((ratio / (lasts_us[2] / lasts_us[0]) - 1.0).abs() < 0.01, "{ratio}");
    // Computed by hand: the overhead of a PPDU is DIFS 34, 7.5 slots of 9, SIFS 16 and an ACK of 28, 28 or 44 us.
    let other_us = [145.5, 145.5, 161.5];
    let rounds =
        20e6 / (0..3).map(|client| (lasts_us[client] + other_us[client]) / lasts_us[client]).sum::<f64>();
    for (delivered, lasts_us) in by_airtime.into_iter().zip(lasts_us) {
        let expected = rounds / lasts_us;
        assert!((delivered / expected - 1.0).abs() < 0.02, "{lasts_us} us: {delivered} {expected}");
    }
}

/// The airtime of a lost PPDU counts too.
#[test]
fn losses_are_paid_by_whom_they_hit() {
    let (_, clean) = saturated(ApScheduler::Airtime, [54; 3], None);
    let (delivered, airtime) = saturated(ApScheduler::Airtime, [54; 3], Some(2));
    let share = |airtime: [Duration; 3]| {
        airtime[2].as_secs_f64() / (airtime[0] + airtime[1] + airtime[2]).as_secs_f64()
    };
    assert!((share(clean) - 1.0 / 3.0).abs() < 0.003);
    assert!((share(airtime) - 1.0 / 3.0).abs() < 0.003, "{airtime:?}");
    assert!((delivered[2] / delivered[0] - 0.5).abs() < 0.03, "{delivered:?}");
}

/// The limit applies to airtime, so a slow client gets fewer packets per PPDU.
#[test]
fn a_limit_of_airtime_bounds_the_aggregates_of_slow_clients() {
    let longest = |aql_limit, mbps| {
        let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(mbps)).unwrap();
        let room = QueueLimit { packets: Some(200), bytes: None };
        let station = StationConfig { downlink_queue: room.into(), ..StationConfig::new(mode) };
        let config =
            BssConfig { beacon_interval: None, aql_limit, ..BssConfig::new(Standard::N, vec![station]) };
        let mut bss = channel(config, 1, "scheduler", SPAN);
        let (ap, client) = (StationId::AP.first_function(), StationId(1).first_function());
        common::saturate(&mut bss, SPAN, |bss, now| while bss.enqueue(now, ap, client, FULL) {});
        bss.ppdu_sizes(StationId::AP).iter().rposition(|ppdus| *ppdus > 0).unwrap() + 1
    };
    // 1540 bytes and a delimiter: 32 at 150 Mb/s take 2.6 ms.
    let limit = Some(Duration::from_millis(2));
    assert!(longest(limit, 150) < longest(None, 150));
    assert_eq!(longest(limit, 15), 2);
    assert_eq!(longest(Some(Duration::from_micros(100)), 15), 1, "one packet always goes");
}
