//! Memory that the connections of an endpoint share, over all of its sockets.
//!
//! Memory of streams is bounded in three steps, each of which is felt by fewer: windows beyond those that all streams have are lent
//! from a half of it; writers wait where three quarters are full; where all of it is, the fullest stream of the client that holds
//! most is given up, and both of its ends hear why.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::Config;

/// Bytes that a stream takes from its writer where memory is tight, and more once the peer has these. Ours.
pub(crate) const TIGHT: u64 = 16 << 10;

/// Memory limit of an endpoint, and its use.
#[derive(Debug)]
pub(crate) struct Memory {
    max: u64,
    borrowed: AtomicU64,
    held: AtomicU64,
}

/// Share of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Bytes that its peer may send beyond the reserved window of each stream.
    pub borrowed: u64,
    /// Bytes of buffers.
    pub held: u64,
}

impl Memory {
    /// The memory of an endpoint with this configuration.
    pub fn of(config: &Config) -> Arc<Self> {
        let max = config.max_memory.0;
        Arc::new(Self { max, borrowed: AtomicU64::new(0), held: AtomicU64::new(0) })
    }

    /// Bytes of buffers of all connections.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// A connection that held `before` holds `now`.
    pub fn change(&self, before: Share, now: Share) {
        let change = |sum: &AtomicU64, before: u64, now: u64| {
            // Wraps where it shrinks: the sum of all changes does not.
            sum.fetch_add(now.wrapping_sub(before), Relaxed);
        };
        change(&self.borrowed, before.borrowed, now.borrowed);
        change(&self.held, before.held, now.held);
    }

    /// Bytes that a connection may borrow, of which it has borrowed `own`: half of the bytes that others leave.
    pub fn borrowable(&self, own: u64) -> u64 {
        let others = self.borrowed.load(Relaxed).saturating_sub(own);
        (self.max / 2).saturating_sub(others) / 2
    }

    /// Writers are to wait until peers have the written bytes.
    pub fn is_tight(&self) -> bool {
        self.held() > self.max / 4 * 3
    }

    /// Something has to be given up.
    pub fn is_exceeded(&self) -> bool {
        self.held() > self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_proto::units::Bytes;

    fn memory(max: u64) -> Arc<Memory> {
        Memory::of(&Config { max_memory: Bytes(max), ..Config::default() })
    }

    #[test]
    fn connections_borrow_half_of_the_memory_at_most() {
        let memory = memory(1 << 20);
        let mut shares = [Share::default(); 40];
        for _ in 0..1000 {
            for share in &mut shares {
                let now = Share { borrowed: memory.borrowable(share.borrowed), held: 0 };
                memory.change(std::mem::replace(share, now), now);
                assert!(memory.borrowed.load(Relaxed) <= 1 << 19);
            }
        }
        // Those that came late have as much as the first, once these have read the bytes that were granted.
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
        for (now, said) in
            [(750, (false, false)), (751, (true, false)), (1000, (true, false)), (1001, (true, true))]
        {
            memory.change(std::mem::replace(&mut before, held(now)), held(now));
            assert_eq!((memory.is_tight(), memory.is_exceeded()), said, "{now}");
        }
    }
}
