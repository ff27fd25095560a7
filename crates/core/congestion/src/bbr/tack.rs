//! The co-designed, receiver-based BBR of TACK: the successor paper (IEEE/ACM ToN 29(6), 2021) section VI-D, and where
//! that is silent version 1.
//!
//! The receiver measures the rate, the sender the round-trip time, and time is counted in TACK intervals. A round trip
//! has beta. Departures from the paper are choices of [`TackConfig`]: [`TackConfig::PAPER`] has none of them.

mod bound;
mod config;
mod rates;
mod rtt_min;
mod standing;

use super::super::window::Window;
use super::super::{Delivery, Start};
use super::common::{Common, Version};
use super::parts::{
    DRAIN_GAIN, HIGH_GAIN, Mode, PROBE_RTT_TIME, RTT_MIN_LIFETIME, UNIT, initial_pacing_rate, paced,
};
use crate::pacing::Bursts;
use bound::LossBound;
use rates::{Intervals, Rates};
use rtt_min::RttMin;
use standing::{STEP_MAX, Standing};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

pub use config::{Bounds, Drains, ProbeRtt, Probes, TackConfig};

/// Intervals of a cycle that ask for more, with their gain, and then as many that drain the queue of the former (T21: 1.25 and
/// 0.75, four each: a round trip).
const PROBING: u64 = 4;
const PROBING_GAIN: u64 = UNIT * 5 / 4;
const DRAINED: u64 = 2 * PROBING;
const DRAINING_GAIN: u64 = UNIT * 3 / 4;
/// TACKs per smallest round-trip time where no receiver says how long its interval is.
const USUAL_BETA: u64 = 4;
/// The interval before any round-trip time is known.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);
/// A probe found more if the estimate has grown by this part.
const SUCCESS_PART: u64 = 8;
/// Startup ends only after rounds with this part of a product in flight.
const FULL_TRIED: u64 = UNIT * 3 / 2;
/// Initial windows up to which startup paces by the window: more would overflow short queues at five times their rate.
const SLOW_START_WINDOWS: u64 = 8;
/// Initial windows up to which it does so in less than a tenth of a round trip, as a sender without a pacer would.
const BURST_WINDOWS: u64 = 4;
const BURST_GAIN: u64 = 4;
/// "A few TACK intervals" of draining: the most, as long as it takes to drain all that startup may have queued
/// (1.9 products at 0.65 of the rate). Without a limit a queue that others keep up would hold a flow there.
const MOST_DRAINING: u64 = 16;

/// Products in flight, without the arrivals of an interval: `cwnd_gain` of BBR version 1.
const CAP_GAIN: u64 = UNIT * 2;
/// And where the queue is longer than this flow keeps it: flows that take two each fill a buffer of two products between them,
/// lose there all the time, and leave CUBIC a quarter of its share. Ours, by trials (docs/design/tack.md).
const LONG_QUEUE_GAIN: u64 = UNIT * 3 / 2;

/// How much of the path a round has tried.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    /// The most bytes in flight.
    in_flight: u64,
    /// The peer's windows kept the sender from sending more.
    receiver_limited: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct TackBbr {
    common: Common,
    config: TackConfig,
    intervals: Intervals,
    rates: Rates,
    /// A receiver has reported a rate: it is the one to hear of the rate from.
    is_receiver_based: bool,
    rtt_min: RttMin,
    bound: LossBound,
    standing: Standing,
    /// Intervals since the cycle, or draining, began, and the estimate then.
    position: u64,
    rate_before: BitRate,
    /// The cycle drains longer than its probe lasted.
    drains: bool,
    tried: Tried,
    /// Rates reported until then are those of a sender that held back.
    held_back_until: Instant,
    /// Nothing was delivered since the last timeout.
    is_silent: bool,
}

impl TackBbr {
    pub fn new(window: Window, config: TackConfig, start: Start) -> Self {
        let interval = start.rtt.map_or(FIRST_INTERVAL, |rtt| rtt / USUAL_BETA);
        Self {
            common: Common::new(window, start),
            config,
            intervals: Intervals::new(interval),
            rates: Rates::new(config.filter),
            is_receiver_based: false,
            rtt_min: RttMin::new(start.rtt),
            bound: LossBound::default(),
            standing: Standing::default(),
            position: 0,
            rate_before: BitRate::default(),
            drains: false,
            tried: Tried::default(),
            held_back_until: Instant::ZERO,
            is_silent: false,
        }
    }

    /// BWmax as delivered.
    fn arrives(&self) -> BitRate {
        let largest = self.rates.largest(!self.common.full.reached);
        self.bound.rate.map_or(largest, |bound| bound.min(largest))
    }

    /// Never so low a rate that a TACK would have nothing to report: MSS per interval at least.
    fn set_pacing_rate(&mut self, gain: u64) {
        let least =
            BitRate::from_amount(Bytes(self.common.window.mss), self.intervals.length).unwrap_or_default();
        let rate = paced(self.rate(), gain).max(least).max(self.slow_start_rate());
        self.common.set_pacing_rate(rate);
    }

    /// The receiver's reports are of a round trip before. In the first three the window sets the rate: at once where it is
    /// short, and then with the high gain, as [`initial_pacing_rate`] does for the first. Nothing later.
    fn slow_start_rate(&self) -> BitRate {
        let windows = self.common.window.cwnd / self.common.initial_window.max(1);
        if self.common.mode != Mode::Startup || windows >= SLOW_START_WINDOWS {
            return BitRate::default();
        }
        let gain = if windows < BURST_WINDOWS { BURST_GAIN } else { 1 };
        initial_pacing_rate(gain * self.common.window.cwnd, self.rtt_min.least)
    }

    fn pacing_gain(&self) -> u64 {
        match self.common.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBandwidth => self.cycle_gain(),
            Mode::ProbeRtt => self.probe_rtt_share(),
        }
    }

    fn cycle_gain(&self) -> u64 {
        let (cruising, step) = (self.standing.cruising_gain(self.rate()), self.standing.step());
        match (self.position, self.standing.is_active()) {
            // Where the path's own losses eat up a small step, a probe has nothing to find.
            (..PROBING, true) => cruising.max(UNIT + (step + self.bound.uncompensated()).min(STEP_MAX)),
            (..PROBING, false) => PROBING_GAIN,
            (..DRAINED, true) => UNIT - step,
            (..DRAINED, false) => DRAINING_GAIN,
            _ if self.drains => DRAINING_GAIN,
            _ => cruising,
        }
    }

    /// Advances the clock; the receiver knows its interval best.
    fn update_clock(&mut self, delivery: &Delivery) {
        if let Some(report) = &delivery.receiver {
            self.standing.on_report(report);
        }
        if let (Some(rtt), Some(least)) = (delivery.sample.rtt, self.rtt_min.least) {
            self.standing.on_round_trip(rtt, least);
        }
        let own_estimate = self.rtt_min.least.map(|least| least / USUAL_BETA);
        let reported = delivery.receiver.map(|receiver| receiver.interval);
        let length = reported
            .or(own_estimate.filter(|_| !self.is_receiver_based))
            .filter(|length| *length > Duration::ZERO);
        self.intervals.length = length.unwrap_or(self.intervals.length);
        let passed = self.intervals.pass(delivery.now);
        self.position = self.position.saturating_add(passed);
        self.rates.pass(passed);
    }

    /// Takes the rate that the receiver measures. The sender's own sample counts only where no receiver ever reported one, for
    /// ACKs that come late and together must not pass for a rate.
    fn update_bandwidth(&mut self, delivery: &Delivery) {
        let reported = delivery.receiver.and_then(|receiver| receiver.rate);
        self.is_receiver_based |= reported.is_some();
        let rate = if self.is_receiver_based { reported } else { delivery.sample.rate() };
        if let Some(rate) = rate {
            let holds_back = self.common.holds_back() || delivery.now < self.held_back_until;
            self.rates.report(rate, delivery.sample.app_limited || holds_back);
        }
    }

    fn update_rounds(&mut self, delivery: &Delivery) {
        self.bound.update(delivery, self.rates.average());
        if delivery.sample.newly_delivered == 0 {
            self.common.rounds.started = false;
            return;
        }
        self.common.rounds.update(delivery);
        self.tried.in_flight = self.tried.in_flight.max(delivery.prior_in_flight);
        self.tried.receiver_limited |= delivery.receiver_limited;
        if !self.common.rounds.started {
            return;
        }
        self.common.recovery.conserves = false;
        let tried = core::mem::take(&mut self.tried);
        // A round in which the window kept the pipe from filling says nothing: early rates, measured over a round trip
        // of bursts and pauses, do not grow steadily. A receiver's window makes such bursts for ever, but it is all there is.
        let is_full = match (tried.receiver_limited, delivery.sample.app_limited) {
            (true, _) => tried.in_flight >= self.amount_in(UNIT),
            (false, true) => false,
            (false, false) => tried.in_flight >= self.amount_in(FULL_TRIED),
        };
        if is_full {
            self.common.full.on_round(self.rate());
        }
        // The reported mean is the path's rate now; BWmax may be of before. Where others take the channel, round trips are many
        // times the smallest, and a product over the smallest would be less than arrives.
        let trip = self.rtt_min.least.unwrap_or_default() + self.longest_silence();
        let usual = delivery.smoothed_rtt.unwrap_or_default();
        let arrives = self.rates.average().amount_in(trip.max(usual)).0;
        let floor = if self.standing.is_active() { self.with_bursts(arrives) } else { arrives };
        let starting = !self.common.full.reached;
        let heavy = self.bound.on_round(self.common.window.mss, floor, self.arrives(), starting);
        if heavy && self.config.bounds == Bounds::Loss {
            // Startup or probe, it asked for more than there is.
            self.common.full.reached = true;
            if self.common.mode == Mode::ProbeBandwidth && self.position < PROBING {
                self.position = PROBING;
            }
        }
    }

    /// The next cycle begins after the last interval of one, or once a probe that found more has been drained.
    fn update_cycle(&mut self, in_flight: u64) {
        if self.common.mode != Mode::ProbeBandwidth {
            return;
        }
        self.update_draining(in_flight);
        let before = self.rate_before.as_bps();
        // Half of the step.
        let part = if self.standing.is_active() { 2 * UNIT / self.standing.step() } else { SUCCESS_PART };
        let found = self.rate().as_bps() >= before + before / part;
        let again =
            self.config.probes == Probes::WhileTheyFind && self.position >= DRAINED && !self.drains && found;
        let length = u64::from(self.config.cycle).max(DRAINED);
        if !again && self.position < length {
            return;
        }
        self.position = if again { 0 } else { self.position % length };
        self.rate_before = self.rate();
        self.standing.on_cycle(again, self.rate(), self.rtt_min.least.unwrap_or_default());
        self.bound.on_cycle(self.cap());
    }

    /// Longer draining is at the cost of the rest of the cycle: an excess in flight keeps its gain down.
    fn update_draining(&mut self, in_flight: u64) {
        let is_over = in_flight <= self.with_bursts(self.amount_in(UNIT)) || self.position >= MOST_DRAINING;
        if self.position < DRAINED {
            self.drains = self.config.drains == Drains::UntilEmpty;
        } else if is_over {
            self.drains = false;
        }
    }

    /// Starts the cycle anywhere but where it drains, so that flows that start together do not probe together (draft
    /// section 4.3.4.2): with the probe, or later, a round trip at a time.
    fn probe_bandwidth(&mut self) {
        self.common.mode = Mode::ProbeBandwidth;
        let rests = u64::from(self.config.cycle).saturating_sub(DRAINED) / PROBING;
        let drawn = u64::from(self.common.chance.draw(rests as u32 + 1));
        self.position = if drawn == 0 { 0 } else { DRAINED + (drawn - 1) * PROBING };
        self.rate_before = self.rate();
        self.drains = false;
    }

    fn check_drain(&mut self, delivery: &Delivery) {
        if self.common.ends_startup() {
            self.position = 0;
        }
        let is_drained = delivery.in_flight <= self.with_bursts(self.amount_in(UNIT));
        if self.common.mode == Mode::Drain && (is_drained || self.position >= MOST_DRAINING) {
            self.probe_bandwidth();
        }
    }

    /// The smallest round-trip time, and the probing for it when it has not been seen for long.
    fn update_rtt_min(&mut self, delivery: &Delivery) {
        let now = delivery.now;
        let probe = self.config.probe_rtt;
        self.rtt_min.update(now, delivery.sample.rtt);
        let lifetime = probe.map_or(RTT_MIN_LIFETIME, |probe| probe.after);
        if self.common.mode == Mode::ProbeRtt {
            self.probe_rtt(delivery);
        } else if self.rtt_min.age(now) > lifetime {
            if probe.is_some() && !self.common.idle_restart {
                self.common.begin_probe_rtt();
            } else {
                self.rtt_min.forget(now);
            }
        }
        self.common.note_restarted(delivery);
    }

    /// The longer of a round trip and 200 ms with little in flight.
    fn probe_rtt(&mut self, delivery: &Delivery) {
        if self.common.probe_rtt_done_at.is_some() {
            self.finish_probe_rtt(delivery.now);
        } else if delivery.in_flight <= self.probe_rtt_cwnd() {
            // Between two reports a queue of the usual length drains at half the rate.
            let wait = self.standing.wait();
            let time = if self.standing.is_active() { wait.min(PROBE_RTT_TIME) } else { PROBE_RTT_TIME };
            let lasts = delivery.smoothed_rtt.unwrap_or_default().max(time);
            self.common.probe_rtt_done_at = Some(delivery.now + lasts);
            self.rtt_min.look_again();
        }
    }

    fn probe_rtt_share(&self) -> u64 {
        u64::from(self.config.probe_rtt.map_or(0, |ProbeRtt { share, .. }| share))
    }

    fn probe_rtt_cwnd(&self) -> u64 {
        let share = self.probe_rtt_share();
        let waits = if share > 0 { self.amount_per_interval() } else { 0 };
        (self.amount_in(share) + waits).max(self.common.min_cwnd())
    }

    /// Bytes that the rate brings in `gain` smallest round-trip times.
    fn amount_in(&self, gain: u64) -> u64 {
        let Some(least) = self.rtt_min.least else { return self.common.initial_window * gain / UNIT };
        self.rate().amount_in(least).0.saturating_mul(gain) / UNIT
    }

    /// And in a TACK interval: data that has arrived and is not reported yet.
    fn amount_per_interval(&self) -> u64 {
        self.rate().amount_in(self.longest_silence()).0
    }

    /// From one report to the next.
    fn longest_silence(&self) -> Duration {
        self.intervals.length.max(self.standing.wait())
    }

    /// The cap on bytes in flight: two products and the arrivals of one interval, which is cwnd_gain = 2 + 1 / (RTT_min f_tack)
    /// in the paper's words; more where more arrives at once. The allowance for aggregated ACKs contains the interval's. Ours
    /// takes less room in a queue that is long already.
    fn cap(&self) -> u64 {
        let is_long = self.common.full.reached
            && self.standing.is_active()
            && self.standing.is_long(self.rate(), self.rtt_min.least.unwrap_or_default());
        let products = self.amount_in(if is_long { LONG_QUEUE_GAIN } else { CAP_GAIN });
        let lump = if self.common.full.reached { self.common.aggregation.allowance(self.rate()) } else { 0 };
        self.with_bursts(products + lump.max(self.amount_per_interval()))
    }

    /// With room for the queue kept at the bottleneck on purpose, and for data on its way to the pacer, in it and behind it
    /// (`bbr_quantization_budget`).
    fn with_bursts(&self, bytes: u64) -> u64 {
        bytes
            + self.standing.target(self.rate())
            + 3 * Bursts::Datagrams.size(self.common.pacing_rate, self.common.window.mss)
    }

    fn set_cwnd(&mut self, delivery: &Delivery) {
        let acked = delivery.sample.newly_delivered;
        if acked > 0 && !self.recover(delivery) {
            let cap = self.cap();
            let cwnd = self.common.window.cwnd;
            if self.common.full.reached {
                let bound = self.bound.bytes.filter(|_| self.config.bounds == Bounds::Loss);
                // A paced window need not grow with ACKs, which are few.
                let grown = if self.standing.is_active() { cap } else { cwnd + acked };
                self.common.window.cwnd = grown.min(cap).min(bound.unwrap_or(u64::MAX));
            } else if cwnd < cap || self.arrives().as_bps() == 0 {
                self.common.window.cwnd = cwnd + acked;
            }
            self.common.window.cwnd = self.common.window.cwnd.max(self.common.min_cwnd());
        }
        if self.common.mode == Mode::ProbeRtt {
            self.common.window.cwnd = self.common.window.cwnd.min(self.probe_rtt_cwnd());
        }
    }

    /// The window after losses; true when recovery decides on it. Version 1 conserves packets in the first round of a recovery
    /// and comes out of one with the window it had. Under [`Bounds::Loss`] only the bound cuts, and a delivery after a timeout
    /// shows that the path is there again.
    fn recover(&mut self, delivery: &Delivery) -> bool {
        let was_silent = core::mem::take(&mut self.is_silent);
        match self.config.bounds {
            Bounds::Product => self.common.recover(delivery),
            Bounds::Loss => {
                if was_silent && self.common.full.reached {
                    let product = self.amount_in(UNIT) + self.amount_per_interval();
                    self.common.window.cwnd = self.common.window.cwnd.max(product);
                }
                false
            }
        }
    }
}

impl Version for TackBbr {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    /// BWmax as sent: the rate at which to send for that to arrive.
    fn rate(&self) -> BitRate {
        match self.config.bounds {
            Bounds::Product => self.arrives(),
            // The share that the path loses at any rate is to be sent too.
            Bounds::Loss => self.bound.sent_for(self.arrives()),
        }
    }

    fn finish_probe_rtt(&mut self, now: Instant) {
        if self.common.probe_rtt_done_at.is_none_or(|done| now < done) {
            return;
        }
        self.rtt_min.forget(now);
        self.held_back_until = now + self.rtt_min.least.unwrap_or_default() * 2;
        if self.common.end_probe_rtt() {
            self.probe_bandwidth();
        }
    }

    fn update(&mut self, delivery: &Delivery) {
        self.update_clock(delivery);
        self.update_bandwidth(delivery);
        self.update_rounds(delivery);
        self.common.update_aggregation(delivery, self.rate());
        self.update_cycle(delivery.in_flight);
        self.check_drain(delivery);
        self.update_rtt_min(delivery);
        self.common.update_first_rtt(delivery);
        self.set_pacing_rate(self.pacing_gain());
        self.set_cwnd(delivery);
    }

    /// The model of the path stays, for an outage says nothing about it.
    fn note_timeout(&mut self) {
        self.is_silent = true;
    }

    fn note_undo(&mut self) {
        self.bound = LossBound::default();
    }

    /// The pause belongs to no interval.
    fn on_idle_restart(&mut self, now: Instant) {
        self.intervals.restart(now);
        match self.common.mode {
            Mode::ProbeBandwidth => self.set_pacing_rate(UNIT),
            Mode::ProbeRtt => self.finish_probe_rtt(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn late_amount(&self, late: Duration) -> u64 {
        self.rate().amount_in(late).0
    }
}

#[cfg(test)]
mod pipe;
#[cfg(test)]
mod tests;
