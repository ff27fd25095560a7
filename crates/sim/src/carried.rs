//! Packets that a world carries.

use std::fmt::Debug;

use tacit_link::Payload;
use tacit_link::wifi::AccessCategory;
use tacit_proto::hack::AckPacket;
use tacit_proto::packet::{Packet, Transport};
use tacit_proto::units::{FlowId, HostId};
use tacit_proto::wire;

/// Payload of a world's links: simulated packets, or those and the bytes of a live hop.
pub trait Carried: Payload + AckPacket + From<Packet> + Debug {
    /// Table of hosts by address, beside those that an address itself names.
    type Addresses: Debug + Default;

    /// The packet that `bytes` are, when they reach a host; `None` when they are none that it could pass on.
    fn from_bytes(bytes: &[u8], addresses: &Self::Addresses) -> Option<Self>;

    /// Where it goes.
    fn destination(&self) -> HostId;

    /// The flow of the world that it belongs to, if any.
    fn flow(&self) -> Option<FlowId>;

    /// Its access category, where it is no flow's.
    fn access_category(&self) -> AccessCategory {
        AccessCategory::BestEffort
    }

    /// A word that tells it from other packets in the trace of a run.
    fn trace_word(&self) -> u64;

    /// The simulated packet it is; `None` where it is another.
    fn simulated(&self) -> Option<&Packet>;
}

impl Carried for Packet {
    /// Addresses and ports are numbers of hosts and flows: see [`wire::address`].
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
