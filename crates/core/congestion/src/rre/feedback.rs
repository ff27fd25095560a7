//! Round-trip times, and the time without ACKs.

use super::delay::MAX_DELAY_US;

/// Shortest time without an ACK that counts as silence [DERIVED].
const SILENCE_US: u64 = 1_000_000;
/// Most halvings of the rate in one silence.
const MAX_SILENCES: u32 = 16;
/// Round-trip time before the first measurement (RFC 6298 section 2.1: one second).
const UNKNOWN_RTT_US: u64 = 1_000_000;

/// Timing of ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Feedback {
    pub(super) smoothed_rtt_us: u64,
    /// Latest and longest round-trip time; 0 while unknown.
    pub(super) latest_rtt_us: u64,
    pub(super) longest_rtt_us: u64,
    /// Arrival of the latest ACK, and the number of halvings since.
    pub(super) heard_us: u64,
    pub(super) silences: u32,
}

impl Feedback {
    /// Starts with the round-trip time of the handshake, 0 if unknown.
    pub fn new(handshake_rtt_us: u32, now_us: u64) -> Self {
        Self {
            smoothed_rtt_us: handshake_rtt_us.into(),
            latest_rtt_us: 0,
            longest_rtt_us: handshake_rtt_us.into(),
            heard_us: now_us,
            silences: 0,
        }
    }

    /// An ACK arrived. Returns the number of halvings in the silence that it ends.
    pub fn on_ack(&mut self, now_us: u64, rtt_us: u32, smoothed_rtt_us: u32) -> u32 {
        if smoothed_rtt_us > 0 {
            self.smoothed_rtt_us = smoothed_rtt_us.into();
        }
        let rtt_us = u64::from(rtt_us);
        self.longest_rtt_us = self.longest_rtt_us.max(rtt_us);
        if rtt_us > 0 {
            self.latest_rtt_us = rtt_us;
        }
        self.heard_us = now_us;
        std::mem::take(&mut self.silences)
    }

    /// Another silence without an ACK.
    pub fn on_silence(&mut self) {
        self.silences = (self.silences + 1).min(MAX_SILENCES);
    }

    /// Whether a longer silence changes nothing.
    pub fn is_longest_silence(&self) -> bool {
        self.silences == MAX_SILENCES
    }

    /// When the next silence is reached if no ACK arrives.
    pub fn silent_at_us(&self) -> u64 {
        self.heard_us + SILENCE_US.max(2 * self.delay_us()) * u64::from(self.silences + 1)
    }

    /// The smoothed round-trip time, within bounds.
    pub fn smoothed_us(&self) -> u64 {
        let known = if self.smoothed_rtt_us == 0 { UNKNOWN_RTT_US } else { self.smoothed_rtt_us };
        known.clamp(1_000, MAX_DELAY_US)
    }

    /// The feedback delay: the time from a change until its effect is seen. The smoothed round-trip time still contains
    /// the round trips of an outage long after it.
    pub fn delay_us(&self) -> u64 {
        let smoothed_us = self.smoothed_us();
        if self.latest_rtt_us == 0 { smoothed_us } else { smoothed_us.min(self.latest_rtt_us.max(1_000)) }
    }
}
