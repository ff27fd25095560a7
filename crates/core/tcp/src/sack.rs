//! The scoreboard: the segments that were sent, and which of them have arrived or are declared lost (RFC 6675 section
//! 3).
//!
//! It only stores this state. [`Scoreboard::detect_lost`] decides by SACKed data whether a segment is lost, and `timed`
//! by its time of sending; [`sender`](super::sender) decides which segment to send next.

mod timed;

use std::collections::VecDeque;

use tacit_congestion::rate::RateSampler;
use tacit_packet::position::Position;
use tacit_packet::ranges::{Range, RangeSet};
use tacit_packet::units::{Duration, Instant};
use timed::Timed;

/// "DupThresh ... is defined to be 3" (RFC 6675 section 2).
pub(crate) const DUP_THRESH: u32 = 3;

/// Selectively acknowledged.
const SACKED: u8 = 1;
/// Declared lost.
const LOST: u8 = 2;
/// Retransmitted since it was last declared lost; that transmission is considered in flight.
const RESENT: u8 = 4;
/// Sent more than once: it gives no round-trip time (Karn's rule).
const AMBIGUOUS: u8 = 8;

/// One transmitted segment, with the boundaries of its first transmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: Position,
    sent_at: Instant,
    len: u32,
    marks: u8,
}

impl Sent {
    fn end(&self) -> Position {
        self.start + u64::from(self.len)
    }

    fn has(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }

    /// Its contribution to SetPipe's count: once unless lost, plus once if retransmitted (RFC 6675 section 4).
    fn in_pipe(&self) -> u64 {
        if self.has(SACKED) {
            return 0;
        }
        u64::from(self.len) * (u64::from(!self.has(LOST)) + u64::from(self.has(RESENT)))
    }

    /// Sets `marks`, by which it is lost, and tells `rate` that the segment at index `place` is. Returns the bytes by which
    /// the pipe shrinks.
    fn lose(&mut self, marks: u8, place: usize, rate: &mut Option<Box<RateSampler>>) -> u64 {
        let before = self.in_pipe();
        self.marks = marks;
        let left = before - self.in_pipe();
        if left > 0
            && let Some(rate) = rate
        {
            rate.on_lost(place, u64::from(self.len));
        }
        left
    }
}

/// Result of a cumulative acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// Round-trip time of the oldest acknowledged segment, if none of them was ambiguous.
    pub oldest_rtt: Option<Duration>,
    /// Round-trip time of the newest.
    pub newest_rtt: Option<Duration>,
    /// Set if an acknowledged segment had been sent more than once: the time since its last transmission, the longest
    /// such time if there are several.
    pub ambiguous_for: Option<Duration>,
}

/// A segment to retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resend {
    index: u64,
    /// First byte.
    pub start: Position,
    /// Bytes of sequence space.
    pub len: u32,
}

impl Resend {
    /// The byte after the last.
    pub fn end(&self) -> Position {
        self.start + u64::from(self.len)
    }
}

/// Every segment between SND.UNA and SND.NXT with marks, and sums over them that are kept up to date.
///
/// Cost without loss: one push per sent segment and one pop per acknowledged segment. With loss, each mark is set at
/// most once per segment; cursors remember where searches ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// Contiguous, ascending.
    segments: VecDeque<Sent>,
    /// Number of segments removed from the front: `index - removed` is an index into `segments`.
    removed: u64,
    /// SACKed bytes, always whole segments.
    sacked: RangeSet,
    sacked_bytes: u64,
    pipe: u64,
    /// `detect_lost` has examined the segments before this index.
    examined: u64,
    /// HighRxt: no segment before this index needs a retransmission.
    resend_from: u64,
    /// Records sent and delivered data, if the congestion control needs rates.
    pub rate: Option<Box<RateSampler>>,
    /// Present if times of sending decide about loss (RFC 8985).
    timed: Option<Box<Timed>>,
    /// No segment at or above it has a mark.
    marked_below: Position,
}

impl Scoreboard {
    /// True if nothing is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Estimated bytes in the network (RFC 6675 SetPipe).
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// True if some outstanding bytes are SACKed.
    pub fn any_sacked(&self) -> bool {
        !self.sacked.is_empty()
    }

    /// Bytes SACKed and not yet acknowledged cumulatively.
    #[inline]
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Adds a segment of new data sent at `now`; it starts where the last one ended.
    #[inline]
    pub fn push(&mut self, start: Position, len: u32, now: Instant) {
        debug_assert!(self.segments.back().is_none_or(|last| last.end() == start));
        self.segments.push_back(Sent { start, sent_at: now, len, marks: 0 });
        if let Some(rate) = &mut self.rate {
            rate.on_sent(now, self.pipe);
        }
        self.pipe += u64::from(len);
    }

    /// True while every outstanding segment was sent once and has no marks, and segments need not be reported
    /// individually.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.rate.is_none()
            && self.timed.is_none()
            && self.segments.front().is_none_or(|first| first.start >= self.marked_below)
    }

    /// Removes everything below `una`.
    #[inline]
    pub fn acknowledge(&mut self, una: Position, now: Instant) -> Acknowledged {
        if self.is_plain() { self.acknowledge_plain(una, now) } else { self.acknowledge_each(una, now) }
    }

    /// [`acknowledge`](Self::acknowledge) for a board that [is plain](Self::is_plain): removes everything below `una`;
    /// only the first and the last removed segment matter for the result.
    fn acknowledge_plain(&mut self, una: Position, now: Instant) -> Acknowledged {
        let mut covered = Acknowledged::default();
        while let Some(front) = self.segments.front_mut().filter(|front| front.start < una) {
            let whole = front.end() <= una;
            let bytes = if whole { u64::from(front.len) } else { una - front.start };
            covered.bytes += bytes;
            self.pipe -= bytes;
            if !whole {
                front.start = una;
                front.len -= bytes as u32;
                break;
            }
            let age = now.saturating_since(front.sent_at);
            covered.oldest_rtt.get_or_insert(age);
            covered.newest_rtt = Some(age);
            self.segments.pop_front();
            self.removed += 1;
        }
        self.examined = self.examined.max(self.removed);
        self.resend_from = self.resend_from.max(self.removed);
        covered
    }

    /// Any segment that is outstanding now may have marks.
    fn note_marks(&mut self) {
        if let Some(last) = self.segments.back() {
            self.marked_below = last.end();
        }
    }

    /// [`acknowledge`](Self::acknowledge) for segments with any marks.
    fn acknowledge_each(&mut self, una: Position, now: Instant) -> Acknowledged {
        let mut covered = Acknowledged::default();
        let mut timed = self.timed.as_deref_mut();
        while let Some(front) = self.segments.front_mut() {
            if front.start >= una {
                break;
            }
            let before = front.in_pipe();
            if front.end() > una {
                // A peer may acknowledge part of a segment; the rest keeps its marks.
                let cut = (una - front.start) as u32;
                front.start = una;
                front.len -= cut;
                covered.bytes += u64::from(cut);
                self.pipe -= before - front.in_pipe();
                if front.has(SACKED) {
                    self.sacked_bytes -= u64::from(cut);
                } else if let Some(rate) = &mut self.rate {
                    rate.on_partly_delivered(u64::from(cut));
                }
                break;
            }
            covered.bytes += u64::from(front.len);
            self.pipe -= before;
            let age = now.saturating_since(front.sent_at);
            if front.has(AMBIGUOUS) {
                covered.ambiguous_for = covered.ambiguous_for.max(Some(age));
            }
            if front.has(SACKED) {
                // It arrived before this acknowledgment.
                self.sacked_bytes -= u64::from(front.len);
                if let Some(timed) = &mut timed {
                    timed.rack.segments_sacked -= 1;
                }
            } else {
                if let Some(timed) = &mut timed {
                    timed.on_delivered(front, true);
                }
                covered.oldest_rtt.get_or_insert(age);
                covered.newest_rtt = Some(age);
            }
            if let Some(rate) = &mut self.rate {
                if !front.has(SACKED) {
                    rate.on_delivered(0, u64::from(front.len));
                }
                rate.forget_first();
            }
            self.segments.pop_front();
            self.removed += 1;
        }
        if covered.ambiguous_for.is_some() {
            covered.oldest_rtt = None;
            covered.newest_rtt = None;
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(una);
        }
        self.examined = self.examined.max(self.removed);
        self.resend_from = self.resend_from.max(self.removed);
        covered
    }

    /// Marks the segments that are completely inside `block`; returns the number of bytes that were not marked before.
    pub fn mark_sacked(&mut self, block: Range) -> u64 {
        if self.sacked.covers(block) {
            return 0;
        }
        let from = self.segments.partition_point(|sent| sent.start < block.start);
        let to = self.segments.partition_point(|sent| sent.end() <= block.end);
        if from >= to {
            return 0;
        }
        let mut rest = Range { start: self.segments[from].start, end: self.segments[to - 1].end() };
        let whole = rest;
        let mut news = 0;
        self.note_marks();
        while let Some(gap) = self.sacked.first_gap(rest) {
            news += gap.len();
            self.mark_gap(gap);
            rest.start = gap.end;
            if rest.start >= rest.end {
                break;
            }
        }
        // Limited by the number of segments, because every range consists of whole segments.
        self.sacked.insert(whole, usize::MAX);
        self.sacked_bytes += news;
        news
    }

    fn mark_gap(&mut self, gap: Range) {
        let from = self.segments.partition_point(|sent| sent.start < gap.start);
        for (place, sent) in (from..).zip(self.segments.range_mut(from..)) {
            if sent.start >= gap.end {
                break;
            }
            self.pipe -= sent.in_pipe();
            sent.marks |= SACKED;
            if let Some(rate) = &mut self.rate {
                rate.on_delivered(place, u64::from(sent.len));
            }
            if let Some(timed) = &mut self.timed {
                timed.rack.segments_sacked += 1;
                timed.on_delivered(sent, false);
            }
        }
    }

    /// IsLost (RFC 6675 section 4) for all segments at once: those with three separate SACKed ranges, or more than two
    /// full segments of SACKed bytes, above them. A lost segment remains lost.
    ///
    /// Lost segments are always below one edge, so only segments that the edge has newly passed are marked.
    pub fn detect_lost(&mut self, mss: u32) {
        let mut bytes = 0;
        let edge = self.sacked.iter().rev().zip(1..).find_map(|(range, ranges)| {
            bytes += range.len();
            let enough = ranges >= DUP_THRESH || bytes > u64::from((DUP_THRESH - 1) * mss);
            enough.then_some(range.start)
        });
        let Some(edge) = edge else { return };
        self.note_marks();
        let from = (self.examined - self.removed) as usize;
        for (place, sent) in (from..).zip(self.segments.range_mut(from..)) {
            if sent.start >= edge {
                break;
            }
            self.examined += 1;
            if !sent.has(SACKED | LOST) {
                self.pipe -= sent.lose(sent.marks | LOST, place, &mut self.rate);
            }
        }
    }

    /// Declares the first outstanding segment lost, including an earlier retransmission of it, after three duplicate
    /// ACKs or a partial ACK. HighRxt moves back for it (RFC 6675 section 5 step (4.3)).
    pub fn mark_first_lost(&mut self) {
        self.note_marks();
        let Some(front) = self.segments.front_mut() else { return };
        if !front.has(SACKED) {
            self.pipe -= front.lose((front.marks | LOST) & !RESENT, 0, &mut self.rate);
            self.resend_from = self.removed;
        }
    }

    /// After a timeout nothing is considered in flight: all data except SACKed data is lost, including retransmissions.
    ///
    /// SACK information is kept (RFC 6675 section 5.1 allows this with a check for reneging) unless the first segment
    /// is SACKed. A peer that had it would have acknowledged it, so the peer discarded it, and all of its SACKs are
    /// invalid (RFC 2018 section 8).
    pub fn mark_all_lost(&mut self) {
        self.note_marks();
        let reneged = self.segments.front().is_some_and(|sent| sent.has(SACKED));
        if reneged {
            self.sacked.clear();
            self.sacked_bytes = 0;
        }
        for (place, sent) in self.segments.iter_mut().enumerate() {
            if reneged {
                sent.marks &= !SACKED;
            }
            if !sent.has(SACKED) {
                sent.lose((sent.marks | LOST) & !RESENT, place, &mut self.rate);
            }
        }
        self.pipe = 0;
        self.examined = self.removed + self.segments.len() as u64;
        self.resend_from = self.removed;
    }

    /// Nothing was lost after all: every segment that is not SACKed counts as in flight, once.
    pub fn unmark_lost(&mut self) {
        self.pipe = 0;
        for sent in &mut self.segments {
            sent.marks &= !(LOST | RESENT);
            self.pipe += sent.in_pipe();
        }
        self.examined = self.removed;
        self.resend_from = self.removed;
        if let Some(timed) = &mut self.timed {
            timed.list_copies(&self.segments, self.removed);
        }
    }

    /// The byte after the highest SACKed one that is not acknowledged cumulatively.
    pub fn highest_sacked(&self) -> Option<Position> {
        self.sacked.last().map(|range| range.end)
    }

    /// The lowest lost segment that was not retransmitted: NextSeg rule (1).
    pub fn next_lost(&mut self) -> Option<Resend> {
        self.next_unsacked().filter(|(_, lost)| *lost).map(|(resend, _)| resend)
    }

    /// The lowest segment not retransmitted that has SACKed data above it: NextSeg rule (3).
    pub fn next_below_sacked(&mut self) -> Option<Resend> {
        let highest = self.sacked.last()?.end;
        self.next_unsacked().map(|(resend, _)| resend).filter(|resend| resend.start < highest)
    }

    /// The highest outstanding segment that is not SACKED: NextSeg rule (4).
    pub fn last_unsacked(&self) -> Option<Resend> {
        let place = self.segments.iter().rposition(|sent| !sent.has(SACKED))?;
        Some(self.resend_at(place))
    }

    /// The first segment that is neither SACKed nor retransmitted, and whether it is declared lost. Lost segments are
    /// below one edge, so if this one is not lost, none above it is.
    fn next_unsacked(&mut self) -> Option<(Resend, bool)> {
        loop {
            let place = (self.resend_from - self.removed) as usize;
            let sent = self.segments.get(place)?;
            if !sent.has(SACKED | RESENT) {
                return Some((self.resend_at(place), sent.has(LOST)));
            }
            self.resend_from += 1;
        }
    }

    fn resend_at(&self, place: usize) -> Resend {
        let sent = &self.segments[place];
        Resend { index: self.removed + place as u64, start: sent.start, len: sent.len }
    }

    /// Records that `segment` was retransmitted at `now`; HighRxt moves past it.
    pub fn resent(&mut self, segment: Resend, now: Instant) {
        self.note_marks();
        let place = (segment.index - self.removed) as usize;
        let sent = &mut self.segments[place];
        if let Some(rate) = &mut self.rate {
            rate.on_resent(place, now, self.pipe);
        }
        self.pipe -= sent.in_pipe();
        sent.marks |= RESENT | AMBIGUOUS;
        sent.sent_at = now;
        self.pipe += sent.in_pipe();
        self.resend_from = segment.index + 1;
        if let Some(timed) = &mut self.timed {
            timed.on_resent(segment.index, now);
        }
    }

    /// Records a rescue retransmission, which changes neither HighRxt nor the pipe (RFC 6675 NextSeg rule (4)).
    pub fn rescued(&mut self, segment: Resend, now: Instant) {
        self.note_marks();
        let place = (segment.index - self.removed) as usize;
        let sent = &mut self.segments[place];
        sent.marks |= AMBIGUOUS;
        sent.sent_at = now;
        if let Some(rate) = &mut self.rate {
            rate.on_resent(place, now, self.pipe);
        }
        if let Some(timed) = &mut self.timed {
            timed.on_resent(segment.index, now);
        }
    }

    /// The pipe, counted from scratch to check the running sum.
    #[cfg(test)]
    fn recount(&self) -> (u64, u64) {
        let sacked = |sent: &Sent| if sent.has(SACKED) { u64::from(sent.len) } else { 0 };
        (self.segments.iter().map(Sent::in_pipe).sum(), self.segments.iter().map(sacked).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rack::Rack;
    use proptest::prelude::*;
    use tacit_packet::position::at;

    const MSS: u32 = 100;

    fn block(start: u64, end: u64) -> Range {
        Range { start: at(start), end: at(end) }
    }

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for index in 0..segments {
            board.push(at(index * u64::from(MSS)), MSS, Instant::from_nanos(index));
        }
        board
    }

    #[test]
    fn three_segments_above_make_a_loss() {
        let mut board = board(10);
        board.mark_sacked(block(100, 300));
        board.detect_lost(MSS);
        assert_eq!((board.pipe(), board.next_lost()), (800, None));
        board.mark_sacked(block(300, 400));
        board.detect_lost(MSS);
        assert_eq!(board.pipe(), 600);
        assert_eq!(board.next_lost().map(|resend| resend.start), Some(at(0)));
    }

    #[test]
    fn three_separate_ranges_make_a_loss_however_small() {
        let mut board = board(10);
        for start in [100, 300, 500] {
            board.mark_sacked(block(start, start + 100));
        }
        board.detect_lost(1000);
        let lost = board.next_lost().expect("the first segment has three ranges above");
        assert_eq!(lost.start, at(0));
        board.resent(lost, Instant::ZERO);
        // Only two ranges are above the segment at 200, so only rule (3) can select it.
        assert_eq!(board.next_lost(), None);
        assert_eq!(board.next_below_sacked().map(|resend| resend.start), Some(at(200)));
    }

    #[test]
    fn blocks_that_cut_segments_count_only_whole_ones() {
        let mut board = board(4);
        assert_eq!(board.mark_sacked(block(50, 250)), 100);
        assert_eq!(board.mark_sacked(block(120, 180)), 0);
        assert_eq!(board.sacked_bytes(), 100);
    }

    #[test]
    fn a_peer_that_reneges_loses_its_credit() {
        let mut board = board(4);
        board.mark_sacked(block(0, 200));
        board.mark_all_lost();
        assert_eq!(board.sacked_bytes(), 0);
        assert_eq!(board.next_lost().map(|resend| resend.start), Some(at(0)));
    }

    proptest! {
        /// After any events in any order, the running sums equal a recount.
        #[test]
        fn sums_stay_true(
            by_time in any::<bool>(),
            steps in prop::collection::vec((0u8..8, 0u64..2500, 1u64..600), 1..60),
        ) {
            let mut board = Scoreboard::default();
            let mut now = Instant::ZERO;
            if by_time {
                board.watch_times(Rack::new(at(0), None, now));
            }
            let mut next = 0;
            let mut una = 0;
            for (kind, start, len) in steps {
                match kind {
                    0 | 1 => { board.push(at(next), len as u32, now); next += len; }
                    2 if by_time => {
                        board.rack().expect("times are watched").begin_ack(now, None);
                        board.mark_sacked(block(start, start + len));
                        board.detect_lost_by_time(now, false, None);
                    }
                    2 => { board.mark_sacked(block(start, start + len)); board.detect_lost(MSS); }
                    3 => if let Some(lost) = board.next_lost() { board.resent(lost, now); },
                    4 => {
                        una = (una + len).min(next);
                        let mut other = board.clone();
                        let each = other.acknowledge_each(at(una), now);
                        // A plain board may use the fast path for the ACK, with the same result.
                        prop_assert_eq!(board.acknowledge(at(una), now), each);
                        prop_assert_eq!(format!("{board:?}"), format!("{other:?}"));
                    }
                    5 => if by_time { board.mark_overdue_lost(now, None); } else { board.mark_all_lost(); },
                    7 if start < 500 => board.unmark_lost(),
                    6 => now += Duration::from_nanos(len),
                    _ => if let Some(hole) = board.next_below_sacked().filter(|_| !by_time) { board.resent(hole, now); },
                }
                prop_assert_eq!((board.pipe(), board.sacked_bytes()), board.recount());
            }
        }
    }
}
