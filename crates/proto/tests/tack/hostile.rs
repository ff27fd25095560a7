//! Peers that lie.

use std::sync::Arc;

use proptest::prelude::*;
use tacit_proto::Endpoint;
use tacit_proto::endpoint::Event;
use tacit_proto::tack::Config;
use tacit_proto::tack::packet::{
    Block, Body, Cause, CloseCode, Data, InstantAck, Stamp, StreamId, Sync, Tack,
};
use tacit_proto::units::SeqNumber;

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
fn what_was_never_sent_cannot_arrive() {
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

/// A receiver that acknowledges what it cannot have seen meets a number that was never sent, sooner or later.
#[test]
fn an_optimistic_receiver_is_caught_within_4096_packets() {
    let (mut script, mut numbers) = sender();
    let mut sent = 0u32;
    for now in 11..5_000 {
        sent += numbers.len() as u32;
        if let Some(largest) = numbers.last() {
            let block = Block { first: SeqNumber(numbers[0]), last: SeqNumber(*largest) };
            script.give(
                at_ms(now),
                tack(Tack {
                    cumulative: SeqNumber(numbers[0]),
                    acked: vec![block],
                    window: SeqNumber(1 << 30),
                    delay_us: u32::MAX,
                    ..Tack::default()
                }),
            );
        }
        if script.events() == [Event::Reset] {
            assert!(sent <= 4096 + 1000, "after {sent} packets");
            return;
        }
        script.end.handle_timeout(at_ms(now));
        numbers = script.numbered(at_ms(now)).into_iter().map(|(number, _)| number).collect();
    }
    panic!("{sent} packets were acknowledged without being seen");
}

/// A rate that nobody sent at is not believed: the next packets leave no faster for it.
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

fn any_body() -> impl Strategy<Value = Body> {
    let number = prop_oneof![0u32..30, any::<u32>()].prop_map(SeqNumber);
    let block = (number.clone(), number.clone()).prop_map(|(first, last)| Block { first, last });
    let blocks = prop::collection::vec(block, 0..5);
    let tack = (number.clone(), blocks.clone(), blocks, any::<u32>(), any::<u8>(), number.clone()).prop_map(
        |(cumulative, acked, unacked, wild, repeated, received)| {
            tack(Tack {
                departed: Stamp(wild),
                delay_us: wild / 3,
                rate_kbps: wild,
                loss: wild as u16,
                received,
                window: SeqNumber(wild),
                ce: wild,
                cumulative,
                acked,
                unacked,
                repeated,
                streams: vec![(StreamId(wild % 1000), SeqNumber(wild))],
            })
        },
    );
    let sync = (any::<u32>(), number.clone(), any::<u8>(), any::<bool>())
        .prop_map(|(rtt_min_us, floor, blocks, startup)| Sync { rtt_min_us, floor, blocks, startup });
    let data =
        (any::<u32>(), number.clone(), any::<u16>(), any::<(bool, bool)>(), prop::option::of(sync.clone()))
            .prop_map(|(stream, offset, payload_len, (fin, ask), sync)| {
                Body::Data(Data {
                    stream: StreamId(stream % 1000),
                    offset,
                    payload_len,
                    fin,
                    ask,
                    departed: Stamp(0),
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
    prop_oneof![4 => tack, 4 => data, 2 => instant, 1 => probe, 1 => sync.prop_map(Body::Sync)]
}

proptest! {
    /// Whatever a peer says: no panic, bounded memory, deadlines that are kept.
    #[test]
    fn no_peer_breaks_an_end(said in prop::collection::vec((any::<prop::sample::Index>(), any_body()), 1..60)) {
        let (mut script, _) = sender();
        for (step, (number, body)) in said.into_iter().enumerate() {
            let now = at_ms(50 + 7 * step as u64);
            script.give_number(now, number.index(200) as u32, body);
            script.takes(now);
            prop_assert!(script.end.check().is_ok(), "{:?}", script.end.check());
        }
    }
}
