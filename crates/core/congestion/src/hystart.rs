//! HyStart: ends slow start before the bottleneck's queue overflows, as CUBIC in Linux and ns-3 does (Ha and Rhee,
//! "Taming the elephants: new TCP slow start", 2011).

use super::AckSample;
use tacit_packet::position::Position;
use tacit_packet::units::{Duration, Instant};

/// Below this window in segments, slow start never ends early.
const LOW_WINDOW_SEGMENTS: u64 = 16;

/// Round-trip samples at the start of a round whose minimum is used.
const MIN_SAMPLES: u32 = 8;

/// Limits of the required rise over the smallest delay; between them, an eighth of that delay.
const DELAY_RISE_MIN: Duration = Duration::from_millis(4);
const DELAY_RISE_MAX: Duration = Duration::from_millis(16);

/// Largest gap between two ACKs of one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);

/// Watches one slow start, round trip by round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// A round ends when data up to here is acknowledged.
    round_end: Option<Position>,
    round_start: Instant,
    train_end: Instant,
    smallest: Option<Duration>,
    smallest_in_round: Option<Duration>,
    samples: u32,
}

impl HyStart {
    /// Forgets the rounds of a slow start that has ended. Keeps the smallest delay, because the path is the same.
    pub fn reset(&mut self) {
        *self = Self { smallest: self.smallest, ..Self::default() };
    }

    /// Handles an ACK. Returns true if slow start should end: either the ACK train has grown to half the smallest
    /// round-trip time, so the pipe is full, or the delay has risen, so a queue builds up.
    pub fn should_leave(&mut self, sample: &AckSample, cwnd: u64, mss: u64) -> bool {
        if let Some(rtt) = sample.rtt {
            self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
        }
        if self.round_end.is_none_or(|end| sample.snd_una > end) {
            self.round_end = Some(sample.snd_nxt);
            self.round_start = sample.now;
            self.train_end = sample.now;
            self.smallest_in_round = None;
            self.samples = 0;
        }
        if cwnd < LOW_WINDOW_SEGMENTS * mss {
            return false;
        }
        let Some(smallest) = self.smallest else { return false };
        self.train_is_long(sample.now, smallest) || self.delay_rose(sample.rtt, smallest)
    }

    fn train_is_long(&mut self, now: Instant, smallest: Duration) -> bool {
        if now.saturating_since(self.train_end) > TRAIN_GAP {
            return false;
        }
        self.train_end = now;
        now.saturating_since(self.round_start) > smallest / 2
    }

    fn delay_rose(&mut self, rtt: Option<Duration>, smallest: Duration) -> bool {
        let Some(rtt) = rtt else { return false };
        let in_round = self.smallest_in_round.map_or(rtt, |smallest| smallest.min(rtt));
        self.smallest_in_round = Some(in_round);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let rise = (smallest / 8).clamp(DELAY_RISE_MIN, DELAY_RISE_MAX);
        in_round > smallest + rise
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::position::at;

    const MSS: u64 = 1000;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// An ACK in round `round` at `millis`, with a window of `segments`; returns whether slow start should end.
    fn ack(hystart: &mut HyStart, round: u64, millis: u64, rtt: Option<Duration>, segments: u64) -> bool {
        let sample = AckSample {
            now: Instant::ZERO + MS(millis),
            acked: MSS,
            snd_una: at(round * 1_000_000 + 1),
            snd_nxt: at((round + 1) * 1_000_000),
            rtt,
            smoothed_rtt: rtt,
            window_limited: true,
            after_timeout: false,
        };
        hystart.should_leave(&sample, segments * MSS, MSS)
    }

    /// The number of the ACK (from one) that ends slow start in a round in which every ACK measured `rtt`, after a
    /// round with `smallest`. The ACKs are too far apart to form a train.
    fn leaves_at(smallest: Duration, rtt: Duration, segments: u64) -> Option<u64> {
        let mut hystart = HyStart::default();
        for millis in 0..20 {
            assert!(!ack(&mut hystart, 0, 5 * millis, Some(smallest), segments));
        }
        (1..=50).find(|count| ack(&mut hystart, 1, 1_000 + 5 * count, Some(rtt), segments))
    }

    #[test]
    fn a_round_whose_first_eight_samples_are_late_ends_slow_start_with_the_ninth() {
        assert_eq!(leaves_at(MS(100), MS(120), 16), Some(9));
        assert_eq!(leaves_at(MS(100), MS(110), 16), None, "less than an eighth more");
    }

    #[test]
    fn small_windows_stay_in_slow_start() {
        assert_eq!(leaves_at(MS(100), MS(200), 15), None);
    }

    /// The threshold is an eighth of the smallest round-trip time, but 4 to 16 ms.
    #[test]
    fn the_rise_that_counts_has_bounds() {
        assert_eq!(leaves_at(MS(8), MS(12), 16), None);
        assert_eq!(leaves_at(MS(8), MS(13), 16), Some(9));
        assert_eq!(leaves_at(MS(1_000), MS(1_016), 16), None);
        assert_eq!(leaves_at(MS(1_000), MS(1_017), 16), Some(9));
    }

    /// ACKs without a gap for half a round trip mean that the pipe is full. A gap of more than 2 ms ends the train.
    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        let leaves_at = |pause: u64| {
            let mut hystart = HyStart::default();
            assert!(!ack(&mut hystart, 0, 0, Some(MS(100)), 100));
            (1..=99).find(|count| {
                let millis = count + if *count > 30 { pause } else { 0 };
                ack(&mut hystart, 0, millis, None, 100)
            })
        };
        assert_eq!(leaves_at(0), Some(51));
        assert_eq!(leaves_at(2), None);
    }
}
