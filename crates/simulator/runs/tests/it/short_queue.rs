//! TACK behind an access point with a queue of one eighth of the bandwidth-delay product.

use tacit_runs::single::{Options, prepare_changed};

/// The queue of 126 packets holds 12 ms of an 80 ms round trip. Packets that it drops while full must not be taken for
/// losses of the path that require more redundancy. A flow that made this error lost a quarter of its packets
/// permanently.
#[test]
fn a_queue_that_stands_full_is_not_taken_for_a_lossy_path() {
    for seed in 1..=6 {
        let assignments = ["wired.delay=40 ms", "run.duration=6 s", "run.measure-from=3 s"];
        let options = Options {
            scenario: "wlan-11n-150".into(),
            assignments: assignments.map(Into::into).into(),
            scheme: Some("tack".into()),
            clients: Some(1),
            seed,
            wire: false,
            quick: false,
        };
        let outcome = prepare_changed(&options, |_| {}).unwrap().simulate().unwrap();
        let sender = outcome.flows[0].sender.unwrap();
        let (again, sent) = (sender.packets_retransmitted, sender.data_packets_sent);
        println!("seed {seed}: {again} of {sent} again, {:.1} Mb/s", outcome.goodput_bps() / 1e6);
        assert!(again * 100 <= sent * 6, "seed {seed}: {again} of {sent} again");
    }
}
