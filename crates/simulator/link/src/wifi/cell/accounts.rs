//! Channel time by station and purpose, and counts of accesses.

use tacit_packet::units::{Duration, Instant};

use super::stations::Stations;
use crate::packet::PayloadClass;
use crate::wifi::airtime::{Airtime, AirtimeLedger, AirtimeUse, StationAirtime};
use crate::wifi::functions::FunctionId;

/// The channel's accounts. Those of a station are kept with the station.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    ledger: AirtimeLedger,
    /// Acquisition time since the last access; the next winner is charged for it.
    waited: Duration,
    /// Channel accesses; a collision counts once.
    pub accesses: u64,
    /// Accesses by two or more stations at the same time.
    pub collisions: u64,
}

impl Accounts {
    /// Results count from the first to the second time of the window.
    pub fn new((from, to): (Instant, Instant)) -> Self {
        Self { ledger: AirtimeLedger::new(from, to), waited: Duration::ZERO, accesses: 0, collisions: 0 }
    }

    /// Airtime until `now`, if the channel is currently used for `present`.
    pub fn airtime(&self, present: AirtimeUse, now: Instant) -> Airtime {
        let mut ledger = self.ledger.clone();
        ledger.book(present, now);
        ledger.airtime()
    }

    /// Time in which the channel was busy since the start, until `now`: the end of a PPDU is accounted for in advance.
    pub fn busy(&self, now: Instant) -> Duration {
        self.ledger.busy().saturating_sub(self.booked_until().saturating_since(now))
    }

    pub fn booked_until(&self) -> Instant {
        self.ledger.booked_until()
    }

    /// Accounts the time up to `until` as `what`; returns the part that counts.
    pub fn book(&mut self, what: AirtimeUse, until: Instant) -> Duration {
        self.ledger.book(what, until)
    }

    /// Accounts the time up to `until` as `what`, to `account` and its PPDUs of `class`.
    pub fn charge(
        &mut self,
        account: &mut StationAirtime,
        class: PayloadClass,
        what: AirtimeUse,
        until: Instant,
    ) {
        account.spend(class, what, self.ledger.book(what, until));
    }

    /// Accounts idle time as `what`, and remembers acquisition time in it.
    pub fn book_idle(&mut self, what: AirtimeUse, until: Instant) {
        let spent = self.ledger.book(what, until);
        if what == AirtimeUse::Acquisition {
            self.waited += spent;
        }
    }

    /// The wait has ended: charges it to the stations that now use the channel.
    pub fn charge_wait(
        &mut self,
        stations: &mut Stations,
        winners: impl Iterator<Item = (FunctionId, PayloadClass)> + Clone,
    ) {
        let count = winners.clone().count();
        if count == 0 {
            return;
        }
        for ((id, class), share) in winners.zip(even_shares(self.waited, count)) {
            stations[id].airtime.spend(class, AirtimeUse::Acquisition, share);
        }
        self.waited = Duration::ZERO;
    }
}

/// Divides `time` into `parts` equal parts; the first gets the remainder.
pub(crate) fn even_shares(time: Duration, parts: usize) -> impl Iterator<Item = Duration> {
    let share = time / parts as u64;
    let rest = time - share * parts as u64;
    (0..parts).map(move |part| if part == 0 { share + rest } else { share })
}
