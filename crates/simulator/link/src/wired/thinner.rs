//! ACKs that wait before the queue of a pipe.

use tacit_between::ack_hold::{AckHold, HoldLaw, Offered, QueueCounts};
use tacit_packet::FlowKey;
use tacit_packet::tcp::Segment;
use tacit_packet::units::{Bytes, Instant};

use super::staged::{Parts, Staged};
use crate::packet::PacketRef;

/// Thins ACKs by [`HoldLaw::Thin`], and shows it the drain of the queue.
#[derive(Clone, Debug)]
pub(super) struct Thinner {
    hold: AckHold<PacketRef>,
    /// Bytes that the queue accepted.
    accepted: Bytes,
    /// Packets on their way to the queue; kept to reuse its capacity.
    passed: Vec<PacketRef>,
}

impl Thinner {
    pub fn new() -> Self {
        Self { hold: AckHold::new(HoldLaw::Thin), accepted: Bytes(0), passed: Vec::new() }
    }

    /// `packet` is sent at `now`, to which the queue has [advanced](Staged::advance).
    pub fn offer(&mut self, now: Instant, packet: PacketRef, queue: &mut Staged, mut pipe: Parts<'_>) {
        let waiting = queue.waiting_bytes();
        self.hold.observe(now, QueueCounts { sent: Bytes(self.accepted.0 - waiting.0), waiting });
        let segment = pipe.holders.segment(&packet).copied();
        let offered = Offered { key: packet.flow, segment, len: packet.len };
        let replaced = self.hold.offer(now, offered, packet, &mut |packet| self.passed.push(packet));
        if let Some(replaced) = replaced {
            pipe.counters.filtered_acks += 1;
            pipe.holders.release(replaced);
        }
        self.turn(now, queue, &mut pipe);
    }

    /// Queues what has passed, and what is due by `now`.
    pub fn turn(&mut self, now: Instant, queue: &mut Staged, pipe: &mut Parts<'_>) {
        self.hold.handle_timeout(now, &mut |packet| self.passed.push(packet));
        for packet in self.passed.drain(..) {
            if queue.enqueue(now, packet, pipe.reborrow()) {
                self.accepted += packet.len();
            }
        }
    }

    /// `segment`, which answers packets of the flow `answered`, arrived where the pipe begins.
    pub fn on_reverse_segment(&mut self, now: Instant, answered: FlowKey, segment: &Segment) {
        self.hold.on_reverse_segment(now, answered, segment);
    }

    /// The ACKs that it holds.
    pub fn iter(&self) -> impl Iterator<Item = &PacketRef> {
        self.hold.iter()
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.hold.poll_timeout()
    }
}
