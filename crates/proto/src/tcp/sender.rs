//! The sending half: SND.UNA, SND.NXT, the peer's window, loss recovery and what to send next.

use super::config::Config;
use super::congestion::{AckSample, Controller};
use super::counters::Counters;
use super::position::Position;
use super::ranges::Range;
use super::rtt::RttEstimator;
use super::sack::{DUP_THRESH, Resend, Scoreboard};
use super::segment::Segment;
use crate::timer::{TimerKind, TimerTable};
use crate::units::{Duration, Instant};

/// Retransmissions of the same data before the connection is given up (RFC 9293 section 3.8.3's R2;
/// Linux tcp_retries2).
pub(crate) const MAX_RETRIES: u32 = 15;

/// The timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// RTO (RFC 6298).
    Retransmit,
    /// Zero-window probe and SWS override (RFC 9293 section 3.8.6.1).
    Persist,
    /// Delayed acknowledgment.
    DelayedAck,
    /// 2MSL.
    TimeWait,
}

impl TimerKind for Timer {
    fn index(self) -> usize {
        self as usize
    }
}

pub(crate) type Timers = TimerTable<4>;

/// What the sender is doing about loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing known to be lost.
    Open,
    /// Fast recovery until RecoveryPoint is acknowledged.
    Recovery(Position),
    /// Repairing after a retransmission timeout until what was outstanding then is acknowledged.
    Timeout(Position),
}

/// Octets of sequence space to put into a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// First octet.
    pub start: Position,
    /// Payload octets.
    pub payload: u32,
    /// A FIN follows the payload.
    pub fin: bool,
    /// Nothing more is waiting to be sent after it.
    pub push: bool,
}

/// The acknowledgment part of a segment, unwrapped and unscaled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivedAck {
    pub now: Instant,
    /// SEG.SEQ.
    pub seq: Position,
    /// SEG.ACK.
    pub ack: Position,
    /// SEG.WND in octets.
    pub window: u64,
    /// Round-trip time read off the timestamps.
    pub echoed: Option<Duration>,
}

/// What an acknowledgment achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// SND.UNA moved.
    pub advanced: bool,
    /// All data written so far is now acknowledged, and was not before.
    pub all_acked: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// SND.UNA.
    pub snd_una: Position,
    /// SND.NXT.
    pub snd_nxt: Position,
    /// Where the data written so far ends.
    data_end: Position,
    closing: bool,
    /// SND.WND.
    snd_wnd: u64,
    /// Max(SND.WND).
    pub max_window: u64,
    /// SND.WL1 and SND.WL2: the segment that last set SND.WND.
    snd_wl1: Position,
    snd_wl2: Position,
    /// Eff.snd.MSS: payload of a full segment.
    pub mss: u32,
    send_buffer: u64,
    initial_window: u64,
    use_sack: bool,
    pub board: Scoreboard,
    pub rtt: RttEstimator,
    pub congestion: Controller,
    phase: Phase,
    dup_acks: u32,
    /// Without SACK: octets that duplicate ACKs say have left the network.
    inferred: u64,
    /// Where the last recovery ended; without SACK, duplicate ACKs below prove nothing (RFC 6582).
    recover: Position,
    /// RescueRxt.
    rescue_after: Position,
    /// The first lost segment goes out whatever the window says (RFC 6675 step (4.3)).
    resend_first: bool,
    /// Data below was in flight when the congestion window held more back.
    window_limited_until: Position,
    last_sent: Option<Instant>,
    retries: u32,
    /// Probes since the window last opened: the backing off.
    probes: u32,
    /// Probes since the peer last answered.
    unanswered: u32,
    /// The persist timer fired: one segment may ignore the SWS rule.
    override_sws: bool,
    /// The persist timer fired on a closed window.
    pub probe_due: bool,
}

impl Sender {
    /// A sender whose SYN stands at `iss`. Sizes are set by [`Self::establish`].
    pub fn new(config: &Config, iss: Position) -> Self {
        Self {
            snd_una: iss,
            snd_nxt: iss,
            data_end: iss + 1,
            closing: false,
            snd_wnd: 0,
            max_window: 0,
            snd_wl1: Position::default(),
            snd_wl2: Position::default(),
            mss: u32::from(config.mss()),
            send_buffer: config.send_buffer.0,
            initial_window: 0,
            use_sack: false,
            board: Scoreboard::default(),
            rtt: RttEstimator::new(config.rto_min),
            congestion: Controller::new(config, u32::from(config.mss())),
            phase: Phase::Open,
            dup_acks: 0,
            inferred: 0,
            recover: iss,
            rescue_after: iss,
            resend_first: false,
            window_limited_until: iss,
            last_sent: None,
            retries: 0,
            probes: 0,
            unanswered: 0,
            override_sws: false,
            probe_due: false,
        }
    }

    /// The handshake is done: segments carry `mss` octets and `use_sack` was agreed on.
    pub fn establish(&mut self, config: &Config, mss: u32, use_sack: bool, syn_lost: bool) {
        self.mss = mss;
        self.use_sack = use_sack;
        self.congestion = Controller::new(config, mss);
        self.initial_window = u64::from(config.initial_window.max(1)) * u64::from(mss);
        self.recover = self.snd_una - 1;
        self.window_limited_until = self.snd_una;
        self.retries = 0;
        if syn_lost {
            // "If the SYN or SYN/ACK is lost, the initial window ... MUST be one segment" (RFC 5681
            // section 3.1).
            self.congestion.limit(u64::from(mss));
            self.rtt.syn_was_lost();
        }
    }

    /// Makes `octets` more available to send.
    pub fn write(&mut self, octets: u64) {
        if !self.closing {
            self.data_end = self.data_end.saturating_add(octets);
        }
    }

    /// A FIN follows the data written so far.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Where our FIN ends, once closing.
    pub fn fin_end(&self) -> Option<Position> {
        self.closing.then(|| self.data_end + 1)
    }

    /// Octets written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.data_end.saturating_since(self.snd_nxt)
    }

    /// Octets sent and not acknowledged: FlightSize.
    pub fn flight(&self) -> u64 {
        self.snd_nxt - self.snd_una
    }

    /// Octets thought to be in the network.
    pub fn pipe(&self) -> u64 {
        self.board.pipe().saturating_sub(self.inferred)
    }

    /// Sets SND.WND from a segment of the handshake.
    pub fn set_window(&mut self, window: u64, seq: Position, ack: Position) {
        self.snd_wnd = window;
        self.max_window = self.max_window.max(window);
        self.snd_wl1 = seq;
        self.snd_wl2 = ack;
    }

    /// Takes in the acceptable ACK (SND.UNA <= SEG.ACK <= SND.NXT) of `segment`.
    pub fn on_ack(
        &mut self,
        arrived: &ArrivedAck,
        segment: &Segment,
        timers: &mut Timers,
        counters: &mut Counters,
    ) -> Progress {
        let &ArrivedAck { seq, ack, window, .. } = arrived;
        let prior_una = self.snd_una;
        let flight = self.flight().min(self.congestion.cwnd());
        let news = if self.use_sack { self.mark_sacked(segment, ack, counters) } else { 0 };
        // RFC 5681 section 2's definition, for connections without SACK.
        let duplicate = ack == prior_una
            && !self.board.is_empty()
            && segment.sequence_len() == 0
            && window == self.snd_wnd;
        self.update_window(window, seq, ack, timers);
        self.unanswered = 0;

        let mut sample = None;
        if ack > prior_una {
            sample = Some(self.advance(arrived, timers, counters));
            self.dup_acks = 0;
        }
        if news > 0 || (!self.use_sack && duplicate) {
            self.dup_acks = self.dup_acks.saturating_add(1);
            counters.dup_acks_received += 1;
            if !self.use_sack && self.duplicate_frees_room() {
                self.inferred = (self.inferred + u64::from(self.mss)).min(self.board.pipe());
            }
        }
        if self.board.any_sacked() {
            self.board.detect_lost(self.mss);
        }
        self.react(flight, ack, sample, timers, counters);
        if self.board.is_empty() {
            // "When all outstanding data has been acknowledged, turn off the retransmission timer"
            // (RFC 6298 section 5.2).
            timers.clear(Timer::Retransmit);
        }
        let data_acked = |una: Position| una >= self.data_end;
        Progress { advanced: ack > prior_una, all_acked: data_acked(ack) && !data_acked(prior_una) }
    }

    /// Without SACK, whether a duplicate ACK says that a segment has left the network: the first two
    /// do (limited transmit, RFC 3042), and all in fast recovery; after a timeout every segment is held
    /// lost already, and more than that in the open are echoes.
    fn duplicate_frees_room(&self) -> bool {
        match self.phase {
            Phase::Open => self.dup_acks < DUP_THRESH,
            Phase::Recovery(_) => true,
            Phase::Timeout(_) => false,
        }
    }

    fn mark_sacked(&mut self, segment: &Segment, ack: Position, counters: &mut Counters) -> u64 {
        let mut news = 0;
        for block in segment.sack.as_slice() {
            let start = self.snd_una.nearest(block.start);
            let end = self.snd_una.nearest(block.end);
            // Blocks at or below SND.UNA report duplicates (RFC 2883); the rest of what is odd lies.
            if start < end && start > ack && start > self.snd_una && end <= self.snd_nxt {
                news += self.board.mark_sacked(Range { start, end });
            }
        }
        counters.bytes_sacked += news;
        news
    }

    /// "If (SND.WL1 < SEG.SEQ or (SND.WL1 = SEG.SEQ and SND.WL2 =< SEG.ACK))" (RFC 9293 section
    /// 3.10.7.4): old segments do not move the window.
    fn update_window(&mut self, window: u64, seq: Position, ack: Position, timers: &mut Timers) {
        if self.snd_wl1 < seq || (self.snd_wl1 == seq && self.snd_wl2 <= ack) {
            let opened = window > self.snd_wnd;
            self.set_window(window, seq, ack);
            if opened {
                self.probes = 0;
                self.probe_due = false;
                timers.clear(Timer::Persist);
            }
        }
    }

    /// Moves SND.UNA to `ack`.
    fn advance(&mut self, arrived: &ArrivedAck, timers: &mut Timers, counters: &mut Counters) -> AckSample {
        let &ArrivedAck { now, ack, echoed, .. } = arrived;
        let window_limited = self.snd_una < self.window_limited_until;
        let covered = self.board.acknowledge(ack, now);
        let fin = u64::from(self.closing && ack > self.data_end);
        counters.bytes_acked += (ack - self.snd_una).saturating_sub(fin);
        self.snd_una = ack;
        self.retries = 0;
        self.probes = 0;
        // Karn's rule (RFC 6298 section 3): what was sent twice is measured by timestamps or not at all.
        if let Some(rtt) = covered.oldest_rtt.or(echoed.filter(|_| covered.ambiguous)) {
            self.rtt.sample(rtt);
        }
        // "When an ACK is received that acknowledges new data, restart the retransmission timer"
        // (RFC 6298 section 5.3).
        timers.set(Timer::Retransmit, now + self.rtt.rto());
        AckSample {
            now,
            acked: covered.octets,
            snd_una: ack,
            snd_nxt: self.snd_nxt,
            rtt: covered.newest_rtt,
            smoothed_rtt: self.rtt.smoothed(),
            window_limited,
            after_timeout: matches!(self.phase, Phase::Timeout(_)),
        }
    }

    /// Moves between phases and lets the window grow.
    fn react(
        &mut self,
        flight: u64,
        ack: Position,
        sample: Option<AckSample>,
        timers: &mut Timers,
        counters: &mut Counters,
    ) {
        match self.phase {
            Phase::Recovery(point) if ack >= point => self.finish_recovery(),
            Phase::Recovery(_) => {
                if let Some(sample) = sample
                    && !self.use_sack
                {
                    self.on_partial_ack(sample.acked);
                }
                return;
            }
            Phase::Timeout(point) => {
                if let Some(sample) = sample {
                    self.congestion.on_ack(&sample);
                }
                if ack >= point {
                    self.phase = Phase::Open;
                    self.recover = ack;
                }
            }
            Phase::Open => {
                if let Some(sample) = sample {
                    self.inferred = 0;
                    self.congestion.on_ack(&sample);
                }
            }
        }
        if self.phase == Phase::Open && self.should_recover() {
            self.enter_recovery(flight, timers, counters);
        }
    }

    /// Three duplicate ACKs, or the first segment found lost (RFC 6675 section 5 steps (1), (2)).
    fn should_recover(&mut self) -> bool {
        if self.board.next_lost().is_some() {
            return true;
        }
        // Without SACK the duplicates may be echoes of our own needless retransmissions (RFC 6582
        // section 3.2 step 1).
        let believable = self.use_sack || self.snd_una > self.recover;
        self.dup_acks >= DUP_THRESH && believable && !self.board.is_empty()
    }

    /// RFC 6675 section 5 step (4).
    fn enter_recovery(&mut self, flight: u64, timers: &mut Timers, counters: &mut Counters) {
        self.phase = Phase::Recovery(self.snd_nxt);
        self.congestion.on_loss(flight);
        self.board.mark_first_lost();
        if !self.use_sack {
            // "plus 3*SMSS": the segments that sent the duplicates (RFC 5681 section 3.2 step 3).
            self.inferred = u64::from(DUP_THRESH * self.mss).min(self.board.pipe());
        }
        self.resend_first = true;
        self.rescue_after = self.snd_una;
        // The first segment was sent long ago; its copy deserves a full timeout (RFC 6675 section 6).
        timers.clear(Timer::Retransmit);
        counters.fast_recoveries += 1;
    }

    fn finish_recovery(&mut self) {
        self.phase = Phase::Open;
        self.recover = self.snd_una;
        self.resend_first = false;
        self.inferred = 0;
        if !self.use_sack {
            // "cwnd = min (ssthresh, max(FlightSize, SMSS) + SMSS)" keeps the exit from being a burst
            // (RFC 6582 section 3.2 step 3).
            let mss = u64::from(self.mss);
            self.congestion.limit(self.flight().max(mss) + mss);
        }
    }

    /// NewReno: a partial ACK names the next lost segment. Of what it covers, all but one segment had
    /// been inferred to have left the network already.
    fn on_partial_ack(&mut self, acked: u64) {
        self.inferred = self.inferred.saturating_sub(acked.saturating_sub(u64::from(self.mss)));
        self.board.mark_first_lost();
        self.inferred = self.inferred.min(self.board.pipe());
        self.resend_first = true;
    }

    /// The retransmission timer expired. False when the connection should be given up.
    pub fn on_retransmit_timeout(&mut self, counters: &mut Counters) -> bool {
        if self.board.is_empty() {
            return true;
        }
        self.retries += 1;
        if self.retries > MAX_RETRIES {
            return false;
        }
        counters.timeouts += 1;
        self.congestion.on_timeout(self.flight().min(self.congestion.cwnd()), self.retries > 1);
        self.rtt.back_off();
        self.board.mark_all_lost();
        self.phase = Phase::Timeout(self.snd_nxt);
        self.recover = self.snd_nxt;
        self.dup_acks = 0;
        self.inferred = 0;
        self.resend_first = true;
        true
    }

    /// The persist timer expired: probe, or send what fits in spite of SWS avoidance. False when the
    /// peer has left too many probes unanswered; while it answers, a window may stay closed for ever
    /// (RFC 9293 section 3.8.6.1).
    pub fn on_persist_timeout(&mut self) -> bool {
        self.probes += 1;
        self.unanswered += 1;
        if self.unanswered > MAX_RETRIES {
            return false;
        }
        if self.snd_una + self.snd_wnd > self.snd_nxt {
            self.override_sws = true;
        } else {
            self.probe_due = true;
        }
        true
    }

    /// The next octets to send at `now`.
    pub fn next(&mut self, now: Instant, timers: &mut Timers, counters: &mut Counters) -> Option<Outgoing> {
        let outgoing = self.choose(now, timers, counters)?;
        self.last_sent = Some(now);
        // "Every time a packet containing data is sent, if the timer is not running, start it"
        // (RFC 6298 section 5.1).
        if timers.get(Timer::Retransmit).is_none() {
            timers.set(Timer::Retransmit, now + self.rtt.rto());
        }
        Some(outgoing)
    }

    /// NextSeg (RFC 6675 section 4), rules (1) to (4) in order, within cwnd.
    fn choose(&mut self, now: Instant, timers: &mut Timers, counters: &mut Counters) -> Option<Outgoing> {
        if self.phase != Phase::Open {
            if core::mem::take(&mut self.resend_first)
                && let Some(lost) = self.board.next_lost()
            {
                if matches!(self.phase, Phase::Recovery(_)) && self.rescue_after == self.snd_una {
                    self.rescue_after = lost.end();
                }
                return Some(self.resend(lost, now, counters));
            }
            if !self.has_room(self.mss) {
                self.window_limited_until = self.snd_nxt;
                return None;
            }
            if let Some(lost) = self.board.next_lost() {
                return Some(self.resend(lost, now, counters));
            }
        }
        if let Some(fresh) = self.next_fresh(now, timers, counters) {
            return Some(fresh);
        }
        if let Phase::Recovery(point) = self.phase
            && self.use_sack
            && self.has_room(self.mss)
        {
            if let Some(hole) = self.board.next_below_sacked() {
                return Some(self.resend(hole, now, counters));
            }
            return self.rescue(point, counters);
        }
        None
    }

    /// True when `octets` more fit into the congestion window.
    #[inline]
    fn has_room(&self, octets: u32) -> bool {
        let pipe = self.pipe();
        pipe == 0 || pipe + u64::from(octets) <= self.congestion.cwnd()
    }

    fn resend(&mut self, segment: Resend, now: Instant, counters: &mut Counters) -> Outgoing {
        self.board.resent(segment, now);
        self.outgoing_again(segment, counters)
    }

    /// NextSeg rule (4): one segment per recovery, with the highest outstanding octet.
    fn rescue(&mut self, point: Position, counters: &mut Counters) -> Option<Outgoing> {
        if self.snd_una <= self.rescue_after {
            return None;
        }
        let last = self.board.last_unsacked()?;
        self.rescue_after = point;
        self.board.rescued(last);
        counters.rescue_retransmissions += 1;
        Some(self.outgoing_again(last, counters))
    }

    fn outgoing_again(&self, segment: Resend, counters: &mut Counters) -> Outgoing {
        let payload_end = segment.end().min(self.data_end);
        let payload = payload_end.saturating_since(segment.start) as u32;
        counters.segments_retransmitted += 1;
        counters.bytes_retransmitted += u64::from(payload);
        Outgoing {
            start: segment.start,
            payload,
            fin: self.closing && segment.end() > self.data_end,
            push: payload_end == self.data_end,
        }
    }

    /// New data, within the congestion window, the peer's window and the send buffer.
    fn next_fresh(&mut self, now: Instant, timers: &mut Timers, counters: &mut Counters) -> Option<Outgoing> {
        let unsent = self.unsent();
        let fin_waits = self.closing && self.snd_nxt <= self.data_end;
        if unsent == 0 && !fin_waits {
            return None;
        }
        let usable = (self.snd_una + self.snd_wnd).saturating_since(self.snd_nxt);
        let payload = u64::from(self.mss).min(unsent).min(usable) as u32;
        let fin = fin_waits && u64::from(payload) == unsent && usable > unsent;
        if (payload == 0 && !fin) || !self.worth_sending(payload, unsent, usable) {
            if self.board.is_empty() && timers.get(Timer::Persist).is_none() {
                timers.set(Timer::Persist, now + self.rtt.rto_backed_off(self.probes));
            }
            return None;
        }
        if self.flight() + u64::from(payload) > self.send_buffer && !self.board.is_empty() {
            return None;
        }
        self.restart_if_idle(now, counters);
        if !self.has_room(payload) {
            self.window_limited_until = self.snd_nxt;
            return None;
        }
        self.override_sws = false;
        let len = payload + u32::from(fin);
        let start = self.snd_nxt;
        self.board.push(start, len, now);
        self.snd_nxt += u64::from(len);
        Some(Outgoing { start, payload, fin, push: u64::from(payload) == unsent })
    }

    /// Sender's SWS avoidance, Nagle off (RFC 9293 section 3.8.6.2.1): a full segment, or all there
    /// is, or half the largest window ever offered, or the override timer says so.
    fn worth_sending(&self, payload: u32, unsent: u64, usable: u64) -> bool {
        payload == self.mss
            || unsent <= usable
            || u64::from(payload) * 2 >= self.max_window
            || self.override_sws
    }

    fn restart_if_idle(&mut self, now: Instant, counters: &mut Counters) {
        if !self.board.is_empty() {
            return;
        }
        let Some(last_sent) = self.last_sent else { return };
        let idle = now.saturating_since(last_sent);
        if idle > self.rtt.rto() {
            if self.congestion.cwnd() > self.initial_window {
                counters.idle_restarts += 1;
            }
            self.congestion.on_restart(self.initial_window, idle);
        }
    }

    /// Fills in the readings.
    pub fn read_out(&self, counters: &mut Counters) {
        counters.srtt = self.rtt.smoothed();
        counters.rttvar = self.rtt.variation();
        counters.latest_rtt = self.rtt.latest();
        counters.rto = self.rtt.rto();
        counters.cwnd = self.congestion.cwnd();
        counters.ssthresh = self.congestion.ssthresh();
        counters.bytes_in_flight = self.flight();
        counters.pipe = self.pipe();
        counters.send_window = self.snd_wnd;
    }
}
