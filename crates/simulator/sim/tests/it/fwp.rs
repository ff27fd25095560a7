//! FWP in a whole world: a link without retransmissions, a shim that fills holes, and a download that repairs them.
//! Every run checks that no placeholder is handed on and that the shim's state is consistent.

use crate::common::fwp::*;
use crate::common::*;
use tacit_between::fwp::{Config, Counters, Placeholders};
use tacit_link::loss::{GilbertElliott, Loss};
use tacit_link::wifi::phy::Standard;
use tacit_link::wifi::{LinkAcks, Protection};
use tacit_packet::units::{BitRate, Bytes, Duration, FlowId, Instant, Ratio};
use tacit_sim::record::{ApplicationResult, Downloaded, PageLoads, VideoPlayed};
use tacit_sim::setup::{
    Application, ApplicationSetup, End, Law, Objects, Repairers, RequestResponse, Setup, Span, Streaming,
};
use tacit_sim::{RunOutcome, World, run};
use tacit_tcp::Profile;

const REPAIR_FLOWS: u32 = 16;

/// One client with a download over a link that loses `lost` percent of the downlink frames.
fn plain(lost: f64, size: Option<u64>) -> Setup {
    let traffic = bulk(Profile::Linux.config());
    let mut setup = wlan(Standard::N, 150, 1, &traffic);
    send_once(&mut setup, 0);
    setup.bss[0].config.stations[0].downlink_loss = percent(lost);
    repair_flow(&mut setup, 0, REPAIR_FLOWS, usual_download(size));
    setup.duration = Duration::from_secs(12);
    setup
}

fn with_shim(mut setup: Setup, config: Config) -> Setup {
    speak_fwp(&mut setup, 0, config);
    setup
}

/// The shim of the paper, which knows that the link loses `lost` percent.
fn expecting(lost: f64) -> Config {
    Config { placeholders: Placeholders::Tcp, expected_ppm: Some((lost * 1e4) as u32), ..Config::USUAL }
}

fn shim(outcome: &RunOutcome) -> Counters {
    outcome.bss[0].stations[1].driver.fwp().unwrap()
}

fn downloaded(outcome: &RunOutcome) -> &Downloaded {
    let ApplicationResult::Download(downloaded) = &outcome.applications[0].result else {
        panic!("a download")
    };
    downloaded
}

fn mbps(outcome: &RunOutcome) -> f64 {
    outcome.goodput_bps() / 1e6
}

#[test]
fn placeholders_keep_tcp_going_where_holes_would_stop_it() {
    for (lost, gain) in [(0.1, 1.5), (1.0, 1.8), (10.0, 3.0), (20.0, 5.0)] {
        let without = run(&plain(lost, None)).unwrap();
        let outcome = run(&with_shim(plain(lost, None), Config::USUAL)).unwrap();
        let (counters, got) = (shim(&outcome), downloaded(&outcome));
        println!(
            "{lost} %: {:.1} Mb/s, TCP alone {:.1}; {counters:?} {got:?}",
            mbps(&outcome),
            mbps(&without)
        );
        assert_eq!(got.failure, None);
        assert_eq!(outcome.flows[0].delivered_total, got.released_total, "the user gets the bytes handed on");
        assert!(mbps(&outcome) > gain * mbps(&without), "{lost} %");
        assert_eq!(downloaded(&without).holes, 0, "nothing is filled without a shim");
    }
}

#[test]
fn the_plain_comparison_of_the_paper_is_off_half_of_the_time_and_a_margin_is_not() {
    // Only the comparison of losses decides whether holes are filled.
    let off = |margin_tenths| {
        let config = Config { margin_tenths, overdue_percent: 0, ..expecting(10.0) };
        let outcome = run(&with_shim(plain(10.0, None), config)).unwrap();
        let counters = shim(&outcome);
        let left = counters.congested_holes as f64 / (counters.holes + counters.congested_holes) as f64;
        println!("margin {margin_tenths}: {:.1} Mb/s, {left:.3} of holes left, {counters:?}", mbps(&outcome));
        (left, mbps(&outcome))
    };
    let [plain, _, with_margin, _] = [0, 20, 30, 50].map(off);
    let expected = [0.3, 0.1];
    assert!(plain.0 > expected[0] && with_margin.0 < expected[1], "{plain:?} {with_margin:?}");
    assert!(with_margin.1 > 1.3 * plain.1, "{plain:?} {with_margin:?}");
}

/// The same tenth of frames, in bursts: a round trip of a burst loses more than the mean explains, which is congestion by the
/// paper's rule. Frames that the driver counts in the same round trip explain it, and so do those that it counts one by one.
#[test]
fn losses_in_bursts_are_the_links_by_the_drivers_count_and_not_by_their_mean() {
    let [counted, one_by_one] = [Placeholders::Tcp, Placeholders::Driver].map(|placeholders| Config {
        placeholders,
        expected_ppm: None,
        ..Config::USUAL
    });
    for (bad, good_to_bad, bad_to_good) in [(50, 2, 8), (30, 5, 10)] {
        let share = |percent: u32| Ratio::from_parts_per_billion(percent * 10_000_000).unwrap();
        let [bad, good_to_bad, bad_to_good] = [bad, good_to_bad, bad_to_good].map(share);
        let channel = GilbertElliott { good: share(0), bad, good_to_bad, bad_to_good };
        let rates = [expecting(10.0), counted, one_by_one].map(|config| {
            let mut setup = with_shim(plain(0.0, None), config);
            setup.bss[0].config.stations[0].downlink_loss = Loss::GilbertElliott(channel);
            mbps(&run(&setup).unwrap())
        });
        println!("{channel:?}: {rates:.1?} Mb/s by the mean, by the round trip's frames, one by one");
        assert!(rates[1] > 1.15 * rates[0] && rates[2] > 1.25 * rates[0], "{rates:?}");
    }
}

/// If the link loses many retransmissions, TCP waits for the next one each time, unless the hole is filled.
#[test]
fn holes_left_to_tcp_are_filled_where_it_does_not() {
    let with = |overdue_percent| {
        let config = Config { overdue_percent, ..expecting(40.0) };
        let outcome = run(&with_shim(plain(40.0, None), config)).unwrap();
        println!("{overdue_percent} %: {:.1} Mb/s, {:?}", mbps(&outcome), shim(&outcome));
        (mbps(&outcome), shim(&outcome))
    };
    let (never, after) = (with(0), with(150));
    assert!(never.1.overdue_holes == 0 && after.1.overdue_holes > 50, "{after:?}");
    assert!(after.0 > 5.0 * never.0, "{never:?} {after:?}");
}

#[test]
fn a_body_is_whole_at_its_end() {
    for settle in [Duration::ZERO, Duration::from_millis(5)] {
        let config = Config { settle, ..Config::USUAL };
        let mut setup = with_shim(plain(10.0, Some(10_000_000)), config);
        setup.duration = Duration::from_secs(20);
        let outcome = run(&setup).unwrap();
        let got = downloaded(&outcome);
        assert_eq!(got.released_total, Bytes(10_000_000), "{got:?}");
        assert!(got.completed_at.is_some() && outcome.flows[0].completed_at == got.completed_at);
        assert!(
            outcome.flows[1..].iter().all(|flow| flow.delivered_total == Bytes(0)),
            "repair is no goodput"
        );
    }
}

#[test]
fn a_link_without_errors_of_its_own_has_congestion_only() {
    // The wire loses packets: the link's error rate explains none of these losses.
    let mut setup = with_shim(plain(0.0, None), expecting(0.0));
    setup.wired[0].forward.loss = percent(2.0);
    let counters = shim(&run(&setup).unwrap());
    assert!(counters.holes == 0 && counters.congested_holes > 100, "{counters:?}");
}

#[test]
fn clients_beside_are_untouched_and_runs_repeat() {
    let mut setup = with_shim(plain(5.0, None), Config::USUAL);
    setup.duration = Duration::from_secs(4);
    let again = || run(&setup).unwrap();
    let (one, other) = (again(), again());
    assert_eq!(one.digest, other.digest);
    assert_eq!(downloaded(&one), downloaded(&other));
    // The oracle does not change the run.
    let alone = World::<tacit_packet::Packet>::new(&setup, None).unwrap().without_oracle().run().unwrap();
    assert_eq!(one.digest, alone.digest);
}

/// Of six clients that collide with the access point, one has no acknowledgments. The driver knows the fate of each
/// frame, but statistics treat a lost aggregate as congestion. If RTS and CTS prevent collisions, statistics leave only
/// their usual share of holes.
#[test]
fn the_driver_tells_a_collision_from_congestion() {
    let counted = |placeholders, protection, seed| {
        let traffic = bulk(Profile::Linux.config());
        let mut setup = wlan(Standard::N, 150, 6, &traffic);
        let bss = &mut setup.bss[0];
        (bss.config.stations[0].downlink_loss, bss.config.protection) = (percent(5.0), protection);
        repair_flow(&mut setup, 0, REPAIR_FLOWS, usual_download(None));
        (setup.duration, setup.seed) = (Duration::from_secs(12), seed);
        let config = Config { placeholders, ..expecting(5.0) };
        let counters = shim(&run(&with_shim(setup, config)).unwrap());
        assert!(counters.holes > 50, "{counters:?}");
        [counters.congested_holes, counters.holes + counters.congested_holes]
    };
    let left = |placeholders, protection| {
        let seeds = [1, 2, 3, 4].map(|seed| counted(placeholders, protection, seed));
        let [left, all] = [0, 1].map(|which| seeds.iter().map(|counts| counts[which]).sum::<u64>());
        left as f64 / all as f64
    };
    let [colliding, protected] = [Protection::None, Protection::RtsCts { above: 0 }]
        .map(|protection| [Placeholders::Tcp, Placeholders::Driver].map(|who| left(who, protection)));
    println!("left to TCP by statistics and driver: {colliding:?}, without collisions {protected:?}");
    assert!(colliding[0] > 2.0 * protected[0], "{colliding:?} {protected:?}");
    assert!(colliding[1] < colliding[0] / 10.0, "{colliding:?} {protected:?}");
}

#[test]
fn losses_on_the_wire_are_congestion_for_the_driver_too() {
    let mut setup = with_shim(plain(0.0, None), Config::USUAL);
    setup.wired[0].forward.loss = percent(2.0);
    // A collision counts as a loss of the link.
    setup.bss[0].config.protection = Protection::RtsCts { above: 0 };
    let counters = shim(&run(&setup).unwrap());
    assert!(counters.holes == 0 && counters.congested_holes > 100, "{counters:?}");
}

#[test]
fn the_server_is_asked_for_what_the_access_point_could_not_repair() {
    let mut setup =
        with_shim(plain(10.0, None), Config { settle: Duration::from_millis(40), ..Config::USUAL });
    let from_server = shim(&run(&with_shim(plain(10.0, None), Config::USUAL)).unwrap());
    setup.bss[0].config.stations[0].link_acks.down = LinkAcks::Deferred;
    let outcome = run(&setup).unwrap();
    let (counters, station) = (shim(&outcome), &outcome.bss[0].stations[1]);
    println!("{:.1} Mb/s, {counters:?}", mbps(&outcome));
    assert_eq!(downloaded(&outcome).failure, None);
    assert!(station.counters.repaired > 100 && counters.reordered_segments > 100, "{counters:?}");
    let share = |counters: &Counters| counters.placeholders as f64 / counters.segments as f64;
    assert!(share(&counters) < share(&from_server) / 4.0, "{counters:?} {from_server:?}");
}

/// A host that has acknowledged bytes that cannot be repaired has its connection reset: no more data is delivered, and
/// the server stops.
#[test]
fn a_download_that_fails_is_reset() {
    let ends = |duration: u64| {
        let mut setup = with_shim(plain(20.0, None), Config::USUAL);
        let Application::Download(download) = &mut setup.applications[0].application else { panic!() };
        // Bytes that losses hit twice: one in 25.
        download.repair.attempts_max = 2;
        setup.duration = Duration::from_secs(duration);
        setup.measure_from = Instant::ZERO;
        let outcome = run(&setup).unwrap();
        let (got, counters) = (downloaded(&outcome).clone(), shim(&outcome));
        assert!(got.failure.is_some(), "{got:?}");
        assert_eq!(counters.failed_flows, 1, "{counters:?}");
        (
            got,
            outcome.flows[0].sender.unwrap().packets_sent,
            outcome.flows[0].receiver.unwrap().bytes_received,
        )
    };
    let (early, late) = (ends(5), ends(20));
    assert_eq!(early, late, "nothing more is sent, arrives or is handed on");
    assert!(early.0.released > Bytes(100_000), "{early:?}");
}

/// One client of a link that loses `lost` percent of the downlink frames, with a program over `connections`, each with
/// four repair connections.
fn with_program(lost: f64, connections: u32, program: impl Fn(Repairers) -> Application) -> Setup {
    let mut setup = plain(lost, None);
    let repairers = Repairers { connections: 4, download: usual_download(None) };
    let flows = connections * 5;
    setup.flows = vec![setup.flows[0].clone(); flows as usize];
    setup.applications = vec![ApplicationSetup {
        name: "program".to_owned(),
        flows: (0..flows).map(FlowId).collect(),
        application: program(repairers),
    }];
    setup.measure_from = Instant::ZERO;
    // A collision counts as a loss of the link.
    setup.bss[0].config.protection = Protection::RtsCts { above: 0 };
    setup
}

/// Pages of an object of 20 kB and ten more, over six connections.
fn pages(lost: f64) -> Setup {
    with_program(lost, 6, |repairers| {
        Application::RequestResponse(RequestResponse {
            requester: End::Sink,
            objects: Objects::Listed(vec![Bytes(20_000); 11]),
            request: Bytes(400),
            think: Span { mean: Duration::from_millis(100), law: Law::Fixed },
            keeps_connections: true,
            repair: Some(repairers),
        })
    })
}

fn page_loads(outcome: &RunOutcome) -> &PageLoads {
    let ApplicationResult::Pages(loads) = &outcome.applications[0].result else { panic!("pages") };
    loads
}

#[test]
fn pages_come_whole_over_connections_that_are_repaired() {
    let outcome = run(&with_shim(pages(10.0), Config::USUAL)).unwrap();
    let (loads, counters) = (page_loads(&outcome), shim(&outcome));
    println!("{loads:?} {counters:?}");
    assert!(counters.holes > 100 && loads.load_times.len() > 10, "{counters:?} {loads:?}");
    // Bytes in addition to finished pages belong to the last page.
    let arrived: u64 = outcome.flows.iter().map(|flow| flow.delivered_total.0).sum();
    let whole = loads.load_times.len() as u64 * 11 * 20_000;
    assert!((whole..=whole + 11 * 20_000).contains(&arrived), "{arrived} of {whole}");
    assert_eq!(outcome.applications[0].data_flows, 6);
    assert!(outcome.flows[6..].iter().all(|flow| flow.delivered_total == Bytes(0)), "repair is no goodput");
    // Without losses there is nothing to repair.
    let clean = run(&with_shim(pages(0.0), Config::USUAL)).unwrap();
    assert_eq!(shim(&clean).placeholders, 0);
    assert!(page_loads(&clean).load_times.len() > loads.load_times.len());
}

#[test]
fn a_video_is_played_as_far_as_it_is_repaired() {
    let video = |lost| {
        with_program(lost, 1, |repairers| {
            Application::Streaming(Streaming {
                rate: BitRate::from_mbps(20),
                frame_rate: 25,
                buffer: Duration::from_secs(1),
                repair: Some(repairers),
            })
        })
    };
    let played = |outcome: &RunOutcome| -> VideoPlayed {
        let ApplicationResult::Stream(video) = outcome.applications[0].result else { panic!("a video") };
        video
    };
    let outcome = run(&with_shim(video(10.0), Config::USUAL)).unwrap();
    let (with, without) = (played(&outcome), played(&run(&video(10.0)).unwrap()));
    println!("{with:?} {:?}, TCP alone {without:?}", shim(&outcome));
    assert!(shim(&outcome).holes > 100);
    assert!(with.rebuffers == 0 && with.frames_played > 25 * 10, "{with:?}");
    assert!(without.rebuffering > Duration::from_secs(2), "{without:?}");
}
