//! When and how the receiver answers: ACK policy, SACK blocks, timestamps, windows.

use tacit_packet::units::{Bytes, Duration};
use tacit_tcp::{Config, DelayedAcks};

use crate::script::{Script, plain};

fn every(every: u32) -> Config {
    Config {
        ack_policy: DelayedAcks { every, quick_ack_segments: 0, ..DelayedAcks::default() }.into(),
        ..plain()
    }
}

#[test]
fn one_ack_per_l_full_segments() {
    for l in [1, 2, 4, 8, 16] {
        let mut script = Script::connected(every(l));
        let mut at = 1;
        for _ in 0..3 {
            for number in 1..=l {
                script.run_open(&format!("+1 < . {at}:{}(1000) ack 1", at + 1000));
                at += 1000;
                if number == l {
                    script.run(&format!("+0 > . 1:1(0) ack {at}"));
                }
            }
        }
        assert_eq!(script.counters().acks_sent, 3 + 1, "three, and the handshake's");
    }
}

#[test]
fn the_rest_waits_no_longer_than_the_timer() {
    Script::connected(every(4)).run(
        "+0  < . 1:1001(1000) ack 1
         +10 < . 1001:2001(1000) ack 1
         # 40 ms after the first byte that was not acknowledged.
         +30 > . 1:1(0) ack 2001
         # The timer does not run while nothing waits.
         +500 silence",
    );
}

#[test]
fn small_segments_count_by_bytes() {
    Script::connected(every(2)).run(
        "+0  < . 1:1001(1000) ack 1
         +0  < . 1001:1501(500) ack 1
         +0  < . 1501:1901(400) ack 1
         +0  < . 1901:2001(100) ack 1
         +0  > . 1:1(0) ack 2001",
    );
}

#[test]
fn a_young_connection_is_answered_segment_by_segment() {
    let ack_policy = DelayedAcks { every: 2, quick_ack_segments: 3, ..DelayedAcks::default() }.into();
    Script::connected(Config { ack_policy, ..plain() }).run(
        "+0  < . 1:1001(1000) ack 1
         +0  > . 1:1(0) ack 1001
         +1  < . 1001:2001(1000) ack 1
         +0  > . 1:1(0) ack 2001
         +1  < . 2001:3001(1000) ack 1
         +0  > . 1:1(0) ack 3001
         # Grown up: every second segment.
         +1  < . 3001:4001(1000) ack 1
         +1  < . 4001:5001(1000) ack 1
         +0  > . 1:1(0) ack 5001
         # A loss makes it young again.
         +1  < . 6001:7001(1000) ack 1
         +0  > . 1:1(0) ack 5001 <sack 6001:7001>
         +1  < . 5001:6001(1000) ack 1
         +0  > . 1:1(0) ack 7001
         +1  < . 7001:8001(1000) ack 1
         +0  > . 1:1(0) ack 8001",
    );
}

#[test]
fn data_carries_the_ack_when_there_is_some() {
    Script::connected(every(2)).run(
        "+0  < . 1:1001(1000) ack 1
         +10 write 100
         +0  > P. 1:101(100) ack 1001
         +100 < . 1001:1001(0) ack 101
         +500 silence",
    );
}

/// RFC 2018 section 4: first the block with the latest segment, then those reported most recently.
#[test]
fn sack_blocks_tell_the_latest_first() {
    Script::connected(every(2)).run(
        "+0 < . 1001:2001(1000) ack 1
         +0 > . 1:1(0) ack 1 <sack 1001:2001>
         +0 < . 3001:4001(1000) ack 1
         +0 > . 1:1(0) ack 1 <sack 3001:4001 1001:2001>
         +0 < . 5001:6001(1000) ack 1
         +0 > . 1:1(0) ack 1 <sack 5001:6001 3001:4001 1001:2001>
         +0 < . 7001:8001(1000) ack 1
         +0 > . 1:1(0) ack 1 <sack 7001:8001 5001:6001 3001:4001 1001:2001>
         # A fifth does not fit, and the oldest gives way.
         +0 < . 9001:10001(1000) ack 1
         +0 > . 1:1(0) ack 1 <sack 9001:10001 7001:8001 5001:6001 3001:4001>
         # The block that grows comes first.
         +0 < . 4001:5001(1000) ack 1
         +0 > . 1:1(0) ack 1 <sack 3001:6001 9001:10001 7001:8001 1001:2001>
         # The gap closes: acknowledged bytes are no block any more.
         +0 < . 1:1001(1000) ack 1
         +0 > . 1:1(0) ack 2001 <sack 3001:6001 9001:10001 7001:8001>",
    );
}

/// A full segment has no room for blocks, and does not count as a duplicate ACK: the ACK for data above a gap is sent
/// before the data that the same segment allowed.
#[test]
fn blocks_do_not_wait_for_data() {
    let mut script = Script::connected(every(2));
    script.run_open("+0 write 1000000");
    assert_eq!(script.replies().len(), 10);
    script.run(
        "+100 < . 1001:2001(1000) ack 1001
         +0   > . 10001:10001(0) ack 1 <sack 1001:2001>
         +0   > . 10001:11001(1000) ack 1 <none>
         +0   > . 11001:12001(1000) ack 1 <none>",
    );
}

#[test]
fn timestamps_leave_room_for_three_blocks() {
    let config = Config { timestamps: true, ..plain() };
    Script::connected(config).run(
        "+0 < . 1001:1989(988) ack 1 <TS 1000 100>
         +0 > . 1:1(0) ack 1 <TS 100 1000,sack 1001:1989>
         +0 < . 3001:3989(988) ack 1 <TS 1000 100>
         +0 > . 1:1(0) ack 1 <TS 100 1000,sack 3001:3989 1001:1989>
         +0 < . 5001:5989(988) ack 1 <TS 1000 100>
         +0 > . 1:1(0) ack 1 <TS 100 1000,sack 5001:5989 3001:3989 1001:1989>
         +0 < . 7001:7989(988) ack 1 <TS 1000 100>
         +0 > . 1:1(0) ack 1 <TS 100 1000,sack 7001:7989 5001:5989 3001:3989>",
    );
}

#[test]
fn overlapping_segments_are_counted_once() {
    let mut script = Script::connected(plain());
    script.run(
        "+0 < . 2001:3001(1000) ack 1
         +0 > . 1:1(0) ack 1
         +0 < . 1501:3501(2000) ack 1
         +0 > . 1:1(0) ack 1 <sack 1501:3501>
         +0 < . 1:1801(1800) ack 1
         +0 > . 1:1(0) ack 3501
         # Wholly old: answered, not counted.
         +0 < . 501:1501(1000) ack 1
         +0 > . 1:1(0) ack 3501
         # Half old.
         +0 < . 3001:4001(1000) ack 1
         +0 > . 1:1(0) ack 4001",
    );
    assert_eq!(script.counters().delivered_bytes, 4000);
}

/// RFC 7323 section 4.3: with delayed ACKs the echo is that of the first segment not yet acknowledged; with a hole, of
/// the last segment that advanced; when the hole is filled, of the segment that filled it.
#[test]
fn the_timestamp_echoed_is_the_one_that_measures() {
    let config = Config { timestamps: true, ..every(2) };
    Script::connected(config).run(
        "+0 < . 1:989(988) ack 1 <TS 1001 100>
         +5 < . 989:1977(988) ack 1 <TS 1002 100>
         +0 > . 1:1(0) ack 1977 <TS 105 1001>
         +0 < . 2965:3953(988) ack 1 <TS 1004 100>
         +0 > . 1:1(0) ack 1977 <TS 105 1001,sack 2965:3953>
         +0 < . 1977:2965(988) ack 1 <TS 1005 100>
         +0 > . 1:1(0) ack 3953 <TS 105 1005>",
    );
}

#[test]
fn paws_drops_what_is_older_than_the_last_timestamp() {
    let mut script = Script::connected(Config { timestamps: true, ..plain() });
    script.run(
        "+0 < . 1:989(988) ack 1 <TS 2000 100>
         +0 > . 1:1(0) ack 989 <TS 100 2000>
         # In the window, but from the last time round (RFC 7323 section 5.3 R1).
         +0 < . 989:1977(988) ack 1 <TS 1500 100>
         +0 > . 1:1(0) ack 989 <TS 100 2000>
         # Without the option it might be anything: not even answered (section 3.2).
         +0 < . 989:1977(988) ack 1
         +0 < . 989:1977(988) ack 1 <TS 2001 100>
         +0 > . 1:1(0) ack 1977 <TS 100 2001>",
    );
    assert_eq!((script.counters().paws_drops, script.counters().delivered_bytes), (1, 1976));
}

#[test]
fn a_full_buffer_closes_the_window_and_reading_opens_it() {
    let config = Config { receive_buffer: Bytes(4_000), ..plain() };
    Script::connected(config).run(
        "+0 hold
         +0 < . 1:1001(1000) ack 1
         +0 > . 1:1(0) ack 1001 win 3000
         +0 < . 1001:4001(3000) ack 1
         +0 > . 1:1(0) ack 4001 win 0
         # Data that comes all the same is answered and dropped, the ACK in it read.
         +0 < . 4001:4002(1) ack 1
         +0 > . 1:1(0) ack 4001 win 0
         # Opening by less than a segment would be silly (RFC 9293 section 3.8.6.2.2).
         +0 read 600
         +0 read 300
         +0 silence
         +0 read 100
         +0 > . 1:1(0) ack 4001 win 1000
         # An open window is announced in steps of two segments or half the buffer.
         +0 read 1500
         +0 silence
         +0 read 500
         +0 > . 1:1(0) ack 4001 win 3000",
    );
}

/// A window of 131,070 is sent in units of two: rounded down after an odd byte, its edge would move back by one (RFC
/// 7323 section 2.4).
#[test]
fn the_right_edge_does_not_move_back_by_rounding() {
    let config = Config { receive_buffer: Bytes(131_070), ..plain() };
    Script::new(config).run(
        "+0   connect
         +0   > S 0:0(0)
         +100 < S. 0:0(0) ack 1 win 60000 <mss 1000,sackOK,wscale 0>
         +0   > . 1:1(0) ack 1 win 65535
         +0   hold
         +0   < . 1:1000(999) ack 1
         +0   > . 1:1(0) ack 1000 win 65036",
    );
}

#[test]
fn the_right_edge_never_moves_back_nor_by_crumbs() {
    let config = Config { receive_buffer: Bytes(4_000), ..plain() };
    Script::connected(config).run(
        "+0 hold
         +0 < . 1:1001(1000) ack 1
         +0 > . 1:1(0) ack 1001 win 3000
         +0 read 900
         # The edge stays at 4001: 900 more is less than a segment.
         +0 < . 1001:1101(100) ack 1
         +0 > . 1:1(0) ack 1101 win 2900
         +0 read 200
         +0 < . 1101:1201(100) ack 1
         +0 > . 1:1(0) ack 1201 win 3900",
    );
}

#[test]
fn an_ack_delay_of_zero_means_at_once() {
    let ack_policy = DelayedAcks { every: 8, delay: Duration::ZERO, quick_ack_segments: 0 }.into();
    Script::connected(Config { ack_policy, ..plain() }).run(
        "+0 < . 1:1001(1000) ack 1
         +0 > . 1:1(0) ack 1001",
    );
}
