//! Queues in front of links: drop-tail, CoDel and FQ-CoDel behind one interface.

mod ack_filter;
mod ack_hold;
mod bounded;
mod codel;
mod fifo;
mod fq_codel;

use tacit_proto::units::{Bytes, Duration, Instant};

pub use self::ack_filter::AckFilter;
pub use self::ack_hold::{AckHold, AckHoldConfig};
pub use self::bounded::Bounded;
use self::bounded::Overflow;
pub use self::codel::CoDel;
pub use self::fq_codel::FqCoDel;
use crate::payload::Payload;

/// How much a queue holds; an arrival that would pass either limit is dropped. No limit is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Most packets.
    pub packets: Option<u32>,
    /// Most bytes.
    pub bytes: Option<Bytes>,
}

impl QueueLimit {
    /// Whether a queue of `packets` and `bytes` takes `more` bytes in one packet.
    #[inline]
    pub fn admits(&self, packets: usize, bytes: Bytes, more: Bytes) -> bool {
        self.packets.is_none_or(|limit| packets < limit as usize)
            && self.bytes.is_none_or(|limit| bytes + more <= limit)
    }
}

/// A packet and when it was queued.
#[derive(Clone, Copy, Debug)]
pub struct Queued<P> {
    /// The packet.
    pub payload: P,
    /// When it was queued.
    pub at: Instant,
    /// Its bytes: to ask the packet costs more than to keep them.
    pub len: Bytes,
}

/// The settings of CoDel (RFC 8289 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// A standing queue of this much delay is acceptable.
    pub target: Duration,
    /// Delay must stay above `target` for this long before anything is dropped: about the longest usual
    /// round-trip time.
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them (RFC 3168, RFC 8289 section 5.3).
    pub ecn: bool,
}

impl CoDelConfig {
    /// RFC 8289 section 4.2 and 4.3: 5 ms and 100 ms.
    pub const INTERNET: Self =
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: true };

    /// Settings of Linux's mac80211 for a station (`sta_info_alloc`): 20 ms and 100 ms, because an A-MPDU alone lasts up
    /// to 5 ms and others have their turns between.
    pub const MAC80211: Self = Self { target: Duration::from_millis(20), ..Self::INTERNET };
}

/// The settings of FQ-CoDel (RFC 8290 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// CoDel settings of each flow's queue.
    pub codel: CoDelConfig,
    /// Bytes a flow may send in its turn.
    pub quantum: u32,
    /// Queues that flows are hashed into.
    pub flows: u16,
}

impl FqCoDelConfig {
    /// RFC 8290 sections 5.2.1 to 5.2.4: a quantum of one Ethernet frame.
    pub const INTERNET: Self = Self { codel: CoDelConfig::INTERNET, quantum: 1_514, flows: 1_024 };

    /// Settings of Linux's mac80211 (`fq_init`): a quantum of 300 bytes, so that flows of small packets,
    /// TCP ACKs among them, are served before a full packet of another; the number of queues is that of
    /// RFC 8290 section 5.2.3, each station having its own here.
    pub const MAC80211: Self = Self { codel: CoDelConfig::MAC80211, quantum: 300, flows: 1_024 };
}

/// Which packet of a queue leaves next, and which are dropped on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out; a packet that does not fit is dropped.
    #[default]
    DropTail,
    /// First in, first out; the packets that have waited longest are dropped to make room for a new one.
    DropHead,
    /// First in, first out, and drops while delay stays above a target.
    CoDel(CoDelConfig),
    /// Deficit round robin between flows, new ones first, each under CoDel.
    FqCoDel(FqCoDelConfig),
}

/// A queue before it holds anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueConfig {
    /// How much it holds.
    pub limit: QueueLimit,
    /// In which order.
    pub discipline: Discipline,
}

impl From<QueueLimit> for QueueConfig {
    fn from(limit: QueueLimit) -> Self {
        Self { limit, discipline: Discipline::DropTail }
    }
}

/// A queue at work. CoDel and FQ-CoDel stay out of line, so that the others cost no more than they would without them.
///
/// Every packet it took leaves it once: by [`Queue::pop`], by [`Queue::retract`], or through the `dropped`
/// of [`Queue::push`] and [`Queue::front`].
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// See [`Discipline::DropTail`] and [`Discipline::DropHead`].
    Bounded(Bounded<P>),
    /// See [`Discipline::CoDel`].
    CoDel(Box<CoDel<P>>),
    /// See [`Discipline::FqCoDel`].
    FqCoDel(Box<FqCoDel<P>>),
}

impl<P: Payload> Queue<P> {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        match config.discipline {
            Discipline::DropTail => Self::Bounded(Bounded::new(config.limit, Overflow::DropTail)),
            Discipline::DropHead => Self::Bounded(Bounded::new(config.limit, Overflow::DropHead)),
            Discipline::CoDel(codel) => Self::CoDel(Box::new(CoDel::new(config.limit, codel))),
            Discipline::FqCoDel(fq) => Self::FqCoDel(Box::new(FqCoDel::new(config.limit, fq))),
        }
    }

    /// Queues `payload` at `now`; returns false when it was refused. `dropped` gets packets taken earlier
    /// that had to go for it, or `payload` itself where it did after all.
    // Always: a call here moves each packet once more.
    #[inline(always)]
    pub fn push(&mut self, now: Instant, payload: P, dropped: &mut impl FnMut(P)) -> bool {
        match self {
            Self::Bounded(queue) => queue.push(now, payload, dropped),
            Self::CoDel(queue) => queue.push(now, payload),
            Self::FqCoDel(queue) => queue.push(now, payload, dropped),
        }
    }

    /// True when a packet of `len` bytes would be taken without loss.
    #[inline]
    pub fn has_room(&self, len: Bytes) -> bool {
        match self {
            Self::Bounded(queue) => queue.has_room(len),
            Self::CoDel(queue) => queue.has_room(len),
            Self::FqCoDel(queue) => queue.has_room(len),
        }
    }

    /// The packet that leaves next, decided at `now` and changed by later arrivals only where those drop the head;
    /// `dropped` gets those that did not live to see it.
    #[inline]
    pub fn front(&mut self, now: Instant, dropped: &mut impl FnMut(P)) -> Option<&Queued<P>> {
        match self {
            Self::Bounded(queue) => queue.front(),
            Self::CoDel(queue) => queue.front(now, dropped),
            Self::FqCoDel(queue) => queue.front(now, dropped),
        }
    }

    /// Takes the packet that [`Queue::front`] gave; `None` without one.
    // Always: a call here moves each packet once more.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Queued<P>> {
        match self {
            Self::Bounded(queue) => queue.pop(),
            Self::CoDel(queue) => queue.pop(),
            Self::FqCoDel(queue) => queue.pop(),
        }
    }

    /// Since when the packet that leaves next has waited, or a time before that where it is not decided on and flows
    /// take turns; `None` when nothing waits.
    #[inline]
    pub fn waiting_since(&self) -> Option<Instant> {
        match self {
            Self::Bounded(queue) => queue.front().map(|queued| queued.at),
            Self::CoDel(queue) => queue.waiting_since(),
            Self::FqCoDel(queue) => queue.waiting_since(),
        }
    }

    /// Since when the packet has waited that has waited longest.
    pub fn oldest_at(&self) -> Option<Instant> {
        match self {
            Self::Bounded(queue) => queue.front().map(|queued| queued.at),
            Self::CoDel(queue) => queue.waiting_since(),
            // One per flow.
            Self::FqCoDel(queue) => queue.oldest_at(),
        }
    }

    /// Shows each waiting packet, those of a flow in the order they were queued. `see` may exchange it for one of the
    /// same length.
    fn each(&mut self, see: &mut impl FnMut(&mut P)) {
        match self {
            Self::Bounded(queue) => queue.each(see),
            Self::CoDel(queue) => queue.each(see),
            Self::FqCoDel(queue) => queue.each(see),
        }
    }

    /// The waiting packets, in the order they leave if nothing is dropped and flows do not take turns.
    pub fn iter(&self) -> impl Iterator<Item = &Queued<P>> {
        let (bounded, codel, fq) = match self {
            Self::Bounded(queue) => (Some(queue.iter()), None, None),
            Self::CoDel(queue) => (None, Some(queue.iter()), None),
            Self::FqCoDel(queue) => (None, None, Some(queue.iter())),
        };
        bounded.into_iter().flatten().chain(codel.into_iter().flatten()).chain(fq.into_iter().flatten())
    }

    /// Drops the packets that `unwanted` says; returns how many.
    pub fn retract(&mut self, unwanted: impl FnMut(&P) -> bool) -> usize {
        match self {
            Self::Bounded(queue) => queue.retract(unwanted),
            Self::CoDel(queue) => queue.retract(unwanted),
            Self::FqCoDel(queue) => queue.retract(unwanted),
        }
    }

    /// Packets waiting.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Bounded(queue) => queue.len(),
            Self::CoDel(queue) => queue.len(),
            Self::FqCoDel(queue) => queue.len(),
        }
    }

    /// True when nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Most packets that waited at once, since [`Queue::reset_peak`].
    pub fn peak(&self) -> usize {
        match self {
            Self::Bounded(queue) => queue.peak(),
            Self::CoDel(queue) => queue.peak(),
            Self::FqCoDel(queue) => queue.peak(),
        }
    }

    /// Starts the peak over at the present length.
    pub fn reset_peak(&mut self) {
        match self {
            Self::Bounded(queue) => queue.reset_peak(),
            Self::CoDel(queue) => queue.reset_peak(),
            Self::FqCoDel(queue) => queue.reset_peak(),
        }
    }

    /// Packets that were marked instead of dropped, since the start.
    pub fn marks(&self) -> u64 {
        match self {
            Self::Bounded(_) => 0,
            Self::CoDel(queue) => queue.marks(),
            Self::FqCoDel(queue) => queue.marks(),
        }
    }
}
