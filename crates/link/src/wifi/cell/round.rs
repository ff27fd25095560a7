//! Accesses of an access point with several users at once: its PPDU to them ([`Downlink`]), and theirs when it triggers
//! them ([`Uplink`]).

use tacit_proto::units::{Duration, Instant};

use super::downlink::Downlink;
use super::progress::Progress;
use super::uplink::Uplink;
use super::{Cell, earliest};
use crate::payload::{Payload, PayloadClass};
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::Exchange;
use crate::wifi::mac::noise::Noise;
use crate::wifi::phy::{Mode, MultiUser, MultiUserPpdu};

/// An access with several users.
#[derive(Clone, Debug)]
pub(crate) enum Round {
    /// From the access point.
    Down(Downlink),
    /// To it.
    Up(Uplink),
}

impl<P: Payload> Cell<P> {
    /// Whether `id` has rounds when it can.
    #[inline]
    pub fn has_rounds(&self, id: FunctionId) -> bool {
        self.rules.most_users > 1 && self.stations[id].is_access_point()
    }

    /// The round that `id` begins at `at`, at an access of its own or, within `limit`, in its TXOP; `None` where none is due: not
    /// two users are next, and no client is to be asked.
    #[inline(never)]
    pub fn begin_round(&mut self, at: Instant, id: FunctionId, limit: Option<Duration>) -> Option<Round> {
        let ofdma = self.rules.config.ofdma?;
        let station = &mut self.stations[id];
        if limit.is_none() {
            let burst = station.hold_limits.burst;
            station.burst_until = burst.map_or(Instant::ZERO, |burst| at + burst);
        }
        // Its own data and its requests for data take turns.
        let asks = station.trigger_due && !(station.asked_last && station.has_data());
        self.stations[id].asked_last = asks;
        if asks && let Some(uplink) = self.begin_uplink(at, id, &ofdma, limit) {
            return Some(Round::Up(uplink));
        }
        self.begin_downlink(at, id, &ofdma, limit).map(Round::Down)
    }

    /// The round that follows in the TXOP of `id` a SIFS after one that ended at `at`.
    pub fn continue_rounds(&mut self, at: Instant, id: FunctionId) -> Option<(Round, Instant)> {
        let start = at + self.rules.phy.sifs;
        let left = self.stations[id].burst_until.saturating_since(start);
        if left == Duration::ZERO || !self.stations[id].has_traffic() {
            return None;
        }
        self.begin_round(start, id, Some(left)).map(|round| (round, start))
    }

    /// The PPDU of users that send, or are sent to, in `modes` alone; `None` of none, and of more than there are units.
    pub(super) fn shared_ppdu(&self, kind: MultiUser, modes: &[Mode]) -> Option<MultiUserPpdu> {
        MultiUserPpdu::of(kind, modes, self.rules.config.variant.he)
    }

    /// How long a PPDU of several users that `id` begins or asks for may be, beside `overhead`, within `limit` if there is one.
    pub(super) fn ppdu_limit(&self, id: FunctionId, overhead: Duration, limit: Option<Duration>) -> Duration {
        let longest = self.rules.phy.aggregation.map_or(Duration::MAX, |limits| limits.ppdu);
        let own = earliest(self.stations[id].hold_limits.exchange, limit);
        own.map_or(longest, |limit| limit.saturating_sub(overhead).min(longest))
    }

    /// Does something about an acknowledgment by which `appended` rides.
    pub(super) fn with_appended<T>(&mut self, appended: &mut Vec<u8>, act: impl FnOnce(&mut Self) -> T) -> T {
        std::mem::swap(&mut self.appended, appended);
        let result = act(self);
        std::mem::swap(&mut self.appended, appended);
        result
    }

    /// The part of a PPDU of several users is over: PPDUs between the two alone are sent in the modes `single` again.
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
    /// Whose access it is, and of which class.
    pub fn account(&self) -> (FunctionId, PayloadClass) {
        match self {
            Self::Down(round) => round.account(),
            Self::Up(round) => round.account(),
        }
    }

    /// When its first PPDU ends.
    pub fn first_end(&self) -> Instant {
        match self {
            Self::Down(round) => round.data_end(),
            Self::Up(round) => round.trigger_end(),
        }
    }

    /// How its trigger is sent.
    pub fn control_mode(&self) -> &Mode {
        match self {
            Self::Down(round) => round.control_mode(),
            Self::Up(round) => round.control_mode(),
        }
    }

    /// Until when the access point goes on without an answer.
    pub fn alone_until<P: Payload>(&self, cell: &Cell<P>) -> Instant {
        match self {
            Self::Down(round) => round.alone_until(cell),
            Self::Up(round) => round.trigger_end(),
        }
    }

    /// True while the access is that of `function`.
    pub fn engages(&self, function: FunctionId) -> bool {
        match self {
            Self::Down(round) => round.engages(function),
            Self::Up(round) => round.engages(function),
        }
    }

    /// Until when other stations that heard it keep off.
    pub fn reserved_until(&self) -> Instant {
        match self {
            Self::Down(round) => round.reserved_until(),
            Self::Up(round) => round.reserved_until(),
        }
    }

    /// Books its first PPDU, which begins at `start`.
    pub fn book_first<P: Payload>(&self, cell: &mut Cell<P>, start: Instant) {
        match self {
            Self::Down(round) => round.book_data(cell, start),
            Self::Up(round) => round.book_trigger(cell),
        }
    }

    /// Where others that began with it ended before its first PPDU did, at `others_end`: its users still get the MPDUs
    /// that follow. True when it goes on; a trigger that collided does not.
    pub fn survives<P: Payload>(
        &mut self,
        cell: &Cell<P>,
        others_end: Instant,
        deaf: impl Fn(FunctionId) -> bool,
    ) -> bool {
        match self {
            Self::Down(round) => {
                round.hide_until(cell, others_end, deaf);
                true
            }
            Self::Up(_) => false,
        }
    }

    /// Nothing of it arrives; the access point notices at `noticed_at`.
    pub fn fail<P: Payload>(&mut self, cell: &mut Cell<P>, noticed_at: Instant, next_idle: u64) {
        match self {
            Self::Down(round) => round.fail(cell, noticed_at, next_idle),
            Self::Up(round) => round.fail(cell, noticed_at, next_idle),
        }
    }

    /// Logs the frames of a first PPDU that collided, if the air is observed.
    pub fn record_collided<P: Payload>(&self, cell: &mut Cell<P>) {
        match self {
            Self::Down(round) => round.record_collided(cell),
            Self::Up(round) => round.record_collided(cell),
        }
    }

    /// The PPDU in the air ended: does the work due, and returns the next step. `next_idle` is the idle period that would begin now.
    pub fn step<P: Payload>(&mut self, cell: &mut Cell<P>, next_idle: u64) -> Progress {
        let round = match self {
            Self::Down(round) => round,
            Self::Up(round) => return round.step(cell, next_idle),
        };
        let progress = round.step(cell, next_idle);
        let Progress::Over(..) = progress else { return progress };
        let Some(uplink) = round.take_cascade() else { return progress };
        // The access goes on.
        cell.stations[uplink.account().0].transmitting = true;
        *self = Self::Up(uplink);
        self.step(cell, next_idle)
    }
}
