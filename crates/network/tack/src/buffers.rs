//! Buffers of a stream: written bytes that the peer may not have, and received bytes that wait for their reader.

use std::collections::VecDeque;
use std::task::Waker;

/// The buffers of both directions of a stream.
#[derive(Default)]
pub(crate) struct StreamBuffers {
    pub sending: SendBuffer,
    pub receiving: RecvBuffer,
    /// Bytes of its buffers when they were last counted.
    pub counted: u64,
}

/// Bytes of a stream to send, kept until they are acknowledged.
#[derive(Default)]
pub(crate) struct SendBuffer {
    /// Offset in the stream of the first buffered byte.
    base: u64,
    bytes: VecDeque<u8>,
    /// Buffered bytes that the peer may have received, but that are not acknowledged because an earlier byte is
    /// missing.
    pub behind_gap: u64,
    /// The user has ended or reset the stream.
    pub over: bool,
    /// The code with which the peer asked to stop the stream.
    pub stopped: Option<u32>,
    /// The stream was reset here for lack of memory.
    pub no_memory: bool,
    /// The peer has received all of it, or knows that it was reset.
    pub finished: bool,
    /// The user has dropped its handle.
    pub dropped: bool,
    pub waker: Option<Waker>,
}

/// Received bytes of a stream, kept until its reader takes them.
#[derive(Default)]
pub(crate) struct RecvBuffer {
    /// Offset in the stream of the first byte that its reader has not taken.
    taken: u64,
    bytes: VecDeque<u8>,
    /// Bytes that are in order and have not been taken.
    ready: usize,
    pub ended: bool,
    /// The code with which the peer reset the stream.
    pub reset: Option<u32>,
    /// The stream was stopped here for lack of memory.
    pub no_memory: bool,
    pub dropped: bool,
    pub waker: Option<Waker>,
}

impl StreamBuffers {
    /// True if the stream has finished and no handle refers to it.
    pub fn is_over(&self) -> bool {
        self.is_dropped() && self.sending.finished
    }

    /// True if no handle refers to it.
    pub fn is_dropped(&self) -> bool {
        self.sending.dropped && self.receiving.dropped
    }

    /// Capacity of its buffers in bytes.
    pub fn buffer_capacity(&self) -> u64 {
        (self.sending.bytes.capacity() + self.receiving.bytes.capacity()) as u64
    }

    /// Wakes the tasks that wait for this stream.
    pub fn wake(&mut self) {
        wake(&mut self.sending.waker);
        wake(&mut self.receiving.waker);
    }
}

/// Wakes the waiting task, if there is one.
pub(crate) fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl SendBuffer {
    /// Buffered bytes: written, but not acknowledged.
    pub fn held(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Stream offset after the last written byte.
    pub fn written(&self) -> u64 {
        self.base + self.held()
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Appends `len` bytes, starting at the stream offset `start`, to `into`.
    ///
    /// # Panics
    /// If these bytes were not written yet, or already released.
    pub fn copy(&self, start: u64, len: usize, into: &mut Vec<u8>) {
        let from = (start - self.base) as usize;
        let (front, back) = self.bytes.as_slices();
        let of_front = front.get(from..).unwrap_or_default();
        let first = len.min(of_front.len());
        into.extend_from_slice(&of_front[..first]);
        let skipped = from.saturating_sub(front.len());
        into.extend_from_slice(&back[skipped..skipped + len - first]);
    }

    /// Releases the bytes below the stream offset `place`, which the peer has.
    pub fn release(&mut self, place: u64) {
        let gone = place.saturating_sub(self.base).min(self.held());
        self.bytes.drain(..gone as usize);
        self.base += gone;
        free_if_empty(&mut self.bytes);
    }

    /// Discards all bytes: nothing more is sent.
    pub fn clear(&mut self) {
        self.base += self.held();
        self.bytes = VecDeque::new();
    }
}

impl RecvBuffer {
    /// Stores received bytes at the stream offset `start`. The core has checked that they are within the window.
    pub fn place(&mut self, start: u64, bytes: &[u8]) {
        let from = (start - self.taken) as usize;
        let end = from + bytes.len();
        if from == self.bytes.len() {
            self.bytes.extend(bytes);
            return;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let (front, back) = self.bytes.as_mut_slices();
        let middle = front.len();
        let in_front = bytes.len().min(middle.saturating_sub(from));
        if in_front > 0 {
            front[from..from + in_front].copy_from_slice(&bytes[..in_front]);
        }
        let (from, rest) = ((from + in_front) - middle.min(from + in_front), &bytes[in_front..]);
        back[from..from + rest.len()].copy_from_slice(rest);
    }

    /// Records that all bytes below the stream offset `delivered` have arrived.
    pub fn on_delivered(&mut self, delivered: u64) {
        self.ready = delivered.saturating_sub(self.taken) as usize;
        if self.ready > 0 {
            wake(&mut self.waker);
        }
    }

    /// The first contiguous chunk of bytes in order; empty if there are none.
    pub fn peek(&self) -> &[u8] {
        let front = self.bytes.as_slices().0;
        &front[..front.len().min(self.ready)]
    }

    /// Buffered bytes: those in order, and those after a gap including the gap.
    pub fn held(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes in order that the reader has not taken.
    pub fn waiting(&self) -> u64 {
        self.ready as u64
    }

    /// Removes the first `len` bytes that [`peek`](Self::peek) returned.
    pub fn take(&mut self, len: usize) {
        self.bytes.drain(..len);
        self.ready -= len;
        self.taken += len as u64;
        free_if_empty(&mut self.bytes);
    }

    /// Discards the bytes, because there is no reader any more.
    pub fn clear(&mut self) {
        self.bytes = VecDeque::new();
        self.ready = 0;
    }
}

/// Most capacity in bytes that an empty buffer keeps. Ours.
const KEPT: usize = 64 << 10;

fn free_if_empty(bytes: &mut VecDeque<u8>) {
    if bytes.is_empty() && bytes.capacity() > KEPT {
        *bytes = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_buffer_keeps_64_kib_and_no_more() {
        for (written, keeps) in [(KEPT / 2, true), (2 * KEPT, false)] {
            let mut sending = SendBuffer::default();
            sending.write(&vec![7; written]);
            sending.release(written as u64 - 1);
            assert!(sending.bytes.capacity() >= written);
            sending.release(written as u64);
            assert_eq!(sending.bytes.capacity() > 0, keeps, "{written} bytes");
        }
    }

    proptest! {
        /// Pieces in any order, with reads in between, give the stream.
        #[test]
        fn data_in_any_order_is_read_in_order(
            order in Just((0..50usize).collect::<Vec<_>>()).prop_shuffle(),
            takes in prop::collection::vec(1..40usize, 50),
        ) {
            let byte = |place: usize| (place % 251) as u8;
            let mut receiving = RecvBuffer::default();
            let (mut arrived, mut read) = ([false; 50], Vec::new());
            for (piece, take) in order.into_iter().zip(takes) {
                let places = piece * 7..piece * 7 + 7;
                let bytes: Vec<u8> = places.clone().map(byte).collect();
                if places.end > read.len() {
                    let skip = read.len().saturating_sub(places.start);
                    receiving.place((places.start + skip) as u64, &bytes[skip..]);
                }
                arrived[piece] = true;
                let whole = arrived.iter().take_while(|arrived| **arrived).count();
                receiving.on_delivered(whole as u64 * 7);
                let len = receiving.peek().len().min(take);
                read.extend_from_slice(&receiving.peek()[..len]);
                receiving.take(len);
            }
            while !receiving.peek().is_empty() {
                read.extend_from_slice(receiving.peek());
                receiving.take(receiving.peek().len());
            }
            prop_assert_eq!(read, (0..350).map(byte).collect::<Vec<_>>());
        }

        /// Written bytes can be copied from any offset until they are released.
        #[test]
        fn the_send_buffer_holds_the_written_bytes(steps in prop::collection::vec((1..30usize, 0..30u64), 1..60)) {
            let (mut sending, mut written, mut released) = (SendBuffer::default(), Vec::new(), 0);
            for (write, release) in steps {
                let bytes: Vec<u8> = (0..write).map(|place| (written.len() + place) as u8).collect();
                sending.write(&bytes);
                written.extend(bytes);
                released = (released + release).min(written.len() as u64);
                sending.release(released);
                prop_assert_eq!(sending.held(), written.len() as u64 - released);
                for start in [released, (released + written.len() as u64) / 2] {
                    let mut copy = Vec::new();
                    sending.copy(start, written.len() - start as usize, &mut copy);
                    prop_assert_eq!(&copy, &written[start as usize..]);
                }
            }
        }
    }
}
