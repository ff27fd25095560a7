//! Bytes both ways, and the server's end of a stream.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::allow::AllowList;
use super::dial::dial;
use super::target::Target;
use super::{ProxyError, ReplyCode, asked};
use crate::metrics::ProxyCounts;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// For a place to come free where as many connections are carried as may be. Ours: programs wait for it.
pub const PLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// Limits of the server's end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the target to arrive, and to connect to it.
    pub connect: Duration,
    /// To wait for a place among those that are carried.
    pub place: Duration,
    /// A connection over which nothing goes for so long is ended.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // RFC 5382, REQ-5: an idle TCP connection is kept for 2 hours and 4 minutes at least.
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
    /// The requested target, where it came.
    pub target: Option<Target>,
    /// The answer of the server's end.
    pub answer: Option<ReplyCode>,
    /// Bytes that were moved, both ways.
    pub bytes: u64,
    /// Why it was not made, or broke.
    pub error: Option<ProxyError>,
}

impl RelayReport {
    /// One that ended before bytes were moved.
    pub fn failed(target: Option<Target>, error: ProxyError) -> Self {
        let answer = if let ProxyError::ReplyCode(answer) = &error { Some(*answer) } else { None };
        Self { target, answer, bytes: 0, error: Some(error) }
    }
}

/// Bytes of one connection, and of all.
struct RelayedBytes<'a> {
    own: AtomicU64,
    all: &'a AtomicU64,
}

/// Moves bytes of one way, and hands on their end.
async fn pump<R, W>(mut reader: R, mut writer: W, moved: &RelayedBytes<'_>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = reader.read(&mut buffer).await?;
        if count == 0 {
            return writer.shutdown().await;
        }
        writer.write_all(&buffer[..count]).await?;
        writer.flush().await?;
        moved.own.fetch_add(count as u64, Relaxed);
        moved.all.fetch_add(count as u64, Relaxed);
    }
}

/// Moves bytes between `tcp` and a stream until both ways have ended, and gives their number; `all` counts them as they go.
/// Where one end breaks, or this program ends before, `tcp` is reset, so that half of something is not taken for all of it;
/// the owner of the stream resets it when this fails.
pub async fn relay<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut tcp: TcpStream,
    reader: &mut R,
    writer: &mut W,
    idle: Duration,
    all: &AtomicU64,
) -> (u64, Result<(), ProxyError>) {
    let moved = RelayedBytes { own: AtomicU64::new(0), all };
    // Closed with no time to linger, it is reset. Where that cannot be set the program sees an end in place of a reset.
    let _ = tcp.set_zero_linger();
    let result = {
        let (tcp_reader, tcp_writer) = tcp.split();
        let both =
            async { tokio::try_join!(pump(tcp_reader, writer, &moved), pump(reader, tcp_writer, &moved)) };
        let watch = async {
            let mut before = u64::MAX;
            while before != moved.own.load(Relaxed) {
                before = moved.own.load(Relaxed);
                tokio::time::sleep(idle).await;
            }
        };
        tokio::select! {
            result = both => result.map(|_| ()).map_err(ProxyError::Io),
            () = watch => Err(ProxyError::Idle),
        }
    };
    if result.is_ok() {
        let _ = rustix::net::sockopt::set_socket_linger(&tcp, None);
    }
    (moved.own.load(Relaxed), result)
}

/// Serves the request of the client's end on one stream, once there is a place for it among `places`: until it has sent its
/// target it takes none.
pub async fn serve<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    allowed: &AllowList,
    limits: Limits,
    places: &Semaphore,
    reader: &mut R,
    writer: &mut W,
    counts: &ProxyCounts,
) -> RelayReport {
    let target = match tokio::time::timeout(limits.connect, asked(reader)).await {
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
    let told = async {
        writer.write_u8(answer as u8).await?;
        writer.flush().await
    };
    let told: io::Result<()> = told.await;
    let tcp = match (told, dialled) {
        (Ok(()), Ok(tcp)) => tcp,
        (Err(error), _) => return RelayReport::failed(Some(target), error.into()),
        (_, Err(answer)) => return RelayReport::failed(Some(target), ProxyError::ReplyCode(answer)),
    };
    let (bytes, result) = relay(tcp, reader, writer, limits.idle, &counts.bytes).await;
    RelayReport { target: Some(target), answer: Some(answer), bytes, error: result.err() }
}
