//! CoDel (RFC 8289): drops at the head, increasingly often, while the delay remains above a target.

use tacit_packet::units::{Bytes, Duration, Instant};

use super::fifo::Fifo;
use super::{CoDelConfig, QueueLimit, Queued};
use crate::packet::PacketRef;

/// 1 / sqrt(`count`) in units of 2^-32, with an error below 2^-30; for a count of at most one, the largest value.
///
/// Newton's iteration for x = n^(-1/2) is x(3 - n x^2)/2. It starts from a power of two between half the root and the
/// root, and each step about doubles the number of correct bits. Linux instead takes one step per drop from the value
/// of the previous drop, and has an error of 29 % at its second.
fn inverse_sqrt(count: u32) -> u32 {
    const STEPS: u32 = 7;
    if count <= 1 {
        return u32::MAX;
    }
    let bits = u32::BITS - count.leading_zeros();
    let mut root = 1_u128 << (32 - bits.div_ceil(2));
    for _ in 0..STEPS {
        let squared = (u128::from(count) * root * root) >> 32;
        // Rounding down keeps the square at or below one, except for the last bit.
        root = (root * (3_u128 << 32).saturating_sub(squared)) >> 33;
    }
    u32::try_from(root).unwrap_or(u32::MAX)
}

/// The control law: `interval` over the square root of `count` (RFC 8289 section 5.6).
fn pause(interval: Duration, count: u32) -> Duration {
    if count <= 1 {
        return interval;
    }
    let product = u128::from(interval.as_nanos()) * u128::from(inverse_sqrt(count));
    // Less than `interval`, so it fits in 64 bits.
    Duration::from_nanos((product >> 32) as u64)
}

/// CoDel's state for one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    /// When the delay will have been above target for an interval; `None` while it is below.
    first_above_at: Option<Instant>,
    dropping: bool,
    /// Time of the next drop while dropping; afterwards, the time of the first drop that was not made.
    drop_next: Instant,
    /// Drops since dropping began, possibly including a previous period.
    count: u32,
    last_count: u32,
    /// Packets marked instead of dropped.
    pub(super) marks: u64,
}

/// CoDel's decision on an examined packet.
struct Looked {
    queued: Queued,
    ok_to_drop: bool,
}

impl Control {
    /// Removes the next packet from `fifo` at `now`, and drops packets before it as required. `largest` is the longest
    /// packet so far: if no more bytes than that are waiting, there is no standing queue.
    pub(super) fn dequeue(
        &mut self,
        config: &CoDelConfig,
        largest: Bytes,
        fifo: &mut Fifo,
        now: Instant,
        dropped: &mut impl FnMut(PacketRef),
    ) -> Option<Queued> {
        let mut looked = self.look(config, largest, fifo, now)?;
        if !self.dropping {
            if looked.ok_to_drop {
                if !self.mark(config, &mut looked) {
                    dropped(looked.queued.payload);
                    // Never `None`: the packet just dropped had more than the largest packet behind it.
                    looked = self.look(config, largest, fifo, now)?;
                }
                self.start_dropping(config, now);
            }
            return Some(looked.queued);
        }
        self.dropping = looked.ok_to_drop;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            let marked = self.mark(config, &mut looked);
            if !marked {
                dropped(looked.queued.payload);
                looked = self.look(config, largest, fifo, now)?;
            }
            self.dropping = looked.ok_to_drop;
            if self.dropping {
                self.drop_next += pause(config.interval, self.count);
            }
            if marked {
                break;
            }
        }
        Some(looked.queued)
    }

    fn mark(&mut self, config: &CoDelConfig, looked: &mut Looked) -> bool {
        let marked = config.ecn && looked.queued.payload.mark_congestion();
        self.marks += u64::from(marked);
        marked
    }

    /// Starts dropping, at the previous rate of drops if that was recent.
    fn start_dropping(&mut self, config: &CoDelConfig, now: Instant) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recently = now.saturating_since(self.drop_next) < config.interval * 16;
        self.count = if delta > 1 && recently { delta } else { 1 };
        self.drop_next = now + pause(config.interval, self.count);
        self.last_count = self.count;
    }

    /// Removes the next packet, and checks whether the delay has been above target for an interval.
    fn look(
        &mut self,
        config: &CoDelConfig,
        largest: Bytes,
        fifo: &mut Fifo,
        now: Instant,
    ) -> Option<Looked> {
        let Some(queued) = fifo.pop() else {
            self.first_above_at = None;
            self.dropping = false;
            return None;
        };
        let mut ok_to_drop = false;
        if now.saturating_since(queued.at) < config.target || fifo.bytes() <= largest {
            self.first_above_at = None;
        } else {
            match self.first_above_at {
                None => self.first_above_at = Some(now + config.interval),
                Some(at) => ok_to_drop = now >= at,
            }
        }
        Some(Looked { queued, ok_to_drop })
    }
}

/// One queue with CoDel.
#[derive(Clone, Debug)]
pub struct CoDel {
    pub(super) limit: QueueLimit,
    config: CoDelConfig,
    control: Control,
    fifo: Fifo,
    /// The packet that was decided on but not taken yet.
    next: Option<Queued>,
    largest: Bytes,
    peak: usize,
}

impl CoDel {
    /// An empty queue.
    pub fn new(limit: QueueLimit, config: CoDelConfig) -> Self {
        Self {
            limit,
            config,
            control: Control::default(),
            fifo: Fifo::new(),
            next: None,
            largest: Bytes(0),
            peak: 0,
        }
    }

    pub(super) fn push(&mut self, now: Instant, payload: PacketRef) -> bool {
        let len = payload.len();
        if !self.has_room(len) {
            return false;
        }
        self.largest = self.largest.max(len);
        self.fifo.push(Queued::new(payload, now));
        self.peak = self.peak.max(self.len());
        true
    }

    pub(super) fn has_room(&self, len: Bytes) -> bool {
        let next = self.next.as_ref().map_or(Bytes(0), |queued| queued.len());
        self.limit.admits(self.len(), self.fifo.bytes() + next, len)
    }

    pub(super) fn front(&mut self, now: Instant, dropped: &mut impl FnMut(PacketRef)) -> Option<&Queued> {
        if self.next.is_none() {
            self.next = self.control.dequeue(&self.config, self.largest, &mut self.fifo, now, dropped);
        }
        self.next.as_ref()
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        self.next.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.next.iter().chain(self.fifo.iter())
    }

    pub(super) fn waiting_since(&self) -> Option<Instant> {
        self.iter().next().map(|queued| queued.at)
    }

    pub(super) fn each(&mut self, see: &mut impl FnMut(&mut PacketRef)) {
        self.next.iter_mut().for_each(|queued| see(&mut queued.payload));
        self.fifo.each(see);
    }

    pub(super) fn retract(&mut self, mut unwanted: impl FnMut(&PacketRef) -> bool) -> usize {
        let before = self.len();
        if self.next.as_ref().is_some_and(|queued| unwanted(&queued.payload)) {
            self.next = None;
        }
        self.fifo.retract(&mut unwanted, &mut |_| {});
        before - self.len()
    }

    pub(super) fn len(&self) -> usize {
        self.fifo.len() + usize::from(self.next.is_some())
    }

    pub(super) fn peak(&self) -> usize {
        self.peak
    }

    pub(super) fn reset_peak(&mut self) {
        self.peak = self.len();
    }

    pub(super) fn marks(&self) -> u64 {
        self.control.marks
    }
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
