//! Packets as the shim sees them, with the implementation for simulated ones.

use super::Marker;
use tacit_packet::tcp::Segment;
use tacit_packet::{Ecn, FlowKey, IpHeader, Packet, Transport};

/// A packet that carries a TCP segment past a [`Shim`](super::Shim): of a simulation, or the bytes of a real one.
pub trait SegmentPacket: Sized {
    /// The key of its flow and direction.
    fn flow_key(&self) -> FlowKey;

    /// The key of the other direction.
    fn reverse_key(&self) -> FlowKey;

    /// Its TCP segment; `None` if it does not contain a complete one.
    fn segment(&self) -> Option<Segment>;

    /// True if its checksum is correct. Others pass unchanged, and the host drops them.
    fn is_intact(&self) -> bool;

    /// The bytes of its payload; empty if the packet carries only lengths.
    fn payload(&self) -> &[u8];

    /// A packet from the same sender to the same receiver with `segment`, which has no options except timestamps. If a
    /// position is given, its payload is that of a placeholder at this position of the stream. It has no congestion
    /// mark.
    #[must_use]
    fn forged(&self, segment: &Segment, text: Option<(Marker, u64)>) -> Self;
}

impl SegmentPacket for Packet {
    fn flow_key(&self) -> FlowKey {
        Packet::flow_key(self)
    }

    fn reverse_key(&self) -> FlowKey {
        FlowKey::simulated(self.flow, self.destination)
    }

    fn segment(&self) -> Option<Segment> {
        match self.transport {
            Transport::Tcp(segment) => Some(segment),
            Transport::Udp(_) | Transport::Tack(_) => None,
        }
    }

    fn is_intact(&self) -> bool {
        true
    }

    fn payload(&self) -> &[u8] {
        &[]
    }

    fn forged(&self, segment: &Segment, text: Option<(Marker, u64)>) -> Self {
        let ecn = if self.ip.ecn == Ecn::Ce { Ecn::Ect0 } else { self.ip.ecn };
        let segment = Segment { placeholder: text.is_some(), ..*segment };
        Self { ip: IpHeader { ecn, ..self.ip }, transport: Transport::Tcp(segment), ..*self }
    }
}
