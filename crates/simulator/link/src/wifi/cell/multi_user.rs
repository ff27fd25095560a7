//! Multi-user sequences of an access point: its PPDU to several users and their responses ([`downlink`]), or their PPDUs in
//! response to its trigger and the Block Ack for them ([`uplink`]).
//!
//! Here is what a sequence for one user does not have: triggers, units, and responses of equal length at the same time.

mod downlink;
mod outline;
mod sharing;
mod triggers;
mod uplink;

use tacit_packet::units::{Duration, Instant};

use super::sequence::{MultiUser, RandomUnits, Sequence, SequenceFrame};
use super::users::{User, Users};
use super::{Cell, earliest};
use crate::packet::PayloadClass;
use crate::wifi::air::{Frame, Outcome, Trigger, TriggerKind, TriggerUser};
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::ofdma::OfdmaConfig;
use crate::wifi::phy::{Mode, MultiUser as Way, MultiUserPpdu, trigger_len};

impl Cell {
    /// Whether `id` uses multi-user accesses when possible.
    pub(super) fn may_serve_several(&self, id: FunctionId) -> bool {
        self.rules.most_users > 1 && self.stations[id].is_access_point()
    }

    /// The multi-user sequence that `id` begins at `at`, in a new access or, within `limit`, in its TXOP; `None` if none is due:
    /// fewer than two users are next, and no client is to be triggered.
    pub(super) fn begin_multi_user(
        &mut self,
        at: Instant,
        id: FunctionId,
        limit: Option<Duration>,
    ) -> Option<Sequence> {
        let ofdma = self.rules.config.ofdma?;
        let station = &mut self.stations[id];
        if limit.is_none() {
            let burst = station.hold_limits.burst;
            station.burst_until = burst.map_or(Instant::ZERO, |burst| at + burst);
        }
        // Its own data and its triggers take turns.
        let triggers = station.trigger_due && !(station.triggered_last && station.has_data());
        self.stations[id].triggered_last = triggers;
        if triggers && let Some(uplink) = self.begin_uplink(at, id, &ofdma, limit) {
            return Some(uplink);
        }
        self.begin_downlink(at, id, &ofdma, limit)
    }

    /// The PPDU of users with these single-user `modes`; `None` for no users, and for more than there are units.
    fn shared_ppdu(&self, way: Way, modes: &[Mode]) -> Option<MultiUserPpdu> {
        MultiUserPpdu::for_users(way, modes, self.rules.config.variant.he)
    }

    /// Longest duration of a multi-user PPDU that `id` sends or triggers, in addition to `overhead`, within `limit` if
    /// given.
    fn ppdu_limit(&self, id: FunctionId, overhead: Duration, limit: Option<Duration>) -> Duration {
        let longest = self.rules.phy.aggregation.map_or(Duration::MAX, |limits| limits.ppdu);
        let txop = earliest(self.stations[id].hold_limits.exchange, limit);
        txop.map_or(longest, |limit| limit.saturating_sub(overhead).min(longest))
    }

    /// The part of a multi-user PPDU has ended: single-user PPDUs between the two use their modes again.
    fn end_unit(&mut self, exchange: &Exchange) {
        let [from, to] = self.stations.ends(exchange);
        let (peer, back) = (&mut from.peers[exchange.peer()], to.peer_index(exchange.from));
        let rate = peer.originator.end_unit();
        for noise in [&mut peer.noise, &mut to.peers[back].noise].into_iter().flatten() {
            noise.use_rate(rate);
        }
    }
}

impl Sequence {
    /// A sequence of `initiator` for `users`, the first frame of which begins at `at`, with `modes` by resource unit.
    fn several(
        initiator: FunctionId,
        ofdma: OfdmaConfig,
        (frame, at): (SequenceFrame, Instant),
        users: Vec<User>,
        (control_mode, modes): (Mode, Vec<Mode>),
    ) -> Self {
        let multi_user = MultiUser {
            ofdma,
            control_mode,
            modes,
            responses: [at; 2],
            plain_end: at,
            random: None,
            missed_trigger: Vec::new(),
            longest: Duration::ZERO,
            cascade: None,
        };
        Self {
            initiator,
            class: PayloadClass::Data,
            frame,
            since: at,
            until: at,
            users: Users::Several(users),
            multi_user: Some(Box::new(multi_user)),
        }
    }

    /// What only sequences for several users have.
    pub(super) fn multi_user(&self) -> &MultiUser {
        self.multi_user.as_ref().expect("its frames are those for several users")
    }

    fn multi_user_mut(&mut self) -> &mut MultiUser {
        self.multi_user.as_mut().expect("its frames are those for several users")
    }

    /// All users are settled: single-user PPDUs are sent as before. Returns when the next frame of the access begins: that of the
    /// cascade, or that of the next sequence in the TXOP if a response `arrived`.
    pub(super) fn end_multi_user(
        &mut self,
        cell: &mut Cell,
        arrived: bool,
        next_idle: u64,
    ) -> Option<Instant> {
        for user in self.users.iter() {
            if let Some(access) = cell.stations[user.client].random_access.as_mut().filter(|_| user.random) {
                access.settled(user.has_arrived() && !user.lost);
            }
            let Some(exchange) = &user.exchange else { continue };
            cell.end_unit(exchange);
        }
        let initiator = self.initiator;
        cell.stations[initiator].transmitting = false;
        if let Users::Several(users) = &mut self.users {
            cell.spare_users = std::mem::take(users);
        }
        cell.contend_for_trigger(initiator, self.until, &self.multi_user().ofdma);
        if let Some(cascade) = self.multi_user_mut().cascade.take() {
            cell.stations[initiator].transmitting = true;
            *self = *cascade;
            return self.triggered_data_ended(cell, next_idle);
        }
        let start = self.until + cell.rules.phy.sifs;
        let left = cell.stations[initiator].burst_until.saturating_since(start);
        if !arrived || left == Duration::ZERO || !cell.stations[initiator].has_traffic() {
            return None;
        }
        *self = cell.begin_multi_user(start, initiator, Some(left))?;
        Some(start)
    }

    // --- Triggers ---------------------------------------------------------------------------

    /// Sends a trigger of this kind at `at`.
    pub(super) fn send_trigger(&mut self, at: Instant, kind: TriggerKind) -> Option<Instant> {
        let lasts = self.multi_user().control_mode.ppdu_duration(self.trigger_len(kind));
        self.send(SequenceFrame::Trigger(kind), at, at + lasts)
    }

    fn trigger_len(&self, kind: TriggerKind) -> u32 {
        let users = self.users.len() as u32 + u32::from(self.offered(kind).is_some());
        trigger_len(kind, users, self.multi_user().ofdma.padding_bytes(&self.multi_user().control_mode))
    }

    /// Random-access units in a trigger of this kind; only a Basic Trigger has any.
    fn offered(&self, kind: TriggerKind) -> Option<RandomUnits> {
        self.multi_user().random.filter(|_| kind == TriggerKind::Basic)
    }

    /// A trigger has ended: those that received it respond.
    pub(super) fn trigger_ended(
        &mut self,
        cell: &mut Cell,
        kind: TriggerKind,
        next_idle: u64,
    ) -> Option<Instant> {
        let len = self.trigger_len(kind);
        cell.stations[self.initiator].counters.trigger_time += self.until - self.since;
        for user in self.users.iter_mut() {
            let peer = &mut cell.stations[self.initiator].peers[user.peer];
            user.responds = !user.overlapped && peer.decodes(len, self.since);
        }
        let is_lost = !self.users.is_empty() && self.users.iter().all(|user| user.overlapped);
        self.record_trigger(cell, kind, if is_lost { Outcome::Collided } else { Outcome::Received });
        match kind {
            TriggerKind::MuBar => self.requests_ended(cell, next_idle),
            TriggerKind::BufferStatusReport => self.report_buffer_status(cell, next_idle),
            TriggerKind::Basic => self.send_triggered_data(cell, next_idle),
            TriggerKind::MuRts => unreachable!("no multi-user sequence begins with an MU-RTS"),
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
            Outcome::Received | Outcome::Errored => {
                self.reserves_until(cell).unwrap_or(self.until) - self.until
            }
        };
        let span = [self.since, self.until];
        cell.air.record_broadcast(
            self.initiator,
            span,
            self.multi_user().control_mode,
            reserves,
            outcome,
            frame,
        );
    }

    /// The frame of a trigger for `users`.
    fn trigger(&self, cell: &Cell, kind: TriggerKind, users: &[User]) -> Trigger {
        let window_start = |exchange: &Exchange| cell.stations.originator(exchange).window_start();
        let named = users.iter().map(|user| TriggerUser {
            station: cell.stations.station_of(user.client),
            mode: self.multi_user().mode(user),
            unit_index: user.unit_index,
            units: 1,
            start: user.exchange.as_ref().map_or(0, window_start),
        });
        let width_mhz = users.first().map_or(20, |user| self.multi_user().mode(user).width_mhz);
        let random = self.offered(kind).map(|random| random.as_trigger_user());
        let users: Vec<TriggerUser> = named.chain(random).collect();
        Trigger {
            kind,
            width_mhz,
            padding_bytes: self.multi_user().ofdma.padding_bytes(&self.multi_user().control_mode),
            l_sig_length: self.l_sig_length(cell, kind),
            users,
        }
    }

    /// LENGTH of L-SIG in the responses to a trigger of this kind.
    fn l_sig_length(&self, cell: &Cell, kind: TriggerKind) -> u32 {
        match (self.frame, kind) {
            (SequenceFrame::Data, _) | (_, TriggerKind::MuBar) => {
                let each = self.response_psdus(true).filter_map(|(mode, bytes)| mode.l_sig_length(bytes));
                each.max().unwrap_or_default()
            }
            (_, TriggerKind::BufferStatusReport) => Mode::triggered_l_sig_length(self.null_duration()),
            (_, TriggerKind::Basic | TriggerKind::MuRts) => {
                Mode::triggered_l_sig_length(self.triggered_duration(cell))
            }
        }
    }
}
