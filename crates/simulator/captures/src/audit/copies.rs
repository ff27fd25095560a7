//! Detects packets that a capture contains more than once: from several interfaces, or from several captures in one
//! file.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use super::tcp::Tcp;

/// Where a packet was captured: the interface in the file, and the interface in a cooked header.
pub(super) type Interface = (u32, Option<u32>);

/// A hash common to a packet and its copies, over the address pair and all header fields that routers do not change.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Content(u64);

/// Recently captured packets.
#[derive(Default)]
pub(super) struct Copies {
    /// Keyed randomly, because captures are untrusted.
    hasher: RandomState,
    /// The interface and number of the latest packet with this content. Only looked up, never iterated.
    latest: HashMap<Content, (Interface, u64)>,
    /// Packets with time and number, oldest first.
    order: VecDeque<(Content, Option<i128>, u64)>,
    noted: u64,
}

impl Copies {
    /// Maximum delay of a copy. This is the smallest retransmission timeout in use (that of Linux), so a later packet
    /// is a retransmission.
    pub const WITHIN_NANOS: i128 = 200_000_000;
    /// Maximum number of packets remembered.
    pub const MOST: usize = 16_384;

    /// Records a packet. Returns true if it is a copy. `ids_vary` means that its sender numbers its IPv4 packets.
    ///
    /// A packet whose headers are identical to those of another one is a copy if it was captured on another interface.
    /// On the same interface it is a copy only if its sender numbers its packets, because duplicate ACKs without
    /// numbers are identical too.
    pub fn is_copy(
        &mut self,
        tcp: &Tcp,
        interface: Interface,
        at_nanos: Option<i128>,
        ids_vary: bool,
    ) -> bool {
        self.forget(at_nanos);
        let content =
            Content(self.hasher.hash_one((tcp.source, tcp.destination, tcp.ip_len, tcp.ip_id, tcp.header)));
        let is_numbered = ids_vary && tcp.ip_id.is_some_and(|id| id != 0);
        if let Some((first, _)) = self.latest.get(&content)
            && (*first != interface || is_numbered)
        {
            return true;
        }
        self.noted += 1;
        self.latest.insert(content, (interface, self.noted));
        self.order.push_back((content, at_nanos, self.noted));
        false
    }

    fn forget(&mut self, now: Option<i128>) {
        while let Some((content, at, number)) = self.order.front().copied() {
            let is_old = now.zip(at).is_some_and(|(now, at)| now - at > Self::WITHIN_NANOS);
            if !is_old && self.order.len() < Self::MOST {
                break;
            }
            self.order.pop_front();
            // A later packet with the same content has another number and must stay.
            if self.latest.get(&content).is_some_and(|(_, latest)| *latest == number) {
                self.latest.remove(&content);
            }
        }
    }
}
