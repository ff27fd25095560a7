//! Rules that all stations of a channel share, and values derived from them.

use tacit_packet::units::{Duration, Instant};

use super::plan::Outgoing;
use super::protection::Handshake;
use crate::wifi::category::AccessCategory;
use crate::wifi::category::BothWays;
use crate::wifi::config::MultiLinkConfig;
use crate::wifi::config::{BssConfig, Bursts, ReverseDirection};
use crate::wifi::link_set::{LinkId, LinkSet};
use crate::wifi::mac::link_role::LinkRole;
use crate::wifi::multi_link::{BlockAckScope, ClientLinks, Emlsr, LinkMode};
use crate::wifi::ofdma::OfdmaConfig;
use crate::wifi::phy::{Format, Mode, Phy, ResourceUnit};

/// The rules of a channel, fixed at creation.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub phy: &'static Phy,
    pub config: BssConfig,
    /// Whether a TXOP may contain more than one exchange.
    pub may_continue_txop: bool,
    /// Most users in a PPDU; 1 without OFDMA.
    pub most_users: usize,
    /// Whether access points trigger clients for their data.
    pub has_triggers: bool,
    /// The link of multi-link devices whose channel it is.
    pub multi_link: Option<LinkRules>,
}

/// A link of multi-link devices.
#[derive(Clone, Debug)]
pub(crate) struct LinkRules {
    pub link: LinkId,
    /// Settings of all links, without those of each.
    pub common: MultiLinkConfig,
    /// Most MPDUs of a client's window in one PPDU, in the order of the clients.
    pub shares: Vec<Option<u32>>,
}

impl LinkRules {
    /// What the link carries in `category` between the access point and `client`, counted from 0, with pure TCP ACKs on
    /// `acks`.
    pub fn role(&self, client: usize, is_down: bool, category: AccessCategory, acks: LinkSet) -> LinkRole {
        let BothWays { down, up } = self.common.map.get(category);
        let ClientLinks { links, mode } = self.common.clients[client];
        let has_one_radio = matches!(mode, LinkMode::SingleRadio(_));
        let map = if is_down { down } else { up };
        // A client that has none of the chosen links uses its own, and one with one radio sends everything where that rests.
        let carries = |chosen: LinkSet| {
            let chosen = links.and(chosen);
            let any = chosen.is_empty() || has_one_radio && !is_down;
            if any { links } else { chosen }.contains(self.link)
        };
        LinkRole {
            link: self.link,
            is_one_of_several: true,
            acks: carries(acks),
            data: carries(map),
            settles_others: self.common.block_acks == BlockAckScope::Shared,
        }
    }
}

/// How long a function may hold the channel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HoldLimits {
    /// Limit for one exchange; `None` for no limit.
    pub exchange: Option<Duration>,
    /// Limit for a series of exchanges; `None` if it sends one exchange at a time.
    pub burst: Option<Duration>,
    /// Its frames reserve the rest of this, from the start of the TXOP (multiple protection); `None` if each exchange
    /// reserves only itself.
    pub reserves: Option<Duration>,
}

impl Rules {
    pub fn new(config: BssConfig) -> Self {
        let mut rules = Self {
            phy: config.phy(),
            config,
            may_continue_txop: false,
            most_users: 1,
            has_triggers: false,
            multi_link: None,
        };
        rules.most_users = rules.most_users();
        let triggers = rules.config.ofdma.as_ref().is_some_and(OfdmaConfig::has_triggers);
        // Only HE clients answer a trigger.
        rules.has_triggers = triggers && rules.most_users > 1;
        let bursts =
            rules.config.categories.iter().any(|category| rules.hold_limits(*category).burst.is_some());
        rules.may_continue_txop = bursts || rules.config.reverse_direction != ReverseDirection::Off;
        rules
    }

    /// The rules of `link` of multi-link devices, whose settings in common are `common`.
    pub fn of_link(
        config: BssConfig,
        link: LinkId,
        common: &MultiLinkConfig,
        shares: Vec<Option<u32>>,
    ) -> Self {
        let common = MultiLinkConfig { further: Vec::new(), ..common.clone() };
        Self { multi_link: Some(LinkRules { link, common, shares }), ..Self::new(config) }
    }

    /// The one radio that `client`, counted from 0, has for several links.
    pub fn radio_of(&self, client: usize) -> Option<Emlsr> {
        match self.multi_link.as_ref()?.common.clients[client].mode {
            LinkMode::SingleRadio(radio) => Some(radio),
            LinkMode::Simultaneous | LinkMode::SendOrReceive { .. } => None,
        }
    }

    /// The link of multi-link devices whose channel it is; the first one without them.
    pub fn link(&self) -> LinkId {
        self.multi_link.as_ref().map_or(LinkId::FIRST, |link| link.link)
    }

    /// Most users with their own units in the narrowest channel in use.
    fn most_users(&self) -> usize {
        let modes = self.config.stations.iter().map(|station| &station.mode);
        let narrowest = modes.filter(|mode| mode.format == Format::HeSu).map(|mode| mode.width_mhz).min();
        let most = narrowest.map_or(1, |width_mhz| ResourceUnit::Tones26.count_in(width_mhz));
        self.config.ofdma.map_or(1, |ofdma| usize::from(ofdma.max_users).min(most))
    }

    /// Limits of the functions of `category`.
    pub fn hold_limits(&self, category: AccessCategory) -> HoldLimits {
        // DCF has no TXOPs.
        let has_edca = self.phy.aggregation.is_some();
        let txop_limit = self.config.txop_limits.limit(category).filter(|_| has_edca);
        let exchange = [self.config.txop_limit, txop_limit].into_iter().flatten().min();
        let burst = match self.config.bursts {
            Bursts::Never => None,
            Bursts::ByCategory => txop_limit.and(exchange),
            Bursts::WithinLimit | Bursts::MultipleProtection => exchange,
        };
        let reserves = burst.filter(|_| self.config.bursts == Bursts::MultipleProtection);
        HoldLimits { exchange, burst, reserves }
    }

    /// From the end of a PPDU to the start of its response.
    pub fn response_after(&self) -> Duration {
        self.phy.sifs + self.config.link_ack_delay
    }

    /// From the end of a PPDU until its sender stops waiting for a response in mode `control`.
    pub fn ack_timeout(&self, control: &Mode) -> Duration {
        self.phy.ack_timeout(control) + self.config.link_ack_delay
    }

    /// MPDUs queued before this time are given up, not retried.
    pub fn oldest_allowed(&self, now: Instant) -> Instant {
        Instant::ZERO + now.saturating_since(Instant::ZERO).saturating_sub(self.config.lifetime)
    }

    /// The mode of handshake frames before `data`: that of control responses to it, but one that stations of 802.11b
    /// can decode if there are any.
    pub fn protection_mode(&self, data: &Mode, control: &Mode) -> Mode {
        self.phy.protection_mode(data).unwrap_or(*control)
    }

    /// The limit that a PPDU with `handshake` and `outgoing` grants to its recipient, if the TXOP itself has no limit:
    /// every data PPDU of a TXOP holder grants it.
    pub fn grant(&self, handshake: Handshake, outgoing: &Outgoing) -> Option<Duration> {
        match (self.config.reverse_direction, outgoing) {
            (ReverseDirection::Granted { limit, .. }, Outgoing::Data { .. })
                if handshake != Handshake::Granted =>
            {
                Some(limit)
            }
            _ => None,
        }
    }
}
