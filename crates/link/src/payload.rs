//! Properties of a payload that a link may inspect.

use tacit_proto::FlowKey;
use tacit_proto::Packet;
use tacit_proto::packet::Ecn;
use tacit_proto::tcp::AckInfo;
use tacit_proto::units::Bytes;

/// How a payload is accounted for in airtime statistics; it must not affect its treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadClass {
    /// Anything but a pure acknowledgment.
    Data,
    /// A pure transport acknowledgment.
    Ack,
}

/// Payload of links: simulator structs or live bytes.
pub trait Payload: Clone {
    /// Bytes of the IP packet.
    fn len(&self) -> Bytes;

    /// Never true for an IP packet.
    fn is_empty(&self) -> bool {
        self.len() == Bytes(0)
    }

    /// Class for airtime statistics.
    fn class(&self) -> PayloadClass;

    /// Identifies its flow and direction, for queues that separate flows; the default if flows cannot be distinguished.
    fn flow_key(&self) -> FlowKey {
        FlowKey::default()
    }

    /// Fields of a pure TCP ACK with no options except timestamps and SACK, for [filters](crate::queue::AckFilter) of
    /// such ACKs; `None` for other packets, and for payloads that cannot be inspected.
    fn ack_info(&self) -> Option<AckInfo> {
        None
    }

    /// Whether the ECN field names the packet L4S: ECT(1) or CE (RFC 9331 section 2).
    fn is_l4s(&self) -> bool {
        false
    }

    /// Sets the ECN field to congestion experienced if the packet is ECN-capable (RFC 3168 section 5); returns whether
    /// it did.
    fn mark_congestion(&mut self) -> bool {
        false
    }
}

impl Payload for Packet {
    #[inline]
    fn len(&self) -> Bytes {
        Packet::len(self)
    }

    #[inline]
    fn class(&self) -> PayloadClass {
        if self.is_feedback() { PayloadClass::Ack } else { PayloadClass::Data }
    }

    #[inline]
    fn flow_key(&self) -> FlowKey {
        Packet::flow_key(self)
    }

    #[inline]
    fn ack_info(&self) -> Option<AckInfo> {
        Packet::ack_info(self)
    }

    fn is_l4s(&self) -> bool {
        matches!(self.ip.ecn, Ecn::Ect1 | Ecn::Ce)
    }

    fn mark_congestion(&mut self) -> bool {
        let capable = self.ip.ecn != Ecn::NotEct;
        if capable {
            self.ip.ecn = Ecn::Ce;
        }
        capable
    }
}
