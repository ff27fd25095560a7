//! Streams that arrive: order, duplicates, and how much more the peer may send.

use std::collections::{BTreeSet, VecDeque};

use super::config::Config;
use super::streams::{Half, Named, Numbers, StreamEvent, Table, news};
use super::violation::Violation;
use super::windows::{self, Path, Pool, Progress, Window};
use tacit_packet::position::Position;
use tacit_packet::ranges::{Range, RangeSet};
use tacit_packet::tack::packet::{Data, StreamId};
use tacit_packet::units::{Instant, SeqNumber};

/// Separate ranges of one stream that are held at most.
const MAX_RANGES: usize = 4096;

/// The byte 0 of a stream.
pub(super) const START: Position = Position::first(SeqNumber(0));

/// Bytes of a packet that its user may put in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Which stream.
    pub stream: StreamId,
    /// Place of the first of them in the stream; it was not delivered before.
    pub start: u64,
    /// Bytes at the front of the packet that are not among them: they were delivered before.
    pub skip: u32,
    /// How many they are. Some may have arrived before, and are unchanged.
    pub len: u32,
}

/// Fate of a packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// All of them, the number that had not arrived before, and those for the user.
    New(u64, Option<Accepted>),
    /// Nothing: there is no room to remember them. They count as not arrived.
    NoRoom,
    /// The peer broke a rule.
    Violation,
}

/// One stream.
#[derive(Clone, Debug)]
struct Stream {
    /// Bytes below were handed on.
    delivered: Position,
    above: RangeSet,
    /// The end of the bytes that arrived.
    highest: Position,
    /// Where it ends, once that is known.
    end: Option<Position>,
    /// The peer gave it up before that.
    reset: Option<u32>,
    /// Our user wants no more of it.
    stopped: bool,
    /// The end of the bytes that the reader has taken.
    read: Position,
    /// The limit last advertised to the peer.
    advertised: Position,
    window: Window,
    /// Its limit waits to be sent, moved or not: the peer asked.
    queued: bool,
    requested: bool,
    news: u8,
}

impl Half for Stream {
    fn news(&mut self) -> &mut u8 {
        &mut self.news
    }
}

/// All streams of one direction.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    streams: Table<Stream>,
    pub numbers: Numbers,
    /// Streams that the peer opened and the other direction does not know of yet.
    opened: VecDeque<StreamId>,
    /// Streams whose limit is to be sent.
    limits: VecDeque<StreamId>,
    /// Streams that their limits hold: the peer has said so, and has sent nothing new of them since.
    held: BTreeSet<StreamId>,
    /// Bytes that streams may hold until their readers take them.
    pool: Pool,
    buffer: Buffer,
    /// Streams that have not arrived to their end.
    unended: usize,
    /// Sums over all streams.
    delivered: u64,
    highest: u64,
    /// Bytes that will never come, of streams that were given up.
    never: u64,
    /// Bytes that no longer count against the limit of all streams.
    freed: u64,
    /// The limit last advertised to the peer.
    advertised: u64,
    /// Bytes that came again.
    pub duplicate: u64,
}

impl Incoming {
    /// For the end that opened the connection where `client`.
    pub fn new(config: &Config, client: bool) -> Self {
        let (buffer, max) = (config.receive_buffer.0, config.max_receive_buffer.0);
        let pool = Pool::new(config);
        Self {
            streams: Table::new(Stream::new(&pool)),
            numbers: Numbers::new(client, config.max_streams),
            opened: VecDeque::new(),
            limits: VecDeque::new(),
            held: BTreeSet::new(),
            pool,
            buffer: Buffer { size: buffer, max: max.max(buffer), since: Instant::ZERO, before: 0 },
            unended: 1,
            delivered: 0,
            highest: 0,
            never: 0,
            freed: 0,
            advertised: buffer,
            duplicate: 0,
        }
    }

    /// Bytes that streams hold beyond the windows that are their own.
    pub fn borrowed(&self) -> u64 {
        self.pool.lent()
    }

    /// Bytes that streams may hold beyond those.
    pub fn shared_buffer(&self) -> u64 {
        self.pool.size()
    }

    /// Streams may hold this many bytes beyond those from now on.
    pub fn set_shared_buffer(&mut self, bytes: u64) {
        self.pool.resize(bytes);
    }

    /// Bytes of each stream that the peer may send before it hears of a limit.
    pub fn first_window(&self) -> u64 {
        self.pool.floor
    }

    /// Opens a stream of ours.
    pub fn open(&mut self) -> Option<StreamId> {
        let id = self.numbers.open()?;
        self.insert(id);
        Some(id)
    }

    fn insert(&mut self, id: StreamId) {
        self.streams.insert(id, Stream::new(&self.pool));
        self.unended += 1;
    }

    /// A stream that the peer opened since this was asked last.
    pub fn next_opened(&mut self) -> Option<StreamId> {
        self.opened.pop_front()
    }

    /// Sees to it that `id`, which the peer names, is open, unless it is forgotten.
    pub fn admit(&mut self, id: StreamId) -> Result<(), Violation> {
        match self.numbers.named(id) {
            Named::Known => {}
            Named::Wrong => return Err(Violation),
            Named::Opens => {
                while let Some(opened) = self.numbers.open_up_to(id) {
                    self.insert(opened);
                    self.streams.queue_event(opened, news::OPENED);
                    self.opened.push_back(opened);
                }
            }
        }
        Ok(())
    }

    /// Stores the bytes of `data`.
    pub fn take(&mut self, data: &Data) -> Taken {
        if self.streams.get(data.stream).is_none() && self.admit(data.stream).is_err() {
            return Taken::Violation;
        }
        let (limit, before) = (self.advertised, self.highest);
        let Some(stream) = self.streams.get_mut(data.stream) else {
            // Of a stream that is over: it was sent twice.
            self.duplicate += u64::from(data.payload_len);
            return Taken::New(0, None);
        };
        let start = stream.delivered.nearest(data.offset);
        let end = start + u64::from(data.payload_len);
        let grows = end.saturating_since(stream.highest);
        let past_end = stream.end.is_some_and(|at| end > at || (data.fin && end != at));
        if start < START || past_end || end > stream.advertised || before + grows > limit {
            return Taken::Violation;
        }
        if data.fin && stream.highest > end {
            return Taken::Violation;
        }
        if stream.reset.is_some() {
            self.duplicate += u64::from(data.payload_len);
            return Taken::New(0, None);
        }
        let (old, had_ended) = (stream.delivered, stream.ended());
        let new = match stream.add(start, end) {
            Some(new) => new,
            None => return Taken::NoRoom,
        };
        if data.fin {
            stream.end = Some(end);
        }
        stream.highest = stream.highest.max(end);
        if grows > 0 || data.fin {
            self.held.remove(&data.stream);
        }
        let advanced = stream.delivered - old;
        self.highest += grows;
        self.delivered += advanced;
        self.duplicate += u64::from(data.payload_len) - new;
        let accepted = (new > 0 && !stream.stopped).then(|| {
            let from = start.max(old);
            Accepted {
                stream: data.stream,
                start: from - START,
                skip: (from - start) as u32,
                len: (end - from) as u32,
            }
        });
        let ends = stream.ended() && !had_ended;
        self.unended -= usize::from(ends);
        if advanced > 0 {
            self.advanced(data.stream);
        }
        if ends {
            self.streams.queue_event(data.stream, news::ENDED);
        }
        Taken::New(new, accepted)
    }

    /// More of `id` was delivered.
    fn advanced(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else { return };
        if stream.stopped {
            self.on_read(id, u64::MAX);
        }
        self.streams.queue_event(id, news::READABLE);
    }

    /// The peer gives `id` up behind the byte at `end`.
    pub fn on_reset(&mut self, id: StreamId, code: u32, end: SeqNumber) -> Result<(), Violation> {
        self.admit(id)?;
        let (limit, before) = (self.advertised, self.highest);
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        let end = stream.highest.nearest(end);
        let grows = end.saturating_since(stream.highest);
        let other = stream.end.is_some_and(|at| at != end);
        if end < stream.highest || other || end > stream.advertised || before + grows > limit {
            return Err(Violation);
        }
        // All of it is there, or it was said before.
        if stream.ended() {
            return Ok(());
        }
        self.held.remove(&id);
        stream.end = Some(end);
        stream.reset = Some(code);
        stream.highest = end;
        stream.above.clear();
        self.highest += grows;
        // The rest will not be read.
        self.never += end - stream.delivered;
        stream.read = end;
        stream.window.on_read(&mut self.pool, stream.progress());
        self.free_delivered();
        self.unended -= 1;
        self.streams.queue_event(id, news::RESET);
        Ok(())
    }

    /// Our user wants no more of `id`. True where the peer should hear of it.
    pub fn stop(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get_mut(id) else { return false };
        let comes = !stream.stopped && !stream.ended();
        stream.stopped = true;
        // Delivered bytes will not be read.
        self.on_read(id, u64::MAX);
        comes
    }

    /// The limit of `id` holds the peer, which wants to hear the latest.
    pub fn on_held(&mut self, id: StreamId) -> Result<(), Violation> {
        self.admit(id)?;
        if let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.end.is_none()) {
            stream.requested = true;
            Self::queue(id, stream, &mut self.limits);
            self.held.insert(id);
        }
        Ok(())
    }

    fn queue(id: StreamId, stream: &mut Stream, limits: &mut VecDeque<StreamId>) {
        if !stream.queued {
            stream.queued = true;
            limits.push_back(id);
        }
    }

    /// The reader of `id` has taken `bytes` more, of those delivered.
    pub fn on_read(&mut self, id: StreamId, bytes: u64) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let bytes = bytes.min(stream.delivered.saturating_since(stream.read));
        stream.read += bytes;
        stream.window.on_read(&mut self.pool, stream.progress());
        if stream.moved() {
            Self::queue(id, stream, &mut self.limits);
        }
    }

    /// Bytes handed on, in order and once: of all streams.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes handed on of one stream.
    pub fn delivered_of(&self, id: StreamId) -> u64 {
        self.streams.get(id).map_or(0, |stream| stream.delivered - START)
    }

    /// Bytes of one stream that the reader may take.
    pub fn readable(&self, id: StreamId) -> u64 {
        self.streams.get(id).map_or(0, |stream| stream.delivered.saturating_since(stream.read))
    }

    /// Bytes that wait for others before them.
    pub fn blocked(&self) -> u64 {
        self.streams.iter().flat_map(|stream| stream.above.iter()).map(Range::len).sum()
    }

    /// True when `id` has arrived to its end.
    pub fn ended(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.reset.is_none() && stream.ended())
    }

    /// True when more of `id` is to come.
    pub fn expects(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| !stream.stopped && !stream.ended())
    }

    /// True when every stream there is has arrived to its end or was given up.
    pub fn all_ended(&self) -> bool {
        self.unended == 0
    }

    /// True when nothing of `id` is to come, to be read or to be sent.
    pub fn is_over(&self, id: StreamId) -> bool {
        self.streams
            .get(id)
            .is_none_or(|stream| stream.ended() && stream.read >= stream.delivered && stream.news == 0)
    }

    /// `id` is over in both directions. False where it was forgotten before.
    pub fn forget(&mut self, id: StreamId) -> bool {
        if let Some(stream) = self.streams.get(id) {
            stream.window.give_back(&mut self.pool);
        }
        let known = self.streams.remove(id);
        if known {
            self.numbers.forget(id);
        }
        known
    }

    /// The next event of a stream.
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        let (id, kind) = self.streams.next_news()?;
        Some(match kind {
            news::OPENED => StreamEvent::Opened(id),
            news::READABLE => StreamEvent::Readable(id),
            news::ENDED => StreamEvent::Ended(id),
            _ => StreamEvent::Reset(id, self.streams.get(id).and_then(|stream| stream.reset).unwrap_or(0)),
        })
    }

    /// Streams beside stream 0 that are not forgotten.
    pub fn open_streams(&self) -> usize {
        self.streams.others()
    }

    /// The window of all streams grows with the arrivals of a round-trip time, and that of `id`, which received something,
    /// with the bytes that its reader takes.
    pub fn autotune(&mut self, now: Instant, id: StreamId, received: u64, path: Path) {
        self.buffer.autotune(now, received, path);
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.end.is_none()) else { return };
        stream.window.on_arrival(&mut self.pool, stream.progress(), now, path);
        if stream.moved() {
            Self::queue(id, stream, &mut self.limits);
        }
    }

    /// Bytes in order no longer count against the limit of all streams, nor do bytes that will never come: their stream's
    /// window is charged for them until they are read.
    pub fn free_delivered(&mut self) {
        self.freed = self.delivered + self.never;
    }

    /// Bytes of all streams that the peer may send. An advertised limit stands.
    fn limit(&self) -> u64 {
        self.advertised.max(self.freed + self.buffer.size)
    }

    /// The limit, which the peer is now told.
    pub fn advertise(&mut self) -> u64 {
        self.advertised = self.limit();
        self.advertised
    }

    /// The next streams whose limits have moved by a quarter of their windows since they were last sent, or which the peer asked
    /// for; they count as sent now.
    pub fn advertise_streams(&mut self, out: &mut Vec<(StreamId, SeqNumber)>, most: usize) {
        while out.len() < most
            && let Some(id) = self.limits.pop_front()
        {
            let Some(stream) = self.streams.get_mut(id) else { continue };
            stream.queued = false;
            if stream.end.is_none() && (stream.moved() || stream.requested) {
                stream.requested = false;
                out.push((id, stream.advertise()));
            }
        }
    }

    /// The peer asks: the limits that hold it are due again. It names each stream once and stream 0 never, and an answer may be lost.
    pub fn on_limits_requested(&mut self, out: &mut Vec<(StreamId, SeqNumber)>) {
        let id = StreamId(0);
        if let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.end.is_none()) {
            out.push((id, stream.advertise()));
        }
        for id in &self.held {
            if let Some(stream) = self.streams.get_mut(*id) {
                stream.requested = true;
                Self::queue(*id, stream, &mut self.limits);
            }
        }
    }

    /// True when limits wait that a peer may be held by.
    pub fn has_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// True when the peer knows of next to no room in `id`, and there is some: it should hear at once.
    pub fn reopened_stream(&self, id: StreamId, packet: u64) -> bool {
        self.streams.get(id).is_some_and(|stream| {
            stream.queued
                && stream.advertised.saturating_since(stream.highest)
                    < (2 * packet).max(stream.window.size() / 4)
        })
    }

    /// True when the peer knows of next to no room, and there is some: it should hear at once.
    pub fn reopened(&self, packet: u64) -> bool {
        let advertised = self.advertised - self.highest;
        advertised < 2 * packet && self.limit() - self.highest >= (self.buffer.size / 4).max(2 * packet)
    }
}

impl Stream {
    fn new(pool: &Pool) -> Self {
        Self {
            delivered: START,
            above: RangeSet::default(),
            highest: START,
            end: None,
            reset: None,
            stopped: false,
            read: START,
            advertised: START + pool.floor,
            window: Window::new(pool),
            queued: false,
            requested: false,
            news: 0,
        }
    }

    /// Its position, which sizes its window.
    fn progress(&self) -> Progress {
        Progress {
            read: self.read - START,
            // Of a stream that was given up the reader has all.
            delivered: self.delivered.max(self.read) - START,
            granted: self.end.unwrap_or(self.advertised) - START,
            open: self.end.is_none(),
        }
    }

    /// True when its limit has moved by a quarter of its window since it was last sent.
    fn moved(&self) -> bool {
        let window = self.window.size();
        self.end.is_none() && (self.read + window).saturating_since(self.advertised) >= (window / 4).max(1)
    }

    /// Its limit, which the peer is now told.
    fn advertise(&mut self) -> SeqNumber {
        self.advertised = self.advertised.max(self.read + self.window.size());
        self.advertised.wire()
    }

    /// Adds bytes and returns how many were new; `None` when there are too many ranges.
    fn add(&mut self, start: Position, end: Position) -> Option<u64> {
        let start = start.max(self.delivered);
        if start >= end {
            return Some(0);
        }
        if start == self.delivered && self.above.is_empty() {
            self.delivered = end;
            return Some(end - start);
        }
        let wanted = Range { start, end };
        let mut new = 0;
        let mut from = wanted;
        while let Some(gap) = self.above.first_gap(from) {
            new += gap.len();
            if gap.end >= end {
                break;
            }
            from.start = gap.end;
        }
        self.above.insert(wanted, MAX_RANGES)?;
        if let Some(first) = self.above.first()
            && first.start == self.delivered
        {
            self.delivered = first.end;
            self.above.pop_first();
        }
        Some(new)
    }

    fn ended(&self) -> bool {
        self.reset.is_some() || self.end == Some(self.delivered)
    }
}

/// Bytes of all streams that may be on their way or wait behind a loss; they grow with the path.
#[derive(Clone, Debug)]
struct Buffer {
    size: u64,
    max: u64,
    since: Instant,
    before: u64,
}

impl Buffer {
    fn autotune(&mut self, now: Instant, received: u64, path: Path) {
        if now.saturating_since(self.since) < path.feedback_delay {
            return;
        }
        let lately = received - self.before;
        self.since = now;
        self.before = received;
        self.size = self.size.max(lately.saturating_mul(windows::round_trips(path.loss))).min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Reader;
    use proptest::prelude::*;
    use tacit_packet::units::{Bytes, Duration};

    fn incoming_with(receive_buffer: u64, max: u64, stream_buffer: u64) -> Incoming {
        let config = Config {
            receive_buffer: Bytes(receive_buffer),
            max_receive_buffer: Bytes(max),
            stream_buffer: Bytes(stream_buffer),
            max_streams: 4,
            reader: Reader::Explicit,
            ..Config::default()
        };
        Incoming::new(&config, false)
    }

    fn incoming() -> Incoming {
        incoming_with(1000, 4000, 800)
    }

    fn data(stream: u32, offset: u32, payload_len: u16, fin: bool) -> Data {
        Data { stream: StreamId(stream), offset: SeqNumber(offset), payload_len, fin, ..Data::default() }
    }

    /// How many bytes of `data` had not arrived.
    #[track_caller]
    fn new(streams: &mut Incoming, data: &Data) -> u64 {
        match streams.take(data) {
            Taken::New(new, _) => new,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bytes_count_once_and_in_order() {
        let mut streams = incoming();
        assert_eq!(new(&mut streams, &data(0, 100, 100, false)), 100);
        assert_eq!((streams.delivered(), streams.blocked()), (0, 100));
        assert_eq!(new(&mut streams, &data(0, 0, 150, false)), 100);
        assert_eq!((streams.delivered(), streams.blocked(), streams.duplicate), (200, 0, 50));
        assert_eq!(new(&mut streams, &data(2, 0, 10, true)), 10);
        assert!(streams.ended(StreamId(2)) && !streams.all_ended());
        assert_eq!(new(&mut streams, &data(0, 200, 0, true)), 0);
        assert!(streams.all_ended());
        assert_eq!(streams.delivered_of(StreamId(0)), 200);
    }

    #[test]
    fn limits_are_obeyed_or_the_peer_is_wrong() {
        for broken in [
            data(10, 0, 1, false),
            data(1, 0, 1, false),
            data(0, 701, 100, false),
            data(0, u32::MAX, 10, false),
        ] {
            assert_eq!(incoming().take(&broken), Taken::Violation, "{broken:?}");
        }
        let mut streams = incoming();
        streams.take(&data(0, 0, 700, false));
        // 1000 bytes of all streams.
        assert_eq!(streams.take(&data(2, 0, 301, false)), Taken::Violation);
        assert_eq!(new(&mut streams, &data(2, 0, 300, true)), 300);
        // A stream has one end.
        for broken in [data(2, 300, 1, false), data(2, 0, 200, true), data(0, 0, 600, true)] {
            assert_eq!(streams.take(&broken), Taken::Violation, "{broken:?}");
        }
    }

    #[test]
    fn a_slow_reader_holds_its_own_stream_and_no_other() {
        let mut streams = incoming();
        streams.take(&data(0, 0, 800, false));
        streams.take(&data(2, 0, 200, false));
        streams.free_delivered();
        // Bytes in order count against their stream alone, and no longer against all.
        assert_eq!(streams.advertise(), 2000);
        assert!(!streams.reopened_stream(StreamId(0), 10));
        streams.on_read(StreamId(0), 10_000);
        assert!(streams.reopened_stream(StreamId(0), 10));
        let mut advertised = Vec::new();
        streams.advertise_streams(&mut advertised, 8);
        assert_eq!(advertised, [(StreamId(0), SeqNumber(1600))]);
        assert_eq!((streams.readable(StreamId(0)), streams.readable(StreamId(2))), (0, 200));
        assert_eq!(
            streams.advertise(),
            2000,
            "reading gives back the stream's memory, which no other lacked"
        );
    }

    #[test]
    fn out_of_order_data_counts_for_all_streams() {
        let mut streams = incoming();
        streams.take(&data(0, 1, 400, false));
        streams.free_delivered();
        assert_eq!(streams.advertise(), 1000);
        streams.take(&data(0, 0, 1, false));
        streams.free_delivered();
        assert_eq!(streams.advertise(), 1401);
    }

    #[test]
    fn the_buffer_grows_with_the_path_up_to_its_bound() {
        let mut streams = incoming();
        let path = Path { feedback_delay: Duration::from_millis(10), loss: 0 };
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        streams.autotune(at(10), StreamId(0), 500, path);
        assert_eq!(streams.advertise(), 2000);
        streams.autotune(at(15), StreamId(0), 5000, path);
        assert_eq!(streams.advertise(), 2000);
        streams.autotune(at(20), StreamId(0), 5000, path);
        assert_eq!(streams.advertise(), 4000);
    }

    #[test]
    fn the_user_hears_which_bytes_go_where() {
        let mut streams = incoming();
        let place = |start, skip, len| Some(Accepted { stream: StreamId(0), start, skip, len });
        assert_eq!(streams.take(&data(0, 100, 100, false)), Taken::New(100, place(100, 0, 100)));
        assert_eq!(streams.take(&data(0, 100, 100, false)), Taken::New(0, None));
        assert_eq!(streams.take(&data(0, 0, 50, false)), Taken::New(50, place(0, 0, 50)));
        // The first 20 were delivered, the last 50 arrived.
        assert_eq!(streams.take(&data(0, 30, 120, false)), Taken::New(50, place(50, 20, 100)));
        assert!(streams.stop(StreamId(0)) && !streams.stop(StreamId(0)));
        assert_eq!(streams.take(&data(0, 200, 10, false)), Taken::New(10, None), "no reader wants them");
    }

    #[test]
    fn a_reset_gives_back_what_its_stream_held_and_has_one_end() {
        for (end, right) in [(199, false), (200, true), (800, true), (801, false), (1001, false)] {
            let mut streams = incoming();
            streams.take(&data(2, 0, 100, false));
            streams.take(&data(2, 150, 50, false));
            let reset = streams.on_reset(StreamId(2), 7, SeqNumber(end));
            assert_eq!(reset.is_ok(), right, "{end}");
            if right {
                assert_eq!((streams.advertise(), streams.blocked()), (1000 + u64::from(end), 0));
                assert_eq!(streams.take(&data(2, 150, 50, false)), Taken::New(0, None));
                assert_eq!(streams.take(&data(2, end, 1, false)), Taken::Violation);
                assert_eq!(streams.on_reset(StreamId(2), 8, SeqNumber(end)), Ok(()));
                assert!(streams.on_reset(StreamId(2), 8, SeqNumber(end + 1)).is_err());
                let events: Vec<_> = std::iter::from_fn(|| streams.next_event()).collect();
                let advertised = [StreamEvent::Opened, StreamEvent::Readable].map(|event| event(StreamId(2)));
                assert_eq!(events, [&advertised[..], &[StreamEvent::Reset(StreamId(2), 7)]].concat());
                assert!(streams.is_over(StreamId(2)));
            }
        }
    }

    #[test]
    fn a_stream_opens_those_below_and_is_forgotten_for_good() {
        let mut streams = incoming();
        streams.take(&data(4, 0, 1, true));
        assert_eq!(
            std::iter::from_fn(|| streams.next_opened()).collect::<Vec<_>>(),
            [StreamId(2), StreamId(4)]
        );
        while streams.next_event().is_some() {}
        streams.on_read(StreamId(4), 1);
        assert!(streams.is_over(StreamId(4)) && !streams.is_over(StreamId(2)));
        streams.forget(StreamId(4));
        assert_eq!(streams.take(&data(4, 0, 1, true)), Taken::New(0, None), "it was sent twice");
        assert_eq!(streams.open_streams(), 1);
    }

    #[test]
    fn a_sender_blocked_by_a_stream_learns_its_limit() {
        let mut streams = incoming();
        streams.take(&data(2, 0, 800, false));
        streams.on_read(StreamId(2), 100);
        let mut advertised = Vec::new();
        streams.advertise_streams(&mut advertised, 8);
        assert!(advertised.is_empty() && !streams.reopened_stream(StreamId(2), 10), "less than a quarter");
        assert_eq!(streams.on_held(StreamId(2)), Ok(()));
        streams.advertise_streams(&mut advertised, 8);
        assert_eq!(advertised, [(StreamId(2), SeqNumber(900))]);
        streams.on_read(StreamId(2), 300);
        assert!(streams.reopened_stream(StreamId(2), 10));
        assert!(streams.on_held(StreamId(10)).is_err(), "beyond the streams that may be open");
    }

    proptest! {
        #[test]
        fn any_order_gives_the_stream(order in Just((0..40u32).collect::<Vec<_>>()).prop_shuffle(), again in prop::collection::vec(0..40u32, 0..20)) {
            let mut streams = incoming_with(1000, 1000, 1000);
            for piece in again.iter().chain(&order) {
                let taken = streams.take(&data(0, piece * 10, 10, *piece == 39));
                prop_assert!(matches!(taken, Taken::New(..)));
            }
            prop_assert_eq!(streams.delivered(), 400);
            prop_assert_eq!(streams.duplicate, again.len() as u64 * 10);
            prop_assert!(streams.all_ended());
        }
    }
}
