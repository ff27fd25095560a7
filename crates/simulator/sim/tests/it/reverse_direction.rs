//! Reverse direction grants in whole worlds: TCP's gain if its ACKs need no channel access of their own.

use crate::common::*;
use tacit_between::hack;
use tacit_link::wifi::ReverseDirection;
use tacit_link::wifi::phy::Standard;
use tacit_packet::units::{BitRate, Duration};
use tacit_sim::setup::{Setup, Traffic};
use tacit_sim::{RunError, RunOutcome, run};
use tacit_tcp as tcp;

const GRANTED: ReverseDirection = granted(0, ReverseDirection::USUAL_LIMIT);

const fn granted(turnaround_us: u64, limit: Duration) -> ReverseDirection {
    ReverseDirection::Granted { turnaround: Duration::from_micros(turnaround_us), limit }
}

/// Downloads at a rate below that of the wire.
fn downloads(
    standard: Standard,
    mbps: u64,
    clients: u32,
    traffic: &Traffic,
    reverse: ReverseDirection,
) -> Setup {
    let mut setup = wlan(standard, mbps, clients, traffic);
    let wire = &mut setup.wired[0];
    for pipe in [&mut wire.forward, &mut wire.backward] {
        *pipe =
            tacit_link::wired::PipeConfig::new(BitRate::from_mbps(2_000), pipe.delay, packets(1_000).into());
    }
    for station in &mut setup.bss[0].config.stations {
        station.downlink_queue = packets(1_000).into();
    }
    setup.bss[0].config.reverse_direction = reverse;
    setup
}

fn goodput_mbps(outcome: &RunOutcome) -> f64 {
    outcome.flows.iter().map(|flow| flow.delivered.0 as f64).sum::<f64>() * 8.0 / 4e6
}

#[test]
fn grants_carry_tcp_further_and_no_further_than_udp() {
    let tcp = bulk(tcp::Config::default());
    for (standard, mbps, clients) in
        [(Standard::N, 150, 1), (Standard::N, 150, 10), (Standard::N, 300, 10), (Standard::N, 600, 10)]
    {
        let run = |traffic: &Traffic, reverse| {
            let outcome = run(&downloads(standard, mbps, clients, traffic, reverse)).unwrap();
            (goodput_mbps(&outcome), outcome)
        };
        let (stock, _) = run(&tcp, ReverseDirection::Off);
        let (rdg, outcome) = run(&tcp, GRANTED);
        let (udp, _) = run(&saturating(1_500), ReverseDirection::Off);
        let gain = rdg / stock - 1.0;
        println!(
            "{mbps} Mb/s, {clients}: stock {stock:.1}, rdg {rdg:.1} ({:+.1} %), udp {udp:.1}",
            gain * 100.0
        );
        assert!(gain > 0.03 && rdg < udp, "{mbps} Mb/s: stock {stock}, rdg {rdg}, udp {udp}");
        // Only the access point needs to win the channel.
        assert!(
            outcome.bss[0].collisions() * 100 < outcome.bss[0].accesses(),
            "{}",
            outcome.bss[0].collisions()
        );
        let clients = &outcome.bss[0].stations[1..];
        let used: u64 = clients.iter().map(|client| client.counters.reverse_ppdus).sum();
        let sent: u64 = clients.iter().map(|client| client.counters.data_ppdus).sum();
        assert!(used * 100 > sent * 95, "{used} of {sent}");
    }
}

#[test]
fn with_errors_they_gain_too() {
    let lossy = |reverse| {
        let mut setup = downloads(Standard::N, 150, 1, &bulk(tcp::Config::default()), reverse);
        let loss =
            tacit_link::loss::Loss::Bernoulli(tacit_packet::units::Ratio::from_fraction(0.05).unwrap());
        for station in &mut setup.bss[0].config.stations {
            (station.downlink_loss, station.uplink_loss) = (loss.clone(), loss.clone());
        }
        goodput_mbps(&run(&setup).unwrap())
    };
    let (stock, rdg) = (lossy(ReverseDirection::Off), lossy(GRANTED));
    assert!(rdg > 1.03 * stock, "{stock} and {rdg}");
}

#[test]
fn acks_that_come_too_late_for_a_grant_contend() {
    let accesses = |turnaround_us| {
        let reverse = granted(turnaround_us, ReverseDirection::USUAL_LIMIT);
        let outcome = run(&downloads(Standard::N, 150, 1, &bulk(tcp::Config::default()), reverse)).unwrap();
        let client = outcome.bss[0].stations[1].counters;
        client.data_ppdus - client.reverse_ppdus
    };
    // The Block Ack ends 52 us after the data; a host's ACK must be available by then.
    assert!(accesses(52) < 20 && accesses(53) > 200, "{} and {}", accesses(52), accesses(53));
}

#[test]
fn hack_leaves_grants_to_what_does_not_ride() {
    let hack = |reverse| {
        let mut setup = downloads(Standard::N, 150, 2, &bulk(tcp::Config::default()), reverse);
        speak_hack(&mut setup, hack::Config::default());
        run(&setup).unwrap()
    };
    let (alone, both) = (hack(ReverseDirection::Off), hack(GRANTED));
    let share = goodput_mbps(&both) / goodput_mbps(&alone);
    assert!((0.95..1.05).contains(&share), "{share}");
    let acks = both.flows[0].hack.unwrap();
    assert!(acks.compressed_acks > 10 * acks.native_acks, "{acks:?}");
}

#[test]
fn bytes_and_structs_say_the_same() {
    let mut setup = downloads(Standard::N, 150, 3, &bulk(tcp::Config::default()), GRANTED);
    setup.duration = Duration::from_secs(3);
    let digest = |setup: &Setup| run(setup).unwrap().digest;
    let structs = digest(&setup);
    assert_eq!(structs, digest(&setup));
    setup.wire = true;
    assert_eq!(structs, digest(&setup));
}

#[test]
fn without_an_ht_control_field_nobody_grants() {
    for standard in [Standard::A, Standard::B, Standard::G] {
        let mut setup = wlan(standard, usual_mbps(standard), 1, &bulk(tcp::Config::default()));
        setup.bss[0].config.reverse_direction = GRANTED;
        assert!(matches!(run(&setup), Err(RunError::Setup(_))), "{standard:?}");
    }
}
