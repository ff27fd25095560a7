//! A set of ranges of positions: bytes that arrived out of order or were selectively acknowledged, or received packet
//! numbers.

use std::collections::VecDeque;

use crate::position::Position;

/// The bytes `start .. end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: Position,
    /// The byte after the last.
    pub end: Position,
}

#[expect(clippy::len_without_is_empty, reason = "a range has at least one byte")]
impl Range {
    /// Bytes in the range.
    pub fn len(self) -> u64 {
        self.end - self.start
    }
}

/// Disjoint ranges in ascending order that never touch each other.
///
/// Lookup is a binary search. Adding or removing a range moves the ranges after it, whose number depends on the gaps,
/// not on the segments.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: VecDeque<Range>,
}

impl RangeSet {
    /// True if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of separate ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.ranges.iter().copied()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range> {
        self.ranges.front().copied()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range> {
        self.ranges.back().copied()
    }

    /// Removes and returns the lowest range.
    pub fn pop_first(&mut self) -> Option<Range> {
        self.ranges.pop_front()
    }

    /// The range that contains the byte at `position`.
    pub fn containing(&self, position: Position) -> Option<Range> {
        let index = self.ranges.partition_point(|range| range.end <= position);
        self.ranges.get(index).copied().filter(|range| range.start <= position)
    }

    /// True if every byte of `wanted` is in the set.
    pub fn covers(&self, wanted: Range) -> bool {
        self.containing(wanted.start).is_some_and(|range| wanted.end <= range.end)
    }

    /// The first part of `wanted` that is not in the set.
    pub fn first_gap(&self, wanted: Range) -> Option<Range> {
        let index = self.ranges.partition_point(|range| range.end <= wanted.start);
        let (start, next) = match self.ranges.get(index) {
            Some(range) if range.start <= wanted.start => (range.end, self.ranges.get(index + 1)),
            next => (wanted.start, next),
        };
        let end = next.map_or(wanted.end, |range| range.start.min(wanted.end));
        (start < end).then_some(Range { start, end })
    }

    /// Adds `range`, merges it with ranges that it touches, and returns the resulting range. Returns `None`, and
    /// changes nothing, if there would be more than `limit` ranges.
    pub fn insert(&mut self, range: Range, limit: usize) -> Option<Range> {
        debug_assert!(range.start < range.end, "a range is not empty");
        let from = self.ranges.partition_point(|other| other.end < range.start);
        let to = self.ranges.partition_point(|other| other.start <= range.end);
        if from == to {
            if self.ranges.len() >= limit {
                return None;
            }
            self.ranges.insert(from, range);
            return Some(range);
        }
        let joined = Range {
            start: range.start.min(self.ranges[from].start),
            end: range.end.max(self.ranges[to - 1].end),
        };
        self.ranges[from] = joined;
        self.ranges.drain(from + 1..to);
        Some(joined)
    }

    /// Removes every byte below `position`.
    pub fn remove_below(&mut self, position: Position) {
        while let Some(front) = self.ranges.front_mut() {
            if front.end > position {
                front.start = front.start.max(position);
                return;
            }
            self.ranges.pop_front();
        }
    }

    /// Removes all ranges.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::at;
    use proptest::prelude::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start: at(start), end: at(end) }
    }

    #[test]
    fn touching_ranges_join() {
        let mut set = RangeSet::default();
        assert_eq!(set.insert(range(10, 20), 9), Some(range(10, 20)));
        assert_eq!(set.insert(range(30, 40), 9), Some(range(30, 40)));
        assert_eq!(set.insert(range(20, 30), 9), Some(range(10, 40)));
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn a_full_set_takes_only_what_joins() {
        let mut set = RangeSet::default();
        assert!(set.insert(range(10, 20), 1).is_some());
        assert_eq!(set.insert(range(30, 40), 1), None);
        assert_eq!(set.insert(range(15, 25), 1), Some(range(10, 25)));
    }

    #[test]
    fn gaps_are_found_in_order() {
        let mut set = RangeSet::default();
        set.insert(range(10, 20), 9);
        set.insert(range(30, 40), 9);
        assert_eq!(set.first_gap(range(0, 50)), Some(range(0, 10)));
        assert_eq!(set.first_gap(range(10, 50)), Some(range(20, 30)));
        assert_eq!(set.first_gap(range(35, 50)), Some(range(40, 50)));
        assert_eq!(set.first_gap(range(12, 18)), None);
    }

    proptest! {
        /// The set agrees with a simple model: one flag per byte.
        #[test]
        fn the_set_equals_a_row_of_flags(spans in prop::collection::vec((0u64..60, 1u64..12), 1..30), cut in 0u64..72) {
            let mut set = RangeSet::default();
            let mut flags = [false; 72];
            for (start, len) in spans {
                set.insert(range(start, start + len), usize::MAX);
                flags[start as usize..(start + len) as usize].fill(true);
            }
            set.remove_below(at(cut));
            flags[..cut as usize].fill(false);
            for (byte, flag) in flags.iter().enumerate() {
                prop_assert_eq!(set.containing(at(byte as u64)).is_some(), *flag);
            }
            let ranges: Vec<_> = set.iter().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
