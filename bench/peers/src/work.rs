//! Jobs over a transport.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use tacit_runs::bench::processor_time;
use tacit_runs::metric::jain;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout_at};

use crate::fetch;
use crate::stack::{Dial, Link, Listen, Packets, Pair, Settings};

/// Bytes that are written or read at once.
const PIECE_BYTES: usize = 1 << 20;
/// Length of a request and of its answer.
const REQUEST_BYTES: usize = 1_000;
/// Requests that do not count: buffers grow, and the congestion window.
const WARM_UP: u32 = 100;

/// The job: the first of each pair serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Job {
    /// Listen, and send on as many connections as are asked for
    Send,
    /// Connect, and read
    Receive,
    /// Listen, and read from the first client that connects
    Take,
    /// Connect, send, and report what the server read
    Give,
    /// Listen, and answer requests of 1 kB with 1 kB
    Answer,
    /// Connect, and ask
    Ask,
    /// Listen, and answer requests for objects until killed
    Serve,
    /// Connect, and fetch objects
    Fetch,
    /// Listen, and hold connections
    Hold,
    /// Connect many times, and rest
    Rest,
}

impl Job {
    pub const fn serves(self) -> bool {
        matches!(self, Self::Send | Self::Take | Self::Answer | Self::Serve | Self::Hold)
    }
}

/// The report of an end.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct EndReport {
    /// Bytes of data that were read or written.
    bytes: u64,
    /// From the first attempt to connect.
    duration_s: f64,
    /// Data read in each full second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mbps: Vec<f64>,
    /// Of this process.
    cpu_s: f64,
    packets: Packets,
    /// Jain's index of several connections in the second half of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    jain: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_us: Option<Percentiles>,
    /// Connections held.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<usize>,
    /// Memory of this process that is in use, and the part of it that came with the connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_mb: Option<[f64; 2]>,
}

impl EndReport {
    /// All connections together, and how evenly they share.
    fn sum(reports: Vec<Self>) -> Self {
        let late = |report: &Self| report.mbps[report.mbps.len() / 2..].iter().sum::<f64>();
        let jain = jain(reports.iter().map(late)).filter(|jain| reports.len() > 1 && jain.is_finite());
        let sum = reports.into_iter().reduce(|mut sum, report| {
            // Only seconds that are full on every connection count.
            sum.mbps = sum.mbps.iter().zip(&report.mbps).map(|(sum, mbps)| sum + mbps).collect();
            Self { bytes: sum.bytes + report.bytes, duration_s: sum.duration_s.max(report.duration_s), ..sum }
        });
        Self { jain, ..sum.unwrap_or_default() }
    }

    fn print(&self) -> Result<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Percentiles {
    p50: f64,
    p99: f64,
}

#[expect(clippy::disallowed_methods, reason = "an edge that measures")]
fn now() -> Instant {
    Instant::now()
}

/// Serves one client, or several at once.
pub async fn server<L: Listen<Link: 'static>>(job: Job, mut listener: L, settings: &Settings) -> Result<()> {
    match job {
        Job::Hold => return hold(&mut listener, settings).await,
        Job::Serve => return fetch::serve(listener).await,
        _ => {}
    }
    let mut links = vec![listener.accept().await?];
    let (began, cpu) = (now(), processor_time());
    while job == Job::Send && links.len() < settings.connections {
        links.push(listener.accept().await?);
    }
    let bytes = match job {
        Job::Answer => answer(&mut links[0]).await,
        Job::Take => take(&mut links[0]).await?,
        _ => try_join_all(links.iter_mut().map(|link| send(link, settings))).await?.iter().sum(),
    };
    let (duration_s, cpu_s) = (began.elapsed().as_secs_f64(), (processor_time() - cpu).as_secs_f64());
    EndReport { bytes, duration_s, cpu_s, packets: packets_of(&links), ..EndReport::default() }.print()
}

/// Does a client's job.
pub async fn client<D: Dial>(job: Job, mut dialer: D, settings: &Settings) -> Result<()> {
    match job {
        Job::Rest => return rest(&mut dialer, settings).await,
        Job::Fetch => return fetch::fetch(&mut dialer, settings).await,
        _ => {}
    }
    let (began, cpu) = (now(), processor_time());
    let mut links = vec![dialer.connect().await?];
    while job == Job::Receive && links.len() < settings.connections {
        links.push(dialer.connect().await?);
    }
    let mut line = match job {
        Job::Ask => run_requests(&mut links[0], settings).await?,
        Job::Give => give(&mut links[0], settings, began).await?,
        _ => {
            let receiving = links.iter_mut().map(|link| receive(link, settings, began));
            EndReport::sum(try_join_all(receiving).await?)
        }
    };
    (line.cpu_s, line.packets) = ((processor_time() - cpu).as_secs_f64(), packets_of(&links));
    links.iter_mut().for_each(Link::close);
    // One that is held is not idle.
    drop(links);
    dialer.drain().await;
    line.print()
}

/// The sum of all connections, where all of them count.
fn packets_of(links: &[impl Link]) -> Packets {
    let all = links.iter().map(Link::packets);
    all.reduce(|sum, packets| sum + packets).unwrap_or_default()
}

/// Sends the requested bytes, or until the client has enough.
async fn send(link: &mut impl Link, settings: &Settings) -> Result<u64> {
    let (mut write, mut read) = link.accept().await.context("no stream came")?;
    let piece = vec![7; PIECE_BYTES];
    let mut sent = 0;
    let all = settings.bytes.unwrap_or(u64::MAX);
    while sent < all {
        let len = usize::try_from(all - sent).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        match write.write(&piece[..len]).await {
            Ok(len) if len > 0 => sent += len as u64,
            // The client has closed.
            _ => return Ok(sent),
        }
    }
    write.shutdown().await?;
    // The client's end of the stream comes when it has read everything, and that of the connection when it knows that we know.
    let _ = read.read_to_end(&mut Vec::new()).await;
    let _ = link.accept().await;
    Ok(sent)
}

/// Reads to the end, or for as long as was asked for.
async fn receive(link: &mut impl Link, settings: &Settings, began: Instant) -> Result<EndReport> {
    let (mut write, mut read) = link.open().await?;
    // A stream is known to the peer once something came on it.
    write.write_all(&[1]).await?;
    write.flush().await?;
    let report = read_all(&mut read, settings.seconds, began).await?;
    let _ = write.shutdown().await;
    Ok(report)
}

/// Counts what comes, in full seconds from `began`.
async fn read_all(
    read: &mut (impl AsyncRead + Unpin + ?Sized),
    seconds: Option<u64>,
    began: Instant,
) -> Result<EndReport> {
    let deadline = seconds.map(|seconds| began + Duration::from_secs(seconds));
    let mut buffer = vec![0; PIECE_BYTES];
    let (mut bytes, mut mbps, mut before) = (0, Vec::new(), 0);
    loop {
        let full = began + Duration::from_secs(mbps.len() as u64 + 1);
        let wake = deadline.map_or(full, |deadline| deadline.min(full));
        let len = match timeout_at(wake.into(), read.read(&mut buffer)).await {
            Ok(len) => Some(len?),
            Err(_) => None,
        };
        bytes += len.unwrap_or(0) as u64;
        while now() >= began + Duration::from_secs(mbps.len() as u64 + 1) {
            mbps.push((bytes - before) as f64 * 8e-6);
            before = bytes;
        }
        if len == Some(0) || deadline.is_some_and(|deadline| now() >= deadline) {
            return Ok(EndReport {
                bytes,
                duration_s: began.elapsed().as_secs_f64(),
                mbps,
                ..EndReport::default()
            });
        }
    }
}

/// Reads from a client, and reports to it.
async fn take(link: &mut impl Link) -> Result<u64> {
    let (mut write, mut read) = link.accept().await.context("no stream came")?;
    let report = read_all(&mut read, None, now()).await?;
    write.write_all(&serde_json::to_vec(&report)?).await?;
    write.shutdown().await?;
    // The client closes once it has the report.
    let _ = link.accept().await;
    Ok(report.bytes)
}

/// Sends for as long as was asked for. Returns what the server reports.
async fn give(link: &mut impl Link, settings: &Settings, began: Instant) -> Result<EndReport> {
    let (mut write, mut read) = link.open().await?;
    let seconds = settings.seconds.context("give needs --seconds")?;
    let deadline = began + Duration::from_secs(seconds);
    let piece = vec![7; PIECE_BYTES];
    while let Ok(written) = timeout_at(deadline.into(), write.write(&piece)).await {
        written?;
    }
    write.shutdown().await?;
    let mut report = Vec::new();
    read.read_to_end(&mut report).await?;
    Ok(serde_json::from_slice(&report)?)
}

/// Answers requests until the client ends.
async fn answer(link: &mut impl Link) -> u64 {
    let mut bytes = 0;
    while let Some((mut write, mut read)) = link.accept().await {
        // Over TCP all requests come on one stream.
        while let Ok(true) = message(&mut read).await {
            if write.write_all(&[7; REQUEST_BYTES]).await.is_err() || write.flush().await.is_err() {
                break;
            }
            bytes += REQUEST_BYTES as u64;
        }
        let _ = write.shutdown().await;
    }
    bytes
}

/// Reads a whole message; false at the end.
async fn message(read: &mut (impl AsyncRead + Unpin + ?Sized)) -> Result<bool> {
    let mut buffer = [0; REQUEST_BYTES];
    let mut len = 0;
    while len < REQUEST_BYTES {
        match read.read(&mut buffer[len..]).await? {
            0 if len == 0 => return Ok(false),
            0 => bail!("a message ended after {len} bytes"),
            more => len += more,
        }
    }
    Ok(true)
}

/// Asks one request after the other, on one stream.
async fn run_requests(link: &mut impl Link, settings: &Settings) -> Result<EndReport> {
    let (mut write, mut read): Pair = link.open().await?;
    let began = now();
    let mut took_us = Vec::new();
    for number in 0..settings.requests + WARM_UP {
        let asked = now();
        write.write_all(&[1; REQUEST_BYTES]).await?;
        write.flush().await?;
        if !message(&mut read).await? {
            bail!("no answer");
        }
        if number >= WARM_UP {
            took_us.push(asked.elapsed().as_secs_f64() * 1e6);
        }
    }
    took_us.sort_by(f64::total_cmp);
    let request_us =
        percentile(&took_us, 50).zip(percentile(&took_us, 99)).map(|(p50, p99)| Percentiles { p50, p99 });
    let bytes = took_us.len() as u64 * REQUEST_BYTES as u64;
    Ok(EndReport { bytes, duration_s: began.elapsed().as_secs_f64(), request_us, ..EndReport::default() })
}

/// The nearest rank of sorted values; nothing where there are none.
pub fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied()
}

/// Memory of this process in MB (proc_pid_status(5)).
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1_024.0 / 1e6
}

/// Takes connections until there are as many as asked for, and reports the memory that they take.
async fn hold<L: Listen>(listener: &mut L, settings: &Settings) -> Result<()> {
    let before = resident_mb();
    let mut links = Vec::with_capacity(settings.connections);
    while links.len() < settings.connections {
        links.push(listener.accept().await?);
    }
    // The remains of the last handshakes go.
    sleep(Duration::from_secs(2)).await;
    let after = resident_mb();
    let (connections, resident_mb) = (Some(links.len()), Some([after, after - before]));
    EndReport { connections, resident_mb, ..EndReport::default() }.print()?;
    sleep(Duration::from_secs(settings.seconds.unwrap_or(0))).await;
    Ok(())
}

/// Connects as often as asked for, and rests.
async fn rest<D: Dial>(dialer: &mut D, settings: &Settings) -> Result<()> {
    let before = resident_mb();
    let began = now();
    let mut links = Vec::with_capacity(settings.connections);
    while links.len() < settings.connections {
        links.push(dialer.connect().await?);
    }
    let duration_s = began.elapsed().as_secs_f64();
    sleep(Duration::from_secs(settings.seconds.unwrap_or(5))).await;
    let after = resident_mb();
    let (connections, resident_mb) = (Some(links.len()), Some([after, after - before]));
    EndReport { connections, resident_mb, duration_s, ..EndReport::default() }.print()
}
