//! Rate and window for the caller, and the past that bounds them: losses, boosts and the highest rate.

use super::delay::{DELAY_LIFETIME_US, MAX_DELAY_US};

/// No rate or window is larger: a hundred Gb/s, and the most that a signed number of 32 bits holds.
pub(super) const MAX_RATE: u64 = 12_500_000_000;
pub(super) const MAX_WINDOW: u64 = 0x7fff_ffff;
/// While the buffer stays empty the gain doubles each feedback delay, so often at most.
const MAX_BOOST: u32 = 5;
/// Data sent within the latest four to eight round-trip times may still arrive, and no rate above its own is believed. Four of
/// them are taken to be between these.
const MIN_TOP_US: u64 = 1_000_000;
const TOP_US: u64 = 30_000_000;

/// Rate and window, and their bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steering {
    /// Doublings of the gain, and when the last was.
    pub(super) boost: u32,
    pub(super) boosted_us: u64,
    /// Draining goes on until then at any buffer delay; when losses last made it so, and whether they had before.
    pub(super) hold_us: u64,
    pub(super) loss_us: u64,
    pub(super) lost_before: bool,
    /// The threshold that losses allow, 0 where none speak.
    pub(super) loss_threshold_us: u64,
    /// The window is one segment until something is delivered.
    pub(super) collapsed: bool,
    /// The highest rate that was allowed: in this stretch of time and in the one before, and when this one ends.
    pub(super) top_rate: u64,
    pub(super) last_top_rate: u64,
    pub(super) top_until_us: u64,
    /// Rate and window for the caller.
    pub(super) rate: u64,
    pub(super) window: u64,
}

impl Steering {
    pub fn new(now_us: u64) -> Self {
        Self {
            boost: 0,
            boosted_us: now_us,
            hold_us: 0,
            loss_us: 0,
            lost_before: false,
            loss_threshold_us: 0,
            collapsed: false,
            top_rate: 0,
            last_top_rate: 0,
            top_until_us: now_us,
            rate: 0,
            window: 0,
        }
    }

    /// Doubles the gain where the last doubling has had a feedback delay to fill the buffer.
    pub fn boost(&mut self, now_us: u64, feedback_us: u64) {
        if now_us >= self.boosted_us + feedback_us {
            self.boost = (self.boost + 1).min(MAX_BOOST);
            self.boosted_us = now_us;
        }
    }

    /// The gain is as it was.
    pub fn end_boost(&mut self, now_us: u64) {
        self.boost = 0;
        self.boosted_us = now_us;
    }

    /// The last loss that counted was a feedback delay ago.
    pub fn is_new_loss(&self, now_us: u64, feedback_us: u64) -> bool {
        now_us >= self.loss_us + feedback_us
    }

    /// After a loss draining goes on for a feedback delay, later for less.
    pub fn hold_after_loss(&mut self, now_us: u64, feedback_us: u64) {
        self.hold_us = now_us + if self.lost_before { feedback_us * 3 / 4 } else { feedback_us };
        self.lost_before = true;
    }

    /// A period ends. Losses of others' starts made the threshold shorter than the buffer is.
    pub fn relax_losses(&mut self, now_us: u64) {
        if now_us >= self.loss_us + DELAY_LIFETIME_US {
            self.loss_threshold_us = (self.loss_threshold_us * 3 / 2).min(MAX_DELAY_US);
        }
    }

    /// The highest rate at which arriving data may have been sent.
    pub fn most_sent(&self) -> u64 {
        self.top_rate.max(self.last_top_rate)
    }

    /// Takes in [`Self::rate`] as it is from now on.
    pub fn note_top(&mut self, now_us: u64, smoothed_rtt_us: u64) {
        if now_us >= self.top_until_us {
            self.last_top_rate = self.top_rate;
            self.top_rate = 0;
            self.top_until_us = now_us + (4 * smoothed_rtt_us).clamp(MIN_TOP_US, TOP_US);
        }
        self.top_rate = self.top_rate.max(self.rate);
    }
}
