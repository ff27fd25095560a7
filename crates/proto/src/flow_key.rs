//! The key that tells flows apart, in queues, filters, drivers and accounts.

use std::hash::{Hash as _, Hasher as _};
use std::net::SocketAddr;

use rustc_hash::FxHasher;

use crate::units::{FlowId, HostId};

/// One direction of one flow: its packets may not overtake each other. Simulated packets and those of a live machine
/// have keys alike and meet in one queue; live ones have a hash, which two flows share once in 2^64.
///
/// The default is for packets that cannot be told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(u64);

impl FlowKey {
    /// Of no flow: for reports on several together.
    pub(crate) const OTHERS: Self = Self(u64::MAX);

    /// The key of the packets that `source` sends in `flow` of a simulated world.
    #[inline]
    pub const fn simulated(flow: FlowId, source: HostId) -> Self {
        // The ends of a flow send in one direction each.
        Self((flow.0 as u64) << 32 | source.0 as u64)
    }

    /// The key of the packets from the first of `ends` to the second, by the IP protocol of this number.
    pub fn live(protocol: u8, ends: [SocketAddr; 2]) -> Self {
        let mut hasher = FxHasher::default();
        (protocol, ends).hash(&mut hasher);
        Self(hasher.finish())
    }

    /// As a number, for traces and for buckets of flows.
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
