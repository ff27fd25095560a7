//! Streams that arrive: order, duplicates, and how much more the peer may send.

use crate::congestion::position::Position;
use crate::ranges::{Range, RangeSet};
use crate::units::{Duration, Instant, SeqNumber};

use super::packet::{Data, StreamId};

/// Separate ranges of one stream that are held at most.
const MAX_RANGES: usize = 4096;

/// The octet 0 of a stream.
pub(super) const START: Position = Position::first(SeqNumber(0));

/// What became of a packet's octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// All of them, of which so many had not arrived before.
    New(u64),
    /// Nothing: there is no room to remember them. They count as not arrived.
    NoRoom,
    /// The peer broke a rule.
    Violation,
}

/// One stream.
#[derive(Clone, Debug)]
struct Stream {
    /// Octets below were handed on.
    delivered: Position,
    above: RangeSet,
    /// The end of what arrived.
    highest: Position,
    /// Where it ends, once that is known.
    end: Option<Position>,
    /// What the reader has taken.
    read: Position,
    /// What the peer may send up to, as it was told last.
    told: Position,
}

/// All streams of one direction.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    streams: Vec<Stream>,
    max_streams: u16,
    stream_buffer: u64,
    buffer: Buffer,
    /// Sums over all streams.
    delivered: u64,
    read: u64,
    highest: u64,
    /// What the peer may send up to, as it was told last.
    told: u64,
    /// Octets that came again.
    pub duplicate: u64,
}

impl Incoming {
    pub fn new(buffer: u64, max_buffer: u64, stream_buffer: u64, max_streams: u16) -> Self {
        Self {
            streams: Vec::new(),
            max_streams: max_streams.max(1),
            stream_buffer,
            buffer: Buffer { size: buffer, max: max_buffer.max(buffer), since: Instant::ZERO, before: 0 },
            delivered: 0,
            read: 0,
            highest: 0,
            told: buffer,
            duplicate: 0,
        }
    }

    fn stream(&mut self, id: StreamId) -> Option<&mut Stream> {
        if id.0 >= self.max_streams {
            return None;
        }
        let place = usize::from(id.0);
        if place >= self.streams.len() {
            let fresh = Stream {
                delivered: START,
                above: RangeSet::default(),
                highest: START,
                end: None,
                read: START,
                told: START + self.stream_buffer,
            };
            self.streams.resize(place + 1, fresh);
        }
        Some(&mut self.streams[place])
    }

    /// Takes in the octets of `data`.
    pub fn take(&mut self, data: &Data) -> Taken {
        let (limit, before) = (self.told, self.highest);
        let Some(stream) = self.stream(data.stream) else { return Taken::Violation };
        let start = stream.delivered.nearest(data.offset);
        let end = start + u64::from(data.payload_len);
        let grows = end.saturating_since(stream.highest);
        let past_end = stream.end.is_some_and(|at| end > at || (data.fin && end != at));
        if start < START || past_end || end > stream.told || before + grows > limit {
            return Taken::Violation;
        }
        if data.fin && stream.highest > end {
            return Taken::Violation;
        }
        let old = stream.delivered;
        let new = match stream.add(start, end) {
            Some(new) => new,
            None => return Taken::NoRoom,
        };
        if data.fin {
            stream.end = Some(end);
        }
        stream.highest = stream.highest.max(end);
        let advanced = stream.delivered - old;
        self.highest += grows;
        self.delivered += advanced;
        self.duplicate += u64::from(data.payload_len) - new;
        Taken::New(new)
    }

    /// The reader of `id` has taken `octets` more, of those delivered.
    pub fn on_read(&mut self, id: StreamId, octets: u64) {
        let Some(stream) = self.streams.get_mut(usize::from(id.0)) else { return };
        let octets = octets.min(stream.delivered - stream.read);
        stream.read += octets;
        self.read += octets;
    }

    /// Readers take all there is.
    pub fn read_all(&mut self) {
        if self.read == self.delivered {
            return;
        }
        for stream in &mut self.streams {
            stream.read = stream.delivered;
        }
        self.read = self.delivered;
    }

    /// Octets handed on, in order and once: of all streams.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Octets handed on of one stream.
    pub fn delivered_of(&self, id: StreamId) -> u64 {
        self.streams.get(usize::from(id.0)).map_or(0, |stream| stream.delivered - START)
    }

    /// Octets of one stream that the reader may take.
    pub fn readable(&self, id: StreamId) -> u64 {
        self.streams.get(usize::from(id.0)).map_or(0, |stream| stream.delivered - stream.read)
    }

    /// Octets that wait for others before them.
    pub fn blocked(&self) -> u64 {
        self.streams.iter().flat_map(|stream| stream.above.iter()).map(Range::len).sum()
    }

    /// True when `id` has arrived to its end.
    pub fn ended(&self, id: StreamId) -> bool {
        self.streams.get(usize::from(id.0)).is_some_and(Stream::ended)
    }

    /// True when every stream there is has arrived to its end, and there is one.
    pub fn all_ended(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(Stream::ended)
    }

    /// The window grows with what arrives in a round-trip time.
    pub fn autotune(&mut self, now: Instant, received: u64, rtt_min: Option<Duration>) {
        if let Some(rtt_min) = rtt_min {
            self.buffer.autotune(now, received, rtt_min);
        }
    }

    /// Octets of all streams that the peer may send. What was promised stays so.
    fn limit(&self) -> u64 {
        self.told.max(self.read + self.buffer.size)
    }

    /// The limit, which the peer is now told.
    pub fn tell(&mut self) -> u64 {
        self.told = self.limit();
        self.told
    }

    /// The next streams whose limits have moved by a quarter of the buffer since they were told, which they now are.
    pub fn tell_streams(&mut self, out: &mut Vec<(StreamId, SeqNumber)>, most: usize) {
        let buffer = self.stream_buffer;
        for (number, stream) in self.streams.iter_mut().enumerate() {
            if out.len() == most {
                return;
            }
            let limit = stream.read + buffer;
            if stream.end.is_none() && limit.saturating_since(stream.told) >= buffer / 4 {
                stream.told = limit;
                out.push((StreamId(number as u16), limit.wire()));
            }
        }
    }

    /// Every limit is told anew: the peer asks because one holds it.
    pub fn tell_all_streams(&mut self, out: &mut Vec<(StreamId, SeqNumber)>, most: usize) {
        for (number, stream) in
            self.streams.iter_mut().enumerate().filter(|(_, stream)| stream.end.is_none()).take(most)
        {
            stream.told = stream.told.max(stream.read + self.stream_buffer);
            out.push((StreamId(number as u16), stream.told.wire()));
        }
    }

    /// True when the peer has next to no room as it was told, and there is some: it should hear at once.
    pub fn reopened(&self, packet: u64) -> bool {
        let told = self.told - self.highest;
        told < 2 * packet && self.limit() - self.highest >= (self.buffer.size / 4).max(2 * packet)
    }
}

impl Stream {
    /// Adds octets and returns how many were new; `None` when there are too many ranges.
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
        self.end == Some(self.delivered)
    }
}

/// How much is held, which grows with the path: four times what arrives in a round-trip time, so that neither a start-up,
/// which doubles, nor a repair, which takes a round trip, is held by it.
#[derive(Clone, Debug)]
struct Buffer {
    size: u64,
    max: u64,
    since: Instant,
    before: u64,
}

impl Buffer {
    fn autotune(&mut self, now: Instant, received: u64, rtt_min: Duration) {
        if now.saturating_since(self.since) < rtt_min {
            return;
        }
        let lately = received - self.before;
        self.since = now;
        self.before = received;
        self.size = self.size.max(lately.saturating_mul(4)).min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn incoming() -> Incoming {
        Incoming::new(1000, 4000, 800, 4)
    }

    fn data(stream: u16, offset: u32, payload_len: u16, fin: bool) -> Data {
        Data { stream: StreamId(stream), offset: SeqNumber(offset), payload_len, fin, ..Data::default() }
    }

    #[test]
    fn octets_count_once_and_in_order() {
        let mut streams = incoming();
        assert_eq!(streams.take(&data(0, 100, 100, false)), Taken::New(100));
        assert_eq!((streams.delivered(), streams.blocked()), (0, 100));
        assert_eq!(streams.take(&data(0, 0, 150, false)), Taken::New(100));
        assert_eq!((streams.delivered(), streams.blocked(), streams.duplicate), (200, 0, 50));
        assert_eq!(streams.take(&data(1, 0, 10, true)), Taken::New(10));
        assert!(streams.ended(StreamId(1)) && !streams.all_ended());
        assert_eq!(streams.take(&data(0, 200, 0, true)), Taken::New(0));
        assert!(streams.all_ended());
        assert_eq!(streams.delivered_of(StreamId(0)), 200);
    }

    #[test]
    fn limits_are_obeyed_or_the_peer_is_wrong() {
        for broken in [data(4, 0, 1, false), data(0, 701, 100, false), data(0, u32::MAX, 10, false)] {
            assert_eq!(incoming().take(&broken), Taken::Violation, "{broken:?}");
        }
        let mut streams = incoming();
        streams.take(&data(0, 0, 700, false));
        // 1000 octets of all streams.
        assert_eq!(streams.take(&data(1, 0, 301, false)), Taken::Violation);
        assert_eq!(streams.take(&data(1, 0, 300, true)), Taken::New(300));
        // A stream has one end.
        for broken in [data(1, 300, 1, false), data(1, 0, 200, true), data(0, 0, 600, true)] {
            assert_eq!(streams.take(&broken), Taken::Violation, "{broken:?}");
        }
    }

    #[test]
    fn a_slow_reader_holds_the_window() {
        let mut streams = incoming();
        streams.take(&data(0, 0, 800, false));
        streams.take(&data(1, 0, 200, false));
        assert_eq!(streams.tell(), 1000);
        assert!(!streams.reopened(100));
        streams.on_read(StreamId(0), 10_000);
        assert!(streams.reopened(100));
        assert_eq!(streams.tell(), 1800);
        let mut told = Vec::new();
        streams.tell_streams(&mut told, 8);
        assert_eq!(told, [(StreamId(0), SeqNumber(1600))]);
        assert_eq!((streams.readable(StreamId(0)), streams.readable(StreamId(1))), (0, 200));
    }

    #[test]
    fn the_buffer_grows_with_the_path_up_to_its_bound() {
        let mut streams = incoming();
        let rtt = Some(Duration::from_millis(10));
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        streams.autotune(at(10), 500, rtt);
        assert_eq!(streams.tell(), 2000);
        streams.autotune(at(15), 5000, rtt);
        assert_eq!(streams.tell(), 2000);
        streams.autotune(at(20), 5000, rtt);
        assert_eq!(streams.tell(), 4000);
    }

    proptest! {
        #[test]
        fn any_order_gives_the_stream(order in Just((0..40u32).collect::<Vec<_>>()).prop_shuffle(), again in prop::collection::vec(0..40u32, 0..20)) {
            let mut streams = Incoming::new(1000, 1000, 1000, 1);
            for piece in again.iter().chain(&order) {
                let taken = streams.take(&data(0, piece * 10, 10, *piece == 39));
                prop_assert!(matches!(taken, Taken::New(_)));
            }
            prop_assert_eq!(streams.delivered(), 400);
            prop_assert_eq!(streams.duplicate, again.len() as u64 * 10);
            prop_assert!(streams.all_ended());
        }
    }
}
