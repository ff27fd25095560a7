//! The user's calls on a connection: streams, datagrams, and closing.

use bytes::Bytes;
use tacit_packet::tack::packet::StreamId;

use super::{BEYOND_LIMIT, Session};
use crate::buffers::StreamBuffers;
use crate::error::{ConnectionError, SendDatagramError, StreamError};
use crate::memory::TIGHT;

impl Session {
    /// Closes the connection.
    pub fn close(&mut self, code: u32, text: &str) {
        if self.end.is_none() {
            self.core.abort_with(code, text);
            self.finish(ConnectionError::LocallyClosed);
            self.pump();
        }
    }

    /// The socket has failed.
    pub fn fail(&mut self, why: ConnectionError) {
        self.finish(why);
    }

    /// Opens a stream; `None` while the peer's limit is reached.
    pub fn open(&mut self) -> Result<Option<StreamId>, ConnectionError> {
        self.alive()?;
        let stream = self.core.open_stream();
        if let Some(stream) = stream {
            self.observer.streams_opened += 1;
            self.streams.insert(stream, StreamBuffers::default());
        }
        Ok(stream)
    }

    /// The next stream that the peer opened; streams opened before the connection ended are still returned.
    pub fn next_opened(&mut self) -> Result<Option<StreamId>, ConnectionError> {
        match self.opened.pop_front() {
            Some(stream) => Ok(Some(stream)),
            None => self.alive().map(|()| None),
        }
    }

    pub fn alive(&self) -> Result<(), ConnectionError> {
        self.end.clone().map_or(Ok(()), Err)
    }

    pub fn buffers(&mut self, stream: StreamId) -> Result<&mut StreamBuffers, StreamError> {
        self.streams.get_mut(&stream).ok_or(StreamError::Closed)
    }

    /// Takes as many bytes from a writer as fit; `None` if there is no room.
    pub fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<Option<usize>, StreamError> {
        self.alive()?;
        let (limit, peers_limit) = (self.send_limit, self.core.limit_of(stream));
        let is_tight = self.is_tight;
        let sending = &mut self.buffers(stream)?.sending;
        if sending.no_memory {
            return Err(StreamError::OutOfMemory);
        }
        if let Some(code) = sending.stopped {
            return Err(StreamError::Stopped(code));
        }
        if sending.over {
            return Err(StreamError::Closed);
        }
        let taken_by_peer = peers_limit.saturating_add(BEYOND_LIMIT).saturating_sub(sending.written());
        // A stream without buffered data gets no progress events, so it must not wait for one.
        let limit = if is_tight { TIGHT } else { limit + sending.behind_gap };
        let room = limit.saturating_sub(sending.held());
        let room = room.min(taken_by_peer).min(bytes.len() as u64);
        if room == 0 && !bytes.is_empty() {
            return Ok(None);
        }
        sending.write(&bytes[..room as usize]);
        self.core.write_stream(stream, room);
        self.count(stream);
        Ok(Some(room as usize))
    }

    /// Ends the send side.
    pub fn end_stream(&mut self, stream: StreamId) -> Result<(), StreamError> {
        self.alive()?;
        let sending = &mut self.buffers(stream)?.sending;
        if let Some(code) = sending.stopped {
            return Err(StreamError::Stopped(code));
        }
        if !std::mem::replace(&mut sending.over, true) {
            self.core.close_stream(stream);
        }
        Ok(())
    }

    /// Resets the send side.
    pub fn reset(&mut self, stream: StreamId, code: u32) {
        if let Some(buffers) = self.streams.get_mut(&stream)
            && !buffers.sending.finished
        {
            buffers.sending.over = true;
            buffers.sending.clear();
            self.core.reset_stream(stream, code);
            self.count(stream);
            self.pump();
        }
    }

    /// Records that the reader has taken `len` bytes.
    pub fn on_read(&mut self, stream: StreamId, len: usize) {
        self.core.read(stream, len as u64);
        self.count(stream);
    }

    /// Stops the receive side.
    pub fn stop(&mut self, stream: StreamId, code: u32) {
        if let Some(buffers) = self.streams.get_mut(&stream) {
            let all_there = buffers.receiving.ended || buffers.receiving.reset.is_some();
            let waiting = buffers.receiving.waiting();
            buffers.receiving.clear();
            if all_there {
                self.core.read(stream, waiting);
            } else {
                self.core.stop_stream(stream, code);
            }
            self.count(stream);
            self.pump();
        }
    }

    /// Resets the largest stream because memory is exhausted, unless it is small. Both of its ends get the reason.
    pub fn give_up_fullest(&mut self) -> bool {
        let fullest = self.streams.iter().max_by_key(|(_, buffers)| buffers.counted);
        let Some((stream, _)) = fullest.filter(|(_, buffers)| buffers.counted > TIGHT) else { return false };
        let stream = *stream;
        self.reset(stream, StreamError::OUT_OF_MEMORY_CODE);
        self.stop(stream, StreamError::OUT_OF_MEMORY_CODE);
        if let Some(buffers) = self.streams.get_mut(&stream) {
            // The writer's side ends as well, even if the peer has all bytes and only lacks the end.
            buffers.sending.clear();
            (buffers.sending.no_memory, buffers.receiving.no_memory) = (true, true);
            buffers.wake();
        }
        self.count(stream);
        true
    }

    /// The writer was dropped. A send side that has not ended is reset, so that partial data is not taken for a
    /// complete message.
    pub fn drop_sending(&mut self, stream: StreamId) {
        let Some(buffers) = self.streams.get_mut(&stream) else { return };
        buffers.sending.dropped = true;
        if !buffers.sending.over {
            self.reset(stream, 0);
        }
        self.forget_if_over(stream);
    }

    /// The reader was dropped.
    pub fn drop_receiving(&mut self, stream: StreamId) {
        let Some(buffers) = self.streams.get_mut(&stream) else { return };
        buffers.receiving.dropped = true;
        self.stop(stream, 0);
        self.forget_if_over(stream);
    }

    pub fn send_datagram(&mut self, bytes: Bytes) -> Result<(), SendDatagramError> {
        self.alive()?;
        let len = bytes.len();
        let too_long = |most: u32| SendDatagramError::TooLarge { len, max: most as usize };
        let number = u32::try_from(len).map_err(|_| too_long(self.core.max_datagram()))?;
        let number = self.core.send_datagram(number).map_err(|error| too_long(error.1))?;
        self.datagrams_out.push_back((number, bytes));
        let oldest = self.core.oldest_datagram();
        self.drop_datagrams_before(oldest);
        Ok(())
    }

    /// Queues a datagram that may not drop another; `None` while there is no room.
    pub fn send_datagram_in_room(&mut self, bytes: &Bytes) -> Result<Option<()>, SendDatagramError> {
        self.alive()?;
        if self.datagram_room() == 0 && bytes.len() <= self.max_datagram() {
            return Ok(None);
        }
        self.send_datagram(bytes.clone()).map(Some)
    }

    /// Datagrams that can be queued before one is dropped.
    pub fn datagram_room(&self) -> usize {
        self.core.datagram_room()
    }

    pub fn next_datagram(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        match self.datagrams_in.pop_front() {
            Some(bytes) => Ok(Some(bytes)),
            None => self.alive().map(|()| None),
        }
    }

    pub fn max_datagram(&self) -> usize {
        self.core.max_datagram() as usize
    }
}
