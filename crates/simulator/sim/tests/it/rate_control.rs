//! Guarantees of rate-based congestion control, on a bottleneck of 20 Mb/s and 40 ms.

use crate::common::*;
use tacit_congestion::Algorithm;
use tacit_link::loss::Loss;
use tacit_link::queue::QueueLimit;
use tacit_link::wifi::phy::Standard;
use tacit_link::wired::Service;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_sim::record::{RunOutcome, SeriesPoint};
use tacit_sim::setup::{FlowSetup, Traffic};
use tacit_sim::transport;
use tacit_sim::{Setup, run};
use tacit_tcp as tcp;

const RATE: BitRate = BitRate::from_mbps(20);
const RTT: Duration = Duration::from_millis(40);
/// Bandwidth-delay product in bytes.
const BDP: u64 = 100_000;
/// Fraction of payload in a full IP packet.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// One bulk flow per controller, the first at time zero and the others one second apart, with a buffer of `buffer`
/// bytes.
fn bottleneck(controls: &[Algorithm], buffer: u64, duration: Duration, measure_from: Duration) -> Setup {
    let config =
        |congestion: Algorithm| tcp::Config { congestion: congestion.into(), ..tcp::Config::default() };
    let mut setup = wired(RATE, RTT / 2, 0, Loss::None, bulk(config(controls[0])));
    setup.wired[0].forward.queue = QueueLimit { packets: None, bytes: Some(Bytes(buffer)) }.into();
    setup.flows = (0..)
        .zip(controls)
        .map(|(number, control)| FlowSetup {
            start: Instant::ZERO + secs(1) * number,
            traffic: bulk(config(*control)),
            ..setup.flows[0].clone()
        })
        .collect();
    setup.duration = duration;
    setup.measure_from = Instant::ZERO + measure_from;
    setup
}

/// Utilisation of the link's payload rate by all flows together.
fn utilisation(outcome: &RunOutcome) -> f64 {
    outcome.goodput_bps() / (RATE.as_bps() as f64 * PAYLOAD_SHARE)
}

/// Share of the packets offered to the bottleneck that it dropped.
fn drop_share(outcome: &RunOutcome) -> f64 {
    let counters = outcome.pipes[0].counters;
    counters.dropped as f64 / counters.offered as f64
}

fn rates(outcome: &RunOutcome) -> Vec<f64> {
    outcome.flows.iter().map(|flow| flow.goodput_bps(outcome.measured) / 1e6).collect()
}

/// Cardwell et al. 2016: full utilisation with any buffer, where loss-based control needs one of a bandwidth-delay
/// product.
#[test]
fn bbr_fills_a_link_with_half_a_product_of_buffer() {
    let outcome = run(&bottleneck(&[Algorithm::BBR], BDP / 2, secs(20), Duration::ZERO)).unwrap();
    println!("utilisation {:.3}, dropped {:.4}", utilisation(&outcome), drop_share(&outcome));
    assert!(utilisation(&outcome) >= 0.9);
    // All drops are at the end of startup, which sends up to three products at once.
    assert!(drop_share(&outcome) < 0.02);
}

#[test]
fn bbr_flows_share_alike() {
    let setup = bottleneck(&[Algorithm::BBR; 2], 2 * BDP, secs(40), secs(10));
    let outcome = run(&setup).unwrap();
    println!("{:?} Mb/s, Jain {:.3}", rates(&outcome), jain(&rates(&outcome)));
    assert!(jain(&rates(&outcome)) > 0.9);
    assert!(utilisation(&outcome) > 0.9);
}

/// Cardwell et al. 2016 (figure 8) and Hock, Bless, Zitterbart 2017: with a small buffer BBR, which ignores losses,
/// takes most of the link. With a large one, CUBIC's queue makes the pipe look longer, but BBR's window of two products
/// at the minimum round-trip time limits its part of that queue.
#[test]
fn beside_cubic_bbr_wins_in_shallow_buffers_and_loses_in_deep_ones() {
    let mut shares = Vec::new();
    for products in [1, 2, 3, 5, 8, 10] {
        let controls = [Algorithm::BBR, Algorithm::CUBIC];
        let outcome = run(&bottleneck(&controls, products * BDP, secs(60), secs(10))).unwrap();
        let rates = rates(&outcome);
        println!("{products} BDP: BBR {:.1}, CUBIC {:.1} Mb/s", rates[0], rates[1]);
        assert!(utilisation(&outcome) > 0.95);
        shares.push(rates[0] / (rates[0] + rates[1]));
    }
    assert!(shares[0] > 0.75, "{shares:?}");
    assert!(shares.is_sorted_by(|more, less| more > less), "{shares:?}");
    assert!((0.2..0.45).contains(shares.last().unwrap()), "{shares:?}");
}

/// Half a product of buffer, as above: startup ends by its losses, and later ones are bounded.
#[test]
fn bbr3_fills_a_link_with_half_a_product_of_buffer() {
    let outcome = run(&bottleneck(&[Algorithm::Bbr3], BDP / 2, secs(20), Duration::ZERO)).unwrap();
    println!("utilisation {:.3}, dropped {:.4}", utilisation(&outcome), drop_share(&outcome));
    assert!(utilisation(&outcome) >= 0.9);
    assert!(drop_share(&outcome) < 0.02);
}

/// Google's measurements of version 3 (Cardwell et al., IETF 117, July 2023): flows converge to fair shares.
#[test]
fn bbr3_flows_share_alike() {
    let setup = bottleneck(&[Algorithm::Bbr3; 2], 2 * BDP, secs(60), secs(20));
    let outcome = run(&setup).unwrap();
    println!("{:?} Mb/s, Jain {:.3}", rates(&outcome), jain(&rates(&outcome)));
    assert!(jain(&rates(&outcome)) > 0.9);
    assert!(utilisation(&outcome) > 0.9);
}

/// "BBR v3 aims for lower losses" (Google's `tcp_bbr.c`): ten flows behind a tenth of a product, where version 1 loses
/// several times what is too much for version 3.
#[test]
fn in_short_buffers_bbr3_loses_less_than_version_1() {
    let lost = |control: Algorithm| {
        let mut setup = bottleneck(&[control; 10], 33 * 1_500, secs(20), secs(5));
        setup.wired[0].forward.service = Service::Rate(BitRate::from_mbps(100));
        for flow in &mut setup.flows {
            flow.start = Instant::ZERO;
        }
        let outcome = run(&setup).unwrap();
        let used = outcome.goodput_bps() / (100e6 * PAYLOAD_SHARE);
        println!("{control:?}: dropped {:.4}, utilisation {used:.3}", drop_share(&outcome));
        (drop_share(&outcome), used)
    };
    let ((one, _), (three, used)) = (lost(Algorithm::BBR), lost(Algorithm::Bbr3));
    assert!(three < one / 2.0, "{three} {one}");
    assert!(used > 0.85, "{used}");
}

/// "tolerating 1% loss per round trip" (draft-ietf-ccwg-bbr-06 section 5.3.3.8.3), which keeps CUBIC at a fraction.
#[test]
fn bbr3_tolerates_a_percent_of_losses() {
    let share = |control: Algorithm| {
        let mut setup = bottleneck(&[control], BDP, secs(30), secs(5));
        setup.wired[0].forward.loss =
            Loss::Bernoulli(tacit_packet::units::Ratio::from_fraction(0.01).unwrap());
        utilisation(&run(&setup).unwrap())
    };
    let (bbr3, cubic) = (share(Algorithm::Bbr3), share(Algorithm::CUBIC));
    println!("BBRv3 {bbr3:.3}, CUBIC {cubic:.3}");
    assert!(bbr3 > 0.8 && cubic < 0.4, "{bbr3} {cubic}");
}

/// Section 5.3.3.8: version 3 leaves CUBIC time to grow between its probes. In a product of buffer, where version 1 takes
/// more than three quarters, CUBIC has more beside it.
#[test]
fn beside_cubic_bbr3_takes_less_of_a_shallow_buffer_than_version_1() {
    let share = |control: Algorithm| {
        let outcome = run(&bottleneck(&[control, Algorithm::CUBIC], BDP, secs(60), secs(10))).unwrap();
        let rates = rates(&outcome);
        println!("{control:?} {:.1}, CUBIC {:.1} Mb/s", rates[0], rates[1]);
        rates[0] / (rates[0] + rates[1])
    };
    let (one, three) = (share(Algorithm::BBR), share(Algorithm::Bbr3));
    assert!(three < one && (0.2..0.75).contains(&three), "{three} {one}");
}

/// Aggregates arrive in bursts of several milliseconds: without extra room for them in the window, the channel would be
/// idle.
#[test]
fn bbr_fills_a_wlan_as_cubic_does() {
    let goodput = |congestion: Algorithm| {
        let config = tcp::Config { congestion: congestion.into(), ..tcp::Config::default() };
        run(&wlan(Standard::N, 150, 1, &bulk(config))).unwrap().goodput_bps() / 1e6
    };
    let (bbr, cubic) = (goodput(Algorithm::BBR), goodput(Algorithm::CUBIC));
    println!("BBR {bbr:.1}, CUBIC {cubic:.1} Mb/s");
    assert!(bbr > 0.9 * cubic, "{bbr} {cubic}");
}

/// Mean of the smoothed round-trip time of the first flow over the measured window, in milliseconds.
fn mean_rtt_ms(outcome: &RunOutcome, measure_from: Duration) -> f64 {
    let flow = outcome.flows[0].flow;
    let measured = |point: &&SeriesPoint| point.flow == flow && point.at >= Instant::ZERO + measure_from;
    let rtts: Vec<f64> =
        outcome.series.iter().filter(measured).map(|point| point.smoothed_rtt.as_secs_f64() * 1e3).collect();
    rtts.iter().sum::<f64>() / rtts.len() as f64
}

/// Utilisation, mean round-trip time in milliseconds and packets dropped.
fn alone(control: Algorithm) -> (f64, f64, u64) {
    let mut setup = bottleneck(&[control], BDP, secs(30), secs(5));
    setup.sample_interval = Some(Duration::from_millis(50));
    let outcome = run(&setup).unwrap();
    let (used, rtt, dropped) =
        (utilisation(&outcome), mean_rtt_ms(&outcome, secs(5)), outcome.pipes[0].counters.dropped);
    println!("{control:?}: utilisation {used:.3}, mean round trip {rtt:.1} ms, dropped {dropped}");
    (used, rtt, dropped)
}

/// Two to four segments of 0.6 ms are queued, plus the one being sent.
#[test]
fn vegas_keeps_the_pipe_full_and_the_queue_short() {
    let (used, rtt, dropped) = alone(Algorithm::Vegas);
    assert!(used > 0.97);
    assert!((41.2..43.6).contains(&rtt), "{rtt}");
    assert_eq!(dropped, 0);
}

/// Section 2.3 of the paper: between zero and 2.5/delta = 5 segments are queued; half of that on average.
#[test]
fn copa_keeps_the_pipe_full_and_the_queue_short() {
    let (used, rtt, dropped) = alone(Algorithm::Copa);
    assert!(used > 0.95);
    assert!((40.6..44.0).contains(&rtt), "{rtt}");
    assert_eq!(dropped, 0);
}

/// Allegro reacts to losses above 5 % but not to the queue, and recovers from its initial overshoot one move at a time;
/// Vivace's utility includes the growth of the queue.
#[test]
fn pcc_fills_a_link_and_vivace_keeps_its_queue_short() {
    let (allegro, _, _) = alone(Algorithm::Allegro);
    let (vivace, rtt, _) = alone(Algorithm::Vivace);
    assert!(allegro > 0.8, "{allegro}");
    assert!(vivace > 0.9, "{vivace}");
    assert!(rtt < 50.0, "{rtt}");
}

/// CUBIC fills five products of queue, 200 ms; with receive-side flow control 50 ms remain.
#[test]
fn a_regulated_upload_fills_the_link_and_leaves_the_queue_short() {
    let regulated = |receive_autotuning| {
        let mut setup = bottleneck(&[Algorithm::CUBIC], 5 * BDP, secs(30), secs(5));
        for flow in &mut setup.flows {
            let Traffic::Connection { config: transport::Config::Tcp(config), .. } = &mut flow.traffic else {
                panic!("TCP")
            };
            config.receive_autotuning = receive_autotuning;
        }
        setup.sample_interval = Some(Duration::from_millis(50));
        let outcome = run(&setup).unwrap();
        (utilisation(&outcome), mean_rtt_ms(&outcome, secs(5)))
    };
    let (_, long) = regulated(tcp::ReceiveAutotuning::LINUX);
    let (used, short) = regulated(tcp::ReceiveAutotuning::RSFC);
    println!("round trips of {long:.0} and {short:.0} ms, utilisation {used:.3}");
    assert!(used > 0.95, "{used}");
    assert!(long > 150.0 && short < 140.0, "{long} {short}");
}

#[test]
fn copa_flows_share_alike() {
    let setup = bottleneck(&[Algorithm::Copa; 2], BDP, secs(40), secs(10));
    let outcome = run(&setup).unwrap();
    println!("{:?} Mb/s, Jain {:.3}", rates(&outcome), jain(&rates(&outcome)));
    assert!(jain(&rates(&outcome)) > 0.9);
}

/// If CUBIC never lets the queue empty, Copa fills it, too; Vegas, which does not, gets little.
#[test]
fn copa_competes_where_vegas_gives_way() {
    let share = |control| {
        let outcome = run(&bottleneck(&[control, Algorithm::CUBIC], 2 * BDP, secs(60), secs(10))).unwrap();
        let rates = rates(&outcome);
        println!("{control:?} {:.1}, CUBIC {:.1} Mb/s", rates[0], rates[1]);
        rates[0] / (rates[0] + rates[1])
    };
    let (copa, vegas) = (share(Algorithm::Copa), share(Algorithm::Vegas));
    assert!((0.25..0.75).contains(&copa), "{copa}");
    assert!(vegas < 0.2, "{vegas}");
}
