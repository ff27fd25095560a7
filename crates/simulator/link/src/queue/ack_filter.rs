//! Filters, for any queue, that drop pure TCP ACKs if a later one contains all their information.

use tacit_packet::FlowKey;
use tacit_packet::tcp::AckInfo;
use tacit_packet::units::Instant;

use super::Queue;
use crate::packet::{Holders, PacketRef};

/// What happens to queued pure ACKs when another ACK of their flow arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckFilter {
    /// Nothing.
    #[default]
    Off,
    /// CAKE's `ack-filter`: among the ACKs that the new one [covers](AckInfo::covers), the oldest is dropped if there
    /// are at least two, so a flow keeps two (Høiland-Jørgensen et al., LANMAN 2018; tc-cake(8)).
    Cake,
    /// CAKE's `ack-filter-aggressive`: the same if there is at least one, so a flow keeps only the new one.
    CakeAggressive,
    /// As in Wi-Fi drivers: the new ACK replaces the last packet of its flow, if both are plain and its number is
    /// higher. Only the last packet can be replaced, because packets behind an earlier one would be overtaken.
    Replace,
    /// As `tacit thin`, before the queue of a wired or mobile link: an ACK waits as long as the link is busy, and later ones
    /// replace it ([`HoldLaw::Thin`](tacit_between::ack_hold::HoldLaw::Thin)).
    Thin,
}

impl AckFilter {
    /// Queues `payload` at `now` and drops the ACKs it makes redundant, or replaces an ACK by it. Returns whether it
    /// was accepted, and the number of removed ACKs. `dropped` is as in [`Queue::push`].
    pub(crate) fn push(
        self,
        queue: &mut Queue,
        now: Instant,
        packet: PacketRef,
        holders: &mut Holders,
        dropped: &mut impl FnMut(PacketRef, &mut Holders),
    ) -> (bool, u64) {
        if self == Self::Replace && replace(queue, packet, holders) {
            return (true, 1);
        }
        let taken = queue.push(now, packet, &mut |packet| dropped(packet, holders));
        let ack = match self {
            Self::Off | Self::Replace | Self::Thin => None,
            Self::Cake | Self::CakeAggressive => holders.ack_info(&packet),
        };
        // A refused ACK makes nothing redundant.
        let filtered = ack.filter(|_| taken).map_or(0, |ack| self.thin(queue, (packet.flow, ack), holders));
        (taken, filtered)
    }

    /// After the ACK `newest` of `flow` was queued: drops the ACKs it makes redundant; returns their number.
    fn thin(self, queue: &mut Queue, (flow, newest): (FlowKey, AckInfo), holders: &mut Holders) -> u64 {
        let kept_besides = if self == Self::Cake { 1 } else { 0 };
        // The new ACK itself is not dropped, because no ACK covers itself.
        let redundant = |packet: &PacketRef, holders: &Holders| {
            packet.flow == flow && holders.ack_info(packet).is_some_and(|older| newest.covers(&older))
        };
        let mut count = 0;
        queue.each(&mut |packet| count += u32::from(redundant(packet, holders)));
        if count <= kept_besides {
            return 0;
        }
        let mut dropped = 0;
        queue.retract(|packet| {
            let oldest = dropped == 0 && redundant(packet, holders);
            if oldest {
                dropped += 1;
                holders.release(*packet);
            }
            oldest
        });
        dropped
    }
}

/// Puts `newest` in the place of the last packet of its flow, if that may be replaced; returns whether it did.
fn replace(queue: &mut Queue, newest: PacketRef, holders: &mut Holders) -> bool {
    let Some(new) = holders.ack_info(&newest).filter(|ack| ack.is_plain()) else { return false };
    let (mut place, mut last) = (0_usize, None);
    queue.each(&mut |packet| {
        if packet.flow == newest.flow {
            let yields = holders.ack_info(packet).is_some_and(|older| new.replaces(&older));
            last = Some((place, yields && packet.len == newest.len));
        }
        place += 1;
    });
    let Some((wanted, true)) = last else { return false };
    let mut place = 0;
    queue.each(&mut |packet| {
        if place == wanted {
            holders.release(std::mem::replace(packet, newest));
        }
        place += 1;
    });
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tacit_packet::tcp::{Flags, SackBlocks, SackRange, Segment, Timestamps};
    use tacit_packet::units::{FlowId, HostId, SeqNumber};
    use tacit_packet::{IpHeader, Packet, Transport};

    use super::*;
    use crate::packet::tests::Store;
    use crate::queue::{CoDelConfig, Discipline, FqCoDelConfig, QueueConfig, QueueLimit};

    fn segment(flow: u32, segment: Segment) -> Packet {
        Packet {
            flow: FlowId(flow),
            source: HostId(0),
            destination: HostId(1),
            ip: IpHeader::default(),
            transport: Transport::Tcp(segment),
        }
    }

    fn ack(flow: u32, number: u32) -> Packet {
        segment(flow, Segment { ack: SeqNumber(number), flags: Flags::ACK, ..Segment::default() })
    }

    fn data(flow: u32, number: u32) -> Packet {
        segment(
            flow,
            Segment { ack: SeqNumber(number), flags: Flags::ACK, payload_len: 100, ..Segment::default() },
        )
    }

    fn tcp(packet: &Packet) -> Segment {
        let Transport::Tcp(segment) = packet.transport else { unreachable!("only TCP was queued") };
        segment
    }

    /// Queues `packets` with `filter`, and returns the remaining ones.
    fn through(filter: AckFilter, discipline: Discipline, packets: &[Packet]) -> Vec<Packet> {
        let mut queue = Queue::new(QueueConfig { limit: QueueLimit::default(), discipline });
        let mut store = Store::default();
        for packet in packets {
            let packet = store.insert(packet.clone());
            let holders = &mut store.holders;
            filter.push(&mut queue, Instant::ZERO, packet, holders, &mut |_, _| panic!("there is room"));
        }
        store.holders.check(|see| queue.iter().for_each(|queued| see(&queued.payload))).unwrap();
        let mut left = Vec::new();
        while queue.front(Instant::ZERO, &mut |_| panic!("nothing is late")).is_some() {
            left.extend(queue.pop().map(|queued| store.take(queued.payload)));
        }
        left
    }

    /// Flow, acknowledgment number and payload length of the remaining packets in a drop-tail queue.
    fn left(filter: AckFilter, packets: &[Packet]) -> Vec<(u32, u32, u32)> {
        let left = through(filter, Discipline::DropTail, packets);
        left.iter().map(|packet| (packet.flow.0, tcp(packet).ack.0, tcp(packet).payload_len)).collect()
    }

    #[test]
    fn cake_keeps_two_acks_of_a_flow_and_aggressively_one() {
        let acks = [ack(1, 100), ack(1, 200), data(1, 200), ack(2, 7), ack(1, 300), ack(1, 400)];
        assert_eq!(left(AckFilter::Cake, &acks), [(1, 200, 100), (2, 7, 0), (1, 300, 0), (1, 400, 0)]);
        assert_eq!(left(AckFilter::CakeAggressive, &acks), [(1, 200, 100), (2, 7, 0), (1, 400, 0)]);
        assert_eq!(left(AckFilter::Off, &acks).len(), 6);
    }

    #[test]
    fn cake_keeps_duplicates_until_a_later_number() {
        let acks = [ack(1, 100), ack(1, 100), ack(1, 100), ack(1, 100)];
        assert_eq!(left(AckFilter::CakeAggressive, &acks).len(), 4);
        let repaired = [&acks[..], &[ack(1, 900)]].concat();
        assert_eq!(left(AckFilter::CakeAggressive, &repaired).len(), 4, "one goes per ACK that comes");
    }

    #[test]
    fn a_new_ack_takes_the_place_of_the_last_of_its_flow() {
        let acks = [ack(1, 100), ack(2, 7), ack(1, 200), ack(2, 7), ack(2, 9)];
        assert_eq!(left(AckFilter::Replace, &acks), [(1, 200, 0), (2, 7, 0), (2, 9, 0)]);
    }

    #[test]
    fn nothing_overtakes_what_waits_behind() {
        let sack = SackBlocks::EMPTY;
        let mut sacking = tcp(&ack(1, 200));
        sacking.sack = sack;
        sacking.sack.push(SackRange { start: SeqNumber(300), end: SeqNumber(400) });
        let acks = [ack(1, 100), segment(1, sacking), ack(1, 300)];
        assert_eq!(left(AckFilter::Replace, &acks), [(1, 100, 0), (1, 200, 0), (1, 300, 0)]);
        assert_eq!(left(AckFilter::Replace, &[ack(1, 100), data(1, 100), ack(1, 200)]).len(), 3);
    }

    /// Timestamps that go back would be lost for the sender, and a packet of another length would invalidate the byte
    /// count.
    #[test]
    fn a_place_is_taken_only_by_what_says_no_less_in_as_many_bytes() {
        let stamped = |number, value| {
            let timestamps = Some(Timestamps { value, echo_reply: value });
            segment(1, Segment { timestamps, ..tcp(&ack(1, number)) })
        };
        assert_eq!(left(AckFilter::Replace, &[stamped(100, 7), stamped(200, 8)]).len(), 1);
        assert_eq!(left(AckFilter::Replace, &[stamped(100, 7), stamped(200, 6)]).len(), 2);
        assert_eq!(left(AckFilter::Replace, &[ack(1, 100), stamped(200, 8)]).len(), 2);
    }

    /// What a sender of one flow knows after `packets`: the highest number, the ranges SACKed above it, the number of
    /// duplicates of that number without more specific SACK blocks, the window, the latest timestamps, whether it
    /// received ECE, and the reported duplicate segments.
    fn learnt(packets: &[Packet], flow: u32) -> impl PartialEq + std::fmt::Debug {
        let mut ack = SeqNumber(0);
        let (mut repeats, mut window, mut stamps, mut ecn, mut duplicates) =
            (0, 0, None, Flags::NONE, Vec::new());
        let mut sacked = [false; 64];
        let of_flow = packets.iter().filter(|packet| packet.flow.0 == flow).map(tcp);
        for segment in of_flow {
            if segment.ack.after(ack) {
                (ack, repeats) = (segment.ack, 0);
            } else if segment.payload_len == 0 && segment.sack.is_empty() {
                repeats += u32::from(segment.ack == ack);
            }
            if segment.ack == ack && tells_of_a_gap(&segment) {
                repeats = 0;
            }
            if segment.ack == ack {
                window = segment.window;
            }
            stamps = stamps.max(segment.timestamps.map(|stamps| (stamps.value, stamps.echo_reply)));
            ecn |= segment.flags;
            for (place, block) in segment.sack.as_slice().iter().enumerate() {
                if place == 0 && block.start.before(segment.ack) {
                    duplicates.push(*block);
                }
                (block.start.0..block.end.0).for_each(|byte| sacked[byte as usize] = true);
            }
        }
        sacked[..ack.0 as usize].fill(true);
        (ack, repeats, window, stamps, ecn, duplicates, sacked)
    }

    /// True if its first block reports out-of-order data, not a duplicate.
    fn tells_of_a_gap(segment: &Segment) -> bool {
        match segment.sack.as_slice() {
            [first, second, ..] if second.start.before_eq(first.start) && first.end.before_eq(second.end) => {
                false
            }
            [first, ..] => !first.start.before(segment.ack),
            [] => false,
        }
    }

    /// Flow, half of the increase of the number, window, kind, SACK blocks by start and length, ECE.
    type Step = (u32, u32, u16, u32, Vec<(u32, u32)>, bool);

    fn any_packet() -> impl Strategy<Value = Step> {
        let blocks = proptest::collection::vec((0_u32..40, 1_u32..8), 0..3);
        (0_u32..2, 0_u32..6, 0_u16..3, 0_u32..10, blocks, proptest::bool::weighted(0.1))
    }

    /// A plausible stream of ACKs of a receiver: numbers and timestamps do not decrease.
    fn stream(steps: Vec<Step>) -> Vec<Packet> {
        let (mut numbers, mut clock) = ([1_u32; 2], 0);
        let make = |(flow, step, window, kind, blocks, echo): Step| {
            let number = &mut numbers[flow as usize];
            *number = (*number + step / 2).min(40);
            clock += 1;
            let mut sack = SackBlocks::EMPTY;
            for (start, len) in blocks.iter().filter(|_| kind < 4) {
                sack.push(SackRange { start: SeqNumber(*start), end: SeqNumber(start + len) });
            }
            let segment_of = Segment {
                ack: SeqNumber(*number),
                window,
                flags: if echo { Flags::ACK | Flags::ECE } else { Flags::ACK },
                payload_len: if kind == 9 { 3 } else { 0 },
                timestamps: Some(Timestamps { value: clock / 3, echo_reply: clock / 4 }),
                sack,
                ..Segment::default()
            };
            segment(flow, segment_of)
        };
        steps.into_iter().map(make).collect()
    }

    proptest! {
        #[test]
        fn filtering_never_changes_what_the_sender_finally_learns(
            steps in proptest::collection::vec(any_packet(), 1..60),
            discipline in prop_oneof![
                Just(Discipline::DropTail),
                Just(Discipline::CoDel(CoDelConfig::INTERNET)),
                Just(Discipline::FqCoDel(FqCoDelConfig::MAC80211)),
            ],
        ) {
            let packets = stream(steps);
            for filter in [AckFilter::Off, AckFilter::Cake, AckFilter::CakeAggressive, AckFilter::Replace] {
                let left = through(filter, discipline, &packets);
                for flow in 0..2 {
                    let (all, some) = (learnt(&packets, flow), learnt(&left, flow));
                    prop_assert!(all == some, "{:?} of flow {}: {:?}, not {:?}", filter, flow, some, all);
                }
            }
        }
    }
}
