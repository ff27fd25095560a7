//! Decides when to acknowledge: executes an [`AckPolicy`].

pub mod external;
mod linux;
mod packets;
pub(crate) mod policy;
mod rtt;

use super::config::Config;
use super::reorder::ReorderQueue;
use linux::Linux;
use packets::Packets;
use rtt::ReceiverRtt;
use tacit_packet::position::Position;
use tacit_packet::ranges::Range;
use tacit_packet::units::{Duration, Instant};

pub use policy::{
    AckPolicy, DelayLimit, DelayedAcks, LinuxAcks, PacketAcks, PacketLimit, Reading, Reordering,
};

/// Decision about an acknowledgment after a segment arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// Send one at once.
    Now,
    /// Send one at this time, unless one is sent earlier.
    At(Instant),
    /// Do nothing now: one is already due at an earlier time, or none is due.
    Wait,
}

/// A segment that arrived above a gap, or filled one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disorder<'a> {
    pub now: Instant,
    /// Its new part.
    pub range: Range,
    /// End of the highest data received before it.
    pub highest_before: Position,
    /// RCV.NXT, after it.
    pub rcv_nxt: Position,
    /// Data behind gaps, after it.
    pub queue: &'a ReorderQueue,
}

impl Disorder<'_> {
    /// The byte after the highest received.
    fn highest(&self) -> Position {
        self.queue.highest().unwrap_or(self.rcv_nxt)
    }

    /// It moved RCV.NXT.
    fn is_in_order(&self) -> bool {
        self.range.start < self.rcv_nxt
    }
}

/// Counts received data that is not acknowledged yet.
#[derive(Clone, Debug)]
pub(crate) struct AckScheduler {
    unacked_bytes: u64,
    /// Segments that are still to be acknowledged individually.
    quick: u32,
    /// Size of the peer's full segments: the largest seen. The peer's path or options may make it smaller than the MSS
    /// we offered (RFC 5681 section 4.2).
    full_segment: u64,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Delayed(DelayedAcks),
    Linux(Box<Linux>),
    Packets(Box<Packets>),
    External(Box<external::ExternalPolicy>),
}

impl AckScheduler {
    pub fn new(config: &Config) -> Self {
        let (quick, rule) = match config.ack_policy {
            AckPolicy::Delayed(delayed) => (delayed.quick_ack_segments, Rule::Delayed(delayed)),
            AckPolicy::Linux(policy) => (0, Rule::Linux(Box::new(Linux::new(policy, config.sack)))),
            AckPolicy::Packets(policy) => {
                (0, Rule::Packets(Box::new(Packets::new(policy, config.window_update_bytes))))
            }
            AckPolicy::External(factory) => {
                (0, Rule::External(Box::new(external::ExternalPolicy::new(factory))))
            }
        };
        Self { unacked_bytes: 0, quick, full_segment: 1, rule }
    }

    /// `bytes` arrived in order, and there is no gap.
    #[inline]
    pub fn on_in_order(&mut self, bytes: u64, now: Instant) -> AckDecision {
        self.full_segment = self.full_segment.max(bytes);
        let first = self.unacked_bytes == 0;
        self.unacked_bytes += bytes;
        let policy = match &mut self.rule {
            Rule::Delayed(policy) => policy,
            Rule::Linux(linux) => return linux.on_in_order(bytes, self.full_segment, now),
            Rule::Packets(packets) => return packets.on_in_order(bytes, now),
            Rule::External(external) => return external.on_in_order(bytes, now),
        };
        if self.quick > 0 {
            self.quick -= 1;
            return AckDecision::Now;
        }
        let enough = u64::from(policy.every) * self.full_segment;
        if policy.every <= 1 || self.unacked_bytes >= enough || policy.delay == Duration::ZERO {
            return AckDecision::Now;
        }
        if first { AckDecision::At(now + policy.delay) } else { AckDecision::Wait }
    }

    /// Data arrived above a gap, or below one so that RCV.NXT advanced.
    pub fn on_out_of_order(&mut self, disorder: &Disorder<'_>) -> AckDecision {
        match &mut self.rule {
            Rule::Delayed(_) => {
                self.on_disorder();
                AckDecision::Now
            }
            Rule::Linux(linux) => linux.on_out_of_order(disorder, self.full_segment),
            Rule::Packets(packets) => packets.on_out_of_order(disorder, self.full_segment),
            Rule::External(external) => external.on_out_of_order(disorder),
        }
    }

    /// Data was lost, reordered or duplicated: the sender needs every ACK while it recovers.
    pub fn on_disorder(&mut self) {
        match &mut self.rule {
            Rule::Delayed(policy) => self.quick = policy.quick_ack_segments,
            Rule::Linux(linux) => linux.on_duplicate(),
            Rule::Packets(_) | Rule::External(_) => {}
        }
    }

    /// The segment that arrives widened the offered window.
    pub fn on_widened(&mut self) {
        if let Rule::Linux(linux) = &mut self.rule {
            linux.on_widened();
        }
    }

    /// The delay of an ACK, or of an intermediate step, has passed.
    pub fn on_timer(&mut self, now: Instant) -> AckDecision {
        match &mut self.rule {
            Rule::Delayed(_) | Rule::Packets(_) => AckDecision::Now,
            Rule::Linux(linux) => linux.on_timer(self.full_segment, now),
            Rule::External(external) => external.on_timer(now),
        }
    }

    /// An acknowledgment of everything received was sent. Returns whether another segment is to follow.
    #[inline]
    pub fn on_ack_sent(&mut self) -> AckDecision {
        self.unacked_bytes = 0;
        match &mut self.rule {
            Rule::Delayed(_) => {}
            Rule::Linux(linux) => linux.on_ack_sent(),
            Rule::Packets(packets) => return packets.on_ack_sent(self.full_segment),
            Rule::External(external) => external.on_ack_sent(),
        }
        AckDecision::Wait
    }

    /// True for policies that depend on the receiver's estimate of the round-trip time.
    #[inline]
    pub fn wants_rtt(&self) -> bool {
        !matches!(self.rule, Rule::Delayed(_))
    }

    /// The handshake took `rtt`.
    pub fn on_handshake(&mut self, rtt: Duration) {
        if let Some(estimate) = self.rtt_mut() {
            estimate.start(rtt);
        }
    }

    /// Data of `bytes` echoed `stamp`, the timestamp of an ACK sent `rtt` ago.
    pub fn on_echo(&mut self, bytes: u64, stamp: u32, rtt: Duration) {
        let full = bytes >= self.full_segment;
        if let Some(estimate) = self.rtt_mut().filter(|_| full) {
            estimate.sample(stamp, rtt);
        }
    }

    fn rtt_mut(&mut self) -> Option<&mut ReceiverRtt> {
        match &mut self.rule {
            Rule::Delayed(_) => None,
            Rule::Linux(linux) => Some(&mut linux.rtt),
            Rule::Packets(packets) => Some(&mut packets.rtt),
            Rule::External(external) => Some(&mut external.rtt),
        }
    }
}

#[cfg(test)]
mod tests;
