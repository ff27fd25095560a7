//! Multi-user accesses of an access point: its PPDU to several users ([`Downlink`]), or theirs when it triggers them
//! ([`Uplink`]).

use tacit_proto::units::{Duration, Instant};

use super::downlink::Downlink;
use super::progress::Progress;
use super::uplink::Uplink;
use super::{Cell, earliest};
use crate::packet::PayloadClass;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::noise::Noise;
use crate::wifi::phy::{Mode, MultiUser, MultiUserPpdu};

/// A multi-user access.
#[derive(Clone, Debug)]
pub(crate) enum Round {
    /// From the access point.
    Down(Downlink),
    /// To the access point.
    Up(Uplink),
}

impl Cell {
    /// Whether `id` uses multi-user accesses when possible.
    pub fn has_rounds(&self, id: FunctionId) -> bool {
        self.rules.most_users > 1 && self.stations[id].is_access_point()
    }

    /// The round that `id` begins at `at`, in a new access or, within `limit`, in its TXOP; `None` if none is due:
    /// fewer than two users are next, and no client is to be triggered.
    pub fn begin_round(&mut self, at: Instant, id: FunctionId, limit: Option<Duration>) -> Option<Round> {
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
            return Some(Round::Up(uplink));
        }
        self.begin_downlink(at, id, &ofdma, limit).map(Round::Down)
    }

    /// The round that follows in the TXOP of `id`, a SIFS after one that ended at `at`.
    pub fn continue_rounds(&mut self, at: Instant, id: FunctionId) -> Option<(Round, Instant)> {
        let start = at + self.rules.phy.sifs;
        let left = self.stations[id].burst_until.saturating_since(start);
        if left == Duration::ZERO || !self.stations[id].has_traffic() {
            return None;
        }
        self.begin_round(start, id, Some(left)).map(|round| (round, start))
    }

    /// The PPDU of users with these single-user `modes`; `None` for no users, and for more than there are units.
    pub(super) fn shared_ppdu(&self, kind: MultiUser, modes: &[Mode]) -> Option<MultiUserPpdu> {
        MultiUserPpdu::of(kind, modes, self.rules.config.variant.he)
    }

    /// Longest duration of a multi-user PPDU that `id` sends or triggers, in addition to `overhead`, within `limit` if
    /// given.
    pub(super) fn ppdu_limit(&self, id: FunctionId, overhead: Duration, limit: Option<Duration>) -> Duration {
        let longest = self.rules.phy.aggregation.map_or(Duration::MAX, |limits| limits.ppdu);
        let own = earliest(self.stations[id].hold_limits.exchange, limit);
        own.map_or(longest, |limit| limit.saturating_sub(overhead).min(longest))
    }

    /// Processes an acknowledgment to which `appended` is attached.
    pub(super) fn with_appended<T>(&mut self, appended: &mut Vec<u8>, act: impl FnOnce(&mut Self) -> T) -> T {
        std::mem::swap(&mut self.appended, appended);
        let result = act(self);
        std::mem::swap(&mut self.appended, appended);
        result
    }

    /// The part of a multi-user PPDU has ended: single-user PPDUs between the two use the modes `single` again.
    pub(super) fn end_part(&mut self, exchange: &Exchange, single: [Mode; 2]) {
        let [from, to] = self.stations.ends(exchange);
        let (peer, back) = (&mut from.peers[exchange.peer()], to.peer_index(exchange.from));
        [peer.originator.mode, peer.originator.control_mode] = single;
        for noise in [&mut peer.noise, &mut to.peers[back].noise].into_iter().flatten() {
            noise.use_rate(Noise::ALONE);
        }
    }
}

impl Round {
    /// The function whose access it is, and its class.
    pub fn account(&self) -> (FunctionId, PayloadClass) {
        match self {
            Self::Down(round) => round.account(),
            Self::Up(round) => round.account(),
        }
    }

    /// End of its first PPDU.
    pub fn first_end(&self) -> Instant {
        match self {
            Self::Down(round) => round.data_end(),
            Self::Up(round) => round.trigger_end(),
        }
    }

    /// Mode of its trigger.
    pub fn control_mode(&self) -> &Mode {
        match self {
            Self::Down(round) => round.control_mode(),
            Self::Up(round) => round.control_mode(),
        }
    }

    /// Time until which the access point transmits without needing a response.
    pub fn alone_until(&self, cell: &Cell) -> Instant {
        match self {
            Self::Down(round) => round.alone_until(cell),
            Self::Up(round) => round.trigger_end(),
        }
    }

    /// True if the access belongs to `function`.
    pub fn engages(&self, function: FunctionId) -> bool {
        match self {
            Self::Down(round) => round.engages(function),
            Self::Up(round) => round.engages(function),
        }
    }

    /// Until when other stations that received it defer.
    pub fn reserved_until(&self) -> Instant {
        match self {
            Self::Down(round) => round.reserved_until(),
            Self::Up(round) => round.reserved_until(),
        }
    }

    /// Accounts its first PPDU, which begins at `start`.
    pub fn book_first(&self, cell: &mut Cell, start: Instant) {
        match self {
            Self::Down(round) => round.book_data(cell, start),
            Self::Up(round) => round.book_trigger(cell),
        }
    }

    /// PPDUs that began at the same time ended at `others_end`, before its first PPDU: its users still receive the
    /// MPDUs that follow. Returns true if it continues; a collided trigger does not.
    pub fn survives(&mut self, cell: &Cell, others_end: Instant, deaf: impl Fn(FunctionId) -> bool) -> bool {
        match self {
            Self::Down(round) => {
                round.hide_until(cell, others_end, deaf);
                true
            }
            Self::Up(_) => false,
        }
    }

    /// No part of it arrives; the access point notices at `noticed_at`.
    pub fn fail(&mut self, cell: &mut Cell, noticed_at: Instant, next_idle: u64) {
        match self {
            Self::Down(round) => round.fail(cell, noticed_at, next_idle),
            Self::Up(round) => round.fail(cell, noticed_at, next_idle),
        }
    }

    /// Records the frames of a collided first PPDU, if frames are recorded.
    pub fn record_collided(&self, cell: &mut Cell) {
        match self {
            Self::Down(round) => round.record_collided(cell),
            Self::Up(round) => round.record_collided(cell),
        }
    }

    /// The PPDU on the air has ended: does what is due, and returns the next step. `next_idle` is the idle period that
    /// would now begin.
    pub fn step(&mut self, cell: &mut Cell, next_idle: u64) -> Progress {
        let round = match self {
            Self::Down(round) => round,
            Self::Up(round) => return round.step(cell, next_idle),
        };
        let progress = round.step(cell, next_idle);
        let Progress::Over(..) = progress else { return progress };
        let Some(uplink) = round.take_cascade() else { return progress };
        // The access continues.
        cell.stations[uplink.account().0].transmitting = true;
        *self = Self::Up(uplink);
        self.step(cell, next_idle)
    }
}
