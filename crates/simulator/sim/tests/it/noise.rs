//! Noise on the channel: its effect on goodput, and TCP/HACK's robustness.

use crate::common::*;
use tacit_between::hack;
use tacit_link::wifi::phy::{Mode, Standard};
use tacit_link::wifi::{Decibels, PathLoss, Propagation};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_sim::setup::Traffic;
use tacit_sim::{RunOutcome, Setup, run};
use tacit_tcp as tcp;

fn noisy(standard: Standard, mbps: u64, snr: Decibels, speaks_hack: bool) -> Setup {
    let mut setup = wlan(standard, mbps, 1, &bulk(tcp::Config::default()));
    setup.bss[0].config.stations[0].snr = Some(snr);
    setup.duration = Duration::from_secs(4);
    setup.sample_interval = Some(Duration::from_millis(100));
    if speaks_hack {
        speak_hack(&mut setup, hack::Config::default());
    }
    setup
}

fn goodput_mbps(outcome: &RunOutcome) -> f64 {
    outcome.goodput_bps() / 1e6
}

#[test]
fn goodput_falls_with_distance() {
    let indoors = Propagation {
        path_loss: PathLoss::LogDistance { exponent: 3.5, reference_m: 1.0 },
        ..Propagation::default()
    };
    let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).unwrap();
    for speaks_hack in [false, true] {
        let at = |distance_m: f64| {
            let snr = indoors.snr(&mode, distance_m);
            (distance_m, goodput_mbps(&run(&noisy(Standard::N, 150, snr, speaks_hack)).unwrap()))
        };
        let curve = [1.0, 11.0, 11.4, 11.6, 11.8, 12.0, 14.0, 16.0].map(at);
        // From a link without losses to a dead link; without losses, the random backoffs decide.
        assert!(curve.windows(2).all(|pair| pair[1].1 <= pair[0].1 * 1.01), "{curve:?}");
        assert!(curve[0].1 > 100.0 && curve[7].1 < 1.0, "{curve:?}");
        let between = curve.iter().filter(|(_, mbps)| (10.0..100.0).contains(mbps)).count();
        assert!(between >= 2, "{curve:?}");
    }
}

/// Every invariant holds, in particular no frame of compressed ACKs fails and no ACK is invented.
#[test]
fn hack_stands_every_snr() {
    // SNRs around those that each rate needs; ACKs of the slowest rates are sent at 6 Mb/s and are lost, too.
    let cases = [
        (Standard::N, 15, 2_500..4_500),
        (Standard::N, 60, 11_500..14_000),
        (Standard::N, 150, 21_500..24_500),
        (Standard::A, 6, 2_000..4_000),
        (Standard::A, 24, 11_000..13_500),
        (Standard::A, 54, 20_500..23_000),
    ];
    for (standard, mbps, snrs) in cases {
        for snr in snrs.step_by(500).map(Decibels::from_millis) {
            let setup = Setup { wire: true, ..noisy(standard, mbps, snr, true) };
            let outcome = run(&setup).unwrap_or_else(|error| panic!("{mbps} Mb/s, {snr}: {error}"));
            let failed =
                outcome.bss[0].stations.iter().map(|station| station.driver.hack().unwrap().failed_frames);
            assert_eq!(failed.sum::<u64>(), 0, "{mbps} Mb/s, {snr}");
        }
    }
}

#[test]
fn a_file_arrives_whole_through_noise() {
    let size = Bytes(3_000_000);
    for (mbps, snr_db) in [(15, 3.0), (150, 22.5)] {
        let mut setup = noisy(Standard::N, mbps, Decibels::from_db(snr_db), true);
        setup.duration = Duration::from_secs(60);
        setup.measure_from = Instant::ZERO;
        let Traffic::Connection { size: bulk, .. } = &mut setup.flows[0].traffic else {
            panic!("a TCP flow")
        };
        *bulk = Some(size);
        let outcome = run(&setup).unwrap();
        let flow = &outcome.flows[0];
        assert_eq!(flow.delivered_total, size, "{mbps} Mb/s");
        assert!(flow.completed_at.is_some() && flow.lasted < setup.duration);
        let access_point = &outcome.bss[0].stations[0];
        assert!(access_point.counters.delivered_after_retry + access_point.counters.missed_link_acks > 0);
    }
}

/// At 15 Mb/s with control frames at 6 Mb/s, headers, requests and acknowledgments are lost, too.
#[test]
fn noise_takes_control_frames() {
    let outcome = run(&noisy(Standard::N, 15, Decibels::from_db(2.0), false)).unwrap();
    let counters = outcome.bss[0].stations[0].counters;
    assert!(counters.missed_link_acks > 0 && counters.block_ack_requests > 0, "{counters:?}");
    // There are more requests than lost Block Acks, so some requests or responses were lost as well.
    assert!(
        outcome.bss[0].stations[1].counters.link_acks < counters.data_ppdus + counters.block_ack_requests
    );
}

#[test]
fn a_strong_signal_is_no_noise() {
    let strong = noisy(Standard::N, 150, Decibels::from_db(60.0), true);
    let mut perfect = strong.clone();
    perfect.bss[0].config.stations[0].snr = None;
    assert_eq!(run(&strong).unwrap().digest, run(&perfect).unwrap().digest);
}
