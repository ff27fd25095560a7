//! The state that all versions of BBR have, and the controller that each of them is.

use super::super::control::{CongestionControl, Pause};
use super::super::window::Window;
use super::super::{Delivery, Start};
use super::aggregation::Aggregation;
use super::parts::{
    FullPipe, HIGH_GAIN, MIN_SEGMENTS, Mode, PROBE_RTT_TIME, Recovery, Rounds, UNIT, paced, window_rate,
};
use crate::chance::Chance;
use crate::pacing::Bursts;
use tacit_packet::units::{BitRate, Duration, Instant};

/// The state that versions share.
#[derive(Clone, Debug)]
pub(in super::super) struct Common {
    pub(super) window: Window,
    pub(super) initial_window: u64,
    pub(super) mode: Mode,
    pub(super) pacing_rate: BitRate,
    /// The pacing gain of startup.
    startup_gain: u64,
    has_rtt: bool,
    pub(super) rounds: Rounds,
    pub(super) full: FullPipe,
    pub(super) aggregation: Aggregation,
    pub(super) recovery: Recovery,
    /// When the round-trip time has been probed enough, once the pipe is short of data.
    pub(super) probe_rtt_done_at: Option<Instant>,
    probe_rtt_round_done: bool,
    /// Nothing was delivered since the application paused.
    pub(super) idle_restart: bool,
    pub(super) chance: Chance,
}

impl Common {
    pub(super) fn new(window: Window, start: Start) -> Self {
        Self::starting_with(HIGH_GAIN, window, start)
    }

    /// One whose startup paces with `gain`.
    pub(super) fn starting_with(gain: u64, window: Window, start: Start) -> Self {
        Self {
            initial_window: window.cwnd,
            mode: Mode::Startup,
            pacing_rate: window_rate(window.cwnd, start.rtt, gain),
            startup_gain: gain,
            window,
            has_rtt: start.rtt.is_some(),
            rounds: Rounds::default(),
            full: FullPipe::default(),
            aggregation: Aggregation::default(),
            recovery: Recovery::default(),
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            chance: Chance(start.seed),
        }
    }

    fn save_cwnd(&mut self) {
        self.recovery.save(self.window.cwnd, self.holds_back());
    }

    /// Counts the aggregates that ACKs show, with the estimated `rate`.
    pub(super) fn update_aggregation(&mut self, delivery: &Delivery, rate: BitRate) {
        let Window { cwnd, mss, .. } = self.window;
        self.aggregation.update(delivery, self.rounds.started, rate, cwnd, mss);
    }

    /// The first round-trip time, where the handshake measured none, turns the window into a rate.
    pub(super) fn update_first_rtt(&mut self, delivery: &Delivery) {
        if !self.has_rtt
            && let Some(rtt) = delivery.smoothed_rtt
        {
            self.has_rtt = true;
            self.pacing_rate = window_rate(self.window.cwnd, Some(rtt), self.startup_gain);
        }
    }

    /// Until the pipe has been full the rate only grows: early samples are of a pipe that fills.
    pub(super) fn set_pacing_rate(&mut self, rate: BitRate) {
        if self.full.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Draining follows startup once the pipe has been full. True if that is now.
    pub(super) fn ends_startup(&mut self) -> bool {
        let ends = self.mode == Mode::Startup && self.full.reached;
        if ends {
            self.mode = Mode::Drain;
        }
        ends
    }

    /// Sends less than the path carries, on purpose.
    pub(super) fn holds_back(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// The round-trip time is probed from now on.
    pub(super) fn begin_probe_rtt(&mut self) {
        self.save_cwnd();
        self.mode = Mode::ProbeRtt;
        self.probe_rtt_done_at = None;
    }

    /// True once `cwnd` bytes at most have been in flight for 200 ms and one round.
    pub(super) fn has_probed_rtt(&mut self, delivery: &Delivery, cwnd: u64) -> bool {
        if self.probe_rtt_done_at.is_some() {
            self.probe_rtt_round_done |= self.rounds.started;
            return self.probe_rtt_round_done && self.probe_rtt_lasted(delivery.now);
        }
        if delivery.in_flight <= cwnd {
            self.probe_rtt_done_at = Some(delivery.now + PROBE_RTT_TIME);
            self.probe_rtt_round_done = false;
            self.rounds.begin(delivery);
        }
        false
    }

    /// The 200 ms are over.
    pub(super) fn probe_rtt_lasted(&self, now: Instant) -> bool {
        self.probe_rtt_done_at.is_some_and(|done| now > done)
    }

    /// The round-trip time has been probed: restores the window. False if startup continues.
    pub(super) fn end_probe_rtt(&mut self) -> bool {
        self.window.cwnd = self.window.cwnd.max(self.recovery.prior_cwnd);
        if !self.full.reached {
            self.mode = Mode::Startup;
        }
        self.full.reached
    }

    /// The least window.
    pub(super) fn min_cwnd(&self) -> u64 {
        MIN_SEGMENTS * self.window.mss
    }

    /// The window grows by what was delivered: to `most` once the pipe has been full, beyond it before.
    pub(super) fn grow(&mut self, delivery: &Delivery, most: u64) {
        let grown = self.window.cwnd + delivery.sample.newly_delivered;
        if self.full.reached {
            self.window.cwnd = grown.min(most);
        } else if self.window.cwnd < most || delivery.sample.delivered < self.initial_window {
            self.window.cwnd = grown;
        }
        self.window.cwnd = self.window.cwnd.max(self.min_cwnd());
    }

    /// Data that is delivered ends a restart after a pause.
    pub(super) fn note_restarted(&mut self, delivery: &Delivery) {
        self.idle_restart &= delivery.sample.newly_delivered == 0;
    }

    /// Bytes in a burst of the pacer.
    pub(super) fn burst(&self) -> u64 {
        Bursts::Segments.size(self.pacing_rate, self.window.mss)
    }

    /// `gain` times the bandwidth-delay product of `rate` and `rtt_min`, without room for bursts.
    pub(super) fn product(&self, rate: BitRate, rtt_min: Option<Duration>, gain: u64) -> u64 {
        let Some(rtt_min) = rtt_min else { return self.initial_window };
        rate.amount_in(rtt_min).0.saturating_mul(gain) / UNIT
    }

    /// Version 1's window after losses. True when recovery decides on it.
    pub(super) fn recover(&mut self, delivery: &Delivery) -> bool {
        let Window { cwnd, mss, .. } = self.window;
        self.window.cwnd = self.recovery.window(delivery, cwnd, mss, &mut self.rounds);
        self.recovery.conserves
    }
}

/// Steps that differ between versions.
pub(in super::super) trait Version {
    fn common(&self) -> &Common;
    fn common_mut(&mut self) -> &mut Common;

    /// The rate that the path is believed to carry.
    fn rate(&self) -> BitRate;

    /// Ends the probe of the round-trip time if it has lasted long enough.
    fn finish_probe_rtt(&mut self, now: Instant);

    /// Feedback arrived: the model first, then rate and window.
    fn update(&mut self, delivery: &Delivery);

    /// The retransmission timer expired, and the window is one segment.
    fn note_timeout(&mut self);

    /// Nothing had been lost.
    fn note_undo(&mut self);

    /// Data follows a pause of the application's: at the estimated rate, not faster: the pipe is empty and a burst
    /// would only queue (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.4.4).
    fn on_idle_restart(&mut self, now: Instant) {
        match self.common().mode {
            Mode::ProbeBandwidth => {
                let rate = paced(self.rate(), UNIT);
                self.common_mut().set_pacing_rate(rate);
            }
            Mode::ProbeRtt => self.finish_probe_rtt(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Name of its state, for people.
    fn state_name(&self) -> &'static str {
        self.common().mode.name()
    }

    /// Bytes that leave while a receiver's reports are `late`.
    fn late_amount(&self, _late: Duration) -> u64 {
        0
    }
}

impl<V: Version> CongestionControl for V {
    fn window(&self) -> &Window {
        &self.common().window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.common_mut().window
    }

    fn wants_delivery(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.update(delivery);
    }

    /// The window is decided on when the ACK that says so is through.
    fn on_loss(&mut self, _flight: u64) {
        self.common_mut().save_cwnd();
    }

    /// All outstanding data is gone: one segment goes first.
    fn on_timeout(&mut self, _now: Instant, _flight: u64) {
        let common = self.common_mut();
        common.save_cwnd();
        common.recovery.on_timeout();
        common.window.collapse();
        self.note_timeout();
    }

    fn on_undo(&mut self, _cwnd_before: u64) {
        self.note_undo();
    }

    fn on_transmit_start(&mut self, now: Instant, pause: Pause) {
        if pause == Pause::Application {
            let common = self.common_mut();
            common.idle_restart = true;
            common.aggregation.restart(now);
            self.on_idle_restart(now);
        }
    }

    fn holds_back(&self) -> bool {
        self.common().holds_back()
    }

    fn amount_reported_late(&self, late: Duration) -> u64 {
        self.late_amount(late)
    }

    /// The pipe has not been full yet.
    fn in_start_up(&self) -> bool {
        !self.common().full.reached
    }

    fn state(&self) -> Option<&'static str> {
        Some(self.state_name())
    }

    fn pacing_rate(&self, _smoothed_rtt: Option<Duration>, _in_flight: u64) -> Option<BitRate> {
        Some(self.common().pacing_rate)
    }
}
