//! Memory limit of an endpoint, shared by the connections of all its sockets.
//!
//! The memory of streams is limited in three stages, and each stage affects fewer of them. First, stream windows beyond
//! the reserved minimum are borrowed from one half of the memory. Second, writers wait while more than three quarters
//! are in use. Third, when all of it is in use, the largest stream of the peer that uses most is reset, and both of its
//! ends get the reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::Config;

/// Bytes that each stream may buffer from its writer while memory is tight. Ours.
pub(crate) const TIGHT: u64 = 16 << 10;

/// Memory limit of an endpoint, and the memory in use.
#[derive(Debug)]
pub(crate) struct Memory {
    max: u64,
    borrowed: AtomicU64,
    held: AtomicU64,
}

/// Memory of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Bytes that its peer may send beyond the reserved window of each stream.
    pub borrowed: u64,
    /// Capacity of its buffers in bytes.
    pub held: u64,
}

impl Memory {
    /// The memory of an endpoint with this configuration.
    pub fn new(config: &Config) -> Arc<Self> {
        let max = config.max_memory.0;
        Arc::new(Self { max, borrowed: AtomicU64::new(0), held: AtomicU64::new(0) })
    }

    /// Capacity of the buffers of all connections, in bytes.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Updates the totals when a connection's memory changes from `before` to `now`.
    pub fn change(&self, before: Share, now: Share) {
        let change = |sum: &AtomicU64, before: u64, now: u64| {
            // A decrease wraps around, but the sum over all changes does not.
            sum.fetch_add(now.wrapping_sub(before), Relaxed);
        };
        change(&self.borrowed, before.borrowed, now.borrowed);
        change(&self.held, before.held, now.held);
    }

    /// Most bytes that a connection may borrow that has borrowed `borrowed`: half of what the others leave.
    pub fn shared_buffer_of(&self, borrowed: u64) -> u64 {
        let others = self.borrowed.load(Relaxed).saturating_sub(borrowed);
        (self.max / 2).saturating_sub(others) / 2
    }

    /// True if writers have to wait for acknowledgments.
    pub fn is_tight(&self) -> bool {
        self.held() > self.max / 4 * 3
    }

    /// True if a stream has to be reset.
    pub fn is_exceeded(&self) -> bool {
        self.held() > self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::units::Bytes;

    fn memory(max: u64) -> Arc<Memory> {
        Memory::new(&Config { max_memory: Bytes(max), ..Config::default() })
    }

    #[test]
    fn connections_borrow_half_of_the_memory_at_most() {
        let memory = memory(1 << 20);
        let mut shares = [Share::default(); 40];
        for _ in 0..1000 {
            for share in &mut shares {
                let now = Share { borrowed: memory.shared_buffer_of(share.borrowed), held: 0 };
                memory.change(std::mem::replace(share, now), now);
                assert!(memory.borrowed.load(Relaxed) <= 1 << 19);
            }
        }
        // Late connections get as much as early ones, once the early ones have read the granted bytes.
        let (least, most) = shares.iter().fold((u64::MAX, 0), |(least, most), share| {
            (least.min(share.borrowed), most.max(share.borrowed))
        });
        assert!(most <= 2 * least, "between {least} and {most} bytes");
        for share in shares {
            memory.change(share, Share::default());
        }
        assert_eq!(memory.borrowed.load(Relaxed), 0);
    }

    #[test]
    fn writers_wait_before_anything_is_given_up() {
        let memory = memory(1000);
        let held = |held| Share { borrowed: 0, held };
        let mut before = held(0);
        for (now, expected) in
            [(750, (false, false)), (751, (true, false)), (1000, (true, false)), (1001, (true, true))]
        {
            memory.change(std::mem::replace(&mut before, held(now)), held(now));
            assert_eq!((memory.is_tight(), memory.is_exceeded()), expected, "{now}");
        }
    }
}
