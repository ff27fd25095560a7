//! Transfers through a relay that loses, repeats, reorders, damages and truncates datagrams: every byte arrives
//! unchanged, or the connection ends with a reason.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use tacit_tack::happy_eyeballs::local_for;
use tacit_tack::{
    Config, Connection, ConnectionError, Endpoint, Identity, PublicKey, ReadToEndError, StreamError,
};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// A test that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest UDP payload over Ethernet and IPv4.
const LONGEST: usize = 1472;

fn any() -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, 0).into()
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn loopback6() -> SocketAddr {
    (Ipv6Addr::LOCALHOST, 0).into()
}

/// Whether this machine has IPv6; prints a message if not.
fn has_ipv6() -> bool {
    let has = std::net::UdpSocket::bind(loopback6()).is_ok();
    if !has {
        eprintln!("SKIPPED {}: no IPv6 on loopback", std::thread::current().name().unwrap_or_default());
    }
    has
}

/// Impairments by the relay, per direction; probabilities in percent.
#[derive(Clone, Copy, Default)]
struct Chaos {
    lost: u64,
    repeated: u64,
    /// Delivered up to 20 ms late, after others.
    late: u64,
    /// One bit is inverted.
    damaged: u64,
    /// The last bytes are missing.
    truncated: u64,
    /// After this number of datagrams in one direction, datagrams longer than `mtu_then` are dropped.
    mtu_falls_after: Option<u64>,
    mtu_then: usize,
    /// After each such number of datagrams from the client, the relay uses a new source address towards the server.
    moves_every: Option<u64>,
    /// The relay uses IPv6 instead of IPv4: always or, if it moves, for every second address.
    families: Families,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Families {
    #[default]
    V4,
    V6,
    InTurns,
}

impl Families {
    /// The relay's source address number `place` towards the server.
    fn far(self, place: usize) -> SocketAddr {
        match self {
            Self::V4 => loopback(),
            Self::V6 => loopback6(),
            Self::InTurns => [loopback(), loopback6()][place % 2],
        }
    }

    /// The server's address.
    fn server(self) -> SocketAddr {
        match self {
            Self::V4 => loopback(),
            Self::V6 => loopback6(),
            Self::InTurns => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }
}

/// Pseudo-random numbers (Knuth's multiplier of MMIX).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// One direction through the relay.
struct Way {
    chaos: Chaos,
    draws: Draws,
    passed: u64,
}

impl Way {
    fn new(chaos: Chaos, seed: u64) -> Self {
        Self { chaos, draws: Draws(seed), passed: 0 }
    }

    /// Copies of `datagram` that are delivered, and the delay of each.
    fn through(&mut self, datagram: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        self.passed += 1;
        let Chaos { lost, repeated, late, damaged, truncated, mtu_falls_after, mtu_then, .. } = self.chaos;
        let vanishes = mtu_falls_after.is_some_and(|after| self.passed > after) && datagram.len() > mtu_then;
        if vanishes || self.draws.happens(lost) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.draws.happens(repeated));
        let copy = |draws: &mut Draws| {
            let mut copy = datagram.to_vec();
            if draws.happens(damaged) {
                let bit = draws.next() as usize % (copy.len() * 8);
                copy[bit / 8] ^= 1 << (bit % 8);
            }
            if draws.happens(truncated) {
                copy.truncate(draws.next() as usize % copy.len());
            }
            let wait = if draws.happens(late) { draws.next() % 20_000 } else { 0 };
            (Duration::from_micros(wait), copy)
        };
        (0..copies).map(|_| copy(&mut self.draws)).collect()
    }
}

/// Sends each copy after its delay.
fn launch(copies: Vec<(Duration, Vec<u8>)>, socket: &Arc<UdpSocket>, to: SocketAddr) {
    for (wait, copy) in copies {
        let socket = Arc::clone(socket);
        tokio::spawn(async move {
            sleep(wait).await;
            // If the socket is full, the copy is lost.
            let _ = socket.send_to(&copy, to).await;
        });
    }
}

/// Starts a relay to `server` for one client; returns its address and its task.
async fn relay(server: SocketAddr, chaos: Chaos, seed: u64) -> (SocketAddr, JoinHandle<()>) {
    let Chaos { families, .. } = chaos;
    let near = if families == Families::V6 { loopback6() } else { loopback() };
    let near = Arc::new(UdpSocket::bind(near).await.unwrap());
    let address = near.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut places = 0;
        let mut far = Arc::new(UdpSocket::bind(families.far(places)).await.unwrap());
        let at = |far: &UdpSocket| -> SocketAddr {
            let host: IpAddr = far.local_addr().unwrap().ip();
            (host, server.port()).into()
        };
        let (mut up, mut down) = (Way::new(chaos, seed), Way::new(chaos, seed ^ 0x5555));
        let (mut up_buffer, mut down_buffer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((len, from)) = near.recv_from(&mut up_buffer) => {
                    client = Some(from);
                    if chaos.moves_every.is_some_and(|every| up.passed % every == every - 1) {
                        places += 1;
                        far = Arc::new(UdpSocket::bind(families.far(places)).await.unwrap());
                    }
                    launch(up.through(&up_buffer[..len]), &far, at(&far));
                }
                Ok((len, _)) = far.recv_from(&mut down_buffer) => {
                    if let Some(client) = client {
                        launch(down.through(&down_buffer[..len]), &near, client);
                    }
                }
            }
        }
    });
    (address, task)
}

fn pattern(len: usize) -> Vec<u8> {
    let mut draws = Draws(len as u64);
    (0..len).map(|_| draws.next() as u8).collect()
}

fn server(address: SocketAddr, shards: u16) -> (Endpoint, PublicKey) {
    let identity = Identity::generate();
    let key = identity.public_key();
    let mut config = Config::default();
    config.shards(NonZeroU16::new(shards).unwrap());
    (Endpoint::server(address, identity, config, |_| true).unwrap(), key)
}

/// Connects through the relay. With 50 % loss, the client may have to try several times.
async fn connected(client: &Endpoint, relay: SocketAddr, key: PublicKey) -> Connection {
    for _ in 0..5 {
        match client.connect(relay, key).await {
            Ok(connection) => return connection,
            Err(error) => assert_eq!(error, ConnectionError::TimedOut),
        }
    }
    panic!("no connection in five attempts")
}

/// Transfers `len` bytes in each direction at the same time, on two streams, and checks every byte.
async fn both_ways(chaos: Chaos, len: usize) {
    let (server, key) = server(chaos.families.server(), 1);
    let (address, relay) = relay(server.local_addr(), chaos, 0x1234_5678).await;
    let client = Endpoint::client(local_for(address), Identity::generate(), Config::default()).unwrap();
    let bytes = pattern(len);
    let served = bytes.clone();
    let serving = tokio::spawn(async move {
        let connection = server.accept().await.unwrap();
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        let down = async {
            send.write_all(&served).await.unwrap();
            send.finish().unwrap();
            send.finished().await.unwrap();
        };
        let ((), read) = tokio::join!(down, receive.read_to_end(len));
        assert!(read.unwrap() == served, "bytes of the client changed on their way");
        (server, connection)
    });
    let moved = timeout(PATIENCE, async {
        let connection = connected(&client, address, key).await;
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        let up = async {
            send.write_all(&bytes).await.unwrap();
            send.finish().unwrap();
            send.finished().await.unwrap();
        };
        let ((), read) = tokio::join!(up, receive.read_to_end(len));
        assert!(read.unwrap() == bytes, "bytes of the server changed on their way");
        connection
    });
    // Dropping a connection closes it, and its last acknowledgments could be lost.
    let _connection = moved.await.unwrap();
    serving.await.unwrap();
    relay.abort();
}

#[tokio::test]
async fn a_clean_path() {
    both_ways(Chaos::default(), 2_000_000).await;
}

#[tokio::test]
async fn losses_of_1_percent() {
    both_ways(Chaos { lost: 1, ..Chaos::default() }, 2_000_000).await;
}

#[tokio::test]
async fn losses_of_10_percent() {
    both_ways(Chaos { lost: 10, ..Chaos::default() }, 1_000_000).await;
}

#[tokio::test]
async fn losses_of_30_percent() {
    both_ways(Chaos { lost: 30, ..Chaos::default() }, 400_000).await;
}

#[tokio::test]
async fn losses_of_50_percent() {
    both_ways(Chaos { lost: 50, ..Chaos::default() }, 200_000).await;
}

#[tokio::test]
async fn every_third_datagram_out_of_order() {
    both_ways(Chaos { late: 33, ..Chaos::default() }, 2_000_000).await;
}

#[tokio::test]
async fn every_third_datagram_twice() {
    both_ways(Chaos { repeated: 33, ..Chaos::default() }, 2_000_000).await;
}

#[tokio::test]
async fn damaged_and_truncated_datagrams() {
    both_ways(Chaos { damaged: 5, truncated: 5, ..Chaos::default() }, 1_000_000).await;
}

/// The path's MTU drops suddenly and without an ICMP error (RFC 8899 section 4.6.2, black hole).
#[tokio::test]
async fn a_path_that_falls_to_1200_bytes() {
    let chaos = Chaos { mtu_falls_after: Some(300), mtu_then: 1_200, ..Chaos::default() };
    both_ways(chaos, 2_000_000).await;
}

/// It drops below the length of a first datagram, to IP packets of 1000 and of 576 bytes. Short packets still pass, so the
/// connection does not time out.
#[tokio::test]
async fn a_path_that_falls_below_the_base() {
    for mtu_then in [972, 548] {
        let chaos = Chaos { mtu_falls_after: Some(300), mtu_then, ..Chaos::default() };
        both_ways(chaos, 1_000_000).await;
    }
}

#[tokio::test]
async fn a_path_as_long_as_ethernet_is_used_whole() {
    let chaos = Chaos { mtu_falls_after: Some(0), mtu_then: LONGEST, ..Chaos::default() };
    both_ways(chaos, 2_000_000).await;
}

#[tokio::test]
async fn an_address_that_changes_every_400_datagrams() {
    both_ways(Chaos { moves_every: Some(400), ..Chaos::default() }, 2_000_000).await;
}

#[tokio::test]
async fn a_clean_path_of_ipv6() {
    if has_ipv6() {
        both_ways(Chaos { families: Families::V6, ..Chaos::default() }, 2_000_000).await;
    }
}

#[tokio::test]
async fn an_address_of_ipv6_that_changes_every_400_datagrams() {
    if has_ipv6() {
        let chaos = Chaos { moves_every: Some(400), families: Families::V6, ..Chaos::default() };
        both_ways(chaos, 2_000_000).await;
    }
}

#[tokio::test]
async fn a_client_that_moves_from_ipv4_to_ipv6_and_back() {
    if has_ipv6() {
        let chaos = Chaos { moves_every: Some(400), families: Families::InTurns, ..Chaos::default() };
        both_ways(chaos, 2_000_000).await;
    }
}

/// Each connection of a server with four sockets stays on its socket when its datagrams come from new addresses.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twelve_clients_that_move_while_four_sockets_serve() {
    const CLIENTS: usize = 12;
    /// Address changes of clients that the server must validate.
    const MOVES: u64 = 2 * CLIENTS as u64;
    /// More rounds than this takes.
    const MAX_ROUNDS: usize = 100;
    let (server, key) = server(loopback(), 4);
    let (address, watched) = (server.local_addr(), server.clone());
    let bytes = Arc::new(pattern(500_000));
    let served = bytes.clone();
    let serving = tokio::spawn(async move {
        let mut connections = Vec::new();
        for _ in 0..CLIENTS {
            let (connection, bytes) = (server.accept().await.unwrap(), served.clone());
            connections.push(tokio::spawn(async move {
                let (mut send, mut receive) = connection.accept_bi().await.unwrap();
                let read = receive.read_to_end(MAX_ROUNDS * bytes.len()).await.unwrap();
                assert!(!read.is_empty(), "the client sends a round at least");
                let is_right = read.chunks(bytes.len()).all(|round| *round == bytes[..]);
                assert!(is_right, "bytes changed on their way");
                send.write_all(&bytes).await.unwrap();
                send.finish().unwrap();
                // The client closes once it has received everything.
                connection.closed().await;
            }));
        }
        for connection in connections {
            connection.await.unwrap();
        }
        server.metrics()
    });
    let clients = (0..CLIENTS).map(|number| {
        let (bytes, watched) = (bytes.clone(), watched.clone());
        tokio::spawn(async move {
            let chaos = Chaos { moves_every: Some(100), ..Chaos::default() };
            let (relay, relaying) = relay(address, chaos, number as u64).await;
            let client = Endpoint::client(any(), Identity::generate(), Config::default()).unwrap();
            let connection = connected(&client, relay, key).await;
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            // Until the server has validated that many addresses: a path challenge takes a round trip, and the relay
            // may have moved on before its end.
            loop {
                send.write_all(&bytes).await.unwrap();
                if watched.metrics().counters.paths_changed >= MOVES {
                    break;
                }
            }
            send.finish().unwrap();
            let read = receive.read_to_end(bytes.len()).await.unwrap();
            assert!(read == *bytes, "bytes changed on their way");
            connection.close(0, "");
            drop((connection, send, receive));
            client.wait_idle().await;
            // The last packet is still in the relay.
            sleep(Duration::from_millis(500)).await;
            relaying.abort();
        })
    });
    let clients: Vec<_> = clients.collect();
    let metrics = timeout(PATIENCE, async {
        for client in clients {
            client.await.unwrap();
        }
        serving.await.unwrap()
    });
    let counters = metrics.await.unwrap().counters;
    assert_eq!(counters.connections_made, CLIENTS as u64);
    assert!(counters.paths_changed >= MOVES, "{counters:?}");
    assert_eq!(counters.datagrams_handed_on, 0, "the kernel knows where each belongs");
}

/// A client puts datagrams of all its connections in one batch, which the kernel delivers to one socket.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_of_one_client_find_four_sockets() {
    let (server, key) = server(loopback(), 4);
    let address = server.local_addr();
    let bytes = Arc::new(pattern(300_000));
    let expected = bytes.clone();
    let serving = tokio::spawn(async move {
        for _ in 0..8 {
            let (connection, bytes) = (server.accept().await.unwrap(), expected.clone());
            tokio::spawn(async move {
                let (mut send, mut receive) = connection.accept_bi().await.unwrap();
                let read = receive.read_to_end(bytes.len()).await.unwrap();
                assert!(read == *bytes, "bytes changed on their way");
                send.write_all(b"all there").await.unwrap();
                send.finish().unwrap();
                connection.closed().await;
            });
        }
        server
    });
    let client = Endpoint::client(any(), Identity::generate(), Config::default()).unwrap();
    let sent = (0..8).map(|_| {
        let (client, bytes) = (client.clone(), bytes.clone());
        tokio::spawn(async move {
            let connection = client.connect(address, key).await.unwrap();
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            send.write_all(&bytes).await.unwrap();
            send.finish().unwrap();
            let answer = receive.read_to_end(100).await.unwrap();
            assert_eq!(answer, b"all there");
            (connection, send, receive)
        })
    });
    let sent: Vec<_> = sent.collect();
    let done = timeout(PATIENCE, async {
        let mut open = Vec::new();
        for sent in sent {
            open.push(sent.await.unwrap());
        }
        (serving.await.unwrap(), open)
    });
    // A late acknowledgment for a closed connection may be answered by a reset.
    let (server, _open) = done.await.unwrap();
    assert_eq!(server.counters().resets_sent, 0);
}

/// A server is killed and restarted at the same address: its clients learn of it at once instead of after their idle
/// timeout.
#[test]
fn a_server_that_was_killed_and_started_again_is_told() {
    let identity = Identity::generate();
    let key = identity.public_key();
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    };
    let start = |address: SocketAddr| {
        let runtime = runtime();
        let config = Config::default();
        let server =
            runtime.block_on(async { Endpoint::server(address, identity.clone(), config, |_| true) });
        (runtime, server)
    };
    let (first, server) = start(loopback());
    let address = server.as_ref().unwrap().local_addr();
    let clients = runtime();
    let (client, connection, mut send) = clients.block_on(async {
        let client = Endpoint::client(any(), Identity::generate(), Config::default()).unwrap();
        let connection = client.connect(address, key).await.unwrap();
        let (mut send, _receive) = connection.open_bi().await.unwrap();
        send.write_all(&pattern(10_000)).await.unwrap();
        (client, connection, send)
    });
    // The socket is closed without notifying the clients.
    first.shutdown_timeout(Duration::from_secs(5));
    drop(server);
    let (_second, server) = start(address);
    let _server = server.unwrap();
    let error = async {
        let error = loop {
            if let Err(error) = send.write_all(&pattern(10_000)).await {
                break error;
            }
        };
        (std::io::Error::from(error).kind(), connection.closed().await)
    };
    let reported = clients.block_on(async { timeout(Duration::from_secs(5), error).await });
    let (kind, why) = reported.expect("told before the idle time of 30 s");
    assert_eq!((kind, why), (std::io::ErrorKind::ConnectionReset, ConnectionError::ServerRestarted));
    clients.block_on(client.connect(address, key)).unwrap();
}

/// At the first address of a name no server answers.
#[tokio::test]
async fn an_address_where_nobody_answers_is_passed_over() {
    let (server, key) = server(loopback(), 1);
    let dead = std::net::UdpSocket::bind(loopback()).unwrap();
    let addresses = [dead.local_addr().unwrap(), server.local_addr()];
    let identity = Identity::generate();
    // The attempt at the first address would last longer than the test, so the test shows that it was not waited for.
    let mut config = Config::default();
    config.max_idle_timeout(10 * PATIENCE);
    let connected = timeout(PATIENCE, Endpoint::connect_to(&addresses[..], key, &identity, &config));
    let (_client, connection) = connected.await.unwrap().unwrap();
    assert_eq!(connection.remote_address(), server.local_addr());
    // An answer with another key is more informative than a timeout.
    config.max_idle_timeout(Duration::from_secs(5)).max_connections(1);
    let other = Identity::generate().public_key();
    let wrong = Endpoint::connect_to(&addresses[..], other, &identity, &config).await.err();
    assert_eq!(wrong, Some(ConnectionError::WrongPeer { expected: other, found: key }));
    let none = Endpoint::connect_to(&[][..], key, &identity, &config).await.err();
    assert!(matches!(none, Some(ConnectionError::NoAddress(_))), "{none:?}");
}

#[tokio::test]
async fn everything_at_once() {
    let chaos = Chaos {
        lost: 10,
        repeated: 10,
        late: 20,
        damaged: 3,
        truncated: 3,
        mtu_falls_after: Some(200),
        mtu_then: 1_200,
        moves_every: Some(300),
        families: Families::V4,
    };
    both_ways(chaos, 500_000).await;
}

/// If the path fails for good, writers and readers get an error within the idle timeout.
#[tokio::test]
async fn a_path_that_ends_is_told() {
    let (server, key) = server(loopback(), 1);
    let (address, relay) = relay(server.local_addr(), Chaos::default(), 1).await;
    let mut config = Config::default();
    config.max_idle_timeout(Duration::from_secs(2));
    let client = Endpoint::client(any(), Identity::generate(), config).unwrap();
    let reported = timeout(PATIENCE, async {
        let connection = connected(&client, address, key).await;
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        relay.abort();
        let bytes = pattern(100_000);
        let writing = async {
            loop {
                if let Err(error) = send.write_all(&bytes).await {
                    return error;
                }
            }
        };
        let (written, came) = tokio::join!(writing, receive.read_to_end(0));
        // The network reports that no program listens, and no server disproves it.
        let refused = StreamError::Connection(ConnectionError::Unreachable);
        assert_eq!(written, refused);
        assert_eq!(came, Err(ReadToEndError::Stream(refused.clone())));
        assert_eq!(std::io::Error::from(refused).kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(connection.closed().await, ConnectionError::Unreachable);
    });
    reported.await.unwrap();
}

/// Connections that are opened and dropped silently leave nothing behind: neither at this end nor, after the idle
/// timeout, at the other.
#[tokio::test]
async fn a_thousand_connections_that_are_dropped_leave_nothing() {
    let identity = Identity::generate();
    let key = identity.public_key();
    let mut config = Config::default();
    config.max_idle_timeout(Duration::from_secs(1)).keep_alive_interval(None);
    let server = Endpoint::server(loopback(), identity, config.clone(), |_| true).unwrap();
    let address = server.local_addr();
    let mut before = None;
    for _ in 0..1_000 {
        let client = Endpoint::client(any(), Identity::generate(), config.clone()).unwrap();
        let (here, there) = tokio::join!(client.connect(address, key), server.accept());
        // Counted while the first client exists, so that the server's descriptors are included.
        before.get_or_insert_with(descriptors);
        drop((here.unwrap(), there.unwrap(), client));
    }
    // Handshakes may take any time.
    let left = timeout(PATIENCE, async {
        while server.open_connections() > 0 || Some(descriptors()) >= before {
            sleep(Duration::from_millis(50)).await;
        }
    });
    left.await.unwrap();
}

/// Number of open file descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
