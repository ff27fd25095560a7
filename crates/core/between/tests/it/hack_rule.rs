//! The rule for appended ACKs (`Rule::Airtime`): which of them are replaced by a later one, and when all are sent as
//! packets.

use proptest::prelude::*;
use tacit_between::hack::{AckAirtime, Action, Coding, Config, Driver, Nic, Rule, SolicitedBy, Variant};
use tacit_packet::tcp::{Flags, SackRange, Segment, Timestamps};
use tacit_packet::units::{Duration, FlowId, Instant, SeqNumber};
use tacit_packet::{Packet, Transport, wire};

use crate::hack::{self, TURNAROUND, at};

const PEER: usize = 0;

/// The pure ACK of a download with this number; all echo the same timestamp.
fn ack(number: u32) -> Packet {
    changed(number, |_| {})
}

fn changed(number: u32, change: impl FnOnce(&mut Segment)) -> Packet {
    let mut packet = hack::ack(number);
    let Transport::Tcp(segment) = &mut packet.transport else { unreachable!("a segment") };
    segment.timestamps = Some(Timestamps { value: 70, echo_reply: 30 });
    change(segment);
    packet
}

fn segment(packet: &Packet) -> &Segment {
    let Transport::Tcp(segment) = &packet.transport else { unreachable!("only TCP was sent") };
    segment
}

/// Airtime per appended byte; packets take 200 us, regardless of their number.
#[derive(Debug)]
struct Prices {
    byte_ns: u64,
}

impl AckAirtime for Prices {
    fn appended(&self, bytes: u32) -> Duration {
        Duration::from_nanos(self.byte_ns * u64::from(bytes))
    }

    fn packets(&self, _: u32, _: u32) -> Duration {
        Duration::from_micros(200)
    }
}

/// 24 Mb/s.
const USUAL: Prices = Prices { byte_ns: 333 };

/// A client that has received the first ACK of two flows, and the driver of its access point.
struct Link {
    client: Driver<Packet>,
    nic: Nic,
    access_point: Driver<Packet>,
    /// Packets that the client queued.
    queued: Vec<Packet>,
    /// ACKs that were appended and reconstituted.
    rode: Vec<Packet>,
}

impl Link {
    fn new(config: Config, prices: Prices) -> Self {
        let config = Config { turnaround: TURNAROUND, ..config };
        let mut client = Driver::new(config, 1);
        client.compare_airtime(PEER, Box::new(prices));
        let access_point = Driver::new(config, 1);
        let mut link = Self { client, nic: Nic::new(1), access_point, queued: Vec::new(), rode: Vec::new() };
        for first in [ack(0), Packet { flow: FlowId(2), ..ack(0) }] {
            link.sends(at(0), &first);
            link.settles(at(0), &first);
        }
        link.queued.clear();
        link.receive_ampdu(at(1), true);
        link
    }

    fn thinning(one_in: u32) -> Self {
        Self::new(Config { rule: Rule::Airtime { one_in }, ..Config::default() }, USUAL)
    }

    fn sends(&mut self, now: Instant, packet: &Packet) {
        self.client.handle_outgoing(now, PEER, packet.clone());
        self.act();
    }

    /// A queued packet arrives at the access point.
    fn settles(&mut self, now: Instant, packet: &Packet) {
        self.access_point.handle_incoming(now, PEER, packet);
        self.client.handle_settled(now, PEER, packet, true);
        self.act();
    }

    fn waits(&mut self, until: Instant) {
        while let Some(due) = self.client.poll_timeout().filter(|due| *due <= until) {
            self.client.handle_timeout(due);
            self.act();
        }
    }

    /// An A-MPDU arrives at the client, and its Block Ack at the access point; returns the number of appended bytes.
    fn receive_ampdu(&mut self, now: Instant, more_data: bool) -> usize {
        let mut appended = Vec::new();
        let response = self.nic.respond(PEER, SolicitedBy::Ampdu, false, None, &mut appended);
        self.client.handle_received(now, PEER, SolicitedBy::Ampdu, more_data, response);
        self.act();
        self.access_point.handle_appended(PEER, &appended, |bytes| wire::decode(bytes).ok());
        let access_point = &mut self.access_point;
        self.rode.extend(std::iter::from_fn(|| access_point.poll_reconstituted()).map(|(_, packet)| packet));
        assert_eq!(self.access_point.counters().failed_frames, 0);
        appended.len()
    }

    fn act(&mut self) {
        while let Some(action) = self.client.poll_action() {
            match action {
                Action::Send(_, packet) => self.queued.push(packet),
                Action::Descriptor(peer, frame) => self.nic.add(peer, &frame),
                Action::ClearFresh(peer) => self.nic.clear_fresh(peer),
                Action::ClearRetained(peer) => self.nic.clear_retained(peer),
                Action::Retract(..) => unreachable!("nothing of the kind was asked for"),
            }
        }
    }

    /// Of these ACKs, sent at the same time, those that are appended to the next link-layer ACK.
    fn ride_of(&mut self, packets: &[Packet]) -> Vec<Packet> {
        packets.iter().for_each(|packet| self.sends(at(1_000), packet));
        self.waits(at(1_100));
        self.receive_ampdu(at(2_000), true);
        assert_eq!(self.queued, []);
        std::mem::take(&mut self.rode)
    }
}

#[test]
fn of_acks_that_say_the_same_the_first_rides_and_one_in_eight_and_the_last() {
    let acks: Vec<Packet> = (1..=20).map(ack).collect();
    let mut link = Link::thinning(8);
    assert_eq!(link.ride_of(&acks), [ack(1), ack(9), ack(17), ack(20)]);
    let counters = link.client.counters();
    assert_eq!((counters.compressed_acks, counters.thinned_acks, counters.flushed_acks), (4, 16, 0));
    assert_eq!(link.client.flow_counters(ack(1).flow_key()).thinned_acks, 16);
}

#[test]
fn one_in_one_and_the_papers_rule_thin_nothing() {
    let acks: Vec<Packet> = (1..=20).map(ack).collect();
    assert_eq!(Link::thinning(1).ride_of(&acks), acks);
    assert_eq!(Link::new(Config::default(), USUAL).ride_of(&acks), acks);
}

/// An A-MPDU of 1024 with an ACK per 2 packets: more than 127 unproven ACKs without the rule; with the rule they fit.
#[test]
fn the_acks_of_a_window_of_1024_ride_at_once() {
    let acks: Vec<Packet> = (1..=512).map(ack).collect();
    let rode = Link::thinning(8).ride_of(&acks);
    assert_eq!((rode.len(), rode.last()), (65, Some(&ack(512))));
    assert_eq!(Link::new(Config::default(), USUAL).ride_of(&acks).len(), 127);
}

/// Each of these has information that no later ACK has, or that the sender needs separately.
#[test]
fn acks_that_no_later_ack_replaces_each_ride() {
    let sack = |number, start| {
        changed(number, |segment| {
            segment.sack.push(SackRange { start: SeqNumber(start), end: SeqNumber(start + 1_448) });
        })
    };
    let kept: [(&str, [Packet; 3]); 8] = [
        ("SACK blocks", [sack(1, 9_000_000), sack(2, 9_000_000), ack(3)]),
        ("duplicates", [ack(1), ack(1), ack(1)]),
        ("a duplicate before the number rises", [ack(1), ack(1), ack(2)]),
        (
            "a window alone",
            [ack(1), changed(1, |segment| segment.window = 900), changed(1, |segment| segment.window = 0)],
        ),
        ("ECE", [ack(1), changed(2, |segment| segment.flags = Flags::ACK | Flags::ECE), ack(3)]),
        (
            "ECE again",
            [2, 3, 4].map(|number| changed(number, |segment| segment.flags = Flags::ACK | Flags::ECE)),
        ),
        (
            "another echo",
            [1, 2, 3].map(|number| {
                changed(number, |segment| {
                    segment.timestamps = Some(Timestamps { value: 70, echo_reply: 30 + number });
                })
            }),
        ),
        ("a number that falls", [ack(3), ack(2), ack(1)]),
    ];
    for (what, packets) in kept {
        assert_eq!(Link::thinning(8).ride_of(&packets), packets, "{what}");
    }
}

/// The newest window is valid, regardless of earlier ACKs (RFC 9293 section 3.10.7.4).
#[test]
fn the_window_of_the_last_ack_stands() {
    let open = |number, window| changed(number, |segment| segment.window = window);
    let packets = [open(1, 500), open(2, 700), open(3, 600)];
    assert_eq!(Link::thinning(8).ride_of(&packets), [open(1, 500), open(3, 600)]);
}

#[test]
fn flows_are_thinned_each_for_itself() {
    let other = |number| Packet { flow: FlowId(2), ..ack(number) };
    let packets: Vec<Packet> = (1..=4).flat_map(|number| [ack(number), other(number)]).collect();
    assert_eq!(Link::thinning(8).ride_of(&packets), [ack(1), ack(4), other(1), other(4)]);
}

#[test]
fn nothing_of_a_flow_is_overtaken() {
    let dup = changed(2, |segment| segment.window = 900);
    let packets = [ack(1), ack(2), dup.clone(), ack(3), ack(4)];
    assert_eq!(Link::thinning(8).ride_of(&packets), [ack(1), ack(2), dup, ack(4)]);
}

/// An earlier ACK may be sent earlier, because it has its own turnaround.
#[test]
fn acks_of_other_times_are_not_thinned() {
    let mut link = Link::thinning(8);
    link.sends(at(1_000), &ack(1));
    link.sends(at(1_050), &ack(2));
    link.waits(at(1_100));
    assert!(link.receive_ampdu(at(1_120), true) > 0);
    assert_eq!(link.rode, [ack(1)]);
    link.waits(at(1_150));
    assert!(link.receive_ampdu(at(2_000), true) > 0);
    assert_eq!(link.rode, [ack(1), ack(2)]);
}

/// ACKs that wait for a packet of their flow are appended together afterwards, whenever they arrived.
#[test]
fn acks_behind_a_packet_are_thinned_while_they_wait() {
    let mut link = Link::thinning(8);
    link.receive_ampdu(at(500), false);
    link.sends(at(600), &ack(1));
    assert_eq!(link.queued, [ack(1)]);
    link.receive_ampdu(at(700), true);
    for number in 2..=9 {
        link.sends(at(1_000 * u64::from(number)), &ack(number));
    }
    link.waits(at(19_000));
    assert_eq!(link.receive_ampdu(at(19_000), true), 0, "they are coded against one that has not arrived");
    link.settles(at(20_000), &ack(1));
    link.waits(at(20_099));
    assert_eq!(link.receive_ampdu(at(20_099), true), 0, "compression and DMA take their time");
    link.waits(at(20_100));
    link.receive_ampdu(at(21_000), true);
    assert_eq!((link.rode, link.queued), (vec![ack(2), ack(9)], vec![ack(1)]));
}

#[test]
fn gathered_acks_go_as_packets_when_no_more_data_comes() {
    let mut link = Link::thinning(8);
    (1..=9).for_each(|number| link.sends(at(1_000), &ack(number)));
    link.receive_ampdu(at(1_050), false);
    assert_eq!(link.queued, [ack(1), ack(9)]);
    link.waits(at(1_000_000));
    assert_eq!(link.receive_ampdu(at(1_000_000), true), 0, "they do not go twice");
}

#[test]
fn gathered_acks_go_as_packets_when_they_have_waited_too_long() {
    let mut link = Link::thinning(8);
    (1..=9).for_each(|number| link.sends(at(1_000), &ack(number)));
    link.waits(at(150_999));
    assert_eq!(link.queued, []);
    link.waits(at(151_000));
    assert_eq!(link.queued, [ack(1), ack(9)]);
    assert_eq!(link.client.counters().hold_limits, 1);
}

/// A malformed ACK is a packet, and replaces no other ACK.
#[test]
fn acks_that_the_codec_refuses_go_behind_those_that_wait() {
    let mut link = Link::thinning(8);
    let odd = changed(4, |segment| segment.flags = Flags::ACK | Flags::CWR);
    [ack(1), ack(2), ack(3), odd.clone()].iter().for_each(|packet| link.sends(at(1_000), packet));
    assert_eq!(link.queued, [ack(1), ack(3), odd]);
    assert_eq!(link.client.counters().refused_acks, 1);
}

#[test]
fn acks_go_as_packets_where_that_takes_less_airtime() {
    // A frame of one ACK has at least four bytes: 400 us, compared with 200 us as a packet.
    let dear = Config { rule: Rule::Airtime { one_in: 8 }, ..Config::default() };
    let mut link = Link::new(dear, Prices { byte_ns: 100_000 });
    link.sends(at(1_000), &ack(1));
    assert_eq!(link.queued, [], "the frame is to be made first");
    link.waits(at(1_100));
    assert_eq!(link.queued, [ack(1)]);
    assert_eq!(link.receive_ampdu(at(2_000), true), 0);
    let counters = link.client.counters();
    assert_eq!((counters.cheaper_acks, counters.flushed_acks, counters.native_acks), (1, 1, 3));
}

#[test]
fn with_a_limit_of_bytes_none_goes_as_a_packet_to_save_airtime() {
    let limited = Config { rule: Rule::Airtime { one_in: 8 }, appended_limit: Some(16), ..Config::default() };
    let mut link = Link::new(limited, Prices { byte_ns: 100_000 });
    assert_eq!(link.ride_of(&[ack(1)]), [ack(1)]);
}

/// Figure 7: a packet of a flow takes back appended ACKs that are unproven, for any reason.
#[test]
fn a_packet_that_is_cheaper_clears_what_is_unproven() {
    // Ten bytes take as long as packets: one ACK is appended, eight are not.
    let mut link = Link::new(
        Config { rule: Rule::Airtime { one_in: 1 }, ..Config::default() },
        Prices { byte_ns: 20_000 },
    );
    link.sends(at(1_000), &ack(1));
    link.waits(at(1_100));
    assert!(link.receive_ampdu(at(1_200), true) > 0);
    // Irregular numbers, which prediction does not shorten.
    (2..=9).for_each(|number| link.sends(at(2_000), &ack(number * number)));
    link.waits(at(2_100));
    assert_eq!(link.queued.len(), 8);
    let mut appended = Vec::new();
    link.nic.respond(PEER, SolicitedBy::BlockAckRequest, false, None, &mut appended);
    assert_eq!(appended, [], "the frame of the first is not repeated");
}

#[test]
fn opportunistic_acks_are_packets_as_they_are() {
    let config =
        Config { variant: Variant::Opportunistic, rule: Rule::Airtime { one_in: 8 }, ..Config::default() };
    let mut link = Link::new(config, Prices { byte_ns: 100_000 });
    (1..=9).for_each(|number| link.sends(at(1_000), &ack(number)));
    assert_eq!(link.queued, (1..=9).map(ack).collect::<Vec<_>>());
    assert_eq!(link.client.counters().thinned_acks, 0);
}

/// An ACK of one of two flows: the increase of its number, and other changes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain { step: u32 },
    Sacks { block: u32 },
    Echoes { echo: u32 },
    Ece,
    Opens { window: u16 },
    Pushes,
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        8 => (0_u32..3).prop_map(|step| Kind::Plain { step }),
        1 => (1_u32..50).prop_map(|block| Kind::Sacks { block }),
        1 => (0_u32..3).prop_map(|echo| Kind::Echoes { echo }),
        1 => Just(Kind::Ece),
        1 => any::<u16>().prop_map(|window| Kind::Opens { window }),
        1 => Just(Kind::Pushes),
    ]
}

fn ack_of(kind: Kind, number: u32, id: u16) -> Packet {
    let mut packet = changed(number, |segment| match kind {
        Kind::Plain { .. } => {}
        Kind::Sacks { block } => {
            let start = segment.ack + 10_000 * block;
            segment.sack.push(SackRange { start, end: start + 1_448 });
        }
        Kind::Echoes { echo } => segment.timestamps = Some(Timestamps { value: 70, echo_reply: 30 + echo }),
        Kind::Ece => segment.flags = Flags::ACK | Flags::ECE,
        Kind::Opens { window } => segment.window = window,
        Kind::Pushes => segment.flags = Flags::ACK | Flags::PSH,
    });
    packet.ip.identification = id;
    packet
}

proptest! {
    /// For any ACKs of a receiver, and any prices: every ACK is sent once and in order, or was replaced by a later one
    /// of its flow that is also plain, with a higher number and the same echo, and fewer than `one_in` in between; and
    /// none is held forever.
    #[test]
    fn a_sender_misses_nothing_whatever_the_receiver_sends(
        steps in prop::collection::vec((any_kind(), any::<bool>(), 0_u64..4), 1..200),
        one_in in prop::sample::select(vec![1_u32, 2, 8, 100]),
        byte_ns in prop::sample::select(vec![0_u64, 333, 5_000, 100_000]),
        coding in prop::sample::select(vec![Coding::PerAck, Coding::Batch]),
    ) {
        let config = Config { rule: Rule::Airtime { one_in }, coding, ..Config::default() };
        let mut link = Link::new(config, Prices { byte_ns });
        let (mut numbers, mut now, mut sent) = ([1_u32; 2], at(1_000), Vec::new());
        // In order of arrival at the access point: appended ACKs, and packets one Block Ack later.
        let mut arrived: Vec<Packet> = Vec::new();
        for ((kind, second, pause), id) in steps.into_iter().zip(1_u16..) {
            if let Kind::Plain { step } = kind {
                numbers[usize::from(second)] += step;
            }
            let flow = FlowId(1 + u32::from(second));
            let packet = Packet { flow, ..ack_of(kind, numbers[usize::from(second)], id) };
            link.sends(now, &packet);
            sent.push(packet);
            if pause == 0 {
                now += Duration::from_micros(70);
                link.waits(now);
                link.receive_ampdu(now, true);
                arrived.append(&mut link.rode);
                for packet in std::mem::take(&mut link.queued) {
                    link.settles(now, &packet);
                    arrived.push(packet);
                }
            }
        }
        for _ in 0..4 {
            now += Duration::from_millis(200);
            link.waits(now);
            link.receive_ampdu(now, false);
            arrived.append(&mut link.rode);
            for packet in std::mem::take(&mut link.queued) {
                link.settles(now, &packet);
                arrived.push(packet);
            }
        }
        for flow in [FlowId(1), FlowId(2)] {
            let mut arrived = arrived.iter().filter(|packet| packet.flow == flow);
            let mut gave_way: Vec<&Packet> = Vec::new();
            let mut next = arrived.next();
            let mut before: Option<&Packet> = None;
            for packet in sent.iter().filter(|packet| packet.flow == flow) {
                let before = before.replace(packet);
                if next != Some(packet) {
                    let is_new = before.is_some_and(|before| segment(packet).ack.after(segment(before).ack));
                    prop_assert!(is_new, "a duplicate or a window update gave way");
                    gave_way.push(packet);
                    continue;
                }
                next = arrived.next();
                prop_assert!(gave_way.len() < one_in as usize, "{} before {:?}", gave_way.len(), packet);
                for older in gave_way.drain(..) {
                    let (old, new) = (segment(older), segment(packet));
                    prop_assert!(old.flags == Flags::ACK && new.flags == Flags::ACK);
                    prop_assert!(old.sack.is_empty() && new.sack.is_empty());
                    prop_assert!(new.ack.after(old.ack));
                    prop_assert_eq!(new.timestamps, old.timestamps);
                }
            }
            prop_assert!(next.is_none() && gave_way.is_empty(), "{next:?} left, {gave_way:?} lost");
        }
    }
}
