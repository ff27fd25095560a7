//! Packet scripts: one for each rule of when an acknowledgment is sent and of its content.

use tacit_packet::tack::packet::{
    Block, Body, Cause, Control, Data, InstantAck, Stamp, StreamId, Sync, Tack,
};
use tacit_packet::units::{Bytes, Duration, SeqNumber};
use tacit_tack_proto::{AckClock, Config, Lists, LossReports, StartUp, Timing};

use crate::script::{FULL, Script, at_ms, only_tack, steady};

fn block(first: u32, last: u32) -> Block {
    Block { first: SeqNumber(first), last: SeqNumber(last) }
}

/// By the paper's letter, where not said otherwise.
fn paper() -> Config {
    Config { ack_clock: AckClock::PAPER, ..Config::default() }
}

/// A receiver past its start-up on a path of 80 ms, whose last TACK left at 20 ms: data up to number 2 arrived.
fn receiver(config: Config) -> Script {
    let mut script = Script::established(config);
    script.data(at_ms(20), 2, 0, steady(80));
    // One packet waits for the tail, 20 ms.
    assert_eq!(script.takes(at_ms(39)), []);
    only_tack(&script.takes(at_ms(40)));
    script
}

fn instants(bodies: Vec<Body>) -> Vec<InstantAck> {
    let instant = |body| match body {
        Body::Instant(instant) => instant,
        other => panic!("{other:?} is no IACK"),
    };
    bodies.into_iter().map(instant).collect()
}

/// TACK paper equation 3: no more often than four times per round trip, however much arrives.
#[test]
fn four_acks_per_round_trip() {
    let mut script = receiver(paper());
    let mut acks = Vec::new();
    for step in 0..800u32 {
        let now = at_ms(41 + u64::from(step));
        script.data(now, 3 + step, 1 + step, None);
        acks.extend(script.takes(now).into_iter().map(|_| 41 + step));
    }
    assert_eq!(acks.len(), 800 / 20);
    assert!(acks.windows(2).all(|pair| pair[1] - pair[0] == 20), "{acks:?}");
}

/// And no more often than one per two packets, where these are rare.
#[test]
fn one_ack_per_two_packets_where_packets_are_rare() {
    let mut script = receiver(paper());
    let mut acks = 0;
    for step in 0..20u32 {
        let now = at_ms(100 + 15 * u64::from(step));
        script.data(now, 3 + step, 1 + step, None);
        acks += script.takes(now).len();
    }
    assert_eq!(acks, 10);
}

#[test]
fn a_start_up_has_one_ack_per_packet_where_that_is_asked_for() {
    let mut script = Script::established(Config { start_up: StartUp::PerPacket, ..paper() });
    let starting = steady(80).map(|sync| Sync { startup: true, ..sync });
    for number in 2..10 {
        script.data(at_ms(20), number, number - 2, starting);
        only_tack(&script.takes(at_ms(20)));
    }
}

/// Section 5.1: packet 3 is missing when 4 arrives, so that the newest hole lies between 2 and 4.
#[test]
fn a_loss_is_reported_at_once_and_once() {
    let mut script = receiver(paper());
    script.data(at_ms(41), 4, 2, None);
    let acks = instants(script.takes(at_ms(41)));
    let [ack] = acks[..] else { panic!("{acks:?}") };
    assert_eq!((ack.cause, ack.largest, ack.second), (Cause::Loss, SeqNumber(4), SeqNumber(2)));
    script.data(at_ms(42), 5, 3, None);
    assert_eq!(script.takes(at_ms(42)), []);
    let tack = only_tack(&script.takes(at_ms(61)));
    assert_eq!(
        (tack.cumulative, tack.unacked, tack.acked),
        (SeqNumber(3), vec![block(3, 3)], vec![block(4, 5)])
    );
}

/// A retransmission takes a new number, so that its own loss shows (the worked example of section 5.1).
#[test]
fn the_loss_of_a_retransmission_is_a_hole_of_its_own() {
    let mut script = receiver(paper());
    script.data(at_ms(41), 4, 2, None);
    assert_eq!(instants(script.takes(at_ms(41))).len(), 1);
    // Number 5 was the retransmission of 3.
    script.data(at_ms(50), 6, 3, None);
    let ack = instants(script.takes(at_ms(50)))[0];
    assert_eq!((ack.largest, ack.second), (SeqNumber(6), SeqNumber(4)));
}

/// Holes that open faster than 16 in a round trip are reported together.
#[test]
fn many_holes_share_one_report() {
    let mut script = receiver(paper());
    for step in 0..40 {
        script.data(at_ms(41), 4 + 2 * step, 2 + 2 * step, None);
    }
    assert_eq!(instants(script.takes(at_ms(41))).len(), 1);
    assert_eq!(script.takes(at_ms(45)), []);
    let tack = only_tack(&script.takes(at_ms(46)));
    assert_eq!(tack.unacked.len(), 40);
    assert_eq!(usize::from(tack.repeated), 40);
}

#[test]
fn without_instant_reports_the_next_tack_tells() {
    let mut script = receiver(Config { loss_reports: LossReports::WithTack, ..paper() });
    script.data(at_ms(41), 4, 2, None);
    assert_eq!(script.takes(at_ms(41)), []);
    script.data(at_ms(42), 5, 3, None);
    assert_eq!(only_tack(&script.takes(at_ms(60))).unacked, [block(3, 3)]);
}

/// TACK-poor has one block of each list: the largest acked and the smallest unacked.
#[test]
fn poor_lists_have_one_block() {
    let mut script = receiver(Config { lists: Lists::Poor, ..paper() });
    for number in [4, 6, 7, 9] {
        script.data(at_ms(41), number, number - 2, None);
    }
    script.takes(at_ms(41));
    let tack = only_tack(&script.takes(at_ms(61)));
    assert_eq!((tack.acked, tack.unacked), (vec![block(9, 9)], vec![block(3, 3)]));
}

/// Old holes are repeated, as many as the sender asks for, until it says that they are dealt with.
#[test]
fn the_oldest_holes_are_repeated_until_the_sender_has_dealt_with_them() {
    let mut script = receiver(paper());
    for step in 0..10 {
        script.data(at_ms(41), 4 + 2 * step, 2 + 2 * step, None);
    }
    script.takes(at_ms(41));
    assert_eq!(only_tack(&script.takes(at_ms(46))).unacked.len(), 10);
    script.data(at_ms(60), 23, 21, None);
    script.data(at_ms(60), 24, 22, None);
    let tack = only_tack(&script.takes(at_ms(66)));
    assert_eq!(tack.unacked, [block(3, 3), block(5, 5), block(7, 7), block(9, 9)]);
    let sync = steady(80).map(|sync| Sync { floor: SeqNumber(9), ..sync });
    script.data(at_ms(70), 25, 23, sync);
    script.data(at_ms(70), 26, 24, None);
    let tack = only_tack(&script.takes(at_ms(86)));
    assert_eq!(tack.cumulative, SeqNumber(9));
    assert_eq!(tack.unacked[0], block(9, 9));
}

/// A receiver by today's law that lost every second packet from 3 on, `holes` in all.
fn receiver_with_holes(config: Config, holes: u32) -> Script {
    let mut script = Script::established(config);
    script.data(at_ms(20), 2, 0, steady(80));
    for step in 0..holes {
        script.data(at_ms(41), 4 + 2 * step, 2 + 2 * step, None);
    }
    script
}

/// The sender's answer takes a round trip: until then each TACK would repeat the same four of 40.
#[test]
fn successive_tacks_repeat_successive_holes() {
    let mut script = receiver_with_holes(Config::default(), 40);
    assert_eq!(only_tack(&script.takes(at_ms(42))).unacked.len(), 40);
    let mut reported = Vec::new();
    for turn in 0..11 {
        let now = 100 + 500 * turn;
        script.data(at_ms(now), 83 + turn as u32, 81 + turn as u32, None);
        let tack = only_tack(&script.takes(at_ms(now + 400)));
        // The last hole goes with the new ones behind it where it is the only one that was passed over.
        assert!(tack.unacked.len() <= 5, "{tack:?}");
        reported.extend(tack.unacked.iter().map(|hole| hole.first.0));
    }
    reported.truncate(44);
    let all = (0..40).map(|step| 3 + 2 * step).chain([3, 5, 7, 9]).collect::<Vec<_>>();
    assert_eq!(reported, all);
}

/// More holes than one TACK has room for: after one that was asked for the others follow by themselves: the sender may have
/// heard of none.
#[test]
fn ranges_without_room_in_one_ack_follow_in_the_next() {
    const HOLES: u32 = 600;
    let config = Config { receive_buffer: Bytes(1 << 24), ..Config::default() };
    let mut script = receiver_with_holes(config, HOLES);
    let lists = |script: &mut Script, from: u64| {
        let mut holes = Vec::new();
        for now in from..from + 100 {
            for body in script.takes(at_ms(now)) {
                if let Body::Tack(tack) = body {
                    holes.extend(tack.unacked.iter().map(|hole| hole.first.0));
                }
            }
        }
        holes.sort_unstable();
        holes.dedup();
        holes.len()
    };
    assert_eq!(lists(&mut script, 42), HOLES as usize);
    let next = 4 + 2 * HOLES;
    script.give_number(at_ms(200), next - 1, Body::Probe { padding: 0 });
    assert_eq!(lists(&mut script, 200), HOLES as usize);
}

/// Section 5.2: the packet of least one-way delay stands for the round trip, with the time since it came.
#[test]
fn a_tack_names_the_packet_of_least_delay() {
    for (timing, departed, delay_us) in
        [(Timing::LeastDelay, 44_000, 13_000), (Timing::Newest, 45_000, 5_000)]
    {
        let mut script = receiver(Config { timing, ..paper() });
        for (number, left, arrived) in [(3, 42, 50), (4, 44, 47), (5, 45, 55)] {
            let data = Data {
                offset: SeqNumber((number - 2) * u32::from(FULL)),
                payload_len: FULL,
                departed: Stamp(left * 1000),
                ..Data::default()
            };
            script.give_number(at_ms(arrived), number, Body::Data(data));
            script.takes(at_ms(arrived));
        }
        let tack = only_tack(&script.takes(at_ms(60)));
        assert_eq!((tack.departed, tack.delay_us), (Stamp(departed), delay_us), "{timing:?}");
    }
}

/// A packet that was late, not lost, lets the next holes wait for 5/4 of the time that it was late by.
#[test]
fn after_reordering_holes_settle_first() {
    let mut script = receiver(paper());
    script.data(at_ms(41), 4, 2, None);
    assert_eq!(instants(script.takes(at_ms(41))).len(), 1);
    script.data(at_ms(57), 3, 1, None);
    script.takes(at_ms(57));
    script.data(at_ms(58), 6, 4, None);
    let tack = only_tack(&script.takes(at_ms(77)));
    assert_eq!(tack.unacked, []);
    let acks = instants(script.takes(at_ms(78)));
    assert_eq!((acks[0].largest, acks[0].second), (SeqNumber(6), SeqNumber(4)));
}

#[test]
fn data_that_asks_is_answered_at_once() {
    let mut script = receiver(paper());
    let data =
        Data { offset: SeqNumber(u32::from(FULL)), payload_len: 10, immediate_ack: true, ..Data::default() };
    script.give_number(at_ms(41), 3, Body::Data(data));
    only_tack(&script.takes(at_ms(41)));
}

/// A sender asks several times because answers are lost, and a system hands over what came together.
#[test]
fn probes_that_come_together_get_an_answer_each() {
    let mut script = receiver(paper());
    (0..3).for_each(|_| script.give(at_ms(41), Body::Probe { padding: 0 }));
    let answers = script.takes(at_ms(41));
    assert!(matches!(answers[..], [Body::Tack(_), Body::Tack(_), Body::Tack(_)]), "{answers:?}");
    (0..100).for_each(|_| script.give(at_ms(42), Body::Probe { padding: 0 }));
    assert!(script.takes(at_ms(42)).len() <= 6);
}

/// The peer says once that a limit holds its stream. Each answer has that limit until more of the stream comes: one may be lost.
#[test]
fn answers_have_the_limits_that_hold_the_peer() {
    let mut script = receiver(paper());
    let stream = StreamId(2);
    let data = |place: u32| {
        Body::Data(Data { stream, offset: SeqNumber(place * 100), payload_len: 100, ..Data::default() })
    };
    let answers_with = |script: &mut Script, now: u64, body: Body| {
        script.give(at_ms(now), body);
        only_tack(&script.takes(at_ms(now))).streams.iter().any(|(reported, _)| *reported == stream)
    };
    script.give(at_ms(60), data(0));
    assert!(!answers_with(&mut script, 60, Body::Probe { padding: 0 }));
    assert!(answers_with(&mut script, 61, Body::Control(Control::Held { stream })));
    assert!(answers_with(&mut script, 62, Body::Probe { padding: 0 }));
    script.give(at_ms(63), data(0));
    assert!(answers_with(&mut script, 63, Body::Probe { padding: 0 }), "nothing new came");
    script.give(at_ms(64), data(1));
    assert!(!answers_with(&mut script, 64, Body::Probe { padding: 0 }));
}

/// An answer has room for the limits of some streams: the next one has those of others.
#[test]
fn of_many_streams_that_are_held_answers_have_some_in_turn() {
    const STREAMS: u32 = 60;
    let mut script = receiver(paper());
    let ids = (1..=STREAMS).map(|number| StreamId(2 * number));
    for stream in ids.clone() {
        script.give(at_ms(60), Body::Data(Data { stream, payload_len: 100, ..Data::default() }));
        script.give(at_ms(60), Body::Control(Control::Held { stream }));
    }
    // As often as one likes, and with the peer's own end: it is held no more.
    script.give(at_ms(60), Body::Control(Control::Held { stream: StreamId(2) }));
    let ended = StreamId(2 * STREAMS);
    script.give(
        at_ms(60),
        Body::Data(Data { stream: ended, offset: SeqNumber(100), fin: true, ..Data::default() }),
    );
    script.takes(at_ms(60));
    let mut advertised = Vec::new();
    for now in 61..61 + u64::from(STREAMS.div_ceil(15)) {
        script.give(at_ms(now), Body::Probe { padding: 0 });
        let answer = only_tack(&script.takes(at_ms(now)));
        assert!(answer.streams.len() <= 16, "{answer:?}");
        advertised
            .extend(answer.streams.iter().map(|(stream, _)| *stream).filter(|stream| *stream != StreamId(0)));
    }
    advertised.sort_unstable();
    advertised.dedup();
    assert!(advertised == ids.filter(|stream| *stream != ended).collect::<Vec<_>>(), "{advertised:?}");
}

/// The sender's half: packets that a TACK calls missing go again, under a new number, and once.
#[test]
fn a_hole_is_repaired_once_per_round_trip() {
    let mut script = Script::established(Config::default());
    script.end.write(20 * u64::from(FULL));
    let first: Vec<u32> = script.numbered(at_ms(10)).into_iter().map(|(number, _)| number).collect();
    let hole = first[1];
    let received = SeqNumber(u32::from(FULL));
    let tack = |unacked: Vec<Block>| {
        let (cumulative, acked) = (SeqNumber(hole), vec![block(hole + 1, hole + 1)]);
        let repeated = unacked.len() as u8;
        Body::Tack(std::sync::Arc::new(Tack {
            cumulative,
            acked,
            unacked,
            repeated,
            received,
            window: SeqNumber(1 << 30),
            delay_us: u32::MAX,
            ..Tack::default()
        }))
    };
    script.give(at_ms(100), tack(vec![block(hole, hole)]));
    let again = |bodies: Vec<Body>| {
        let place = |body: &Body| matches!(body, Body::Data(data) if data.offset.0 == u32::from(FULL));
        bodies.iter().filter(|body| place(body)).count()
    };
    let mut repairs = 0;
    for now in 100..140 {
        script.give(at_ms(now), tack(vec![block(hole, hole)]));
        repairs += again(script.takes(at_ms(now)));
    }
    assert_eq!(repairs, 1);
}

/// The rule for today's networks, with room for anything a script sends.
fn tack_rule() -> Config {
    Config { receive_buffer: Bytes(1 << 24), ..Config::default() }
}

/// A receiver under that rule, past its start-up on a path of 2 ms. Its last TACK left at 125 ms.
fn short_path() -> Script {
    let mut script = Script::established(tack_rule());
    script.data(at_ms(20), 2, 0, steady(2));
    only_tack(&script.takes(at_ms(45)));
    script.data(at_ms(100), 3, 1, None);
    only_tack(&script.takes(at_ms(125)));
    script
}

/// However short the path is, 25 ms are between TACKs; and an A-MPDU that arrives as one is due has one, not two.
#[test]
fn on_a_short_path_tacks_keep_25_ms_apart_and_take_a_whole_ampdu() {
    let mut script = short_path();
    let mut acks = Vec::new();
    let mut number = 4;
    // An A-MPDU of 20 packets each 5 ms; after each packet the driver asks whether anything is to be sent.
    for ampdu in 0..40u64 {
        let now = at_ms(130 + 5 * ampdu);
        for _ in 0..20 {
            script.data(now, number, number - 2, None);
            number += 1;
            acks.extend(script.takes(now).into_iter().map(|_| now));
        }
        let gathered = now + Duration::from_micros(300);
        acks.extend(script.takes(gathered).into_iter().map(|_| gathered));
    }
    assert_eq!(acks.len(), 8, "{acks:?}");
    assert!(acks.windows(2).all(|pair| pair[1].saturating_since(pair[0]) >= Duration::from_millis(25)));
    assert!(acks.iter().all(|at| at.as_nanos() % 5_000_000 == 300_000), "in the middle of an A-MPDU");
}

/// One TACK reports the losses of one A-MPDU, a moment after the first shows.
#[test]
fn losses_of_one_ampdu_share_one_tack() {
    let mut script = short_path();
    for number in [5, 7, 8, 11] {
        script.data(at_ms(130), number, number - 2, None);
        assert_eq!(script.takes(at_ms(130)), []);
    }
    let sent = at_ms(130) + Duration::from_micros(250);
    let tack = only_tack(&script.takes(sent));
    assert_eq!(tack.unacked, [block(4, 4), block(6, 6), block(9, 10)]);
    assert_eq!(script.takes(at_ms(131)), []);
    // The next report follows a millisecond later, the least between two.
    script.data(at_ms(131), 13, 11, None);
    assert_eq!(script.takes(sent + Duration::from_micros(999)), []);
    assert_eq!(
        only_tack(&script.takes(sent + Duration::from_millis(1))).unacked.last(),
        Some(&block(12, 12))
    );
}

/// A queue counts as a part of the round trip: of 400 ms four TACKs come, though the smallest was 80 ms.
#[test]
fn tacks_follow_the_round_trip_that_queues_have_made_long() {
    let mut script = Script::established(tack_rule());
    script.data(at_ms(80), 2, 0, steady(80));
    let mut acks = 0;
    for step in 0..4_000u32 {
        let now = at_ms(500 + u64::from(step));
        let waited = if step < 100 { 0 } else { 320 };
        let left = Stamp((495 + step - waited) * 1000);
        let offset = SeqNumber((1 + step) * u32::from(FULL));
        let data = Data { offset, payload_len: FULL, departed: left, ..Data::default() };
        script.give_number(now, 3 + step, Body::Data(data));
        let sent = script.takes(now).len();
        acks += if step >= 2_000 { sent } else { 0 };
    }
    assert_eq!(acks, 20, "2 s of them");
}
