//! Loss recovery at the sender (RFC 5681, 6298, 6582, 6675).

use tacit_congestion::Algorithm;
use tacit_tcp::Config;

use crate::script::{Script, plain};

fn reno() -> Config {
    Config { congestion: Algorithm::NewReno.into(), ..plain() }
}

fn without_sack() -> Config {
    Config { sack: false, ..reno() }
}

/// A sender with ten segments in flight, `1:10001`.
fn ten_in_flight(config: Config) -> Script {
    let mut script = Script::connected(config);
    script.run_open("+0 write 1000000");
    for at in (1..10_001).step_by(1000) {
        script.run_open(&format!("+0 > . {at}:{}(1000) ack 1", at + 1000));
    }
    script
}

#[test]
fn slow_start_doubles_and_counts_bytes() {
    let mut script = ten_in_flight(reno());
    // Each ACK frees the bytes it covers and adds the same number, at most two segments (RFC 3465).
    script.run(
        "+100 < . 1:1(0) ack 2001
         +0   > . 10001:11001(1000) ack 1
         +0   > . 11001:12001(1000) ack 1
         +0   > . 12001:13001(1000) ack 1
         +0   > . 13001:14001(1000) ack 1
         +0   < . 1:1(0) ack 6001
         +0   > . 14001:15001(1000) ack 1
         +0   > . 15001:16001(1000) ack 1
         +0   > . 16001:17001(1000) ack 1
         +0   > . 17001:18001(1000) ack 1
         +0   > . 18001:19001(1000) ack 1
         +0   > . 19001:20001(1000) ack 1",
    );
    assert_eq!(script.counters().cwnd, 14_000);
}

#[test]
fn three_duplicates_bring_a_fast_retransmit() {
    let mut script = ten_in_flight(reno());
    script.run(
        "# Limited transmit: each of the first two duplicates lets a new segment out (RFC 3042).
         +100 < . 1:1(0) ack 1 <sack 1001:2001>
         +0   > . 10001:11001(1000) ack 1
         +0   < . 1:1(0) ack 1 <sack 1001:3001>
         +0   > . 11001:12001(1000) ack 1
         +0   < . 1:1(0) ack 1 <sack 1001:4001>
         +0   > . 1:1001(1000) ack 1",
    );
    let counters = script.counters();
    // Half of the ten segments in flight; limited transmit does not count (RFC 5681 section 3.2).
    assert_eq!((counters.cwnd, counters.ssthresh, counters.fast_recoveries), (5_000, 5_000, 1));
    // Twelve sent, three SACKed, one lost and retransmitted.
    assert_eq!(counters.pipe, 9_000);
    script.run(
        "# Nothing more until the pipe has drained to the new window ...
         +10 < . 1:1(0) ack 1 <sack 1001:5001>
         +0  < . 1:1(0) ack 1 <sack 1001:6001>
         +0  < . 1:1(0) ack 1 <sack 1001:7001>
         +0  < . 1:1(0) ack 1 <sack 1001:8001>
         +0  silence
         # ... then one segment per segment that leaves.
         +0  < . 1:1(0) ack 1 <sack 1001:9001>
         +0  > . 12001:13001(1000) ack 1
         +0  < . 1:1(0) ack 1 <sack 1001:10001>
         +0  > . 13001:14001(1000) ack 1
         +0  < . 1:1(0) ack 1 <sack 1001:12001>
         +0  > . 14001:15001(1000) ack 1
         +0  > . 15001:16001(1000) ack 1
         # The retransmission arrives: recovery ends with the window at ssthresh.
         +90 < . 1:1(0) ack 12001
         +0  > . 16001:17001(1000) ack 1",
    );
    assert_eq!(script.counters().cwnd, 5_000);
}

/// More than two segments' worth of SACKed bytes counts like three duplicates, even in one ACK.
#[test]
fn one_ack_with_enough_sacked_is_enough() {
    let mut script = ten_in_flight(reno());
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 1001:4001>
         +0   > . 1:1001(1000) ack 1",
    );
}

#[test]
fn a_burst_loss_is_repaired_without_a_timeout() {
    let mut script = ten_in_flight(reno());
    script.run(
        "# Of ten segments only the last three arrive. Seven are lost at once, and five fit.
         +100 < . 1:1(0) ack 1 <sack 7001:8001>
         +0   > . 10001:11001(1000) ack 1
         +0   < . 1:1(0) ack 1 <sack 7001:9001>
         +0   > . 11001:12001(1000) ack 1
         +0   < . 1:1(0) ack 1 <sack 7001:10001>
         +0   > . 1:1001(1000) ack 1
         +0   > . 1001:2001(1000) ack 1
         +0   > . 2001:3001(1000) ack 1
         # Each that arrives makes room for the next: first lost segments, then new ones.
         +100 < . 1:1(0) ack 1 <sack 7001:11001>
         +0   > . 3001:4001(1000) ack 1
         +0   < . 1:1(0) ack 1 <sack 7001:12001>
         +0   > . 4001:5001(1000) ack 1
         +0   < . 1:1(0) ack 1001 <sack 7001:12001>
         +0   > . 5001:6001(1000) ack 1
         +0   < . 1:1(0) ack 2001 <sack 7001:12001>
         +0   > . 6001:7001(1000) ack 1
         +0   < . 1:1(0) ack 3001 <sack 7001:12001>
         +0   > . 12001:13001(1000) ack 1
         +100 < . 1:1(0) ack 12001
         +0   > . 13001:14001(1000) ack 1
         +0   > . 14001:15001(1000) ack 1
         +0   > . 15001:16001(1000) ack 1
         +0   > . 16001:17001(1000) ack 1",
    );
    assert_eq!((script.counters().timeouts, script.counters().fast_recoveries), (0, 1));
    assert_eq!(script.counters().segments_retransmitted, 7);
}

/// NextSeg rule (3): with nothing else to send, segments below SACKed data are retransmitted on suspicion; rule (4):
/// once per recovery, the very last segment is.
#[test]
fn the_end_of_the_data_is_rescued() {
    let mut script = Script::connected(reno());
    script.run_open("+0 write 10000");
    for at in (1..9_001).step_by(1000) {
        script.run_open(&format!("+0 > . {at}:{}(1000) ack 1", at + 1000));
    }
    script.run(
        "+0   > P. 9001:10001(1000) ack 1
         # The first, the eighth and the last are lost.
         +100 < . 1:1(0) ack 1 <sack 1001:4001>
         +0   > . 1:1001(1000) ack 1
         +0   < . 1:1(0) ack 1 <sack 1001:7001>
         # The eighth has one SACKed segment above: no proof, but nothing better to do either.
         +0   < . 1:1(0) ack 1 <sack 8001:9001 1001:7001>
         +0   > . 7001:8001(1000) ack 1
         # The first hole is filled, beyond RescueRxt.
         +100 < . 1:1(0) ack 7001 <sack 8001:9001>
         +0   > P. 9001:10001(1000) ack 1
         +0   < . 1:1(0) ack 9001
         +100 < . 1:1(0) ack 10001",
    );
    assert_eq!((script.counters().rescue_retransmissions, script.counters().timeouts), (1, 0));
}

/// RFC 6582: without SACK, a partial ACK identifies the next lost segment, one per round trip.
#[test]
fn newreno_repairs_one_loss_per_partial_ack() {
    let mut script = ten_in_flight(without_sack());
    script.run(
        "+100 < . 1:1(0) ack 1
         +0   > . 10001:11001(1000) ack 1
         +0   < . 1:1(0) ack 1
         +0   > . 11001:12001(1000) ack 1
         +0   < . 1:1(0) ack 1
         +0   > . 1:1001(1000) ack 1
         +0   < . 1:1(0) ack 1
         +0   < . 1:1(0) ack 1
         +0   < . 1:1(0) ack 1
         +0   < . 1:1(0) ack 1
         # Seven duplicates, one loss and one retransmission: five in the pipe. The next makes room.
         +0   < . 1:1(0) ack 1
         +0   > . 12001:13001(1000) ack 1
         # The third segment was lost too.
         +100 < . 1:1(0) ack 2001
         +0   > . 2001:3001(1000) ack 1
         +0   > . 13001:14001(1000) ack 1
         +100 < . 1:1(0) ack 13001
         +0   > . 14001:15001(1000) ack 1",
    );
    let counters = script.counters();
    assert_eq!((counters.fast_recoveries, counters.timeouts, counters.segments_retransmitted), (1, 0, 2));
    // "min (ssthresh, max(FlightSize, SMSS) + SMSS)": one segment was in flight when it ended.
    assert_eq!(counters.cwnd, 2_000);
}

/// A duplicate ACK acknowledges nothing new and offers the same window (RFC 5681 section 2); a receiver that reads
/// slowly sends ACKs with other windows.
#[test]
fn window_updates_are_no_duplicates() {
    let mut script = ten_in_flight(without_sack());
    script.run(
        "+100 < . 1:1(0) ack 1 win 50000
         +0   < . 1:1(0) ack 1 win 40000
         +0   < . 1:1(0) ack 1 win 50000
         +0   < . 1:1(0) ack 1 win 60000
         +100 silence",
    );
    assert_eq!(script.counters().fast_recoveries, 0);
}

/// Go-back-N after a timeout makes the receiver send duplicate ACKs for data it had; they do not count as a new loss
/// (RFC 6582 section 3.2 step 1).
#[test]
fn newreno_is_not_fooled_by_its_own_echo() {
    let mut script = ten_in_flight(without_sack());
    script.run(
        "+300 > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 10001
         +0   > . 10001:11001(1000) ack 1
         +0   > . 11001:12001(1000) ack 1
         # Limited transmit for the first two, and no more.
         +0   < . 1:1(0) ack 10001
         +0   > . 12001:13001(1000) ack 1
         +0   < . 1:1(0) ack 10001
         +0   > . 13001:14001(1000) ack 1
         +0   < . 1:1(0) ack 10001
         +0   < . 1:1(0) ack 10001",
    );
    assert_eq!(script.counters().fast_recoveries, 0);
}

#[test]
fn a_timeout_backs_off_and_collapses_the_window() {
    let mut script = ten_in_flight(reno());
    // RTO = SRTT + max(200 ms, 4 RTTVAR) with SRTT = 100 ms, RTTVAR = 50 ms (RFC 6298 section 2.2).
    script.run(
        "+300  > . 1:1001(1000) ack 1
         +600  > . 1:1001(1000) ack 1
         +1200 > . 1:1001(1000) ack 1",
    );
    let counters = script.counters();
    assert_eq!((counters.cwnd, counters.ssthresh, counters.timeouts), (1_000, 5_000, 3));
    script.run(
        "# Slow start again; without timestamps the ACK measures nothing (Karn), so the backed-off RTO
         # of 2.4 s stays.
         +100  < . 1:1(0) ack 1001
         +0    > . 1001:2001(1000) ack 1
         +0    > . 2001:3001(1000) ack 1
         +2400 > . 1001:2001(1000) ack 1",
    );
    assert_eq!(script.counters().srtt.map(|srtt| srtt.as_millis()), Some(100));
}

#[test]
fn with_timestamps_a_retransmission_can_be_measured() {
    let config = Config { timestamps: true, ..reno() };
    let mut script = Script::connected(config);
    script.run(
        "+0   write 988
         +0   > P. 1:989(988) ack 1 <TS 100 1000>
         +300 > P. 1:989(988) ack 1 <TS 400 1000>
         # The echo says which of the two arrived: 100 ms ago, not 400.
         +100 < . 1:1(0) ack 989 <TS 1001 400>",
    );
    let counters = script.counters();
    assert_eq!(counters.latest_rtt.map(|rtt| rtt.as_millis()), Some(100));
    assert!(counters.rto.as_millis() < 400);
}

/// The data arrived but its ACK was lost: the retransmission is refused as old, so the echo is still that of the first
/// transmission. Measured from that, the round-trip time would be 400 ms.
#[test]
fn an_echo_of_an_earlier_copy_is_no_measurement() {
    let config = Config { timestamps: true, ..reno() };
    let mut script = Script::connected(config);
    script.run(
        "+0   write 988
         +0   > P. 1:989(988) ack 1 <TS 100 1000>
         +300 > P. 1:989(988) ack 1 <TS 400 1000>
         +100 < . 1:1(0) ack 989 <TS 1001 100>",
    );
    let counters = script.counters();
    assert_eq!(counters.latest_rtt.map(|rtt| rtt.as_millis()), Some(100));
    assert_eq!(counters.rto.as_millis(), 600);
}

/// SACK information survives a timeout: only missing data is retransmitted.
#[test]
fn after_a_timeout_sacked_segments_are_not_sent_again() {
    let mut script = ten_in_flight(reno());
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 1001:3001>
         +0   > . 10001:11001(1000) ack 1
         +0   > . 11001:12001(1000) ack 1
         +200 > . 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 3001
         +0   > . 3001:4001(1000) ack 1
         +0   > . 4001:5001(1000) ack 1",
    );
}

#[test]
fn a_connection_without_answers_is_given_up() {
    let mut script = Script::connected(reno());
    script.run("+0 write 1000\n+0 > P. 1:1001(1000) ack 1");
    for backoff in [300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400] {
        script.run(&format!("+{backoff} > P. 1:1001(1000) ack 1"));
    }
    for _ in 8..15 {
        script.run("+60000 > P. 1:1001(1000) ack 1");
    }
    script.run("+60000 = Closed\n+0 ! TimedOut");
}

/// RFC 5681 section 4.1: after an RTO without data there is no ACK clock, so the large window is not used.
#[test]
fn an_idle_connection_restarts_from_the_initial_window() {
    let mut script = Script::connected(reno());
    script.run_open("+0 write 40000");
    for at in (1..10_001).step_by(1000) {
        script.run_open(&format!("+0 > . {at}:{}(1000) ack 1", at + 1000));
    }
    for ack in (2_001..10_002).step_by(2000) {
        script.run_open(&format!("+0 < . 1:1(0) ack {ack}"));
        for at in 0..4 {
            let at = 10_001 + (ack - 2_001) * 2 + at * 1000;
            script.run_open(&format!("+0 > . {at}:{}(1000) ack 1", at + 1000));
        }
    }
    for ack in (12_001..30_002).step_by(2000) {
        script.run_open(&format!("+0 < . 1:1(0) ack {ack}"));
        for at in (0..4).map(|at| 30_001 + (ack - 12_001) * 2 + at * 1000).filter(|at| *at < 40_001) {
            let flags = if at == 39_001 { "P." } else { "." };
            script.run_open(&format!("+0 > {flags} {at}:{}(1000) ack 1", at + 1000));
        }
    }
    script.run_open("+0 < . 1:1(0) ack 40001");
    assert!(script.counters().cwnd > 20_000);
    script.run_open("+1000 write 20000");
    for at in (40_001..50_001).step_by(1000) {
        script.run_open(&format!("+0 > . {at}:{}(1000) ack 1", at + 1000));
    }
    script.run("+0 silence");
    assert_eq!(script.counters().idle_restarts, 1);
}

/// A window that was not used was not tested, so it does not grow.
#[test]
fn an_application_that_sends_little_grows_no_window() {
    let mut script = Script::connected(reno());
    for number in 0..50 {
        let at = 1 + number * 2000;
        script.run(&format!(
            "+0  write 2000
             +0  > . {at}:{}(1000) ack 1
             +0  > P. {}:{end}(1000) ack 1
             +50 < . 1:1(0) ack {end}",
            at + 1000,
            at + 1000,
            end = at + 2000
        ));
    }
    assert_eq!(script.counters().cwnd, 10_000);
}

#[test]
fn a_closed_window_is_probed_ever_more_seldom() {
    let mut script = Script::connected(reno());
    script.run(
        "+0    write 5000
         +0    > . 1:1001(1000) ack 1
         +0    > . 1001:2001(1000) ack 1
         +0    > . 2001:3001(1000) ack 1
         +0    > . 3001:4001(1000) ack 1
         +0    > P. 4001:5001(1000) ack 1
         +100  < . 1:1(0) ack 5001 win 0
         +0    write 3000
         # Just below SND.UNA, so that it must be answered.
         +300  > . 5000:5000(0) ack 1
         +100  < . 1:1(0) ack 5001 win 0
         +500  > . 5000:5000(0) ack 1
         +100  < . 1:1(0) ack 5001 win 0
         +1100 > . 5000:5000(0) ack 1
         # The answer to a probe, or an update that comes by itself, opens the window.
         +100  < . 1:1(0) ack 5001 win 2000
         +0    > . 5001:6001(1000) ack 1
         +0    > . 6001:7001(1000) ack 1",
    );
    assert_eq!(script.counters().window_probes, 3);
}

#[test]
fn probes_that_nobody_answers_end_the_connection() {
    let mut script = Script::connected(reno());
    script.run("+0 < . 1:1(0) ack 1 win 0\n+0 write 1000");
    for backoff in [300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400] {
        script.run(&format!("+{backoff} > . 0:0(0) ack 1"));
    }
    for _ in 8..15 {
        script.run("+60000 > . 0:0(0) ack 1");
    }
    script.run("+60000 = Closed\n+0 ! TimedOut");
}

/// "As long as the receiving TCP peer continues to send acknowledgments" the connection stays open (RFC 9293 section
/// 3.8.6.1): here for half an hour.
#[test]
fn a_window_may_stay_closed_while_probes_are_answered() {
    let mut script = Script::connected(reno());
    script.run("+0 < . 1:1(0) ack 1 win 0\n+0 write 1000");
    for backoff in [300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400].into_iter().chain([60_000; 30]) {
        script.run(&format!("+{backoff} > . 0:0(0) ack 1\n+0 < . 1:1(0) ack 1 win 0"));
        assert_eq!(script.counters().rto.as_millis(), (backoff * 2).min(60_000));
    }
    script.run(
        "+0 = Established
         +0 < . 1:1(0) ack 1 win 1000
         +0 > P. 1:1001(1000) ack 1",
    );
}

/// Half of the largest window counts like a segment, if that is small (RFC 9293 section 3.8.6.2.1).
#[test]
fn half_the_largest_window_is_filled() {
    let mut script = Script::new(reno());
    script.run(
        "+0   connect
         +0   > S 0:0(0)
         +100 < S. 0:0(0) ack 1 win 1500 <mss 1000,sackOK>
         +0   > . 1:1(0) ack 1
         +0   write 5000
         +0   > . 1:1001(1000) ack 1
         # 500 more is a third of it.
         +100 < . 1:1(0) ack 1001 win 700
         +100 < . 1:1(0) ack 1001 win 800
         +0   > . 1001:1801(800) ack 1",
    );
}

/// RFC 9293 section 3.8.6.2.1: small increments of the window are not filled at once; without larger ones, the override
/// timer sends them.
#[test]
fn small_windows_are_not_filled_by_crumbs() {
    let mut script = Script::connected(reno());
    script.run(
        "+0   < . 1:1(0) ack 1 win 300
         +0   write 5000
         +100 < . 1:1(0) ack 1 win 400
         +299 silence
         +1   > . 1:401(400) ack 1
         +100 < . 1:1(0) ack 401 win 1400
         +0   > . 401:1401(1000) ack 1",
    );
}

/// The first and the fifth of ten are lost, and the second of those sent meanwhile. The ACK that ends the recovery
/// stops at that one, beyond the data sent before it began: duplicates of this ACK are valid (RFC 6582 section 3.2 step
/// 1).
#[test]
fn newreno_without_sack_recovers_again_from_a_loss_beyond_the_recovery_point() {
    let mut script = ten_in_flight(without_sack());
    script.run("+100 silence");
    let mut sent = Vec::new();
    for _ in 0..8 {
        script.run_open("+0 < . 1:1(0) ack 1");
        sent.extend(script.replies());
    }
    assert_eq!(sent[2], ". 1:1001(1000) ack 1");
    script.run_open("+100 < . 1:1(0) ack 5001");
    assert_eq!(script.replies()[0], ". 5001:6001(1000) ack 1");
    for _ in 0..4 {
        script.run_open("+0 < . 1:1(0) ack 5001");
        assert_eq!(script.replies().len(), 1);
    }
    script.run("+100 < . 1:1(0) ack 13001");
    assert_eq!(script.counters().fast_recoveries, 1);
    script.run(
        "+1 < . 1:1(0) ack 13001
         +0 > . 18001:19001(1000) ack 1
         +0 < . 1:1(0) ack 13001
         +0 > . 19001:20001(1000) ack 1
         +0 < . 1:1(0) ack 13001
         +0 > . 13001:14001(1000) ack 1",
    );
    let counters = script.counters();
    assert_eq!((counters.fast_recoveries, counters.timeouts), (2, 0));
}
