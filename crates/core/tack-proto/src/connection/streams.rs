//! The user's face of a connection: its streams.

use std::sync::Arc;

use super::{Connection, Control, Reason, State, StreamId, Violation, Written};
use crate::streams::StreamEvent;
use tacit_packet::units::Bytes;

impl Connection {
    /// Opens a stream, or none while the peer allows no more: then [`StreamEvent::MayOpen`] tells when to ask again. None
    /// either before the connection is established, and once [`close`](Self::close) was called or stream 0 was ended. The
    /// peer hears of a stream by the first packet about it.
    pub fn open_stream(&mut self) -> Option<StreamId> {
        if self.state != State::Established || self.sender.streams.is_ending() {
            return None;
        }
        let stream = self.receiver.incoming.open()?;
        self.sender.streams.insert(stream);
        Some(stream)
    }

    /// The next event of a stream. A stream is kept until all of its events were taken.
    pub fn poll_stream_event(&mut self) -> Option<StreamEvent> {
        if core::mem::take(&mut self.may_open) {
            return Some(StreamEvent::MayOpen);
        }
        let event = self.receiver.incoming.next_event().or_else(|| self.sender.streams.next_event())?;
        match event {
            StreamEvent::Ended(stream) | StreamEvent::Reset(stream, _) | StreamEvent::Finished(stream) => {
                self.forget_if_over(stream);
            }
            _ => {}
        }
        Some(event)
    }

    /// Adds `bytes` to the data to send on `stream`. The supply saturates. It is ignored after [`close`](Self::close), and for
    /// a stream that is not open.
    pub fn write_stream(&mut self, stream: StreamId, bytes: u64) {
        if self.sender.streams.is_closing() {
            return;
        }
        if bytes > 0 {
            self.written = Written::Unreported;
        }
        self.sender.streams.write(stream, bytes);
    }

    /// Ends the sending direction of `stream` after everything written. The end of stream 0 states that no other stream will
    /// come, and waits until all of them are over.
    pub fn close_stream(&mut self, stream: StreamId) {
        self.sender.streams.close(stream);
    }

    /// Resets the sending direction of `stream`: undelivered data is discarded. No effect if the peer has all of it and its
    /// end. Stream 0, whose end closes the connection, cannot be reset.
    pub fn reset_stream(&mut self, stream: StreamId, code: u32) {
        if stream == StreamId(0) {
            return;
        }
        if let Some(reset) = self.sender.streams.reset(stream, code) {
            self.sender.controls.push(reset);
        }
    }

    /// Stops receiving `stream`: arriving data is dropped, and the peer is asked to stop sending. Not for stream 0.
    pub fn stop_stream(&mut self, stream: StreamId, code: u32) {
        if stream == StreamId(0) {
            return;
        }
        if self.receiver.incoming.stop(stream) {
            self.sender.controls.push(Control::Stop { stream, code });
        }
        self.receiver.after_read(stream);
        self.forget_if_over(stream);
    }

    /// The reader of `stream` has taken `bytes` of the delivered data; for [`Reader::Explicit`](crate::Reader::Explicit).
    pub fn read(&mut self, stream: StreamId, bytes: u64) {
        self.receiver.on_read(stream, bytes);
        self.forget_if_over(stream);
    }

    /// Bytes that streams hold beyond the windows that are their own.
    pub fn borrowed(&self) -> Bytes {
        Bytes(self.receiver.incoming.borrowed())
    }

    /// Bytes that streams may hold beyond those.
    pub fn shared_buffer(&self) -> Bytes {
        Bytes(self.receiver.incoming.shared_buffer())
    }

    /// Streams may hold this many bytes beyond those from now on, in place of [`max_receive_buffer`](crate::Config::max_receive_buffer):
    /// for programs that share memory over connections.
    pub fn set_shared_buffer(&mut self, bytes: Bytes) {
        self.receiver.incoming.set_shared_buffer(bytes.0);
    }

    /// Bytes of `stream` that were delivered and the reader has not taken.
    pub fn readable(&self, stream: StreamId) -> u64 {
        self.receiver.incoming.readable(stream)
    }

    /// Bytes of `stream` delivered in order and once.
    pub fn delivered_of(&self, stream: StreamId) -> u64 {
        self.receiver.incoming.delivered_of(stream)
    }

    /// Bytes of `stream` that the peer has without a gap before them: they are not sent again.
    pub fn acked_of(&self, stream: StreamId) -> u64 {
        self.sender.streams.acked_of(stream)
    }

    /// Bytes of `stream` up to the last that the peer has, with the gaps before it.
    pub fn highest_acked_of(&self, stream: StreamId) -> u64 {
        self.sender.streams.highest_acked_of(stream)
    }

    /// Bytes of `stream` that the peer takes as of now, counted from the first.
    pub fn limit_of(&self, stream: StreamId) -> u64 {
        self.sender.streams.limit_of(stream)
    }

    /// True when the peer ended `stream` and all of it was delivered; false again once the stream is forgotten.
    pub fn has_ended(&self, stream: StreamId) -> bool {
        self.receiver.incoming.ended(stream)
    }

    /// Streams other than stream 0 that are not over in both directions, or have events or data left.
    pub fn open_streams(&self) -> usize {
        self.receiver.incoming.open_streams()
    }

    /// Those of them that the peer opened: never more than [`max_streams`](crate::Config::max_streams). Of ours there may
    /// be more than the peer has open: it may know before us that one is over.
    pub fn peer_streams(&self) -> u32 {
        self.receiver.incoming.numbers.peers_open()
    }

    /// Aborts the connection with an application's reason. The peer gets its first [`Reason::MAX_TEXT`] bytes.
    pub fn abort_with(&mut self, code: u32, text: &str) {
        self.reason = Some(Arc::new(Reason::new(code, text)));
        self.abort();
    }

    /// The peer's reason for ending the connection, if it gave one.
    pub fn peer_reason(&self) -> Option<&Reason> {
        self.peer_reason.as_deref()
    }

    /// The peer says something about streams.
    pub(super) fn on_control(&mut self, control: Control) -> Result<(), Violation> {
        let incoming = &mut self.receiver.incoming;
        match control {
            Control::Reset { stream, .. } | Control::Stop { stream, .. } if stream == StreamId(0) => {
                return Err(Violation);
            }
            Control::Reset { stream, code, end } => {
                incoming.on_reset(stream, code, end)?;
                self.receiver.after_read(stream);
            }
            Control::Stop { stream, code } => {
                incoming.admit(stream)?;
                self.open_what_peer_opened();
                if let Some(reset) = self.sender.streams.on_stop(stream, code) {
                    self.sender.controls.push(reset);
                }
            }
            Control::Streams { limit } => self.may_open |= incoming.numbers.raise(limit)?,
            Control::Held { stream } => self.receiver.on_held(stream)?,
        }
        Ok(())
    }

    /// Streams that the peer opened have two directions.
    pub(super) fn open_what_peer_opened(&mut self) {
        let mut opened = false;
        while let Some(stream) = self.receiver.incoming.next_opened() {
            self.sender.streams.insert(stream);
            opened = true;
        }
        // A stream closed before gives its place back now where it had no reason to then: less than half was used.
        if opened {
            self.allow_more_streams();
        }
    }

    fn forget_if_over(&mut self, stream: StreamId) {
        let (incoming, outgoing) = (&mut self.receiver.incoming, &mut self.sender.streams);
        // Stream 0 stays.
        if stream == StreamId(0) || !incoming.is_over(stream) || !outgoing.is_over(stream) {
            return;
        }
        if !incoming.forget(stream) {
            return;
        }
        outgoing.forget(stream);
        self.allow_more_streams();
    }

    /// The peer hears that it may open more, where it should.
    fn allow_more_streams(&mut self) {
        let numbers = &mut self.receiver.incoming.numbers;
        if let Some(limit) = numbers.news() {
            numbers.on_advertised(limit);
            self.sender.controls.allow(limit);
        }
    }
}
