//! The search for the first receive rate: windows that triple, until packets of a round trip arrive more slowly than they left.

use super::clock::Reading;
use super::estimate::{MUCH_LOST, SAMPLE_TICKS};
use super::steering::{MAX_RATE, MAX_WINDOW};

/// The receive rate is first found from this number of packets at least; the first train has ten [S].
const TRAIN_PACKETS: u64 = 8;
/// A window is sent in half a round-trip time at the start, which is taken to be between these: the first train measures a
/// bottleneck only when it is faster than that.
const MIN_TRAIN_US: u64 = 5_000;
const MAX_TRAIN_US: u64 = 20_000;

/// State at a reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub now_us: u64,
    /// Bytes delivered in all.
    pub delivered: u64,
    /// Bytes in the network.
    pub in_flight: u64,
    /// Less is sent than might be, for want of data.
    pub limited: bool,
    /// The longer tick of the two clocks.
    pub tick_us: u64,
    /// Bytes in a packet.
    pub mss: u64,
    /// The buffer is in use.
    pub used: bool,
}

/// The state of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Search {
    /// The round: the bytes delivered at which it ends, and the reading at its beginning.
    pub(super) round_end: u64,
    pub(super) round_read: bool,
    pub(super) round_reading: Reading,
    pub(super) round_delivered: u64,
    pub(super) round_at_us: u64,
    pub(super) round_lost: u64,
    /// Window of the first start in bytes, and the rate of a later one, and of monitoring.
    pub(super) start_window: u64,
    pub(super) start_rate: u64,
    pub(super) restarted: bool,
}

impl Search {
    /// Begins with `window` bytes.
    pub fn new(window: u32) -> Self {
        Self {
            round_end: 0,
            round_read: false,
            round_reading: Reading::default(),
            round_delivered: 0,
            round_at_us: 0,
            round_lost: 0,
            start_window: window.into(),
            start_rate: 0,
            restarted: false,
        }
    }

    /// "Forget": the rate is sought anew from data sent now [F].
    pub fn restart(&mut self) {
        self.restarted = true;
        self.round_read = false;
        self.round_end = 0;
    }

    /// `bytes` were lost.
    pub fn on_lost(&mut self, bytes: u32) {
        self.round_lost = self.round_lost.saturating_add(bytes.into());
    }

    /// The receive rate, where packets of this round left faster than they arrived.
    pub fn on_reading(&mut self, reading: Reading, seen: &Seen) -> Option<u64> {
        // The last packets of a round count: the first train has no more than it takes.
        if self.round_read
            && let Some(rate) = self.found(reading, seen)
        {
            return Some(rate);
        }
        let new_round = seen.delivered > self.round_end;
        if new_round {
            self.round_end = seen.delivered + seen.in_flight;
            // At once: data that leaves as ACKs arrive is no train where those are slow.
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

    /// The rate since the round's first reading where that is the path's.
    fn found(&mut self, reading: Reading, seen: &Seen) -> Option<u64> {
        let Seen { tick_us, .. } = *seen;
        let bytes = seen.delivered - self.round_delivered;
        let received_us = reading.received_us.saturating_sub(self.round_reading.received_us);
        let sent_us = reading.sent_us.saturating_sub(self.round_reading.sent_us);
        // ACKs that queue hold a sender to little more than the path carries: then a buffer in use is proof enough.
        let slower_us = if seen.used { tick_us } else { sent_us / 4 + SAMPLE_TICKS * tick_us };
        // A buffer that was full from the first packet on looks empty.
        let is_lossy = self.round_lost > bytes / MUCH_LOST && received_us >= SAMPLE_TICKS * tick_us;
        if bytes < TRAIN_PACKETS * seen.mss || (received_us < sent_us + slower_us && !is_lossy) {
            return None;
        }
        // Until a sample says more the window bounds it, for a train that meets the packets of others arrives at more than its
        // share. Where ACKs queue it says nothing for long.
        if seen.now_us.saturating_sub(self.round_at_us) > 2 * received_us + tick_us {
            self.start_window = MAX_WINDOW;
        }
        Some((bytes * 1_000_000 / received_us).clamp(1, MAX_RATE))
    }

    /// The rate that sends a window of the first start as a train.
    pub fn train_rate(&self, handshake_rtt_us: u32, initial_window: u32) -> u64 {
        let half_us = u64::from(handshake_rtt_us) / 2;
        let is_first = self.start_window <= u64::from(initial_window);
        let train_us = if is_first { MIN_TRAIN_US } else { half_us.clamp(MIN_TRAIN_US, MAX_TRAIN_US) };
        self.start_window * 1_000_000 / train_us
    }

    /// A rate to go on with where none was measured: the window of a round trip ago in a round-trip time. It has tripled since.
    pub fn arrival_rate(&self, feedback_us: u64) -> u64 {
        (self.start_window / 3 * 1_000_000 / feedback_us).clamp(1, MAX_RATE)
    }
}
