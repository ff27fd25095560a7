//! First in, first out.

use std::collections::VecDeque;

use tacit_proto::units::{Bytes, Instant};

use super::{QueueLimit, Queued};
use crate::payload::Payload;

/// First in, first out; what does not fit is dropped.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    limit: QueueLimit,
    packets: VecDeque<Queued<P>>,
    bytes: Bytes,
    /// Most packets since it was last asked to forget.
    peak: usize,
}

impl<P: Payload> DropTail<P> {
    /// An empty queue.
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit, packets: VecDeque::new(), bytes: Bytes(0), peak: 0 }
    }

    /// Queues `payload` at `now`; returns false when it was dropped.
    #[inline]
    pub fn push(&mut self, now: Instant, payload: P) -> bool {
        let len = payload.len();
        if !self.limit.admits(self.packets.len(), self.bytes, len) {
            return false;
        }
        self.bytes += len;
        self.packets.push_back(Queued { payload, at: now });
        self.peak = self.peak.max(self.packets.len());
        true
    }

    /// True when a packet of `len` octets would be taken.
    #[inline]
    pub fn has_room(&self, len: Bytes) -> bool {
        self.limit.admits(self.packets.len(), self.bytes, len)
    }

    /// The packet that leaves next.
    #[inline]
    pub fn front(&self) -> Option<&Queued<P>> {
        self.packets.front()
    }

    /// Takes the packet that leaves next.
    #[inline]
    pub fn pop(&mut self) -> Option<Queued<P>> {
        let queued = self.packets.pop_front()?;
        self.bytes -= queued.payload.len();
        Some(queued)
    }

    /// Shows each packet, to be exchanged for one of the same length.
    pub(super) fn each(&mut self, see: &mut impl FnMut(&mut P)) {
        self.packets.iter_mut().for_each(|queued| see(&mut queued.payload));
    }

    /// Drops the packets that `unwanted` says; returns how many.
    pub fn retract(&mut self, mut unwanted: impl FnMut(&P) -> bool) -> usize {
        let before = self.packets.len();
        let bytes = &mut self.bytes;
        self.packets.retain(|queued| {
            let stays = !unwanted(&queued.payload);
            if !stays {
                *bytes -= queued.payload.len();
            }
            stays
        });
        before - self.packets.len()
    }

    /// Most packets that waited at once, since [`DropTail::reset_peak`].
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// Forgets what was before.
    pub fn reset_peak(&mut self) {
        self.peak = self.packets.len();
    }

    /// Packets waiting.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// True when nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::PayloadClass;

    #[derive(Clone, Debug)]
    struct Blob(u64);

    impl Payload for Blob {
        fn len(&self) -> Bytes {
            Bytes(self.0)
        }
        fn class(&self) -> PayloadClass {
            PayloadClass::Data
        }
    }

    #[test]
    fn either_limit_drops() {
        let mut queue = DropTail::new(QueueLimit { packets: Some(2), bytes: Some(Bytes(2_000)) });
        let now = Instant::ZERO;
        assert!(queue.push(now, Blob(1_500)));
        assert!(!queue.push(now, Blob(600)), "2100 octets would pass 2000");
        assert!(queue.push(now, Blob(500)));
        assert!(!queue.push(now, Blob(1)), "a third packet");
        assert_eq!(queue.pop().unwrap().payload.0, 1_500);
        assert!(queue.has_room(Bytes(1_500)));
        assert!(!queue.has_room(Bytes(1_501)));
    }
}
