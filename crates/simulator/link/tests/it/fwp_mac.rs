//! The MACs of the FWP paper (Havey and Almeroth), computed by hand: windows that stall as in its figures 2 and 4,
//! aggregates that are always full, A-MSDU, and a queue per spatial stream as in its emulator.

use crate::common::{Channel, FULL, FULL_LEN, TestPacket, channel};
use tacit_link::loss::Loss;
use tacit_link::wifi::air::Frame;
use tacit_link::wifi::phy::{GuardInterval, Mode, ModeChoice, Standard, Variant};
use tacit_link::wifi::{
    AmsduLimit, BothWays, BssConfig, Decibels, LinkAcks, StationConfig, StationCounters, StationId,
    StreamQueues,
};
use tacit_packet::units::{Bytes, Duration, Instant, Ratio};

const AP: StationId = StationId::AP;
const ONE: StationId = StationId(1);

/// 802.11n at 40 MHz with the short guard interval: 150 Mb/s per stream (MCS 7, 15, 23, 31).
fn mode(streams: u8) -> Mode {
    let choice = ModeChoice {
        rate: None,
        mcs: Some(8 * streams - 1),
        streams: Some(streams),
        width_mhz: Some(40),
        guard_interval: Some(GuardInterval::Ns400),
    };
    Mode::choose(Standard::N, Variant::for_standard(Standard::N), choice).unwrap()
}

fn config(streams: u8, clients: usize) -> BssConfig {
    BssConfig {
        beacon_interval: None,
        ..BssConfig::new(Standard::N, vec![StationConfig::new(mode(streams)); clients])
    }
}

fn percent(share: u32) -> Loss {
    match share {
        0 => Loss::None,
        share => Loss::Bernoulli(Ratio::from_parts_per_billion(share * 10_000_000).unwrap()),
    }
}

const NO_ACK: BothWays<LinkAcks> = BothWays { down: LinkAcks::None, up: LinkAcks::Normal };

/// Size in bytes of a packet that fits 64 times into an A-MPDU of 802.11n.
const SHORT: u64 = 900;

/// Numbers of the packets in each PPDU of a download of `packets`, counted from 1 as in the paper, and of the packets
/// delivered, with the number of MPDUs missing before each.
fn ppdus(config: BssConfig, packets: u32) -> (Vec<Vec<u32>>, Vec<(u32, u16)>) {
    let mut bss = channel(config, 1, "figures", Duration::from_secs(1));
    bss.record_air();
    (1..=packets).for_each(|number| {
        assert!(bss.enqueue(
            Instant::ZERO,
            AP.first_function(),
            ONE.first_function(),
            TestPacket::of_len(number, SHORT)
        ));
    });
    let (mut ppdus, mut delivered, mut last) = (Vec::<Vec<u32>>::new(), Vec::new(), None);
    while let Some(now) = bss.poll_timeout() {
        bss.handle_timeout(now);
        while let Some(delivery) = bss.poll_deliver() {
            delivered.push((delivery.payload.number, delivery.missing));
        }
        while let Some(frame) = bss.poll_air() {
            let Frame::Data { payload, rest, .. } = frame.frame else { continue };
            if last.replace(frame.at) != Some(frame.at) {
                ppdus.push(Vec::new());
            }
            let numbers = std::iter::once(payload).chain(rest).map(|payload| payload.number);
            ppdus.last_mut().unwrap().extend(numbers);
        }
    }
    bss.check().unwrap();
    (ppdus, delivered)
}

/// Figure 2: frames two and three of 64 are lost, and only number 65 fits beside them. The third is lost again, and
/// again one new frame fits.
#[test]
fn the_window_stalls_as_in_figure_2() {
    let mut config = config(1, 1);
    // The 66th frame on the air is the second transmission of number 3.
    config.stations[0].downlink_loss = Loss::Scripted(vec![1, 2, 65]);
    let (ppdus, delivered) = ppdus(config, 200);
    assert_eq!(ppdus[0], (1..=64).collect::<Vec<_>>());
    assert_eq!(ppdus[1..3], [vec![2, 3, 65], vec![3, 66]]);
    assert_eq!(ppdus[3], (67..=130).collect::<Vec<_>>(), "the window is free");
    assert_eq!(delivered, (1..=200).map(|number| (number, 0)).collect::<Vec<_>>());
}

/// Figure 4: aggregates and window of 32 frames. The second frame is lost, and the next aggregate consists of it and
/// number 33.
#[test]
fn the_window_of_the_emulator_stalls_as_in_figure_4() {
    let mut config = config(1, 1);
    (config.ampdu_mpdus, config.block_ack_window) = (Some(32), 32);
    config.stations[0].downlink_loss = Loss::Scripted(vec![1]);
    let (ppdus, _) = ppdus(config, 64);
    assert_eq!(ppdus[0], (1..=32).collect::<Vec<_>>());
    assert_eq!(ppdus[1..], [vec![2, 33], (34..=64).collect::<Vec<_>>()]);
}

/// With aggregates of 32 in the standard's window of 64, a whole aggregate fits after a missing MPDU.
#[test]
fn a_window_of_two_aggregates_stalls_later() {
    let mut config = config(1, 1);
    config.ampdu_mpdus = Some(32);
    config.stations[0].downlink_loss = Loss::Scripted(vec![1, 32]);
    let (ppdus, _) = ppdus(config, 96);
    assert_eq!(ppdus[1], std::iter::once(2).chain(33..=63).collect::<Vec<_>>());
    // Number 2 is lost again: the window ends at 65.
    assert_eq!(ppdus[2], [2, 64, 65]);
}

/// Figure 3: aggregates of 32 follow one another under any losses, and the recipient knows the positions and the number
/// of the missing packets.
#[test]
fn aggregates_without_acknowledgment_are_full_as_in_figure_3() {
    let mut config = config(1, 1);
    config.ampdu_mpdus = Some(32);
    config.stations[0].link_acks = NO_ACK;
    config.stations[0].downlink_loss = Loss::Scripted(vec![0, 1, 2, 39, 63]);
    let (ppdus, delivered) = ppdus(config, 66);
    assert_eq!(ppdus, [(1..=32).collect(), (33..=64).collect(), vec![65, 66]]);
    let missing: Vec<_> = delivered.iter().filter(|(_, missing)| *missing > 0).collect();
    assert_eq!(missing, [&(4, 3), &(41, 1), &(65, 1)]);
    assert_eq!(delivered.len(), 66 - 5);
}

/// A completely lost PPDU is a gap like any other, and so is a collided one.
#[test]
fn whole_aggregates_that_are_missing_are_counted() {
    let mut config = config(1, 1);
    config.ampdu_mpdus = Some(32);
    config.stations[0].link_acks = NO_ACK;
    config.stations[0].downlink_loss = Loss::Scripted((32..96).collect());
    let (_, delivered) = ppdus(config, 128);
    assert_eq!(delivered[31..34], [(32, 0), (97, 64), (98, 0)]);
}

/// 5 subframes of 14 bytes, LLC/SNAP and 1500 bytes, padded to 4, are 7618 of the 7935 bytes allowed. With MAC header
/// and FCS they are one MPDU, which one ACK answers and which is lost and retransmitted as a whole.
#[test]
fn an_amsdu_alone_is_one_mpdu_under_an_ack() {
    let mut config = config(4, 1);
    (config.ampdu_mpdus, config.amsdu) = (Some(1), Some(AmsduLimit::Bytes7935));
    config.stations[0].downlink_loss = Loss::Scripted(vec![0]);
    let mut bss = channel(config, 1, "A-MSDU", Duration::from_secs(1));
    bss.record_air();
    (0..12)
        .for_each(|_| assert!(bss.enqueue(Instant::ZERO, AP.first_function(), ONE.first_function(), FULL)));
    let (mut sizes, mut acks, mut delivered) = (Vec::new(), 0, Vec::new());
    while let Some(now) = bss.poll_timeout() {
        bss.handle_timeout(now);
        let arrived = std::iter::from_fn(|| bss.poll_deliver()).count();
        delivered.extend((arrived > 0).then_some(arrived));
        while let Some(frame) = bss.poll_air() {
            match frame.frame {
                Frame::Data { rest, retry, .. } => {
                    assert!(frame.ampdu.is_none());
                    sizes.push((1 + rest.len(), retry));
                    // 16 + 8 (26 + 4 * 1524 + 1522 + 4) + 2 * 6 bits in symbols of 2160 bits and 3.6 us, plus the
                    // preamble.
                    let symbols: u64 = if rest.len() == 4 { 29 } else { 12 };
                    let micros = (symbols * 36).div_ceil(40) * 4 + 48;
                    assert_eq!(frame.duration.as_micros(), micros, "{} packets", rest.len() + 1);
                }
                Frame::Ack { .. } => acks += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(sizes, [(5, false), (5, true), (5, false), (2, false)]);
    assert_eq!((delivered, acks), (vec![5, 5, 2], 3));
}

/// A saturated download for `span`: counters of the access point, and packets delivered to each client.
fn download(config: BssConfig, span: Duration, label: &str) -> (StationCounters, Vec<u64>, Channel) {
    let clients = config.stations.len() as u16;
    let mut config = config;
    for station in &mut config.stations {
        station.downlink_queue.limit.packets = Some(600);
    }
    let mut bss = channel(config, 1, label, span);
    let mut delivered = vec![0; usize::from(clients)];
    let end = Instant::ZERO + span;
    let fill = |bss: &mut Channel, now| {
        for client in (1..=clients).map(|number| StationId(number).first_function()) {
            let from = AP.first_function();
            while bss.has_room(from, client, Bytes(FULL_LEN)) && bss.enqueue(now, from, client, FULL) {}
        }
    };
    fill(&mut bss, Instant::ZERO);
    while let Some(now) = bss.poll_timeout().filter(|now| *now < end) {
        bss.handle_timeout(now);
        while let Some(delivery) = bss.poll_deliver() {
            delivered[bss.station(delivery.to).index() - 1] += 1;
        }
        while bss.poll_drained().is_some() {}
        fill(&mut bss, now);
    }
    bss.check().unwrap();
    (bss.counters(AP), delivered, bss)
}

/// 32 subframes of 1544 bytes, the last 1542, on each of 4 streams at 150 Mb/s take as many symbols as 4 times that at
/// 600 Mb/s: (16 + 8 * 197,624 + 12) / 2160 bits are 732 symbols of 3.6 us, or 2636 us in steps of 4. The preamble
/// takes 48 us.
#[test]
fn aggregates_side_by_side_last_as_long_as_one() {
    let mut config = config(4, 1);
    (config.ampdu_mpdus, config.stream_queues) = (Some(32), StreamQueues::Independent);
    let mut bss = channel(config, 1, "side by side", Duration::from_secs(1));
    bss.record_air();
    (0..130)
        .for_each(|_| assert!(bss.enqueue(Instant::ZERO, AP.first_function(), ONE.first_function(), FULL)));
    let mut ppdus = Vec::new();
    while let Some(now) = bss.poll_timeout() {
        bss.handle_timeout(now);
        while let Some(frame) = bss.poll_air() {
            let Frame::Data { .. } = frame.frame else { continue };
            match ppdus.last_mut() {
                Some((at, _, count)) if *at == frame.at => *count += 1,
                _ => ppdus.push((frame.at, frame.duration.as_micros(), 1)),
            }
        }
    }
    let ppdus: Vec<_> = ppdus.into_iter().map(|(_, micros, mpdus)| (micros, mpdus)).collect();
    // Two are left, one on each of two streams: (16 + 8 * 4 * 1538 + 12) / 2160 = 23 symbols of 3.6 us.
    assert_eq!(ppdus, [(2_684, 128), (84 + 48, 2)]);
    assert_eq!(std::iter::from_fn(|| bss.poll_deliver()).count(), 130);
}

/// A mode with one stream gives the same result with both relations of streams to queues.
#[test]
fn one_stream_of_its_own_is_all_streams_jointly() {
    for acks in [BothWays::default(), NO_ACK] {
        let run = |stream_queues| {
            let mut config = config(1, 2);
            config.stream_queues = stream_queues;
            for station in &mut config.stations {
                (station.link_acks, station.downlink_loss) = (acks, percent(20));
                station.snr = Some(Decibels::from_millis(26_000));
            }
            let (counters, delivered, bss) = download(config, Duration::from_millis(500), "one stream");
            (counters, delivered, bss.ppdu_sizes(AP))
        };
        assert_eq!(run(StreamQueues::Joint), run(StreamQueues::Independent), "{acks:?}");
    }
}

/// Odd numbers of streams, single MPDUs, A-MSDUs, aggregates of every size: every packet arrives or is counted as lost.
#[test]
fn odd_streams_keep_their_books() {
    for streams in 1..=4 {
        for mpdus in [None, Some(1), Some(5)] {
            for amsdu in [None, Some(AmsduLimit::Bytes7935)] {
                for acks in [BothWays::default(), NO_ACK] {
                    let mut config = config(streams, 2);
                    (config.ampdu_mpdus, config.amsdu) = (mpdus, amsdu);
                    (config.stream_queues, config.lifetime) =
                        (StreamQueues::Independent, Duration::from_secs(5));
                    for station in &mut config.stations {
                        (station.link_acks, station.downlink_loss) = (acks, percent(20));
                        station.link_ack_loss = percent(10);
                    }
                    let what = format!("{streams} streams, {mpdus:?}, {amsdu:?}, {acks:?}");
                    let (counters, delivered, bss) = download(config, Duration::from_millis(300), "odd");
                    let arrived: u64 = delivered.iter().sum();
                    let known = match acks.down {
                        LinkAcks::Normal => counters.delivered_first_try + counters.delivered_after_retry,
                        _ => counters.unacknowledged_arrived,
                    };
                    // The difference is packets that wait behind a gap or are on the air at the end.
                    assert!(arrived.abs_diff(known) <= 64 * 5 * 4, "{what}: {arrived}, {known}");
                    let tries = counters.data_mpdus as f64;
                    assert!(counters.retries > 0 || acks.down != LinkAcks::Normal, "{what}");
                    let largest = bss.ppdu_sizes(AP).iter().rposition(|ppdus| *ppdus > 0).unwrap() + 1;
                    let each = mpdus.unwrap_or(64) as usize;
                    assert!(largest <= each * usize::from(streams) && tries > 0.0, "{what}: {largest}");
                    if each == 1 {
                        assert_eq!(largest, usize::from(streams), "{what}");
                    }
                }
            }
        }
    }
}

/// FWP section V-A: the aggregate is always full, so throughput is linear in the error rate. R^2 of a fit over eleven
/// rates, with joint streams and with one queue per stream.
#[test]
fn without_acknowledgment_throughput_is_linear_in_the_error_rate() {
    for stream_queues in [StreamQueues::Joint, StreamQueues::Independent] {
        let points: Vec<(f64, f64)> = (0..=10)
            .map(|step| {
                let mut config = config(4, 1);
                (config.ampdu_mpdus, config.stream_queues) = (Some(32), stream_queues);
                (config.stations[0].link_acks, config.stations[0].downlink_loss) =
                    (NO_ACK, percent(5 * step));
                let (counters, delivered, bss) = download(config, Duration::from_millis(500), "linear");
                let full = if stream_queues == StreamQueues::Joint { 32 } else { 4 * 32 };
                assert_eq!(bss.ppdu_sizes(AP)[full - 1], counters.data_ppdus, "full at {} %", 5 * step);
                (f64::from(5 * step) / 100.0, delivered[0] as f64)
            })
            .collect();
        let count = points.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
        let covariance = mean(&|point| (point.0 - x) * (point.1 - y));
        let (of_x, of_y) = (mean(&|point| (point.0 - x).powi(2)), mean(&|point| (point.1 - y).powi(2)));
        let r_squared = covariance.powi(2) / (of_x * of_y);
        assert!(r_squared >= 0.99, "{r_squared} {stream_queues:?}");
        // Only the error rate reduces throughput: at 50 % half of it is left.
        let half = points[10].1 / points[0].1;
        assert!((half - 0.5).abs() < 0.02, "{half} {stream_queues:?}");
    }
}

/// Throughput in Mb/s of a station without acknowledgments, and of each of `others` with Block Acks, at an access point
/// that always has data for all. Aggregates of 32 in windows of 32, as in the paper's emulator.
fn beside(others: usize, error_percent: u32, stream_queues: StreamQueues) -> [f64; 2] {
    let span = Duration::from_secs(2);
    let mut config = config(4, others + 1);
    (config.ampdu_mpdus, config.block_ack_window) = (Some(32), 32);
    config.stream_queues = stream_queues;
    config.stations[0].link_acks = NO_ACK;
    config.stations.iter_mut().for_each(|station| station.downlink_loss = percent(error_percent));
    let (_, delivered, _) = download(config, span, "figures 7 and 8");
    let mbps = |packets: u64| (packets * FULL_LEN * 8) as f64 / (span.as_nanos() as f64 / 1e3);
    [mbps(delivered[0]), mbps(delivered[1..].iter().sum()) / others as f64]
}

/// Figure 7, MAC only: A-MPDU has about two thirds of the throughput of FWP at 5 %, and about half at 20 %.
#[test]
fn block_acks_cost_what_figure_7_says() {
    for queues in [StreamQueues::Joint, StreamQueues::Independent] {
        let share = |percent| {
            let [without, with] = beside(9, percent, queues);
            with / without
        };
        assert!((share(0) - 1.0).abs() < 0.02, "{} {queues:?}", share(0));
        assert!((0.62..0.72).contains(&share(5)), "{} {queues:?}", share(5));
        assert!((0.45..0.55).contains(&share(20)), "{} {queues:?}", share(20));
    }
}

/// Figure 8, MAC only: more than 1.6 times as much at 10 %, more than twice at 40 %, with any number of other stations.
#[test]
fn gains_are_those_of_figure_8_and_flat_in_stations() {
    for queues in [StreamQueues::Joint, StreamQueues::Independent] {
        for (percent, least) in [(10, 1.6), (40, 2.0)] {
            let gains: Vec<f64> = (1..=9)
                .map(|others| {
                    let [without, with] = beside(others, percent, queues);
                    without / with
                })
                .collect();
            let most = gains.iter().copied().fold(0.0, f64::max);
            let smallest = gains.iter().copied().fold(f64::MAX, f64::min);
            assert!(smallest > least, "{gains:?} {queues:?}");
            assert!(most < 1.2 * smallest, "{gains:?} {queues:?}");
        }
    }
}
