//! Unacknowledged data: each PPDU is sent once, whether or not it arrives.

use crate::common;
use crate::common::{Channel, FULL, FULL_LEN, TestPacket, channel};
use tacit_link::loss::Loss;
use tacit_link::wifi::air::Frame;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{
    BothWays, BssConfig, Bursts, LinkAcks, Protection, ReverseDirection, StationConfig, StationId,
};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant, Ratio};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);
const SPAN: Duration = Duration::from_secs(2);

/// 802.11n at 150 Mb/s, where an A-MPDU holds 42 packets.
fn config(clients: usize) -> BssConfig {
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
    let client = StationConfig { link_acks: BothWays::same(LinkAcks::None), ..StationConfig::new(mode) };
    BssConfig { beacon_interval: None, ..BssConfig::new(Standard::N, vec![client; clients]) }
}

#[test]
fn lost_mpdus_stay_lost_and_nothing_waits_for_them() {
    let mut config = config(1);
    config.stations[0].downlink_loss = Loss::Scripted(vec![2, 41, 50]);
    let mut bss = channel(config, 1, "no ack", SPAN);
    bss.record_air();
    (0..100).for_each(|number| {
        assert!(bss.enqueue(
            Instant::ZERO,
            AP.first_function(),
            ONE.first_function(),
            TestPacket::full(number)
        ));
    });
    let (mut delivered, mut ppdus) = (Vec::new(), Vec::new());
    while let Some(now) = bss.poll_timeout() {
        bss.handle_timeout(now);
        while let Some(delivery) = bss.poll_deliver() {
            delivered.push((now, delivery.payload.number));
        }
        while let Some(frame) = bss.poll_air() {
            assert!(matches!(frame.frame, Frame::Data { .. }), "{:?}", frame.frame);
            assert_eq!(frame.reserves, Duration::ZERO, "no time for a response");
            match ppdus.last_mut() {
                Some((at, _, mpdus)) if *at == frame.at => *mpdus += 1,
                _ => ppdus.push((frame.at, frame.at + frame.duration, 1)),
            }
        }
    }
    // All aggregates are full: no window stalls behind a missing MPDU.
    assert_eq!(ppdus.iter().map(|(_, _, mpdus)| *mpdus).collect::<Vec<_>>(), [42, 42, 16]);
    let numbers: Vec<u32> = delivered.iter().map(|(_, number)| *number).collect();
    let all_but_three: Vec<u32> = (0..100).filter(|number| ![2, 41, 50].contains(number)).collect();
    assert_eq!(numbers, all_but_three);
    // Number 3 is passed up with its PPDU, although number 2 never arrives.
    assert_eq!(delivered[2].0, ppdus[0].1);
    // AIFS and up to 15 slots between PPDUs.
    for pair in ppdus.windows(2) {
        let pause = (pair[1].0 - pair[0].1).as_micros();
        assert!((43..=43 + 15 * 9).contains(&pause), "{pause} us");
    }
    let counters = bss.counters(AP);
    assert_eq!((counters.unacknowledged, counters.retries, counters.missed_link_acks), (100, 0, 0));
    // The sender does not know which packets these are.
    assert_eq!((counters.unacknowledged_arrived, counters.delivered_bytes), (97, 97 * FULL_LEN));
    bss.check().unwrap();
}

/// Packets of a saturated download that arrive, and the channel afterwards.
fn saturate(mut config: BssConfig, senders: &[StationId]) -> (u64, Channel) {
    for station in &mut config.stations {
        // Two A-MPDUs of 42 MPDUs.
        station.downlink_queue.limit.packets = Some(84);
        station.uplink_queue.limit.packets = Some(84);
    }
    let mut bss = channel(config, 1, "no ack", SPAN);
    let delivered = common::saturate(&mut bss, SPAN, |bss, now| {
        for from in senders {
            let to = if *from == AP { ONE } else { AP };
            let [from, to] = [*from, to].map(StationId::first_function);
            while bss.has_room(from, to, Bytes(FULL_LEN)) && bss.enqueue(now, from, to, FULL) {}
        }
    });
    (delivered, bss)
}

/// FWP section V-A.
#[test]
fn goodput_falls_linearly_with_the_error_rate() {
    let arriving = |per_mille: u32| {
        let mut config = config(1);
        config.stations[0].downlink_loss = match per_mille {
            0 => Loss::None,
            _ => Loss::Bernoulli(Ratio::from_parts_per_billion(per_mille * 1_000_000).unwrap()),
        };
        saturate(config, &[AP]).0 as f64
    };
    let all = arriving(0);
    for per_mille in [50, 200, 500] {
        let expected = all * (1.0 - f64::from(per_mille) / 1e3);
        let arrived = arriving(per_mille);
        assert!((arrived / expected - 1.0).abs() < 0.02, "{arrived} of {all} at {per_mille} per mille");
    }
    let mut normal = config(1);
    normal.stations[0].link_acks = BothWays::default();
    let acknowledged = saturate(normal, &[AP]).0 as f64;
    assert!(all > 1.005 * acknowledged, "{all} without, {acknowledged} with Block Acks");
}

#[test]
fn nobody_notices_a_collision() {
    let clients: Vec<StationId> = (1..=10).map(StationId).collect();
    let (_, mut bss) = saturate(config(10), &clients);
    assert!(bss.collisions() > 100);
    for client in clients {
        let counters = bss.counters(client);
        assert!(counters.collided_ppdus > 0);
        assert_eq!((counters.retries, counters.missed_link_acks), (0, 0), "{client:?}");
    }
    assert!(bss.poll_interrupt().is_none());
}

/// The rest of a TXOP carries more unacknowledged data, whether or not some stations are hidden from each other.
#[test]
fn a_txop_goes_on_without_acknowledgments() {
    for hidden in [vec![], vec![(StationId(2), StationId(3))]] {
        let limit = Some(Duration::from_millis(8));
        let config = BssConfig { txop_limit: limit, bursts: Bursts::WithinLimit, hidden, ..config(3) };
        let mut bss = channel(config, 1, "no ack", SPAN);
        (0..84).for_each(|number| {
            let (ap, one) = (AP.first_function(), ONE.first_function());
            assert!(bss.enqueue(Instant::ZERO, ap, one, TestPacket::full(number)));
        });
        while let Some(now) = bss.poll_timeout() {
            bss.handle_timeout(now);
        }
        assert_eq!((bss.accesses(), bss.counters(AP).burst_ppdus), (1, 1));
    }
}

/// A sender that cannot detect a collision never backs off. Two such senders that are hidden from each other destroy
/// each other's frames, unless a CTS that both receive separates them.
#[test]
fn hidden_stations_need_an_rts() {
    let arriving = |protection, hidden| {
        let config = BssConfig { protection, hidden, ..config(2) };
        let (delivered, bss) = saturate(config, &[ONE, StationId(2), AP]);
        assert_eq!(bss.counters(ONE).retries, 0);
        delivered
    };
    let hidden = || vec![(ONE, StationId(2))];
    let [none, cts, rts] =
        [Protection::None, Protection::CtsToSelf { above: 0 }, Protection::RtsCts { above: 0 }];
    for protection in [none, cts, rts] {
        assert!(arriving(protection, vec![]) > 19_000, "{protection:?}, all hear all");
    }
    for protection in [none, cts] {
        assert!(arriving(protection, hidden()) < 1_000, "{protection:?}, hidden");
    }
    assert!(arriving(rts, hidden()) > 20_000);
}

/// One client without acknowledgments, one without them in the downlink only, and one with all of them: each direction
/// of each client is acknowledged as configured, and no other frame is.
#[test]
fn each_client_has_its_own_acknowledgments_each_way() {
    let mut config = config(3);
    config.stations[1].link_acks = BothWays { down: LinkAcks::None, up: LinkAcks::Normal };
    config.stations[2].link_acks = BothWays::default();
    for station in &mut config.stations {
        station.downlink_queue.limit.packets = Some(84);
        station.uplink_queue.limit.packets = Some(84);
    }
    let clients = [ONE, StationId(2), StationId(3)];
    let mut bss = channel(config, 1, "mixed", SPAN);
    bss.record_air();
    let (mut acks, mut data) = ([[0_u32; 2]; 3], [[0_u32; 2]; 3]);
    let mut last = Instant::ZERO;
    common::saturate(&mut bss, SPAN, |bss, now| {
        for pair in clients.iter().flat_map(|client| [[AP, *client], [*client, AP]]) {
            let [from, to] = pair.map(StationId::first_function);
            while bss.has_room(from, to, Bytes(FULL_LEN)) && bss.enqueue(now, from, to, FULL) {}
        }
        while let Some(frame) = bss.poll_air() {
            let Some(receiver) = frame.receiver else { continue };
            match frame.frame {
                Frame::Data { .. } if frame.at > last => {
                    last = frame.at;
                    let (client, way) =
                        if frame.transmitter == AP { (receiver, 0) } else { (frame.transmitter, 1) };
                    data[client.index() - 1][way] += 1;
                    let answered = [[false, false], [false, true], [true, true]][client.index() - 1][way];
                    assert_eq!(frame.reserves > Duration::ZERO, answered, "{client:?} {way}");
                }
                // The responder is the other end.
                Frame::BlockAck { .. } | Frame::Ack { .. } => {
                    let (client, way) =
                        if frame.transmitter == AP { (receiver, 1) } else { (frame.transmitter, 0) };
                    acks[client.index() - 1][way] += 1;
                }
                _ => {}
            }
        }
    });
    assert!(data.as_flattened().iter().all(|ppdus| *ppdus > 30), "{data:?}");
    assert_eq!([acks[0], [acks[1][0], 0], [0; 2]], [[0; 2]; 3], "{acks:?}");
    assert!([acks[1][1], acks[2][0], acks[2][1]].iter().all(|count| *count > 30), "{acks:?}");
    let counters = bss.counters(AP);
    assert!(counters.unacknowledged > 0 && counters.delivered_first_try > 0);
}

/// With grants, a client without acknowledgments in one direction gets no grant and gives none.
#[test]
fn grants_leave_out_clients_without_acknowledgments() {
    let granted = |acks| {
        let mut config = config(1);
        config.stations[0].link_acks = acks;
        config.reverse_direction =
            ReverseDirection::Granted { turnaround: Duration::ZERO, limit: ReverseDirection::USUAL_LIMIT };
        let (delivered, bss) = saturate(config, &[AP, ONE]);
        assert!(delivered > 15_000);
        [AP, ONE].map(|station| bss.counters(station).reverse_ppdus > 0)
    };
    let [normal, none] = [LinkAcks::Normal, LinkAcks::None];
    assert_eq!(granted(BothWays::same(normal)), [true, true]);
    for acks in
        [BothWays { down: none, up: normal }, BothWays { down: normal, up: none }, BothWays::same(none)]
    {
        assert_eq!(granted(acks), [false, false], "{acks:?}");
    }
}
