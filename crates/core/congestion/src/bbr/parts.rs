//! Parts that the versions of BBR have in common: gains, rounds, the end of startup, recovery by conservation of packets.

use super::super::{Delivery, Repair};
use tacit_packet::units::{BitRate, Bytes, Duration};

/// Gains are in 256ths.
pub(super) const UNIT: u64 = 256;
/// 2/ln 2 = 2.885: the smallest gain that lets the rate double each round
/// (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.1).
pub(super) const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse: drains the queue of startup in one round.
pub(super) const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// How long a smallest round-trip time is believed.
pub(super) const RTT_MIN_LIFETIME: Duration = Duration::from_secs(10);
/// How long the pipe is kept short of data to measure it again.
pub(super) const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Least window in segments, also while probing for the round-trip time.
pub(super) const MIN_SEGMENTS: u64 = 4;
/// Paced one per cent below the estimate, lest the queue at the bottleneck drift upwards
/// (`bbr_pacing_margin_percent`).
pub(super) const MARGIN_PERCENT: u64 = 99;
/// Round-trip time taken before the first is known (draft section 4.2.1).
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Startup ends after three rounds in which the rate grew by less than a quarter.
const FULL_GROWTH: u64 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;

pub(super) fn scaled(rate: BitRate, gain: u64) -> BitRate {
    BitRate::from_bps(rate.as_bps().saturating_mul(gain) / UNIT)
}

/// `rate` times `gain`, less the margin.
pub(super) fn paced(rate: BitRate, gain: u64) -> BitRate {
    BitRate::from_bps(scaled(rate, gain).as_bps() / 100 * MARGIN_PERCENT)
}

/// Rate at the start of startup: a window of `cwnd` bytes per `rtt`, times the high gain.
pub(super) fn initial_pacing_rate(cwnd: u64, rtt: Option<Duration>) -> BitRate {
    window_rate(cwnd, rtt, HIGH_GAIN)
}

/// A window of `cwnd` bytes per `rtt`, times `gain`, less the margin.
pub(super) fn window_rate(cwnd: u64, rtt: Option<Duration>, gain: u64) -> BitRate {
    let rtt = rtt.filter(|rtt| rtt.as_nanos() > 0).unwrap_or(NOMINAL_RTT);
    let rate = BitRate::from_amount(Bytes(cwnd), rtt).unwrap_or_default();
    scaled(rate, gain * MARGIN_PERCENT / 100)
}

/// State of a sender (draft section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

impl Mode {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeBandwidth => "probe bandwidth",
            Self::ProbeRtt => "probe RTT",
        }
    }
}

/// Rounds: one ends when data sent after the last ended is delivered.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    next_delivered: u64,
    /// The last delivery ended one.
    pub started: bool,
}

impl Rounds {
    /// Counts a delivery.
    pub fn update(&mut self, delivery: &Delivery) {
        self.started = delivery.sample.prior_delivered >= self.next_delivered;
        if self.started {
            self.begin(delivery);
        }
    }

    /// A round begins now, whether the last one is over or not.
    pub fn begin(&mut self, delivery: &Delivery) {
        self.begin_at(delivery.sample.delivered);
    }

    /// A round begins when `delivered` bytes have been delivered.
    pub fn begin_at(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }
}

/// Whether the pipe has been full: BBR.full_bw and its companions.
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// The rate that has to be outgrown.
    pub rate: BitRate,
    /// Rounds without growth.
    pub rounds: u32,
    /// It has.
    pub reached: bool,
}

impl FullPipe {
    /// A round that the application did not limit ended with `largest` as the estimate. Three rounds without growth:
    /// the pipe is full.
    pub fn on_round(&mut self, largest: BitRate) {
        if self.reached {
            return;
        }
        if largest >= scaled(self.rate, FULL_GROWTH) {
            self.rate = largest;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_ROUNDS;
    }
}

/// Version 1's answer to losses: the first round of a recovery sends as much as left the network, and with the end of it the
/// window returns to its former size.
#[derive(Clone, Debug, Default)]
pub(super) struct Recovery {
    repair: Repair,
    /// One packet goes for each that left.
    pub conserves: bool,
    /// The window before recovery or the probing of the round-trip time.
    pub prior_cwnd: u64,
}

impl Recovery {
    /// Remembers the window `cwnd`; while the window is already cut, the larger of this and the one remembered.
    pub fn save(&mut self, cwnd: u64, is_cut: bool) {
        let fresh = self.repair == Repair::None && !is_cut;
        self.prior_cwnd = if fresh { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// All outstanding data is gone.
    pub fn on_timeout(&mut self) {
        self.repair = Repair::Timeout;
        self.conserves = false;
    }

    /// Notes the state of repair after `delivery`. True if a repair ended with it.
    pub fn ends(&mut self, delivery: &Delivery) -> bool {
        let before = core::mem::replace(&mut self.repair, delivery.repair);
        before != Repair::None && delivery.repair == Repair::None
    }

    /// The window after `delivery`, `cwnd` before it. Whether that decides it is [`Self::conserves`].
    pub fn window(&mut self, delivery: &Delivery, cwnd: u64, mss: u64, rounds: &mut Rounds) -> u64 {
        let held = delivery.in_flight + delivery.sample.newly_delivered;
        let mut cwnd = cwnd;
        if delivery.lost > 0 {
            cwnd = cwnd.saturating_sub(delivery.lost).max(mss);
        }
        let before = core::mem::replace(&mut self.repair, delivery.repair);
        match (before, delivery.repair) {
            (Repair::None | Repair::Timeout, Repair::Fast) => {
                self.conserves = true;
                // The round of conservation starts now.
                rounds.begin(delivery);
                cwnd = held;
            }
            (Repair::Fast | Repair::Timeout, Repair::None) => {
                cwnd = cwnd.max(self.prior_cwnd);
                self.conserves = false;
            }
            _ => {}
        }
        if self.conserves { cwnd.max(held) } else { cwnd }
    }
}
