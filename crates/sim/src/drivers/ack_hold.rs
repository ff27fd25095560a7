//! A client whose driver holds pure ACKs back in front of its queue.

use std::collections::VecDeque;

use tacit_link::queue::{AckHold, AckHoldConfig};
use tacit_link::wifi::{Bss, FunctionId, Peers};
use tacit_proto::units::Instant;

use crate::Carried;

/// The driver of one function.
#[derive(Debug)]
pub(super) struct HoldDriver<P> {
    hold: AckHold<P>,
    function: FunctionId,
    access_point: FunctionId,
    /// What it let go, for the access point.
    released: VecDeque<P>,
    /// What it had dropped when measuring started.
    dropped_before: u64,
}

impl<P: Carried> HoldDriver<P> {
    /// For a client's function, whose `peers` are the access point.
    pub fn new(config: AckHoldConfig, function: FunctionId, peers: Peers) -> Self {
        Self {
            hold: AckHold::new(config),
            function,
            access_point: peers.id(0),
            released: VecDeque::new(),
            dropped_before: 0,
        }
    }

    /// The host sends `packet` to `to`. What goes to another client directly is not held.
    pub fn outgoing(&mut self, now: Instant, to: FunctionId, packet: P) -> Option<P> {
        if to != self.access_point {
            return Some(packet);
        }
        let released = &mut self.released;
        self.hold.offer(now, packet, &mut |packet| released.push_back(packet));
        None
    }

    /// Queues what was let go.
    pub fn act(&mut self, now: Instant, channel: &mut Bss<P>) {
        while let Some(packet) = self.released.pop_front() {
            channel.enqueue(now, self.function, self.access_point, packet);
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.hold.poll_timeout()
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        let released = &mut self.released;
        self.hold.handle_timeout(now, &mut |packet| released.push_back(packet));
    }

    pub fn start_measuring(&mut self) {
        self.dropped_before = self.hold.dropped();
    }

    /// ACKs that another took the place of, since measuring started.
    pub fn dropped(&self) -> u64 {
        self.hold.dropped() - self.dropped_before
    }
}
