//! Which packet a TACK reports for the round-trip time.

use super::config::Timing;
use super::packet::Stamp;
use crate::units::{Duration, Instant};

impl Stamp {
    /// The reading at `now` of a clock that runs `offset` microseconds ahead.
    pub(super) fn at(now: Instant, offset: u32) -> Self {
        // 2^32 microseconds are 71 minutes: both ends reckon in differences.
        Self(((now.as_nanos() / 1000) as u32).wrapping_add(offset))
    }

    /// The reading after `span`.
    pub(super) fn later(self, span: Duration) -> Self {
        Self(self.0.wrapping_add(span.as_micros() as u32))
    }

    /// Microseconds that make one of a [short](Self::short) reading, as a logarithm to base 2. Sixteen bits of them are 1.05 s,
    /// longer than most round trips with their queues and the interval between two TACKs.
    const SHORT_UNIT: u32 = 4;

    /// The 16 bits of the reading that [short data](super::packet::Data::short) carries, in units of 16 µs.
    #[must_use]
    pub fn short(self) -> Self {
        Self(self.0 >> Self::SHORT_UNIT & 0xffff)
    }

    /// The first reading from this one on, to a unit, whose [short](Self::short) form is `short`.
    pub(super) fn next(self, short: Self) -> Self {
        let units = self.0 >> Self::SHORT_UNIT;
        Self(units.wrapping_add(short.0.wrapping_sub(units) & 0xffff) << Self::SHORT_UNIT)
    }

    /// The last reading up to this one whose [short](Self::short) form is `short`.
    pub(super) fn last(self, short: Self) -> Self {
        let units = self.0 >> Self::SHORT_UNIT;
        Self(units.wrapping_sub(units.wrapping_sub(short.0) & 0xffff) << Self::SHORT_UNIT)
    }

    /// Microseconds since `earlier`, less than half the circle.
    pub(super) fn since(self, earlier: Self) -> Option<u32> {
        let micros = self.0.wrapping_sub(earlier.0);
        (micros < 1 << 31).then_some(micros)
    }
}

/// The packet that stands for all since the last TACK (TACK paper section 5.2). Delays are not smoothed before the least is
/// sought, as the paper does: a mean of delays is no delay that a packet had, and the sender's filter takes out the delay of
/// the way back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    rule: Timing,
    best: Option<Candidate>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    departed: Stamp,
    arrived: Instant,
    /// Arrival less departure, by two clocks: only differences of these mean anything.
    delay: u32,
}

impl Reference {
    pub fn new(rule: Timing) -> Self {
        Self { rule, best: None }
    }

    /// A packet that left at `departed` arrived at `now`, `own` on our clock.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, own: Stamp, departed: Stamp) {
        let delay = own.0.wrapping_sub(departed.0);
        let better = match (self.rule, self.best) {
            (_, None) | (Timing::Newest, _) => true,
            (Timing::LeastDelay, Some(best)) => (delay.wrapping_sub(best.delay) as i32) < 0,
        };
        if better {
            self.best = Some(Candidate { departed, arrived: now, delay });
        }
    }

    /// The least delay, for a TACK that leaves at `now`; the search starts again.
    pub fn take(&mut self, now: Instant) -> Option<Least> {
        let best = self.best.take()?;
        let waited = now.saturating_since(best.arrived).as_micros();
        Some(Least {
            departed: best.departed,
            waited_us: u32::try_from(waited).unwrap_or(u32::MAX),
            delay_us: best.delay,
        })
    }
}

/// The packet of least delay of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Least {
    /// t0*.
    pub departed: Stamp,
    /// Delta t*.
    pub waited_us: u32,
    /// Its one-way delay, by two clocks: only differences mean anything.
    pub delay_us: u32,
}

/// The largest of late: of this second and the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentMax {
    second: u64,
    most: Duration,
    before: Duration,
}

impl RecentMax {
    /// Adds a sample and returns the largest.
    pub fn update(&mut self, now: Instant, sample: Duration) -> Duration {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            self.before = if second == self.second + 1 { self.most } else { Duration::ZERO };
            (self.second, self.most) = (second, Duration::ZERO);
        }
        self.most = self.most.max(sample);
        self.most.max(self.before)
    }

    /// The largest as of `now`.
    pub fn get(mut self, now: Instant) -> Duration {
        self.update(now, Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + MS(millis)
    }

    #[test]
    fn a_short_reading_is_found_after_and_before_another() {
        for start in [0u32, 1, 15, 16, 0xf_ffff, 0x10_0000, u32::MAX - 5, 0x8000_0003] {
            for away in [0u32, 1, 16, 1_000, 500_000, (1 << 20) - 16] {
                let (later, earlier) = (start.wrapping_add(away), start.wrapping_sub(away));
                assert_eq!(Stamp(start).next(Stamp(later).short()).0, later & !15, "{start} and {away} on");
                assert_eq!(
                    Stamp(start).last(Stamp(earlier).short()).0,
                    earlier & !15,
                    "{start} and {away} back"
                );
            }
        }
        // A turn away it stands for the nearer one.
        assert_eq!(Stamp(1 << 20).next(Stamp(1 << 21).short()), Stamp(1 << 20));
        assert_eq!(Stamp(1 << 21).last(Stamp(1 << 20).short()), Stamp(1 << 21));
    }

    #[test]
    fn the_packet_of_least_delay_is_reported_whatever_the_clocks_say() {
        for offset in [0, 77, u32::MAX - 20_000] {
            let mut reference = Reference::new(Timing::LeastDelay);
            for (departed, delay) in [(0, 9), (5, 7), (10, 12), (20, 7)] {
                let arrived = at(departed + delay);
                reference.on_packet(arrived, Stamp::at(arrived, 12_345), Stamp::at(at(departed), offset));
            }
            let taken = reference.take(at(40)).map(|least| (least.departed, least.waited_us));
            assert_eq!(taken, Some((Stamp::at(at(5), offset), 28_000)));
            assert_eq!(reference.take(at(41)), None);
        }
    }

    #[test]
    fn the_legacy_rule_reports_the_newest() {
        let mut reference = Reference::new(Timing::Newest);
        for (departed, delay) in [(0, 5), (10, 12)] {
            let arrived = at(departed + delay);
            reference.on_packet(arrived, Stamp::at(arrived, 0), Stamp::at(at(departed), 0));
        }
        let taken = reference.take(at(30)).map(|least| (least.departed, least.waited_us));
        assert_eq!(taken, Some((Stamp::at(at(10), 0), 8_000)));
    }
}
