//! The share that the path loses at any rate, by the packets that met no queue.
//!
//! A queue that overflows loses packets that follow others which waited in it; chance loses any. So only losses among packets
//! with little delay are the path's own, for which a sender need not slow down.

use tacit_ack::RelativeDelay;

use super::timing::RecentMax;
use tacit_packet::units::{Duration, Instant};

/// A delay in the lowest part of the range of the last second is of no queue: the others of a flow that fills one are above.
const LOW_PART: u64 = 4;

/// As is one that clocks, hosts and a burst of the sender alone may make, and this part of a round trip at most: half a millisecond is
/// half of a queue of a tenth of a product at 10 ms, and its losses would count as the path's.
const LOW_MIN: Duration = Duration::from_micros(500);
const LOW_TRIP_PART: u64 = 32;

/// Time after which counts are halved: several cycles of a sender; some of them drain the queue.
const WINDOW: Duration = Duration::from_secs(2);

/// The share is zero with fewer of these packets.
const EVIDENCE: u64 = 32;

/// Where fewer than this part of the packets met no queue, those are exceptions: of delay that varies, or of a queue that others fill.
const EVIDENCE_PART: u64 = 4;

/// The share of packets of usual delay needs this many of them and of the others, and has to be at least three quarters of that of the
/// others: a queue loses packets that waited, a path that jitters loses all alike. With 128, chance makes some of thirty flows in a short
/// queue believe the queue's losses.
const USUAL_EVIDENCE: u64 = 256;
const ALIKE_QUARTERS: u64 = 3;

/// How long a packet waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wait {
    /// It met no queue: its delay and that of the packet before are little above the least.
    None,
    /// No longer than a path whose delay varies makes packets wait: both are in the lowest quarter of the range above the least of the
    /// lower quartiles.
    Usual,
    /// Longer.
    Long,
}

/// Packets of one kind, lately.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    arrived: u64,
    lost: u64,
}

impl Count {
    fn halve(&mut self) {
        self.arrived /= 2;
        self.lost /= 2;
    }

    fn sent(self) -> u64 {
        self.arrived.saturating_add(self.lost)
    }

    /// The packets that are not among `some`.
    fn without(self, some: Self) -> Self {
        let Self { arrived, lost } = self;
        Self { arrived: arrived.saturating_sub(some.arrived), lost: lost.saturating_sub(some.lost) }
    }

    /// The share that was lost is nearly that of `others`, or more.
    fn loses_as(self, others: Self) -> bool {
        let product = |lost: u64, sent: u64| u128::from(lost) * u128::from(sent);
        product(self.lost, others.sent()) * 4
            >= product(others.lost, self.sent()) * u128::from(ALIKE_QUARTERS)
    }

    /// The share that was lost, in 256ths.
    fn lost_share(self) -> u8 {
        let lost = u128::from(self.lost) * 256;
        lost.checked_div(self.sent().into()).and_then(|share| share.try_into().ok()).unwrap_or(u8::MAX)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct BaseLoss {
    delay: RelativeDelay,
    longest: RecentMax,
    quartile: LowerQuartile,
    /// Of the packet before, by itself.
    before: Option<Wait>,
    /// When counts were halved last.
    since: Instant,
    all: Count,
    /// Those that waited no longer than usual, those without a queue among them.
    usual: Count,
    unqueued: Count,
}

impl BaseLoss {
    /// A packet arrived at `now`, whose one-way delay by two clocks is `delay_us`, over a path of `rtt_min`, if that is known. A packet
    /// that was `overtaken` is too late to show a hole: unknown yet.
    pub fn on_packet(
        &mut self,
        now: Instant,
        delay_us: u32,
        rtt_min: Option<Duration>,
        overtaken: bool,
    ) -> Wait {
        let delay = self.delay.update(now, delay_us);
        let range = self.longest.update(now, delay);
        if overtaken {
            return Wait::Long;
        }
        let least = rtt_min.map_or(LOW_MIN, |trip| LOW_MIN.min(trip / LOW_TRIP_PART));
        let little = (range / LOW_PART).max(least);
        // Of the range above the least quartile, the same part.
        let usual = self
            .quartile
            .update(now, delay_us, range)
            .is_some_and(|above| above <= range.saturating_sub(delay.saturating_sub(above)) / LOW_PART);
        let current = match delay <= little {
            true => Wait::None,
            false if usual => Wait::Usual,
            false => Wait::Long,
        };
        let wait = self.before.replace(current).map_or(Wait::Long, |before| before.max(current));
        self.on_arrival(now, wait);
        wait
    }

    fn on_arrival(&mut self, now: Instant, wait: Wait) {
        if now.saturating_since(self.since) >= WINDOW {
            self.since = now;
            [&mut self.all, &mut self.usual, &mut self.unqueued].into_iter().for_each(Count::halve);
        }
        self.counts_of(wait).for_each(|count| count.arrived += 1);
    }

    /// The counts that include packets with this `wait`.
    fn counts_of(&mut self, wait: Wait) -> impl Iterator<Item = &mut Count> {
        let usual = Some(&mut self.usual).filter(|_| wait <= Wait::Usual);
        let unqueued = Some(&mut self.unqueued).filter(|_| wait == Wait::None);
        std::iter::once(&mut self.all).chain(usual).chain(unqueued)
    }

    /// `packets` were lost. The packet that shows it had this `wait`.
    pub fn on_lost(&mut self, packets: u64, wait: Wait) {
        self.counts_of(wait).for_each(|count| count.lost = count.lost.saturating_add(packets));
    }

    /// An overtaken packet arrived. It counts with the `wait` of the packet that overtook it, and counted as lost if `was_lost`.
    pub fn on_overtaken(&mut self, now: Instant, wait: Wait, was_lost: bool) {
        self.on_arrival(now, wait);
        if was_lost {
            self.counts_of(wait).for_each(|count| count.lost = count.lost.saturating_sub(1));
        }
    }

    /// The share of the packets that met no queue which was lost, in 256ths; where they are few, of those of usual delay.
    pub fn share(&self) -> u8 {
        if self.unqueued.sent() >= EVIDENCE && self.unqueued.arrived * EVIDENCE_PART >= self.all.arrived {
            return self.unqueued.lost_share();
        }
        let others = self.all.without(self.usual);
        let is_known = self.usual.sent().min(others.sent()) >= USUAL_EVIDENCE;
        if is_known && self.usual.loses_as(others) { self.usual.lost_share() } else { 0 }
    }
}

/// Each delay moves the quartile by this part of the range: up by one such step, or down by three.
const STEP_PART: u64 = 256;
/// Delays that move it from one end of the range to its place.
const QUARTILE_AFTER: u32 = 512;

/// The delay that a quarter of the packets stay below, by steps.
#[derive(Clone, Debug, Default)]
struct LowerQuartile {
    delay_us: Option<u32>,
    delays: u32,
    least: RelativeDelay,
}

impl LowerQuartile {
    /// How far a delay is above the least quartile of ten seconds, if that is known, where delays lately have this `range`.
    fn update(&mut self, now: Instant, delay_us: u32, range: Duration) -> Option<Duration> {
        let step_us = u32::try_from((range / STEP_PART).as_micros()).unwrap_or(u32::MAX >> 4).max(1);
        let quartile_us = self.delay_us.get_or_insert(delay_us);
        let is_above = |quartile_us: u32| delay_us.wrapping_sub(quartile_us) as i32 > 0;
        *quartile_us = match is_above(*quartile_us) {
            true => quartile_us.wrapping_add(step_us),
            false => quartile_us.wrapping_sub(3 * step_us),
        };
        self.delays = self.delays.saturating_add(1);
        if self.delays <= QUARTILE_AFTER {
            return None;
        }
        let above_least = self.least.update(now, *quartile_us);
        let above = delay_us.wrapping_sub(*quartile_us);
        Some(if is_above(*quartile_us) {
            above_least + Duration::from_micros(above.into())
        } else {
            above_least.saturating_sub(Duration::from_micros(above.wrapping_neg().into()))
        })
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
        let waits =
            (0..).zip(delays).map(|(step, delay)| base.on_packet(at(step), delay, Some(rtt_min), false));
        waits.map(|wait| wait == Wait::None).collect()
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
        base.on_lost(lost, Wait::None);
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

    /// Half of 2,048 packets of usual delay and half of the others, far above the least.
    fn varied() -> BaseLoss {
        let mut base = BaseLoss::default();
        arrive(&mut base, 0, [0]);
        let delays = (0..2_048).map(|number| 30_000 + if number / 16 % 2 == 0 { 0 } else { 10_000 });
        arrive(&mut base, 0, delays);
        assert_eq!(base.unqueued.arrived, 0);
        base
    }

    #[test]
    fn packets_of_usual_delay_tell_the_share_where_hardly_one_has_the_least() {
        // Those of the other kind lose three quarters as many at least.
        let base = varied();
        let (usual, others) = (base.usual.arrived, base.all.arrived - base.usual.arrived);
        assert!(usual > USUAL_EVIDENCE, "{usual}");
        let lost = usual / 8;
        let most = (others * lost * 4 / usual) / 3;
        for (others_lost, is_known) in [(most * 3 / 4, true), (most * 5 / 4, false)] {
            let mut base = base.clone();
            base.on_lost(lost, Wait::Usual);
            base.on_lost(others_lost, Wait::Long);
            assert_eq!(base.share(), if is_known { base.usual.lost_share() } else { 0 }, "{others_lost}");
        }
    }

    #[test]
    fn usual_delays_are_known_by_256_packets_and_as_many_others() {
        for (usual, others, share) in [(224, 256, 32), (223, 256, 0), (224, 255, 0)] {
            let usual = Count { arrived: usual, lost: 32 };
            let all = Count { arrived: usual.arrived + others, lost: 32 };
            let base = BaseLoss { all, usual, ..BaseLoss::default() };
            assert_eq!(base.share(), share, "{usual:?}, {others} others");
        }
    }

    #[test]
    fn what_is_usual_was_so_within_ten_seconds() {
        let mut quartile = LowerQuartile::default();
        let range = Duration::from_micros(25_600);
        let mut wait = |from_ms: u64, delays: u64, delay_us: u32| {
            let at = |step| Instant::ZERO + Duration::from_millis(from_ms + step);
            (0..delays).map(|step| quartile.update(at(step), delay_us, range)).last().flatten()
        };
        assert_eq!(wait(0, 512, 5_000), None, "too few");
        assert!(wait(1_000, 1, 5_000).is_some_and(|above| above <= Duration::from_micros(300)));
        // A queue of 10 ms stands: it is above what was usual, until nothing else was for ten seconds.
        let above = wait(2_000, 1_000, 15_000);
        assert!(above.is_some_and(|above| above >= Duration::from_millis(10)), "{above:?}");
        let above = wait(14_000, 1_000, 15_000);
        assert!(above.is_some_and(|above| above <= Duration::from_micros(600)), "{above:?}");
    }

    #[test]
    fn a_delay_moves_the_quartile_up_by_a_256th_of_the_range_or_down_by_three() {
        let mut quartile = LowerQuartile::default();
        let moved = [5_000, 9_000, 4_800, 4_800].map(|delay_us| {
            quartile.update(Instant::ZERO, delay_us, Duration::from_micros(25_600));
            quartile.delay_us
        });
        assert_eq!(moved, [4_700, 4_800, 4_500, 4_600].map(Some));
    }

    #[test]
    fn a_quarter_of_the_delays_are_below_the_quartile() {
        let mut quartile = LowerQuartile::default();
        let range = Duration::from_micros(10_000);
        // A full cycle of 10,000 delays, in an order that mixes them; the two clocks pass 2^32 between them.
        let delays = (0..30_000_u32).map(|number| (number * 7_919 % 10_000).wrapping_sub(5_000));
        for (step, delay_us) in (0..).zip(delays) {
            quartile.update(Instant::ZERO + Duration::from_micros(step * 100), delay_us, range);
        }
        let found = quartile.delay_us.map(|us| us.wrapping_add(5_000));
        assert!(found.is_some_and(|us| (2_000..=3_000).contains(&us)), "{found:?}");
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
        (0..51).for_each(|_| base.on_overtaken(now, Wait::None, true));
        assert_eq!(base.share(), 0, "no more were late than were lost");
    }
}
