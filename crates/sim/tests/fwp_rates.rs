//! One FWP client among nine that acknowledge (section VI-B of the paper), over TCP and with repair.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use common::*;
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{BothWays, LinkAcks};
use tacit_proto::fwp::{Config, repair};
use tacit_proto::tcp::Profile;
use tacit_proto::units::{BitRate, Bytes, Duration, FlowId, Ratio};
use tacit_sim::record::{ApplicationResult, Downloaded};
use tacit_sim::setup::{Application, ApplicationSetup, ClientDriver, Download, Setup};
use tacit_sim::{Outcome, run};

fn percent(percent: f64) -> Loss {
    Loss::Bernoulli(Ratio::from_fraction(percent / 100.0).unwrap())
}

/// Ten downloads at 600 Mb/s over 40 ms; all links lose so many percent, and the first client has FWP.
fn paper(mbps: u64, stock: u32, lost: f64, repair_flows: u32) -> Setup {
    let traffic = bulk(Profile::Linux.config());
    let mut setup = wlan(Standard::N, mbps, 1 + stock, &traffic);
    let bss = &mut setup.bss[0];
    (bss.config.ampdu_mpdus, bss.config.block_ack_window) = (Some(32), 32);
    if std::env::var("CTS").is_ok() { bss.config.protection = tacit_link::wifi::Protection::RtsCts { above: 2000 }; }
    for station in &mut bss.config.stations {
        station.downlink_loss = percent(lost);
        station.downlink_queue = packets(1000).into();
    }
    bss.config.stations[0].link_acks = BothWays { down: LinkAcks::None, up: LinkAcks::Normal };
    bss.clients[0].driver = ClientDriver::Fwp(Config::USUAL);
    let wire = pipe(BitRate::from_mbps(1000), Duration::from_millis(20), packets(5000), Loss::None);
    (setup.wired[0].forward, setup.wired[0].backward) = (wire.clone(), wire);
    let flow = setup.flows[0].clone();
    let first = setup.flows.len() as u32;
    setup.flows.extend(std::iter::repeat_n(flow, repair_flows as usize));
    let download = Download {
        size: None,
        request: Bytes(200),
        head: Bytes(300),
        repair: repair::Config { held_max: 64 << 20, holes_max: 1 << 16, ..repair::Config::default() },
    };
    setup.applications = vec![ApplicationSetup {
        name: "download".to_owned(),
        flows: std::iter::once(FlowId(0)).chain((first..first + repair_flows).map(FlowId)).collect(),
        application: Application::Download(download),
    }];
    setup.duration = Duration::from_secs(12);
    setup.measure_from = tacit_proto::units::Instant::ZERO + Duration::from_secs(std::env::var("FROM").map_or(2, |text| text.parse().unwrap()));
    setup
}

fn downloaded(outcome: &Outcome) -> &Downloaded {
    let ApplicationResult::Download(downloaded) = &outcome.applications[0].result else {
        panic!("a download")
    };
    downloaded
}

#[test]
#[ignore = "an experiment"]
fn probe() {
    let var = |name: &str, usual: f64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let stock = var("STOCK", 9.0) as u32;
    let seconds = var("SECONDS_", 12.0) as u64;
    for lost in std::env::var("LOST").unwrap_or("10 40".into()).split(' ').map(|p| p.parse::<f64>().unwrap()) {
        let mut setup = paper(var("MBPS", 600.0) as u64, stock, lost, var("FLOWS", 16.0) as u32);
        setup.duration = Duration::from_secs(seconds);
        let outcome = run(&setup).unwrap();
        let span = seconds as f64 - var("FROM", 2.0);
        let rate = |octets: Bytes| octets.0 as f64 * 8.0 / 1e6 / span;
        let got = downloaded(&outcome);
        let shim = outcome.bss[0].stations[1].driver.fwp().unwrap();
        let others: f64 = outcome.flows[1..=stock as usize].iter().map(|f| rate(f.delivered)).sum::<f64>() / f64::from(stock.max(1));
        println!("== {lost} %: user {:.1}, others {others:.1}, ratio {:.2}; answers {:.1} heads {:.1} holes {:.1}/s reqs {} short {} delay {:?} held {} fail {:?}",
            rate(got.released), rate(got.released) / others, rate(got.answer_octets), rate(got.head_octets), got.holes, got.repair_requests, got.repeated_repairs,
            (got.repair_delay_us.p50, got.repair_delay_us.p95, got.repair_delay_us.max), got.held_peak.0, got.failure);
        let air = outcome.bss[0].stations[0].counters;
        println!("  air {} {} of which arrived {:.1} Mb/s in the run", air.unacknowledged, air.unacknowledged_arrived, air.unacknowledged_arrived as f64 * 1448.0 * 8.0 / 1e6 / span);
        println!("  shim {shim:?}");
        let main = &outcome.flows[0];
        println!("  main {:?}", main.sender);
        for line in &outcome.flows[stock as usize + 1..] {
            let s = line.sender.as_ref().unwrap();
            if std::env::var("LINES").is_ok() { println!("  line {s:?}"); }
        }
        if std::env::var("STATIONS").is_err() { continue; }
        println!("  station {:?}", outcome.bss[0].stations[1].counters);
        println!("  ap queue {:?}", outcome.bss[0].stations[0].counters);
    }
}
