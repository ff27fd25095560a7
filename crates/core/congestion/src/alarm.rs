//! A controller that acts when no ACK arrives, for tests of connections.

use super::AckSample;
use super::control::{CongestionControl, Pause, own_window};
use super::window::Window;
use tacit_packet::units::{Duration, Instant};

/// Its window never grows. It is halved after every 50 ms without an ACK for new data, which is sooner than any
/// retransmission timeout.
#[derive(Clone, Debug)]
pub(crate) struct Alarm {
    window: Window,
    patient_until: Option<Instant>,
}

impl Alarm {
    pub const PATIENCE: Duration = Duration::from_millis(50);

    pub fn new(window: Window) -> Self {
        Self { window, patient_until: None }
    }
}

impl CongestionControl for Alarm {
    own_window!();

    fn on_ack(&mut self, sample: &AckSample) {
        self.patient_until = Some(sample.now + Self::PATIENCE);
    }

    fn on_timeout(&mut self, _now: Instant, _flight: u64) {}

    fn on_transmit_start(&mut self, now: Instant, _pause: Pause) {
        self.patient_until = Some(now + Self::PATIENCE);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.patient_until
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.patient_until = Some(now + Self::PATIENCE);
        self.window.cwnd = (self.window.cwnd / 2).max(self.window.mss);
    }

    fn state(&self) -> Option<&'static str> {
        None
    }
}
