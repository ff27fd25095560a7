//! Frame exchange sequences: the frames of an exchange or of a multi-user access, and what follows each of them. The
//! medium decides whether other frames overlap them.

use tacit_packet::units::{Duration, Instant};

use super::round::{Progress, Round};
use super::{Answer, Cell};
use crate::packet::PayloadClass;
use crate::wifi::air::{Outcome, StationId};
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

    /// Until when stations that received its frame, which ended at `at`, defer; `None` for a CF-End, after which they do not.
    pub fn reserves_until(&self, cell: &Cell, at: Instant) -> Option<Instant> {
        match self {
            Self::Round(round) => Some(round.reserves_until(cell)),
            Self::Exchange(exchange) => match exchange.part {
                Part::Protection(Step::Rts) => Some(at + cell.rts_reserves(exchange)),
                Part::Protection(_) | Part::Data | Part::Response { .. } => Some(exchange.reserved_until()),
                Part::CfEnd => None,
            },
        }
    }

    /// The station whose NAV its frame does not set, if there is one.
    pub fn receiver(&self, cell: &Cell) -> Option<StationId> {
        self.exchange().map(|exchange| cell.stations.station_of(exchange.receiver()))
    }

    /// The two ends of the TXOP, if its frame reserves the rest of it.
    pub fn txop_ends(&self) -> Option<[FunctionId; 2]> {
        let exchange = self.exchange().filter(|exchange| exchange.reserves_txop())?;
        (exchange.part != Part::Protection(Step::Rts)).then_some([exchange.from, exchange.to])
    }

    /// Use of its frame, and of the gap before it. For a PPDU with several uses, it is the one with the largest share.
    pub fn present_use(&self, cell: &Cell) -> AirtimeUse {
        let Self::Exchange(exchange) = self else { return AirtimeUse::LinkAck };
        match (exchange.part, exchange.outgoing) {
            (Part::Protection(_) | Part::CfEnd, _) => AirtimeUse::Protection,
            (Part::Data, Outgoing::Data { .. }) => cell.stations.originator(exchange).plan().main_use(),
            (Part::Data | Part::Response { .. }, _) => AirtimeUse::LinkAck,
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

    /// Accounts a frame until its end, or until before that, and the gap before it.
    pub fn book_frame(&mut self, exchange: &Exchange, until: Instant) {
        let (from, class) = (exchange.from, exchange.outgoing.class());
        match exchange.part {
            Part::Protection(_) => self.charge(from, class, AirtimeUse::Protection, until),
            Part::CfEnd => self.charge(exchange.holder(), class, AirtimeUse::Protection, until),
            Part::Data => {
                if exchange.handshake != Handshake::None {
                    self.charge(from, class, exchange.gap_use(), exchange.start.min(until));
                }
                if let Outgoing::Data { .. } = exchange.outgoing {
                    let plan = *self.stations.originator(exchange).plan();
                    self.book_data(from, class, ([exchange.start, exchange.end], until), plan);
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

    /// A frame of `sequence` ended at `at`. `next_idle` is the idle period that would now begin at its holder. Returns when the
    /// next frame of `sequence` begins, which becomes the next sequence of its TXOP if it is over.
    pub fn frame_ended(
        &mut self,
        sequence: &mut Sequence,
        reception: Reception,
        (at, next_idle): (Instant, u64),
    ) -> Option<Instant> {
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
            Part::CfEnd => None,
        }
    }

    fn round_frame_ended(&mut self, round: &mut Round, next_idle: u64) -> Option<Instant> {
        let holder = round.account().0;
        match round.step(self, next_idle) {
            Progress::GoesOn => Some(round.begins_at()),
            Progress::Over { succeeded: false, .. } => None,
            Progress::Over { at, .. } => {
                let (next, start) = self.continue_rounds(at, holder)?;
                self.charge(holder, next.account().1, AirtimeUse::Acquisition, start);
                next.book_first(self, start);
                *round = next;
                Some(start)
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
    ) -> Option<Instant> {
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
            (true, true) => Outcome::Received,
            (true, false) => Outcome::Errored,
            (false, _) => Outcome::Collided,
        };
        self.record_handshake(exchange, step, outcome);
        match step {
            Step::Rts if understood && ready => {
                exchange.part = Part::Protection(Step::Cts);
                return Some(at + self.rules.phy.sifs);
            }
            Step::Cts | Step::CtsToSelf if understood => {
                self.handshake_done(exchange);
                exchange.part = Part::Data;
                return Some(exchange.start);
            }
            Step::Rts | Step::Cts | Step::CtsToSelf => {}
        }
        self.fail_protection(exchange, at, next_idle);
        None
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
    ) -> Option<Instant> {
        let heard = if clear && ready {
            self.receive(exchange)
        } else {
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
            return None;
        }
        let Answer { exchange: answered, lost, .. } =
            self.with_appended(exchange, |cell, appended| cell.answer(exchange, None, appended));
        *exchange = answered;
        exchange.part = Part::Response { lost };
        Some(exchange.response_at)
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
    fn go_on(&mut self, exchange: &mut Exchange, lost: bool) -> Option<Instant> {
        if self.rules.may_go_on { self.go_on_in_txop(exchange, lost) } else { None }
    }
}
