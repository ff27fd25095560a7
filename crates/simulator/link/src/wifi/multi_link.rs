//! Multi-link operation (802.11be clause 35.3): one queue, sequence space, window and reorder buffer for each pair of
//! multi-link devices (MLD), category and direction, over several links that contend each on its own channel.

use tacit_packet::units::{Duration, Instant};

use super::category::AccessCategory;
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

/// Links for pure TCP ACKs, chosen by their sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckLinks {
    /// These.
    Among(LinkSet),
    /// Of the links of the client, the one that was busy for the least time in the latest [`AckLinks::INTERVAL`]; any before
    /// the first has ended.
    Idlest,
}

impl AckLinks {
    /// Every link.
    pub const ANY: Self = Self::Among(LinkSet::ALL);
    /// The usual beacon interval: access points announce the busy share of their channel over beacon intervals (BSS Load
    /// element, 802.11-2020 clause 9.4.2.27).
    pub const INTERVAL: Duration = Duration::from_micros(102_400);

    /// The links that may become one for ACKs.
    pub const fn possible(self) -> LinkSet {
        match self {
            Self::Among(links) => links,
            Self::Idlest => LinkSet::ALL,
        }
    }
}

/// The links of all packets but pure TCP ACKs, by category and direction (TID-to-link mapping, 802.11be clause 35.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkMap([BothWays<LinkSet>; AccessCategory::ALL.len()]);

impl LinkMap {
    /// Every link for each category.
    pub const ALL: Self =
        Self([BothWays { down: LinkSet::ALL, up: LinkSet::ALL }; AccessCategory::ALL.len()]);

    /// The links of `category`.
    pub const fn get(&self, category: AccessCategory) -> BothWays<LinkSet> {
        self.0[category as usize]
    }

    /// The links of `category`, to be changed.
    pub const fn get_mut(&mut self, category: AccessCategory) -> &mut BothWays<LinkSet> {
        &mut self.0[category as usize]
    }
}

impl From<BothWays<LinkSet>> for LinkMap {
    /// The same links for each category.
    fn from(links: BothWays<LinkSet>) -> Self {
        Self([links; AccessCategory::ALL.len()])
    }
}

/// What a client can do on several links at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkMode {
    /// Send and receive on each link as if it had no other (simultaneous transmit and receive, STR).
    #[default]
    Simultaneous,
    /// Listen on all links, and exchange frames on one of them at a time.
    SingleRadio(Emlsr),
    /// Send on one link or receive on others: its own signal deafens it (nonsimultaneous transmit and receive, NSTR, 802.11be
    /// clause 35.3.16).
    SendOrReceive {
        /// As [`Emlsr::medium_sync`].
        medium_sync: Duration,
    },
}

/// Enhanced multi-link single-radio operation (802.11be clause 35.3.17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emlsr {
    /// Padding of initial control frames: what the radio needs to come to a link.
    pub padding: Duration,
    /// How long the client hears nothing on any link after an exchange, while it returns to listening.
    pub transition: Duration,
    /// When the client contends again after an exchange.
    pub radio_return: RadioReturn,
    /// For how long a client that was deaf on a link begins at most one TXOP there, with an RTS (802.11be clause 35.3.16.8).
    pub medium_sync: Duration,
}

/// When a client with one radio contends again after an exchange, on the link where its radio rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RadioReturn {
    /// After the transition delay. It senses nothing while its radio is away: its backoff stands still.
    #[default]
    WithTransition,
    /// After this time. A chain of its own senses the link meanwhile, and its backoff runs on.
    After(Duration),
}

impl Emlsr {
    /// The longest padding and transition delay, in the codes of 802.11be's EML Capabilities (clause 9.4.2.312.2.4).
    pub const PADDINGS_US: [u64; 5] = [0, 32, 64, 128, 256];
    /// Transition delays.
    pub const TRANSITIONS_US: [u64; 6] = [0, 16, 32, 64, 128, 256];
    /// Deafness that costs medium synchronisation when it lasts longer: aMediumSyncThreshold.
    pub const MEDIUM_SYNC_THRESHOLD: Duration = Duration::from_micros(72);
    /// What Intel's Linux driver advertises (iwlwifi, `mld/mac80211.c`), and the usual duration of the medium
    /// synchronisation timer: 5,484 us in units of 32.
    pub const USUAL: Self = Self {
        padding: Duration::from_micros(32),
        transition: Duration::from_micros(64),
        radio_return: RadioReturn::WithTransition,
        medium_sync: Duration::from_micros(5_472),
    };
}

/// The links of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLinks {
    /// Those that it has.
    pub links: LinkSet,
    /// What it can do on them at once.
    pub mode: LinkMode,
}

impl ClientLinks {
    /// All links at once.
    pub const ALL: Self = Self { links: LinkSet::ALL, mode: LinkMode::Simultaneous };
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
    /// Links for pure TCP ACKs.
    pub acks: AckLinks,
    /// Links for all other packets.
    pub map: LinkMap,
    /// Links of each client, in the order of [`BssConfig::stations`]. One with a single radio sends on the fastest of those
    /// that carry all that it sends.
    pub clients: Vec<ClientLinks>,
}

impl MultiLinkConfig {
    /// All clients on all links.
    pub fn new(further: Vec<BssConfig>) -> Self {
        let clients = further.first().map_or(0, |link| link.stations.len());
        Self {
            further,
            share: WindowShare::default(),
            block_acks: BlockAckScope::default(),
            acks: AckLinks::ANY,
            map: LinkMap::ALL,
            clients: vec![ClientLinks::ALL; clients],
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
