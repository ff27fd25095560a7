//! Hubs on a simulated network, and attacks on them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tacit_packet::tack::packet::StreamId;
use tacit_packet::units::Duration;

use super::*;
use crate::admission::{MAX_HALF_OPEN, RETRY_FROM};
use crate::session::HALF_OPEN;

mod busy;
mod finish;
mod late;
mod lossy;
mod metrics;
mod narrow;
mod peer;
#[cfg(feature = "qlog")]
mod qlog;
mod reported;
mod reset;
#[cfg(feature = "qlog")]
mod schema;
mod silence;
mod stalled;
mod strangers;

fn address(host: u8, port: u16) -> SocketAddr {
    ([192, 0, 2, host], port).into()
}

fn client_address() -> SocketAddr {
    address(1, 1000)
}

fn server_address() -> SocketAddr {
    address(2, 2000)
}

/// Address of the off-path attacker.
fn attacker_address() -> SocketAddr {
    address(66, 6666)
}

/// Pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Maps each number to a pseudo-random number.
fn scattered(number: u64) -> u64 {
    let mut random = Random((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (0..4).fold(0, |_, _| random.next()) >> 20
}

type InFlight = Reverse<(Instant, u64, SocketAddr, SocketAddr, Vec<u8>)>;

/// A client and a server, with a one-way delay of 5 ms unless a test changes it.
struct Net {
    now: Instant,
    client: Hub,
    server: Hub,
    server_identity: Identity,
    client_at: SocketAddr,
    /// The address of the server's host that the client asks; answers from another one are lost.
    asked: Option<std::net::IpAddr>,
    in_flight: BinaryHeap<InFlight>,
    order: u64,
    /// Which datagrams are lost, by their number from the first one.
    lose: fn(u64) -> bool,
    /// Times at which datagrams are lost that begin with a byte.
    lose_at: fn(Instant, u8) -> bool,
    /// Of the datagrams to the server, and of those to the client, this many of a hundred are lost, by chance, and where the chance
    /// begins.
    lose_percent: [u64; 2],
    seed: u64,
    one_way: Duration,
    /// Bytes of the longest datagram that the path carries.
    longest: usize,
    /// Serialization time per byte on the link to the server and on that to the client, until when each link is busy, and the longest
    /// queue before it.
    per_byte: [Duration; 2],
    busy_until: [Instant; 2],
    queue: Duration,
    /// Datagrams that arrive within this time are handled before anything is sent, as a system hands them over in batches.
    batch: Duration,
    /// All datagrams, with source and destination.
    seen: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// Bytes sent to the attacker, and by the attacker.
    to_attacker: usize,
    by_attacker: usize,
}

fn server(config: &Config, identity: &Identity) -> Hub {
    let clients: Clients = Arc::new(|_| true);
    let port = server_address().port();
    Hub::new(config.clone(), identity.clone(), Some(clients), port, Shard::ONLY, Memory::new(config))
}

fn client(config: &Config) -> Hub {
    Hub::new(config.clone(), Identity::generate(), None, 1000, Shard::ONLY, Memory::new(config))
}

impl Net {
    fn new() -> Self {
        Self::with(&Config::default())
    }

    fn with(config: &Config) -> Self {
        let identity = Identity::generate();
        Self {
            now: Instant::ZERO,
            client: client(config),
            server: server(config, &identity),
            server_identity: identity,
            client_at: client_address(),
            asked: None,
            in_flight: BinaryHeap::new(),
            order: 0,
            lose: |_| false,
            lose_at: |_, _| false,
            lose_percent: [0; 2],
            seed: 0,
            one_way: Duration::from_millis(5),
            longest: usize::MAX,
            per_byte: [Duration::ZERO; 2],
            busy_until: [Instant::ZERO; 2],
            queue: Duration::from_secs(3600),
            batch: Duration::ZERO,
            seen: Vec::new(),
            to_attacker: 0,
            by_attacker: 0,
        }
    }

    fn launch(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.order += 1;
        let link = usize::from(to != server_address());
        let busy_until = self.busy_until[link].max(self.now);
        if busy_until - self.now > self.queue {
            return;
        }
        let leaves = busy_until + self.per_byte[link] * bytes.len() as u64;
        self.busy_until[link] = leaves;
        self.in_flight.push(Reverse((leaves + self.one_way, self.order, from, to, bytes)));
    }

    /// The attacker sends a datagram to the server with the source address `from`.
    fn attack(&mut self, from: SocketAddr, bytes: Vec<u8>) {
        self.by_attacker += bytes.len();
        self.launch(from, server_address(), bytes);
    }

    /// True if the next datagram of that end is lost, which begins with `first`.
    fn is_lost(&self, is_server: bool, first: u8) -> bool {
        let percent = self.lose_percent[usize::from(is_server)];
        let by_chance = scattered(self.order ^ self.seed) % 100 < percent;
        by_chance || (self.lose)(self.order) || (self.lose_at)(self.now, first)
    }

    fn drain(&mut self) {
        for is_server in [false, true] {
            loop {
                let (hub, from) = if is_server {
                    (&mut self.server, server_address())
                } else {
                    (&mut self.client, self.client_at)
                };
                let mut bytes = Vec::new();
                let Some((Route { peer: to, host }, _)) = hub.poll_transmit(self.now, &mut bytes) else {
                    break;
                };
                self.seen.push((from, to, bytes.clone()));
                if to == attacker_address() {
                    self.to_attacker += bytes.len();
                } else if !(is_server && host != self.asked
                    || self.is_lost(is_server, bytes[0])
                    || bytes.len() > self.longest)
                {
                    self.launch(from, to, bytes);
                } else {
                    self.order += 1;
                }
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.drain();
            let arrival = self.in_flight.peek().map(|Reverse((at, ..))| *at);
            let timers = [self.client.poll_timeout(), self.server.poll_timeout()];
            let next = timers.into_iter().chain([arrival]).flatten().min().filter(|next| *next <= until);
            let Some(next) = next else { break };
            self.now = next.max(self.now);
            if arrival != Some(next) {
                self.client.handle_timeout(self.now);
                self.server.handle_timeout(self.now);
                continue;
            }
            self.now += self.batch;
            while let Some(Reverse((_, _, from, to, mut bytes))) = self.in_flight.pop() {
                let is_up = to == server_address();
                let hub = if is_up { &mut self.server } else { &mut self.client };
                if is_up || to == self.client_at {
                    let from = Route { peer: from, host: self.asked.filter(|_| is_up) };
                    hub.handle(self.now, from, Ecn::NotEct, &mut bytes);
                }
                let is_with_it = |Reverse((at, ..)): &InFlight| *at <= self.now;
                if self.batch == Duration::ZERO || !self.in_flight.peek().is_some_and(is_with_it) {
                    break;
                }
            }
        }
        self.now = self.now.max(until);
    }

    fn connect(&mut self) -> u32 {
        self.client.connect(self.now, server_address(), Expect::Key(self.server_identity.public_key()))
    }

    /// Opens a connection and a stream, and writes `len` bytes.
    fn begin(&mut self, len: usize) -> (u32, StreamId) {
        let client = self.connect();
        self.run(Duration::from_secs(30));
        let session = self.client.session(client).unwrap();
        assert!(session.is_connected(), "{:?}", session.alive());
        let stream = session.open().unwrap().unwrap();
        assert_eq!(session.write(stream, &payload(len)), Ok(Some(len)));
        session.end_stream(stream).unwrap();
        (client, stream)
    }

    /// Data of the first stream that was opened to the server, and whether it has ended.
    fn read(&mut self) -> (Vec<u8>, bool) {
        let server = self.server.accept().expect("a client connected");
        let session = self.server.session(server).unwrap();
        read_opened(session)
    }
}

/// A stream to the server whose writer always has more, and whose reader takes all that comes.
struct Bulk {
    client: u32,
    stream: StreamId,
    server: u32,
    opened: Option<StreamId>,
    chunk: Vec<u8>,
    written: usize,
    read: usize,
}

impl Bulk {
    fn begin(net: &mut Net) -> Self {
        let client = net.connect();
        net.run(Duration::from_secs(1));
        let stream = net.client.session(client).unwrap().open().unwrap().unwrap();
        let server = net.server.accept().expect("a client connected");
        Self { client, stream, server, opened: None, chunk: payload(64 << 10), written: 0, read: 0 }
    }

    /// [`step`](Self::step), after which `seen` has its datagrams alone.
    fn step_seen(&mut self, net: &mut Net) {
        net.seen.clear();
        self.step_on(net);
    }

    /// Writes, lets 10 ms pass, and reads; forgets what was seen.
    fn step(&mut self, net: &mut Net) {
        self.step_on(net);
        net.seen.clear();
    }

    fn step_on(&mut self, net: &mut Net) {
        while let Ok(Some(taken)) = net.client.session(self.client).unwrap().write(self.stream, &self.chunk) {
            self.written += taken;
        }
        net.run(Duration::from_millis(10));
        let session = net.server.session(self.server).unwrap();
        self.opened = self.opened.or_else(|| session.next_opened().unwrap());
        let Some(stream) = self.opened else { return };
        let receiving = &mut session.buffers(stream).unwrap().receiving;
        let mut len = 0;
        while !receiving.peek().is_empty() {
            len += receiving.peek().len();
            receiving.take(receiving.peek().len());
        }
        self.read += len;
        session.on_read(stream, len);
    }
}

/// Bytes held back by a repeatedly lost packet do not count towards the limit of written bytes: 1 % loss, plus half as
/// much in bursts, at 240 Mb/s and 80 ms, with a writer that always has more.
///
/// Bursts are defined by time. Defined by packet number, a burst would last half a second while the sender waits and
/// only ACKs are sent.
#[test]
fn no_gap_keeps_a_stream_from_its_writer() {
    let mut net = Net::new();
    net.one_way = Duration::from_millis(40);
    net.per_byte[0] = Duration::from_nanos(33);
    let mut bulk = Bulk::begin(&mut net);
    net.lose = |order| scattered(order).is_multiple_of(100);
    // The duration of 25 packets.
    net.lose_at = |now, _| scattered(now.as_nanos() / 1_200_000).is_multiple_of(200);
    for step in 0..700 {
        if step == 200 {
            bulk.written = 0;
        }
        bulk.step(&mut net);
    }
    let written = bulk.written;
    // Five seconds at 30 MB/s, minus headers and losses.
    assert!(written > 5 * 30_000_000 * 9 / 10, "{written} bytes taken");
}

/// Received data of the first stream that the peer opened, and whether it has ended.
fn read_opened(session: &mut Session) -> (Vec<u8>, bool) {
    let stream = session.next_opened().unwrap().expect("a stream was opened");
    let receiving = &mut session.buffers(stream).unwrap().receiving;
    let mut read = Vec::new();
    while !receiving.peek().is_empty() {
        read.extend_from_slice(receiving.peek());
        receiving.take(receiving.peek().len());
    }
    (read, receiving.ended)
}

fn payload(len: usize) -> Vec<u8> {
    let mut random = Random(9);
    (0..len).map(|_| random.next() as u8).collect()
}

/// Short data for a client's first connection omits the connection number; a second concurrent connection is named.
#[test]
fn one_connection_of_a_client_is_implied() {
    let mut net = Net::new();
    let clients = [(); 2].map(|()| net.connect());
    net.run(Duration::from_secs(1));
    assert_eq!(clients.map(|client| ConnectionId(client).is_implied()), [true, false]);
    for client in clients {
        let server = net.server.accept().expect("it connected");
        let session = net.server.session(server).unwrap();
        assert!(!ConnectionId(server).is_implied());
        let stream = session.open().unwrap().unwrap();
        let sent = payload(200_000);
        assert_eq!(session.write(stream, &sent), Ok(Some(sent.len())));
        net.seen.clear();
        net.run(Duration::from_secs(2));
        let kinds = |net: &Net| net.seen.iter().map(|(.., bytes)| bytes[0] & 0xf0).collect::<Vec<_>>();
        let (named, implied) = (kinds(&net).contains(&0xd0), kinds(&net).contains(&0xe0));
        assert!(named != implied, "one of them gets the data");
        let to = clients[usize::from(named)];
        let session = net.client.session(to).unwrap();
        let (read, _) = read_opened(session);
        assert!(read == sent, "{} bytes of connection {client}", read.len());
    }
    // A closed connection makes the implied number available again.
    let session = net.client.session(clients[0]).unwrap();
    session.close(0, "");
    session.handles = 0;
    net.run(Duration::from_secs(1));
    let third = net.connect();
    assert!(ConnectionId(third).is_implied());
}

#[test]
fn a_connection_comes_about_whichever_datagram_is_lost() {
    let losers: [fn(u64) -> bool; 9] = [
        |order| order == 0,
        |order| order == 1,
        |order| order == 2,
        |order| order == 3,
        |order| order == 4,
        |order| order == 5,
        |order| order < 2,
        // Every third datagram, selected in two ways.
        |order| scattered(order).is_multiple_of(3),
        |order| scattered(order + 1000).is_multiple_of(3),
    ];
    for (number, lose) in losers.into_iter().enumerate() {
        let mut net = Net::new();
        net.lose = lose;
        net.begin(50_000);
        net.run(Duration::from_secs(20));
        assert!(net.read() == (payload(50_000), true), "{number}");
    }
}

#[test]
fn a_server_that_is_not_there_is_given_up() {
    let mut net = Net::new();
    net.lose = |_| true;
    let client = net.connect();
    net.run(Duration::from_secs(40));
    let session = net.client.session(client).unwrap();
    assert_eq!(session.alive(), Err(ConnectionError::TimedOut));
    session.handles = 0;
    net.run(Duration::from_secs(1));
    assert_eq!((net.client.len(), net.server.len()), (0, 0));
}

#[test]
fn datagrams_without_keys_change_nothing_and_get_no_answer() {
    let mut net = Net::new();
    let (client, _) = net.begin(100_000);
    let mut random = Random(3);
    for step in 0..400 {
        net.run(Duration::from_millis(1));
        let place = random.next() as usize % net.seen.len();
        let (from, to, mut bytes) = net.seen[place].clone();
        // An initiation may come from any host; it has a test of its own.
        if bytes[0] == kind::INITIATION {
            continue;
        }
        match step % 4 {
            0 => {}
            1 => bytes.truncate(random.next() as usize % bytes.len()),
            2 => {
                let bit = random.next() as usize % (bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            // Random bytes after a valid header.
            _ => bytes.iter_mut().skip(9).for_each(|byte| *byte = random.next() as u8),
        }
        let from = if step % 2 == 0 { attacker_address() } else { from };
        net.by_attacker += bytes.len();
        net.launch(from, to, bytes);
    }
    net.run(Duration::from_secs(5));
    assert!(net.read() == (payload(100_000), true));
    assert!(net.client.session(client).unwrap().alive().is_ok());
    // A damaged connection number is answered only by a reset for an unknown connection.
    let answers = net.seen.iter().filter(|(_, to, _)| *to == attacker_address());
    assert!(answers.clone().all(|(.., bytes)| bytes[0] == kind::RESET && bytes.len() == 21));
    assert!(answers.count() <= 30 && net.to_attacker < net.by_attacker / 50, "{}", net.to_attacker);
}

#[test]
fn a_recorded_connection_cannot_be_played_again() {
    let mut net = Net::new();
    net.begin(20_000);
    net.run(Duration::from_secs(5));
    assert!(net.read() == (payload(20_000), true));
    let recorded: Vec<_> = net
        .seen
        .iter()
        .filter(|(_, to, _)| *to == server_address())
        .map(|(.., bytes)| bytes.clone())
        .collect();
    let before = net.server.len();
    for from in [client_address(), attacker_address()] {
        for bytes in &recorded {
            net.attack(from, bytes.clone());
        }
        net.run(Duration::from_millis(500));
    }
    assert_eq!(net.server.accept(), None, "no client proved to have a key");
    assert!(net.to_attacker <= 3 * net.by_attacker, "{} for {}", net.to_attacker, net.by_attacker);
    net.run(HALF_OPEN);
    assert_eq!(net.server.len(), before, "half-open connections are forgotten");
}

#[test]
fn a_flood_of_handshakes_is_bounded_and_honest_clients_get_in() {
    let mut net = Net::new();
    let mut attacker = client(&Config::default());
    for number in 0..5_000u32 {
        let port = (number % 60_000) as u16 + 1;
        attacker.connect(net.now, server_address(), Expect::Key(net.server_identity.public_key()));
        let mut bytes = Vec::new();
        attacker.poll_transmit(net.now, &mut bytes);
        net.attack(address((number / 60_000) as u8 + 100, port), bytes);
    }
    net.run(Duration::from_millis(10));
    assert_eq!(net.server.len(), RETRY_FROM, "others were asked to show where they are");
    assert_eq!(net.server.counters.retries_sent, 5_000 - RETRY_FROM as u64);
    net.begin(1_000);
    net.run(Duration::from_secs(1));
    assert!(net.read() == (payload(1_000), true));
}

#[test]
fn clients_that_show_where_they_are_and_no_more_are_bounded_too() {
    let mut net = Net::new();
    let mut attacker = client(&Config::default());
    // One attacker with many addresses. Each answers every Retry.
    for number in 0..2_000u32 {
        let from = address(100, number as u16 + 1);
        let id = attacker.connect(net.now, server_address(), Expect::Key(net.server_identity.public_key()));
        for _ in 0..2 {
            let mut bytes = Vec::new();
            if attacker.poll_transmit(net.now, &mut bytes).is_none() {
                break;
            }
            net.server.handle(net.now, from, Ecn::NotEct, &mut bytes);
            let mut answer = Vec::new();
            while net.server.poll_transmit(net.now, &mut answer).is_some() {
                if answer[0] == kind::RETRY {
                    attacker.handle(net.now, server_address(), Ecn::NotEct, &mut answer);
                }
                answer.clear();
            }
        }
        attacker.session(id);
    }
    assert_eq!(net.server.len(), MAX_HALF_OPEN);
    assert_eq!(net.server.counters.handshakes_refused, 2_000 - MAX_HALF_OPEN as u64);
    net.run(HALF_OPEN + Duration::from_secs(1));
    assert_eq!(net.server.len(), 0);
    net.begin(1_000);
    net.run(Duration::from_secs(1));
    assert!(net.read() == (payload(1_000), true));
}

#[test]
fn a_client_that_moves_keeps_its_connection() {
    let mut net = Net::new();
    net.begin(200_000);
    net.run(Duration::from_millis(12));
    net.client_at = address(7, 7777);
    net.run(Duration::from_secs(20));
    let server = net.server.accept().unwrap();
    assert_eq!(net.server.session(server).unwrap().remote(), address(7, 7777));
    net.server.accepted.push_back(server);
    assert!(net.read() == (payload(200_000), true));
}

/// A client asks one address of the server's host, and then, as its router has it, another one.
#[test]
fn answers_leave_from_the_address_that_was_asked() {
    let mut net = Net::new();
    net.asked = Some([192, 0, 2, 80].into());
    net.begin(200_000);
    net.run(Duration::from_millis(12));
    net.asked = Some([192, 0, 2, 81].into());
    net.run(Duration::from_secs(20));
    assert!(net.read() == (payload(200_000), true));
}

#[test]
fn an_address_that_does_not_answer_is_not_sent_to() {
    let mut net = Net::new();
    net.begin(200_000);
    net.run(Duration::from_millis(3));
    // An attacker on the path resends the newest packet from a victim's address.
    let newest = net
        .in_flight
        .iter()
        .map(|Reverse(in_flight)| in_flight)
        .filter(|in_flight| in_flight.3 == server_address());
    let bytes = newest.max_by_key(|in_flight| in_flight.1).expect("a packet is on its way").4.clone();
    net.server.handle(net.now, attacker_address(), Ecn::NotEct, &mut bytes.clone());
    net.by_attacker += bytes.len();
    net.run(Duration::from_secs(5));
    assert!(net.to_attacker > 0, "it is asked");
    assert!(net.to_attacker <= 3 * net.by_attacker);
    assert!(net.read() == (payload(200_000), true));
}

#[test]
fn a_reader_that_does_not_read_holds_its_writer() {
    let mut net = Net::new();
    let client = net.connect();
    net.run(Duration::from_secs(1));
    let piece = payload(1 << 20);
    let stream = net.client.session(client).unwrap().open().unwrap().unwrap();
    let mut written = 0;
    for _ in 0..100 {
        let taken = net.client.session(client).unwrap().write(stream, &piece).unwrap();
        written += taken.unwrap_or(0);
        net.run(Duration::from_millis(50));
    }
    // A receiver's initial window is 256 KiB.
    assert!(written < 3 << 20, "{written} bytes were taken from the writer");
    let server = net.server.accept().unwrap();
    let waiting = net.server.session(server).unwrap().buffers(stream).unwrap().receiving.waiting();
    // A window grows to four times what arrives in a round trip.
    assert!((1..=1 << 20).contains(&waiting), "{waiting} bytes wait for the reader");
}

#[test]
fn connections_of_a_dropped_handle_are_forgotten() {
    let mut net = Net::new();
    let (client, stream) = net.begin(10);
    net.run(Duration::from_secs(1));
    let session = net.client.session(client).unwrap();
    session.drop_sending(stream);
    session.drop_receiving(stream);
    session.close(3, "done");
    session.handles = 0;
    net.run(Duration::from_secs(1));
    assert_eq!(net.client.len(), 0);
    let server = net.server.accept().unwrap();
    let end = net.server.session(server).unwrap().alive();
    assert_eq!(end, Err(ConnectionError::ApplicationClosed { code: 3, reason: "done".to_owned() }));
    net.server.session(server).unwrap().handles = 0;
    net.run(Duration::from_secs(1));
    assert_eq!(net.server.len(), 0);
}

/// Idle time counts from the first packet, not from the start of the server.
#[test]
fn a_client_gets_in_after_an_hour_too() {
    let mut net = Net::new();
    net.run(Duration::from_secs(3_600));
    let client = net.connect();
    net.run(Duration::from_millis(500));
    assert!(net.client.session(client).unwrap().is_connected());
    assert!(net.server.accept().is_some());
}
