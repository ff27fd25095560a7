//! Configuration of a basic service set.

use tacit_packet::units::{Bytes, Duration, Instant};

use super::air::StationId;
use super::category::{AccessCategory, BothWays, EdcaOverride, EdcaParameters, PerCategory, TxopLimits};
use super::multi_link::{AckLinks, BlockAckScope, ClientLinks, LinkMap, WindowShare};
use super::ofdma::OfdmaConfig;
use super::phy::{Mode, Phy, Standard, Variant};
use super::propagation::Decibels;
use crate::loss::Loss;
use crate::queue::{AckFilter, QueueConfig};

/// One client of a basic service set and its link to the access point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// Rate of data frames, in both directions.
    pub mode: Mode,
    /// Rate of control responses, if not that of the standard's rule for `mode`.
    pub control_mode: Option<Mode>,
    /// Which data MPDUs from the access point are lost, not counting collisions.
    pub downlink_loss: Loss,
    /// Which data MPDUs to the access point are lost, not counting collisions.
    pub uplink_loss: Loss,
    /// Which ACKs and Block Acks are lost, counted separately per direction.
    pub link_ack_loss: Loss,
    /// Which data between the access point and this client is acknowledged.
    pub link_acks: BothWays<LinkAcks>,
    /// SNR in the channel of `mode`, the same in both directions: noise destroys data, Block Ack Requests, ACKs and
    /// Block Acks depending on mode and length, in addition to the losses above. `None` for no noise.
    pub snr: Option<Decibels>,
    /// Whether the SNR in a channel narrower than that of `mode` is higher because less noise is received, as at a
    /// distance; otherwise it is the same for all widths.
    pub narrow_is_clearer: bool,
    /// Received power between the access point and the station, only for captures; `None` if not given.
    pub signal_dbm: Option<i8>,
    /// Period in which the station is out of reach: no frame between it and the access point arrives, although both
    /// still defer to every PPDU. `None` for never.
    pub away: Option<(Instant, Instant)>,
    /// Contention parameters that replace the defaults.
    pub edca: PerCategory<EdcaOverride>,
    /// Queue at the access point for this station.
    pub downlink_queue: QueueConfig,
    /// Queue at the station.
    pub uplink_queue: QueueConfig,
}

impl StationConfig {
    /// A client that sends and receives at `mode`, without losses and with unlimited queues.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            control_mode: None,
            downlink_loss: Loss::None,
            uplink_loss: Loss::None,
            link_ack_loss: Loss::None,
            link_acks: BothWays::default(),
            snr: None,
            narrow_is_clearer: false,
            signal_dbm: None,
            away: None,
            edca: PerCategory::default(),
            downlink_queue: QueueConfig::default(),
            uplink_queue: QueueConfig::default(),
        }
    }

    /// SNR in the channel of `mode`; `None` for no noise.
    pub fn snr_over(&self, mode: &Mode) -> Option<Decibels> {
        let snr = self.snr?;
        if !self.narrow_is_clearer || mode.width_mhz == self.mode.width_mhz {
            return Some(snr);
        }
        let widths = f64::from(self.mode.width_mhz) / f64::from(mode.width_mhz);
        Some(Decibels::from_db(snr.as_db() + 10.0 * libm::log10(widths)))
    }
}

/// One direction of a direct link between two clients (tunnelled direct link setup, TDLS, of IEEE 802.11z), which
/// bypasses the access point. The other direction is a separate entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectLink {
    /// The sender.
    pub from: StationId,
    /// The receiver.
    pub to: StationId,
    /// Its settings, as if the receiver were the sender's access point: uplink settings apply, and the downlink value
    /// of [`StationConfig::link_acks`] applies to the opposite direction. Its contention parameters are the sender's.
    pub link: StationConfig,
}

impl DirectLink {
    /// Those of `links` on which `station` sends, in their order.
    pub fn from_station(links: &[Self], station: StationId) -> impl Iterator<Item = &Self> {
        links.iter().filter(move |link| link.from == station)
    }
}

/// Frames that reserve the channel before data PPDUs, and for which PPDUs they are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// A CTS to the sender itself, before PSDUs longer than `above` bytes.
    CtsToSelf {
        /// 0 for all PSDUs.
        above: u32,
    },
    /// RTS and CTS, before PSDUs longer than `above` bytes (dot11RTSThreshold).
    RtsCts {
        /// 0 for all PSDUs.
        above: u32,
    },
}

/// How stations choose the data rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateControl {
    /// Always [`StationConfig::mode`].
    #[default]
    Fixed,
    /// Adapts to the MPDUs that arrive, among the modes with the guard interval of [`StationConfig::mode`] and at most
    /// its width and streams.
    Minstrel,
}

/// Whether the holder of a TXOP lets the responder send in it (RD protocol, 802.11-2012 clause 9.25, 802.11-2020 clause
/// 10.29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReverseDirection {
    /// Never.
    #[default]
    Off,
    /// With each data PPDU: one SIFS after its acknowledgment the recipient sends one PPDU of its data for the holder,
    /// in the same access category.
    Granted {
        /// Packets queued for less than this time when the PPDU is sent are not in it, because the host's data is still
        /// being transferred to the NIC.
        turnaround: Duration,
        /// Time beyond the acknowledgment of its own PPDU that the holder of a TXOP without a limit grants; with a
        /// limit it grants the rest of the TXOP.
        limit: Duration,
    },
}

impl ReverseDirection {
    /// The limit of video in 802.11-2012 table 8-105. A TXOP without a limit belongs to best effort or background, for
    /// which the standard allows only one PPDU of their own.
    pub const USUAL_LIMIT: Duration = Duration::from_micros(3_008);
}

/// When the holder of a TXOP sends several exchanges, a SIFS apart (802.11-2012 clause 9.19.2.4, 802.11-2020 clause
/// 10.23.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bursts {
    /// Never: a limit only bounds the one exchange.
    Never,
    /// In the categories that have their own limit by [`BssConfig::txop_limits`]; [`BssConfig::txop_limit`] bounds
    /// exchanges.
    #[default]
    ByCategory,
    /// In every category, also within [`BssConfig::txop_limit`].
    WithinLimit,
    /// The same, and each frame reserves the rest of the TXOP (multiple protection, 802.11-2020 clause 9.2.5.2); a CF-End
    /// returns what is left (clause 10.23.2.10). The standard leaves the choice to the holder. A multi-user access
    /// reserves its own responses.
    MultipleProtection,
}

/// After what a bystander defers for EIFS instead of AIFS (802.11-2020 clause 10.3.2.3.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eifs {
    /// Never.
    Never,
    /// After overlapping frames if it detected the first, which began while it heard nothing. Of frames that begin
    /// together it detects none: with equal powers their preambles disturb each other, and the PHY reports only energy.
    Detected,
    /// After all overlapping frames. The training fields of preambles that begin in the same slot are equal and add up, so
    /// that the PHY synchronises, and ends reception with an error (clause 17.3.12, FormatViolation).
    #[default]
    Overlapping,
}

/// Whether data from one transmitter to one receiver is acknowledged at the link layer (Ack Policy, 802.11-2020 clause
/// 9.2.4.5.4). All variants except the first need a standard with aggregation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkAcks {
    /// By an ACK or a Block Ack.
    #[default]
    Normal,
    /// Not at all (policy No Ack): each PPDU is sent once and discarded. No window stalls, there are no
    /// retransmissions, and data is passed up as it arrives. With FWP, TCP and HTTP make up for losses (Havey and
    /// Almeroth, section V-A).
    None,
    /// Not immediately, but its sender keeps it as [`BssConfig::repair`] says. A recipient requests missing data from
    /// time to time with a Block Ack in its own channel access. The data is sent again once per request, and passed up
    /// late.
    Deferred,
}

/// How data with [`LinkAcks::Deferred`] is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairConfig {
    /// Bytes of packets that a transmitter keeps per recipient.
    pub buffer: Bytes,
    /// How long it keeps them, and for how long the recipient requests them.
    pub age: Duration,
    /// Minimum time between two requests.
    pub period: Duration,
}

impl RepairConfig {
    /// Room for the 1984 distinguishable sequence numbers in full packets, for about as long as TCP takes to notice a
    /// loss; requests are frequent enough that one covers the losses at 600 Mb/s.
    pub const USUAL: Self =
        Self { buffer: Bytes(3_000_000), age: Duration::from_millis(200), period: Duration::from_millis(20) };
}

/// How the spatial streams of a mode carry aggregates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamQueues {
    /// One A-MPDU is spread over all streams, as in the standard (802.11-2020 clause 19.3.11.8).
    #[default]
    Joint,
    /// Each stream carries its own parallel aggregate at its share of the rate, with its own Block Ack window and
    /// losses: the emulator of the FWP paper (section V). No standard has this.
    Independent,
}

/// The longest A-MSDU that receivers accept (802.11-2020 clause 9.4.2.55.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmsduLimit {
    /// 3839 bytes.
    Bytes3839,
    /// 7935 bytes; within an A-MPDU of 802.11n the limit of an MPDU is 4095.
    Bytes7935,
}

impl AmsduLimit {
    /// In bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Bytes3839 => 3_839,
            Self::Bytes7935 => 7_935,
        }
    }
}

/// Which destination the access point serves next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApScheduler {
    /// Round robin among those with queued data, one TXOP at a time.
    #[default]
    RoundRobin,
    /// The one whose oldest packet has waited longest, including retransmissions: like a single queue, except that an
    /// A-MPDU takes out packets of one destination.
    FirstComeFirstServed,
    /// Deficit round robin by airtime, as in mac80211 (Høiland-Jørgensen et al., "Ending the Anomaly", USENIX ATC
    /// 2017): each may use the same share of the channel, including its PPDUs to the access point.
    Airtime,
}

impl ApScheduler {
    /// Airtime that a turn adds to a client's deficit: mac80211's weight of a station, 256 us.
    pub const AIRTIME_QUANTUM: Duration = Duration::from_micros(256);
    /// Largest airtime debt of a client. Ours: without a limit, as in mac80211, a client that has sent much would have
    /// to wait for the same time before it receives anything.
    pub const AIRTIME_DEBT: Duration = Duration::from_millis(100);
}

/// A basic service set: an access point, its clients and their common rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BssConfig {
    /// The amendment of the access point, and of its clients except those with a mode of an older one.
    pub standard: Standard,
    /// Options of the amendment, which matter at 2.4 GHz, and with HE and EHT.
    pub variant: Variant,
    /// The clients; station `i + 1` is entry `i`, the access point is station 0.
    pub stations: Vec<StationConfig>,
    /// The access categories in use, the same at all stations: at least one, and only best effort if the standard has
    /// no EDCA.
    pub categories: Vec<AccessCategory>,
    /// Contention parameters of the access point that replace the defaults.
    pub ap_edca: PerCategory<EdcaOverride>,
    /// How stations choose the data rate.
    pub rate_control: RateControl,
    /// Direct links between clients, with an entry per direction.
    pub direct_links: Vec<DirectLink>,
    /// Pairs of clients that do not hear each other; all clients hear the access point.
    pub hidden: Vec<(StationId, StationId)>,
    /// Longest exchange, or longest TXOP if there are bursts; `None` leaves the limits of the standard.
    pub txop_limit: Option<Duration>,
    /// TXOP limits per access category, if there is EDCA.
    pub txop_limits: TxopLimits,
    /// Which TXOPs contain several exchanges.
    pub bursts: Bursts,
    /// Most MPDUs in an A-MPDU; `None` leaves the limits of the standard, 1 disables aggregation.
    pub ampdu_mpdus: Option<u32>,
    /// Minimum time between the starts of MPDUs in an A-MPDU that receivers request (Minimum MPDU Start Spacing): zero
    /// or one of [`BssConfig::MPDU_START_SPACINGS`].
    pub mpdu_start_spacing: Duration,
    /// Outstanding MPDUs under a Block Ack agreement, from 2 to the standard's maximum of 64, 256 or 1024: the Buffer
    /// Size that the recipient announces (802.11-2020 clause 9.4.1.13). Limited by a client's own standard.
    pub block_ack_window: u32,
    /// How the spatial streams of a client carry its queue.
    pub stream_queues: StreamQueues,
    /// Longest A-MSDU in an MPDU, if the standard has aggregation; `None` for one packet per MPDU.
    pub amsdu: Option<AmsduLimit>,
    /// How data with deferred acknowledgments is repaired.
    pub repair: RepairConfig,
    /// Grants to responders within TXOPs, if the standard has aggregation.
    pub reverse_direction: ReverseDirection,
    /// Target beacon transmission time interval; `None` for no beacons (IBSS-like test beds).
    pub beacon_interval: Option<Duration>,
    /// Retries of an MPDU, and of a Block Ack Request, before giving up (dot11LongRetryLimit).
    pub retry_limit: u32,
    /// Frames before data that reserve the channel.
    pub protection: Protection,
    /// Consecutive RTS without a CTS before the announced PPDU is given up (dot11ShortRetryLimit), minus one.
    pub short_retry_limit: u32,
    /// An MPDU older than this since queueing is dropped instead of retried.
    pub lifetime: Duration,
    /// A recipient passes on its MPDUs when a gap before them lasts this long.
    pub reorder_timeout: Duration,
    /// Additional delay of link-layer ACKs after SIFS, as in some implementations; transmitters wait correspondingly
    /// longer.
    pub link_ack_delay: Duration,
    /// A receiver synchronises to the longest of several PPDUs that start together, and receives the part of it after
    /// the others have ended. If disabled, all overlapping PPDUs are lost completely.
    ///
    /// If some clients are hidden from each other, and the SNR of all is known, the access point receives the first of
    /// overlapping frames if it is stronger than noise and all others by the margin that its mode requires.
    pub capture: bool,
    /// Which client the access point serves next.
    pub ap_scheduler: ApScheduler,
    /// Multi-user PPDUs of 802.11ax; `None` for none.
    pub ofdma: Option<OfdmaConfig>,
    /// Limit of the airtime, at a client's rate, of packets for it that the access point has given to its MAC and that
    /// are not settled (AQL, airtime queue limits): a data PPDU is no longer than this, except for one packet. `None`
    /// for no limit.
    pub aql_limit: Option<Duration>,
    /// ACK filter of the access point's queues.
    pub ap_ack_filter: AckFilter,
    /// ACK filter of the stations' queues.
    pub station_ack_filter: AckFilter,
    /// After which undecodable frames stations wait EIFS instead of AIFS.
    pub eifs: Eifs,
    /// Further links of all stations (802.11be), on channels of their own; `None` for one link. Not with OFDMA, hidden
    /// stations, direct links, queues per stream or unacknowledged data.
    pub multi_link: Option<Box<MultiLinkConfig>>,
}

impl BssConfig {
    /// Minimum MPDU start spacings that a receiver may request, besides none (802.11-2020 clause 9.4.2.55.3).
    pub const MPDU_START_SPACINGS: [Duration; 7] = [
        Duration::from_nanos(250),
        Duration::from_nanos(500),
        Duration::from_micros(1),
        Duration::from_micros(2),
        Duration::from_micros(4),
        Duration::from_micros(8),
        Duration::from_micros(16),
    ];

    /// A set of `stations` with default values: beacons every 102.4 ms, 7 retries, 500 ms lifetime.
    pub fn new(standard: Standard, stations: Vec<StationConfig>) -> Self {
        Self {
            standard,
            variant: Variant::for_standard(standard),
            stations,
            categories: vec![AccessCategory::BestEffort],
            ap_edca: PerCategory::default(),
            rate_control: RateControl::Fixed,
            direct_links: Vec::new(),
            hidden: Vec::new(),
            txop_limit: None,
            txop_limits: TxopLimits::default(),
            bursts: Bursts::default(),
            ampdu_mpdus: None,
            block_ack_window: standard.phy().aggregation.map_or(64, |limits| limits.mpdus),
            stream_queues: StreamQueues::Joint,
            mpdu_start_spacing: Duration::ZERO,
            amsdu: None,
            repair: RepairConfig::USUAL,
            reverse_direction: ReverseDirection::Off,
            // 100 time units of 1024 us.
            beacon_interval: Some(Duration::from_micros(102_400)),
            retry_limit: 7,
            protection: Protection::None,
            short_retry_limit: 7,
            lifetime: Duration::from_millis(500),
            reorder_timeout: Duration::from_millis(100),
            link_ack_delay: Duration::ZERO,
            capture: false,
            ap_scheduler: ApScheduler::default(),
            ofdma: None,
            aql_limit: None,
            ap_ack_filter: AckFilter::Off,
            station_ack_filter: AckFilter::Off,
            eifs: Eifs::default(),
            multi_link: None,
        }
    }

    /// Each link; itself without multi-link operation.
    pub fn links(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.multi_link.iter().flat_map(|common| &common.further))
    }

    /// Timing and limits of its PHY.
    pub const fn phy(&self) -> &'static Phy {
        self.standard.phy_as(self.variant)
    }

    /// The standard of a client with data in `mode`: that of the mode if it has QoS, otherwise that of the set.
    pub const fn standard_at(&self, mode: &Mode) -> Standard {
        if mode.format.aggregates() { mode.format.standard() } else { self.standard }
    }

    /// Timing and limits of a client with data in `mode`.
    pub const fn phy_at(&self, mode: &Mode) -> &'static Phy {
        self.standard_at(mode).phy_as(self.variant)
    }

    /// Outstanding MPDUs in `mode`: the configured window, or the limit of the mode's standard.
    pub fn window_at(&self, mode: &Mode) -> u32 {
        self.phy_at(mode)
            .aggregation
            .map_or(self.block_ack_window, |limits| limits.mpdus.min(self.block_ack_window))
    }

    /// Contention parameters of `station` in `category`.
    ///
    /// # Panics
    /// If the set does not have this station.
    pub fn edca(&self, station: StationId, category: AccessCategory) -> EdcaParameters {
        let overrides = match station.index().checked_sub(1) {
            None => &self.ap_edca,
            Some(client) => &self.stations[client].edca,
        };
        overrides.get(category).over(category.parameters(self.phy()))
    }
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
