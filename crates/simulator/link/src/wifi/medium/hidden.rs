//! The medium where some stations do not hear each other: carrier sense, NAV and collisions are per station.
//!
//! Each station has its own state and frames may overlap in any way. A frame arrives unless its receiver heard another
//! frame at the same time or was sending. Every frame costs a pass over all stations, so this model is used only if
//! stations are hidden.

use tacit_packet::units::{Duration, Instant};

use super::capture::Capture;
use super::carrier_sense::CarrierSense;
use crate::packet::PayloadClass;
use crate::wifi::air::StationId;
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::cell::{Cell, Follows, Reception, Round, Sequence, earliest, even_shares};
use crate::wifi::config::Eifs;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::exchange::{Exchange, Part};
use crate::wifi::mac::plan::Outgoing;
use crate::wifi::mac::protection::{Handshake, Step};
use crate::wifi::mac::rules::Rules;

/// A frame at a station.
#[derive(Clone, Copy, Debug, Default)]
struct Perceived {
    sends: bool,
    hears: bool,
    /// Another frame overlaps it.
    spoilt: bool,
    /// Nothing else was on the air there when it began.
    detected: bool,
}

/// A frame on the air, or those that several users send at the same time in response to a trigger.
#[derive(Clone, Debug)]
struct OnAir {
    /// `None` for a beacon.
    sequence: Option<Sequence>,
    until: Instant,
    /// One entry per station.
    perceived: Vec<Perceived>,
    at: Instant,
    /// With capture: the access point locked onto this frame, because it heard no other when this one began.
    held: bool,
    /// With capture: the sum of the powers at the access point of all frames that overlapped it.
    interference: u64,
}

/// A frame that is sent one SIFS after another, even on a busy channel.
#[derive(Clone, Debug)]
struct Due {
    at: Instant,
    sequence: Sequence,
}

/// What a station hears and does now.
#[derive(Clone, Debug)]
struct Ear {
    /// Number of frames on the air that it hears.
    heard: u32,
    sending: bool,
    /// Whether it takes part in an exchange, including the gaps within it.
    engaged: bool,
    /// Whether it waits EIFS: the last frame that it heard was corrupted by overlap, or, where a frame must be detected
    /// for that, a detected one was, and it decoded none since.
    undecodable: bool,
    /// Until when other stations have reserved the channel (NAV).
    reserved_until: Instant,
}

/// Which stations hear each other, and the frames they hear now.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    /// `deaf[a * stations + b]`: a does not hear b. No station hears itself.
    deaf: Vec<bool>,
    pub(super) sense: CarrierSense,
    ears: Vec<Ear>,
    /// Set when an ear changes, until the next [`refresh`](Self::refresh).
    changed: bool,
    frames: Vec<OnAir>,
    due: Vec<Due>,
    eifs: Eifs,
    /// Set if the access point may capture one of several overlapping frames.
    capture: Option<Capture>,
    /// When the next frame ends or begins within its sequence.
    next: Option<Instant>,
}

impl Hidden {
    /// The medium with the hidden stations of `rules`.
    ///
    /// # Panics
    /// If the access point is hidden from a station, or a listed station does not exist.
    pub fn new(rules: &Rules) -> Self {
        let config = &rules.config;
        let stations = config.stations.len() + 1;
        let mut deaf = vec![false; stations * stations];
        (0..stations).for_each(|id| deaf[id * stations + id] = true);
        for (a, b) in &config.hidden {
            assert!(*a != StationId::AP && *b != StationId::AP, "every station hears the access point");
            deaf[a.index() * stations + b.index()] = true;
            deaf[b.index() * stations + a.index()] = true;
        }
        let ear = Ear {
            heard: 0,
            sending: false,
            engaged: false,
            undecodable: false,
            reserved_until: Instant::ZERO,
        };
        Self {
            deaf,
            sense: CarrierSense::new(rules.phy, Some(stations)),
            ears: vec![ear; stations],
            changed: false,
            frames: Vec::new(),
            due: Vec::new(),
            eifs: config.eifs,
            capture: Capture::new(config),
            next: None,
        }
    }

    /// When the next event is due.
    pub fn poll_timeout(&self, cell: &Cell) -> Option<Instant> {
        earliest(earliest(self.next, self.sense.next_access()), self.beacon_at(cell))
    }

    /// True while an exchange of `function` is on the air or its next frame is due.
    pub fn engages(&self, function: FunctionId) -> bool {
        self.sequences().flatten().any(|sequence| sequence.engages(function))
    }

    /// True while an event other than a beacon is due.
    pub fn is_due(&self) -> bool {
        self.next.is_some() || self.sense.next_access().is_some()
    }

    /// The sequences with a frame on the air, and those with a frame due; `None` for a beacon.
    fn sequences(&self) -> impl Iterator<Item = Option<&Sequence>> {
        let on_air = self.frames.iter().map(|frame| frame.sequence.as_ref());
        on_air.chain(self.due.iter().map(|due| Some(&due.sequence)))
    }

    fn hears(&self, listener: usize, speaker: StationId) -> bool {
        !self.deaf[listener * self.ears.len() + speaker.index()]
    }

    /// A frame of `sequence`, or a beacon, begins: at each station that hears it and another one, the two corrupt each other.
    fn begin(&mut self, cell: &Cell, sequence: Option<Sequence>, [at, until]: [Instant; 2]) {
        self.changed = true;
        let mut perceived = vec![Perceived::default(); self.ears.len()];
        let mut send = |transmitter: StationId| {
            perceived[transmitter.index()].sends = true;
            for (listener, own) in perceived.iter_mut().enumerate() {
                own.hears |= self.hears(listener, transmitter);
            }
        };
        match &sequence {
            None => send(StationId::AP),
            Some(sequence) => sequence.each_transmitter(|function| send(cell.stations.station_of(function))),
        }
        for (ear, own) in self.ears.iter_mut().zip(&mut perceived) {
            own.hears &= !own.sends;
            own.detected = own.hears && ear.heard == 0 && !ear.sending;
            ear.sending |= own.sends;
            ear.heard += u32::from(own.hears);
        }
        for other in &mut self.frames {
            for (new, old) in perceived.iter_mut().zip(&mut other.perceived) {
                new.spoilt |= new.hears && (old.hears || old.sends);
                old.spoilt |= old.hears && (new.hears || new.sends);
                old.detected &= other.at < at || !old.spoilt;
            }
        }
        let mut frame = OnAir { sequence, until, perceived, at, held: true, interference: 0 };
        if let Some(capture) = &self.capture {
            self.frames.iter_mut().for_each(|other| other.meets(&mut frame, capture));
        }
        self.frames.push(frame);
    }

    /// Ends the frame at `index`: stations that decoded it, except its receiver, set their NAV to what it `reserves`; a
    /// CF-End, which reserves nothing, resets it.
    fn end(
        &mut self,
        index: usize,
        at: Instant,
        reserves: Option<Duration>,
        receiver: Option<StationId>,
    ) -> Vec<Perceived> {
        self.changed = true;
        let frame = self.frames.remove(index);
        for (listener, (ear, own)) in self.ears.iter_mut().zip(&frame.perceived).enumerate() {
            ear.sending &= !own.sends;
            if !own.hears {
                continue;
            }
            ear.heard -= 1;
            ear.undecodable = match self.eifs {
                Eifs::Never => false,
                Eifs::Detected => own.spoilt && (own.detected || ear.undecodable),
                Eifs::Overlapping => own.spoilt,
            };
            match reserves {
                _ if own.spoilt => {}
                None => ear.reserved_until = at,
                Some(_) if receiver.is_some_and(|receiver| receiver.index() == listener) => {}
                Some(reserves) => ear.reserved_until = ear.reserved_until.max(at + reserves),
            }
        }
        frame.perceived
    }

    /// Processes the events due at `at`: frames end, then their responses begin, then frames of stations whose
    /// countdown ended.
    pub fn step(&mut self, cell: &mut Cell, at: Instant) {
        self.book(cell, at, None);
        while let Some(index) = self.frames.iter().position(|frame| frame.until <= at) {
            self.frame_ended(cell, index, at);
        }
        self.refresh(cell, at);
        while let Some(index) = self.due.iter().position(|due| due.at <= at) {
            let Due { sequence, .. } = self.due.swap_remove(index);
            self.begin_sequence(cell, sequence, at);
        }
        self.refresh(cell, at);
        if self.beacon_at(cell).is_some_and(|beacon| beacon <= at) {
            self.begin_beacon(cell, at);
            self.refresh(cell, at);
        }
        self.access(cell, at);
        let frames = self.frames.iter().map(|frame| frame.until).min();
        self.next = earliest(frames, self.due.iter().map(|due| due.at).min());
        self.sense.find_next_access(cell);
    }

    /// A function that had no traffic now has some.
    pub fn start_contending(&mut self, cell: &mut Cell, now: Instant, id: FunctionId) {
        self.book(cell, now, Some(id));
        self.sense.start_contending(cell, now, id);
    }

    /// Functions whose backoff ended transmit.
    fn access(&mut self, cell: &mut Cell, at: Instant) {
        let mut winners = self.sense.access(cell, at);
        for sequence in winners.drain(..) {
            cell.count_access(&sequence, at);
            self.set_engaged(cell, &sequence, true);
            self.begin_sequence(cell, sequence, at);
        }
        self.sense.winners = winners;
        self.refresh(cell, at);
    }

    /// The next frame of `sequence` begins at `at`.
    fn begin_sequence(&mut self, cell: &mut Cell, sequence: Sequence, at: Instant) {
        let until = cell.begin_frame(&sequence, at);
        self.begin(cell, Some(sequence), [at, until]);
    }

    fn frame_ended(&mut self, cell: &mut Cell, index: usize, at: Instant) {
        let Some(mut sequence) = self.frames[index].sequence.take() else {
            self.end(index, at, Some(Duration::ZERO), None);
            return;
        };
        let reception = match &mut sequence {
            Sequence::Exchange(exchange) => self.receive(cell, index, exchange, at),
            Sequence::Round(round) => {
                self.receive_round(cell, index, round, at);
                Reception::UNDISTURBED
            }
        };
        self.set_engaged(cell, &sequence, false);
        let next_idle = self.sense.next_idle(cell, sequence.holder());
        let follows = cell.frame_ended(&mut sequence, reception, (at, next_idle));
        self.sense.begin_contending(cell, at);
        if let Follows::Frame(at) = follows {
            self.set_engaged(cell, &sequence, true);
            self.due.push(Due { at, sequence });
        }
    }

    /// The frame at `index` of `exchange` has ended.
    fn receive(&mut self, cell: &Cell, index: usize, exchange: &Exchange, at: Instant) -> Reception {
        let reserves = match exchange.part {
            // A station that hears the RTS also hears the data.
            Part::Protection(Step::Rts) => Some(cell.rts_reserves(exchange)),
            Part::Protection(_) | Part::Data | Part::Response { .. } => Some(exchange.reserved_until() - at),
            Part::CfEnd => None,
        };
        let receiver = cell.stations.station_of(exchange.receiver());
        self.try_capture(cell, index, exchange);
        let perceived = self.end(index, at, reserves, Some(receiver));
        let clear = !perceived[receiver.index()].spoilt;
        Reception { clear, ready: self.is_ready(receiver, exchange, at) }
    }

    /// The PPDU at `index` of `round` has ended.
    fn receive_round(&mut self, cell: &mut Cell, index: usize, round: &mut Round, at: Instant) {
        let reserves = round.reserves_until(cell) - at;
        let perceived = self.end(index, at, Some(reserves), None);
        let is_spoilt = |function| perceived[cell.stations.station_of(function).index()].spoilt;
        let is_hidden = round.hide_from(cell, is_spoilt);
        cell.accounts.collisions += u64::from(is_hidden);
    }

    /// Whether `receiver` may respond to a frame that ended at `at`.
    fn is_ready(&self, receiver: StationId, exchange: &Exchange, at: Instant) -> bool {
        let ear = &self.ears[receiver.index()];
        match exchange.part {
            // A station whose NAV is set does not respond (clause 10.3.2.9).
            Part::Protection(Step::Rts) => !ear.engaged && ear.heard == 0 && ear.reserved_until <= at,
            // After a CTS or a grant the receiver takes part in this exchange; otherwise it must take part in no other.
            Part::Data => !ear.engaged || matches!(exchange.handshake, Handshake::Rts | Handshake::Granted),
            Part::Protection(_) | Part::Response { .. } | Part::CfEnd => true,
        }
    }

    /// The participants of `sequence` take part in it from now on, in the gaps between its frames too, or no longer.
    fn set_engaged(&mut self, cell: &Cell, sequence: &Sequence, engaged: bool) {
        self.changed = true;
        sequence.each_participant(|function| {
            self.ears[cell.stations.station_of(function).index()].engaged = engaged;
        });
    }

    /// Captures the frame at `index` at the access point if the access point locked onto it and it is strong enough for
    /// its mode, despite the overlapping frames.
    fn try_capture(&mut self, cell: &Cell, index: usize, exchange: &Exchange) {
        let frame = &mut self.frames[index];
        let Some(capture) = &mut self.capture else { return };
        let Perceived { sends, spoilt, .. } = &mut frame.perceived[StationId::AP.index()];
        if !*spoilt || !frame.held || *sends {
            return;
        }
        let originator = cell.stations.originator(exchange);
        let mode = match (exchange.part, exchange.outgoing) {
            (Part::Data, Outgoing::Data { .. }) => originator.mode,
            (Part::Protection(_), _) => cell.handshake_mode(exchange),
            (Part::Data | Part::Response { .. } | Part::CfEnd, _) => originator.control_mode,
        };
        let transmitter = cell.stations.station_of(exchange.transmitter());
        *spoilt = !capture.stands_out(transmitter, &mode, frame.interference);
    }

    /// Stations whose channel became busy stop counting, and those whose channel became idle start.
    fn refresh(&mut self, cell: &mut Cell, at: Instant) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        for (station, ear) in (0..).map(StationId).zip(&mut self.ears) {
            let busy = ear.heard > 0 || ear.sending || ear.engaged;
            if busy == self.sense.is_busy(station) {
                continue;
            }
            if busy {
                self.sense.become_busy(cell, at, station);
                continue;
            }
            let undecodable = std::mem::take(&mut ear.undecodable);
            let wait = if undecodable { cell.rules.phy.eifs() } else { cell.rules.phy.aifs() };
            let free_from = at.max(ear.reserved_until);
            self.sense.become_idle(cell, station, (ear.reserved_until, free_from, free_from + wait));
        }
    }

    fn beacon_at(&self, cell: &Cell) -> Option<Instant> {
        self.sense.beacon_at(cell).filter(|_| !self.sense.is_busy(StationId::AP))
    }

    fn begin_beacon(&mut self, cell: &mut Cell, at: Instant) {
        let until = cell.send_beacon(at);
        self.begin(cell, None, [at, until]);
    }

    /// Books the time since the last event; `newcomer` is counted as without traffic, because it had none until now.
    fn book(&self, cell: &mut Cell, until: Instant, newcomer: Option<FunctionId>) {
        let what = self.present_use(cell, newcomer);
        if what == AirtimeUse::Acquisition {
            cell.accounts.book_idle(what, until);
            return;
        }
        // The gaps between the frames of a sequence belong to it.
        let charged = if self.frames.is_empty() { self.due.len() } else { self.frames.len() };
        if charged == 1 {
            match self.sequences().next() {
                // It accounts for itself.
                Some(Some(Sequence::Round(_))) => return,
                Some(Some(Sequence::Exchange(exchange @ Exchange { part: Part::Response { .. }, .. })))
                    if !self.frames.is_empty() =>
                {
                    cell.book_frame(exchange, until);
                    return;
                }
                _ => {}
            }
        }
        let spent = cell.accounts.book(what, until);
        for (sequence, share) in self.sequences().zip(even_shares(spent, charged.max(1))) {
            let beacon = (StationId::AP.first_function(), PayloadClass::Data);
            let (station, class) = sequence.map_or(beacon, Sequence::account);
            cell.stations[station].airtime.spend(class, what, share);
        }
    }

    /// Current use of the channel as seen by an observer that hears every frame. For a PPDU with several uses, it is
    /// the one with the largest share.
    pub fn present_use(&self, cell: &Cell, newcomer: Option<FunctionId>) -> AirtimeUse {
        match self.frames.as_slice() {
            [] if !self.due.is_empty() => {
                let protects = |due: &Due| {
                    due.sequence.exchange().map(Exchange::gap_use) == Some(AirtimeUse::Protection)
                };
                if self.due.iter().any(protects) { AirtimeUse::Protection } else { AirtimeUse::LinkAck }
            }
            [] => self.sense.idle_use_without(cell, newcomer),
            [OnAir { sequence: None, .. }] => AirtimeUse::Beacon,
            [OnAir { sequence: Some(Sequence::Exchange(exchange)), .. }] => match exchange.part {
                Part::Protection(_) | Part::CfEnd => AirtimeUse::Protection,
                Part::Data if matches!(exchange.outgoing, Outgoing::Data { .. }) => {
                    cell.stations.originator(exchange).plan().main_use()
                }
                Part::Data | Part::Response { .. } => AirtimeUse::LinkAck,
            },
            [_] => AirtimeUse::LinkAck,
            _ => AirtimeUse::Collision,
        }
    }
}

impl OnAir {
    /// Its power at the access point.
    fn power(&self, capture: &Capture) -> u64 {
        let transmitters = self.perceived.iter().zip(0..).filter(|(own, _)| own.sends);
        transmitters.map(|(_, id)| capture.power(StationId(id))).fold(0, u64::saturating_add)
    }

    /// `later` begins while this frame is on the air. The access point stays locked onto the earlier frame, unless both
    /// began at the same time and `later` is stronger. While the access point sends, it receives nothing.
    fn meets(&mut self, later: &mut Self, capture: &Capture) {
        let sends = [&*self, &*later].into_iter().any(|frame| frame.perceived[StationId::AP.index()].sends);
        let power = |frame: &Self| if sends { u64::MAX } else { frame.power(capture) };
        let (own, new) = (power(self), power(later));
        self.interference = self.interference.saturating_add(new);
        later.interference = later.interference.saturating_add(own);
        let takes_over = self.at == later.at && new > own;
        later.held &= takes_over || !self.held;
        self.held &= !takes_over;
    }
}
