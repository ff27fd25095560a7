//! Data with deferred acknowledgment: a recipient that misses some of it asks, and receives it once more.

use crate::common::{Channel, FULL_LEN, TestPacket, channel};
use proptest::prelude::*;
use tacit_link::loss::Loss;
use tacit_link::wifi::air::Frame;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{BothWays, BssConfig, LinkAcks, Protection, RepairConfig, StationConfig, StationId};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant, Ratio};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);
const SPAN: Duration = Duration::from_secs(2);

/// 802.11n at 150 Mb/s, where an A-MPDU holds 42 packets.
fn config(clients: usize, loss: Loss) -> BssConfig {
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
    let client = StationConfig {
        link_acks: BothWays { down: LinkAcks::Deferred, up: LinkAcks::Normal },
        downlink_loss: loss,
        ..StationConfig::new(mode)
    };
    BssConfig { beacon_interval: None, ..BssConfig::new(Standard::N, vec![client; clients]) }
}

fn percent(share: u32) -> Loss {
    Loss::Bernoulli(Ratio::from_parts_per_billion(share * 10_000_000).unwrap())
}

/// A download of `packets` that are queued from the start: arrival of each number, and the channel.
fn download(config: BssConfig, packets: u32) -> (Vec<(Instant, u32, u16)>, Channel) {
    let mut bss = channel(config, 1, "repair", SPAN);
    bss.record_air();
    (0..packets).for_each(|number| {
        assert!(bss.enqueue(
            Instant::ZERO,
            AP.first_function(),
            ONE.first_function(),
            TestPacket::full(number)
        ));
    });
    let mut delivered = Vec::new();
    while let Some(now) = bss.poll_timeout() {
        bss.handle_timeout(now);
        while let Some(delivery) = bss.poll_deliver() {
            delivered.push((now, delivery.payload.number, delivery.missing));
        }
        bss.check().unwrap();
    }
    (delivered, bss)
}

/// Two of 100 packets are lost. The recipient asks once after the first PPDU, with a Block Ack that an ACK answers; the
/// two packets precede the next MPDUs.
#[test]
fn missing_mpdus_are_requested_and_come_late() {
    let (delivered, mut bss) = download(config(1, Loss::Scripted(vec![2, 41])), 100);
    let late: Vec<_> =
        delivered.windows(2).filter(|pair| pair[1].1 < pair[0].1).map(|pair| pair[1].1).collect();
    assert_eq!(late, [2, 41]);
    let mut numbers: Vec<_> = delivered.iter().map(|(_, number, _)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    let gaps: Vec<_> =
        delivered.iter().filter(|(.., missing)| *missing > 0).map(|(_, number, _)| *number).collect();
    assert_eq!(gaps, [3, 42], "both are told when they are missed");
    let mut asked = Vec::new();
    let frames: Vec<_> = std::iter::from_fn(|| bss.poll_air()).collect();
    for (frame, next) in frames.iter().zip(&frames[1..]) {
        if let Frame::BlockAck { start, bitmap, .. } = &frame.frame {
            assert_eq!((frame.transmitter, next.transmitter), (ONE, AP));
            assert!(matches!(next.frame, Frame::Ack { .. }));
            asked.push((*start, bitmap.first_64()));
        }
    }
    // 42 were sent: of numbers 2 to 40, all but 2 have arrived. The second loss is detected after number 42.
    assert_eq!(asked[0], (2, (1 << 39) - 2));
    let retries = |frame: &&tacit_link::wifi::AirFrame<TestPacket>| {
        matches!(frame.frame, Frame::Data { retry: true, .. })
    };
    assert_eq!(frames.iter().filter(retries).count(), 2);
    let (sender, recipient) = (bss.counters(AP), bss.counters(ONE));
    assert_eq!((sender.unacknowledged, sender.unacknowledged_arrived, sender.retries), (100, 100, 2));
    assert_eq!((recipient.repaired, recipient.repair_given_up), (2, 0));
    assert_eq!(u64::from(asked.len() as u32), recipient.repair_requests);
    assert_eq!(recipient.repair_request_bytes, 32 * recipient.repair_requests);
}

/// Requests are one period apart, however much is missing, and a lost copy is requested again.
#[test]
fn requests_are_a_period_apart() {
    let mut config = config(1, percent(30));
    config.repair.period = Duration::from_millis(7);
    let (delivered, mut bss) = download(config, 3_000);
    let asked: Vec<Instant> = std::iter::from_fn(|| bss.poll_air())
        .filter(|frame| matches!(frame.frame, Frame::BlockAck { .. }))
        .map(|frame| frame.at)
        .collect();
    assert!(asked.len() > 20);
    // Each is sent when the channel is won, so one may be late by a PPDU and a backoff while the next is not.
    let least = asked.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
    assert!(least > Duration::from_millis(3), "{least}");
    assert!(SPAN / 7 > Duration::from_millis(asked.len() as u64), "{}", asked.len());
    let recipient = bss.counters(ONE);
    assert!(recipient.repaired > 800 && delivered.len() > 2_990, "{} {recipient:?}", delivered.len());
}

/// MPDUs that the transmitter no longer keeps are given up at both ends.
#[test]
fn mpdus_no_longer_kept_are_given_up() {
    let mut config = config(1, Loss::Scripted(vec![2, 3, 4]));
    config.repair = RepairConfig { buffer: Bytes(0), age: Duration::from_millis(30), ..RepairConfig::USUAL };
    let (delivered, bss) = download(config, 42);
    assert_eq!(delivered.len(), 39);
    let recipient = bss.counters(ONE);
    assert_eq!(
        (recipient.repaired, recipient.repair_given_up, recipient.repair_requests),
        (0, 3, 2),
        "at once and 20 ms later"
    );
    assert_eq!(bss.counters(AP).retries, 0);
}

/// With repair, aggregates are as full as without, and nearly every packet arrives in the end.
#[test]
fn repair_keeps_aggregates_full() {
    let arrived = |acks| {
        let mut config = config(2, percent(10));
        for station in &mut config.stations {
            station.link_acks = BothWays { down: acks, up: LinkAcks::Normal };
            station.downlink_queue.limit.packets = Some(84);
        }
        let mut bss = channel(config, 1, "repair", SPAN);
        let end = Instant::ZERO + SPAN;
        let (mut number, mut delivered) = (0, 0_u64);
        let mut fill = |bss: &mut Channel, now| {
            for client in [ONE, StationId(2)].map(StationId::first_function) {
                let from = AP.first_function();
                while bss.has_room(from, client, Bytes(FULL_LEN))
                    && bss.enqueue(now, from, client, TestPacket::full(number))
                {
                    number += 1;
                }
            }
        };
        fill(&mut bss, Instant::ZERO);
        while let Some(now) = bss.poll_timeout().filter(|now| *now < end) {
            bss.handle_timeout(now);
            delivered += std::iter::from_fn(|| bss.poll_deliver()).count() as u64;
            fill(&mut bss, now);
        }
        bss.check().unwrap();
        let sizes = bss.ppdu_sizes(AP);
        let full = sizes[41] as f64 / sizes.iter().sum::<u64>() as f64;
        (delivered, full, bss.counters(AP), bss.counters(ONE))
    };
    let (without, ..) = arrived(LinkAcks::None);
    let (with, full, sender, recipient) = arrived(LinkAcks::Deferred);
    assert!(full > 0.99, "{full}");
    // A retransmitted MPDU takes the place of a new one, so the same number of packets arrives, except for the time of
    // the requests, 100 per second, and of the PPDUs of 3.5 ms that collide with them.
    assert!(with as f64 > 0.93 * without as f64, "{with} {without}");
    let lost = 1.0 - sender.unacknowledged_arrived as f64 / sender.unacknowledged as f64;
    assert!(lost < 0.02, "{lost}: packets on their way at the end");
    assert!(recipient.repair_given_up <= 1, "{recipient:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Under any losses, with and without RTS, each packet arrives at most once. A packet that neither arrived nor was
    /// given up was lost after all the others.
    #[test]
    fn nothing_comes_twice(
        lost in prop::collection::btree_set(0_u64..400, 0..200),
        buffer in prop::sample::select(vec![0_u64, 20_000, 3_000_000]),
        protected in any::<bool>(),
    ) {
        let mut config = config(1, Loss::Scripted(lost.into_iter().collect()));
        config.repair.buffer = Bytes(buffer);
        if protected {
            config.protection = Protection::RtsCts { above: 0 };
        }
        let (delivered, bss) = download(config, 200);
        let mut numbers: Vec<_> = delivered.iter().map(|(_, number, _)| *number).collect();
        let highest = numbers.iter().copied().max();
        numbers.sort_unstable();
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        let counters = (bss.counters(AP), bss.counters(ONE));
        prop_assert_eq!(counters.0.unacknowledged, 200);
        prop_assert_eq!(counters.0.unacknowledged_arrived, numbers.len() as u64);
        let settled = numbers.len() as u64 + counters.1.repair_given_up;
        prop_assert_eq!(settled, highest.map_or(0, |highest| u64::from(highest) + 1));
    }
}
