//! Opening and closing (RFC 9293 sections 3.5, 3.6, 3.10.7).

use tacit_packet::units::{Bytes, Duration};
use tacit_tcp::Config;

use crate::script::{Script, plain};

#[test]
fn an_active_open_offers_all_options() {
    let config = Config { ..Config::default() };
    Script::new(config).run(
        "+0   connect
         +0   > S 0:0(0) win 65535 <mss 1460,sackOK,wscale 7,TS 0 0>
         +50  < S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS 700 0,wscale 8>
         +0   > . 1:1(0) ack 1 win 32768 <TS 50 700>
         +0   ! Connected
         +0   = Established
         # Twelve bytes of timestamps on every segment leave 1448.
         +0   write 2000
         +0   > . 1:1449(1448) ack 1
         +0   > P. 1449:2001(552) ack 1",
    );
}

#[test]
fn a_passive_open_answers_only_what_was_offered() {
    let config = Config { receive_buffer: Bytes(100_000), ..Config::default() };
    Script::new(config).run(
        "+0   listen
         +0   < S 0:0(0) win 1000 <mss 500>
         +0   > S. 0:0(0) ack 1 win 65535 <mss 1460>
         +30  < . 1:1(0) ack 1 win 1000
         +0   ! Connected
         # Without scaling the window cannot say more than 16 bits, and SYN windows never are scaled.
         +0   write 700
         +0   > . 1:501(500) ack 1 win 65535
         +0   > P. 501:701(200) ack 1",
    );
}

#[test]
fn an_mss_too_small_to_carry_anything_is_raised() {
    Script::new(plain()).run(
        "+0   connect
         +0   > S 0:0(0)
         +10  < S. 0:0(0) ack 1 <mss 1>
         +0   > . 1:1(0) ack 1
         +0   write 100
         +0   > . 1:89(88) ack 1
         +0   > P. 89:101(12) ack 1",
    );
}

#[test]
fn windows_are_scaled_both_ways() {
    let config =
        Config { receive_buffer: Bytes(1 << 20), mtu: Bytes(1040), timestamps: false, ..Config::default() };
    Script::new(config).run(
        "+0   connect
         +0   > S 0:0(0) win 65535 <mss 1000,sackOK,wscale 5>
         +100 < S. 0:0(0) ack 1 win 1000 <mss 1000,wscale 3>
         # 1 MiB in units of 32.
         +0   > . 1:1(0) ack 1 win 32768
         # The window of a SYN is not scaled: one segment fits.
         +0   write 10000
         +0   > . 1:1001(1000) ack 1
         # 500 in units of 8.
         +100 < . 1:1(0) ack 1001 win 500
         +0   > . 1001:2001(1000) ack 1
         +0   > . 2001:3001(1000) ack 1
         +0   > . 3001:4001(1000) ack 1
         +0   > . 4001:5001(1000) ack 1",
    );
}

#[test]
fn a_lost_syn_is_sent_again_and_makes_the_start_careful() {
    let mut script = Script::new(plain());
    script.run(
        "+0    connect
         +0    > S 0:0(0)
         +1000 > S 0:0(0)
         +2000 > S 0:0(0)
         +100  < S. 0:0(0) ack 1 <mss 1000>
         +0    > . 1:1(0) ack 1
         # One segment, not ten (RFC 5681 section 3.1), and three seconds of patience (RFC 6298 section
         # 5.7), for no round trip was measured.
         +0    write 5000
         +0    > . 1:1001(1000) ack 1
         +3000 > . 1:1001(1000) ack 1",
    );
    assert_eq!(script.counters().syn_retransmissions, 2);
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let mut script = Script::new(plain());
    script.run("+0 connect\n+0 > S 0:0(0)");
    for backoff in [1_000, 2_000, 4_000, 8_000, 16_000, 32_000] {
        script.run(&format!("+{backoff} > S 0:0(0)"));
    }
    for _ in 6..15 {
        script.run("+60000 > S 0:0(0)");
    }
    script.run(
        "+59999 = SynSent
         +1     = Closed
         +0     ! TimedOut",
    );
}

#[test]
fn both_ends_may_open_at_once() {
    Script::new(plain()).run(
        "+0   connect
         +0   > S 0:0(0)
         +10  < S 0:0(0) <mss 1000>
         +0   > S. 0:0(0) ack 1
         +0   = SynReceived
         # The peer's SYN-ACK starts before the window now; it is answered, and the ACK that answers
         # ours does the rest.
         +10  < S. 0:0(0) ack 1 <mss 1000>
         +0   > . 1:1(0) ack 1
         +0   < . 1:1(0) ack 1
         +0   = Established
         +0   ! Connected",
    );
}

#[test]
fn a_refused_connection_says_so() {
    Script::new(plain()).run(
        "+0   connect
         +0   > S 0:0(0)
         # A reset that acknowledges nothing of ours proves nothing.
         +10  < R 0:0(0)
         +0   = SynSent
         +10  < R. 0:0(0) ack 1
         +0   = Closed
         +0   ! Reset",
    );
}

#[test]
fn an_old_duplicate_in_syn_sent_is_reset() {
    Script::new(plain()).run(
        "+0   connect
         +0   > S 0:0(0)
         +10  < S. 900:900(0) ack 500
         +0   > R 500:500(0)
         +0   = SynSent",
    );
}

#[test]
fn a_listener_survives_what_is_no_syn() {
    Script::new(plain()).run(
        "+0   listen
         +0   < R 0:0(0)
         +0   < . 5:5(0) ack 77
         +0   > R 77:77(0)
         +0   = Listen
         +0   < S 0:0(0) <mss 1000>
         +0   > S. 0:0(0) ack 1
         # RFC 9293 section 3.10.7.4: a passive open that is reset listens again.
         +10  < R 1:1(0)
         +0   = Listen
         +0   < S 0:0(0) <mss 1000>
         +0   > S. 0:0(0) ack 1
         +10  < . 1:1(0) ack 1
         +0   = Established",
    );
}

#[test]
fn a_lost_syn_ack_is_sent_again() {
    Script::new(plain()).run(
        "+0    listen
         +0    < S 0:0(0) <mss 1000>
         +0    > S. 0:0(0) ack 1
         # The timer does it, and so does the peer's second SYN.
         +1000 > S. 0:0(0) ack 1
         +500  < S 0:0(0) <mss 1000>
         +0    > S. 0:0(0) ack 1",
    );
}

#[test]
fn we_close_first() {
    let mut script = Script::connected(Config { time_wait: Duration::from_secs(60), ..plain() });
    script.run(
        "+0   write 1500; close
         +0   > . 1:1001(1000) ack 1
         +0   > FP. 1001:1501(500) ack 1
         +0   = FinWait1
         +100 < . 1:1(0) ack 1502
         +0   ! SendDone
         +0   = FinWait2
         # The other direction stays open.
         +100 < . 1:1001(1000) ack 1502
         +0   > . 1502:1502(0) ack 1001
         +100 < F. 1001:1001(0) ack 1502
         +0   > . 1502:1502(0) ack 1002
         +0   ! PeerClosed
         +0   = TimeWait
         # Our last ACK was lost: it is sent again and 2MSL starts anew.
         +50000 < F. 1001:1001(0) ack 1502
         +0     > . 1502:1502(0) ack 1002
         +59999 = TimeWait
         +1     = Closed
         +0     ! Closed",
    );
    assert_eq!(script.counters().delivered_bytes, 1000);
}

#[test]
fn the_peer_closes_first() {
    Script::connected(plain()).run(
        "+0   < FP. 1:501(500) ack 1
         +0   > . 1:1(0) ack 502
         +0   ! PeerClosed
         +0   = CloseWait
         +0   write 200
         +0   > P. 1:201(200) ack 502
         +100 < . 502:502(0) ack 201
         +0   ! SendDone
         +0   close
         +0   > F. 201:201(0) ack 502
         +0   = LastAck
         +100 < . 502:502(0) ack 202
         +0   = Closed
         +0   ! Closed",
    );
}

#[test]
fn both_ends_may_close_at_once() {
    Script::connected(plain()).run(
        "+0   close
         +0   > F. 1:1(0) ack 1
         +10  < F. 1:1(0) ack 1
         +0   > . 2:2(0) ack 2
         +0   = Closing
         +0   ! PeerClosed
         +100 < . 2:2(0) ack 2
         +0   = TimeWait",
    );
}

#[test]
fn a_lost_fin_is_sent_again() {
    Script::connected(plain()).run(
        "+0   write 1000; close
         +0   > FP. 1:1001(1000) ack 1
         # SRTT 100 ms and at least 200 ms above it.
         +300 > FP. 1:1001(1000) ack 1
         +100 < . 1:1(0) ack 1001
         +0   ! SendDone
         +0   = FinWait1
         # All but the FIN arrived: only it is left to send.
         +600 > F. 1001:1001(0) ack 1",
    );
}

#[test]
fn a_fin_out_of_order_waits_for_what_precedes_it() {
    Script::connected(plain()).run(
        "+0   < F. 1001:1001(0) ack 1
         +0   > . 1:1(0) ack 1
         +0   = Established
         +0   < . 1:1001(1000) ack 1
         +0   > . 1:1(0) ack 1002
         +0   = CloseWait",
    );
}

#[test]
fn abort_resets() {
    Script::connected(plain()).run(
        "+0   write 500
         +0   > P. 1:501(500) ack 1
         +0   abort
         +0   > R 501:501(0)
         +0   = Closed
         +0   ! Closed
         # A closed end answers everything but resets by a reset.
         +10  < . 1:1(0) ack 501
         +0   > R 501:501(0)
         +10  < P 5:15(10)
         # Sequence number zero, 4001 after our SYN's.
         +0   > R. 4001:4001(0) ack 15
         +10  < R 501:501(0)",
    );
}
