//! A run before it starts: hosts, links, flows and what feeds them, with every number decided.

pub use crate::apps::setup::{
    Application, ApplicationSetup, Law, MAX_CONNECTIONS, MAX_OBJECTS, Objects, OnOff, RequestResponse, Span,
    Streaming,
};
pub use crate::flow::End;

use tacit_link::queue::{AckFilter, AckHoldConfig};
use tacit_link::wifi::{AccessCategory, BssConfig, LinkAcks, RateControl, ReverseDirection, StationId};
use tacit_link::wired::PipeConfig;
use tacit_proto::fastack;
use tacit_proto::hack;
use tacit_proto::packet::IpVersion;
use tacit_proto::tcp;
use tacit_proto::udp::ReportAfter;
use tacit_proto::units::{BitRate, Bytes, Duration, FlowId, HostId, Instant};

use crate::RunError;

/// Everything a run depends on. Equal setups give equal runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Names of the hosts; [`HostId`] is the position. Random streams derive from the names, so a
    /// host added at the end moves nobody's draws.
    pub hosts: Vec<String>,
    /// Wired links.
    pub wired: Vec<WiredSetup>,
    /// Basic service sets.
    pub bss: Vec<BssSetup>,
    /// Flows; `FlowId` is the position.
    pub flows: Vec<FlowSetup>,
    /// Programs that feed some of the flows; the others feed themselves, as their [`Traffic`] says.
    pub applications: Vec<ApplicationSetup>,
    /// Length of the run.
    pub duration: Duration,
    /// Results count what happens from here to the end.
    pub measure_from: Instant,
    /// Seed of every random stream.
    pub seed: u64,
    /// Encode and decode every packet on its way; the digest must not change.
    pub wire: bool,
    /// Sample the series this often; `None` for no series.
    pub sample_interval: Option<Duration>,
}

impl Setup {
    /// What a run depends on must not contradict itself.
    ///
    /// # Errors
    /// [`RunError::Setup`], where it does.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        let refuse = |what: String| Err(RunError::Setup(what));
        if self.measure_from.saturating_since(Instant::ZERO) >= self.duration {
            return refuse("measuring starts at or after the end of the run".into());
        }
        if self.sample_interval.is_some_and(|interval| interval.as_nanos() == 0) {
            return refuse("a sample interval of zero".into());
        }
        self.bss.iter().enumerate().try_for_each(|(index, set)| set.check(index))?;
        for (index, flow) in self.flows.iter().enumerate() {
            let hosts = self.hosts.len() as u32;
            if flow.source.0 >= hosts || flow.sink.0 >= hosts {
                return refuse(format!("flow {index} joins hosts that do not exist: there are {hosts}"));
            }
            if flow.source == flow.sink {
                return refuse(format!("flow {index} goes from {} to itself", flow.source));
            }
        }
        let mut taken = vec![false; self.flows.len()];
        self.applications.iter().try_for_each(|application| application.check(&self.flows, &mut taken))
    }

    /// Keeps the flows for which `keep` holds, numbered anew, and the applications that keep all of theirs.
    pub fn retain_flows(&mut self, keep: impl Fn(&FlowSetup) -> bool) {
        let mut kept = 0;
        let numbers: Vec<Option<FlowId>> = self
            .flows
            .iter()
            .map(|flow| {
                keep(flow).then(|| {
                    kept += 1;
                    FlowId(kept - 1)
                })
            })
            .collect();
        self.flows.retain(keep);
        self.applications.retain_mut(|application| {
            let renumbered: Option<Vec<FlowId>> = application
                .flows
                .iter()
                .map(|flow| numbers.get(flow.0 as usize).copied().flatten())
                .collect();
            match renumbered {
                Some(flows) => {
                    application.flows = flows;
                    true
                }
                None => false,
            }
        });
    }
}

impl BssSetup {
    /// The same for the one numbered `index`.
    fn check(&self, index: usize) -> Result<(), RunError> {
        let refuse = |what: String| Err(RunError::Setup(what));
        if !self.hack.is_empty() && self.hack.len() != self.clients.len() + 1 {
            return refuse(format!(
                "basic service set {index} needs a TCP/HACK setting for each station, or none"
            ));
        }
        let categories = &self.config.categories;
        let has_edca = self.config.standard.phy().aggregation.is_some();
        if !has_edca && self.config.reverse_direction != ReverseDirection::Off {
            return refuse(format!("{} has no reverse direction grants", self.config.standard.name()));
        }
        let config = &self.config;
        let needs_link_acks = !self.hack.is_empty()
            || self.fastack.is_some()
            || config.reverse_direction != ReverseDirection::Off
            || config.rate_control == RateControl::Minstrel;
        if config.link_acks == LinkAcks::None && (needs_link_acks || !has_edca) {
            return refuse(format!(
                "basic service set {index} does without the link-layer ACKs that TCP/HACK, FastACK, reverse \
                 direction grants, Minstrel and standards without aggregation need"
            ));
        }
        if categories.is_empty() || !has_edca && *categories != [AccessCategory::BestEffort] {
            return refuse(format!(
                "basic service set {index} needs an access category, and best effort alone without EDCA"
            ));
        }
        let is_client = |id: &StationId| *id != StationId::AP && id.index() <= self.clients.len();
        if let Some((a, b)) =
            self.config.hidden.iter().find(|(a, b)| !is_client(a) || !is_client(b) || a == b)
        {
            return refuse(format!(
                "basic service set {index} hides {} from {}, which are not two of its clients",
                a.0, b.0
            ));
        }
        let filters = [self.config.ap_ack_filter, self.config.station_ack_filter];
        let filtered = self.ack_hold.is_some() || filters != [AckFilter::Off; 2];
        if !self.hack.is_empty() && filtered {
            return refuse(format!("basic service set {index} filters the ACKs that TCP/HACK is to carry"));
        }
        if self.fastack.is_some() && self.hack.iter().any(Option::is_some) {
            return refuse(format!(
                "basic service set {index} lets ACKs ride that its access point has already given: FastACK and \
                 TCP/HACK exclude each other"
            ));
        }
        let (clients, settings) = (self.clients.len(), self.config.stations.len());
        if clients != settings || clients == 0 {
            return refuse(format!(
                "basic service set {index} has {clients} clients and settings for {settings}"
            ));
        }
        Ok(())
    }
}

/// A wired link between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiredSetup {
    /// One end.
    pub a: HostId,
    /// The other.
    pub b: HostId,
    /// From `a` to `b`.
    pub forward: PipeConfig,
    /// From `b` to `a`.
    pub backward: PipeConfig,
}

/// A basic service set and the hosts in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BssSetup {
    /// The access point.
    pub access_point: HostId,
    /// The clients, one per entry of `config.stations`.
    pub clients: Vec<HostId>,
    /// The radio.
    pub config: BssConfig,
    /// How the drivers of the clients hold pure ACKs back; `None` for not at all.
    pub ack_hold: Option<AckHoldConfig>,
    /// TCP/HACK at each station, the access point first; `None` for stock ones, empty for none at all.
    pub hack: Vec<Option<hack::Config>>,
    /// The access point acknowledges TCP data in its clients' stead; `None` leaves that to them.
    pub fastack: Option<fastack::Config>,
}

/// One flow: data from `source` to `sink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSetup {
    /// Where data is sent from.
    pub source: HostId,
    /// Where it is received.
    pub sink: HostId,
    /// When the source starts.
    pub start: Instant,
    /// When the source stops offering data; `None` is the end of the run.
    pub stop: Option<Instant>,
    /// What it sends.
    pub traffic: Traffic,
    /// The access category of its packets on Wi-Fi, both ways; that of all packets where the channel has one
    /// only.
    pub access_category: AccessCategory,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// A TCP connection opened by the source.
    Tcp {
        /// Configuration of both ends.
        config: tcp::Config,
        /// Octets to send before closing; `None` is bulk: as much as the connection takes.
        size: Option<Bytes>,
    },
    /// UDP datagrams.
    Udp {
        /// IP version.
        ip: IpVersion,
        /// Octets after the UDP header.
        payload: Bytes,
        /// Payload bits per second, evenly spaced; `None` keeps the first queue full.
        rate: Option<BitRate>,
        /// When the sink tells the source what arrived; `None` tells nothing.
        report_after: Option<ReportAfter>,
    },
}
