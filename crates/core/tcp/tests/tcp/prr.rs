//! Segments sent during fast recovery, ACK by ACK (RFC 6675, RFC 6937).

use tacit_congestion::Algorithm;
use tacit_tcp::{Config, LossDetection, Recovery};

use crate::script::{Script, plain};

fn config(recovery: Recovery, loss_detection: LossDetection) -> Config {
    let congestion = tacit_congestion::Config { initial_window: 20, ..Algorithm::NewReno.into() };
    Config { congestion, recovery, loss_detection, ..plain() }
}

/// Twenty segments are in flight, and the first `lost` of them are lost. Returns how many segments are sent after each
/// ACK for one more segment.
fn segments_sent_per_ack(config: Config, lost: u64) -> String {
    let mut script = Script::connected(config);
    script.run_open("+0 write 1000000");
    assert_eq!(script.replies().len(), 20);
    script.run_open("+100 silence");
    let start = lost * 1000 + 1;
    let acks = (lost + 1..=20).skip(1).map(|segment| {
        script.run_open(&format!("+0 < . 1:1(0) ack 1 <sack {start}:{}>", segment * 1000 + 1));
        char::from_digit(script.replies().len() as u32, 36).expect("an ACK sends less than 36 segments")
    });
    acks.collect()
}

/// The first ACKs send new data (limited transmit), then the retransmission is sent. Then the window, ten segments, is
/// full until half of the rest has arrived; PRR sends on about every other ACK instead.
#[test]
fn prr_spreads_the_reduction_over_the_round_trip() {
    for detection in [LossDetection::DupAck, LossDetection::RackTlp] {
        let run = |recovery| segments_sent_per_ack(config(recovery, detection), 1);
        assert_eq!(run(Recovery::Rfc6675), "210000000001111111", "{detection:?}");
        assert_eq!(run(Recovery::Prr), "210001010101000111", "{detection:?}");
    }
}

/// If more than half of the flight is lost, less than the window is in flight. RFC 6675 fills the difference at once,
/// PRR by one segment per ACK in addition to the delivered data.
#[test]
fn prr_fills_the_window_after_a_burst_of_losses_without_a_burst_of_its_own() {
    let run = |recovery| segments_sent_per_ack(config(recovery, LossDetection::DupAck), 14);
    assert_eq!(run(Recovery::Rfc6675), "25111");
    assert_eq!(run(Recovery::Prr), "22222");
}

/// A timeout ends the recovery and its proportional sending: after the repair, sending is limited by the window again.
#[test]
fn a_timeout_ends_the_reduction() {
    let mut script = Script::connected(config(Recovery::Prr, LossDetection::DupAck));
    script.run_open("+0 write 20000");
    script.replies();
    script.run_open("+100 < . 1:1(0) ack 1 <sack 1001:8001>");
    script.replies();
    script.run("+300 > . 1:1001(1000) ack 1");
    for acked in (8..=20).step_by(2) {
        script.run_open(&format!("+10 < . 1:1(0) ack {}", acked * 1_000 + 1));
        script.replies();
    }
    assert_eq!((script.counters().timeouts, script.counters().bytes_in_flight), (1, 0));
    script.run(
        "+10 write 3000
         +0  > . 20001:21001(1000) ack 1
         +0  > . 21001:22001(1000) ack 1
         +0  > P. 22001:23001(1000) ack 1",
    );
}
