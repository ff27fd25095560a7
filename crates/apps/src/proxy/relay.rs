//! Octets both ways, and the server's end of a stream.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::allow::AllowList;
use super::dial::dial;
use super::{Answer, ProxyError, asked};

/// Octets that are read at once.
const BUFFER_OCTETS: usize = 16 * 1024;

/// Limits of the server's end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the target to arrive, and to connect to it.
    pub connect: Duration,
    /// A connection over which nothing goes for so long is ended.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // RFC 5382, REQ-5: an idle TCP connection is kept for 2 hours and 4 minutes at least.
        Self { connect: Duration::from_secs(10), idle: Duration::from_secs(2 * 3600 + 4 * 60) }
    }
}

/// Moves octets of one way, and hands on their end.
async fn pump<R, W>(mut reader: R, mut writer: W, moved: &AtomicU64) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER_OCTETS];
    loop {
        let count = reader.read(&mut buffer).await?;
        if count == 0 {
            return writer.shutdown().await;
        }
        writer.write_all(&buffer[..count]).await?;
        writer.flush().await?;
        moved.fetch_add(count as u64, Relaxed);
    }
}

/// Moves octets between `tcp` and a stream until both ways have ended, and gives their number. Where one end breaks, `tcp`
/// is reset; whoever owns the stream resets it when this fails.
///
/// # Errors
/// Where one end breaks, or both are idle.
pub async fn relay<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut tcp: TcpStream,
    reader: &mut R,
    writer: &mut W,
    idle: Duration,
) -> Result<u64, ProxyError> {
    let moved = AtomicU64::new(0);
    let result = {
        let (tcp_reader, tcp_writer) = tcp.split();
        let both =
            async { tokio::try_join!(pump(tcp_reader, writer, &moved), pump(reader, tcp_writer, &moved)) };
        let watch = async {
            let mut before = u64::MAX;
            while before != moved.load(Relaxed) {
                before = moved.load(Relaxed);
                tokio::time::sleep(idle).await;
            }
        };
        tokio::select! {
            result = both => result.map_err(ProxyError::Io),
            () = watch => Err(ProxyError::Idle),
        }
    };
    if result.is_err() {
        // Where it cannot be set the peer sees an end in place of a reset.
        let _ = tcp.set_zero_linger();
    }
    result.map(|_| moved.load(Relaxed))
}

/// Does what the client's end asks for on one stream; gives the octets that were moved.
///
/// # Errors
/// Where the target is refused or not reached, or one end breaks.
pub async fn serve<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    allowed: &AllowList,
    limits: Limits,
    reader: &mut R,
    writer: &mut W,
) -> Result<u64, ProxyError> {
    let target =
        tokio::time::timeout(limits.connect, asked(reader)).await.map_err(|_| ProxyError::Idle)??;
    let dialled = dial(allowed, &target, limits.connect).await;
    let answer = dialled.as_ref().err().copied().unwrap_or(Answer::Connected);
    writer.write_u8(answer as u8).await?;
    writer.flush().await?;
    relay(dialled.map_err(ProxyError::Answer)?, reader, writer, limits.idle).await
}
