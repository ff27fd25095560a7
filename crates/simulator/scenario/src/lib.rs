//! Scenarios: TOML files, and the [`Setup`](tacit_sim::Setup) that results from them.
//!
//! The topology is a chain: server -- wire -- access point -- Wi-Fi -- clients, or server -- wire -- client if there is
//! no `[wifi]`, or the list in `[[hop]]`. A scenario may name a `base` and contain only the differences; tables are
//! merged.

mod adoption;
pub mod bounded;
pub mod brought;
mod build;
mod counts;
mod direct;
pub mod edca;
mod effective;
mod error;
pub mod estimate;
pub mod explain;
#[cfg(test)]
mod flow_tests;
mod fwp;
pub mod input;
mod keys;
pub mod library;
pub mod link;
mod load;
mod markdown;
mod read;
pub mod scheme;
mod shell;
mod signal;
mod spec;
mod tack;
#[cfg(test)]
mod tests;
mod traces;
mod traffic;
pub mod warnings;

use std::sync::Arc;

use tacit_between::ack_hold::{AckHoldConfig, HoldLaw};
use tacit_between::{fastack, hack};
use tacit_congestion::{cubic, rre};
use tacit_link::queue::AckFilter;
use tacit_link::wifi::phy::{Mode, ModeChoice, Standard};
use tacit_link::wifi::{
    AccessCategory, AckLinks, BlockAckScope, BothWays, BssConfig, Emlsr, HackCarrier, HackRoom, LinkAcks,
    LinkMap, LinkSet, MuAcknowledgment, OfdmaConfig, Position, Propagation, ReverseDirection, WindowShare,
};
use tacit_link::wired::PipeConfig;
use tacit_link::{Loss, QueueConfig};
use tacit_packet::units::Duration;
use tacit_tcp::{self as tcp, AckPolicy, DelayedAcks, LinuxAcks};

pub use self::adoption::Adoption;
pub use self::direct::{ClientPair, DirectPairs, DirectPlan};
pub use self::error::{InputError, ScenarioError};
pub use self::fwp::{FwpPlan, RepairFrom};
pub use self::shell::quoted;
pub use self::signal::Signal;
pub use self::spec::{RunSpec, Subject};
pub use self::tack::{AckRule, TackPlan};
pub use self::traffic::{
    ApplicationKind, ApplicationKnobs, Direction, FlowPlan, ObjectsPlan, TrafficPlan, Transport,
};
use crate::edca::{ByRole, EdcaPlan, Numbers};

pub use tacit_input::{MAX_CLIENTS, table};

/// Maximum number of seeds in a sweep.
pub const MAX_SEEDS: u32 = 10_000;

/// A complete scenario, in which every value is determined.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name: the bundled name, or the file name without extension.
    pub name: String,
    /// A description of one line.
    pub description: String,
    /// The whole scenario as TOML, with bases and `--set` merged in. It is recorded as provenance, which runs share.
    pub text: Arc<str>,
    /// The name or path and the assignments with which it was loaded, quoted for a shell.
    pub invocation: String,
    /// Times and number of runs.
    pub run: RunPlan,
    /// The wireless hop, if there is one.
    pub wifi: Option<Wifi>,
    /// TCP/HACK on the wireless hop.
    pub hack: HackPlan,
    /// FWP on the wireless hop.
    pub fwp: FwpPlan,
    /// The hops from the server to the clients.
    pub hops: Vec<Hop>,
    /// Default number of clients.
    pub clients: u32,
    /// The clients that use a scheme, if only some do.
    pub adoption: Option<Adoption>,
    /// Client `i` starts `i` times this duration after the first.
    pub stagger: Duration,
    /// Settings of individual clients, by client index.
    pub overrides: Vec<ClientOverride>,
    /// The traffic of each client.
    pub traffic: TrafficPlan,
    /// The flows that replace `traffic`; if empty, every client has `traffic`.
    pub flows: Vec<FlowPlan>,
    /// Configuration of both ends of each TCP connection.
    pub tcp: tcp::Config,
    /// Options of the ACK policies, also those that only a scheme selects.
    pub acks: AckOptions,
    /// Options of CUBIC. Kept even if another controller is selected, because a scheme may select CUBIC.
    pub cubic: cubic::Config,
    /// Options of TCP-RRE. Kept even if another controller is selected, because a scheme may select TCP-RRE.
    pub rre: rre::Config,
    /// Configuration of both ends of each TACK connection.
    pub tack: TackPlan,
    /// Defaults of `compare`.
    pub compare: ComparePlan,
}

/// `[run]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// Duration of a run.
    pub duration: Duration,
    /// Results include only what happens from this time on.
    pub measure_from: Duration,
    /// Each flow starts later by a random time up to this.
    pub start_spread: Duration,
    /// Number of runs with different seeds in a comparison or sweep.
    pub seeds: u32,
    /// Interval between samples of the time series; `None` disables the series.
    pub sample_interval: Option<Duration>,
}

/// How stations choose their data rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateChoice {
    /// Always the rate of [`Wifi::mode`].
    #[default]
    Fixed,
    /// Rates chosen with knowledge of each client's signal. Among the modes with the width, guard interval and format
    /// of [`Wifi::mode`] and at most as many streams, the one with the highest throughput is used. No real rate control
    /// has this knowledge, so this serves as the reference for rate controls.
    Ideal,
    /// Minstrel, which chooses among these modes by the fraction of MPDUs that arrive.
    Minstrel,
}

/// `[wifi]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Wifi {
    /// The simulator's configuration, without stations, categories and ACK filters, which follow from the other
    /// settings.
    pub bss: BssConfig,
    /// Data rate.
    pub mode: Mode,
    /// The candidate modes, if each client uses the mode with the highest throughput at its signal.
    pub ideal: Option<ModeChoice>,
    /// Rate control of data, for rates that are not fixed.
    pub rate_control: RateChoice,
    /// Rate of control responses; `None` uses the rule of the standard.
    pub ack_mode: Option<Mode>,
    /// MPDU loss.
    pub mpdu_error: MpduError,
    /// Loss of ACKs and Block Acks.
    pub link_ack_error: Loss,
    /// Which data is acknowledged, for clients without a setting of their own.
    pub link_acks: BothWays<LinkAcks>,
    /// Signal between clients and access point; `None` means perfect reception.
    pub signal: Option<Signal>,
    /// Direct links between clients.
    pub direct: DirectPlan,
    /// Propagation: SNR over distance.
    pub propagation: Propagation,
    /// Power in dBm from which on clients with positions hear each other.
    pub carrier_sense_dbm: f64,
    /// Which access categories exist.
    pub categories: Categories,
    /// EDCA parameters of the access point and clients that replace those of the standard.
    pub edca: EdcaPlan<ByRole<Numbers>>,
    /// Reverse direction grants in TXOPs, for schemes and settings that enable them.
    pub grant: ReverseDirection,
    /// Filter of pure TCP ACKs before the wireless hop.
    pub ack_filter: WifiAckFilter,
    /// TCP ACKs that the access point generates for data received by clients.
    pub ap_acks: ApAcks,
    /// Multi-user PPDUs.
    pub ofdma: OfdmaPlan,
    /// Queue per station in the access point.
    pub ap_queue: QueueConfig,
    /// Queue in each station.
    pub station_queue: QueueConfig,
    /// Further links of all stations; `None` for one link.
    pub multi_link: Option<Box<MultiLinkPlan>>,
}

/// What a client can do on several links at once, as users choose it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkUse {
    /// Send and receive on each link as if it had no other.
    #[default]
    Simultaneous,
    /// Send on one or receive on others.
    SendOrReceive,
    /// Use only the fastest.
    Fastest,
    /// Listen on all, and exchange frames on one at a time.
    SingleRadio,
}

/// `[[wifi.link]]` after the first, and `[wifi.multi-link]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiLinkPlan {
    /// The links after the first.
    pub further: Vec<Wifi>,
    /// How the links share the Block Ack window.
    pub share: WindowShare,
    /// What a Block Ack acknowledges.
    pub block_acks: BlockAckScope,
    /// Links for pure TCP ACKs.
    pub acks: AckLinks,
    /// Links for other packets.
    pub map: LinkMap,
    /// What clients can do on their links at once.
    pub mode: LinkUse,
    /// Times of clients with one radio.
    pub emlsr: Emlsr,
}

impl Default for MultiLinkPlan {
    fn default() -> Self {
        Self {
            further: Vec::new(),
            share: WindowShare::default(),
            block_acks: BlockAckScope::default(),
            acks: AckLinks::ANY,
            map: LinkMap::ALL,
            mode: LinkUse::default(),
            emlsr: Emlsr::USUAL,
        }
    }
}

impl Wifi {
    /// Creates a Wi-Fi hop with `bss` and `mode`, and defaults for all other settings.
    pub fn new(bss: BssConfig, mode: Mode) -> Self {
        /// Minimum power at which a receiver must detect the preamble of a 20 MHz PPDU (802.11-2020 clause 17.3.10.6).
        const CARRIER_SENSE_DBM: f64 = -82.0;
        Self {
            mode,
            ideal: None,
            rate_control: RateChoice::Fixed,
            ack_mode: None,
            mpdu_error: MpduError::default(),
            link_ack_error: Loss::None,
            link_acks: BothWays::default(),
            signal: None,
            direct: DirectPlan::default(),
            propagation: Propagation::at(bss.variant.band),
            carrier_sense_dbm: CARRIER_SENSE_DBM,
            categories: Categories::Used,
            edca: EdcaPlan::default(),
            grant: ReverseDirection::Granted {
                turnaround: Duration::ZERO,
                limit: ReverseDirection::USUAL_LIMIT,
            },
            ack_filter: WifiAckFilter::Off,
            ap_acks: ApAcks::None,
            ofdma: OfdmaPlan::default(),
            ap_queue: keys::queue::DEFAULT_QUEUE.into(),
            station_queue: keys::queue::DEFAULT_QUEUE.into(),
            multi_link: None,
            bss,
        }
    }
}

/// One link of the chain from the server to the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop {
    /// A wired or cellular link.
    Pipe(Box<Link>),
    /// The wireless hop that `[wifi]` describes. The access point is on the server's side.
    Wifi,
}

/// A wired or cellular link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Towards the clients.
    pub down: PipeConfig,
    /// Towards the server.
    pub up: PipeConfig,
}

impl Link {
    /// Creates a link with the same configuration in both directions.
    pub fn both_ways(pipe: &PipeConfig) -> Self {
        Self { down: pipe.clone(), up: pipe.clone() }
    }
}

/// Which access categories exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Categories {
    /// Those used by flows.
    #[default]
    Used,
    /// All four.
    All,
}

/// TCP ACKs that the access point sends on behalf of its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApAcks {
    /// None.
    #[default]
    None,
    /// As in FastACK: an ACK is sent when the link-layer acknowledgment arrives.
    FastAck,
}

impl ApAcks {
    /// The configuration of the access point.
    pub fn agent(self) -> Option<fastack::Config> {
        match self {
            Self::None => None,
            Self::FastAck => Some(fastack::Config::USUAL),
        }
    }
}

/// Filter of pure TCP ACKs that wait for transmission over Wi-Fi.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WifiAckFilter {
    /// No filter.
    #[default]
    Off,
    /// CAKE's filter in every queue.
    Cake,
    /// CAKE's aggressive filter in every queue, which leaves one ACK per flow.
    CakeAggressive,
    /// The clients' drivers replace a waiting ACK by a newer one.
    DriverReplace,
    /// The clients' drivers delay ACKs.
    DriverHold,
    /// The clients thin ACKs before their drivers.
    Thin,
}

impl WifiAckFilter {
    /// The filters in the queues of the access point and of the clients.
    pub fn in_queues(self) -> [AckFilter; 2] {
        match self {
            Self::Off | Self::DriverHold | Self::Thin => [AckFilter::Off; 2],
            Self::Cake => [AckFilter::Cake; 2],
            Self::CakeAggressive => [AckFilter::CakeAggressive; 2],
            Self::DriverReplace => [AckFilter::Off, AckFilter::Replace],
        }
    }

    /// The ACK delay in front of the clients' queues.
    pub fn hold(self) -> Option<HoldLaw> {
        match self {
            Self::DriverHold => Some(HoldLaw::Fixed(AckHoldConfig::USUAL)),
            Self::Thin => Some(HoldLaw::Thin),
            Self::Off | Self::Cake | Self::CakeAggressive | Self::DriverReplace => None,
        }
    }
}

/// `[hack]`: how TCP ACKs are carried by link-layer ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HackPlan {
    /// The rule for when an ACK waits; `None` disables TCP/HACK in all stations.
    pub variant: Option<HackVariant>,
    /// How long an ACK waits in the timer variant.
    pub timer: Duration,
    /// Which of the waiting ACKs are appended to link-layer ACKs.
    pub rule: HackRule,
    /// With [`HackRule::Airtime`], one in this number of otherwise equal ACKs is appended.
    pub one_in: u32,
    /// Coding of the ACKs in a frame.
    pub coding: hack::Coding,
    /// Time from the reception of data until the compressed ACKs are in the NIC.
    pub turnaround: Duration,
    /// Maximum waiting time, for all variants.
    pub hold_limit: Duration,
    /// Maximum time without access in which ACKs overtake other packets.
    pub overtake_limit: Duration,
    /// Maximum number of bytes appended to one link-layer ACK.
    pub appended_limit: Option<u32>,
    /// Space for compressed ACKs in trigger-based Block Acks.
    pub mu_room: HackRoom,
    /// Where in these the compressed ACKs are placed.
    pub mu_carrier: HackCarrier,
}

/// When an ACK waits (HACK paper section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackVariant {
    /// While the access point indicates that more data follows.
    MoreData,
    /// As before, and also while data triggered by an earlier ACK is expected, which echoes of TCP timestamps reveal
    /// (section 5).
    TimestampEcho,
    /// The ACK is also queued as a packet, and goes by the first opportunity.
    Opportunistic,
    /// For a fixed time.
    Timer,
}

/// Which of the waiting ACKs are appended to link-layer ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackRule {
    /// All of them, as in the paper.
    Every,
    /// Those that save airtime.
    Airtime,
}

impl HackRule {
    /// The default: the paper's rule up to 802.11ac. With faster physical layers, ACKs wait for the control response
    /// rate.
    pub fn usual_of(standard: Standard) -> Self {
        match standard {
            Standard::A | Standard::B | Standard::G | Standard::N | Standard::Ac => Self::Every,
            Standard::Ax | Standard::Be => Self::Airtime,
        }
    }

    /// The default: the paper's coding, or the one with fewer bytes for [`HackRule::Airtime`].
    pub fn usual_coding(self) -> hack::Coding {
        match self {
            Self::Every => hack::Coding::PerAck,
            Self::Airtime => hack::Coding::Batch,
        }
    }
}

impl HackPlan {
    /// The configuration of the drivers; `None` for stock drivers.
    pub fn config(&self) -> Option<hack::Config> {
        let variant = match self.variant? {
            HackVariant::MoreData => hack::Variant::MoreData,
            HackVariant::TimestampEcho => hack::Variant::TimestampEcho,
            HackVariant::Opportunistic => hack::Variant::Opportunistic,
            HackVariant::Timer => hack::Variant::Timer(self.timer),
        };
        Some(hack::Config {
            variant,
            rule: match self.rule {
                HackRule::Every => hack::Rule::Every,
                HackRule::Airtime => hack::Rule::Airtime { one_in: self.one_in },
            },
            coding: self.coding,
            turnaround: self.turnaround,
            hold_limit: self.hold_limit,
            overtake_limit: self.overtake_limit,
            appended_limit: self.appended_limit,
        })
    }
}

/// Multi-user PPDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfdmaPlan {
    /// How users acknowledge their parts of a PPDU; `None` disables multi-user PPDUs.
    pub acknowledgment: Option<MuAcknowledgment>,
    /// All other settings, except those of TCP/HACK.
    pub config: OfdmaConfig,
}

impl OfdmaPlan {
    /// The access point's configuration, with room for `hack_room` of compressed ACKs in `hack_carrier`.
    pub fn config(&self, hack_room: HackRoom, hack_carrier: HackCarrier) -> Option<OfdmaConfig> {
        Some(OfdmaConfig { acknowledgment: self.acknowledgment?, hack_room, hack_carrier, ..self.config })
    }
}

impl Default for OfdmaPlan {
    fn default() -> Self {
        Self { acknowledgment: None, config: OfdmaConfig::USUAL }
    }
}

/// Losses of data MPDUs, not counting collisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MpduError {
    /// From the access point.
    pub down: Loss,
    /// To the access point.
    pub up: Loss,
}

/// `[[client]]`: settings of one client that override the general ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientOverride {
    /// Data rate.
    pub mode: Option<Mode>,
    /// Rate of control responses.
    pub ack_mode: Option<Mode>,
    /// MPDU loss.
    pub mpdu_error: Option<MpduError>,
    /// Loss of ACKs and Block Acks.
    pub link_ack_error: Option<Loss>,
    /// Signal between it and the access point.
    pub signal: Option<Signal>,
    /// Which data is acknowledged.
    pub link_acks: Option<BothWays<LinkAcks>>,
    /// Its links; `None` for all.
    pub links: Option<LinkSet>,
    /// What it can do on them at once; `None` for what `[wifi.multi-link]` says.
    pub link_use: Option<LinkUse>,
    /// Whether it uses TCP/HACK when other clients do.
    pub hack: Option<bool>,
    /// Queue at the access point.
    pub ap_queue: Option<QueueConfig>,
    /// Queue at the station.
    pub station_queue: Option<QueueConfig>,
    /// Its position relative to the access point.
    pub position: Option<Position>,
    /// Clients that are mutually hidden from it, numbered from 0.
    pub hidden_from: Vec<u32>,
    /// EDCA parameters that override those of `[wifi]`.
    pub edca: EdcaPlan<Numbers>,
    /// The access category of its traffic.
    pub access_category: Option<AccessCategory>,
    /// When its flows start.
    pub start: Option<Duration>,
    /// When its sources stop offering data.
    pub stop: Option<Duration>,
    /// When it leaves the range of the access point.
    pub leave: Option<Duration>,
    /// When it returns; `None` means never.
    pub back: Option<Duration>,
}

/// Options of ACK policies from `[tcp]`; the scenario or a scheme selects one policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckOptions {
    /// Delayed ACKs.
    pub delayed: DelayedAcks,
    /// Linux's receiver.
    pub linux: LinuxAcks,
    /// QUIC's receiver after an ACK_FREQUENCY frame.
    pub ack_frequency: AckPolicy,
}

/// `[compare]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparePlan {
    /// Client counts.
    pub clients: Vec<u32>,
}
