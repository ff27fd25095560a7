//! Many threads that use many connections of one socket.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tacit_tack::{Config, Connection, ConnectionError, Endpoint, Identity, RecvStream, SendStream};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

/// A test that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// A round that takes longer was not woken.
const ROUND: Duration = Duration::from_secs(10);
/// A close is sent once. A server that did not receive it keeps the connection for this idle timeout.
const IDLE: Duration = Duration::from_secs(30);

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Pseudo-random numbers (Knuth's multiplier of MMIX).
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Byte `at` of a stream whose first byte is its `seed`.
fn byte(seed: u8, at: usize) -> u8 {
    if at == 0 { seed } else { (at as u64 * u64::from(seed) / 3) as u8 }
}

/// Reads to the end, or until the stream or the connection fails. Returns the number of bytes, after checking that all
/// belong to one stream, and whether the end was reached.
async fn reads(recv: &mut RecvStream) -> (usize, bool) {
    let (mut piece, mut len, mut seed) = (vec![0; 20_000], 0, 0);
    loop {
        match recv.read(&mut piece).await {
            Ok(Some(more)) => {
                if len == 0 {
                    seed = piece[0];
                }
                for (place, got) in piece[..more].iter().enumerate() {
                    assert_eq!(*got, byte(seed, len + place), "byte {} of stream {seed}", len + place);
                }
                len += more;
            }
            Ok(None) => return (len, true),
            Err(_) => return (len, false),
        }
    }
}

/// Answers each stream with as many bytes as arrived, unless the stream is aborted.
async fn serves(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            let (len, is_whole) = reads(&mut recv).await;
            if !is_whole {
                return;
            }
            let bytes: Vec<u8> = (0..len).map(|at| byte(77, at)).collect();
            if send.write_all(&bytes).await.is_ok() && send.finish().is_ok() {
                let _ = send.finished().await;
            }
        });
    }
}

/// One stream of a client, completed or aborted in one of several ways. Returns true if it came back completely.
async fn exchanges((mut send, mut recv): (SendStream, RecvStream), mut draws: Draws) -> bool {
    let (seed, len) = (draws.below(250) as u8 + 1, 1 + draws.below(200_000) as usize);
    let bytes: Vec<u8> = (0..len).map(|at| byte(seed, at)).collect();
    let half = &bytes[..len / 2];
    match draws.below(8) {
        0 => {
            let _ = send.write_all(half).await;
            send.reset(3);
        }
        1 => {
            let _ = send.write(half).await;
            recv.stop(4);
        }
        2 => drop(recv),
        3 => {
            let _ = send.write_all(half).await;
            drop(send);
            let (len, _) = reads(&mut recv).await;
            assert_eq!(len, 0, "half a message is not answered");
        }
        _ => {
            let writing = async { send.write_all(&bytes).await.is_ok() && send.finish().is_ok() };
            let (written, (read, is_whole)) = tokio::join!(writing, reads(&mut recv));
            assert!(!is_whole || (written && read == len), "{read} of {len} bytes");
            return is_whole;
        }
    }
    false
}

/// Connects, opens streams, and ends the connection in one of several ways. Returns the number of streams that came
/// back completely.
async fn visits(client: Endpoint, server: SocketAddr, key: tacit_tack::PublicKey, mut draws: Draws) -> u64 {
    let connection = client.connect(server, key).await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..6 {
        let draws = Draws(draws.below(1 << 30));
        let stream = connection.open_bi().await.unwrap();
        streams.push(tokio::spawn(exchanges(stream, draws)));
    }
    match draws.below(4) {
        // While its streams are active.
        0 => {
            sleep(Duration::from_micros(draws.below(20_000))).await;
            connection.close(1, "enough");
        }
        1 => drop(connection),
        _ => {}
    }
    let mut whole = 0;
    for stream in streams {
        whole += u64::from(stream.await.unwrap());
    }
    whole
}

/// True once the endpoint has no connections left; waits at most `within`.
async fn is_empty(endpoint: &Endpoint, within: Duration) -> bool {
    let emptied = async {
        while endpoint.open_connections() > 0 || endpoint.metrics().bytes_held > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(within, emptied).await.is_ok()
}

/// Eight threads open 160 connections through one socket to another one, with resets, drops and closes at any moment,
/// while other threads request statistics. Every byte that arrives is right, nothing waits forever, and no connection
/// is left over.
#[test]
fn threads_and_connections_are_all_over_one_socket() {
    const THREADS: u64 = 8;
    const VISITS: u64 = 20;
    let runtime = Runtime::new().unwrap();
    let _entered = runtime.enter();
    let identity = Identity::generate();
    let key = identity.public_key();
    let mut config = Config::default();
    config.max_idle_timeout(IDLE);
    let server = Endpoint::server(loopback(), identity, config, |_| true).unwrap();
    let client = Endpoint::client(loopback(), Identity::generate(), Config::default()).unwrap();
    let at = server.local_addr();
    let accepting = server.clone();
    let serving = runtime.spawn(async move {
        while let Some(connection) = accepting.accept().await {
            tokio::spawn(serves(connection));
        }
    });
    let (is_over, whole) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watching = [client.clone(), server.clone()].map(|endpoint| {
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            while !is_over.load(Relaxed) {
                let metrics = endpoint.metrics();
                assert!(metrics.connections_open <= THREADS * VISITS);
                std::thread::yield_now();
            }
        })
    });
    let visiting = (0..THREADS).map(|thread| {
        let (client, whole) = (client.clone(), whole.clone());
        let handle = runtime.handle().clone();
        std::thread::spawn(move || {
            for visit in 0..VISITS {
                let visit = visits(client.clone(), at, key, Draws(thread << 32 | visit));
                // Polled on this thread; its streams run on the runtime.
                let here = handle.block_on(async { timeout(PATIENCE, visit).await });
                whole.fetch_add(here.expect("a visit ends"), Relaxed);
            }
        })
    });
    let visiting: Vec<_> = visiting.collect();
    let failed = visiting.into_iter().filter_map(|thread| thread.join().err()).count();
    is_over.store(true, Relaxed);
    let unwatched = watching.into_iter().filter_map(|thread| thread.join().err()).count();
    assert_eq!((failed, unwatched), (0, 0));
    // Half of the 960 streams should come back, and half of the connections are closed while streams are active.
    assert!(whole.load(Relaxed) > 200, "{whole:?} streams came back in whole");
    runtime.block_on(async {
        assert!(is_empty(&client, ROUND).await, "a connection is left");
        assert!(is_empty(&server, IDLE + ROUND).await, "a connection is left");
        timeout(ROUND, client.wait_idle()).await.unwrap();
        server.close(0, "");
        timeout(ROUND, serving).await.unwrap().unwrap();
        timeout(ROUND, server.wait_idle()).await.unwrap();
        assert_eq!((client.open_connections(), server.open_connections()), (0, 0));
    });
}

/// Writes in two calls and waits for the answer, thousands of times, on otherwise idle connections: if the driver
/// sleeps through the second call, nothing else wakes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_is_slept_through() {
    const CONNECTIONS: u64 = 4;
    const ROUNDS: u32 = 5_000;
    let identity = Identity::generate();
    let key = identity.public_key();
    let server = Endpoint::server(loopback(), identity, Config::default(), |_| true).unwrap();
    let client = Endpoint::client(loopback(), Identity::generate(), Config::default()).unwrap();
    let mut tasks = Vec::new();
    for number in 0..CONNECTIONS {
        let (there, here) = tokio::join!(server.accept(), client.connect(server.local_addr(), key));
        let (there, here) = (there.unwrap(), here.unwrap());
        tokio::spawn(async move {
            let (mut send, mut recv) = there.accept_bi().await.unwrap();
            let mut round = [0; 4];
            while recv.read_exact(&mut round).await.is_ok() {
                send.write_all(&round).await.unwrap();
            }
            assert!(matches!(there.closed().await, ConnectionError::ApplicationClosed { .. }));
        });
        tasks.push(tokio::spawn(async move {
            let (mut send, mut recv) = here.open_bi().await.unwrap();
            let mut draws = Draws(number);
            for round in 0..ROUNDS {
                let bytes = round.to_be_bytes();
                send.write_all(&bytes[..2]).await.unwrap();
                // The second call comes after the driver has handled the first.
                for _ in 0..draws.below(2_000) {
                    std::hint::spin_loop();
                }
                send.write_all(&bytes[2..]).await.unwrap();
                let mut answer = [0; 4];
                let read = timeout(ROUND, recv.read_exact(&mut answer)).await;
                read.unwrap_or_else(|_| panic!("connection {number} sleeps in round {round}")).unwrap();
                assert_eq!(answer, bytes);
            }
            here.close(0, "");
        }));
    }
    for task in tasks {
        timeout(PATIENCE, task).await.unwrap().unwrap();
    }
}
