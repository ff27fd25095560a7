//! Complete description of a run: hosts, links, flows and the programs that feed them.

pub use crate::apps::setup::{
    Application, ApplicationSetup, Download, Law, MAX_CONNECTIONS, MAX_OBJECTS, Objects, OnOff, Repairers,
    RequestResponse, Span, Streaming,
};
pub use crate::flow::End;

use crate::transport;
use tacit_between::ack_hold::HoldLaw;
use tacit_between::{fastack, fwp, hack};
use tacit_link::queue::AckFilter;
use tacit_link::wifi::{
    AccessCategory, BssConfig, DirectLink, LinkAcks, RateControl, ReverseDirection, StationConfig, StationId,
    StreamQueues,
};
use tacit_link::wired::PipeConfig;
use tacit_packet::IpVersion;
use tacit_packet::udp::ReportAfter;
use tacit_packet::units::{BitRate, Bytes, Duration, FlowId, HostId, Instant};

use crate::RunError;

/// Everything that determines a run. Equal setups give equal runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Names of the hosts; [`HostId`] is the index. Random streams depend on the names, so a host added at the end does
    /// not change other hosts' random numbers.
    pub hosts: Vec<String>,
    /// Wired links.
    pub wired: Vec<WiredSetup>,
    /// Basic service sets.
    pub bss: Vec<BssSetup>,
    /// Flows; `FlowId` is the index.
    pub flows: Vec<FlowSetup>,
    /// Programs that feed some of the flows; other flows feed themselves according to their [`Traffic`].
    pub applications: Vec<ApplicationSetup>,
    /// Length of the run.
    pub duration: Duration,
    /// Results count events from this time to the end.
    pub measure_from: Instant,
    /// Seed of every random stream.
    pub seed: u64,
    /// Encode and decode every packet on its way; the digest must not change.
    pub wire: bool,
    /// Sampling interval of the series; `None` for no series.
    pub sample_interval: Option<Duration>,
    /// The first this many [users](FlowSetup::user) are a group of their own in results; `None` for no groups.
    pub adopters: Option<u32>,
}

impl Setup {
    /// Whether a queue decides by the content of TCP segments.
    pub(crate) fn inspects_segments(&self) -> bool {
        let pipes = self.wired.iter().flat_map(|link| [&link.forward, &link.backward]);
        let channels = self.bss.iter().map(|set| &set.config);
        let stations = channels.flat_map(|config| [config.ap_ack_filter, config.station_ack_filter]);
        pipes.map(|pipe| pipe.ack_filter).chain(stations).any(|filter| filter != AckFilter::Off)
    }

    /// Refuses an inconsistent setup.
    ///
    /// # Errors
    /// [`RunError::Setup`] with the reason.
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

    /// Keeps the flows for which `keep` returns true, with new numbers, and the applications that keep all of their
    /// flows.
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
    /// Hosts, the access point's first.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        std::iter::once(self.access_point.host).chain(self.clients.iter().map(|client| client.host))
    }

    /// The host of `station`, which must belong to it.
    pub(crate) fn host(&self, station: StationId) -> HostId {
        match station.index().checked_sub(1) {
            None => self.access_point.host,
            Some(client) => self.clients[client].host,
        }
    }

    /// Sets the drivers of all stations.
    pub fn set_drivers(&mut self, access_point: ApDriver, clients: ClientDriver) {
        self.access_point.driver = access_point;
        self.clients.iter_mut().for_each(|client| client.driver = clients);
    }

    /// True if no station has a driver between MAC and host.
    pub fn is_stock(&self) -> bool {
        self.access_point.driver == ApDriver::Stock
            && self.clients.iter().all(|client| client.driver == ClientDriver::Stock)
    }

    /// FWP's shim at the client `host`; `None` if there is none.
    pub fn fwp_shim(&self, host: HostId) -> Option<fwp::Config> {
        match self.clients.iter().find(|client| client.host == host)?.driver {
            ClientDriver::Fwp(config) => Some(config),
            _ => None,
        }
    }

    /// TCP/HACK's configuration at `station`; `None` if it does not have TCP/HACK.
    pub fn hack_config(&self, station: StationId) -> Option<hack::Config> {
        if station == StationId::AP {
            return if let ApDriver::Hack(config) = self.access_point.driver { Some(config) } else { None };
        }
        match self.clients.get(station.index() - 1)?.driver {
            ClientDriver::Hack(config) => Some(config),
            ClientDriver::Stock | ClientDriver::AckHold(_) | ClientDriver::Fwp(_) => None,
        }
    }

    /// True if a station has TCP/HACK.
    fn has_hack(&self) -> bool {
        (0..=self.clients.len() as u16).any(|station| self.hack_config(StationId(station)).is_some())
    }

    /// Refuses the set with number `index` if it is inconsistent.
    fn check(&self, index: usize) -> Result<(), RunError> {
        let refuse = |what: String| Err(RunError::Setup(what));
        let categories = &self.config.categories;
        let has_edca = self.config.standard.phy().aggregation.is_some();
        if !has_edca && self.config.reverse_direction != ReverseDirection::Off {
            return refuse(format!("{} has no reverse direction grants", self.config.standard.name()));
        }
        let config = &self.config;
        let all_need_them = matches!(self.access_point.driver, ApDriver::FastAck(_))
            || config.rate_control == RateControl::Minstrel
            || !has_edca;
        let is_without = |(station, client): (&StationConfig, &StationSetup<ClientDriver>)| {
            let needs_them = all_need_them || matches!(client.driver, ClientDriver::Hack(_));
            needs_them && !station.link_acks.are(LinkAcks::Normal)
        };
        if let Some(client) = config.stations.iter().zip(&self.clients).position(is_without) {
            let client = client + 1;
            return refuse(format!(
                "client {client} of basic service set {index} does without the link-layer ACKs that TCP/HACK, FastACK, \
                 Minstrel and standards without aggregation need"
            ));
        }
        let is_one_queue = config.stream_queues == StreamQueues::Joint;
        let is_deferred = |station: &StationConfig| {
            [station.link_acks.down, station.link_acks.up].contains(&LinkAcks::Deferred)
        };
        let has_deferred = config.stations.iter().any(is_deferred);
        if has_deferred && config.repair.period == Duration::ZERO {
            return refuse(format!("basic service set {index} asks for repair without end"));
        }
        if !is_one_queue && (self.has_hack() || all_need_them || has_deferred) {
            return refuse(format!(
                "basic service set {index} has a queue for each spatial stream, which TCP/HACK, FastACK, Minstrel, repair and \
                 standards without aggregation do not know"
            ));
        }
        let largest = config.standard.phy().aggregation.map_or(64, |limits| limits.mpdus);
        if !(2..=largest).contains(&config.block_ack_window) {
            return refuse(format!(
                "basic service set {index} has a Block Ack window of {}, not of 2 to {largest}",
                config.block_ack_window
            ));
        }
        let is_foreign = |station: &StationConfig| {
            let standard = config.standard_at(&station.mode);
            !config.standard.serves(standard) || !standard.has_band(config.variant.band)
        };
        if let Some(client) = config.stations.iter().position(is_foreign) {
            return refuse(format!(
                "client {} of basic service set {index} is of {}, which an access point of {} at {} does not serve",
                client + 1,
                config.standard_at(&config.stations[client].mode).name(),
                config.standard.name(),
                config.variant.band.name()
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
        self.check_direct_links(index, is_client)?;
        let filters = [self.config.ap_ack_filter, self.config.station_ack_filter];
        if filters.contains(&AckFilter::Thin) {
            return refuse(format!(
                "basic service set {index} thins ACKs in a queue, not in a client's driver"
            ));
        }
        if self.has_hack() && filters != [AckFilter::Off; 2] {
            return refuse(format!("basic service set {index} filters the ACKs that TCP/HACK is to carry"));
        }
        let (clients, settings) = (self.clients.len(), self.config.stations.len());
        if clients != settings || clients == 0 {
            return refuse(format!(
                "basic service set {index} has {clients} clients and settings for {settings}"
            ));
        }
        Ok(())
    }

    /// Refuses direct links of the set with number `index` that exist in one direction only, exist twice, or lead to no
    /// client or to a client out of reach.
    fn check_direct_links(
        &self,
        index: usize,
        is_client: impl Fn(&StationId) -> bool,
    ) -> Result<(), RunError> {
        let links = &self.config.direct_links;
        let count = |from, to| links.iter().filter(|link| (link.from, link.to) == (from, to)).count();
        for DirectLink { from, to, .. } in links {
            let deaf = self.config.hidden.iter().any(|(a, b)| [(a, b), (b, a)].contains(&(from, to)));
            let what = match () {
                () if !is_client(from) || !is_client(to) || from == to => "are not two of its clients",
                () if deaf => "do not hear each other",
                () if count(*from, *to) != 1 || count(*to, *from) != 1 => "have not one each way",
                () => continue,
            };
            return Err(RunError::Setup(format!(
                "basic service set {index} has a direct link from {} to {}, which {what}",
                from.0, to.0
            )));
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
    pub access_point: StationSetup<ApDriver>,
    /// The clients, one per entry of `config.stations`.
    pub clients: Vec<StationSetup<ClientDriver>>,
    /// The radio channel.
    pub config: BssConfig,
}

/// A station: a host, and the driver between it and the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationSetup<D> {
    /// Its host.
    pub host: HostId,
    /// The driver between its MAC and its host.
    pub driver: D,
}

/// A stock station.
impl<D: Default> From<HostId> for StationSetup<D> {
    fn from(host: HostId) -> Self {
        Self { host, driver: D::default() }
    }
}

/// Driver between an access point's MAC and its host. Only one: ACKs cannot be appended to link-layer ACKs and forged
/// earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApDriver {
    /// No driver.
    #[default]
    Stock,
    /// TCP/HACK, with the clients that have it, too.
    Hack(hack::Config),
    /// FastACK: acknowledges TCP data on behalf of its clients.
    FastAck(fastack::Config),
}

/// Driver between a client's MAC and its host. Only one: ACKs are either appended or held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientDriver {
    /// No driver.
    #[default]
    Stock,
    /// TCP/HACK, if the access point has it, too.
    Hack(hack::Config),
    /// Holds pure ACKs back until later ones replace them.
    AckHold(HoldLaw),
    /// FWP's shim: placeholders replace segments that did not arrive, for flows that a program of the client reads and
    /// repairs.
    Fwp(fwp::Config),
}

/// One flow: data from `source` to `sink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSetup {
    /// The sender of data.
    pub source: HostId,
    /// The receiver of data.
    pub sink: HostId,
    /// When the source starts.
    pub start: Instant,
    /// When the source stops offering data; `None` is the end of the run.
    pub stop: Option<Instant>,
    /// Its traffic.
    pub traffic: Traffic,
    /// The access category of its packets on Wi-Fi, in both directions. Ignored if the channel has only one.
    pub access_category: AccessCategory,
    /// Number of the user whose flow it is, from 0. Only results depend on it.
    pub user: u32,
}

/// Traffic of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// A connection opened by the source.
    Connection {
        /// Its transport, and the configuration of both ends.
        config: transport::Config,
        /// Bytes to send before closing; `None` is bulk: as much as the connection accepts.
        size: Option<Bytes>,
    },
    /// UDP datagrams.
    Udp {
        /// IP version.
        ip: IpVersion,
        /// Bytes after the UDP header.
        payload: Bytes,
        /// Payload bits per second, evenly spaced; `None` keeps the first queue full.
        rate: Option<BitRate>,
        /// When the sink reports arrivals to the source; `None` for no reports.
        report_after: Option<ReportAfter>,
        /// Most bytes of packets that a source with a rate leaves in its wireless station's queue: those that are due wait
        /// until some have left. `None` queues all at once.
        send_buffer: Option<Bytes>,
    },
}
