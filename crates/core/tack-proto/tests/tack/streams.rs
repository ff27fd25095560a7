//! Streams that come and go, over a path that loses, reorders and doubles.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tacit_packet::endpoint::Event;
use tacit_packet::tack::packet::StreamId;
use tacit_packet::units::{Bytes, Duration, Instant};
use tacit_tack_proto::{Config, Reader, StreamEvent};

use crate::driver::{End, Net};
use crate::joined::Random;
use crate::ms;

const MAX_STREAMS: u16 = 16;

fn config() -> Config {
    Config {
        reader: Reader::Explicit,
        receive_buffer: Bytes(64 << 10),
        stream_buffer: Bytes(20_000),
        max_streams: MAX_STREAMS,
        fit_sync: true,
        ..Config::default()
    }
}

/// Fate of each direction of each stream.
#[derive(Default)]
struct Books {
    /// Bytes that each end wrote on streams that it ended, and the streams it gave up.
    ended: BTreeMap<(usize, StreamId), u64>,
    reset: BTreeSet<(usize, StreamId)>,
    /// Directions whose end the reader has seen, and those whose end the writer has.
    read_to_end: BTreeSet<(usize, StreamId)>,
    heard_reset: BTreeSet<(usize, StreamId)>,
    stopped: BTreeSet<(usize, StreamId)>,
    opened: u32,
    to_open: u32,
    most_open: u32,
    random: Random,
}

impl Books {
    /// An end's use of a stream of its own, or of the peer.
    fn begin(&mut self, end: &mut End, stream: StreamId) {
        let draw = self.random.next();
        let bytes = match draw % 16 {
            0 => 0,
            // Beyond the buffer of a stream.
            1 => 50_000,
            _ => draw >> 8 & 0x7ff,
        };
        end.write(stream, bytes);
        if (draw >> 32).is_multiple_of(8) {
            end.connection.reset_stream(stream, stream.0 ^ 0x55);
            self.reset.insert((end.side, stream));
        } else {
            end.connection.close_stream(stream);
            self.ended.insert((end.side, stream), bytes);
        }
        if (draw >> 40).is_multiple_of(8) {
            end.connection.stop_stream(stream, stream.0 ^ 0xaa);
            end.reading.remove(&stream);
        }
    }

    fn open(&mut self, end: &mut End) {
        while self.opened < self.to_open
            && let Some(stream) = end.connection.open_stream()
        {
            self.opened += 1;
            self.begin(end, stream);
        }
    }

    fn on_event(&mut self, end: &mut End, event: StreamEvent) {
        self.most_open = self.most_open.max(end.connection.peer_streams());
        let peer = 1 - end.side;
        match event {
            StreamEvent::Opened(stream) => {
                assert_ne!(stream.0 as usize % 2, end.side, "the peer's are others than ours");
                self.begin(end, stream);
            }
            StreamEvent::MayOpen => {}
            // Some readers are slow: they read at the end, or when they are next asked.
            StreamEvent::Readable(stream) if stream.0 % 5 == 1 => {}
            StreamEvent::Readable(stream) => end.read(stream),
            StreamEvent::Ended(stream) => {
                end.read(stream);
                let taken = end.reading.remove(&stream).map_or(0, |reading| reading.taken);
                if !self.stopped.contains(&(peer, stream)) && self.ended.contains_key(&(peer, stream)) {
                    // Of one that we stopped the driver got the bytes before.
                    assert!(taken <= self.ended[&(peer, stream)]);
                }
                assert!(self.read_to_end.insert((peer, stream)), "an end is told once");
            }
            StreamEvent::Reset(stream, code) => {
                end.reading.remove(&stream);
                assert!(code == stream.0 ^ 0x55 || code == stream.0 ^ 0xaa);
                assert!(self.heard_reset.insert((peer, stream)), "a reset is told once");
            }
            StreamEvent::Stopped(stream, code) => {
                assert_eq!(code, stream.0 ^ 0xaa);
                self.stopped.insert((end.side, stream));
            }
            StreamEvent::Writable(_) | StreamEvent::Finished(_) => {}
        }
    }
}

/// Opens and closes `streams` from both ends.
fn come_and_go(net: &mut Net, streams: u32, seed: u64) -> Books {
    let mut books = Books { to_open: streams, random: Random(seed), ..Books::default() };
    let (mut rounds, mut until) = (0, Instant::ZERO);
    while books.opened < streams || net.ends.iter().any(|end| end.connection.open_streams() > 0) {
        for end in &mut net.ends {
            books.open(end);
            let slow: Vec<_> = end.reading.keys().copied().filter(|stream| stream.0 % 5 == 1).collect();
            slow.into_iter().for_each(|stream| end.read(stream));
        }
        until += ms(20);
        net.run(until, |end, _, event| {
            books.on_event(end, event);
            books.open(end);
        });
        rounds += 1;
        let open = net.ends.each_ref().map(|end| end.connection.open_streams());
        assert!(rounds < 20_000, "{} of {streams} were opened, {open:?} are open", books.opened);
        assert!(!net.ends.iter().any(|end| end.events.contains(&Event::Reset)), "{:?}", net.ends[0].events);
    }
    for end in &mut net.ends {
        assert!(end.writing.is_empty(), "{:?}", end.writing.keys());
        end.connection.close();
    }
    until += Duration::from_secs(300);
    net.run(until, |end, _, event| books.on_event(end, event));
    for end in &net.ends {
        assert_eq!(end.events.last(), Some(&Event::Closed), "{:?}", end.events);
        assert!(end.longest <= 1472, "{} bytes of UDP payload", end.longest);
    }
    // Stream 0, which each end ends by closing the connection.
    for side in 0..2 {
        assert!(books.read_to_end.remove(&(side, StreamId(0))));
    }
    for direction in books.ended.keys() {
        let reported = [&books.read_to_end, &books.heard_reset].map(|reported| reported.contains(direction));
        assert_eq!(
            reported.into_iter().filter(|reported| *reported).count(),
            1,
            "{direction:?} ended or was given up"
        );
        assert!(reported[0] || books.stopped.contains(direction), "neither end gave {direction:?} up");
    }
    assert!(books.reset.iter().all(|direction| !books.read_to_end.contains(direction)));
    books
}

#[test]
fn ten_thousand_streams_come_and_go_where_sixteen_may_be_open() {
    let mut net = Net::new(config());
    (net.lose_one_in, net.delay_one_in, net.double_one_in) = (50, 20, 50);
    let books = come_and_go(&mut net, 10_000, 1);
    assert_eq!(books.opened, 10_000);
    assert_eq!(books.most_open, u32::from(MAX_STREAMS));
    assert!(
        books.heard_reset.len() > 2_000 && books.stopped.len() > 1_000 && books.read_to_end.len() > 10_000
    );
}

/// As many streams are open at once as were promised, after `churn` of them came and went, in groups and in any order.
fn most_at_once_after(churn: u32) -> usize {
    let mut net = Net::new(Config { reader: Reader::Explicit, fit_sync: true, ..Config::default() });
    let (mut random, mut until) = (Random(7), ms(100));
    net.run(Instant::ZERO + until, |_, _, _| {});
    let mut opened = 0;
    while opened < churn {
        let group = 1 + (random.next() % 256) as usize;
        let mut streams: Vec<_> = (0..group).map_while(|_| net.ends[0].connection.open_stream()).collect();
        opened += streams.len() as u32;
        while !streams.is_empty() {
            let stream = streams.swap_remove(random.next() as usize % streams.len());
            net.ends[0].connection.close_stream(stream);
        }
        until += ms(50);
        net.run(Instant::ZERO + until, |end, _, event| {
            if let StreamEvent::Opened(stream) = event {
                end.connection.close_stream(stream);
            }
        });
    }
    until += Duration::from_secs(1);
    net.run(Instant::ZERO + until, |_, _, _| {});
    assert_eq!(net.ends.each_ref().map(|end| end.connection.open_streams()), [0, 0]);
    let mut open = 0;
    for _ in 0..10 {
        while let Some(stream) = net.ends[0].connection.open_stream() {
            net.ends[0].write(stream, 1);
            open += 1;
        }
        until += ms(50);
        net.run(Instant::ZERO + until, |_, _, _| {});
    }
    open
}

#[test]
fn closed_streams_free_their_slots_in_any_order() {
    let most = usize::from(Config::default().max_streams);
    for churn in [0, 1, 100, 100_000] {
        assert_eq!(most_at_once_after(churn), most, "after {churn}");
    }
}

proptest! {
    #[test]
    fn streams_come_and_go_in_any_weather(
        (lose, delay, double) in (prop::sample::select(vec![0u64, 3, 10, 100]), 0u64..6, 0u64..6),
        (streams, most, buffer, seed) in (1u32..120, 1u16..20, 3_000u64..60_000, any::<u64>()),
    ) {
        let config = Config {
            max_streams: most,
            stream_buffer: Bytes(buffer),
            idle_timeout: Duration::from_secs(3_600),
            ..config()
        };
        let mut net = Net::new(config);
        (net.lose_one_in, net.delay_one_in, net.double_one_in) = (lose, delay, double);
        net.random = Random(seed);
        let books = come_and_go(&mut net, streams, seed ^ 1);
        prop_assert!(books.most_open <= u32::from(most));
    }
}
