//! Forwards bytes in both directions, and serves the server end of a stream.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tacit_net::relay::RelayError;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::allow::AllowList;
use super::dial::dial;
use super::target::Target;
use super::{ProxyError, ReplyCode, read_target};
use crate::metrics::ProxyCounts;

/// How long to wait for a free slot if the limit of connections is reached. Ours: the client's program waits meanwhile.
pub const PLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// Limits of the server end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time limit for the target to arrive, and for connecting to it.
    pub connect: Duration,
    /// Time limit for a free slot.
    pub place: Duration,
    /// A connection is ended after this time without a byte in either direction.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // RFC 5382, REQ-5: an idle TCP connection must be kept for at least 2 hours and 4 minutes.
        Self {
            connect: Duration::from_secs(10),
            place: PLACE_TIMEOUT,
            idle: Duration::from_secs(2 * 3600 + 4 * 60),
        }
    }
}

/// Outcome of one stream.
#[derive(Debug, Default)]
pub struct RelayReport {
    /// The requested target, if it arrived.
    pub target: Option<Target>,
    /// The answer of the server end.
    pub answer: Option<ReplyCode>,
    /// Bytes forwarded in both directions.
    pub bytes: u64,
    /// Why the connection failed.
    pub error: Option<ProxyError>,
}

impl RelayReport {
    /// A stream that failed before bytes were forwarded.
    pub fn failed(target: Option<Target>, error: ProxyError) -> Self {
        let answer = if let ProxyError::ReplyCode(answer) = &error { Some(*answer) } else { None };
        Self { target, answer, bytes: 0, error: Some(error) }
    }
}

/// Forwards bytes between `tcp` and a stream until both directions have ended, and returns their number; `all` counts
/// them while forwarding. If one end fails, or this task is dropped early, `tcp` is reset, so that its peer does
/// not take partial data for complete data. If this returns an error, the owner of the stream must reset the stream.
pub async fn relay<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut tcp: TcpStream,
    reader: &mut R,
    writer: &mut W,
    idle: Duration,
    all: &AtomicU64,
) -> (u64, Result<(), ProxyError>) {
    // Bytes leave as the other end sent them: Nagle's algorithm would hold the last ones of a message until the
    // program's kernel acknowledges, 40 ms later (RFC 9293 section 3.7.4). If it cannot be set, they are late.
    let _ = tcp.set_nodelay(true);
    // With a linger time of zero, closing resets the connection. If that cannot be set, the program sees an orderly end
    // instead of a reset.
    let _ = tcp.set_zero_linger();
    let forwarded_bytes = AtomicU64::new(0);
    let forwarded = |_, bytes| {
        forwarded_bytes.fetch_add(bytes, Relaxed);
        all.fetch_add(bytes, Relaxed);
    };
    let result = tacit_net::relay::relay(&mut tcp, tokio::io::join(reader, writer), idle, forwarded).await;
    if result.is_ok() {
        let _ = rustix::net::sockopt::set_socket_linger(&tcp, None);
    }
    let result = result.map_err(|error| match error {
        RelayError::Io(error) => ProxyError::Io(error),
        RelayError::Idle => ProxyError::Idle,
    });
    (forwarded_bytes.into_inner(), result)
}

/// Serves a request of the client end on one stream, once there is a free slot in `places`. A request holds no slot
/// before it has sent its target.
pub async fn serve<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    allowed: &AllowList,
    limits: Limits,
    places: &Semaphore,
    reader: &mut R,
    writer: &mut W,
    counts: &ProxyCounts,
) -> RelayReport {
    let target = match tokio::time::timeout(limits.connect, read_target(reader)).await {
        Ok(Ok(target)) => target,
        Ok(Err(error)) => return RelayReport::failed(None, error),
        Err(_) => return RelayReport::failed(None, ProxyError::Idle),
    };
    let place = tokio::time::timeout(limits.place, places.acquire()).await;
    let dialled = match &place {
        Ok(Ok(_)) => dial(allowed, &target, limits.connect).await,
        Ok(Err(_)) | Err(_) => Err(ReplyCode::Busy),
    };
    let answer = dialled.as_ref().err().copied().unwrap_or(ReplyCode::Connected);
    counts.on_answer(answer);
    let answered = async {
        writer.write_u8(answer as u8).await?;
        writer.flush().await
    };
    let answered: io::Result<()> = answered.await;
    let tcp = match (answered, dialled) {
        (Ok(()), Ok(tcp)) => tcp,
        (Err(error), _) => return RelayReport::failed(Some(target), error.into()),
        (_, Err(answer)) => return RelayReport::failed(Some(target), ProxyError::ReplyCode(answer)),
    };
    let (bytes, result) = relay(tcp, reader, writer, limits.idle, &counts.bytes).await;
    RelayReport { target: Some(target), answer: Some(answer), bytes, error: result.err() }
}
