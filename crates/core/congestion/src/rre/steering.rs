//! Rate and window for the caller, and the history that limits them: losses, boosts and the highest rate.

use super::delay::{DELAY_LIFETIME_US, MAX_DELAY_US};

/// Largest rate (100 Gb/s), and largest window (the maximum of a signed 32-bit number).
pub(super) const MAX_RATE: u64 = 12_500_000_000;
pub(super) const MAX_WINDOW: u64 = 0x7fff_ffff;
/// Most doublings of the gain: while the buffer stays empty, the gain doubles each feedback delay.
const MAX_BOOST: u32 = 5;
/// Data sent within the latest four to eight round-trip times may still arrive, and no receive rate above the highest
/// rate of that time is valid. Four round-trip times are limited to this range.
const MIN_TOP_US: u64 = 1_000_000;
const TOP_US: u64 = 30_000_000;

/// Rate and window, and their limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Steering {
    /// Doublings of the gain, and the time of the last one.
    pub(super) boost: u32,
    pub(super) boosted_us: u64,
    /// Draining continues until this time, at any buffer delay; the time of the last loss that caused it; and
    /// whether there was an earlier one.
    pub(super) hold_us: u64,
    pub(super) loss_us: u64,
    pub(super) lost_before: bool,
    /// The threshold that losses allow, 0 without losses.
    pub(super) loss_threshold_us: u64,
    /// The window is one segment until something is delivered.
    pub(super) collapsed: bool,
    /// The highest allowed rate in the current period and in the previous one, and the end of the current period.
    pub(super) top_rate: u64,
    pub(super) last_top_rate: u64,
    pub(super) top_until_us: u64,
    /// Rate and window for the caller.
    pub(super) rate: u64,
    pub(super) window: u64,
}

impl Steering {
    pub fn new(now_us: u64) -> Self {
        Self { boosted_us: now_us, top_until_us: now_us, ..Self::default() }
    }

    /// Doubles the gain if the last doubling had a feedback delay to fill the buffer.
    pub fn boost(&mut self, now_us: u64, feedback_us: u64) {
        if now_us >= self.boosted_us + feedback_us {
            self.boost = (self.boost + 1).min(MAX_BOOST);
            self.boosted_us = now_us;
        }
    }

    /// Resets the gain.
    pub fn end_boost(&mut self, now_us: u64) {
        self.boost = 0;
        self.boosted_us = now_us;
    }

    /// True if the last counted loss was at least a feedback delay ago.
    pub fn is_new_loss(&self, now_us: u64, feedback_us: u64) -> bool {
        now_us >= self.loss_us + feedback_us
    }

    /// Draining continues for a feedback delay after the first loss, and for less after later ones.
    pub fn hold_after_loss(&mut self, now_us: u64, feedback_us: u64) {
        self.hold_us = now_us + if self.lost_before { feedback_us * 3 / 4 } else { feedback_us };
        self.lost_before = true;
    }

    /// At the end of a period: relaxes a threshold that losses from the start of other flows made shorter than the
    /// buffer.
    pub fn relax_losses(&mut self, now_us: u64) {
        if now_us >= self.loss_us + DELAY_LIFETIME_US {
            self.loss_threshold_us = (self.loss_threshold_us * 3 / 2).min(MAX_DELAY_US);
        }
    }

    /// The highest rate at which arriving data may have been sent.
    pub fn most_sent(&self) -> u64 {
        self.top_rate.max(self.last_top_rate)
    }

    /// Records [`Self::rate`], which applies from now on.
    pub fn note_top(&mut self, now_us: u64, smoothed_rtt_us: u64) {
        if now_us >= self.top_until_us {
            self.last_top_rate = self.top_rate;
            self.top_rate = 0;
            self.top_until_us = now_us + (4 * smoothed_rtt_us).clamp(MIN_TOP_US, TOP_US);
        }
        self.top_rate = self.top_rate.max(self.rate);
    }
}
