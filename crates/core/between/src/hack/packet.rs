//! Packets as the driver sees them, with the implementation for simulated ones.

use tacit_packet::tcp::{AckInfo, Segment, Timestamps};
use tacit_packet::{FlowKey, Packet, Transport, wire};

/// How a packet may be appended to a link-layer ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rides {
    /// Not at all: it is always queued as a packet.
    Never,
    /// As a pure TCP ACK, compressed relative to earlier ones.
    Compressed,
    /// Uncompressed. For cumulative feedback whose next report covers a lost one, and which tolerates waiting for a
    /// link-layer ACK.
    AsIs,
}

/// A packet that a driver can examine: a struct in the simulator, bytes on a live machine.
pub trait AckPacket: Clone + PartialEq {
    /// Appends the packet to `bytes`: the whole IP packet if it [rides](AckPacket::rides) compressed; if it rides
    /// uncompressed, any form that the other end can parse.
    fn write_to(&self, bytes: &mut Vec<u8>);
    /// Whether and how a link-layer ACK may carry it.
    fn rides(&self) -> Rides;
    /// The key of its flow and direction.
    fn flow_key(&self) -> FlowKey;
    /// The key of the packets that answer it.
    fn reverse_key(&self) -> FlowKey;
    /// Fields of a TCP segment; `None` for anything else, and for one with options or bits that are not understood.
    fn segment(&self) -> Option<Segment>;
    /// Fields of a pure TCP ACK with no options except timestamps and SACK; `None` for anything else.
    fn ack_info(&self) -> Option<AckInfo> {
        AckInfo::from_segment(&self.segment()?)
    }
    /// The Timestamps option of a TCP segment; `None` for anything else.
    fn timestamps(&self) -> Option<FlowTimestamps>;
}

/// Timestamps of a TCP segment (RFC 7323 section 3), and the flow whose segments echo them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTimestamps {
    /// The [key](AckPacket::flow_key) of segments in the other direction.
    pub reverse: FlowKey,
    /// TSval and TSecr.
    pub timestamps: Timestamps,
}

impl AckPacket for Packet {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        // Neither a pure ACK, with few options and no payload, nor a report can be too long; a TACK's lists are built
        // in order and with a limited size.
        wire::encode_into(self, bytes).expect("feedback has a wire form");
    }

    fn rides(&self) -> Rides {
        match &self.transport {
            Transport::Tcp(segment) if segment.is_pure_ack() => Rides::Compressed,
            Transport::Udp(datagram) if datagram.is_report() => Rides::AsIs,
            Transport::Tack(packet) if packet.is_feedback() => Rides::AsIs,
            _ => Rides::Never,
        }
    }

    fn flow_key(&self) -> FlowKey {
        Packet::flow_key(self)
    }

    fn reverse_key(&self) -> FlowKey {
        FlowKey::simulated(self.flow, self.destination)
    }

    fn segment(&self) -> Option<Segment> {
        match &self.transport {
            Transport::Tcp(segment) => Some(*segment),
            Transport::Udp(_) | Transport::Tack(_) => None,
        }
    }

    fn timestamps(&self) -> Option<FlowTimestamps> {
        let Transport::Tcp(segment) = &self.transport else { return None };
        let reverse = self.reverse_key();
        segment.timestamps.map(|timestamps| FlowTimestamps { reverse, timestamps })
    }
}
