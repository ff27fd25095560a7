//! Transfers through a relay that loses, repeats, reorders, damages and shortens: every octet arrives, and is the one that
//! was sent, or the connection ends with a reason.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tacit_tack::{Config, Connection, ConnectionError, Endpoint, Identity, PublicKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// A test that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest UDP payload over Ethernet and IPv4.
const LONGEST: usize = 1472;

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// What the relay does to datagrams, each way; chances in per cent.
#[derive(Clone, Copy, Default)]
struct Chaos {
    lost: u64,
    repeated: u64,
    /// Comes up to 20 ms late, behind others.
    late: u64,
    /// One bit is turned.
    damaged: u64,
    /// The last octets are missing.
    truncated: u64,
    /// After so many datagrams of a way longer ones than `mtu_then` vanish.
    mtu_falls_after: Option<u64>,
    mtu_then: usize,
    /// The relay talks to the server from a new address after each so many datagrams of the client.
    moves_every: Option<u64>,
}

/// Numbers that look random (Knuth's multiplier of MMIX).
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

/// One way through the relay.
struct Way {
    chaos: Chaos,
    draws: Draws,
    passed: u64,
}

impl Way {
    fn new(chaos: Chaos, seed: u64) -> Self {
        Self { chaos, draws: Draws(seed), passed: 0 }
    }

    /// What becomes of `datagram`: copies of it, and how long each takes.
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

/// Sends each copy when its time has come.
fn launch(copies: Vec<(Duration, Vec<u8>)>, socket: &Arc<UdpSocket>, to: SocketAddr) {
    for (wait, copy) in copies {
        let socket = Arc::clone(socket);
        tokio::spawn(async move {
            sleep(wait).await;
            // A full socket is one more loss.
            let _ = socket.send_to(&copy, to).await;
        });
    }
}

/// A relay to `server` for one client; its address and its task.
async fn relay(server: SocketAddr, chaos: Chaos, seed: u64) -> (SocketAddr, JoinHandle<()>) {
    let near = Arc::new(UdpSocket::bind(loopback()).await.unwrap());
    let address = near.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut far = Arc::new(UdpSocket::bind(loopback()).await.unwrap());
        let (mut up, mut down) = (Way::new(chaos, seed), Way::new(chaos, seed ^ 0x5555));
        let (mut up_buffer, mut down_buffer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((len, from)) = near.recv_from(&mut up_buffer) => {
                    client = Some(from);
                    if chaos.moves_every.is_some_and(|every| up.passed % every == every - 1) {
                        far = Arc::new(UdpSocket::bind(loopback()).await.unwrap());
                    }
                    launch(up.through(&up_buffer[..len]), &far, server);
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

fn server() -> (Endpoint, PublicKey) {
    let identity = Identity::generate();
    let key = identity.public();
    (Endpoint::server(loopback(), identity, Config::default(), Arc::new(|_| true)).unwrap(), key)
}

/// Connects through the relay. Who loses every second datagram may have to ask more than once.
async fn connected(client: &Endpoint, relay: SocketAddr, key: PublicKey) -> Connection {
    for _ in 0..5 {
        match client.connect(relay, key).await {
            Ok(connection) => return connection,
            Err(error) => assert_eq!(error, ConnectionError::TimedOut),
        }
    }
    panic!("no connection in five attempts")
}

/// Moves `len` octets up and as many down at the same time, on two streams, and looks at every one.
async fn both_ways(chaos: Chaos, len: usize) {
    let (server, key) = server();
    let (address, relay) = relay(server.local_addr(), chaos, 0x1234_5678).await;
    let client = Endpoint::client(address, Identity::generate(), Config::default()).unwrap();
    let octets = pattern(len);
    let served = octets.clone();
    let serving = tokio::spawn(async move {
        let connection = server.accept().await.unwrap();
        let (mut send, mut receive) = connection.accept().await.unwrap();
        let mut read = Vec::new();
        let down = async {
            send.write_all(&served).await.unwrap();
            send.shutdown().await.unwrap();
            send.finished().await.unwrap();
        };
        let ((), came) = tokio::join!(down, receive.read_to_end(&mut read));
        came.unwrap();
        assert!(read == served, "octets of the client changed on their way");
        (server, connection)
    });
    let moved = timeout(PATIENCE, async {
        let connection = connected(&client, address, key).await;
        let (mut send, mut receive) = connection.open().await.unwrap();
        let mut read = Vec::new();
        let up = async {
            send.write_all(&octets).await.unwrap();
            send.shutdown().await.unwrap();
            send.finished().await.unwrap();
        };
        let ((), came) = tokio::join!(up, receive.read_to_end(&mut read));
        came.unwrap();
        assert!(read == octets, "octets of the server changed on their way");
        connection
    });
    // Who drops its connection ends it, and its last acknowledgments may be lost.
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

/// A path that takes less all of a sudden and says nothing (RFC 8899 section 4.6.2, black hole).
#[tokio::test]
async fn a_path_that_falls_to_1200_octets() {
    let chaos = Chaos { mtu_falls_after: Some(300), mtu_then: 1_200, ..Chaos::default() };
    both_ways(chaos, 2_000_000).await;
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
    };
    both_ways(chaos, 500_000).await;
}

/// A peer that is gone for good is told within the idle time, and writers and readers hear of it.
#[tokio::test]
async fn a_path_that_ends_is_told() {
    let (server, key) = server();
    let (address, relay) = relay(server.local_addr(), Chaos::default(), 1).await;
    let mut config = Config::default();
    config.transport.idle_timeout = tacit_proto::units::Duration::from_secs(2);
    let client = Endpoint::client(address, Identity::generate(), config).unwrap();
    let told = timeout(PATIENCE, async {
        let connection = connected(&client, address, key).await;
        let (mut send, mut receive) = connection.open().await.unwrap();
        relay.abort();
        let octets = pattern(100_000);
        let writing = async {
            loop {
                if let Err(error) = send.write_all(&octets).await {
                    return error;
                }
            }
        };
        let mut read = Vec::new();
        let (written, came) = tokio::join!(writing, receive.read_to_end(&mut read));
        assert_eq!(written.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(came.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(connection.closed().await, ConnectionError::TimedOut);
    });
    told.await.unwrap();
}

/// Connections that are made and dropped without a word leave nothing behind: neither here nor, once they are idle for long
/// enough, there.
#[tokio::test]
async fn a_thousand_connections_that_are_dropped_leave_nothing() {
    let identity = Identity::generate();
    let key = identity.public();
    let mut config = Config::default();
    config.transport.idle_timeout = tacit_proto::units::Duration::from_secs(1);
    config.transport.keep_alive = None;
    let server = Endpoint::server(loopback(), identity, config.clone(), Arc::new(|_| true)).unwrap();
    let address = server.local_addr();
    let made = timeout(PATIENCE, async {
        let mut before = None;
        for _ in 0..1_000 {
            let client = Endpoint::client(address, Identity::generate(), config.clone()).unwrap();
            let (here, there) = tokio::join!(client.connect(address, key), server.accept());
            // With those of the first client, so that the server's are among them.
            before.get_or_insert_with(descriptors);
            drop((here.unwrap(), there.unwrap(), client));
        }
        while server.connections() > 0 || Some(descriptors()) >= before {
            sleep(Duration::from_millis(50)).await;
        }
    });
    made.await.unwrap();
}

/// Files that this process has open.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
