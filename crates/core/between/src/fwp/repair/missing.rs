//! The missing bytes in order, and the requests for them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Range, RequestId};
use tacit_packet::units::Instant;

/// A range of missing bytes, stored under its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub end: u64,
    /// The request that should deliver it.
    pub asked: Option<RequestId>,
    /// Number of requests that failed to.
    pub attempts: u32,
    /// When it must be there; `None` before the first request.
    pub deadline: Option<Instant>,
    pub not_before: Instant,
}

/// Disjoint parts, by their start. Adjacent parts with and without a request remain separate.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    parts: BTreeMap<u64, Part>,
    /// Starts of the parts without a request: few, among thousands with one.
    unasked: BTreeSet<u64>,
}

impl Missing {
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &Part)> {
        self.parts.iter().map(|(start, part)| (*start, part))
    }

    /// Parts without a request.
    pub fn unasked(&self) -> impl Iterator<Item = (u64, &Part)> {
        self.unasked.iter().filter_map(|start| Some((*start, self.parts.get(start)?)))
    }

    /// Number of parts without a request.
    pub fn unasked_len(&self) -> usize {
        self.unasked.len()
    }

    /// Parts that start at or after `byte`.
    pub fn from(&self, byte: u64) -> impl Iterator<Item = (u64, &Part)> {
        self.parts.range(byte..).map(|(start, part)| (*start, part))
    }

    /// The part that contains `byte`, or else the next one.
    pub fn next(&self, byte: u64) -> Option<(u64, &Part)> {
        let before = self.parts.range(..=byte).next_back().filter(|(_, part)| part.end > byte);
        before.or_else(|| self.parts.range(byte..).next()).map(|(start, part)| (*start, part))
    }

    /// The missing parts of `range`.
    pub fn within(&self, range: Range) -> impl Iterator<Item = Range> + '_ {
        let first = self.next(range.start).map_or(range.end, |(start, _)| start);
        self.parts
            .range(first..)
            .map_while(move |(start, part)| Range { start: *start, end: part.end }.common(range))
    }

    /// Adds what is not yet missing of `range`, and returns the number of added bytes.
    pub fn add(&mut self, range: Range) -> u64 {
        let known: Vec<_> = self.within(range).collect();
        let mut added = 0;
        let mut at = range.start;
        let ends = known.into_iter().chain([Range { start: range.end, end: range.end }]);
        for next in ends {
            if let Some(gap) = Range::new(at, next.start) {
                added += gap.bytes();
                self.insert_fresh(gap);
            }
            at = next.end;
        }
        added
    }

    /// A part without a request joins such a part that ends at its start, so that consecutive lost segments form one
    /// hole.
    fn insert_fresh(&mut self, gap: Range) {
        if let Some((_, before)) = self.parts.range_mut(..gap.start).next_back()
            && before.end == gap.start
            && before.asked.is_none()
            && before.deadline.is_none()
        {
            before.end = gap.end;
            return;
        }
        let part = Part { end: gap.end, asked: None, attempts: 0, deadline: None, not_before: Instant::ZERO };
        self.parts.insert(gap.start, part);
        self.unasked.insert(gap.start);
    }

    /// Marks the missing parts in `range` as requested, splitting the last part at the end; returns the number of
    /// parts.
    pub fn mark_requested(&mut self, range: Range, id: RequestId, deadline: Instant) -> usize {
        self.cut(range.start);
        self.cut(range.end);
        let mut asked = 0;
        for (start, part) in self.parts.range_mut(range.start..range.end) {
            self.unasked.remove(start);
            part.asked = Some(id);
            part.deadline.get_or_insert(deadline);
            asked += 1;
        }
        asked
    }

    /// Splits the part that contains `byte` in two.
    fn cut(&mut self, byte: u64) -> Option<RequestId> {
        let (_, part) = self.parts.range_mut(..byte).next_back()?;
        if part.end <= byte {
            return None;
        }
        let behind = *part;
        part.end = byte;
        self.parts.insert(byte, behind);
        if behind.asked.is_none() {
            self.unasked.insert(byte);
        }
        behind.asked
    }

    /// Removes `range`, and returns how many bytes of it were missing. `changed` is called for every request whose
    /// number of parts changes.
    pub fn remove(&mut self, range: Range, mut changed: impl FnMut(RequestId, isize)) -> u64 {
        for end in [range.start, range.end] {
            if let Some(id) = self.cut(end) {
                changed(id, 1);
            }
        }
        let mut removed = 0;
        while let Some((start, part)) =
            self.parts.range(range.start..range.end).next().map(|(start, part)| (*start, *part))
        {
            self.parts.remove(&start);
            self.unasked.remove(&start);
            removed += part.end - start;
            if let Some(id) = part.asked {
                changed(id, -1);
            }
        }
        removed
    }

    /// Releases the parts in `range` that `id` requested, and returns their number.
    pub fn give_back(&mut self, id: RequestId, range: Range, mut freed: impl FnMut(u64, &mut Part)) -> usize {
        let mut left = 0;
        let parts = self.parts.range_mut(range.start..range.end);
        for (start, part) in parts.filter(|(_, part)| part.asked == Some(id)) {
            part.asked = None;
            self.unasked.insert(*start);
            freed(*start, part);
            left += 1;
        }
        left
    }
}
