//! Forwards the bytes of a connection in both directions.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};
use tokio::time::timeout;

/// Most bytes per read.
const BUFFER_BYTES: usize = 64 * 1024;

/// Why [`relay`] ended before both directions had.
#[derive(Debug, Error)]
pub enum RelayError {
    /// One end failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// No byte was forwarded for the longest permitted time.
    #[error("no byte was forwarded for too long")]
    Idle,
}

/// The end that bytes were forwarded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The first argument of [`relay`].
    ToFirst,
    /// The second one.
    ToSecond,
}

/// Forwards bytes between `first` and `second`, each direction with its end, until both have ended. `forwarded` is called
/// with the number of bytes that an end has accepted, so that its sums hold where this is dropped, too.
///
/// # Errors
/// If an end fails, or no byte is forwarded for `idle_max`.
pub async fn relay<A, B>(
    first: A,
    second: B,
    idle_max: Duration,
    forwarded: impl Fn(Direction, u64),
) -> Result<(), RelayError>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let moved = AtomicU64::new(0);
    let count = |direction, bytes| {
        moved.fetch_add(bytes, Relaxed);
        forwarded(direction, bytes);
    };
    let mut first = Metered { stream: first, written: |bytes| count(Direction::ToFirst, bytes) };
    let mut second = Metered { stream: second, written: |bytes| count(Direction::ToSecond, bytes) };
    let mut copy = pin!(copy_bidirectional_with_sizes(&mut first, &mut second, BUFFER_BYTES, BUFFER_BYTES));
    loop {
        let before = moved.load(Relaxed);
        match timeout(idle_max, &mut copy).await {
            Ok(ended) => return Ok(ended.map(drop)?),
            Err(_) if moved.load(Relaxed) == before => return Err(RelayError::Idle),
            Err(_) => (),
        }
    }
}

/// A stream with a call for the bytes that it accepts.
struct Metered<S, F> {
    stream: S,
    written: F,
}

impl<S: AsyncRead + Unpin, F: Unpin> AsyncRead for Metered<S, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin, F: Fn(u64) + Unpin> AsyncWrite for Metered<S, F> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        (self.written)(written as u64);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
