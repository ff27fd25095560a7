//! Small queues in uploads over Wi-Fi: the backlog of the station, the size of its aggregates, and who pushes back.

use crate::common::*;
use tacit_between::hack;
use tacit_congestion::Algorithm;
use tacit_link::Loss;
use tacit_link::wifi::phy::Standard;
use tacit_packet::IpVersion;
use tacit_packet::units::{BitRate, Bytes, Duration, Ratio};
use tacit_sim::setup::{FlowSetup, Setup, Traffic};
use tacit_sim::{RunOutcome, run};
use tacit_tack_proto::{self as tack, OwnQueue};
use tacit_tcp as tcp;

/// Uploads of `clients` at 802.11n's 150 Mb/s with small queues of `ms` milliseconds.
fn uploads(clients: u32, ms: Option<u64>, congestion: Algorithm) -> Setup {
    let config = tcp::Config {
        congestion: congestion.into(),
        small_queues: ms.map(Duration::from_millis),
        ..tcp::Config::default()
    };
    upwards(wlan(Standard::N, 150, clients, &bulk(config)))
}

fn upwards(mut setup: Setup) -> Setup {
    for flow in &mut setup.flows {
        std::mem::swap(&mut flow.source, &mut flow.sink);
    }
    setup
}

fn over_tack(config: tack::Config) -> Traffic {
    Traffic::Connection { config: config.into(), size: None }
}

fn goodput_mbps(outcome: &RunOutcome) -> f64 {
    outcome.flows.iter().map(|flow| flow.goodput_bps(outcome.measured)).sum::<f64>() / 1e6
}

/// Mean MPDUs of a data PPDU of the first client.
fn mpdus(outcome: &RunOutcome) -> f64 {
    let counters = outcome.bss[0].stations[1].counters;
    counters.data_mpdus as f64 / counters.data_ppdus as f64
}

fn median_wait_us(outcome: &RunOutcome) -> u64 {
    outcome.bss[0].stations[1].queueing_delay_us.p50
}

/// Ten stations share the channel. A tenth of its rate brings far less in a millisecond than an A-MPDU holds, because a
/// station waits much longer for its next access.
#[test]
fn less_waits_in_the_station_and_aggregates_are_smaller() {
    let run_with = |clients, ms| run(&uploads(clients, ms, Algorithm::CUBIC)).unwrap();
    let [alone, _, shared] = [1, 4, 10].map(|clients| {
        let outcomes = [None, Some(8), Some(1)].map(|ms| run_with(clients, ms));
        for (outcome, ms) in outcomes.iter().zip(["none", "8 ms", "1 ms"]) {
            let (goodput, mpdus, wait) = (goodput_mbps(outcome), mpdus(outcome), median_wait_us(outcome));
            println!("{clients} {ms}: {goodput:.1} Mb/s, {mpdus:.1} MPDUs, {wait} us");
        }
        outcomes
    });
    let [off, eight, one] = &shared;
    assert!(mpdus(off) > 1.5 * mpdus(eight) && mpdus(eight) > 2.0 * mpdus(one));
    assert!(goodput_mbps(off) > 1.3 * goodput_mbps(one), "{} {}", goodput_mbps(off), goodput_mbps(one));
    assert!(median_wait_us(one) < median_wait_us(eight) && median_wait_us(eight) < median_wait_us(off));
    // Alone a station gets all it can carry, and little waits.
    let [off, _, one] = &alone;
    assert!(goodput_mbps(one) > 0.98 * goodput_mbps(off) && mpdus(one) > 40.0);
    assert!(median_wait_us(one) * 10 < median_wait_us(off));
}

/// Connections that wait for their queue and for a pacer, beside others, over HACK and with losses: the world checks at
/// every sample that none sleeps for ever, and that all packets are accounted for.
#[test]
fn nobody_waits_for_ever() {
    for congestion in [Algorithm::CUBIC, Algorithm::BBR, Algorithm::Copa, Algorithm::RRE] {
        for (clients, ms) in [(1, 1), (3, 1), (3, 8)] {
            let mut setup = uploads(clients, Some(ms), congestion);
            setup.sample_interval = Some(Duration::from_millis(10));
            setup.bss[0].config.retry_limit = 1;
            for station in &mut setup.bss[0].config.stations {
                station.uplink_loss = Loss::Bernoulli(Ratio::from_fraction(0.05).unwrap());
                station.link_ack_loss = station.uplink_loss.clone();
            }
            speak_hack(&mut setup, hack::Config::default());
            let outcome = run(&setup).unwrap();
            for flow in &outcome.flows {
                assert!(flow.goodput_bps(outcome.measured) > 1e6, "{congestion:?} {clients} {ms}");
            }
        }
    }
}

/// A server's first hop is a wire, and a receiver has nothing to send but ACKs.
/// A socket with a full send buffer makes its source wait: twice the rate of the channel then fills no queue, drops nothing,
/// and loses no goodput.
#[test]
fn datagrams_wait_in_their_source() {
    let run_with = |send_buffer| {
        let traffic = Traffic::Udp {
            ip: IpVersion::V4,
            payload: Bytes(1_472),
            rate: Some(BitRate::from_mbps(300)),
            report_after: None,
            send_buffer,
        };
        let mut setup = upwards(wlan(Standard::N, 150, 1, &traffic));
        setup.bss[0].config.stations[0].uplink_queue = packets(1000).into();
        run(&setup).unwrap()
    };
    let [without, with] = [None, Some(Bytes(92 * 1_500))].map(run_with);
    let drops = |outcome: &RunOutcome| outcome.bss[0].stations[1].counters.queue_drops;
    assert!(drops(&without) > 1_000 && drops(&with) == 0, "{} and {}", drops(&without), drops(&with));
    assert!((goodput_mbps(&with) / goodput_mbps(&without) - 1.0).abs() < 0.01);
    assert!(median_wait_us(&with) * 5 < median_wait_us(&without));
}

#[test]
fn downloads_are_as_without() {
    let download = |small_queues| {
        let config = tcp::Config { small_queues, ..tcp::Config::default() };
        run(&wlan(Standard::N, 150, 2, &bulk(config))).unwrap().digest
    };
    assert_eq!(download(None), download(Some(Duration::from_millis(1))));
}

/// Twenty stations with queues of 64 packets: without the limit a third of what they send is lost in their own queues.
#[test]
fn tack_loses_nothing_in_its_own_queue() {
    let run_with = |own_queue| {
        let config = tack::Config { own_queue, ..tack::Config::default() };
        let mut setup = upwards(wlan(Standard::N, 150, 20, &over_tack(config)));
        for station in &mut setup.bss[0].config.stations {
            station.uplink_queue = packets(64).into();
        }
        let outcome = run(&setup).unwrap();
        let drops =
            outcome.bss[0].stations[1..].iter().map(|station| station.counters.queue_drops).sum::<u64>();
        (goodput_mbps(&outcome), drops)
    };
    let (limited, unlimited) = (run_with(None), run_with(Some(OwnQueue { burst: 2, most: u32::MAX })));
    println!("limited {limited:?}, unlimited {unlimited:?}");
    assert_eq!(limited.1, 0);
    assert!(unlimited.1 > 10_000);
    assert!(limited.0 > 1.05 * unlimited.0);
}

/// A queue shorter than an aggregate, one where nothing is aggregated, both directions at once, and losses: no sender waits for ever.
#[test]
fn tack_waits_for_no_queue_for_ever() {
    for (standard, mbps, room) in [(Standard::N, 150, 4), (Standard::N, 150, 64), (Standard::A, 54, 64)] {
        let mut setup = upwards(wlan(standard, mbps, 2, &over_tack(tack::Config::default())));
        setup.flows[0] =
            FlowSetup { source: setup.flows[0].sink, sink: setup.flows[0].source, ..setup.flows[0].clone() };
        setup.sample_interval = Some(Duration::from_millis(10));
        for station in &mut setup.bss[0].config.stations {
            station.uplink_queue = packets(room).into();
            station.uplink_loss = Loss::Bernoulli(Ratio::from_fraction(0.05).unwrap());
            station.link_ack_loss = station.uplink_loss.clone();
        }
        let outcome = run(&setup).unwrap();
        for flow in &outcome.flows {
            assert!(flow.goodput_bps(outcome.measured) > 5e6, "{standard:?} {room}");
        }
    }
}

/// A server's first hop is a wire, and ACKs are not limited.
#[test]
fn tack_downloads_are_as_without() {
    let download = |own_queue| {
        let config = tack::Config { own_queue, ..tack::Config::default() };
        run(&wlan(Standard::N, 150, 2, &over_tack(config))).unwrap().digest
    };
    assert_eq!(download(None), download(Some(OwnQueue { burst: 0, most: 1 })));
}

/// Alone, a station has all it can carry: between two ACKs it sends more than its source keeps ahead.
#[test]
fn a_tack_upload_alone_is_as_fast_as_without() {
    let goodput = |own_queue| {
        let config = tack::Config { own_queue, ..tack::Config::default() };
        let mut setup = upwards(wlan(Standard::Ac, 780, 1, &over_tack(config)));
        let wire = pipe(BitRate::from_mbps(2_000), Duration::from_millis(1), packets(1_000), Loss::None);
        for link in &mut setup.wired {
            (link.forward, link.backward) = (wire.clone(), wire.clone());
        }
        goodput_mbps(&run(&setup).unwrap())
    };
    let (limited, unlimited) = (goodput(None), goodput(Some(OwnQueue { burst: 0, most: u32::MAX })));
    println!("{limited} {unlimited}");
    assert!(limited > 0.99 * unlimited);
}

/// A Block Ack may carry 127 ACKs. What each provokes is in the queue when the next one asks how much lies there. Where it was
/// not, a connection put all that 127 ACKs allow into its queue, which lost a part: half of the goodput over a long path.
#[test]
fn acks_from_one_block_ack_do_not_fill_a_queue_beyond_the_limit() {
    let config = tcp::Config {
        congestion: Algorithm::CUBIC.into(),
        small_queues: Some(Duration::from_millis(8)),
        receive_buffer: Bytes(64 << 20),
        send_buffer: Bytes(64 << 20),
        ..tcp::Config::default()
    };
    let mut setup = upwards(wlan(Standard::Ax, 1_201, 1, &bulk(config)));
    let wire = pipe(BitRate::from_mbps(2_000), Duration::from_millis(40), packets(10_000), Loss::None);
    (setup.wired[0].forward, setup.wired[0].backward) = (wire.clone(), wire);
    speak_hack(&mut setup, hack::Config::default());
    let outcome = run(&setup).unwrap();
    let station = &outcome.bss[0].stations[1];
    // A connection without a pacer has 1 MiB there at most.
    let most = (1 << 20) / 1_500 + 1;
    println!("{} packets at most, {:.0} Mb/s", station.queue_peak_packets, goodput_mbps(&outcome));
    assert!(
        (most / 2..=most).contains(&station.queue_peak_packets),
        "{} packets",
        station.queue_peak_packets
    );
}
