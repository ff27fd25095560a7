//! Which packet a TACK reports for the round-trip time, and how fast packets arrive.

use std::collections::VecDeque;

use super::config::Timing;
use super::packet::Stamp;
use crate::units::{BitRate, Bytes, Duration, Instant};

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

    /// Microseconds since `earlier`, less than half the circle.
    pub(super) fn since(self, earlier: Self) -> Option<u32> {
        let micros = self.0.wrapping_sub(earlier.0);
        (micros < 1 << 31).then_some(micros)
    }
}

/// The packet that stands for all since the last TACK (TACK paper section 5.2). Delays are not smoothed before the least
/// is sought, as the paper does: a mean of delays is no delay that a packet had, and the sender's filter takes out
/// what the way back adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    rule: Timing,
    best: Option<Candidate>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    departed: Stamp,
    arrived: Instant,
    /// Arrival less departure: only differences of these mean anything, for the clocks are two.
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

    /// t0* and delta t* in microseconds for a TACK that leaves at `now`; the search begins anew.
    pub fn take(&mut self, now: Instant) -> Option<(Stamp, u32)> {
        let best = self.best.take()?;
        let waited = now.saturating_since(best.arrived).as_micros();
        Some((best.departed, u32::try_from(waited).unwrap_or(u32::MAX)))
    }
}

/// Marks that are kept.
const MARKS: usize = 32;

/// How fast octets arrive.
///
/// From the last arrival before a TACK to the last before an earlier one: packets that arrive in bursts, as A-MPDUs do,
/// then count as many as fit in the time between bursts, where a count per interval of the clock would have one burst
/// more or less. An instant at which packets still arrive is not over, and is left to the next TACK.
#[derive(Clone, Debug, Default)]
pub(super) struct RateMeter {
    received: u64,
    last_arrival: Instant,
    /// The last instant of arrivals that is over, and the octets that had arrived by then.
    complete: Option<Mark>,
    marks: VecDeque<Mark>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    received: u64,
}

impl RateMeter {
    /// `octets` arrived.
    #[inline]
    pub fn on_octets(&mut self, now: Instant, octets: u64) {
        if now > self.last_arrival && self.received > 0 {
            self.complete = Some(Mark { at: self.last_arrival, received: self.received });
        }
        self.received += octets;
        self.last_arrival = now;
    }

    /// Octets that arrived so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The rate over the latest `span` or little more, for a TACK that leaves at `now`; `None` while no arrival is that
    /// old.
    pub fn take(&mut self, now: Instant, span: Duration) -> Option<BitRate> {
        let over = Mark { at: self.last_arrival, received: self.received };
        let last = if self.last_arrival < now && self.received > 0 { over } else { self.complete? };
        let old_enough = |mark: &&Mark| mark.at < last.at && last.at.saturating_since(mark.at) >= span;
        let first = self.marks.iter().rev().find(old_enough).copied();
        let spacing = span / (MARKS as u64 / 4);
        if self
            .marks
            .back()
            .is_none_or(|mark| mark.at < last.at && last.at.saturating_since(mark.at) >= spacing)
        {
            if self.marks.len() == MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back(last);
        }
        let first = first?;
        BitRate::from_amount(Bytes(last.received - first.received), last.at.saturating_since(first.at))
    }
}

/// Seconds that a smallest round-trip time is believed: tau of TACK paper section 5.2.
const LIFETIME_SECS: u64 = 10;

/// The smallest of ten seconds, in buckets of one.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMin {
    buckets: [Option<(u64, Duration)>; LIFETIME_SECS as usize],
    smallest: Option<Duration>,
}

impl WindowedMin {
    /// Takes in a sample and returns the smallest of the window.
    pub fn update(&mut self, now: Instant, sample: Duration) -> Duration {
        let second = now.as_nanos() / 1_000_000_000;
        let bucket = &mut self.buckets[(second % LIFETIME_SECS) as usize];
        *bucket = match *bucket {
            Some((of, least)) if of == second => Some((of, least.min(sample))),
            _ => Some((second, sample)),
        };
        let valid = |bucket: &&(u64, Duration)| bucket.0 + LIFETIME_SECS > second;
        let smallest = self.buckets.iter().flatten().filter(valid).map(|(_, least)| *least).min();
        let smallest = smallest.unwrap_or(sample);
        self.smallest = Some(smallest);
        smallest
    }

    /// The smallest as of the last update.
    pub fn get(&self) -> Option<Duration> {
        self.smallest
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
            assert_eq!(reference.take(at(40)), Some((Stamp::at(at(5), offset), 28_000)));
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
        assert_eq!(reference.take(at(30)), Some((Stamp::at(at(10), 0), 8_000)));
    }

    /// 30 packets of 1000 octets each 3 ms are 80 Mb/s, wherever the TACKs fall, between bursts or within one.
    #[test]
    fn bursts_do_not_raise_the_rate() {
        for period in [2, 3, 4, 5, 7] {
            let mut meter = RateMeter::default();
            let mut rates = Vec::new();
            for now in 0..200 {
                for packet in (0..30).filter(|_| now % 3 == 0) {
                    meter.on_octets(at(now), 1_000);
                    if now % period == 0 && packet == 11 {
                        rates.extend(meter.take(at(now), MS(10)));
                    }
                }
                if now % period == 0 && now % 3 != 0 {
                    rates.extend(meter.take(at(now), MS(10)));
                }
            }
            assert!(rates.len() > 20);
            assert!(rates.iter().all(|rate| *rate == BitRate::from_mbps(80)), "{rates:?}");
        }
    }

    #[test]
    fn a_smallest_round_trip_lives_for_ten_seconds() {
        let mut filter = WindowedMin::default();
        assert_eq!(filter.update(at(500), MS(10)), MS(10));
        assert_eq!(filter.update(at(9_900), MS(30)), MS(10));
        assert_eq!(filter.update(at(10_100), MS(40)), MS(30));
        assert_eq!(filter.update(at(60_000), MS(50)), MS(50));
        assert_eq!(filter.get(), Some(MS(50)));
    }
}
