//! Drivers between the MACs of a channel's stations and their hosts: none, TCP/HACK, a driver that holds ACKs back,
//! FastACK's agent, FWP's shim.
//!
//! All have the same interface, [`StationDriver`]. A new driver needs a variant there, a module here, a variant of
//! [`ApDriver`] or [`ClientDriver`], and a variant of [`DriverCounters`]; the compiler reports the places.

mod ack_hold;
mod fastack;
pub(crate) mod fwp;
mod hack;
mod oracle;

use tacit_between::hack::{Config as HackConfig, FlowCounters};
use tacit_link::PacketRef;
use tacit_link::wifi::{Bss, FunctionId, Functions, Interrupt, StationId};
use tacit_packet::units::{FlowId, HostId, Instant};

use self::ack_hold::HoldDriver;
use self::fastack::ApAgent;
use self::fwp::{ClientShim, ReaderRequest, ToReader};
use self::hack::HackDriver;
use self::oracle::Oracle;
use crate::Carried;
use crate::packets::Packets;
use crate::record::DriverCounters;
use crate::setup::{ApDriver, BssSetup, ClientDriver};

/// Driver between a station's MAC and its host.
#[derive(Debug)]
enum StationDriver<P> {
    /// No driver: packets pass unchanged in both directions.
    Stock,
    /// ACKs are appended to link-layer ACKs.
    Hack(Box<HackDriver<P>>),
    /// Pure ACKs wait, and later ones replace them.
    AckHold(HoldDriver),
    /// The access point acknowledges data on behalf of its clients.
    FastAck(Box<ApAgent>),
    /// Placeholders replace segments that did not arrive.
    Fwp(Box<ClientShim>),
}

/// A driver's request to the world.
#[derive(Debug)]
pub(crate) enum DriverRequest<P> {
    /// Pass up an ACK that was reconstituted from a link-layer ACK of `from`.
    PassUp { from: FunctionId, packet: P },
    /// Send a packet that the station's host did not create.
    Send { packet: P },
    /// Queue a packet for a client again; the driver is [informed](Drivers::refused) if there was no room.
    Requeue { packet: P },
    /// Pass up a packet that did not arrive on the channel.
    Deliver { packet: P },
    /// Send a message to the reader of a flow.
    Tell { flow: FlowId, message: ToReader },
    /// An invariant is violated: this packet is wrong.
    Wrong { packet: P, what: &'static str },
}

impl<P: Carried> StationDriver<P> {
    /// The host sends `packet` to `to`. Returns the packet to be queued, if any.
    fn outgoing(
        &mut self,
        now: Instant,
        to: FunctionId,
        packet: PacketRef,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        match self {
            Self::Stock => Some(packet),
            Self::Hack(hack) => hack.outgoing(now, to, packet, packets),
            Self::AckHold(hold) => hold.outgoing(now, to, packet, packets),
            Self::FastAck(agent) => agent.downlink(now, packet, packets),
            Self::Fwp(shim) => {
                shim.outgoing(now, packets.content(packet));
                Some(packet)
            }
        }
    }

    /// `packet` arrived from `from`, and `missing` frames before it did not. Returns the packet for the host, if any.
    fn incoming(
        &mut self,
        now: Instant,
        from: FunctionId,
        packet: PacketRef,
        missing: u16,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        match self {
            Self::Stock => Some(packet),
            Self::AckHold(hold) => {
                hold.incoming(now, from, packets.content(packet));
                Some(packet)
            }
            Self::Hack(hack) => {
                hack.incoming(now, from, packets.content(packet));
                Some(packet)
            }
            Self::FastAck(agent) => agent.uplink(now, packet, packets),
            Self::Fwp(shim) => shim.incoming(now, packet, missing, packets),
        }
    }

    /// True if it may have a request to the world after its host has sent a packet, or one arrived.
    fn acts_on_packets(&self) -> bool {
        match self {
            Self::Stock | Self::Hack(_) | Self::AckHold(_) => false,
            Self::FastAck(_) | Self::Fwp(_) => true,
        }
    }

    /// Handles an interrupt of the MAC.
    fn interrupt(
        &mut self,
        now: Instant,
        interrupt: &Interrupt,
        packets: &Packets<P>,
        addresses: &P::Addresses,
    ) {
        match self {
            Self::Stock | Self::AckHold(_) | Self::Fwp(_) => {}
            Self::Hack(hack) => hack.interrupt(now, interrupt, packets, addresses),
            Self::FastAck(agent) => agent.interrupt(now, interrupt, packets),
        }
    }

    /// Packets for `to` are being sent.
    fn drained(&mut self, to: FunctionId) {
        match self {
            Self::Stock | Self::AckHold(_) | Self::FastAck(_) | Self::Fwp(_) => {}
            Self::Hack(hack) => hack.drained(to),
        }
    }

    /// A packet from [`DriverRequest::Requeue`] found no room.
    fn refused(&mut self, now: Instant, packet: &P) {
        match self {
            Self::Stock | Self::Hack(_) | Self::AckHold(_) | Self::Fwp(_) => {}
            Self::FastAck(agent) => agent.refused(now, packet),
        }
    }

    /// Carries out its requests to the channel; returns the next request to the world, `None` if there are no more.
    fn act(&mut self, now: Instant, channel: &mut Bss, packets: &mut Packets<P>) -> Option<DriverRequest<P>> {
        self.carry_out(now, channel, packets);
        match self {
            Self::Stock | Self::AckHold(_) => None,
            Self::Hack(hack) => hack.pass_up(),
            Self::FastAck(agent) => agent.poll(),
            Self::Fwp(shim) => shim.poll(),
        }
    }

    /// Carries out its requests to the channel.
    fn carry_out(&mut self, now: Instant, channel: &mut Bss, packets: &mut Packets<P>) {
        match self {
            Self::Stock | Self::FastAck(_) | Self::Fwp(_) => {}
            Self::Hack(hack) => hack.carry_out(now, channel, packets),
            Self::AckHold(hold) => hold.act(now, channel, &mut packets.holders),
        }
    }

    /// Its next deadline.
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Stock => None,
            Self::Hack(hack) => hack.poll_timeout(),
            Self::AckHold(hold) => hold.poll_timeout(),
            Self::FastAck(agent) => agent.poll_timeout(),
            Self::Fwp(shim) => shim.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Stock => {}
            Self::Hack(hack) => hack.handle_timeout(now),
            Self::AckHold(hold) => hold.handle_timeout(now),
            Self::FastAck(agent) => agent.handle_timeout(now),
            Self::Fwp(shim) => shim.handle_timeout(now),
        }
    }

    fn start_measuring(&mut self) {
        match self {
            Self::Stock => {}
            Self::Hack(hack) => hack.start_measuring(),
            Self::AckHold(hold) => hold.start_measuring(),
            Self::FastAck(agent) => agent.start_measuring(),
            Self::Fwp(shim) => shim.start_measuring(),
        }
    }

    /// Its counters since measuring started.
    fn counters(&self) -> DriverCounters {
        match self {
            Self::Stock => DriverCounters::Stock,
            Self::Hack(hack) => DriverCounters::Hack(hack.counters()),
            Self::AckHold(hold) => DriverCounters::AckHold { dropped: hold.dropped() },
            Self::FastAck(agent) => DriverCounters::FastAck(agent.counters()),
            Self::Fwp(shim) => DriverCounters::Fwp(shim.counters()),
        }
    }

    /// Checks invariants that always hold; most importantly, that it acts when its timer is due, so that no ACK waits
    /// beyond its limit.
    fn check(&self, now: Instant) -> Result<(), String> {
        if let Some(due) = self.poll_timeout().filter(|due| *due < now) {
            return Err(format!("a driver was to act at {due}, before {now}: {:?}", self.counters()));
        }
        match self {
            Self::Stock | Self::AckHold(_) => Ok(()),
            Self::Hack(hack) => hack.check(),
            Self::FastAck(agent) => agent.check(),
            Self::Fwp(shim) => shim.check(),
        }
    }
}

/// The drivers of one channel.
#[derive(Debug)]
pub(crate) struct Drivers<P> {
    functions: Functions,
    /// The first one is the stock driver, shared by all functions without another driver. Empty if all are stock.
    drivers: Vec<StationDriver<P>>,
    /// The driver of each function of the channel. TCP/HACK has one driver per access category of a station, because a
    /// function's NIC is separate, and later data proves reception only within its category. FastACK has one driver for
    /// all, because it needs whole connections.
    of_function: Vec<u16>,
    /// Checks reconstituted ACKs; `None` if there are none, or once dismissed.
    oracle: Option<Oracle<P>>,
}

impl<P: Carried> Drivers<P> {
    /// The drivers in `set` for the stations of `channel`, which is configured for them.
    pub fn new(set: &BssSetup, channel: &mut Bss) -> Self {
        let functions = channel.functions();
        let mut all = Self { functions, drivers: Vec::new(), of_function: Vec::new(), oracle: None };
        if set.is_stock() {
            return all;
        }
        all.drivers.push(StationDriver::Stock);
        all.of_function = functions.all().map(|_| 0).collect();
        match set.access_point.driver {
            ApDriver::Stock => {}
            ApDriver::Hack(config) => all.install_hack(StationId::AP, config, set, channel),
            ApDriver::FastAck(config) => {
                functions.of_station(StationId::AP).for_each(|function| channel.report_fates(function));
                let agent = StationDriver::FastAck(Box::new(ApAgent::new(config)));
                all.install(functions.of_station(StationId::AP), agent);
            }
        }
        for (client, station) in set.clients.iter().zip((1..).map(StationId)) {
            match client.driver {
                ClientDriver::Stock => {}
                ClientDriver::Hack(config) => all.install_hack(station, config, set, channel),
                ClientDriver::AckHold(config) => {
                    for function in functions.of_station(station) {
                        let peers = functions.peers(function, &set.config.direct_links);
                        let hold = HoldDriver::new(config, function, peers);
                        all.install([function], StationDriver::AckHold(hold));
                    }
                }
                ClientDriver::Fwp(config) => {
                    let shim = ClientShim::new(config, client.host);
                    all.install(functions.of_station(station), StationDriver::Fwp(Box::new(shim)));
                }
            }
        }
        all.oracle = Oracle::new(functions, &set.config.direct_links, |function| {
            Some(set.hack_config(functions.station(function))?.turnaround)
        });
        all
    }

    fn install_hack(&mut self, station: StationId, config: HackConfig, set: &BssSetup, channel: &mut Bss) {
        let functions = self.functions;
        for function in functions.of_station(station) {
            let speaks = |peer| set.hack_config(functions.station(peer)).is_some();
            channel.enable_hack(function, config.appended_limit);
            let peers = functions.peers(function, &set.config.direct_links);
            let driver = HackDriver::new(config, function, peers, channel, speaks);
            self.install([function], StationDriver::Hack(Box::new(driver)));
        }
    }

    /// Sets the driver of `functions`.
    fn install(&mut self, functions: impl IntoIterator<Item = FunctionId>, driver: StationDriver<P>) {
        for function in functions {
            self.of_function[function.index()] = self.drivers.len() as u16;
        }
        self.drivers.push(driver);
    }

    /// Disables the oracles that check reconstituted and forged ACKs from now on.
    pub fn dismiss_oracle(&mut self) {
        self.oracle = None;
        for driver in &mut self.drivers {
            match driver {
                StationDriver::Stock
                | StationDriver::Hack(_)
                | StationDriver::AckHold(_)
                | StationDriver::Fwp(_) => {}
                StationDriver::FastAck(agent) => agent.dismiss_oracle(),
            }
        }
    }

    /// The program at `host` that reads `flow`, with data from `source`, sends a request to the shim there; it is
    /// ignored if there is none. Returns the function whose driver may act on it at once.
    pub fn request(
        &mut self,
        flow: FlowId,
        [source, host]: [HostId; 2],
        request: ReaderRequest,
    ) -> Option<FunctionId> {
        let (number, shim) = (0_u16..).zip(&mut self.drivers).find_map(|(number, driver)| match driver {
            StationDriver::Fwp(shim) if shim.host == host => Some((number, shim)),
            _ => None,
        })?;
        shim.request(flow, source, request);
        let acts = matches!(request, ReaderRequest::Stop | ReaderRequest::Fail);
        self.functions.all().find(|function| acts && self.of_function[function.index()] == number)
    }

    /// True if every packet goes to the channel unchanged, and no driver needs to see arriving packets.
    #[inline]
    pub fn all_stock(&self) -> bool {
        self.drivers.is_empty()
    }

    /// Functions that may have a deadline.
    pub fn functions(&self) -> impl Iterator<Item = FunctionId> {
        let functions = self.functions;
        functions.all().filter(|_| !self.all_stock())
    }

    fn driver(&self, function: FunctionId) -> Option<&StationDriver<P>> {
        self.drivers.get(usize::from(*self.of_function.get(function.index())?))
    }

    fn driver_mut(&mut self, function: FunctionId) -> Option<&mut StationDriver<P>> {
        self.drivers.get_mut(usize::from(*self.of_function.get(function.index())?))
    }

    /// The next deadline of the driver of `function`.
    pub fn poll_timeout(&self, function: FunctionId) -> Option<Instant> {
        self.driver(function)?.poll_timeout()
    }

    /// Handles the timeout of the driver of `function`.
    pub fn handle_timeout(&mut self, now: Instant, function: FunctionId) {
        if let Some(driver) = self.driver_mut(function) {
            driver.handle_timeout(now);
        }
    }

    /// `from` sends `packet` to `to`. Returns it if no driver takes it.
    pub fn outgoing(
        &mut self,
        now: Instant,
        from: FunctionId,
        to: FunctionId,
        packet: PacketRef,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        if let Some(oracle) = &mut self.oracle {
            oracle.given(now, from, to, packet, packets);
        }
        match self.driver_mut(from) {
            Some(driver) => driver.outgoing(now, to, packet, packets),
            None => Some(packet),
        }
    }

    /// `packet` arrived at `function` from `from`, and `missing` frames before it did not. Returns the packet for the
    /// host, if any.
    pub fn incoming(
        &mut self,
        now: Instant,
        [from, function]: [FunctionId; 2],
        packet: PacketRef,
        missing: u16,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        match self.driver_mut(function) {
            Some(driver) => driver.incoming(now, from, packet, missing, packets),
            None => Some(packet),
        }
    }

    /// True if the driver of `function` may have a request to the world after its host has sent a packet, or one arrived.
    pub fn acts_on_packets(&self, function: FunctionId) -> bool {
        self.driver(function).is_some_and(StationDriver::acts_on_packets)
    }

    /// A packet from [`DriverRequest::Requeue`] of the driver of `function` found no room.
    pub fn refused(&mut self, now: Instant, function: FunctionId, packet: &P) {
        if let Some(driver) = self.driver_mut(function) {
            driver.refused(now, packet);
        }
    }

    /// Packets from `from` for `to` are being sent.
    pub fn drained(&mut self, from: FunctionId, to: FunctionId) {
        if let Some(driver) = self.driver_mut(from) {
            driver.drained(to);
        }
    }

    /// Passes an interrupt to the driver it concerns; returns its function.
    pub fn interrupt(
        &mut self,
        now: Instant,
        interrupt: &Interrupt,
        packets: &mut Packets<P>,
        addresses: &P::Addresses,
    ) -> FunctionId {
        if let (Some(oracle), Interrupt::Received { function, from, .. }) = (&mut self.oracle, interrupt) {
            oracle.answered(now, *function, *from);
        }
        let function = interrupt.function();
        if let Some(driver) = self.driver_mut(function) {
            driver.interrupt(now, interrupt, packets, addresses);
        }
        if let Some(packet) = interrupt.packet() {
            packets.holders.release(*packet);
        }
        function
    }

    /// Carries out the requests of the driver of `function` to the channel, and passes no ACK up.
    pub fn carry_out(
        &mut self,
        now: Instant,
        function: FunctionId,
        channel: &mut Bss,
        packets: &mut Packets<P>,
    ) {
        if let Some(driver) = self.driver_mut(function) {
            driver.carry_out(now, channel, packets);
        }
    }

    /// Carries out the requests of the driver of `function` to the channel; returns the next request to the world,
    /// `None` if there are no more.
    pub fn act(
        &mut self,
        now: Instant,
        function: FunctionId,
        channel: &mut Bss,
        packets: &mut Packets<P>,
    ) -> Option<DriverRequest<P>> {
        let wish = self.driver_mut(function)?.act(now, channel, packets)?;
        Some(match (wish, &mut self.oracle) {
            (DriverRequest::PassUp { from, packet }, Some(oracle)) => {
                match oracle.judge(function, from, &packet) {
                    Ok(()) => DriverRequest::PassUp { from, packet },
                    Err(what) => DriverRequest::Wrong { packet, what },
                }
            }
            (wish, _) => wish,
        })
    }

    /// Shows `see` every packet that a driver holds by its handle.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        for driver in &self.drivers {
            if let StationDriver::AckHold(hold) = driver {
                hold.each_held(see);
            }
        }
    }

    /// Checks invariants that always hold.
    pub fn check(&self, now: Instant) -> Result<(), String> {
        self.drivers.iter().try_for_each(|driver| driver.check(now))
    }

    /// Starts measuring.
    pub fn start_measuring(&mut self) {
        self.drivers.iter_mut().for_each(StationDriver::start_measuring);
    }

    /// Counters of the drivers of `station` since measuring started, summed over all categories.
    pub fn counters(&self, station: StationId) -> DriverCounters {
        let mut indexes: Vec<_> =
            self.functions.of_station(station).filter_map(|id| self.of_function.get(id.index())).collect();
        indexes.dedup();
        let each = indexes.into_iter().map(|index| self.drivers[usize::from(*index)].counters());
        each.reduce(|sum, more| sum.plus(&more)).unwrap_or_default()
    }

    /// Counters of a flow at all drivers since the start of the run, summed over both directions; `None` if no station
    /// has TCP/HACK.
    pub fn flow_counters(&self, flow: FlowId, ends: [HostId; 2]) -> Option<FlowCounters> {
        let drivers = self.drivers.iter().filter_map(|driver| match driver {
            StationDriver::Hack(hack) => Some(hack),
            StationDriver::Stock
            | StationDriver::AckHold(_)
            | StationDriver::FastAck(_)
            | StationDriver::Fwp(_) => None,
        });
        drivers.map(|hack| hack.flow_counters(flow, ends)).reduce(|sum, more| sum.plus(&more))
    }
}
