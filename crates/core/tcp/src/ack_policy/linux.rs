//! Linux's receiver: aggregates (GRO), quick ACKs, an adaptive delay, compressed SACKs.

use super::policy::LinuxAcks;
use super::rtt::ReceiverRtt;
use super::{AckDecision, Disorder};
use tacit_packet::units::{Duration, Instant};

/// TCP_ATO_MIN and TCP_DELACK_MIN: 40 ms.
const ATO_MIN: Duration = Duration::from_millis(40);
/// TCP_DELACK_MAX.
const DELAY_MAX: Duration = Duration::from_millis(200);
/// TCP_RTO_MIN: with the round-trip time added, the pause after which a sender restarts its window.
const RTO_MIN: Duration = Duration::from_millis(200);
/// TCP_MAX_QUICKACKS.
const QUICK_ACKS: u32 = 16;
/// Largest aggregate: the size limit of an IP packet.
const MAX_AGGREGATE: u64 = 65_535;
/// Duplicate ACKs that are never compressed (TCP_FASTRETRANS_THRESH).
const UNCOMPRESSED: u32 = 3;
/// `tcp_comp_sack_nr`.
const MAX_COMPRESSED: u32 = 44;
/// `tcp_comp_sack_delay_ns`, and the fraction of the round-trip time that limits it.
const COMPRESSED_DELAY: Duration = Duration::from_millis(1);
const COMPRESSED_PART: u64 = 20;

#[derive(Clone, Debug, Default)]
pub(super) struct Linux {
    policy: LinuxAcks,
    sack: bool,
    pub rtt: ReceiverRtt,
    /// Bytes of the current aggregate, and when it is passed on.
    aggregate: u64,
    flush_at: Option<Instant>,
    /// Bytes that TCP has received in order and not acknowledged.
    unacked: u64,
    /// ACKs still to be sent without delay.
    quick: u32,
    /// Estimate of the time between segments (`icsk_ack.ato`).
    ato: Duration,
    last_arrival: Option<Instant>,
    delayed_until: Option<Instant>,
    /// Duplicate ACKs since RCV.NXT advanced, those held back since the last ACK, and until when.
    duplicates: u32,
    compressed: u32,
    compressed_until: Option<Instant>,
}

impl Linux {
    pub fn new(policy: LinuxAcks, sack: bool) -> Self {
        Self { policy, sack, quick: QUICK_ACKS, ato: ATO_MIN, ..Self::default() }
    }

    /// In order without gaps: the segment joins the aggregate, which ends if it is full or the segment is short, as in
    /// GRO.
    #[inline(never)]
    pub fn on_in_order(&mut self, bytes: u64, full_segment: u64, now: Instant) -> AckDecision {
        self.aggregate += bytes;
        if bytes < full_segment || self.aggregate + full_segment > MAX_AGGREGATE {
            return self.flush(full_segment, now);
        }
        if self.flush_at.is_some() {
            return AckDecision::Wait;
        }
        self.flush_at = Some(now + self.policy.gro_flush);
        self.next()
    }

    /// Passes the aggregate to TCP (`tcp_event_data_recv`, `__tcp_ack_snd_check`).
    fn flush(&mut self, full_segment: u64, now: Instant) -> AckDecision {
        self.flush_at = None;
        let bytes = core::mem::take(&mut self.aggregate);
        self.note_arrival(bytes, now);
        if self.must_answer(full_segment) {
            return AckDecision::Now;
        }
        let until = now + self.delay();
        self.delayed_until = Some(self.delayed_until.map_or(until, |before| before.min(until)));
        self.next()
    }

    fn note_arrival(&mut self, bytes: u64, now: Instant) {
        self.unacked += bytes;
        let Some(last) = self.last_arrival.replace(now) else { return };
        let apart = now.saturating_since(last);
        let rto = self.rtt.smoothed().unwrap_or(Duration::ZERO) + RTO_MIN;
        if apart <= ATO_MIN / 2 {
            self.ato = self.ato / 2 + ATO_MIN / 2;
        } else if apart < self.ato {
            self.ato = (self.ato / 2 + apart).min(rto);
        } else if apart > rto {
            // The sender paused and restarts slowly.
            self.quick = QUICK_ACKS;
        }
    }

    /// True with more than one full segment, or during quick ACKs.
    fn must_answer(&self, full_segment: u64) -> bool {
        self.unacked > full_segment || self.quick > 0
    }

    /// `tcp_send_delayed_ack`.
    fn delay(&self) -> Duration {
        let longest = self.rtt.smoothed().map_or(DELAY_MAX, |rtt| rtt.max(ATO_MIN));
        self.ato.min(longest).min(DELAY_MAX)
    }

    /// The earliest of the pending times.
    fn next(&self) -> AckDecision {
        let waits = [self.flush_at, self.delayed_until, self.compressed_until];
        waits.into_iter().flatten().min().map_or(AckDecision::Wait, AckDecision::At)
    }

    pub fn on_out_of_order(&mut self, disorder: &Disorder<'_>, full_segment: u64) -> AckDecision {
        let now = disorder.now;
        if self.aggregate > 0 {
            self.flush_at = None;
            let bytes = core::mem::take(&mut self.aggregate);
            self.note_arrival(bytes, now);
        }
        if disorder.is_in_order() {
            self.note_arrival(disorder.range.len(), now);
            self.duplicates = 0;
            if disorder.queue.is_empty() {
                // The last gap is filled (ICSK_ACK_NOW).
                return AckDecision::Now;
            }
        }
        if self.must_answer(full_segment) || !self.sack || self.compressed >= MAX_COMPRESSED {
            return AckDecision::Now;
        }
        if self.duplicates < UNCOMPRESSED {
            self.duplicates += 1;
            return AckDecision::Now;
        }
        self.compressed += 1;
        if self.compressed_until.is_none() {
            let part = self.rtt.smoothed().map_or(COMPRESSED_DELAY, |rtt| rtt / COMPRESSED_PART);
            self.compressed_until = Some(now + part.min(COMPRESSED_DELAY));
        }
        self.next()
    }

    /// Data was received twice: a retransmission was unnecessary, or an ACK was lost (`tcp_enter_quickack_mode`).
    pub fn on_duplicate(&mut self) {
        self.quick = QUICK_ACKS;
        self.ato = ATO_MIN;
    }

    /// The segment that arrives widened the offered window (`tcp_grow_window`).
    pub fn on_widened(&mut self) {
        self.quick = self.quick.max(1);
    }

    pub fn on_timer(&mut self, full_segment: u64, now: Instant) -> AckDecision {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.flush_at) && self.flush(full_segment, now) == AckDecision::Now {
            return AckDecision::Now;
        }
        if due(self.delayed_until) || due(self.compressed_until) { AckDecision::Now } else { self.next() }
    }

    /// An ACK was sent, which also covers the aggregate.
    #[inline(never)]
    pub fn on_ack_sent(&mut self) {
        if self.aggregate > 0 || self.unacked > 0 || self.compressed > 0 {
            self.quick = self.quick.saturating_sub(1);
        }
        self.aggregate = 0;
        self.flush_at = None;
        self.unacked = 0;
        self.delayed_until = None;
        self.compressed = 0;
        self.compressed_until = None;
    }
}
