//! The single place that decides the content of a link-layer ACK.
//!
//! A scheme that appends data to the ACK, or omits the ACK, changes this decision and nothing else in the MAC.

use tacit_between::hack::{Nic, Response, Solicited};

use crate::wifi::link_set::LinkId;

/// How a station responds when a link-layer ACK is due.
#[derive(Clone, Debug, Default)]
pub(crate) enum AckHook {
    /// Plain ACKs and Block Acks, as in the standard.
    #[default]
    Stock,
    /// TCP/HACK: appends the bytes that the NIC holds for the peer.
    Hack(Nic),
}

impl AckHook {
    /// Decides the ACK to `peer` on `link` one SIFS before it is sent, and writes the bytes to append to `appended`, at most
    /// `room` bytes if there is such a limit. Returns `None` for plain ACKs, about which no driver is asked.
    pub fn link_ack(
        &mut self,
        link: LinkId,
        peer: usize,
        solicited: Solicited,
        room: Option<usize>,
        appended: &mut Vec<u8>,
    ) -> Option<Response> {
        match self {
            Self::Stock => None,
            Self::Hack(nic) => Some(nic.respond_on(link.index(), peer, solicited, room, appended)),
        }
    }
}
