//! BBR version 1: draft-cardwell-iccrg-bbr-congestion-control-00, and where that is silent the
//! behaviour of Linux `tcp_bbr.c`, in bytes where Linux counts segments.

use super::super::control::{CongestionControl, Pause};
use super::super::window::Window;
use super::super::{Delivery, Start};
use super::aggregation::Aggregation;
use super::filter::MaxFilter;
use super::parts::{
    DRAIN_GAIN, FullPipe, HIGH_GAIN, MIN_SEGMENTS, Mode, PROBE_RTT_TIME, RTT_MIN_LIFETIME, Recovery, Rounds,
    UNIT, initial_pacing_rate, paced,
};
use super::policer::Policer;
use super::{Config, PolicerDetection};
use crate::congestion::chance::Chance;
use crate::congestion::pacing::Bursts;
use crate::units::{BitRate, Duration, Instant};

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
    window: Window,
    initial_window: u64,
    mode: Mode,
    pacing_rate: BitRate,
    pacing_gain: u64,
    cwnd_gain: u64,
    bandwidth: MaxFilter,
    aggregation: Aggregation,
    policer: Policer,
    policer_detection: PolicerDetection,
    /// BBR.RTprop, and when it was seen.
    rtt_min: Option<Duration>,
    rtt_min_at: Option<Instant>,
    has_rtt: bool,
    rounds: Rounds,
    /// How many have ended.
    round: u64,
    /// Where the gain cycle stands, and since when.
    phase: usize,
    phase_at: Instant,
    full: FullPipe,
    /// When the round-trip time has been probed enough, once the pipe is near empty.
    probe_rtt_done_at: Option<Instant>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    recovery: Recovery,
    chance: Chance,
}

impl Bbr {
    pub fn new(window: Window, config: Config, start: Start) -> Self {
        let initial_window = window.cwnd;
        Self {
            pacing_rate: initial_pacing_rate(initial_window, start.rtt),
            window,
            initial_window,
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            bandwidth: MaxFilter::new(FILTER_ROUNDS),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            policer_detection: config.policer,
            rtt_min: start.rtt,
            rtt_min_at: None,
            has_rtt: start.rtt.is_some(),
            rounds: Rounds::default(),
            round: 0,
            phase: 0,
            phase_at: Instant::ZERO,
            full: FullPipe::default(),
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            recovery: Recovery::default(),
            chance: Chance(start.seed),
        }
    }

    /// The rate believed in: the policer's, or the filter's.
    fn rate(&self) -> BitRate {
        self.policer.rate().unwrap_or(self.bandwidth.largest())
    }

    /// Until the pipe has been full the rate only grows: early samples are of a pipe that fills.
    fn set_pacing_rate(&mut self, rate: BitRate, gain: u64) {
        let rate = paced(rate, gain);
        if self.full.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Bytes in a burst of the pacer.
    fn burst(&self) -> u64 {
        Bursts::Segments.size(self.pacing_rate, self.window.mss)
    }

    fn save_cwnd(&mut self) {
        self.recovery.save(self.window.cwnd, self.mode == Mode::ProbeRtt);
    }

    fn min_cwnd(&self) -> u64 {
        MIN_SEGMENTS * self.window.mss
    }

    /// `gain` times the bandwidth-delay product, without room for bursts.
    fn product(&self, rate: BitRate, gain: u64) -> u64 {
        let Some(rtt_min) = self.rtt_min else { return self.initial_window };
        rate.amount_in(rtt_min).0.saturating_mul(gain) / UNIT
    }

    /// `gain` times the bandwidth-delay product, with room for what is on its way to the pacer, in it and behind it, so
    /// that a small product does not keep the pipe from being used (`bbr_quantization_budget`).
    fn target(&self, rate: BitRate, gain: u64) -> u64 {
        self.with_bursts(self.product(rate, gain))
    }

    fn with_bursts(&self, bytes: u64) -> u64 {
        let mss = self.window.mss;
        // Whole segments, and an even number: delayed ACKs come for two.
        let even = (bytes + 3 * self.burst()).div_ceil(2 * mss) * 2 * mss;
        let probing = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        even + if probing { 2 * mss } else { 0 }
    }

    /// Rounds, the bandwidth filter, and the policer.
    fn update_bandwidth(&mut self, delivery: &Delivery) {
        self.rounds.started = false;
        let sample = &delivery.sample;
        let Some(rate) = sample.rate() else { return };
        self.rounds.update(delivery);
        if self.rounds.started {
            self.round += 1;
            self.recovery.conserves = false;
        }
        if self.policer_detection == PolicerDetection::On {
            let probing = self.mode == Mode::ProbeBandwidth;
            if self.policer.update(delivery, self.rounds.started, probing) {
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
        if self.mode != Mode::ProbeBandwidth {
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
        self.mode = Mode::ProbeBandwidth;
        let choices = PACING_GAINS.len() as u32 - 1;
        let drawn = self.chance.draw(choices) as usize;
        self.phase = if drawn >= DRAINING { drawn + 1 } else { drawn };
        self.phase_at = now;
    }

    fn check_full(&mut self, delivery: &Delivery) {
        if self.rounds.started && !delivery.sample.app_limited {
            self.full.on_round(self.bandwidth.largest());
        }
    }

    fn check_drain(&mut self, delivery: &Delivery) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && delivery.in_flight <= self.target(self.bandwidth.largest(), UNIT) {
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
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(delivery);
        }
        if delivery.sample.newly_delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// 200 ms and one round with four segments in flight.
    fn probe_rtt(&mut self, delivery: &Delivery) {
        match self.probe_rtt_done_at {
            None if delivery.in_flight <= self.min_cwnd() => {
                self.probe_rtt_done_at = Some(delivery.now + PROBE_RTT_TIME);
                self.probe_rtt_round_done = false;
                self.rounds.begin(delivery);
            }
            None => {}
            Some(_) => {
                self.probe_rtt_round_done |= self.rounds.started;
                if self.probe_rtt_round_done {
                    self.finish_probe_rtt(delivery.now);
                }
            }
        }
    }

    fn finish_probe_rtt(&mut self, now: Instant) {
        if self.probe_rtt_done_at.is_none_or(|done| now <= done) {
            return;
        }
        self.rtt_min_at = Some(now);
        self.window.cwnd = self.window.cwnd.max(self.recovery.prior_cwnd);
        if self.full.reached {
            self.probe_bandwidth(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        let (pacing, cwnd) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            // The window stays what startup made it: only the rate falls.
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBandwidth => (PACING_GAINS[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
        self.pacing_gain = pacing;
        self.cwnd_gain = cwnd;
    }

    fn set_cwnd(&mut self, delivery: &Delivery) {
        let acked = delivery.sample.newly_delivered;
        if acked > 0 && !self.recover_or_restore(delivery) {
            let mut target = self.product(self.rate(), self.cwnd_gain);
            if self.full.reached {
                target += self.aggregation.allowance(self.rate());
            }
            let target = self.with_bursts(target);
            let cwnd = self.window.cwnd;
            if self.full.reached {
                self.window.cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || delivery.sample.delivered < self.initial_window {
                self.window.cwnd = cwnd + acked;
            }
            self.window.cwnd = self.window.cwnd.max(self.min_cwnd());
        }
        if self.mode == Mode::ProbeRtt {
            self.window.cwnd = self.window.cwnd.min(self.min_cwnd());
        }
    }

    /// True when recovery decides on the window.
    fn recover_or_restore(&mut self, delivery: &Delivery) -> bool {
        let Window { cwnd, mss, .. } = self.window;
        self.window.cwnd = self.recovery.window(delivery, cwnd, mss, &mut self.rounds);
        self.recovery.conserves
    }
}

impl CongestionControl for Bbr {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn wants_delivery(&self) -> bool {
        true
    }

    /// An ACK arrived: the model first, then rate and window.
    fn on_delivery(&mut self, delivery: &Delivery) {
        self.update_bandwidth(delivery);
        self.aggregation.update(
            delivery,
            self.rounds.started,
            self.rate(),
            self.window.cwnd,
            self.window.mss,
        );
        self.update_phase(delivery);
        self.check_full(delivery);
        self.check_drain(delivery);
        self.update_rtt_min(delivery);
        self.update_gains();
        if !self.has_rtt
            && let Some(rtt) = delivery.smoothed_rtt
        {
            self.has_rtt = true;
            self.pacing_rate = initial_pacing_rate(self.window.cwnd, Some(rtt));
        }
        let (rate, gain) = (self.rate(), self.pacing_gain);
        self.set_pacing_rate(rate, gain);
        self.set_cwnd(delivery);
    }

    /// Fast recovery begins. The window is decided on when the ACK that says so is through.
    fn on_loss(&mut self, _flight: u64) {
        self.save_cwnd();
    }

    /// What is outstanding is gone: one segment goes first, and what was learnt of the top speed is
    /// in doubt (`bbr_set_state`).
    fn on_timeout(&mut self, _now: Instant, _flight: u64) {
        self.save_cwnd();
        self.recovery.on_timeout();
        self.full.rate = BitRate::default();
        self.window.collapse();
    }

    /// Nothing had been lost: what looked like a full pipe or a policer was none (`bbr_undo_cwnd`). The
    /// window comes back with the end of recovery.
    fn on_undo(&mut self, _cwnd_before: u64) {
        self.full.rate = BitRate::default();
        self.full.rounds = 0;
        self.policer.reset();
    }

    /// Data follows a pause: at the estimated rate, not faster, for the pipe is empty and a burst would
    /// only queue (draft section 4.4.4).
    fn on_transmit_start(&mut self, now: Instant, pause: Pause) {
        if pause != Pause::Application {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth => self.set_pacing_rate(self.rate(), UNIT),
            Mode::ProbeRtt => self.finish_probe_rtt(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// What is sent now is less than the path carries, on purpose.
    fn holds_back(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// The pipe has not been full yet.
    fn in_start_up(&self) -> bool {
        !self.full.reached
    }

    fn state(&self) -> Option<&'static str> {
        Some(self.mode.name())
    }

    fn pacing_rate(&self, _smoothed_rtt: Option<Duration>, _in_flight: u64) -> Option<BitRate> {
        Some(self.pacing_rate)
    }
}

#[cfg(test)]
#[path = "v1_tests.rs"]
mod tests;
