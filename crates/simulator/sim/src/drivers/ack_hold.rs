//! A client's driver that holds pure ACKs back before its queue.

use std::collections::VecDeque;

use tacit_between::ack_hold::{AckHold, HoldLaw, Offered, QueueCounts};
use tacit_between::hack::AckPacket;
use tacit_link::wifi::{Bss, FunctionId, Peers};
use tacit_link::{Holders, PacketRef};
use tacit_packet::units::{Bytes, Instant};

use crate::Carried;
use crate::packets::Packets;

/// The driver of one function.
#[derive(Debug)]
pub(super) struct HoldDriver {
    /// One per peer.
    holds: Vec<AckHold<PacketRef>>,
    /// Bytes that the queue to each peer accepted.
    accepted: Vec<Bytes>,
    function: FunctionId,
    peers: Peers,
    /// Packets that were released, and their peers.
    released: VecDeque<(usize, PacketRef)>,
    /// ACKs dropped before measuring started.
    dropped_before: u64,
}

impl HoldDriver {
    /// For a client's function.
    pub fn new(law: HoldLaw, function: FunctionId, peers: Peers) -> Self {
        Self {
            holds: peers.iter().map(|_| AckHold::new(law)).collect(),
            accepted: peers.iter().map(|_| Bytes(0)).collect(),
            function,
            peers,
            released: VecDeque::new(),
            dropped_before: 0,
        }
    }

    /// The host sends `packet` to `to`.
    pub fn outgoing<P: Carried>(
        &mut self,
        now: Instant,
        to: FunctionId,
        packet: PacketRef,
        packets: &mut Packets<P>,
    ) -> Option<PacketRef> {
        let (peer, released) = (self.peers.index(to), &mut self.released);
        let offered = Offered::from_packet(packets.content(packet), packet.len);
        let replaced =
            self.holds[peer].offer(now, offered, packet, &mut |packet| released.push_back((peer, packet)));
        replaced.into_iter().for_each(|replaced| packets.holders.release(replaced));
        None
    }

    /// Queues the released packets.
    pub fn act(&mut self, now: Instant, channel: &mut Bss, holders: &mut Holders) {
        while let Some((peer, packet)) = self.released.pop_front() {
            if channel.enqueue(now, self.function, self.peers.id(peer), packet, holders) {
                self.accepted[peer] += packet.len();
            }
        }
        for (peer, hold) in self.holds.iter_mut().enumerate().filter(|(_, hold)| hold.wants_counts()) {
            let waiting = channel.queued_bytes(self.function, self.peers.id(peer));
            hold.observe(now, QueueCounts { sent: Bytes(self.accepted[peer].0 - waiting.0), waiting });
        }
    }

    /// A packet arrived from `from`.
    pub fn incoming(&mut self, now: Instant, from: FunctionId, packet: &impl AckPacket) {
        if let Some(segment) = packet.segment() {
            self.holds[self.peers.index(from)].on_reverse_segment(now, packet.reverse_key(), &segment);
        }
    }

    /// Shows `see` every packet that it holds.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        let released = self.released.iter().map(|(_, packet)| packet);
        self.holds.iter().flat_map(AckHold::iter).chain(released).for_each(see);
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.holds.iter().filter_map(AckHold::poll_timeout).min()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        let released = &mut self.released;
        for (peer, hold) in self.holds.iter_mut().enumerate() {
            hold.handle_timeout(now, &mut |packet| released.push_back((peer, packet)));
        }
    }

    pub fn start_measuring(&mut self) {
        self.dropped_before = self.all_dropped();
    }

    /// ACKs that were replaced by others since measuring started.
    pub fn dropped(&self) -> u64 {
        self.all_dropped() - self.dropped_before
    }

    fn all_dropped(&self) -> u64 {
        self.holds.iter().map(AckHold::dropped).sum()
    }
}
