//! Events for a session that its user has locked, kept until the driver gets the lock.

use std::net::SocketAddr;

use tacit_packet::Ecn;
use tacit_packet::units::Instant;

use crate::datagram::Route;
use crate::socket::SOCKET_BUFFER;

/// Most bytes of waiting events per session: the size of the socket buffer, which drops datagrams beyond it as well.
const MAX_BYTES: usize = SOCKET_BUFFER;

/// Capacity in bytes that is kept for reuse. Ours: a batch of datagrams.
const KEPT_BYTES: usize = 64 << 10;

/// A received event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A datagram of `len` bytes.
    Datagram { from: Route, ecn: Ecn, len: usize },
    /// An ICMP error for a datagram sent to `to`: its port is closed if `refused`, otherwise there is no route to its
    /// host.
    Unreachable { to: SocketAddr, refused: bool },
}

/// Received events in order, and whether a deadline has passed.
#[derive(Default)]
pub(crate) struct Backlog {
    arrivals: Vec<(Instant, Arrival)>,
    /// The bytes of the datagrams, concatenated.
    bytes: Vec<u8>,
    /// The session's deadline has passed.
    pub is_due: bool,
}

impl Backlog {
    pub fn is_empty(&self) -> bool {
        !self.is_due && self.arrivals.is_empty()
    }

    /// Adds the `arrival` of time `at`, with the `bytes` of a datagram. Returns false if there is no room, and drops
    /// it.
    pub fn push(&mut self, at: Instant, arrival: Arrival, bytes: &[u8]) -> bool {
        let held = self.bytes.len() + self.arrivals.len() * size_of::<(Instant, Arrival)>();
        let has_room = held + bytes.len() <= MAX_BYTES;
        if has_room {
            self.arrivals.push((at, arrival));
            self.bytes.extend_from_slice(bytes);
        }
        has_room
    }

    /// Removes all events, and calls `each` with their times and the bytes of their datagrams.
    pub fn drain(&mut self, mut each: impl FnMut(Instant, Arrival, &mut [u8])) {
        let mut rest = self.bytes.as_mut_slice();
        for (at, arrival) in self.arrivals.drain(..) {
            let len = match arrival {
                Arrival::Datagram { len, .. } => len,
                Arrival::Unreachable { .. } => 0,
            };
            let (bytes, behind) = std::mem::take(&mut rest).split_at_mut(len);
            rest = behind;
            each(at, arrival, bytes);
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.arrivals.shrink_to(KEPT_BYTES / size_of::<(Instant, Arrival)>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_out_in_order_with_their_bytes() {
        let (mut backlog, peer) = (Backlog::default(), SocketAddr::from(([192, 0, 2, 1], 1000)));
        let datagram = |len| Arrival::Datagram { from: peer.into(), ecn: Ecn::Ect0, len };
        let unreachable = Arrival::Unreachable { to: peer, refused: true };
        let pushed = [
            (1, datagram(3), &b"abc"[..]),
            (2, unreachable, b""),
            (2, datagram(0), b""),
            (3, datagram(2), b"de"),
        ];
        let at = |ms| Instant::ZERO + tacit_packet::units::Duration::from_millis(ms);
        for _ in 0..2 {
            for (ms, arrival, bytes) in pushed {
                assert!(backlog.push(at(ms), arrival, bytes));
            }
            let mut drained = Vec::new();
            backlog.drain(|at, arrival, bytes| drained.push((at, arrival, bytes.to_vec())));
            assert_eq!(drained, pushed.map(|(ms, arrival, bytes)| (at(ms), arrival, bytes.to_vec())));
            assert!(backlog.is_empty());
        }
    }

    #[test]
    fn a_backlog_is_bounded_however_short_its_datagrams_are() {
        for len in [0, 1, 1472] {
            let (mut backlog, bytes) = (Backlog::default(), vec![7; len]);
            let from = Route::from(SocketAddr::from(([192, 0, 2, 1], 1000)));
            let arrival = Arrival::Datagram { from, ecn: Ecn::NotEct, len };
            let mut taken = 0;
            while backlog.push(Instant::ZERO, arrival, &bytes) {
                taken += 1;
            }
            assert!(taken * (len + 16) <= MAX_BYTES && taken > 10_000 / (len + 1), "{taken} of {len} bytes");
            let mut drained = 0;
            backlog.drain(|_, _, _| drained += 1);
            assert_eq!(drained, taken);
            assert!(backlog.bytes.capacity() <= KEPT_BYTES, "the memory is given back");
        }
    }
}
