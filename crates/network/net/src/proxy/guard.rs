//! A client's connection to the proxy, below hyper: refuses ambiguous heads, and closes the connection of a client that
//! accepts no data for too long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::patience::WaitLimit;
use crate::head::{Framing, HeadError, HeadReader};

/// What the client sends next.
#[derive(Debug)]
enum Phase {
    Head,
    Body {
        left: u64,
    },
    /// A chunked body, whose end only hyper knows, or a tunnel, which has no end. No further request is read from this
    /// connection, see [`Guarded::last`].
    Unjudged,
}

/// The connection, as hyper sees it.
#[derive(Debug)]
pub struct Guarded {
    tcp: TcpStream,
    phase: Phase,
    head: HeadReader,
    heads: u64,
    /// Set once the request being read must be the last one.
    last: Arc<AtomicBool>,
    patience: WaitLimit,
}

impl Guarded {
    /// Guards `tcp`, whose peer must accept data at least every `patience`. The flag is set when an answer has to be
    /// the last one.
    pub fn new(tcp: TcpStream, patience: Duration) -> (Self, Arc<AtomicBool>) {
        let last = Arc::new(AtomicBool::new(false));
        let head = HeadReader::default();
        let flag = Arc::clone(&last);
        let patience = WaitLimit::new(patience);
        (Self { tcp, phase: Phase::Head, head, heads: 0, last, patience }, flag)
    }

    fn judge(&mut self, mut bytes: &[u8]) -> Result<(), HeadError> {
        while !bytes.is_empty() {
            match &mut self.phase {
                Phase::Unjudged => return Ok(()),
                Phase::Body { left } => {
                    let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= taken as u64;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        self.phase = Phase::Head;
                    }
                }
                Phase::Head => {
                    let (taken, whole) = self.head.push(bytes)?;
                    bytes = &bytes[taken..];
                    if whole {
                        self.phase = match self.head.request()? {
                            Framing::Length(0) => Phase::Head,
                            Framing::Length(left) => Phase::Body { left },
                            Framing::Chunked | Framing::Close => {
                                self.last.store(true, Ordering::Relaxed);
                                Phase::Unjudged
                            }
                        };
                        self.head.clear();
                        self.heads += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the reason, unless an answer to an earlier request may still be in progress.
    fn refuse(&self, error: HeadError) {
        if self.heads == 0 {
            let why = format!("tacit: {error}\n");
            let text = format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{why}",
                why.len()
            );
            // A client that does not read does not get the reason.
            let _ = self.tcp.try_write(text.as_bytes());
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.tcp).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = &result
            && let Err(error) = self.judge(&buf.filled()[before..])
        {
            self.refuse(error);
            buf.set_filled(before);
            return Poll::Ready(Err(io::Error::other(error)));
        }
        result
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.patience
            .poll(cx, result)
            .map(|written| written.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into())))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
