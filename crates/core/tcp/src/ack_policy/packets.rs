//! Counts packets, as QUIC stacks do.
//!
//! TCP has sequence numbers in place of QUIC's packet numbers: a retransmission fills the gap of the lost packet, and
//! looks like a reordered packet.

use core::num::NonZeroU64;

use super::policy::{DelayLimit, MAX_ACK_DELAY, PacketAcks, PacketLimit, QUIC_PACKETS, Reading, Reordering};
use super::rtt::ReceiverRtt;
use super::{AckDecision, Disorder};
use tacit_packet::position::Position;
use tacit_packet::units::{Duration, Instant};

#[derive(Clone, Debug)]
pub(super) struct Packets {
    policy: PacketAcks,
    pub rtt: ReceiverRtt,
    /// Packets that are not acknowledged yet, and the latest time for their ACK.
    unacked: u32,
    due: Option<Instant>,
    /// Total number of packets, as far as the policy needs it.
    seen: u32,
    /// End of the highest packet, and of the highest packet at the latest ACK.
    highest: Position,
    acked: Position,
    /// Missing bytes below this were reported.
    reported: Position,
    window: Window,
    /// An ACK was for a burst ([`PacketLimit::OnceBursts`]).
    has_burst: bool,
    /// The time of the latest packet, and how many arrived then.
    now: Instant,
    arrived_now: u32,
    /// An ACK is due, however long others could wait.
    is_due: bool,
    updates: Option<Updates>,
}

/// Announcements of room. A program reads once its receiver has acknowledged what arrived, so that an ACK announces what was read
/// before it.
#[derive(Clone, Copy, Debug)]
struct Updates {
    every: u64,
    /// Bytes that arrived in order, those of them that were read, and those whose room was announced.
    arrived: u64,
    read: u64,
    announced: u64,
}

/// Estimate of the peer's window: packets that arrived in the last complete round trip.
#[derive(Clone, Debug, Default)]
struct Window {
    since: Option<Instant>,
    arrived: u32,
    packets: u32,
}

impl Packets {
    pub fn new(policy: PacketAcks, update_bytes: Option<NonZeroU64>) -> Self {
        Self {
            policy,
            rtt: ReceiverRtt::default(),
            unacked: 0,
            due: None,
            seen: 0,
            highest: Position::default(),
            acked: Position::default(),
            reported: Position::default(),
            window: Window::default(),
            has_burst: false,
            now: Instant::ZERO,
            arrived_now: 0,
            is_due: false,
            updates: update_bytes.map(|every| Updates {
                every: every.get(),
                arrived: 0,
                read: 0,
                announced: 0,
            }),
        }
    }

    /// A packet of `bytes` arrived, and there are no gaps.
    #[inline(never)]
    pub fn on_in_order(&mut self, bytes: u64, now: Instant) -> AckDecision {
        let delay = self.count(now);
        self.decide(now, delay, bytes)
    }

    /// A packet arrived above or below a gap.
    pub fn on_out_of_order(&mut self, disorder: &Disorder<'_>, full_segment: u64) -> AckDecision {
        let delay = self.count(disorder.now);
        self.highest = disorder.highest();
        let delay = if self.at_once(disorder, full_segment) { Duration::ZERO } else { delay };
        let in_order = disorder.rcv_nxt.saturating_since(disorder.range.start);
        self.decide(disorder.now, delay, in_order)
    }

    /// Counts a packet. Returns how long its ACK may wait.
    fn count(&mut self, now: Instant) -> Duration {
        self.seen = self.seen.saturating_add(1);
        if now != self.now {
            (self.now, self.arrived_now) = (now, 0);
            self.updates.iter_mut().for_each(Updates::read_all);
        }
        self.arrived_now = self.arrived_now.wrapping_add(1);
        self.window.count(now, self.rtt.smoothed());
        self.unacked += 1;
        if self.unacked >= self.limit() { Duration::ZERO } else { self.delay() }
    }

    /// An ACK may wait for `delay`, and `bytes` more can be read.
    fn decide(&mut self, now: Instant, delay: Duration, bytes: u64) -> AckDecision {
        self.is_due |= delay == Duration::ZERO;
        let is_update_due = self.updates.as_mut().is_some_and(|updates| updates.on_bytes(bytes));
        // The timer of a batch expires when all that arrives at this instant has been counted.
        let Reading(most) = self.policy.reading;
        let ends_batch = self.arrived_now.is_multiple_of(most);
        if delay == Duration::ZERO && ends_batch {
            return AckDecision::Now;
        }
        let at = if is_update_due { now } else { now + delay };
        if self.due.is_some_and(|due| due <= at) {
            return AckDecision::Wait;
        }
        self.due = Some(at);
        AckDecision::At(at)
    }

    /// RFC 9000's rule applies to the first packets, and to limits that depend on a round-trip time that is not known
    /// yet.
    fn is_early(&self) -> bool {
        self.seen <= self.policy.early_packets
    }

    fn limit(&self) -> u32 {
        if self.is_early() {
            return QUIC_PACKETS;
        }
        match self.policy.packets {
            PacketLimit::Every(packets) => packets,
            PacketLimit::OnceBursts { asked, .. } if self.has_burst => asked,
            PacketLimit::OnceBursts { .. } => QUIC_PACKETS,
            PacketLimit::Unbounded if self.rtt.least().is_none() => QUIC_PACKETS,
            PacketLimit::Unbounded => u32::MAX,
            PacketLimit::QuarterWindow { least, most } => self.quarter_window(least, most),
            PacketLimit::QuarterWindowByRttMin { below, shorter, longer } => match self.rtt.least() {
                None => QUIC_PACKETS,
                Some(rtt) if rtt < below => self.quarter_window(QUIC_PACKETS, shorter),
                Some(_) => self.quarter_window(QUIC_PACKETS, longer),
            },
        }
    }

    fn quarter_window(&self, least: u32, most: u32) -> u32 {
        (self.window.packets / 4).clamp(least, most)
    }

    fn delay(&self) -> Duration {
        let quarter = |rtt: Option<Duration>, least, most| {
            rtt.map_or(MAX_ACK_DELAY, |rtt| (rtt / 4).clamp(least, most))
        };
        match self.policy.delay {
            _ if self.is_early() => MAX_ACK_DELAY,
            DelayLimit::Fixed(delay) => delay,
            DelayLimit::QuarterRttMin { least, most } => quarter(self.rtt.least(), least, most),
            DelayLimit::QuarterRtt { least, most } => quarter(self.rtt.smoothed(), least, most),
        }
    }

    fn at_once(&self, disorder: &Disorder<'_>, full_segment: u64) -> bool {
        // A packet that directly follows the highest one is in order from QUIC's point of view.
        let out_of_order = disorder.range.start != disorder.highest_before;
        match self.policy.reordering {
            Reordering::Immediate | Reordering::Threshold(1) => out_of_order,
            Reordering::Threshold(0) => false,
            Reordering::FirstAboveGap(packets) => {
                let above = disorder.queue.last_len();
                let few = above > 0 && above <= u64::from(packets) * full_segment;
                few || disorder.range.start < self.acked.min(disorder.highest_before)
            }
            Reordering::Threshold(threshold) => {
                // Packet numbers n and m > n are (m - n) segments apart from start to start.
                let missing = disorder.queue.first_missing(self.reported.max(disorder.rcv_nxt));
                missing.is_some_and(|missing| {
                    disorder.highest() >= missing + u64::from(threshold + 1) * full_segment
                })
            }
        }
    }

    /// Everything received is acknowledged. Returns when to announce room.
    #[inline(never)]
    pub fn on_ack_sent(&mut self, full_segment: u64) -> AckDecision {
        if let PacketLimit::OnceBursts { burst, .. } = self.policy.packets {
            self.has_burst |= self.unacked > burst;
        }
        self.unacked = 0;
        self.due = None;
        self.acked = self.highest;
        if let Reordering::Threshold(threshold) = self.policy.reordering {
            // Packets this far below the largest acknowledged could be declared lost with this ACK.
            let below = u64::from(threshold.saturating_sub(1)) * full_segment;
            self.reported = self.reported.max(self.highest.saturating_sub(below));
        }
        if !core::mem::take(&mut self.is_due) {
            self.updates.iter_mut().for_each(Updates::read_all);
        }
        // More may arrive at this instant, and the ACK for it announces too.
        let is_update_due = self.updates.as_mut().is_some_and(Updates::on_ack_sent);
        if is_update_due { AckDecision::At(self.now) } else { AckDecision::Wait }
    }
}

impl Updates {
    /// `bytes` arrived in order. True if their room is to be announced when they are read.
    const fn on_bytes(&mut self, bytes: u64) -> bool {
        self.arrived += bytes;
        self.arrived - self.announced >= self.every
    }

    const fn read_all(&mut self) {
        self.read = self.arrived;
    }

    /// True if room is to be announced after that ACK.
    const fn on_ack_sent(&mut self) -> bool {
        if self.is_due() {
            self.announced = self.read;
        }
        self.read_all();
        self.is_due()
    }

    const fn is_due(&self) -> bool {
        self.read - self.announced >= self.every
    }
}

impl Window {
    fn count(&mut self, now: Instant, rtt: Option<Duration>) {
        self.arrived = self.arrived.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        if rtt.is_some_and(|rtt| now.saturating_since(since) >= rtt) {
            self.packets = self.arrived;
            self.arrived = 0;
            self.since = Some(now);
        }
    }
}
