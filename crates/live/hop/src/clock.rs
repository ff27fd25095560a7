//! The clock of the medium, in addition to the wall clock.
//!
//! Events happen at their scheduled time on the medium's clock, even if the processor handles them later. The next
//! exchange starts when the previous one was scheduled to end, so a delay of 50 us does not cost 50 us of airtime each
//! time. If the machine stalls for longer than [`LAG_LIMIT`], the medium stops too. A run with too much stopped time
//! has no result.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tacit_packet::units::{Duration, Instant};

/// Maximum lag of the medium behind the wall clock before it is stopped. A burst of 42 packets costs a receiving kernel
/// about 150 us. The medium can catch up with a few of these, but not with a machine that does not schedule the
/// process.
pub const LAG_LIMIT: Duration = Duration::from_millis(2);

/// Maximum lateness that the histogram can represent.
const LATENESS_MAX: Duration = Duration::from_secs(10);

/// Reads the wall clock. No other code in this crate does.
#[expect(clippy::disallowed_methods, reason = "the live edge is where the wall clock is read")]
pub fn wall() -> std::time::Instant {
    std::time::Instant::now()
}

/// The medium's clock: the wall clock without stopped time.
#[derive(Debug)]
pub struct MediumClock {
    origin: std::time::Instant,
    slipped: Duration,
    slips: u64,
    lateness_ns: Histogram<u64>,
}

impl MediumClock {
    /// Creates a clock that starts at zero.
    ///
    /// # Panics
    /// Never: the bounds of the histogram are valid constants.
    pub fn start() -> Self {
        let lateness_ns = Histogram::new_with_bounds(1, LATENESS_MAX.as_nanos(), 2)
            .expect("1 ns to 10 s in two digits is allowed");
        Self { origin: wall(), slipped: Duration::ZERO, slips: 0, lateness_ns }
    }

    /// The current time of the medium.
    pub fn now(&self) -> Instant {
        self.at(wall())
    }

    fn at(&self, wall: std::time::Instant) -> Instant {
        let elapsed = wall.saturating_duration_since(self.origin).as_nanos();
        let elapsed = Duration::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX));
        Instant::ZERO + elapsed.saturating_sub(self.slipped)
    }

    /// Records that an event due at `due` happens at `now`, and stops the medium for the time beyond the limit. Returns
    /// the medium's time after that.
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

    /// Statistics about lateness.
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

/// Lateness of a medium's events relative to their scheduled time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Punctuality {
    /// Number of events.
    pub events: u64,
    /// Median lateness in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// 99.9th percentile in microseconds.
    pub p99_9_us: f64,
    /// Maximum in microseconds.
    pub max_us: f64,
    /// Number of times that the medium was stopped because the machine stalled.
    pub slips: u64,
    /// Total stopped time in seconds.
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
