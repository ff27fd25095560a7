//! Which packet numbers arrived: duplicates, holes and when they count as lost, and the loss rate of the path.

use std::collections::VecDeque;

use crate::congestion::position::Position;
use crate::ranges::{Range, RangeSet};
use crate::units::{Duration, Instant};

/// Separate ranges that are remembered at most; of more, the lowest is forgotten.
const MAX_RANGES: usize = 4096;

/// Packets after which the loss rate is worked out anew; half of the counts stays.
const LOSS_WINDOW: u64 = 128;

/// Round-trip times without reordering after which a settling time is given up (RFC 8985 section 6.2, step 4: 16
/// recoveries).
const SETTLED_AFTER: u64 = 16;

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
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Every number below arrived, or is no longer asked for.
    cumulative: Position,
    /// Numbers that arrived above, without touching it.
    above: RangeSet,
    /// The number after the largest that arrived.
    end: Position,
    /// Holes that may still be filled by reordering, lowest first, with the time they count as lost.
    settling: VecDeque<(Range, Instant)>,
    settle: Duration,
    /// When a settling time is given up, unless packets come late again.
    settle_until: Instant,
    loss: LossMeter,
}

impl Arrivals {
    pub fn new(first: Position) -> Self {
        Self {
            cumulative: first,
            above: RangeSet::default(),
            end: first,
            settling: VecDeque::new(),
            settle: Duration::ZERO,
            settle_until: Instant::ZERO,
            loss: LossMeter::default(),
        }
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
        self.settling.front().map_or(self.end, |(hole, _)| hole.start)
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

    /// The kind of arrival that `number` would be, were it taken in.
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
        if self.settling.iter().any(|(hole, _)| hole.start <= number && number < hole.end) {
            Arrival::FillsHole
        } else {
            Arrival::Late
        }
    }

    /// Takes in `number`, which is no duplicate, over a path of `rtt_min`. Returns the hole it opened.
    pub fn take(&mut self, now: Instant, number: Position, rtt_min: Duration) -> Option<Range> {
        if number == self.end {
            self.end = number + 1;
            self.loss.on_expected(1);
            self.add(number);
            return None;
        }
        if number > self.end {
            let hole = Range { start: self.end, end: number };
            self.end = number + 1;
            self.loss.on_expected(hole.len() + 1);
            self.loss.on_lost(hole.len());
            self.add(number);
            if self.settle > Duration::ZERO && now >= self.settle_until {
                self.settle = Duration::ZERO;
            }
            if self.settle > Duration::ZERO {
                self.settling.push_back((hole, now + self.settle));
            }
            return Some(hole);
        }
        self.loss.on_found();
        if self.classify(number) == Arrival::Late {
            // RFC 8985 section 6.2: by a quarter of the round trip each time, up to all of it.
            self.settle = (self.settle + rtt_min / 4).min(rtt_min);
            self.settle_until = now + rtt_min.saturating_mul(SETTLED_AFTER);
        }
        self.add(number);
        None
    }

    #[inline]
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
        while self.settling.front().is_some_and(|(hole, _)| hole.end <= self.cumulative) {
            self.settling.pop_front();
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

    /// When the first settling hole counts as lost.
    pub fn next_settled(&self) -> Option<Instant> {
        self.settling.front().map(|(_, at)| *at)
    }

    /// The next hole whose settling time is over by `now`, or the rest of it.
    pub fn settled(&mut self, now: Instant) -> Option<Range> {
        while let Some((hole, at)) = self.settling.front().copied() {
            if now < at {
                return None;
            }
            self.settling.pop_front();
            let hole = Range { start: hole.start.max(self.cumulative), end: hole.end };
            if hole.start < hole.end
                && let Some(left) = self.above.first_gap(hole)
            {
                return Some(left);
            }
        }
        None
    }
}

/// Packets lost among the latest.
#[derive(Clone, Debug, Default)]
struct LossMeter {
    expected: u64,
    lost: u64,
    rate: u16,
}

impl LossMeter {
    #[inline]
    fn on_expected(&mut self, packets: u64) {
        self.expected += packets;
        if self.expected >= LOSS_WINDOW {
            self.rate = ((self.lost << 16) / self.expected).min(u64::from(u16::MAX)) as u16;
            self.expected /= 2;
            self.lost /= 2;
        }
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
    use crate::congestion::position::at;

    const RTT: Duration = Duration::from_millis(40);

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn arrivals(numbers: &[u64]) -> Arrivals {
        let mut arrivals = Arrivals::new(at(1));
        for number in numbers {
            arrivals.take(millis(*number), at(*number), RTT);
        }
        arrivals
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
    fn a_late_packet_makes_the_next_hole_settle() {
        let mut arrivals = arrivals(&[1, 3]);
        assert_eq!(arrivals.classify(at(2)), Arrival::Late);
        assert_eq!(arrivals.take(millis(4), at(2), RTT), None);
        assert!(arrivals.take(millis(5), at(5), RTT).is_some());
        // A quarter of the round trip: until then the hole does not count as lost.
        assert_eq!(spans(arrivals.holes()), []);
        assert_eq!(arrivals.next_settled(), Some(millis(15)));
        assert_eq!(arrivals.settled(millis(14)), None);
        assert_eq!(arrivals.classify(at(4)), Arrival::FillsHole);
        assert_eq!(arrivals.settled(millis(15)), Some(Range { start: at(4), end: at(5) }));
        assert_eq!(spans(arrivals.holes()), [(4, 4)]);
    }

    #[test]
    fn a_hole_that_fills_while_it_settles_is_none() {
        let mut arrivals = arrivals(&[1, 3]);
        arrivals.take(millis(4), at(2), RTT);
        arrivals.take(millis(5), at(6), RTT);
        arrivals.take(millis(6), at(4), RTT);
        assert_eq!(arrivals.settled(millis(20)), Some(Range { start: at(5), end: at(6) }));
        arrivals.take(millis(21), at(5), RTT);
        assert_eq!(arrivals.cumulative(), at(7));
    }

    #[test]
    fn the_loss_rate_is_of_the_latest_packets() {
        let mut all = Arrivals::new(at(0));
        for number in (0..2000).filter(|number| number % 10 != 3) {
            all.take(millis(number), at(number), RTT);
        }
        let tenth = 65_536 / 10;
        assert!((i32::from(all.loss()) - tenth).abs() < tenth / 8, "{}", all.loss());
        for number in 2000..4000 {
            all.take(millis(number), at(number), RTT);
        }
        assert_eq!(all.loss(), 0);
    }

    #[test]
    fn memory_is_bounded_whatever_arrives() {
        let mut all = Arrivals::new(at(0));
        for number in (1..100_000).step_by(2) {
            all.take(millis(1), at(number), RTT);
        }
        assert!(all.blocks().count() <= MAX_RANGES);
        assert_eq!(all.end(), at(100_000));
    }
}
