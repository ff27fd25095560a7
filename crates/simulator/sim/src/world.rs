//! The world that moves time.

mod drivers;
mod invariants;
mod outcome;
mod sending;
mod small_queues;

use std::collections::VecDeque;

use tacit_link::PacketRef;
use tacit_link::queue::AckFilter;
use tacit_link::wifi::{Bss, FunctionId, LinkCounts, StationCounters, StationId};
use tacit_link::wired::{Pipe, PipeCounters};
use tacit_packet::Packet;
use tacit_packet::units::{Duration, FlowId, HostId, Instant};

use crate::apps::{self, App, Sockets};
use crate::digest::Digest;
use crate::drivers::Drivers;
use crate::drivers::fwp::ReaderRequest;
use crate::flow::{End, Feeder, Flow};
use crate::packets::Packets;
use crate::record::{RunOutcome, SeriesPoint};
use crate::scheduler::Scheduler;
use crate::setup::{BssSetup, FlowSetup, Setup};
use crate::topology::{Port, Topology};
use crate::wire_check::WireCheck;
use crate::{Carried, Observer, RunError};
use sending::{first_hop, in_category};

/// A component of the scheduler.
#[derive(Clone, Copy, Debug)]
enum Component {
    Pipe(usize),
    Bss(usize),
    Driver(usize, FunctionId),
    Timer(usize, End),
    Start(usize),
    Stop(usize),
    Refill(usize),
    Sample,
    Measure,
    App(usize),
}

/// Flows that keep one queue full, in turn.
#[derive(Debug)]
struct Saturator {
    port: Port,
    flows: Vec<usize>,
    next: usize,
    /// Component that refills a pipe; channels tell when they drained a queue.
    component: u32,
}

/// One direction of a wire.
struct Wire {
    pipe: Pipe,
    /// The host at its end.
    to: HostId,
    /// The opposite direction thins ACKs.
    is_heard: bool,
    /// Its counters when measuring started.
    before: PipeCounters,
}

/// A basic service set, and what connects it with its hosts.
struct Channel<P> {
    bss: Bss,
    /// The host of each function.
    hosts: Vec<HostId>,
    drivers: Drivers<P>,
    component: u32,
    /// The component of the driver of the first function; those of the others follow.
    first_driver: u32,
    before: Before,
}

/// Counts of a channel when measuring started.
#[derive(Default)]
struct Before {
    stations: Vec<StationCounters>,
    links: Vec<LinkCounts>,
}

impl Before {
    /// Those of `bss`, the channel of `set`.
    fn read(bss: &Bss, set: &BssSetup) -> Self {
        Self {
            stations: stations(set).map(|station| bss.counters(station)).collect(),
            links: bss.links().map(|link| bss.link_counts(link)).collect(),
        }
    }
}

/// A program.
struct Program {
    app: App,
    component: u32,
}

/// A packet that reached its destination.
#[derive(Clone, Debug)]
pub struct Arrived<P> {
    /// Where.
    pub host: HostId,
    /// The packet.
    pub packet: P,
    /// Frames that the Wi-Fi lost directly before it, where the station's driver counts them.
    pub missing_frames: u16,
}

/// Hosts, flows and links under one scheduler.
///
/// Either [`World::run`] moves time to the end, or a driver does, with the contract of
/// [`Endpoint`](tacit_packet::Endpoint): after any call drain [`World::poll_arrived`], then read
/// [`World::poll_timeout`].
pub struct World<'o, P: Carried = Packet> {
    setup: Setup,
    now: Instant,
    end: Instant,
    /// Events from here on are not to be processed yet.
    until: Instant,
    scheduler: Scheduler,
    components: Vec<Component>,
    timers: Vec<[u32; 2]>,
    topology: Topology,
    packets: Packets<P>,
    wires: Vec<Wire>,
    channels: Vec<Channel<P>>,
    /// A channel has several access categories.
    has_categories: bool,
    flows: Vec<Flow>,
    programs: Vec<Program>,
    /// Ends that a program wrote at and that were not pumped yet.
    written: Vec<(FlowId, End)>,
    /// Requests of programs to shims.
    requests: Vec<(FlowId, ReaderRequest)>,
    /// Some connections have small queues.
    has_small_queues: bool,
    /// Ends that wait for their host's queue to have less of them.
    throttled: Vec<(usize, End)>,
    saturators: Vec<Saturator>,
    /// The one of each port that has one, by port.
    saturator_of: Vec<(Port, usize)>,
    series: Vec<SeriesPoint>,
    digest: Digest,
    events: u64,
    /// The time when the number of events was last a multiple of [`invariants::EVENTS_AT_ONE_MOMENT`].
    progressed_to: Option<Instant>,
    wire: Option<WireCheck>,
    broken: Option<String>,
    /// Packets that are no flow's of this world.
    arrived: VecDeque<Arrived<P>>,
    /// Frames that are missing before the one whose packet is being delivered.
    missing_frames: u16,
    addresses: P::Addresses,
    observer: Option<&'o mut dyn Observer<P>>,
    /// When the observer looks next, and how often it does.
    look_at: Instant,
    look_every: Duration,
}

impl<'o, P: Carried> World<'o, P> {
    /// A world at time zero.
    ///
    /// # Errors
    /// [`RunError::Setup`] when the setup contradicts itself.
    pub fn new(setup: &Setup, observer: Option<&'o mut dyn Observer<P>>) -> Result<Self, RunError> {
        setup.check()?;
        let topology = Topology::new(setup)?;
        for flow in &setup.flows {
            for (from, to) in [(flow.source, flow.sink), (flow.sink, flow.source)] {
                topology.next_hop(from, to).ok_or_else(|| no_way(from, to))?;
            }
        }
        let end = Instant::ZERO + setup.duration;
        let host = |id: HostId| setup.hosts[id.0 as usize].as_str();
        let mut wires = Vec::new();
        for link in &setup.wired {
            for (from, to, config) in [(link.a, link.b, &link.forward), (link.b, link.a, &link.backward)] {
                let name = format!("{} to {}", host(from), host(to));
                let pipe = Pipe::new(config.clone(), setup.seed, &name);
                let opposite = if to == link.b { &link.backward } else { &link.forward };
                let is_heard = opposite.ack_filter == AckFilter::Thin;
                wires.push(Wire { pipe, to, is_heard, before: PipeCounters::default() });
            }
        }
        let mut channels = Vec::new();
        for (index, set) in setup.bss.iter().enumerate() {
            let hosts: Vec<_> = set.hosts().collect();
            let names: Vec<_> = hosts.iter().map(|id| host(*id)).collect();
            let window = (setup.measure_from, end);
            let mut bss = Bss::new(set.config.clone(), setup.seed, names[0], &names, window);
            if observer.is_some() {
                bss.record_air();
            }
            let (drivers, functions) = (Drivers::new(set, &mut bss), bss.functions());
            channels.push(Channel {
                hosts: functions.all().map(|id| hosts[functions.station(id).index()]).collect(),
                drivers,
                component: (wires.len() + index) as u32,
                first_driver: 0,
                before: Before::read(&bss, set),
                bss,
            });
        }
        let (flows, apps) = apps::build(setup, |flow| small_queues::own_queues(flow, &topology, &channels));
        let looks = observer.as_ref().and_then(|observer| observer.looks_every());
        let look_every = looks.filter(|every| *every != Duration::ZERO).unwrap_or(Duration::MAX);
        let mut world = Self {
            setup: setup.clone(),
            now: Instant::ZERO,
            end,
            until: Instant::ZERO,
            scheduler: Scheduler::new(0),
            components: Vec::new(),
            timers: Vec::new(),
            topology,
            has_categories: channels.iter().any(|channel| channel.bss.categories().len() > 1),
            packets: Packets::new(setup.inspects_segments()),
            wires,
            channels,
            flows,
            programs: apps.into_iter().map(|app| Program { app, component: 0 }).collect(),
            written: Vec::new(),
            requests: Vec::new(),
            has_small_queues: !setup.bss.is_empty() && setup.flows.iter().any(small_queues::limits),
            throttled: Vec::new(),
            saturators: Vec::new(),
            saturator_of: Vec::new(),
            series: Vec::new(),
            digest: Digest::new(),
            events: 0,
            progressed_to: None,
            wire: setup.wire.then(WireCheck::default),
            broken: None,
            arrived: VecDeque::new(),
            missing_frames: 0,
            addresses: P::Addresses::default(),
            observer,
            look_at: Instant::from_nanos(look_every.as_nanos()),
            look_every,
        };
        world.schedule_components()?;
        Ok(world)
    }

    /// This world without its oracles, which compare reconstituted ACKs, FastACK's ACKs and repaired downloads with their
    /// originals. That changes nothing unless one is wrong, and spares remembering them.
    #[must_use]
    pub fn without_oracle(mut self) -> Self {
        self.channels.iter_mut().for_each(|channel| channel.drivers.dismiss_oracle());
        self.programs.iter_mut().for_each(|program| program.app.dismiss_oracle());
        self
    }

    /// Table that names the hosts of packets that come as bytes; the caller that injects packets fills it.
    pub fn addresses_mut(&mut self) -> &mut P::Addresses {
        &mut self.addresses
    }

    /// Numbers the components and schedules the first event of each.
    fn schedule_components(&mut self) -> Result<(), RunError> {
        self.components.extend((0..self.wires.len()).map(Component::Pipe));
        self.components.extend((0..self.channels.len()).map(Component::Bss));
        let mut first_events = Vec::new();
        let mut add = |components: &mut Vec<Component>, component, at| {
            components.push(component);
            let number = components.len() as u32 - 1;
            first_events.push((number, at));
            number
        };
        let components = &mut self.components;
        for (index, channel) in self.channels.iter_mut().enumerate() {
            channel.first_driver = components.len() as u32;
            for function in channel.drivers.functions() {
                add(components, Component::Driver(index, function), None);
            }
        }
        add(components, Component::Measure, Some(self.setup.measure_from));
        add(
            components,
            Component::Sample,
            self.setup.sample_interval.map(|interval| Instant::ZERO + interval),
        );
        for (index, flow) in self.flows.iter().enumerate() {
            let timers =
                [End::Source, End::Sink].map(|end| add(components, Component::Timer(index, end), None));
            self.timers.push(timers);
            add(components, Component::Start(index), Some(flow.setup.start));
            add(components, Component::Stop(index), flow.setup.stop);
            if !flow.saturates() {
                continue;
            }
            let FlowSetup { source, sink, access_category, .. } = flow.setup;
            let port = self.topology.next_hop(source, sink).ok_or_else(|| no_way(source, sink))?;
            let port = in_category(port, &self.channels, access_category);
            match self.saturator_of.binary_search_by_key(&port, |(port, _)| *port) {
                Ok(place) => self.saturators[self.saturator_of[place].1].flows.push(index),
                Err(place) => {
                    let number = self.saturators.len();
                    let component = add(components, Component::Refill(number), None);
                    self.saturators.push(Saturator { port, flows: vec![index], next: 0, component });
                    self.saturator_of.insert(place, (port, number));
                }
            }
        }
        // Last, so that no other component's number moves.
        for (index, program) in self.programs.iter_mut().enumerate() {
            program.component = add(components, Component::App(index), program.app.poll_timeout());
        }
        self.scheduler = Scheduler::new(self.components.len());
        for (component, at) in first_events {
            self.scheduler.wake(component, at);
        }
        for channel in &self.channels {
            self.scheduler.wake(channel.component, channel.bss.poll_timeout());
        }
        Ok(())
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`RunError::Invariant`] when something happened that must not.
    pub fn run(mut self) -> Result<RunOutcome, RunError> {
        self.until = self.end;
        while let Some((at, component)) = self.scheduler.next() {
            if at >= self.end {
                break;
            }
            self.event(at, component)?;
        }
        if self.end >= self.look_at {
            self.look(self.end);
        }
        self.now = self.end;
        self.verify()?;
        Ok(self.outcome())
    }

    /// Does everything due by `now`.
    ///
    /// # Errors
    /// [`RunError::Invariant`] when something happened that must not.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), RunError> {
        self.until = now + Duration::from_nanos(1);
        while let Some((at, component)) = self.scheduler.next_by(now) {
            self.event(at, component)?;
        }
        self.now = self.now.max(now);
        Ok(())
    }

    /// When something happens next; may change after any call.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.scheduler.peek()
    }

    /// `host` sends `packet`, which is no flow's of this world. Everything due by `now` must have been
    /// done.
    pub fn inject(&mut self, now: Instant, host: HostId, packet: P) {
        self.now = self.now.max(now);
        let packet = self.packets.insert(packet);
        self.send(host, packet);
    }

    /// The next packet that reached its destination and is no flow's of this world. Drain it to `None`.
    pub fn poll_arrived(&mut self) -> Option<Arrived<P>> {
        self.arrived.pop_front()
    }

    /// Verifies the invariants that hold at any time.
    ///
    /// # Errors
    /// [`RunError::Invariant`], where it does not.
    pub fn verify(&self) -> Result<(), RunError> {
        let checked = self.check().and_then(|()| self.check_airtime()).and_then(|()| self.check_goodput());
        checked.map_err(|what| self.invariant(what))
    }

    fn invariant(&self, what: String) -> RunError {
        RunError::Invariant { at: self.now, what, seed: self.setup.seed }
    }

    fn event(&mut self, at: Instant, component: u32) -> Result<(), RunError> {
        self.begin_event(at, component);
        self.handle(component);
        match self.broken.take() {
            Some(what) => Err(self.invariant(what)),
            None => Ok(()),
        }
    }

    fn begin_event(&mut self, at: Instant, component: u32) {
        if at >= self.look_at {
            self.look(at);
        }
        self.now = at;
        self.events += 1;
        if self.events.is_multiple_of(invariants::EVENTS_AT_ONE_MOMENT) {
            self.check_progress(component);
        }
        self.digest.mix(at.as_nanos() ^ u64::from(component) << 48);
    }

    #[inline(always)]
    fn handle(&mut self, component: u32) {
        match self.components[component as usize] {
            Component::Pipe(index) => loop {
                let next = self.handle_pipe(index);
                if !self.schedule_or_begin(component, next) {
                    break;
                }
            },
            Component::Bss(index) => loop {
                let next = self.handle_bss(index);
                if !self.schedule_or_begin(component, next) {
                    break;
                }
            },
            Component::Driver(index, function) => {
                self.channels[index].drivers.handle_timeout(self.now, function);
                self.act(index, function);
            }
            Component::Timer(index, end) => {
                self.flows[index].handle_timeout(self.now, end);
                self.pump(index, end);
            }
            Component::Start(index) => {
                self.flows[index].start();
                self.pump(index, End::Source);
                if let Some(port) = self.flows[index].saturates().then(|| self.first_port(index)).flatten() {
                    self.refill_from(port);
                }
            }
            Component::Stop(index) => {
                self.flows[index].stop();
                if let Feeder::Program { number, .. } = self.flows[index].feeder {
                    let now = self.now;
                    self.with_app(number as usize, |app, _| app.stop(now));
                }
                self.pump(index, End::Source);
            }
            Component::Refill(index) => self.refill(index),
            Component::Measure => self.start_measuring(),
            Component::Sample => self.sample(component),
            Component::App(index) => {
                let now = self.now;
                self.with_app(index, |app, sockets| app.handle_timeout(now, sockets));
            }
        }
    }

    /// Calls a program, sends the data it wrote and schedules its timer.
    fn with_app(&mut self, index: usize, call: impl FnOnce(&mut App, &mut Sockets<'_>)) {
        let mut written = std::mem::take(&mut self.written);
        let mut requests = std::mem::take(&mut self.requests);
        call(&mut self.programs[index].app, &mut Sockets::new(&mut self.flows, &mut written, &mut requests));
        // Register flows with the shim before anything is sent, so that the shim sees all packets of the host.
        for (flow, request) in requests.drain(..) {
            self.request(flow, request);
        }
        self.requests = requests;
        if let Some(what) = self.programs[index].app.broken() {
            self.broken = Some(what);
        }
        for (flow, end) in written.drain(..) {
            self.pump(flow.0 as usize, end);
        }
        self.written = written;
        let Program { app, component } = &self.programs[index];
        self.scheduler.wake(*component, app.poll_timeout());
    }

    /// Delivers packets that have arrived from a pipe; returns when it is to be asked next.
    #[inline(always)]
    fn handle_pipe(&mut self, index: usize) -> Option<Instant> {
        loop {
            if let Some(packet) = self.wires[index].pipe.poll_deliver(self.now, &mut self.packets.holders) {
                if self.wires[index].is_heard {
                    self.on_reverse_segment(index, packet);
                }
                self.deliver(self.wires[index].to, packet);
            }
            // It is asked once more only where there is more: mostly there is not.
            let next = self.wires[index].pipe.poll_timeout();
            if next.is_none_or(|at| at > self.now) {
                return next;
            }
        }
    }

    /// Shows `packet`, which arrived by a wire, to what thins ACKs before the other direction of that wire.
    #[inline(never)]
    fn on_reverse_segment(&mut self, index: usize, packet: PacketRef) {
        let Some(segment) = self.packets.holders.segment(&packet) else { return };
        let answered = self.packets.content(packet).reverse_key();
        // The directions of a link are neighbours.
        self.wires[index ^ 1].pipe.on_reverse_segment(self.now, answered, segment);
    }

    /// Schedules the event of `component` at `at`. Returns true if it is the next event of all, which has then begun: a wire
    /// or a channel handles its own events without the scheduler until something else happens in between.
    #[inline(always)]
    fn schedule_or_begin(&mut self, component: u32, at: Option<Instant>) -> bool {
        let Some(at) = at else { return false };
        if at >= self.until || self.broken.is_some() || !self.scheduler.would_be_next(component, at) {
            self.scheduler.wake(component, Some(at));
            return false;
        }
        self.begin_event(at, component);
        true
    }

    /// Handles the events due on a channel; returns when the next one is, unless a consequence has woken it before.
    fn handle_bss(&mut self, index: usize) -> Option<Instant> {
        let next = self.channels[index].bss.handle_timeout(self.now, &mut self.packets.holders);
        while let Some(interrupt) = self.channels[index].bss.poll_interrupt() {
            let function = self.channels[index].drivers.interrupt(
                self.now,
                &interrupt,
                &mut self.packets,
                &self.addresses,
            );
            self.act(index, function);
        }
        while let Some(delivery) = self.channels[index].bss.poll_deliver() {
            if self.channels[index].drivers.all_stock() {
                self.deliver(self.channels[index].hosts[delivery.to.index()], delivery.payload);
            } else {
                self.deliver_through_driver(index, delivery);
            }
        }
        while let Some((from, to)) = self.channels[index].bss.poll_drained() {
            if !self.channels[index].drivers.all_stock() {
                self.channels[index].drivers.drained(from, to);
                self.act(index, from);
            }
            self.refill_from(Port::Wifi { bss: index as u16, from, to });
        }
        if let Some(observer) = &mut self.observer {
            while let Some(frame) = self.channels[index].bss.poll_air() {
                observer.on_air(index, &frame.map(|packet| self.packets.take(packet)));
            }
        }
        if !self.throttled.is_empty() {
            self.pump_throttled();
        }
        next
    }

    /// A packet arrived at `host`: for it, or to be passed on.
    fn deliver(&mut self, host: HostId, packet: PacketRef) {
        let content = self.packets.content(packet);
        self.digest.mix(content.trace_word());
        if content.destination() == host {
            self.take_in(host, packet);
        } else {
            self.send(host, packet);
        }
    }

    /// A packet for `host` arrived there.
    #[inline(never)]
    fn take_in(&mut self, host: HostId, packet: PacketRef) {
        let Some(simulated) = self.packets.simulated(packet) else {
            let (packet, missing_frames) = (self.packets.take(packet), self.missing_frames);
            self.arrived.push_back(Arrived { host, packet, missing_frames });
            return;
        };
        self.packets.holders.release(packet);
        let packet = simulated;
        let index = packet.flow.0 as usize;
        let flow = &mut self.flows[index];
        let end = if host == flow.setup.sink { End::Sink } else { End::Source };
        if let Feeder::Program { number, .. } = flow.feeder {
            let (now, id) = (self.now, flow.id);
            flow.handle_packet(now, end, packet.clone());
            self.programs[number as usize].app.watch(id, end, &packet);
            self.with_app(number as usize, |app, sockets| app.arrived(now, id, end, sockets));
        } else {
            flow.handle_packet(self.now, end, packet);
        }
        self.pump(index, end);
    }

    /// Sends the packets that one end of a flow has to send and schedules its timer.
    // Always: most calls come from where every packet passes.
    #[inline(always)]
    fn pump(&mut self, index: usize, end: End) {
        if self.has_small_queues {
            self.pump_within_small_queue(index, end);
        } else {
            self.pump_all(index, end);
        }
    }

    /// [`pump`](World::pump) where nothing limits how much of a connection may lie in its host's queue.
    #[inline(always)]
    fn pump_all(&mut self, index: usize, end: End) {
        let flow = &self.flows[index];
        let host = if end == End::Sink { flow.setup.sink } else { flow.setup.source };
        while let Some(packet) = self.flows[index].poll_transmit(self.now, end) {
            self.send_new(host, packet);
        }
        self.scheduler.wake(self.timers[index][end as usize], self.flows[index].poll_timeout(end));
    }

    fn sample(&mut self, component: u32) {
        for index in 0..self.flows.len() {
            let queueing = self.queueing_of(index);
            self.series.push(self.flows[index].sample(self.now, queueing));
        }
        self.broken = self.check().err();
        self.scheduler.wake(component, self.setup.sample_interval.map(|interval| self.now + interval));
    }

    /// Shows the observer how things stand at each of its looks until `until`, by when nothing more happens.
    #[cold]
    #[inline(never)]
    fn look(&mut self, until: Instant) {
        let Some(observer) = self.observer.take() else { return };
        while until >= self.look_at {
            self.now = self.look_at;
            for index in 0..self.flows.len() {
                let queueing = self.queueing_of(index);
                observer.on_flow(&self.flows[index].sample(self.now, queueing));
            }
            for (index, (channel, set)) in self.channels.iter().zip(&self.setup.bss).enumerate() {
                for station in stations(set) {
                    observer.on_station(self.now, index, station, channel.bss.backlog(station));
                }
            }
            self.look_at += self.look_every;
        }
        self.observer = Some(observer);
    }

    /// For how long packets have waited that are first in the pipes on the way of flow `index`.
    fn queueing_of(&mut self, index: usize) -> Duration {
        let FlowSetup { source, sink, .. } = self.flows[index].setup;
        let (mut at, mut queueing) = (source, Duration::ZERO);
        while let Some(port) = self.topology.next_hop(at, sink) {
            at = match port {
                Port::Pipe(pipe) => {
                    let Wire { pipe, to, .. } = &mut self.wires[pipe as usize];
                    queueing += pipe.longest_wait(self.now, &mut self.packets.holders);
                    *to
                }
                Port::Wifi { bss, to, .. } => self.channels[usize::from(bss)].hosts[to.index()],
            };
        }
        queueing
    }

    fn start_measuring(&mut self) {
        self.flows.iter_mut().for_each(Flow::start_measuring);
        self.programs.iter_mut().for_each(|program| program.app.start_measuring(self.now));
        for Wire { pipe, before, .. } in &mut self.wires {
            pipe.start_measuring();
            *before = pipe.counters();
        }
        for (Channel { bss, drivers, before, .. }, set) in self.channels.iter_mut().zip(&self.setup.bss) {
            drivers.start_measuring();
            bss.start_measuring(self.now);
            *before = Before::read(bss, set);
        }
    }
}

/// The stations of `set`, the access point first.
fn stations(set: &BssSetup) -> impl Iterator<Item = StationId> + use<> {
    (0..=set.clients.len() as u16).map(StationId)
}

fn no_way(from: HostId, to: HostId) -> RunError {
    RunError::Setup(format!("there is no way from {from} to {to}"))
}
