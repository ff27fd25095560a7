//! Pacing: converts a rate to the times at which segments may leave.
//!
//! Segments leave in bursts of about a millisecond, the size that Linux chooses for the interface. The next burst waits
//! for the time in which the whole burst would have left at the rate.

use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

/// Duration of a burst at the rate: 2^-10 s (Linux `sk_pacing_shift` 10).
const BURST_TIME: Duration = Duration::from_nanos(1_000_000_000 >> 10);

/// Least segments in a burst (Linux `tcp_min_tso_segs`): a single segment would cause a delayed ACK.
const MIN_BURST_SEGMENTS: u64 = 2;

/// Most bytes in a burst of segments: the size limit of one IP packet, and so of one offloaded send.
const MAX_BURST: Bytes = Bytes(65_535);

/// Duration up to which a burst of datagrams may exceed that size: 2^-12 s. Ours: a program with a socket sleeps
/// between bursts, and setting a timer costs it as much as sending 30 kB (a virtual machine, Linux 6.18).
const LONG_BURST_TIME: Duration = Duration::from_nanos(1_000_000_000 >> 12);

/// Whether a sender spaces its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// When the congestion control requires it: only BBR and Copa do.
    #[default]
    Auto,
    /// Always. Window-based controllers are paced at 200 % of the window per smoothed round-trip time in slow start and
    /// at 120 % afterwards, as in Linux.
    On,
    /// Never. Rate-based controllers do not work as designed then.
    Off,
}

/// What sends bursts, which limits their size.
#[derive(Clone, Copy, Debug, Default)]
pub enum Bursts {
    /// The kernel: one offloaded send per burst.
    #[default]
    Segments,
    /// A program that sends over UDP: several sends per burst at high rates, from 2.1 Gb/s.
    Datagrams,
}

/// Most lateness of a driver that one burst compensates. Ours: the time between two turns if a dozen programs
/// compete for a processor (Linux 6.18, slices of some 3 ms). The window limits the resulting burst.
const LATENESS_MAX: Duration = Duration::from_millis(50);

impl Bursts {
    /// Size of a burst in bytes at `rate`: whole segments of `mss` bytes, at least two.
    pub fn size(self, rate: BitRate, mss: u64) -> u64 {
        let most = match self {
            Self::Segments => MAX_BURST,
            Self::Datagrams => rate.amount_in(LONG_BURST_TIME).max(MAX_BURST),
        };
        let segments = rate.amount_in(BURST_TIME).min(most).0 / mss.max(1);
        segments.max(MIN_BURST_SEGMENTS) * mss
    }
}

/// Computes when the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    bursts: Bursts,
    /// Segments in a burst, at least.
    least: u32,
    /// When everything sent so far would have left at the rate.
    next_at: Instant,
    /// Start of the current burst, and its remaining bytes.
    burst_at: Instant,
    burst_left: u64,
    /// Lateness of the driver that has not been made up for yet.
    lateness: Duration,
}

impl Pacer {
    /// A pacer that has sent nothing yet.
    pub fn new(bursts: Bursts) -> Self {
        Self { bursts, ..Self::default() }
    }

    /// With `segments` in a burst, at least.
    pub fn at_least(self, segments: u32) -> Self {
        Self { least: segments, ..self }
    }

    /// When the next segment may leave, if not now.
    #[inline]
    pub fn held_until(&self, now: Instant) -> Option<Instant> {
        (self.burst_left == 0 && now < self.next_at).then_some(self.next_at)
    }

    /// The driver came later than scheduled by `lateness`, because other programs had the processor. With only one
    /// burst per turn, the rate would be limited by the turns. A controller that measures that rate would then pace by
    /// it, with smaller bursts, and the rate would fall further.
    pub fn on_late(&mut self, lateness: Duration) {
        self.lateness = self.lateness.max(lateness.min(LATENESS_MAX));
    }

    /// Discards the recorded lateness.
    pub fn forget_lateness(&mut self) {
        self.lateness = Duration::ZERO;
    }

    /// Records that `bytes` leave at `now`, at `rate`; while `rate` is `None` nothing is delayed.
    pub fn on_sent(&mut self, bytes: u64, now: Instant, rate: Option<BitRate>, mss: u64) {
        let Some(rate) = rate.filter(|rate| rate.as_bps() > 0) else {
            *self = Self::new(self.bursts).at_least(self.least);
            return;
        };
        if now >= self.next_at && (self.burst_left == 0 || now > self.burst_at) {
            self.burst_at = now;
            self.burst_left = self.bursts.size(rate, mss).max(u64::from(self.least) * mss);
            // A driver that is late by less than half a burst, or that reports its lateness, does not slow the flow
            // down.
            let (behind, half) =
                (now.saturating_since(self.next_at), rate.time_for(Bytes(self.burst_left)) / 2);
            self.next_at = now - behind.min(half.max(self.lateness));
        }
        self.burst_left = self.burst_left.saturating_sub(bytes);
        self.next_at += rate.time_for(Bytes(bytes));
        if self.next_at > now {
            self.lateness = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn a_burst_is_a_millisecond_and_two_segments_at_least() {
        let burst = |mbps| Bursts::Segments.size(BitRate::from_mbps(mbps), MSS);
        assert_eq!(burst(1), 2 * MSS);
        assert_eq!(burst(80), 9 * MSS);
        assert_eq!(burst(100_000), 65 * MSS);
    }

    #[test]
    fn a_program_sends_a_quarter_of_a_millisecond_at_once_where_that_is_more() {
        let burst = |mbps| Bursts::Datagrams.size(BitRate::from_mbps(mbps), MSS);
        assert_eq!(burst(1), 2 * MSS);
        assert_eq!(burst(80), 9 * MSS);
        assert_eq!(burst(2_000), 65 * MSS);
        assert_eq!(burst(10_000), 305 * MSS);
    }

    /// Sends as much as the pacer allows in 100 ms, with a driver that is always `late`, and reports it if `tells`.
    fn sent_in_100_ms(rate: BitRate, late: Duration, tells: bool) -> u64 {
        let mut pacer = Pacer::default();
        let (mut now, mut sent) = (Instant::ZERO + Duration::from_millis(1), 0);
        let end = now + Duration::from_millis(100);
        while now < end {
            match pacer.held_until(now) {
                Some(at) => {
                    now = at + late;
                    if tells {
                        pacer.on_late(late);
                    }
                }
                None => {
                    pacer.on_sent(MSS, now, Some(rate), MSS);
                    sent += MSS;
                }
            }
        }
        sent
    }

    #[test]
    fn the_rate_is_kept_even_by_a_driver_that_comes_late() {
        // 80 Mb/s for 100 ms are 1 000 000 bytes, plus half a burst of credit and a last burst.
        for late in [0, 100, 400] {
            let sent = sent_in_100_ms(BitRate::from_mbps(80), Duration::from_micros(late), false);
            assert!((1_000_000..=1_014_000).contains(&sent), "{sent}");
        }
    }

    #[test]
    fn the_rate_is_kept_by_a_driver_that_says_how_late_it_comes() {
        let sent = |late, tells| sent_in_100_ms(BitRate::from_mbps(80), Duration::from_millis(late), tells);
        for late in [1, 3, 10] {
            // Data that makes up for the last delay may be sent after the end.
            let least = 1_000_000 - late * 10_000;
            assert!((least..=1_014_000).contains(&sent(late, true)), "{late} ms: {}", sent(late, true));
        }
        assert!(sent(10, false) < 200_000, "{}", sent(10, false));
    }

    #[test]
    fn a_burst_may_have_a_least_number_of_segments_at_the_same_rate() {
        let rate = BitRate::from_mbps(8);
        let mut pacer = Pacer::default().at_least(42);
        let start = Instant::ZERO + Duration::from_secs(5);
        for _ in 0..42 {
            assert_eq!(pacer.held_until(start), None);
            pacer.on_sent(MSS, start, Some(rate), MSS);
        }
        // 42 segments take 42 ms; half of them were forgiven after the pause.
        assert_eq!(pacer.held_until(start), Some(start + Duration::from_millis(21)));
    }

    #[test]
    fn lateness_is_made_up_for_once() {
        let rate = BitRate::from_mbps(8);
        let mut pacer = Pacer::default();
        let sent = |pacer: &mut Pacer, now: Instant| {
            let mut sent = 0;
            while pacer.held_until(now).is_none() {
                pacer.on_sent(MSS, now, Some(rate), MSS);
                sent += MSS;
            }
            sent
        };
        let start = Instant::ZERO + Duration::from_secs(5);
        sent(&mut pacer, start);
        pacer.on_late(Duration::from_millis(20));
        // 20 ms at 1000 bytes per ms, and one burst.
        let late = start + Duration::from_millis(21);
        assert!((20 * MSS..=23 * MSS).contains(&sent(&mut pacer, late)));
        assert_eq!(sent(&mut pacer, late + Duration::from_secs(1)), 2 * MSS, "a pause is not made up for");
    }

    /// A program that was stopped for a second would else send all of that second at once.
    #[test]
    fn no_more_than_50_ms_of_lateness_is_made_up_for() {
        let rate = BitRate::from_mbps(8);
        let mut pacer = Pacer::default();
        let start = Instant::ZERO + Duration::from_secs(5);
        pacer.on_sent(2 * MSS, start, Some(rate), MSS);
        let late = start + Duration::from_secs(1);
        pacer.on_late(Duration::from_secs(1));
        let mut sent = 0;
        while pacer.held_until(late).is_none() {
            pacer.on_sent(MSS, late, Some(rate), MSS);
            sent += MSS;
        }
        // Each takes a millisecond; the last is of a burst.
        assert!((50 * MSS..=52 * MSS).contains(&sent), "{sent}");
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let rate = BitRate::from_mbps(8);
        let mut pacer = Pacer::default();
        let start = Instant::ZERO + Duration::from_secs(5);
        for _ in 0..2 {
            assert_eq!(pacer.held_until(start), None);
            pacer.on_sent(MSS, start, Some(rate), MSS);
        }
        // 2000 bytes take 2 ms, and 1 ms of it is credit.
        assert_eq!(pacer.held_until(start), Some(start + Duration::from_millis(1)));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::default();
        for _ in 0..100 {
            assert_eq!(pacer.held_until(Instant::ZERO), None);
            pacer.on_sent(MSS, Instant::ZERO, None, MSS);
        }
    }
}
