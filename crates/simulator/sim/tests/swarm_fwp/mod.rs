//! FWP in worlds that were generated for other tests. It has its own random streams, so the rest of the world does not
//! change.

use tacit_between::fwp::{Config, Placeholders, repair};
use tacit_link::random::Stream;
use tacit_link::wifi::phy::{self, Mode, Standard};
use tacit_link::wifi::{BothWays, LinkAcks, RateControl, StreamQueues};
use tacit_packet::units::{Bytes, Duration};
use tacit_sim::RunOutcome;
use tacit_sim::record::{ApplicationResult, Downloaded};
use tacit_sim::setup::{Application, ClientDriver, Download, Setup, Traffic};

use crate::common::{SERVER, be_stock, fwp};
use crate::pick;

/// Every feature of the shim, and limits that take effect.
fn shim(draw: &mut Stream) -> Config {
    Config {
        settle: Duration::from_millis(pick(draw, &[0, 0, 2, 40])),
        margin_tenths: pick(draw, &[0, 20, 30, 50]),
        most_holes: pick(draw, &[1, 50, 1 << 16]),
        most_hole_bytes: Bytes(pick(draw, &[2_000, 200_000, 64 << 20])),
        patience: Duration::from_millis(pick(draw, &[100, 10_000])),
        flows: pick(draw, &[1, 3, 256]),
        round_trip: Duration::from_millis(pick(draw, &[5, 40])),
        placeholders: pick(draw, &[Placeholders::Tcp, Placeholders::Driver]),
        overdue_percent: pick(draw, &[0, 20, 150]),
        expected_ppm: pick(draw, &[None, Some(0), Some(100_000)]),
    }
}

/// Small and large downloads, with repair that fails early or never within a world's duration.
fn download(draw: &mut Stream) -> Download {
    Download {
        size: pick(draw, &[None, None, Some(Bytes(1)), Some(Bytes(300_000)), Some(Bytes(3_000_000))]),
        request: Bytes(pick(draw, &[1, 200, 3_000])),
        head: Bytes(pick(draw, &[1, 300, 3_000])),
        repair: repair::Config {
            request_max: pick(draw, &[1, 1_448, 256 << 10]),
            gap_max: pick(draw, &[0, 512]),
            gap_busy_max: pick(draw, &[0, 14_600]),
            deadline: Duration::from_millis(pick(draw, &[300, 8_000, 300_000])),
            attempts_max: pick(draw, &[2, 24]),
            held_max: pick(draw, &[20_000, 8 << 20]),
            holes_max: pick(draw, &[8, 8_192]),
            ..repair::Config::default()
        },
    }
}

/// Most clients of `setup` have FWP, and most of their flows over TCP are downloads with repair.
pub fn add_fwp(setup: &mut Setup, seed: u64) {
    let draw = &mut Stream::new(seed, "swarm fwp");
    be_stock(setup);
    let set = &mut setup.bss[0];
    let config = &mut set.config;
    config.rate_control = RateControl::Fixed;
    if config.standard.phy().aggregation.is_none() {
        config.standard = pick(draw, &[Standard::N, Standard::Ac]);
        config.variant = phy::Variant::for_standard(config.standard);
        let modes = Mode::all(config.standard);
        config.stations.iter_mut().for_each(|station| station.mode = pick(draw, &modes));
        config.direct_links.iter_mut().for_each(|direct| direct.link.mode = pick(draw, &modes));
    }
    let has_repair = config.stream_queues == StreamQueues::Joint && draw.up_to(1) == 0;
    let downs = if has_repair { [LinkAcks::None, LinkAcks::Deferred] } else { [LinkAcks::None; 2] };
    for (station, client) in config.stations.iter_mut().zip(&mut set.clients) {
        if draw.up_to(4) > 0 {
            station.link_acks = BothWays { down: pick(draw, &downs), up: LinkAcks::Normal };
            client.driver = ClientDriver::Fwp(if draw.up_to(1) == 0 { shim(draw) } else { Config::USUAL });
            // With noise that destroys nearly everything there would be nothing to repair.
            if draw.up_to(3) > 0 {
                (station.snr, station.downlink_loss) = (None, fwp::percent(pick(draw, &[1.0, 10.0, 40.0])));
            }
        }
    }
    for index in 0..setup.flows.len() {
        let flow = &mut setup.flows[index];
        let client = setup.bss[0].clients.iter().find(|client| client.host == flow.sink);
        let has_shim = client.is_some_and(|client| matches!(client.driver, ClientDriver::Fwp(_)));
        let Traffic::Connection { size, .. } = &mut flow.traffic else { continue };
        if has_shim && flow.source == SERVER && draw.up_to(5) > 0 {
            *size = None;
            let download = if draw.up_to(1) == 0 { download(draw) } else { fwp::usual_download(None) };
            fwp::repair_flow(setup, index as u32, pick(draw, &[1, 2, 6, 16]), download);
        }
    }
}

/// Outcomes of the downloads of some worlds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub downloads: u64,
    pub holes: u64,
    pub whole: u64,
    pub failed: u64,
}

/// Checks the invariants of every download; counts into `tally`.
pub fn check_downloads(setup: &Setup, outcome: &RunOutcome, seed: u64, tally: &mut Tally) {
    for (program, result) in setup.applications.iter().zip(&outcome.applications) {
        let (Application::Download(plan), ApplicationResult::Download(got)) =
            (&program.application, &result.result)
        else {
            panic!("seed {seed}: {program:?} has {result:?}")
        };
        check_download(plan, got, seed);
        let flow = &outcome.flows[program.flows[0].0 as usize];
        assert_eq!(
            (flow.delivered_total, flow.completed_at),
            (got.released_total, got.completed_at),
            "seed {seed}"
        );
        // Goodput counts bytes when they arrive, `released` when the gaps before them are filled; the difference is
        // held back.
        let held = flow.delivered.0.abs_diff(got.released.0);
        assert!(held <= plan.repair.held_max, "seed {seed}: {held} bytes");
        tally.downloads += 1;
        tally.holes += got.holes;
        tally.whole += u64::from(got.completed_at.is_some());
        tally.failed += u64::from(got.failure.is_some());
    }
}

fn check_download(plan: &Download, got: &Downloaded, seed: u64) {
    assert!(got.released <= got.released_total, "seed {seed}: {got:?}");
    let is_whole = plan.size == Some(got.released_total);
    assert_eq!(got.completed_at.is_some(), is_whole, "seed {seed}: {plan:?} {got:?}");
    assert!(plan.size.is_none_or(|size| got.released_total <= size), "seed {seed}: {plan:?} {got:?}");
    assert!(got.failure.is_none() || !is_whole, "seed {seed}: whole and failed, {got:?}");
    assert!(got.held_peak.0 <= plan.repair.held_max, "seed {seed}: {plan:?} {got:?}");
    // Only holes are requested again, and each fits in at least one request.
    assert!(got.holes > 0 || got.repair_requests == 0, "seed {seed}: {got:?}");
}
