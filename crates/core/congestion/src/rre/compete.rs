//! Detects other flows that keep the buffer full, and computes the window that competes with them.

/// If draining the buffer failed, and fails again at least this long afterwards and within the second time, without an
/// empty buffer in between, other flows fill it [DERIVED].
const VAIN_US: u64 = 6_000_000;
const VAIN_LIFETIME_US: u64 = 60_000_000;
/// A competing sender checks whether the buffer empties when the buffer delay falls by this fraction, but no earlier
/// than the first time and no later than the second [DERIVED].
const GIVE_WAY: u64 = 6;
const LOOK_US: u64 = 2_000_000;
const COMPETE_US: u64 = 30_000_000;
/// CUBIC: a loss leaves 0.7 of the window (RFC 9438 section 4.6).
const BETA_TENTHS: u64 = 7;
/// The cubic function counts in milliseconds, up to this distance from its plateau.
const FAR_MS: u64 = 30_000;
/// C is 0.4 segments per second cubed (section 5): one over it, per millisecond.
const INVERSE_C: u64 = 2_500_000_000;
/// Largest number of segments that fits in 64-bit arithmetic.
const MAX_SEGMENTS: u64 = 1 << 31;

/// Evidence of other flows at the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Competition {
    /// The receive rate when draining began.
    pub(super) drained_rate: u64,
    /// Buffer delay at which draining had taken too long; 0 if it had not.
    pub(super) vain_buffer_us: u64,
    /// The path's delay when half the rate first failed to empty the buffer, and the time of that; 0 if the buffer was
    /// empty since.
    pub(super) vain_delay_us: i64,
    pub(super) vain_at_us: u64,
    /// The window, which remains in use during refreshes until the buffer is seen empty, and whether it is in use.
    pub(super) cubic: Cubic,
    pub(super) competing: bool,
    /// The longest buffer delay since the last check.
    pub(super) competed_us: u64,
}

impl Competition {
    /// A packet took `delay_us`. Forgets a failed drain if the buffer was empty, or if the drain was long ago.
    pub fn on_delay(&mut self, now_us: u64, delay_us: i64, threshold_us: u64) {
        let empty = delay_us - self.vain_delay_us < threshold_us as i64;
        if empty || now_us >= self.vain_at_us + VAIN_LIFETIME_US {
            self.vain_at_us = 0;
        }
    }

    /// At half the rate the delay fell to `least_us`; `min_us` is the smallest valid delay. Returns true if that did
    /// not empty the buffer, and had already failed seconds before.
    pub fn is_refilled(&mut self, now_us: u64, least_us: i64, min_us: i64, threshold_us: u64) -> bool {
        let again = self.vain_at_us != 0;
        let path_us = if again { self.vain_delay_us.min(min_us) } else { min_us };
        if least_us - path_us <= threshold_us as i64 {
            self.vain_at_us = 0;
            return false;
        }
        self.vain_delay_us = path_us;
        if !again {
            self.vain_at_us = now_us;
        }
        again && now_us >= self.vain_at_us + VAIN_US
    }

    /// True if others give way. All competing senders see this at the same time, so they check together whether the
    /// buffer empties.
    pub fn is_time_to_look(&mut self, now_us: u64, entered_us: u64, buffer_us: u64) -> bool {
        self.competed_us = self.competed_us.max(buffer_us);
        let give_way = buffer_us < self.competed_us - self.competed_us / GIVE_WAY;
        if give_way {
            self.competed_us = buffer_us;
        }
        let least_us = if give_way { LOOK_US } else { COMPETE_US };
        now_us >= entered_us + least_us
    }

    /// Draining begins at `rate`. The rate before the first failed drain is the one to return to.
    pub fn drain_from(&mut self, rate: u64) {
        if self.vain_at_us == 0 {
            self.drained_rate = rate;
        }
    }

    /// Starts a window from `rate` and a round trip of `rtt_us` back to the rate before draining.
    pub fn begin(&mut self, now_us: u64, rate: u64, rtt_us: u64, mss: u64) {
        self.competing = true;
        let [window, peak] = [rate, self.drained_rate.max(rate)].map(|rate| rate * rtt_us / 1_000_000);
        self.cubic = Cubic::new(now_us, window, peak, mss);
    }
}

/// CUBIC's window: returns to its peak, stays there, and then grows further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cubic {
    /// The window before the latest loss, in bytes.
    pub(super) peak: u64,
    /// Time at which the peak is reached again.
    pub(super) plateau_us: u64,
}

impl Cubic {
    /// From `window` bytes at `now_us` back to `peak`.
    pub fn new(now_us: u64, window: u64, peak: u64, mss: u64) -> Self {
        let segments = (peak.saturating_sub(window) / mss).min(MAX_SEGMENTS);
        Self { peak: peak.max(window), plateau_us: now_us + cube_root(segments * INVERSE_C) * 1_000 }
    }

    /// Bytes at `now_us`.
    pub fn window(&self, now_us: u64, mss: u64) -> u64 {
        let far_ms = (now_us.abs_diff(self.plateau_us) / 1_000).min(FAR_MS);
        let apart = far_ms * far_ms * far_ms / 1_000 * mss / (INVERSE_C / 1_000);
        if now_us < self.plateau_us { self.peak.saturating_sub(apart) } else { self.peak + apart }
    }

    /// Handles a loss. If the window is below the latest peak, the peak is reduced to leave room for others (section
    /// 4.7).
    pub fn on_lost(&mut self, now_us: u64, mss: u64) {
        let window = self.window(now_us, mss);
        let peak = if window < self.peak { window * (10 + BETA_TENTHS) / 20 } else { window };
        *self = Self::new(now_us, window * BETA_TENTHS / 10, peak, mss);
    }
}

/// The integer part of the cube root.
fn cube_root(value: u64) -> u64 {
    let mut root = 0;
    for bit in (0..21).rev() {
        let tried = root | 1_u64 << bit;
        if tried * tried * tried <= value {
            root = tried;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_whole() {
        for root in [0, 1, 2, 3, 1_000, 2_097_151] {
            assert_eq!(cube_root(root * root * root), root);
            assert_eq!(cube_root((root + 1) * (root + 1) * (root + 1) - 1), root);
        }
    }

    /// RFC 9438: K is the cube root of (W_max - cwnd) / C; for 100 segments reduced by 30 this is 4.2 s.
    #[test]
    fn the_window_returns_to_its_peak_in_k() {
        let mut cubic = Cubic::new(0, 100_000, 100_000, 1_000);
        cubic.on_lost(0, 1_000);
        assert_eq!(cubic.window(0, 1_000) / 1_000, 70);
        assert_eq!(cubic.plateau_us, 4_217_000);
        assert_eq!(cubic.window(4_217_000, 1_000), 100_000);
        assert_eq!(cubic.window(8_434_000, 1_000) / 1_000, 129);
    }
}
