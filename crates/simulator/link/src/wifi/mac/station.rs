//! A station: its contention, its destinations, and its knowledge of the stations that send to it.

use std::collections::VecDeque;

use tacit_packet::units::{Bytes, Duration, Instant};

use super::access::{Contention, IdlePeriod};
use super::ack_hook::AckHook;
use super::exchange::Exchange;
use super::originator::{Delays, Need, Originator, Room, Settled, UnitPart};
use super::peer::Peer;
use super::plan::Outgoing;
use super::protection::{Handshake, Step};
use super::random_access::RandomAccess;
use super::rules::{HoldLimits, Rules};
use crate::packet::{Holders, PacketRef, PayloadClass};
use crate::queue::AckFilter;
use crate::waits::Waits;
use crate::wifi::airtime::StationAirtime;
use crate::wifi::category::AccessCategory;
use crate::wifi::config::ApScheduler;
use crate::wifi::counters::StationCounters;
use crate::wifi::functions::{FunctionId, Peers};
use crate::wifi::mu_scheduler::SchedulerHandle;
use crate::wifi::phy::Phy;

/// A station at work, or its function for one access category where there are several.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    pub id: FunctionId,
    /// The functions it exchanges packets with: those of [`Station::peers`].
    reach: Peers,
    pub category: AccessCategory,
    pub contention: Contention,
    /// How long it may hold the channel.
    pub hold_limits: HoldLimits,
    /// When its present TXOP must be over, where it does.
    pub burst_until: Instant,
    /// Of the access point: the clients. Of a client: the access point and the peers of its direct links.
    pub peers: Vec<Peer>,
    /// Peers that have something to be sent, in the order of their turn.
    turns: VecDeque<usize>,
    /// Whose turn the present TXOP is.
    turn_of: usize,
    /// Which of them is next.
    pub scheduler: ApScheduler,
    /// Scheduler from outside that chooses several of them.
    pub mu_scheduler: Option<SchedulerHandle>,
    /// Peers from whose queues packets were taken, be it only to drop them.
    drained: Vec<usize>,
    pub hook: AckHook,
    pub counters: StationCounters,
    pub airtime: StationAirtime,
    /// Queueing delays, within 1 %.
    pub waits: Waits<8>,
    /// Sum of all queueing delays.
    pub queueing_time: Duration,
    /// PPDUs of data by the number of their MPDUs; entry 0 stands for one.
    pub ppdu_sizes: Vec<u64>,
    /// Contends, or counts down after a transmission: on the list of active stations.
    pub active: bool,
    /// Takes part in the exchange on the air; its backoff is drawn at the end of it.
    pub transmitting: bool,
    /// The access point asks clients for their data at its next access.
    pub trigger_due: bool,
    /// Its last access was to ask.
    pub triggered_last: bool,
    /// Whom it asks first where it cannot ask all at once.
    pub next_to_trigger: usize,
    /// How it takes units that are anybody's, where a trigger may offer any.
    pub random_access: Option<Box<RandomAccess>>,
    /// Time in which the common window of several links kept it from sending.
    pub stall: StallClock,
}

/// What the use of the common queue by another link means for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Following {
    /// It has something to send and had nothing.
    Contends,
    /// It has nothing to send any more.
    Stops,
}

/// Measures time in stalls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StallClock {
    since: Option<Instant>,
    total: Duration,
}

impl StallClock {
    /// From `at` on the function is stalled, or it is not.
    pub fn note(&mut self, at: Instant, is_stalled: bool) {
        if let Some(since) = self.since.take() {
            self.total += at.saturating_since(since);
        }
        self.since = is_stalled.then_some(at);
    }

    /// Time in stalls until `now`.
    pub fn until(&self, now: Instant) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }

    /// Measures from `at` on.
    pub fn start_measuring(&mut self, at: Instant) {
        *self = Self { since: self.since.map(|_| at), total: Duration::ZERO };
    }
}

impl Station {
    pub fn new(
        id: FunctionId,
        reach: Peers,
        category: AccessCategory,
        contention: Contention,
        peers: Vec<Peer>,
        max_mpdus: u32,
    ) -> Self {
        let streams = peers.iter().map(|peer| peer.originator.streams().count()).max().unwrap_or(1);
        Self {
            id,
            reach,
            category,
            contention,
            hold_limits: HoldLimits::default(),
            burst_until: Instant::ZERO,
            turns: VecDeque::with_capacity(peers.len()),
            turn_of: 0,
            scheduler: ApScheduler::RoundRobin,
            mu_scheduler: None,
            drained: Vec::with_capacity(peers.len()),
            peers,
            hook: AckHook::default(),
            counters: StationCounters::default(),
            airtime: StationAirtime::default(),
            waits: Waits::new(),
            queueing_time: Duration::ZERO,
            ppdu_sizes: vec![0; max_mpdus as usize * streams],
            active: false,
            transmitting: false,
            trigger_due: false,
            triggered_last: false,
            next_to_trigger: 0,
            random_access: None,
            stall: StallClock::default(),
        }
    }

    /// True for a function of the access point.
    pub fn is_access_point(&self) -> bool {
        matches!(self.reach, Peers::Clients { .. })
    }

    /// True when it exchanges packets with `other`.
    pub fn reaches(&self, other: FunctionId) -> bool {
        self.reach.contains(other)
    }

    /// Position of `peer` in [`Station::peers`].
    pub fn peer_index(&self, peer: FunctionId) -> usize {
        self.reach.index(peer)
    }

    /// True when something waits to be sent.
    pub fn has_traffic(&self) -> bool {
        self.has_data() || self.trigger_due
    }

    /// True when it has something to send to more than one peer.
    pub fn has_data_for_several(&self) -> bool {
        self.turns.len() > 1
    }

    /// True when it has something to send itself.
    pub fn has_data(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Queues `payload` for a peer behind `filter`; false when the queue dropped it.
    pub fn enqueue(
        &mut self,
        now: Instant,
        peer: usize,
        filter: AckFilter,
        packet: PacketRef,
        holders: &mut Holders,
    ) -> bool {
        let originator = &mut self.peers[peer].originator;
        let (taken, discarded) = if filter == AckFilter::Off {
            originator.enqueue(now, packet, holders)
        } else {
            let (taken, discarded, filtered) = originator.enqueue_filtered(now, filter, packet, holders);
            self.counters.filtered_acks += filtered;
            (taken, discarded)
        };
        self.counters.queue_discards += u64::from(discarded);
        if !taken {
            holders.release(packet);
            self.counters.queue_drops += 1;
            return false;
        }
        self.counters.accepted += 1;
        if !self.peers[peer].ready {
            self.take_turn(peer, now);
        }
        true
    }

    /// Puts a peer in the round-robin if it needs anything: behind the others, or before them if it needs a request or airtime decides.
    fn take_turn(&mut self, peer: usize, at: Instant) {
        self.take_turn_for(self.peers[peer].originator.need(), peer, at);
    }

    fn take_turn_for(&mut self, need: Need, peer: usize, at: Instant) {
        let entry = &mut self.peers[peer];
        if entry.ready {
            // A packet that came while the PPDU was on the air, with nothing behind it, put the peer in line as one that needs data.
            if need == Need::BlockAckRequest {
                self.turns.retain(|turn| *turn != peer);
                self.turns.push_front(peer);
            }
            return;
        }
        match need {
            Need::Nothing => return,
            // A peer that had its share goes behind the others when its turn comes.
            Need::Data if self.scheduler == ApScheduler::Airtime => self.turns.push_front(peer),
            Need::Data => self.turns.push_back(peer),
            Need::BlockAckRequest | Need::RepairRequest => self.turns.push_front(peer),
        }
        entry.enter(at);
    }

    /// The queues and windows were used until `at`. They are those of `there`, the function on the link that holds them, or
    /// its own. Returns whether it now has to contend for the channel, or no longer has to.
    pub fn follow(&mut self, there: Option<&Self>, at: Instant) -> Option<Following> {
        let had_traffic = self.has_traffic();
        let mut is_stalled = false;
        for peer in 0..self.peers.len() {
            let Peer { originator, ready, .. } = &self.peers[peer];
            let (need, ready) = {
                let upper = there.map_or(&originator.upper, |there| &there.peers[peer].originator.upper);
                is_stalled |= originator.is_stalled(upper);
                (originator.need_with(upper), *ready)
            };
            if need != Need::Nothing && !ready {
                self.take_turn_for(need, peer, at);
            } else if need == Need::Nothing && ready {
                let entry = &mut self.peers[peer];
                if self.transmitting && peer == self.turn_of {
                    entry.log.cancel_wait();
                }
                entry.leave(at);
                self.turns.retain(|turn| *turn != peer);
            }
        }
        self.stall.note(at, is_stalled && !self.has_traffic() && !self.transmitting);
        match (had_traffic, self.has_traffic()) {
            (false, true) if !self.transmitting => Some(Following::Contends),
            (true, false) => Some(Following::Stops),
            _ => None,
        }
    }

    /// Something is to be sent to `peer` from `at` on. True when it has to contend for the channel for it.
    pub fn wants_turn(&mut self, peer: usize, at: Instant) -> bool {
        let contends = !self.has_traffic() && !self.transmitting;
        self.take_turn(peer, at);
        contends && self.has_traffic()
    }

    /// Puts a peer that was served out of its turn before the others, if it still needs anything.
    fn keep_turn(&mut self, peer: usize, at: Instant) {
        let entry = &mut self.peers[peer];
        if !entry.ready && entry.originator.need() != Need::Nothing {
            entry.enter(at);
            self.turns.push_front(peer);
        }
    }

    /// Puts together the PPDU for the peer whose turn it is; `None` when nothing is left after all (waiting packets were too old).
    pub fn next_outgoing(
        &mut self,
        now: Instant,
        lifetime: Duration,
        holders: &mut Holders,
    ) -> Option<Outgoing> {
        while let Some(peer) = self.next_turn() {
            self.turn_of = peer;
            let entry = &mut self.peers[peer];
            entry.leave(now);
            entry.needs_whole_channel = false;
            match entry.originator.need() {
                Need::Nothing => {}
                Need::BlockAckRequest => {
                    return Some(Outgoing::BlockAckRequest { peer, class: entry.originator.last_class() });
                }
                Need::RepairRequest => return Some(Outgoing::RepairRequest { peer }),
                Need::Data => {
                    let data = self
                        .data(peer, holders, |originator, delays| originator.build(now, lifetime, delays));
                    if data.is_some() {
                        return data;
                    }
                }
            }
        }
        None
    }

    /// Takes the peers out of the round-robin that come next, up to `most`, as far as they need data and go `together` with the first.
    /// [`Self::serve`] puts back those that are not served.
    pub fn take_ready(
        &mut self,
        most: usize,
        together: impl Fn(&Peer, &Peer) -> bool,
        users: &mut Vec<usize>,
    ) {
        users.clear();
        while users.len() < most
            && let Some(peer) = self.next_turn()
        {
            let entry = &self.peers[peer];
            let first = &self.peers[*users.first().unwrap_or(&peer)];
            if entry.originator.need() != Need::Data || !together(first, entry) {
                self.turns.push_front(peer);
                break;
            }
            users.push(peer);
        }
    }

    /// The first `served` of `users`, which are out of the round-robin, have the TXOP that begins at `at`. The others are next; with fewer
    /// than two served, all are.
    pub fn serve(&mut self, at: Instant, served: usize, users: &mut Vec<usize>) {
        let served = if served < 2 { 0 } else { served };
        users.drain(served..).rev().for_each(|peer| self.turns.push_front(peer));
        self.begin_turns(at, users);
    }

    /// The peers in the round-robin to send to at once, in the order of their turns: as far as they need data and go `together` with the
    /// first. None where the first needs something else.
    pub fn ready_users(&self, together: impl Fn(&Peer, &Peer) -> bool) -> Vec<usize> {
        let Some(first) = self.turns.front().map(|peer| &self.peers[*peer]) else { return Vec::new() };
        if first.originator.need() != Need::Data {
            return Vec::new();
        }
        let goes = |peer: &usize| {
            let entry = &self.peers[*peer];
            entry.originator.need() == Need::Data && together(first, entry)
        };
        self.turns.iter().copied().filter(goes).collect()
    }

    /// Takes `users` out of the round-robin, to send to all of them at once; one alone is next instead.
    pub fn take_chosen(&mut self, at: Instant, users: &mut Vec<usize>) {
        self.turns.retain(|peer| !users.contains(peer));
        if users.len() < 2 {
            users.drain(..).for_each(|peer| self.turns.push_front(peer));
        }
        self.begin_turns(at, users);
    }

    /// `users`, which are out of the round-robin, have the TXOP that begins at `at`, if there are any.
    fn begin_turns(&mut self, at: Instant, users: &[usize]) {
        for peer in users {
            self.peers[*peer].leave(at);
        }
        self.turn_of = users.first().copied().unwrap_or(self.turn_of);
    }

    /// No MPDU for `peer` has room in a part of a PPDU of several users: it goes before the others, alone.
    pub fn defer_to_whole_channel(&mut self, peer: usize, at: Instant) {
        self.peers[peer].needs_whole_channel = true;
        self.keep_turn(peer, at);
    }

    /// Puts the part of `peer` in a PPDU of several users together; see [`Originator::build_in_unit`].
    pub fn data_in_unit(
        &mut self,
        now: Instant,
        lifetime: Duration,
        peer: usize,
        part: UnitPart,
        holders: &mut Holders,
    ) -> Option<Outgoing> {
        let build = |originator: &mut Originator, delays: &mut Delays<'_>| {
            originator.build_in_unit(now, lifetime, part, delays);
        };
        let outgoing = self.data(peer, holders, build)?;
        self.count_outgoing(&outgoing, |_| Duration::ZERO);
        Some(outgoing)
    }

    /// Its data for `peer` in answer to a trigger, out of its turn; see [`Originator::build_in_unit`].
    pub fn triggered(
        &mut self,
        now: Instant,
        lifetime: Duration,
        peer: usize,
        part: UnitPart,
        holders: &mut Holders,
    ) -> Option<Outgoing> {
        if self.peers[peer].originator.need() != Need::Data {
            return None;
        }
        let outgoing = self.data_in_unit(now, lifetime, peer, part, holders);
        let entry = &mut self.peers[peer];
        if entry.ready && (outgoing.is_some() || entry.originator.need() == Need::Nothing) {
            entry.leave(now);
            self.turns.retain(|turn| *turn != peer);
        }
        self.counters.triggered_ppdus += u64::from(outgoing.is_some());
        outgoing
    }

    /// Its access is one with several users.
    pub fn begin_multi_user_access(&mut self) {
        self.active = true;
        self.transmitting = true;
    }

    /// Takes the peer that is next out of the round-robin.
    fn next_turn(&mut self) -> Option<usize> {
        match self.scheduler {
            ApScheduler::RoundRobin => self.turns.pop_front(),
            ApScheduler::FirstComeFirstServed => {
                let peer = self.oldest()?;
                self.turns.retain(|turn| *turn != peer);
                Some(peer)
            }
            ApScheduler::Airtime => self.next_by_airtime(),
        }
    }

    /// The first peer with airtime left; the others get a quantum more and move to the end. Requests do not wait: they
    /// are short, and the recipient waits for them.
    fn next_by_airtime(&mut self) -> Option<usize> {
        let quantum_ns = ApScheduler::AIRTIME_QUANTUM.as_nanos() as i64;
        loop {
            let entry = &mut self.peers[*self.turns.front()?];
            if entry.deficit_ns >= 0 || entry.originator.need() != Need::Data {
                return self.turns.pop_front();
            }
            // One alone is served after all its rounds at once.
            let rounds = if self.turns.len() == 1 { -entry.deficit_ns / quantum_ns + 1 } else { 1 };
            entry.deficit_ns += rounds * quantum_ns;
            self.turns.rotate_left(1);
        }
    }

    /// The data of `exchange`, to or from `peer`, took some of the channel.
    pub fn spend_airtime(&mut self, peer: usize, exchange: &Exchange) {
        if self.scheduler == ApScheduler::Airtime {
            let airtime = exchange.data_time();
            let most_owed = -(ApScheduler::AIRTIME_DEBT.as_nanos() as i64);
            let deficit = &mut self.peers[peer].deficit_ns;
            *deficit = (*deficit - airtime.as_nanos() as i64).max(most_owed);
        }
    }

    /// The peer whose oldest packet has waited longest.
    fn oldest(&self) -> Option<usize> {
        let oldest_at = |peer: &usize| self.peers[*peer].originator.oldest_at();
        self.turns.iter().copied().min_by_key(oldest_at)
    }

    /// The peer that continues the present TXOP.
    fn next_within(&self) -> Option<usize> {
        match self.scheduler {
            ApScheduler::RoundRobin | ApScheduler::Airtime if self.peers[self.turn_of].ready => {
                Some(self.turn_of)
            }
            ApScheduler::RoundRobin | ApScheduler::Airtime => self.turns.front().copied(),
            ApScheduler::FirstComeFirstServed => self.oldest(),
        }
    }

    /// Puts together the next PPDU of a TXOP, if it fits in `room`. A turn is a TXOP, not a PPDU: a peer keeps its turn
    /// while it has packets, and PPDUs to others in the rest do not count as their turns. Otherwise one of two peers
    /// would only get the rests.
    pub fn next_outgoing_within(
        &mut self,
        now: Instant,
        lifetime: Duration,
        room: Room,
        holders: &mut Holders,
    ) -> Option<Outgoing> {
        while let Some(peer) = self.next_within() {
            let outgoing = self.outgoing_within(now, lifetime, peer, room, holders);
            // The rest of the TXOP is too short.
            if outgoing.is_some() || self.peers[peer].ready {
                return outgoing;
            }
        }
        None
    }

    /// Puts together the PPDU that `peer` needs, out of its turn and in `room`; `None` when nothing fits.
    pub fn outgoing_within(
        &mut self,
        now: Instant,
        lifetime: Duration,
        peer: usize,
        room: Room,
        holders: &mut Holders,
    ) -> Option<Outgoing> {
        let originator = &self.peers[peer].originator;
        let outgoing = match originator.need() {
            // A request for repair waits for an access of its own.
            Need::Nothing | Need::RepairRequest => None,
            Need::BlockAckRequest => (originator.request_duration() <= room.time)
                .then(|| Outgoing::BlockAckRequest { peer, class: originator.last_class() }),
            Need::Data => self.data(peer, holders, |originator, delays| {
                originator.build_within(now, lifetime, room, delays);
            }),
        };
        let entry = &mut self.peers[peer];
        if entry.ready && (outgoing.is_some() || entry.originator.need() == Need::Nothing) {
            entry.leave(now);
            self.turns.retain(|turn| *turn != peer);
        }
        outgoing
    }

    /// Data for `peer`, if `build` finds any; books the packets taken from the queue.
    fn data(
        &mut self,
        peer: usize,
        holders: &mut Holders,
        build: impl FnOnce(&mut Originator, &mut Delays<'_>),
    ) -> Option<Outgoing> {
        let mut delays = Delays { holders, waits: &mut self.waits, time: &mut self.queueing_time };
        build(&mut self.peers[peer].originator, &mut delays);
        let plan = self.peers[peer].originator.plan();
        self.counters.mpdus_dropped += u64::from(plan.expired);
        self.counters.expired_unsent += u64::from(plan.expired);
        self.counters.queue_discards += u64::from(plan.discarded);
        if plan.mpdus > 0 || plan.expired > 0 || plan.discarded > 0 {
            self.drained.push(peer);
        }
        (plan.mpdus > 0).then(|| Outgoing::Data { peer, class: plan.class() })
    }

    /// Moves the peers whose queues have more room now to `drained`.
    pub fn report_drained(&mut self, drained: &mut Vec<(FunctionId, FunctionId)>) {
        drained.extend(self.drained.drain(..).map(|peer| (self.id, self.peers[peer].id)));
    }

    /// Another station took the medium at `at`: counts down the elapsed slots of `idle`, and stays on the list of active
    /// stations while it has something to send or slots are left.
    pub fn freeze(&mut self, idle: &IdlePeriod, at: Instant, phy: &Phy) {
        self.contention.freeze(idle, at, phy);
        self.active = self.has_traffic() || !self.contention.is_over();
    }

    /// It had no traffic and now has some, in the period `idle` of a medium that is `busy` for it or not. Returns true if
    /// it was not on the list of active stations.
    pub fn start_contending(&mut self, idle: &IdlePeriod, slot: Duration, now: Instant, busy: bool) -> bool {
        let counting = std::mem::replace(&mut self.active, true);
        if busy {
            if !counting {
                self.contention.draw();
            }
        } else if !counting || self.contention.transmits_at(idle, slot) <= now {
            self.contention.start_at_once(now);
        }
        !counting
    }

    /// A more urgent category of the same station took the access.
    pub fn yield_access(&mut self, retry_limit: u32) {
        self.counters.internal_collisions += 1;
        self.contention.yielded(retry_limit);
    }

    /// Wins an access at `at`; returns its PPDU, `None` when all waiting packets were too old.
    pub fn begin_access(&mut self, at: Instant, rules: &Rules, holders: &mut Holders) -> Option<Outgoing> {
        let outgoing = self.next_outgoing(at, rules.config.lifetime, holders);
        self.active = outgoing.is_some() || self.trigger_due;
        let outgoing = outgoing?;
        self.transmitting = true;
        let originator = &self.peers[outgoing.peer()].originator;
        // Behind an RTS it is not on the air yet.
        if rules.config.protection.handshake(&outgoing, originator) != Handshake::Rts {
            self.count_access(&outgoing, rules.phy);
        }
        Some(outgoing)
    }

    /// The exchange that it begins at `at` with `handshake`, or with that of the protection in use.
    pub fn exchange(
        &self,
        rules: &Rules,
        handshake: Option<Handshake>,
        at: Instant,
        outgoing: Outgoing,
    ) -> Exchange {
        let peer = &self.peers[outgoing.peer()];
        Exchange::behind(rules, handshake, at, (self.id, self.hold_limits), (peer, outgoing))
    }

    /// Books the first frame of a handshake, which `calls` a client with one radio to the link or not.
    pub fn count_handshake(&mut self, step: Step, calls: bool) {
        match step {
            Step::Rts if calls => self.counters.icfs += 1,
            Step::Rts => self.counters.rts += 1,
            Step::CtsToSelf | Step::Cts => self.counters.cts_to_self += 1,
        }
    }

    /// Its exchange is over at `at`.
    pub fn finish(&mut self, exchange: &Exchange, at: Instant) {
        let peer = exchange.peer();
        self.transmitting = false;
        self.peers[peer].log.serve([exchange.begins, at]);
        if exchange.handshake == Handshake::Continued && peer != self.turn_of {
            self.keep_turn(peer, at);
        } else {
            self.take_turn(peer, at);
        }
    }

    /// Verifies that it accounts for each packet it took, by `counters`: its own, or the sum of those on all its links.
    pub fn check_books(&self, counters: &StationCounters) -> Result<(), String> {
        let settled = counters.delivered_first_try
            + counters.delivered_after_retry
            + counters.unacknowledged
            + counters.mpdus_dropped
            + counters.queue_discards
            + counters.retracted
            + counters.filtered_acks;
        let held = self.backlog() as u64;
        if counters.accepted == settled + held {
            return Ok(());
        }
        Err(format!(
            "station {} took {} packets, settled {settled} and holds {held}",
            self.id.index(),
            counters.accepted
        ))
    }

    /// Verifies that it contends for each destination that it holds packets for, unless it is `sending`: nothing it
    /// could have slept through will wake it.
    /// `there` is the function on the link that holds the queues and windows, mostly the same.
    pub fn check_turn(&self, there: &Self, sending: bool) -> Result<(), String> {
        if sending {
            return Ok(());
        }
        let id = self.id.index();
        let idle = |(peer, there): &(&Peer, &Peer)| {
            let originator = &peer.originator;
            let needs_turn = if originator.role.is_one_of_several {
                originator.need_with(&there.originator.upper) != Need::Nothing
            } else {
                originator.backlog() > 0
            };
            !peer.ready && needs_turn
        };
        if let Some((peer, _)) = self.peers.iter().zip(&there.peers).find(idle) {
            return Err(format!("station {id} holds packets for {} and does not send them", peer.id.index()));
        }
        if self.has_traffic() && !self.active {
            return Err(format!("station {id} has something to send and does not contend"));
        }
        Ok(())
    }

    /// Packets accepted and not yet acknowledged or given up.
    pub fn backlog(&self) -> usize {
        self.peers.iter().map(|peer| peer.originator.backlog()).sum()
    }

    /// Forgets delays, queue lengths, sizes and turns before `at`.
    pub fn start_measuring(&mut self, at: Instant) {
        self.waits.reset();
        self.queueing_time = Duration::ZERO;
        self.ppdu_sizes.fill(0);
        self.stall.start_measuring(at);
        for peer in &mut self.peers {
            peer.originator.reset_queue_peak();
            peer.recipient.start_measuring();
            peer.log.start_measuring(at);
        }
    }

    /// Books the outcome of MPDUs.
    pub fn count_settled(&mut self, settled: Settled) {
        self.counters.delivered_first_try += u64::from(settled.first_try);
        self.counters.delivered_after_retry += u64::from(settled.after_retry);
        self.counters.mpdus_dropped += u64::from(settled.dropped);
        self.counters.delivered_bytes += settled.bytes;
    }

    /// Books a PPDU going out at a channel access.
    pub fn count_access(&mut self, outgoing: &Outgoing, phy: &Phy) {
        self.count_outgoing(outgoing, |contention| contention.aifs(phy) + contention.drawn(phy));
    }

    /// Books one that goes out in the TXOP of another.
    pub fn count_granted(&mut self, outgoing: &Outgoing) {
        self.count_outgoing(outgoing, |_| Duration::ZERO);
        self.counters.reverse_ppdus += 1;
        if let Outgoing::Data { peer, .. } = outgoing {
            self.counters.reverse_mpdus += u64::from(self.peers[*peer].originator.plan().mpdus);
        }
    }

    /// Books one that goes out in its own, after another.
    pub fn count_continued(&mut self, outgoing: &Outgoing) {
        self.count_outgoing(outgoing, |_| Duration::ZERO);
        self.counters.burst_ppdus += 1;
    }

    fn count_outgoing(&mut self, outgoing: &Outgoing, backoff: impl FnOnce(&Contention) -> Duration) {
        match outgoing {
            Outgoing::BlockAckRequest { .. } => self.counters.block_ack_requests += 1,
            Outgoing::RepairRequest { peer } => {
                self.counters.repair_requests += 1;
                self.counters.repair_request_bytes += u64::from(self.peers[*peer].repair_request_len());
            }
            Outgoing::Data { peer, class } => {
                let Peer { originator, log, .. } = &mut self.peers[*peer];
                let plan = originator.plan();
                log.turns.ppdus += 1;
                log.turns.sent += u64::from(plan.msdus);
                self.counters.data_ppdus += 1;
                self.counters.data_mpdus += u64::from(plan.mpdus);
                self.ppdu_sizes[plan.mpdus as usize - 1] += 1;
                self.counters.retries += u64::from(plan.retries);
                self.counters.tcp_acks_on_air += u64::from(plan.tcp_acks);
                if *class == PayloadClass::Ack {
                    self.counters.tcp_ack_ppdus += 1;
                    self.counters.tcp_ack_ppdu_mpdus += u64::from(plan.mpdus);
                    self.counters.tcp_ack_ppdu_acks += u64::from(plan.tcp_acks);
                    self.counters.tcp_ack_backoff += backoff(&self.contention);
                }
                let bytes = Bytes(u64::from(plan.ack_packet_bytes));
                self.counters.tcp_ack_bytes += bytes.0;
                self.counters.tcp_ack_byte_time += originator.mode.rate().time_for(bytes);
            }
        }
    }
}
