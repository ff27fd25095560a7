//! Scenarios: TOML files, and the [`Setup`](tacit_sim::Setup) that they become.
//!
//! The topology is a chain: server -- wire -- access point -- Wi-Fi -- clients, or server -- wire -- client
//! where there is no `[wifi]`, or the list of `[[hop]]`. A scenario may name a `base` it differs from; tables
//! merge.

pub mod bounded;
mod build;
mod counts;
mod direct;
pub mod edca;
mod effective;
mod error;
pub mod explain;
#[cfg(test)]
mod flow_tests;
mod fwp;
pub mod input;
mod keys;
pub mod library;
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

use std::path::Path;

use tacit_link::queue::{AckFilter, AckHoldConfig};
use tacit_link::wifi::phy::{Mode, ModeChoice, Standard};
use tacit_link::wifi::{
    AccessCategory, BothWays, BssConfig, ExternalMuScheduler, HackCarrier, HackRoom, LinkAcks,
    MuAcknowledgment, MuEdca, OfdmaConfig, Position, Propagation, ReverseDirection, Triggers,
};
use tacit_link::wired::PipeConfig;
use tacit_link::{Loss, QueueConfig};
use tacit_proto::congestion::{cubic, rre};
use tacit_proto::fastack;
use tacit_proto::hack;
use tacit_proto::tcp::{self, DelayedAcks};
use tacit_proto::units::Duration;

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
use crate::input::{Node, Tree, Value, duration, nearest};
use crate::keys::run;

pub use tacit_input::{MAX_CLIENTS, table};

/// Most seeds of a sweep.
pub const MAX_SEEDS: u32 = 10_000;
/// Deepest chain of bases.
const MAX_BASES: usize = 16;
/// The name that messages give a scenario in TOML.
const TEXT: &str = "text";
/// Largest scenario file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A scenario, every number decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name: as bundled, or the file's stem.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// The whole of it as TOML, bases and `--set` merged in: provenance records this.
    pub text: String,
    /// How it was named: name or path, and assignments, as a shell takes them.
    pub invocation: String,
    /// When and how often.
    pub run: RunPlan,
    /// The wireless hop, if there is one.
    pub wifi: Option<Wifi>,
    /// TCP/HACK on that hop.
    pub hack: HackPlan,
    /// FWP on that hop.
    pub fwp: FwpPlan,
    /// From the server to the clients.
    pub hops: Vec<Hop>,
    /// How many clients by default.
    pub clients: u32,
    /// Client `i` starts `i` times this after the first.
    pub stagger: Duration,
    /// Differences of single clients, in their order.
    pub overrides: Vec<ClientOverride>,
    /// Its traffic.
    pub traffic: TrafficPlan,
    /// Flows of their own kinds, in place of those; none for as `traffic` says.
    pub flows: Vec<FlowPlan>,
    /// Both ends of each TCP connection.
    pub tcp: tcp::Config,
    /// How receivers acknowledge that count segments, be it under a scheme.
    pub delayed_acks: DelayedAcks,
    /// Options of CUBIC, also where another controller is chosen: schemes may have it.
    pub cubic: cubic::Config,
    /// Options of TCP-RRE, also where another controller is chosen: schemes may have it.
    pub rre: rre::Config,
    /// Both ends of each TACK connection.
    pub tack: TackPlan,
    /// Defaults of `compare`.
    pub compare: ComparePlan,
}

/// `[run]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// Length of a run.
    pub duration: Duration,
    /// Results count from here.
    pub measure_from: Duration,
    /// Each flow starts later by a random time up to this one.
    pub start_spread: Duration,
    /// Runs with different draws in a comparison or sweep.
    pub seeds: u32,
    /// Distance of the samples in the series; `None` for no series.
    pub sample_interval: Option<Duration>,
}

/// How stations choose the rate of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateChoice {
    /// That of [`Wifi::mode`], always.
    #[default]
    Fixed,
    /// Of the modes with the width, guard interval and format of [`Wifi::mode`] and at most its streams the one that
    /// carries most at the signal of each client: no rate control can know it, and each is measured by it.
    Ideal,
    /// Between these modes, by the share of MPDUs that arrive.
    Minstrel,
}

/// `[wifi]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Wifi {
    /// The simulator's configuration, but for stations, categories and ACK filters, which follow from the rest.
    pub bss: BssConfig,
    /// Data rate.
    pub mode: Mode,
    /// Where each client has the mode that carries most at its signal: which modes there are.
    pub ideal: Option<ModeChoice>,
    /// Rate control of data, where its rate is not set.
    pub rate_control: RateChoice,
    /// Rate of control responses; `None` follows the standard's rule.
    pub ack_mode: Option<Mode>,
    /// MPDU loss.
    pub mpdu_error: MpduError,
    /// Loss of ACKs and Block Acks.
    pub link_ack_error: Loss,
    /// Which data is acknowledged, unless a client says otherwise.
    pub link_acks: BothWays<LinkAcks>,
    /// How well clients and access point hear each other; `None` for perfectly.
    pub signal: Option<Signal>,
    /// Direct links between clients.
    pub direct: DirectPlan,
    /// Propagation: SNR over distance.
    pub propagation: Propagation,
    /// Clients with positions hear each other from this power on, in dBm.
    pub carrier_sense_dbm: f64,
    /// Which access categories there are.
    pub categories: Categories,
    /// EDCA parameters of access point and clients instead of the standard's.
    pub edca: EdcaPlan<ByRole<Numbers>>,
    /// Reverse direction grants in TXOPs, where there are any.
    pub grant: ReverseDirection,
    /// Filter of pure TCP ACKs in front of it.
    pub ack_filter: WifiAckFilter,
    /// Acknowledgments of the access point for TCP data that clients receive.
    pub ap_acks: ApAcks,
    /// PPDUs of several users.
    pub ofdma: OfdmaPlan,
    /// Queue per station at the access point.
    pub ap_queue: QueueConfig,
    /// Queue at each station.
    pub station_queue: QueueConfig,
}

impl Wifi {
    /// One of `bss` and `mode` that is usual in all else.
    pub fn new(bss: BssConfig, mode: Mode) -> Self {
        /// Least power at which a receiver must notice the preamble of a 20 MHz PPDU (802.11-2020 clause
        /// 17.3.10.6).
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
            ap_queue: read::DEFAULT_QUEUE.into(),
            station_queue: read::DEFAULT_QUEUE.into(),
            bss,
        }
    }
}

/// One link of the chain from the server to the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop {
    /// A wired or cellular one.
    Pipe(Box<Link>),
    /// The wireless one that `[wifi]` describes: the access point stands on the server's side.
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
    /// One that is the same both ways.
    pub fn both_ways(pipe: &PipeConfig) -> Self {
        Self { down: pipe.clone(), up: pipe.clone() }
    }
}

/// Which access categories there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Categories {
    /// Those that flows use.
    #[default]
    Used,
    /// All four.
    All,
}

/// ACKs that the access point gives in its clients' stead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApAcks {
    /// None.
    #[default]
    None,
    /// As FastACK does: once the link-layer acknowledgment has come.
    FastAck,
}

impl ApAcks {
    /// For the access point.
    pub fn agent(self) -> Option<fastack::Config> {
        match self {
            Self::None => None,
            Self::FastAck => Some(fastack::Config::USUAL),
        }
    }
}

/// Filter of pure TCP ACKs that wait for the Wi-Fi.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WifiAckFilter {
    /// Nothing.
    #[default]
    Off,
    /// CAKE's filter in every queue.
    Cake,
    /// CAKE's aggressive filter in every queue: down to one ACK per flow.
    CakeAggressive,
    /// The clients' drivers put an ACK in the place of the one before.
    DriverReplace,
    /// The clients' drivers hold ACKs back.
    DriverHold,
}

impl WifiAckFilter {
    /// In the queues of the access point, and of the clients.
    pub fn in_queues(self) -> [AckFilter; 2] {
        match self {
            Self::Off | Self::DriverHold => [AckFilter::Off; 2],
            Self::Cake => [AckFilter::Cake; 2],
            Self::CakeAggressive => [AckFilter::CakeAggressive; 2],
            Self::DriverReplace => [AckFilter::Off, AckFilter::Replace],
        }
    }

    /// In front of the clients' queues.
    pub fn hold(self) -> Option<AckHoldConfig> {
        (self == Self::DriverHold).then_some(AckHoldConfig::USUAL)
    }
}

/// `[hack]`: how TCP ACKs wait for link-layer ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HackPlan {
    /// Which stations do; `None` leaves all of them stock.
    pub variant: Option<HackVariant>,
    /// How long the timer variant waits.
    pub timer: Duration,
    /// Which of the waiting ACKs ride.
    pub rule: HackRule,
    /// Of ACKs that say the same, one in how many rides by [`HackRule::Airtime`].
    pub one_in: u32,
    /// How the ACKs of a frame are coded.
    pub coding: hack::Coding,
    /// From the reception of data to compressed ACKs in the NIC.
    pub turnaround: Duration,
    /// Longest wait, under any variant.
    pub hold_limit: Duration,
    /// Most bytes appended to one link-layer ACK.
    pub appended_limit: Option<u32>,
    /// Room for compressed ACKs in trigger-based Block Acks.
    pub mu_room: HackRoom,
    /// Where these are.
    pub mu_carrier: HackCarrier,
}

/// When an ACK waits (HACK paper section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackVariant {
    /// While the access point says that more data follows.
    MoreData,
    /// Then, and while data is about to come that an ACK provoked, told by echoes of TCP's timestamps (section 5).
    TimestampEcho,
    /// It is queued as a packet too; whichever goes first goes.
    Opportunistic,
    /// For a fixed time.
    Timer,
}

/// Which of the waiting ACKs ride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HackRule {
    /// Every one, as in the paper.
    Every,
    /// Those by which airtime is saved.
    Airtime,
}

impl HackRule {
    /// By default the paper's rule up to 802.11ac. On faster physical layers ACKs wait for the control response rate.
    pub fn usual_of(standard: Standard) -> Self {
        match standard {
            Standard::A | Standard::B | Standard::G | Standard::N | Standard::Ac => Self::Every,
            Standard::Ax | Standard::Be => Self::Airtime,
        }
    }

    /// By default the paper's coding, or the one of fewer bytes.
    pub fn usual_coding(self) -> hack::Coding {
        match self {
            Self::Every => hack::Coding::PerAck,
            Self::Airtime => hack::Coding::Batch,
        }
    }
}

impl HackPlan {
    /// The drivers' configuration; `None` for stock ones.
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
            appended_limit: self.appended_limit,
        })
    }
}

/// PPDUs of several users, where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfdmaPlan {
    /// How users acknowledge their parts of one; `None` for none.
    pub acknowledgment: Option<MuAcknowledgment>,
    /// Most users of one.
    pub max_users: u32,
    /// Highest MCS of Block Acks that answer triggers.
    pub block_ack_mcs: u32,
    /// MinTrigProcTime: the time that triggers leave their users.
    pub trigger_padding: Duration,
    /// When the access point triggers clients to send their packets.
    pub triggers: Triggers,
    /// Whether it asks how much that is before.
    pub polls: bool,
    /// Units of each trigger that any client may take.
    pub random_access_units: u32,
    /// EDCA parameters of clients after they answered a trigger.
    pub mu_edca: MuEdca,
    /// Decides instead of `triggers`, and of taking turns; a program brings it.
    pub scheduler: Option<ExternalMuScheduler>,
}

impl OfdmaPlan {
    /// The access point's configuration, with `hack_room` for compressed ACKs in `hack_carrier`.
    pub fn config(&self, hack_room: HackRoom, hack_carrier: HackCarrier) -> Option<OfdmaConfig> {
        Some(OfdmaConfig {
            max_users: self.max_users as u16,
            acknowledgment: self.acknowledgment?,
            block_ack_mcs: self.block_ack_mcs as u8,
            trigger_padding: self.trigger_padding,
            hack_room,
            hack_carrier,
            triggers: self.triggers,
            polls: self.polls,
            random_access_units: self.random_access_units as u16,
            mu_edca: self.mu_edca,
            scheduler: self.scheduler,
        })
    }
}

impl Default for OfdmaPlan {
    fn default() -> Self {
        let usual = OfdmaConfig::USUAL;
        let OfdmaConfig { max_users, block_ack_mcs, trigger_padding, .. } = usual;
        Self {
            acknowledgment: None,
            max_users: max_users.into(),
            block_ack_mcs: block_ack_mcs.into(),
            trigger_padding,
            triggers: usual.triggers,
            polls: usual.polls,
            random_access_units: usual.random_access_units.into(),
            mu_edca: usual.mu_edca,
            scheduler: usual.scheduler,
        }
    }
}

/// Which data MPDUs are lost, apart from collisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MpduError {
    /// From the access point.
    pub down: Loss,
    /// To the access point.
    pub up: Loss,
}

/// `[[client]]`: the differences of one client.
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
    /// How well it and the access point hear each other.
    pub signal: Option<Signal>,
    /// Which data is acknowledged.
    pub link_acks: Option<BothWays<LinkAcks>>,
    /// Whether it speaks TCP/HACK where others do.
    pub hack: Option<bool>,
    /// Queue at the access point.
    pub ap_queue: Option<QueueConfig>,
    /// Queue at the station.
    pub station_queue: Option<QueueConfig>,
    /// Where it stands, the access point being at the origin.
    pub position: Option<Position>,
    /// Clients that it does not hear and that do not hear it, numbered from 0.
    pub hidden_from: Vec<u32>,
    /// Its EDCA parameters instead of those of `[wifi]`.
    pub edca: EdcaPlan<Numbers>,
    /// The access category of its traffic.
    pub access_category: Option<AccessCategory>,
    /// When its flows start.
    pub start: Option<Duration>,
    /// When its sources stop offering data.
    pub stop: Option<Duration>,
    /// When it goes out of reach.
    pub leave: Option<Duration>,
    /// When it comes back; `None` for never.
    pub back: Option<Duration>,
}

/// `[compare]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparePlan {
    /// Client counts.
    pub clients: Vec<u32>,
}

impl Scenario {
    /// Loads a bundled scenario by name or any scenario by path, with `--set` assignments on top. Words with a line
    /// break are neither: they are the TOML itself.
    ///
    /// # Errors
    /// Where there is none, it cannot be read, or says something that is not allowed.
    pub fn load(name_or_path: &str, assignments: &[String]) -> Result<Self, ScenarioError> {
        let mut loaded = load_assigned(name_or_path, assignments)?;
        traces::pin(&mut loaded.tree)?;
        let scenario = read::scenario(loaded.name, &loaded.source, &loaded.tree)?;
        Ok(Self { invocation: invocation(name_or_path, assignments), ..scenario })
    }

    /// Parses a scenario from its text; bases are bundled names.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(source: &str, text: &str, assignments: &[String]) -> Result<Self, ScenarioError> {
        let mut tree = with_base(source, None, Tree::parse(source, text)?, 0)?;
        assign(&mut tree, assignments)?;
        traces::pin(&mut tree)?;
        let scenario = read::scenario(stem(source), source, &tree)?;
        Ok(Self { invocation: invocation(source, assignments), ..scenario })
    }

    /// Parses the scenario of a stored result, which may come from anybody: it says all itself. Of other files it opens
    /// traces alone, and looks at none that does not have the hash that it says.
    ///
    /// # Errors
    /// As [`Scenario::load`]; and where it has a base, or names a trace without its hash.
    pub fn parse_stored(source: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut tree = Tree::parse(source, text)?;
        if let Some(Node { origin, .. }) = tree.entries.get("base") {
            let what = "the scenario of a result has a base";
            return Err(InputError::new(origin, what).allowed("one that says all itself").into());
        }
        traces::require_hashes(&mut tree)?;
        let scenario = read::scenario(stem(source), source, &tree)?;
        Ok(Self { invocation: invocation(source, &[]), ..scenario })
    }

    /// The command that makes one run of it.
    pub fn run_command(&self, scheme: Option<&str>, clients: u32, seed: u64) -> String {
        let scheme = scheme.map_or(String::new(), |name| format!(" --scheme {name}"));
        format!("tacit run {}{scheme} --clients {clients} --seed {seed}", self.invocation)
    }

    /// Loads a scenario as [`Scenario::load`] does, with runs that are short and few, unless `assignments` set their number
    /// and times: 5 s, or as long as it takes to measure 3 s from a second after the latest start on, and 3 seeds.
    /// `clients` are the counts that run; none stands for the scenario's.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn load_quick(
        name_or_path: &str,
        assignments: &[String],
        clients: &[u32],
    ) -> Result<Self, ScenarioError> {
        let others: Vec<String> =
            assignments.iter().filter(|said| !said.trim_start().starts_with("run.")).cloned().collect();
        let mut quick = Self::load(name_or_path, &others)?.quick_assignments(assignments, clients);
        quick.extend(assignments.iter().cloned());
        Self::load(name_or_path, &quick)
    }

    fn quick_assignments(&self, assignments: &[String], clients: &[u32]) -> Vec<String> {
        let most = clients.iter().copied().max().unwrap_or_else(|| self.most_clients());
        let starts =
            self.overrides.iter().map(|client| client.start).chain(self.flows.iter().map(|flow| flow.start));
        let staggered = self.stagger.saturating_mul(u64::from(most.clamp(1, MAX_CLIENTS) - 1));
        let latest = starts.flatten().max().unwrap_or(Duration::ZERO).max(staggered) + self.run.start_spread;
        // A flow that has just started is slow: others have the rest of the capacity.
        let measure_from = self.run.measure_from.min(latest + Duration::from_secs(1));
        let duration =
            (measure_from + Duration::from_secs(3)).max(Duration::from_secs(5)).min(self.run.duration);
        let measure_from = if measure_from < duration { measure_from } else { duration / 2 };
        let quick = [
            ("run.duration", format!("{}ns", duration.as_nanos())),
            ("run.measure-from", format!("{}ns", measure_from.as_nanos())),
            ("run.seeds", self.run.seeds.min(3).to_string()),
        ];
        let said = |key: &str| {
            assignments.iter().any(|said| said.split_once('=').is_some_and(|(known, _)| known.trim() == key))
        };
        quick.into_iter().filter(|(key, _)| !said(key)).map(|(key, value)| format!("{key}={value}")).collect()
    }

    fn most_clients(&self) -> u32 {
        self.compare.clients.iter().copied().max().unwrap_or(1).max(self.clients)
    }
}

/// Name or path and assignments as a shell takes them.
fn invocation(name_or_path: &str, assignments: &[String]) -> String {
    let mut words = quoted(name_or_path);
    for assignment in assignments {
        words.push_str(&format!(" --set {}", quoted(assignment)));
    }
    words
}

struct Loaded {
    name: String,
    source: String,
    tree: Tree,
}

/// A scenario's tree with assignments on top.
fn load_assigned(name_or_path: &str, assignments: &[String]) -> Result<Loaded, ScenarioError> {
    let mut loaded = load_tree(name_or_path, 0)?;
    assign(&mut loaded.tree, assignments)?;
    Ok(loaded)
}

fn assign(tree: &mut Tree, assignments: &[String]) -> Result<(), InputError> {
    let mut assigned = Tree::default();
    // Errors in others are reported below.
    let decides =
        |said: &&String| ["run.", "client"].iter().any(|begin| said.trim_start().starts_with(begin));
    for assignment in assignments.iter().filter(decides) {
        assigned.set(assignment)?;
    }
    forget_smaller_count(tree, &assigned);
    forget_compared_counts(tree, &assigned);
    forget_late_measuring(tree, &assigned);
    assignments.iter().try_for_each(|assignment| tree.set(assignment))
}

fn load_tree(name_or_path: &str, depth: usize) -> Result<Loaded, ScenarioError> {
    if let Some(bundled) = library::find(name_or_path) {
        let tree = with_base(bundled.path, None, Tree::parse(bundled.path, bundled.text)?, depth)?;
        return Ok(Loaded { name: bundled.name.to_owned(), source: bundled.path.to_owned(), tree });
    }
    if is_text(name_or_path) {
        let tree = with_base(TEXT, None, Tree::parse(TEXT, name_or_path)?, depth)?;
        return Ok(Loaded { name: TEXT.to_owned(), source: TEXT.to_owned(), tree });
    }
    let path = Path::new(name_or_path);
    if !path.exists() {
        return Err(no_such_scenario("scenario", name_or_path).into());
    }
    let text = read_limited(path)?;
    let tree = with_base(name_or_path, path.parent(), Tree::parse(name_or_path, &text)?, depth)?;
    Ok(Loaded { name: stem(name_or_path), source: name_or_path.to_owned(), tree })
}

/// Puts the tree on top of its `base`, which is a bundled name or a path next to the file.
fn with_base(
    source: &str,
    directory: Option<&Path>,
    mut tree: Tree,
    depth: usize,
) -> Result<Tree, ScenarioError> {
    let Some(Node { origin, value }) = tree.entries.remove("base") else { return Ok(tree) };
    let Value::Text(base) = value else {
        return Err(InputError::new(origin, format!("base is {}", value.kind()))
            .allowed("the name or path of a scenario, in quotes")
            .into());
    };
    if depth >= MAX_BASES {
        return Err(InputError::new(origin, format!("base {base:?}: more than {MAX_BASES} bases deep"))
            .allowed("bases that do not go in circles")
            .into());
    }
    let beside = directory.map(|directory| directory.join(&base)).filter(|path| path.is_file());
    let found = beside.as_deref().and_then(Path::to_str).unwrap_or(&base);
    if library::find(found).is_none() && !Path::new(found).is_file() {
        return Err(no_such_scenario(&origin.to_string(), &base).into());
    }
    debug_assert_ne!(source, "", "a source has a name");
    let mut merged = load_tree(found, depth + 1)?.tree;
    forget_smaller_count(&mut merged, &tree);
    forget_compared_counts(&mut merged, &tree);
    forget_late_measuring(&mut merged, &tree);
    merged.merge(tree);
    Ok(merged)
}

/// A file whose `[[client]]` tables are of more clients than the base has means them all.
fn forget_smaller_count(base: &mut Tree, tree: &Tree) {
    let Some(Value::List(clients)) = tree.entries.get("client").map(|node| &node.value) else { return };
    let Some(Value::Table(counts)) = base.entries.get_mut("clients").map(|node| &mut node.value) else {
        return;
    };
    let count = |table: &Node| match &table.value {
        Value::Table(client) => match client.entries.get("count").map(|node| &node.value) {
            Some(Value::Integer(count)) => *count,
            _ => 1,
        },
        _ => 1,
    };
    let listed = clients.iter().map(count).fold(0_i64, i64::saturating_add);
    let is_smaller = |node: &Node| matches!(node.value, Value::Integer(count) if count < listed);
    if counts.entries.get("count").is_some_and(is_smaller) {
        counts.entries.remove("count");
    }
}

/// A file that lists `[[client]]` tables, or counts its clients, compares schemes for these, not for the counts that the
/// base is compared at.
fn forget_compared_counts(base: &mut Tree, tree: &Tree) {
    let counts =
        |node: &Node| matches!(&node.value, Value::Table(clients) if clients.entries.contains_key("count"));
    if (tree.entries.contains_key("client") || tree.entries.get("clients").is_some_and(counts))
        && let Some(Value::Table(compared)) = base.entries.get_mut("compare").map(|node| &mut node.value)
    {
        compared.entries.remove("clients");
    }
}

/// A run that is shorter than the base measures from, and does not set that time, measures from its quarter on.
fn forget_late_measuring(base: &mut Tree, tree: &Tree) {
    const NAMES: [&str; 2] = ["duration", run::MEASURE_FROM];
    let time = |run: &Tree, name| run.entries.get(name).and_then(|node| duration(&node.value).ok());
    let Some(Value::Table(said)) = tree.entries.get("run").map(|node| &node.value) else { return };
    let Some(Value::Table(run)) = base.entries.get_mut("run").map(|node| &mut node.value) else { return };
    let [length, measure_from] = NAMES;
    let is_late =
        time(said, length).is_some_and(|end| time(run, measure_from).is_some_and(|from| from >= end));
    if is_late && !said.entries.contains_key(measure_from) {
        run.entries.remove(measure_from);
    }
}

/// True for TOML in the place of a name or a path, which have no line break.
fn is_text(name_or_path: &str) -> bool {
    name_or_path.contains('\n')
}

fn no_such_scenario(place: &str, name: &str) -> InputError {
    let hint =
        nearest(name, library::names()).map_or(String::new(), |near| format!(", did you mean {near:?}?"));
    let names = library::names().collect::<Vec<_>>().join(", ");
    InputError::new(place, format!("no scenario or file {name:?}{hint}"))
        .allowed(format!("{names}, or the path of a TOML file"))
}

fn read_limited(path: &Path) -> Result<String, ScenarioError> {
    let bytes = bounded::read(path, MAX_FILE).map_err(ScenarioError::io(path))?.ok_or_else(|| {
        InputError::new(path.display(), format!("more than {MAX_FILE} bytes are no scenario"))
            .allowed(format!("files up to {MAX_FILE} bytes"))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        InputError::new(format!("{}:{}", path.display(), line + 1), "not TOML: not UTF-8")
            .allowed("text in UTF-8")
            .into()
    })
}

fn stem(source: &str) -> String {
    Path::new(source)
        .file_stem()
        .map_or_else(|| source.to_owned(), |stem| stem.to_string_lossy().into_owned())
}
