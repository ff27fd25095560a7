//! The share that the path loses at any rate, by the packets that met no queue.
//!
//! A queue that overflows loses packets that follow others which waited in it; chance loses any. So only losses among packets
//! with little delay are the path's own, for which a sender need not slow down.

use super::timing::{RecentMax, RelativeDelay};
use crate::units::{Duration, Instant};

/// A delay in the lowest part of the range of the last second is of no queue: the others of a flow that fills one are above.
const LOW_PART: u64 = 4;

/// As is one that clocks and hosts alone may make. Half a millisecond would be half of a queue of 83 packets at 1 Gb/s, whose losses
/// would count as the path's.
const LOW_MIN: Duration = Duration::from_micros(250);

/// Time after which counts are halved: several cycles of a sender, some of which drain the queue.
const WINDOW: Duration = Duration::from_secs(2);

/// Nothing is said where fewer than this part of the packets met no queue: then those are exceptions, and few.
const EVIDENCE_PART: u64 = 4;

/// Nor by fewer packets than this.
const EVIDENCE: u64 = 32;

#[derive(Clone, Debug, Default)]
pub(super) struct BaseLoss {
    delay: RelativeDelay,
    longest: RecentMax,
    /// The delay of the packet before was low.
    was_low: bool,
    /// When counts were halved last.
    since: Instant,
    /// Packets that arrived, those of them that met no queue, and others that were lost where there was none.
    arrived: u64,
    unqueued: u64,
    lost: u64,
}

impl BaseLoss {
    /// A packet arrived at `now`, whose one-way delay by two clocks is `delay_us`. True where it met no queue: neither its delay
    /// nor that of the one before it shows one. A packet that was `overtaken` is too late to show a hole: unknown yet.
    pub fn on_packet(&mut self, now: Instant, delay_us: u32, overtaken: bool) -> bool {
        let delay = self.delay.update(now, delay_us);
        let range = self.longest.update(now, delay);
        if overtaken {
            return false;
        }
        let is_low = delay <= (range / LOW_PART).max(LOW_MIN);
        let is_unqueued = core::mem::replace(&mut self.was_low, is_low) && is_low;
        self.on_arrival(now, is_unqueued);
        is_unqueued
    }

    fn on_arrival(&mut self, now: Instant, is_unqueued: bool) {
        if now.saturating_since(self.since) >= WINDOW {
            self.since = now;
            self.arrived /= 2;
            self.unqueued /= 2;
            self.lost /= 2;
        }
        self.arrived += 1;
        self.unqueued += u64::from(is_unqueued);
    }

    /// A number of packets were lost, as a packet shows that met no queue.
    pub fn on_lost(&mut self, packets: u64) {
        self.lost = self.lost.saturating_add(packets);
    }

    /// A packet arrived that was overtaken, by one that met no queue where `is_unqueued`: its own delay says nothing of that. It
    /// counted as lost where `was_lost`.
    pub fn on_overtaken(&mut self, now: Instant, is_unqueued: bool, was_lost: bool) {
        self.on_arrival(now, is_unqueued);
        if is_unqueued && was_lost {
            self.lost = self.lost.saturating_sub(1);
        }
    }

    /// The share of the packets that met no queue which was lost, in 256ths.
    pub fn share(&self) -> u8 {
        let sent = self.unqueued.saturating_add(self.lost);
        if self.unqueued * EVIDENCE_PART < self.arrived || sent < EVIDENCE {
            return 0;
        }
        u8::try_from(u128::from(self.lost) * 256 / u128::from(sent)).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets a millisecond apart, each with its delay in µs.
    fn arrive(base: &mut BaseLoss, from: u64, delays: impl IntoIterator<Item = u32>) -> Vec<bool> {
        let at = |step| Instant::ZERO + Duration::from_millis(from + step);
        (0..).zip(delays).map(|(step, delay)| base.on_packet(at(step), delay, false)).collect()
    }

    #[test]
    fn a_packet_met_no_queue_where_its_delay_and_the_one_before_are_in_the_lowest_quarter() {
        let mut base = BaseLoss::default();
        let delays = [5_000, 9_000, 6_000, 6_000, 6_001, 6_000, 5_000, 5_000];
        let low = arrive(&mut base, 0, delays);
        assert_eq!(low, [false, false, false, true, false, false, true, true]);
        // The range is of the last second or two: then a quarter of a millisecond counts as none.
        assert_eq!(
            arrive(&mut base, 3_000, [5_250, 5_250, 5_251, 5_250, 5_250]),
            [true, true, false, false, true]
        );
    }

    #[test]
    fn the_least_delay_is_of_ten_seconds_whatever_the_clocks_say() {
        for offset in [0, 123, u32::MAX - 6_000] {
            let mut base = BaseLoss::default();
            arrive(&mut base, 0, [offset, offset]);
            let longer = [offset.wrapping_add(9_000); 2];
            assert_eq!(arrive(&mut base, 9_000, longer), [false, false]);
            assert_eq!(arrive(&mut base, 10_000, longer), [false, true], "a longer path");
        }
    }

    /// As many packets without a queue and with one, and losses of the former.
    fn base(unqueued: u32, queued: u32, lost: u64) -> BaseLoss {
        let mut base = BaseLoss::default();
        arrive(&mut base, 0, (0..unqueued + 1).map(|_| 5_000));
        arrive(&mut base, 0, (0..queued).map(|_| 50_000));
        base.on_lost(lost);
        base
    }

    #[test]
    fn a_share_is_told_by_a_quarter_of_the_packets_and_32() {
        assert_eq!(base(90, 0, 10).share(), 25);
        assert_eq!(base(90, 269, 10).share(), 25, "a quarter of 360");
        assert_eq!(base(90, 270, 10).share(), 0);
        assert_eq!((base(29, 0, 2).share(), base(30, 0, 2).share()), (0, 16));
        assert_eq!(base(90, 0, u64::MAX).share(), u8::MAX, "a number far ahead");
    }

    #[test]
    fn old_packets_count_half_after_two_seconds() {
        let mut base = base(1_000, 0, 100);
        assert_eq!(base.share(), (100 * 256 / 1_100) as u8);
        arrive(&mut base, 1_999, [5_000]);
        assert_eq!(base.share(), (100 * 256 / 1_101) as u8);
        arrive(&mut base, 2_000, (0..401).map(|_| 5_000));
        assert_eq!(base.share(), (50 * 256 / (500 + 401 + 50)) as u8);
        let now = Instant::ZERO + Duration::from_millis(2_401);
        (0..51).for_each(|_| base.on_overtaken(now, true, true));
        assert_eq!(base.share(), 0, "no more were late than were lost");
    }
}
