//! Streams that are sent: what was written, what waits to be sent again, what the peer has.

use std::collections::VecDeque;

use super::incoming::START;
use super::packet::StreamId;
use crate::congestion::position::Position;
use crate::ranges::{Range, RangeSet};

/// Octets of a stream that travel in one packet.
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

#[derive(Clone, Debug)]
struct Stream {
    /// The end of what was written; what is closed ends there.
    written: Position,
    closed: bool,
    /// The first octet that was never sent.
    next: Position,
    fin_sent: bool,
    fin_acked: bool,
    /// Every octet below is acknowledged, and those in `above`.
    acked: Position,
    above: RangeSet,
    /// What the peer takes.
    limit: Position,
    /// In the line of those with something new to send.
    queued: bool,
}

/// All streams of one direction.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    streams: Vec<Stream>,
    /// Streams with something new to send, whose turn it is first; those that their own limit holds stand elsewhere.
    line: VecDeque<StreamId>,
    /// What was lost.
    again: VecDeque<Chunk>,
    stream_limit: u64,
    /// Octets of all streams that were sent, and that may be.
    sent: u64,
    limit: u64,
    /// Octets that the peer has, of all streams.
    acked: u64,
    unsent: u64,
}

impl Outgoing {
    pub fn new() -> Self {
        Self {
            streams: Vec::new(),
            line: VecDeque::new(),
            again: VecDeque::new(),
            stream_limit: 0,
            sent: 0,
            limit: 0,
            acked: 0,
            unsent: 0,
        }
    }

    /// The peer says at the start what it takes, of all streams and of each.
    pub fn open(&mut self, limit: u64, stream_limit: u64) {
        self.limit = limit;
        self.stream_limit = stream_limit;
        for number in 0..self.streams.len() {
            let stream = &mut self.streams[number];
            stream.limit = stream.limit.max(START + stream_limit);
            self.queue(StreamId(number as u16));
        }
    }

    fn stream(&mut self, id: StreamId) -> &mut Stream {
        let place = usize::from(id.0);
        if place >= self.streams.len() {
            let fresh = Stream {
                written: START,
                closed: false,
                next: START,
                fin_sent: false,
                fin_acked: false,
                acked: START,
                above: RangeSet::default(),
                limit: START + self.stream_limit,
                queued: false,
            };
            self.streams.resize(place + 1, fresh);
        }
        &mut self.streams[place]
    }

    /// Adds `octets` to a stream; ignored after [`close`](Self::close).
    pub fn write(&mut self, id: StreamId, octets: u64) {
        let stream = self.stream(id);
        if stream.closed {
            return;
        }
        let before = stream.written;
        stream.written = before.saturating_add(octets);
        let added = stream.written - before;
        self.unsent = self.unsent.saturating_add(added);
        self.queue(id);
    }

    /// The stream ends behind what was written.
    pub fn close(&mut self, id: StreamId) {
        self.stream(id).closed = true;
        self.queue(id);
    }

    /// Ends every stream; where there is none, stream 0 is opened to be ended.
    pub fn close_all(&mut self) {
        for number in 0..self.streams.len().max(1) {
            self.close(StreamId(number as u16));
        }
    }

    fn queue(&mut self, id: StreamId) {
        let stream = &mut self.streams[usize::from(id.0)];
        if !stream.queued && stream.has_new() {
            stream.queued = true;
            self.line.push_back(id);
        }
    }

    /// The peer takes octets of all streams up to `limit`.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// What the peer takes of all streams.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The peer takes octets of one stream up to the position nearest to `limit`.
    pub fn raise_stream_limit(&mut self, id: StreamId, limit: crate::units::SeqNumber) {
        let Some(stream) = self.streams.get_mut(usize::from(id.0)) else { return };
        stream.limit = stream.limit.max(stream.limit.nearest(limit));
        self.queue(id);
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
        let stream = &self.streams[usize::from(id.0)];
        if stream.next == stream.written {
            return stream.closed && !stream.fin_sent;
        }
        self.sent < self.limit && stream.next < stream.limit
    }

    /// True when the peer's limits are all that holds what waits.
    pub fn is_held(&self) -> bool {
        self.again.is_empty() && self.unsent > 0 && !self.has_new()
    }

    /// The next of at most `room` octets; what was lost goes first. The flag is true for what was sent before.
    pub fn next(&mut self, room: u32) -> Option<(Chunk, bool)> {
        if let Some(chunk) = self.next_lost(room) {
            return Some((chunk, true));
        }
        for _ in 0..self.line.len() {
            let id = self.line.pop_front()?;
            let stream = &mut self.streams[usize::from(id.0)];
            if !stream.has_new() {
                stream.queued = false;
                continue;
            }
            if let Some(chunk) = self.next_new(id, room) {
                let stream = &mut self.streams[usize::from(id.0)];
                stream.queued = stream.has_new();
                if stream.queued {
                    self.line.push_back(id);
                }
                return Some((chunk, false));
            }
            self.line.push_back(id);
        }
        None
    }

    fn next_new(&mut self, id: StreamId, room: u32) -> Option<Chunk> {
        if !self.allowed(id) {
            return None;
        }
        let credit = self.limit.saturating_sub(self.sent);
        let stream = &mut self.streams[usize::from(id.0)];
        let waits = stream.written - stream.next;
        let allowed = stream.limit.saturating_since(stream.next).min(credit);
        let len = waits.min(allowed).min(u64::from(room)) as u32;
        let chunk =
            Chunk { stream: id, start: stream.next, len, fin: stream.closed && u64::from(len) == waits };
        stream.next += u64::from(len);
        stream.fin_sent |= chunk.fin;
        self.sent += u64::from(len);
        self.unsent -= u64::from(len);
        Some(chunk)
    }

    /// What the peer has not got of `chunk`, up to its end.
    pub fn missing(&self, chunk: Chunk) -> Option<Chunk> {
        let stream = &self.streams[usize::from(chunk.stream.0)];
        let fin = chunk.fin && !stream.fin_acked;
        match stream.missing(chunk) {
            Some(left) => {
                Some(Chunk { start: left.start, len: (chunk.end() - left.start) as u32, fin, ..chunk })
            }
            None => fin.then(|| Chunk { start: chunk.end(), len: 0, ..chunk }),
        }
    }

    /// What was lost and the peer has not got otherwise.
    fn next_lost(&mut self, room: u32) -> Option<Chunk> {
        while let Some(chunk) = self.again.pop_front() {
            let Some(chunk) = self.missing(chunk) else { continue };
            if chunk.len <= room {
                return Some(chunk);
            }
            let rest = Chunk { start: chunk.start + u64::from(room), len: chunk.len - room, ..chunk };
            self.again.push_front(rest);
            return Some(Chunk { len: room, fin: false, ..chunk });
        }
        None
    }

    /// `chunk` was lost.
    pub fn on_lost(&mut self, chunk: Chunk) {
        self.again.push_back(chunk);
    }

    /// The peer has `chunk`. Returns the octets of it that it had not been known to have.
    pub fn on_acked(&mut self, chunk: Chunk) -> u64 {
        let stream = &mut self.streams[usize::from(chunk.stream.0)];
        stream.fin_acked |= chunk.fin;
        let before = stream.acked;
        let end = chunk.end();
        if chunk.start <= stream.acked && stream.above.is_empty() {
            stream.acked = stream.acked.max(end);
        } else if end > stream.acked && chunk.len > 0 {
            let range = Range { start: chunk.start.max(stream.acked), end };
            // As many ranges as packets are in flight, which are bounded.
            stream.above.insert(range, usize::MAX);
            while let Some(first) = stream.above.first()
                && first.start <= stream.acked
            {
                stream.acked = stream.acked.max(first.end);
                stream.above.pop_first();
            }
        }
        let advanced = stream.acked - before;
        self.acked += advanced;
        advanced
    }

    /// Octets that the peer has without a gap before them, of all streams.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Octets written and never sent.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The peer says that it has everything. False where that cannot be: something was never sent.
    pub fn acknowledge_all(&mut self) -> bool {
        let sent = |stream: &Stream| stream.next == stream.written && stream.fin_sent;
        if !self.streams.iter().all(sent) {
            return false;
        }
        for stream in &mut self.streams {
            self.acked += stream.written - stream.acked;
            (stream.acked, stream.fin_acked) = (stream.written, true);
            stream.above.clear();
        }
        true
    }

    /// True when the peer has all that was written, ends of closed streams among it.
    pub fn is_done(&self) -> bool {
        self.streams.iter().all(Stream::is_done)
    }

    /// True when every stream is closed and the peer has all of it.
    pub fn is_finished(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(|stream| stream.closed && stream.is_done())
    }
}

impl Stream {
    fn has_new(&self) -> bool {
        self.next < self.written || (self.closed && !self.fin_sent)
    }

    fn is_done(&self) -> bool {
        self.acked == self.written && (!self.closed || self.fin_acked)
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
    use crate::units::SeqNumber;

    fn outgoing(limit: u64, stream_limit: u64) -> Outgoing {
        let mut streams = Outgoing::new();
        streams.open(limit, stream_limit);
        streams
    }

    fn chunk(stream: u16, start: u64, len: u32, fin: bool) -> Chunk {
        Chunk { stream: StreamId(stream), start: START + start, len, fin }
    }

    #[test]
    fn streams_take_turns() {
        let mut streams = outgoing(1000, 1000);
        streams.write(StreamId(0), 150);
        streams.write(StreamId(2), 100);
        streams.close(StreamId(2));
        let sent: Vec<_> = std::iter::from_fn(|| streams.next(100)).map(|(chunk, _)| chunk).collect();
        assert_eq!(sent, [chunk(0, 0, 100, false), chunk(2, 0, 100, true), chunk(0, 100, 50, false)]);
        assert_eq!((streams.sent, streams.unsent()), (250, 0));
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
    fn an_endless_source_stays_countable() {
        let mut streams = outgoing(u64::MAX, 1 << 40);
        streams.write(StreamId(0), u64::MAX);
        streams.write(StreamId(0), u64::MAX);
        assert!(streams.next(1000).is_some());
        assert!(streams.unsent() > 1 << 60);
    }
}
