//! Multi-user accesses of an access point: its PPDU to several users and their responses
//! ([`downlink`]), or their PPDUs in response to its trigger and the Block Ack for them ([`uplink`]).
//!
//! Each user's part is a separate [`Exchange`], so that reception, acknowledgment and outcome are implemented once. The
//! round has the common parts: the access, the PPDU on the air (as long as its longest part), triggers, and responses
//! of equal length.

mod asking;
mod downlink;
mod outline;
mod sharing;
mod uplink;

use tacit_packet::units::{Duration, Instant};

use self::uplink::RandomUnits;
use super::{Answer, Cell, earliest};
use crate::packet::PayloadClass;
use crate::wifi::air::{Frame, Outcome, Trigger, TriggerKind, TriggerUser};
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::buffer_status::BufferStatus;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::originator::Settled;
use crate::wifi::ofdma::OfdmaConfig;
use crate::wifi::phy::{Mode, MultiUser, MultiUserPpdu, trigger_len};

/// Progress of a multi-user access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress {
    /// Its next PPDU is due.
    GoesOn,
    /// It has ended.
    Over { at: Instant, succeeded: bool },
}

/// The PPDU of a round that is on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// That of the access point to all users.
    Data,
    /// A trigger of this kind.
    Trigger(TriggerKind),
    /// The responses of all users to the data.
    Answers,
    /// The Block Ack Request to this user.
    Request(usize),
    /// The Block Ack of this user alone.
    Answer(usize),
    /// QoS Nulls with the users' buffer status.
    Reports,
    /// The users' data.
    Triggered,
    /// The Multi-STA Block Ack for it.
    BlockAck,
}

/// A user of a round.
#[derive(Clone, Debug)]
pub(crate) struct User {
    client: FunctionId,
    /// The access point's number for it.
    peer: usize,
    /// Mode of its PPDU, or of its response to data.
    mode: Mode,
    unit_index: u16,
    /// Its part; `None` if it has no data.
    exchange: Option<Exchange>,
    /// Bytes in its response in addition to the Block Ack: for compressed ACKs, and for data of its own.
    room: u32,
    data_room: u32,
    /// It received the last trigger or request, or its data and no request is needed: it responds.
    answers: bool,
    /// Some of its data arrived.
    heard: bool,
    /// The acknowledgment of it is lost.
    lost: bool,
    /// Its outcome is decided.
    settled: bool,
    /// More is waiting than the acknowledgment has room for.
    holds_more: bool,
    /// The queue that it reports with its PPDU; `None` without a report.
    left: Option<BufferStatus>,
    /// MPDUs that it received before its PPDU, for which TCP ACKs are expected.
    awaited: u32,
    /// It took a random-access unit.
    random: bool,
    /// Another user took the same unit, or another frame overlapped its PPDU.
    collided: bool,
    /// Another frame overlapped the last PPDU at its receiver.
    spoilt: bool,
    /// Bytes appended to the acknowledgment.
    appended: Vec<u8>,
}

/// A multi-user access.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    holder: FunctionId,
    class: PayloadClass,
    ofdma: OfdmaConfig,
    users: Vec<User>,
    stage: Stage,
    /// Start and end of the PPDU on the air.
    since: Instant,
    until: Instant,
    /// Mode of triggers and of frames to a single user.
    control_mode: Mode,
    /// Its users acknowledge the access point's data.
    is_answered: bool,
    /// Start and end of simultaneous responses to that data.
    answers: [Instant; 2],
    /// Their end without room for compressed ACKs.
    plain_end: Instant,
    /// Units of its triggers for random access.
    random: Option<RandomUnits>,
    /// Clients at which another frame overlapped a trigger with such units.
    deaf: Vec<FunctionId>,
    /// Another frame overlapped the last PPDU.
    pub overlapped: bool,
    /// Longest duration of the users' PPDUs.
    longest: Duration,
    /// Data of users after their Block Acks.
    cascade: Option<Box<Round>>,
}

impl Cell {
    /// Whether `id` uses multi-user accesses when possible.
    pub(super) fn has_rounds(&self, id: FunctionId) -> bool {
        self.rules.most_users > 1 && self.stations[id].is_access_point()
    }

    /// The round that `id` begins at `at`, in a new access or, within `limit`, in its TXOP; `None` if none is due:
    /// fewer than two users are next, and no client is to be triggered.
    pub(super) fn begin_round(
        &mut self,
        at: Instant,
        id: FunctionId,
        limit: Option<Duration>,
    ) -> Option<Round> {
        let ofdma = self.rules.config.ofdma?;
        let station = &mut self.stations[id];
        if limit.is_none() {
            let burst = station.hold_limits.burst;
            station.burst_until = burst.map_or(Instant::ZERO, |burst| at + burst);
        }
        // Its own data and its triggers take turns.
        let asks = station.trigger_due && !(station.asked_last && station.has_data());
        self.stations[id].asked_last = asks;
        if asks && let Some(uplink) = self.begin_uplink(at, id, &ofdma, limit) {
            return Some(uplink);
        }
        self.begin_downlink(at, id, &ofdma, limit)
    }

    /// The round that follows in the TXOP of `id`, a SIFS after one that ended at `at`.
    pub(super) fn continue_rounds(&mut self, at: Instant, id: FunctionId) -> Option<(Round, Instant)> {
        let start = at + self.rules.phy.sifs;
        let left = self.stations[id].burst_until.saturating_since(start);
        if left == Duration::ZERO || !self.stations[id].has_traffic() {
            return None;
        }
        self.begin_round(start, id, Some(left)).map(|round| (round, start))
    }

    /// The PPDU of users with these single-user `modes`; `None` for no users, and for more than there are units.
    fn shared_ppdu(&self, kind: MultiUser, modes: &[Mode]) -> Option<MultiUserPpdu> {
        MultiUserPpdu::of(kind, modes, self.rules.config.variant.he)
    }

    /// Longest duration of a multi-user PPDU that `id` sends or triggers, in addition to `overhead`, within `limit` if
    /// given.
    fn ppdu_limit(&self, id: FunctionId, overhead: Duration, limit: Option<Duration>) -> Duration {
        let longest = self.rules.phy.aggregation.map_or(Duration::MAX, |limits| limits.ppdu);
        let own = earliest(self.stations[id].hold_limits.exchange, limit);
        own.map_or(longest, |limit| limit.saturating_sub(overhead).min(longest))
    }

    /// The part of a multi-user PPDU has ended: single-user PPDUs between the two use their modes again.
    fn end_part(&mut self, exchange: &Exchange) {
        let [from, to] = self.stations.ends(exchange);
        let (peer, back) = (&mut from.peers[exchange.peer()], to.peer_index(exchange.from));
        let rate = peer.originator.end_part();
        for noise in [&mut peer.noise, &mut to.peers[back].noise].into_iter().flatten() {
            noise.use_rate(rate);
        }
    }
}

impl User {
    /// A user without data so far.
    fn new(client: FunctionId, peer: usize, mode: Mode, unit_index: u16) -> Self {
        Self {
            client,
            peer,
            mode,
            unit_index,
            exchange: None,
            room: 0,
            data_room: 0,
            answers: false,
            heard: false,
            lost: false,
            settled: false,
            holds_more: false,
            left: None,
            awaited: 0,
            random: false,
            collided: false,
            spoilt: false,
            appended: Vec::new(),
        }
    }

    /// Builds the acknowledgment of its part, with at most `room` appended bytes if its length is fixed.
    fn acknowledge(&mut self, cell: &mut Cell, room: Option<usize>) {
        let Some(exchange) = self.exchange else { return };
        let Answer { exchange, lost, holds_more } = cell.answer(&exchange, room, &mut self.appended);
        (self.exchange, self.lost, self.holds_more) = (Some(exchange), lost, holds_more);
    }

    /// The sender of its part handles the acknowledgment, or its absence noticed at `noticed_at`. Returns the settled MPDUs.
    fn settle(
        &mut self,
        cell: &mut Cell,
        is_acknowledged: bool,
        noticed_at: Instant,
        next_idle: u64,
    ) -> Option<Settled> {
        let exchange = self.exchange?;
        self.settled = true;
        if !is_acknowledged {
            cell.fail(&exchange, noticed_at, next_idle);
            return None;
        }
        let settled = cell.settle_response(&exchange, self.lost, &mut self.appended, next_idle);
        self.appended.clear();
        Some(settled).filter(|_| !self.lost)
    }
}

impl Round {
    /// A round of `holder` whose first PPDU begins at `at` with this `stage`.
    fn new(
        holder: FunctionId,
        ofdma: OfdmaConfig,
        (stage, at): (Stage, Instant),
        users: Vec<User>,
        control_mode: Mode,
    ) -> Self {
        Self {
            holder,
            class: PayloadClass::Data,
            ofdma,
            users,
            stage,
            since: at,
            until: at,
            control_mode,
            is_answered: true,
            answers: [at; 2],
            plain_end: at,
            random: None,
            deaf: Vec::new(),
            overlapped: false,
            longest: Duration::ZERO,
            cascade: None,
        }
    }

    /// The function whose access it is, and its class.
    pub fn account(&self) -> (FunctionId, PayloadClass) {
        (self.holder, self.class)
    }

    /// End of the PPDU on the air.
    pub fn ends_at(&self) -> Instant {
        self.until
    }

    /// True if the access belongs to `function`, or it transmits data in it.
    pub fn engages(&self, function: FunctionId) -> bool {
        self.holder == function
            || self.exchanges().any(|exchange| exchange.from == function)
            || self.cascade.as_ref().is_some_and(|cascade| cascade.engages(function))
    }

    /// The parts of its users that have data.
    fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.users.iter().filter_map(|user| user.exchange.as_ref())
    }

    /// Accounts its first PPDU, which begins at `start`.
    pub fn book_first(&self, cell: &mut Cell, start: Instant) {
        if self.stage == Stage::Data { self.book_data(cell, start) } else { self.book_trigger(cell) }
    }

    /// No response to its PPDU arrives; the access point notices at `noticed_at`.
    fn fail(&mut self, cell: &mut Cell, noticed_at: Instant, next_idle: u64) {
        if !self.is_answered {
            // It cannot notice.
            self.settle_unanswered(cell);
            return;
        }
        for exchange in self.exchanges() {
            let noticed_at = if exchange.is_triggered() { self.until } else { noticed_at };
            cell.fail(exchange, noticed_at, next_idle);
        }
        self.end(cell);
        cell.stations[self.holder].contention.failed(noticed_at, next_idle);
    }

    /// No response to the PPDU that has ended arrives.
    fn give_up(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let noticed_at = self.until + cell.rules.ack_timeout(&self.control_mode);
        self.fail(cell, noticed_at, next_idle);
        Progress::Over { at: self.until, succeeded: false }
    }

    /// The access has ended in success.
    fn succeed(&mut self, cell: &mut Cell) -> Progress {
        self.end(cell);
        cell.stations[self.holder].contention.succeeded();
        Progress::Over { at: self.until, succeeded: true }
    }

    /// The access has ended. From now on single-user PPDUs are sent as before.
    fn end(&mut self, cell: &mut Cell) {
        for user in &self.users {
            if let Some(access) = cell.stations[user.client].random_access.as_mut().filter(|_| user.random) {
                access.settled(user.has_arrived() && !user.lost);
            }
            let Some(exchange) = &user.exchange else { continue };
            cell.end_part(exchange);
        }
        cell.stations[self.holder].transmitting = false;
        cell.spare_users = std::mem::take(&mut self.users);
        cell.want_trigger(self.holder, self.until, &self.ofdma);
    }

    /// The PPDU on the air has ended: does what is due, and returns the next step. `next_idle` is the idle period that
    /// would now begin.
    pub fn step(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let progress = match self.stage {
            Stage::Data => self.data_ended(cell, next_idle),
            Stage::Trigger(kind) => self.trigger_ended(cell, kind, next_idle),
            Stage::Answers => self.answers_ended(cell, next_idle),
            Stage::Request(index) => self.request_ended(cell, index, next_idle),
            Stage::Answer(index) => self.answer_ended(cell, index, next_idle),
            Stage::Reports => self.reports_ended(cell),
            Stage::Triggered => self.triggered_ended(cell, next_idle),
            Stage::BlockAck => self.block_ack_ended(cell, next_idle),
        };
        let Progress::Over { .. } = progress else { return progress };
        let Some(cascade) = self.cascade.take() else { return progress };
        // The access continues.
        cell.stations[self.holder].transmitting = true;
        *self = *cascade;
        self.step(cell, next_idle)
    }

    // --- For a medium where other frames may overlap ----------------------------------------

    /// Start of the PPDU on the air, or due.
    pub fn begins_at(&self) -> Instant {
        self.since
    }

    /// Whether the access point sends that PPDU.
    fn is_downlink(&self) -> bool {
        matches!(self.stage, Stage::Data | Stage::Trigger(_) | Stage::Request(_) | Stage::BlockAck)
    }

    /// Functions that send that PPDU.
    pub fn transmitters(&self) -> impl Iterator<Item = FunctionId> {
        let sends = |(index, user): &(usize, &User)| match self.stage {
            Stage::Answer(one) => one == *index,
            _ => user.answers && !self.is_downlink(),
        };
        let holder = Some(self.holder).filter(|_| self.is_downlink());
        let users = self.users.iter().enumerate().filter(move |user| sends(user));
        holder.into_iter().chain(users.map(|(_, user)| user.client))
    }

    /// Functions that take part in the round while that PPDU is due or on the air.
    pub fn participants(&self) -> impl Iterator<Item = FunctionId> {
        let waits = |user: &&User| self.stage == Stage::BlockAck && user.answers;
        let waiting = self.users.iter().filter(move |user| waits(user)).map(|user| user.client);
        std::iter::once(self.holder).chain(self.transmitters()).chain(waiting)
    }

    /// Until when stations that received that PPDU defer: to the end of the responses to it.
    pub fn reserves_until(&self, cell: &Cell) -> Instant {
        let end = self.until;
        match self.stage {
            Stage::Data => self.exchanges().map(Exchange::reserved_until).max().unwrap_or(end),
            Stage::Trigger(TriggerKind::MuBar) => self.answers[1],
            Stage::Trigger(_) => end + cell.rules.phy.sifs + self.longest.min(self.planned(cell)),
            Stage::Request(index) => {
                let len = self.users[index].exchange.map_or(0, |exchange| exchange.response_len(0));
                end + cell.rules.response_after() + self.users[index].mode.ppdu_duration(len)
            }
            Stage::Answers | Stage::Answer(_) | Stage::Reports | Stage::Triggered | Stage::BlockAck => end,
        }
    }

    /// That PPDU has ended. Frames of other sequences overlapped it or the one before: each receiver hears it alone from
    /// `clear_from` on. Returns true if a receiver that needs it does not have all of it.
    pub fn hide_from(&mut self, cell: &Cell, clear_from: &dyn Fn(FunctionId) -> Instant) -> bool {
        let (end, stage, is_downlink) = (self.until, self.stage, self.is_downlink());
        let mut any = false;
        for (index, user) in self.users.iter_mut().enumerate() {
            let clear_from = clear_from(if is_downlink { user.client } else { self.holder });
            user.spoilt = clear_from > self.since;
            let is_concerned = match stage {
                Stage::Request(one) | Stage::Answer(one) => one == index,
                Stage::BlockAck => user.heard,
                Stage::Data | Stage::Trigger(_) => true,
                Stage::Answers | Stage::Reports | Stage::Triggered => user.answers,
            };
            if !user.spoilt || !is_concerned {
                continue;
            }
            any = true;
            match stage {
                Stage::Data | Stage::Triggered => {
                    user.exchange = user.exchange.map(|exchange| exchange.hidden_until(clear_from));
                    user.collided |= clear_from == end;
                }
                Stage::Answers | Stage::Answer(_) | Stage::BlockAck => user.lost = true,
                // Its receiver acts as if it had not been sent.
                Stage::Trigger(_) | Stage::Request(_) | Stage::Reports => {}
            }
        }
        if let Some(cascade) = &mut self.cascade {
            cascade.hide_from(cell, clear_from);
        }
        if self.random.is_some() {
            let clients = cell.stations[self.holder].peers.iter().map(|peer| peer.id);
            self.deaf = clients.filter(|client| clear_from(*client) > self.since).collect();
        }
        any
    }

    // --- Triggers ---------------------------------------------------------------------------

    /// Sends a trigger of this kind at `at`.
    fn send_trigger(&mut self, at: Instant, kind: TriggerKind) {
        let lasts = self.control_mode.ppdu_duration(self.trigger_len(kind));
        self.stage = Stage::Trigger(kind);
        (self.since, self.until) = (at, at + lasts);
    }

    fn trigger_len(&self, kind: TriggerKind) -> u32 {
        let users = self.users.len() as u32 + u32::from(self.offered(kind).is_some());
        trigger_len(kind, users, self.ofdma.padding_bytes(&self.control_mode))
    }

    /// Random-access units in a trigger of this kind; only a Basic Trigger has any.
    fn offered(&self, kind: TriggerKind) -> Option<RandomUnits> {
        self.random.filter(|_| kind == TriggerKind::Basic)
    }

    /// A trigger has ended: those that received it respond.
    fn trigger_ended(&mut self, cell: &mut Cell, kind: TriggerKind, next_idle: u64) -> Progress {
        let len = self.trigger_len(kind);
        cell.stations[self.holder].counters.trigger_time += self.until - self.since;
        for user in &mut self.users {
            let peer = &mut cell.stations[self.holder].peers[user.peer];
            user.answers = !user.spoilt && peer.hears(len, self.since);
        }
        let is_lost = !self.users.is_empty() && self.users.iter().all(|user| user.spoilt);
        self.record_trigger(cell, kind, if is_lost { Outcome::Collided } else { Outcome::Received });
        match kind {
            TriggerKind::MuBar => {
                self.take_requests(cell);
                self.answer_at_once(cell, next_idle)
            }
            TriggerKind::BufferStatusReport => self.report(cell, next_idle),
            TriggerKind::Basic => self.respond(cell, next_idle),
            TriggerKind::MuRts => unreachable!("a round begins with no MU-RTS"),
        }
    }

    /// Records the trigger on the air, if frames are recorded.
    fn record_trigger(&self, cell: &mut Cell, kind: TriggerKind, outcome: Outcome) {
        if !cell.air.is_kept() {
            return;
        }
        let frame = Frame::Trigger(self.trigger(cell, kind, &self.users));
        let reserves = match outcome {
            Outcome::Collided => Duration::ZERO,
            Outcome::Received | Outcome::Errored => self.reserves_until(cell) - self.until,
        };
        let span = [self.since, self.until];
        cell.air.record_broadcast(self.holder, span, self.control_mode, reserves, outcome, frame);
    }

    /// The frame of a trigger for `users`.
    fn trigger(&self, cell: &Cell, kind: TriggerKind, users: &[User]) -> Trigger {
        let window_start = |exchange: &Exchange| cell.stations.originator(exchange).window_start();
        let named = users.iter().map(|user| TriggerUser {
            station: cell.stations.station_of(user.client),
            mode: user.mode,
            unit_index: user.unit_index,
            units: 1,
            start: user.exchange.as_ref().map_or(0, window_start),
        });
        let random = self.offered(kind).map(|random| random.as_trigger_user());
        let users: Vec<TriggerUser> = named.chain(random).collect();
        Trigger {
            kind,
            width_mhz: users.first().map_or(20, |user| user.mode.width_mhz),
            padding_bytes: self.ofdma.padding_bytes(&self.control_mode),
            l_sig_length: self.l_sig_length(cell, kind),
            users,
        }
    }

    /// LENGTH of L-SIG in the responses to a trigger of this kind.
    fn l_sig_length(&self, cell: &Cell, kind: TriggerKind) -> u32 {
        match (self.stage, kind) {
            (Stage::Data, _) | (_, TriggerKind::MuBar) => {
                let each = self.answer_psdus(true).filter_map(|(mode, bytes)| mode.l_sig_length(bytes));
                each.max().unwrap_or_default()
            }
            (_, TriggerKind::BufferStatusReport) => Mode::triggered_l_sig_length(self.null_duration()),
            (_, TriggerKind::Basic | TriggerKind::MuRts) => {
                Mode::triggered_l_sig_length(self.planned(cell).min(self.longest))
            }
        }
    }
}
