//! L4S (RFC 9330) on a wire with DualPI2.

use tacit_runs::single::{Options, prepare_changed};
use tacit_sim::RunOutcome;

/// Two flows behind a bottleneck of 40 Mb/s with a round trip of 20 ms.
fn beside(controls: [&str; 2], seed: u64) -> RunOutcome {
    let [one, other] = controls;
    let scenario = format!(
        "[run]\nduration = \"30 s\"\nmeasure-from = \"10 s\"\n\
         [wired]\nrate = \"40Mbps\"\nrtt = \"20 ms\"\nqueue = {{ discipline = \"dualpi2\" }}\n\
         [tcp]\nprofile = \"linux\"\necn = true\n[[client]]\n\
         [[flow]]\nname = \"one\"\ncongestion = \"{one}\"\n[[flow]]\nname = \"other\"\ncongestion = \"{other}\"\n"
    );
    let options = Options {
        scenario,
        assignments: Vec::new(),
        scheme: None,
        clients: Some(1),
        seed,
        wire: false,
        quick: false,
    };
    prepare_changed(&options, |_| {}).unwrap().simulate().unwrap()
}

fn rates_mbps(outcome: &RunOutcome) -> [f64; 2] {
    [0, 1].map(|flow| outcome.flows[flow].goodput_bps(outcome.measured) / 1e6)
}

/// The purpose of the coupling (RFC 9332 section 2.1): a scalable and a classic flow have about equal rates.
#[test]
fn prague_and_cubic_share_a_link_with_dualpi2() {
    for seed in 1..=3 {
        let rates = rates_mbps(&beside(["prague", "cubic"], seed));
        println!("prague {:.1} Mb/s, cubic {:.1} Mb/s", rates[0], rates[1]);
        assert!(rates[0] + rates[1] > 34.0, "{rates:?}");
        assert!((0.5..2.0).contains(&(rates[0] / rates[1])), "{rates:?}");
    }
}

/// "typically less than 1 ms" for L4S beside classic flows (RFC 9330 section 1), here two percent longer at 40 Mb/s, where
/// a packet takes 0.3 ms.
#[test]
fn prague_waits_little_beside_cubic() {
    let outcome = beside(["prague", "cubic"], 1);
    let p99_ms = outcome.pipes[0].l4s_queueing_delay_us.unwrap().p99 as f64 / 1e3;
    let classic_ms = outcome.pipes[0].queueing_delay_us.p95 as f64 / 1e3;
    println!("prague {p99_ms:.2} ms, all {classic_ms:.1} ms");
    assert!(p99_ms < 2.0 && classic_ms > 8.0, "{p99_ms} ms, {classic_ms} ms");
    assert_eq!(beside(["cubic"; 2], 1).pipes[0].l4s_queueing_delay_us, None);
}

/// L4S alone waits for about a millisecond, classic flows for the target of 15 ms.
#[test]
fn prague_keeps_the_queue_short() {
    let p95_ms = |control| beside([control; 2], 1).pipes[0].queueing_delay_us.p95 as f64 / 1e3;
    let (l4s, classic) = (p95_ms("prague"), p95_ms("cubic"));
    println!("prague {l4s:.1} ms, cubic {classic:.1} ms");
    assert!(l4s < 3.0 && (10.0..40.0).contains(&classic), "{l4s} ms, {classic} ms");
    let rates = rates_mbps(&beside(["prague"; 2], 1));
    assert!(rates[0] + rates[1] > 33.0 && (0.7..1.4).contains(&(rates[0] / rates[1])), "{rates:?}");
}
