//! FastACK in a whole world: the access point acknowledges downloads after the Block Ack. Every run checks that it
//! acknowledges nothing that did not arrive, and that its state is consistent.

use crate::common::*;
use tacit_between::fastack::{Config, Counters};
use tacit_between::hack;
use tacit_congestion::Algorithm;
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::Standard;
use tacit_packet::units::{BitRate, Bytes, Duration, HostId, Instant, Ratio};
use tacit_sim::record::FlowOutcome;
use tacit_sim::setup::{ApDriver, ClientDriver, Setup, Traffic, WiredSetup};
use tacit_sim::{RunOutcome, run};
use tacit_tcp as tcp;

fn percent(percent: f64) -> Loss {
    Loss::Bernoulli(Ratio::from_fraction(percent / 100.0).unwrap())
}

fn with(mut setup: Setup) -> Setup {
    setup.bss[0].access_point.driver = ApDriver::FastAck(Config::USUAL);
    setup
}

fn agent(outcome: &RunOutcome) -> Counters {
    outcome.bss[0].stations[0].driver.fastack().unwrap()
}

/// Bytes delivered in order, over the whole run.
fn delivered(outcome: &RunOutcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.delivered_total.0).sum()
}

/// Mean of the senders' smoothed round-trip times.
fn srtt_us(outcome: &RunOutcome) -> u64 {
    let times = outcome.flows.iter().map(|flow| flow.sender.unwrap().srtt.unwrap().as_micros());
    times.sum::<u64>() / outcome.flows.len() as u64
}

#[test]
fn senders_hear_sooner_and_of_no_more() {
    for (standard, mbps, clients) in [(Standard::N, 300, 1), (Standard::N, 300, 5), (Standard::Ac, 390, 2)] {
        for congestion in [Algorithm::CUBIC, Algorithm::BBR] {
            let config = tcp::Config { congestion: congestion.into(), ..tcp::Config::default() };
            let both = |config| {
                let setup = wlan(standard, mbps, clients, &bulk(config));
                (run(&setup).unwrap(), run(&with(setup)).unwrap())
            };
            let (stock, fast) = both(config);
            // With two packets in flight: a queue would hide how soon an ACK comes, and CUBIC fills it either way.
            let (stock_two, fast_two) = both(tcp::Config { send_buffer: Bytes(3_000), ..config });
            let what = format!("{standard:?} {clients} {congestion:?}");
            let counters = agent(&fast);
            println!(
                "{what}: {} -> {} Mb/s, round trip {} -> {} us, {counters:?}",
                delivered(&stock) * 8 / 4_000_000,
                delivered(&fast) * 8 / 4_000_000,
                srtt_us(&stock_two),
                srtt_us(&fast_two),
            );
            assert!(counters.forged_acks > 1_000 && counters.suppressed_acks > 1_000, "{what}: {counters:?}");
            assert_eq!(counters.abandoned_flows + counters.uncached_segments, 0, "{what}");
            assert!(srtt_us(&fast_two) < srtt_us(&stock_two), "{what}");
            // The client still sends its ACKs, so no airtime is saved, and little is gained or lost.
            assert!(delivered(&fast) * 100 > delivered(&stock) * 95, "{what}");
        }
    }
}

#[test]
fn a_short_queue_runs_dry_less_often() {
    let mut setup = wlan(Standard::N, 300, 1, &bulk(tcp::Config::default()));
    setup.bss[0].config.stations[0].downlink_queue = packets(32).into();
    let stock = run(&setup).unwrap();
    let fast = run(&with(setup)).unwrap();
    println!("{} -> {} bytes", delivered(&stock), delivered(&fast));
    assert!(delivered(&fast) * 100 > delivered(&stock) * 115);
}

#[test]
fn losses_in_the_air_are_repaired_by_the_link_or_the_sender() {
    for (retry_limit, loss) in [(7, 20.0), (1, 10.0), (0, 3.0)] {
        let mut setup = wlan(Standard::N, 300, 2, &bulk(tcp::Config::default()));
        setup.bss[0].config.retry_limit = retry_limit;
        for station in &mut setup.bss[0].config.stations {
            station.downlink_loss = percent(loss);
            station.uplink_loss = percent(loss);
            station.link_ack_loss = percent(loss / 2.0);
        }
        let stock = run(&setup).unwrap();
        let fast = run(&with(setup)).unwrap();
        let resent = |flow: &FlowOutcome| flow.sender.unwrap().packets_retransmitted;
        let all = |outcome: &RunOutcome| outcome.flows.iter().map(resent).sum::<u64>();
        println!(
            "retry limit {retry_limit}, {loss} %: {} -> {} bytes, {} -> {} sent again, {:?}",
            delivered(&stock),
            delivered(&fast),
            all(&stock),
            all(&fast),
            agent(&fast)
        );
        assert!(delivered(&fast) * 10 > delivered(&stock) * 9);
    }
}

/// A client whose host is behind a wire after its NIC; the wire loses packets that the NIC has acknowledged.
fn lossy_behind_the_nic(loss: f64, size: Option<Bytes>, config: tcp::Config) -> Setup {
    let mut setup = wlan(Standard::N, 300, 1, &Traffic::Connection { config: config.into(), size });
    setup.hosts.push("behind".into());
    let behind = HostId(setup.hosts.len() as u32 - 1);
    let forward = pipe(BitRate::from_mbps(1_000), Duration::from_micros(10), packets(1_000), percent(loss));
    let backward = pipe(BitRate::from_mbps(1_000), Duration::from_micros(10), packets(1_000), Loss::None);
    setup.wired.push(WiredSetup { a: client(0), b: behind, forward, backward });
    setup.flows[0].sink = behind;
    setup.measure_from = Instant::ZERO;
    setup.duration = Duration::from_secs(10);
    setup
}

#[test]
fn losses_behind_the_nic_come_from_the_cache() {
    for sack in [true, false] {
        let config = tcp::Config { sack, ..tcp::Config::default() };
        let size = Some(Bytes(20_000_000));
        let setup = lossy_behind_the_nic(1.0, size, config);
        let outcome = run(&with(setup)).unwrap();
        let (flow, counters) = (&outcome.flows[0], agent(&outcome));
        println!("sack {sack}: {:?}, {counters:?}", flow.completed_at);
        assert_eq!(flow.delivered_total, Bytes(20_000_000));
        assert!(counters.local_retransmissions > 20, "{counters:?}");
        // Without SACK a duplicate ACK caused by a copy cannot always be distinguished from others.
        let most = if sack { 0 } else { 3 };
        assert!(flow.sender.unwrap().packets_retransmitted <= most, "the sender never hears of it");
    }
}

#[test]
fn even_the_last_segments_are_repaired() {
    // A third of all packets is lost behind the NIC; short streams end in silence.
    for seed in 1..20 {
        let mut setup = lossy_behind_the_nic(33.0, Some(Bytes(20_000)), tcp::Config::default());
        setup.seed = seed;
        setup.duration = Duration::from_secs(60);
        let outcome = run(&with(setup)).unwrap();
        assert!(outcome.flows[0].completed_at.is_some(), "seed {seed}: {:?}", agent(&outcome));
    }
}

#[test]
fn small_windows_of_clients_are_never_overrun() {
    for receive_buffer in [5_000, 20_000, 65_535] {
        let config = tcp::Config { receive_buffer: Bytes(receive_buffer), ..tcp::Config::default() };
        let stock = run(&wlan(Standard::N, 150, 1, &bulk(config))).unwrap();
        let fast = run(&with(wlan(Standard::N, 150, 1, &bulk(config)))).unwrap();
        let refused = fast.flows[0].receiver.unwrap().dropped_bytes;
        println!("{receive_buffer}: {} -> {} bytes", delivered(&stock), delivered(&fast));
        assert_eq!(refused, 0, "with a buffer of {receive_buffer}");
        assert!(delivered(&fast) * 100 > delivered(&stock) * 97);
    }
}

#[test]
fn uploads_and_other_transports_are_left_alone() {
    let mut setup = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    for flow in &mut setup.flows {
        std::mem::swap(&mut flow.source, &mut flow.sink);
    }
    setup.flows[1].traffic = saturating(1_500);
    let stock = run(&setup).unwrap();
    let fast = run(&with(setup)).unwrap();
    let counters = agent(&fast);
    assert_eq!((counters.forged_acks, counters.suppressed_acks, counters.raised_acks), (0, 0, 0));
    assert_eq!(delivered(&stock), delivered(&fast));
}

#[test]
fn two_clients_of_one_access_point_are_served_both_ways() {
    let mut setup = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    setup.flows.truncate(1);
    (setup.flows[0].source, setup.flows[0].sink) = (client(1), client(0));
    let outcome = run(&with(setup)).unwrap();
    assert!(agent(&outcome).forged_acks > 1_000 && delivered(&outcome) > 10_000_000);
}

#[test]
fn an_agent_whose_clients_walk_away_owes_nothing_in_the_end() {
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut setup = wlan(Standard::N, 150, 2, &bulk(tcp::Config::default()));
    setup.duration = Duration::from_secs(12);
    setup.sample_interval = Some(Duration::from_millis(500));
    setup.bss[0].config.stations[0].away = Some((at(3_000), at(5_000)));
    setup.bss[0].config.stations[1].away = Some((at(4_000), at(99_000)));
    let outcome = run(&with(setup)).unwrap();
    let late = |ms| {
        let points = outcome.series.iter().filter(|point| point.flow.0 == 0 && point.at <= at(ms));
        points.map(|point| point.delivered_total).max().unwrap()
    };
    assert!(late(12_000) > late(8_000), "the one that came back goes on: {:?}", agent(&outcome));
}

#[test]
fn equal_setups_give_equal_runs_with_every_packet_encoded_too() {
    let setup = || {
        let mut setup = with(wlan(Standard::N, 150, 2, &bulk(tcp::Config::default())));
        setup.bss[0].config.stations[0].downlink_loss = percent(5.0);
        setup
    };
    let wire = Setup { wire: true, ..setup() };
    assert_eq!(run(&setup()).unwrap().digest, run(&wire).unwrap().digest);
}

/// An access point either forges ACKs or appends them; its clients learn at association that it does not have TCP/HACK.
#[test]
fn clients_that_speak_hack_send_packets_to_an_access_point_that_gives_acks() {
    let stock = with(wlan(Standard::N, 150, 2, &bulk(tcp::Config::default())));
    let mut speaking = stock.clone();
    for client in &mut speaking.bss[0].clients {
        client.driver = ClientDriver::Hack(hack::Config::default());
    }
    let [stock, speaking] = [stock, speaking].map(|setup| run(&setup).unwrap());
    let client = &speaking.bss[0].stations[1];
    assert_eq!(client.driver.hack(), Some(hack::Counters::default()));
    assert_eq!((client.counters.augmented_link_acks, delivered(&speaking)), (0, delivered(&stock)));
    assert_eq!(agent(&speaking), agent(&stock));
}
