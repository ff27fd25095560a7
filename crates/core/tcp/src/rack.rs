//! RACK (RFC 8985): a segment that was sent sufficiently long before one that has arrived is lost.
//!
//! [`Rack`] keeps the variables of section 5.3 and computes the tolerated reordering. The scoreboard walks through
//! segments (`sack/timed.rs`), and the sender has timers and probes (`sender/rack_tlp.rs`).

use tacit_packet::position::Position;
use tacit_packet::tcp::TIMESTAMP_TICK;
use tacit_packet::units::{Duration, Instant};

/// How a sender detects that a segment is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossDetection {
    /// By SACKed data above it, or by duplicate ACKs (RFC 6675; without SACK RFC 6582).
    #[default]
    DupAck,
    /// By its time of sending, with a probe if the last segments of a flight may be lost (RFC 8985). Without SACK a
    /// connection falls back to [`DupAck`](Self::DupAck).
    RackTlp,
}

/// "RACK persists using the inflated RACK.reo_wnd for up to 16 loss recoveries" (RFC 8985 section
/// 6.2 step 4).
const REO_WND_PERSIST: u32 = 16;

/// The reordering window starts with this fraction of the minimum round-trip time: a quarter (RFC 8985 section 6.2 step
/// 4).
const REO_WND_SHARE: u64 = 4;

/// A minimum remains valid for one to two of these periods. Linux keeps it for 300 s (tcp_min_rtt_wlen).
const MIN_RTT_EPOCH: Duration = Duration::from_secs(150);

/// "a windowed min-filtered estimate" of the round-trip time (RFC 8985 section 6.2 step 1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MinRtt {
    epoch_start: Instant,
    before: Option<Duration>,
    current: Option<Duration>,
}

impl MinRtt {
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        if now.saturating_since(self.epoch_start) >= MIN_RTT_EPOCH {
            self.epoch_start = now;
            self.before = self.current.take();
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
    }

    pub fn get(&self) -> Option<Duration> {
        self.before.into_iter().chain(self.current).min()
    }
}

/// A delivered segment, as the scoreboard knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    /// Segment.end_seq.
    pub end: Position,
    /// Segment.xmit_ts: when it was last sent.
    pub sent_at: Instant,
    /// Segment.retransmitted.
    pub resent: bool,
    /// Covered by SEG.ACK, not by a SACK block.
    pub cumulatively: bool,
}

/// A position in the order of transmissions: by time, and by sequence for equal times.
pub(crate) type SentOrder = (Instant, Position);

/// The variables of RFC 8985 section 5.3.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq.
    newest: Option<SentOrder>,
    /// RACK.rtt.
    pub rtt: Duration,
    /// RACK.min_RTT.
    pub min_rtt: MinRtt,
    /// RACK.fack, and its value before this ACK.
    fack: Position,
    fack_before: Position,
    /// RACK.reordering_seen.
    pub reordering_seen: bool,
    /// RACK.segs_sacked.
    pub segments_sacked: u64,
    /// RACK.dsack_round.
    dsack_round: Option<Position>,
    /// RACK.reo_wnd_mult.
    reo_wnd_mult: u64,
    /// RACK.reo_wnd_persist.
    reo_wnd_persist: u32,
    /// The current ACK: its time of arrival, the age of the segment that its timestamp echoes, and the newest segment
    /// it delivered.
    now: Instant,
    echoed: Option<Duration>,
    newest_of_ack: Option<SentOrder>,
}

impl Rack {
    /// For data from `una` on; `handshake` is the round-trip time of the handshake, if measured.
    pub fn new(una: Position, handshake: Option<Duration>, now: Instant) -> Self {
        let mut min_rtt = MinRtt::default();
        if let Some(rtt) = handshake {
            min_rtt.sample(now, rtt);
        }
        Self {
            rtt: handshake.unwrap_or(Duration::ZERO),
            min_rtt,
            fack: una,
            fack_before: una,
            reo_wnd_mult: 1,
            ..Self::default()
        }
    }

    /// An ACK arrived whose timestamp, if any, echoes a segment sent `echoed` ago.
    pub fn begin_ack(&mut self, now: Instant, echoed: Option<Duration>) {
        self.now = now;
        self.echoed = echoed;
        self.fack_before = self.fack;
        self.newest_of_ack = None;
    }

    /// Steps 2 and 3 of section 6.2 for one segment, in any order within an ACK.
    ///
    /// The echo is used only for segments covered by SEG.ACK. An ACK triggered by a segment above a gap echoes the last
    /// segment below it (RFC 7323 section 4.3); used for others, the RFC's own example of a lost retransmission
    /// (section 3.4) would never be detected.
    pub fn on_delivered(&mut self, segment: Delivered) {
        let rtt = self.now.saturating_since(segment.sent_at);
        self.fack = self.fack.max(segment.end);
        if segment.resent {
            let of_earlier_copy =
                segment.cumulatively && self.echoed.is_some_and(|echoed| echoed > rtt + TIMESTAMP_TICK);
            if of_earlier_copy || self.min_rtt.get().is_some_and(|least| rtt < least) {
                return;
            }
        } else {
            self.min_rtt.sample(self.now, rtt);
            self.reordering_seen |= segment.end < self.fack_before;
        }
        let order = Some((segment.sent_at, segment.end));
        if order > self.newest_of_ack {
            self.newest_of_ack = order;
            self.rtt = rtt;
        }
        self.newest = self.newest.max(order);
    }

    /// RACK_sent_after(RACK.xmit_ts, RACK.end_seq, ...): true if something sent later was delivered.
    pub fn overtook(&self, order: SentOrder) -> bool {
        self.newest.is_some_and(|newest| newest > order)
    }

    /// The current ACK reports a duplicate (RFC 2883): the reordering window grows, once per round trip.
    pub fn on_dsack(&mut self, snd_una: Position, snd_nxt: Position) {
        if self.dsack_round.is_none_or(|round| snd_una >= round) {
            self.dsack_round = Some(snd_nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
    }

    /// Fast recovery, or the recovery after a timeout, has ended.
    pub fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// RACK.reo_wnd (section 6.2 step 4). `repairing` is true in fast recovery and after a timeout.
    pub fn reordering_window(&self, repairing: bool, dup_thresh: u32, srtt: Option<Duration>) -> Duration {
        if !self.reordering_seen && (repairing || self.segments_sacked >= u64::from(dup_thresh)) {
            return Duration::ZERO;
        }
        let least = self.min_rtt.get().unwrap_or(Duration::ZERO);
        (least.saturating_mul(self.reo_wnd_mult) / REO_WND_SHARE).min(srtt.unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::position::at;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A RACK with a measured round-trip time of 80 ms.
    fn rack() -> Rack {
        let mut rack = Rack::new(at(0), None, Instant::ZERO);
        rack.begin_ack(Instant::ZERO + MS(80), None);
        rack.on_delivered(original(100, 0));
        rack
    }

    fn original(end: u64, sent_ms: u64) -> Delivered {
        Delivered { end: at(end), sent_at: Instant::ZERO + MS(sent_ms), resent: false, cumulatively: true }
    }

    #[test]
    fn the_window_is_a_quarter_of_the_smallest_round_trip_and_none_once_three_are_sacked() {
        let mut rack = rack();
        assert_eq!(rack.reordering_window(false, 3, None), MS(20));
        rack.segments_sacked = 3;
        assert_eq!(rack.reordering_window(false, 3, None), MS(0));
        assert_eq!(rack.reordering_window(true, 3, None), MS(0));
        // Once reordering was seen, neither matters.
        rack.reordering_seen = true;
        assert_eq!(rack.reordering_window(true, 3, None), MS(20));
    }

    #[test]
    fn each_round_with_a_dsack_widens_the_window_up_to_srtt_and_sixteen_recoveries_forget_it() {
        let mut rack = rack();
        rack.reordering_seen = true;
        rack.on_dsack(at(100), at(1000));
        rack.on_dsack(at(500), at(2000));
        assert_eq!(rack.reordering_window(true, 3, Some(MS(90))), MS(40), "the same round counts once");
        for round in 1..9 {
            rack.on_dsack(at(round * 1000), at(round * 1000 + 1000));
        }
        assert_eq!(rack.reordering_window(true, 3, Some(MS(90))), MS(90));
        for _ in 0..15 {
            rack.on_recovered();
        }
        assert_eq!(rack.reordering_window(true, 3, Some(MS(90))), MS(90));
        rack.on_recovered();
        assert_eq!(rack.reordering_window(true, 3, Some(MS(90))), MS(20));
    }

    #[test]
    fn segments_below_the_highest_delivered_were_reordered_but_not_within_one_ack() {
        let mut rack = rack();
        rack.begin_ack(Instant::ZERO + MS(90), None);
        rack.on_delivered(original(400, 10));
        rack.on_delivered(original(300, 9));
        assert!(!rack.reordering_seen);
        rack.begin_ack(Instant::ZERO + MS(91), None);
        rack.on_delivered(Delivered { resent: true, ..original(200, 8) });
        assert!(!rack.reordering_seen, "a copy may well come late");
        rack.on_delivered(original(250, 9));
        assert!(rack.reordering_seen);
    }

    #[test]
    fn an_ack_sooner_than_any_round_trip_is_for_the_first_copy() {
        let mut rack = rack();
        rack.begin_ack(Instant::ZERO + MS(200), None);
        rack.on_delivered(Delivered { resent: true, ..original(200, 150) });
        assert!(!rack.overtook((Instant::ZERO + MS(149), at(200))));
        rack.begin_ack(Instant::ZERO + MS(230), None);
        rack.on_delivered(Delivered { resent: true, ..original(300, 150) });
        assert!(rack.overtook((Instant::ZERO + MS(149), at(200))));
        assert_eq!(rack.rtt, MS(80));
    }

    #[test]
    fn an_echo_of_an_earlier_copy_moves_nothing() {
        let mut rack = rack();
        rack.begin_ack(Instant::ZERO + MS(300), Some(MS(200)));
        rack.on_delivered(Delivered { resent: true, ..original(200, 150) });
        assert!(!rack.overtook((Instant::ZERO + MS(149), at(200))));
    }

    #[test]
    fn an_old_minimum_is_forgotten_after_five_minutes_at_most() {
        let mut least = MinRtt::default();
        least.sample(Instant::ZERO, MS(10));
        for second in 1..150 {
            least.sample(Instant::ZERO + Duration::from_secs(second), MS(50));
        }
        assert_eq!(least.get(), Some(MS(10)));
        least.sample(Instant::ZERO + Duration::from_secs(151), MS(50));
        least.sample(Instant::ZERO + Duration::from_secs(301), MS(60));
        assert_eq!(least.get(), Some(MS(50)));
    }
}
