//! Queues before links: drop-tail, CoDel, FQ-CoDel and DualPI2 with a common interface.

mod ack_filter;
mod bounded;
mod codel;
mod dual_pi2;
mod fifo;
mod fq_codel;

use tacit_packet::units::{Bytes, Duration, Instant};

pub use self::ack_filter::AckFilter;
pub use self::bounded::Bounded;
use self::bounded::Overflow;
pub use self::codel::CoDel;
pub use self::dual_pi2::DualPi2;
pub use self::fq_codel::FqCoDel;
use crate::packet::PacketRef;

/// Capacity of a queue; a packet that would exceed either limit is dropped. `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Most packets.
    pub packets: Option<u32>,
    /// Most bytes.
    pub bytes: Option<Bytes>,
}

impl QueueLimit {
    /// Whether a queue with `packets` and `bytes` has room for a packet of `more` bytes.
    pub fn admits(&self, packets: usize, bytes: Bytes, more: Bytes) -> bool {
        self.packets.is_none_or(|limit| packets < limit as usize)
            && self.bytes.is_none_or(|limit| bytes + more <= limit)
    }

    /// Packets of `len` bytes that it admits; `None` without a limit.
    pub fn packets_of(&self, len: Bytes) -> Option<u32> {
        let within = self.bytes.map(|limit| u32::try_from(limit.0 / len.0.max(1)).unwrap_or(u32::MAX));
        [self.packets, within].into_iter().flatten().min()
    }
}

/// A packet and its time of queueing.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// The packet.
    pub payload: PacketRef,
    /// When it was queued.
    pub at: Instant,
    /// Whether it came as L4S. A mark of the queue hides that in the packet's own field.
    pub is_l4s: bool,
}

impl Queued {
    fn new(payload: PacketRef, at: Instant) -> Self {
        Self { payload, at, is_l4s: payload.is_l4s() }
    }

    /// Bytes of the IP packet.
    pub fn len(&self) -> Bytes {
        self.payload.len()
    }
}

/// The settings of CoDel (RFC 8289 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Acceptable delay of a standing queue.
    pub target: Duration,
    /// How long the delay must be above `target` before packets are dropped: about the longest usual round-trip time.
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them (RFC 3168, RFC 8289 section 5.3).
    pub ecn: bool,
}

impl CoDelConfig {
    /// RFC 8289 section 4.2 and 4.3: 5 ms and 100 ms.
    pub const INTERNET: Self =
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: true };

    /// Settings of Linux's mac80211 for a station (`sta_info_alloc`): 20 ms and 100 ms, because a single A-MPDU lasts
    /// up to 5 ms and other stations have their turns in between.
    pub const MAC80211: Self = Self { target: Duration::from_millis(20), ..Self::INTERNET };
}

/// The settings of FQ-CoDel (RFC 8290 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// CoDel settings of each flow's queue.
    pub codel: CoDelConfig,
    /// Bytes that a flow may send per turn.
    pub quantum: u32,
    /// Number of queues that flows are hashed to.
    pub flows: u16,
}

impl FqCoDelConfig {
    /// RFC 8290 sections 5.2.1 to 5.2.4: a quantum of one Ethernet frame.
    pub const INTERNET: Self = Self { codel: CoDelConfig::INTERNET, quantum: 1_514, flows: 1_024 };

    /// Settings of Linux's mac80211 (`fq_init`): a quantum of 300 bytes, so that flows of small packets such as TCP
    /// ACKs are served before a full packet of another flow. The number of queues is that of RFC 8290 section 5.2.3,
    /// because each station has its own queues here.
    pub const MAC80211: Self = Self { codel: CoDelConfig::MAC80211, quantum: 300, flows: 1_024 };
}

/// The settings of DualPI2 (RFC 9332, appendix A.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualPi2Config {
    /// Delay of the classic queue that PI2 aims at.
    pub target: Duration,
    /// The longest usual round-trip time, which sets the gains of PI2.
    pub rtt_max: Duration,
    /// The coupling factor k: how many times the base probability L4S packets are marked.
    pub coupling: u8,
    /// Delay of the L4S queue from which on packets are marked.
    pub l4s_threshold: Duration,
    /// How much further the delay grows until every packet is marked.
    pub l4s_range: Duration,
}

impl DualPi2Config {
    /// Appendix A.1: 15 ms, 100 ms, 2, 800 us and 400 us.
    pub const INTERNET: Self = Self {
        target: Duration::from_millis(15),
        rtt_max: Duration::from_millis(100),
        coupling: 2,
        l4s_threshold: Duration::from_micros(800),
        l4s_range: Duration::from_micros(400),
    };

    /// Tupdate = min(target, RTT_max / 3), at least a microsecond.
    pub(crate) fn update_interval(&self) -> Duration {
        self.target.min(self.rtt_max / 3).max(Duration::from_micros(1))
    }
}

/// Which packet of a queue leaves next, and which packets are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out; a packet that does not fit is dropped.
    #[default]
    DropTail,
    /// First in, first out; the oldest packets are dropped to make room for a new one.
    DropHead,
    /// First in, first out; drops packets while the delay remains above a target.
    CoDel(CoDelConfig),
    /// Deficit round robin between flows, new flows first; each flow has CoDel.
    FqCoDel(FqCoDelConfig),
    /// A queue for L4S and one for other packets, coupled.
    DualPi2(DualPi2Config),
}

/// Configuration of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueConfig {
    /// Its capacity.
    pub limit: QueueLimit,
    /// Its discipline.
    pub discipline: Discipline,
}

impl From<QueueLimit> for QueueConfig {
    fn from(limit: QueueLimit) -> Self {
        Self { limit, discipline: Discipline::DropTail }
    }
}

/// A queue in use. Those with an AQM are boxed, because most queues have none.
///
/// Every accepted packet leaves exactly once: by [`Queue::pop`], by [`Queue::retract`], or through the `dropped`
/// callback of [`Queue::push`] or [`Queue::front`].
#[derive(Clone, Debug)]
pub enum Queue {
    /// See [`Discipline::DropTail`] and [`Discipline::DropHead`].
    Bounded(Bounded),
    /// See [`Discipline::CoDel`].
    CoDel(Box<CoDel>),
    /// See [`Discipline::FqCoDel`].
    FqCoDel(Box<FqCoDel>),
    /// See [`Discipline::DualPi2`].
    DualPi2(Box<DualPi2>),
}

/// The waiting packets of a queue, by its discipline.
enum Waiting<Bounded, CoDel, FqCoDel, DualPi2> {
    Bounded(Bounded),
    CoDel(CoDel),
    FqCoDel(FqCoDel),
    DualPi2(DualPi2),
}

impl<Item, Bounded, CoDel, FqCoDel, DualPi2> Iterator for Waiting<Bounded, CoDel, FqCoDel, DualPi2>
where
    Bounded: Iterator<Item = Item>,
    CoDel: Iterator<Item = Item>,
    FqCoDel: Iterator<Item = Item>,
    DualPi2: Iterator<Item = Item>,
{
    type Item = Item;

    #[inline]
    fn next(&mut self) -> Option<Item> {
        match self {
            Self::Bounded(packets) => packets.next(),
            Self::CoDel(packets) => packets.next(),
            Self::FqCoDel(packets) => packets.next(),
            Self::DualPi2(packets) => packets.next(),
        }
    }
}

impl Queue {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        match config.discipline {
            Discipline::DropTail => Self::Bounded(Bounded::new(config.limit, Overflow::DropTail)),
            Discipline::DropHead => Self::Bounded(Bounded::new(config.limit, Overflow::DropHead)),
            Discipline::CoDel(codel) => Self::CoDel(Box::new(CoDel::new(config.limit, codel))),
            Discipline::FqCoDel(fq) => Self::FqCoDel(Box::new(FqCoDel::new(config.limit, fq))),
            Discipline::DualPi2(dual) => Self::DualPi2(Box::new(DualPi2::new(config.limit, dual))),
        }
    }

    /// Queues `payload` at `now`; returns false if it was refused. `dropped` is called with earlier packets that were
    /// dropped for it, or with `payload` itself if it was dropped after all.
    pub fn push(&mut self, now: Instant, payload: PacketRef, dropped: &mut impl FnMut(PacketRef)) -> bool {
        match self {
            Self::Bounded(queue) => queue.push(now, payload, dropped),
            Self::CoDel(queue) => queue.push(now, payload),
            Self::FqCoDel(queue) => queue.push(now, payload, dropped),
            Self::DualPi2(queue) => queue.push(now, payload),
        }
    }

    /// How much it holds.
    pub fn limit(&self) -> QueueLimit {
        match self {
            Self::Bounded(queue) => queue.limit,
            Self::CoDel(queue) => queue.limit,
            Self::FqCoDel(queue) => queue.limit,
            Self::DualPi2(queue) => queue.limit,
        }
    }

    /// True if a packet of `len` bytes could be queued without loss.
    pub fn has_room(&self, len: Bytes) -> bool {
        match self {
            Self::Bounded(queue) => queue.has_room(len),
            Self::CoDel(queue) => queue.has_room(len),
            Self::FqCoDel(queue) => queue.has_room(len),
            Self::DualPi2(queue) => queue.has_room(len),
        }
    }

    /// The packet that leaves next, decided at `now`; later arrivals change it only if they drop the head. `dropped` is
    /// called with packets that are dropped before it.
    pub fn front(&mut self, now: Instant, dropped: &mut impl FnMut(PacketRef)) -> Option<&Queued> {
        match self {
            Self::Bounded(queue) => queue.front(),
            Self::CoDel(queue) => queue.front(now, dropped),
            Self::FqCoDel(queue) => queue.front(now, dropped),
            Self::DualPi2(queue) => queue.front(now, dropped),
        }
    }

    /// Removes the packet that [`Queue::front`] returned; `None` without one.
    pub fn pop(&mut self) -> Option<Queued> {
        match self {
            Self::Bounded(queue) => queue.pop(),
            Self::CoDel(queue) => queue.pop(),
            Self::FqCoDel(queue) => queue.pop(),
            Self::DualPi2(queue) => queue.pop(),
        }
    }

    /// Since when the next packet has waited; an earlier time if it is not decided yet because flows take turns. `None`
    /// if the queue is empty.
    pub fn waiting_since(&self) -> Option<Instant> {
        match self {
            Self::Bounded(queue) => queue.front().map(|queued| queued.at),
            Self::CoDel(queue) => queue.waiting_since(),
            Self::FqCoDel(queue) => queue.waiting_since(),
            Self::DualPi2(queue) => queue.waiting_since(),
        }
    }

    /// Queueing time of the oldest packet.
    pub fn oldest_at(&self) -> Option<Instant> {
        match self {
            Self::Bounded(queue) => queue.front().map(|queued| queued.at),
            Self::CoDel(queue) => queue.waiting_since(),
            // One per flow.
            Self::FqCoDel(queue) => queue.oldest_at(),
            Self::DualPi2(queue) => queue.oldest_at(),
        }
    }

    /// Calls `see` with each waiting packet, in order within each flow. `see` may replace it with a packet of the same
    /// length.
    fn each(&mut self, see: &mut impl FnMut(&mut PacketRef)) {
        match self {
            Self::Bounded(queue) => queue.each(see),
            Self::CoDel(queue) => queue.each(see),
            Self::FqCoDel(queue) => queue.each(see),
            Self::DualPi2(queue) => queue.each(see),
        }
    }

    /// The waiting packets, in the order in which they leave if nothing is dropped and flows do not take turns.
    pub fn iter(&self) -> impl Iterator<Item = &Queued> {
        match self {
            Self::Bounded(queue) => Waiting::Bounded(queue.iter()),
            Self::CoDel(queue) => Waiting::CoDel(queue.iter()),
            Self::FqCoDel(queue) => Waiting::FqCoDel(queue.iter()),
            Self::DualPi2(queue) => Waiting::DualPi2(queue.iter()),
        }
    }

    /// Drops the packets for which `unwanted` returns true; returns their number.
    pub fn retract(&mut self, unwanted: impl FnMut(&PacketRef) -> bool) -> usize {
        match self {
            Self::Bounded(queue) => queue.retract(unwanted),
            Self::CoDel(queue) => queue.retract(unwanted),
            Self::FqCoDel(queue) => queue.retract(unwanted),
            Self::DualPi2(queue) => queue.retract(unwanted),
        }
    }

    /// Number of waiting packets.
    pub fn len(&self) -> usize {
        match self {
            Self::Bounded(queue) => queue.len(),
            Self::CoDel(queue) => queue.len(),
            Self::FqCoDel(queue) => queue.len(),
            Self::DualPi2(queue) => queue.len(),
        }
    }

    /// True if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Maximum number of waiting packets since [`Queue::reset_peak`].
    pub fn peak(&self) -> usize {
        match self {
            Self::Bounded(queue) => queue.peak(),
            Self::CoDel(queue) => queue.peak(),
            Self::FqCoDel(queue) => queue.peak(),
            Self::DualPi2(queue) => queue.peak(),
        }
    }

    /// Resets the peak to the current length.
    pub fn reset_peak(&mut self) {
        match self {
            Self::Bounded(queue) => queue.reset_peak(),
            Self::CoDel(queue) => queue.reset_peak(),
            Self::FqCoDel(queue) => queue.reset_peak(),
            Self::DualPi2(queue) => queue.reset_peak(),
        }
    }

    /// Packets marked instead of dropped, since the start.
    pub fn marks(&self) -> u64 {
        match self {
            Self::Bounded(_) => 0,
            Self::CoDel(queue) => queue.marks(),
            Self::FqCoDel(queue) => queue.marks(),
            Self::DualPi2(queue) => queue.marks(),
        }
    }
}
