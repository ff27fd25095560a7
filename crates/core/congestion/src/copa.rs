//! Copa (Arun and Balakrishnan, "Copa: practical delay-based congestion control for the Internet", NSDI 2018). The
//! target rate for a measured queueing delay is `1 / (delta * d_q)` segments per second. The window moves towards it,
//! and faster the longer it has moved in the same direction.

mod window;

use super::Delivery;
use super::control::{CongestionControl, own_window};
use super::window::Window;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use window::Extreme;

/// 1/delta in default mode: delta is 0.5 (section 2.1).
const DEFAULT: u64 = 2;
/// Most segments that a competing flow may queue.
const MOST: u64 = 1 << 16;
/// RTTmin is the minimum over this time (section 2.1).
const RTT_MIN_WINDOW: Duration = Duration::from_secs(10);
/// RTTmax is the maximum over four round trips. If the queue was nearly empty (below a tenth of the largest delay)
/// within the last five round trips, no buffer-filling flow competes (section 2.2).
const RTT_MAX_ROUNDS: u64 = 4;
const EMPTY_PART: u64 = 10;
const EMPTY_ROUNDS: u64 = 5;
/// Rounds in one direction before the velocity doubles (section 2.1).
const STEADY_ROUNDS: u32 = 3;
const MAX_VELOCITY: u64 = 1 << 16;
/// Least window in segments.
const MIN_SEGMENTS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

#[derive(Clone, Debug)]
pub(crate) struct Copa {
    window: Window,
    standing: Extreme,
    rtt_min: Extreme,
    rtt_max: Extreme,
    slow_start: bool,
    velocity: u64,
    direction: Direction,
    steady_rounds: u32,
    /// The current round: the delivered bytes at which it ends, and the window when it began.
    next_round_delivered: u64,
    round_cwnd: u64,
    /// Fraction of a byte not yet added to or subtracted from the window, in bytes times cwnd.
    credit: i128,
    /// 1/delta: the default, or a value adapted to compete with buffer-filling flows.
    inverse_delta: u64,
    last_empty: Option<Instant>,
    lost_in_round: bool,
}

impl Copa {
    pub fn new(window: Window) -> Self {
        Self {
            round_cwnd: window.cwnd,
            window,
            standing: Extreme::default(),
            rtt_min: Extreme::default(),
            rtt_max: Extreme::default(),
            slow_start: true,
            velocity: 1,
            direction: Direction::Up,
            steady_rounds: 0,
            next_round_delivered: 0,
            credit: 0,
            inverse_delta: DEFAULT,
            last_empty: None,
            lost_in_round: false,
        }
    }

    fn measure(&mut self, now: Instant, rtt: Duration, smoothed: Duration) {
        let smaller: fn(Duration, Duration) -> bool = |one, other| one < other;
        self.standing.update(now, rtt, smoothed / 2, smaller);
        self.rtt_min.update(now, rtt, RTT_MIN_WINDOW, smaller);
        self.rtt_max.update(now, rtt, smoothed * RTT_MAX_ROUNDS, |one, other| one > other);
    }

    fn steer(&mut self, acked: u64, up: bool, app_limited: bool) {
        let window = &mut self.window;
        if self.slow_start {
            if up {
                window.cwnd += if app_limited { 0 } else { acked };
                return;
            }
            self.slow_start = false;
        }
        if up && app_limited {
            return;
        }
        // A velocity gained on the way up must not be used on the way down. The velocity is therefore reset when the
        // direction changes, not when a whole round has confirmed the change (as in mvfst).
        let wanted = if up { Direction::Up } else { Direction::Down };
        if self.velocity > 1 && wanted != self.direction {
            (self.direction, self.velocity, self.steady_rounds) = (wanted, 1, 0);
        }
        // v / (delta * cwnd) segments per acknowledged segment.
        let step = i128::from(self.velocity * self.inverse_delta) * i128::from(acked * window.mss);
        self.credit += if up { step } else { -step };
        let cwnd = i128::from(window.cwnd);
        let moved = self.credit / cwnd;
        self.credit -= moved * cwnd;
        let least = i128::from(MIN_SEGMENTS * window.mss);
        // Never faster than slow start at any velocity.
        let moved = moved.clamp(-i128::from(acked), i128::from(acked));
        window.cwnd = (cwnd + moved).max(least) as u64;
    }

    /// Once per round trip: updates direction, velocity and mode.
    fn end_round(&mut self, now: Instant, standing: Duration) {
        let cwnd = self.window.cwnd;
        let direction = if cwnd > self.round_cwnd { Direction::Up } else { Direction::Down };
        if direction == self.direction && !self.slow_start {
            self.steady_rounds += 1;
            if self.steady_rounds >= STEADY_ROUNDS {
                self.velocity = (self.velocity * 2).min(MAX_VELOCITY);
            }
        } else {
            self.steady_rounds = 0;
            self.velocity = 1;
        }
        self.direction = direction;
        self.round_cwnd = cwnd;
        self.choose_mode(now, standing);
        self.lost_in_round = false;
    }

    /// If the queue was not nearly empty for five round trips, another flow fills it. 1/delta then follows the rule of
    /// Reno's window: plus one per round trip, halved by a loss.
    fn choose_mode(&mut self, now: Instant, standing: Duration) {
        let (Some(rtt_min), Some(rtt_max)) = (self.rtt_min.get(), self.rtt_max.get()) else { return };
        let queueing = standing.saturating_sub(rtt_min);
        if queueing <= rtt_max.saturating_sub(rtt_min) / EMPTY_PART {
            self.last_empty = Some(now);
        }
        let since = *self.last_empty.get_or_insert(now);
        let competing = now.saturating_since(since) > standing * EMPTY_ROUNDS;
        self.inverse_delta = match (competing, self.lost_in_round) {
            (false, _) => DEFAULT,
            (true, true) => (self.inverse_delta / 2).max(DEFAULT),
            (true, false) => (self.inverse_delta + 1).min(MOST),
        };
    }
}

impl CongestionControl for Copa {
    own_window!();

    fn wants_delivery(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        let sample = &delivery.sample;
        self.lost_in_round |= delivery.lost > 0;
        if let Some(rtt) = sample.rtt {
            self.measure(delivery.now, rtt, delivery.smoothed_rtt.unwrap_or(rtt));
        }
        let (Some(standing), Some(rtt_min)) = (self.standing.get(), self.rtt_min.get()) else { return };
        if sample.newly_delivered == 0 {
            return;
        }
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = sample.delivered;
            self.end_round(delivery.now, standing);
        }
        let queueing = standing.saturating_sub(rtt_min);
        // lambda <= lambda_t, without divisions: cwnd / standing <= mss / (delta * d_q).
        let waiting = u128::from(self.window.cwnd) * u128::from(queueing.as_nanos());
        let wanted = u128::from(self.inverse_delta * self.window.mss) * u128::from(standing.as_nanos());
        self.steer(sample.newly_delivered, waiting <= wanted, sample.app_limited);
    }

    /// Loss is ignored in default mode; in competitive mode it is the signal, as for the competing flows.
    fn on_loss(&mut self, _flight: u64) {
        self.lost_in_round = true;
    }

    fn on_timeout(&mut self, _now: Instant, _flight: u64) {
        self.window.collapse();
        self.slow_start = true;
        self.velocity = 1;
        self.steady_rounds = 0;
        self.credit = 0;
        self.lost_in_round = true;
    }

    fn on_undo(&mut self, cwnd_before: u64) {
        self.window.cwnd = self.window.cwnd.max(cwnd_before);
    }

    /// Twice the window per standing round-trip time, so that ACKs clock the sender and bursts do not queue (section
    /// 2.1).
    fn pacing_rate(&self, _smoothed_rtt: Option<Duration>, _in_flight: u64) -> Option<BitRate> {
        BitRate::from_amount(Bytes(2 * self.window.cwnd), self.standing.get()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_as_long_as_the_longest_renews_it() {
        const MS: Duration = Duration::from_millis(1);
        let mut copa = Copa::new(Window::new(10_000, 1_000, 1));
        let mut measure = |at, rtt| copa.measure(Instant::ZERO + MS * at, MS * rtt, MS * 100);
        measure(0, 100);
        measure(20, 100);
        // 410 ms after the first, which is beyond four round trips, and 390 after the second.
        measure(410, 50);
        assert_eq!(copa.rtt_max.get(), Some(MS * 100));
    }
}
