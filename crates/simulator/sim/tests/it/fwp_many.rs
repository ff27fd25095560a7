//! Many FWP clients at once, with several downloads each, and at different distances.

use crate::common::fwp::*;
use crate::common::*;
use tacit_between::fwp::Config;
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{Decibels, Protection};
use tacit_packet::Packet;
use tacit_packet::units::{Duration, Instant};
use tacit_sim::record::ApplicationResult;
use tacit_sim::setup::{Setup, Traffic};
use tacit_sim::{RunOutcome, World, run};
use tacit_tcp::Profile;

const CLIENTS: u32 = 20;
const REPAIR_FLOWS: u32 = 8;

/// `per_client` downloads by each of twenty clients that lose 10 % of their frames at 600 Mb/s.
fn many(per_client: u32, traffic: &Traffic) -> Setup {
    let mut setup = wlan(Standard::N, 600, CLIENTS, traffic);
    let each = setup.flows.clone();
    setup.flows.extend((1..per_client).flat_map(|_| each.clone()));
    let config = &mut setup.bss[0].config;
    // The paper's MAC: a lost frame stalls frames that wait for Block Acks.
    (config.ampdu_mpdus, config.block_ack_window) = (Some(32), 32);
    config.protection = Protection::RtsCts { above: 2000 };
    for station in &mut config.stations {
        station.downlink_loss = percent(10.0);
        station.downlink_queue = packets(500).into();
    }
    (setup.duration, setup.measure_from) = (Duration::from_secs(24), Instant::ZERO + Duration::from_secs(8));
    setup
}

fn with_fwp(mut setup: Setup) -> Setup {
    for index in 0..CLIENTS as usize {
        speak_fwp(&mut setup, index, Config::USUAL);
    }
    for index in 0..setup.flows.len() as u32 {
        repair_flow(&mut setup, index, REPAIR_FLOWS, usual_download(None));
    }
    setup
}

/// Throughput of each download in Mb/s.
fn users(outcome: &RunOutcome) -> Vec<f64> {
    let seconds = outcome.measured.as_secs_f64();
    let user = |result: &ApplicationResult| {
        let ApplicationResult::Download(got) = result else { panic!("a download") };
        assert_eq!(got.failure, None);
        got.released.0 as f64 * 8.0 / 1e6 / seconds
    };
    outcome.applications.iter().map(|application| user(&application.result)).collect()
}

/// The total goodput is between that without FWP and that of datagrams without acknowledgments, and is shared fairly.
#[test]
fn twenty_clients_with_fwp_share_more_than_without() {
    let mut datagrams = many(1, &saturating(1500));
    (0..CLIENTS as usize).for_each(|index| send_once(&mut datagrams, index));
    let bound = run(&datagrams).unwrap().goodput_bps() / 1e6;
    let tcp = bulk(Profile::Linux.config());
    for per_client in [1, 2] {
        let stock = run(&many(per_client, &tcp)).unwrap().goodput_bps() / 1e6;
        let users = users(&run(&with_fwp(many(per_client, &tcp))).unwrap());
        assert_eq!(users.len() as u32, CLIENTS * per_client);
        let (sum, fairness) = (users.iter().sum::<f64>(), jain(&users));
        println!(
            "{per_client} each: {sum:.1} Mb/s, stock {stock:.1}, datagrams {bound:.1}, fairness {fairness:.3}"
        );
        assert!(stock < sum && sum < bound, "{sum} Mb/s, stock {stock}, datagrams {bound}");
        assert!(fairness > 0.9, "{users:.1?}");
    }
}

/// Losses depend on each client's distance.
#[test]
fn clients_near_and_far_have_fwp_and_runs_repeat() {
    let mut setup = with_fwp(many(1, &bulk(Profile::Linux.config())));
    for (station, index) in setup.bss[0].config.stations.iter_mut().zip(0..) {
        // From a tenth of full packets lost to none.
        station.snr = Some(Decibels::from_millis(23_250 + 250 * index));
        station.downlink_loss = tacit_link::loss::Loss::None;
    }
    let outcome = run(&setup).unwrap();
    let users = users(&outcome);
    println!("{users:.1?}");
    assert!(users.iter().all(|user| *user > 1.0), "{users:.1?}");
    let holes = |index: u32| outcome.bss[0].stations[1 + index as usize].driver.fwp().unwrap().holes;
    assert!(holes(0) > 10 * holes(CLIENTS - 1).max(1), "{} {}", holes(0), holes(CLIENTS - 1));
    let alone = World::<Packet>::new(&setup, None).unwrap().without_oracle().run().unwrap();
    assert_eq!(outcome.digest, alone.digest);
}
