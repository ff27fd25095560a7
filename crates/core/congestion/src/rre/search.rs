//! The search for the first receive rate: the window triples each round trip, until packets arrive more slowly than
//! they left.

use super::clock::Reading;
use super::estimate::{MUCH_LOST, SAMPLE_TICKS};
use super::steering::{MAX_RATE, MAX_WINDOW};

/// Least packets from which the receive rate is first found; the first train has ten [S].
const TRAIN_PACKETS: u64 = 8;
/// A window is sent in half a round-trip time at the start; that time is limited to this range, because the first train
/// measures a bottleneck only if it is faster than the bottleneck.
const MIN_TRAIN_US: u64 = 5_000;
const MAX_TRAIN_US: u64 = 20_000;

/// State at a reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub now_us: u64,
    /// Total delivered bytes.
    pub delivered: u64,
    /// Bytes in the network.
    pub in_flight: u64,
    /// The sender lacked data to send more.
    pub limited: bool,
    /// The longer one of the two clocks' ticks.
    pub tick_us: u64,
    /// Bytes in a packet.
    pub mss: u64,
    /// The buffer is in use.
    pub used: bool,
}

/// The state of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Search {
    /// The round: the delivered bytes at which it ends, and the reading at its beginning.
    pub(super) round_end: u64,
    pub(super) round_read: bool,
    pub(super) round_reading: Reading,
    pub(super) round_delivered: u64,
    pub(super) round_at_us: u64,
    pub(super) round_lost: u64,
    /// Window of the first start in bytes, and the rate of a later start and of monitoring.
    pub(super) start_window: u64,
    pub(super) start_rate: u64,
    pub(super) restarted: bool,
}

impl Search {
    /// Begins with `window` bytes.
    pub fn new(window: u32) -> Self {
        Self { start_window: window.into(), ..Self::default() }
    }

    /// "Forget": the search for the rate restarts with data sent from now on [F].
    pub fn restart(&mut self) {
        self.restarted = true;
        self.round_read = false;
        self.round_end = 0;
    }

    /// `bytes` were lost.
    pub fn on_lost(&mut self, bytes: u32) {
        self.round_lost = self.round_lost.saturating_add(bytes.into());
    }

    /// The receive rate, if packets of this round left faster than they arrived.
    pub fn on_reading(&mut self, reading: Reading, seen: &Seen) -> Option<u64> {
        // The last packets of a round count, because the first train has no spare packets.
        if self.round_read
            && let Some(rate) = self.found(reading, seen)
        {
            return Some(rate);
        }
        let new_round = seen.delivered > self.round_end;
        if new_round {
            self.round_end = seen.delivered + seen.in_flight;
            // At once: data that is sent as ACKs arrive is no train if ACKs are slow.
            if !self.restarted && !seen.limited {
                self.start_window = (3 * self.start_window).min(MAX_WINDOW);
            }
        }
        if new_round || !self.round_read {
            self.round_read = true;
            self.round_reading = reading;
            self.round_delivered = seen.delivered;
            self.round_at_us = seen.now_us;
            self.round_lost = 0;
        }
        None
    }

    /// The rate since the round's first reading, if it is that of the path.
    fn found(&mut self, reading: Reading, seen: &Seen) -> Option<u64> {
        let Seen { tick_us, .. } = *seen;
        let bytes = seen.delivered - self.round_delivered;
        let received_us = reading.received_us.saturating_sub(self.round_reading.received_us);
        let sent_us = reading.sent_us.saturating_sub(self.round_reading.sent_us);
        // Queued ACKs limit a sender to little more than the path carries; a buffer in use is then sufficient evidence.
        let slower_us = if seen.used { tick_us } else { sent_us / 4 + SAMPLE_TICKS * tick_us };
        // A buffer that was full from the first packet on looks empty.
        let is_lossy = self.round_lost > bytes / MUCH_LOST && received_us >= SAMPLE_TICKS * tick_us;
        if bytes < TRAIN_PACKETS * seen.mss || (received_us < sent_us + slower_us && !is_lossy) {
            return None;
        }
        // Until a sample gives a better value the window limits the rate, because a train among packets of other flows
        // arrives at more than its share. If ACKs queue, samples take long.
        if seen.now_us.saturating_sub(self.round_at_us) > 2 * received_us + tick_us {
            self.start_window = MAX_WINDOW;
        }
        Some((bytes * 1_000_000 / received_us).clamp(1, MAX_RATE))
    }

    /// The rate at which a window of the first start is sent as a train.
    pub fn train_rate(&self, handshake_rtt_us: u32, initial_window: u32) -> u64 {
        let half_us = u64::from(handshake_rtt_us) / 2;
        let is_first = self.start_window <= u64::from(initial_window);
        let train_us = if is_first { MIN_TRAIN_US } else { half_us.clamp(MIN_TRAIN_US, MAX_TRAIN_US) };
        self.start_window * 1_000_000 / train_us
    }

    /// A rate to continue with if none was measured: the window of one round trip ago per round-trip time. The window
    /// has tripled since.
    pub fn arrival_rate(&self, feedback_us: u64) -> u64 {
        (self.start_window / 3 * 1_000_000 / feedback_us).clamp(1, MAX_RATE)
    }
}
