//! FWP in a whole world: a link without retransmissions, a shim that fills holes, a download that repairs them. Every run
//! checks that no placeholder is handed on and that the shim's books agree.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use common::*;
use tacit_link::loss::Loss;
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{BothWays, LinkAcks};
use tacit_proto::fwp::{Config, Counters, repair};
use tacit_proto::tcp;
use tacit_proto::units::{Bytes, Duration, FlowId, Ratio};
use tacit_sim::record::{ApplicationResult, Downloaded};
use tacit_sim::setup::{Application, ApplicationSetup, ClientDriver, Download, Setup};
use tacit_sim::{Outcome, run};

const REPAIR_FLOWS: u32 = 6;

fn percent(percent: f64) -> Loss {
    Loss::Bernoulli(Ratio::from_fraction(percent / 100.0).unwrap())
}

/// One client, and a download through a link that loses so many percent of what goes down.
fn plain(lost: f64, size: Option<u64>) -> Setup {
    let traffic = bulk(tcp::Config::default());
    let mut setup = wlan(Standard::N, 150, 1, &traffic);
    setup.bss[0].config.stations[0].link_acks = BothWays { down: LinkAcks::None, up: LinkAcks::Normal };
    setup.bss[0].config.stations[0].downlink_loss = percent(lost);
    let flow = setup.flows[0].clone();
    setup.flows.extend(std::iter::repeat_n(flow, REPAIR_FLOWS as usize));
    let download = Download {
        size: size.map(Bytes),
        request: Bytes(200),
        head: Bytes(300),
        repair: repair::Config::default(),
    };
    setup.applications = vec![ApplicationSetup {
        name: "download".to_owned(),
        flows: (0..=REPAIR_FLOWS).map(FlowId).collect(),
        application: Application::Download(download),
    }];
    setup
}

fn with_shim(mut setup: Setup, config: Config) -> Setup {
    setup.bss[0].clients[0].driver = ClientDriver::Fwp(config);
    setup
}

fn shim(outcome: &Outcome) -> Counters {
    outcome.bss[0].stations[1].driver.fwp().unwrap()
}

fn downloaded(outcome: &Outcome) -> &Downloaded {
    let ApplicationResult::Download(downloaded) = &outcome.applications[0].result else {
        panic!("a download")
    };
    downloaded
}

#[test]
fn holes_are_repaired_and_nothing_else_is_handed_on() {
    for lost in [0.0, 0.1, 1.0, 10.0, 20.0, 40.0] {
        let without = run(&plain(lost, None)).unwrap();
        let outcome = run(&with_shim(plain(lost, None), Config::USUAL)).unwrap();
        let (counters, got) = (shim(&outcome), downloaded(&outcome));
        println!(
            "{lost} %: {:.1} Mb/s, TCP alone {:.1}; overhead {:.3} {:.3}\n  {counters:?}\n  {got:?}",
            outcome.flows[0].delivered.0 as f64 * 8.0 / 4e6,
            without.flows[0].delivered.0 as f64 * 8.0 / 4e6,
            got.internet_overhead().unwrap(),
            got.wireless_overhead().unwrap(),
        );
        assert_eq!(got.failure, None);
    }
}

#[test]
fn a_body_is_whole_at_its_end() {
    for settle in [Duration::ZERO, Duration::from_millis(5)] {
        let config = Config { settle, ..Config::USUAL };
        let mut setup = with_shim(plain(10.0, Some(20_000_000)), config);
        setup.duration = Duration::from_secs(20);
        let outcome = run(&setup).unwrap();
        let got = downloaded(&outcome);
        assert_eq!(got.released_total, Bytes(20_000_000), "{got:?}");
        assert!(got.completed_at.is_some() && outcome.flows[0].completed_at == got.completed_at);
        assert!(got.holes > 100, "{got:?}");
    }
}
