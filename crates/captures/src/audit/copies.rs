//! Packets that a capture holds more than once: of several interfaces, or of several captures in one file.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use super::tcp::Tcp;

/// Where a packet was captured: interface of the file, interface a cooked header names.
pub(super) type Interface = (u32, Option<u32>);

/// Hash that a packet shares with its copies: of the address pair and all of its headers that no router changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Content(u64);

/// Packets captured of late.
#[derive(Default)]
pub(super) struct Copies {
    /// Its key is random, for hostile captures.
    hasher: RandomState,
    /// The interface of the latest with this content, and its number. Only looked up, never iterated.
    latest: HashMap<Content, (Interface, u64)>,
    /// Oldest first, with time and number.
    order: VecDeque<(Content, Option<i128>, u64)>,
    noted: u64,
}

impl Copies {
    /// How much later a copy may come. The least retransmission timeout in use (Linux's) is as long: a later packet has been
    /// sent again.
    pub const WITHIN_NANOS: i128 = 200_000_000;
    /// Packets remembered.
    pub const MOST: usize = 16_384;

    /// Notes a packet; true where it is a copy. `ids_vary`: its sender numbers its IPv4 packets.
    ///
    /// One that equals another to the last byte of its headers is a copy on another interface. On the same one it is so
    /// only if its sender numbers its packets: duplicate ACKs without numbers are equal, too.
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
            // A later one with the same content has a number of its own.
            if self.latest.get(&content).is_some_and(|(_, latest)| *latest == number) {
                self.latest.remove(&content);
            }
        }
    }
}
