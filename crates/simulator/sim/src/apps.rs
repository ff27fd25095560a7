//! Programs that feed flows, and evaluate the arriving data from their users' point of view.
//!
//! A flow without a program feeds itself: bulk data, a file, or datagrams at a rate. A program writes into its flows,
//! at either end, when it starts, when one of its timers is due or when something arrives.

mod chance;
mod download;
mod on_off;
mod pages;
mod player;
pub(crate) mod setup;
mod stream;

use tacit_link::random::Stream;
use tacit_packet::Packet;
use tacit_packet::units::{FlowId, HostId, Instant};
use tacit_tack_proto::OwnQueue;

use crate::clients::Clients;
use crate::drivers::fwp::{ReaderRequest, ToReader};
use crate::flow::{End, Feeder, Flow};
use crate::record::{ApplicationOutcome, ApplicationResult};
use crate::setup::{Application, ApplicationSetup, FlowSetup, Setup};

use download::RepairedDownload;
use on_off::OnOffSource;
use pages::Pages;
use stream::VideoStream;

/// A program's interface to its flows.
#[derive(Debug)]
pub(crate) struct Sockets<'a> {
    flows: &'a mut [Flow],
    written: &'a mut Vec<(FlowId, End)>,
    requests: &'a mut Vec<(FlowId, ReaderRequest)>,
}

impl<'a> Sockets<'a> {
    /// `written` collects the ends that have something to send, `requests` the requests to shims.
    pub fn new(
        flows: &'a mut [Flow],
        written: &'a mut Vec<(FlowId, End)>,
        requests: &'a mut Vec<(FlowId, ReaderRequest)>,
    ) -> Self {
        Self { flows, written, requests }
    }

    /// Sends a request to the shim below the sink of `flow`.
    fn request(&mut self, flow: FlowId, request: ReaderRequest) {
        self.requests.push((flow, request));
    }

    /// From now on bytes at the sink wait for [`Sockets::read`]; must be called before any have arrived.
    fn read_by_hand(&mut self, flow: FlowId) {
        self.flows[flow.0 as usize].read_by_hand();
    }

    /// Takes at most `bytes` of in-order data at the sink.
    fn read(&mut self, flow: FlowId, bytes: u64) -> u64 {
        let read = self.flows[flow.0 as usize].read(bytes);
        if read > 0 {
            self.written.push((flow, End::Sink));
        }
        read
    }

    /// Opens the connection from `end` and sends the SYN.
    fn open(&mut self, flow: FlowId, end: End) {
        self.written.push((flow, end));
    }

    fn write(&mut self, flow: FlowId, end: End, bytes: u64) {
        self.flows[flow.0 as usize].write(end, bytes);
        self.written.push((flow, end));
    }

    /// Bytes received in order at `end`.
    fn delivered(&self, flow: FlowId, end: End) -> u64 {
        self.flows[flow.0 as usize].delivered_at(end)
    }

    /// Whether the connection of the source was reset.
    fn is_reset(&self, flow: FlowId) -> bool {
        self.flows[flow.0 as usize].is_reset(End::Source)
    }

    /// Bytes that the source has written but TCP has not sent.
    fn unsent(&self, flow: FlowId) -> u64 {
        self.flows[flow.0 as usize].unsent()
    }

    /// Most bytes in a datagram; `None` over TCP.
    fn datagram_payload(&self, flow: FlowId) -> Option<u64> {
        self.flows[flow.0 as usize].datagram_payload()
    }

    /// The number of the datagram that just arrived, if it is not a duplicate.
    fn new_datagram(&self, flow: FlowId) -> Option<u64> {
        self.flows[flow.0 as usize].new_datagram()
    }
}

/// The flows of a setup and the programs that feed some of them. `own_queues` limit what their ends leave to the queues of their hosts.
pub(crate) fn build(
    setup: &Setup,
    own_queues: impl Fn(&FlowSetup) -> [Option<OwnQueue>; 2],
) -> (Vec<Flow>, Vec<App>) {
    let host = |id: HostId| setup.hosts[id.0 as usize].as_str();
    let name = |id: FlowId| {
        let flow = &setup.flows[id.0 as usize];
        format!("{} to {} flow {}", host(flow.source), host(flow.sink), id.0)
    };
    let mut feeders = vec![Feeder::Own; setup.flows.len()];
    let mut apps = Vec::new();
    for (application, number) in setup.applications.iter().zip(0..) {
        // The setup was checked: every application has flows that exist.
        let first = application.flows[0];
        let opener = App::opener(&application.application);
        for flow in &application.flows {
            feeders[flow.0 as usize] = Feeder::Program { number, opener };
        }
        apps.push(App::new(application, setup.flows[first.0 as usize].start, setup.seed, &name(first)));
    }
    let mut clients = Clients::default();
    let flows = setup.flows.iter().zip(feeders).zip((0..).map(FlowId));
    let flows = flows.map(|((flow, feeder), id)| {
        Flow::new(id, flow.clone(), feeder, own_queues(flow), &mut clients, setup.seed, &name(id))
    });
    (flows.collect(), apps)
}

/// A running program.
#[derive(Debug)]
pub(crate) struct App {
    name: String,
    flows: Vec<FlowId>,
    start: Instant,
    program: Program,
}

#[derive(Debug)]
enum Program {
    Pages(Pages),
    OnOff(OnOffSource),
    Stream(VideoStream),
    Download(Box<RepairedDownload>),
}

impl App {
    /// A program that starts at `start`. The random numbers of the program depend on `first_flow`, the name of its
    /// first flow.
    pub fn new(setup: &ApplicationSetup, start: Instant, seed: u64, first_flow: &str) -> Self {
        let draws = Stream::new(seed, &format!("application {first_flow}"));
        let flows = &setup.flows;
        let program = match &setup.application {
            Application::RequestResponse(plan) => {
                Program::Pages(Pages::new(plan.clone(), flows, draws, start))
            }
            Application::OnOff(plan) => Program::OnOff(OnOffSource::new(*plan, flows[0], draws, start)),
            Application::Streaming(plan) => Program::Stream(VideoStream::new(*plan, flows, start)),
            Application::Download(plan) => {
                Program::Download(Box::new(RepairedDownload::new(*plan, flows, start)))
            }
        };
        Self { name: setup.name.clone(), flows: flows.clone(), start, program }
    }

    /// Which end opens the connections of a program.
    pub fn opener(application: &Application) -> End {
        match application {
            Application::RequestResponse(pages) => pages.requester,
            Application::Streaming(video) if video.repair.is_some() => End::Sink,
            Application::OnOff(_) | Application::Streaming(_) => End::Source,
            Application::Download(_) => End::Sink,
        }
    }

    /// Handles a timer, or the start of the program.
    pub fn handle_timeout(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        match &mut self.program {
            Program::Pages(pages) => pages.handle_timeout(now, sockets),
            Program::OnOff(source) => source.handle_timeout(now, sockets),
            Program::Stream(stream) => stream.handle_timeout(now, sockets),
            Program::Download(download) => download.handle_timeout(now, sockets),
        }
    }

    /// A packet of `flow` arrived at `end`.
    pub fn arrived(&mut self, now: Instant, flow: FlowId, end: End, sockets: &mut Sockets<'_>) {
        match &mut self.program {
            Program::Pages(pages) => pages.arrived(now, flow, end, sockets),
            Program::OnOff(source) => source.arrived(end, sockets),
            Program::Stream(stream) => stream.arrived(now, flow, end, sockets),
            Program::Download(download) => download.arrived(now, flow, end, sockets),
        }
    }

    /// A packet of `flow` is about to be received at `end`.
    pub fn watch(&mut self, flow: FlowId, end: End, packet: &Packet) {
        if let Some(repair) = self.repair_of(flow) {
            repair.watch(flow, end, packet);
        }
    }

    /// The repair that reads `flow` or uses it for repairs.
    fn repair_of(&mut self, flow: FlowId) -> Option<&mut RepairedDownload> {
        match &mut self.program {
            Program::Download(download) => Some(download),
            Program::Pages(pages) => pages.repair_of_mut(flow),
            Program::Stream(stream) => stream.repair_mut(),
            Program::OnOff(_) => None,
        }
    }

    /// A message from the shim below the sink of `flow`.
    pub fn on_message(&mut self, now: Instant, flow: FlowId, message: ToReader, sockets: &mut Sockets<'_>) {
        match &mut self.program {
            Program::Download(download) => download.on_message(now, flow, message, sockets),
            Program::Pages(pages) => pages.on_message(now, flow, message, sockets),
            Program::Stream(stream) => stream.on_message(now, flow, message, sockets),
            Program::OnOff(_) => {}
        }
    }

    /// The violated invariant, if any.
    pub fn broken(&mut self) -> Option<String> {
        match &mut self.program {
            Program::Download(download) => download.broken(),
            Program::Pages(pages) => pages.broken(),
            Program::Stream(stream) => stream.repair_mut().and_then(RepairedDownload::broken),
            Program::OnOff(_) => None,
        }
    }

    /// Disables its oracle from now on.
    pub fn dismiss_oracle(&mut self) {
        match &mut self.program {
            Program::Download(download) => download.dismiss_oracle(),
            Program::Pages(pages) => pages.dismiss_oracle(),
            Program::Stream(stream) => {
                if let Some(repair) = stream.repair_mut() {
                    repair.dismiss_oracle();
                }
            }
            Program::OnOff(_) => {}
        }
    }

    /// Data for the user over `flow`: bytes that arrived since measuring started, bytes handed on since the start of
    /// the run, and when all data was handed on. `None` for a program whose users get the data as the transport
    /// delivers it.
    pub fn user_got(&self, flow: FlowId) -> Option<(u64, u64, Option<Instant>)> {
        let repair = match &self.program {
            Program::Download(download) => Some(download.as_ref()),
            Program::Pages(pages) => pages.repair_of(flow),
            Program::Stream(stream) => stream.repair(),
            Program::OnOff(_) => None,
        };
        repair.map(|repair| repair.user_got(flow))
    }

    /// When [`App::handle_timeout`] is due next; before the start, that is the start.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.program {
            Program::Pages(pages) => pages.poll_timeout(),
            Program::OnOff(source) => source.poll_timeout(),
            Program::Stream(stream) => stream.poll_timeout(),
            Program::Download(download) => download.poll_timeout(),
        }
    }

    /// Stops its source; repeated calls have no effect.
    pub fn stop(&mut self, now: Instant) {
        match &mut self.program {
            Program::Pages(pages) => pages.stop(),
            Program::OnOff(source) => source.stop(now),
            Program::Stream(stream) => stream.stop(now),
            Program::Download(download) => download.stop(),
        }
    }

    /// Starts measuring.
    pub fn start_measuring(&mut self, now: Instant) {
        match &mut self.program {
            Program::Pages(pages) => pages.start_measuring(),
            Program::OnOff(source) => source.start_measuring(now),
            Program::Stream(stream) => stream.start_measuring(now),
            Program::Download(download) => download.start_measuring(),
        }
    }

    /// Its results at `now`.
    pub fn outcome(&self, now: Instant) -> ApplicationOutcome {
        let result = match &self.program {
            Program::Pages(pages) => ApplicationResult::Pages(pages.result()),
            Program::OnOff(source) => ApplicationResult::OnOff(source.result(now)),
            Program::Stream(stream) => ApplicationResult::Stream(stream.result(now, self.start)),
            Program::Download(download) => ApplicationResult::Download(download.result()),
        };
        let data_flows = match &self.program {
            Program::Download(_) | Program::OnOff(_) | Program::Stream(_) => 1,
            Program::Pages(pages) => pages.connections(),
        };
        ApplicationOutcome { name: self.name.clone(), flows: self.flows.clone(), data_flows, result }
    }
}
