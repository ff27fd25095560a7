//! Equal setups give equal runs; flows that are not affected by a change give equal results.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use common::{bulk, speak_hack, wlan};
use tacit_between::hack;
use tacit_link::loss::Loss;
use tacit_link::wifi::StationId;
use tacit_link::wifi::phy::Standard;
use tacit_packet::IpVersion;
use tacit_packet::units::{Bytes, Duration, Instant, Ratio};
use tacit_sim::setup::Traffic;
use tacit_sim::{Observer, Setup, run, run_observed};
use tacit_tack_proto::{self as tack, LossReports};
use tacit_tcp as tcp;

fn lossy_wlan(clients: u32) -> Setup {
    let mut setup = wlan(Standard::N, 150, clients, &bulk(tcp::Config::default()));
    setup.duration = Duration::from_secs(3);
    for station in &mut setup.bss[0].config.stations {
        station.downlink_loss = Loss::Bernoulli(Ratio::from_fraction(0.05).unwrap());
        station.uplink_loss = Loss::Bernoulli(Ratio::from_fraction(0.02).unwrap());
    }
    setup
}

#[test]
fn a_run_repeats_to_the_bit_in_debug_and_release() {
    let setup = lossy_wlan(3);
    let digest = run(&setup).unwrap().digest;
    assert_eq!(run(&setup).unwrap().digest, digest);
    // The digest is the same in debug and release. It changes whenever behaviour does; if a change that should not
    // affect behaviour changes it, that change is wrong.
    assert_eq!(format!("{digest:016x}"), include_str!("known_digest.txt").trim());
    let other = Setup { seed: 2, ..setup };
    assert_ne!(run(&other).unwrap().digest, digest);
}

#[track_caller]
fn same_through_bytes(setup: &Setup) {
    let wire = Setup { wire: true, ..setup.clone() };
    assert_eq!(run(setup).unwrap().digest, run(&wire).unwrap().digest);
}

#[test]
fn packets_sent_through_bytes_make_the_same_run() {
    same_through_bytes(&lossy_wlan(2));
}

#[test]
fn tack_sent_through_bytes_makes_the_same_run() {
    let usual = tack::Config::default();
    // Windows that close, and another kind of feedback.
    let other = tack::Config {
        ip: IpVersion::V6,
        ecn: true,
        receive_buffer: Bytes(20_000),
        max_receive_buffer: Bytes(20_000),
        loss_reports: LossReports::WithTack,
        ..usual
    };
    let mut setup = lossy_wlan(2);
    for (flow, config) in setup.flows.iter_mut().zip([usual, other]) {
        flow.traffic = Traffic::Connection { config: config.into(), size: None };
    }
    same_through_bytes(&setup);
    speak_hack(&mut setup, hack::Config::default());
    same_through_bytes(&setup);
}

#[test]
fn watching_changes_nothing() {
    struct Count(u64);
    impl Observer for Count {
        fn on_air(&mut self, _: usize, _: &tacit_link::AirFrame<tacit_packet::Packet>) {
            self.0 += 1;
        }
    }
    let setup = lossy_wlan(2);
    let mut count = Count(0);
    let watched = run_observed(&setup, &mut count).unwrap();
    assert_eq!(watched.digest, run(&setup).unwrap().digest);
    assert!(count.0 > 10_000, "{}", count.0);
}

/// Samples are taken between events: the queues are not empty at any of them, and sampling changes no event of the run.
#[test]
fn looking_changes_nothing() {
    #[derive(Default)]
    struct Looks(Vec<(u64, u64)>, usize);
    impl Observer for Looks {
        fn on_air(&mut self, _: usize, _: &tacit_link::AirFrame<tacit_packet::Packet>) {}
        fn looks_every(&self) -> Option<Duration> {
            Some(Duration::from_micros(700))
        }
        fn on_flow(&mut self, point: &tacit_sim::record::SeriesPoint) {
            if point.flow.0 == 0 {
                self.0.push((point.at.as_nanos(), point.delivered_total.0));
            }
        }
        fn on_station(&mut self, _: Instant, _: usize, station: StationId, packets: usize) {
            if station == StationId::AP {
                self.1 = self.1.max(packets);
            }
        }
    }
    let setup = lossy_wlan(2);
    let mut looks = Looks::default();
    let watched = run_observed(&setup, &mut looks).unwrap();
    assert_eq!(watched.digest, run(&setup).unwrap().digest);
    assert_eq!(looks.0.len() as u64, setup.duration.as_nanos() / 700_000);
    for (index, (at, delivered)) in looks.0.iter().enumerate() {
        assert_eq!(*at, (index as u64 + 1) * 700_000);
        assert!(index == 0 || *delivered >= looks.0[index - 1].1);
    }
    assert!(looks.0.last().unwrap().1 > 0 && looks.1 > 10, "{} packets", looks.1);
}

#[test]
fn an_idle_station_moves_nobodys_draws() {
    let small = lossy_wlan(2);
    let mut large = lossy_wlan(3);
    large.flows.pop();
    let (small, large) = (run(&small).unwrap(), run(&large).unwrap());
    for (a, b) in small.flows.iter().zip(&large.flows) {
        assert_eq!(a.delivered_total, b.delivered_total);
        assert_eq!(a.sender, b.sender);
    }
    assert_eq!(small.bss[0].airtime, large.bss[0].airtime);
}
