//! The receive rate: bytes newly delivered between two ACKs, divided by the difference of the receiver's clock (slide
//! 8).

use super::clock::Reading;

/// Least packets per sample [F].
const SAMPLE_PACKETS: u64 = 30;
/// On slow paths this number of packets is enough, after this time [DERIVED].
const SLOW_PACKETS: u64 = 4;
const SLOW_US: u64 = 250_000;
/// Least ticks per sample, each read at its start [DERIVED; ten if every ACK is read].
pub(super) const SAMPLE_TICKS: u64 = 4;
/// A rate below the estimate divided by this is used before the sample is complete, because packets that do not arrive
/// never complete a sample [DERIVED].
const FALL: u64 = 2;

/// If more than this fraction of the arrivals is lost, the losses are not random [DERIVED].
pub(super) const MUCH_LOST: u64 = 8;
/// Most bytes of a sample, so that no number overflows.
const MOST_BYTES: u64 = 1 << 40;
/// The rate falls at most by this divisor at once: a link that stalls for a moment must not stop the sender.
const MOST_FALL: u64 = 2;

/// Limits of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Length of a tick in microseconds.
    pub tick_us: u64,
    /// Bytes in a packet.
    pub mss: u64,
    /// Rates above this are invalid, because nothing was sent at such a rate.
    pub most: u64,
    /// The rate cannot be found to have fallen in less than this time.
    pub stall_us: u64,
    /// The buffer is in use.
    pub used: bool,
}

/// A sample that updated the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Whole,
    /// A large part of it was lost.
    Lossy,
}

/// The receive rate in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Estimate {
    /// 0 while unknown.
    pub rate: u64,
    /// The rate is that of a packet train; the first sample replaces it.
    pub(super) provisional: bool,
    /// The checkpoint: the receiver's time, our sending time of the data it had then, and the bytes delivered by then.
    pub(super) marked: bool,
    pub(super) mark_us: u64,
    pub(super) mark_sent_us: u64,
    pub(super) mark_delivered: u64,
    /// Since the checkpoint the buffer was in use at some time, and at all times.
    pub(super) used_once: bool,
    pub(super) used_throughout: bool,
    /// Bytes lost since the checkpoint.
    pub(super) lost: u64,
}

impl Estimate {
    /// Starts the next sample with the next reading.
    pub fn restart(&mut self) {
        self.marked = false;
    }

    /// Records that `bytes` were lost.
    pub fn on_lost(&mut self, bytes: u32) {
        self.lost = (self.lost + u64::from(bytes)).min(MOST_BYTES);
    }

    /// At the receiver's time of `reading`, `delivered` bytes had been delivered in total. Returns the sample if it
    /// updated the rate.
    pub fn on_reading(&mut self, reading: Reading, delivered: u64, limits: &Limits) -> Option<Taken> {
        let Limits { tick_us, mss, most, stall_us, used } = *limits;
        self.used_once |= used;
        self.used_throughout &= used;
        if !self.marked || reading.received_us < self.mark_us {
            self.mark(reading, delivered);
            return None;
        }
        let bytes = (delivered - self.mark_delivered).min(MOST_BYTES);
        let span_us = reading.received_us - self.mark_us;
        if span_us < SAMPLE_TICKS * tick_us {
            return None;
        }
        let sample = (bytes * 1_000_000 / span_us).min(most).max(1);
        let complete = bytes >= SAMPLE_PACKETS * mss || (bytes >= SLOW_PACKETS * mss && span_us >= SLOW_US);
        // If the buffer is empty again, the sender paused, not the path.
        let fallen =
            used && span_us >= stall_us && (bytes + 2 * mss) * 1_000_000 / span_us < self.rate / FALL;
        if !complete && !fallen {
            return None;
        }
        let Self { provisional, .. } = *self;
        let is_path_limited = self.is_path_limited(reading, span_us, bytes);
        let taken = if self.is_lossy(bytes) { Taken::Lossy } else { Taken::Whole };
        self.mark(reading, delivered);
        self.provisional = false;
        if sample < self.rate && !is_path_limited {
            return None;
        }
        self.rate = if self.rate == 0 || provisional {
            sample
        } else if fallen {
            sample.max(self.rate / MOST_FALL)
        } else {
            (self.rate + sample) / 2
        };
        Some(taken)
    }

    /// True if the path limited the `bytes` that arrived in `span_us`, not a pause of the sender. Either the buffer was
    /// never empty, or the data that filled it left faster than it arrived or was lost. With heavy loss the buffer
    /// looks empty although it was full from the first packet on.
    fn is_path_limited(&self, reading: Reading, span_us: u64, bytes: u64) -> bool {
        let sent_us = reading.sent_us.saturating_sub(self.mark_sent_us);
        let left_faster = span_us > sent_us + sent_us / 8;
        let filled = self.used_once && (left_faster || self.lost > 0);
        self.used_throughout || filled || self.is_lossy(bytes)
    }

    fn is_lossy(&self, bytes: u64) -> bool {
        self.lost > bytes / MUCH_LOST
    }

    fn mark(&mut self, reading: Reading, delivered: u64) {
        self.marked = true;
        self.mark_us = reading.received_us;
        self.mark_sent_us = reading.sent_us;
        self.mark_delivered = delivered;
        self.used_once = false;
        self.used_throughout = true;
        self.lost = 0;
    }
}
