//! A basic service set: stations around one channel on which everybody hears everybody.
//!
//! Between exchanges the channel is idle and one event is pending: the earliest end of a backoff
//! (or a beacon). Equal ends collide. Cost follows channel accesses, not slots or idle stations.

use std::collections::VecDeque;

use tacit_proto::hack::Nic;
use tacit_proto::units::{Bytes, Duration, Instant};

use super::air::{AirFrame, StationId};
use super::airtime::{AirtimeLedger, AirtimeUse};
use super::build::build_stations;
use super::category::AccessCategory;
use super::config::BssConfig;
use super::interrupt::Interrupt;
use super::mac::access::IdlePeriod;
use super::mac::ack_hook::AckHook;
use super::mac::block_ack::Recipient;
use super::mac::exchange::{Exchange, Phase};
use super::mac::hidden::Hearing;
use super::mac::protection::Handshake;
use super::mac::station::{Outgoing, Station};
use super::mac::txop::{Reservation, may_go_on};
use super::phy::Phy;
use crate::payload::Payload;

/// A packet passed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// Where it arrived.
    pub station: StationId,
    /// Who sent it.
    pub from: StationId,
    /// The packet.
    pub payload: P,
}

/// A basic service set at work.
#[derive(Clone, Debug)]
pub struct Bss<P> {
    pub(super) phy: &'static Phy,
    pub(super) config: BssConfig,
    pub(super) stations: Vec<Station<P>>,
    pub(super) phase: Phase,
    pub(super) idle: IdlePeriod,
    pub(super) idle_since: Instant,
    /// Until when the NAV of stations that had no part in the last exchange runs.
    pub(super) reserved_until: Instant,
    /// Stations that contend or count down.
    pub(super) active: Vec<StationId>,
    /// The earliest transmission, while the channel is idle.
    pub(super) next_access: Option<Instant>,
    /// When the next beacon is due.
    pub(super) next_beacon: Option<Instant>,
    /// There are stations whose TXOPs hold more than an exchange.
    pub(super) may_go_on: bool,
    /// What a TXOP reserved beyond its end.
    pub(super) reservation: Reservation,
    /// No gap in a reorder buffer times out before this.
    pub(super) reorder_check: Option<Instant>,
    /// Who won the present access and with what; kept for its capacity.
    pub(super) winners: Vec<(StationId, Outgoing)>,
    /// Functions whose backoff ended together with that of a more urgent one of their station; kept for its
    /// capacity.
    pub(super) yielding: Vec<StationId>,
    /// The channel as each station hears it, where some do not hear others; `phase`, `idle` and `active` are
    /// not used then.
    pub(super) hearing: Option<Box<Hearing>>,
    /// The exchanges that collided; kept for its capacity.
    pub(super) colliding: Vec<Exchange>,
    pub(super) delivered: VecDeque<Delivery<P>>,
    pub(super) drained: Vec<(StationId, StationId)>,
    pub(super) interrupts: VecDeque<Interrupt<P>>,
    /// What rides on the acknowledgment in the air.
    pub(super) appended: Vec<u8>,
    pub(super) air: Option<VecDeque<AirFrame<P>>>,
    pub(super) ampdu_reference: u32,
    pub(super) ledger: AirtimeLedger,
    /// Acquisition booked since the last access: the next winner is charged for it.
    pub(super) waited: Duration,
    pub(super) accesses: u64,
    pub(super) collisions: u64,
}

impl<P: Payload> Bss<P> {
    /// A channel with nothing queued. Random streams are named after `seed`, `name` and
    /// `station_names` (the access point first); results count from `measure_from` to `end`.
    ///
    /// # Panics
    /// When there is not one name per station, the access point included, or no access category.
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
        let phy = config.phy();
        let stations = build_stations(phy, &config, seed, name, station_names);
        Self {
            phy,
            may_go_on: may_go_on(&config, &stations),
            stations,
            phase: Phase::Idle,
            idle: IdlePeriod {
                number: 0,
                countdown_from: Instant::ZERO + phy.aifs(),
                exempt_countdown_from: Instant::ZERO + phy.aifs(),
                resumed: false,
            },
            idle_since: Instant::ZERO,
            reserved_until: Instant::ZERO,
            active: Vec::new(),
            next_access: None,
            next_beacon: config.beacon_interval.map(|interval| Instant::ZERO + interval),
            reservation: Reservation::default(),
            reorder_check: None,
            winners: Vec::new(),
            yielding: Vec::new(),
            hearing: Hearing::new(&config, phy),
            colliding: Vec::new(),
            delivered: VecDeque::new(),
            drained: Vec::new(),
            interrupts: VecDeque::new(),
            appended: Vec::new(),
            air: None,
            ampdu_reference: 0,
            ledger: AirtimeLedger::new(measure.0, measure.1),
            waited: Duration::ZERO,
            accesses: 0,
            collisions: 0,
            config,
        }
    }

    /// Keeps every frame from now on for [`Bss::poll_air`].
    pub fn record_air(&mut self) {
        self.air.get_or_insert_with(VecDeque::new);
    }

    /// Stations, the access point included.
    #[inline]
    pub fn station_count(&self) -> u16 {
        self.config.stations.len() as u16 + 1
    }

    /// The number of what `station` has for `category`; where that is not in use for best effort, or the first
    /// that is.
    pub fn function(&self, station: StationId, category: AccessCategory) -> StationId {
        let place_of = |wanted| self.config.categories.iter().position(|known| *known == wanted);
        let place = place_of(category).or_else(|| place_of(AccessCategory::BestEffort)).unwrap_or(0);
        StationId(station.0 + place as u16 * self.station_count())
    }

    /// The station that `function` belongs to.
    #[inline]
    pub fn station(&self, function: StationId) -> StationId {
        // Spares a division where there is one category.
        if function.0 < self.station_count() {
            function
        } else {
            StationId(function.0 % self.station_count())
        }
    }

    /// Access categories in use.
    #[inline]
    pub fn categories(&self) -> &[AccessCategory] {
        &self.config.categories
    }

    /// What `station` has for each category.
    pub(super) fn functions(&self, station: StationId) -> impl Iterator<Item = &Station<P>> {
        self.stations[self.station(station).index()..].iter().step_by(usize::from(self.station_count()))
    }

    /// Queues `payload` at `from` for `to`; returns false when the queue dropped it.
    ///
    /// # Panics
    /// When two clients are named: traffic goes through the access point.
    // Always: a call here moves each packet once more.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Instant, from: StationId, to: StationId, payload: P) -> bool {
        let config = &self.config;
        let station = &mut self.stations[from.index()];
        let filter = if station.is_access_point() { config.ap_ack_filter } else { config.station_ack_filter };
        assert!(station.reaches(to), "traffic goes through the access point");
        let had_traffic = station.has_traffic();
        let peer = station.peer_index(to);
        if !station.enqueue(now, peer, filter, payload) {
            return false;
        }
        if !had_traffic && !station.transmitting {
            self.start_contending(now, from);
        }
        true
    }

    /// True when `from` would take a packet of `len` octets for `to`.
    pub fn has_room(&self, from: StationId, to: StationId, len: Bytes) -> bool {
        let station = &self.stations[from.index()];
        station.peers[station.peer_index(to)].originator.queue().has_room(len)
    }

    /// Packets queued at `from` for `to` that have no sequence number yet.
    pub fn queued(&self, from: StationId, to: StationId) -> usize {
        let station = &self.stations[from.index()];
        station.peers[station.peer_index(to)].originator.queue().len()
    }

    /// Does everything due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(at) = self.poll_timeout() {
            if at > now {
                break;
            }
            self.step(at);
        }
    }

    /// When the channel changes next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let Some(hearing) = &self.hearing {
            let beacon = self.next_beacon.filter(|_| hearing.next.is_none());
            return earliest(earliest(hearing.next, beacon), self.reorder_check);
        }
        let channel = match &self.phase {
            Phase::Idle => earliest(self.next_access, self.beacon_at()),
            Phase::Protection { until, .. } => Some(*until),
            Phase::Transmission(exchange) => Some(exchange.end),
            Phase::Response { exchange, .. } => Some(exchange.response_end),
            Phase::Collision { until } | Phase::Broadcast { until } => Some(*until),
        };
        earliest(channel, self.reorder_check)
    }

    /// The next packet passed up. Drain it to `None`.
    #[inline]
    pub fn poll_deliver(&mut self) -> Option<Delivery<P>> {
        self.delivered.pop_front()
    }

    /// The next station that took packets from its queue for another. Drain it to `None`.
    pub fn poll_drained(&mut self) -> Option<(StationId, StationId)> {
        self.drained.pop()
    }

    /// Gives `station` a NIC that lets frames of compressed ACKs ride on its acknowledgments, and
    /// reports to [`Bss::poll_interrupt`]; each carries at most `appended_limit` octets, if given.
    pub fn enable_hack(&mut self, station: StationId, appended_limit: Option<u32>) {
        let station = &mut self.stations[station.index()];
        let mut nic = Nic::new(station.peers.len());
        if let Some(octets) = appended_limit {
            nic.limit_appended(octets as usize);
        }
        station.hook = AckHook::Hack(nic);
        for peer in &mut station.peers {
            peer.originator.report_acks();
        }
    }

    /// Reports to [`Bss::poll_interrupt`] what becomes of each packet that `station` sends.
    pub fn report_fates(&mut self, station: StationId) {
        for peer in &mut self.stations[station.index()].peers {
            peer.originator.fates.ask();
        }
    }

    /// The NIC of `station`, and the number of its destination `peer`; `None` for a stock one.
    pub fn nic(&mut self, station: StationId, peer: StationId) -> Option<(&mut Nic, usize)> {
        let station = &mut self.stations[station.index()];
        let peer = station.peer_index(peer);
        match &mut station.hook {
            AckHook::Hack(nic) => Some((nic, peer)),
            AckHook::Stock => None,
        }
    }

    /// The next interrupt. Drain it to `None`, before [`Bss::poll_deliver`].
    pub fn poll_interrupt(&mut self) -> Option<Interrupt<P>> {
        self.interrupts.pop_front()
    }

    /// Takes back packets that `from` has queued for `to` and not begun to send; returns how many.
    pub fn retract(&mut self, from: StationId, to: StationId, unwanted: impl FnMut(&P) -> bool) -> usize {
        let station = &mut self.stations[from.index()];
        let peer = station.peer_index(to);
        let retracted = station.peers[peer].originator.retract(unwanted);
        station.counters.retracted += retracted as u64;
        retracted
    }

    /// The next frame heard, after [`Bss::record_air`]. Drain it to `None`.
    pub fn poll_air(&mut self) -> Option<AirFrame<P>> {
        let mut frame = self.air.as_mut()?.pop_front()?;
        frame.category = self.stations[frame.transmitter.index()].category;
        frame.transmitter = self.station(frame.transmitter);
        frame.receiver = frame.receiver.map(|receiver| self.station(receiver));
        Some(frame)
    }

    /// Measuring starts: forgets queueing delays, queue lengths and sizes of PPDUs so far.
    pub fn start_measuring(&mut self) {
        self.stations.iter_mut().for_each(Station::start_measuring);
    }

    /// Packets accepted by `station` and not yet acknowledged or given up.
    pub fn backlog(&self, station: StationId) -> usize {
        self.functions(station).map(Station::backlog).sum()
    }

    fn step(&mut self, at: Instant) {
        if self.reorder_check.is_some_and(|check| check <= at) {
            self.give_up_gaps(at);
            return;
        }
        if self.hearing.is_some() {
            self.hidden_step(at);
            return;
        }
        match self.phase {
            Phase::Idle => {
                // A beacon goes first: it waits only PIFS and has no backoff.
                if self.beacon_at().is_some_and(|beacon| beacon <= at) {
                    self.start_beacon(at);
                } else {
                    self.access(at);
                }
            }
            Phase::Protection { exchange, step, until } => self.protection_ended(&exchange, step, until),
            Phase::Transmission(exchange) => self.transmission_ended(&exchange),
            Phase::Response { exchange, lost } => self.response_ended(&exchange, lost),
            Phase::Collision { until } => self.collision_ended(until),
            Phase::Broadcast { until } => self.go_idle(until, until),
        }
    }

    /// When the beacon that is due next can go out, while the channel is idle.
    fn beacon_at(&self) -> Option<Instant> {
        self.next_beacon.map(|target| target.max(self.idle_since + self.phy.pifs()))
    }

    /// Passes up what has waited behind a gap for too long.
    fn give_up_gaps(&mut self, at: Instant) {
        let timeout = self.config.reorder_timeout;
        let delivered = &mut self.delivered;
        self.reorder_check = None;
        for station in &mut self.stations {
            let id = station.id;
            for peer in &mut station.peers {
                let Recipient::Block(recipient) = &mut peer.recipient else { continue };
                if recipient.gap_since().is_some_and(|since| since + timeout <= at) {
                    let (station, from) = (id, peer.id);
                    let mut pass_up = |payload| delivered.push_back(Delivery { station, from, payload });
                    recipient.give_up_gap(at, &mut pass_up);
                }
                let next = recipient.gap_since().map(|since| since + timeout);
                self.reorder_check = earliest(self.reorder_check, next);
            }
        }
    }

    // --- Contention -------------------------------------------------------------------------

    /// A station without traffic got some.
    fn start_contending(&mut self, now: Instant, id: StationId) {
        if self.hearing.is_some() {
            self.hidden_start_contending(now, id);
            return;
        }
        let on_air = !matches!(self.phase, Phase::Idle);
        if !on_air {
            // What was idle so far becomes acquisition from here on.
            self.book_idle(self.idle_use_without(id), now);
        }
        let slot = self.phy.slot;
        let station = &mut self.stations[id.index()];
        let counting = station.active;
        if !counting {
            station.active = true;
            self.active.push(id);
        }
        // A NAV makes the medium busy though nothing is on it (802.11-2020 clauses 10.3.2.1 and 10.3.4.2); who had part in
        // the exchange has none.
        let reserved = now < self.reserved_until && !station.contention.failed_before(self.idle.number);
        if on_air || reserved {
            if !counting {
                station.contention.draw();
            }
        } else if !counting || station.contention.transmits_at(&self.idle, slot) <= now {
            station.contention.start_at_once(now);
        }
        if on_air {
            return;
        }
        let at = station.contention.transmits_at(&self.idle, slot);
        self.next_access = earliest(self.next_access, Some(at));
    }

    /// The earliest end of a backoff wins; equal ends collide.
    fn access(&mut self, at: Instant) {
        self.book_idle(AirtimeUse::Acquisition, at);
        if self.config.categories.len() > 1 {
            self.find_yielding(at);
        }
        let mut winners = std::mem::take(&mut self.winners);
        winners.clear();
        let yielding = &self.yielding;
        let (phy, idle, lifetime) = (self.phy, self.idle, self.config.lifetime);
        let protection = self.config.protection;
        let stations = &mut self.stations;
        let drained = &mut self.drained;
        self.active.retain(|id| {
            let station = &mut stations[id.index()];
            let wins = station.has_traffic() && station.contention.transmits_at(&idle, phy.slot) <= at;
            if !wins {
                station.contention.freeze(&idle, at, phy);
                station.active = station.has_traffic() || !station.contention.is_over();
                return station.active;
            }
            if yielding.contains(id) {
                station.counters.internal_collisions += 1;
                station.contention.yielded();
                return true;
            }
            let outgoing = station.next_outgoing(at, lifetime);
            station.report_drained(drained);
            station.active = outgoing.is_some();
            if let Some(outgoing) = outgoing {
                station.transmitting = true;
                // Behind an RTS it is not on the air yet.
                if station.handshake(protection, &outgoing) != Handshake::Rts {
                    station.count_access(&outgoing, phy);
                }
                winners.push((*id, outgoing));
            }
            station.active
        });
        self.charge_wait(&winners);
        match winners.as_slice() {
            // Everything that waited was too old.
            [] => self.go_idle_again(at),
            [(id, outgoing)] => self.start_transmission(at, *id, *outgoing),
            several => self.start_collision(at, several),
        }
        self.winners = winners;
    }

    /// Finds the functions that give way at `at` to a more urgent one of the same station.
    fn find_yielding(&mut self, at: Instant) {
        let mut yielding = std::mem::take(&mut self.yielding);
        yielding.clear();
        let due = |id: &&StationId| {
            let station = &self.stations[id.index()];
            station.has_traffic() && station.contention.transmits_at(&self.idle, self.phy.slot) <= at
        };
        for id in self.active.iter().filter(due) {
            let category = self.stations[id.index()].category;
            let beaten = self.active.iter().filter(due).any(|other| {
                self.station(*other) == self.station(*id) && self.stations[other.index()].category > category
            });
            if beaten {
                yielding.push(*id);
            }
        }
        self.yielding = yielding;
    }

    /// The channel becomes idle at `since`; bystanders' NAVs run until `reserved_until`.
    pub(super) fn go_idle(&mut self, since: Instant, reserved_until: Instant) {
        self.go_idle_for(since, reserved_until, reserved_until + self.phy.aifs());
    }

    /// The same, with another time from which bystanders count down.
    pub(super) fn go_idle_for(&mut self, since: Instant, reserved_until: Instant, countdown_from: Instant) {
        self.phase = Phase::Idle;
        self.idle_since = since;
        self.reserved_until = reserved_until;
        self.idle = IdlePeriod {
            number: self.idle.number + 1,
            countdown_from,
            exempt_countdown_from: since + self.phy.aifs(),
            resumed: false,
        };
        if self.reservation.until > since {
            self.keep_reservation();
        }
        self.find_next_access();
    }

    /// The channel stays idle though an access was due at `at`. Where the slot of an access counts, bystanders have
    /// counted it.
    fn go_idle_again(&mut self, at: Instant) {
        let counted = if self.phy.counts_busy_slot { self.phy.slot } else { Duration::ZERO };
        let countdown_from = (at + counted).max(self.idle.countdown_from);
        self.idle.countdown_from = countdown_from;
        self.idle.resumed = true;
        self.idle.exempt_countdown_from = countdown_from.max(self.idle.exempt_countdown_from);
        self.find_next_access();
    }

    fn find_next_access(&mut self) {
        self.next_access = self
            .active
            .iter()
            .map(|id| &self.stations[id.index()])
            .filter(|station| station.has_traffic())
            .map(|station| station.contention.transmits_at(&self.idle, self.phy.slot))
            .min();
    }

    /// Books idle time as `what`, and keeps in mind what somebody waited of it.
    pub(super) fn book_idle(&mut self, what: AirtimeUse, until: Instant) {
        let spent = self.ledger.book(what, until);
        if what == AirtimeUse::Acquisition {
            self.waited += spent;
        }
    }

    /// The wait is over: those who have the channel now are charged for it.
    pub(super) fn charge_wait(&mut self, winners: &[(StationId, Outgoing)]) {
        if winners.is_empty() {
            return;
        }
        for ((id, outgoing), share) in winners.iter().zip(even_shares(self.waited, winners.len())) {
            let class = outgoing.class();
            self.stations[id.index()].airtime.spend(class, AirtimeUse::Acquisition, share);
        }
        self.waited = Duration::ZERO;
    }

    /// What idle time is booked as: somebody waits, or nobody does.
    pub(super) fn idle_use(&self) -> AirtimeUse {
        if let Some(hearing) = &self.hearing {
            return self.heard_use(hearing, None);
        }
        if self.next_access.is_some() { AirtimeUse::Acquisition } else { AirtimeUse::Idle }
    }

    /// The same as if `newcomer` had no traffic yet.
    fn idle_use_without(&self, newcomer: StationId) -> AirtimeUse {
        let waits = |id: &StationId| *id != newcomer && self.stations[id.index()].has_traffic();
        if self.active.iter().any(waits) { AirtimeUse::Acquisition } else { AirtimeUse::Idle }
    }
}

/// `time` in `parts` equal parts; what does not divide goes to the first.
pub(super) fn even_shares(time: Duration, parts: usize) -> impl Iterator<Item = Duration> {
    let share = time / parts as u64;
    let rest = time - share * parts as u64;
    (0..parts).map(move |part| if part == 0 { share + rest } else { share })
}

/// The lesser of two that may not be.
pub(super) fn earliest<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
