//! One FWP client and nine clients with acknowledgments (section VI-B of the paper), over TCP and with repair.

use crate::common::fwp::*;
use crate::common::*;
use tacit_between::fwp::Config;
use tacit_congestion::Algorithm;
use tacit_congestion::cubic::{self, SlowStart};
use tacit_link::loss::Loss;
use tacit_link::wifi::Protection;
use tacit_link::wifi::phy::Standard;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_sim::record::{ApplicationResult, Downloaded};
use tacit_sim::setup::Setup;
use tacit_sim::{RunOutcome, run};
use tacit_tcp::Profile;

const STOCK: u32 = 9;
const REPAIR_FLOWS: u32 = 16;
const WARM_UP: Duration = Duration::from_secs(15);

/// Ten downloads at 600 Mb/s over 40 ms; all links lose `lost` percent, and the first client has FWP. The paper's
/// emulator has no collisions, so RTS and CTS prevent the loss of whole aggregates.
fn paper(lost: f64) -> Setup {
    let mut tcp = Profile::Linux.config();
    // The paper's senders used only HyStart.
    tcp.congestion.algorithm = Algorithm::Cubic(cubic::Config { slow_start: SlowStart::HyStart });
    let traffic = bulk(tcp);
    let mut setup = wlan(Standard::N, 600, 1 + STOCK, &traffic);
    let bss = &mut setup.bss[0];
    (bss.config.ampdu_mpdus, bss.config.block_ack_window) = (Some(32), 32);
    bss.config.protection = Protection::RtsCts { above: 2000 };
    for station in &mut bss.config.stations {
        station.downlink_loss = percent(lost);
        station.downlink_queue = packets(1000).into();
    }
    speak_fwp(&mut setup, 0, Config::USUAL);
    let wire = pipe(BitRate::from_mbps(1000), Duration::from_millis(20), packets(5000), Loss::None);
    (setup.wired[0].forward, setup.wired[0].backward) = (wire.clone(), wire);
    repair_flow(&mut setup, 0, REPAIR_FLOWS, usual_download(None));
    setup.duration = Duration::from_secs(50);
    setup.measure_from = Instant::ZERO + WARM_UP;
    setup
}

fn downloaded(outcome: &RunOutcome) -> &Downloaded {
    let ApplicationResult::Download(downloaded) = &outcome.applications[0].result else {
        panic!("a download")
    };
    downloaded
}

/// Mb/s of the user, of a stock client, and of all data for the user's host, including heads and repairs.
fn rates(lost: f64, seed: u64) -> [f64; 3] {
    let mut setup = paper(lost);
    setup.seed = seed;
    let outcome = run(&setup).unwrap();
    let got = downloaded(&outcome);
    assert_eq!(got.failure, None, "{lost} %");
    let span = (setup.duration - WARM_UP).as_secs_f64();
    let mbps = |bytes: Bytes| bytes.0 as f64 * 8.0 / 1e6 / span;
    let stock: f64 = outcome.flows[1..=STOCK as usize].iter().map(|flow| mbps(flow.delivered)).sum();
    let shim = outcome.bss[0].stations[1].driver.fwp().unwrap();
    let arrived = mbps(Bytes(shim.segments * 1448));
    let rates = [mbps(got.released), stock / f64::from(STOCK), arrived];
    println!(
        "{lost} %, seed {seed}: {rates:.1?}, ratio {:.2}, answers {:.1}, {} of {} requests short, 95 % of repairs in {} ms",
        rates[0] / rates[1],
        mbps(got.answer_bytes),
        got.repeated_repairs,
        got.repair_requests,
        got.repair_delay_us.p95 / 1000,
    );
    rates
}

/// Figure 8: more than 1.6 times the throughput at 10 % frame loss, more than twice at 40 %.
#[test]
fn a_user_of_fwp_gets_as_many_times_more_than_stock_as_in_figure_8() {
    for (lost, gain) in [(10.0, 1.6), (40.0, 2.0)] {
        let seeds = [1, 2].map(|seed| rates(lost, seed));
        let [user, stock] = [0, 1].map(|which| seeds.iter().map(|rates| rates[which]).sum::<f64>());
        assert!(user > gain * stock, "{lost} %: {user} and {stock}");
    }
}

/// Almost all data that arrives reaches the user: the cost of repair beyond the holes themselves is small.
#[test]
fn repair_takes_little_more_than_what_was_lost() {
    for lost in [1.0, 20.0] {
        let [user, _, arrived] = rates(lost, 1);
        assert!(user > 0.9 * arrived, "{lost} %: {user} of {arrived}");
    }
}
