//! Reno's window arithmetic (RFC 5681), shared by NewReno and SACK recovery.

use super::AckSample;
use super::control::{CongestionControl, own_window};
use super::window::Window;
use tacit_packet::units::Instant;

/// Additive increase by one segment per round trip, multiplicative decrease by half.
#[derive(Clone, Debug)]
pub(crate) struct Reno {
    window: Window,
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    counted: u64,
}

impl Reno {
    pub fn new(window: Window) -> Self {
        Self { window, counted: 0 }
    }

    fn reduce(&mut self, flight: u64) {
        self.window.halve_ssthresh(flight);
        self.counted = 0;
    }
}

impl CongestionControl for Reno {
    own_window!();

    fn on_ack(&mut self, sample: &AckSample) {
        if !sample.window_limited {
            return;
        }
        let window = &mut self.window;
        let mut acked = sample.acked;
        if window.in_slow_start() {
            acked = window.slow_start(sample);
            if window.in_slow_start() {
                return;
            }
        }
        // "When the number of bytes acknowledged reaches cwnd, then cwnd can be incremented by up to SMSS bytes" (RFC
        // 5681 section 3.1): one segment per round trip, however rare ACKs are.
        self.counted += acked;
        if self.counted >= window.cwnd {
            self.counted -= window.cwnd;
            window.cwnd += window.mss;
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
