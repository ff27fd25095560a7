//! Which packet numbers arrived: duplicates, holes and when they count as lost, and the loss rate of the path.

use std::collections::VecDeque;

use super::base_loss::{BaseLoss, Wait};
use super::timing::RecentMax;
use tacit_packet::position::Position;
use tacit_packet::ranges::{Range, RangeSet};
use tacit_packet::units::{Duration, Instant};

/// Separate ranges that are remembered at most; of more, the lowest is forgotten.
const MAX_RANGES: usize = 4096;

/// Packets after which the loss rate is computed again; half of the counts stays.
const LOSS_WINDOW: u64 = 128;

/// Before the first window has passed, a loss of this share, in 65,536ths, by this many packets counts: ACKs are few, and a window of
/// them takes seconds. Ours: where one in fifty is lost, that happens once in thousands of times.
const EARLY_SHARE: u16 = u16::MAX / 4;
const EARLY_LOST: u64 = 4;

/// Holes that are remembered at most; of more, the oldest counts as lost.
const MAX_HOLES: usize = 1024;

/// A hole settles for this part, in quarters, of the largest displacement of late: some packet will be displaced further.
const SETTLE_QUARTERS: u64 = 5;

/// And no longer than the longer of this and a round trip: where Wi-Fi's reordering buffer gives a frame up, most do.
const SETTLE_MAX: Duration = Duration::from_millis(100);

/// Kind of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The next number.
    InOrder,
    /// A number with others missing before it.
    OpensHole,
    /// A number that was missing and had not been reported.
    FillsHole,
    /// A number that was reported missing: it was late, not lost.
    Late,
    /// A number that had arrived.
    Duplicate,
}

/// The books of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Every number below arrived, or is no longer asked for.
    cumulative: Position,
    /// Numbers that arrived above, without touching it.
    above: RangeSet,
    /// The number after the largest that arrived.
    end: Position,
    /// The latest holes, lowest first, and how many of them, the last, may still be filled by reordering.
    holes: VecDeque<Hole>,
    settling: usize,
    /// How long after a hole opened late packets came that belong into one.
    displacement: RecentMax,
    settle: Duration,
    loss: LossMeter,
    base: BaseLoss,
}

/// Numbers that were passed over.
#[derive(Clone, Copy, Debug)]
struct Hole {
    range: Range,
    opened: Instant,
    /// Of the packet that opened it.
    wait: Wait,
}

impl Arrivals {
    pub fn new(first: Position) -> Self {
        Self { cumulative: first, end: first, ..Self::default() }
    }

    /// Every number below arrived, or is of no interest to the sender.
    pub fn cumulative(&self) -> Position {
        self.cumulative
    }

    /// The number after the largest that arrived.
    pub fn end(&self) -> Position {
        self.end
    }

    /// Every hole below counts as lost; those above may still be filled by reordering.
    pub fn settled_end(&self) -> Position {
        self.first_settling().map_or(self.end, |hole| hole.range.start)
    }

    /// Ranges that arrived above [`cumulative`](Self::cumulative), highest first.
    pub fn blocks(&self) -> impl Iterator<Item = Range> + '_ {
        self.above.iter().rev()
    }

    /// The range above [`cumulative`](Self::cumulative) in which `number` arrived.
    pub fn block_at(&self, number: Position) -> Option<Range> {
        self.above.containing(number)
    }

    /// Missing ranges that count as lost, lowest first.
    pub fn holes(&self) -> impl Iterator<Item = Range> + '_ {
        let settled = self.settled_end();
        let starts = std::iter::once(self.cumulative).chain(self.above.iter().map(|range| range.end));
        let ends = self.above.iter().map(|range| range.start);
        starts
            .zip(ends)
            .map(|(start, end)| Range { start, end })
            .take_while(move |hole| hole.start < settled)
            .filter(|hole| hole.start < hole.end)
    }

    /// Packets lost, in 65,536ths of those sent, lately.
    pub fn loss(&self) -> u16 {
        self.loss.rate
    }

    /// The same for acknowledgments: a heavy loss of these counts before their first window has passed.
    pub fn loss_so_far(&self) -> u16 {
        self.loss.rate_so_far()
    }

    /// The kind of arrival that `number` would be.
    #[inline]
    pub fn classify(&self, number: Position) -> Arrival {
        if number == self.end {
            return Arrival::InOrder;
        }
        if number > self.end {
            return Arrival::OpensHole;
        }
        if number < self.cumulative || self.above.containing(number).is_some() {
            return Arrival::Duplicate;
        }
        if number >= self.settled_end() { Arrival::FillsHole } else { Arrival::Late }
    }

    /// The packet `number` arrives at `now`, whose one-way delay by two clocks is `delay_us`, over a path of `rtt_min`, if that is known.
    #[inline]
    pub fn on_delay(
        &mut self,
        now: Instant,
        number: Position,
        delay_us: u32,
        rtt_min: Option<Duration>,
    ) -> Wait {
        self.base.on_packet(now, delay_us, rtt_min, number < self.end)
    }

    /// Packets lost, in 256ths, of those that met no queue.
    pub fn base_loss(&self) -> u8 {
        self.base.share()
    }

    /// Records `number`, which is no duplicate, over a path of `rtt_min`; [`Self::on_delay`] said how long it waited. Returns
    /// a hole that it opened and that counts as lost at once.
    pub fn take(&mut self, now: Instant, number: Position, rtt_min: Duration, wait: Wait) -> Option<Range> {
        if number < self.end {
            self.loss.on_found();
            self.on_displaced(now, number, rtt_min);
            self.add(number);
            return None;
        }
        let range = Range { start: self.end, end: number };
        self.end = number + 1;
        self.loss.on_expected(range.len() + 1);
        self.loss.on_lost(range.len());
        self.add(number);
        if range.start == range.end {
            return None;
        }
        self.open(Hole { range, opened: now, wait });
        self.settle = (self.displacement.get(now) / 4 * SETTLE_QUARTERS).min(SETTLE_MAX.max(rtt_min));
        if self.settle == Duration::ZERO && self.settling == 1 { self.settle_first() } else { None }
    }

    fn open(&mut self, hole: Hole) {
        if self.holes.len() == MAX_HOLES {
            if self.settling == MAX_HOLES {
                self.settle_first();
            }
            self.holes.pop_front();
        }
        self.holes.push_back(hole);
        self.settling += 1;
    }

    /// `number` came after a larger one. One that is later than a hole ever settles is no reason to wait.
    fn on_displaced(&mut self, now: Instant, number: Position, rtt_min: Duration) {
        let place = self.holes.partition_point(|hole| hole.range.end <= number);
        let Some(hole) = self.holes.get(place).filter(|hole| hole.range.start <= number) else { return };
        let displaced = now.saturating_since(hole.opened);
        if displaced <= SETTLE_MAX.max(rtt_min) {
            self.displacement.update(now, displaced);
        }
        self.base.on_overtaken(now, hole.wait, place + self.settling < self.holes.len());
    }

    fn add(&mut self, number: Position) {
        if number == self.cumulative {
            self.cumulative = number + 1;
            self.absorb();
        } else if self.above.insert(Range { start: number, end: number + 1 }, MAX_RANGES).is_none() {
            // The lowest count as missing again, which claims less than is true and never more. Holes that are never repaired
            // are those of feedback.
            self.above.pop_first();
            self.above.insert(Range { start: number, end: number + 1 }, MAX_RANGES);
        }
    }

    /// The sender asks for nothing below `floor`.
    pub fn forget_below(&mut self, floor: Position) {
        if floor <= self.cumulative {
            return;
        }
        self.cumulative = floor.min(self.end);
        self.above.remove_below(self.cumulative);
        self.absorb();
        while self.holes.front().is_some_and(|hole| hole.range.end <= self.cumulative) {
            self.holes.pop_front();
            self.settling = self.settling.min(self.holes.len());
        }
    }

    fn absorb(&mut self) {
        if let Some(first) = self.above.first()
            && first.start <= self.cumulative
        {
            self.cumulative = first.end;
            self.above.pop_first();
        }
    }

    fn first_settling(&self) -> Option<&Hole> {
        self.holes.get(self.holes.len() - self.settling)
    }

    /// When the first settling hole counts as lost.
    pub fn next_settled(&self) -> Option<Instant> {
        self.first_settling().map(|hole| hole.opened + self.settle)
    }

    /// The next hole whose settling time is over by `now`, or the rest of it.
    pub fn settled(&mut self, now: Instant) -> Option<Range> {
        while self.next_settled().is_some_and(|at| at <= now) {
            if let Some(left) = self.settle_first() {
                return Some(left);
            }
        }
        None
    }

    /// The first settling hole counts as lost. Returns the first part of it that is left.
    fn settle_first(&mut self) -> Option<Range> {
        let hole = *self.first_settling()?;
        self.settling -= 1;
        let mut rest = Range { start: hole.range.start.max(self.cumulative), end: hole.range.end };
        let mut first = None;
        while rest.start < rest.end
            && let Some(gap) = self.above.first_gap(rest)
        {
            self.base.on_lost(gap.len(), hole.wait);
            first = first.or(Some(gap));
            rest.start = gap.end;
        }
        first
    }
}

/// Packets lost among the latest.
#[derive(Clone, Debug, Default)]
struct LossMeter {
    expected: u64,
    lost: u64,
    rate: u16,
    /// A window has passed.
    is_known: bool,
}

impl LossMeter {
    fn on_expected(&mut self, packets: u64) {
        self.expected += packets;
        if self.expected >= LOSS_WINDOW {
            self.rate = self.share();
            self.expected /= 2;
            self.lost /= 2;
            self.is_known = true;
        }
    }

    /// The rate, or before the first window has passed what is known of a heavy one.
    fn rate_so_far(&self) -> u16 {
        let is_heavy = self.lost >= EARLY_LOST && self.share() >= EARLY_SHARE;
        if self.is_known || !is_heavy { self.rate } else { self.share() }
    }

    fn share(&self) -> u16 {
        ((self.lost << 16) / self.expected.max(1)).min(u64::from(u16::MAX)) as u16
    }

    fn on_lost(&mut self, packets: u64) {
        self.lost += packets;
    }

    /// One that counted as lost was late.
    fn on_found(&mut self) {
        self.lost = self.lost.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::position::at;

    const RTT: Duration = Duration::from_millis(40);

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn take(arrivals: &mut Arrivals, now: u64, number: u64) -> Option<Range> {
        arrivals.take(millis(now), at(number), RTT, Wait::Long)
    }

    fn arrivals(numbers: &[u64]) -> Arrivals {
        let mut arrivals = Arrivals::new(at(1));
        for number in numbers {
            take(&mut arrivals, *number, *number);
        }
        arrivals
    }

    fn range(start: u64, end: u64) -> Option<Range> {
        Some(Range { start: at(start), end: at(end) })
    }

    fn spans(ranges: impl Iterator<Item = Range>) -> Vec<(u64, u64)> {
        ranges.map(|range| (range.start - at(0), range.end - at(0) - 1)).collect()
    }

    /// The example of TACK paper section 5.1.
    #[test]
    fn the_lists_are_those_of_the_paper() {
        let arrivals = arrivals(&[1, 4, 5, 6, 10]);
        assert_eq!(arrivals.cumulative(), at(2));
        assert_eq!(spans(arrivals.blocks()), [(10, 10), (4, 6)]);
        assert_eq!(spans(arrivals.holes()), [(2, 3), (7, 9)]);
    }

    #[test]
    fn packets_that_the_sender_gave_up_are_forgotten() {
        let mut arrivals = arrivals(&[1, 4, 5, 6, 10]);
        arrivals.forget_below(at(4));
        assert_eq!(arrivals.cumulative(), at(7));
        assert_eq!(spans(arrivals.holes()), [(7, 9)]);
        arrivals.forget_below(at(99));
        assert_eq!((arrivals.cumulative(), spans(arrivals.holes())), (at(11), vec![]));
    }

    #[test]
    fn a_hole_counts_as_lost_at_once_where_nothing_comes_late() {
        let mut arrivals = arrivals(&[1]);
        assert_eq!(take(&mut arrivals, 3, 5), range(2, 5));
        assert_eq!((arrivals.next_settled(), spans(arrivals.holes())), (None, vec![(2, 4)]));
    }

    #[test]
    fn holes_settle_for_five_quarters_of_the_largest_displacement() {
        let mut arrivals = arrivals(&[1, 3]);
        assert_eq!(arrivals.classify(at(2)), Arrival::Late);
        // The hole opened at 3 ms.
        assert_eq!(take(&mut arrivals, 11, 2), None);
        assert_eq!(take(&mut arrivals, 20, 5), None);
        assert_eq!((spans(arrivals.holes()), arrivals.next_settled()), (vec![], Some(millis(30))));
        assert_eq!(arrivals.settled(Instant::ZERO + Duration::from_micros(29_999)), None);
        assert_eq!(arrivals.classify(at(4)), Arrival::FillsHole);
        assert_eq!(arrivals.settled(millis(30)), range(4, 5));
        assert_eq!(spans(arrivals.holes()), [(4, 4)]);
        // A smaller one changes nothing, a larger one does, whether it comes late or in time.
        take(&mut arrivals, 31, 4);
        take(&mut arrivals, 40, 7);
        assert_eq!(arrivals.next_settled(), Some(millis(40) + Duration::from_micros(13_750)));
        take(&mut arrivals, 41, 6);
        assert_eq!(arrivals.settled(millis(54)), None);
        take(&mut arrivals, 55, 9);
        assert_eq!(arrivals.next_settled(), Some(millis(55) + Duration::from_micros(13_750)));
        take(&mut arrivals, 67, 8);
        take(&mut arrivals, 70, 11);
        assert_eq!(arrivals.settled(millis(84)), None);
        assert_eq!(arrivals.settled(millis(85)), range(10, 11));
    }

    #[test]
    fn a_displacement_is_forgotten_after_two_seconds() {
        for (later, settles) in [(1_000, true), (1_999, true), (2_000, false)] {
            let mut arrivals = arrivals(&[1, 3]);
            take(&mut arrivals, 11, 2);
            take(&mut arrivals, later, 5);
            assert_eq!(arrivals.next_settled().is_some(), settles, "{later} ms");
        }
    }

    /// Packets later than that would be lost to the sender in any case.
    #[test]
    fn nothing_settles_for_longer_than_a_round_trip_or_100_ms() {
        for (rtt, displaced, settles) in [
            (40, 70, Some(87)),
            (40, 90, Some(100)),
            (40, 101, None),
            (300, 280, Some(300)),
            (300, 301, None),
        ] {
            let mut arrivals = Arrivals::new(at(1));
            let mut take =
                |now, number| arrivals.take(millis(now), at(number), Duration::from_millis(rtt), Wait::Long);
            for (now, number) in [(1, 1), (3, 3), (3 + displaced, 2), (500, 5)] {
                take(now, number);
            }
            let settles_for = arrivals.next_settled().map(|at| at.saturating_since(millis(500)).as_millis());
            assert_eq!(settles_for, settles, "{displaced} of {rtt} ms");
        }
    }

    #[test]
    fn a_hole_that_fills_while_it_settles_is_none() {
        let mut arrivals = arrivals(&[1, 3]);
        take(&mut arrivals, 7, 2);
        take(&mut arrivals, 8, 6);
        take(&mut arrivals, 9, 4);
        assert_eq!(arrivals.settled(millis(20)), range(5, 6));
        take(&mut arrivals, 21, 5);
        assert_eq!(arrivals.cumulative(), at(7));
    }

    /// Of packets without delay 32 are in order, and those before the hole that `number` opens.
    fn unqueued(number: u64) -> Arrivals {
        let mut arrivals = Arrivals::new(at(1));
        for number in (1..34).chain([number]) {
            let wait = arrivals.on_delay(millis(number), at(number), 5_000, Some(RTT));
            arrivals.take(millis(number), at(number), RTT, wait);
        }
        arrivals
    }

    #[test]
    fn what_is_lost_where_no_queue_is_counts_once_it_has_settled_and_is_not_late() {
        let mut arrivals = unqueued(42);
        // 8 of 33 that came, and these.
        assert_eq!(arrivals.base_loss(), (8 * 256 / 41) as u8);
        take(&mut arrivals, 43, 40);
        assert_eq!(arrivals.base_loss(), (7 * 256 / 41) as u8, "one was late");
        // The next settles.
        let wait = arrivals.on_delay(millis(44), at(51), 5_000, Some(RTT));
        arrivals.take(millis(44), at(51), RTT, wait);
        assert_eq!(arrivals.base_loss(), (7 * 256 / 42) as u8);
        take(&mut arrivals, 45, 47);
        while arrivals.settled(millis(60)).is_some() {}
        assert_eq!(arrivals.base_loss(), ((7 + 7) * 256 / (43 + 7)) as u8);
    }

    #[test]
    fn more_holes_than_are_remembered_settle_early() {
        let mut arrivals = arrivals(&[1, 3]);
        take(&mut arrivals, 11, 2);
        for number in (5..5 + 2 * MAX_HOLES as u64).step_by(2) {
            assert_eq!(take(&mut arrivals, 12, number), None);
        }
        assert_eq!(spans(arrivals.holes()), []);
        take(&mut arrivals, 12, 7 + 2 * MAX_HOLES as u64);
        assert_eq!(spans(arrivals.holes()), [(4, 4)]);
    }

    #[test]
    fn the_loss_rate_is_of_the_latest_packets() {
        let mut all = Arrivals::new(at(0));
        for number in (0..2000).filter(|number| number % 10 != 3) {
            take(&mut all, number, number);
        }
        let tenth = 65_536 / 10;
        assert!((i32::from(all.loss()) - tenth).abs() < tenth / 8, "{}", all.loss());
        for number in 2000..4000 {
            take(&mut all, number, number);
        }
        assert_eq!(all.loss(), 0);
    }

    #[test]
    fn the_loss_rate_is_renewed_every_128_packets_and_half_of_them_stay() {
        let mut meter = LossMeter::default();
        let mut expect = |lost, packets| {
            meter.on_lost(lost);
            meter.on_expected(packets);
            meter.rate
        };
        assert_eq!(expect(16, 127), 0);
        assert_eq!(expect(0, 1), 1 << 13);
        assert_eq!(expect(0, 63), 1 << 13);
        assert_eq!(expect(0, 1), 1 << 12, "8 of the 16 count still");
        assert_eq!(expect(32, 32), 1 << 12, "the first window has passed");
    }

    #[test]
    fn a_heavy_loss_is_known_before_the_first_window_has_passed() {
        for (lost, expected, rate) in
            [(3, 3, 0), (4, 4, u16::MAX), (4, 16, 1 << 14), (4, 17, 0), (31, 126, 0)]
        {
            let mut meter = LossMeter::default();
            meter.on_lost(lost);
            meter.on_expected(expected);
            assert_eq!((meter.rate_so_far(), meter.rate), (rate, 0), "{lost} of {expected}");
        }
    }

    #[test]
    fn memory_is_bounded_whatever_arrives() {
        let mut all = Arrivals::new(at(0));
        for number in (1..100_000).step_by(2) {
            take(&mut all, 1, number);
        }
        assert!(all.blocks().count() <= MAX_RANGES);
        assert_eq!(all.end(), at(100_000));
    }
}
