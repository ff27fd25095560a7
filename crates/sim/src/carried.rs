//! Packets in a world.

use std::fmt::Debug;

use tacit_link::Payload;
use tacit_link::wifi::AccessCategory;
use tacit_proto::hack::AckPacket;
use tacit_proto::packet::{Packet, Transport};
use tacit_proto::units::{FlowId, HostId};
use tacit_proto::wire;

/// Payload of a world's links: simulated packets, or both those and the bytes of a live hop.
pub trait Carried: Payload + AckPacket + From<Packet> + Debug {
    /// Table of hosts by address, for hosts whose number is not part of their address.
    type Addresses: Debug + Default;

    /// The packet in `bytes` when they reach a host; `None` if it cannot be forwarded.
    fn from_bytes(bytes: &[u8], addresses: &Self::Addresses) -> Option<Self>;

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
