//! Segments no honest peer would send.

use proptest::prelude::*;
use tacit_congestion::Algorithm;
use tacit_packet::endpoint::Ends;
use tacit_packet::tcp::{Flags, SackBlocks, SackRange, Segment, Timestamps};
use tacit_packet::units::{Duration, FlowId, HostId, Instant, SeqNumber};
use tacit_packet::{Endpoint, IpHeader, Packet, Transport};
use tacit_tcp::{Config, Connection, ReadPolicy, State};

use crate::script::{Script, plain};
use crate::transfer::recovery_choices;

#[test]
fn a_reset_must_hit_exactly() {
    let mut script = Script::connected(plain());
    script.run(
        "# Outside the window: nothing. Inside but not at its start: a challenge (RFC 5961 section 3.2).
         +0  < R -5:-5(0)
         +0  < R 60002:60002(0)
         +0  < R 500:500(0)
         +0  > . 1:1(0) ack 1
         +0  = Established
         # Challenges are few, lest two ends challenge each other for ever.
         +0  < R 500:500(0)
         +100 < R 500:500(0)
         +0  > . 1:1(0) ack 1
         +0  < R 1:1(0)
         +0  = Closed
         +0  ! Reset",
    );
    assert_eq!(script.counters().challenge_acks_sent, 2);
}

#[test]
fn a_syn_in_the_middle_is_challenged() {
    Script::connected(plain()).run(
        "+0 < S 500:500(0) <mss 1000>
         +0 > . 1:1(0) ack 1
         +0 = Established",
    );
}

#[test]
fn an_ack_of_the_future_or_the_far_past_is_refused() {
    Script::connected(plain()).run(
        "+0 < . 1:101(100) ack 5000
         +0 > . 1:1(0) ack 1
         +0 < . 1:101(100) ack -70000
         +0 > . 1:1(0) ack 1
         +0 = Established",
    );
}

#[test]
fn segments_outside_the_window_are_answered_and_dropped() {
    let mut script = Script::connected(plain());
    script.run(
        "+0 < . 70001:71001(1000) ack 1
         +0 > . 1:1(0) ack 1
         # A segment across the edge is cut there.
         +0 < . 59501:60501(1000) ack 1
         +0 > . 1:1(0) ack 1 <sack 59501:60001>",
    );
    assert_eq!(script.counters().dropped_bytes, 1500);
}

#[test]
fn sack_blocks_that_lie_change_nothing() {
    let mut script = Script::connected(plain());
    script.run(
        "+0   write 3000
         +0   > . 1:1001(1000) ack 1
         +0   > . 1001:2001(1000) ack 1
         +0   > P. 2001:3001(1000) ack 1
         # Never sent, backwards, empty, below SND.UNA, half the circle away.
         +100 < . 1:1(0) ack 1 <sack 3001:9001 2001:1001 1001:1001 -900:0>
         +0   < . 1:1(0) ack 1 <sack 2147483648:2147483900 1:1 0:3001>",
    );
    let counters = script.counters();
    assert_eq!((counters.bytes_sacked, counters.pipe, counters.dup_acks_received), (0, 3_000, 0));
}

#[test]
fn a_comb_of_single_bytes_stays_bounded() {
    let mut script = Script::connected(plain());
    for tooth in 0..3_000 {
        let at = 3 + tooth * 2;
        script.run(&format!("+0 < . {at}:{}(1) ack 1\n+0 > . 1:1(0) ack 1", at + 1));
    }
    assert_eq!(script.counters().out_of_order_segments, 3_000);
    assert_eq!(script.counters().dropped_bytes, 3_000 - 1024);
}

#[test]
fn payload_longer_than_any_packet_is_ignored() {
    Script::connected(plain()).run("+0 < . 1:4294967295(4294967294) ack 1");
}

#[test]
fn a_second_fin_elsewhere_changes_nothing() {
    Script::connected(plain()).run(
        "+0 < F. 501:501(0) ack 1
         +0 > . 1:1(0) ack 1
         +0 < F. 301:301(0) ack 1
         +0 > . 1:1(0) ack 1
         +0 < . 1:1001(1000) ack 1
         +0 > . 1:1(0) ack 502
         +0 = CloseWait",
    );
}

const ENDS: Ends = Ends { flow: FlowId(0), local: HostId(0), remote: HostId(1) };
const ISS: SeqNumber = SeqNumber(u32::MAX - 500);
const PEER_ISS: SeqNumber = SeqNumber(700);

#[derive(Clone, Debug)]
enum Step {
    Segment(Segment),
    Wait(u64),
    Write(u64),
    Read(u64),
    Close,
    Abort,
}

/// Numbers near the relevant ones, and sometimes any number.
fn number(base: SeqNumber) -> impl Strategy<Value = SeqNumber> {
    prop_oneof![
        8 => (-10i64..3_000).prop_map(move |offset| base + offset as u32),
        1 => any::<u32>().prop_map(SeqNumber),
    ]
}

fn segment() -> impl Strategy<Value = Segment> {
    let flags = prop_oneof![
        10 => Just(Flags::ACK),
        2 => Just(Flags::SYN | Flags::ACK),
        1 => Just(Flags::SYN),
        1 => Just(Flags::FIN | Flags::ACK),
        1 => any::<u8>().prop_map(Flags),
    ];
    let block = (number(ISS), number(ISS)).prop_map(|(start, end)| SackRange { start, end });
    let payload = prop_oneof![8 => 0u32..1_500, 1 => any::<u32>()];
    let window = prop_oneof![3 => Just(60_000u16), 1 => any::<u16>()];
    let stamps = prop::option::of((any::<u32>(), any::<u32>()));
    let mss = prop::option::of(any::<u16>());
    let others = (prop::option::of(any::<u8>()), any::<bool>());
    (
        number(PEER_ISS),
        number(ISS),
        payload,
        window,
        flags,
        prop::collection::vec(block, 0..4),
        stamps,
        mss,
        others,
    )
        .prop_map(
            |(seq, ack, payload_len, window, flags, blocks, stamps, mss, (scale, sack_permitted))| {
                let mut sack = SackBlocks::EMPTY;
                blocks.into_iter().for_each(|block| assert!(sack.push(block)));
                Segment {
                    seq,
                    ack,
                    payload_len,
                    window,
                    flags,
                    timestamps: stamps.map(|(value, echo_reply)| Timestamps { value, echo_reply }),
                    sack,
                    mss,
                    window_scale: scale,
                    sack_permitted,
                    placeholder: false,
                }
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => segment().prop_map(Step::Segment),
        4 => (0u64..2_000).prop_map(Step::Wait),
        3 => (0u64..20_000).prop_map(Step::Write),
        2 => (0u64..5_000).prop_map(Step::Read),
        1 => Just(Step::Close),
        1 => Just(Step::Abort),
    ]
}

fn deliver(connection: &mut Connection, now: Instant, segment: Segment) {
    let packet = Packet {
        flow: ENDS.flow,
        source: ENDS.remote,
        destination: ENDS.local,
        ip: IpHeader::default(),
        transport: Transport::Tcp(segment),
    };
    connection.handle_packet(now, packet);
}

/// Drains as the law requires; a connection that never runs dry would hang here.
fn drain(connection: &mut Connection, now: Instant) -> usize {
    let sent = std::iter::from_fn(|| connection.poll_transmit(now)).take(100_000).count();
    while connection.poll_event().is_some() {}
    sent
}

proptest! {
    /// For any segments in any state: no panic, no endless output, and no byte delivered, acknowledged or read that was
    /// not received.
    #[test]
    fn any_segments_in_any_state_do_no_harm(
        opening in 0u8..3,
        manual in any::<bool>(),
        timestamps in any::<bool>(),
        sack in any::<bool>(),
        cubic in any::<bool>(),
        recovery in recovery_choices(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let congestion = if cubic { Algorithm::CUBIC } else { Algorithm::NewReno };
        let config = Config { timestamps, sack, congestion: congestion.into(), ..recovery };
        let mut now = Instant::ZERO + Duration::from_millis(5);
        let mut connection = match opening {
            0 => Connection::listen(config, ENDS, ISS),
            _ => Connection::connect(config, ENDS, ISS, now),
        };
        if manual {
            connection.set_read_policy(ReadPolicy::Manual);
        }
        drain(&mut connection, now);
        if opening == 2 {
            let answer = Segment {
                seq: PEER_ISS, ack: ISS + 1, window: 60_000, flags: Flags::SYN | Flags::ACK,
                sack_permitted: true, ..Segment::default()
            };
            deliver(&mut connection, now, answer);
        }
        let mut written = 0;
        for step in steps {
            match step {
                Step::Segment(segment) => deliver(&mut connection, now, segment),
                Step::Wait(millis) => {
                    now += Duration::from_millis(millis);
                    connection.handle_timeout(now);
                }
                Step::Write(bytes) => { connection.write(bytes); written += bytes; }
                Step::Read(bytes) => { connection.read(bytes); }
                Step::Close => connection.close(),
                Step::Abort => connection.abort(),
            }
            prop_assert!(drain(&mut connection, now) < 100_000);
            let counters = connection.counters();
            prop_assert!(counters.delivered_bytes <= counters.bytes_received);
            prop_assert!(counters.bytes_acked <= written);
            prop_assert!(counters.bytes_sent - counters.bytes_retransmitted <= written);
            prop_assert!(counters.bytes_in_flight <= counters.bytes_sent + 2);
            prop_assert!(counters.cwnd >= 76);
            // A timer is set while data is in flight.
            let watched = connection.poll_timeout().is_some() || connection.state() == State::Closed;
            prop_assert!(counters.bytes_in_flight == 0 || watched);
        }
    }
}
