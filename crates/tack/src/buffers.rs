//! The bytes of a stream: those that were written and the peer may lack, and those that arrived and wait for their reader.

use std::collections::VecDeque;
use std::task::Waker;

/// One stream, both ways.
#[derive(Default)]
pub(crate) struct StreamBuffers {
    pub sending: SendBuffer,
    pub receiving: RecvBuffer,
    /// Bytes of its buffers, as they were counted last.
    pub counted: u64,
}

/// Bytes of a stream to send, until they are released.
#[derive(Default)]
pub(crate) struct SendBuffer {
    /// The place of the first byte that is held.
    base: u64,
    bytes: VecDeque<u8>,
    /// Bytes that are held though the peer may have them, for it lacks some before.
    pub behind_gap: u64,
    /// The user has ended it, or given it up.
    pub over: bool,
    /// The peer wants no more of it, for this reason.
    pub stopped: Option<u32>,
    /// It was given up here, for want of memory.
    pub no_memory: bool,
    /// The peer has all of it, or knows that it was given up.
    pub finished: bool,
    /// The user has let go of it.
    pub dropped: bool,
    pub waker: Option<Waker>,
}

/// Received bytes of a stream, until its reader takes them.
#[derive(Default)]
pub(crate) struct RecvBuffer {
    /// The place of the first byte that its reader has not taken.
    taken: u64,
    bytes: VecDeque<u8>,
    /// Bytes that are in order and were not taken.
    ready: usize,
    pub ended: bool,
    /// The peer gave it up, for this reason.
    pub reset: Option<u32>,
    /// It was given up here, for want of memory.
    pub no_memory: bool,
    pub dropped: bool,
    pub waker: Option<Waker>,
}

impl StreamBuffers {
    /// True when the stream has finished and no handle holds it.
    pub fn is_over(&self) -> bool {
        self.is_dropped() && self.sending.finished
    }

    /// True when no handle holds it.
    pub fn is_dropped(&self) -> bool {
        self.sending.dropped && self.receiving.dropped
    }

    /// Bytes of its buffers.
    pub fn buffer_capacity(&self) -> u64 {
        (self.sending.bytes.capacity() + self.receiving.bytes.capacity()) as u64
    }

    /// Wakes the tasks that wait for it.
    pub fn wake(&mut self) {
        wake(&mut self.sending.waker);
        wake(&mut self.receiving.waker);
    }
}

/// Wakes the task that waits.
pub(crate) fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl SendBuffer {
    /// Bytes that are held: written, and not known to have arrived.
    pub fn held(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The place behind the last byte that was written.
    pub fn written(&self) -> u64 {
        self.base + self.held()
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Copies `len` bytes from the place `start` to the end of `into`.
    ///
    /// # Panics
    /// Where they were not written, or let go.
    pub fn copy(&self, start: u64, len: usize, into: &mut Vec<u8>) {
        let from = (start - self.base) as usize;
        let (front, back) = self.bytes.as_slices();
        let of_front = front.get(from..).unwrap_or_default();
        let first = len.min(of_front.len());
        into.extend_from_slice(&of_front[..first]);
        let skipped = from.saturating_sub(front.len());
        into.extend_from_slice(&back[skipped..skipped + len - first]);
    }

    /// The peer has the bytes below `place`.
    pub fn release(&mut self, place: u64) {
        let gone = place.saturating_sub(self.base).min(self.held());
        self.bytes.drain(..gone as usize);
        self.base += gone;
        free_if_empty(&mut self.bytes);
    }

    /// Nothing of it is sent any more.
    pub fn clear(&mut self) {
        self.base += self.held();
        self.bytes = VecDeque::new();
    }
}

impl RecvBuffer {
    /// Puts bytes at `start` into their place. The core has bounded where that may be.
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

    /// Bytes below the place `delivered` are in order.
    pub fn on_delivered(&mut self, delivered: u64) {
        self.ready = delivered.saturating_sub(self.taken) as usize;
        if self.ready > 0 {
            wake(&mut self.waker);
        }
    }

    /// Bytes in order, in one piece; none where none wait.
    pub fn peek(&self) -> &[u8] {
        let front = self.bytes.as_slices().0;
        &front[..front.len().min(self.ready)]
    }

    /// Bytes that are held: those in order, and those behind a gap with the gap.
    pub fn held(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes in order that its reader has not taken.
    pub fn waiting(&self) -> u64 {
        self.ready as u64
    }

    /// The reader has taken `len` of the bytes that [`peek`](Self::peek) gave.
    pub fn take(&mut self, len: usize) {
        self.bytes.drain(..len);
        self.ready -= len;
        self.taken += len as u64;
        free_if_empty(&mut self.bytes);
    }

    /// Discards the bytes: no reader is left.
    pub fn clear(&mut self) {
        self.bytes = VecDeque::new();
        self.ready = 0;
    }
}

/// Bytes of room that an empty stream keeps. Ours.
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

    proptest! {
        /// Pieces in any order, with readers in between, are the stream.
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

        /// Written bytes are copied from any place until they are released.
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
