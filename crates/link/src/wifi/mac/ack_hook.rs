//! The one place where a link-layer ACK is made.
//!
//! A scheme that sends something along with the ACK, or none at all, changes what is decided here
//! and nothing else in the MAC.

use tacit_proto::hack::{Heard, Nic, Response};

/// What a station does when a link-layer ACK is due.
#[derive(Clone, Debug, Default)]
pub(crate) enum AckHook {
    /// Plain ACKs and Block Acks, as the standard says.
    #[default]
    Stock,
    /// TCP/HACK: what the NIC holds for the peer rides along.
    Hack(Nic),
}

impl AckHook {
    /// Decides the ACK to `peer`, one SIFS before it goes out: writes what rides along to
    /// `appended`, at most `room` bytes where there is such a bound. `None` where nobody asks what happened.
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
