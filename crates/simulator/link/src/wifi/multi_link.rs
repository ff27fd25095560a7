//! Multi-link operation (802.11be clause 35.3): one queue, sequence space, window and reorder buffer for each pair of
//! multi-link devices (MLD), category and direction, over several links that contend each on its own channel.

use tacit_packet::units::Duration;

use super::category::{AccessCategory, BothWays};
use super::link_set::LinkSet;

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
