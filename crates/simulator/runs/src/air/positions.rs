//! Stream positions of packets on the air.

use std::collections::BTreeMap;

use tacit_packet::tack::Body;
use tacit_packet::tcp::Flags;
use tacit_packet::units::{FlowId, HostId, SeqNumber};
use tacit_packet::{Packet, Transport};

/// The stream positions in one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketPositions {
    /// Range of positions that it carries: the first, and one past the last.
    pub sequence: Option<[u64; 2]>,
    /// Position up to which it acknowledges.
    pub acknowledges: Option<u64>,
}

/// Extends sequence numbers to stream positions. Headers carry only the low 32 bits, and TCP does not start at 0.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    /// The last position of each flow and sender, separately for data and acknowledgments.
    last: BTreeMap<(FlowId, HostId, bool), u64>,
    /// The sequence number of the first byte of each flow and sender; 0 if the transport always starts there.
    first: BTreeMap<(FlowId, HostId), SeqNumber>,
}

impl Positions {
    /// The positions in `packet`: bytes of a stream for TCP and TACK, numbers of datagrams for UDP.
    pub(super) fn locate(&mut self, packet: &Packet) -> PacketPositions {
        match &packet.transport {
            Transport::Tcp(segment) => {
                if segment.flags.contains(Flags::SYN) {
                    // SYN occupies the sequence number before it (RFC 9293 section 3.4).
                    let first = SeqNumber(segment.seq.0.wrapping_add(1));
                    self.first.insert((packet.flow, packet.source), first);
                    return PacketPositions::default();
                }
                let carried = u64::from(segment.payload_len);
                let from = (carried > 0).then(|| self.whole(packet.flow, packet.source, false, segment.seq));
                let says_ack = segment.flags.contains(Flags::ACK);
                PacketPositions {
                    sequence: from.map(|from| [from, from + carried]),
                    acknowledges: says_ack
                        .then(|| self.whole(packet.flow, packet.destination, true, segment.ack)),
                }
            }
            Transport::Udp(datagram) if datagram.is_report() => PacketPositions::default(),
            Transport::Udp(datagram) => {
                PacketPositions { sequence: Some([datagram.number, datagram.number + 1]), acknowledges: None }
            }
            Transport::Tack(tack) => match &tack.body {
                Body::Data(data) => {
                    let from = self.whole(packet.flow, packet.source, false, data.offset);
                    PacketPositions {
                        sequence: Some([from, from + u64::from(data.payload_len)]),
                        acknowledges: None,
                    }
                }
                Body::Tack(tack) => PacketPositions {
                    sequence: None,
                    acknowledges: Some(self.whole(packet.flow, packet.destination, true, tack.received)),
                },
                _ => PacketPositions::default(),
            },
        }
    }

    /// The position of `number` in the bytes of `sender` that is nearest to the last one.
    fn whole(&mut self, flow: FlowId, sender: HostId, acknowledged: bool, number: SeqNumber) -> u64 {
        let first = self.first.get(&(flow, sender)).copied().unwrap_or_default();
        let low = number.0.wrapping_sub(first.0);
        let last = self.last.entry((flow, sender, acknowledged)).or_default();
        let step = i64::from(low.wrapping_sub(*last as u32).cast_signed());
        *last = last.saturating_add_signed(step);
        *last
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::IpHeader;
    use tacit_packet::tcp::Segment;

    use super::*;

    fn locate_segment(positions: &mut Positions, from: u32, segment: Segment) -> PacketPositions {
        positions.locate(&Packet {
            flow: FlowId(0),
            source: HostId(from),
            destination: HostId(1 - from),
            ip: IpHeader::default(),
            transport: Transport::Tcp(segment),
        })
    }

    #[test]
    fn positions_go_on_where_sequence_numbers_begin_again() {
        let mut positions = Positions::default();
        let mut carried = |seq: u32| {
            let segment = Segment { seq: SeqNumber(seq), payload_len: 1_000, ..Segment::default() };
            locate_segment(&mut positions, 0, segment).sequence.unwrap()
        };
        let turn = 1_u64 << 32;
        assert_eq!(carried(1), [1, 1_001]);
        for seq in [1 << 30, 1 << 31, 3 << 30] {
            assert_eq!(carried(seq)[0], u64::from(seq));
        }
        assert_eq!(carried(u32::MAX - 499), [turn - 500, turn + 500]);
        assert_eq!(carried(500), [turn + 500, turn + 1_500]);
        assert_eq!(carried(u32::MAX - 499)[0], turn - 500, "sent again");
    }

    #[test]
    fn positions_count_from_the_first_byte_for_data_and_for_its_acknowledgments() {
        let mut positions = Positions::default();
        let isn = SeqNumber(u32::MAX);
        let syn = Segment { seq: isn, flags: Flags::SYN, ..Segment::default() };
        assert_eq!(locate_segment(&mut positions, 0, syn), PacketPositions::default());
        let data = Segment { seq: SeqNumber(0), payload_len: 500, ..Segment::default() };
        assert_eq!(locate_segment(&mut positions, 0, data).sequence, Some([0, 500]));
        let ack = Segment { ack: SeqNumber(500), flags: Flags::ACK, ..Segment::default() };
        assert_eq!(locate_segment(&mut positions, 1, ack).acknowledges, Some(500));
    }
}
