//! Packets in a world.

use std::fmt::Debug;

use tacit_between::hack::AckPacket;
use tacit_link::PayloadClass;
use tacit_link::wifi::AccessCategory;
use tacit_packet::units::{Bytes, FlowId, HostId};
use tacit_packet::{Ecn, Packet, Transport, wire};

/// What a world carries: simulated packets, or both those and the bytes of a live hop.
pub trait Carried: Clone + AckPacket + From<Packet> + Debug {
    /// Table of hosts by address, for hosts whose number is not part of their address.
    type Addresses: Debug + Default;

    /// The packet in `bytes` when they reach a host; `None` if it cannot be forwarded.
    fn from_bytes(bytes: &[u8], addresses: &Self::Addresses) -> Option<Self>;

    /// Bytes of the IP packet.
    fn len(&self) -> Bytes;

    /// Never true for an IP packet.
    fn is_empty(&self) -> bool {
        self.len() == Bytes(0)
    }

    /// Class for airtime statistics.
    fn class(&self) -> PayloadClass;

    /// Its ECN field (RFC 3168 section 5).
    fn ecn(&self) -> Ecn;

    /// Sets the ECN field to congestion experienced, if the packet is ECN-capable.
    fn mark_congestion(&mut self);

    /// Its destination.
    fn destination(&self) -> HostId;

    /// Its flow in the world, if any.
    fn flow(&self) -> Option<FlowId>;

    /// Its access category, if it belongs to no flow.
    fn access_category(&self) -> AccessCategory {
        AccessCategory::BestEffort
    }

    /// A word that identifies it in the trace of a run.
    fn trace_word(&self) -> u64;

    /// The simulated packet; `None` for another kind.
    fn simulated(&self) -> Option<&Packet>;
}

impl Carried for Packet {
    /// Addresses and ports are derived from hosts and flows: see [`wire::address`].
    type Addresses = ();

    fn from_bytes(bytes: &[u8], (): &()) -> Option<Self> {
        wire::decode(bytes).ok()
    }

    fn len(&self) -> Bytes {
        Self::len(self)
    }

    fn class(&self) -> PayloadClass {
        if self.is_feedback() { PayloadClass::Ack } else { PayloadClass::Data }
    }

    fn ecn(&self) -> Ecn {
        self.ip.ecn
    }

    fn mark_congestion(&mut self) {
        if self.ip.ecn != Ecn::NotEct {
            self.ip.ecn = Ecn::Ce;
        }
    }

    #[inline]
    fn destination(&self) -> HostId {
        self.destination
    }

    #[inline]
    fn flow(&self) -> Option<FlowId> {
        Some(self.flow)
    }

    #[inline]
    fn trace_word(&self) -> u64 {
        let transport = match &self.transport {
            Transport::Tcp(segment) => {
                u64::from(segment.seq.0)
                    | u64::from(segment.ack.0 ^ u64::from(segment.payload_len) as u32) << 32
            }
            Transport::Udp(datagram) => datagram.number,
            Transport::Tack(packet) => u64::from(packet.number.0) | u64::from(packet.payload_len()) << 32,
        };
        transport ^ u64::from(self.flow.0) << 20 ^ u64::from(self.destination.0) << 52
    }

    #[inline]
    fn simulated(&self) -> Option<&Packet> {
        Some(self)
    }
}
