//! What a world carries.

use std::fmt::Debug;

use tacit_link::Payload;
use tacit_link::wifi::AccessCategory;
use tacit_proto::hack::AckPacket;
use tacit_proto::packet::{Packet, Transport};
use tacit_proto::units::{FlowId, HostId};
use tacit_proto::wire;

/// What the links of a world carry: simulated packets, or those and the bytes of a live hop.
pub trait Carried: Payload + AckPacket + From<Packet> + Debug {
    /// What names hosts by their addresses, beside what addresses say themselves.
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

    /// What tells it from other packets in the trace of a run, in one word.
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
