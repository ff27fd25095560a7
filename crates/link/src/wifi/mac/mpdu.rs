//! An MPDU in the Block Ack window.

use tacit_proto::units::Instant;

use super::amsdu::Msdus;

/// Fate of an MPDU in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MpduState {
    /// To be sent, again if `retries` is above zero.
    Waiting,
    /// In the PPDU being sent, or sent and its acknowledgment missed.
    InFlight,
    /// Acknowledged: leaves the window when it is first.
    Delivered,
    /// Given up: leaves the window when it is first.
    GivenUp,
}

/// An MPDU that has a sequence number.
#[derive(Clone, Debug)]
pub(crate) struct Mpdu<P> {
    pub msdus: Msdus<P>,
    pub sequence: u16,
    /// Bytes of the packets: to ask each costs more than to keep them.
    pub bytes: u32,
    /// Bytes of the MPDU, FCS included.
    pub len: u32,
    pub retries: u32,
    pub state: MpduState,
    pub queued_at: Instant,
}

impl<P> Mpdu<P> {
    /// Whether it leaves the window when it is first.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, MpduState::Delivered | MpduState::GivenUp)
    }
}
