//! The one place where a link-layer ACK is made.
//!
//! A scheme that sends something along with the ACK, or none at all, changes the decision here and nothing else in the MAC.

use tacit_proto::hack::{Heard, Nic, Response};

/// Response of a station when a link-layer ACK is due.
#[derive(Clone, Debug, Default)]
pub(crate) enum AckHook {
    /// Plain ACKs and Block Acks, as the standard says.
    #[default]
    Stock,
    /// TCP/HACK: the bytes that the NIC holds for the peer are appended.
    Hack(Nic),
}

impl AckHook {
    /// Decides the ACK to `peer`, one SIFS before it goes out: writes the bytes to append to `appended`, at most `room`
    /// bytes where there is such a bound. `None` for stock ACKs, which no driver asks about.
    #[inline]
    pub fn link_ack(
        &mut self,
        peer: usize,
        heard: Heard,
        sync: bool,
        room: Option<usize>,
        appended: &mut Vec<u8>,
    ) -> Option<Response> {
        match self {
            Self::Stock => None,
            Self::Hack(nic) => Some(nic.respond(peer, heard, sync, room, appended)),
        }
    }
}
