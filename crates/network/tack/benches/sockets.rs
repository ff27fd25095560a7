//! Two endpoints over loopback in one process: measures the throughput of connections that share a socket, and
//! meanwhile the duration of requests and calls on another connection.
//!
//! `cargo bench -p tacit-tack --bench sockets` prints a line per case, with the best of several rounds, which is the
//! least disturbed one. With `-- 8/2` it runs only the case of 8 connections and 2 threads. To compare two versions,
//! run their programs alternately.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tacit_tack::{Config, Connection, Endpoint, Identity};
use tokio::runtime::Builder;
use tokio::task::JoinHandle;

/// Bytes of all connections together per round.
const BYTES: usize = 128 << 20;
const PIECE: usize = 64 << 10;
const ROUNDS: usize = 5;
/// Sequential requests during the transfers.
const REQUESTS: usize = 200;
/// Calls on another connection during the transfers.
const CALLS: usize = 2_000;

/// Connections of one client, and runtime threads shared by both ends.
const CASES: [(usize, usize); 5] = [(1, 1), (1, 2), (8, 1), (8, 2), (32, 2)];

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reads each stream to its end, and answers with the byte count.
async fn serve(connection: Connection) -> Result<(), Failure> {
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        tokio::spawn(async move {
            let (mut piece, mut count) = (vec![0; PIECE], 0_u64);
            while let Some(len) = recv.read(&mut piece).await? {
                count += len as u64;
            }
            send.write_all(&count.to_be_bytes()).await?;
            send.finish()?;
            send.finished().await?;
            Ok::<_, Failure>(())
        });
    }
}

async fn send(connection: &Connection, bytes: usize) -> Result<(), Failure> {
    let (mut send, mut recv) = connection.open_bi().await?;
    let piece = vec![7; PIECE];
    let mut rest = bytes;
    while rest > 0 {
        let len = rest.min(PIECE);
        send.write_all(&piece[..len]).await?;
        rest -= len;
    }
    send.finish()?;
    let answer = recv.read_to_end(8).await?;
    assert_eq!(answer, (bytes as u64).to_be_bytes(), "all arrived");
    Ok(())
}

/// The median duration of requests of 1 kB.
async fn request(connection: &Connection) -> Result<Duration, Failure> {
    let mut took = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let began = Instant::now();
        send(connection, 1_000).await?;
        took.push(began.elapsed());
    }
    Ok(percentile(took, 50))
}

/// The 90th percentile of the duration of calls that send and read nothing; they only take locks.
fn call(connection: &Connection) -> Duration {
    let took = (0..CALLS).map(|_| {
        thread::sleep(Duration::from_micros(50));
        let began = Instant::now();
        black_box(connection.stats());
        began.elapsed()
    });
    percentile(took.collect(), 90)
}

fn percentile(mut took: Vec<Duration>, percent: usize) -> Duration {
    took.sort_unstable();
    took[took.len() * percent / 100]
}

/// CPU time of this process so far.
fn processor_time() -> Result<Duration, Failure> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// Durations measured in one round of a case.
#[derive(Clone, Copy)]
struct Round {
    transfer: Duration,
    processor: Duration,
    request: Duration,
    call: Duration,
}

impl Round {
    /// The smaller value of each measurement.
    fn best(self, other: Self) -> Self {
        Self {
            transfer: self.transfer.min(other.transfer),
            processor: self.processor.min(other.processor),
            request: self.request.min(other.request),
            call: self.call.min(other.call),
        }
    }
}

async fn round(connections: usize) -> Result<Round, Failure> {
    let identity = Identity::generate();
    let key = identity.public_key();
    let loopback: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Endpoint::server(loopback, identity, Config::default(), |_| true)?;
    let client = Endpoint::client(loopback, Identity::generate(), Config::default())?;
    let at = server.local_addr();
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(serve(connection));
        }
    });
    let mut all = Vec::new();
    for _ in 0..connections {
        all.push(client.connect(at, key).await?);
    }
    let sends = |connection: Connection, bytes| tokio::spawn(async move { send(&connection, bytes).await });
    let (began, processor) = (Instant::now(), processor_time()?);
    let transfers: Vec<_> =
        all.iter().map(|connection| sends(connection.clone(), BYTES / connections)).collect();
    for transfer in transfers {
        transfer.await??;
    }
    let (transfer, processor) = (began.elapsed(), processor_time()? - processor);
    // These transfers last longer than the requests.
    let beside: Vec<_> = all.into_iter().map(|connection| sends(connection, usize::MAX)).collect();
    let other = client.connect(at, key).await?;
    let request = request(&other).await?;
    let call = tokio::task::spawn_blocking(move || call(&other)).await?;
    beside.iter().for_each(JoinHandle::abort);
    Ok(Round { transfer, processor, request, call })
}

fn main() -> Result<(), Failure> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| argument.contains('/')).collect();
    for (connections, threads) in CASES {
        if !wanted.is_empty() && !wanted.contains(&format!("{connections}/{threads}")) {
            continue;
        }
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let mut best = None;
        for _ in 0..ROUNDS {
            let round = runtime.block_on(async { tokio::spawn(round(connections)).await? })?;
            best = Some(best.map_or(round, |best: Round| best.best(round)));
        }
        if let Some(Round { transfer, processor, request, call }) = best {
            let mbps = BYTES as u128 * 8 / transfer.as_micros();
            let ps_per_byte = processor.as_nanos() * 1000 / BYTES as u128;
            println!(
                "{connections} connections, {threads} threads: {mbps} Mb/s, {ps_per_byte} ps/B, \
                 request {request:?}, call {call:?}"
            );
        }
        runtime.shutdown_background();
    }
    Ok(())
}
