//! The drivers of stations: those that speak TCP/HACK, with the check that they never tell a lie, those that hold
//! ACKs back, and the agent of an access point that gives ACKs in its clients' stead.

use std::collections::VecDeque;

use tacit_link::queue::AckHold;
use tacit_link::wifi::{Bss, Interrupt, StationId};
use tacit_proto::fastack;
use tacit_proto::hack::{Action, Counters, Driver, FlowCounters, Rides, flow_key};
use tacit_proto::units::{Duration, FlowId, HostId, Instant};

use crate::Carried;
use crate::fastack::{ApAgent, Wish};
use crate::setup::BssSetup;

/// ACKs remembered per link to check reconstituted ones against.
const REMEMBERED: usize = 8_192;

/// The drivers of one channel; `None` for stock stations.
#[derive(Debug)]
pub(crate) struct HackStations<P> {
    /// Once for each access category of the channel: a function's driver and NIC know of no other's, so
    /// proof by what comes later holds within a category.
    stations: Vec<Option<HackStation<P>>>,
    /// Stations of the channel, the access point included.
    count: u16,
    /// No driver does anything but pass packets on.
    all_stock: bool,
    /// Of each client's functions, where drivers hold ACKs back; `None` for the access point's.
    holds: Vec<Option<AckHold<P>>>,
    /// What those let go, for the channel.
    released: VecDeque<P>,
    /// What each of those had dropped when measuring started.
    dropped_before: Vec<u64>,
    /// FastACK at the access point, for all categories.
    agent: Option<Box<ApAgent>>,
}

#[derive(Debug)]
struct HackStation<P> {
    driver: Driver<P>,
    /// Which peers speak it too: learnt at association.
    capable: Vec<bool>,
    /// ACKs and reports given to the driver for each peer, and when, oldest first.
    given: Vec<VecDeque<(Instant, P)>>,
    /// When the NIC last put together an acknowledgment for each peer.
    answered_at: Vec<Instant>,
    turnaround: Duration,
    before: Counters,
}

/// What the world has to do.
#[derive(Debug)]
pub(crate) enum Outcome<P> {
    /// Pass a reconstituted ACK up at `station`.
    Deliver { station: StationId, packet: P },
    /// An ACK was reconstituted that nobody sent, or before its sender's host can have made it.
    Wrong { station: StationId, packet: P, what: &'static str },
    /// Send an ACK that the access point made in a client's stead.
    SendUp { packet: P },
    /// Queue for a client what it was sent before.
    SendDown { packet: P },
}

impl<P: Carried> HackStations<P> {
    /// Drivers for the stations of a channel that have a configuration, the access point first.
    ///
    /// Or drivers of clients that hold ACKs back, or an agent in the access point.
    pub fn new(set: &BssSetup, channel: &mut Bss<P>) -> Self {
        let (configs, hold) = (&set.hack, set.ack_hold);
        let capable: Vec<_> = configs.iter().map(Option::is_some).collect();
        let count = channel.station_count();
        let functions = count * channel.categories().len() as u16;
        let holds: Vec<_> = hold.map_or_else(Vec::new, |hold| {
            let is_client = |id: u16| !is_access_point(count, StationId(id));
            (0..functions).map(|id| is_client(id).then(|| AckHold::new(hold))).collect()
        });
        let each = configs.iter().cycle().take(configs.len() * channel.categories().len());
        let stations = each.zip(0..).map(|(config, id)| {
            let id = StationId(id);
            let capable = if is_access_point(count, id) { capable[1..].to_vec() } else { vec![capable[0]] };
            config.map(|config| {
                channel.enable_hack(id, config.appended_limit);
                HackStation {
                    driver: Driver::new(config, capable.len()),
                    given: vec![VecDeque::new(); capable.len()],
                    answered_at: vec![Instant::ZERO; capable.len()],
                    turnaround: config.turnaround,
                    capable,
                    before: Counters::default(),
                }
            })
        });
        let stations: Vec<_> = stations.collect();
        let agent = set.fastack.map(|config| {
            let access_points = (0..functions).map(StationId).filter(|id| is_access_point(count, *id));
            access_points.for_each(|id| channel.report_fates(id));
            Box::new(ApAgent::new(config))
        });
        let all_stock = stations.iter().all(Option::is_none) && holds.is_empty() && agent.is_none();
        let dropped_before = vec![0; holds.len()];
        Self { stations, count, all_stock, holds, released: VecDeque::new(), dropped_before, agent }
    }

    /// True where every packet goes to the channel as it is, and nobody need be told of those that come.
    #[inline]
    pub fn all_stock(&self) -> bool {
        self.all_stock
    }

    fn get(&mut self, station: StationId) -> Option<&mut HackStation<P>> {
        self.stations.get_mut(station.index())?.as_mut()
    }

    /// When the driver of `station` wants its timeout.
    pub fn poll_timeout(&self, station: StationId) -> Option<Instant> {
        if let Some(Some(hold)) = self.holds.get(station.index()) {
            return hold.poll_timeout();
        }
        if let Some(agent) = self.agent.as_ref().filter(|_| is_access_point(self.count, station)) {
            return agent.poll_timeout();
        }
        self.stations.get(station.index())?.as_ref()?.driver.poll_timeout()
    }

    /// The agent of the access point, if `station` is that and has one.
    fn agent_of(&mut self, station: StationId) -> Option<&mut ApAgent> {
        self.agent.as_deref_mut().filter(|_| is_access_point(self.count, station))
    }

    /// The driver of a client that holds ACKs back, and where it puts what it lets go.
    fn hold(&mut self, station: StationId) -> Option<(&mut AckHold<P>, &mut VecDeque<P>)> {
        Some((self.holds.get_mut(station.index())?.as_mut()?, &mut self.released))
    }

    /// Pure ACKs of `station` that later ones took the place of at its driver, since measuring started.
    pub fn held_and_dropped(&self, station: StationId) -> u64 {
        let all = self.holds.iter().zip(&self.dropped_before);
        let own = all.skip(station.index()).step_by(usize::from(self.count));
        own.filter_map(|(hold, before)| Some(hold.as_ref()?.dropped() - before)).sum()
    }

    /// Does what is due at `station`.
    pub fn handle_timeout(&mut self, now: Instant, station: StationId) {
        if let Some((hold, released)) = self.hold(station) {
            hold.handle_timeout(now, &mut |packet| released.push_back(packet));
            return;
        }
        if let Some(agent) = self.agent_of(station) {
            agent.handle_timeout(now);
            return;
        }
        if let Some(hack) = self.get(station) {
            hack.driver.handle_timeout(now);
        }
    }

    /// `from` sends `packet` to `to`; gives it back when no driver takes it.
    pub fn outgoing(&mut self, now: Instant, from: StationId, to: StationId, packet: P) -> Option<P> {
        // What goes to another client directly is not held.
        if is_access_point(self.count, to)
            && let Some((hold, released)) = self.hold(from)
        {
            hold.offer(now, packet, &mut |packet| released.push_back(packet));
            return None;
        }
        if let Some(agent) = self.agent_of(from) {
            return agent.downlink(now, packet);
        }
        let count = self.count;
        let Some(hack) = self.get(from) else { return Some(packet) };
        let peer = peer_index(count, from, to);
        if !hack.capable[peer] {
            return Some(packet);
        }
        if packet.rides() != Rides::Never {
            let given = &mut hack.given[peer];
            if given.len() == REMEMBERED {
                given.pop_front();
            }
            given.push_back((now, packet.clone()));
        }
        hack.driver.handle_outgoing(now, peer, packet);
        None
    }

    /// `packet` arrived at `station` from `from`; gives back what goes on.
    pub fn incoming(&mut self, now: Instant, station: StationId, from: StationId, packet: P) -> Option<P> {
        if let Some(agent) = self.agent_of(station) {
            return agent.uplink(now, packet);
        }
        let count = self.count;
        if let Some(hack) = self.get(station) {
            hack.driver.handle_incoming(peer_index(count, station, from), &packet);
        }
        Some(packet)
    }

    /// A copy that the agent wanted queued found no room.
    pub fn copy_refused(&mut self, now: Instant, packet: &P) {
        if let Some(agent) = &mut self.agent {
            agent.refused(now, packet);
        }
    }

    /// True where the access point has an agent, which may want something after each packet.
    pub fn has_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// Packets of `from` for `to` have begun to be sent.
    pub fn drained(&mut self, from: StationId, to: StationId) {
        let count = self.count;
        if let Some(hack) = self.get(from) {
            hack.driver.handle_drained(peer_index(count, from, to));
        }
    }

    /// Tells the driver it concerns; returns its station.
    pub fn interrupt(&mut self, now: Instant, interrupt: &Interrupt<P>) -> StationId {
        let count = self.count;
        match interrupt {
            Interrupt::Received { station, from, heard, more_data, response } => {
                if let Some(hack) = self.get(*station) {
                    let peer = peer_index(count, *station, *from);
                    hack.answered_at[peer] = now;
                    hack.driver.handle_received(now, peer, *heard, *more_data, *response);
                }
                *station
            }
            Interrupt::Appended { station, from, octets } => {
                if let Some(hack) = self.get(*station) {
                    hack.driver.handle_appended(peer_index(count, *station, *from), octets);
                }
                *station
            }
            Interrupt::Settled { station, to, payload, delivered } => {
                if let Some(hack) = self.get(*station) {
                    hack.driver.handle_settled(now, peer_index(count, *station, *to), payload, *delivered);
                }
                *station
            }
            Interrupt::Fate { station, payload, acknowledged, last, .. } => {
                if let Some(agent) = self.agent_of(*station) {
                    agent.fate(now, payload, *acknowledged, *last);
                }
                *station
            }
        }
    }

    /// Carries out what the driver of `station` wants on the channel; returns what is left for the
    /// world, `None` when all is done.
    pub fn act(&mut self, now: Instant, station: StationId, channel: &mut Bss<P>) -> Option<Outcome<P>> {
        let count = self.count;
        // Held was what goes to the access point.
        while let Some(packet) = self.released.pop_front() {
            channel.enqueue(now, station, peer_id(count, station, 0), packet);
        }
        if let Some(agent) = self.agent_of(station) {
            return Some(match agent.poll()? {
                Wish::Up(packet) => Outcome::SendUp { packet: packet.into() },
                Wish::Down(packet) => Outcome::SendDown { packet: packet.into() },
                Wish::Wrong(packet) => {
                    Outcome::Wrong { station, packet: packet.into(), what: "of what has not arrived" }
                }
            });
        }
        loop {
            let hack = self.get(station)?;
            match hack.driver.poll_action()? {
                Action::Send(peer, packet) => {
                    let ack = (packet.rides() != Rides::Never).then(|| packet.clone());
                    if !channel.enqueue(now, station, peer_id(count, station, peer), packet)
                        && let Some(ack) = ack
                    {
                        hack.driver.handle_settled(now, peer, &ack, false);
                    }
                }
                Action::Descriptor(peer, frame) => {
                    if let Some((nic, peer)) = channel.nic(station, peer_id(count, station, peer)) {
                        nic.add(peer, &frame);
                    }
                }
                Action::ClearFresh(peer) => {
                    if let Some((nic, peer)) = channel.nic(station, peer_id(count, station, peer)) {
                        nic.clear_fresh(peer);
                    }
                }
                Action::ClearRetained(peer) => {
                    if let Some((nic, peer)) = channel.nic(station, peer_id(count, station, peer)) {
                        nic.clear_retained(peer);
                    }
                }
                Action::Retract(peer, packets) => {
                    let mut gone = Vec::new();
                    channel.retract(station, peer_id(count, station, peer), |packet| {
                        let unwanted = packets.contains(packet);
                        if unwanted {
                            gone.push(packet.clone());
                        }
                        unwanted
                    });
                    gone.iter().for_each(|packet| hack.driver.handle_retracted(peer, packet));
                }
                Action::Deliver(peer, packet) => {
                    return Some(self.check(station, peer_id(count, station, peer), packet));
                }
            }
        }
    }

    /// A reconstituted ACK must be one that the sender's driver was given, in the order of its flow and
    /// once, and a host turnaround before the acknowledgment it came on was made. That one is passed up: it
    /// may know more than its bytes say.
    fn check(&mut self, station: StationId, from: StationId, packet: P) -> Outcome<P> {
        let count = self.count;
        let wrong = |packet, what| Outcome::Wrong { station, packet, what };
        let Some(sender) = self.get(from) else { return wrong(packet, "from a stock station") };
        let peer = peer_index(count, from, station);
        let given = &mut sender.given[peer];
        let Some(at) = given.iter().position(|(_, ack)| *ack == packet) else {
            return wrong(packet, "nobody sent");
        };
        if given[at].0 + sender.turnaround > sender.answered_at[peer] {
            return wrong(packet, "rode before its host turnaround");
        }
        let packet = given[at].1.clone();
        let mut position = 0;
        given.retain(|(_, ack)| {
            position += 1;
            position > at + 1 || ack.flow_key() != packet.flow_key()
        });
        Outcome::Deliver { station, packet }
    }

    /// Drivers do what is due when it is due; above all none lets an ACK wait beyond its limit.
    pub fn check_deadlines(&self, now: Instant) -> Result<(), String> {
        if let Some(agent) = &self.agent {
            agent.check()?;
            if let Some(due) = agent.poll_timeout().filter(|due| *due < now) {
                return Err(format!("FastACK's agent was to act at {due}, before {now}"));
            }
        }
        let late = |hack: &HackStation<P>| hack.driver.poll_timeout().is_some_and(|due| due < now);
        match self.stations.iter().flatten().find(|hack| late(hack)) {
            Some(hack) => {
                Err(format!("a driver was to act at {:?}, before {now}", hack.driver.poll_timeout()))
            }
            None => Ok(()),
        }
    }

    /// Measuring starts.
    pub fn start_measuring(&mut self) {
        self.dropped_before =
            self.holds.iter().map(|hold| hold.as_ref().map_or(0, AckHold::dropped)).collect();
        self.agent.iter_mut().for_each(|agent| agent.start_measuring());
        for hack in self.stations.iter_mut().flatten() {
            hack.before = hack.driver.counters();
        }
    }

    /// Counters of `station` since measuring started, all categories together; `None` for a stock one.
    pub fn counters(&self, station: StationId) -> Option<Counters> {
        let functions = self.stations.iter().skip(station.index()).step_by(usize::from(self.count));
        let counted = functions.flatten().map(|hack| hack.driver.counters().since(&hack.before));
        counted.reduce(|sum, more| sum.plus(&more))
    }

    /// Counters of the agent at `station` since measuring started.
    pub fn fastack_counters(&self, station: StationId) -> Option<fastack::Counters> {
        self.agent.as_ref().filter(|_| is_access_point(self.count, station)).map(|agent| agent.counters())
    }

    /// What all drivers counted of a flow since the start, its two directions together; `None` where there is
    /// no driver.
    pub fn flow_counters(&self, flow: FlowId, ends: [HostId; 2]) -> Option<FlowCounters> {
        let drivers = || self.stations.iter().flatten().map(|hack| &hack.driver);
        drivers().next()?;
        let counted = ends
            .into_iter()
            .flat_map(|end| drivers().map(move |driver| driver.flow_counters(flow_key(flow, end))));
        Some(counted.fold(FlowCounters::default(), |sum, more| sum.plus(&more)))
    }

    /// Frames that could not be decoded, since the start, at all stations.
    pub fn failed_frames(&self) -> u64 {
        self.stations.iter().flatten().map(|hack| hack.driver.counters().failed_frames).sum()
    }
}

/// How the driver of `station` numbers `peer`, as its NIC does, in a channel of `count` stations.
#[inline]
fn peer_index(count: u16, station: StationId, peer: StationId) -> usize {
    if is_access_point(count, station) { usize::from(peer.0 - station.0) - 1 } else { 0 }
}

/// The station that the driver of `station` calls `peer`: one of the same category.
#[inline]
fn peer_id(count: u16, station: StationId, peer: usize) -> StationId {
    if is_access_point(count, station) {
        StationId(station.0 + peer as u16 + 1)
    } else {
        StationId(station.0 - station.0 % count)
    }
}

#[inline]
fn is_access_point(count: u16, station: StationId) -> bool {
    // Spares a division in the first category.
    station == StationId::AP || station.0 >= count && station.0.is_multiple_of(count)
}
