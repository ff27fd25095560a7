//! The two directions of a stream, as tokio reads and writes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tacit_proto::tack::packet::StreamId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::endpoint::Handle;
use crate::error::{ConnectionError, StreamError};
use crate::session::Session;

/// The sending half of a stream.
///
/// [`shutdown`](tokio::io::AsyncWriteExt::shutdown) ends it in order. Dropping it earlier resets it with code 0, so that the
/// peer does not take a part for the whole.
pub struct SendStream {
    handle: Arc<Handle>,
    id: StreamId,
}

/// The receiving half of a stream. Dropping it before the end stops the sender with code 0.
pub struct RecvStream {
    handle: Arc<Handle>,
    id: StreamId,
}

fn keep(slot: &mut Option<Waker>, context: &Context<'_>) {
    if !slot.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
        *slot = Some(context.waker().clone());
    }
}

fn gone<T>() -> Poll<Result<T, StreamError>> {
    Poll::Ready(Err(ConnectionError::ClosedHere.into()))
}

impl SendStream {
    pub(crate) fn new(handle: Arc<Handle>, id: StreamId) -> Self {
        Self { handle, id }
    }

    /// The number of the stream in its connection.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Aborts the stream. Data that has not arrived is abandoned.
    pub fn reset(&mut self, code: u32) {
        self.handle.with(|session| session.reset(self.id, code));
    }

    /// Waits until the peer has received everything, including the end.
    ///
    /// # Errors
    /// If the peer stops the stream, or the connection ends before.
    pub async fn finished(&mut self) -> Result<(), StreamError> {
        std::future::poll_fn(|context| self.poll_finished(context)).await
    }

    fn poll_finished(&self, context: &Context<'_>) -> Poll<Result<(), StreamError>> {
        let poll = |session: &mut Session| {
            let alive = session.alive();
            let sending = &mut session.pipe(self.id)?.sending;
            if sending.no_memory {
                return Err(StreamError::NoMemory);
            }
            if let Some(code) = sending.stopped {
                return Err(StreamError::Stopped(code));
            }
            if sending.finished {
                return Ok(true);
            }
            alive?;
            keep(&mut sending.waker, context);
            Ok(false)
        };
        match self.handle.with(poll) {
            None => gone(),
            Some(Ok(false)) => Poll::Pending,
            Some(done) => Poll::Ready(done.map(|_| ())),
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let poll = |session: &mut Session| {
            let taken = session.write(self.id, octets)?;
            if taken.is_none() {
                keep(&mut session.pipe(self.id)?.sending.waker, context);
            }
            Ok::<_, StreamError>(taken)
        };
        match self.handle.with(poll) {
            None => gone().map_err(io::Error::from),
            Some(Ok(None)) => Poll::Pending,
            Some(Ok(Some(len))) => Poll::Ready(Ok(len)),
            Some(Err(error)) => Poll::Ready(Err(error.into())),
        }
    }

    /// Does nothing: what was written leaves as soon as it may.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the stream behind what was written, and does not wait for it to arrive: [`finished`](Self::finished) does.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.handle.with(|session| session.end_stream(self.id)) {
            None => gone().map_err(io::Error::from),
            Some(done) => Poll::Ready(done.map_err(io::Error::from)),
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.handle.with(|session| session.drop_sending(self.id));
    }
}

impl RecvStream {
    pub(crate) fn new(handle: Arc<Handle>, id: StreamId) -> Self {
        Self { handle, id }
    }

    /// The number of the stream in its connection.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Asks the peer to stop sending.
    pub fn stop(&mut self, code: u32) {
        self.handle.with(|session| session.stop(self.id, code));
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let poll = |session: &mut Session| {
            let alive = session.alive();
            let receiving = &mut session.pipe(self.id)?.receiving;
            let mut len = 0;
            // Twice, for what waits may lie in two pieces.
            for _ in 0..2 {
                let octets = receiving.peek();
                let some = octets.len().min(into.remaining());
                into.put_slice(&octets[..some]);
                receiving.take(some);
                len += some;
            }
            if len > 0 {
                session.on_read(self.id, len);
                return Ok(true);
            }
            if receiving.no_memory {
                return Err(StreamError::NoMemory);
            }
            if let Some(code) = receiving.reset {
                return Err(StreamError::Reset(code));
            }
            if receiving.ended {
                return Ok(true);
            }
            alive?;
            keep(&mut receiving.waker, context);
            Ok(false)
        };
        match self.handle.with(poll) {
            None => gone().map_err(io::Error::from),
            Some(Ok(false)) => Poll::Pending,
            Some(done) => Poll::Ready(done.map(|_| ()).map_err(io::Error::from)),
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.handle.with(|session| session.drop_receiving(self.id));
    }
}
