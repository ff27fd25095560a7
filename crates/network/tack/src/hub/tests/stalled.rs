//! Stalled readers must not affect other streams of the connection.

use std::collections::BTreeMap;

use super::*;
use crate::session::BEYOND_LIMIT;

/// How a reader at the server reads its stream.
#[derive(Clone, Copy)]
enum Reads {
    All,
    /// This number of bytes in total, like a program that was paused when its system's buffers were full.
    Only(usize),
    /// This number of bytes per millisecond.
    Slowly(usize),
}

/// A client whose writers always have more, and a server with different readers, at 100 Mb/s and 40 ms.
struct Carried {
    net: Net,
    client: u32,
    server: u32,
    streams: BTreeMap<StreamId, (Reads, usize)>,
    chunk: Vec<u8>,
}

impl Carried {
    fn new() -> Self {
        let mut net = Net::new();
        (net.one_way, net.per_byte[0]) = (Duration::from_millis(20), Duration::from_nanos(80));
        let client = net.connect();
        net.run(Duration::from_secs(1));
        let server = net.server.accept().expect("a client connected");
        Self { net, client, server, streams: BTreeMap::new(), chunk: payload(64 << 10) }
    }

    fn open(&mut self, reads: Reads) -> StreamId {
        let stream = self.net.client.session(self.client).unwrap().open().unwrap().expect("it may be opened");
        self.streams.insert(stream, (reads, 0));
        stream
    }

    /// Bytes of `stream` that its reader has taken.
    fn taken(&self, stream: StreamId) -> usize {
        self.streams[&stream].1
    }

    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            for stream in self.streams.keys() {
                let session = self.net.client.session(self.client).unwrap();
                while let Ok(Some(_)) = session.write(*stream, &self.chunk) {}
            }
            self.net.run(Duration::from_millis(1));
            self.net.seen.clear();
            let session = self.net.server.session(self.server).unwrap();
            while session.next_opened().unwrap().is_some() {}
            for (stream, (reads, taken)) in &mut self.streams {
                let mut left = match *reads {
                    Reads::All => usize::MAX,
                    Reads::Only(bytes) => bytes - *taken,
                    Reads::Slowly(bytes) => bytes,
                };
                let Ok(buffers) = session.buffers(*stream) else { continue };
                let before = left;
                while left > 0 && !buffers.receiving.peek().is_empty() {
                    let len = buffers.receiving.peek().len().min(left);
                    buffers.receiving.take(len);
                    left -= len;
                }
                *taken += before - left;
                session.on_read(*stream, before - left);
            }
        }
    }

    /// Bytes buffered at the server for readers, and at the client for the server.
    fn held(&mut self) -> (u64, u64) {
        let streams: Vec<_> = self.streams.keys().copied().collect();
        let sum = |session: &mut Session, held: fn(&mut crate::buffers::StreamBuffers) -> u64| {
            streams.iter().map(|stream| session.buffers(*stream).map_or(0, held)).sum()
        };
        let unread =
            sum(self.net.server.session(self.server).unwrap(), |buffers| buffers.receiving.waiting());
        let unsent = sum(self.net.client.session(self.client).unwrap(), |buffers| buffers.sending.held());
        (unread, unsent)
    }
}

/// Bytes that one reader takes within two seconds, after `stalled` other streams have been stalled.
fn taken_beside(stalled: usize) -> usize {
    let mut carried = Carried::new();
    for _ in 0..stalled {
        carried.open(Reads::Only(100_000));
    }
    // Long enough for all of it: 200 times 356 kB at 12.5 MB/s.
    carried.run(if stalled > 0 { 1_000 + 35 * stalled as u64 } else { 0 });
    let (unread, unsent) = carried.held();
    let floor = Config::default().transport.min_stream_buffer.0;
    assert!(unread <= (64 << 20) + stalled as u64 * floor, "{unread} bytes wait for {stalled} readers");
    assert!(unsent <= stalled as u64 * BEYOND_LIMIT, "{unsent} bytes wait for their peer");
    let metrics = carried.net.server.metrics();
    assert!((unread..=metrics.bytes_unread_max).contains(&metrics.bytes_unread));
    let active = carried.open(Reads::All);
    carried.run(2_000);
    let before = carried.taken(active);
    carried.run(2_000);
    carried.taken(active) - before
}

#[test]
fn beside_readers_that_stall_another_has_the_rate_that_it_has_alone() {
    let alone = taken_beside(0);
    assert!(alone > 20_000_000, "{alone} bytes in 2 s of 12.5 MB/s");
    for stalled in [1, 10, 200] {
        let beside = taken_beside(stalled);
        assert!(beside >= alone / 10 * 9, "{beside} bytes beside {stalled} that stall, {alone} alone");
    }
}

/// One-way delay of four bytes to the server, with readers of other streams as given.
fn one_way_beside(others: &[Reads]) -> u64 {
    let mut carried = Carried::new();
    for reads in others {
        carried.open(*reads);
    }
    carried.run(5_000);
    let asking = carried.net.client.session(carried.client).unwrap();
    let stream = asking.open().unwrap().expect("it may be opened");
    assert_eq!(asking.write(stream, b"ping"), Ok(Some(4)));
    for millis in 1..1_000 {
        carried.run(1);
        let session = carried.net.server.session(carried.server).unwrap();
        if session.buffers(stream).is_ok_and(|buffers| buffers.receiving.waiting() == 4) {
            return millis;
        }
    }
    panic!("nothing came in a second");
}

#[test]
fn beside_a_slow_reader_a_question_takes_no_longer() {
    let alone = one_way_beside(&[]);
    let beside = one_way_beside(&[Reads::Slowly(1_000)]);
    assert!(beside <= alone + 2, "{beside} ms beside a reader of 1 MB/s, {alone} ms alone");
    let beside = one_way_beside(&[Reads::Slowly(1_000), Reads::Only(100_000), Reads::Only(0)]);
    assert!(beside <= alone + 2, "{beside} ms beside three, {alone} ms alone");
}

#[test]
fn a_reader_that_goes_on_after_a_while_gets_all_of_it() {
    let mut carried = Carried::new();
    let stream = carried.open(Reads::Only(0));
    carried.run(2_000);
    carried.streams.insert(stream, (Reads::All, 0));
    carried.run(2_000);
    let before = carried.taken(stream);
    carried.run(1_000);
    let taken = carried.taken(stream) - before;
    assert!(taken > 10_000_000, "{taken} bytes in a second of 12.5 MB/s");
}

/// Milliseconds that 20 MB take which are read at once, where this many of a hundred acknowledgments are lost.
fn with_lost_acknowledgments(percent: u64, seed: u64) -> u64 {
    let mut carried = Carried::new();
    (carried.net.lose_percent[1], carried.net.seed) = (percent, seed << 32);
    let stream = carried.open(Reads::All);
    let mut millis = 0;
    while carried.taken(stream) < 20_000_000 {
        carried.run(10);
        millis += 10;
        assert!(millis < 600_000, "{} bytes after ten minutes", carried.taken(stream));
    }
    millis
}

/// Limits of streams are in acknowledgments, and those are lost: a stream that its limit holds asks until it has an answer.
#[test]
fn lost_limits_hold_a_stream_for_few_round_trips() {
    let whole = with_lost_acknowledgments(0, 1);
    for (percent, times) in [(50, 3), (70, 6)] {
        let mut took: Vec<_> = (1..=9).map(|seed| with_lost_acknowledgments(percent, seed)).collect();
        took.sort_unstable();
        println!("{percent} % lost: {took:?} ms; none: {whole} ms");
        assert!(took[4] <= times * whole, "{percent} % lost: {took:?} ms; none: {whole} ms");
    }
}
