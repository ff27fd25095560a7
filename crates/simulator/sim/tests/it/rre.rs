//! Guarantees of TCP-RRE on rates, queues and shares, at bottlenecks with deep buffers.

use crate::common::*;
use tacit_congestion::Algorithm;
use tacit_congestion::rre::{self, Memory};
use tacit_link::loss::Loss;
use tacit_link::queue::QueueLimit;
use tacit_link::wired::{RateScript, Service};
use tacit_packet::units::{BitRate, Bytes, Duration, FlowId, Instant};
use tacit_sim::record::{ApplicationResult, RunOutcome};
use tacit_sim::setup::{Application, ApplicationSetup, End, FlowSetup, Law, Objects, RequestResponse, Span};
use tacit_sim::{Setup, run};
use tacit_tcp as tcp;
use tacit_tcp::{Profile, WindowGrowth};

/// Fraction of payload in a full IP packet.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// One bulk flow per controller, half a second apart, over `rate` and 40 ms with a buffer of `buffer`.
fn bottleneck(controls: &[Algorithm], rate: BitRate, buffer: Duration, duration: u64, from: u64) -> Setup {
    let config =
        |congestion: Algorithm| tcp::Config { congestion: congestion.into(), ..tcp::Config::default() };
    let mut setup = wired(rate, Duration::from_millis(20), 0, Loss::None, bulk(config(controls[0])));
    let bytes = Some(rate.amount_in(buffer).max(Bytes(15_000)));
    setup.wired[0].forward.queue = QueueLimit { packets: None, bytes }.into();
    setup.flows = (0..)
        .zip(controls)
        .map(|(number, control)| FlowSetup {
            start: Instant::ZERO + Duration::from_millis(500) * number,
            traffic: bulk(config(*control)),
            ..setup.flows[0].clone()
        })
        .collect();
    setup.duration = secs(duration);
    setup.measure_from = Instant::ZERO + secs(from);
    setup
}

fn rates(outcome: &RunOutcome) -> Vec<f64> {
    outcome.flows.iter().map(|flow| flow.goodput_bps(outcome.measured) / 1e6).collect()
}

/// Two flows get equal shares although one started first.
#[test]
fn two_flows_share_alike() {
    for mbps in [2, 8, 20] {
        let setup = bottleneck(&[Algorithm::RRE; 2], BitRate::from_mbps(mbps), secs(1), 70, 20);
        let outcome = run(&setup).unwrap();
        let (rates, index) = (rates(&outcome), jain(&rates(&outcome)));
        println!("{mbps} Mb/s: {rates:.2?} Mb/s, Jain {index:.3}");
        assert!(index >= 0.95, "{mbps} Mb/s: {rates:?}, Jain {index:.3}");
    }
}

/// Ten flows share a buffer of two seconds fairly.
#[test]
fn ten_flows_share_a_deep_buffer_alike() {
    let setup = bottleneck(&[Algorithm::RRE; 10], BitRate::from_mbps(20), secs(2), 90, 30);
    let outcome = run(&setup).unwrap();
    let (rates, index) = (rates(&outcome), jain(&rates(&outcome)));
    println!("{rates:.2?} Mb/s, Jain {index:.3}, p95 {} us", outcome.pipes[0].queueing_delay_us.p95);
    assert!(index >= 0.95, "{rates:?}, Jain {index:.3}");
}

/// Alone in a buffer of two seconds a flow uses the link, but hardly any of the buffer.
#[test]
fn alone_it_uses_the_link_and_leaves_the_buffer() {
    for mbps in [1, 2, 4, 8, 20] {
        let rate = BitRate::from_mbps(mbps);
        let outcome = run(&bottleneck(&[Algorithm::RRE], rate, secs(2), 40, 5)).unwrap();
        let used = outcome.goodput_bps() / (rate.as_bps() as f64 * PAYLOAD_SHARE);
        let p95 = outcome.pipes[0].queueing_delay_us.p95;
        println!("{mbps} Mb/s: {used:.3} used, p95 of queueing {p95} us");
        assert!(used >= 0.95, "{mbps} Mb/s: {used:.3} used");
        assert!(p95 < 150_000, "{mbps} Mb/s: {p95} us");
    }
}

/// CUBIC keeps at least its fair share against RRE, in a buffer of a round-trip time and in deep ones.
///
/// deviation: RRE attributes the queue that CUBIC fills to itself, and drains it: RRE keeps 0.75, 0.30 and 0.01 of its
/// share in buffers of 40, 200 and 1000 ms, where the goal is 0.4.
#[test]
fn cubic_beside_it_keeps_its_share() {
    for buffer_ms in [40, 200, 1_000] {
        let controls = [Algorithm::RRE, Algorithm::CUBIC];
        let rate = BitRate::from_mbps(8);
        let outcome = run(&bottleneck(&controls, rate, Duration::from_millis(buffer_ms), 70, 10)).unwrap();
        let rates = rates(&outcome);
        println!("{buffer_ms} ms: RRE {:.2}, CUBIC {:.2} Mb/s", rates[0], rates[1]);
        let fair = (rates[0] + rates[1]) / 2.0;
        assert!(rates[1] >= fair * 0.95, "{buffer_ms} ms: {rates:?}");
    }
}

/// Goodput in Mb/s of a download over `rate` whose ACKs go over `up` with a buffer of 50 packets.
fn behind_slow_acks(control: Algorithm, rate: BitRate, up: BitRate) -> f64 {
    let mut setup = bottleneck(&[control], rate, secs(1), 40, 10);
    setup.wired[0].backward.service = Service::Rate(up);
    setup.wired[0].backward.queue = packets(50).into();
    run(&setup).unwrap().goodput_bps() / 1e6
}

/// If ACKs have 1/500 of the rate, RRE delivers more than CUBIC.
#[test]
fn thin_ways_of_acks_cost_less_than_cubic() {
    for (down_mbps, up_kbps) in [(4, 20), (8, 50), (20, 50)] {
        let (down, up) = (BitRate::from_mbps(down_mbps), BitRate::from_bps(up_kbps * 1_000));
        let [rre, cubic] =
            [Algorithm::RRE, Algorithm::CUBIC].map(|control| behind_slow_acks(control, down, up));
        println!("{down_mbps} Mb/s, {up_kbps} kb/s: RRE {rre:.2}, CUBIC {cubic:.2} Mb/s");
        assert!(rre > 1.2 * cubic, "{down_mbps} Mb/s, {up_kbps} kb/s: RRE {rre:.2}, CUBIC {cubic:.2} Mb/s");
    }
}

/// The downlink fails at 10 s for 3 s and returns at another rate. Returns the share of that rate used in the last 5 s
/// of 17, and the highest sending rate.
fn after_an_outage(before: BitRate, after: BitRate) -> (f64, BitRate) {
    let mut setup = bottleneck(&[Algorithm::RRE], before, secs(4), 30, 25);
    let at = |seconds| Instant::ZERO + secs(seconds);
    let script = RateScript::new(before, vec![(at(10), None), (at(13), Some(after))]).unwrap();
    setup.wired[0].forward.service = Service::Script(script);
    setup.sample_interval = Some(Duration::from_millis(50));
    let outcome = run(&setup).unwrap();
    let paced = outcome.series.iter().filter(|point| point.at > at(13)).filter_map(|point| point.pacing_rate);
    let top = paced.max().unwrap();
    (outcome.goodput_bps() / (after.as_bps() as f64 * PAYLOAD_SHARE), top)
}

/// A link that returns at a tenth or ten times its rate is fully used again within 12 s, without a burst.
#[test]
fn a_link_that_comes_back_otherwise_is_used_again() {
    for (before_kbps, after_kbps) in [(8_000, 800), (800, 8_000), (4_000, 4_000)] {
        let [before, after] = [before_kbps, after_kbps].map(|kbps| BitRate::from_bps(kbps * 1_000));
        let (used, top) = after_an_outage(before, after);
        println!("{before_kbps} to {after_kbps} kb/s: {used:.3} used, at most {top:?}");
        assert!(used > 0.9, "{before_kbps} to {after_kbps} kb/s: {used:.3} used");
        let most = 2 * before.max(after).as_bps();
        assert!(top.as_bps() <= most, "{before_kbps} to {after_kbps} kb/s: {top:?}");
    }
}

/// Seconds of each of `fetches` of 1 MB with `pause` between them, ascending, by each of `clients`: 8 Mb/s down, 50 kb/s up,
/// 50 ms, and a receiver that acknowledges each segment that widens its window.
fn fetches(algorithm: Algorithm, clients: u32, fetches: u32, pause: Duration) -> Vec<Vec<f64>> {
    let config = tcp::Config {
        congestion: algorithm.into(),
        window_growth: WindowGrowth::BySegment,
        ..Profile::Linux.config()
    };
    let mut setup = wired(BitRate::from_mbps(8), Duration::from_millis(25), 1_000, Loss::None, bulk(config));
    setup.wired[0].backward.service = Service::Rate(BitRate::from_kbps(50));
    setup.wired[0].backward.queue = QueueLimit { packets: Some(1_000), bytes: None }.into();
    setup.flows = vec![setup.flows[0].clone(); (clients * fetches) as usize];
    let plan = RequestResponse {
        requester: End::Sink,
        objects: Objects::Listed(vec![Bytes(1_000_000)]),
        request: Bytes(400),
        think: Span { mean: pause, law: Law::Fixed },
        keeps_connections: false,
        repair: None,
    };
    setup.applications = (0..clients)
        .map(|client| ApplicationSetup {
            name: format!("client {client}"),
            flows: (client * fetches..(client + 1) * fetches).map(FlowId).collect(),
            application: Application::RequestResponse(plan.clone()),
        })
        .collect();
    setup.duration = (pause + secs(12)) * u64::from(fetches * clients);
    setup.measure_from = Instant::ZERO;
    let loads = run(&setup).unwrap().applications.into_iter().map(|application| match application.result {
        ApplicationResult::Pages(pages) => pages.load_times.iter().map(|time| time.as_secs_f64()).collect(),
        other => panic!("{other:?}"),
    });
    loads.collect()
}

fn with(memory: Memory) -> Algorithm {
    Algorithm::Rre(rre::Config { memory, ..rre::Config::default() })
}

/// The second fetch pays for the first one's ACKs. No later one waits longer than CUBIC's.
#[test]
fn fetches_in_a_row_after_the_second_take_no_longer_than_with_cubic() {
    let cubic = fetches(Algorithm::CUBIC, 1, 6, Duration::ZERO).remove(0);
    let per_address = fetches(with(Memory::Address), 1, 6, Duration::ZERO).remove(0);
    let forgetful = fetches(with(Memory::None), 1, 6, Duration::ZERO).remove(0);
    println!("{per_address:.2?}, without a memory {forgetful:.2?}, CUBIC {cubic:.2?}");
    assert!((per_address.len(), forgetful.len(), cubic.len()) == (6, 6, 6));
    assert!(per_address[4] <= 1.05 * cubic[5], "{per_address:?}, CUBIC {cubic:?}");
    assert_eq!(per_address[0].to_bits(), forgetful[0].to_bits(), "the first is as before");
    assert!(per_address[0] < 0.7 * cubic[0], "{per_address:?}");
    assert!(forgetful[4] > 1.4 * cubic[5], "{forgetful:?}");
}

#[test]
fn a_client_that_pauses_until_its_uplink_is_free_is_not_bounded() {
    let (per_address, forgetful) =
        (fetches(with(Memory::Address), 1, 4, secs(8)), fetches(with(Memory::None), 1, 4, secs(8)));
    assert_eq!(per_address, forgetful);
}

/// Clients behind one address share what the sender knows; with an address each they do not.
#[test]
fn clients_behind_one_address_are_bounded_by_what_any_of_them_left() {
    let mean = |memory| {
        let loads = fetches(with(memory), 4, 4, Duration::ZERO).concat();
        assert_eq!(loads.len(), 16);
        loads.iter().sum::<f64>() / 16.0
    };
    let (address, none) = (mean(Memory::Address), mean(Memory::None));
    println!("{address:.2} s, without a memory {none:.2} s");
    assert!(address < 0.85 * none, "{address} s, without a memory {none} s");
}
