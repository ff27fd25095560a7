//! What the world of a link carries.

use std::sync::Arc;

use tacit_between::hack::{AckPacket, FlowTimestamps, Rides};
use tacit_link::PayloadClass;
use tacit_packet::tcp::Segment;
use tacit_packet::units::{Bytes, FlowId, HostId};
use tacit_packet::{Ecn, FlowKey, Packet};
use tacit_sim::Carried;

use crate::HEADERS;

/// A datagram between the two ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    pub source: HostId,
    pub destination: HostId,
    /// How many were sent before it, and itself.
    pub number: u64,
    pub bytes: Arc<[u8]>,
}

/// A packet on the links.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Of another, simulated host.
    Simulated(Packet),
    /// Of one of the two ends.
    Sent(Datagram),
}

impl From<Packet> for Frame {
    fn from(packet: Packet) -> Self {
        Self::Simulated(packet)
    }
}

impl AckPacket for Frame {
    /// A datagram does not ride, so its bytes are never needed.
    fn write_to(&self, bytes: &mut Vec<u8>) {
        if let Self::Simulated(packet) = self {
            AckPacket::write_to(packet, bytes);
        }
    }

    fn rides(&self) -> Rides {
        self.simulated().map_or(Rides::Never, AckPacket::rides)
    }

    fn flow_key(&self) -> FlowKey {
        match self {
            Self::Simulated(packet) => AckPacket::flow_key(packet),
            // No flow of the world has this number.
            Self::Sent(datagram) => FlowKey::simulated(FlowId(u32::MAX - 1), datagram.source),
        }
    }

    fn reverse_key(&self) -> FlowKey {
        match self {
            Self::Simulated(packet) => packet.reverse_key(),
            Self::Sent(datagram) => FlowKey::simulated(FlowId(u32::MAX - 1), datagram.destination),
        }
    }

    fn segment(&self) -> Option<Segment> {
        self.simulated().and_then(AckPacket::segment)
    }

    fn timestamps(&self) -> Option<FlowTimestamps> {
        self.simulated().and_then(AckPacket::timestamps)
    }
}

impl Carried for Frame {
    type Addresses = ();

    fn from_bytes(bytes: &[u8], (): &()) -> Option<Self> {
        Packet::from_bytes(bytes, &()).map(Self::Simulated)
    }

    fn len(&self) -> Bytes {
        match self {
            Self::Simulated(packet) => packet.len(),
            Self::Sent(datagram) => Bytes(datagram.bytes.len() as u64 + HEADERS),
        }
    }

    fn class(&self) -> PayloadClass {
        self.simulated().map_or(PayloadClass::Data, Carried::class)
    }

    fn ecn(&self) -> Ecn {
        self.simulated().map_or(Ecn::NotEct, Carried::ecn)
    }

    fn mark_congestion(&mut self) {
        if let Self::Simulated(packet) = self {
            packet.mark_congestion();
        }
    }

    fn destination(&self) -> HostId {
        match self {
            Self::Simulated(packet) => packet.destination,
            Self::Sent(datagram) => datagram.destination,
        }
    }

    fn flow(&self) -> Option<FlowId> {
        self.simulated().and_then(Carried::flow)
    }

    fn trace_word(&self) -> u64 {
        match self {
            Self::Simulated(packet) => packet.trace_word(),
            Self::Sent(datagram) => datagram.number << 8 ^ u64::from(datagram.source.0),
        }
    }

    fn simulated(&self) -> Option<&Packet> {
        match self {
            Self::Simulated(packet) => Some(packet),
            Self::Sent(_) => None,
        }
    }
}
