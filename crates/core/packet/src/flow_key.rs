//! The key that identifies flows in queues, filters, drivers and statistics.

use std::hash::{Hash as _, Hasher as _};
use std::net::SocketAddr;

use rustc_hash::FxHasher;

use crate::units::{FlowId, HostId};

/// One direction of one flow, whose packets must not overtake each other. Packets of a simulation and of a live machine
/// have the same kind of key and can share a queue. Live packets have a hash, which is the same for two flows with a
/// probability of 2^-64.
///
/// The default is for packets whose flow is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(u64);

impl FlowKey {
    /// For reports about several flows together.
    pub const OTHERS: Self = Self(u64::MAX);

    /// The key of the packets that `source` sends in `flow` of a simulation.
    #[inline]
    pub const fn simulated(flow: FlowId, source: HostId) -> Self {
        // Each end of a flow sends in one direction.
        Self((flow.0 as u64) << 32 | source.0 as u64)
    }

    /// The key of packets from the first of `ends` to the second, with this IP protocol number.
    pub fn live(protocol: u8, ends: [SocketAddr; 2]) -> Self {
        let mut hasher = FxHasher::default();
        (protocol, ends).hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The key as a number, for traces and for hash buckets of flows.
    #[inline]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_directions_flows_and_protocols_apart() {
        let end = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let [one, other] = [end(1), end(2)];
        let live = [
            FlowKey::live(6, [one, other]),
            FlowKey::live(6, [other, one]),
            FlowKey::live(17, [one, other]),
            FlowKey::live(6, [one, end(3)]),
        ];
        let simulated =
            [(1, 2), (2, 1), (1, 1)].map(|(flow, host)| FlowKey::simulated(FlowId(flow), HostId(host)));
        let mut all: Vec<_> = live.into_iter().chain(simulated).chain([FlowKey::default()]).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
        assert_eq!(FlowKey::live(6, [one, other]), live[0], "equal ends have equal keys");
    }
}
