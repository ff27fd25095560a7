//! Carrier sense and contention: which functions count down, and which of them win an access.
//!
//! Each station has its own view of the medium. Where every station hears every other, all have one view in common.

use tacit_packet::units::Instant;

use super::transmission::{Perceived, Transmission};
use crate::wifi::air::StationId;
use crate::wifi::airtime::AirtimeUse;
use crate::wifi::cell::{Cell, Sequence, SequenceFrame, earliest};
use crate::wifi::config::Eifs;
use crate::wifi::functions::FunctionId;
use crate::wifi::mac::access::{AWAY, IdlePeriod};
use crate::wifi::mac::protection::{Handshake, Step};
use crate::wifi::mac::rules::Rules;

/// The medium as a station perceives it.
#[derive(Clone, Copy, Debug)]
struct View {
    /// Number of frames on the air that it hears.
    sensed: u32,
    sending: bool,
    /// Whether it takes part in a sequence, in the gaps between the frames too.
    engaged: bool,
    /// Whether EIFS follows: the last frame that it heard was corrupted by overlap, or, where a frame must be detected
    /// for that, a detected one was, and it decoded none since.
    waits_eifs: bool,
    busy: bool,
    idle: IdlePeriod,
    /// Until when it is reserved (NAV) for stations that took no part in the last exchange.
    reserved_until: Instant,
    /// Since when it is idle and not reserved for those that took part in it.
    free_from: Instant,
}

/// Who hears whom, and what they perceive.
#[derive(Clone, Debug)]
enum Views {
    /// Every station hears every other. The two ends of a TXOP whose rest is reserved ignore the common NAV.
    Common { view: View, txop_ends: Option<[FunctionId; 2]> },
    /// A view for each station.
    Own {
        views: Vec<View>,
        /// `hidden[a * stations + b]`: a does not hear b. No station hears itself.
        hidden: Vec<bool>,
    },
}

/// The stations' views of the medium, and the functions that contend for it.
#[derive(Clone, Debug)]
pub(super) struct CarrierSense {
    views: Views,
    /// Set when a frame begins or ends, until the next [`refresh`](Self::refresh).
    changed: bool,
    /// Functions that contend or count down.
    active: Vec<FunctionId>,
    /// Time of the next transmission, while the medium is idle.
    next_access: Option<Instant>,
    /// Functions whose backoff ended at the same time as that of a more urgent function of their station.
    yielding: Vec<FunctionId>,
}

impl CarrierSense {
    /// An idle medium under `rules`.
    ///
    /// # Panics
    /// If the access point is hidden from a station, or a hidden station does not exist.
    pub fn new(rules: &Rules) -> Self {
        let view = View {
            sensed: 0,
            sending: false,
            engaged: false,
            waits_eifs: false,
            busy: false,
            idle: IdlePeriod::first(rules.phy),
            reserved_until: Instant::ZERO,
            free_from: Instant::ZERO,
        };
        let (pairs, stations) = (&rules.config.hidden, rules.config.stations.len() + 1);
        let views = if pairs.is_empty() {
            Views::Common { view, txop_ends: None }
        } else {
            let mut hidden = vec![false; stations * stations];
            (0..stations).for_each(|id| hidden[id * stations + id] = true);
            for (a, b) in pairs {
                assert!(*a != StationId::AP && *b != StationId::AP, "every station hears the access point");
                hidden[a.index() * stations + b.index()] = true;
                hidden[b.index() * stations + a.index()] = true;
            }
            Views::Own { views: vec![view; stations], hidden }
        };
        Self { views, changed: false, active: Vec::new(), next_access: None, yielding: Vec::new() }
    }

    /// Whether every station hears every other.
    pub fn is_common(&self) -> bool {
        matches!(self.views, Views::Common { .. })
    }

    /// Time of the next transmission, while the medium is idle.
    pub fn next_access(&self) -> Option<Instant> {
        self.next_access
    }

    /// Number of the next idle period of `function`.
    pub fn next_idle(&self, cell: &Cell, function: FunctionId) -> u64 {
        self.views.at_function(cell, function).idle.number + 1
    }

    /// When the next beacon is sent, if the medium is idle for the access point.
    pub fn beacon_at(&self, cell: &Cell) -> Option<Instant> {
        let View { busy, free_from, .. } = *self.views.at_station(StationId::AP);
        let target = cell.next_beacon.filter(|_| !busy)?;
        Some(target.max(free_from + cell.rules.phy.pifs()))
    }

    /// When the backoff of `function` ends if the medium stays idle; `None` if it is busy.
    pub fn ready_at(&self, cell: &Cell, function: FunctionId) -> Option<Instant> {
        let View { busy, idle, .. } = self.views.at_function(cell, function);
        let ends_at = || cell.stations[function].contention.transmits_at(idle, cell.rules.phy.slot);
        (!busy).then(ends_at)
    }

    /// The radio of `function` leaves the link at `now`: its backoff stands still until it is back.
    pub fn sense_nothing(&self, cell: &mut Cell, now: Instant, function: FunctionId) {
        let view = self.views.at_function(cell, function);
        let contention = &mut cell.stations[function].contention;
        if !view.busy {
            contention.stand_still(&view.idle, now, cell.rules.phy);
        }
        contention.sense_from(AWAY);
    }

    /// The use to which idle time is charged: `Acquisition` if a station waits, `Idle` if none does. `newcomer` had no
    /// traffic until now.
    pub fn idle_use(&self, cell: &Cell, newcomer: Option<FunctionId>) -> AirtimeUse {
        let waits = |id: &FunctionId| Some(*id) != newcomer && cell.stations[*id].has_traffic();
        let is_waited = match newcomer {
            None => self.next_access.is_some(),
            Some(_) => self.active.iter().any(waits),
        };
        if is_waited { AirtimeUse::Acquisition } else { AirtimeUse::Idle }
    }

    /// Whether the receiver of a frame of `sequence` that ended at `at` may respond to it.
    pub fn is_ready(&self, cell: &Cell, sequence: &Sequence, at: Instant) -> bool {
        let Views::Own { views, .. } = &self.views else { return true };
        let (Some(exchange), Some(receiver)) = (sequence.only_exchange(), sequence.receiver()) else {
            return true;
        };
        let view = &views[cell.stations.station_of(receiver).index()];
        match sequence.frame {
            // A station whose NAV is set does not respond (802.11-2020 clause 10.3.2.9).
            SequenceFrame::Protection(Step::Rts) => {
                !view.engaged && view.sensed == 0 && view.reserved_until <= at
            }
            // After a CTS or a grant the receiver takes part in this exchange; otherwise it must take part in no other.
            SequenceFrame::Data => {
                !view.engaged || matches!(exchange.handshake, Handshake::Rts | Handshake::Granted)
            }
            _ => true,
        }
    }

    // --- Contention -------------------------------------------------------------------------

    /// A function that had no traffic now has some.
    pub fn start_contending(&mut self, cell: &mut Cell, now: Instant, id: FunctionId) {
        let View { busy, idle, reserved_until, free_from, .. } = *self.views.at_function(cell, id);
        let slot = cell.rules.phy.slot;
        let station = &mut cell.stations[id];
        // A NAV makes the medium busy even if no frame is on it (802.11-2020 clauses 10.3.2.1 and 10.3.4.2).
        let takes_part = station.contention.failed_before(idle.number);
        let mut is_reserved = now < if takes_part { free_from } else { reserved_until };
        if cell.rules.multi_link.is_some() && now < station.contention.senses_from() {
            is_reserved = true;
            station.contention.renew_if_over(station.active);
        }
        if station.start_contending(&idle, slot, now, busy || is_reserved) {
            self.active.push(id);
        }
        if !busy {
            let at = station.contention.transmits_at(&idle, slot);
            self.next_access = earliest(self.next_access, Some(at));
        }
    }

    /// Functions that want the medium without a packet from the host draw their backoff while it is busy.
    pub fn begin_contending(&mut self, cell: &mut Cell, at: Instant) {
        while cell.rules.has_triggers
            && let Some(function) = cell.contending.pop()
        {
            self.start_contending(cell, at, function);
        }
    }

    /// Finds the time of the next transmission.
    pub fn find_next_access(&mut self, cell: &Cell) {
        self.yielding.clear();
        self.next_access = None;
        if let Views::Common { view: View { busy: true, .. }, .. } = self.views {
            return;
        }
        let times = self.active.iter().map(|id| self.views.transmits_at(cell, *id));
        self.next_access = times.fold(None, earliest);
    }

    /// The functions whose backoff ended at `at` win an access, of each station only those of the most urgent category.
    /// Adds the sequences with which they begin to `begun`.
    pub fn access(&mut self, cell: &mut Cell, at: Instant, begun: &mut Vec<Transmission>) {
        if cell.rules.config.categories.len() > 1 {
            self.find_yielding(cell, at);
        }
        let Self { views, active, yielding, .. } = self;
        active.retain(|id| {
            if views.transmits_at(cell, *id).is_none_or(|when| when > at) {
                return true;
            }
            if yielding.contains(id) {
                cell.stations[*id].yield_access(cell.rules.config.short_retry_limit);
                return true;
            }
            let transmission = Transmission::new(cell.begin_access(at, *id), at);
            let function = &mut cell.stations[*id];
            if transmission.sequence.is_some() {
                begun.push(transmission);
            } else {
                // Its packets are too old, or must wait for another link.
                function.contention.pass(at, cell.rules.phy, function.active);
            }
            function.active
        });
    }

    /// Finds the functions that yield at `at` to a more urgent one of the same station.
    fn find_yielding(&mut self, cell: &Cell, at: Instant) {
        let Self { views, active, yielding, .. } = self;
        let stations = &cell.stations;
        let due = |id: &&FunctionId| views.transmits_at(cell, **id).is_some_and(|when| when <= at);
        let beaten = |id: &&FunctionId| {
            active.iter().filter(due).any(|other| {
                stations.station_of(*other) == stations.station_of(**id)
                    && stations[*other].category > stations[**id].category
            })
        };
        yielding.clear();
        yielding.extend(active.iter().filter(due).filter(beaten));
    }

    // --- Frames -----------------------------------------------------------------------------

    /// A frame of `sequence`, or a beacon, begins: writes to `perceived` what each station has of it.
    #[inline]
    pub fn begin_frame(&mut self, cell: &Cell, sequence: Option<&Sequence>, perceived: &mut Vec<Perceived>) {
        self.changed = true;
        let (views, hidden) = match &mut self.views {
            Views::Common { view, .. } => return view.sensed += 1,
            Views::Own { views, hidden } => (views, hidden),
        };
        perceived.clear();
        perceived.resize(views.len(), Perceived::default());
        let mut send = |transmitter: StationId| {
            perceived[transmitter.index()].sends = true;
            for (frame, hidden) in perceived.iter_mut().zip(hidden.chunks(views.len())) {
                frame.senses |= !hidden[transmitter.index()];
            }
        };
        match sequence {
            None => send(StationId::AP),
            Some(sequence) => {
                sequence.transmitters().for_each(|function| send(cell.stations.station_of(function)));
            }
        }
        for (view, frame) in views.iter_mut().zip(perceived) {
            frame.senses &= !frame.sends;
            frame.detected = frame.senses && view.sensed == 0 && !view.sending;
            view.sending |= frame.sends;
            view.sensed += u32::from(frame.senses);
        }
    }

    /// The frame of `transmission` has ended.
    #[inline]
    pub fn end_frame(&mut self, transmission: &Transmission, eifs: Eifs) {
        self.changed = true;
        let views = match &mut self.views {
            Views::Common { view, .. } => {
                view.sensed -= 1;
                // Frames that overlap began together, so that none was detected.
                view.waits_eifs = transmission.overlapped && eifs == Eifs::Overlapping;
                return;
            }
            Views::Own { views, .. } => views,
        };
        for (view, frame) in views.iter_mut().zip(&transmission.perceived) {
            view.sending &= !frame.sends;
            if frame.senses {
                view.sensed -= 1;
                view.waits_eifs = match eifs {
                    Eifs::Never => false,
                    Eifs::Detected => frame.spoilt && (frame.detected || view.waits_eifs),
                    Eifs::Overlapping => frame.spoilt,
                };
            }
        }
    }

    /// Stations that decoded the frame that was `perceived` so, except its `receiver`, set their NAV until then; a CF-End,
    /// which ended at the other time, resets it (802.11-2020 clauses 10.3.2.4 and 10.23.2.10). Of a common NAV, `txop_ends`
    /// are exempt instead.
    pub fn reserve(
        &mut self,
        cell: &Cell,
        perceived: &[Perceived],
        (until, at): (Option<Instant>, Instant),
        receiver: Option<FunctionId>,
        txop_ends: Option<[FunctionId; 2]>,
    ) {
        // Stations that begin a part of a slot apart collide, because the later one cannot detect the other in time
        // (clause 10.3.7).
        let to_slots = |until: Instant| at + cell.rules.phy.to_slots(until - at);
        let until = until.map(|until| if txop_ends.is_some() { to_slots(until) } else { until });
        let raise = |view: &mut View| match until {
            None => view.reserved_until = at,
            Some(until) => view.reserved_until = view.reserved_until.max(until),
        };
        match &mut self.views {
            Views::Common { view, txop_ends: ends } => {
                if until.is_some_and(|until| until > view.reserved_until) {
                    *ends = txop_ends;
                }
                raise(view);
            }
            Views::Own { views, .. } => {
                let receiver = receiver.filter(|_| until.is_some());
                let receiver = receiver.map(|function| cell.stations.station_of(function).index());
                for (index, (view, frame)) in views.iter_mut().zip(perceived).enumerate() {
                    let is_receiver = receiver == Some(index);
                    if frame.senses && !frame.spoilt && !is_receiver {
                        raise(view);
                    }
                }
            }
        }
    }

    /// The participants of `sequence` take part in it from now on, or no longer. Where all hear all, none can take part in
    /// another.
    // Called four times an exchange, mostly for nothing: left to the compiler, it is not inlined.
    #[inline(always)]
    pub fn set_engaged(&mut self, cell: &Cell, sequence: &Sequence, engaged: bool) {
        if !self.is_common() {
            self.set_own_engaged(cell, sequence, engaged);
        }
    }

    #[inline(never)]
    fn set_own_engaged(&mut self, cell: &Cell, sequence: &Sequence, engaged: bool) {
        let Views::Own { views, .. } = &mut self.views else { return };
        self.changed = true;
        for function in sequence.participants() {
            views[cell.stations.station_of(function).index()].engaged = engaged;
        }
    }

    // --- Busy and idle ----------------------------------------------------------------------

    /// Stations whose medium became busy stop counting, and those whose medium became idle start.
    #[inline]
    pub fn refresh(&mut self, cell: &mut Cell, at: Instant) {
        if std::mem::take(&mut self.changed) {
            for index in 0..self.views.as_slice().len() {
                self.refresh_view(cell, at, index);
            }
        }
    }

    fn refresh_view(&mut self, cell: &mut Cell, at: Instant, index: usize) {
        let view = &self.views.as_slice()[index];
        let busy = view.sensed > 0 || view.sending || view.engaged;
        match (view.busy, busy) {
            (false, true) => self.become_busy(cell, at, index),
            (true, false) => self.become_idle(cell, at, index),
            _ => {}
        }
    }

    /// The medium becomes busy at `at` in the view with this index: functions that do not send stop counting.
    /// One without traffic and without slots left must draw a backoff if a packet comes while the medium is busy (802.11-2020
    /// clauses 10.3.4.2 and 10.23.2.2).
    fn become_busy(&mut self, cell: &mut Cell, at: Instant, index: usize) {
        let Self { views, active, yielding, .. } = self;
        let is_common = matches!(views, Views::Common { .. });
        let view = &mut views.as_mut_slice()[index];
        view.busy = true;
        let mut any_stops = false;
        for id in active.iter() {
            if is_common || cell.stations.station_of(*id).index() == index {
                let function = &mut cell.stations[*id];
                if !function.transmitting && !yielding.contains(id) {
                    function.freeze(&view.idle, at, cell.rules.phy);
                    any_stops |= !function.active;
                }
            }
        }
        if any_stops {
            active.retain(|id| cell.stations[*id].active);
        }
    }

    /// The medium becomes idle at `at` in the view with this index.
    fn become_idle(&mut self, cell: &mut Cell, at: Instant, index: usize) {
        let phy = cell.rules.phy;
        let txop_ends = match self.views {
            Views::Common { txop_ends, .. } => Some(txop_ends),
            Views::Own { .. } => None,
        };
        let view = &mut self.views.as_mut_slice()[index];
        let wait = if std::mem::take(&mut view.waits_eifs) { phy.eifs() } else { phy.aifs() };
        let number = view.idle.number + 1;
        // EIFS does not depend on the NAV (802.11-2020 clause 10.3.2.3.7).
        let countdown_from = (at + wait).max(view.reserved_until + phy.aifs());
        // A station does not set its NAV by frames for itself (clause 10.3.2.4). Where all hear all, the NAV is that of the last
        // exchange.
        view.free_from = if txop_ends.is_some() { at } else { at.max(view.reserved_until) };
        let exempt_countdown_from = view.free_from + phy.aifs();
        view.busy = false;
        view.idle = IdlePeriod { number, countdown_from, exempt_countdown_from };
        if view.reserved_until > at {
            for end in txop_ends.flatten().into_iter().flatten() {
                let station = cell.stations.station_of(end);
                cell.stations.for_each_of(station, |function| function.contention.exempt(number));
            }
        }
    }
}

impl Views {
    fn as_slice(&self) -> &[View] {
        match self {
            Self::Common { view, .. } => std::slice::from_ref(view),
            Self::Own { views, .. } => views,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [View] {
        match self {
            Self::Common { view, .. } => std::slice::from_mut(view),
            Self::Own { views, .. } => views,
        }
    }

    fn at_station(&self, station: StationId) -> &View {
        match self {
            Self::Common { view, .. } => view,
            Self::Own { views, .. } => &views[station.index()],
        }
    }

    fn at_function(&self, cell: &Cell, function: FunctionId) -> &View {
        match self {
            Self::Common { view, .. } => view,
            Self::Own { views, .. } => &views[cell.stations.station_of(function).index()],
        }
    }

    /// When `function` transmits, if it has traffic and the medium is idle for it.
    // Called for each active function at each access: left to the compiler, a run with single packets costs 1 % more.
    #[inline(always)]
    fn transmits_at(&self, cell: &Cell, function: FunctionId) -> Option<Instant> {
        let station = &cell.stations[function];
        if !station.has_traffic() {
            return None;
        }
        let view = self.at_function(cell, function);
        (!view.busy).then(|| station.contention.transmits_at(&view.idle, cell.rules.phy.slot))
    }
}
