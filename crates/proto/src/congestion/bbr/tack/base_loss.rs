//! Base loss: the share that a path loses at any rate, measured as the share lost while a cycle drained.
//!
//! A queue that overflows, or a policer, loses little at three quarters of the rate. Losses at that rate are the path's own, so
//! to send less brings no more of the data across: for the same arrivals, so much more has to be sent.

/// Segments that must have been sent while draining before a share is told, and after which the counts are halved.
const LEAST_SEGMENTS: u64 = 32;
const MOST_SEGMENTS: u64 = 512;
/// The gain of 5/4 of a probe makes up for small losses without help, and flows that share a short buffer lose an eighth while they
/// drain: shares below 3/16, in 256ths, count as none.
const LEAST: u64 = 48;
/// Nor is more than half believed.
const MOST: u64 = 128;

#[derive(Clone, Debug, Default)]
pub(super) struct BaseLoss {
    lost: u64,
    sent: u64,
    /// The share of them that was lost, in 256ths.
    measured: u64,
}

impl BaseLoss {
    /// Of the data sent while a cycle drained, so many bytes were lost and delivered; segments have `mss`.
    pub fn update(&mut self, lost: u64, delivered: u64, mss: u64) {
        self.lost += lost;
        self.sent += lost + delivered;
        if self.sent >= LEAST_SEGMENTS * mss {
            self.measured = (self.lost * 256 / self.sent).min(MOST);
        }
        if self.sent >= MOST_SEGMENTS * mss {
            self.lost /= 2;
            self.sent /= 2;
        }
    }

    /// The share that is believed, in 256ths.
    fn share(&self) -> u64 {
        if self.measured < LEAST { 0 } else { self.measured }
    }

    /// The share that was lost and for which nothing more is sent, in 256ths.
    pub fn uncompensated(&self) -> u64 {
        self.measured - self.share()
    }

    /// Bytes of `sent` that are expected to be lost, with a quarter for chance.
    pub fn expected(&self, sent: u64) -> u64 {
        sent / 256 * self.share() * 5 / 4
    }

    /// Amount to send for `arrives` to arrive.
    pub fn sent_for(&self, arrives: u64) -> u64 {
        (u128::from(arrives) * 256 / u128::from(256 - self.share())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn losses_while_draining_are_the_paths() {
        let mut base = BaseLoss::default();
        base.update(9 * MSS, 21 * MSS, MSS);
        assert_eq!((base.sent_for(700), base.expected(256_000)), (700, 0), "30 packets are few");
        base.update(30 * MSS, 70 * MSS, MSS);
        assert_eq!(base.sent_for(700), 995);
        assert_eq!(base.expected(256_000), 256_000 * 76 / 256 * 5 / 4);
        // Drained, nothing is lost any more: the others were lost by sending.
        (0..10).for_each(|_| base.update(0, 100 * MSS, MSS));
        assert_eq!((base.sent_for(700), base.expected(256_000)), (700, 0));
    }

    #[test]
    fn little_loss_says_nothing_and_of_much_half_is_believed() {
        let mut base = BaseLoss::default();
        (0..20).for_each(|_| base.update(12 * MSS, 88 * MSS, MSS));
        assert_eq!(
            (base.sent_for(700), base.uncompensated()),
            (700, 30),
            "30 of 256: a probe asks for so much more"
        );
        (0..20).for_each(|_| base.update(80 * MSS, 20 * MSS, MSS));
        assert_eq!((base.sent_for(700), base.uncompensated()), (1400, 0));
    }
}
