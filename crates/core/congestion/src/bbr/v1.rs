//! BBR version 1: draft-cardwell-iccrg-bbr-congestion-control-00, and where that is silent the
//! behaviour of Linux `tcp_bbr.c`, in bytes where Linux counts segments.

use super::super::window::Window;
use super::super::{Delivery, Start};
use super::common::{Common, Version};
use super::filter::MaxFilter;
use super::parts::{DRAIN_GAIN, HIGH_GAIN, Mode, RTT_MIN_LIFETIME, UNIT, paced};
use super::policer::Policer;
use super::{Config, PolicerDetection};
use tacit_packet::units::{BitRate, Duration, Instant};

/// "BBR.BtlBwFilterLen ... 10 packet-timed round trips" (draft section 4.1.1.4).
const FILTER_ROUNDS: usize = 10;
/// The window is twice the bandwidth-delay product: ACKs may be late by one.
const CWND_GAIN: u64 = 2 * UNIT;
/// Pacing gains while probing for bandwidth, one phase per smallest round-trip time.
const PACING_GAINS: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The phase that drains, with which a cycle never starts.
const DRAINING: usize = 1;

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    common: Common,
    pacing_gain: u64,
    cwnd_gain: u64,
    bandwidth: MaxFilter,
    policer: Policer,
    policer_detection: PolicerDetection,
    /// BBR.RTprop, and when it was seen.
    rtt_min: Option<Duration>,
    rtt_min_at: Option<Instant>,
    /// How many have ended.
    round: u64,
    /// Where the gain cycle stands, and since when.
    phase: usize,
    phase_at: Instant,
}

impl Bbr {
    pub fn new(window: Window, config: Config, start: Start) -> Self {
        Self {
            common: Common::new(window, start),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            bandwidth: MaxFilter::new(FILTER_ROUNDS),
            policer: Policer::default(),
            policer_detection: config.policer,
            rtt_min: start.rtt,
            rtt_min_at: None,
            round: 0,
            phase: 0,
            phase_at: Instant::ZERO,
        }
    }

    /// `gain` times the bandwidth-delay product, without room for bursts.
    fn product(&self, rate: BitRate, gain: u64) -> u64 {
        self.common.product(rate, self.rtt_min, gain)
    }

    /// `gain` times the bandwidth-delay product, with room for data on its way to the pacer, in it and behind it, so that a
    /// small product does not keep the pipe from being used (`bbr_quantization_budget`).
    fn target(&self, rate: BitRate, gain: u64) -> u64 {
        self.with_bursts(self.product(rate, gain))
    }

    fn with_bursts(&self, bytes: u64) -> u64 {
        let mss = self.common.window.mss;
        // Whole segments, and an even number: delayed ACKs come for two.
        let even = (bytes + 3 * self.common.burst()).div_ceil(2 * mss) * 2 * mss;
        let probing = self.common.mode == Mode::ProbeBandwidth && self.phase == 0;
        even + if probing { 2 * mss } else { 0 }
    }

    /// Rounds, the bandwidth filter, and the policer.
    fn update_bandwidth(&mut self, delivery: &Delivery) {
        self.common.rounds.started = false;
        let sample = &delivery.sample;
        let Some(rate) = sample.rate() else { return };
        self.common.rounds.update(delivery);
        if self.common.rounds.started {
            self.round += 1;
            self.common.recovery.conserves = false;
        }
        if self.policer_detection == PolicerDetection::On {
            let probing = self.common.mode == Mode::ProbeBandwidth;
            if self.policer.update(delivery, self.common.rounds.started, probing) {
                self.probe_bandwidth(delivery.now);
            }
        }
        // A sample the application limited says "at least this much".
        if !sample.app_limited || rate >= self.bandwidth.largest() {
            self.bandwidth.update(self.round, rate);
        }
    }

    /// The gain cycle. The high phase lasts until it filled the pipe to its gain or lost something,
    /// the low one until the queue is gone, and a round-trip time otherwise.
    fn update_phase(&mut self, delivery: &Delivery) {
        if self.common.mode != Mode::ProbeBandwidth {
            return;
        }
        let lasted = delivery.now.saturating_since(self.phase_at);
        let long_enough = self.rtt_min.is_some_and(|rtt_min| lasted > rtt_min);
        let rate = self.bandwidth.largest();
        let in_flight = delivery.prior_in_flight;
        let over = if self.pacing_gain > UNIT {
            long_enough && (delivery.lost > 0 || in_flight >= self.target(rate, self.pacing_gain))
        } else if self.pacing_gain < UNIT {
            long_enough || in_flight <= self.target(rate, UNIT)
        } else {
            long_enough
        };
        if over {
            self.next_phase(delivery.now);
        }
    }

    fn next_phase(&mut self, now: Instant) {
        self.phase = (self.phase + 1) % PACING_GAINS.len();
        self.phase_at = now;
    }

    /// Starts the cycle in any phase but the draining one, so that flows that start together do not
    /// probe together (draft section 4.3.4.2).
    fn probe_bandwidth(&mut self, now: Instant) {
        self.common.mode = Mode::ProbeBandwidth;
        let choices = PACING_GAINS.len() as u32 - 1;
        let drawn = self.common.chance.draw(choices) as usize;
        self.phase = if drawn >= DRAINING { drawn + 1 } else { drawn };
        self.phase_at = now;
    }

    fn check_full(&mut self, delivery: &Delivery) {
        if self.common.rounds.started && !delivery.sample.app_limited {
            self.common.full.on_round(self.bandwidth.largest());
        }
    }

    fn check_drain(&mut self, delivery: &Delivery) {
        self.common.ends_startup();
        if self.common.mode == Mode::Drain
            && delivery.in_flight <= self.target(self.bandwidth.largest(), UNIT)
        {
            self.probe_bandwidth(delivery.now);
        }
    }

    /// The smallest round-trip time, and the probing for it when it has not been seen for ten seconds.
    fn update_rtt_min(&mut self, delivery: &Delivery) {
        let now = delivery.now;
        let seen_at = *self.rtt_min_at.get_or_insert(now);
        let expired = now.saturating_since(seen_at) > RTT_MIN_LIFETIME;
        if let Some(rtt) = delivery.sample.rtt
            && (expired || self.rtt_min.is_none_or(|least| rtt <= least))
        {
            self.rtt_min = Some(rtt);
            self.rtt_min_at = Some(now);
        }
        if expired && !self.common.idle_restart && self.common.mode != Mode::ProbeRtt {
            self.common.begin_probe_rtt();
        }
        if self.common.mode == Mode::ProbeRtt && self.common.has_probed_rtt(delivery, self.common.min_cwnd())
        {
            self.finish_probe_rtt(delivery.now);
        }
        self.common.note_restarted(delivery);
    }

    fn update_gains(&mut self) {
        let (pacing, cwnd) = match self.common.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            // The window stays that of startup: only the rate falls.
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBandwidth => (PACING_GAINS[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
        self.pacing_gain = pacing;
        self.cwnd_gain = cwnd;
    }

    fn set_cwnd(&mut self, delivery: &Delivery) {
        if delivery.sample.newly_delivered > 0 && !self.common.recover(delivery) {
            let mut target = self.product(self.rate(), self.cwnd_gain);
            if self.common.full.reached {
                target += self.common.aggregation.allowance(self.rate());
            }
            self.common.grow(delivery, self.with_bursts(target));
        }
        if self.common.mode == Mode::ProbeRtt {
            self.common.window.cwnd = self.common.window.cwnd.min(self.common.min_cwnd());
        }
    }
}

impl Version for Bbr {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    /// The rate believed in: the policer's, or the filter's.
    fn rate(&self) -> BitRate {
        self.policer.rate().unwrap_or(self.bandwidth.largest())
    }

    fn finish_probe_rtt(&mut self, now: Instant) {
        if !self.common.probe_rtt_lasted(now) {
            return;
        }
        self.rtt_min_at = Some(now);
        if self.common.end_probe_rtt() {
            self.probe_bandwidth(now);
        }
    }

    fn update(&mut self, delivery: &Delivery) {
        self.update_bandwidth(delivery);
        self.common.update_aggregation(delivery, self.rate());
        self.update_phase(delivery);
        self.check_full(delivery);
        self.check_drain(delivery);
        self.update_rtt_min(delivery);
        self.update_gains();
        self.common.update_first_rtt(delivery);
        self.common.set_pacing_rate(paced(self.rate(), self.pacing_gain));
        self.set_cwnd(delivery);
    }

    /// The top speed learnt so far is in doubt (`bbr_set_state`).
    fn note_timeout(&mut self) {
        self.common.full.rate = BitRate::default();
    }

    /// The seeming full pipe or policer was none (`bbr_undo_cwnd`). The window comes back with the end of recovery.
    fn note_undo(&mut self) {
        self.common.full.rate = BitRate::default();
        self.common.full.rounds = 0;
        self.policer.reset();
    }
}

#[cfg(test)]
#[path = "v1_tests.rs"]
mod tests;
