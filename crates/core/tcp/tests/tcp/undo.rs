//! Unnecessary retransmissions: detected, reported and undone (RFC 2883, 3522, 4015, 5682).

use tacit_congestion::Algorithm;
use tacit_tcp::{Config, LossDetection, Undo};

use crate::script::{Script, plain};

fn config(undo: Undo) -> Config {
    Config { congestion: Algorithm::NewReno.into(), undo, ..plain() }
}

/// Ten segments in flight and plenty of data to follow. With timestamps segments carry 988 bytes, so scripts with
/// timestamps count in those.
fn ten_in_flight(config: Config) -> Script {
    let mut script = Script::connected(config);
    script.run_open("+0 write 1000000");
    assert_eq!(script.replies().len(), 10);
    script
}

/// The path stalls for half a second, then everything arrives. F-RTO sends new data instead of the nine lost segments,
/// and the next ACK, for data that was sent once, shows that the timeout was spurious.
#[test]
fn f_rto_undoes_a_timeout_when_originals_are_acknowledged() {
    let mut script = ten_in_flight(config(Undo::FRto));
    script.run(
        "+300 > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 1001
         +0   > . 10001:11001(1000) ack 1
         +0   > . 11001:12001(1000) ack 1
         +0   < . 1:1(0) ack 3001
         +0   > . 12001:13001(1000) ack 1
         +0   > . 13001:14001(1000) ack 1",
    );
    let counters = script.counters();
    assert_eq!((counters.timeouts, counters.spurious_timeouts, counters.segments_retransmitted), (1, 1, 1));
    // As before the timeout, plus one segment for the ACK.
    assert_eq!((counters.cwnd, counters.pipe), (11_000, 11_000));
}

/// Ten segments are in flight and nine are really lost: the new data triggers duplicate ACKs, and recovery continues.
#[test]
fn f_rto_is_not_deceived_by_new_data() {
    let mut script = ten_in_flight(config(Undo::FRto));
    script.run(
        "+300 > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 1001
         +0   > . 10001:11001(1000) ack 1
         +0   > . 11001:12001(1000) ack 1
         +100 < . 1:1(0) ack 1001 <sack 10001:11001>
         +0   > . 1001:2001(1000) ack 1
         +0   < . 1:1(0) ack 1001 <sack 10001:12001>
         +0   > . 2001:3001(1000) ack 1",
    );
    let counters = script.counters();
    assert_eq!((counters.timeouts, counters.spurious_timeouts, counters.cwnd), (1, 0, 2_000));
}

/// Without SACK a duplicate after the timeout ends the attempt at once (RFC 5682 section 2.1 step 2a).
#[test]
fn f_rto_without_sack_gives_up_at_the_first_duplicate() {
    let mut script = ten_in_flight(Config { sack: false, ..config(Undo::FRto) });
    script.run(
        "+300 > . 1:1001(1000) ack 1
         +50  < . 1:1(0) ack 1
         +50  < . 1:1(0) ack 1001
         +0   > . 1001:2001(1000) ack 1
         +0   > . 2001:3001(1000) ack 1",
    );
    assert_eq!(script.counters().spurious_timeouts, 0);
}

/// Without SACK a duplicate ACK after the new data confirms the losses (section 2.1 step 3a).
#[test]
fn f_rto_without_sack_takes_a_duplicate_of_new_data_for_a_loss() {
    let mut script = ten_in_flight(Config { sack: false, ..config(Undo::FRto) });
    script.run(
        "+300 > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 1001
         +0   > . 10001:11001(1000) ack 1
         +0   > . 11001:12001(1000) ack 1
         +100 < . 1:1(0) ack 1001
         +0   silence",
    );
    let counters = script.counters();
    assert_eq!((counters.spurious_timeouts, counters.cwnd), (0, 2_000));
}

/// In a recovery that has already begun, ACKs for earlier data prove nothing: if the timer expires in it, in fast
/// recovery or after another timeout, the timeout counts as real (step 1).
#[test]
fn f_rto_is_not_tried_while_other_data_is_under_repair() {
    let mut script = ten_in_flight(config(Undo::FRto));
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 2001:5001>
         +0   > . 1:1001(1000) ack 1
         # Nothing more is heard; then the copy sent by the timer is acknowledged.
         +300 > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 1001 <sack 2001:5001>
         +0   > . 1001:2001(1000) ack 1
         +0   > . 5001:6001(1000) ack 1",
    );
    let mut script = ten_in_flight(config(Undo::FRto));
    script.run(
        "+300 > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 1001 <sack 9001:10001>
         # Step 3 comes to nothing, and a second loss is repaired by a second timeout.
         +0   > . 10001:11001(1000) ack 1
         +0   > . 11001:12001(1000) ack 1
         +100 < . 1:1(0) ack 1001 <sack 9001:11001>
         +0   > . 1001:2001(1000) ack 1
         +0   < . 1:1(0) ack 1001 <sack 9001:12001>
         +0   > . 2001:3001(1000) ack 1",
    );
    script.run(
        "+500 > . 1001:2001(1000) ack 1
         +100 < . 1:1(0) ack 2001 <sack 9001:12001>
         +0   > . 2001:3001(1000) ack 1
         +0   > . 3001:4001(1000) ack 1",
    );
    assert_eq!(script.counters().timeouts, 2);
}

/// Eifel: the ACK echoes the first transmission, so the timeout was spurious, which is known with the first ACK.
#[test]
fn eifel_undoes_a_timeout_at_the_first_echo_of_an_original() {
    let mut script = ten_in_flight(Config { timestamps: true, ..config(Undo::Eifel) });
    script.run(
        "+300 > . 1:989(988) ack 1 <TS 400 1000>
         # Ours was sent at 100, and again at 400.
         +100 < . 1:1(0) ack 989 <TS 1001 100>
         +0   > . 9881:10869(988) ack 1
         +0   > . 10869:11857(988) ack 1",
    );
    let counters = script.counters();
    assert_eq!((counters.spurious_timeouts, counters.cwnd, counters.segments_retransmitted), (1, 10_868, 1));
    // The original's round-trip time of 400 ms is a valid sample (RFC 4015).
    assert_eq!(counters.latest_rtt.map(|rtt| rtt.as_millis()), Some(400));
}

#[test]
fn an_echo_of_the_copy_proves_the_timeout_right() {
    let mut script = ten_in_flight(Config { timestamps: true, ..config(Undo::Eifel) });
    script.run(
        "+300 > . 1:989(988) ack 1 <TS 400 1000>
         +100 < . 1:1(0) ack 989 <TS 1001 400>
         +0   > . 989:1977(988) ack 1
         +0   > . 1977:2965(988) ack 1",
    );
    assert_eq!((script.counters().spurious_timeouts, script.counters().cwnd), (0, 1_976));
}

/// Four other segments overtake the first one: three duplicate ACKs start a fast recovery, and the original ends it.
#[test]
fn eifel_undoes_a_fast_recovery_that_reordering_caused() {
    let mut script = ten_in_flight(Config { timestamps: true, ..config(Undo::Eifel) });
    script.run(
        "+100 < . 1:1(0) ack 1 <TS 1001 100,sack 989:3953>
         +0   > . 1:989(988) ack 1",
    );
    assert_eq!(script.counters().cwnd, 4_940);
    script.run_open("+10 < . 1:1(0) ack 3953 <TS 1001 100>");
    let counters = script.counters();
    assert_eq!((counters.fast_recoveries, counters.spurious_recoveries), (1, 1));
    assert!(counters.cwnd >= 9_880, "{}", counters.cwnd);
}

/// The original is so late that the timer expires during the fast recovery. Both reductions were wrong: the window is
/// restored to that before both.
#[test]
fn a_timeout_within_a_needless_recovery_is_undone_with_it() {
    let mut script = ten_in_flight(Config { timestamps: true, ..config(Undo::Eifel) });
    script.run(
        "+100 < . 1:1(0) ack 1 <TS 1001 100,sack 989:3953>
         +0   > . 1:989(988) ack 1
         +300 > . 1:989(988) ack 1",
    );
    assert_eq!(script.counters().cwnd, 988);
    script.run_open("+10 < . 1:1(0) ack 3953 <TS 1001 100>");
    let counters = script.counters();
    assert_eq!((counters.spurious_timeouts, counters.spurious_recoveries), (1, 0));
    assert!(counters.cwnd >= 9_880, "{}", counters.cwnd);
}

/// Without timestamps the receiver's D-SACK shows it, a round trip later, when the retransmission has arrived, too.
#[test]
fn a_reported_duplicate_of_every_copy_undoes_a_fast_recovery() {
    for loss_detection in [LossDetection::DupAck, LossDetection::RackTlp] {
        let mut script = ten_in_flight(Config { loss_detection, ..config(Undo::All) });
        script.run(
            "+100 < . 1:1(0) ack 1 <sack 1001:4001>
             +0   > . 1:1001(1000) ack 1",
        );
        script.run_open("+10 < . 1:1(0) ack 10001");
        assert_eq!(script.counters().cwnd, 5_000);
        script.replies();
        script.run_open("+90 < . 1:1(0) ack 10001 <sack 1:1001>");
        let counters = script.counters();
        assert_eq!((counters.spurious_recoveries, counters.dsacks_received), (1, 1), "{loss_detection:?}");
        assert!(counters.cwnd >= 10_000, "{}", counters.cwnd);
    }
}

/// A peer, or a network that duplicates packets, reports duplicates that were never sent: nothing is undone.
#[test]
fn duplicates_that_no_copy_explains_undo_nothing() {
    let mut script = ten_in_flight(config(Undo::All));
    let never_sent = "20001:30001 20001:40001";
    for blocks in ["1:1001", "-2000:1", never_sent, "2001:5001", "1:1001 2001:5001", "1:1001"] {
        script.run_open(&format!("+10 < . 1:1(0) ack 1001 <sack {blocks}>"));
        script.replies();
    }
    let counters = script.counters();
    // One retransmission was sent, so one duplicate is accepted; it is below the start of the recovery.
    assert_eq!((counters.fast_recoveries, counters.dsacks_received, counters.spurious_recoveries), (1, 1, 0));
}

/// The receiver's side (RFC 2883 section 4): below the cumulative ACK, within a received range, and only once.
#[test]
fn a_receiver_reports_what_came_twice_first_and_once() {
    let mut script = Script::connected(Config { dsack: true, ..plain() });
    script.run(
        "+0 < . 1:1001(1000) ack 1
         +0 > . 1:1(0) ack 1001 <none>
         +0 < . 1:1001(1000) ack 1
         +0 > . 1:1(0) ack 1001 <sack 1:1001>
         +0 < . 2001:3001(1000) ack 1
         +0 > . 1:1(0) ack 1001 <sack 2001:3001>
         # Twice, above a gap: the second block tells where it belongs.
         +0 < . 2001:2501(500) ack 1
         +0 > . 1:1(0) ack 1001 <sack 2001:2501 2001:3001>
         # Half of it new.
         +0 < . 501:1501(1000) ack 1
         +0 > . 1:1(0) ack 1501 <sack 501:1001 2001:3001>
         +0 < . 1501:2001(500) ack 1
         +0 > . 1:1(0) ack 3001 <none>",
    );
    assert_eq!(script.counters().dsacks_sent, 3);
}

/// The window has room for a tenth of a segment, which is not sent: without new data F-RTO gets no answer, so recovery
/// continues (RFC 5682 section 2.1 step 2).
#[test]
fn f_rto_needs_room_for_new_data() {
    let mut script = ten_in_flight(config(Undo::FRto));
    script.run(
        "+300 > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 1001 win 9100
         +0   > . 1001:2001(1000) ack 1
         +0   > . 2001:3001(1000) ack 1",
    );
}

/// The tail and its probe are lost; the following timeout was unnecessary for all other segments. Once it is undone,
/// RACK finds the tail by the data sent after it.
#[test]
fn after_an_undo_rack_finds_what_was_sent_again_and_lost() {
    let config = Config { loss_detection: LossDetection::RackTlp, ..config(Undo::FRto) };
    let mut script = Script::connected(config);
    script.run_open("+0 write 10000");
    assert_eq!(script.replies().len(), 10);
    script.run(
        "+200 > P. 9001:10001(1000) ack 1
         +300 > . 1:1001(1000) ack 1
         +0   write 100000
         +50  < . 1:1(0) ack 1001
         +0   > . 10001:11001(1000) ack 1
         +0   > . 11001:12001(1000) ack 1",
    );
    script.run_open("+0 < . 1:1(0) ack 5001");
    assert_eq!((script.counters().spurious_timeouts, script.replies().len()), (1, 4));
    script.run_open("+0 < . 1:1(0) ack 9001");
    assert_eq!(script.replies().len(), 6);
    script.run(
        "+30 < . 1:1(0) ack 9001 <sack 10001:11001>
         +0  > . 9001:10001(1000) ack 1",
    );
    assert_eq!(script.counters().timeouts, 1);
}
