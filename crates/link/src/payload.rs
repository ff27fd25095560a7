//! What a link may know about what it carries.

use tacit_proto::Packet;
use tacit_proto::units::Bytes;

/// How a payload is booked in the airtime accounts; never a reason to treat it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadClass {
    /// Anything but a pure acknowledgment.
    Data,
    /// A pure transport acknowledgment.
    Ack,
}

/// What links carry: simulator structs or live bytes.
pub trait Payload: Clone {
    /// Octets of the IP packet.
    fn len(&self) -> Bytes;

    /// Never true for an IP packet.
    fn is_empty(&self) -> bool {
        self.len() == Bytes(0)
    }

    /// For the accounts.
    fn class(&self) -> PayloadClass;
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
}
