//! Reassembly: which bytes beyond RCV.NXT have arrived, and which of them to report first.

use tacit_packet::position::Position;
use tacit_packet::ranges::{Range, RangeSet};
use tacit_packet::tcp::{SackBlocks, SackRange};

/// Most separate ranges. If a peer sends every other byte, the list would otherwise become as long as the window. Data
/// that needs another range is dropped, as if the network had lost it.
pub(crate) const MAX_RANGES: usize = 1024;

/// Data that arrived out of order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReorderQueue {
    ranges: RangeSet,
    /// A byte of each recently changed range, most recent first.
    recent: [Option<Position>; SackBlocks::MAX],
}

impl ReorderQueue {
    /// True if no data waits for a gap to be filled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of separate ranges.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Bytes in the queue.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.len()).sum()
    }

    /// The byte after the highest one in the queue.
    pub fn highest(&self) -> Option<Position> {
        self.ranges.last().map(|range| range.end)
    }

    /// The range that contains the byte at `position`.
    pub fn held_at(&self, position: Position) -> Option<Range> {
        self.ranges.containing(position)
    }

    /// Bytes of the highest range; zero if there is none.
    pub fn last_len(&self) -> u64 {
        self.ranges.last().map_or(0, Range::len)
    }

    /// The first missing byte at or above `from` that is below a received one.
    pub fn first_missing(&self, from: Position) -> Option<Position> {
        let end = self.highest().filter(|end| from < *end)?;
        self.ranges.first_gap(Range { start: from, end }).map(|gap| gap.start)
    }

    /// Keeps `range` until the gap below it is filled; returns false if it had to be dropped.
    pub fn hold(&mut self, range: Range) -> bool {
        let Some(joined) = self.ranges.insert(range, MAX_RANGES) else { return false };
        self.remember(joined, range.start);
        true
    }

    /// Moves the range that contains `byte` to the front; a range merged into `joined` is no longer a block of its own.
    fn remember(&mut self, joined: Range, byte: Position) {
        let mut first = Some(byte);
        for slot in &mut self.recent {
            let previous = core::mem::replace(slot, first);
            match previous {
                Some(other) if other < joined.start || other >= joined.end => first = previous,
                // Empty, or part of the first range: the entries after it do not move.
                _ => return,
            }
        }
    }

    /// Removes the data that continues `rcv_nxt` without a gap; returns the new RCV.NXT.
    pub fn advance(&mut self, rcv_nxt: Position) -> Position {
        let mut next = rcv_nxt;
        while let Some(first) = self.ranges.first() {
            if first.start > next {
                break;
            }
            next = next.max(first.end);
            self.ranges.pop_first();
        }
        if self.ranges.is_empty() {
            self.recent = [None; SackBlocks::MAX];
        }
        next
    }

    /// SACK blocks, at most `room`: first the range with the latest segment, then those reported
    /// most recently (RFC 2018 section 4).
    pub fn blocks(&self, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        if self.ranges.is_empty() {
            return blocks;
        }
        let recent = self.recent.iter().flatten().filter_map(|byte| self.ranges.containing(*byte));
        for range in recent.chain(self.ranges.iter()) {
            if blocks.as_slice().len() >= room.min(SackBlocks::MAX) {
                break;
            }
            let block = SackRange { start: range.start.wire(), end: range.end.wire() };
            if !blocks.as_slice().contains(&block) {
                blocks.push(block);
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::position::at;

    fn range(start: u64, end: u64) -> Range {
        Range { start: at(start), end: at(end) }
    }

    fn starts(queue: &ReorderQueue, room: usize) -> Vec<u32> {
        queue.blocks(room).as_slice().iter().map(|block| block.start.0).collect()
    }

    #[test]
    fn the_latest_range_is_reported_first() {
        let mut queue = ReorderQueue::default();
        for start in [100, 300, 500, 700] {
            assert!(queue.hold(range(start, start + 100)));
        }
        assert_eq!(starts(&queue, 3), [700, 500, 300]);
        queue.hold(range(400, 450));
        assert_eq!(starts(&queue, 4), [300, 700, 500, 100]);
    }

    #[test]
    fn joined_ranges_are_reported_once() {
        let mut queue = ReorderQueue::default();
        for start in [100, 300, 200] {
            queue.hold(range(start, start + 100));
        }
        assert_eq!(starts(&queue, 4), [100]);
        assert_eq!(queue.advance(at(100)), at(400));
        assert!(queue.is_empty());
    }

    #[test]
    fn ranges_are_bounded() {
        let mut queue = ReorderQueue::default();
        for index in 1..=MAX_RANGES as u64 {
            assert!(queue.hold(range(index * 2, index * 2 + 1)));
        }
        assert!(!queue.hold(range(1_000_000, 1_000_001)));
        assert_eq!(queue.len(), MAX_RANGES);
    }
}
