//! What packets on the air say of the flows they belong to.

use std::collections::BTreeMap;

use tacit_proto::Packet;
use tacit_proto::packet::Transport;
use tacit_proto::tack::Body;
use tacit_proto::tcp::Flags;
use tacit_proto::units::{FlowId, HostId, SeqNumber};

/// What one packet says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// Positions that it carries: the first, and the one past the last.
    pub sequence: Option<[u64; 2]>,
    /// The position up to which it acknowledges.
    pub acknowledges: Option<u64>,
}

/// Positions in streams, of which headers carry the low 32 bits.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    /// The last of each flow and direction of data, and of acknowledgments.
    last: BTreeMap<(FlowId, HostId, bool), u64>,
}

impl Positions {
    /// What `packet` says: octets of a stream for TCP and TACK, numbers of datagrams for UDP.
    pub(super) fn said(&mut self, packet: &Packet) -> Said {
        match &packet.transport {
            Transport::Tcp(segment) => {
                let carried = u64::from(segment.sequence_len());
                let from = (carried > 0).then(|| self.whole(packet, false, segment.seq));
                let says_ack = segment.flags.contains(Flags::ACK);
                Said {
                    sequence: from.map(|from| [from, from + carried]),
                    acknowledges: says_ack.then(|| self.whole(packet, true, segment.ack)),
                }
            }
            Transport::Udp(datagram) if datagram.is_report() => Said::default(),
            Transport::Udp(datagram) => {
                Said { sequence: Some([datagram.number, datagram.number + 1]), acknowledges: None }
            }
            Transport::Tack(tack) => match &tack.body {
                Body::Data(data) => {
                    let from = self.whole(packet, false, data.offset);
                    Said { sequence: Some([from, from + u64::from(data.payload_len)]), acknowledges: None }
                }
                Body::Tack(tack) => {
                    Said { sequence: None, acknowledges: Some(self.whole(packet, true, tack.received)) }
                }
                _ => Said::default(),
            },
        }
    }

    /// The position that ends in `low` and is nearest to the last one.
    fn whole(&mut self, packet: &Packet, acknowledged: bool, low: SeqNumber) -> u64 {
        let last = self.last.entry((packet.flow, packet.source, acknowledged)).or_default();
        let step = i64::from(low.0.wrapping_sub(*last as u32).cast_signed());
        let whole = last.saturating_add_signed(step);
        *last = whole;
        whole
    }
}

#[cfg(test)]
mod tests {
    use tacit_proto::packet::IpHeader;
    use tacit_proto::tcp::Segment;

    use super::*;

    #[test]
    fn positions_go_on_where_sequence_numbers_begin_again() {
        let mut positions = Positions::default();
        let mut carried = |seq: u32| {
            let segment = Segment { seq: SeqNumber(seq), payload_len: 1_000, ..Segment::default() };
            let packet = Packet {
                flow: FlowId(0),
                source: HostId(0),
                destination: HostId(1),
                ip: IpHeader::default(),
                transport: Transport::Tcp(segment),
            };
            positions.said(&packet).sequence.unwrap()
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
}
