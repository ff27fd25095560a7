//! Two ends of quinn-proto on a simulated way, under a simulated clock. Equal input gives equal times: nothing depends
//! on the machine.

use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ServerConfig,
    StreamEvent, StreamId, Transmit, TransportConfig,
};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

const NAME: &str = "localhost";
/// IPv4 and UDP headers (RFC 791, RFC 768).
const HEADER_BYTES: usize = 28;
/// Datagrams that quinn sends at once, as its own endpoint driver does.
const DATAGRAMS_AT_ONCE: usize = 10;
/// A run that takes longer has stalled.
const TIME_MAX: Duration = Duration::from_secs(3_600);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The link. Queue and losses are alike in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Round-trip time without queues.
    pub rtt: Duration,
    pub bits_per_s: u64,
    /// The same from client to server.
    pub up_bits_per_s: u64,
    /// Bytes that wait at the bottleneck; more are dropped.
    pub queue_bytes: u64,
    /// Datagrams per thousand that are lost, in both directions.
    pub lost_per_mille: u64,
    /// Which datagrams those are.
    pub losses: u64,
}

/// What a transfer took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// From the first byte written to the last byte read.
    pub time: Duration,
    /// Datagrams that the sender sent since then.
    pub packets: u64,
    /// ACK frames that it received since then.
    pub acks: u64,
    /// Packets that it took for lost.
    pub lost: u64,
    /// `ACK_FREQUENCY` frames that it sent in all.
    pub requests: u64,
    /// What it had measured in the end.
    pub rtt: Duration,
    /// What it might have had in flight in the end.
    pub window_bytes: u64,
}

/// Certificate, key, and the configurations that trust each other.
pub struct Trust {
    server: ServerConfig,
    roots: Arc<RootCertStore>,
}

impl Trust {
    pub fn new() -> Outcome<Self> {
        // Signatures of Ed25519 all have one length, those of ECDSA do not.
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let certified = rcgen::CertificateParams::new([NAME.to_owned()])?.self_signed(&key)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let server = ServerConfig::with_single_cert(vec![certified.der().clone()], key.into())?;
        let mut roots = RootCertStore::empty();
        roots.add(certified.der().clone())?;
        Ok(Self { server, roots: Arc::new(roots) })
    }
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    transmits: VecDeque<Vec<u8>>,
    is_connected: bool,
}

impl End {
    fn new(server: Option<ServerConfig>, address: SocketAddr, seed: u8) -> Self {
        let endpoint = Endpoint::new(Arc::default(), server.map(Arc::new), true, Some([seed; 32]));
        Self { endpoint, connection: None, address, transmits: VecDeque::new(), is_connected: false }
    }

    fn queue(&mut self, transmit: &Transmit, buffer: &[u8]) {
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        self.transmits.extend(buffer[..transmit.size].chunks(segment).map(<[u8]>::to_vec));
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Outcome<()> {
        let mut buffer = Vec::new();
        match self.endpoint.handle(now, from, None, None, BytesMut::from(datagram), &mut buffer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut buffer, None);
                self.connection = Some(accepted.map_err(|error| error.cause)?);
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.queue(&transmit, &buffer),
            None => {}
        }
        Ok(())
    }

    /// Handles what is due, and collects what the connection sends.
    fn drive(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut sent = Vec::new();
        loop {
            let mut buffer = Vec::new();
            let Some(transmit) = connection.poll_transmit(now, DATAGRAMS_AT_ONCE, &mut buffer) else { break };
            sent.push((transmit, buffer));
        }
        for (transmit, buffer) in sent {
            self.queue(&transmit, &buffer);
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
    }

    fn acks_and_packets(&self) -> (u64, u64) {
        self.connection.as_ref().map_or((0, 0), |(_, connection)| {
            let stats = connection.stats();
            (stats.frame_rx.acks, stats.udp_tx.datagrams)
        })
    }
}

/// What lies between the ends. Times are since the beginning.
pub trait Way {
    fn send(&mut self, now: Duration, to_server: bool, datagram: Vec<u8>);
    /// When something may arrive.
    fn next(&mut self) -> Option<Duration>;
    /// A datagram that has arrived by `now`, and whether at the server.
    fn receive(&mut self, now: Duration) -> Option<(bool, Vec<u8>)>;
}

/// A datagram on its way; the earliest is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OnTheWay {
    at: std::cmp::Reverse<(Duration, u64)>,
    to_server: bool,
    datagram: Vec<u8>,
}

/// One direction of the link.
#[derive(Clone, Copy)]
struct Direction {
    free_at: Duration,
    random: u64,
}

/// A [`Link`] with what is on it.
pub struct Busy {
    link: Link,
    count: u64,
    on_the_way: BinaryHeap<OnTheWay>,
    /// To the client, and to the server.
    directions: [Direction; 2],
}

impl Link {
    pub fn way(self) -> Busy {
        let directions =
            [1, 2].map(|random| Direction { free_at: Duration::ZERO, random: random + 2 * self.losses });
        Busy { link: self, count: 0, on_the_way: BinaryHeap::new(), directions }
    }
}

impl Way for Busy {
    fn send(&mut self, now: Duration, to_server: bool, datagram: Vec<u8>) {
        let link = self.link;
        let direction = &mut self.directions[usize::from(to_server)];
        // Knuth's linear congruential generator (MMIX).
        direction.random =
            direction.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let is_lost = (direction.random >> 33) % 1_000 < link.lost_per_mille;
        let rate = if to_server { link.up_bits_per_s } else { link.bits_per_s };
        let bytes = (datagram.len() + HEADER_BYTES) as u64;
        let begins = direction.free_at.max(now);
        let waiting = (begins - now).as_nanos() * u128::from(rate) / 8_000_000_000;
        if is_lost || waiting + u128::from(bytes) > u128::from(link.queue_bytes) {
            return;
        }
        direction.free_at = begins + Duration::from_nanos(bytes * 8_000_000_000 / rate);
        self.count += 1;
        let at = std::cmp::Reverse((direction.free_at + link.rtt / 2, self.count));
        self.on_the_way.push(OnTheWay { at, to_server, datagram });
    }

    fn next(&mut self) -> Option<Duration> {
        self.on_the_way.peek().map(|next| next.at.0.0)
    }

    fn receive(&mut self, now: Duration) -> Option<(bool, Vec<u8>)> {
        self.next().filter(|at| *at <= now)?;
        self.on_the_way.pop().map(|OnTheWay { to_server, datagram, .. }| (to_server, datagram))
    }
}

struct World<W> {
    way: W,
    began: Instant,
    now: Duration,
    ends: [End; 2],
}

impl<W: Way> World<W> {
    fn drive(&mut self) {
        for to_server in [false, true] {
            let from = &mut self.ends[usize::from(!to_server)];
            from.drive(self.began + self.now);
            for datagram in std::mem::take(&mut from.transmits) {
                self.way.send(self.now, to_server, datagram);
            }
        }
    }

    /// Advances until something arrives or is due. All that arrives at one instant is read before either end sends.
    fn step(&mut self) -> Outcome<()> {
        let timeouts = self.ends.iter_mut().filter_map(End::poll_timeout);
        let due = timeouts.map(|at| at.saturating_duration_since(self.began)).min();
        let mut has_arrived = false;
        while !has_arrived {
            let next = self.way.next().into_iter().chain(due).min().ok_or("nothing is left to happen")?;
            self.now = self.now.max(next);
            if self.now > TIME_MAX {
                return Err("the transfer stalled".into());
            }
            while let Some((to_server, datagram)) = self.way.receive(self.now) {
                has_arrived = true;
                let from = self.ends[usize::from(!to_server)].address;
                self.ends[usize::from(to_server)].receive(self.began + self.now, from, &datagram)?;
            }
            if due.is_some_and(|due| due <= self.now) {
                break;
            }
        }
        self.drive();
        Ok(())
    }
}

/// Transfers `bytes` on one stream, from the server to the client.
pub fn transfer(
    trust: &Trust,
    way: impl Way,
    (client, server): (&Arc<TransportConfig>, &Arc<TransportConfig>),
    bytes: usize,
) -> Outcome<Took> {
    let mut world = connect(trust, way, client, server)?;
    let (sink, source) = (0, 1);
    while !world.ends.iter().all(|end| end.is_connected) {
        world.step()?;
        for end in &mut world.ends {
            let Some((_, connection)) = &mut end.connection else { continue };
            while let Some(event) = connection.poll() {
                end.is_connected |= matches!(event, Event::Connected);
                if let Event::ConnectionLost { reason } = event {
                    return Err(reason.into());
                }
            }
        }
    }
    let began = world.now;
    let (acks_before, packets_before) = world.ends[source].acks_and_packets();
    let stream = {
        let (_, connection) = world.ends[source].connection.as_mut().ok_or("there is no connection")?;
        connection.streams().open(Dir::Uni).ok_or("no stream may be opened")?
    };
    let (mut to_write, mut read, mut reading) = (bytes, 0, None);
    loop {
        write(&mut world.ends[source], stream, &mut to_write)?;
        world.drive();
        world.step()?;
        if receive(&mut world.ends[sink], &mut reading, &mut read)? {
            break;
        }
    }
    assert_eq!(read, bytes, "all bytes arrive");
    let (acks, packets) = world.ends[source].acks_and_packets();
    let (_, connection) = world.ends[source].connection.as_ref().ok_or("there is no connection")?;
    let stats = connection.stats();
    Ok(Took {
        time: world.now - began,
        packets: packets - packets_before,
        acks: acks - acks_before,
        lost: stats.path.lost_packets,
        requests: stats.frame_tx.ack_frequency,
        rtt: stats.path.rtt,
        window_bytes: stats.path.cwnd,
    })
}

fn connect<W: Way>(
    trust: &Trust,
    way: W,
    client: &Arc<TransportConfig>,
    server: &Arc<TransportConfig>,
) -> Outcome<World<W>> {
    let mut server_config = trust.server.clone();
    server_config.transport_config(server.clone());
    // A configuration that has connected before resumes, with another handshake.
    let mut client_config = ClientConfig::with_root_certificates(trust.roots.clone())?;
    client_config.transport_config(client.clone());
    #[expect(clippy::disallowed_methods, reason = "there is no other way to make an Instant")]
    let began = Instant::now();
    let addresses = [SocketAddr::from(([10, 0, 0, 1], 4_433)), SocketAddr::from(([10, 0, 0, 2], 4_433))];
    let mut ends = [End::new(None, addresses[0], 1), End::new(Some(server_config), addresses[1], 2)];
    ends[0].connection = Some(ends[0].endpoint.connect(began, client_config, addresses[1], NAME)?);
    let mut world = World { way, began, now: Duration::ZERO, ends };
    world.drive();
    Ok(world)
}

/// Writes as much as the connection takes.
fn write(end: &mut End, stream: StreamId, to_write: &mut usize) -> Outcome<()> {
    static CHUNK: [u8; 65_536] = [7; 65_536];
    let Some((_, connection)) = &mut end.connection else { return Ok(()) };
    while connection.poll().is_some() {}
    while *to_write > 0 {
        match connection.send_stream(stream).write(&CHUNK[..CHUNK.len().min(*to_write)]) {
            Ok(written) => *to_write -= written,
            Err(quinn_proto::WriteError::Blocked) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if *to_write == 0 {
            connection.send_stream(stream).finish()?;
        }
    }
    Ok(())
}

/// Reads what has arrived; true after the last byte.
fn receive(end: &mut End, reading: &mut Option<StreamId>, read: &mut usize) -> Outcome<bool> {
    let Some((_, connection)) = &mut end.connection else { return Ok(false) };
    while let Some(event) = connection.poll() {
        if let Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) = event {
            *reading = connection.streams().accept(Dir::Uni);
        }
    }
    let Some(stream) = *reading else { return Ok(false) };
    let mut stream = connection.recv_stream(stream);
    let mut chunks = stream.read(true)?;
    let is_over = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => *read += chunk.bytes.len(),
            Ok(None) => break true,
            Err(quinn_proto::ReadError::Blocked) => break false,
            Err(error) => return Err(error.into()),
        }
    };
    let _ = chunks.finalize();
    Ok(is_over)
}
