//! The medium: which stations hear each other, contention, NAV, and which station may send when.

mod capture;
mod carrier_sense;
mod hidden;
mod shared;

use tacit_packet::units::Instant;

use self::carrier_sense::CarrierSense;
use self::hidden::Hidden;
use self::shared::Shared;
use super::air::StationId;
use super::airtime::AirtimeUse;
use super::cell::Cell;
use super::functions::FunctionId;
use super::mac::exchange::{Exchange, Part};
use super::mac::rules::Rules;

/// How the stations of a channel share the medium.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per channel, and almost always the larger one")]
pub(crate) enum Medium {
    /// Every station hears every other: one state for all.
    Shared(Shared),
    /// Some stations are hidden from others: one state per station.
    Hidden(Box<Hidden>),
}

impl Medium {
    /// The medium of `rules`, shared by all or with hidden stations.
    pub fn new(rules: &Rules) -> Self {
        if rules.config.hidden.is_empty() {
            Self::Shared(Shared::new(rules.phy))
        } else {
            Self::Hidden(Box::new(Hidden::new(rules)))
        }
    }

    fn sense(&self) -> &CarrierSense {
        match self {
            Self::Shared(medium) => &medium.sense,
            Self::Hidden(medium) => &medium.sense,
        }
    }

    /// When it changes next.
    pub fn poll_timeout(&self, cell: &Cell) -> Option<Instant> {
        match self {
            Self::Shared(medium) => medium.poll_timeout(cell),
            Self::Hidden(medium) => medium.poll_timeout(cell),
        }
    }

    /// Processes the events due at `at`.
    pub fn step(&mut self, cell: &mut Cell, at: Instant) {
        match self {
            Self::Shared(medium) => medium.step(cell, at),
            Self::Hidden(medium) => medium.step(cell, at),
        }
    }

    /// Function `id`, which had no traffic, now has some.
    pub fn start_contending(&mut self, cell: &mut Cell, now: Instant, id: FunctionId) {
        match self {
            Self::Shared(medium) => medium.start_contending(cell, now, id),
            Self::Hidden(medium) => medium.start_contending(cell, now, id),
        }
    }

    /// The exchange whose data is on the air without a collision.
    pub fn data_on_air(&self) -> Option<&Exchange> {
        self.on_air().find(|(part, _)| *part == Some(Part::Data)).map(|(_, exchange)| exchange)
    }

    /// The exchanges whose frames are on the air, with the frame where there is no collision.
    pub fn on_air(&self) -> impl Iterator<Item = (Option<Part>, &Exchange)> {
        match self {
            Self::Shared(medium) => Some(medium.on_air()).into_iter().flatten(),
            Self::Hidden(_) => None.into_iter().flatten(),
        }
    }

    /// The station whose frame is on the air without a collision, beacons included.
    pub fn transmitter(&self, cell: &Cell) -> Option<StationId> {
        match self {
            Self::Shared(medium) => medium.transmitter(cell),
            Self::Hidden(_) => None,
        }
    }

    /// When the backoff of `function` ends if the medium stays idle; `None` if it is busy.
    pub fn ready_at(&self, cell: &Cell, function: FunctionId) -> Option<Instant> {
        self.sense().ready_at(cell, function)
    }

    /// The radio of `function` leaves the link at `now`: its backoff stands still until it is back.
    pub fn sense_nothing(&self, cell: &mut Cell, now: Instant, function: FunctionId) {
        self.sense().sense_nothing(cell, now, function);
    }

    /// The use to which time since the last booking is charged.
    pub fn present_use(&self, cell: &Cell) -> AirtimeUse {
        match self {
            Self::Shared(medium) => medium.sense.idle_use(),
            Self::Hidden(medium) => medium.present_use(cell, None),
        }
    }

    /// A function of `cell` has nothing to send any more at `now`, because another link sent it.
    pub fn stop_contending(&mut self, cell: &mut Cell, now: Instant) {
        match self {
            Self::Shared(medium) => medium.stop_contending(cell, now),
            Self::Hidden(_) => unreachable!("no multi-link operation with hidden stations"),
        }
    }

    /// Checks that every packet waiting in `cell` will be sent or dropped. The queues and windows are in `holder`, mostly
    /// the same.
    ///
    /// # Errors
    /// Names a station that has packets but no pending event.
    pub fn check(&self, cell: &Cell, holder: &Cell) -> Result<(), String> {
        let engages = |station| match self {
            Self::Shared(medium) => medium.engages(station),
            Self::Hidden(medium) => medium.engages(station),
        };
        for station in cell.stations.iter() {
            let there = &holder.stations[station.id];
            station.check_turn(there, station.transmitting || engages(station.id))?;
        }
        let due = match self {
            Self::Shared(medium) => medium.is_due(),
            Self::Hidden(medium) => medium.is_due(),
        };
        match cell.stations.iter().find(|station| station.has_traffic()) {
            Some(station) if !due => {
                Err(format!("station {} has something to send, and nothing is due", station.id.index()))
            }
            _ => Ok(()),
        }
    }
}
