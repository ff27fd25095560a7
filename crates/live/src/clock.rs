//! The medium's own time beside the wall's.
//!
//! A world's events happen at the moment they were scheduled for, however late the processor gets to
//! them: the next exchange starts where the previous one was scheduled to end, so that being 50 us
//! late does not cost 50 us of airtime each time. A machine that stops for longer than [`LAG_LIMIT`] stops the
//! medium too: that time never was, and a run with too much of it has no result.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tacit_proto::units::{Duration, Instant};

/// How far behind the wall the medium may fall before it is stopped. A burst of 42 packets costs a
/// receiving kernel about 150 us; a few of those are caught up with, a descheduled machine is not.
pub const LAG_LIMIT: Duration = Duration::from_millis(2);

/// Most lateness the histogram tells apart.
const LATENESS_MAX: Duration = Duration::from_secs(10);

/// Reads the wall clock; nothing else in this crate does.
#[expect(clippy::disallowed_methods, reason = "the live edge is where the wall clock is read")]
pub fn wall() -> std::time::Instant {
    std::time::Instant::now()
}

/// The medium's clock: the wall's, without the time the machine stood still.
#[derive(Debug)]
pub struct MediumClock {
    origin: std::time::Instant,
    slipped: Duration,
    slips: u64,
    lateness_ns: Histogram<u64>,
}

impl MediumClock {
    /// A clock that shows zero now.
    ///
    /// # Panics
    /// Never: the histogram's bounds are constants that it takes.
    pub fn start() -> Self {
        let lateness_ns = Histogram::new_with_bounds(1, LATENESS_MAX.as_nanos(), 2)
            .expect("1 ns to 10 s in two digits is allowed");
        Self { origin: wall(), slipped: Duration::ZERO, slips: 0, lateness_ns }
    }

    /// The medium's time.
    pub fn now(&self) -> Instant {
        self.at(wall())
    }

    fn at(&self, wall: std::time::Instant) -> Instant {
        let elapsed = wall.saturating_duration_since(self.origin).as_nanos();
        let elapsed = Duration::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX));
        Instant::ZERO + elapsed.saturating_sub(self.slipped)
    }

    /// An event that was due at `due` happens at `now`: notes how late, and stops the medium for the time
    /// beyond the limit. Returns the medium's time after that.
    pub fn note_late(&mut self, due: Instant, now: Instant) -> Instant {
        let late = now.saturating_since(due);
        self.lateness_ns.saturating_record(late.as_nanos());
        let beyond = late.saturating_sub(LAG_LIMIT);
        if beyond == Duration::ZERO {
            return now;
        }
        self.slipped += beyond;
        self.slips += 1;
        due + LAG_LIMIT
    }

    /// How punctual it was.
    pub fn punctuality(&self) -> Punctuality {
        let us = |quantile: f64| self.lateness_ns.value_at_quantile(quantile) as f64 / 1e3;
        Punctuality {
            events: self.lateness_ns.len(),
            p50_us: us(0.5),
            p99_us: us(0.99),
            p99_9_us: us(0.999),
            max_us: self.lateness_ns.max() as f64 / 1e3,
            slips: self.slips,
            slipped_s: self.slipped.as_secs_f64(),
        }
    }
}

/// How late the events of a medium were, against the moment they were scheduled for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Punctuality {
    /// How many there were.
    pub events: u64,
    /// Median lateness in microseconds.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p99_9_us: f64,
    /// Largest.
    pub max_us: f64,
    /// Times the medium was stopped because the machine stood still.
    pub slips: u64,
    /// For how long altogether, in seconds.
    pub slipped_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock_and_zero() -> (MediumClock, std::time::Instant) {
        let clock = MediumClock::start();
        let origin = clock.origin;
        (clock, origin)
    }

    #[test]
    fn a_little_lateness_costs_no_time() {
        let (mut clock, origin) = clock_and_zero();
        let now = clock.at(origin + std::time::Duration::from_micros(1_100));
        let due = Instant::from_nanos(1_000_000);
        assert_eq!(clock.note_late(due, now), now);
        assert_eq!(clock.at(origin + std::time::Duration::from_micros(1_100)), now);
        assert_eq!(clock.punctuality().slips, 0);
    }

    #[test]
    fn a_standstill_is_taken_out_of_the_mediums_time() {
        let (mut clock, origin) = clock_and_zero();
        let wall = origin + std::time::Duration::from_millis(60);
        let due = Instant::from_nanos(10_000_000);
        let now = clock.at(wall);
        assert_eq!(clock.note_late(due, now), due + LAG_LIMIT);
        assert_eq!(clock.at(wall), due + LAG_LIMIT);
        let punctuality = clock.punctuality();
        assert_eq!(punctuality.slips, 1);
        assert!((punctuality.slipped_s - 0.048).abs() < 1e-9, "{punctuality:?}");
    }
}
