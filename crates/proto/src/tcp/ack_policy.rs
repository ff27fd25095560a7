//! When to acknowledge: [`AckPolicy`] at work.

use super::config::AckPolicy;
use crate::units::{Duration, Instant};

/// What to do about an acknowledgment after a segment arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckDecision {
    /// Send one at once.
    Now,
    /// Send one at this time unless one was sent before.
    At(Instant),
    /// One is already due at an earlier time.
    Wait,
}

/// Counts what was received and not yet acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct AckScheduler {
    policy: AckPolicy,
    unacked_octets: u64,
    /// Segments still to be acknowledged one by one.
    quick: u32,
    /// Size of a full segment as the peer sends them: the largest seen. The peer's path or options
    /// may make it smaller than the MSS we offered (RFC 5681 section 4.2).
    full_segment: u64,
}

impl AckScheduler {
    pub fn new(policy: AckPolicy) -> Self {
        Self { policy, unacked_octets: 0, quick: policy.quick_ack_segments, full_segment: 1 }
    }

    /// `octets` arrived in order with no gap anywhere.
    #[inline]
    pub fn on_in_order(&mut self, octets: u64, now: Instant) -> AckDecision {
        self.full_segment = self.full_segment.max(octets);
        let first = self.unacked_octets == 0;
        self.unacked_octets += octets;
        if self.quick > 0 {
            self.quick -= 1;
            return AckDecision::Now;
        }
        let enough = u64::from(self.policy.every) * self.full_segment;
        if self.policy.every <= 1 || self.unacked_octets >= enough || self.policy.delay == Duration::ZERO {
            return AckDecision::Now;
        }
        if first { AckDecision::At(now + self.policy.delay) } else { AckDecision::Wait }
    }

    /// Something was lost or reordered: the sender needs every ACK while it recovers.
    pub fn on_disorder(&mut self) {
        self.quick = self.policy.quick_ack_segments;
    }

    /// An acknowledgment of everything received was sent.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.unacked_octets = 0;
    }
}
