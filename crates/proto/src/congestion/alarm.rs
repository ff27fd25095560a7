//! A controller for tests of whatever owns one: it acts when no ACK comes.

use super::AckSample;
use super::window::Window;
use crate::units::{Duration, Instant};

/// Its window never grows, and is halved each time 50 ms pass without an ACK for new data, however long none
/// comes; sooner than any retransmission timeout.
#[derive(Clone, Debug)]
pub(crate) struct Alarm {
    pub(super) window: Window,
    patient_until: Option<Instant>,
}

impl Alarm {
    pub const PATIENCE: Duration = Duration::from_millis(50);

    pub fn new(window: Window) -> Self {
        Self { window, patient_until: None }
    }

    pub fn on_transmit_start(&mut self, now: Instant) {
        self.patient_until = Some(now + Self::PATIENCE);
    }

    pub fn on_ack(&mut self, sample: &AckSample) {
        self.patient_until = Some(sample.now + Self::PATIENCE);
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.patient_until
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.patient_until = Some(now + Self::PATIENCE);
        self.window.cwnd = (self.window.cwnd / 2).max(self.window.mss);
    }
}
