//! Queues in front of links: drop-tail, CoDel and FQ-CoDel behind one interface.

mod ack_filter;
mod ack_hold;
mod codel;
mod drop_tail;
mod fq_codel;

use tacit_proto::units::{Bytes, Duration, Instant};

pub use self::ack_filter::AckFilter;
pub(crate) use self::ack_filter::Filterable;
pub use self::ack_hold::{AckHold, AckHoldConfig};
pub use self::codel::CoDel;
pub use self::drop_tail::DropTail;
pub use self::fq_codel::FqCoDel;
use crate::payload::Payload;

/// How much a queue holds; an arrival that would pass either limit is dropped. No limit is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Most packets.
    pub packets: Option<u32>,
    /// Most octets.
    pub bytes: Option<Bytes>,
}

impl QueueLimit {
    /// Whether a queue of `packets` and `bytes` takes `more` octets in one packet.
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

    /// What Linux's mac80211 takes for a station (`sta_info_alloc`): 20 ms and 100 ms, because an A-MPDU
    /// alone lasts up to 5 ms and others have their turns between.
    pub const MAC80211: Self = Self { target: Duration::from_millis(20), ..Self::INTERNET };
}

/// The settings of FQ-CoDel (RFC 8290 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// What works on each flow's queue.
    pub codel: CoDelConfig,
    /// Octets a flow may send in its turn.
    pub quantum: u32,
    /// Queues that flows are hashed into.
    pub flows: u16,
}

impl FqCoDelConfig {
    /// What Linux's mac80211 takes (`fq_init`): a quantum of 300 octets, so that flows of small packets,
    /// TCP ACKs among them, are served before a full packet of another; the number of queues is that of
    /// RFC 8290 section 5.2.3, each station having its own here.
    pub const MAC80211: Self = Self { codel: CoDelConfig::MAC80211, quantum: 300, flows: 1_024 };
}

/// Which packet of a queue leaves next, and which are dropped on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out; only what does not fit is dropped.
    #[default]
    DropTail,
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

/// A queue at work. The disciplines besides drop-tail stay out of line, so that drop-tail costs what it did
/// when there was no other.
///
/// Every packet it took leaves it once: by [`Queue::pop`], by [`Queue::retract`], or through the `dropped`
/// of [`Queue::push`] and [`Queue::front`].
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// See [`Discipline::DropTail`].
    DropTail(DropTail<P>),
    /// See [`Discipline::CoDel`].
    CoDel(Box<CoDel<P>>),
    /// See [`Discipline::FqCoDel`].
    FqCoDel(Box<FqCoDel<P>>),
}

impl<P: Payload> Queue<P> {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        match config.discipline {
            Discipline::DropTail => Self::DropTail(DropTail::new(config.limit)),
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
            Self::DropTail(queue) => queue.push(now, payload),
            Self::CoDel(queue) => queue.push(now, payload),
            Self::FqCoDel(queue) => queue.push(now, payload, dropped),
        }
    }

    /// True when a packet of `len` octets would be taken without loss.
    #[inline]
    pub fn has_room(&self, len: Bytes) -> bool {
        match self {
            Self::DropTail(queue) => queue.has_room(len),
            Self::CoDel(queue) => queue.has_room(len),
            Self::FqCoDel(queue) => queue.has_room(len),
        }
    }

    /// The packet that leaves next, decided at `now` and not changed by later arrivals; `dropped` gets
    /// those that did not live to see it.
    #[inline]
    pub fn front(&mut self, now: Instant, dropped: &mut impl FnMut(P)) -> Option<&Queued<P>> {
        match self {
            Self::DropTail(queue) => queue.front(),
            Self::CoDel(queue) => queue.front(now, dropped),
            Self::FqCoDel(queue) => queue.front(now, dropped),
        }
    }

    /// Takes the packet that [`Queue::front`] gave; `None` without one.
    // Always: a call here moves each packet once more.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Queued<P>> {
        match self {
            Self::DropTail(queue) => queue.pop(),
            Self::CoDel(queue) => queue.pop(),
            Self::FqCoDel(queue) => queue.pop(),
        }
    }

    /// Drops the packets that `unwanted` says; returns how many.
    pub fn retract(&mut self, unwanted: impl FnMut(&P) -> bool) -> usize {
        match self {
            Self::DropTail(queue) => queue.retract(unwanted),
            Self::CoDel(queue) => queue.retract(unwanted),
            Self::FqCoDel(queue) => queue.retract(unwanted),
        }
    }

    /// Packets waiting.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::DropTail(queue) => queue.len(),
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
            Self::DropTail(queue) => queue.peak(),
            Self::CoDel(queue) => queue.peak(),
            Self::FqCoDel(queue) => queue.peak(),
        }
    }

    /// Forgets what was before.
    pub fn reset_peak(&mut self) {
        match self {
            Self::DropTail(queue) => queue.reset_peak(),
            Self::CoDel(queue) => queue.reset_peak(),
            Self::FqCoDel(queue) => queue.reset_peak(),
        }
    }

    /// Packets that were marked instead of dropped, since the start.
    pub fn marks(&self) -> u64 {
        match self {
            Self::DropTail(_) => 0,
            Self::CoDel(queue) => queue.marks(),
            Self::FqCoDel(queue) => queue.marks(),
        }
    }
}
