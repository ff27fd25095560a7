//! Which packet a TACK reports for the round-trip time.

use super::config::Timing;
use tacit_packet::tack::packet::Stamp;
use tacit_packet::units::{Duration, Instant};

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

    /// A packet that left at `departed` arrived at `now`, `arrived` on our clock.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, arrived: Stamp, departed: Stamp) {
        let delay = arrived.0.wrapping_sub(departed.0);
        let better = match (self.rule, self.best) {
            (_, None) | (Timing::Newest, _) => true,
            (Timing::LeastDelay, Some(best)) => (delay.wrapping_sub(best.delay) as i32) < 0,
        };
        if better {
            self.best = Some(Candidate { departed, arrived: now, delay });
        }
    }

    /// The least delay, to be sent in a TACK at `now`; the search starts again.
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
