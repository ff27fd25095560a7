//! Configuration of a basic service set.

use tacit_proto::units::{Bytes, Duration, Instant};

use super::air::StationId;
use super::category::{AccessCategory, EdcaOverride, EdcaParameters, PerCategory, TxopLimits};
use super::ofdma::OfdmaConfig;
use super::phy::{Mode, Phy, Standard, Variant};
use super::propagation::Decibels;
use crate::loss::Loss;
use crate::queue::{AckFilter, QueueConfig};

/// One client of a basic service set and its link to the access point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// Rate of data frames, both ways.
    pub mode: Mode,
    /// Rate of control responses, if not that of the standard's rule for `mode`.
    pub control_mode: Option<Mode>,
    /// Which data MPDUs from the access point are lost, apart from collisions.
    pub downlink_loss: Loss,
    /// Which data MPDUs to the access point are lost, apart from collisions.
    pub uplink_loss: Loss,
    /// Which ACKs and Block Acks are lost, counted for each direction on its own.
    pub link_ack_loss: Loss,
    /// Which data between the access point and this client is acknowledged.
    pub link_acks: BothWays<LinkAcks>,
    /// SNR over the channel of `mode`, the same both ways: noise takes data, Block Ack Requests, ACKs and
    /// Block Acks, by mode and length, on top of the losses above. `None` for no noise.
    pub snr: Option<Decibels>,
    /// Whether the SNR over a channel narrower than that of `mode` is higher by the noise that it keeps out, as it is at
    /// a distance; otherwise it is the same over all.
    pub narrow_is_clearer: bool,
    /// Power at which the access point and the station hear each other, for captures; nothing else depends on it. `None`
    /// where it is not given.
    pub signal_dbm: Option<i8>,
    /// From when to when the station is out of reach: nothing between it and the access point arrives, though both still
    /// defer to every PPDU. `None` for never.
    pub away: Option<(Instant, Instant)>,
    /// Contention parameters in place of the defaults.
    pub edca: PerCategory<EdcaOverride>,
    /// Queue at the access point for this station.
    pub downlink_queue: QueueConfig,
    /// Queue at the station.
    pub uplink_queue: QueueConfig,
}

impl StationConfig {
    /// A client that sends and receives at `mode`, loses nothing and has queues without limits.
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

    /// SNR over the channel of `mode`; `None` for no noise.
    pub fn snr_over(&self, mode: &Mode) -> Option<Decibels> {
        let snr = self.snr?;
        if !self.narrow_is_clearer || mode.width_mhz == self.mode.width_mhz {
            return Some(snr);
        }
        let widths = f64::from(self.mode.width_mhz) / f64::from(mode.width_mhz);
        Some(Decibels::from_db(snr.as_db() + 10.0 * libm::log10(widths)))
    }
}

/// One way of a direct link between two clients (tunnelled direct link set-up, TDLS, of IEEE 802.11z): its frames do not
/// go through the access point. The way back is another of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectLink {
    /// The sender.
    pub from: StationId,
    /// The receiver.
    pub to: StationId,
    /// Its settings, as if the receiver were the access point of the sender: those of the uplink count, and of
    /// [`StationConfig::link_acks`] that of the downlink for the way back. Its contention parameters are the sender's.
    pub link: StationConfig,
}

impl DirectLink {
    /// Those of `links` that `station` sends on, in their order.
    pub fn of(links: &[Self], station: StationId) -> impl Iterator<Item = &Self> {
        links.iter().filter(move |link| link.from == station)
    }
}

/// Frames before data PPDUs that reserve the channel, and the PPDUs they precede.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// A CTS to the sender itself, before PSDUs longer than `above` bytes.
    CtsToSelf {
        /// 0 is before all.
        above: u32,
    },
    /// RTS and CTS, before PSDUs longer than `above` bytes (dot11RTSThreshold).
    RtsCts {
        /// 0 is before all.
        above: u32,
    },
}

/// How stations choose the rate of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateControl {
    /// That of [`StationConfig::mode`], always.
    #[default]
    Fixed,
    /// By the MPDUs that get through, between the modes of the guard interval of [`StationConfig::mode`] with at most its width
    /// and streams.
    Minstrel,
}

/// Whether the holder of a TXOP lets the responder send in it too (RD protocol, 802.11-2012 clause 9.25, 802.11-2020
/// clause 10.29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReverseDirection {
    /// Never.
    #[default]
    Off,
    /// With each data PPDU: one SIFS after its acknowledgment the recipient sends one PPDU of its data for the holder in
    /// the same access category.
    Granted {
        /// A packet queued for less than this when the PPDU goes out is not in it: the host's data is still
        /// on its way to the NIC's memory.
        turnaround: Duration,
        /// How long the holder of a TXOP without a limit grants beyond the acknowledgment of its own PPDU; one with
        /// a limit grants the rest of it.
        limit: Duration,
    },
}

impl ReverseDirection {
    /// The limit of video in 802.11-2012 table 8-105: a TXOP without a limit is one of best effort or background, to
    /// which the standard allows their own PPDU and no more.
    pub const USUAL_LIMIT: Duration = Duration::from_micros(3_008);
}

/// Where the holder of a TXOP sends one exchange after another, a SIFS apart (802.11-2012 clause 9.19.2.4, 802.11-2020
/// clause 10.23.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bursts {
    /// Nowhere: a limit only bounds the one exchange.
    Never,
    /// In the categories that have a limit of their own by [`BssConfig::txop_limits`]. [`BssConfig::txop_limit`] bounds
    /// exchanges.
    #[default]
    ByCategory,
    /// Within [`BssConfig::txop_limit`] too, in every category.
    WithinLimit,
}

/// Whether data of one transmitter for one receiver is acknowledged at the link layer (Ack Policy, 802.11-2020 clause
/// 9.2.4.5.4). All but the first needs a standard that aggregates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkAcks {
    /// By an ACK or a Block Ack.
    #[default]
    Normal,
    /// Not at all (policy No Ack): each PPDU is sent once and forgotten, so no window stalls, nothing is sent again, and
    /// data is passed up as it arrives. With FWP TCP and HTTP make up for it (Havey and Almeroth, section V-A).
    None,
    /// Not when it is sent; but its sender keeps it as [`BssConfig::repair`] says, and a recipient that lacks it asks for
    /// it now and then, by a Block Ack at an access of its own. It is sent again once for each request, and passed up
    /// late.
    Deferred,
}

/// How data under [`LinkAcks::Deferred`] is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairConfig {
    /// Bytes of packets that a transmitter keeps for each recipient.
    pub buffer: Bytes,
    /// How long it keeps them, and the recipient asks for them.
    pub age: Duration,
    /// From one request to the next, at least.
    pub period: Duration,
}

impl RepairConfig {
    /// Room for the 1984 numbers that can be told apart, in full packets, for as long as TCP takes to notice; asked for
    /// often enough that a request covers the losses of 600 Mb/s.
    pub const USUAL: Self =
        Self { buffer: Bytes(3_000_000), age: Duration::from_millis(200), period: Duration::from_millis(20) };
}

/// A setting of the data that goes from the access point to a client, and of the data that comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BothWays<T> {
    /// From the access point.
    pub down: T,
    /// To it.
    pub up: T,
}

impl<T: Copy + PartialEq> BothWays<T> {
    /// `value` both ways.
    pub const fn of(value: T) -> Self {
        Self { down: value, up: value }
    }

    /// True where it is `value` both ways.
    pub fn are(&self, value: T) -> bool {
        self.down == value && self.up == value
    }
}

/// Relation of the spatial streams of a mode to the aggregates sent in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamQueues {
    /// One A-MPDU is spread over all streams, as the standard has it (802.11-2020 clause 19.3.11.8).
    #[default]
    Joint,
    /// Each stream carries an aggregate of its own beside the others, at its share of the rate, with a Block Ack window
    /// and losses of its own: the emulator of the FWP paper (section V). No standard has this.
    Independent,
}

/// The longest A-MSDU that receivers take (802.11-2020 clause 9.4.2.55.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmsduLimit {
    /// 3839 bytes.
    Bytes3839,
    /// 7935 bytes; within an A-MPDU of 802.11n an MPDU ends at 4095.
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
    /// Each that it has something for in turn, one TXOP at a time.
    #[default]
    RoundRobin,
    /// The one whose oldest packet has waited longest, be it to be sent again: one queue, but that an A-MPDU takes the
    /// packets of one destination out of it.
    FirstComeFirstServed,
    /// Deficit round robin over airtime, as mac80211 does it (Høiland-Jørgensen et al., "Ending the Anomaly", USENIX ATC
    /// 2017): each may use as much of the channel as the others, its PPDUs to the access point included.
    Airtime,
}

impl ApScheduler {
    /// Airtime that a turn adds to the deficit of a client: mac80211's weight of a station, 256 us.
    pub const AIRTIME_QUANTUM: Duration = Duration::from_micros(256);
    /// Most airtime that a client can owe the others. Ours: without a bound, as in mac80211, one that sent much would wait for
    /// as long as it did until it receives anything.
    pub const AIRTIME_DEBT: Duration = Duration::from_millis(100);
}

/// A basic service set: an access point, its clients and the rules they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BssConfig {
    /// The amendment of the access point, and of its clients but those whose mode is of an older one.
    pub standard: Standard,
    /// Options that they choose in it; these make a difference at 2.4 GHz, and with HE and EHT.
    pub variant: Variant,
    /// The clients; station `i + 1` is entry `i`, the access point is station 0.
    pub stations: Vec<StationConfig>,
    /// The access categories in use, each station having all of them; at least one, and best effort alone
    /// where the standard has no EDCA.
    pub categories: Vec<AccessCategory>,
    /// Contention parameters of the access point in place of the defaults.
    pub ap_edca: PerCategory<EdcaOverride>,
    /// How they choose the rate of data.
    pub rate_control: RateControl,
    /// Links between clients past the access point, both ways of each.
    pub direct_links: Vec<DirectLink>,
    /// Pairs of clients that do not hear each other; everybody hears the access point.
    pub hidden: Vec<(StationId, StationId)>,
    /// Longest exchange, or longest TXOP where there are bursts; `None` leaves the limits of the standard.
    pub txop_limit: Option<Duration>,
    /// The limits that access categories have of their own, where there is EDCA.
    pub txop_limits: TxopLimits,
    /// Where TXOPs hold several exchanges.
    pub bursts: Bursts,
    /// Most MPDUs in an A-MPDU; `None` leaves the limits of the standard, 1 switches aggregation off.
    pub ampdu_mpdus: Option<u32>,
    /// Least time from the start of one MPDU to the next in an A-MPDU, which receivers ask for: Minimum MPDU Start
    /// Spacing, zero or one of [`BssConfig::MPDU_START_SPACINGS`].
    pub mpdu_start_spacing: Duration,
    /// MPDUs that may be outstanding under a Block Ack agreement, from 2 to the standard's maximum, 64, 256 or 1024: the
    /// Buffer Size that the recipient announces (802.11-2020 clause 9.4.1.13). No more than a client's own standard has.
    pub block_ack_window: u32,
    /// Relation of the spatial streams of a client to its queue.
    pub stream_queues: StreamQueues,
    /// How many bytes of packets share an MPDU as an A-MSDU where the standard aggregates; `None` for one
    /// packet each.
    pub amsdu: Option<AmsduLimit>,
    /// How data whose acknowledgment is deferred is repaired.
    pub repair: RepairConfig,
    /// Grants to responders within TXOPs; where the standard aggregates.
    pub reverse_direction: ReverseDirection,
    /// Target beacon transmission time interval; `None` for no beacons (IBSS-like test beds).
    pub beacon_interval: Option<Duration>,
    /// Retries of an MPDU, and of a Block Ack Request, before giving up (dot11LongRetryLimit).
    pub retry_limit: u32,
    /// Frames before data that reserve the channel.
    pub protection: Protection,
    /// RTS that may stay unanswered in a row before the PPDU they announce is given up
    /// (dot11ShortRetryLimit), less one.
    pub short_retry_limit: u32,
    /// An MPDU older than this since it was queued is dropped rather than retried.
    pub lifetime: Duration,
    /// The recipient passes on its MPDUs when a gap in front of them lasts this long.
    pub reorder_timeout: Duration,
    /// Link-layer ACKs leave this much later than one SIFS, as some implementations do, and
    /// transmitters wait as much longer.
    pub link_ack_delay: Duration,
    /// A receiver keeps hold of the longest of several PPDUs that start together, and gets the part of it that comes after
    /// the others have ended. Off, all PPDUs that overlap are lost whole.
    ///
    /// Where some clients are hidden from each other, and the SNR of all is known, the access point gets the first of
    /// frames that overlap if it is stronger than noise and all others by as much as its mode needs.
    pub capture: bool,
    /// Whom the access point serves next.
    pub ap_scheduler: ApScheduler,
    /// PPDUs of several users, of 802.11ax; `None` for none. Not beside hidden stations, nor where rates adapt.
    pub ofdma: Option<OfdmaConfig>,
    /// How long packets for a client last on the air, at its rate, that the access point has given to its MAC and that are
    /// not settled (AQL, airtime queue limits): a data PPDU is no longer, but for one packet. `None` for no limit.
    pub aql_limit: Option<Duration>,
    /// Treatment of pure TCP ACKs in the access point's queues.
    pub ap_ack_filter: AckFilter,
    /// Treatment of pure TCP ACKs in the stations' queues.
    pub station_ack_filter: AckFilter,
    /// Wait EIFS instead of AIFS after an undecodable frame.
    pub eifs: bool,
}

impl BssConfig {
    /// Least times that a receiver may ask for between the starts of MPDUs, besides none (802.11-2020 clause 9.4.2.55.3).
    pub const MPDU_START_SPACINGS: [Duration; 7] = [
        Duration::from_nanos(250),
        Duration::from_nanos(500),
        Duration::from_micros(1),
        Duration::from_micros(2),
        Duration::from_micros(4),
        Duration::from_micros(8),
        Duration::from_micros(16),
    ];

    /// A set of `stations` with the usual values: 102.4 ms beacons, 7 retries, 500 ms lifetime.
    pub fn new(standard: Standard, stations: Vec<StationConfig>) -> Self {
        Self {
            standard,
            variant: Variant::of(standard),
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
            eifs: true,
        }
    }

    /// Timing and limits.
    pub const fn phy(&self) -> &'static Phy {
        self.standard.phy_as(self.variant)
    }

    /// The standard of a client whose data has `mode`: that of the mode where it has QoS, else that of the set.
    pub const fn standard_at(&self, mode: &Mode) -> Standard {
        if mode.format.aggregates() { mode.format.standard() } else { self.standard }
    }

    /// Timing and limits of a client whose data has `mode`.
    pub const fn phy_at(&self, mode: &Mode) -> &'static Phy {
        self.standard_at(mode).phy_as(self.variant)
    }

    /// MPDUs that may be outstanding in `mode`: the window, or the limit of the mode's standard.
    pub fn window_at(&self, mode: &Mode) -> u32 {
        self.phy_at(mode)
            .aggregation
            .map_or(self.block_ack_window, |limits| limits.mpdus.min(self.block_ack_window))
    }

    /// Contention parameters of `station` in `category`.
    ///
    /// # Panics
    /// Unless the set has this station.
    pub fn edca(&self, station: StationId, category: AccessCategory) -> EdcaParameters {
        let own = match station.index().checked_sub(1) {
            None => &self.ap_edca,
            Some(client) => &self.stations[client].edca,
        };
        own.get(category).over(category.parameters(self.phy()))
    }
}
