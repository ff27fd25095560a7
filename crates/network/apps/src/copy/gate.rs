//! A stream with a gate that controls its throughput.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// Decides how many bytes of a stream may pass; for a bidirectional stream, in both directions.
pub trait Gate {
    /// Number of bytes that may pass now, at least one.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<usize>;

    /// Reports that `count` bytes have passed.
    fn on_passed(&mut self, count: usize);
}

/// A stream behind a gate.
#[derive(Debug)]
pub struct Gated<S, G> {
    stream: S,
    gate: G,
}

impl<S, G> Gated<S, G> {
    pub(super) fn through(stream: S, gate: G) -> Self {
        Self { stream, gate }
    }

    /// The stream.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }
}

impl<S: AsyncRead + Unpin, G: Gate + Unpin> AsyncRead for Gated<S, G> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = ready!(self.gate.poll_room(context));
        let before = into.filled().len();
        let polled = if room >= into.remaining() {
            Pin::new(&mut self.stream).poll_read(context, into)
        } else {
            let mut part = ReadBuf::new(into.initialize_unfilled_to(room));
            let polled = Pin::new(&mut self.stream).poll_read(context, &mut part);
            let count = part.filled().len();
            into.advance(count);
            polled
        };
        self.gate.on_passed(into.filled().len() - before);
        polled
    }
}

impl<S: AsyncBufRead + Unpin, G: Gate + Unpin> AsyncBufRead for Gated<S, G> {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Self { stream, gate } = self.get_mut();
        let room = ready!(gate.poll_room(context));
        let bytes = ready!(Pin::new(stream).poll_fill_buf(context))?;
        Poll::Ready(Ok(&bytes[..bytes.len().min(room)]))
    }

    fn consume(mut self: Pin<&mut Self>, count: usize) {
        Pin::new(&mut self.stream).consume(count);
        self.gate.on_passed(count);
    }
}

impl<S: AsyncWrite + Unpin, G: Gate + Unpin> AsyncWrite for Gated<S, G> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = ready!(self.gate.poll_room(context));
        let polled = Pin::new(&mut self.stream).poll_write(context, &bytes[..bytes.len().min(room)]);
        if let Poll::Ready(Ok(count)) = &polled {
            self.gate.on_passed(*count);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
