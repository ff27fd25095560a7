//! The medium: which frames are on the air, which of them overlap, and which station may send when.
//!
//! Each station has its own view of it ([`CarrierSense`]). A frame arrives unless its receiver heard another frame at the
//! same time or was sending. Where every station hears every other, all have one view in common. Nothing begins there while
//! a frame is on the air, and the next frame of a sequence is put on the air, and booked, when the one before it ends: the
//! cost is per channel access, independent of slots and idle stations.

mod capture;
mod carrier_sense;
mod transmission;

use tacit_packet::units::Instant;

use self::capture::Capture;
use self::carrier_sense::CarrierSense;
use self::transmission::Transmission;
use super::air::StationId;
use super::airtime::AirtimeUse;
use super::cell::{Cell, Sequence, SequenceFrame, earliest, even_shares};
use super::functions::FunctionId;
use super::mac::exchange::Exchange;
use super::mac::rules::Rules;
use crate::packet::PayloadClass;

/// How the stations of a channel share it.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    sense: CarrierSense,
    /// Mostly none or one; those that overlap are several.
    transmissions: Vec<Transmission>,
    /// When the next of them ends or begins.
    next: Option<Instant>,
    /// Set if the access point may capture one of several overlapping frames by its power.
    capture: Option<Capture>,
}

impl Medium {
    /// An idle medium under `rules`.
    pub fn new(rules: &Rules) -> Self {
        let hides = !rules.config.hidden.is_empty();
        Self {
            sense: CarrierSense::new(rules),
            transmissions: Vec::new(),
            next: None,
            capture: Capture::new(&rules.config).filter(|_| hides),
        }
    }

    /// When it changes next.
    pub fn poll_timeout(&self, cell: &Cell) -> Option<Instant> {
        match self.next {
            Some(_) if self.sense.is_common() => self.next,
            next => earliest(earliest(next, self.sense.next_access()), self.sense.beacon_at(cell)),
        }
    }

    /// Processes the events due at `at`: frames end, then their responses begin, then beacons and the frames of stations
    /// whose countdown ended.
    pub fn step(&mut self, cell: &mut Cell, at: Instant) {
        self.book(cell, at, None);
        while let Some((index, ended)) = self.first_ended(at) {
            self.frame_ended(cell, index, ended);
        }
        if self.sense.is_common() && !self.transmissions.is_empty() {
            self.look_ahead(cell);
            return;
        }
        self.sense.refresh(cell, at);
        if !self.sense.is_common() {
            while let Some(index) = self
                .transmissions
                .iter()
                .position(|transmission| !transmission.is_on_air && transmission.at <= at)
            {
                self.begin_frame(cell, index);
            }
            self.sense.refresh(cell, at);
        }
        // A beacon goes before data: it waits only PIFS and has no backoff.
        if self.sense.beacon_at(cell).is_some_and(|beacon| beacon <= at) {
            self.transmissions.push(Transmission::new(None, at));
            self.begin_frame(cell, self.transmissions.len() - 1);
            self.sense.refresh(cell, at);
        }
        if self.sense.next_access().is_some_and(|access| access <= at) {
            self.access(cell, at);
        }
        self.sense.find_next_access(cell);
        self.look_ahead(cell);
    }

    /// The transmission whose frame ended first by `at`, and when.
    fn first_ended(&self, at: Instant) -> Option<(usize, Instant)> {
        let has_ended = |transmission: &Transmission| transmission.is_on_air && transmission.until <= at;
        match self.transmissions.as_slice() {
            [transmission] => has_ended(transmission).then_some((0, transmission.until)),
            all => {
                let ended = all.iter().enumerate().filter(|(_, transmission)| has_ended(transmission));
                ended.map(|(index, transmission)| (index, transmission.until)).min_by_key(|(_, until)| *until)
            }
        }
    }

    /// Finds the time of the next event of a transmission.
    #[inline]
    fn look_ahead(&mut self, cell: &mut Cell) {
        if self.sense.is_common() {
            // Frames that end before the last change nothing until then.
            self.next = match self.transmissions.as_slice() {
                [transmission] => Some(transmission.until),
                all => all.iter().map(|transmission| transmission.until).max(),
            };
            if let Some(until) = self.next {
                self.book(cell, until, None);
            }
        } else {
            let events = self.transmissions.iter().map(|transmission| {
                if transmission.is_on_air { transmission.until } else { transmission.at }
            });
            self.next = events.min();
        }
    }

    // --- Contention -------------------------------------------------------------------------

    /// Function `id`, which had no traffic, now has some.
    pub fn start_contending(&mut self, cell: &mut Cell, now: Instant, id: FunctionId) {
        self.book(cell, now, Some(id));
        self.sense.start_contending(cell, now, id);
    }

    /// A function of `cell` has nothing to send any more at `now`, because another link sent it.
    pub fn stop_contending(&mut self, cell: &mut Cell, now: Instant) {
        self.book(cell, now, None);
        self.sense.find_next_access(cell);
    }

    /// Functions whose backoff ended at `at` transmit; those of several stations collide.
    fn access(&mut self, cell: &mut Cell, at: Instant) {
        let before = self.transmissions.len();
        self.sense.access(cell, at, &mut self.transmissions);
        let begun = &mut self.transmissions[before..];
        cell.accounts.accesses += u64::from(!begun.is_empty());
        if begun.len() > 1 {
            // Where time does not divide evenly, the remainder is not that of a multi-user sequence.
            begun.sort_by_key(Transmission::is_multi_user);
        }
        let accounts = begun.iter().filter_map(|transmission| transmission.sequence.as_ref());
        cell.accounts.charge_wait(&mut cell.stations, accounts.map(Sequence::account));
        for index in before..self.transmissions.len() {
            if let Some(sequence) = &self.transmissions[index].sequence {
                self.sense.set_engaged(cell, sequence, true);
            }
            self.begin_frame(cell, index);
        }
        self.sense.refresh(cell, at);
    }

    // --- Frames -----------------------------------------------------------------------------

    /// The next frame of the transmission at `index` begins: at each station that hears it and another one, the two corrupt
    /// each other.
    fn begin_frame(&mut self, cell: &mut Cell, index: usize) {
        let new = &mut self.transmissions[index];
        let until = match &new.sequence {
            Some(sequence) => sequence.begin_frame(cell),
            None => cell.send_beacon(new.at),
        };
        new.begin(until);
        self.sense.begin_frame(cell, new.sequence.as_ref(), &mut new.perceived);
        if self.transmissions.len() == 1 {
            return;
        }
        for other in 0..self.transmissions.len() {
            if let Ok([new, old]) = self.transmissions.get_disjoint_mut([index, other])
                && new.overlaps(old)
            {
                new.meet(cell, old, self.capture.as_ref());
            }
        }
    }

    /// The frame of the transmission at `index` ended at `at`.
    fn frame_ended(&mut self, cell: &mut Cell, index: usize, at: Instant) {
        let Self { sense, transmissions, capture, .. } = self;
        let transmission = &mut transmissions[index];
        if let Some(capture) = capture {
            transmission.capture(cell, capture);
        }
        sense.end_frame(transmission, cell.rules.config.eifs);
        if transmission.overlapped {
            transmission.receive_overlapped(cell, sense.is_common(), at);
        }
        let Transmission { sequence: Some(sequence), perceived, overlapped, .. } = transmission else {
            self.end(index);
            return;
        };
        let ready = sense.is_ready(cell, sequence, at);
        // Where all hear all, it matters only for the last frame.
        let is_early = !sense.is_common() || sequence.is_multi_user();
        let early = is_early.then(|| (sequence.reserves_until(cell), sequence.receiver()));
        let next_idle = sense.next_idle(cell, sequence.holder());
        sense.set_engaged(cell, sequence, false);
        let follows = sequence.frame_ended(cell, ready, next_idle);
        if !sense.is_common() || follows.is_none() && !*overlapped {
            let (until, receiver) = early.unwrap_or_else(|| (sequence.reserves_until(cell), None));
            if until.is_none_or(|until| until > at) {
                let txop_ends = if follows.is_none() { sequence.txop_ends() } else { None };
                sense.reserve(cell, perceived, (until, at), receiver, txop_ends);
            }
        }
        sense.begin_contending(cell, at);
        let Some(next) = follows else {
            self.end(index);
            return;
        };
        sense.set_engaged(cell, sequence, true);
        transmission.wait_until(next);
        if sense.is_common() {
            self.begin_frame(cell, index);
        }
    }

    /// The transmission at `index` is over.
    fn end(&mut self, index: usize) {
        let last = self.transmissions.len() - 1;
        if index < last {
            self.transmissions.swap(index, last);
        }
        self.transmissions.truncate(last);
    }

    // --- Accounts ---------------------------------------------------------------------------

    /// The transmissions that use the channel: those on the air, or else those due, to which the gaps between their frames
    /// belong.
    fn charged(&self) -> impl Iterator<Item = &Transmission> + Clone {
        let is_quiet = self.transmissions.iter().all(|transmission| !transmission.is_on_air);
        self.transmissions.iter().filter(move |transmission| transmission.is_on_air || is_quiet)
    }

    /// The only one of these, if no other frame overlaps it.
    fn sole(&self) -> Option<&Transmission> {
        let sole = match self.transmissions.as_slice() {
            [] => None,
            [transmission] => Some(transmission),
            _ => self.charged().next().filter(|_| self.charged().count() == 1),
        };
        sole.filter(|transmission| !transmission.overlapped)
    }

    /// Books the time up to `until`; `newcomer` is counted as without traffic, because it had none until now.
    #[inline]
    fn book(&self, cell: &mut Cell, until: Instant, newcomer: Option<FunctionId>) {
        if until > cell.accounts.booked_until() {
            self.book_unbooked(cell, until, newcomer);
        }
    }

    fn book_unbooked(&self, cell: &mut Cell, until: Instant, newcomer: Option<FunctionId>) {
        let beacon = (StationId::AP.first_function(), PayloadClass::Data);
        match self.sole() {
            Some(Transmission { sequence: Some(sequence), .. }) => sequence.book(cell, until),
            Some(_) => cell.charge(beacon.0, beacon.1, AirtimeUse::Beacon, until),
            None if self.transmissions.is_empty() => {
                cell.accounts.book_idle(self.sense.idle_use(cell, newcomer), until);
            }
            None => {
                let spent = cell.accounts.book(AirtimeUse::Collision, until);
                for (transmission, share) in self.charged().zip(even_shares(spent, self.charged().count())) {
                    let (station, class) = transmission.sequence.as_ref().map_or(beacon, Sequence::account);
                    cell.stations[station].airtime.spend(class, AirtimeUse::Collision, share);
                }
            }
        }
    }

    /// The use to which time since the last booking is charged. For a PPDU with several uses, it is the one with the largest
    /// share.
    pub fn present_use(&self, cell: &Cell) -> AirtimeUse {
        match self.sole() {
            Some(Transmission { sequence, .. }) => {
                sequence.as_ref().map_or(AirtimeUse::Beacon, |sequence| sequence.present_use(cell))
            }
            None if self.transmissions.is_empty() => self.sense.idle_use(cell, None),
            None => AirtimeUse::Collision,
        }
    }

    // --- For other links, and checks --------------------------------------------------------

    /// The exchange whose data is on the air without a collision.
    pub fn data_on_air(&self) -> Option<&Exchange> {
        self.on_air().find(|(frame, _)| *frame == Some(SequenceFrame::Data)).map(|(_, exchange)| exchange)
    }

    /// The exchanges whose frames are on the air, with the frame where there is no collision.
    pub fn on_air(&self) -> impl Iterator<Item = (Option<SequenceFrame>, &Exchange)> {
        self.transmissions.iter().filter_map(|transmission| {
            let sequence = transmission.sequence.as_ref()?;
            Some(((!transmission.overlapped).then_some(sequence.frame), sequence.only_exchange()?))
        })
    }

    /// The station whose frame is on the air without a collision, beacons included.
    pub fn transmitter(&self, cell: &Cell) -> Option<StationId> {
        let Some(sequence) = &self.sole()?.sequence else { return Some(StationId::AP) };
        sequence.transmitters().next().map(|function| cell.stations.station_of(function))
    }

    /// When the backoff of `function` ends if the medium stays idle; `None` if it is busy.
    pub fn ready_at(&self, cell: &Cell, function: FunctionId) -> Option<Instant> {
        self.sense.ready_at(cell, function)
    }

    /// The radio of `function` leaves the link at `now`: its backoff stands still until it is back.
    pub fn sense_nothing(&self, cell: &mut Cell, now: Instant, function: FunctionId) {
        self.sense.sense_nothing(cell, now, function);
    }

    /// Checks that every packet waiting in `cell` will be sent or dropped. The queues and windows are in `holder`, mostly
    /// the same.
    ///
    /// # Errors
    /// Names a station that has packets but no pending event.
    pub fn check(&self, cell: &Cell, holder: &Cell) -> Result<(), String> {
        let sequences =
            || self.transmissions.iter().filter_map(|transmission| transmission.sequence.as_ref());
        for station in cell.stations.iter() {
            let engaged = sequences().any(|sequence| sequence.engages(station.id));
            station.check_turn(&holder.stations[station.id], station.transmitting || engaged)?;
        }
        let is_due = self.next.is_some() || self.sense.next_access().is_some();
        match cell.stations.iter().find(|station| station.has_traffic()) {
            Some(station) if !is_due => {
                Err(format!("station {} has something to send, and nothing is due", station.id.index()))
            }
            _ => Ok(()),
        }
    }
}
