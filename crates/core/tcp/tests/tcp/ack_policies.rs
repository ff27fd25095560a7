//! ACKs under the policies of other transports, one by one. The handshake took 100 ms, and the policies know nothing
//! else about the path.

use std::num::NonZeroU64;

use tacit_packet::units::Duration;
use tacit_tcp::{AckPolicy, Config, LinuxAcks, Reading};

use crate::script::{Script, plain};

fn receiver(ack_policy: AckPolicy) -> Script {
    Script::connected(Config { ack_policy, ..plain() })
}

/// `count` segments of 1000 bytes from `first`, all at the same time.
fn burst(first: u32, count: u32) -> String {
    burst_of(1000, first, count)
}

fn burst_of(bytes: u32, first: u32, count: u32) -> String {
    let segment = |number| {
        let start = first + bytes * number;
        format!("< . {start}:{}({bytes}) ack 1", start + bytes)
    };
    let segments: Vec<_> = (0..count).map(segment).collect();
    format!("+0 {}", segments.join(" ; "))
}

#[test]
fn quic_answers_every_second_packet_whatever_its_size() {
    receiver(AckPolicy::quic_ack2()).run(
        "+0  < . 1:101(100) ack 1
         +0  < . 101:151(50) ack 1
         +0  > . 1:1(0) ack 151
         # One alone waits 25 ms.
         +1  < . 151:1151(1000) ack 1
         +25 > . 1:1(0) ack 1151
         # A gap is reported when it opens; segments above it are counted.
         +1  < . 2151:3151(1000) ack 1
         +0  > . 1:1(0) ack 1151 <sack 2151:3151>
         +1  < . 3151:4151(1000) ack 1
         +1  < . 4151:5151(1000) ack 1
         +0  > . 1:1(0) ack 1151 <sack 2151:5151>
         +1  < . 1151:2151(1000) ack 1
         +0  > . 1:1(0) ack 5151",
    );
}

/// A gap causes an ACK when a packet three above the missing one has arrived (draft-ietf-quic-ack-frequency section
/// 6.2).
#[test]
fn ack_frequency_reports_a_gap_three_packets_deep() {
    receiver(AckPolicy::quic_ackfreq(5, Duration::from_millis(25), 3, Reading::ALL)).run(
        "+0  < . 1:1001(1000) ack 1
         +25 > . 1:1(0) ack 1001
         # Two that change places are not reported.
         +1  < . 2001:3001(1000) ack 1
         +1  < . 1001:2001(1000) ack 1
         +24 > . 1:1(0) ack 3001
         # A loss is, when a packet three above has come.
         +1  < . 4001:5001(1000) ack 1
         +1  < . 5001:6001(1000) ack 1
         +1  < . 6001:7001(1000) ack 1
         +0  > . 1:1(0) ack 3001 <sack 4001:7001>
         # It has been reported: five more packets, or 25 ms.
         +1  < . 7001:8001(1000) ack 1
         +1  < . 8001:9001(1000) ack 1
         +24 > . 1:1(0) ack 3001 <sack 4001:9001>",
    );
}

#[test]
fn chrome_thins_after_a_hundred_packets() {
    let mut script = receiver(AckPolicy::chrome());
    for pair in 0..50 {
        script.run(&format!("{}\n+0 > . 1:1(0) ack {}", burst(1 + 2000 * pair, 2), 2001 + 2000 * pair));
    }
    script.run(&format!("{}\n+0 > . 1:1(0) ack 110001", burst(100_001, 10)));
    script.run(
        "+0  < . 110001:111001(1000) ack 1
         # A quarter of 100 ms.
         +25 > . 1:1(0) ack 111001
         # The first four above a gap are answered one by one.
         +0  < . 112001:113001(1000) ack 1
         +0  > . 1:1(0) ack 111001 <sack 112001:113001>
         +0  < . 113001:114001(1000) ack 1
         +0  > . 1:1(0) ack 111001 <sack 112001:114001>
         +0  < . 114001:115001(1000) ack 1
         +0  > . 1:1(0) ack 111001 <sack 112001:115001>
         +0  < . 115001:116001(1000) ack 1
         +0  > . 1:1(0) ack 111001 <sack 112001:116001>
         +0  < . 116001:117001(1000) ack 1
         +10 silence
         # So is one that an ACK had shown to be missing.
         +0  < . 111001:112001(1000) ack 1
         +0  > . 1:1(0) ack 117001",
    );
}

#[test]
fn neqo_answers_four_times_a_window() {
    let mut script = receiver(AckPolicy::neqo());
    // The window is not known yet: every second packet, or a quarter of the round-trip time.
    script.run(
        "+0  < . 1:1001(1000) ack 1
         +25 > . 1:1(0) ack 1001",
    );
    for pair in 0..19 {
        script.run(&format!("{}\n+0 > . 1:1(0) ack {}", burst(1001 + 2000 * pair, 2), 3001 + 2000 * pair));
    }
    // Forty packets arrived in a round trip: an ACK per ten.
    script.run(
        "+75 < . 39001:40001(1000) ack 1
         +25 > . 1:1(0) ack 40001",
    );
    script.run(&format!("{}\n+0 > . 1:1(0) ack 50001", burst(40_001, 10)));
    script.run(
        "+0 < . 51001:52001(1000) ack 1
         +0 > . 1:1(0) ack 50001 <sack 51001:52001>
         +0 < . 50001:51001(1000) ack 1
         +0 > . 1:1(0) ack 52001",
    );
}

#[test]
fn picoquic_waits_for_a_quarter_of_a_window_or_ten_milliseconds() {
    let mut script = receiver(AckPolicy::picoquic());
    script.run(
        "+0  < . 1:1001(1000) ack 1
         +10 > . 1:1(0) ack 1001",
    );
    for pair in 0..19 {
        script.run(&format!("{}\n+0 > . 1:1(0) ack {}", burst(1001 + 2000 * pair, 2), 3001 + 2000 * pair));
    }
    // Forty packets arrived in a round trip: an ACK per ten.
    script.run(
        "+90 < . 39001:40001(1000) ack 1
         +10 > . 1:1(0) ack 40001",
    );
    script.run(&format!("{}\n+10 > . 1:1(0) ack 49001", burst(40_001, 9)));
    script.run(&format!("{}\n+0 > . 1:1(0) ack 59001", burst(49_001, 10)));
    script.run(
        "+0 < . 60001:61001(1000) ack 1
         +0 > . 1:1(0) ack 59001 <sack 60001:61001>",
    );
}

/// An ACK for more than 20 packets makes room for more than a call of the sender takes.
#[test]
fn msquic_answers_every_second_packet_until_its_sender_asks_for_45() {
    let mut script = receiver(AckPolicy::msquic());
    script.run(&format!("{}\n+0 > . 1:1(0) ack 20001", burst(1, 20)));
    script.run(&format!("{}\n+0 > . 1:1(0) ack 22001", burst(20_001, 2)));
    script.run(&format!("{}\n+0 > . 1:1(0) ack 43001", burst(22_001, 21)));
    script.run(&format!("{}\n+25 > . 1:1(0) ack 87001", burst(43_001, 44)));
    // One ACK for all that was read at once.
    script.run(&format!("{}\n+0 > . 1:1(0) ack 147001\n+25 silence", burst(87_001, 60)));
}

#[test]
fn aioquic_answers_some_time_after_the_first_packet_whatever_follows() {
    receiver(AckPolicy::aioquic()).run(&format!(
        "{}
         +1.4 > . 1:1(0) ack 5001
         # Nothing is acknowledged at once.
         +1   < . 6001:7001(1000) ack 1
         +1   < . 5001:6001(1000) ack 1
         +0.4 > . 1:1(0) ack 7001",
        burst(1, 5)
    ));
}

/// Every five packets.
#[test]
fn room_is_announced_by_itself_after_the_ack_of_what_made_it() {
    let config = Config { window_update_bytes: NonZeroU64::new(5000), ..plain() };
    let mut script = Script::connected(Config { ack_policy: AckPolicy::quinn(), ..config });
    script.run(&format!("{}\n+0 > . 1:1(0) ack 4001\n+1 silence", burst(1, 4)));
    script.run(&format!(
        "{}
         +0 > . 1:1(0) ack 6001
         +0 > . 1:1(0) ack 6001
         +1 silence",
        burst(4001, 2)
    ));
    // One of no even number: it would wait 25 ms, but the program reads it.
    script.run(&format!("{}\n+0 > . 1:1(0) ack 10001\n+1 silence", burst(6001, 4)));
    script.run(&format!("{}\n+0 > . 1:1(0) ack 11001\n+30 silence", burst(10_001, 1)));
    // What is behind a gap cannot be read.
    script.run(&format!("{}\n+0 > . 1:1(0) ack 11001 <sack 12001:18001>\n+30 silence", burst(12_001, 6)));
    script.run(
        "+0 < . 11001:12001(1000) ack 1
         +0 > . 1:1(0) ack 18001
         +0 > . 1:1(0) ack 18001
         +30 silence",
    );
}

/// As a UDP socket with little room, whose program has not read yet.
#[test]
fn a_socket_loses_what_it_has_no_room_for_at_one_instant() {
    let config = Config { socket_packets: Some(3), ..plain() };
    let mut script = Script::connected(Config { ack_policy: AckPolicy::every(1), ..config });
    script.run(&format!("{}\n+0 > . 1:1(0) ack 3001", burst(1, 5)));
    script.run(
        "+10 silence
         +1  < . 3001:4001(1000) ack 1
         +0  > . 1:1(0) ack 4001",
    );
}

#[test]
fn tack_lite_answers_four_times_a_round_trip_however_much_comes() {
    let mut script = receiver(AckPolicy::tack_lite());
    script.run(&format!("{}\n+25 > . 1:1(0) ack 50001", burst_of(100, 1, 500)));
}

#[test]
fn linux_answers_quickly_at_first_and_aggregates_once() {
    let mut script = receiver(AckPolicy::linux());
    // Sixteen quick ACKs, for any reason.
    for segment in 0..15 {
        let start = 1 + 1000 * segment;
        script.run(&format!(
            "+1 < . {start}:{}(1000) ack 1\n+0 > . 1:1(0) ack {}",
            start + 1000,
            start + 1000
        ));
    }
    script.run(&format!("{}\n+0 > . 1:1(0) ack 18001", burst(15_001, 3)));
    script.run(
        "# Grown up: one segment waits for another, or 40 ms.
         +1  < . 18001:19001(1000) ack 1
         +1  < . 19001:20001(1000) ack 1
         +0  > . 1:1(0) ack 20001
         +1  < . 20001:21001(1000) ack 1
         +40 > . 1:1(0) ack 21001",
    );
    // Segments that arrive at the same time are one aggregate, up to 64 KiB.
    script.run(&format!("{}\n+0 > . 1:1(0) ack 61001", burst(21_001, 40)));
    // Unnecessary data causes quick ACKs again.
    script.run(
        "+1 < . 60001:61001(1000) ack 1
         +0 > . 1:1(0) ack 61001
         +1 < . 61001:62001(1000) ack 1
         +0 > . 1:1(0) ack 62001",
    );
}

/// `tcp_send_delayed_ack`: the delay follows the time between segments, 130 ms in the end, but a round trip is 100 ms.
#[test]
fn linux_delays_an_ack_by_no_more_than_a_round_trip() {
    let mut script = receiver(AckPolicy::linux());
    // Past the quick ACKs.
    for segment in 0..16 {
        let start = 1 + 1000 * segment;
        script.run(&format!(
            "+1 < . {start}:{}(1000) ack 1\n+0 > . 1:1(0) ack {}",
            start + 1000,
            start + 1000
        ));
    }
    script.run(
        "+39  < . 16001:17001(1000) ack 1
         +58  < . 17001:18001(1000) ack 1
         +0   > . 1:1(0) ack 18001
         +87  < . 18001:19001(1000) ack 1
         +100 > . 1:1(0) ack 19001",
    );
}

/// An interface that passes on the segments of a millisecond together: one quick ACK for all of them.
#[test]
fn linux_waits_for_the_aggregate_to_be_flushed() {
    let policy = AckPolicy::Linux(LinuxAcks { gro_flush: Duration::from_millis(1) });
    receiver(policy).run(
        "+0   < . 1:1001(1000) ack 1
         +0.3 < . 1001:2001(1000) ack 1
         +0.3 < . 2001:3001(1000) ack 1
         +0.4 > . 1:1(0) ack 3001
         # A short segment ends an aggregate at once.
         +0   < . 3001:4001(1000) ack 1
         +0.5 < . 4001:4101(100) ack 1
         +0   > . 1:1(0) ack 4101",
    );
}

/// SACK compression: three duplicate ACKs are sent at once, because the sender needs them; then one for the segments of
/// a millisecond, or for 44.
#[test]
fn linux_compresses_sacks() {
    let mut script = receiver(AckPolicy::linux());
    // After the quick ACKs.
    for segment in 0..16 {
        let start = 1 + 1000 * segment;
        script.run(&format!(
            "+1 < . {start}:{}(1000) ack 1\n+0 > . 1:1(0) ack {}",
            start + 1000,
            start + 1000
        ));
    }
    script.run(
        "+1   < . 17001:18001(1000) ack 1
         +0   > . 1:1(0) ack 16001 <sack 17001:18001>
         +0.1 < . 18001:19001(1000) ack 1
         +0   > . 1:1(0) ack 16001 <sack 17001:19001>
         +0.1 < . 19001:20001(1000) ack 1
         +0   > . 1:1(0) ack 16001 <sack 17001:20001>
         +0.1 < . 20001:21001(1000) ack 1
         +0.4 < . 21001:22001(1000) ack 1
         # A millisecond after the first one held back; a twentieth of the round trip would be longer.
         +0.6 > . 1:1(0) ack 16001 <sack 17001:22001>",
    );
    script.run(&format!("{}\n+0 > . 1:1(0) ack 16001 <sack 17001:67001>", burst(22_001, 45)));
    script.run(
        "+0.1 < . 67001:68001(1000) ack 1
         # The gap closes: no more waiting.
         +0.1 < . 16001:17001(1000) ack 1
         +0   > . 1:1(0) ack 68001",
    );
}
