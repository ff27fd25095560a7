//! The share that the path loses at any rate, by the packets that met no queue.
//!
//! A queue that overflows loses packets that follow others which waited in it; chance loses any. So only losses among packets
//! with little delay are the path's own, for which a sender need not slow down.

use super::timing::{RecentMax, RelativeDelay};
use crate::units::{Duration, Instant};

/// A delay in the lowest part of the range of the last second is of no queue: the others of a flow that fills one are above.
const LOW_PART: u64 = 4;

/// As is one that clocks, hosts and a burst of the sender alone may make, and this part of a round trip at most: half a millisecond is
/// half of a queue of a tenth of a product at 10 ms, and its losses would count as the path's.
const LOW_MIN: Duration = Duration::from_micros(500);
const LOW_TRIP_PART: u64 = 32;

/// Time after which counts are halved: several cycles of a sender, some of which drain the queue.
const WINDOW: Duration = Duration::from_secs(2);

/// The share is zero with fewer of these packets.
const EVIDENCE: u64 = 32;

/// Where fewer than this part of the packets met no queue, those are exceptions: of delay that varies, or of a queue that others fill.
const EVIDENCE_PART: u64 = 4;

/// Such a share needs this many packets, and has to be at least three quarters of the share lost among all: a queue loses packets that
/// waited, a path that jitters loses all alike.
const RARE_EVIDENCE: u64 = 256;
const ALIKE_QUARTERS: u64 = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct BaseLoss {
    delay: RelativeDelay,
    longest: RecentMax,
    /// The delay of the packet before was low.
    was_low: bool,
    /// When counts were halved last.
    since: Instant,
    /// Packets that arrived and that were lost: all of them, and those that met no queue.
    arrived: u64,
    lost: u64,
    unqueued: u64,
    unqueued_lost: u64,
}

impl BaseLoss {
    /// A packet arrived at `now`, whose one-way delay by two clocks is `delay_us`, over a path of `rtt_min`, if that is known. True where it met no queue: neither its delay
    /// nor that of the one before it shows one. A packet that was `overtaken` is too late to show a hole: unknown yet.
    pub fn on_packet(
        &mut self,
        now: Instant,
        delay_us: u32,
        rtt_min: Option<Duration>,
        overtaken: bool,
    ) -> bool {
        let delay = self.delay.update(now, delay_us);
        let range = self.longest.update(now, delay);
        if overtaken {
            return false;
        }
        let least = rtt_min.map_or(LOW_MIN, |trip| LOW_MIN.min(trip / LOW_TRIP_PART));
        let is_low = delay <= (range / LOW_PART).max(least);
        let is_unqueued = core::mem::replace(&mut self.was_low, is_low) && is_low;
        self.on_arrival(now, is_unqueued);
        is_unqueued
    }

    fn on_arrival(&mut self, now: Instant, is_unqueued: bool) {
        if now.saturating_since(self.since) >= WINDOW {
            self.since = now;
            self.arrived /= 2;
            self.lost /= 2;
            self.unqueued /= 2;
            self.unqueued_lost /= 2;
        }
        self.arrived += 1;
        self.unqueued += u64::from(is_unqueued);
    }

    /// A number of packets were lost, as a packet shows that met no queue where `is_unqueued`.
    pub fn on_lost(&mut self, packets: u64, is_unqueued: bool) {
        self.lost = self.lost.saturating_add(packets);
        if is_unqueued {
            self.unqueued_lost = self.unqueued_lost.saturating_add(packets);
        }
    }

    /// A packet arrived that was overtaken, by one that met no queue where `is_unqueued`: its own delay says nothing of that. It
    /// counted as lost where `was_lost`.
    pub fn on_overtaken(&mut self, now: Instant, is_unqueued: bool, was_lost: bool) {
        self.on_arrival(now, is_unqueued);
        if was_lost {
            self.lost = self.lost.saturating_sub(1);
            self.unqueued_lost = self.unqueued_lost.saturating_sub(u64::from(is_unqueued));
        }
    }

    /// The share of the packets that met no queue which was lost, in 256ths.
    pub fn share(&self) -> u8 {
        let sent = self.unqueued.saturating_add(self.unqueued_lost);
        let is_rare = self.unqueued * EVIDENCE_PART < self.arrived;
        if sent < EVIDENCE || (is_rare && (sent < RARE_EVIDENCE || !self.loses_alike(sent))) {
            return 0;
        }
        u8::try_from(u128::from(self.unqueued_lost) * 256 / u128::from(sent)).unwrap_or(u8::MAX)
    }

    /// Of the packets `sent` without a queue nearly the share was lost that was lost of all.
    fn loses_alike(&self, sent: u64) -> bool {
        let all = u128::from(self.arrived) + u128::from(self.lost);
        let (unqueued, lost) =
            (u128::from(self.unqueued_lost) * all, u128::from(self.lost) * u128::from(sent));
        unqueued * 4 >= lost * u128::from(ALIKE_QUARTERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets a millisecond apart, each with its delay in µs, over a path of 40 ms.
    fn arrive(base: &mut BaseLoss, from: u64, delays: impl IntoIterator<Item = u32>) -> Vec<bool> {
        arrive_over(base, Duration::from_millis(40), from, delays)
    }

    fn arrive_over(
        base: &mut BaseLoss,
        rtt_min: Duration,
        from: u64,
        delays: impl IntoIterator<Item = u32>,
    ) -> Vec<bool> {
        let at = |step| Instant::ZERO + Duration::from_millis(from + step);
        (0..).zip(delays).map(|(step, delay)| base.on_packet(at(step), delay, Some(rtt_min), false)).collect()
    }

    #[test]
    fn a_packet_met_no_queue_where_its_delay_and_the_one_before_are_in_the_lowest_quarter() {
        let mut base = BaseLoss::default();
        let delays = [5_000, 9_000, 6_000, 6_000, 6_001, 6_000, 5_000, 5_000];
        let low = arrive(&mut base, 0, delays);
        assert_eq!(low, [false, false, false, true, false, false, true, true]);
        // The range is of the last second or two: then half a millisecond counts as none.
        assert_eq!(
            arrive(&mut base, 3_000, [5_500, 5_500, 5_501, 5_500, 5_500]),
            [true, true, false, false, true]
        );
        let short = Duration::from_micros(9_600);
        assert_eq!(
            arrive_over(&mut base, short, 6_000, [5_300, 5_300, 5_301, 5_300, 5_300]),
            [true, true, false, false, true],
            "a 32nd of a round trip"
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
        base.on_lost(lost, true);
        base
    }

    #[test]
    fn a_share_is_told_by_a_quarter_of_the_packets_and_32() {
        assert_eq!(base(90, 0, 10).share(), 25);
        assert_eq!(base(90, 269, 10).share(), 25, "a quarter of 360");
        assert_eq!(base(90, 270, 10).share(), 0, "100 packets are too few for that");
        assert_eq!((base(29, 0, 2).share(), base(30, 0, 2).share()), (0, 16));
        assert_eq!(base(90, 0, u64::MAX).share(), u8::MAX, "a number far ahead");
    }

    #[test]
    fn few_packets_without_a_queue_tell_the_share_where_all_lose_alike() {
        // 24 of 256, and 109 or 110 of the others.
        for (others_lost, share) in [(109, 24), (110, 0)] {
            let mut base = base(232, 698, 24);
            base.on_lost(others_lost, false);
            assert_eq!(base.share(), share, "{others_lost}");
        }
        assert_eq!(base(232, 698, 23).share(), 0, "255 packets");
        assert_eq!(base(232, 698, 24).share(), 24);
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
