//! Tunnels (RFC 9110 section 9.3.6): TLS records are forwarded unchanged. Nothing in them can be repaired.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::served::{OnServed, Served};

/// The port of HTTP over TLS (RFC 9110 section 4.2.2), the only port for tunnels unless the user allows others.
pub const TLS_PORT: u16 = 443;

/// A tunnel is closed after this time without a byte; programs keep idle connections for minutes. tinyproxy has the
/// same default.
pub const IDLE_MAX: Duration = Duration::from_secs(600);

/// A tunnel whose answer is being sent to the client.
pub struct Tunnel {
    pub upgrade: OnUpgrade,
    pub server: TcpStream,
    pub idle_max: Duration,
    pub report: Report,
}

/// The report of a tunnel, written when it is dropped.
pub struct Report {
    pub served: Served,
    pub hear: OnServed,
    /// Bytes from the server that the client accepted.
    pub to_program: Arc<AtomicU64>,
    /// Released together with the tunnel.
    pub _place: OwnedSemaphorePermit,
}

impl Drop for Report {
    fn drop(&mut self) {
        self.served.bytes = self.to_program.load(Ordering::Relaxed);
        (self.hear)(&self.served);
    }
}

/// Where a request leaves its tunnel for the task that serves the connection.
pub type Slot = Arc<Mutex<Option<Tunnel>>>;

/// Takes the tunnel out of `slot`, if a request opened one.
pub fn take(slot: &Slot) -> Option<Tunnel> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Tunnel {
    /// Forwards bytes in both directions until both ends have closed theirs, one fails, or no byte arrives for
    /// [`Tunnel::idle_max`].
    pub async fn run(self) {
        let Self { upgrade, server, idle_max, mut report } = self;
        let Ok(program) = upgrade.await else { return };
        let moved = Arc::new(AtomicU64::new(0));
        let mut program = Metered {
            stream: TokioIo::new(program),
            moved: Arc::clone(&moved),
            written: Arc::clone(&report.to_program),
        };
        let mut server = Metered { stream: server, moved: Arc::clone(&moved), written: Arc::default() };
        let mut copy = pin!(copy_bidirectional(&mut program, &mut server));
        loop {
            let before = moved.load(Ordering::Relaxed);
            match timeout(idle_max, &mut copy).await {
                Ok(ended) => {
                    report.served.complete = ended.is_ok();
                    return;
                }
                Err(_) if moved.load(Ordering::Relaxed) == before => return,
                Err(_) => (),
            }
        }
    }
}

/// A stream whose bytes are counted.
struct Metered<S> {
    stream: S,
    /// Bytes written to or read from it.
    moved: Arc<AtomicU64>,
    /// Bytes written to it.
    written: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.moved.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.moved.fetch_add(written as u64, Ordering::Relaxed);
        self.written.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
