//! Packets in order of arrival. The caller decides which packets are dropped.

use std::collections::VecDeque;

use tacit_packet::units::Bytes;

use super::Queued;
use crate::packet::PacketRef;

/// Packets in order of arrival, and their total bytes.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    packets: VecDeque<Queued>,
    bytes: Bytes,
}

impl Fifo {
    pub(super) fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: Bytes(0) }
    }

    pub(super) fn push(&mut self, queued: Queued) {
        self.bytes += queued.len();
        self.packets.push_back(queued);
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= queued.len();
        Some(queued)
    }

    /// Removes and drops the first `count` packets; there must be at least that many.
    pub(super) fn discard(&mut self, count: usize) {
        let bytes: Bytes = self.packets.drain(..count).map(|queued| queued.len()).sum();
        self.bytes -= bytes;
    }

    pub(super) fn front(&self) -> Option<&Queued> {
        self.packets.front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.packets.iter()
    }

    /// Calls `see` with each packet, which may replace it with one of the same length.
    pub(super) fn each(&mut self, see: &mut impl FnMut(&mut PacketRef)) {
        self.packets.iter_mut().for_each(|queued| see(&mut queued.payload));
    }

    /// Removes the packets for which `unwanted` returns true, and calls `gone` with the bytes of each.
    pub(super) fn retract(
        &mut self,
        unwanted: &mut impl FnMut(&PacketRef) -> bool,
        gone: &mut impl FnMut(Bytes),
    ) {
        let bytes = &mut self.bytes;
        self.packets.retain(|queued| {
            let stays = !unwanted(&queued.payload);
            if !stays {
                *bytes -= queued.len();
                gone(queued.len());
            }
            stays
        });
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }
}
