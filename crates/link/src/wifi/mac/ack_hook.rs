//! The one place where a link-layer ACK is made.
//!
//! A scheme that sends something along with the ACK, or none at all, changes what is decided here
//! and nothing else in the MAC.

use super::super::air::StationId;

/// The link-layer ACK a recipient is about to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkAck {
    /// Octets appended to the ACK or Block Ack, sent at its rate.
    pub appended_octets: u32,
}

/// What a station does when a link-layer ACK is due.
#[derive(Clone, Debug, Default)]
pub(crate) enum AckHook {
    /// Plain ACKs and Block Acks, as the standard says.
    #[default]
    Stock,
}

impl AckHook {
    /// Decides the ACK to `to`, one SIFS before it goes out.
    #[inline]
    pub fn link_ack(&mut self, _to: StationId) -> LinkAck {
        match self {
            Self::Stock => LinkAck { appended_octets: 0 },
        }
    }
}
