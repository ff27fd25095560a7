//! The sending half: SND.UNA, SND.NXT, the peer's window. `recovery` handles losses shown by acknowledgments and
//! timeouts, `transmit` chooses the next segment.

mod delivery;
mod extended;
mod rack_tlp;
mod recovery;
mod transmit;
mod undo;

use super::config::Config;
use super::counters::Counters;
use super::dsack::CopyLedger;
use super::ecn::Reductions;
use super::prr::{Prr, Recovery};
use super::rack::{LossDetection, Rack};
use super::sack::{DUP_THRESH, Scoreboard};
use super::undo::{Episode, Frto, Undo};
use extended::Seen;
use rack_tlp::RackTlp;
use tacit_congestion::pacing::Pacer;
use tacit_congestion::rre::SharedClient;
use tacit_congestion::rtt::RttEstimator;
use tacit_congestion::{AckSample, Controller, Start};
use tacit_packet::position::Position;
use tacit_packet::ranges::Range;
use tacit_packet::tcp::{Flags, Segment, TIMESTAMP_TICK, Timestamps};
use tacit_packet::timer::{TimerKind, TimerTable};
use tacit_packet::units::{Duration, Instant};

/// Retransmissions of the same data before the connection is abandoned (RFC 9293 section 3.8.3's R2; Linux
/// tcp_retries2).
pub(crate) const MAX_RETRIES: u32 = 15;

/// The timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// RTO (RFC 6298); with RACK-TLP also its probe and its reordering timer.
    Retransmit,
    /// Zero-window probe and SWS override (RFC 9293 section 3.8.6.1).
    Persist,
    /// Delayed acknowledgment.
    DelayedAck,
    /// 2MSL.
    TimeWait,
    /// When the pacer allows the next segment.
    Pacing,
}

impl TimerKind for Timer {
    fn index(self) -> usize {
        self as usize
    }
}

pub(crate) type Timers = TimerTable<5>;

/// Phase of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No known loss.
    Open,
    /// Fast recovery until RecoveryPoint is acknowledged.
    Recovery(Position),
    /// Recovery after a retransmission timeout, until the data outstanding then is acknowledged.
    Timeout(Position),
}

/// A range of sequence space for one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// First byte.
    pub start: Position,
    /// Payload bytes.
    pub payload: u32,
    /// A FIN follows the payload.
    pub fin: bool,
    /// No more data waits to be sent after it.
    pub push: bool,
    /// It is a retransmission.
    pub again: bool,
}

impl Outgoing {
    /// Flags of the segment that carries it; PSH at the end of the written data.
    pub fn flags(self) -> Flags {
        let mut flags = Flags::ACK;
        if self.push && self.payload > 0 {
            flags |= Flags::PSH;
        }
        if self.fin {
            flags |= Flags::FIN;
        }
        flags
    }
}

/// The acknowledgment part of a segment, unwrapped and unscaled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivedAck {
    pub now: Instant,
    /// SEG.SEQ.
    pub seq: Position,
    /// SEG.ACK.
    pub ack: Position,
    /// SEG.WND in bytes.
    pub window: u64,
    /// Round-trip time from the timestamps.
    pub echoed: Option<Duration>,
}

/// Result of an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// SND.UNA advanced.
    pub advanced: bool,
    /// All written data is now acknowledged, and was not before.
    pub all_acked: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// SND.UNA.
    pub snd_una: Position,
    /// SND.NXT.
    pub snd_nxt: Position,
    /// End of the written data.
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
    /// What a controller that shares it knows of the client.
    pub client: Option<SharedClient>,
    pacer: Option<Pacer>,
    phase: Phase,
    /// A feature of [`extended`] is enabled.
    extended: bool,
    /// Present if RACK-TLP detects loss.
    rack_tlp: Option<RackTlp>,
    copies: CopyLedger,
    recovery: Recovery,
    /// Present if ECN was agreed on.
    reductions: Option<Reductions>,
    undo: Undo,
    /// The latest reduction of the window, while it may turn out to be unnecessary.
    episode: Option<Episode>,
    frto: Option<Frto>,
    /// Present during fast recovery with [`Recovery::Prr`].
    prr: Option<Prr>,
    dup_acks: u32,
    /// Without SACK: bytes that have left the network according to duplicate ACKs.
    inferred: u64,
    /// End of the last recovery; without SACK, duplicate ACKs below it prove nothing (RFC 6582).
    recover: Position,
    /// RescueRxt.
    rescue_after: Position,
    /// The first lost segment is sent regardless of the window (RFC 6675 step (4.3)).
    resend_first: bool,
    /// Data below this was in flight when the congestion window limited the sender.
    window_limited_until: Position,
    last_sent: Option<Instant>,
    retries: u32,
    /// Probes since the window last opened, which the back-off counts.
    probes: u32,
    /// Probes since the peer's last answer.
    unanswered: u32,
    /// The persist timer fired: one segment may ignore the SWS rule.
    override_sws: bool,
    /// The persist timer fired on a closed window.
    pub probe_due: bool,
}

/// Result of the handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    /// Bytes of data in a full segment.
    pub mss: u32,
    /// SACK was agreed on.
    pub use_sack: bool,
    /// A SYN was retransmitted.
    pub syn_lost: bool,
    /// Timestamps of its last segment, if they were agreed on.
    pub timestamps: Option<Timestamps>,
}

impl Sender {
    /// A sender whose SYN is at `iss`. Sizes are set by [`Self::establish`].
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
            congestion: Controller::new(&config.congestion, u32::from(config.mss()), Start::default()),
            client: None,
            pacer: None,
            phase: Phase::Open,
            extended: config.recovery != Recovery::Rfc6675 || config.undo != Undo::Never,
            rack_tlp: None,
            copies: CopyLedger::default(),
            recovery: config.recovery,
            reductions: None,
            undo: config.undo,
            episode: None,
            frto: None,
            prr: None,
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

    /// Completes the handshake.
    pub fn establish(&mut self, now: Instant, config: &Config, handshake: &Handshake) {
        let Handshake { mss, use_sack, syn_lost, timestamps } = *handshake;
        self.mss = mss;
        self.use_sack = use_sack;
        let start = Start {
            seed: self.snd_una.wire().0,
            at: now,
            rtt: self.rtt.smoothed(),
            stamps: timestamps.map(delivery::stamps),
            tick: TIMESTAMP_TICK,
        };
        self.congestion = Controller::new(&config.congestion, mss, start);
        if let Some(client) = &self.client {
            self.congestion.recall(client, now);
        }
        self.set_up_rate_control(config.congestion.pacing);
        self.initial_window = config.congestion.initial_window_bytes(mss);
        self.recover = self.snd_una - 1;
        self.window_limited_until = self.snd_una;
        self.retries = 0;
        if use_sack && config.loss_detection == LossDetection::RackTlp {
            self.board.watch_times(Rack::new(self.snd_una, self.rtt.smoothed(), now));
            self.extended = true;
            // Linux also uses its minimum timeout as the budget for a delayed ACK.
            self.rack_tlp = Some(RackTlp::new(config.rto_min));
        }
        if syn_lost {
            // "If the SYN or SYN/ACK is lost, the initial window ... MUST be one segment" (RFC 5681
            // section 3.1).
            self.congestion.limit(u64::from(mss));
            self.rtt.syn_was_lost();
        }
    }

    /// Makes `bytes` more available to send.
    pub fn write(&mut self, bytes: u64) {
        if !self.closing {
            self.data_end = self.data_end.saturating_add(bytes);
        }
    }

    /// A FIN follows the data written so far.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// End of our FIN, once closing.
    pub fn fin_end(&self) -> Option<Position> {
        self.closing.then(|| self.data_end + 1)
    }

    /// Bytes written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.data_end.saturating_since(self.snd_nxt)
    }

    /// Bytes sent and not acknowledged: FlightSize.
    pub fn flight(&self) -> u64 {
        self.snd_nxt - self.snd_una
    }

    /// Estimated bytes in the network.
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

    /// Processes the acceptable ACK (SND.UNA <= SEG.ACK <= SND.NXT) of `segment`.
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
        let before = if self.extended { Some(self.before_ack(arrived.now, arrived.echoed)) } else { None };
        let news = if self.use_sack { self.mark_sacked(segment, ack, counters) } else { 0 };
        // The definition of RFC 5681 section 2, for connections without SACK.
        let duplicate = ack == prior_una
            && !self.board.is_empty()
            && segment.sequence_len() == 0
            && window == self.snd_wnd;
        self.take_window(window, seq, ack, timers);
        let mut sample = None;
        if ack > prior_una {
            sample = Some(self.advance(arrived.now, ack, arrived.echoed, timers, counters));
            self.dup_acks = 0;
        }
        if news > 0 || (!self.use_sack && duplicate) {
            self.dup_acks = self.dup_acks.saturating_add(1);
            counters.dup_acks_received += 1;
            if !self.use_sack && self.duplicate_frees_room() {
                self.inferred = (self.inferred + u64::from(self.mss)).min(self.board.pipe());
            }
        }
        let mut seen = None;
        if let Some(before) = before {
            let (now, echoed, advanced) = (arrived.now, arrived.echoed, ack > prior_una);
            let seen =
                seen.insert(Seen { now, ack, echoed, segment, advanced, news, dsack: false, flight, before });
            self.look_back(seen, counters);
            if self.answer_echo(seen, sample.as_ref(), counters) {
                sample = None;
            }
        }
        if self.board.any_sacked() && self.rack_tlp.is_none() {
            self.board.detect_lost(self.mss);
        }
        self.react(arrived.now, flight, ack, sample, counters);
        if let Some(seen) = &seen {
            self.after_ack(seen, timers, counters);
        }
        if self.board.is_empty() {
            // "When all outstanding data has been acknowledged, turn off the retransmission timer"
            // (RFC 6298 section 5.2).
            timers.clear(Timer::Retransmit);
        }
        let data_acked = |una: Position| una >= self.data_end;
        Progress { advanced: ack > prior_una, all_acked: data_acked(ack) && !data_acked(prior_una) }
    }

    /// True while nothing is lost or suspected to be, and no feature [beyond RFC 6675](extended) is enabled.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.phase == Phase::Open && !self.extended && self.board.is_plain()
    }

    /// [`on_ack`](Self::on_ack) for a sender that [is plain](Self::is_plain): new data was acknowledged by a segment
    /// that reports nothing else, and whose window was [taken](Self::take_window). Returns true if all written data is
    /// now acknowledged, and was not before.
    pub fn on_plain_ack(
        &mut self,
        now: Instant,
        ack: Position,
        timers: &mut Timers,
        counters: &mut Counters,
    ) -> bool {
        let prior_una = self.snd_una;
        // A segment that was sent once gives a valid sample.
        let sample = self.advance(now, ack, None, timers, counters);
        self.dup_acks = 0;
        self.inferred = 0;
        self.congestion.on_ack(&sample);
        if self.board.is_empty() {
            timers.clear(Timer::Retransmit);
        }
        ack >= self.data_end && prior_una < self.data_end
    }

    /// Updates the window from an acceptable segment, which also shows that the peer is alive.
    #[inline]
    pub fn take_window(&mut self, window: u64, seq: Position, ack: Position, timers: &mut Timers) {
        self.update_window(window, seq, ack, timers);
        self.unanswered = 0;
        if window == 0 {
            // "As long as the receiving TCP peer continues to send acknowledgments ..., the sending TCP
            // peer MUST allow the connection to stay open" (RFC 9293 section 3.8.6.1).
            self.retries = 0;
        }
    }

    /// Without SACK, whether a duplicate ACK shows that a segment has left the network. The first two do (limited
    /// transmit, RFC 3042), and all in fast recovery. After a timeout every segment is already declared lost, and
    /// without a loss further duplicates are echoes.
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
            // Blocks at or below SND.UNA report duplicates (RFC 2883); other blocks outside the window are invalid.
            if start < end && start > ack && start > self.snd_una && end <= self.snd_nxt {
                news += self.board.mark_sacked(Range { start, end });
            }
        }
        counters.bytes_sacked += news;
        news
    }

    /// "If (SND.WL1 < SEG.SEQ or (SND.WL1 = SEG.SEQ and SND.WL2 =< SEG.ACK))" (RFC 9293 section 3.10.7.4): old segments
    /// do not change the window.
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

    /// Advances SND.UNA to `ack`, which arrived at `now` and echoed a timestamp sent `echoed` ago.
    #[inline]
    fn advance(
        &mut self,
        now: Instant,
        ack: Position,
        echoed: Option<Duration>,
        timers: &mut Timers,
        counters: &mut Counters,
    ) -> AckSample {
        let window_limited = self.snd_una < self.window_limited_until;
        let covered = self.board.acknowledge(ack, now);
        let fin = u64::from(self.closing && ack > self.data_end);
        counters.bytes_acked += (ack - self.snd_una).saturating_sub(fin);
        self.snd_una = ack;
        self.retries = 0;
        self.probes = 0;
        if let Some(rtt) = covered.oldest_rtt.or_else(|| disambiguate(covered.ambiguous_for?, echoed?)) {
            self.rtt.sample(rtt);
            if let Some(tlp) = &mut self.rack_tlp {
                tlp.measured = true;
            }
        }
        // "When an ACK is received that acknowledges new data, restart the retransmission timer"
        // (RFC 6298 section 5.3).
        self.restart_timeout(now, timers);
        AckSample {
            now,
            acked: covered.bytes,
            snd_una: ack,
            snd_nxt: self.snd_nxt,
            rtt: covered.newest_rtt,
            smoothed_rtt: self.rtt.smoothed(),
            window_limited,
            after_timeout: matches!(self.phase, Phase::Timeout(_)),
        }
    }

    /// When the controller must be called if no ACK arrives. An ACK is due only while data is in flight or waits to be
    /// sent.
    #[inline]
    pub fn congestion_deadline(&self) -> Option<Instant> {
        let at = self.congestion.poll_timeout()?;
        (!self.board.is_empty() || self.unsent() > 0).then_some(at)
    }

    /// Fills in the readings.
    pub fn read_out(&self, counters: &mut Counters) {
        counters.srtt = self.rtt.smoothed();
        counters.rttvar = self.rtt.variation();
        counters.latest_rtt = self.rtt.latest();
        counters.rto = self.rtt.rto().max(self.rtt.rto_backed_off(self.probes));
        counters.cwnd = self.congestion.cwnd();
        counters.ssthresh = self.congestion.ssthresh();
        counters.bytes_in_flight = self.flight();
        counters.pipe = self.pipe();
        counters.send_window = self.snd_wnd;
    }
}

/// Karn's rule (RFC 6298 section 3): a segment that was sent twice is measured only by timestamps.
///
/// The timestamp must echo the latest transmission, sent `age` ago. If that transmission met a receiver that already
/// had the data and whose ACK was lost, the echo is of an earlier one (RFC 7323 section 4.3 rule (2) takes no timestamp
/// from a segment outside the window), and during back-off that would measure up to a minute.
fn disambiguate(age: Duration, echoed: Duration) -> Option<Duration> {
    (echoed <= age + TIMESTAMP_TICK).then_some(echoed)
}
