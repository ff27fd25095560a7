//! The channel where some stations do not hear each other: carrier sense, NAV and collisions station by
//! station.
//!
//! The common channel of [`Bss`] has one state, because everybody hears the same. Here each station has its
//! own, frames overlap at will, and a frame arrives unless its receiver heard another at the same time or
//! was sending itself. Contention, queues, aggregation, acknowledgment and losses are the same code. It
//! costs a look at every station per frame, so it is only there where somebody is hidden.

use tacit_proto::units::{Duration, Instant};

use super::access::IdlePeriod;
use super::capture::Capture;
use super::exchange::{BEACON_LEN, Exchange};
use super::protection::{Direction, Handshake, Step};
use super::station::Outgoing;
use super::txop::{Next, holder};
use crate::payload::{Payload, PayloadClass};
use crate::wifi::air::{Outcome, StationId};
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::bss::{Bss, earliest, even_shares};
use crate::wifi::config::BssConfig;
use crate::wifi::phy::{CTS_LEN, Phy, RTS_LEN};

/// What a frame is within its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Protection(Step),
    Data,
    Response { lost: bool },
    CfEnd,
    Beacon,
}

/// A frame in the air.
#[derive(Clone, Debug)]
struct OnAir {
    part: Part,
    /// `None` for a beacon.
    exchange: Option<Exchange>,
    transmitter: StationId,
    until: Instant,
    /// The stations at which another frame overlaps it.
    spoilt: Vec<bool>,
    at: Instant,
    /// With capture: the access point holds on to it, because nothing else was to be heard when it began.
    held: bool,
    /// With capture: the powers of all that overlapped it at the access point.
    interference: u64,
}

/// A frame that goes out one SIFS after another, whatever the channel does.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    part: Part,
    exchange: Exchange,
}

impl Due {
    /// Part of RTS and CTS, CTS-to-self or CF-End, or the data that waits for them.
    fn is_protected(&self) -> bool {
        match self.part {
            Part::Protection(_) | Part::CfEnd => true,
            Part::Data => matches!(self.exchange.handshake, Handshake::Rts | Handshake::CtsToSelf),
            Part::Response { .. } | Part::Beacon => false,
        }
    }
}

/// What one station hears.
#[derive(Clone, Debug)]
struct Ear {
    /// Frames in the air that it hears.
    heard: u32,
    sending: bool,
    /// In an exchange, be it in a pause of it.
    engaged: bool,
    /// What the three came to when they were last looked at.
    busy: bool,
    /// The last frame it heard was spoilt.
    undecodable: bool,
    /// Until when others have reserved the channel (NAV).
    reserved_until: Instant,
    idle_since: Instant,
    idle: IdlePeriod,
}

/// Who hears whom, and what they hear now.
#[derive(Clone, Debug)]
pub(crate) struct Hearing {
    /// `deaf[a * stations + b]`: a does not hear b. Nobody hears itself.
    deaf: Vec<bool>,
    ears: Vec<Ear>,
    frames: Vec<OnAir>,
    due: Vec<Due>,
    /// Where the access point may get one of several frames.
    capture: Option<Capture>,
    /// When something happens next.
    pub next: Option<Instant>,
}

impl Hearing {
    /// Who hears whom in a basic service set; `None` where everybody hears everybody.
    ///
    /// # Panics
    /// Where the access point is hidden, or a station that does not exist.
    pub fn new(config: &BssConfig, phy: &Phy) -> Option<Box<Self>> {
        if config.hidden.is_empty() {
            return None;
        }
        let stations = config.stations.len() + 1;
        let mut deaf = vec![false; stations * stations];
        (0..stations).for_each(|id| deaf[id * stations + id] = true);
        for (a, b) in &config.hidden {
            assert!(*a != StationId::AP && *b != StationId::AP, "everybody hears the access point");
            deaf[a.index() * stations + b.index()] = true;
            deaf[b.index() * stations + a.index()] = true;
        }
        let start = Instant::ZERO + phy.aifs();
        let ear = Ear {
            heard: 0,
            sending: false,
            engaged: false,
            busy: false,
            undecodable: false,
            reserved_until: Instant::ZERO,
            idle_since: Instant::ZERO,
            idle: IdlePeriod {
                number: 0,
                countdown_from: start,
                exempt_countdown_from: start,
                resumed: false,
            },
        };
        Some(Box::new(Self {
            deaf,
            ears: vec![ear; stations],
            frames: Vec::new(),
            due: Vec::new(),
            capture: Capture::new(config),
            next: None,
        }))
    }

    /// True while an exchange of `station` is on the air or about to go on.
    pub fn engages(&self, station: StationId) -> bool {
        let of = |exchange: &Exchange| exchange.from == station;
        self.frames.iter().filter_map(|frame| frame.exchange.as_ref()).any(of)
            || self.due.iter().any(|due| of(&due.exchange))
    }

    fn hears(&self, listener: usize, speaker: StationId) -> bool {
        !self.deaf[listener * self.ears.len() + speaker.index()]
    }

    /// `transmitter` begins a frame: it spoils what others hear, and they spoil it.
    fn begin(
        &mut self,
        part: Part,
        exchange: Option<Exchange>,
        transmitter: StationId,
        [at, until]: [Instant; 2],
    ) {
        let mut spoilt = vec![false; self.ears.len()];
        let mut frames = std::mem::take(&mut self.frames);
        for other in &mut frames {
            for (listener, (new_spoilt, old_spoilt)) in spoilt.iter_mut().zip(&mut other.spoilt).enumerate() {
                let sends = |station: StationId| listener == station.index();
                let (new, old) = (self.hears(listener, transmitter), self.hears(listener, other.transmitter));
                *new_spoilt |= new && (old || sends(other.transmitter));
                *old_spoilt |= old && (new || sends(transmitter));
            }
        }
        let mut frame = OnAir { part, exchange, transmitter, until, spoilt, at, held: true, interference: 0 };
        if let Some(capture) = &self.capture {
            frames.iter_mut().for_each(|other| other.meets(&mut frame, capture));
        }
        frames.push(frame);
        self.frames = frames;
        self.ears[transmitter.index()].sending = true;
        for listener in 0..self.ears.len() {
            self.ears[listener].heard += u32::from(self.hears(listener, transmitter));
        }
    }

    /// The frame at `index` is over: who understood it keeps what it reserves.
    fn end(&mut self, index: usize, at: Instant, reserves: Duration, receiver: Option<StationId>) -> OnAir {
        let frame = self.frames.remove(index);
        self.ears[frame.transmitter.index()].sending = false;
        for listener in 0..self.ears.len() {
            if !self.hears(listener, frame.transmitter) {
                continue;
            }
            let ear = &mut self.ears[listener];
            ear.heard -= 1;
            ear.undecodable = frame.spoilt[listener];
            if frame.part == Part::CfEnd && !ear.undecodable {
                ear.reserved_until = at;
            } else if !ear.undecodable && receiver.is_none_or(|receiver| receiver.index() != listener) {
                ear.reserved_until = ear.reserved_until.max(at + reserves);
            }
        }
        frame
    }

    fn ear(&mut self, station: StationId) -> &mut Ear {
        &mut self.ears[station.index()]
    }
}

impl OnAir {
    /// `later` begins while this frame is in the air. The access point stays with what it holds, unless the other has
    /// begun with it and is stronger; while it sends itself it hears nothing.
    fn meets(&mut self, later: &mut Self, capture: &Capture) {
        let sends = [&*self, &*later].into_iter().any(|frame| frame.transmitter == StationId::AP);
        let power = |frame: &Self| if sends { u64::MAX } else { capture.power(frame.transmitter) };
        let (own, new) = (power(self), power(later));
        self.interference = self.interference.saturating_add(new);
        later.interference = later.interference.saturating_add(own);
        let takes_over = self.at == later.at && new > own;
        later.held &= takes_over || !self.held;
        self.held &= !takes_over;
    }
}

impl<P: Payload> Bss<P> {
    /// Everything due at `at`: frames end, then those that answer begin, then who has counted down.
    pub(crate) fn hidden_step(&mut self, at: Instant) {
        let Some(mut hearing) = self.hearing.take() else { return };
        self.book_heard(&hearing, at, None);
        while let Some(index) = hearing.frames.iter().position(|frame| frame.until <= at) {
            self.frame_ended(&mut hearing, index, at);
        }
        self.refresh(&mut hearing, at);
        while let Some(index) = hearing.due.iter().position(|due| due.at <= at) {
            let Due { part, exchange, .. } = hearing.due.swap_remove(index);
            self.begin_part(&mut hearing, part, exchange, at);
        }
        self.refresh(&mut hearing, at);
        if self.hidden_beacon_at(&hearing).is_some_and(|beacon| beacon <= at) {
            self.begin_beacon(&mut hearing, at);
            self.refresh(&mut hearing, at);
        }
        self.hidden_accesses(&mut hearing, at);
        hearing.next = self.hidden_next(&hearing);
        self.hearing = Some(hearing);
    }

    /// A function without traffic got some.
    pub(crate) fn hidden_start_contending(&mut self, now: Instant, id: StationId) {
        let Some(mut hearing) = self.hearing.take() else { return };
        self.book_heard(&hearing, now, Some(id));
        let slot = self.phy.slot;
        let ear = &hearing.ears[self.station(id).index()];
        let station = &mut self.stations[id.index()];
        let counting = std::mem::replace(&mut station.active, true);
        if ear.busy || now < ear.reserved_until {
            if !counting {
                station.contention.draw();
            }
        } else if !counting || station.contention.transmits_at(&ear.idle, slot) <= now {
            station.contention.start_at_once(now);
        }
        hearing.next = self.hidden_next(&hearing);
        self.hearing = Some(hearing);
    }

    /// When something happens next.
    fn hidden_next(&self, hearing: &Hearing) -> Option<Instant> {
        let frames = hearing.frames.iter().map(|frame| frame.until).min();
        let due = hearing.due.iter().map(|due| due.at).min();
        let accesses = self.contending(hearing).map(|(_, at)| at).min();
        earliest(earliest(frames, due), earliest(accesses, self.hidden_beacon_at(hearing)))
    }

    /// Functions that count down, and when they transmit.
    fn contending<'a>(&'a self, hearing: &'a Hearing) -> impl Iterator<Item = (StationId, Instant)> + 'a {
        self.stations.iter().filter_map(|station| {
            let ear = &hearing.ears[self.station(station.id).index()];
            (station.has_traffic() && !ear.busy)
                .then(|| (station.id, station.contention.transmits_at(&ear.idle, self.phy.slot)))
        })
    }

    /// Who has counted down transmits, of each station the most urgent category.
    fn hidden_accesses(&mut self, hearing: &mut Hearing, at: Instant) {
        let mut due: Vec<StationId> =
            self.contending(hearing).filter(|(_, when)| *when <= at).map(|(id, _)| id).collect();
        due.sort_unstable_by_key(|id| std::cmp::Reverse(self.stations[id.index()].category));
        let mut winners = std::mem::take(&mut self.winners);
        winners.clear();
        let mut yielding = std::mem::take(&mut self.yielding);
        yielding.clear();
        for id in due {
            if winners.iter().any(|(winner, _)| self.station(*winner) == self.station(id)) {
                yielding.push(id);
            } else if let Some(outgoing) = self.begin_access(at, id) {
                winners.push((id, outgoing));
            }
        }
        self.charge_wait(&winners);
        for (id, outgoing) in &winners {
            self.accesses += 1;
            let exchange = self.exchange(at, *id, *outgoing);
            let part = exchange.handshake.first().map_or(Part::Data, Part::Protection);
            hearing.ear(self.station(*id)).engaged = true;
            self.begin_part(hearing, part, exchange, at);
        }
        self.winners = winners;
        self.refresh(hearing, at);
        for id in &yielding {
            let station = &mut self.stations[id.index()];
            station.counters.internal_collisions += 1;
            station.contention.yielded();
        }
        self.yielding = yielding;
    }

    /// Takes from the queues what `id` sends; `None` when all of it was too old.
    fn begin_access(&mut self, at: Instant, id: StationId) -> Option<Outgoing> {
        let (phy, lifetime, protection) = (self.phy, self.config.lifetime, self.config.protection);
        let station = &mut self.stations[id.index()];
        let outgoing = station.next_outgoing(at, lifetime);
        station.report_drained(&mut self.drained);
        station.active = outgoing.is_some();
        station.transmitting = outgoing.is_some();
        let outgoing = outgoing?;
        if station.handshake(protection, &outgoing) != Handshake::Rts {
            station.count_access(&outgoing, phy);
        }
        Some(outgoing)
    }

    fn begin_part(&mut self, hearing: &mut Hearing, part: Part, exchange: Exchange, at: Instant) {
        let (from, to) = (self.station(exchange.from), self.station(exchange.to));
        let counters = &mut self.stations[exchange.from.index()].counters;
        let (transmitter, until) = match part {
            Part::Protection(step @ (Step::Rts | Step::CtsToSelf)) => {
                counters.rts += u64::from(step == Step::Rts);
                counters.cts_to_self += u64::from(step == Step::CtsToSelf);
                (from, exchange.first_end)
            }
            Part::Protection(Step::Cts) => (to, exchange.start - self.phy.sifs),
            Part::Data | Part::Beacon => (from, exchange.end),
            Part::Response { .. } => (to, exchange.response_end),
            Part::CfEnd => {
                let until = at + self.cf_end_duration(&exchange);
                self.count_cf_end(&exchange, at, until);
                (self.station(holder(&exchange)), until)
            }
        };
        hearing.begin(part, Some(exchange), transmitter, [at, until]);
    }

    fn frame_ended(&mut self, hearing: &mut Hearing, index: usize, at: Instant) {
        let (part, exchange) = (hearing.frames[index].part, hearing.frames[index].exchange);
        let Some(exchange) = exchange else {
            hearing.end(index, at, Duration::ZERO, None);
            return;
        };
        let (from, to) = (self.station(exchange.from), self.station(exchange.to));
        // An RTS after which nothing is heard reserves no more than the time of a CTS (802.11-2020 clause
        // 10.3.2.4); who hears the RTS hears the data too.
        let reserves = match part {
            Part::Protection(Step::Rts) => (self.phy.sifs + self.phy.slot) * 2 + self.cts_duration(&exchange),
            Part::Protection(_) | Part::Data | Part::Response { .. } => exchange.reserved_until() - at,
            Part::CfEnd | Part::Beacon => Duration::ZERO,
        };
        let receiver = match part {
            Part::Protection(Step::Rts) | Part::Data => to,
            Part::Protection(_) | Part::Response { .. } | Part::CfEnd | Part::Beacon => from,
        };
        self.capture(hearing, index, &exchange);
        let frame = hearing.end(index, at, reserves, Some(receiver));
        // Contention after a failure is exempt from what is reserved in the idle period that follows.
        self.idle = hearing.ears[self.station(holder(&exchange)).index()].idle;
        let clear = !frame.spoilt[receiver.index()];
        match part {
            Part::Protection(step) => self.hidden_protection_ended(hearing, &exchange, step, clear, at),
            Part::Data => self.hidden_data_ended(hearing, &exchange, clear, at),
            Part::Response { lost } => {
                let lost = lost || !clear;
                self.settle_response(&exchange, lost);
                let next = if self.may_go_on { self.after_response(&exchange, lost) } else { Next::Nothing };
                self.hidden_go_on(hearing, &next, &exchange);
            }
            Part::CfEnd => hearing.ear(self.station(holder(&exchange))).engaged = false,
            Part::Beacon => {}
        }
    }

    /// The access point gets the frame at `index` in spite of what overlapped it, if it held on to it and that one is
    /// strong enough for its mode.
    fn capture(&self, hearing: &mut Hearing, index: usize, exchange: &Exchange) {
        let frame = &mut hearing.frames[index];
        let Some(capture) = &mut hearing.capture else { return };
        let spoilt = &mut frame.spoilt[StationId::AP.index()];
        if !*spoilt || !frame.held || frame.transmitter == StationId::AP {
            return;
        }
        let originator = &self.stations[exchange.from.index()].peers[exchange.outgoing.peer()].originator;
        let mode = match (frame.part, exchange.outgoing) {
            (Part::Data, Outgoing::Data { .. }) => originator.mode,
            (Part::Protection(_), _) => self.protection_mode(&originator.mode, &originator.control_mode),
            (Part::Data | Part::Response { .. } | Part::CfEnd | Part::Beacon, _) => originator.control_mode,
        };
        *spoilt = !capture.stands_out(frame.transmitter, &mode, frame.interference);
    }

    fn hidden_protection_ended(
        &mut self,
        hearing: &mut Hearing,
        exchange: &Exchange,
        step: Step,
        clear: bool,
        at: Instant,
    ) {
        let (from, to) = (self.station(exchange.from), self.station(exchange.to));
        let understood = match step {
            Step::CtsToSelf => true,
            Step::Rts => clear && self.hears(exchange, RTS_LEN, exchange.begins, Direction::Forward),
            Step::Cts => clear && self.hears(exchange, CTS_LEN, exchange.first_end, Direction::Back),
        };
        let outcome = match (clear || step == Step::CtsToSelf, understood) {
            (_, true) => Outcome::Received,
            (true, false) => Outcome::Errored,
            (false, false) => Outcome::Collided,
        };
        self.record_protection(exchange, step, outcome);
        // Who knows of a reservation by others does not answer (clause 10.3.2.9).
        let ear = hearing.ear(to);
        let free = !ear.engaged && ear.heard == 0 && ear.reserved_until <= at;
        match step {
            Step::Rts if understood && free => {
                ear.engaged = true;
                hearing.due.push(Due {
                    at: at + self.phy.sifs,
                    part: Part::Protection(Step::Cts),
                    exchange: *exchange,
                });
            }
            Step::Cts | Step::CtsToSelf if understood => {
                if step == Step::Cts {
                    let station = &mut self.stations[exchange.from.index()];
                    station.peers[exchange.outgoing.peer()].originator.rts_answered();
                    station.count_access(&exchange.outgoing, self.phy);
                }
                hearing.due.push(Due { at: exchange.start, part: Part::Data, exchange: *exchange });
            }
            Step::Rts | Step::Cts | Step::CtsToSelf => {
                self.collisions += u64::from(!clear);
                self.fail_protection(exchange, at);
                hearing.ear(from).engaged = false;
                if step == Step::Cts {
                    hearing.ear(to).engaged = false;
                }
            }
        }
    }

    fn hidden_data_ended(&mut self, hearing: &mut Hearing, exchange: &Exchange, clear: bool, at: Instant) {
        let (from, to) = (self.station(exchange.from), self.station(exchange.to));
        // After a CTS or a grant the receiver is in this exchange, otherwise it must not be in another.
        let expected = matches!(exchange.handshake, Handshake::Rts | Handshake::Granted);
        let ready = expected || !hearing.ear(to).engaged;
        let heard = if clear && ready {
            self.receive(exchange)
        } else {
            self.collisions += 1;
            self.stations[exchange.from.index()].counters.collided_ppdus += 1;
            self.record_collided_data(exchange);
            false
        };
        if self.is_unanswered() {
            self.settle_unanswered(exchange);
            hearing.ear(from).engaged = false;
            if exchange.handshake == Handshake::Rts {
                hearing.ear(to).engaged = false;
            }
        } else if heard {
            let (exchange, lost) = self.answer(exchange);
            hearing.ear(to).engaged = true;
            hearing.due.push(Due { at: exchange.response_at, part: Part::Response { lost }, exchange });
        } else {
            self.fail(exchange, at + self.ack_timeout(exchange));
            if exchange.handshake == Handshake::Granted {
                self.hidden_go_on(hearing, &self.after_lost_reverse(exchange), exchange);
                return;
            }
            hearing.ear(from).engaged = false;
            if exchange.handshake == Handshake::Rts {
                hearing.ear(to).engaged = false;
            }
        }
    }

    /// Lets `next` follow `exchange`, which is over.
    fn hidden_go_on(&mut self, hearing: &mut Hearing, next: &Next, exchange: &Exchange) {
        let holder = holder(exchange);
        match *next {
            Next::Exchange(next) => {
                let granted = (next.handshake == Handshake::Granted).then_some(next.from);
                self.engage(hearing, exchange, [Some(holder), granted]);
                hearing.due.push(Due { at: next.start, part: Part::Data, exchange: next });
            }
            Next::End { at } => {
                self.engage(hearing, exchange, [Some(holder), None]);
                hearing.due.push(Due { at, part: Part::CfEnd, exchange: *exchange });
            }
            Next::Nothing => self.engage(hearing, exchange, [None; 2]),
        }
    }

    /// After `exchange` only `those` of its ends are in a TXOP.
    fn engage(&self, hearing: &mut Hearing, exchange: &Exchange, those: [Option<StationId>; 2]) {
        for end in [exchange.from, exchange.to] {
            hearing.ear(self.station(end)).engaged = those.contains(&Some(end));
        }
    }

    /// Stations for which the channel became busy stop counting; those for which it became idle begin.
    fn refresh(&mut self, hearing: &mut Hearing, at: Instant) {
        let phy = self.phy;
        for (number, ear) in hearing.ears.iter_mut().enumerate() {
            let busy = ear.heard > 0 || ear.sending || ear.engaged;
            if busy == std::mem::replace(&mut ear.busy, busy) {
                continue;
            }
            if !busy {
                let since = at.max(ear.reserved_until);
                let wait = if ear.undecodable && self.config.eifs { phy.eifs() } else { phy.aifs() };
                ear.undecodable = false;
                ear.idle_since = at;
                ear.idle = IdlePeriod {
                    number: ear.idle.number + 1,
                    countdown_from: since + wait,
                    exempt_countdown_from: since + phy.aifs(),
                    resumed: false,
                };
                continue;
            }
            for place in 0..self.config.categories.len() {
                let station = &mut self.stations[number + place * (self.config.stations.len() + 1)];
                if station.active && !station.transmitting {
                    station.contention.freeze(&ear.idle, at, phy);
                    station.active = station.has_traffic() || !station.contention.is_over();
                }
            }
        }
    }

    fn hidden_beacon_at(&self, hearing: &Hearing) -> Option<Instant> {
        let ear = &hearing.ears[StationId::AP.index()];
        let target = self.next_beacon.filter(|_| !ear.busy)?;
        Some(target.max(ear.idle_since.max(ear.reserved_until) + self.phy.pifs()))
    }

    fn begin_beacon(&mut self, hearing: &mut Hearing, at: Instant) {
        let until = at + self.phy.beacon_mode().ppdu_duration(BEACON_LEN);
        self.count_beacon(at, until);
        hearing.begin(Part::Beacon, None, StationId::AP, [at, until]);
    }

    /// Books the time since the last event, `newcomer` without the traffic that it has just got.
    fn book_heard(&mut self, hearing: &Hearing, until: Instant, newcomer: Option<StationId>) {
        let what = self.heard_use(hearing, newcomer);
        if what == AirtimeUse::Acquisition {
            self.book_idle(what, until);
            return;
        }
        if let [OnAir { part: Part::Response { .. }, exchange: Some(exchange), until: end, .. }] =
            hearing.frames.as_slice()
        {
            let plain_end = *end - self.appended_duration(exchange);
            self.charge(exchange.from, exchange.outgoing.class(), AirtimeUse::LinkAck, until.min(plain_end));
            self.charge(exchange.to, PayloadClass::Ack, AirtimeUse::CompressedAck, until);
            return;
        }
        let spent = self.ledger.book(what, until);
        let (frames, due) = (&hearing.frames, &hearing.due);
        let on_air = frames.iter().map(|frame| frame.exchange.as_ref());
        // Between the frames of an exchange it is that exchange's.
        let between = due.iter().filter(|_| frames.is_empty()).map(|due| Some(&due.exchange));
        let charged = if frames.is_empty() { due.len() } else { frames.len() };
        let shares = even_shares(spent, charged.max(1));
        for (exchange, share) in on_air.chain(between).zip(shares) {
            let (station, class) = match exchange {
                Some(exchange) => (exchange.from, exchange.outgoing.class()),
                None => (StationId::AP, PayloadClass::Data),
            };
            self.stations[station.index()].airtime.spend(class, what, share);
        }
    }

    /// What the channel is used for now, as an observer sees it who hears everything; a PPDU of several uses
    /// counts as the one it has most of.
    pub(crate) fn heard_use(&self, hearing: &Hearing, newcomer: Option<StationId>) -> AirtimeUse {
        match hearing.frames.as_slice() {
            [] if hearing.due.iter().any(Due::is_protected) => AirtimeUse::Protection,
            [] if !hearing.due.is_empty() => AirtimeUse::LinkAck,
            [] => {
                let waits =
                    self.stations.iter().any(|station| Some(station.id) != newcomer && station.has_traffic());
                if waits { AirtimeUse::Acquisition } else { AirtimeUse::Idle }
            }
            [frame] => match (frame.part, &frame.exchange) {
                (Part::Beacon, _) => AirtimeUse::Beacon,
                (Part::Protection(_) | Part::CfEnd, _) => AirtimeUse::Protection,
                (Part::Data, Some(Exchange { from, outgoing: Outgoing::Data { peer, .. }, .. })) => {
                    self.stations[from.index()].peers[*peer].originator.plan().main_use()
                }
                (Part::Data | Part::Response { .. }, _) => AirtimeUse::LinkAck,
            },
            _ => AirtimeUse::Collision,
        }
    }
}
