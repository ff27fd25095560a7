//! Explicit Congestion Notification (RFC 3168 section 6.1).

use tacit_congestion::Algorithm;
use tacit_packet::units::{BitRate, Duration};
use tacit_tcp::{Config, LossDetection, Undo};

use crate::pipe::{Link, Pipe};
use crate::script::{Script, plain};

fn config() -> Config {
    Config { ecn: true, congestion: Algorithm::NewReno.into(), ..plain() }
}

/// A connection that agreed on ECN, with ten segments in flight.
fn ten_in_flight() -> Script {
    ten_in_flight_of(config())
}

/// A connection that agreed on ECN.
fn connected(config: Config) -> Script {
    let mut script = Script::new(config);
    script.run(
        "+0   connect
         +0   > SEC 0:0(0)
         +100 < SE. 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
         +0   > . 1:1(0) ack 1",
    );
    script
}

fn ten_in_flight_of(config: Config) -> Script {
    let mut script = connected(config);
    script.run_open("+0 write 1000000");
    for at in (1..10_001).step_by(1000) {
        script.run_open(&format!("+0 > . {at}:{}(1000) ack 1 ect0", at + 1000));
    }
    script
}

/// A mark reaches the receiver as CE and returns as ECE; the window is halved once, and CWR confirms it.
#[test]
fn an_echo_halves_the_window_once_and_new_data_says_so() {
    let mut script = ten_in_flight();
    script.run(
        "+100 < E. 1:1(0) ack 2001
         +0   < E. 1:1(0) ack 4001
         # Half of ten is five, and six are still on their way.
         +0   < E. 1:1(0) ack 6001
         # The first new segment carries CWR.
         +0   > C. 10001:11001(1000) ack 1 ect0
         +0   < E. 1:1(0) ack 8001
         +0   > . 11001:12001(1000) ack 1 ect0
         +0   > . 12001:13001(1000) ack 1 ect0
         +0   < E. 1:1(0) ack 10001
         +0   > . 13001:14001(1000) ack 1 ect0
         +0   > . 14001:15001(1000) ack 1 ect0
         # All bytes in flight at the reduction are acknowledged: an echo from here on counts anew.
         +100 < E. 1:1(0) ack 11001
         +0   silence",
    );
    let counters = script.counters();
    assert_eq!((counters.ecn_reductions, counters.cwnd), (2, 2_500));
    assert_eq!((counters.fast_recoveries, counters.segments_retransmitted), (0, 0));
}

/// Retransmissions are not ECN-capable (section 6.1.5); a loss in the same window causes no second reduction.
#[test]
fn retransmissions_are_not_ect_and_a_loss_sets_cwr_too() {
    let mut script = ten_in_flight();
    script.run(
        "+100 < . 1:1(0) ack 1 <sack 1001:4001>
         +0   > . 1:1001(1000) ack 1
         +0   < E. 1:1(0) ack 1 <sack 1001:8001>
         +0   > C. 10001:11001(1000) ack 1 ect0
         +0   > . 11001:12001(1000) ack 1 ect0",
    );
    assert_eq!((script.counters().cwnd, script.counters().ecn_reductions), (5_000, 0));
}

/// If a loss proves spurious the window is restored, except for the reduction by a mark in between.
#[test]
fn an_echo_is_not_undone_with_an_earlier_loss() {
    let cwnd_after = |flags: &str| {
        let mut script = ten_in_flight_of(Config { undo: Undo::All, ..config() });
        script.run(
            "+100 < . 1:1(0) ack 1 <sack 1001:9001>
             +0   > . 1:1001(1000) ack 1
             +0   > C. 10001:11001(1000) ack 1 ect0
             +0   > . 11001:12001(1000) ack 1 ect0
             +0   > . 12001:13001(1000) ack 1 ect0",
        );
        script.run_open("+10 < . 1:1(0) ack 10001");
        script.replies();
        script.run_open(&format!("+90 < {flags} 1:1(0) ack 11001"));
        script.replies();
        // The retransmission arrived, too.
        script.run_open("+0 < . 1:1(0) ack 11001 <sack 1:1001>");
        script.counters().cwnd
    };
    assert!(cwnd_after(".") >= 10_000);
    assert!(cwnd_after("E.") < 5_000);
}

#[test]
fn a_receiver_echoes_until_it_is_told() {
    let mut script = Script::new(config());
    script.run(
        "+0   listen
         +0   < SEC 0:0(0) win 60000 <mss 1000,sackOK>
         +0   > SE. 0:0(0) ack 1
         +100 < . 1:1(0) ack 1
         +0   < . 1:1001(1000) ack 1 ect0
         +0   > . 1:1(0) ack 1001
         +0   < . 1001:2001(1000) ack 1 ce
         +0   > E. 1:1(0) ack 2001
         +0   < . 2001:3001(1000) ack 1 ect0
         +0   > E. 1:1(0) ack 3001
         +0   < C. 3001:4001(1000) ack 1 ect0
         +0   > . 1:1(0) ack 4001
         # Told and marked again.
         +0   < C. 4001:5001(1000) ack 1 ce
         +0   > E. 1:1(0) ack 5001",
    );
    assert_eq!(script.counters().ce_received, 2);
}

/// Without agreement no packet is ECN-capable and no echo is accepted.
#[test]
fn a_peer_that_does_not_accept_or_only_copies_bits_gets_plain_segments() {
    for answer in ["S.", "SEC."] {
        let mut script = Script::new(config());
        script.run(&format!(
            "+0   connect
             +0   > SEC 0:0(0)
             +100 < {answer} 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
             +0   > . 1:1(0) ack 1
             +0   write 3000
             +0   > . 1:1001(1000) ack 1
             +0   > . 1001:2001(1000) ack 1
             +0   > P. 2001:3001(1000) ack 1
             +100 < E. 1:1(0) ack 3001"
        ));
        assert_eq!(script.counters().ecn_reductions, 0);
    }
}

/// A path may drop SYNs with unknown flags: the second SYN has none, and ECN remains off even if the answer accepts it.
#[test]
fn a_lost_syn_is_sent_again_without_the_offer() {
    Script::new(config()).run(
        "+0    connect
         +0    > SEC 0:0(0)
         +1000 > S 0:0(0)
         +100  < SE. 0:0(0) ack 1 win 60000 <mss 1000,sackOK>
         +0    > . 1:1(0) ack 1
         +0    write 1000
         +0    > P. 1:1001(1000) ack 1",
    );
}

/// A listener without ECN does not accept it.
#[test]
fn an_offer_is_declined_where_ecn_is_off() {
    Script::new(plain()).run(
        "+0 listen
         +0 < SEC 0:0(0) win 60000 <mss 1000,sackOK>
         +0 > S. 0:0(0) ack 1",
    );
}

/// Every ACK echoes congestion: one reduction per round trip, down to two segments, and data still flows.
#[test]
fn a_flood_of_echoes_slows_down_and_stops_nothing() {
    let mut script = ten_in_flight();
    let mut acked = 1;
    for _ in 0..100 {
        acked = (acked + 1000).min(script.counters().bytes_sent + 1);
        script.run_open(&format!("+10 < E. 1:1(0) ack {acked}"));
        script.replies();
    }
    let counters = script.counters();
    assert_eq!((counters.cwnd, counters.timeouts), (2_000, 0));
    assert_eq!(counters.bytes_acked, 100_000);
    // Ten segments are in flight at first, then five, then two at a time.
    assert!((30..=50).contains(&counters.ecn_reductions), "{}", counters.ecn_reductions);
}

/// A bottleneck that marks at 5 ms of queueing instead of dropping at 50 ms: the link is used, and no segment is
/// retransmitted.
#[test]
fn a_marking_bottleneck_is_filled_without_loss() {
    for congestion in [Algorithm::NewReno, Algorithm::CUBIC] {
        let config = Config { ecn: true, congestion: congestion.into(), ..Config::default() };
        let link = || Link::new(Some(BitRate::from_mbps(50)), Duration::from_millis(10));
        let mut pipe = Pipe::new(config, config, link(), link());
        pipe.up.mark_above = Some(Duration::from_millis(5));
        pipe.client.write(u64::MAX);
        pipe.run_for(Duration::from_secs(2));
        let before = pipe.server.counters().delivered_bytes;
        pipe.run_for(Duration::from_secs(10));
        let rate = (pipe.server.counters().delivered_bytes - before) as f64 * 8.0 / 10.0;
        // Halving from 25 ms of data leaves 12.5 ms for a path of 20 ms: three quarters of it on average.
        assert!(rate > 0.75 * 50e6, "{congestion:?}: {rate}");
        let counters = pipe.client.counters();
        assert_eq!(counters.segments_retransmitted, 0, "{congestion:?}");
        assert!(counters.ecn_reductions > 2, "{congestion:?}");
        assert!(pipe.client.counters().srtt < Some(Duration::from_millis(30)));
    }
}

/// A probe repairs a lost tail, which reduces the window; the peer's echo in the same window does not reduce it again,
/// and CWR confirms the reduction (RFC 3168 section 6.1.2, RFC 8985 section 7.4.2).
#[test]
fn a_loss_that_a_probe_repaired_counts_as_the_reduction_of_its_window() {
    let mut script = connected(Config { loss_detection: LossDetection::RackTlp, ..config() });
    script.run_open("+0 write 10000");
    assert_eq!(script.replies().len(), 10);
    script.run_open("+100 < . 1:1(0) ack 9001");
    script.run_open("+300 > P. 9001:10001(1000) ack 1");
    script.run_open("+100 < . 1:1(0) ack 10001; write 8000");
    assert_eq!((script.replies().len(), script.counters().cwnd), (8, 10_000));
    script.run(
        "+100 < . 1:1(0) ack 12001; write 100000
         +0 < E. 1:1(0) ack 13001",
    );
    assert_eq!((script.counters().cwnd, script.counters().ecn_reductions), (4_000, 0));
    script.run_open("+0 < E. 1:1(0) ack 18001");
    assert_eq!(script.replies()[0], "C. 18001:19001(1000) ack 1");
    assert_eq!(script.counters().cwnd, 4_000);
}
