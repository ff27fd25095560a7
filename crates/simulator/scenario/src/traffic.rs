//! The traffic of a scenario, and the flows and programs of a run that result from it.

use tacit_congestion::Algorithm;
use tacit_link::random::Stream;
use tacit_link::wifi::AccessCategory;
use tacit_packet::IpVersion;
use tacit_packet::udp::ReportAfter;
use tacit_packet::units::{BitRate, Bytes, Duration, FlowId, HostId, Instant};
use tacit_sim::setup::{
    Application, ApplicationSetup, End, FlowSetup, Law, Objects, OnOff, RequestResponse, Span, Streaming,
    Traffic,
};
use tacit_sim::transport;

use super::{ClientOverride, FwpPlan, Scenario};
use crate::error::InputError;

/// Maximum number of flows in a run, limited by the port numbers.
const MAX_FLOWS: usize = 50_000;

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Server to client.
    Download,
    /// Client to server.
    Upload,
    /// One flow in each direction per client.
    Both,
    /// Client to client, through the access point or over a direct link.
    StationToStation,
}

/// The transport of a scenario as written. Schemes may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP, configured in `[tcp]`.
    Tcp,
    /// TACK, configured in `[tack]`.
    Tack,
    /// UDP.
    Udp,
}

/// `[traffic]`, or one `[[flow]]` combined with it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficPlan {
    /// Direction of the data.
    pub direction: Direction,
    /// The client that receives [station-to-station](Direction::StationToStation) data, numbered from 0. `None` means
    /// the client after the sender; for the last client, that is the first.
    pub peer: Option<u32>,
    /// Its transport.
    pub transport: Transport,
    /// Bytes per flow over a connection; `None` for bulk data without end.
    pub size: Option<Bytes>,
    /// Payload rate per UDP flow; `None` to saturate the link.
    pub udp_rate: Option<BitRate>,
    /// Time after a datagram arrives at which the sink of a UDP flow sends a report; `None` for no reports.
    pub udp_report: Option<ReportAfter>,
    /// Bytes per datagram; `None` for datagrams that fill the MTU.
    pub udp_payload: Option<Bytes>,
    /// Most bytes of packets of a UDP flow with a rate in its wireless station's queue.
    pub udp_send_buffer: Option<Bytes>,
    /// The access category of its packets, if set. Otherwise a `[[flow]]` uses that of its client.
    pub access_category: Option<AccessCategory>,
    /// Congestion control of its connections, if it differs from that of the transport.
    pub congestion: Option<Algorithm>,
    /// The source of the flow.
    pub application: ApplicationKind,
    /// Parameters of applications.
    pub knobs: ApplicationKnobs,
}

impl TrafficPlan {
    /// The client, among `clients`, that receives the data of client `sender` in station-to-station traffic.
    pub(crate) fn receiver(&self, sender: u32, clients: u32) -> u32 {
        self.peer.unwrap_or((sender + 1) % clients)
    }
}

/// Source of the data of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationKind {
    /// As much data as the transport accepts, a file, or datagrams at a fixed rate.
    Bulk,
    /// Page loads.
    RequestResponse,
    /// A source that alternates between sending and silence.
    OnOff,
    /// A video with a play-out buffer.
    Streaming,
}

impl ApplicationKind {
    /// All kinds, with their names in scenarios.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("bulk", Self::Bulk),
        ("request-response", Self::RequestResponse),
        ("on-off", Self::OnOff),
        ("streaming", Self::Streaming),
    ];

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// Parameters of applications. Each kind uses only its own.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationKnobs {
    /// The objects of a page.
    pub objects: ObjectsPlan,
    /// Mean object size, if only the number of objects is given.
    pub object_size: Bytes,
    /// Distribution of sizes.
    pub sizes: Law,
    /// Bytes of a request for an object, or of the response to an uploaded object.
    pub request_size: Bytes,
    /// Number of connections per client.
    pub connections: u32,
    /// Every page uses all connections; otherwise each page has one of its own.
    pub keeps_connections: bool,
    /// Time between pages.
    pub think_time: Duration,
    /// Distribution of times.
    pub times: Law,
    /// Duration of the on period of an on-off source.
    pub on_time: Duration,
    /// Duration of the off period.
    pub off_time: Duration,
    /// Rate of an on-off source in its on period, or of a video.
    pub rate: Option<BitRate>,
    /// Frames per second of a video.
    pub frame_rate: u32,
    /// Playing time that a video buffers before it starts to play.
    pub play_out_buffer: Duration,
}

/// The objects of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectsPlan {
    /// A fixed number.
    Count(u32),
    /// Objects of these sizes.
    Sizes(Vec<Bytes>),
}

impl Default for ApplicationKnobs {
    /// A page with ten objects of 20 kB over six connections, which is what browsers open to one host; a video in high
    /// definition.
    fn default() -> Self {
        Self {
            objects: ObjectsPlan::Count(10),
            object_size: Bytes(20_000),
            sizes: Law::Exponential,
            request_size: Bytes(400),
            connections: 6,
            keeps_connections: true,
            think_time: Duration::from_secs(1),
            times: Law::Exponential,
            on_time: Duration::from_secs(1),
            off_time: Duration::from_secs(1),
            rate: None,
            frame_rate: 30,
            play_out_buffer: Duration::from_secs(1),
        }
    }
}

/// Default rate of a video: approximately 720p at 30 frames per second.
const VIDEO_RATE: BitRate = BitRate::from_mbps(4);

/// `[[flow]]`: a flow with its own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlan {
    /// Its name in results.
    pub name: Option<String>,
    /// The clients that have this flow, numbered from 0; `None` for all.
    pub clients: Option<Vec<u32>>,
    /// When it starts; `None` for the start of its client.
    pub start: Option<Duration>,
    /// When its source stops; `None` for the stop of its client.
    pub stop: Option<Duration>,
    /// Its transport, if it sets one itself. Schemes do not change it then.
    pub own_transport: Option<Transport>,
    /// Its traffic.
    pub traffic: TrafficPlan,
}

impl Scenario {
    /// The traffic whose transport schemes may change, that is, all flows that do not set it themselves.
    pub fn shared_traffic_mut(&mut self) -> impl Iterator<Item = &mut TrafficPlan> {
        let flows = self.flows.iter_mut().filter(|flow| flow.own_transport.is_none());
        std::iter::once(&mut self.traffic).chain(flows.map(|flow| &mut flow.traffic))
    }

    /// The traffic of its flows, or `traffic` if it has no flows.
    pub fn traffic_plans(&self) -> impl Iterator<Item = &TrafficPlan> {
        let of_clients = self.flows.is_empty().then_some(&self.traffic);
        of_clients.into_iter().chain(self.flows.iter().map(|flow| &flow.traffic))
    }

    /// The flows of `clients` clients, and the programs that produce the data of some of them.
    pub(super) fn flows_and_applications(
        &self,
        clients: u32,
        hosts: &[HostId],
        seed: u64,
    ) -> Result<(Vec<FlowSetup>, Vec<ApplicationSetup>), InputError> {
        let places = Places { clients, hosts };
        let mut run = Run { scenario: self, places, seed, flows: Vec::new(), applications: Vec::new() };
        for index in 0..clients {
            run.scenario = self.of_client(index);
            let client = self.client_override(index);
            if run.scenario.flows.is_empty() {
                run.push(index, None, &client)?;
            }
            for flow in &run.scenario.flows {
                if flow.clients.as_ref().is_none_or(|named| named.contains(&index)) {
                    run.push(index, Some(flow), &client)?;
                }
            }
        }
        if run.flows.is_empty() {
            return Err(InputError::new(&self.name, format!("no [[flow]] has one of the {clients} clients"))
                .allowed("a client of the run, from 1"));
        }
        Ok((run.flows, run.applications))
    }
}

/// Hosts of the clients in a run.
#[derive(Clone, Copy)]
struct Places<'a> {
    clients: u32,
    /// One host per client, or one for all clients.
    hosts: &'a [HostId],
}

impl Places<'_> {
    fn host(self, index: u32) -> HostId {
        self.hosts[index as usize % self.hosts.len()]
    }
}

/// A flow from one host to another.
struct Way {
    source: HostId,
    sink: HostId,
    /// The end that requests the data, for applications with requests.
    asks: End,
    /// Part of the names of programs.
    name: String,
}

/// A run's flows under construction.
struct Run<'a> {
    /// The scenario of the client whose flows are added.
    scenario: &'a Scenario,
    places: Places<'a>,
    /// Seed of the random draws.
    seed: u64,
    flows: Vec<FlowSetup>,
    applications: Vec<ApplicationSetup>,
}

impl Run<'_> {
    /// Adds the flows and programs of client `index` for `flow`, or for the common traffic if it is `None`.
    fn push(
        &mut self,
        index: u32,
        flow: Option<&FlowPlan>,
        client: &ClientOverride,
    ) -> Result<(), InputError> {
        let scenario = self.scenario;
        let staggered = scenario.stagger.saturating_mul(u64::from(index));
        let given = flow.and_then(|flow| flow.start).or(client.start);
        let start = given.unwrap_or(staggered);
        let stop = flow.and_then(|flow| flow.stop).or(client.stop);
        scenario.check_start(index, start + scenario.run.start_spread, stop)?;
        if given.is_none() {
            scenario.check_stagger(index, staggered)?;
        }
        let traffic = flow.map_or(&scenario.traffic, |flow| &flow.traffic);
        for Way { source, sink, asks, name: way } in self.ways(index, traffic)? {
            let mut setup = FlowSetup {
                source,
                sink,
                start: Instant::ZERO + start + self.later(),
                stop: stop.map(|stop| Instant::ZERO + stop),
                traffic: scenario.flow_traffic(traffic),
                user: index,
                access_category: flow
                    .and_then(|flow| flow.traffic.access_category)
                    .or(client.access_category)
                    .or(scenario.traffic.access_category)
                    .unwrap_or_default(),
            };
            let Some((application, flows)) = scenario.application(traffic, asks, &scenario.fwp_of(index))
            else {
                self.push_flows(setup, 1)?;
                continue;
            };
            // The program determines how much data its flow carries.
            if let Traffic::Connection { size, .. } = &mut setup.traffic {
                *size = None;
            }
            let name = flow.and_then(|flow| flow.name.as_deref()).unwrap_or(traffic.application.name());
            let name = format!("{name}, {way}");
            let flows = self.push_flows(setup, flows)?;
            self.applications.push(ApplicationSetup { name, flows, application });
        }
        Ok(())
    }

    /// Sources and destinations of the data of client `index`.
    fn ways(&self, index: u32, traffic: &TrafficPlan) -> Result<Vec<Way>, InputError> {
        let (server, host) = (Scenario::SERVER, self.places.host(index));
        let number = index + 1;
        let down =
            || Way { source: server, sink: host, asks: End::Sink, name: format!("client {number} down") };
        let up =
            || Way { source: host, sink: server, asks: End::Source, name: format!("client {number} up") };
        Ok(match traffic.direction {
            Direction::Download => vec![down()],
            Direction::Upload => vec![up()],
            Direction::Both => vec![down(), up()],
            Direction::StationToStation => {
                let peer = self.peer(index, traffic)?;
                let name = format!("client {number} to client {}", peer + 1);
                let way = Way { source: host, sink: self.places.host(peer), asks: End::Sink, name };
                // If all clients send to one peer, that peer does not send to itself.
                if peer == index { Vec::new() } else { vec![way] }
            }
        })
    }

    /// The client that receives the data of client `index`.
    fn peer(&self, index: u32, traffic: &TrafficPlan) -> Result<u32, InputError> {
        let (scenario, clients) = (self.scenario, self.places.clients);
        let peer = traffic.receiver(index, clients);
        if peer >= clients || clients < 2 {
            let what = format!("there is no client {} for the data of client {}", peer.max(1) + 1, index + 1);
            return Err(InputError::new(&scenario.name, what)
                .allowed("as many clients as \"station-to-station\" traffic names, and two at least"));
        }
        if scenario.fwp_of(peer).repair.is_some() {
            let what = format!(
                "client {} has no server that could repair the data that client {} sends it",
                peer + 1,
                index + 1
            );
            return Err(InputError::new(&scenario.name, what)
                .allowed("FWP with downloads, uploads or both; \"station-to-station\" with other schemes"));
        }
        Ok(peer)
    }

    /// The random delay of the next flow's start.
    fn later(&self) -> Duration {
        let spread = self.scenario.run.start_spread;
        if spread == Duration::ZERO {
            return spread;
        }
        let draw = Stream::new(self.seed, &format!("start of flow {}", self.flows.len())).draw();
        Duration::from_nanos(((u128::from(spread.as_nanos()) * u128::from(draw)) >> 32) as u64)
    }

    fn push_flows(&mut self, setup: FlowSetup, count: u32) -> Result<Vec<FlowId>, InputError> {
        let first = self.flows.len();
        self.flows.extend(std::iter::repeat_n(setup, count as usize));
        if self.flows.len() > MAX_FLOWS {
            return Err(InputError::new(&self.scenario.name, "too many flows and connections")
                .allowed(format!("{MAX_FLOWS} in all")));
        }
        Ok((first as u32..self.flows.len() as u32).map(FlowId).collect())
    }
}

impl Scenario {
    fn flow_traffic(&self, plan: &TrafficPlan) -> Traffic {
        match self.connection(plan) {
            Some(config) => {
                let size = plan.size.filter(|_| plan.application == ApplicationKind::Bulk);
                Traffic::Connection { config, size }
            }
            None => Traffic::Udp {
                ip: self.tcp.ip,
                payload: self.udp_payload(plan),
                rate: plan.udp_rate,
                report_after: plan.udp_report,
                send_buffer: plan.udp_send_buffer,
            },
        }
    }

    /// Configuration of connections; `None` for datagrams.
    fn connection(&self, plan: &TrafficPlan) -> Option<transport::Config> {
        match plan.transport {
            Transport::Tcp => {
                let mut config = self.tcp;
                control(&mut config.congestion, plan);
                Some(config.into())
            }
            Transport::Tack => {
                let mut config = self.tack.config(self.tcp.ip, self.tcp.mtu);
                control(&mut config.congestion, plan);
                Some(config.into())
            }
            Transport::Udp => None,
        }
    }

    /// The program that feeds a flow, and its number of connections. `asks` is the end that requests the data or the
    /// transmission of data; `fwp` is the client's repair of losses.
    fn application(&self, plan: &TrafficPlan, asks: End, fwp: &FwpPlan) -> Option<(Application, u32)> {
        let knobs = &plan.knobs;
        let span = |mean| Span { mean, law: knobs.times };
        let over_tcp = asks == End::Sink && plan.transport == Transport::Tcp;
        let repair = fwp.repairers().filter(|_| over_tcp);
        let flows_of_each = repair.as_ref().map_or(1, |repairers| 1 + repairers.connections);
        match plan.application {
            // Uploads and datagrams reach the user without holes.
            ApplicationKind::Bulk => {
                let (download, flows) = fwp.download(plan.size).filter(|_| over_tcp)?;
                Some((Application::Download(download), flows))
            }
            ApplicationKind::RequestResponse => {
                let pages = RequestResponse {
                    requester: asks,
                    objects: knobs.page(),
                    request: knobs.request_size,
                    think: span(knobs.think_time),
                    keeps_connections: knobs.keeps_connections,
                    repair,
                };
                Some((Application::RequestResponse(pages), knobs.connections * flows_of_each))
            }
            ApplicationKind::OnOff => {
                let connection = self.connection(plan);
                let over_udp = connection.is_none().then(|| self.udp_payload(plan));
                let full = connection.map_or(0, |config| config.mss());
                let source = OnOff {
                    on: span(knobs.on_time),
                    off: span(knobs.off_time),
                    rate: knobs.rate.or(over_udp.and(plan.udp_rate)),
                    chunk: over_udp.unwrap_or(Bytes(u64::from(full))),
                };
                Some((Application::OnOff(source), 1))
            }
            ApplicationKind::Streaming => {
                let video = Streaming {
                    rate: knobs.rate.unwrap_or(VIDEO_RATE),
                    frame_rate: knobs.frame_rate,
                    buffer: knobs.play_out_buffer,
                    repair,
                };
                Some((Application::Streaming(video), flows_of_each))
            }
        }
    }

    /// Bytes per datagram: the given value, or the payload that fills the MTU.
    fn udp_payload(&self, plan: &TrafficPlan) -> Bytes {
        plan.udp_payload.unwrap_or_else(|| datagram_filling(self.tcp.mtu, self.tcp.ip))
    }
}

impl ApplicationKnobs {
    fn page(&self) -> Objects {
        match (&self.objects, self.sizes) {
            (ObjectsPlan::Sizes(sizes), _) => Objects::Listed(sizes.clone()),
            (ObjectsPlan::Count(count), Law::Fixed) => {
                Objects::Listed(vec![self.object_size; *count as usize])
            }
            (ObjectsPlan::Count(count), Law::Exponential) => {
                Objects::Drawn { count: *count, mean: self.object_size }
            }
        }
    }
}

/// Replaces the transport's controller by the one in `plan`, if set.
fn control(config: &mut tacit_congestion::Config, plan: &TrafficPlan) {
    config.algorithm = plan.congestion.unwrap_or(config.algorithm);
}

/// Payload of a datagram whose IP packet has a length of `mtu`.
fn datagram_filling(mtu: Bytes, ip: IpVersion) -> Bytes {
    mtu - Bytes(u64::from(ip.header_len() + tacit_packet::udp::Datagram::HEADER_LEN))
}
