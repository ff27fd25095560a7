//! RACK-TLP (RFC 8985) at the sender. The handshake took 100 ms, so 2 SRTT is 200 ms, the RTO 300 ms and the reordering
//! window 25 ms.

use tacit_congestion::Algorithm;
use tacit_tcp::{Config, LossDetection};

use crate::script::{Script, plain};

fn rack() -> Config {
    Config { congestion: Algorithm::NewReno.into(), loss_detection: LossDetection::RackTlp, ..plain() }
}

/// A sender with `segments` in flight and nothing else to send.
fn flight(config: Config, segments: u64) -> Script {
    let mut script = Script::connected(config);
    script.run_open(&format!("+0 write {}", segments * 1000));
    for index in 0..segments {
        let flags = if index + 1 == segments { "P." } else { "." };
        let start = index * 1000 + 1;
        script.run_open(&format!("+0 > {flags} {start}:{}(1000) ack 1", start + 1000));
    }
    script
}

/// The RFC's own example (section 3.4): four segments, the last three lost, and a retransmission lost again; all
/// repaired without a timeout.
#[test]
fn a_lost_tail_and_a_lost_retransmission_need_no_timeout() {
    let mut script = flight(rack(), 4);
    script.run(
        "+100 < . 1:1(0) ack 1001
         # 2 SRTT after the last ACK the probe goes out: the last segment again.
         +200 > P. 3001:4001(1000) ack 1
         # It is SACKed: segments sent before it are lost.
         +100 < . 1:1(0) ack 1001 <sack 3001:4001>
         +0   > . 1001:2001(1000) ack 1
         +0   > . 2001:3001(1000) ack 1
         # The first of the two is lost again. It was sent with the second, a round trip ago.
         +100 < . 1:1(0) ack 1001 <sack 2001:4001>
         +0   > . 1001:2001(1000) ack 1
         +100 < . 1:1(0) ack 4001",
    );
    let counters = script.counters();
    assert_eq!((counters.timeouts, counters.loss_probes, counters.fast_recoveries), (0, 1, 1));
    // "two separate congestion control reactions": the minimum of two segments.
    assert_eq!(counters.cwnd, 2_000);
}

/// "two separate congestion control reactions" (section 3.4), and no more: two lost retransmissions of one flight are
/// one loss.
#[test]
fn lost_retransmissions_halve_the_window_once_more() {
    let mut script = flight(rack(), 10);
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 4001:10001>
         +0   > . 1:1001(1000) ack 1
         +0   > . 1001:2001(1000) ack 1
         +0   > . 2001:3001(1000) ack 1
         +0   > . 3001:4001(1000) ack 1",
    );
    assert_eq!(script.counters().cwnd, 5_000);
    script.run(
        "# Of the four the first and the third are lost, which two ACKs tell.
         +100 < . 1:1(0) ack 1 <sack 1001:2001 4001:10001>
         +0   < . 1:1(0) ack 1 <sack 3001:10001 1001:2001>
         +0   > . 1:1001(1000) ack 1
         +0   > . 2001:3001(1000) ack 1
         +100 < . 1:1(0) ack 10001",
    );
    assert_eq!((script.counters().cwnd, script.counters().timeouts), (2_500, 0));
}

#[test]
fn without_rack_the_same_tail_costs_a_timeout() {
    let mut script = flight(Config { loss_detection: LossDetection::DupAck, ..rack() }, 4);
    script.run(
        "+100 < . 1:1(0) ack 1001
         +300 > . 1001:2001(1000) ack 1",
    );
    assert_eq!((script.counters().timeouts, script.counters().cwnd), (1, 1_000));
}

/// New data is used as a probe if there is some, even beyond the congestion window.
#[test]
fn a_probe_is_new_data_where_the_window_holds_some_back() {
    let mut script = flight(rack(), 10);
    script.run(
        "+0   write 5000
         +200 > . 10001:11001(1000) ack 1
         # One probe at a time; then the timeout, counted from the probe.
         +300 > . 1:1001(1000) ack 1",
    );
    assert_eq!((script.counters().loss_probes, script.counters().timeouts), (1, 1));
}

/// Two segments above the hole do not prove a loss by their number. A quarter of a round trip later they do.
#[test]
fn one_sacked_segment_above_and_a_quarter_of_a_round_trip_make_a_loss() {
    let mut script = flight(rack(), 3);
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 1001:3001>
         +25  > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 3001",
    );
    assert_eq!((script.counters().fast_recoveries, script.counters().timeouts), (1, 0));
}

#[test]
fn reordering_within_the_window_is_waited_for() {
    let mut script = flight(rack(), 3);
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 1001:2001>
         +20  < . 1:1(0) ack 3001
         +500 silence",
    );
    assert_eq!((script.counters().fast_recoveries, script.counters().segments_retransmitted), (0, 0));
}

/// Three SACKed segments prove a loss as long as nothing was ever reordered (section 6.2 step 4).
#[test]
fn three_sacked_segments_start_recovery_at_once_until_reordering_was_seen() {
    let mut script = flight(rack(), 5);
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 1001:4001>
         +0   > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 5001",
    );
    let mut script = flight(rack(), 10);
    script.run(
        "# The third segment comes before the second: reordering.
         +100 < . 1:1(0) ack 1001 <sack 2001:3001>
         +0   < . 1:1(0) ack 3001
         # Now three and more are not enough; the round trip that is left is.
         +0   < . 1:1(0) ack 3001 <sack 4001:8001>
         +25  > . 3001:4001(1000) ack 1",
    );
}

/// A reported duplicate shows that the reordering window was too small: it is 50 ms from then on.
#[test]
fn a_dsack_widens_the_window() {
    let mut script = flight(rack(), 2);
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 1001:2001>
         +25  > . 1:1001(1000) ack 1
         # Both copies arrive, the first 5 ms too late.
         +5   < . 1:1(0) ack 2001
         +95  < . 1:1(0) ack 2001 <sack 1:1001>
         +0   write 2000
         +0   > . 2001:3001(1000) ack 1
         +0   > P. 3001:4001(1000) ack 1
         +100 < . 1:1(0) ack 2001 <sack 3001:4001>
         +50  > . 2001:3001(1000) ack 1",
    );
    assert_eq!(script.counters().dsacks_received, 1);
}

/// A probe that repaired the only loss still halves the window; an unnecessary probe does not (section 7.4.2).
#[test]
fn a_loss_repaired_by_its_probe_is_still_a_loss() {
    let repaired = "+200 > P. 3001:4001(1000) ack 1
                    +0   write 1000
                    +0   > P. 4001:5001(1000) ack 1
                    +100 < . 1:1(0) ack 4001
                    +0   < . 1:1(0) ack 5001";
    let needless = "+200 > P. 3001:4001(1000) ack 1
                    +0   write 1000
                    +0   > P. 4001:5001(1000) ack 1
                    +100 < . 1:1(0) ack 4001 <sack 3001:4001>
                    +0   < . 1:1(0) ack 5001";
    let run = |text: &str| {
        let mut script = flight(rack(), 4);
        script.run("+100 < . 1:1(0) ack 2001");
        script.run(text);
        script.counters()
    };
    assert_eq!(run(repaired).cwnd, 2_000);
    assert_eq!(run(needless).cwnd, 10_000);
}

/// A receiver acknowledges both the probe and the data after it at once: only the D-SACK shows that the probe was
/// unnecessary. A receiver without D-SACK sends a duplicate ACK, which differs from a window update.
#[test]
fn a_probe_is_known_to_be_needless_by_a_report_or_by_a_duplicate() {
    let run = |acks: &str| {
        let mut script = flight(rack(), 4);
        script.run(
            "+100 < . 1:1(0) ack 2001
             +200 > P. 3001:4001(1000) ack 1
             +0   write 1000
             +0   > P. 4001:5001(1000) ack 1",
        );
        script.run(acks);
        script.counters().cwnd
    };
    assert_eq!(run("+100 < . 1:1(0) ack 5001 <sack 3001:4001>"), 10_000);
    let answered_by = |second: &str| {
        run(&format!(
            "+50 < . 1:1(0) ack 4001
             +50 < . 1:1(0) ack 4001 {second}
             +0  < . 1:1(0) ack 5001"
        ))
    };
    assert_eq!(answered_by(""), 10_000);
    assert_eq!(answered_by("win 50000"), 2_000);
}

/// A recovery makes a probe obsolete (TLP_init()): its end is not a second loss, and the next tail gets a probe.
#[test]
fn after_a_recovery_probes_begin_anew() {
    let mut script = flight(rack(), 10);
    script.run(
        "+100 < . 1:1(0) ack 1001
         +200 > P. 9001:10001(1000) ack 1
         +100 < . 1:1(0) ack 1001 <sack 9001:10001>
         +0   > . 1001:2001(1000) ack 1
         +0   > . 2001:3001(1000) ack 1
         +0   > . 3001:4001(1000) ack 1
         +0   > . 4001:5001(1000) ack 1
         +100 < . 1:1(0) ack 5001 <sack 9001:10001>
         +0   > . 5001:6001(1000) ack 1
         +0   > . 6001:7001(1000) ack 1
         +0   > . 7001:8001(1000) ack 1
         +0   > . 8001:9001(1000) ack 1
         +100 < . 1:1(0) ack 10001",
    );
    assert_eq!(script.counters().cwnd, 4_500);
    script.run(
        "+0   write 1000
         +0   > P. 10001:11001(1000) ack 1
         +100 < . 1:1(0) ack 11001
         +0   write 2000
         +0   > . 11001:12001(1000) ack 1
         +0   > P. 12001:13001(1000) ack 1
         +200 > P. 12001:13001(1000) ack 1",
    );
    assert_eq!((script.counters().loss_probes, script.counters().cwnd), (2, 4_500));
}

/// No probe without a round-trip measurement since the last one (section 7.2); a segment that was sent twice gives
/// none.
#[test]
fn a_probe_waits_for_a_measurement_after_the_last_one() {
    let mut script = flight(rack(), 1);
    script.run(
        "+300 > P. 1:1001(1000) ack 1
         +50  < . 1:1(0) ack 1001 <sack 1:1001>
         +0   write 2000
         +0   > . 1001:2001(1000) ack 1
         +0   > P. 2001:3001(1000) ack 1
         +300 > . 1001:2001(1000) ack 1",
    );
    assert_eq!((script.counters().loss_probes, script.counters().timeouts), (1, 1));
}

/// After a timeout only the first segment, and those sent a round trip before, count as lost (section 6.3; the example
/// of section 3.5).
#[test]
fn a_timeout_spares_what_was_sent_just_before() {
    let mut script = flight(rack(), 1);
    script.run(
        "# One segment: the probe waits for a delayed ACK too, until the timeout would come.
         +300 > P. 1:1001(1000) ack 1
         +250 write 2000
         +0   > . 1001:2001(1000) ack 1
         +0   > P. 2001:3001(1000) ack 1
         +50  > . 1:1001(1000) ack 1
         +60  < . 1:1(0) ack 1001
         # The two are on their way and are not sent again.
         +40  < . 1:1(0) ack 3001
         +900 silence",
    );
    assert_eq!((script.counters().timeouts, script.counters().segments_retransmitted), (1, 2));
}

/// Without SACK, RACK cannot be used.
#[test]
fn a_peer_without_sack_is_served_as_before() {
    let mut script = flight(Config { sack: false, ..rack() }, 5);
    script.run(
        "+100 < . 1:1(0) ack 1
         +0   < . 1:1(0) ack 1
         +0   < . 1:1(0) ack 1
         +0   > . 1:1001(1000) ack 1",
    );
}
