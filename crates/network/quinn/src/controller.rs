//! The congestion window: the bytes that arrive in a round trip plus an ACK interval, and a small standing queue at the
//! bottleneck.
//!
//! quinn asks a controller for one number. It limits the bytes in flight to that window, and paces at 5/4 of it per
//! smoothed round-trip time (RFC 9002 section 7.7). TACK has two numbers, a rate and a limit twice as large, so its
//! rate determines how much queues; here the window does.

use std::any::Any;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerMetrics};
use quinn_proto::RttEstimator;

use crate::delivery::{Delivery, Sample, bytes_in, bytes_per_s};
use crate::windowed::WindowedMax;

/// RFC 9002 section 7.2: ten packets, and no more than 14,720 bytes where they are large.
const INITIAL_PACKETS: u64 = 10;
const INITIAL_BYTES_MAX: u64 = 14_720;

/// Minimum window, as in BBR (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.3.3), and after
/// persistent congestion (RFC 9002 section 7.6.2).
const WINDOW_PACKETS_MIN: u64 = 4;
const CONGESTED_PACKETS: u64 = 2;

/// quinn sends another packet while less than the window is in flight, and rounding may cost up to half an ACK's
/// packets.
const ROUNDING_PACKETS: u64 = 3;

/// Standing queue at the bottleneck, so that it never runs dry and an access point has packets to aggregate. This is
/// CoDel's target (RFC 8289 section 4.4), which no queue manager treats as congestion.
const STANDING_QUEUE: Duration = Duration::from_millis(5);

/// Largest gap between ACKs for which the window has room: the longest that the law lets a receiver wait.
const ACK_GAP_MAX: Duration = Duration::from_millis(100);

/// How long a minimum round-trip time is valid. After that, less is sent for one round trip, so that queueing delay is
/// not mistaken for the path's own delay (BBR's ProbeRTT, draft-cardwell-iccrg-bbr-congestion-control-00 section
/// 4.1.2.3).
const MIN_RTT_VALID: Duration = Duration::from_secs(10);
/// The round-trip time of one batch of ACKs is known when the next batch arrives.
const PROBE_RTT_BATCHES: u32 = 2;

/// How many sixteenths a probe adds to the window; they double while probes find more bandwidth.
const PROBE_SIXTEENTHS: u64 = 1;
const PROBE_SIXTEENTHS_MAX: u64 = 4;
/// Rounds between probes. With the two rounds of a probe and one to drain, a cycle has eight, as BBR's gain cycle.
const CRUISE_ROUNDS: u32 = 5;
/// Packets sent in the first round of a probe are acknowledged in the second.
const PROBE_ROUNDS: u32 = 2;

/// Startup ends after three rounds with less than 25 % growth (draft-cardwell-iccrg-bbr-congestion-control-00 section
/// 4.3.2.2).
const STARTUP_ROUNDS_WITHOUT_GROWTH: u32 = 3;

/// Startup also ends when a round has lost one packet in 50 and at least this number (BBRStartupFullLossCnt, the same
/// draft's section 4.3.1.3), if a queue stands: without one, the loss is noise.
const STARTUP_LOST_PACKETS: u64 = 6;

/// Loss that a full queue may explain: one packet in 50 of a round (BBRLossThresh of draft-ietf-ccwg-bbr section 2.5).
const LOSS_DIVISOR: u64 = 50;
/// Loss that noise cannot explain, such as that of a short queue hit by a whole window in a burst: one packet in eight.
const HEAVY_LOSS_DIVISOR: u64 = 8;
/// Number of steps in which the room for ACKs and the standing queue is restored, one per round, after rounds of heavy loss
/// have each halved it.
const ROOM_STEPS: u64 = 8;

const STARTUP: Phase = Phase::Startup { best_rate: 0, rounds_without_growth: 0 };

/// Phases of the search for bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The window grows by the acknowledged bytes until the rate stops growing.
    Startup { best_rate: u64, rounds_without_growth: u32 },
    /// The window is what arrives, plus a standing queue.
    Cruise { rounds: u32 },
    /// The window is larger by `sixteenths`, to see whether the rate rises above `rate_before`.
    Probe { sixteenths: u64, rate_before: u64, rounds: u32 },
    /// No standing queue: drains what a probe or a lossy round left in the queue.
    Drain,
    /// Half of the path's capacity, until packets sent after `since` are acknowledged. `since` is `None` until this few
    /// bytes are in flight.
    ProbeRtt { since: Option<Instant>, batches: u32, smallest: Option<Duration> },
}

/// Minimum round-trip time.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    value: Duration,
    seen: Instant,
}

/// The packets that one batch of ACKs acknowledges.
#[derive(Clone, Copy, Debug)]
struct Batch {
    oldest_sent: Instant,
    newest_sent: Instant,
    acked_bytes: u64,
}

/// Byte counts of a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The round ends when a packet is acknowledged that was sent after this number of bytes was delivered.
    ends_at_bytes: u64,
    acked_bytes: u64,
    lost_bytes: u64,
    /// The application had too little to send, so the rate is no measure of the path.
    app_limited: bool,
    /// A router signalled congestion (RFC 3168).
    marked: bool,
}

impl Round {
    /// Bytes in flight that will be lost while `arriving` bytes arrive, at the loss rate of this round.
    fn lost_of(&self, arriving: u64) -> u64 {
        let lost = u128::from(arriving) * u128::from(self.lost_bytes);
        let lost = lost.checked_div(self.acked_bytes.into()).unwrap_or(0);
        u64::try_from(lost).unwrap_or(u64::MAX).min(arriving / HEAVY_LOSS_DIVISOR)
    }

    /// True if more than one in `divisor` is lost. A single packet lost in a short round does not count as a loss rate.
    fn has_lost_one_in(&self, divisor: u64, mtu: u64) -> bool {
        let all = self.acked_bytes.saturating_add(self.lost_bytes);
        self.lost_bytes > mtu && self.lost_bytes > all / divisor
    }
}

/// State of the controller for one path.
#[derive(Clone, Debug)]
pub(crate) struct TackController {
    mtu: u64,
    window: u64,
    phase: Phase,
    delivery: Delivery,
    /// Delivery rate in bytes per second.
    rate: WindowedMax<u64>,
    /// The same of the last round.
    last_rate: u64,
    /// Time from the earliest possible arrival of an ACK to its actual arrival.
    ack_gap: WindowedMax<Duration>,
    min_rtt: Option<MinRtt>,
    last_ack: Option<Instant>,
    batch: Option<Batch>,
    round: Round,
    rounds: u64,
    last_round: Round,
    /// Remaining room, in units of 1/[`ROOM_STEPS`].
    room_steps: u64,
    /// The round-trip time that quinn paces by.
    smoothed_rtt: Option<Duration>,
    /// The path ran half empty, and has not been filled since.
    is_refilling: bool,
    /// This window counts, and not another controller's.
    leads: bool,
}

impl TackController {
    pub(crate) fn new(mtu: u16) -> Self {
        let mut controller = Self {
            mtu: mtu.into(),
            window: 0,
            phase: STARTUP,
            delivery: Delivery::default(),
            rate: WindowedMax::new(),
            last_rate: 0,
            ack_gap: WindowedMax::new(),
            min_rtt: None,
            last_ack: None,
            batch: None,
            round: Round::default(),
            rounds: 0,
            last_round: Round::default(),
            room_steps: ROOM_STEPS,
            smoothed_rtt: None,
            is_refilling: false,
            leads: true,
        };
        controller.window = controller.initial_window();
        controller
    }

    /// Whether this window counts.
    pub(crate) const fn lead(&mut self, leads: bool) {
        self.leads = leads;
    }

    /// A queue stands, be it a short one.
    pub(crate) fn has_queue(&self) -> bool {
        let half_rtt = self.min_rtt.map_or(Duration::ZERO, |min| min.value / 2);
        self.is_queue_standing(STANDING_QUEUE.min(half_rtt))
    }

    /// Rounds so far.
    pub(crate) const fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Bytes of the last round that were acknowledged, and lost.
    pub(crate) const fn last_round_bytes(&self) -> (u64, u64) {
        (self.last_round.acked_bytes, self.last_round.lost_bytes)
    }

    pub(crate) const fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Startup { .. })
    }

    /// The path runs short of data: the last round delivered less than five eighths of what a round before did, and no queue
    /// stands. CUBIC's window after a loss is seven tenths (RFC 9438 section 4.6), and that of a single overflow is no reason.
    pub(crate) fn has_slowed(&self) -> bool {
        !self.last_round.app_limited
            && self.last_rate < self.rate.max() / 8 * 5
            && !self.is_queue_standing(STANDING_QUEUE)
    }

    /// Handles the acknowledgment of one packet.
    pub(crate) fn acked(&mut self, sent: Instant, bytes: u64, app_limited: bool) {
        self.delivery.on_acked(bytes);
        self.round.acked_bytes += bytes;
        self.round.app_limited |= app_limited;
        let batch = self.batch.get_or_insert(Batch { oldest_sent: sent, newest_sent: sent, acked_bytes: 0 });
        batch.oldest_sent = batch.oldest_sent.min(sent);
        batch.newest_sent = batch.newest_sent.max(sent);
        batch.acked_bytes += bytes;
        if matches!(self.phase, Phase::Startup { .. }) && !app_limited {
            // Slow start (RFC 9002 section 7.3.1).
            self.window = self.window.saturating_add(bytes);
        }
    }

    /// Ends the batch of acknowledgments that arrived at `now`.
    pub(crate) fn end_acks(&mut self, now: Instant, in_flight: u64) {
        let Some(batch) = self.batch.take() else { return };
        self.measure_gap(now, batch);
        let sample = self.delivery.on_end_acks(now, batch.newest_sent, in_flight);
        if let Some(sample) = sample {
            self.measure_rate(sample);
        }
        self.probe_rtt(now, batch.newest_sent, in_flight);
        if sample.is_some_and(|sample| sample.delivered_before_bytes >= self.round.ends_at_bytes) {
            self.end_round();
        }
        self.last_ack = Some(now);
        self.look_for_refill(in_flight.saturating_add(batch.acked_bytes));
        self.set_window();
    }

    /// A path runs half empty where flow control stops the sender, as it does behind a lost packet, and is full again at a
    /// whole window: `filled_bytes` were in flight before these ACKs.
    fn look_for_refill(&mut self, filled_bytes: u64) {
        self.is_refilling = if self.is_refilling {
            filled_bytes.saturating_add(ROUNDING_PACKETS * self.mtu) < self.window
        } else {
            filled_bytes < self.window / 2
        };
    }

    /// An ACK's delay is at most the time since the previous ACK, and at most the time since its oldest packet could be
    /// acknowledged. Few packets wait longer for their ACK than many do, and those of a handshake wait for its keys.
    fn measure_gap(&mut self, now: Instant, batch: Batch) {
        let app_limited = self.round.app_limited || self.last_round.app_limited;
        let Some(min_rtt) = self.min_rtt.filter(|_| !app_limited) else { return };
        let possible = batch.oldest_sent + min_rtt.value;
        let from = self.last_ack.map_or(possible, |last| last.max(possible));
        self.ack_gap.add(now.saturating_duration_since(from).min(ACK_GAP_MAX));
    }

    fn measure_rate(&mut self, sample: Sample) {
        let Some(rate) = sample.rate else { return };
        // Over less than a round trip, the rate depends on the spacing of ACKs, not on the path.
        if self.min_rtt.is_some_and(|min| sample.interval < min.value) {
            return;
        }
        self.rate.add(rate);
    }

    /// Records a round-trip time without the delay of its ACK.
    pub(crate) fn measure_rtt(&mut self, now: Instant, rtt: Duration) {
        if self.min_rtt.is_none_or(|min| rtt <= min.value) {
            self.min_rtt = Some(MinRtt { value: rtt, seen: now });
        }
        if let Phase::ProbeRtt { since: Some(_), smallest, .. } = &mut self.phase {
            *smallest = Some(smallest.map_or(rtt, |before| before.min(rtt)));
        }
    }

    /// Sends little for a round trip when the minimum round-trip time is too old.
    fn probe_rtt(&mut self, now: Instant, acked_sent: Instant, in_flight: u64) {
        let Some(min_rtt) = self.min_rtt else { return };
        match &mut self.phase {
            Phase::Startup { .. } => {}
            Phase::ProbeRtt { since: since @ None, .. } if in_flight <= self.window => *since = Some(now),
            Phase::ProbeRtt { since: Some(since), batches, smallest } if acked_sent >= *since => {
                *batches += 1;
                if *batches >= PROBE_RTT_BATCHES {
                    let value = smallest.unwrap_or(min_rtt.value);
                    self.min_rtt = Some(MinRtt { value, seen: now });
                    self.phase = Phase::Cruise { rounds: 0 };
                }
            }
            Phase::ProbeRtt { .. } => {}
            _ if self.leads && now.saturating_duration_since(min_rtt.seen) > MIN_RTT_VALID => {
                self.phase = Phase::ProbeRtt { since: None, batches: 0, smallest: None };
            }
            _ => {}
        }
    }

    fn end_round(&mut self) {
        let round = self.round;
        let rate = self.rate.max();
        let is_heavy = round.has_lost_one_in(HEAVY_LOSS_DIVISOR, self.mtu);
        let is_lossy = round.marked || round.has_lost_one_in(LOSS_DIVISOR, self.mtu);
        self.room_steps = if is_heavy { self.room_steps / 2 } else { ROOM_STEPS.min(self.room_steps + 1) };
        if is_lossy {
            // Rates measured before the queue was full are no longer reached, and it has no room for gaps of before.
            self.rate.forget_older_rounds();
            self.ack_gap.forget_older_rounds();
        }
        self.phase = match self.phase {
            Phase::ProbeRtt { .. } => self.phase,
            Phase::Startup { .. } if is_heavy || self.has_filled_queue() => Phase::Drain,
            phase @ Phase::Startup { .. } if round.app_limited => phase,
            Phase::Startup { best_rate, rounds_without_growth } => {
                if rate >= best_rate.saturating_add(best_rate / 4) {
                    Phase::Startup { best_rate: rate, rounds_without_growth: 0 }
                } else if rounds_without_growth + 1 < STARTUP_ROUNDS_WITHOUT_GROWTH {
                    Phase::Startup { best_rate, rounds_without_growth: rounds_without_growth + 1 }
                } else {
                    Phase::Drain
                }
            }
            Phase::Drain if !round.marked => Phase::Cruise { rounds: 0 },
            _ if is_lossy => Phase::Drain,
            Phase::Drain => Phase::Cruise { rounds: 0 },
            Phase::Cruise { rounds } if rounds + 1 < CRUISE_ROUNDS || round.app_limited => {
                Phase::Cruise { rounds: rounds.saturating_add(1) }
            }
            Phase::Cruise { .. } => {
                Phase::Probe { sixteenths: PROBE_SIXTEENTHS, rate_before: rate, rounds: 0 }
            }
            Phase::Probe { sixteenths, rate_before, rounds } if rounds + 1 < PROBE_ROUNDS => {
                Phase::Probe { sixteenths, rate_before, rounds: rounds + 1 }
            }
            Phase::Probe { sixteenths, rate_before, .. } => self.judge_probe(sixteenths, rate_before),
        };
        if !round.app_limited {
            self.last_rate = self.rate.of_this_round();
            self.rate.next_round();
        }
        // Rounds of an application that sends too little have no gaps; where they are lossy, a gap of before them may be why.
        if !round.app_limited || is_lossy {
            self.ack_gap.next_round();
        }
        self.rounds += 1;
        self.last_round = round;
        self.round = Round { ends_at_bytes: self.delivery.delivered_bytes(), ..Round::default() };
    }

    /// This round's losses are those of a full queue: many where a queue stands, or any where that queue holds at least half
    /// of what the path does.
    fn has_filled_queue(&self) -> bool {
        let is_much = self.round.has_lost_one_in(LOSS_DIVISOR, self.mtu)
            && self.round.lost_bytes >= STARTUP_LOST_PACKETS * self.mtu;
        let half_rtt = self.min_rtt.map_or(Duration::ZERO, |min| min.value / 2);
        (is_much && self.is_queue_standing(STANDING_QUEUE))
            || (self.round.lost_bytes > 0 && self.is_queue_standing(half_rtt))
    }

    /// Round trips are longer than the path by `delay` or more. False while they are not known.
    fn is_queue_standing(&self, delay: Duration) -> bool {
        let rtts = self.smoothed_rtt.zip(self.min_rtt);
        rtts.is_some_and(|(smoothed, min)| smoothed >= min.value + delay)
    }

    /// A probe succeeds if more than half of the added bytes arrived.
    fn judge_probe(&self, sixteenths: u64, rate_before: u64) -> Phase {
        let found = self.rate.of_this_round();
        if found >= rate_before.saturating_add(rate_before / 32 * sixteenths) {
            let sixteenths = (sixteenths * 2).min(PROBE_SIXTEENTHS_MAX);
            Phase::Probe { sixteenths, rate_before: found, rounds: 0 }
        } else {
            Phase::Drain
        }
    }

    fn set_window(&mut self) {
        let (rate, Some(min_rtt)) = (self.rate.max(), self.min_rtt) else { return };
        if rate == 0 {
            return;
        }
        let in_round_trip = bytes_in(rate, min_rtt.value);
        let between_acks = bytes_in(rate, self.ack_gap.max()) / ROOM_STEPS * self.room_steps;
        let arriving = in_round_trip.saturating_add(between_acks);
        let arriving = arriving.saturating_add(self.last_round.lost_of(arriving));
        let queue = bytes_in(rate, STANDING_QUEUE) / ROOM_STEPS * self.room_steps;
        let with_queue = arriving.saturating_add(queue);
        let rounding = ROUNDING_PACKETS * self.mtu;
        let smallest = WINDOW_PACKETS_MIN * self.mtu;
        self.window = match self.phase {
            // Slow start as quinn's own: while the rate grows, its samples lag behind the window.
            Phase::Startup { rounds_without_growth: 0, .. } => self.window,
            // Twice the delivery rate is enough to detect a doubled rate.
            Phase::Startup { .. } => self.window.min(with_queue.saturating_mul(2).max(self.initial_window())),
            Phase::Cruise { .. } => with_queue.saturating_add(rounding).max(smallest),
            Phase::Probe { sixteenths, .. } => {
                with_queue.saturating_add(with_queue / 16 * sixteenths).saturating_add(rounding).max(smallest)
            }
            Phase::Drain => arriving.saturating_add(rounding).max(smallest),
            Phase::ProbeRtt { .. } => (in_round_trip / 2).max(smallest),
        };
        // quinn paces at 5/4 of the window: a larger one would refill the path faster than data arrive, into queues that may be
        // shorter than the difference.
        if self.is_refilling && self.room_steps < ROOM_STEPS && !matches!(self.phase, Phase::Startup { .. }) {
            self.window = self.window.min((in_round_trip / 5 * 4).max(smallest));
        }
    }

    /// Handles lost packets, or ECN marks if `lost_bytes` is 0.
    pub(crate) fn congestion(&mut self, is_persistent: bool, lost_bytes: u64) {
        if is_persistent {
            // After persistent congestion, nothing is known about the path.
            self.window = CONGESTED_PACKETS * self.mtu;
            self.phase = STARTUP;
            self.rate = WindowedMax::new();
            self.ack_gap = WindowedMax::new();
            self.min_rtt = None;
            self.round = Round { ends_at_bytes: self.delivery.delivered_bytes(), ..Round::default() };
            return;
        }
        self.round.lost_bytes = self.round.lost_bytes.saturating_add(lost_bytes);
        self.round.marked |= lost_bytes == 0;
        if matches!(self.phase, Phase::Startup { .. }) && self.has_filled_queue() {
            self.phase = Phase::Drain;
            self.set_window();
        }
    }
}

/// The sample that changed the smoothed round-trip time from `before` to `smoothed`. quinn subtracts the ACK delay that
/// the peer reports, but exposes only the smoothed value: 7/8 of the old value plus 1/8 of the sample (RFC 9002 section
/// 5.3). No sample is below `min`, and the first sample equals it.
fn last_sample(before: Duration, smoothed: Duration, min: Duration) -> Option<Duration> {
    (smoothed != before).then(|| (smoothed * 8).saturating_sub(before * 7).max(min))
}

impl Controller for TackController {
    fn on_sent(&mut self, now: Instant, _bytes: u64, _last_packet_number: u64) {
        self.delivery.on_sent(now);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let before = self.smoothed_rtt.replace(rtt.get());
        if let Some(sample) = before.and_then(|before| last_sample(before, rtt.get(), rtt.min())) {
            self.measure_rtt(now, sample);
        }
        self.acked(sent, bytes, app_limited);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.end_acks(now, in_flight);
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.congestion(is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        self.window = self.window.max(CONGESTED_PACKETS * self.mtu);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        // Pacing rate that quinn derives from the window (RFC 9002 section 7.7), in bits per second.
        metrics.pacing_rate = self
            .smoothed_rtt
            .and_then(|rtt| bytes_per_s(self.window, rtt))
            .map(|rate| rate.saturating_mul(10));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        // RFC 9002 section 7.2.
        INITIAL_BYTES_MAX.clamp(2 * self.mtu, INITIAL_PACKETS * self.mtu)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
