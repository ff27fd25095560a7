//! The algorithm itself, with numbers as inputs and outputs. `kernel/bpf/rre.h` is the same in C, and gives equal numbers
//! (`vectors/rre`).
//!
//! Time is in microseconds, amounts are in bytes, rates in bytes per second. All divisions are unsigned, because eBPF
//! has no signed division.

#[path = "words.rs"]
mod words;

pub use words::WORDS;

use super::client::{Client, Uplink};
use super::clock::{Clock, Reading, Trust};
use super::compete::Competition;
use super::delay::{DELAY_LIFETIME_US, DELAY_PERIODS, Delay, MAX_DELAY_US};
use super::estimate::{Estimate, Limits, SAMPLE_TICKS, Taken};
use super::feedback::Feedback;
use super::search::{Search, Seen};
use super::states::{Event, State};
use super::steering::{MAX_RATE, MAX_WINDOW, Steering};

/// The threshold at low rates, and its maximum on slow links. [F] uses the minimum round-trip time; but flows that
/// started while the buffer was in use would measure a longer one, and starve the others [DERIVED].
const USUAL_THRESHOLD_US: u64 = 80_000;
const MAX_THRESHOLD_US: u64 = 100_000;
/// If losses show that the buffer is shorter, the threshold is a fraction of its delay, and at least this.
const MIN_LOSS_THRESHOLD_US: u64 = 10_000;
/// Above this rate, 250 kb/s, the threshold falls with the square root of the rate, down to a sixteenth. Among several
/// flows, slower ones then fill the buffer while faster ones drain it. With the same threshold, rates would keep their
/// ratio forever, because all gains are relative [DERIVED].
const MIDDLE_RATE: u64 = 31_250;
const MAX_HALVINGS: u64 = 4;
/// The unit of gains: 1024ths.
const ONE: u64 = 1_024;
/// Bounds of the gain k = T / (2 x feedback delay): 0.05 and 0.25 [DERIVED].
const MIN_GAIN: u64 = 10;
const MAX_GAIN: u64 = 256;
/// Most by which the rate differs from the receive rate, relative to it: never above twice the receive rate.
const TOP_GAIN: u64 = 512;
/// If draining lasts longer than this number of smoothed round-trip times, the path has changed [F].
const LONG_ROUNDS: u64 = 4;
/// Bytes that may be outstanding beyond the rate times the longest round-trip time, and the longest such time that
/// counts: a thousand ACKs wait 52 s for an uplink of 8 kb/s [DERIVED].
const SPARE_WINDOW: u64 = 65_536;
const MAX_HELD_US: u64 = 60_000_000;
/// The largest MSS (RFC 9293 section 3.7.1), and the longest tick (RFC 7323 section 5.4).
const MAX_MSS: u32 = 65_535;
const MAX_TICK_US: u32 = 1_000_000;

/// Parameters that are known when data transfer begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Initial window in bytes.
    pub initial_window: u32,
    /// Round-trip time of the handshake in microseconds, 0 if unknown.
    pub handshake_rtt_us: u32,
    /// Length of a tick of the sender's own timestamp clock in microseconds.
    pub sender_tick_us: u32,
    /// Target buffer delay at 250 kb/s and below, in microseconds, at most 5 s; 0: 80 ms.
    pub target_us: u32,
}

/// Report of an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Time of arrival.
    pub now_us: u64,
    /// It has timestamps (TSval and TSecr).
    pub stamped: bool,
    /// TSval: the receiver's clock.
    pub value: u32,
    /// TSecr: our clock, echoed.
    pub echo: u32,
    /// It acknowledges new data in sequence.
    pub advanced: bool,
    /// Bytes newly acknowledged, in sequence or selectively.
    pub delivered: u32,
    /// Bytes newly declared lost.
    pub lost: u32,
    /// Bytes in flight after it.
    pub in_flight: u32,
    /// Round-trip time of the latest segment that it newly acknowledges, in microseconds; 0 if not measured.
    pub rtt_us: u32,
    /// Smoothed round-trip time in microseconds, 0 while unknown.
    pub smoothed_rtt_us: u32,
    /// The sender lacked data to send more.
    pub limited: bool,
    /// Lost data is still outstanding.
    pub repairing: bool,
}

/// State of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    parameters: Parameters,
    state: State,
    /// Time at which the state was entered.
    entered_us: u64,
    clock: Clock,
    estimate: Estimate,
    /// Total delivered bytes.
    delivered: u64,
    delay: Delay,
    search: Search,
    /// Evidence of other flows at the bottleneck.
    competition: Competition,
    feedback: Feedback,
    steering: Steering,
    uplink: Uplink,
}

impl Core {
    /// A sender whose data transfer begins at `now_us`. Parameters outside TCP's limits are clamped.
    pub fn new(parameters: Parameters, now_us: u64) -> Self {
        let parameters = Parameters {
            mss: parameters.mss.clamp(1, MAX_MSS),
            sender_tick_us: parameters.sender_tick_us.clamp(1, MAX_TICK_US),
            target_us: parameters.target_us.min(MAX_DELAY_US as u32),
            ..parameters
        };
        let mut core = Self {
            parameters,
            state: State::Start,
            entered_us: now_us,
            clock: Clock::default(),
            estimate: Estimate::default(),
            delivered: 0,
            delay: Delay::new(now_us),
            search: Search::new(parameters.initial_window.max(parameters.mss)),
            competition: Competition::default(),
            feedback: Feedback::new(parameters.handshake_rtt_us, now_us),
            steering: Steering::new(now_us),
            uplink: Uplink::default(),
        };
        core.steer(now_us);
        core
    }

    /// Records the clocks of the handshake's last segment.
    pub fn on_handshake(&mut self, now_us: u64, value: u32, echo: u32) {
        self.clock.on_ack(now_us, value, echo, true, self.parameters.sender_tick_us);
    }

    /// Considers, before the first data, what is known of the client. `repeated` if its SYN was repeated.
    pub fn recall(&mut self, client: &Client, now_us: u64, repeated: bool) {
        if client.bounds(now_us, self.parameters.handshake_rtt_us.into(), repeated) {
            self.uplink.bind(self.search.start_window);
            self.steer(now_us);
        }
    }

    /// Whether [`Self::update_client`] has anything to add.
    pub fn has_evidence(&self) -> bool {
        self.uplink.has_evidence(self.delivered, self.mss())
    }

    /// Adds what this connection has measured to the record of its client.
    pub fn update_client(&self, client: &mut Client) {
        self.uplink.update_client(client, self.feedback.heard_us, self.delivered, self.mss());
    }

    /// Handles an ACK.
    pub fn on_ack(&mut self, ack: &Ack) {
        let now_us = ack.now_us;
        // If ACKs were lost, the one that ends a timeout or a silence answers data sent long before.
        let ends_wait = self.steering.collapsed || self.feedback.silences > 0;
        self.record_counts(ack);
        if let Some(reading) = self.read(ack).filter(|_| !ends_wait) {
            self.uplink.on_reading(now_us, reading, self.delivered, ack.in_flight.into());
            self.measure(now_us, reading, ack.repairing);
            if self.state != State::Start || self.search.restarted {
                self.estimate_rate(now_us, reading);
            }
            if self.state == State::Start {
                self.seek(now_us, reading, ack);
            }
        }
        if ack.lost > 0 {
            self.on_lost(ack);
        }
        self.decide(ack);
        self.steer(now_us);
    }

    /// The retransmission timer expired: limits the window to one segment until something is delivered.
    pub fn on_timeout(&mut self, now_us: u64) {
        self.steering.collapsed = true;
        self.steering.hold_us = now_us + self.feedback.delay_us();
        self.enter(Event::Timeout, now_us);
        self.steer(now_us);
    }

    /// The latest timeout was unnecessary, because the data is still in flight.
    pub fn on_undo(&mut self) {
        self.steering.collapsed = false;
        self.steer(self.feedback.heard_us);
    }

    /// When [`Self::on_silence`] is due if no ACK arrives.
    pub fn silent_at_us(&self) -> u64 {
        self.feedback.silent_at_us()
    }

    /// The same, but `None` once the rate has been halved as often as one silence can.
    pub fn next_silence_us(&self) -> Option<u64> {
        (!self.feedback.is_longest_silence()).then(|| self.silent_at_us())
    }

    /// Data is about to be sent while none is in flight, so no ACK was due before.
    pub fn on_transmit_start(&mut self, now_us: u64) {
        self.feedback.heard_us = now_us;
        self.feedback.silences = 0;
        // A pause of the sender does not indicate that the path became slower.
        self.estimate.restart();
        self.steer(now_us);
    }

    /// No ACK has arrived for a long time: halves the rate, and halves it again each time the silence continues.
    pub fn on_silence(&mut self, now_us: u64) {
        self.feedback.on_silence();
        self.enter(Event::Silence, now_us);
        self.steer(now_us);
    }

    /// The sending rate in bytes per second.
    pub const fn rate(&self) -> u64 {
        self.steering.rate
    }

    /// Most bytes that may be in flight.
    pub const fn window(&self) -> u64 {
        self.steering.window
    }

    /// State of the sender.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The receive rate in bytes per second, 0 while unknown.
    pub const fn receive_rate(&self) -> u64 {
        self.estimate.rate
    }

    /// The buffer delay in microseconds.
    pub const fn buffer_us(&self) -> u64 {
        self.delay.buffer_us
    }

    /// Whether the receiver's clock is usable, and its tick length in microseconds.
    pub const fn clock(&self) -> (Trust, u32) {
        (self.clock.trust, self.clock.tick_us)
    }

    fn mss(&self) -> u64 {
        u64::from(self.parameters.mss)
    }

    /// The longer one of the two clocks' ticks.
    fn tick_us(&self) -> u64 {
        u64::from(self.clock.tick_us.max(self.parameters.sender_tick_us))
    }

    /// Records the counts of an ACK, and its arrival.
    fn record_counts(&mut self, ack: &Ack) {
        self.delivered += u64::from(ack.delivered);
        let silences = self.feedback.on_ack(ack.now_us, ack.rtt_us, ack.smoothed_rtt_us);
        if silences > 0 {
            // The rate from before the silence counts only as far as the sender used it during the silence. An unknown rate
            // stays 0.
            let least = self.estimate.rate.min(1);
            self.estimate.rate = (self.estimate.rate >> silences).max(least);
            self.search.start_rate = (self.search.start_rate >> silences).max(1);
            self.estimate.restart();
        }
        if ack.delivered > 0 {
            self.steering.collapsed = false;
            self.uplink.count(ack.now_us);
        }
    }

    /// The times that the ACK carries, or substitutes if the receiver's clock cannot be used.
    fn read(&mut self, ack: &Ack) -> Option<Reading> {
        let trust = self.clock.trust;
        // 0 if unknown.
        let sent_us = if ack.rtt_us == 0 { 0 } else { ack.now_us.saturating_sub(u64::from(ack.rtt_us)) };
        if ack.stamped {
            let tick_us = self.parameters.sender_tick_us;
            let known = self.clock.on_ack(ack.now_us, ack.value, ack.echo, ack.advanced, tick_us);
            if !known || self.clock.begin_anew(ack.now_us, sent_us) {
                self.forget_delays(ack.now_us);
            }
        } else if trust != Trust::Refused && self.delivered >= 2 * SAMPLE_TICKS * self.mss() {
            self.clock.trust = Trust::Refused;
            self.clock.tick_us = 0;
            self.forget_delays(ack.now_us);
        }
        // An ACK that reports no new arrival (it carries data of the peer, or answers a duplicate) echoes a much
        // earlier time.
        if !ack.advanced && ack.delivered == 0 {
            return None;
        }
        if self.clock.trust == Trust::Refused {
            return (ack.rtt_us > 0).then_some(Reading { received_us: ack.now_us, sent_us });
        }
        self.clock.read(sent_us)
    }

    /// From now on times are based on another clock.
    fn forget_delays(&mut self, now_us: u64) {
        self.estimate.restart();
        self.delay.forget(now_us);
        self.competition.vain_at_us = 0;
        self.search.round_read = false;
        self.uplink.forget();
    }

    /// Measures the relative delay, its minimum, and the buffer delay (slides 11 and 12).
    fn measure(&mut self, now_us: u64, reading: Reading, repairing: bool) {
        let delay_us = reading.received_us as i64 - reading.sent_us as i64;
        let feedback_us = self.feedback.delay_us();
        if self.delay.see(now_us, delay_us, feedback_us) {
            self.end_period(now_us);
        }
        let threshold_us = self.threshold_us();
        let refreshes = self.state == State::Refresh;
        self.delay.take_in(now_us, delay_us, threshold_us, refreshes.then_some(feedback_us));
        self.competition.on_delay(now_us, delay_us, threshold_us);
        self.delay.update_buffer(now_us, delay_us, repairing, feedback_us);
    }

    /// Replaces the oldest minimum by that of the period that ends.
    fn end_period(&mut self, now_us: u64) {
        if self.delay.end_period(now_us) {
            self.steering.relax_losses(now_us);
        }
    }

    /// Updates the receive rate, and decides whether to send faster than it.
    fn estimate_rate(&mut self, now_us: u64, reading: Reading) {
        if self.state == State::Refresh {
            // The sender limits the rate itself, and so the arrivals.
            self.estimate.restart();
            return;
        }
        let threshold_us = self.threshold_us();
        let limits = Limits {
            tick_us: self.tick_us(),
            mss: self.mss(),
            most: self.steering.most_sent(),
            stall_us: 2 * threshold_us,
            used: self.delay.buffer_us > threshold_us / 2,
        };
        let Some(taken) = self.estimate.on_reading(reading, self.delivered, &limits) else { return };
        // The buffer was full all the time, so the apparent path delay includes the buffer delay.
        if taken == Taken::Lossy {
            self.steering.hold_us = now_us + self.feedback.delay_us();
            self.enter(Event::Loss, now_us);
        }
        // More was sent than before, and the buffer is still empty, so more bandwidth is available.
        let empty = self.delay.buffer_us < self.threshold_us() / 4;
        if self.state != State::Fill || !empty {
            self.steering.end_boost(now_us);
        } else {
            self.steering.boost(now_us, self.feedback.delay_us());
        }
    }

    /// During start: checks whether packets of this round left faster than they arrived.
    fn seek(&mut self, now_us: u64, reading: Reading, ack: &Ack) {
        let seen = Seen {
            now_us,
            delivered: self.delivered,
            in_flight: ack.in_flight.into(),
            limited: ack.limited,
            tick_us: self.tick_us(),
            mss: self.mss(),
            used: self.delay.buffer_us > self.threshold_us(),
        };
        if let Some(rate) = self.search.on_reading(reading, &seen) {
            self.estimate.rate = rate;
            self.estimate.provisional = true;
            self.estimate.restart();
            self.enter(Event::Found, now_us);
        }
    }

    /// Losses cause draining if a buffer is in use; otherwise they are due to the link, not congestion [DERIVED].
    fn on_lost(&mut self, ack: &Ack) {
        let now_us = ack.now_us;
        self.estimate.on_lost(ack.lost);
        self.search.on_lost(ack.lost);
        let (buffer_us, feedback_us) = (self.delay.buffer_us, self.feedback.delay_us());
        if buffer_us < MIN_LOSS_THRESHOLD_US || !self.steering.is_new_loss(now_us, feedback_us) {
            return;
        }
        self.steering.loss_us = now_us;
        if self.state == State::Compete {
            self.competition.cubic.on_lost(now_us, self.parameters.mss.into());
            return;
        }
        self.steering.hold_after_loss(now_us, feedback_us);
        // The buffer is about this long.
        if buffer_us * 3 / 4 < self.threshold_us() {
            self.steering.loss_threshold_us = buffer_us * 3 / 4 * ONE / share_of(self.estimate.rate);
        }
        if self.state == State::Start && self.estimate.rate == 0 {
            self.estimate.rate = self.search.arrival_rate(feedback_us);
        }
        self.enter(Event::Loss, now_us);
    }

    /// Finds the events that follow from the measurements.
    fn decide(&mut self, ack: &Ack) {
        let now_us = ack.now_us;
        // Much data may have been lost: monitoring also retransmits it faster while the buffer is empty [DERIVED].
        let repairs = self.state == State::Monitor
            && self.estimate.rate > 0
            && self.delay.buffer_us < self.threshold_us() / 2;
        if (self.state == State::Start || repairs) && !ack.limited {
            let per_delay = u64::from(ack.delivered) * 1_000_000 / self.feedback.delay_us();
            self.search.start_rate =
                (self.search.start_rate + per_delay).min(2 * self.estimate.rate).clamp(1, MAX_RATE);
        }
        // At half the arrival rate, a buffer that no other flow fills empties in twice its delay. The round-trip time
        // includes that delay.
        let feedback_us = self.feedback.delay_us();
        let buffer_us = self.competition.vain_buffer_us.min(feedback_us);
        let emptied_us = self.entered_us + feedback_us.max(2 * buffer_us);
        if self.state == State::Monitor && !ack.repairing && now_us >= emptied_us {
            let refilled = self.is_refilled(now_us);
            self.enter(if refilled { Event::Refilled } else { Event::Repaired }, now_us);
        }
        if self.state == State::Refresh && now_us >= self.delay.emptied_us {
            let stands = self.competition.competing && self.delay.buffer_us > self.threshold_us();
            self.enter(if stands { Event::Refilled } else { Event::Emptied }, now_us);
        }
        let draining = self.state == State::Drain && self.delay.buffer_us > self.threshold_us();
        if draining && now_us >= self.entered_us + LONG_ROUNDS * self.feedback.smoothed_us() {
            self.enter(Event::Long, now_us);
        }
        if !self.delay.known || self.estimate.rate == 0 {
            return;
        }
        let threshold_us = self.threshold_us();
        if self.delay.buffer_us > threshold_us {
            self.enter(Event::Above, now_us);
        } else if self.delay.buffer_us < threshold_us / 2 + self.packet_us()
            && now_us >= self.steering.hold_us
        {
            // Draining for one more feedback delay reaches the minimum delay, which is then measured again.
            self.enter(Event::Below, now_us);
        }
        let stale = match self.state {
            State::Compete => self.competition.is_time_to_look(now_us, self.entered_us, self.delay.buffer_us),
            _ => now_us >= self.delay.seen_us + DELAY_LIFETIME_US,
        };
        if self.delay.adopt_us == 0 && (stale || self.delay.lower) {
            self.enter(Event::Stale, now_us);
        }
    }

    /// Whether other flows fill the buffer, which should be empty now.
    fn is_refilled(&mut self, now_us: u64) -> bool {
        let threshold_us = self.threshold_us();
        let known = self.competition.vain_buffer_us > 0 && self.delay.fresh_known && self.delay.known;
        known
            && self.competition.is_refilled(now_us, self.delay.fresh_min_us, self.delay.min_us, threshold_us)
    }

    fn enter(&mut self, event: Event, now_us: u64) {
        let next = self.state.next(event);
        if next == self.state {
            return;
        }
        self.state = next;
        self.entered_us = now_us;
        self.steering.end_boost(now_us);
        match next {
            State::Compete => {
                self.competition.competed_us = 0;
                if !self.competition.competing {
                    let (rtt_us, mss) = (self.feedback.smoothed_us(), self.mss());
                    self.competition.begin(now_us, self.estimate.rate, rtt_us, mss);
                    self.delay.min_us = self.competition.vain_delay_us;
                    self.delay.mins_us[0] = self.delay.min_us;
                }
            }
            State::Start => {
                // "Forget": the search for the rate restarts with data sent from now on [F].
                self.search.restart();
                self.estimate.restart();
                self.steering.loss_threshold_us = 0;
                self.delay.mins_us = [i64::MAX; DELAY_PERIODS];
                self.end_period(now_us);
                self.feedback.longest_rtt_us = self.feedback.smoothed_rtt_us;
            }
            State::Refresh => {
                let threshold_us = self.threshold_us();
                self.delay.begin_refresh(now_us, threshold_us, self.feedback.delay_us());
            }
            State::Monitor => {
                // Silence has already halved the rate.
                self.search.start_rate = if event == Event::Silence {
                    self.steering.rate
                } else {
                    (self.steering.rate / 2).max(1)
                };
                self.competition.vain_buffer_us = if event == Event::Long { self.delay.buffer_us } else { 0 };
                self.competition.competing = false;
                self.delay.fresh_known = false;
                self.delay.adopt_us = 0;
            }
            State::Fill => self.competition.competing = false,
            State::Drain => {
                self.competition.drain_from(self.estimate.rate);
                self.competition.competing = false;
            }
        }
    }

    /// T: the buffer delay between filling and draining, in microseconds.
    fn threshold_us(&self) -> u64 {
        let base_us = match u64::from(self.parameters.target_us) {
            0 => USUAL_THRESHOLD_US,
            target_us => target_us,
        };
        let limited_us = if self.steering.loss_threshold_us == 0 {
            base_us
        } else {
            base_us.min(self.steering.loss_threshold_us)
        };
        let own_us = (limited_us * share_of(self.estimate.rate) / ONE).max(MIN_LOSS_THRESHOLD_US);
        // On slow links the buffer holds at least two packets.
        own_us.max((2 * self.packet_us()).min(MAX_THRESHOLD_US))
    }

    /// Transmission time of a packet at the receive rate.
    fn packet_us(&self) -> u64 {
        self.mss() * 1_000_000 / self.estimate.rate.max(1)
    }

    /// k = T / (2 x feedback delay), in 1024ths: the buffer delay then oscillates by half of T.
    fn gain(&self, threshold_us: u64) -> u64 {
        (threshold_us * (ONE / 2) / self.feedback.delay_us()).clamp(MIN_GAIN, MAX_GAIN)
    }

    /// Computes the rate and the window from this state.
    fn steer(&mut self, now_us: u64) {
        let known = self.estimate.rate;
        let threshold_us = self.threshold_us();
        let gain = self.gain(threshold_us);
        let rate = match self.state {
            State::Start if self.search.restarted => self.search.start_rate,
            State::Start => {
                let Parameters { handshake_rtt_us, initial_window, .. } = self.parameters;
                self.search.train_rate(handshake_rtt_us, initial_window)
            }
            // While the minimum delay is still falling, it is not known to be that of an empty buffer.
            State::Fill if now_us < self.delay.lowered_us + self.feedback.delay_us() => {
                known + known * MIN_GAIN / ONE
            }
            State::Fill => known + known * (gain << self.steering.boost).min(TOP_GAIN) / ONE,
            State::Drain => {
                let excess = gain * self.delay.buffer_us.min(MAX_DELAY_US) / threshold_us.max(1);
                known - known * excess.clamp(gain, TOP_GAIN) / ONE
            }
            State::Refresh => known / 2,
            // The rate found meanwhile may be lower than assumed.
            State::Monitor if known > 0 => self.search.start_rate.min(2 * known),
            State::Monitor => self.search.start_rate,
            State::Compete => {
                let window = self.competition.cubic.window(now_us, self.mss());
                (window.min(MAX_WINDOW) * 1_000_000 / self.feedback.smoothed_us()).min(2 * known)
            }
        };
        let least = 2 * self.mss() * 1_000_000 / self.feedback.delay_us().max(MAX_THRESHOLD_US);
        self.steering.rate = (rate >> self.feedback.silences).clamp(least, MAX_RATE);
        let held_us = self.feedback.longest_rtt_us.clamp(self.feedback.delay_us(), MAX_HELD_US);
        let product = self.steering.rate.max(known) * held_us / 1_000_000 + SPARE_WINDOW;
        let window = match self.state {
            State::Start if !self.search.restarted => self.search.start_window,
            _ if self.estimate.provisional && !self.search.restarted => product.min(self.search.start_window),
            _ => product,
        };
        let window = if self.uplink.bound > 0 { window.min(self.uplink.bound) } else { window };
        self.steering.window =
            if self.steering.collapsed { self.mss() } else { window.clamp(2 * self.mss(), MAX_WINDOW) };
        self.steering.note_top(now_us, self.feedback.smoothed_us());
    }
}

/// The share of the threshold at `rate` bytes per second, in 1024ths: the inverse square root of its ratio to
/// [`MIDDLE_RATE`] above that rate, interpolated linearly between powers of four.
fn share_of(rate: u64) -> u64 {
    let halvings = log2(rate.max(MIDDLE_RATE)).saturating_sub(log2(MIDDLE_RATE)) / 2;
    (ONE - halvings % ONE / 2) >> (halvings / ONE).min(MAX_HALVINGS)
}

/// The binary logarithm of `value`, which must not be 0, in 1024ths; linear between powers of two.
fn log2(value: u64) -> u64 {
    let whole = u64::from(value.ilog2());
    let part = if whole >= 10 { value >> (whole - 10) } else { value << (10 - whole) };
    whole * ONE + (part - ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After an outage of 16 times the first silence the timer stayed due, and a run did not end.
    #[test]
    fn the_longest_silence_ends_the_timer() {
        let mut core = Core::new(Parameters { mss: 1_448, ..Parameters::default() }, 0);
        let silences = std::iter::from_fn(|| {
            let at_us = core.next_silence_us()?;
            core.on_silence(at_us);
            Some(at_us)
        });
        let all: Vec<u64> = silences.take(100).collect();
        assert_eq!(all.len(), 16);
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    }

    /// A repeated handshake measures no round-trip time, and behind an upload the first ACK takes longer than the
    /// silence limit.
    #[test]
    fn silence_before_the_first_ack_makes_up_no_rate() {
        let parameters =
            Parameters { mss: 1_448, initial_window: 14_480, sender_tick_us: 1_000, ..Parameters::default() };
        let mut core = Core::new(parameters, 0);
        core.on_handshake(0, 7, 9);
        core.on_transmit_start(0);
        core.on_silence(core.silent_at_us());
        assert_eq!((core.state(), core.receive_rate()), (State::Start, 0));
        let ack = Ack {
            now_us: 2_500_000,
            stamped: true,
            value: 1_300,
            echo: 10,
            advanced: true,
            delivered: 2_896,
            in_flight: 11_584,
            rtt_us: 2_500_000,
            smoothed_rtt_us: 2_500_000,
            ..Ack::default()
        };
        core.on_ack(&ack);
        assert_eq!((core.state(), core.receive_rate()), (State::Start, 0));
        assert!(core.rate() > 14_480 * 1_000_000 / 2_500_000, "{}", core.rate());
    }
}
