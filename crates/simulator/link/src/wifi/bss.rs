//! A basic service set: stations on one channel, or on several with multi-link operation.

mod deafened;
mod early;
mod hearing;
mod idlest;
mod link;
mod links;
mod radios;

use hdrhistogram::Histogram;
use tacit_between::hack::Nic;
use tacit_packet::units::{Bytes, Duration, Instant};

use self::link::Link;
use self::links::Links;
pub use self::radios::RadioTimes;
use super::air::{AirFrame, StationId};
use super::airtime::{Airtime, StationAirtime};
use super::category::AccessCategory;
use super::cell::Delivery;
use super::config::BssConfig;
use super::counters::StationCounters;
use super::functions::{FunctionId, Functions};
use super::interrupt::Interrupt;
use super::link_set::LinkId;
use super::mac::ack_hook::AckHook;
use super::mac::ack_times::AckTimes;
use super::mac::block_ack::Recipient;
use super::mac::station::Station;
use super::turns::Turns;
use crate::packet::{Holders, PacketRef};

/// A running basic service set.
#[derive(Clone, Debug)]
pub struct Bss {
    links: Links,
    /// Those of every link; here because each packet asks for them.
    functions: Functions,
    categories: Vec<AccessCategory>,
}

/// Result of offering a packet to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// The queue dropped it.
    Refused,
    /// It waits behind others; [`Bss::poll_timeout`] does not change.
    Waits,
    /// It is the first packet, and its station now contends for the channel.
    Contends,
}

/// Counts of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Channel accesses; a collision counts once.
    pub accesses: u64,
    /// Accesses by two or more stations at the same time.
    pub collisions: u64,
    /// Counters of all stations on this link.
    pub stations: StationCounters,
}

impl LinkCounts {
    /// What was added since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            accesses: self.accesses - before.accesses,
            collisions: self.collisions - before.collisions,
            stations: self.stations.since(&before.stations),
        }
    }
}

impl Bss {
    /// A channel with empty queues. The names of random streams are derived from `seed`, `name` and `station_names`
    /// (the access point first); results count from `measure_from` to `end`.
    ///
    /// # Panics
    /// If there is not one name per station, including the access point, or no access category.
    pub fn new(
        config: BssConfig,
        seed: u64,
        name: &str,
        station_names: &[&str],
        measure: (Instant, Instant),
    ) -> Self {
        assert_eq!(
            station_names.len(),
            config.stations.len() + 1,
            "one name per station and the access point's"
        );
        assert!(!config.categories.is_empty(), "traffic has a category");
        let functions = Functions::new(station_names.len() as u16, config.categories.len() as u16);
        let categories = config.categories.clone();
        Self { links: Links::new(config, seed, name, station_names, measure), functions, categories }
    }

    /// Records every frame from now on for [`Bss::poll_air`].
    pub fn record_air(&mut self) {
        self.links.iter_mut().for_each(|link| link.cell.air.start());
    }

    /// How the functions of its stations are numbered.
    #[inline]
    pub fn functions(&self) -> Functions {
        self.functions
    }

    /// The function of `station` for `category`; if that is not in use, for best effort, or else the first one in use.
    pub fn function(&self, station: StationId, category: AccessCategory) -> FunctionId {
        let place_of = |wanted| self.categories().iter().position(|known| *known == wanted);
        let place = place_of(category).or_else(|| place_of(AccessCategory::BestEffort)).unwrap_or(0);
        self.functions().function(station, place)
    }

    /// The station that `function` belongs to.
    #[inline]
    pub fn station(&self, function: FunctionId) -> StationId {
        self.functions().station(function)
    }

    /// Access categories in use.
    #[inline]
    pub fn categories(&self) -> &[AccessCategory] {
        &self.categories
    }

    /// Queues `payload` at `from` for `to`; returns false if the queue dropped it.
    ///
    /// # Panics
    /// If both are clients without a direct link: their traffic goes through the access point.
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: FunctionId,
        to: FunctionId,
        packet: PacketRef,
        holders: &mut Holders,
    ) -> bool {
        self.offer(now, from, to, packet, holders) != Offered::Refused
    }

    /// Queues `payload` at `from` for `to`, and returns the result.
    ///
    /// # Panics
    /// If both are clients without a direct link: their traffic goes through the access point.
    pub fn offer(
        &mut self,
        now: Instant,
        from: FunctionId,
        to: FunctionId,
        packet: PacketRef,
        holders: &mut Holders,
    ) -> Offered {
        let cell = self.links.holder_mut();
        let config = &cell.rules.config;
        let station = &mut cell.stations[from];
        let filter = if station.is_access_point() { config.ap_ack_filter } else { config.station_ack_filter };
        assert!(station.reaches(to), "traffic goes through the access point or over a direct link");
        let waits = station.has_traffic() || station.transmitting;
        let peer = station.peer_index(to);
        if !station.enqueue(now, peer, filter, packet, holders) {
            return Offered::Refused;
        }
        let begins = !waits && station.has_traffic();
        if begins {
            self.links.start_contending(now, from);
        }
        let follows = self.links.count() > 1 && self.links.follow_function(from, now);
        if begins || follows { Offered::Contends } else { Offered::Waits }
    }

    /// True if `from` would accept a packet of `len` bytes for `to`.
    pub fn has_room(&self, from: FunctionId, to: FunctionId, len: Bytes) -> bool {
        let station = &self.links.holder().stations[from];
        station.peers[station.peer_index(to)].originator.queue().has_room(len)
    }

    /// Packets queued at `from` for `to` that have no sequence number yet.
    pub fn queued(&self, from: FunctionId, to: FunctionId) -> usize {
        let station = &self.links.holder().stations[from];
        station.peers[station.peer_index(to)].originator.queue().len()
    }

    /// Whether these are enough for the longest A-MPDU from `from`.
    pub fn is_saturated(&self, from: FunctionId, to: FunctionId) -> bool {
        /// Of any A-MPDU before EHT.
        const MPDUS: usize = 256;
        let window = self.links.holder().rules.config.block_ack_window as usize;
        self.queued(from, to) >= MPDUS.max(window)
    }

    /// Bytes of these packets.
    pub fn queued_bytes(&self, from: FunctionId, to: FunctionId) -> Bytes {
        let station = &self.links.holder().stations[from];
        let queue = station.peers[station.peer_index(to)].originator.queue();
        Bytes(queue.iter().map(|queued| queued.len().0).sum())
    }

    /// Packets of `len` bytes that one PPDU from `from` to `to` carries at the present rate, and those that the queue holds, if
    /// that is limited.
    pub fn room_of(&self, from: FunctionId, to: FunctionId, len: Bytes) -> (u32, Option<u32>) {
        let station = &self.links.holder().stations[from];
        let originator = &station.peers[station.peer_index(to)].originator;
        (originator.limits().most_packets(len.0 as u32), originator.queue().limit().packets_of(len))
    }

    /// Bytes of the packets at `from` for `to` for which `counts` returns true and that are not settled: queued, on the
    /// air, or waiting for a retransmission. The cost is proportional to the number of packets.
    pub fn unsettled(&self, from: FunctionId, to: FunctionId, counts: impl Fn(&PacketRef) -> bool) -> Bytes {
        let station = &self.links.holder().stations[from];
        let packets = station.peers[station.peer_index(to)].originator.unsettled();
        packets.filter(|packet| counts(packet)).fold(Bytes(0), |sum, packet| sum + packet.len())
    }

    /// Processes everything due by `now`; returns [`Bss::poll_timeout`] after it.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant, holders: &mut Holders) -> Option<Instant> {
        self.links.handle_timeout(now, holders)
    }

    /// When the state of the channel changes next.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.links.poll_timeout()
    }

    /// The next packet passed up. Drain it to `None`.
    #[inline]
    pub fn poll_deliver(&mut self) -> Option<Delivery> {
        self.links.first_mut().outbox.delivered.pop_front()
    }

    /// The next function that took packets from a queue, and the function they are for. Drain it to `None`.
    pub fn poll_drained(&mut self) -> Option<(FunctionId, FunctionId)> {
        self.links.first_mut().outbox.drained.pop()
    }

    /// Gives `function` a NIC that appends frames of compressed ACKs to its acknowledgments, and reports to
    /// [`Bss::poll_interrupt`]; each acknowledgment carries at most `appended_limit` bytes, if given.
    pub fn enable_hack(&mut self, function: FunctionId, appended_limit: Option<u32>) {
        let station = &mut self.links.holder_mut().stations[function];
        let mut nic = Nic::new(station.peers.len());
        if let Some(bytes) = appended_limit {
            nic.limit_appended(bytes as usize);
        }
        station.hook = AckHook::Hack(nic);
        for peer in &mut station.peers {
            peer.originator.report_acks();
        }
    }

    /// Airtime of ACKs from `function` to `peer`.
    pub fn ack_times(&self, function: FunctionId, peer: FunctionId) -> AckTimes {
        let cell = self.links.holder();
        let (rules, station) = (&cell.rules, &cell.stations[function]);
        let edca = rules.config.edca(self.station(function), station.category);
        AckTimes::new(rules, &edca, &station.peers[station.peer_index(peer)].originator)
    }

    /// Enables reports to [`Bss::poll_interrupt`] about the fate of each packet that `function` sends.
    pub fn report_fates(&mut self, function: FunctionId) {
        for peer in &mut self.links.holder_mut().stations[function].peers {
            peer.originator.report_fates();
        }
    }

    /// The NIC of `function`, and the number of its destination `peer`; `None` without TCP/HACK.
    pub fn nic(&mut self, function: FunctionId, peer: FunctionId) -> Option<(&mut Nic, usize)> {
        let station = &mut self.links.holder_mut().stations[function];
        let peer = station.peer_index(peer);
        match &mut station.hook {
            AckHook::Hack(nic) => Some((nic, peer)),
            AckHook::Stock => None,
        }
    }

    /// The next interrupt. Drain it to `None`, before [`Bss::poll_deliver`].
    pub fn poll_interrupt(&mut self) -> Option<Interrupt> {
        self.links.first_mut().outbox.interrupts.pop_front()
    }

    /// Removes packets that `from` has queued for `to` but not started to send; returns their number.
    pub fn retract(
        &mut self,
        from: FunctionId,
        to: FunctionId,
        unwanted: impl FnMut(&PacketRef) -> bool,
        holders: &mut Holders,
    ) -> usize {
        let station = &mut self.links.holder_mut().stations[from];
        let peer = station.peer_index(to);
        let retracted = station.peers[peer].originator.retract(unwanted, holders);
        station.counters.retracted += retracted as u64;
        retracted
    }

    /// The next recorded frame, after [`Bss::record_air`]. Drain it to `None`.
    pub fn poll_air(&mut self) -> Option<AirFrame<PacketRef>> {
        self.links.iter_mut().find_map(|link| link.cell.air.poll())
    }

    /// Starts measuring at `at`: discards earlier queueing delays, queue lengths, PPDU sizes and turns.
    pub fn start_measuring(&mut self, at: Instant) {
        let stations = self.links.iter_mut().flat_map(|link| link.cell.stations.iter_mut());
        stations.for_each(|station| station.start_measuring(at));
        self.links.start_measuring(at);
    }

    /// Packets accepted by `station` and neither acknowledged nor given up.
    pub fn backlog(&self, station: StationId) -> usize {
        self.links.holder().stations.functions_of(station).map(Station::backlog).sum()
    }

    /// Verifies that all packets are accounted for, and that every waiting packet will be sent.
    ///
    /// # Errors
    /// The station and the violated invariant.
    pub fn check(&self) -> Result<(), String> {
        self.links.check()
    }

    /// Shows `see` every packet that it holds, once for each holder.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        for cell in self.links.cells() {
            for peer in cell.stations.iter().flat_map(|station| &station.peers) {
                peer.originator.each_held(see);
                peer.recipient.each_held(see);
            }
            cell.outbox.each_held(see);
            cell.air.each_held(see);
        }
    }

    // --- Reports ----------------------------------------------------------------------------

    /// The functions of `station` on all links.
    fn functions_of(&self, station: StationId) -> impl Iterator<Item = &Station> {
        self.links.cells().flat_map(move |cell| cell.stations.functions_of(station))
    }

    /// Airtime in the measured window before `now`, on the first link.
    pub fn airtime(&self, now: Instant) -> Airtime {
        self.airtime_on(LinkId::FIRST, now)
    }

    /// Airtime in the measured window before `now`, on `link`.
    pub fn airtime_on(&self, link: LinkId, now: Instant) -> Airtime {
        let Link { cell, medium } = self.links.link(link.index());
        cell.accounts.airtime(medium.present_use(cell), now)
    }

    /// Time up to which [`Bss::airtime_on`] is known: the end of the current PPDU, at least `now`.
    pub fn airtime_until(&self, link: LinkId, now: Instant) -> Instant {
        self.links.link(link.index()).cell.accounts.booked_until().max(now)
    }

    /// Time in which the common window of several links kept `function` from sending on `link`, before `now`.
    pub fn stalled(&self, function: FunctionId, link: LinkId, now: Instant) -> Duration {
        self.links.link(link.index()).cell.stations[function].stall.until(now)
    }

    /// What clients with one radio for several links could not hear before `now`.
    pub fn radio_times(&self, now: Instant) -> RadioTimes {
        self.links.radios().map_or_else(RadioTimes::default, |radios| radios.times(now))
    }

    /// The share of `station` in that time.
    pub fn station_airtime(&self, station: StationId) -> StationAirtime {
        let each = self.functions_of(station).map(|function| function.airtime);
        each.reduce(|sum, more| sum.plus(&more)).unwrap_or_default()
    }

    /// What happened on `link` since the start.
    pub fn link_counts(&self, link: LinkId) -> LinkCounts {
        let cell = &self.links.link(link.index()).cell;
        let stations = cell.stations.iter().map(|station| station.counters);
        LinkCounts {
            accesses: cell.accounts.accesses,
            collisions: cell.accounts.collisions,
            stations: stations.reduce(|sum, more| sum.plus(&more)).unwrap_or_default(),
        }
    }

    /// The links, in their order.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.count() as u8).map(LinkId)
    }

    /// Channel accesses; a collision counts once.
    pub fn accesses(&self) -> u64 {
        self.links.cells().map(|cell| cell.accounts.accesses).sum()
    }

    /// Accesses by two or more stations at the same time.
    pub fn collisions(&self) -> u64 {
        self.links.cells().map(|cell| cell.accounts.collisions).sum()
    }

    /// Counters of a station.
    pub fn counters(&self, station: StationId) -> StationCounters {
        let each = self.functions_of(station).map(|function| function.counters);
        each.reduce(|sum, more| sum.plus(&more)).unwrap_or_default()
    }

    /// Counters of a station in one category; in the first one in use if `category` is not.
    pub fn counters_in(&self, station: StationId, category: AccessCategory) -> StationCounters {
        let function = self.function(station, category);
        let each = self.links.cells().map(|cell| cell.stations[function].counters);
        each.reduce(|sum, more| sum.plus(&more)).unwrap_or_default()
    }

    /// Time from queueing to first transmission at a station, in microseconds.
    pub fn queueing_delay_us(&self, station: StationId) -> Histogram<u64> {
        let mut all = Histogram::new(2).expect("the library allows 2 digits");
        for function in self.functions_of(station) {
            all.add(function.waits.histogram()).expect("the histogram grows as needed");
        }
        all
    }

    /// Time that packets from `from` to `to` waited in reorder buffers, of those that waited, in microseconds.
    pub fn reorder_delay_us(&self, from: StationId, to: StationId) -> Histogram<u64> {
        let mut all = Histogram::new(2).expect("the library allows 2 digits");
        let numbers = self.functions();
        let peers = self.links.holder().stations.functions_of(to).flat_map(|function| &function.peers);
        for peer in peers.filter(|peer| numbers.station(peer.id) == from) {
            if let Recipient::Block(recipient) = &peer.recipient {
                all.add(recipient.holds().histogram()).expect("the histogram grows as needed");
            }
        }
        all
    }

    /// Sum of the times from queueing to first transmission at a station; divided by the length of a window it is, by
    /// Little's law, the mean number of packets in its queues.
    pub fn queueing_time(&self, station: StationId) -> Duration {
        self.functions_of(station).map(|function| function.queueing_time).sum()
    }

    /// Most packets in one queue of a station at the same time.
    pub fn queue_peak(&self, station: StationId) -> usize {
        let peers = self.links.holder().stations.functions_of(station).flat_map(|function| &function.peers);
        peers.map(|peer| peer.originator.queue().peak()).max().unwrap_or(0)
    }

    /// How `from` served `to` until `now`; empty if they exchange no packets.
    pub fn turns(&self, from: StationId, to: StationId, now: Instant) -> Turns {
        let numbers = self.functions();
        let peers = self.functions_of(from).flat_map(|function| &function.peers);
        let to = peers.filter(|peer| numbers.station(peer.id) == to);
        to.fold(Turns::default(), |sum, peer| sum.plus(&peer.log.until(now)))
    }

    /// Packets marked instead of dropped by a station's queues, since the start.
    pub fn queue_marks(&self, station: StationId) -> u64 {
        let peers = self.links.holder().stations.functions_of(station).flat_map(|function| &function.peers);
        peers.map(|peer| peer.originator.queue().marks()).sum()
    }

    /// Data PPDUs sent by a station, by number of MPDUs: entry 0 counts PPDUs of one MPDU.
    pub fn ppdu_sizes(&self, station: StationId) -> Vec<u64> {
        let longest = self.functions_of(station).map(|function| function.ppdu_sizes.len()).max();
        let mut sizes = vec![0; longest.unwrap_or(0)];
        for function in self.functions_of(station) {
            sizes.iter_mut().zip(&function.ppdu_sizes).for_each(|(sum, more)| *sum += more);
        }
        sizes
    }
}
