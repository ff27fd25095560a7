//! Vegas (Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE JSAC 13(8),
//! 1995): keeps the window a few segments above the capacity of the path itself.

use super::AckSample;
use super::control::{CongestionControl, own_window};
use super::window::Window;
use tacit_packet::position::Position;
use tacit_packet::units::{Duration, Instant};

/// Segments that should be queued in the path: at least alpha, at most beta, and gamma in slow start. The paper gives
/// "2 and 4" for alpha and beta; gamma is as in Linux.
const ALPHA: u64 = 2;
const BETA: u64 = 4;
const GAMMA: u64 = 1;

/// Least round-trip samples per round, because a single one may include a delayed ACK.
const MIN_SAMPLES: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    window: Window,
    /// BaseRTT.
    base: Option<Duration>,
    /// The current round: its end, its minimum round-trip time, and the number of samples.
    round_end: Option<Position>,
    smallest: Option<Duration>,
    samples: u32,
}

impl Vegas {
    pub fn new(window: Window) -> Self {
        Self { window, base: None, round_end: None, smallest: None, samples: 0 }
    }

    /// Once per round trip: Diff = (Expected - Actual) * BaseRTT, the bytes that are queued.
    fn end_round(&mut self) {
        let (Some(base), Some(rtt)) = (self.base, self.smallest) else { return };
        if rtt.as_nanos() == 0 {
            return;
        }
        let window = &mut self.window;
        let waiting = u128::from(window.cwnd) * u128::from((rtt - base).as_nanos());
        let waiting = (waiting / u128::from(rtt.as_nanos())) as u64;
        let mss = window.mss;
        if window.in_slow_start() {
            if self.samples >= MIN_SAMPLES && waiting > GAMMA * mss {
                // The path's capacity without its queues, plus one segment.
                window.cwnd = (window.cwnd - waiting + mss).max(2 * mss);
                window.ssthresh = window.cwnd;
            }
        } else if self.samples < MIN_SAMPLES || waiting < ALPHA * mss {
            window.cwnd += mss;
        } else if waiting > BETA * mss {
            window.cwnd = (window.cwnd - mss).max(2 * mss);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    /// Losses are handled as in Reno.
    fn reduce(&mut self, flight: u64) {
        self.window.halve_ssthresh(flight);
        self.round_end = None;
    }
}

impl CongestionControl for Vegas {
    own_window!();

    fn on_ack(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
            self.samples += 1;
        }
        if self.round_end.is_none_or(|end| sample.snd_una >= end) {
            if sample.window_limited {
                self.end_round();
            }
            self.round_end = Some(sample.snd_nxt);
            self.smallest = None;
            self.samples = 0;
        }
        if sample.window_limited && self.window.in_slow_start() {
            self.window.slow_start(sample);
        }
    }

    fn on_loss(&mut self, flight: u64) {
        self.reduce(flight);
        self.window.cwnd = self.window.ssthresh;
    }

    fn on_timeout(&mut self, _now: Instant, flight: u64) {
        self.reduce(flight);
        self.window.collapse();
    }
}
