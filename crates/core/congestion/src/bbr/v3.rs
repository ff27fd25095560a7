//! BBR version 3: draft-ietf-ccwg-bbr-06. "Section" refers to it.
//!
//! Version 1 with bounds on top: losses of more than 2 % while it probes bound what may be in flight for long, and losses
//! at other times what is in flight and sent until the next probe. It probes every two to three seconds, or as often as
//! Reno would. SACK is assumed, and marks of congestion (ECN) are ignored, as in the draft.

mod long_term;
mod min_rtt;
mod short_term;

use super::super::window::Window;
use super::super::{Delivery, Repair, Start};
use super::common::{Common, Version};
use super::filter::MaxFilter;
use super::parts::{FullPipe, Mode, UNIT, paced};
use long_term::LongTerm;
use min_rtt::MinRtt;
use short_term::ShortTerm;
use tacit_packet::units::{BitRate, Duration, Instant};

/// BBR.StartupPacingGain: 4 ln 2 = 2.77 (section 2.4).
const STARTUP_GAIN: u64 = UNIT * 277 / 100;
/// BBR.DrainPacingGain.
const DRAIN_GAIN: u64 = UNIT / 2;
/// BBR.DefaultCwndGain.
const CWND_GAIN: u64 = 2 * UNIT;
/// The window's gain in ProbeBW_UP (section 5.3.3.5).
const UP_CWND_GAIN: u64 = UNIT * 9 / 4;
/// BBR.ProbeRTTCwndGain.
const PROBE_RTT_CWND_GAIN: u64 = UNIT / 2;
/// BBR.Beta: 0.7.
const BETA: u64 = UNIT * 7 / 10;
/// BBR.Headroom: 0.15.
const HEADROOM: u64 = UNIT * 15 / 100;
/// BBR.MaxBwFilterLen: ProbeBW cycles.
const FILTER_CYCLES: usize = 2;
/// BBRStartupFullLossCnt. Counts ACKs that report losses, as Linux does (`bbr_full_loss_cnt`), for ranges.
const STARTUP_LOSSES: u32 = 6;
/// Draining ends after these rounds at the latest (section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// T_bbr: two seconds and up to one more (section 5.3.3.8.2).
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_SPREAD_US: u32 = 1_000_000;
/// T_reno_bound: most rounds between probes.
const PROBE_ROUNDS: u64 = 63;

/// State within ProbeBW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Down,
    Cruise,
    Refill,
    Up,
}

/// BBR.ack_phase: what the data that is being acknowledged was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// What to return to if losses turn out to be none (section 5.5.11).
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    /// BBR.undo_state.
    left: Option<Left>,
    short_bandwidth: Option<BitRate>,
    short_in_flight: Option<u64>,
    long_in_flight: Option<u64>,
}

/// A state that losses ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Startup,
    Up,
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr3 {
    common: Common,
    phase: Phase,
    /// BBR.cycle_stamp: when the cycle began.
    cycle_at: Instant,
    ack_phase: AckPhase,
    /// BBR.max_bw, by cycles.
    bandwidth: MaxFilter,
    cycle: u64,
    min_rtt: MinRtt,
    short: ShortTerm,
    long: LongTerm,
    /// The full-pipe estimator of ProbeBW_UP; that of startup is [`Common::full`].
    plateau: FullPipe,
    /// C.delivered.
    delivered: u64,
    /// BBR.round_count, and its value when draining began.
    round: u64,
    drain_round: u64,
    rounds_since_probe: u64,
    /// BBR.bw_probe_wait.
    probe_wait: Duration,
    /// BBR.is_bw_probe_sample: losses reported now are of data sent to probe.
    is_probe_sample: bool,
    /// BBR.prev_probe_too_high and BBR.prev_probe_precautionary.
    lost_too_much: bool,
    was_precautionary: bool,
    undo: Undo,
}

impl Bbr3 {
    pub fn new(window: Window, start: Start) -> Self {
        Self {
            common: Common::starting_with(STARTUP_GAIN, window, start),
            phase: Phase::Down,
            cycle_at: Instant::ZERO,
            ack_phase: AckPhase::Init,
            bandwidth: MaxFilter::new(FILTER_CYCLES),
            cycle: 0,
            min_rtt: MinRtt::new(start.rtt, start.at),
            short: ShortTerm::default(),
            long: LongTerm::default(),
            plateau: FullPipe::default(),
            delivered: 0,
            round: 0,
            drain_round: 0,
            rounds_since_probe: 0,
            probe_wait: Duration::ZERO,
            is_probe_sample: false,
            lost_too_much: false,
            was_precautionary: false,
            undo: Undo::default(),
        }
    }

    /// BDPMultiple(gain) of `rate`.
    fn product(&self, rate: BitRate, gain: u64) -> u64 {
        self.common.product(rate, self.min_rtt.least, gain)
    }

    /// QuantizationBudget().
    fn with_bursts(&self, bytes: u64) -> u64 {
        let budget = bytes.max(3 * self.common.burst()).max(self.common.min_cwnd());
        budget + if self.is_in(Phase::Up) { 2 * self.common.window.mss } else { 0 }
    }

    /// TargetInflight().
    fn target(&self) -> u64 {
        self.product(self.rate(), UNIT).min(self.common.window.cwnd)
    }

    fn is_in(&self, phase: Phase) -> bool {
        self.common.mode == Mode::ProbeBandwidth && self.phase == phase
    }

    /// IsProbingBW().
    fn probes(&self) -> bool {
        self.common.mode == Mode::Startup || self.is_in(Phase::Refill) || self.is_in(Phase::Up)
    }

    fn pacing_gain(&self) -> u64 {
        match (self.common.mode, self.phase) {
            (Mode::Startup, _) => STARTUP_GAIN,
            (Mode::Drain, _) => DRAIN_GAIN,
            (Mode::ProbeBandwidth, Phase::Down) => UNIT * 9 / 10,
            (Mode::ProbeBandwidth, Phase::Up) => UNIT * 5 / 4,
            (Mode::ProbeBandwidth, Phase::Cruise | Phase::Refill) | (Mode::ProbeRtt, _) => UNIT,
        }
    }

    fn cwnd_gain(&self) -> u64 {
        match self.common.mode {
            Mode::ProbeRtt => PROBE_RTT_CWND_GAIN,
            Mode::ProbeBandwidth if self.phase == Phase::Up => UP_CWND_GAIN,
            Mode::Startup | Mode::Drain | Mode::ProbeBandwidth => CWND_GAIN,
        }
    }

    /// HandleLostPacket(): the first of the lost packets with which a probe lost too much bounds it.
    fn note_losses(&mut self, delivery: &Delivery) {
        if delivery.sample.newly_lost == 0 {
            return;
        }
        if self.short.note_loss(delivery.sample.delivered) {
            self.save_for_undo();
        }
        let Some(packet) = delivery.sample.heavy_loss.filter(|_| self.is_probe_sample) else { return };
        self.lost_too_much = true;
        // Once per probe.
        self.is_probe_sample = false;
        self.long.cut(&packet, self.target());
        if self.is_in(Phase::Up) {
            self.undo.left = Some(Left::Up);
            self.start_down(delivery.now);
        }
    }

    fn save_for_undo(&mut self) {
        self.undo = Undo {
            left: None,
            short_bandwidth: self.short.bandwidth,
            short_in_flight: self.short.in_flight,
            long_in_flight: self.long.in_flight,
        };
    }

    /// Rounds, the bandwidth filter, and the short-term model.
    fn update_model(&mut self, delivery: &Delivery) {
        let sample = &delivery.sample;
        self.common.rounds.started = false;
        self.short.begin(sample);
        if let Some(rate) = sample.rate() {
            self.common.rounds.update(delivery);
            let ended = u64::from(self.common.rounds.started);
            self.round += ended;
            self.rounds_since_probe += ended;
            // A sample the application limited says "at least this much".
            if !sample.app_limited || rate >= self.bandwidth.largest() {
                self.bandwidth.update(self.cycle, rate);
            }
        }
        self.short.adapt(self.probes(), self.bandwidth.largest(), self.common.window.cwnd);
    }

    /// CheckFullBWReached(), for startup and for ProbeBW_UP.
    fn check_full(&mut self, delivery: &Delivery) {
        let Some(rate) = delivery.sample.rate() else { return };
        if self.common.rounds.started && !delivery.sample.app_limited {
            self.common.full.on_round(rate);
            self.plateau.on_round(rate);
        }
    }

    /// CheckStartupDone(): by the plateau, or by losses in a whole round of recovery.
    fn check_startup(&mut self, delivery: &Delivery) {
        if self.common.mode != Mode::Startup {
            return;
        }
        let lost = self.short.round_started
            && delivery.repair == Repair::Fast
            && self.short.loss_events >= STARTUP_LOSSES
            && delivery.sample.loses_too_much();
        if lost && !self.common.full.reached {
            self.undo.left = Some(Left::Startup);
            self.common.full.reached = true;
            self.long.in_flight = Some(self.product(self.rate(), UNIT).max(self.short.in_flight_latest));
        }
        if self.common.ends_startup() {
            self.drain_round = self.round;
        }
    }

    fn check_drain(&mut self, delivery: &Delivery) {
        if self.common.mode != Mode::Drain {
            return;
        }
        let drained = delivery.in_flight <= self.with_bursts(self.product(self.rate(), UNIT));
        if drained || self.round > self.drain_round + DRAIN_ROUNDS {
            self.start_down(delivery.now);
        }
    }

    /// StartRound().
    fn start_round(&mut self) {
        self.common.rounds.begin_at(self.delivered);
    }

    fn start_down(&mut self, now: Instant) {
        self.common.mode = Mode::ProbeBandwidth;
        self.phase = Phase::Down;
        self.short.reset_signals();
        self.long.stop_growing();
        // PickProbeWait().
        self.rounds_since_probe = u64::from(self.common.chance.draw(2));
        let spread = self.common.chance.draw(PROBE_WAIT_SPREAD_US + 1);
        self.probe_wait = PROBE_WAIT + Duration::from_micros(u64::from(spread));
        self.cycle_at = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
    }

    fn start_refill(&mut self) {
        self.phase = Phase::Refill;
        self.short.forget();
        self.long.refill();
        self.was_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
    }

    fn start_up(&mut self, delivery: &Delivery) {
        self.phase = Phase::Up;
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.restart_plateau(delivery);
        self.long.raise_slope(self.common.window.cwnd, self.common.window.mss);
    }

    /// ResetFullBW(), from the latest rate.
    fn restart_plateau(&mut self, delivery: &Delivery) {
        self.plateau = FullPipe { rate: delivery.sample.rate().unwrap_or_default(), ..FullPipe::default() };
    }

    /// UpdateProbeBWCyclePhase(). The window `is_full` if it limits the sender.
    fn update_cycle(&mut self, delivery: &Delivery, is_full: bool) {
        if !self.common.full.reached || self.adapt_long_term(delivery, is_full) {
            return;
        }
        if self.common.mode != Mode::ProbeBandwidth {
            return;
        }
        let phase = self.phase;
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(delivery.now) => self.start_refill(),
            Phase::Down if self.is_time_to_cruise(delivery.in_flight) => self.phase = Phase::Cruise,
            Phase::Refill if self.common.rounds.started => {
                self.is_probe_sample = true;
                self.start_up(delivery);
            }
            Phase::Up if self.is_time_to_go_down(delivery, is_full) => {
                self.lost_too_much = false;
                self.start_down(delivery.now);
            }
            Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up => {}
        }
    }

    /// AdaptLongTermModel(). True if it decided on the state.
    fn adapt_long_term(&mut self, delivery: &Delivery, is_full: bool) -> bool {
        let Window { cwnd, mss, .. } = self.common.window;
        let round = self.common.rounds.started;
        if round && self.ack_phase == AckPhase::ProbeStarting {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if round && self.ack_phase == AckPhase::ProbeStopping {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.common.mode == Mode::ProbeBandwidth {
                if !delivery.sample.app_limited {
                    self.cycle += 1;
                }
                if self.was_precautionary && !self.lost_too_much {
                    self.start_refill();
                    return true;
                }
            }
        }
        if !delivery.sample.loses_too_much() {
            self.long.raise_to(delivery.sample.tx_in_flight);
            if self.is_in(Phase::Up) && is_full && self.long.is_reached_by(cwnd) {
                self.long.grow(delivery.sample.newly_delivered, mss);
                if round {
                    self.long.raise_slope(cwnd, mss);
                }
            }
        }
        false
    }

    /// IsTimeToProbeBW(): after two to three seconds, or as many rounds as there are segments in flight, for Reno's sake.
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let reno_rounds = (self.target() / self.common.window.mss).min(PROBE_ROUNDS);
        now > self.cycle_at + self.probe_wait || self.rounds_since_probe >= reno_rounds
    }

    /// IsTimeToCruise(): the queue is gone, and there is headroom.
    fn is_time_to_cruise(&self, in_flight: u64) -> bool {
        let headroom = self.long.with_headroom(self.common.window.mss, self.common.min_cwnd());
        in_flight <= headroom.unwrap_or(u64::MAX)
            && in_flight <= self.with_bursts(self.product(self.bandwidth.largest(), UNIT))
    }

    /// IsTimeToGoDown(). Losses end a probe in [`Self::note_losses`].
    fn is_time_to_go_down(&mut self, delivery: &Delivery, is_full: bool) -> bool {
        if self.lost_too_much && self.long.is_reached_by(delivery.in_flight) {
            self.was_precautionary = true;
            return true;
        }
        if is_full && self.long.is_reached_by(self.common.window.cwnd) {
            // The bound and not the path limits the rate.
            self.restart_plateau(delivery);
        }
        self.plateau.reached
    }

    /// UpdateMinRTT() and CheckProbeRTT().
    fn update_min_rtt(&mut self, delivery: &Delivery) {
        let expired = self.min_rtt.update(delivery.now, delivery.sample.rtt);
        if expired && !self.common.idle_restart && self.common.mode != Mode::ProbeRtt {
            self.common.begin_probe_rtt();
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.common.mode == Mode::ProbeRtt && self.common.has_probed_rtt(delivery, self.probe_rtt_cwnd()) {
            self.finish_probe_rtt(delivery.now);
        }
        self.common.note_restarted(delivery);
    }

    fn probe_rtt_cwnd(&self) -> u64 {
        self.product(self.rate(), PROBE_RTT_CWND_GAIN).max(self.common.min_cwnd())
    }

    /// SetCwnd().
    fn set_cwnd(&mut self, delivery: &Delivery) {
        if self.common.recovery.ends(delivery) {
            self.restore_cwnd();
        }
        if delivery.sample.newly_delivered > 0 {
            let product = self.product(self.rate(), self.cwnd_gain());
            let most = self.with_bursts(product + self.common.aggregation.allowance(self.rate()));
            self.common.grow(delivery, most);
        }
        let bound = self.cwnd_bound().unwrap_or(u64::MAX);
        self.common.window.cwnd = self.common.window.cwnd.min(bound.max(self.common.min_cwnd()));
    }

    /// BoundCwndForModel() and BoundCwndForProbeRTT(); `None` is infinity.
    fn cwnd_bound(&self) -> Option<u64> {
        let headroom = || self.long.with_headroom(self.common.window.mss, self.common.min_cwnd());
        let long = match (self.common.mode, self.phase) {
            (Mode::Startup | Mode::Drain, _) => None,
            (Mode::ProbeRtt, _) => {
                Some(headroom().map_or(self.probe_rtt_cwnd(), |most| most.min(self.probe_rtt_cwnd())))
            }
            (Mode::ProbeBandwidth, Phase::Cruise) => headroom(),
            (Mode::ProbeBandwidth, Phase::Down | Phase::Refill | Phase::Up) => self.long.in_flight,
        };
        long.into_iter().chain(self.short.in_flight).min()
    }

    /// RestoreCwnd().
    fn restore_cwnd(&mut self) {
        self.common.window.cwnd = self.common.window.cwnd.max(self.common.recovery.prior_cwnd);
    }
}

/// The larger bound; `None` is infinity.
fn looser<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    Some(one?.max(other?))
}

impl Version for Bbr3 {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    /// BBR.bw.
    fn rate(&self) -> BitRate {
        let largest = self.bandwidth.largest();
        self.short.bandwidth.map_or(largest, |bound| bound.min(largest))
    }

    /// CheckProbeRTTDone(): little is in flight, so that it need not go down first.
    fn finish_probe_rtt(&mut self, now: Instant) {
        if !self.common.probe_rtt_lasted(now) {
            return;
        }
        self.min_rtt.on_probed(now);
        self.short.forget();
        if self.common.end_probe_rtt() {
            self.start_down(now);
            self.phase = Phase::Cruise;
        }
    }

    fn state_name(&self) -> &'static str {
        match (self.common.mode, self.phase) {
            (Mode::ProbeBandwidth, Phase::Down) => "probe down",
            (Mode::ProbeBandwidth, Phase::Cruise) => "probe cruise",
            (Mode::ProbeBandwidth, Phase::Refill) => "probe refill",
            (Mode::ProbeBandwidth, Phase::Up) => "probe up",
            (mode, _) => mode.name(),
        }
    }

    /// UpdateOnACK() (section 5.2.3), the losses that the ACK reveals first.
    fn update(&mut self, delivery: &Delivery) {
        // Limited by the window: another segment would not have fitted.
        let Window { cwnd, mss, .. } = self.common.window;
        let is_full = delivery.prior_in_flight + mss > cwnd;
        self.delivered = delivery.sample.delivered;
        self.note_losses(delivery);
        self.update_model(delivery);
        self.common.aggregation.set_startup(!self.common.full.reached);
        self.common.update_aggregation(delivery, self.rate());
        self.check_full(delivery);
        self.check_startup(delivery);
        self.check_drain(delivery);
        self.update_cycle(delivery, is_full);
        self.update_min_rtt(delivery);
        self.short.end(&delivery.sample);
        self.common.update_first_rtt(delivery);
        self.common.set_pacing_rate(paced(self.rate(), self.pacing_gain()));
        self.set_cwnd(delivery);
    }

    fn note_timeout(&mut self) {
        self.save_for_undo();
    }

    /// HandleSpuriousLossDetection().
    fn note_undo(&mut self) {
        self.restore_cwnd();
        self.short.forgive();
        self.common.full.rate = BitRate::default();
        self.common.full.rounds = 0;
        self.plateau = FullPipe::default();
        let undo = core::mem::take(&mut self.undo);
        self.short.bandwidth = looser(self.short.bandwidth, undo.short_bandwidth);
        self.short.in_flight = looser(self.short.in_flight, undo.short_in_flight);
        self.long.in_flight = looser(self.long.in_flight, undo.long_in_flight);
        let probes_rtt = self.common.mode == Mode::ProbeRtt;
        match undo.left {
            Some(Left::Startup) => {
                self.common.full.reached = false;
                if !probes_rtt {
                    self.common.mode = Mode::Startup;
                }
            }
            Some(Left::Up) if self.common.mode == Mode::ProbeBandwidth && self.phase != Phase::Up => {
                self.start_refill();
            }
            Some(Left::Up) | None => {}
        }
    }
}

#[cfg(test)]
#[path = "v3_tests.rs"]
mod tests;
