//! A FIFO queue with a limit.

use tacit_packet::units::{Bytes, Instant};

use super::fifo::Fifo;
use super::{QueueLimit, Queued};
use crate::packet::PacketRef;

/// Which packet a full queue drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    /// The arriving one.
    DropTail,
    /// The oldest ones.
    DropHead,
}

/// A FIFO queue that drops packets only at its limit.
#[derive(Clone, Debug)]
pub struct Bounded {
    pub(super) limit: QueueLimit,
    overflow: Overflow,
    fifo: Fifo,
    /// Maximum number of packets since the last reset.
    peak: usize,
}

impl Bounded {
    /// An empty queue.
    pub(super) fn new(limit: QueueLimit, overflow: Overflow) -> Self {
        Self { limit, overflow, fifo: Fifo::new(), peak: 0 }
    }

    /// Queues `payload` at `now`; returns false if it was refused. `dropped` is called with the packets dropped for it.
    pub(super) fn push(
        &mut self,
        now: Instant,
        payload: PacketRef,
        dropped: &mut impl FnMut(PacketRef),
    ) -> bool {
        let len = payload.len();
        if !self.has_room(len) && !self.make_room(len, dropped) {
            return false;
        }
        self.fifo.push(Queued::new(payload, now));
        self.peak = self.peak.max(self.len());
        true
    }

    /// Drops the oldest packets until `len` bytes fit, if the queue does this.
    fn make_room(&mut self, len: Bytes, dropped: &mut impl FnMut(PacketRef)) -> bool {
        if self.overflow == Overflow::DropTail {
            return false;
        }
        while !self.has_room(len) {
            let Some(oldest) = self.pop() else { return false };
            dropped(oldest.payload);
        }
        true
    }

    /// True if a packet of `len` bytes could be queued without loss.
    pub fn has_room(&self, len: Bytes) -> bool {
        self.limit.admits(self.len(), self.fifo.bytes(), len)
    }

    /// The packet that leaves next.
    pub fn front(&self) -> Option<&Queued> {
        self.fifo.front()
    }

    /// Removes the packet that leaves next.
    pub fn pop(&mut self) -> Option<Queued> {
        self.fifo.pop()
    }

    /// Removes and drops the next `count` packets; there must be at least that many.
    pub(crate) fn discard(&mut self, count: usize) {
        self.fifo.discard(count);
    }

    /// The waiting packets, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.fifo.iter()
    }

    /// Calls `see` with each packet, which may replace it with one of the same length.
    pub(super) fn each(&mut self, see: &mut impl FnMut(&mut PacketRef)) {
        self.fifo.each(see);
    }

    /// Drops the packets for which `unwanted` returns true; returns their number.
    pub fn retract(&mut self, mut unwanted: impl FnMut(&PacketRef) -> bool) -> usize {
        let before = self.len();
        self.fifo.retract(&mut unwanted, &mut |_| {});
        before - self.len()
    }

    /// Maximum number of waiting packets since [`Bounded::reset_peak`].
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// Resets the peak to the current length.
    pub fn reset_peak(&mut self) {
        self.peak = self.len();
    }

    /// Number of waiting packets.
    pub fn len(&self) -> usize {
        self.fifo.len()
    }

    /// True if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(len: u32) -> PacketRef {
        PacketRef { len, ..PacketRef::default() }
    }

    const LIMIT: QueueLimit = QueueLimit { packets: Some(2), bytes: Some(Bytes(2_000)) };

    #[test]
    fn either_limit_drops() {
        let mut queue = Bounded::new(LIMIT, Overflow::DropTail);
        let push = |queue: &mut Bounded, len| {
            queue.push(Instant::ZERO, blob(len), &mut |_| unreachable!("it waits"))
        };
        assert!(push(&mut queue, 1_500));
        assert!(!push(&mut queue, 600), "2100 bytes would pass 2000");
        assert!(push(&mut queue, 500));
        assert!(!push(&mut queue, 1), "a third packet");
        assert_eq!(queue.pop().unwrap().payload.len, 1_500);
        assert!(queue.has_room(Bytes(1_500)));
        assert!(!queue.has_room(Bytes(1_501)));
    }

    #[test]
    fn a_head_drop_queue_keeps_the_newest_that_fit() {
        let mut queue = Bounded::new(LIMIT, Overflow::DropHead);
        let mut dropped = Vec::new();
        let mut push =
            |len| queue.push(Instant::ZERO, blob(len), &mut |packet: PacketRef| dropped.push(packet.len));
        assert!([100, 200, 300, 1_900].into_iter().all(&mut push));
        assert!(!push(2_001), "more than there is room for at all");
        assert_eq!(dropped, [100, 200, 300, 1_900]);
        assert!(queue.is_empty());
    }
}
