//! Two drivers as a live endpoint has them: bytes in buffers, packets sealed and opened with whole numbers, and a path that
//! loses, reorders and doubles datagrams.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use tacit_packet::endpoint::Event;
use tacit_packet::tack::packet::{Body, StreamId};
use tacit_packet::tack::wire::{Prefix, decode_sealed, encode_sealed};
use tacit_packet::tack::{Forged, Protector, Tag};
use tacit_packet::units::{Duration, Instant};
use tacit_packet::{Ecn, Endpoint};
use tacit_tack_proto::{Config, Connection, Received, StreamEvent, Transmit};

use crate::joined::{Random, ends};

/// The byte at `place` of the data that the end `by` writes on `stream`.
pub fn byte(by: usize, stream: StreamId, place: u64) -> u8 {
    Random((place / 8) ^ (u64::from(stream.0) << 24) ^ ((by as u64) << 60)).next().to_le_bytes()
        [(place % 8) as usize]
}

/// A tag that follows from the whole number, so that an end that finds a wrong one is caught.
struct Numbered;

impl Protector for Numbered {
    fn seal(&self, number: u64, _: &[u8], _: &mut [u8]) -> Tag {
        [number.to_be_bytes(), number.to_le_bytes()].concat().try_into().expect("sixteen bytes")
    }

    fn open(&self, number: u64, header: &[u8], body: &mut [u8], tag: &Tag) -> Result<(), Forged> {
        if self.seal(number, header, body) == *tag { Ok(()) } else { Err(Forged) }
    }
}

/// Bytes that were written and that the peer may lack.
#[derive(Default)]
pub struct Writing {
    base: u64,
    bytes: VecDeque<u8>,
    pub written: u64,
}

/// Bytes that arrived, those in order first; a gap is `None`.
#[derive(Default)]
pub struct Reading {
    pub taken: u64,
    bytes: VecDeque<Option<u8>>,
}

/// One end, with its buffers.
pub struct End {
    pub side: usize,
    pub connection: Connection,
    pub writing: BTreeMap<StreamId, Writing>,
    pub reading: BTreeMap<StreamId, Reading>,
    pub events: Vec<Event>,
    /// Datagrams that wait, by number, and those that arrived.
    pub datagrams: BTreeMap<u64, Vec<u8>>,
    pub datagrams_in: Vec<Vec<u8>>,
    pub challenges: Vec<[u8; 8]>,
    pub responses: Vec<[u8; 8]>,
    pub longest: usize,
}

impl End {
    pub fn write(&mut self, stream: StreamId, bytes: u64) {
        let writing = self.writing.entry(stream).or_default();
        let places = writing.written..writing.written + bytes;
        writing.bytes.extend(places.map(|place| byte(self.side, stream, place)));
        writing.written += bytes;
        self.connection.write_stream(stream, bytes);
    }

    /// Takes the delivered bytes of `stream` and compares them.
    pub fn read(&mut self, stream: StreamId) {
        let delivered = self.connection.delivered_of(stream);
        let Some(reading) = self.reading.get_mut(&stream) else { return };
        while reading.taken < delivered {
            let arrived = reading.bytes.pop_front().flatten();
            assert_eq!(arrived, Some(byte(1 - self.side, stream, reading.taken)), "{stream:?}");
            reading.taken += 1;
        }
        self.connection.read(stream, u64::MAX);
    }

    fn bytes_of(&mut self, sent: &Transmit) -> Vec<u8> {
        match &sent.packet.body {
            Body::Data(data) => {
                assert_eq!(sent.start as u32, data.offset.0);
                let Some(writing) = self.writing.get(&data.stream) else {
                    assert_eq!(data.payload_len, 0, "bytes that were never written");
                    return Vec::new();
                };
                assert!(sent.start >= writing.base, "bytes that the peer has");
                let from = (sent.start - writing.base) as usize;
                writing.bytes.range(from..from + usize::from(data.payload_len)).copied().collect()
            }
            Body::Datagram(_) => {
                let oldest = self.connection.oldest_datagram();
                let bytes = self.datagrams.remove(&sent.start).expect("each is sent once");
                self.datagrams.retain(|number, _| *number >= oldest);
                bytes
            }
            _ => Vec::new(),
        }
    }

    pub fn seal(&mut self, sent: &Transmit) -> Vec<u8> {
        let (content, mut bytes) = (self.bytes_of(sent), Vec::new());
        encode_sealed(&sent.packet, &content, sent.number, &Numbered, &mut bytes).expect("it has a form");
        self.longest = self.longest.max(bytes.len());
        bytes
    }

    pub fn open(&mut self, now: Instant, mut bytes: Vec<u8>) {
        let prefix = Prefix::parse(&bytes).expect("a packet");
        let number = self.connection.whole_number(prefix.number, prefix.short);
        let (packet, content) = decode_sealed(&mut bytes, number, &Numbered).expect("the number is found");
        match self.connection.receive(now, &packet, Ecn::NotEct) {
            Some(Received::Bytes(accepted)) => {
                let reading = self.reading.entry(accepted.stream).or_default();
                let from = (accepted.start - reading.taken) as usize;
                let end = from + accepted.len as usize;
                if reading.bytes.len() < end {
                    reading.bytes.resize(end, None);
                }
                for (place, byte) in (from..end).zip(&content[accepted.skip as usize..]) {
                    reading.bytes[place] = Some(*byte);
                }
            }
            Some(Received::Datagram(len)) => {
                assert_eq!(usize::from(len), content.len());
                self.datagrams_in.push(content.to_vec());
            }
            Some(Received::PathChallenge(token)) => self.challenges.push(token),
            Some(Received::PathResponse(token)) => self.responses.push(token),
            None => {}
        }
    }

    /// Lets go of the bytes that the peer has.
    pub fn release(&mut self, stream: StreamId) {
        let acked = self.connection.acked_of(stream);
        if let Some(writing) = self.writing.get_mut(&stream) {
            writing.bytes.drain(..(acked - writing.base) as usize);
            writing.base = acked;
        }
    }
}

/// When a datagram arrives, its place among all, the end it goes to, and its bytes.
type Flying = (Instant, u64, usize, Vec<u8>);

/// Both ends and the path between them.
pub struct Net {
    pub now: Instant,
    pub ends: [End; 2],
    pub delay: Duration,
    pub lose_one_in: u64,
    pub delay_one_in: u64,
    pub double_one_in: u64,
    pub random: Random,
    flying: BinaryHeap<Reverse<Flying>>,
    order: u64,
}

impl Net {
    pub fn new(config: Config) -> Self {
        let [local, remote] = ends();
        let connections =
            [Connection::connect(config, local, 7, Instant::ZERO), Connection::listen(config, remote, 8)];
        let mut side = 0;
        let ends = connections.map(|connection| {
            side += 1;
            End {
                side: side - 1,
                connection,
                writing: BTreeMap::new(),
                reading: BTreeMap::new(),
                events: Vec::new(),
                datagrams: BTreeMap::new(),
                datagrams_in: Vec::new(),
                challenges: Vec::new(),
                responses: Vec::new(),
                longest: 0,
            }
        });
        Self {
            now: Instant::ZERO,
            ends,
            delay: Duration::from_millis(10),
            lose_one_in: 0,
            delay_one_in: 0,
            double_one_in: 0,
            random: Random(1),
            flying: BinaryHeap::new(),
            order: 0,
        }
    }

    /// A datagram of the end `from` enters the path.
    pub fn launch(&mut self, from: usize, bytes: &[u8]) {
        if self.random.once_in(self.lose_one_in) {
            return;
        }
        let copies = 1 + u64::from(self.random.once_in(self.double_one_in));
        for _ in 0..copies {
            let mut at = self.now + self.delay;
            if self.random.once_in(self.delay_one_in) {
                at += Duration::from_micros(self.random.next() % 20_000);
            }
            self.flying.push(Reverse((at, self.order, 1 - from, bytes.to_vec())));
            self.order += 1;
        }
    }

    fn drain(&mut self, user: &mut impl FnMut(&mut End, Instant, StreamEvent)) {
        for side in 0..2 {
            loop {
                while let Some(sent) = self.ends[side].connection.poll_packet(self.now) {
                    let bytes = self.ends[side].seal(&sent);
                    self.launch(side, &bytes);
                }
                let end = &mut self.ends[side];
                end.events.extend(std::iter::from_fn(|| end.connection.poll_event()));
                let Some(event) = end.connection.poll_stream_event() else { break };
                match event {
                    StreamEvent::Writable(stream) => end.release(stream),
                    StreamEvent::Finished(stream) => drop(end.writing.remove(&stream)),
                    _ => {}
                }
                user(end, self.now, event);
            }
        }
    }

    /// Runs all events until `until`; `user` hears of streams.
    pub fn run(&mut self, until: Instant, mut user: impl FnMut(&mut End, Instant, StreamEvent)) {
        let mut still = 0;
        loop {
            self.drain(&mut user);
            let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
            let timers = [0, 1].map(|side: usize| self.ends[side].connection.poll_timeout());
            let next = timers.into_iter().chain([arrival]).flatten().min().filter(|next| *next <= until);
            let Some(next) = next else { break };
            still = if next > self.now { 0 } else { still + 1 };
            assert!(still < 100_000, "time stands still: {timers:?}");
            self.now = next.max(self.now);
            if arrival == Some(next)
                && let Some(Reverse((.., to, bytes))) = self.flying.pop()
            {
                self.ends[to].open(self.now, bytes);
            } else {
                for end in &mut self.ends {
                    end.connection.handle_timeout(self.now);
                }
            }
        }
        self.now = until;
    }
}
