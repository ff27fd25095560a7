//! A frame on the air: which others overlap it, and what reaches its receivers.

use tacit_packet::units::Instant;

use super::capture::Capture;
use crate::wifi::air::StationId;
use crate::wifi::cell::{Cell, Sequence, SequenceFrame};
use crate::wifi::mac::plan::Outgoing;

/// A frame in the view of a station.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Perceived {
    pub sends: bool,
    pub senses: bool,
    /// Another frame overlaps it.
    pub spoilt: bool,
    /// Nothing else was on the air there when it began.
    pub detected: bool,
}

/// A sequence whose frame is on the air or due, or a beacon. The users of a round send at the same time.
#[derive(Clone, Debug)]
pub(super) struct Transmission {
    /// `None` for a beacon.
    pub sequence: Option<Sequence>,
    /// Start and end of the frame.
    pub at: Instant,
    pub until: Instant,
    /// Its frame is on the air, or cannot be prevented; otherwise it is due.
    pub is_on_air: bool,
    /// One entry per station; none where all hear all.
    pub perceived: Vec<Perceived>,
    /// Another frame is on the air while this one is.
    pub overlapped: bool,
    /// A frame of it was counted as a collision.
    has_collided: bool,
    /// When the last frame that overlaps it ends.
    others_end: Instant,
    /// The stations that sent those frames.
    senders: Vec<StationId>,
    /// With capture by power: the access point locked onto this frame, because it heard no other when this one began.
    held: bool,
    /// With capture by power: the sum of the powers at the access point of all frames that overlapped it.
    interference: u64,
}

impl Transmission {
    /// `sequence`, or a beacon, whose first frame begins at `at`.
    pub fn new(sequence: Option<Sequence>, at: Instant) -> Self {
        Self {
            sequence,
            at,
            until: at,
            is_on_air: false,
            perceived: Vec::new(),
            overlapped: false,
            has_collided: false,
            others_end: at,
            senders: Vec::new(),
            held: true,
            interference: 0,
        }
    }

    /// Whether its frames are those for several users.
    pub fn is_multi_user(&self) -> bool {
        self.sequence.as_ref().is_some_and(Sequence::is_multi_user)
    }

    /// Its next frame begins at `at`.
    pub fn wait_until(&mut self, at: Instant) {
        self.at = at;
        (self.is_on_air, self.overlapped) = (false, false);
    }

    /// Its frame is on the air `until` then.
    pub fn begin(&mut self, until: Instant) {
        (self.until, self.is_on_air, self.overlapped) = (until, true, false);
        (self.others_end, self.held, self.interference) = (self.at, true, 0);
        self.senders.clear();
    }

    /// Whether its frame is on the air at the same time as that of `other`.
    pub fn overlaps(&self, other: &Self) -> bool {
        other.is_on_air && self.at < other.until && other.at < self.until
    }

    /// Its frame begins while that of `earlier` is on the air, or with it.
    pub fn meet(&mut self, cell: &mut Cell, earlier: &mut Self, capture: Option<&Capture>) {
        // Of several frames, a collision counts once.
        cell.accounts.collisions += u64::from(!self.has_collided && !earlier.has_collided);
        let is_later = earlier.at < self.at;
        for (new, old) in self.perceived.iter_mut().zip(&mut earlier.perceived) {
            new.spoilt |= new.senses && (old.senses || old.sends);
            old.spoilt |= old.senses && (new.senses || new.sends);
            old.detected &= is_later || !old.spoilt;
        }
        if let Some(capture) = capture {
            earlier.compete(self, capture);
        }
        self.note(cell, earlier);
        earlier.note(cell, self);
    }

    /// The frame of `other` overlaps its own.
    fn note(&mut self, cell: &Cell, other: &Self) {
        (self.overlapped, self.has_collided) = (true, true);
        self.others_end = self.others_end.max(other.until);
        if !cell.rules.config.capture {
            return;
        }
        let senders = &mut self.senders;
        match &other.sequence {
            None => senders.push(StationId::AP),
            Some(sequence) => {
                senders.extend(sequence.transmitters().map(|function| cell.stations.station_of(function)));
            }
        }
    }

    /// Others overlapped the frame, which ended at `at`: its sequence learns at which receivers. Where all hear all, a receiver may
    /// synchronise to the rest of it.
    pub fn receive_overlapped(&mut self, cell: &mut Cell, all_hear_all: bool, at: Instant) {
        let Self { sequence: Some(sequence), at: began, perceived, others_end, senders, .. } = self else {
            return;
        };
        let captures = all_hear_all && cell.rules.config.capture;
        let numbers = cell.stations.numbers();
        // When a function begins to hear the frame alone.
        let clear_from = |function| {
            let station = numbers.station(function);
            match perceived.get(station.index()).is_none_or(|frame| frame.spoilt) {
                false => *began,
                true if captures && !senders.contains(&station) => at.min(*others_end),
                true => at,
            }
        };
        sequence.overlap(cell, &clear_from);
    }

    /// The access point captures the frame if it locked onto it and it is strong enough for its mode, despite the overlapping
    /// frames.
    pub fn capture(&mut self, cell: &Cell, capture: &mut Capture) {
        let Some(sequence) = &self.sequence else { return };
        let (Some(exchange), Some(transmitter)) = (sequence.only_exchange(), sequence.transmitters().next())
        else {
            return;
        };
        let Perceived { sends, spoilt, .. } = &mut self.perceived[StationId::AP.index()];
        if !*spoilt || !self.held || *sends {
            return;
        }
        let originator = cell.stations.originator(exchange);
        let mode = match (sequence.frame, exchange.outgoing) {
            (SequenceFrame::Data, Outgoing::Data { .. }) => originator.mode,
            (SequenceFrame::Protection(_), _) => cell.handshake_mode(exchange),
            _ => originator.control_mode,
        };
        let transmitter = cell.stations.station_of(transmitter);
        *spoilt = !capture.stands_out(transmitter, &mode, self.interference);
    }

    /// Its power at the access point.
    fn power(&self, capture: &Capture) -> u64 {
        let transmitters = self.perceived.iter().zip(0..).filter(|(frame, _)| frame.sends);
        transmitters.map(|(_, id)| capture.power(StationId(id))).fold(0, u64::saturating_add)
    }

    /// `later` begins while this frame is on the air. The access point stays locked onto the earlier frame, unless both
    /// began at the same time and `later` is stronger. While the access point sends, it receives nothing.
    fn compete(&mut self, later: &mut Self, capture: &Capture) {
        let sends = [&*self, &*later].into_iter().any(|frame| frame.perceived[StationId::AP.index()].sends);
        let power = |frame: &Self| if sends { u64::MAX } else { frame.power(capture) };
        let (earlier, new) = (power(self), power(later));
        self.interference = self.interference.saturating_add(new);
        later.interference = later.interference.saturating_add(earlier);
        let takes_over = self.at == later.at && new > earlier;
        later.held &= takes_over || !self.held;
        self.held &= !takes_over;
    }
}
