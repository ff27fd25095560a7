//! The path's relative delay, its minimum, and the buffer delay.

/// The longest delay that steers the rate [DERIVED].
pub(super) const MAX_DELAY_US: u64 = 5_000_000;
/// How long the minimum relative delay remains valid without being measured again: clocks drift by 3 to 6 ms per minute
/// [DERIVED: 10 to 30 s].
pub(super) const DELAY_LIFETIME_US: u64 = 10_000_000;
pub(super) const DELAY_PERIODS: usize = 3;

/// The measured delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delay {
    /// The valid minimum relative delay, and when it was last measured.
    pub(super) known: bool,
    pub(super) min_us: i64,
    pub(super) seen_us: u64,
    /// When the minimum last fell.
    pub(super) lowered_us: u64,
    /// The minimum of each of the latest periods, newest first; a refresh ends a period.
    pub(super) mins_us: [i64; DELAY_PERIODS],
    /// The minimum since the latest refresh or monitoring began, and when it was measured.
    pub(super) fresh_known: bool,
    pub(super) fresh_min_us: i64,
    pub(super) fresh_at_us: u64,
    /// When the period of a refresh ends; 0 if there is none.
    pub(super) adopt_us: u64,
    /// The latest delay is well below all earlier ones.
    pub(super) lower: bool,
    /// Buffer delay: the latest relative delay minus the minimum.
    pub(super) buffer_us: u64,
    /// The smallest buffer delay while a loss is being repaired, until then.
    pub(super) repair_buffer_us: u64,
    pub(super) repair_until_us: u64,
    /// When a refresh should have emptied the buffer.
    pub(super) emptied_us: u64,
}

impl Delay {
    pub fn new(now_us: u64) -> Self {
        Self { seen_us: now_us, lowered_us: now_us, repair_buffer_us: u64::MAX, ..Self::default() }
    }

    /// From now on delays are based on another clock.
    pub fn forget(&mut self, now_us: u64) {
        self.known = false;
        self.seen_us = now_us;
        self.fresh_known = false;
        self.adopt_us = 0;
        self.buffer_us = 0;
    }

    /// A packet took `delay_us`. Returns true if the period of a refresh has ended.
    pub fn see(&mut self, now_us: u64, delay_us: i64, feedback_us: u64) -> bool {
        if !self.fresh_known || delay_us < self.fresh_min_us {
            self.fresh_known = true;
            self.fresh_min_us = delay_us;
            self.fresh_at_us = now_us;
        }
        // The round-trip time at the start of the refresh may have been that of an outage.
        let adopt_us = self.adopt_us.min(self.emptied_us + 2 * feedback_us);
        self.adopt_us != 0 && now_us >= adopt_us
    }

    /// Replaces the oldest minimum by that of the period that ends. Returns false if nothing was measured in it.
    pub fn end_period(&mut self, now_us: u64) -> bool {
        self.adopt_us = 0;
        self.seen_us = now_us;
        if !self.fresh_known {
            return false;
        }
        // Flows that saw the same empty buffer should empty it together the next time as well.
        self.seen_us = self.fresh_at_us;
        self.mins_us[2] = self.mins_us[1];
        self.mins_us[1] = self.mins_us[0];
        self.mins_us[0] = self.fresh_min_us;
        self.min_us = self.mins_us[0].min(self.mins_us[1]).min(self.mins_us[2]);
        true
    }

    /// Updates the minimum after a packet that took `delay_us`; in a refresh, `refresh_us` is the feedback delay.
    pub fn take_in(&mut self, now_us: u64, delay_us: i64, threshold_us: u64, refresh_us: Option<u64>) {
        if !self.known {
            self.known = true;
            self.mins_us = [i64::MAX; DELAY_PERIODS];
            self.min_us = i64::MAX;
        }
        // Another flow empties the buffer, which holds more than assumed: this flow joins.
        self.lower = delay_us + threshold_us as i64 / 8 < self.min_us && self.min_us != i64::MAX;
        if let Some(feedback_us) = refresh_us.filter(|_| self.lower) {
            self.emptied_us = self.emptied_us.max(now_us + 4 * threshold_us);
            self.adopt_us = self.emptied_us + 2 * feedback_us;
        }
        if delay_us < self.min_us {
            self.lowered_us = now_us;
        }
        if delay_us <= self.min_us {
            self.min_us = delay_us;
            self.mins_us[0] = delay_us;
            self.seen_us = now_us;
        }
    }

    /// Updates the buffer delay from `delay_us`.
    ///
    /// While a hole is being repaired, ACKs echo a segment before the hole, and the delay looks longer than it is. The
    /// minimum over a feedback delay is used then [DERIVED].
    pub fn update_buffer(&mut self, now_us: u64, delay_us: i64, repairing: bool, feedback_us: u64) {
        let buffer_us = (delay_us - self.min_us) as u64;
        if !repairing {
            self.buffer_us = buffer_us;
            self.repair_until_us = 0;
        } else if self.repair_until_us == 0 {
            self.repair_buffer_us = buffer_us;
            self.repair_until_us = now_us + feedback_us;
        } else {
            self.repair_buffer_us = self.repair_buffer_us.min(buffer_us);
            if now_us >= self.repair_until_us {
                self.buffer_us = self.repair_buffer_us;
                self.repair_until_us = 0;
            }
        }
    }

    /// Starts a refresh. At half the rate the buffer empties in twice its delay.
    pub fn begin_refresh(&mut self, now_us: u64, threshold_us: u64, feedback_us: u64) {
        self.emptied_us = now_us + 2 * self.buffer_us.clamp(threshold_us, MAX_DELAY_US);
        self.fresh_known = false;
        self.adopt_us = self.emptied_us + 2 * feedback_us;
    }
}
