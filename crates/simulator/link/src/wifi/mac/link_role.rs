//! What a station may do on one of its links.

use tacit_packet::units::{Duration, Instant};

use super::mpdu::Mpdu;
use crate::packet::PayloadClass;
use crate::wifi::link_set::LinkId;

/// What a link may carry to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkRole {
    pub link: LinkId,
    /// Whether there are other links.
    pub is_one_of_several: bool,
    /// Whether it carries pure TCP ACKs.
    pub acks: bool,
    /// Whether it carries other packets.
    pub data: bool,
    /// Whether an acknowledgment on it also settles MPDUs that are in flight on other links.
    pub settles_others: bool,
}

impl LinkRole {
    /// The only link.
    pub const ALONE: Self =
        Self { link: LinkId::FIRST, is_one_of_several: false, acks: true, data: true, settles_others: false };

    /// Whether it carries packets of `class`.
    pub fn carries(&self, class: PayloadClass) -> bool {
        !self.is_one_of_several || if class == PayloadClass::Ack { self.acks } else { self.data }
    }

    /// Whether it carries `mpdu`.
    pub fn carries_mpdu(&self, mpdu: &Mpdu) -> bool {
        self.carries(mpdu.msdus.parts().0.class)
    }
}

/// What the radio of a client permits on one link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gate {
    /// Nothing begins here now.
    pub closed: bool,
    /// Exchanges begin with an initial control frame that has this padding.
    pub padding: Option<Duration>,
    /// The next exchange begins with an RTS.
    pub rts_due: bool,
    /// A PPDU that begins now ends then, with that on another link.
    pub ends_at: Option<Instant>,
    /// Rates of this link and of all that begin with it, if others do: its PPDU takes that part of what waits.
    pub part: Option<[u64; 2]>,
}

impl Gate {
    /// Whether an exchange of its own access begins with an RTS or with an initial control frame.
    pub fn calls_first(&self) -> bool {
        self.padding.is_some() || self.rts_due
    }
}
