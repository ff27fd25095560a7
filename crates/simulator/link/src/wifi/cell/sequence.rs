//! Frame exchange sequences: the frames of an exchange or of a multi-user access, and what follows each of them. The
//! medium decides whether other frames overlap them.

use tacit_packet::units::{Duration, Instant};

use super::round::{Progress, Round};
use super::{Answer, Cell};
use crate::packet::PayloadClass;
use crate::wifi::air::Outcome;
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::{Exchange, Part};
use crate::wifi::mac::plan::Outgoing;
use crate::wifi::mac::protection::{Direction, Handshake, Step};
use crate::wifi::phy::{CTS_LEN, RTS_LEN, TriggerKind, trigger_len};

/// A sequence with a frame on the air, or due.
#[derive(Clone, Debug)]
pub(crate) enum Sequence {
    /// A frame of an exchange.
    Exchange(Exchange),
    /// A PPDU of a multi-user access.
    Round(Box<Round>),
}

/// What follows a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Follows {
    /// The next frame of its sequence, at this time.
    Frame(Instant),
    /// Nothing.
    Nothing {
        /// End of the sequence.
        at: Instant,
        /// Until when bystanders that received its last frame defer.
        reserved_until: Instant,
        /// The exchange reserved the rest of a TXOP.
        reserves_txop: bool,
    },
}

/// How a frame reached its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reception {
    /// No other frame overlapped it there.
    pub clear: bool,
    /// The receiver may respond: it takes part in no other exchange, and no NAV forbids it.
    pub ready: bool,
}

impl Reception {
    /// Of a frame that nothing disturbed.
    pub const UNDISTURBED: Self = Self { clear: true, ready: true };
}

impl Sequence {
    /// True if it is an access of `function`, or carries its data.
    pub fn engages(&self, function: FunctionId) -> bool {
        match self {
            Self::Exchange(exchange) => exchange.from == function,
            Self::Round(round) => round.engages(function),
        }
    }

    /// The function that holds the medium for it.
    pub fn holder(&self) -> FunctionId {
        match self {
            Self::Exchange(exchange) => exchange.holder(),
            Self::Round(round) => round.account().0,
        }
    }

    /// The function whose airtime it is, and its class.
    pub fn account(&self) -> (FunctionId, PayloadClass) {
        match self {
            Self::Exchange(exchange) => (exchange.from, exchange.outgoing.class()),
            Self::Round(round) => round.account(),
        }
    }

    /// The exchange, if it is one.
    pub fn exchange(&self) -> Option<&Exchange> {
        match self {
            Self::Exchange(exchange) => Some(exchange),
            Self::Round(_) => None,
        }
    }

    /// Calls `each` for the functions that send its frame.
    pub fn each_transmitter(&self, mut each: impl FnMut(FunctionId)) {
        match self {
            Self::Exchange(exchange) => each(exchange.transmitter()),
            Self::Round(round) => round.transmitters().for_each(each),
        }
    }

    /// Calls `each` for the functions that take part in it, in the gaps between its frames too.
    pub fn each_participant(&self, each: impl FnMut(FunctionId)) {
        match self {
            Self::Exchange(exchange) => exchange.participants().into_iter().flatten().for_each(each),
            Self::Round(round) => round.participants().for_each(each),
        }
    }
}

impl Cell {
    /// The sequence with which `id` begins its channel access at `at`; `None` if all its packets have expired.
    pub fn begin_access(&mut self, at: Instant, id: FunctionId) -> Option<Sequence> {
        if self.has_rounds(id)
            && let Some(round) = self.begin_round(at, id, None)
        {
            return Some(Sequence::Round(Box::new(round)));
        }
        let outgoing = self.stations[id].begin_access(at, &self.rules, &mut self.holders);
        self.stations[id].report_drained(&mut self.outbox.drained);
        outgoing.map(|outgoing| Sequence::Exchange(self.stations[id].exchange(&self.rules, at, outgoing)))
    }

    /// An access of one function begins at `at`, with `sequence`.
    pub fn count_access(&mut self, sequence: &Sequence, at: Instant) {
        self.accounts.accesses += 1;
        if let Sequence::Round(round) = sequence {
            round.book_first(self, at);
        }
    }

    /// A frame of `sequence` begins at `at`; returns when it ends.
    pub fn begin_frame(&mut self, sequence: &Sequence, at: Instant) -> Instant {
        let exchange = match sequence {
            Sequence::Exchange(exchange) => exchange,
            Sequence::Round(round) => return round.ends_at(),
        };
        match exchange.part {
            Part::Protection(step @ (Step::Rts | Step::CtsToSelf)) => {
                let calls = self.stations.originator(exchange).gate.padding.is_some();
                self.stations[exchange.from].count_handshake(step, calls);
                exchange.first_end
            }
            Part::Protection(Step::Cts) => exchange.start - self.rules.phy.sifs,
            Part::Data => exchange.end,
            Part::Response { .. } => exchange.response_end,
            Part::CfEnd => self.send_cf_end(exchange, at),
        }
    }

    /// Accounts a frame that ends at `until`, and the gap before it.
    pub fn book_frame(&mut self, exchange: &Exchange, until: Instant) {
        let (from, class) = (exchange.from, exchange.outgoing.class());
        match exchange.part {
            Part::Protection(_) => self.charge(from, class, AirtimeUse::Protection, until),
            Part::CfEnd => self.charge(exchange.holder(), class, AirtimeUse::Protection, until),
            Part::Data => {
                if exchange.handshake != Handshake::None {
                    self.charge(from, class, exchange.gap_use(), exchange.start);
                }
                if let Outgoing::Data { .. } = exchange.outgoing {
                    let plan = *self.stations.originator(exchange).plan();
                    self.book_data(from, class, [exchange.start, until], plan);
                } else {
                    self.charge(from, class, AirtimeUse::LinkAck, until);
                }
            }
            Part::Response { .. } => {
                let plain_end = exchange.plain_response_end(self.stations.control_mode(exchange));
                self.charge(from, class, AirtimeUse::LinkAck, until.min(plain_end));
                self.charge(exchange.to, PayloadClass::Ack, AirtimeUse::CompressedAck, until);
            }
        }
    }

    /// A frame of `sequence` ended at `at`. `next_idle` is the idle period that would now begin at its holder. What follows
    /// is a frame of `sequence`, which becomes the next one of its TXOP if it is over.
    pub fn frame_ended(
        &mut self,
        sequence: &mut Sequence,
        reception: Reception,
        (at, next_idle): (Instant, u64),
    ) -> Follows {
        let exchange = match sequence {
            Sequence::Exchange(exchange) => exchange,
            Sequence::Round(round) => return self.round_frame_ended(round, next_idle),
        };
        match exchange.part {
            Part::Protection(step) => self.protection_ended(exchange, step, reception, (at, next_idle)),
            Part::Data => self.data_ended(exchange, reception, next_idle),
            Part::Response { lost } => {
                let lost = lost || !reception.clear;
                self.with_appended(exchange, |cell, appended| {
                    cell.settle_response(exchange, lost, appended, next_idle)
                });
                if self.rules.has_triggers {
                    self.note_uplink(exchange);
                }
                self.go_on(exchange, lost)
            }
            Part::CfEnd => Follows::end(at),
        }
    }

    /// Records the collided first frame of `exchange`, if frames are recorded.
    pub fn record_collision(&mut self, exchange: &Exchange) {
        let originator = self.stations.originator(exchange);
        self.air.record_collided(exchange, originator, &self.rules, &mut self.holders);
    }

    /// The first frame of `exchange` collided: its sender times out. The data behind a CTS-to-self is lost too.
    pub fn fail_collided(&mut self, exchange: &Exchange, next_idle: u64) {
        match exchange.part {
            Part::Protection(Step::Rts) => {
                let calls = self.stations.originator(exchange).gate.padding.is_some();
                self.stations[exchange.from].counters.icfs += u64::from(calls);
                self.fail_protection(exchange, exchange.first_end, next_idle);
            }
            Part::Protection(Step::CtsToSelf) => {
                let originator = self.stations.originator(exchange);
                self.air.record_collided_data(exchange, originator, &mut self.holders);
                self.time_out(exchange, next_idle);
            }
            _ => self.time_out(exchange, next_idle),
        }
    }

    fn round_frame_ended(&mut self, round: &mut Round, next_idle: u64) -> Follows {
        let ((holder, _), reserved_until) = (round.account(), round.reserved_until());
        match round.step(self, next_idle) {
            Progress::GoesOn => Follows::Frame(round.begins_at()),
            Progress::Over { at, succeeded } => {
                let next = if succeeded { self.continue_rounds(at, holder) } else { None };
                let Some((next, start)) = next else {
                    let reserved_until = at.max(reserved_until);
                    return Follows::Nothing { at, reserved_until, reserves_txop: false };
                };
                self.charge(holder, next.account().1, AirtimeUse::Acquisition, start);
                next.book_first(self, start);
                *round = next;
                Follows::Frame(start)
            }
        }
    }

    /// A handshake frame ended at `at`.
    fn protection_ended(
        &mut self,
        exchange: &mut Exchange,
        step: Step,
        Reception { clear, ready }: Reception,
        (at, next_idle): (Instant, u64),
    ) -> Follows {
        let understood = match step {
            Step::CtsToSelf => true,
            Step::Rts => {
                let calls = self.stations.originator(exchange).gate.padding.is_some();
                let len = if calls { trigger_len(TriggerKind::MuRts, 1, 0) } else { RTS_LEN };
                clear && self.hears(exchange, len, exchange.begins, Direction::Forward)
            }
            Step::Cts => clear && self.hears(exchange, CTS_LEN, exchange.first_end, Direction::Back),
        };
        let outcome = match (clear, understood) {
            (_, true) => Outcome::Received,
            (true, false) => Outcome::Errored,
            (false, false) => Outcome::Collided,
        };
        self.record_handshake(exchange, step, outcome);
        match step {
            Step::Rts if understood && ready => {
                exchange.part = Part::Protection(Step::Cts);
                return Follows::Frame(at + self.rules.phy.sifs);
            }
            Step::Cts | Step::CtsToSelf if understood => {
                self.handshake_done(exchange);
                exchange.part = Part::Data;
                return Follows::Frame(exchange.start);
            }
            Step::Rts | Step::Cts | Step::CtsToSelf => {}
        }
        self.accounts.collisions += u64::from(!clear);
        self.fail_protection(exchange, at, next_idle);
        if step == Step::Rts {
            return Follows::Nothing {
                at,
                reserved_until: at + self.rts_reserves(exchange),
                reserves_txop: false,
            };
        }
        // A CTS reserves the medium until the end of the exchange that it permits.
        Follows::unanswered(exchange, at)
    }

    /// For how long an RTS reserves the medium if no data follows: stations that heard it may then reset their NAV
    /// (802.11-2020 clause 10.3.2.4).
    pub fn rts_reserves(&self, exchange: &Exchange) -> Duration {
        let phy = self.rules.phy;
        phy.sifs * 2 + self.cts_duration(exchange) + phy.slot * 2
    }

    /// The PPDU has ended: the MPDUs that arrived are passed up and acknowledged.
    fn data_ended(
        &mut self,
        exchange: &mut Exchange,
        Reception { clear, ready }: Reception,
        next_idle: u64,
    ) -> Follows {
        let heard = if clear && ready {
            self.receive(exchange)
        } else {
            self.accounts.collisions += 1;
            self.stations[exchange.from].counters.collided_ppdus += 1;
            let originator = self.stations.originator(exchange);
            self.air.record_collided_data(exchange, originator, &mut self.holders);
            false
        };
        if exchange.is_unanswered() {
            self.settle_unanswered(exchange);
            if self.rules.has_triggers && self.stations[exchange.from].is_access_point() {
                self.note_uplink(exchange);
            }
            return self.go_on(exchange, false);
        }
        if !heard {
            // The sender times out before the end of the time in the Duration field, which bystanders still respect.
            self.time_out(exchange, next_idle);
            if exchange.handshake == Handshake::Granted {
                return self.go_on_without_reverse(exchange, next_idle);
            }
            return Follows::unanswered(exchange, exchange.end);
        }
        let Answer { exchange: answered, lost, .. } =
            self.with_appended(exchange, |cell, appended| cell.answer(exchange, None, appended));
        *exchange = answered;
        exchange.part = Part::Response { lost };
        Follows::Frame(exchange.response_at)
    }

    /// Lends `act` the bytes appended to the acknowledgment of `exchange`. Acknowledgments of other exchanges may be on the
    /// air at the same time where stations are hidden.
    fn with_appended<T>(&mut self, exchange: &Exchange, act: impl FnOnce(&mut Self, &mut Vec<u8>) -> T) -> T {
        let back = self.stations[exchange.to].peer_index(exchange.from);
        let mut appended = std::mem::take(&mut self.stations[exchange.to].peers[back].appended);
        let result = act(self, &mut appended);
        self.stations[exchange.to].peers[back].appended = appended;
        result
    }

    /// The last frame of `exchange` has ended; its response is `lost` or not.
    fn go_on(&mut self, exchange: &mut Exchange, lost: bool) -> Follows {
        if self.rules.may_go_on {
            self.go_on_in_txop(exchange, lost)
        } else {
            Follows::end(exchange.response_end)
        }
    }
}

impl Follows {
    /// The sequence ends at `at` and releases the medium.
    pub fn end(at: Instant) -> Self {
        Self::Nothing { at, reserved_until: at, reserves_txop: false }
    }

    /// The sequence ends at `at`, before the response to `exchange`.
    pub fn unanswered(exchange: &Exchange, at: Instant) -> Self {
        Self::Nothing {
            at,
            reserved_until: exchange.response_end.max(at),
            reserves_txop: exchange.reserves_txop(),
        }
    }
}
