//! The two directions of a stream, as tokio readers and writers.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tacit_packet::tack::packet::StreamId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::{ReadExactError, ReadToEndError, StreamError};
use crate::handle::Handle;
use crate::session::Session;

/// The sending half of a stream.
///
/// [`finish`](Self::finish) ends it. If it is dropped before that, it is reset with code 0, so that the peer does not
/// take partial data for complete data. It also implements [`AsyncWrite`].
pub struct SendStream {
    handle: Arc<Handle>,
    id: StreamId,
}

/// The receiving half of a stream.
///
/// If it is dropped before the end, it stops the sender with code 0. It also implements [`AsyncRead`].
pub struct RecvStream {
    handle: Arc<Handle>,
    id: StreamId,
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream").field("id", &self.id.0).finish_non_exhaustive()
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.id.0).finish_non_exhaustive()
    }
}

fn keep(slot: &mut Option<Waker>, context: &Context<'_>) {
    if !slot.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
        *slot = Some(context.waker().clone());
    }
}

impl SendStream {
    pub(crate) fn new(handle: Arc<Handle>, id: StreamId) -> Self {
        Self { handle, id }
    }

    /// Identifier of the stream within its connection.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Writes some of `data`, and returns the number of bytes written. Waits while the stream's buffer is full.
    ///
    /// Cancel safe: nothing was written if it did not return.
    ///
    /// # Errors
    /// If the peer stopped the stream, this end finished or reset it, or the connection has ended.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        poll_fn(|context| self.poll_write_some(context, data)).await
    }

    /// Writes all of `data`. Not cancel safe.
    ///
    /// # Errors
    /// As [`write`](Self::write); some of the data may have been written.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), StreamError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = &data[written..];
        }
        Ok(())
    }

    /// Ends the stream after all written data. Does not wait for its arrival; [`finished`](Self::finished) does.
    ///
    /// # Errors
    /// If the peer stopped the stream, or the connection has ended.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.handle.with(|session| session.end_stream(self.id))
    }

    /// Aborts the stream. Data that has not arrived is lost. The peer gets [`StreamError::Reset`] with `code`.
    pub fn reset(&mut self, code: u32) {
        self.handle.with(|session| session.reset(self.id, code));
    }

    /// Waits until the peer has received everything, including the end.
    ///
    /// # Errors
    /// If the peer stops the stream, or the connection ends, before that.
    pub async fn finished(&mut self) -> Result<(), StreamError> {
        poll_fn(|context| self.poll_finished(context)).await
    }

    fn poll_write_some(&self, context: &Context<'_>, data: &[u8]) -> Poll<Result<usize, StreamError>> {
        let poll = |session: &mut Session| {
            let taken = session.write(self.id, data)?;
            if taken.is_none() {
                keep(&mut session.buffers(self.id)?.sending.waker, context);
            }
            Ok::<_, StreamError>(taken)
        };
        match self.handle.with(poll) {
            Ok(None) => Poll::Pending,
            Ok(Some(len)) => Poll::Ready(Ok(len)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn poll_finished(&self, context: &Context<'_>) -> Poll<Result<(), StreamError>> {
        let poll = |session: &mut Session| {
            let alive = session.alive();
            let sending = &mut session.buffers(self.id)?.sending;
            if sending.no_memory {
                return Err(StreamError::OutOfMemory);
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
            Ok(false) => Poll::Pending,
            done => Poll::Ready(done.map(|_| ())),
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_some(context, data).map_err(io::Error::from)
    }

    /// Does nothing: written data is sent without a flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// As [`finish`](Self::finish).
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.finish().map_err(io::Error::from))
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

    /// Identifier of the stream within its connection.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Reads into `buffer`, and returns the number of bytes read; `None` at the end of the stream. Waits until data has
    /// arrived.
    ///
    /// Cancel safe: nothing was read if it did not return.
    ///
    /// # Errors
    /// If the peer reset the stream, or the connection ended before the stream did.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, StreamError> {
        if buffer.is_empty() {
            return Ok(Some(0));
        }
        let mut into = ReadBuf::new(buffer);
        poll_fn(|context| self.poll_read_some(context, &mut into)).await?;
        let len = into.filled().len();
        Ok((len > 0).then_some(len))
    }

    /// Fills `buffer`. Not cancel safe.
    ///
    /// # Errors
    /// If the stream finishes first, or as [`read`](Self::read).
    pub async fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ReadExactError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]).await? {
                Some(len) => filled += len,
                None => return Err(ReadExactError::FinishedEarly(filled)),
            }
        }
        Ok(())
    }

    /// Reads the rest of the stream, at most `limit` bytes. Not cancel safe.
    ///
    /// # Errors
    /// If the stream is longer, or as [`read`](Self::read).
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let (mut all, mut piece) = (Vec::new(), vec![0; READ_PIECE]);
        while let Some(len) = self.read(&mut piece).await? {
            if len > limit - all.len() {
                return Err(ReadToEndError::TooLong(limit));
            }
            all.extend_from_slice(&piece[..len]);
        }
        Ok(all)
    }

    /// Asks the peer to stop sending. The peer gets [`StreamError::Stopped`] with `code`.
    pub fn stop(&mut self, code: u32) {
        self.handle.with(|session| session.stop(self.id, code));
    }

    fn poll_read_some(&self, context: &Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<(), StreamError>> {
        let poll = |session: &mut Session| {
            let alive = session.alive();
            let receiving = &mut session.buffers(self.id)?.receiving;
            let mut len = 0;
            // Twice, because the ring buffer may hold the data in two chunks.
            for _ in 0..2 {
                let bytes = receiving.peek();
                let some = bytes.len().min(into.remaining());
                into.put_slice(&bytes[..some]);
                receiving.take(some);
                len += some;
            }
            if len > 0 {
                session.on_read(self.id, len);
                return Ok(true);
            }
            if receiving.no_memory {
                return Err(StreamError::OutOfMemory);
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
            Ok(false) => Poll::Pending,
            done => Poll::Ready(done.map(|_| ())),
        }
    }
}

/// Bytes that [`RecvStream::read_to_end`] reads at a time. Ours.
const READ_PIECE: usize = 64 << 10;

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.poll_read_some(context, into).map_err(io::Error::from)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.handle.with(|session| session.drop_receiving(self.id));
    }
}
