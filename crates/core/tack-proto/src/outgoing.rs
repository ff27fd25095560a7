//! Streams that are sent: bytes written, bytes that wait to be sent again, bytes that the peer has.

use std::collections::VecDeque;

use super::incoming::START;
use super::streams::{Half, StreamEvent, Table, news};
use tacit_packet::position::Position;
use tacit_packet::ranges::{Range, RangeSet};
use tacit_packet::tack::packet::{Control, StreamId};
use tacit_packet::units::Instant;

/// Bytes of a stream that travel in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub stream: StreamId,
    pub start: Position,
    pub len: u32,
    pub fin: bool,
}

impl Chunk {
    fn end(self) -> Position {
        self.start + u64::from(self.len)
    }
}

#[derive(Clone, Debug, Default)]
struct Stream {
    /// The end of the written bytes; a closed stream ends there.
    written: Position,
    closed: bool,
    /// The first byte that was never sent.
    next: Position,
    fin_sent: bool,
    fin_acked: bool,
    /// Every byte below is acknowledged, and those in `above`.
    acked: Position,
    above: RangeSet,
    /// The peer's limit.
    limit: Position,
    /// In the line of those with something new to send.
    queued: bool,
    /// It has something new to send, which its limit holds.
    held: bool,
    /// When its limit is asked for if it stays held.
    request_at: Option<Instant>,
    /// Given up for a reason of the application, which the peer has heard of.
    reset: Option<u32>,
    reset_acked: bool,
    /// The peer wants no more of it.
    stopped: Option<u32>,
    news: u8,
}

impl Half for Stream {
    fn news(&mut self) -> &mut u8 {
        &mut self.news
    }
}

/// All streams of one direction.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    streams: Table<Stream>,
    /// Streams with something new to send that their own limit does not hold, whose turn it is first.
    line: VecDeque<StreamId>,
    /// Streams that a limit of their own has come to hold.
    held: VecDeque<StreamId>,
    /// Lost chunks.
    again: VecDeque<Chunk>,
    stream_limit: u64,
    /// Bytes of all streams that were sent, and that may be.
    sent: u64,
    limit: u64,
    /// Bytes that the peer has, of all streams.
    acked: u64,
    unsent: u64,
    /// Streams with written data that the peer lacks, and those that are not over.
    undone: usize,
    unfinished: usize,
    /// Stream 0 ends when all others are over: then no other is to come.
    ending: bool,
    /// Streams that are opened are closed at once.
    closing: bool,
}

impl Outgoing {
    pub fn new() -> Self {
        Self {
            streams: Table::new(Stream::new(0)),
            line: VecDeque::new(),
            held: VecDeque::new(),
            again: VecDeque::new(),
            stream_limit: 0,
            sent: 0,
            limit: 0,
            acked: 0,
            unsent: 0,
            undone: 0,
            unfinished: 1,
            ending: false,
            closing: false,
        }
    }

    /// The peer states its limits at the start, of all streams and of each.
    pub fn open(&mut self, limit: u64, stream_limit: u64) {
        self.limit = limit;
        self.stream_limit = stream_limit;
        // No other is open before.
        self.update(StreamId(0), |stream| stream.limit = stream.limit.max(START + stream_limit));
        self.queue(StreamId(0));
    }

    /// `id` was opened.
    pub fn insert(&mut self, id: StreamId) {
        self.streams.insert(id, Stream::new(self.stream_limit));
        self.unfinished += 1;
        if self.closing {
            self.close(id);
        }
    }

    /// Changes a stream, and with it the counts of all; `None` where there is none.
    fn update<R>(&mut self, id: StreamId, change: impl FnOnce(&mut Stream) -> R) -> Option<R> {
        let stream = self.streams.get_mut(id)?;
        let (was_done, was_finished) = (stream.is_done(), stream.is_finished());
        let result = change(stream);
        let (done, finished) = (stream.is_done(), stream.is_finished());
        self.undone = self.undone + usize::from(!done) - usize::from(!was_done);
        self.unfinished = self.unfinished + usize::from(!finished) - usize::from(!was_finished);
        if finished && !was_finished {
            self.streams.queue_event(id, news::FINISHED);
            self.end_first();
        }
        Some(result)
    }

    /// Ends stream 0 where that was asked for and the others are over.
    fn end_first(&mut self) {
        if self.ending && self.unfinished == 1 && !self.streams.zero().closed {
            self.update(StreamId(0), |stream| stream.closed = true);
            self.queue(StreamId(0));
        }
    }

    /// Adds `bytes` to a stream; ignored after [`close`](Self::close).
    pub fn write(&mut self, id: StreamId, bytes: u64) {
        if id == StreamId(0) && self.ending {
            return;
        }
        let added = self.update(id, |stream| {
            if stream.closed {
                return 0;
            }
            let before = stream.written;
            stream.written = before.saturating_add(bytes);
            stream.written - before
        });
        self.unsent = self.unsent.saturating_add(added.unwrap_or(0));
        self.queue(id);
    }

    /// The stream ends behind the written bytes; stream 0 when the others are over as well.
    pub fn close(&mut self, id: StreamId) {
        if id == StreamId(0) {
            self.ending = true;
            return self.end_first();
        }
        self.update(id, |stream| stream.closed = true);
        self.queue(id);
    }

    /// Ends every stream.
    pub fn close_all(&mut self) {
        self.closing = true;
        for id in self.streams.numbers() {
            self.close(id);
        }
        self.close(StreamId(0));
    }

    /// True once every stream was ended.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// True when no stream may be opened any more.
    pub fn is_ending(&self) -> bool {
        self.ending
    }

    /// Gives `id` up. Returns the message for the peer, where there is something to give up.
    pub fn reset(&mut self, id: StreamId, code: u32) -> Option<Control> {
        let (unsent, end) = self.update(id, |stream| {
            if stream.reset.is_some() || stream.is_finished() {
                return None;
            }
            let unsent = stream.written - stream.next;
            stream.reset = Some(code);
            stream.closed = true;
            stream.written = stream.next;
            stream.above.clear();
            Some((unsent, stream.next))
        })??;
        self.unsent -= unsent;
        Some(Control::Reset { stream: id, code, end: end.wire() })
    }

    /// The peer wants no more of `id`. Returns the message in turn (RFC 9000 section 3.5).
    pub fn on_stop(&mut self, id: StreamId, code: u32) -> Option<Control> {
        let stream = self.streams.get_mut(id)?;
        if stream.is_finished() || stream.stopped.is_some() {
            return None;
        }
        stream.stopped = Some(code);
        self.streams.queue_event(id, news::STOPPED);
        self.reset(id, code)
    }

    /// The peer knows that `id` was reset.
    pub fn on_reset_acked(&mut self, id: StreamId) {
        self.update(id, |stream| stream.reset_acked = true);
    }

    /// True where a lost reset of `id` is of use.
    pub fn is_resetting(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.reset.is_some() && !stream.reset_acked)
    }

    /// True when nothing of `id` is to be sent or reported.
    pub fn is_over(&self, id: StreamId) -> bool {
        self.streams.get(id).is_none_or(|stream| stream.is_finished() && stream.news == 0)
    }

    /// `id` is over in both directions.
    pub fn forget(&mut self, id: StreamId) {
        self.streams.remove(id);
    }

    /// The next event of a stream.
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        let (id, kind) = self.streams.next_news()?;
        Some(match kind {
            news::WRITABLE => StreamEvent::Writable(id),
            news::FINISHED => StreamEvent::Finished(id),
            _ => {
                StreamEvent::Stopped(id, self.streams.get(id).and_then(|stream| stream.stopped).unwrap_or(0))
            }
        })
    }

    /// Bytes of `id` that the peer has without a gap before them.
    pub fn acked_of(&self, id: StreamId) -> u64 {
        self.streams.get(id).map_or(0, |stream| stream.acked - START)
    }

    /// Bytes of `id` up to the last that the peer has, with the gaps before it.
    pub fn highest_acked_of(&self, id: StreamId) -> u64 {
        self.streams.get(id).map_or(0, |stream| stream.reached() - START)
    }

    fn queue(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if stream.queued || !stream.has_new() {
            return;
        }
        if stream.next < stream.written && stream.next >= stream.limit {
            stream.hold(id, &mut self.held);
        } else {
            stream.queued = true;
            self.line.push_back(id);
        }
    }

    /// A stream that its own limit has come to hold since the last call. Stream 0, which is often alone, is reported
    /// by [`is_held`](Self::is_held).
    pub fn next_held(&mut self) -> Option<StreamId> {
        self.held.pop_front()
    }

    /// True when its own limit holds `id`.
    pub fn is_stream_held(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.held && stream.reset.is_none())
    }

    /// The limit of `id` is asked for at `at`, or not any more. Returns when it was to be before.
    pub fn set_request_at(&mut self, id: StreamId, at: Option<Instant>) -> Option<Instant> {
        core::mem::replace(&mut self.streams.get_mut(id)?.request_at, at)
    }

    /// The peer takes bytes of all streams up to `limit`.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// The peer's limit of all streams.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The peer takes bytes of one stream up to the position nearest to `limit`.
    pub fn raise_stream_limit(&mut self, id: StreamId, limit: tacit_packet::units::SeqNumber) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let before = stream.limit;
        stream.limit = before.max(before.nearest(limit));
        let raised = stream.limit > before;
        stream.held &= !raised;
        // A writer may have waited for that: its driver keeps little beyond the peer's limit.
        if raised && stream.written > before {
            self.streams.queue_event(id, news::WRITABLE);
        }
        self.queue(id);
    }

    /// Bytes of `id` that the peer takes, counted from the first; all where there is no such stream.
    pub fn limit_of(&self, id: StreamId) -> u64 {
        self.streams.get(id).map_or(u64::MAX, |stream| stream.limit - START)
    }

    /// True when something lost waits to be sent again.
    pub fn has_lost(&self) -> bool {
        !self.again.is_empty()
    }

    /// True when something new waits that the peer's limits allow.
    pub fn has_new(&self) -> bool {
        self.line.iter().any(|id| self.allowed(*id))
    }

    fn allowed(&self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get(id).filter(|stream| stream.has_new()) else { return false };
        if stream.next == stream.written {
            return true;
        }
        self.sent < self.limit && stream.next < stream.limit
    }

    /// Something waits and none of it may leave: limits of the peer, of any stream, hold it all.
    pub fn is_receiver_limited(&self) -> bool {
        self.again.is_empty() && self.unsent > 0 && !self.has_new()
    }

    /// True when the limit of all streams, or that of stream 0, alone holds the waiting bytes. Limits of other streams are
    /// asked for by name.
    pub fn is_held(&self) -> bool {
        let by_these = !self.line.is_empty() || self.streams.zero().held;
        by_these && self.is_receiver_limited()
    }

    /// The next of at most `room` bytes; lost ones go first. The flag is true for bytes that were sent before.
    pub fn next(&mut self, room: u32) -> Option<(Chunk, bool)> {
        if let Some(chunk) = self.next_lost(room) {
            return Some((chunk, true));
        }
        for _ in 0..self.line.len() {
            let id = self.line.pop_front()?;
            let chunk = self.next_new(id, room);
            // One that is forgotten was reset.
            let Some(stream) = self.streams.get_mut(id) else { continue };
            // Behind the others, or with those that are held.
            stream.queued = false;
            self.queue(id);
            if let Some(chunk) = chunk {
                return Some((chunk, false));
            }
        }
        None
    }

    fn next_new(&mut self, id: StreamId, room: u32) -> Option<Chunk> {
        if !self.allowed(id) {
            return None;
        }
        let (credit, room) = (self.limit.saturating_sub(self.sent), room_for(id, room));
        let chunk = self.update(id, |stream| {
            let waits = stream.written - stream.next;
            let allowed = stream.limit.saturating_since(stream.next).min(credit);
            let len = waits.min(allowed).min(u64::from(room)) as u32;
            let fin = stream.closed && u64::from(len) == waits;
            let chunk = Chunk { stream: id, start: stream.next, len, fin };
            stream.next += u64::from(len);
            stream.fin_sent |= fin;
            chunk
        })?;
        self.sent += u64::from(chunk.len);
        self.unsent -= u64::from(chunk.len);
        Some(chunk)
    }

    /// The part of `chunk` that the peer lacks, up to its end.
    pub fn missing(&self, chunk: Chunk) -> Option<Chunk> {
        let stream = self.streams.get(chunk.stream).filter(|stream| stream.reset.is_none())?;
        let fin = chunk.fin && !stream.fin_acked;
        match stream.missing(chunk) {
            Some(left) => {
                Some(Chunk { start: left.start, len: (chunk.end() - left.start) as u32, fin, ..chunk })
            }
            None => fin.then(|| Chunk { start: chunk.end(), len: 0, ..chunk }),
        }
    }

    /// Lost bytes that the peer has not got otherwise.
    fn next_lost(&mut self, room: u32) -> Option<Chunk> {
        while let Some(chunk) = self.again.pop_front() {
            let Some(chunk) = self.missing(chunk) else { continue };
            let room = room_for(chunk.stream, room);
            if chunk.len <= room {
                return Some(chunk);
            }
            let mut rest = Chunk { start: chunk.start + u64::from(room), len: chunk.len - room, ..chunk };
            // Where packets hold less than before, the few bytes that each leaves behind are no packets of their own.
            if let Some(next) = self.again.front().and_then(|next| self.missing(*next))
                && (rest.stream, rest.end()) == (next.stream, next.start)
                && let Some(len) = rest.len.checked_add(next.len)
            {
                (rest.len, rest.fin) = (len, next.fin);
                self.again.pop_front();
            }
            self.again.push_front(rest);
            return Some(Chunk { len: room, fin: false, ..chunk });
        }
        None
    }

    /// `chunk` was lost.
    pub fn on_lost(&mut self, chunk: Chunk) {
        self.again.push_back(chunk);
    }

    /// The peer has `chunk`. Returns the bytes of it that it had not been known to have.
    pub fn on_acked(&mut self, chunk: Chunk) -> u64 {
        let acked = |stream: &mut Stream| {
            let reached = stream.reached();
            let advanced = stream.on_acked(chunk);
            (advanced, advanced > 0 || stream.reached() > reached)
        };
        let (advanced, has_more) = self.update(chunk.stream, acked).unwrap_or_default();
        self.acked += advanced;
        if has_more {
            self.streams.queue_event(chunk.stream, news::WRITABLE);
        }
        advanced
    }

    /// Bytes that the peer has without a gap before them, of all streams.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Bytes written and never sent.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The peer says that it has everything. False where that cannot be: something was never sent.
    pub fn acknowledge_all(&mut self) -> bool {
        let sent =
            |stream: &Stream| stream.reset.is_some() || (stream.next == stream.written && stream.fin_sent);
        if !self.streams.iter().all(sent) {
            return false;
        }
        for id in self.streams.numbers().into_iter().chain([StreamId(0)]) {
            let advanced = self.update(id, Stream::on_all_acked);
            self.acked += advanced.unwrap_or(0);
        }
        true
    }

    /// True when the peer has all that was written, ends of closed streams among it.
    pub fn is_done(&self) -> bool {
        self.undone == 0
    }

    /// True when every stream is closed and the peer has all of it.
    pub fn is_finished(&self) -> bool {
        self.unfinished == 0
    }
}

/// Bytes of stream `id` in a packet with room for `room` of stream 0, which goes without its number.
pub(super) fn room_for(id: StreamId, room: u32) -> u32 {
    if id == StreamId(0) { room } else { room.saturating_sub(id.wire_len()).max(1) }
}

impl Stream {
    fn new(limit: u64) -> Self {
        Self { written: START, next: START, acked: START, limit: START + limit, ..Self::default() }
    }

    fn has_new(&self) -> bool {
        self.reset.is_none() && (self.next < self.written || (self.closed && !self.fin_sent))
    }

    fn is_done(&self) -> bool {
        match self.reset {
            Some(_) => self.reset_acked,
            None => self.acked == self.written && (!self.closed || self.fin_acked),
        }
    }

    fn is_finished(&self) -> bool {
        self.closed && self.is_done()
    }

    /// Its own limit holds it.
    fn hold(&mut self, id: StreamId, held: &mut VecDeque<StreamId>) {
        if !self.held && id != StreamId(0) {
            held.push_back(id);
        }
        self.held = true;
    }

    /// The peer has `chunk`. Returns by how many bytes that it has without a gap have become more.
    fn on_acked(&mut self, chunk: Chunk) -> u64 {
        if self.reset.is_some() {
            return 0;
        }
        self.fin_acked |= chunk.fin;
        let before = self.acked;
        let end = chunk.end();
        if chunk.start <= self.acked && self.above.is_empty() {
            self.acked = self.acked.max(end);
        } else if end > self.acked && chunk.len > 0 {
            let range = Range { start: chunk.start.max(self.acked), end };
            // As many ranges as packets are in flight, which are bounded.
            self.above.insert(range, usize::MAX);
            while let Some(first) = self.above.first()
                && first.start <= self.acked
            {
                self.acked = self.acked.max(first.end);
                self.above.pop_first();
            }
        }
        self.acked - before
    }

    /// The end of the peer's bytes, behind gaps or not.
    fn reached(&self) -> Position {
        self.above.last().map_or(self.acked, |last| last.end)
    }

    /// The peer has all of it.
    fn on_all_acked(&mut self) -> u64 {
        self.reset_acked |= self.reset.is_some();
        if self.reset.is_some() {
            return 0;
        }
        let advanced = self.written - self.acked;
        (self.acked, self.fin_acked) = (self.written, true);
        self.above.clear();
        advanced
    }

    /// The first part of `chunk` up to its end that the peer does not have.
    fn missing(&self, chunk: Chunk) -> Option<Range> {
        let wanted = Range { start: chunk.start.max(self.acked), end: chunk.end() };
        if wanted.start >= wanted.end { None } else { self.above.first_gap(wanted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::units::SeqNumber;

    fn outgoing(limit: u64, stream_limit: u64) -> Outgoing {
        let mut streams = Outgoing::new();
        streams.open(limit, stream_limit);
        streams
    }

    fn chunk(stream: u32, start: u64, len: u32, fin: bool) -> Chunk {
        Chunk { stream: StreamId(stream), start: START + start, len, fin }
    }

    /// A gap keeps bytes from being let go, and its owner hears all the same that the peer has more.
    #[test]
    fn data_behind_a_gap_is_reported() {
        let mut streams = outgoing(1000, 1000);
        streams.write(StreamId(0), 400);
        while streams.next(100).is_some() {}
        let mut acked = |start| {
            let advanced = streams.on_acked(chunk(0, start, 100, false));
            let event = streams.next_event();
            (advanced, streams.acked_of(StreamId(0)), streams.highest_acked_of(StreamId(0)), event)
        };
        let writable = Some(StreamEvent::Writable(StreamId(0)));
        assert_eq!(acked(200), (0, 0, 300, writable));
        assert_eq!(acked(100), (0, 0, 300, None), "no byte beyond those reached");
        assert_eq!(acked(0), (300, 300, 300, writable), "held bytes may go");
        assert_eq!(acked(300), (100, 400, 400, writable));
    }

    #[test]
    fn streams_take_turns() {
        let mut streams = outgoing(1000, 1000);
        streams.insert(StreamId(2));
        streams.write(StreamId(0), 150);
        streams.write(StreamId(2), 98);
        streams.close(StreamId(2));
        let sent: Vec<_> = std::iter::from_fn(|| streams.next(100)).map(|(chunk, _)| chunk).collect();
        assert_eq!(sent, [chunk(0, 0, 100, false), chunk(2, 0, 98, true), chunk(0, 100, 50, false)]);
        assert_eq!((streams.sent, streams.unsent()), (248, 0));
    }

    #[test]
    fn the_peers_limits_hold_what_is_new_and_nothing_else() {
        let mut streams = outgoing(150, 120);
        streams.write(StreamId(0), 500);
        assert_eq!(streams.next(100), Some((chunk(0, 0, 100, false), false)));
        assert_eq!(streams.next(100), Some((chunk(0, 100, 20, false), false)));
        assert_eq!(streams.next(100), None);
        assert!(streams.is_held());
        streams.on_lost(chunk(0, 0, 100, false));
        assert_eq!(streams.next(100), Some((chunk(0, 0, 100, false), true)));
        streams.raise_stream_limit(StreamId(0), SeqNumber(1000));
        assert_eq!(streams.next(100), Some((chunk(0, 120, 30, false), false)));
        streams.raise_limit(400);
        assert_eq!(streams.next(100), Some((chunk(0, 150, 100, false), false)));
    }

    #[test]
    fn of_what_was_lost_only_what_is_missing_goes_again() {
        let mut streams = outgoing(1000, 1000);
        streams.write(StreamId(0), 300);
        streams.close(StreamId(0));
        while streams.next(100).is_some() {}
        assert_eq!(streams.on_acked(chunk(0, 100, 100, false)), 0);
        streams.on_lost(chunk(0, 0, 100, false));
        streams.on_lost(chunk(0, 100, 100, false));
        streams.on_lost(chunk(0, 200, 100, true));
        // A packet may carry less than before.
        assert_eq!(streams.next(60), Some((chunk(0, 0, 60, false), true)));
        assert_eq!(streams.next(60), Some((chunk(0, 60, 40, false), true)));
        assert_eq!(streams.next(100), Some((chunk(0, 200, 100, true), true)));
        assert_eq!(streams.on_acked(chunk(0, 0, 100, false)), 200);
        assert!(!streams.is_done());
        streams.on_acked(chunk(0, 200, 100, false));
        assert!(!streams.is_finished());
        streams.on_lost(chunk(0, 200, 100, true));
        assert_eq!(streams.next(100), Some((chunk(0, 300, 0, true), true)));
        streams.on_acked(chunk(0, 300, 0, true));
        assert!(streams.is_finished());
    }

    #[test]
    fn stream_0_ends_behind_all_others() {
        let mut streams = outgoing(1000, 1000);
        streams.insert(StreamId(2));
        streams.write(StreamId(2), 10);
        streams.close_all();
        assert_eq!(streams.next(100), Some((chunk(2, 0, 10, true), false)));
        assert_eq!(streams.next(100), None);
        // One that the peer opens late has nothing to say.
        streams.insert(StreamId(1));
        assert_eq!(streams.next(100), Some((chunk(1, 0, 0, true), false)));
        streams.on_acked(chunk(2, 0, 10, true));
        assert_eq!(streams.next(100), None);
        streams.on_acked(chunk(1, 0, 0, true));
        assert_eq!(streams.next(100), Some((chunk(0, 0, 0, true), false)));
        streams.on_acked(chunk(0, 0, 0, true));
        assert!(streams.is_finished());
    }

    #[test]
    fn reset_streams_are_not_retransmitted() {
        let mut streams = outgoing(1000, 1000);
        streams.insert(StreamId(2));
        streams.write(StreamId(2), 300);
        assert_eq!(streams.next(102), Some((chunk(2, 0, 100, false), false)));
        let reset = Control::Reset { stream: StreamId(2), code: 5, end: SeqNumber(100) };
        assert_eq!(streams.on_stop(StreamId(2), 5), Some(reset));
        assert_eq!((streams.on_stop(StreamId(2), 6), streams.reset(StreamId(2), 6)), (None, None));
        streams.on_lost(chunk(2, 0, 100, false));
        assert_eq!((streams.next(100), streams.unsent(), streams.is_done()), (None, 0, false));
        streams.on_reset_acked(StreamId(2));
        let events: Vec<_> = std::iter::from_fn(|| streams.next_event()).collect();
        assert_eq!(events, [StreamEvent::Stopped(StreamId(2), 5), StreamEvent::Finished(StreamId(2))]);
        assert!(streams.is_done() && streams.is_over(StreamId(2)));
        streams.forget(StreamId(2));
        streams.on_lost(chunk(2, 0, 100, false));
        assert_eq!((streams.on_acked(chunk(2, 0, 100, false)), streams.next(100)), (0, None));
    }

    #[test]
    fn a_stream_that_its_limit_holds_waits_beside_the_line() {
        let mut streams = outgoing(1000, 50);
        streams.insert(StreamId(2));
        streams.write(StreamId(2), 60);
        assert_eq!(streams.next(100), Some((chunk(2, 0, 50, false), false)));
        assert_eq!((streams.next_held(), streams.next_held()), (Some(StreamId(2)), None));
        assert!(streams.is_stream_held(StreamId(2)) && !streams.has_new());
        streams.raise_stream_limit(StreamId(2), SeqNumber(55));
        assert!(!streams.is_stream_held(StreamId(2)));
        assert_eq!(streams.next(100), Some((chunk(2, 50, 5, false), false)));
        assert_eq!(streams.next_held(), Some(StreamId(2)));
    }

    #[test]
    fn an_endless_source_stays_countable() {
        let mut streams = outgoing(u64::MAX, 1 << 40);
        streams.write(StreamId(0), u64::MAX);
        streams.write(StreamId(0), u64::MAX);
        assert!(streams.next(1000).is_some());
        assert!(streams.unsent() > 1 << 60);
    }
}
