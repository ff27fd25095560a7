//! The streams there are: their numbers, their table, and the events for their user.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::violation::Violation;
use tacit_packet::tack::packet::StreamId;

/// Streams of either side in the life of a connection at most: as many as there are numbers.
pub(super) const MAX_COUNT: u32 = StreamId::MAX / 2 + 1;

/// An event of a stream. Each kind waits at most once per stream, so a slow user costs no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened it.
    Opened(StreamId),
    /// More of it was delivered.
    Readable(StreamId),
    /// The peer ended it, and all of it was delivered.
    Ended(StreamId),
    /// The peer gave up its direction, with a reason of the application: no more is delivered.
    Reset(StreamId, u32),
    /// The peer has more of it than before, or takes more. The user may release its copy up to the first gap.
    Writable(StreamId),
    /// The peer wants no more of it, with a reason of the application. Our direction was reset for the same reason.
    Stopped(StreamId, u32),
    /// The peer has all of it and its end, or knows that our direction was reset.
    Finished(StreamId),
    /// [`open_stream`](super::Connection::open_stream), which had none, has some.
    MayOpen,
}

/// Kinds of [`StreamEvent`] that wait, as bits; the lowest is reported first.
pub(super) mod news {
    pub const OPENED: u8 = 1;
    pub const READABLE: u8 = 1 << 1;
    pub const ENDED: u8 = 1 << 2;
    pub const RESET: u8 = 1 << 3;
    pub const WRITABLE: u8 = 1 << 4;
    pub const STOPPED: u8 = 1 << 5;
    pub const FINISHED: u8 = 1 << 6;
}

/// One direction of a stream, as far as a [`Table`] looks into it.
pub(super) trait Half {
    /// Kinds of [`news`] that wait.
    fn news(&mut self) -> &mut u8;
}

/// One direction of all streams. Stream 0 is always there.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    zero: T,
    /// Where the others stand; of those that went, the places are free.
    places: FxHashMap<StreamId, usize>,
    others: Vec<Option<(StreamId, T)>>,
    free: Vec<usize>,
    /// Streams with events to report, the oldest first. They stay in the table until then.
    with_events: VecDeque<StreamId>,
}

impl<T: Half> Table<T> {
    pub fn new(zero: T) -> Self {
        Self {
            zero,
            places: FxHashMap::default(),
            others: Vec::new(),
            free: Vec::new(),
            with_events: VecDeque::new(),
        }
    }

    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&T> {
        if id == StreamId(0) {
            return Some(&self.zero);
        }
        self.others.get(*self.places.get(&id)?)?.as_ref().map(|(_, stream)| stream)
    }

    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut T> {
        if id == StreamId(0) {
            return Some(&mut self.zero);
        }
        self.others.get_mut(*self.places.get(&id)?)?.as_mut().map(|(_, stream)| stream)
    }

    pub fn zero(&self) -> &T {
        &self.zero
    }

    pub fn insert(&mut self, id: StreamId, stream: T) {
        debug_assert!(self.get(id).is_none(), "a stream is opened once, and stream 0 never");
        let place = self.free.pop().unwrap_or(self.others.len());
        if place == self.others.len() {
            self.others.push(None);
        }
        self.others[place] = Some((id, stream));
        self.places.insert(id, place);
    }

    /// Takes a stream out. False where there was none.
    pub fn remove(&mut self, id: StreamId) -> bool {
        let Some(place) = self.places.remove(&id) else { return false };
        self.others[place] = None;
        self.free.push(place);
        true
    }

    /// Streams beside stream 0.
    pub fn others(&self) -> usize {
        self.places.len()
    }

    /// All streams, in an order that means nothing.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let others = self.others.iter().flatten().map(|(_, stream)| stream);
        std::iter::once(&self.zero).chain(others)
    }

    /// The streams beside stream 0, the oldest first.
    pub fn numbers(&self) -> Vec<StreamId> {
        let mut numbers: Vec<_> = self.others.iter().flatten().map(|(id, _)| *id).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Queues event `kind` of `id`.
    #[inline]
    pub fn queue_event(&mut self, id: StreamId, kind: u8) {
        let Some(stream) = self.get_mut(id) else { return };
        let before = *stream.news();
        *stream.news() = before | kind;
        if before == 0 {
            self.with_events.push_back(id);
        }
    }

    /// The next news.
    pub fn next_news(&mut self) -> Option<(StreamId, u8)> {
        let id = *self.with_events.front()?;
        let waiting = self.get_mut(id)?.news();
        let kind = *waiting & waiting.wrapping_neg();
        *waiting &= !kind;
        if *waiting == 0 {
            self.with_events.pop_front();
        }
        Some((id, kind))
    }
}

/// Which streams were opened, and how many more may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The lowest bit of the streams that this end opens.
    local_bit: u32,
    /// Streams of ours, and how many the peer allows, counted from the first.
    opened: u32,
    local_limit: u32,
    /// Streams of the peer, and how many were allowed it.
    peers: u32,
    peers_limit: u32,
    /// Streams of the peer that are forgotten, and how many may be open at once.
    over: u32,
    most: u32,
}

/// Meaning of a number that the peer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A stream that was opened, and may be forgotten.
    Known,
    /// One that the peer opens by it, with all of its streams below.
    Opens,
    /// One that we should have opened, or more of the peer's than it was allowed.
    Wrong,
}

impl Numbers {
    /// For the end that opened the connection, or the other. Of the peer's streams `most` may be open at once.
    pub fn new(client: bool, most: u16) -> Self {
        let (local_bit, most) = (u32::from(!client), u32::from(most.max(1)));
        // Stream 0 is the client's first.
        let (opened, peers) = (u32::from(client), u32::from(!client));
        let peers_limit = peers + (1 << most.ilog2());
        Self { local_bit, opened, local_limit: opened, peers, peers_limit, over: 0, most }
    }

    /// The peer's streams that may be open before it hears of more: their logarithm, as a hello has it.
    pub fn first_allowance(&self) -> u8 {
        self.most.ilog2() as u8
    }

    /// The peer's hello said so of our streams.
    pub fn greet(&mut self, allowance: u8) {
        self.local_limit = self.opened + (1 << allowance.min(15));
    }

    /// Opens a stream of ours.
    pub fn open(&mut self) -> Option<StreamId> {
        (self.opened < self.local_limit).then(|| {
            self.opened += 1;
            StreamId(2 * (self.opened - 1) + self.local_bit)
        })
    }

    /// The peer allows `limit` of our streams. True where we had none left and have some.
    pub fn raise(&mut self, limit: u32) -> Result<bool, Violation> {
        if limit > MAX_COUNT {
            return Err(Violation);
        }
        let was_out = self.opened >= self.local_limit;
        self.local_limit = self.local_limit.max(limit);
        Ok(was_out && self.opened < self.local_limit)
    }

    /// The meaning of `id`, which the peer names.
    #[inline]
    pub fn named(&self, id: StreamId) -> Named {
        let (place, ours) = (id.0 / 2, id.0 % 2 == self.local_bit);
        match ours {
            true if place < self.opened => Named::Known,
            true => Named::Wrong,
            false if place < self.peers => Named::Known,
            false if place < self.peers_limit => Named::Opens,
            false => Named::Wrong,
        }
    }

    /// The next stream up to `id`, which the peer opens.
    pub fn open_up_to(&mut self, id: StreamId) -> Option<StreamId> {
        (self.peers <= id.0 / 2).then(|| {
            self.peers += 1;
            StreamId(2 * (self.peers - 1) + (1 - self.local_bit))
        })
    }

    /// Streams of the peer that are not forgotten.
    pub fn peers_open(&self) -> u32 {
        self.peers - self.local_bit - self.over
    }

    /// `id` is forgotten.
    pub fn forget(&mut self, id: StreamId) {
        self.over += u32::from(id.0 % 2 != self.local_bit);
    }

    /// How many streams the peer is to be allowed now, where it should hear of it: it has used half of its allowance.
    pub fn news(&self) -> Option<u32> {
        // Stream 0, which is a client's, is open for ever.
        let limit = (self.local_bit + self.most + self.over).min(MAX_COUNT);
        (limit > self.peers_limit && self.peers_limit - self.peers <= self.most / 2).then_some(limit)
    }

    /// The peer knows so.
    pub fn on_advertised(&mut self, limit: u32) {
        self.peers_limit = limit;
    }
}
