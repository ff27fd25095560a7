//! An MPDU in the Block Ack window.

use tacit_packet::units::Instant;

use super::amsdu::Msdus;
use crate::wifi::link_set::LinkId;

/// State of an MPDU in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MpduState {
    /// To be sent; it is a retransmission if `retries` is above zero.
    Waiting,
    /// In the current PPDU of this link, or sent on it without an acknowledgment received.
    InFlight(LinkId),
    /// Acknowledged; leaves the window when it is at the head.
    Delivered,
    /// Given up; leaves the window when it is at the head.
    GivenUp,
}

/// An MPDU with a sequence number.
#[derive(Clone, Debug)]
pub(crate) struct Mpdu {
    pub msdus: Msdus,
    pub sequence: u16,
    /// Bytes of the packets, cached because asking each packet costs more.
    pub bytes: u32,
    /// Bytes of the MPDU, including the FCS.
    pub len: u32,
    pub retries: u32,
    pub state: MpduState,
    pub queued_at: Instant,
    /// Its reception was decided before the end of its PPDU, because a Block Ack on another link reports it.
    pub is_decided: bool,
}

impl Mpdu {
    /// Whether it leaves the window when it is at the head.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, MpduState::Delivered | MpduState::GivenUp)
    }
}
