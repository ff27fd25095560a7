//! Others that keep the buffer full: how that is noticed, and the window that holds against them.

/// So long after a buffer was drained in vain it is others that fill it, if it was not empty in between and is drained in vain
/// again within the second time [DERIVED].
const VAIN_US: u64 = 6_000_000;
const VAIN_LIFETIME_US: u64 = 60_000_000;
/// A competing sender looks whether the buffer empties where its delay falls by this part, after so long at least, and after
/// the second time in any case [DERIVED].
const GIVE_WAY: u64 = 6;
const LOOK_US: u64 = 2_000_000;
const COMPETE_US: u64 = 30_000_000;
/// CUBIC: a loss leaves 0.7 of the window (RFC 9438 section 4.6).
const BETA_TENTHS: u64 = 7;
/// The cubic function counts in milliseconds, and no further than this from its plateau.
const FAR_MS: u64 = 30_000;
/// C is 0.4 segments per second cubed (section 5): one over it, per millisecond.
const INVERSE_C: u64 = 2_500_000_000;
/// So many times that fit 64 bits.
const MAX_SEGMENTS: u64 = 1 << 31;

/// Evidence of others at the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Competition {
    /// The receive rate when draining began.
    pub(super) drained_rate: u64,
    /// The buffer's delay when draining had taken too long; 0 where it had not.
    pub(super) vain_buffer_us: u64,
    /// The path's delay when half the rate first emptied nothing, and when that was; 0 where the buffer was empty since.
    pub(super) vain_delay_us: i64,
    pub(super) vain_at_us: u64,
    /// The window, which goes on through refreshes until the buffer is seen empty, and whether it does.
    pub(super) cubic: Cubic,
    pub(super) competing: bool,
    /// The longest buffer delay since others last gave way.
    pub(super) competed_us: u64,
}

impl Competition {
    /// A packet was this long on its way. Clears a vain drain where the buffer was empty, or the drain was long ago.
    pub fn on_delay(&mut self, now_us: u64, delay_us: i64, threshold_us: u64) {
        let empty = delay_us - self.vain_delay_us < threshold_us as i64;
        if empty || now_us >= self.vain_at_us + VAIN_LIFETIME_US {
            self.vain_at_us = 0;
        }
    }

    /// At half the rate the delay fell to `least_us`, and `min_us` is the smallest that counts. True where that emptied nothing,
    /// and seconds ago it had not either.
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

    /// Others give way: all competing senders see that at once, and see together whether the buffer empties.
    pub fn is_time_to_look(&mut self, now_us: u64, entered_us: u64, buffer_us: u64) -> bool {
        self.competed_us = self.competed_us.max(buffer_us);
        let give_way = buffer_us < self.competed_us - self.competed_us / GIVE_WAY;
        if give_way {
            self.competed_us = buffer_us;
        }
        let least_us = if give_way { LOOK_US } else { COMPETE_US };
        now_us >= entered_us + least_us
    }

    /// Draining begins at `rate`. The rate before the first vain drain is the one to return to.
    pub fn drain_from(&mut self, rate: u64) {
        if self.vain_at_us == 0 {
            self.drained_rate = rate;
        }
    }

    /// From `rate` in a round trip of `rtt_us` back to the rate before draining.
    pub fn begin(&mut self, now_us: u64, rate: u64, rtt_us: u64, mss: u64) {
        self.competing = true;
        let [window, peak] = [rate, self.drained_rate.max(rate)].map(|rate| rate * rtt_us / 1_000_000);
        self.cubic = Cubic::new(now_us, window, peak, mss);
    }
}

/// A window that returns to its peak, stays there, and goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cubic {
    /// The window before the latest loss, in bytes.
    pub(super) peak: u64,
    /// When it is reached again.
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

    /// After a loss. A window below the latest peak leaves others room (section 4.7).
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

    /// RFC 9438: K is the cube root of (W_max - cwnd) / C, 100 segments of which 30 are lost: 4.2 s.
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
