//! A reconstituted ACK is delivered by its bytes alone: without the oracle, which remembers the sent ACKs, every run
//! gives the same result. (With it, an ACK that no host sent ends the run.)

use crate::common::*;
use tacit_between::hack::{self, Coding, Variant};
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{
    AccessCategory, HackCarrier, HackRoom, MuAcknowledgment, MuEdca, OfdmaConfig, Triggers,
};
use tacit_packet::udp::ReportAfter;
use tacit_packet::units::{Bytes, Duration, Instant, Ratio};
use tacit_packet::{IpVersion, Packet};
use tacit_sim::setup::Traffic;
use tacit_sim::{RunOutcome, Setup, World, run};
use tacit_tcp as tcp;

/// The variants and codings that schemes offer.
const SCHEMES: [(Variant, Coding); 4] = [
    (Variant::MoreData, Coding::PerAck),
    (Variant::MoreData, Coding::Batch),
    (Variant::Opportunistic, Coding::PerAck),
    (Variant::Timer(Duration::from_millis(20)), Coding::PerAck),
];

fn hack_wlan(standard: Standard, clients: u32, ip: IpVersion, (variant, coding): (Variant, Coding)) -> Setup {
    let config = tcp::Config { ip, ..tcp::Config::default() };
    let mut setup = wlan(standard, usual_mbps(standard), clients, &bulk(config));
    let driver = hack::Config { variant, coding, ..hack::Config::default() };
    speak_hack(&mut setup, driver);
    setup.duration = Duration::from_millis(1_500);
    setup.measure_from = Instant::ZERO;
    setup.sample_interval = Some(Duration::from_millis(100));
    setup
}

fn lose(setup: &mut Setup) {
    let percent = |percent: f64| Loss::Bernoulli(Ratio::from_fraction(percent / 100.0).unwrap());
    for station in &mut setup.bss[0].config.stations {
        (station.downlink_loss, station.uplink_loss) = (percent(8.0), percent(3.0));
        station.link_ack_loss = percent(5.0);
    }
}

/// Checks that a run is the same with and without the oracle; returns its outcome.
#[track_caller]
fn needs_no_oracle(setup: &Setup, what: &str) -> RunOutcome {
    let watched = run(setup).unwrap_or_else(|error| panic!("{what}: {error}"));
    let alone = World::<Packet>::new(setup, None).unwrap().without_oracle().run().unwrap();
    assert_eq!(watched.digest, alone.digest, "{what}");
    assert_eq!(format!("{watched:?}"), format!("{alone:?}"), "{what}");
    alone
}

fn rode(outcome: &RunOutcome) -> u64 {
    let drivers = outcome.bss[0].stations.iter().filter_map(|station| station.driver.hack());
    drivers.map(|driver| driver.compressed_acks).sum()
}

#[test]
fn every_scheme_delivers_by_bytes_alone_for_one_ten_and_twenty_clients_with_losses_and_without() {
    for scheme in SCHEMES {
        let mut of_scheme = 0;
        for (clients, standard) in [(1, Standard::N), (10, Standard::A), (20, Standard::N)] {
            for losses in [false, true] {
                // IPv6 for the run of 10 without losses, and for those of other sizes with losses.
                let ip = if losses == (clients == 10) { IpVersion::V4 } else { IpVersion::V6 };
                let mut setup = hack_wlan(standard, clients, ip, scheme);
                if losses {
                    lose(&mut setup);
                }
                let what = format!("{scheme:?}, {clients} clients, losses: {losses}, {ip:?}");
                let outcome = needs_no_oracle(&setup, &what);
                // If ten stations contend, most ACKs that are also queued are sent as packets.
                assert!(rode(&outcome) > 10, "{what}: {} ACKs rode", rode(&outcome));
                of_scheme += rode(&outcome);
            }
        }
        assert!(of_scheme > 1_000, "{scheme:?}: {of_scheme} ACKs rode");
    }
}

/// Each station has a driver per category; ACKs of uploads are appended to the access point's link-layer ACKs.
#[test]
fn categories_and_directions_make_no_difference() {
    for scheme in SCHEMES {
        let mut setup = hack_wlan(Standard::N, 2, IpVersion::V4, scheme);
        setup.bss[0].config.categories =
            vec![AccessCategory::Background, AccessCategory::BestEffort, AccessCategory::Video];
        for (flow, category) in setup.flows.clone().into_iter().zip([AccessCategory::Video; 2]) {
            let (source, sink) = (flow.sink, flow.source);
            setup.flows.push(tacit_sim::setup::FlowSetup { source, sink, access_category: category, ..flow });
        }
        lose(&mut setup);
        let outcome = needs_no_oracle(&setup, &format!("{scheme:?}"));
        assert!(rode(&outcome) > 100, "{scheme:?}: {} ACKs rode", rode(&outcome));
        let of_flows = outcome.flows.iter().map(|flow| flow.hack.unwrap().compressed_acks);
        assert!(of_flows.filter(|rode| *rode > 0).count() >= 3, "{scheme:?}");
    }
}

/// Packets other than TCP's are appended unchanged.
#[test]
fn reports_of_a_sink_need_none_either() {
    let reporting = Traffic::Udp {
        ip: IpVersion::V6,
        payload: Bytes(1_400),
        rate: None,
        report_after: Some(ReportAfter::Time(Duration::from_millis(5))),
        send_buffer: None,
    };
    let mut setup = hack_wlan(Standard::N, 2, IpVersion::V4, SCHEMES[0]);
    setup.flows[0].traffic = reporting;
    lose(&mut setup);
    let outcome = needs_no_oracle(&setup, "reports");
    let reports = outcome.flows[0].reports.unwrap();
    assert!(reports.reported_datagrams > 1_000, "{reports:?}");
}

/// In responses to triggers, inside Block Acks or after them, with too little room, exactly enough, or a forecast: ACKs
/// that do not fit wait, lost ones are repeated, and none is invented.
#[test]
fn answers_to_triggers_need_none_either() {
    let kinds = MuAcknowledgment::ALL.into_iter().flat_map(|acknowledgment| {
        let rooms = [HackRoom::Forecast, HackRoom::Fixed(30), HackRoom::Fixed(0)];
        let carriers = [HackCarrier::BlockAck, HackCarrier::OwnMpdu];
        let each = move |room| carriers.map(|carrier| (acknowledgment, room, carrier));
        rooms.into_iter().flat_map(each)
    });
    let mut all = 0;
    for (acknowledgment, hack_room, hack_carrier) in kinds {
        for scheme in SCHEMES {
            let mut setup = hack_wlan(Standard::Ax, 5, IpVersion::V4, scheme);
            setup.duration = Duration::from_millis(400);
            setup.bss[0].config.ofdma = Some(OfdmaConfig {
                acknowledgment,
                hack_room,
                hack_carrier,
                triggers: Triggers::AckAware,
                mu_edca: MuEdca::OpenWrt,
                ..OfdmaConfig::USUAL
            });
            lose(&mut setup);
            let what = format!("{scheme:?}, {acknowledgment:?}, {hack_room:?}, {hack_carrier:?}");
            let outcome = needs_no_oracle(&setup, &what);
            let access_point = &outcome.bss[0].stations[0].counters;
            assert!(access_point.shared_parts > 20, "{what}: {} parts", access_point.shared_parts);
            all += rode(&outcome);
        }
    }
    assert!(all > 10_000, "{all} ACKs rode");
}
