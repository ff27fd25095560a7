//! Multi-link operation (802.11be clause 35.3): one queue, sequence space, window and reorder buffer for each pair of
//! multi-link devices (MLD), category and direction, over several links that contend each on its own channel.

use super::config::{BothWays, BssConfig};
use super::mac::mpdu::Mpdu;
use crate::packet::PayloadClass;

/// A link of a multi-link device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u8);

impl LinkId {
    /// The first link, which is the only one without multi-link operation.
    pub const FIRST: Self = Self(0);

    /// Index into tables of links.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSet(u8);

impl LinkSet {
    /// Every link.
    pub const ALL: Self = Self(u8::MAX);
    /// No link.
    pub const NONE: Self = Self(0);

    /// With `link` as well.
    #[must_use]
    pub const fn with(self, link: LinkId) -> Self {
        Self(self.0 | 1 << link.0)
    }

    /// Without `link`.
    #[must_use]
    pub const fn without(self, link: LinkId) -> Self {
        Self(self.0 & !(1 << link.0))
    }

    /// True if it has no link.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if it has `link`.
    pub const fn contains(self, link: LinkId) -> bool {
        self.0 & 1 << link.0 != 0
    }

    /// The links of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// How many MPDUs of the common window an A-MPDU may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowShare {
    /// As many as fit, as in ns-3.
    #[default]
    Greedy,
    /// At most the window times the rate of the link, divided by the sum of the rates. Ours: the standard leaves it open.
    Proportional,
}

/// Which MPDUs a Block Ack acknowledges (802.11be clause 35.3.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockAckScope {
    /// Those that arrived on its link: the least that the standard demands, and what hardware can know a SIFS later.
    #[default]
    OwnLink,
    /// Those that arrived on any link, including MPDUs of a PPDU that another link is still receiving, as in ns-3.
    Shared,
}

/// Several links between an access point and its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiLinkConfig {
    /// The links after the first, with the same clients in the same order and the same categories. Queues, the window,
    /// retries and reordering are those of the first link.
    pub further: Vec<BssConfig>,
    /// How the links share the window.
    pub share: WindowShare,
    /// What a Block Ack acknowledges.
    pub block_acks: BlockAckScope,
    /// Links for pure TCP ACKs, chosen by their sender.
    pub acks: LinkSet,
    /// Links for all other packets (TID-to-link mapping, 802.11be clause 35.3.7).
    pub map: BothWays<LinkSet>,
    /// Links of each client, in the order of [`BssConfig::stations`].
    pub clients: Vec<LinkSet>,
}

impl MultiLinkConfig {
    /// All clients on all links.
    pub fn new(further: Vec<BssConfig>) -> Self {
        let clients = further.first().map_or(0, |link| link.stations.len());
        Self {
            further,
            share: WindowShare::default(),
            block_acks: BlockAckScope::default(),
            acks: LinkSet::ALL,
            map: BothWays { down: LinkSet::ALL, up: LinkSet::ALL },
            clients: vec![LinkSet::ALL; clients],
        }
    }
}

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
