//! Links with known results: goodput through traces, chains and impairments.

use std::path::PathBuf;
use std::sync::Arc;

use crate::common::*;
use tacit_link::cellular::{OPPORTUNITY, Trace};
use tacit_link::loss::Loss;
use tacit_link::queue::QueueConfig;
use tacit_link::wired::{
    Distribution, Impairments, Jitter, Order, PipeConfig, RateScript, Reordering, Service,
};
use tacit_packet::units::{BitRate, Bytes, Duration, HostId, Instant, Ratio};
use tacit_sim::setup::{Traffic, WiredSetup};
use tacit_sim::{RunOutcome, Setup, run};
use tacit_tcp as tcp;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Hosts in a row, each connected with the next by the same pipe in both directions, and one flow from the first to the
/// last.
fn chain(pipes: &[PipeConfig], traffic: Traffic) -> Setup {
    let wired = pipes.iter().zip(0..).map(|(pipe, number)| WiredSetup {
        a: HostId(number),
        b: HostId(number + 1),
        forward: pipe.clone(),
        backward: pipe.clone(),
    });
    let hosts = (0..=pipes.len()).map(|number| format!("host-{number}")).collect();
    wires(hosts, wired.collect(), traffic)
}

fn wire(mbps: u64, delay_ms: u64) -> PipeConfig {
    PipeConfig::new(BitRate::from_mbps(mbps), Duration::from_millis(delay_ms), packets(1_000).into())
}

fn cellular(trace: Trace) -> PipeConfig {
    PipeConfig { service: Service::Trace(Arc::new(trace)), ..wire(1, 20) }
}

fn shared_trace(name: &str) -> Option<Trace> {
    let path =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data/traces")).join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(Trace::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"))),
        Err(_) => {
            eprintln!("SKIPPED {name}: there is no {}", path.display());
            None
        }
    }
}

/// IP bits per second of a saturating flow of full packets in a whole period, once the link is full.
fn saturated_bps(trace: &Trace) -> f64 {
    let mut setup = chain(&[cellular(trace.clone())], saturating(OPPORTUNITY.0));
    let period = Duration::from_millis(u64::from(trace.period_millis()));
    setup.measure_from = Instant::ZERO + Duration::from_secs(1);
    setup.duration = Duration::from_secs(1) + period;
    let outcome = run(&setup).unwrap();
    let payload_share = (OPPORTUNITY.0 - 28) as f64 / OPPORTUNITY.0 as f64;
    outcome.goodput_bps() / payload_share
}

#[test]
fn a_saturating_flow_gets_every_opportunity_of_a_recorded_trace() {
    let names = ["ATT-LTE-driving", "TMobile-UMTS-driving", "Verizon-LTE-short"];
    for name in names.iter().flat_map(|name| [format!("{name}.down"), format!("{name}.up")]) {
        let Some(trace) = shared_trace(&name) else { continue };
        let (got, capacity) = (saturated_bps(&trace), trace.mean_rate().as_bps() as f64);
        // The share of one opportunity, plus the rounding of the rate.
        let one = 1.5 / trace.opportunities() as f64;
        assert!((got / capacity - 1.0).abs() <= one, "{name}: {got} of {capacity} b/s");
        println!("{name}: {:.3} Mb/s", got / 1e6);
    }
}

#[test]
fn small_packets_fill_opportunities_as_well_as_large_ones() {
    let trace =
        Trace::new((1..=1_000).filter(|ms| ms % 7 == 0 || ms % 50 < 9 || *ms == 1_000).collect()).unwrap();
    let capacity = trace.mean_rate().as_bps() as f64;
    for ip_len in [300, 1_000, 1_500, 4_000] {
        let mut setup = chain(&[cellular(trace.clone())], saturating(ip_len));
        setup.duration = Duration::from_secs(12);
        let got = run(&setup).unwrap().goodput_bps() * ip_len as f64 / (ip_len - 28) as f64;
        assert!((got / capacity - 1.0).abs() < 0.001, "{ip_len} B: {got} of {capacity}");
    }
}

#[test]
fn tcp_fills_a_mobile_link_with_a_deep_queue() {
    let trace = Trace::new((1..=2_000).filter(|ms| ms / 100 % 2 == 0 || ms % 3 == 0).collect()).unwrap();
    let capacity = trace.mean_rate().as_bps() as f64;
    let outcome = run(&chain(&[cellular(trace)], bulk(tcp::Config::default()))).unwrap();
    let share = outcome.goodput_bps() / capacity;
    assert!((0.94..=1_448.0 / 1_500.0).contains(&share), "{share}");
    assert!(outcome.pipes[0].queueing_delay_us.p50 > 50_000, "a queue stands: {:?}", outcome.pipes[0]);
}

#[test]
fn a_chain_is_as_fast_as_its_slowest_link_and_as_long_as_all_of_them() {
    let pipes = [wire(100, 10), wire(20, 5), wire(50, 15)];
    let mut setup = chain(&pipes, bulk(tcp::Config::default()));
    setup.sample_interval = Some(Duration::from_millis(10));
    let outcome = run(&setup).unwrap();
    // 1448 of 1500 bytes.
    let bound = 20e6 * 1448.0 / 1500.0;
    let segment_bps = 1_448.0 * 8.0 / 8.0;
    let got = outcome.goodput_bps();
    assert!(got > 0.99 * bound && got <= bound + segment_bps, "{got} of {bound} over 8 s");
    let base_rtt =
        outcome.series.iter().map(|point| point.smoothed_rtt).filter(|rtt| *rtt > Duration::ZERO).min();
    let millis = base_rtt.unwrap().as_nanos() as f64 / 1e6;
    assert!((60.0..66.0).contains(&millis), "{millis} ms");
    let [first, second, third] = [0, 2, 4].map(|pipe| outcome.pipes[pipe]);
    assert_eq!((first.from, third.to), (HostId(0), HostId(3)));
    assert!(second.queueing_delay_us.p50 > 10 * first.queueing_delay_us.p50.max(1));
    assert_eq!(third.queueing_delay_us.max, 0, "nothing waits behind the bottleneck");
}

#[test]
fn a_flow_follows_a_rate_that_changes() {
    let mut pipe = wire(20, 5);
    let changes = vec![
        (at(4_000), Some(BitRate::from_mbps(5))),
        (at(6_000), None),
        (at(6_500), Some(BitRate::from_mbps(10))),
    ];
    pipe.service = Service::Script(RateScript::new(BitRate::from_mbps(20), changes).unwrap());
    let mut setup = chain(&[pipe], saturating(1_500));
    let measured_mbps = |from, to, setup: &mut Setup| {
        (setup.measure_from, setup.duration) = (at(from), Duration::from_millis(to));
        run(setup).unwrap().goodput_bps() / 1e6 * 1_500.0 / 1_472.0
    };
    for (from, to, mbps) in
        [(1_000, 4_000, 20.0), (4_010, 6_000, 5.0), (6_020, 6_480, 0.0), (6_520, 9_000, 10.0)]
    {
        let got = measured_mbps(from, to, &mut setup);
        assert!((got - mbps).abs() < 0.05, "{got} Mb/s from {from} to {to} ms, not {mbps}");
    }
}

fn retransmitted(outcome: &RunOutcome) -> u64 {
    outcome.flows[0].sender.unwrap().packets_retransmitted
}

fn ratio(fraction: f64) -> Ratio {
    Ratio::from_fraction(fraction).unwrap()
}

/// A file over a link with `impairments` and room for the whole file.
fn file_through(impairments: Impairments) -> RunOutcome {
    let pipe = PipeConfig { impairments, queue: QueueConfig::default(), ..wire(50, 10) };
    let config = tcp::Config { receive_buffer: Bytes(65_535), ..tcp::Config::default() };
    let outcome =
        run(&chain(&[pipe], Traffic::Connection { config: config.into(), size: Some(Bytes(5_000_000)) }))
            .unwrap();
    assert_eq!(outcome.flows[0].delivered_total, Bytes(5_000_000));
    assert!(outcome.flows[0].completed_at.is_some());
    outcome
}

#[test]
fn jitter_that_keeps_order_causes_no_retransmission() {
    for distribution in
        [Distribution::Uniform(Duration::from_millis(8)), Distribution::Normal(Duration::from_millis(3))]
    {
        let jitter = Some(Jitter { distribution, order: Order::Kept });
        assert_eq!(retransmitted(&file_through(Impairments { jitter, ..Impairments::NONE })), 0);
    }
}

#[test]
fn packets_overtaken_by_two_look_late_and_by_many_look_lost() {
    let through = |packets| {
        let reordering =
            Reordering { chance: ratio(0.01), packets: Some(packets), delay: Duration::from_millis(100) };
        retransmitted(&file_through(Impairments { reordering: Some(reordering), ..Impairments::NONE }))
    };
    // RFC 5681 section 3.2: the third duplicate ACK signals a loss.
    let (near, far) = (through(1), through(12));
    assert!(near < 3 && far >= 10, "{near} and {far}");
}

#[test]
fn copies_cost_nothing_but_their_packets() {
    let outcome = file_through(Impairments { duplication: ratio(0.05), ..Impairments::NONE });
    assert!(outcome.flows[0].receiver.unwrap().data_packets_received > 3_454 + 100);
    assert!(retransmitted(&outcome) < 5, "{}", retransmitted(&outcome));
}

#[test]
fn losses_on_the_way_are_drawn_apart_from_impairments() {
    let through = |duplication| {
        let mut pipe = wire(50, 10);
        (pipe.loss, pipe.impairments.duplication) = (Loss::Bernoulli(ratio(0.01)), duplication);
        let mut setup = chain(
            &[pipe],
            Traffic::Udp {
                ip: tacit_packet::IpVersion::V4,
                payload: Bytes(1_000),
                rate: Some(BitRate::from_mbps(10)),
                report_after: None,
                send_buffer: None,
            },
        );
        setup.measure_from = Instant::ZERO;
        run(&setup).unwrap().pipes[0].counters
    };
    let (plain, copied) = (through(Ratio::ZERO), through(ratio(0.1)));
    assert_eq!(plain.lost, copied.lost);
    assert!(plain.lost > 50 && copied.duplicated > 1_000, "{copied:?}");
}
