//! Peers that lie.

use std::sync::Arc;

use proptest::prelude::*;
use tacit_packet::Endpoint;
use tacit_packet::endpoint::Event;
use tacit_packet::tack::packet::{
    Block, Body, Cause, CloseCode, Control, Data, Datagram, InstantAck, Stamp, StreamId, Sync, Tack, Token,
};
use tacit_packet::units::{Bytes, SeqNumber};
use tacit_tack_proto::{Config, Reader};

use crate::script::{FULL, Script, at_ms};

/// A sender with ten packets out: numbers 2 to 11 or so.
fn sender() -> (Script, Vec<u32>) {
    let mut script = Script::established(Config::default());
    script.end.write(u64::MAX);
    let numbers = script.numbered(at_ms(10)).into_iter().map(|(number, _)| number).collect();
    (script, numbers)
}

#[track_caller]
fn is_thrown_out(body: Body) {
    let (mut script, _) = sender();
    script.give(at_ms(50), body);
    assert_eq!(script.takes(at_ms(50)), [Body::Close(CloseCode::Violation)]);
    assert_eq!(script.events(), [Event::Reset]);
}

fn tack(tack: Tack) -> Body {
    Body::Tack(Arc::new(tack))
}

#[test]
fn acks_of_packets_never_sent_are_refused() {
    let beyond = SeqNumber(10_000);
    let block = Block { first: beyond, last: beyond };
    is_thrown_out(tack(Tack { cumulative: beyond, ..Tack::default() }));
    is_thrown_out(tack(Tack { acked: vec![block], ..Tack::default() }));
    is_thrown_out(tack(Tack { unacked: vec![block], ..Tack::default() }));
    is_thrown_out(tack(Tack { received: SeqNumber(1 << 30), ..Tack::default() }));
    let instant = InstantAck {
        cause: Cause::Loss,
        largest: beyond,
        second: SeqNumber(2),
        since: SeqNumber(2),
        cumulative: SeqNumber(0),
        window: SeqNumber(0),
    };
    is_thrown_out(Body::Instant(instant));
}

/// A receiver that acknowledges packets it cannot have seen meets a number that was never sent, sooner or later: whether it lists
/// numbers or says that it has all below one.
#[test]
fn an_optimistic_receiver_is_caught_within_4096_packets() {
    for lists in [true, false] {
        let (mut script, mut numbers) = sender();
        let mut sent = 0u32;
        let caught = (11..5_000).any(|now| {
            sent += numbers.len() as u32;
            if let [first, .., last] = numbers[..] {
                let block = Block { first: SeqNumber(first), last: SeqNumber(last) };
                let (cumulative, acked) = match lists {
                    true => (block.first, vec![block]),
                    false => (block.last + 1, Vec::new()),
                };
                let (window, delay_us) = (SeqNumber(1 << 30), u32::MAX);
                script
                    .give(at_ms(now), tack(Tack { cumulative, acked, window, delay_us, ..Tack::default() }));
            }
            if script.events() == [Event::Reset] {
                return true;
            }
            script.end.handle_timeout(at_ms(now));
            numbers = script.numbered(at_ms(now)).into_iter().map(|(number, _)| number).collect();
            false
        });
        assert!(caught && sent <= 4096 + 1000, "{sent} packets were acknowledged without being seen");
    }
}

/// A rate that was never sent at is not believed: the next packets leave no faster for it.
#[test]
fn a_claimed_rate_does_not_speed_the_sender_up() {
    let sent_in_100_ms = |rate_kbps| {
        let (mut script, numbers) = sender();
        let claim = Tack {
            cumulative: SeqNumber(numbers[numbers.len() - 1] + 1),
            received: SeqNumber(numbers.len() as u32 * u32::from(FULL)),
            rate_kbps,
            window: SeqNumber(1 << 30),
            departed: Stamp(0),
            delay_us: u32::MAX,
            ..Tack::default()
        };
        script.give(at_ms(60), tack(claim));
        (60..160).map(|now| script.takes(at_ms(now)).len()).sum::<usize>()
    };
    let (honest, wild) = (sent_in_100_ms(2_000), sent_in_100_ms(u32::MAX));
    assert!(wild <= 4 * honest, "{wild} packets where {honest} were due");
}

/// A peer that may have four streams open beside stream 0, each of 10,000 bytes.
fn script() -> Script {
    Script::established(Config {
        max_streams: 4,
        stream_buffer: Bytes(10_000),
        reader: Reader::Explicit,
        ..Config::default()
    })
}

fn bytes(stream: u32, offset: u32, payload_len: u16, fin: bool) -> Body {
    let (stream, offset) = (StreamId(stream), SeqNumber(offset));
    Body::Data(Data { stream, offset, payload_len, fin, ..Data::default() })
}

fn reset(stream: u32, end: u32) -> Body {
    Body::Control(Control::Reset { stream: StreamId(stream), code: 1, end: SeqNumber(end) })
}

#[test]
fn streams_have_rules() {
    let stop = |stream| Body::Control(Control::Stop { stream: StreamId(stream), code: 1 });
    let held = |stream| Body::Control(Control::Held { stream: StreamId(stream) });
    let streams = |limit| Body::Control(Control::Streams { limit });
    // All but the last are right, and the last is wrong.
    let wrong = [
        // More than it may open: stream 0 and four.
        vec![bytes(8, 0, 1, false), bytes(10, 0, 1, false)],
        vec![reset(10, 0)],
        vec![stop(10)],
        vec![held(10)],
        // One that we never opened.
        vec![bytes(1, 0, 1, false)],
        vec![reset(1, 0)],
        vec![stop(1)],
        vec![held(3)],
        // Another end than before, or one that the bytes before it do not allow.
        vec![bytes(2, 0, 10, true), bytes(2, 10, 1, false)],
        vec![bytes(2, 0, 10, true), bytes(2, 0, 9, true)],
        vec![bytes(2, 5, 5, true), reset(2, 11)],
        vec![bytes(2, 0, 10, false), reset(2, 9)],
        vec![reset(2, 10), reset(2, 12)],
        vec![reset(2, 10), bytes(2, 8, 3, false)],
        // Beyond the limit of a stream.
        vec![reset(2, 10_001)],
        vec![bytes(2, 9_999, 2, false)],
        // Stream 0 ends with the connection.
        vec![reset(0, 0)],
        vec![stop(0)],
        vec![streams(1 << 30), streams((1 << 30) + 1)],
    ];
    for packets in wrong {
        let mut script = script();
        let last = packets.len() - 1;
        for (nth, body) in packets.iter().enumerate() {
            script.give(at_ms(20), body.clone());
            let violated = script.takes(at_ms(20)).contains(&Body::Close(CloseCode::Violation));
            assert_eq!(violated, nth == last, "{nth} of {packets:?}");
        }
    }
}

/// Streams that are opened and given up at once: as many are remembered as may be open, and their memory is given back.
#[test]
fn a_peer_that_opens_and_resets_costs_no_memory() {
    let mut script = script();
    let mut allowed = 5;
    for place in 1..20_000u32 {
        assert!(place < allowed, "{place} were opened and {allowed} may be");
        let now = at_ms(20 + u64::from(place) / 10);
        script.give(now, reset(2 * place, 10_000));
        let opened = std::iter::from_fn(|| script.end.poll_stream_event()).count();
        assert_eq!((opened, script.end.peer_streams()), (2, 1));
        script.end.close_stream(StreamId(2 * place));
        // All of it arrives; later packets are about streams that are over.
        for _ in 0..2 {
            let sent = script.numbered(now);
            for (_, body) in &sent {
                if let Body::Control(Control::Streams { limit }) = body {
                    allowed = *limit;
                }
            }
            // Each by its number, for some are left out on purpose.
            let numbers = sent.iter().rev().map(|(number, _)| SeqNumber(*number));
            let acked: Vec<Block> = numbers.map(|number| Block { first: number, last: number }).collect();
            if !acked.is_empty() {
                script.give(now, tack(Tack { acked, delay_us: u32::MAX, ..Tack::default() }));
            }
            while script.end.poll_stream_event().is_some() {}
        }
        assert_eq!((script.end.peer_streams(), script.end.open_streams()), (0, 0));
    }
}

fn any_control() -> impl Strategy<Value = Body> {
    (0..4, 0u32..40, any::<u32>(), 0u32..20_000).prop_map(|(kind, number, code, end)| {
        let stream = StreamId(number);
        Body::Control(match kind {
            0 => Control::Reset { stream, code, end: SeqNumber(end) },
            1 => Control::Stop { stream, code },
            2 => Control::Streams { limit: code >> (number % 32) },
            _ => Control::Held { stream },
        })
    })
}

fn any_body() -> impl Strategy<Value = Body> {
    let number = prop_oneof![0u32..30, any::<u32>()].prop_map(SeqNumber);
    let block = (number.clone(), number.clone()).prop_map(|(first, last)| Block { first, last });
    let blocks = prop::collection::vec(block, 0..5);
    let tack = (number.clone(), blocks.clone(), blocks, any::<u32>(), any::<u8>(), number.clone()).prop_map(
        |(cumulative, acked, unacked, wild, repeated, received)| {
            tack(Tack {
                left: Stamp(wild.rotate_left(7)),
                departed: Stamp(wild),
                delay_us: wild / 3,
                rate_kbps: wild,
                loss: wild as u16,
                received,
                window: SeqNumber(wild),
                ce: wild as u16,
                burst: (wild >> 16) as u16,
                base_loss: wild as u8,
                cumulative,
                acked,
                unacked,
                repeated,
                streams: vec![(StreamId(wild % 1000), SeqNumber(wild))],
            })
        },
    );
    let sync = (any::<u32>(), number.clone(), any::<u8>(), any::<bool>(), any::<u16>()).prop_map(
        |(rtt_min_us, floor, blocks, startup, ack_interval_ms)| Sync {
            rtt_min_us,
            floor,
            blocks,
            startup,
            ack_interval_ms,
        },
    );
    let data = (
        any::<u32>(),
        number.clone(),
        any::<u16>(),
        any::<(bool, bool, bool)>(),
        prop::option::of(sync.clone()),
    )
        .prop_map(|(stream, offset, payload_len, (fin, immediate_ack, short), sync)| {
            Body::Data(Data {
                stream: StreamId(stream % 1000),
                offset,
                payload_len,
                fin,
                immediate_ack,
                short,
                departed: Stamp(u32::from(payload_len)),
                sync,
            })
        });
    let instant = (number.clone(), number.clone(), number.clone(), number).prop_map(
        |(largest, second, cumulative, window)| {
            Body::Instant(InstantAck {
                cause: Cause::Loss,
                largest,
                second,
                since: second,
                cumulative,
                window,
            })
        },
    );
    let probe = any::<u16>().prop_map(|padding| Body::Probe { padding });
    let datagram = (any::<u16>(), any::<u32>()).prop_map(|(payload_len, departed)| {
        Body::Datagram(Datagram { payload_len, departed: Stamp(departed), sync: None })
    });
    let token = any::<[u8; 8]>().prop_map(|token| Body::PathChallenge(Token { token, padding: 0 }));
    prop_oneof![
        4 => tack,
        4 => data,
        2 => instant,
        1 => probe,
        1 => sync.prop_map(Body::Sync),
        3 => any_control(),
        1 => datagram,
        1 => token,
    ]
}

proptest! {
    /// For anything that a peer says: no panic, bounded memory, deadlines that are kept.
    #[test]
    fn no_peer_breaks_an_end(packets in prop::collection::vec((any::<prop::sample::Index>(), any_body()), 1..60)) {
        let (mut script, _) = sender();
        for (step, (number, body)) in packets.into_iter().enumerate() {
            let now = at_ms(50 + 7 * step as u64);
            script.give_number(now, number.index(200) as u32, body);
            script.takes(now);
            if step % 3 == 0 {
                let stream = script.end.open_stream().unwrap_or(StreamId(2));
                script.end.write_stream(stream, 5_000);
                script.end.close_stream(stream);
                script.end.stop_stream(stream, 1);
                while script.end.poll_stream_event().is_some() {}
            }
            script.takes(now);
            prop_assert!(script.end.peer_streams() <= 256);
            prop_assert!(script.end.check().is_ok(), "{:?}", script.end.check());
        }
    }
}
