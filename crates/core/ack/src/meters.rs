//! What a receiver measures of the packets that arrive: queueing, bursts and rate.

use crate::{BitRate, Bytes, Duration, Instant};

/// A queue of more than a second counts as one of a second: a clock that was set would keep ACKs away.
const QUEUEING_MAX: Duration = Duration::from_secs(1);

/// A one-way delay by two clocks, above the least of ten seconds.
#[derive(Clone, Debug, Default)]
pub struct RelativeDelay {
    /// Half a circle below the first delay: later ones are above it.
    origin: Option<u32>,
    least: WindowedMin,
}

impl RelativeDelay {
    /// The delay of a packet that arrived at `now`, above the least.
    pub fn update(&mut self, now: Instant, delay_us: u32) -> Duration {
        let origin = *self.origin.get_or_insert(delay_us.wrapping_sub(1 << 31));
        let delay = Duration::from_micros(delay_us.wrapping_sub(origin).into());
        delay.saturating_sub(self.least.update(now, delay))
    }
}

/// Queueing part of the one-way delay of data: the least of each interval, so a queue that stands.
#[derive(Clone, Debug, Default)]
pub struct QueueingDelay {
    relative: RelativeDelay,
    smoothed: Duration,
}

impl QueueingDelay {
    /// The least delay of an interval that ends at `now`. An eighth of the news counts (as in RFC 6298).
    pub fn update(&mut self, now: Instant, delay_us: u32) {
        let queueing = self.relative.update(now, delay_us).min(QUEUEING_MAX);
        self.smoothed = (self.smoothed * 7 + queueing) / 8;
    }

    /// The mean of late intervals.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }
}

/// Packets this much apart or less arrive at once: between the first and the last of one PPDU, GRO aggregate or `recvmmsg` less
/// passes until a program has them.
pub const GATHER: Duration = Duration::from_micros(250);

/// The most that arrives at once: an A-MPDU where nothing smooths them.
#[derive(Clone, Debug, Default)]
pub struct BurstMeter {
    began: Instant,
    bytes: u64,
    /// The largest of this interval, and of late ones.
    most: u64,
    burst: u64,
}

impl BurstMeter {
    /// `bytes` arrived.
    #[inline]
    pub fn on_bytes(&mut self, now: Instant, bytes: u64) {
        if now.saturating_since(self.began) > GATHER {
            self.bytes = 0;
            self.began = now;
        }
        self.bytes += bytes;
        self.most = self.most.max(self.bytes);
    }

    /// A TACK leaves: the largest is forgotten by an eighth.
    pub fn end_interval(&mut self) {
        self.burst = self.most.max(self.burst - self.burst / 8);
        self.most = 0;
    }

    /// When the burst began that arrived last, or is arriving.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Bytes of the largest of late intervals.
    pub fn burst(&self) -> u64 {
        self.burst
    }
}

/// Marks that are kept.
const MARKS: usize = 32;

/// How fast bytes arrive.
///
/// From the last arrival before a TACK to the last before an earlier one: packets that arrive in bursts, as A-MPDUs do,
/// then count as many as fit in the time between bursts, where a count per interval of the clock would have one burst
/// more or less. An instant at which packets still arrive is not over, and is left to the next TACK.
#[derive(Clone, Debug, Default)]
pub struct RateMeter {
    received: u64,
    last_arrival: Instant,
    /// The last instant of arrivals that is over, and the bytes that had arrived by then.
    complete: Option<Mark>,
    /// Newest first.
    marks: [Option<Mark>; MARKS],
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    received: u64,
}

impl RateMeter {
    /// `bytes` arrived.
    #[inline]
    pub fn on_bytes(&mut self, now: Instant, bytes: u64) {
        if now > self.last_arrival && self.received > 0 {
            self.complete = Some(Mark { at: self.last_arrival, received: self.received });
        }
        self.received += bytes;
        self.last_arrival = now;
    }

    /// Bytes that arrived so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The rate over the latest `span` or little more, as of a TACK that leaves at `now`; `None` while no arrival is that
    /// old.
    pub fn take(&mut self, now: Instant, span: Duration) -> Option<BitRate> {
        let over = Mark { at: self.last_arrival, received: self.received };
        let last = if self.last_arrival < now && self.received > 0 { over } else { self.complete? };
        let old_enough = |mark: &&Mark| mark.at < last.at && last.at.saturating_since(mark.at) >= span;
        let first = self.marks.iter().flatten().find(old_enough).copied();
        let spacing = span / (MARKS as u64 / 4);
        if self.marks[0].is_none_or(|mark| mark.at < last.at && last.at.saturating_since(mark.at) >= spacing)
        {
            self.marks.rotate_right(1);
            self.marks[0] = Some(last);
        }
        let first = first?;
        BitRate::from_amount(Bytes(last.received - first.received), last.at.saturating_since(first.at))
    }
}

/// Seconds that a smallest round-trip time is believed: tau of TACK paper section 5.2.
const LIFETIME_SECS: u64 = 10;

/// The smallest of ten seconds, in buckets of one.
#[derive(Clone, Debug, Default)]
pub struct WindowedMin {
    buckets: [Option<(u64, Duration)>; LIFETIME_SECS as usize],
    smallest: Option<Duration>,
}

impl WindowedMin {
    /// Adds a sample and returns the smallest of the window.
    pub fn update(&mut self, now: Instant, sample: Duration) -> Duration {
        let second = now.as_nanos() / 1_000_000_000;
        let bucket = &mut self.buckets[(second % LIFETIME_SECS) as usize];
        *bucket = match *bucket {
            Some((known_second, least)) if known_second == second => Some((known_second, least.min(sample))),
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
    fn a_queue_that_stands_is_the_least_delay_above_the_least_of_ten_seconds() {
        for offset in [0, 123_456, u32::MAX - 3_000] {
            let mut queueing = QueueingDelay::default();
            queueing.update(at(0), offset);
            (1..60).for_each(|interval| queueing.update(at(25 * interval), offset.wrapping_add(8_000)));
            assert_eq!(queueing.smoothed().as_micros(), 7_996, "8 ms, nearly");
            queueing.update(at(1_500), offset.wrapping_add(1 << 30));
            assert!(queueing.smoothed() < Duration::from_millis(133), "a clock was set");
            (60..70).for_each(|interval| queueing.update(at(25 * interval), offset.wrapping_add(8_000)));
            // A clock that runs ahead, or a longer path, is believed after ten seconds.
            (70..1_000).for_each(|interval| queueing.update(at(25 * interval), offset.wrapping_add(8_000)));
            assert_eq!(queueing.smoothed().as_micros(), 0);
        }
    }

    #[test]
    fn a_burst_is_what_arrives_within_the_gathering_time() {
        let mut bursts = BurstMeter::default();
        let micros = |micros| Instant::ZERO + Duration::from_micros(micros);
        for (ampdu, packets) in [(0, 20), (1, 42), (2, 30)] {
            (0..packets).for_each(|packet| bursts.on_bytes(micros(3_600 * ampdu + 5 * packet), 1_000));
        }
        bursts.end_interval();
        assert_eq!(bursts.burst(), 42_000);
        bursts.on_bytes(micros(20_000), 1_000);
        bursts.end_interval();
        assert_eq!(bursts.burst(), 36_750, "forgotten by an eighth each interval");
        // A wire at 1 Gb/s: the packets of a quarter of a millisecond, however long it lasts.
        let mut wire = BurstMeter::default();
        (0..10_000).for_each(|packet| wire.on_bytes(micros(12 * packet), 1_500));
        wire.end_interval();
        assert_eq!(wire.burst(), 21 * 1_500);
    }

    /// 30 packets of 1000 bytes each 3 ms are 80 Mb/s, wherever the TACKs fall, between bursts or within one.
    #[test]
    fn bursts_do_not_raise_the_rate() {
        for period in [2, 3, 4, 5, 7] {
            let mut meter = RateMeter::default();
            let mut rates = Vec::new();
            for now in 0..200 {
                for packet in (0..30).filter(|_| now % 3 == 0) {
                    meter.on_bytes(at(now), 1_000);
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
