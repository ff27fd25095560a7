//! SEGMENT ARRIVES (RFC 9293 section 3.10.7), step by step in the RFC's order.

use super::output::{Reset, TIMESTAMPS_LEN};
use super::{Connection, Negotiated, State};
use crate::ack_policy::AckDecision;
use crate::config::Unstamped;
use crate::ecn;
use crate::receiver::Receiver;
use crate::sender::{ArrivedAck, Handshake, Timer};
use tacit_packet::endpoint::Event;
use tacit_packet::position::Position;
use tacit_packet::tcp::{Flags, Segment, TIMESTAMP_TICK, Timestamps};
use tacit_packet::units::{Duration, Instant, SeqNumber};
use tacit_packet::{Ecn, IpVersion};

/// No IP packet has more payload than this, so such a segment did not come from a network.
const MAX_PAYLOAD: u32 = 65_535;

/// MSS if the peer sends none (RFC 9293 section 3.7.1).
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;

/// The smallest accepted MSS: all options and some payload. A peer that names less would make us send only headers.
const MIN_MSS: u16 = 88;

/// "the maximum scale exponent is limited to 14" (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;

/// Minimum time between two answers to unacceptable segments without payload. Otherwise two ends that disagree could
/// answer each other forever (RFC 5961 section 7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(100);

/// An older TS.Recent is invalid, because the peer's clock may have gone half way round (RFC 7323 section 5.5: 24
/// days).
const RECENT_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

/// A segment with its position in the peer's sequence space.
struct Placed<'a> {
    segment: &'a Segment,
    /// SEG.SEQ.
    seq: Position,
    /// End of its payload.
    end: Position,
    fin: bool,
    /// SEG.LEN.
    len: u64,
}

impl Connection {
    pub(super) fn arrive(&mut self, now: Instant, segment: &Segment, codepoint: Ecn) {
        if segment.payload_len > MAX_PAYLOAD {
            self.counters.unacceptable_segments += 1;
            return;
        }
        if segment.is_pure_ack() {
            self.counters.acks_received += 1;
        }
        if segment.payload_len > 0 {
            self.counters.data_segments_received += 1;
            self.counters.bytes_received += u64::from(segment.payload_len);
        }
        match self.state {
            State::Closed => self.refuse(segment),
            State::Listen => self.arrive_in_listen(now, segment),
            State::SynSent => self.arrive_in_syn_sent(now, segment),
            _ => {
                if !self.arrive_as_predicted(now, segment) {
                    self.arrive_in_others(now, segment, codepoint);
                }
            }
        }
    }

    /// Section 3.10.7.1: a closed connection answers with RST.
    fn refuse(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.reset_due = Some(if segment.flags.contains(Flags::ACK) {
            Reset { seq: segment.ack, ack: None }
        } else {
            Reset { seq: SeqNumber(0), ack: Some(segment.seq + segment.sequence_len()) }
        });
    }

    /// Section 3.10.7.2. Data in the SYN is dropped; the peer retransmits it.
    fn arrive_in_listen(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            self.reset_due = Some(Reset { seq: segment.ack, ack: None });
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.opened = now;
            self.take_syn(now, segment);
            self.state = State::SynReceived;
            self.syn_due = true;
        }
    }

    /// Section 3.10.7.3.
    fn arrive_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let acked = segment.flags.contains(Flags::ACK);
        let ack = self.iss.nearest(segment.ack);
        if acked && (ack <= self.iss || ack > self.sender.snd_nxt) {
            if !segment.flags.contains(Flags::RST) {
                self.reset_due = Some(Reset { seq: segment.ack, ack: None });
            }
            return;
        }
        if segment.flags.contains(Flags::RST) {
            if acked {
                self.end(Event::Reset);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.take_syn(now, segment);
        if acked {
            self.sender.snd_una = ack;
            self.establish(now, u64::from(segment.window), self.irs, ack, segment.timestamps);
            self.ack_due = true;
        } else {
            // Both ends opened at the same time.
            self.state = State::SynReceived;
            self.syn_due = true;
            self.syn_sent_at = None;
            self.syn_resent = true;
        }
    }

    /// Takes the peer's sequence number and options from its SYN.
    fn take_syn(&mut self, now: Instant, segment: &Segment) {
        self.irs = Position::first(segment.seq);
        self.receiver.start(self.irs);
        self.agreed = Negotiated {
            timestamps: self.config.timestamps && segment.timestamps.is_some(),
            sack: self.config.sack && segment.sack_permitted,
            ecn: self.config.uses_ecn() && self.ecn_agreed(segment.flags),
            scaling: segment.window_scale.is_some(),
            send_scale: segment.window_scale.unwrap_or(0).min(MAX_SCALE),
        };
        if self.agreed.sack && self.config.dsack {
            self.receiver.report_duplicates();
        }
        if !self.agreed.scaling {
            self.receiver.scale = 0;
        }
        if let Some(stamps) = segment.timestamps {
            self.stamps.recent = stamps.value;
            self.stamps.recent_at = now;
        }
        let default = match self.config.ip {
            IpVersion::V4 => DEFAULT_MSS_V4,
            IpVersion::V6 => DEFAULT_MSS_V6,
        };
        let offered = segment.mss.unwrap_or(default).max(MIN_MSS);
        let options = if self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        // Eff.snd.MSS: the smaller of both ends' MSS, minus the options of every segment (RFC 9293 section 3.7.1).
        self.sender.mss = u32::from(offered.min(self.config.mss()).max(MIN_MSS)) - options;
        self.sender.set_window(u64::from(segment.window), self.irs, self.iss);
    }

    /// Whether the peer's SYN offers, or its SYN-ACK accepts, ECN. If our SYN did not offer it, or two SYNs cross, ECN
    /// is not used.
    fn ecn_agreed(&self, flags: Flags) -> bool {
        if self.active {
            flags.contains(Flags::ACK) && ecn::accepts(flags) && !self.syn_resent
        } else {
            ecn::offers(flags)
        }
    }

    /// Enters ESTABLISHED, or FIN-WAIT-1 if the user has already closed.
    fn establish(
        &mut self,
        now: Instant,
        window: u64,
        seq: Position,
        ack: Position,
        timestamps: Option<Timestamps>,
    ) {
        let syn_lost = self.syn_retries > 0;
        self.timers.clear(Timer::Retransmit);
        // Karn's rule applies to SYNs, too.
        if let Some(sent_at) = self.syn_sent_at.filter(|_| !self.syn_resent) {
            let rtt = now.saturating_since(sent_at);
            self.sender.rtt.sample(rtt);
            self.receiver.acks.on_handshake(rtt);
        }
        self.sender.set_window(window, seq, ack);
        let handshake = Handshake {
            mss: self.sender.mss,
            use_sack: self.agreed.sack,
            syn_lost,
            timestamps: timestamps.filter(|_| self.agreed.timestamps),
        };
        self.sender.establish(now, &self.config, &handshake);
        if self.agreed.ecn {
            self.sender.use_ecn();
        }
        self.syn_due = false;
        self.state = if self.sender.fin_end().is_some() { State::FinWait1 } else { State::Established };
        self.events.push_back(Event::Connected);
    }

    /// Section 3.10.7.4.
    #[inline(never)]
    pub(super) fn arrive_in_others(&mut self, now: Instant, segment: &Segment, codepoint: Ecn) {
        let seq = self.receiver.rcv_nxt.nearest(segment.seq);
        let placed = Placed {
            segment,
            seq,
            end: seq + u64::from(segment.payload_len),
            fin: segment.flags.contains(Flags::FIN),
            len: u64::from(segment.sequence_len()),
        };
        if !self.timestamps_pass(now, &placed) || !self.sequence_passes(now, &placed) {
            return;
        }
        self.note_timestamp(now, &placed);
        if self.agreed.ecn && segment.payload_len > 0 {
            self.counters.ce_received += u64::from(codepoint == Ecn::Ce);
            if self.config.congestion.algorithm.is_scalable() {
                self.echo_marks(now, codepoint);
            } else {
                self.echo.on_data(codepoint, segment.flags);
            }
        }
        if segment.flags.contains(Flags::RST) {
            return self.arrived_reset(now, &placed);
        }
        if segment.flags.contains(Flags::SYN) {
            return self.arrived_syn(now);
        }
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        if self.acknowledge(now, &placed) && (placed.len > 0) {
            self.take_text(now, &placed);
        }
    }

    /// Echoes exactly which data was marked: where the mark changes, data before it is acknowledged at once.
    fn echo_marks(&mut self, now: Instant, codepoint: Ecn) {
        if self.echo.changes_with(codepoint) && self.receiver.rcv_nxt > self.stamps.last_ack_sent {
            self.counters.acks_sent += 1;
            let packet = self.acking_packet(now, self.sender.snd_nxt, 0, Flags::ACK, Ecn::NotEct);
            self.note_ack_sent();
            self.owed_ack = Some(Box::new(packet));
        }
        self.echo.on_scalable_data(codepoint);
    }

    /// PAWS, before all else (RFC 7323 section 5.3 R1).
    fn timestamps_pass(&mut self, now: Instant, placed: &Placed<'_>) -> bool {
        if !self.agreed.timestamps || placed.segment.flags.contains(Flags::RST) {
            return true;
        }
        let Some(stamps) = placed.segment.timestamps else {
            let taken = self.config.unstamped == Unstamped::Taken;
            self.counters.unacceptable_segments += u64::from(!taken);
            return taken;
        };
        let valid = now.saturating_since(self.stamps.recent_at) < RECENT_LIFETIME;
        if valid && before(stamps.value, self.stamps.recent) {
            self.counters.paws_drops += 1;
            self.answer_unacceptable(now, placed);
            return false;
        }
        true
    }

    /// First: the sequence number. A segment at RCV.NXT passes even if the window is closed, because of its ACK. A segment
    /// without payload also passes at the very end of the window, which is the position of a peer that has used the
    /// whole window.
    fn sequence_passes(&mut self, now: Instant, placed: &Placed<'_>) -> bool {
        let (nxt, edge) = (self.receiver.rcv_nxt, self.receiver.edge());
        let passes = if placed.len == 0 {
            placed.seq >= nxt && placed.seq <= edge
        } else {
            placed.seq == nxt || (placed.seq < edge && placed.seq + placed.len > nxt)
        };
        if passes {
            return true;
        }
        self.counters.unacceptable_segments += 1;
        if placed.segment.flags.contains(Flags::RST) {
            return false;
        }
        if placed.end <= nxt && placed.len > 0 {
            self.counters.duplicate_bytes += u64::from(placed.segment.payload_len);
            self.receiver.note_duplicate(placed.seq, placed.end);
            self.receiver.acks.on_disorder();
        } else {
            self.counters.dropped_bytes += u64::from(placed.segment.payload_len);
        }
        let syn = placed.segment.flags.contains(Flags::SYN);
        if self.state == State::SynReceived && syn && placed.seq == self.irs {
            // The peer has not received our SYN-ACK, and an ACK alone would not be enough.
            self.syn_due |= !self.active;
        }
        if self.state == State::TimeWait && placed.fin {
            self.enter_time_wait(now);
        }
        self.answer_unacceptable(now, placed);
        false
    }

    /// "an acknowledgment should be sent in reply", with a rate limit if the segment was empty.
    fn answer_unacceptable(&mut self, now: Instant, placed: &Placed<'_>) {
        if placed.len > 0 || self.may_challenge(now) {
            self.ack_due = true;
        }
    }

    fn may_challenge(&mut self, now: Instant) -> bool {
        let allowed = self.last_challenge.is_none_or(|last| now.saturating_since(last) >= CHALLENGE_INTERVAL);
        if allowed {
            self.last_challenge = Some(now);
        }
        allowed
    }

    /// A challenge ACK (RFC 5961 sections 3.2, 4.2).
    fn challenge(&mut self, now: Instant) {
        if self.may_challenge(now) {
            self.counters.challenge_acks_sent += 1;
            self.ack_due = true;
        }
    }

    /// RFC 7323 section 5.3 R3: TS.Recent follows segments that reach back to the last ACK sent.
    fn note_timestamp(&mut self, now: Instant, placed: &Placed<'_>) {
        let refused = placed.segment.flags.intersects(Flags::RST | Flags::SYN);
        if let Some(stamps) = placed.segment.timestamps
            && self.agreed.timestamps
            && !refused
            && placed.seq <= self.stamps.last_ack_sent
        {
            self.stamps.recent = stamps.value;
            self.stamps.recent_at = now;
        }
    }

    /// Second: RST, accepted only at exactly RCV.NXT (RFC 5961 section 3.2).
    fn arrived_reset(&mut self, now: Instant, placed: &Placed<'_>) {
        if placed.seq != self.receiver.rcv_nxt {
            return self.challenge(now);
        }
        match self.state {
            State::SynReceived if !self.active => self.listen_again(),
            State::Closing | State::LastAck | State::TimeWait => self.end(Event::Closed),
            _ => self.end(Event::Reset),
        }
    }

    /// Fourth: a SYN within the window. A listener starts over; in other states it is challenged (RFC 5961 section 4).
    fn arrived_syn(&mut self, now: Instant) {
        if self.state == State::SynReceived && !self.active {
            return self.listen_again();
        }
        self.challenge(now);
    }

    /// "return this connection to LISTEN state".
    fn listen_again(&mut self) {
        self.state = State::Listen;
        self.timers.clear(Timer::Retransmit);
        self.timers.clear(Timer::DelayedAck);
        self.sender.snd_nxt = self.iss;
        self.receiver = Receiver::new(&self.config, self.receiver.policy());
        self.syn_due = false;
        self.syn_sent_at = None;
        self.syn_resent = false;
        self.syn_retries = 0;
        self.ack_due = false;
    }

    /// Fifth: the ACK field. Returns false if the segment is not processed further.
    fn acknowledge(&mut self, now: Instant, placed: &Placed<'_>) -> bool {
        let ack = self.sender.snd_una.nearest(placed.segment.ack);
        let window = u64::from(placed.segment.window) << self.agreed.send_scale;
        if self.state == State::SynReceived {
            if ack <= self.sender.snd_una || ack > self.sender.snd_nxt {
                self.reset_due = Some(Reset { seq: placed.segment.ack, ack: None });
                return false;
            }
            self.sender.snd_una = ack;
            self.establish(now, window, placed.seq, ack, placed.segment.timestamps);
            return true;
        }
        // RFC 5961 section 5.2: "(SND.UNA - MAX.SND.WND) =< SEG.ACK =< SND.NXT".
        if ack > self.sender.snd_nxt || ack + self.sender.max_window < self.sender.snd_una {
            self.counters.unacceptable_segments += 1;
            self.answer_unacceptable(now, placed);
            return false;
        }
        if ack < self.sender.snd_una {
            return true;
        }
        let arrived = ArrivedAck { now, seq: placed.seq, ack, window, echoed: self.echoed(now, placed) };
        let progress = self.sender.on_ack(&arrived, placed.segment, &mut self.timers, &mut self.counters);
        if progress.all_acked {
            self.events.push_back(Event::SendDone);
        }
        if progress.advanced && self.sender.fin_end() == Some(ack) {
            self.on_fin_acked(now);
        }
        self.state != State::Closed
    }

    /// The round-trip time from TSecr, at least one tick; `None` if it cannot be right, or if ticks are too long for
    /// measurements.
    fn echoed(&self, now: Instant, placed: &Placed<'_>) -> Option<Duration> {
        if self.config.timestamp_tick.is_some() {
            return None;
        }
        let Timestamps { echo_reply, .. } = placed.segment.timestamps.filter(|_| self.agreed.timestamps)?;
        let sent = echo_reply.wrapping_sub(self.timestamp_offset());
        let elapsed = TIMESTAMP_TICK * u64::from(self.timestamp_ticks(now).wrapping_sub(sent).max(1));
        (elapsed <= now.saturating_since(self.opened) + TIMESTAMP_TICK).then_some(elapsed)
    }

    fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.end(Event::Closed),
            _ => {}
        }
    }

    pub(super) fn schedule_ack(&mut self, decision: AckDecision) {
        match decision {
            AckDecision::Now => self.ack_due = true,
            AckDecision::At(at) => self.timers.set(Timer::DelayedAck, at),
            AckDecision::Wait => {}
        }
    }

    /// Seventh and eighth: the data and the FIN.
    fn take_text(&mut self, now: Instant, placed: &Placed<'_>) {
        if placed.segment.payload_len > 0 && !self.receiver.has_room(now) {
            return;
        }
        if !self.can_receive() {
            // There is no data after the peer's FIN: a segment with such data is answered and dropped (RFC 9293 section
            // 3.10.7.4).
            self.ack_due = true;
            return;
        }
        if self.receiver.acks.wants_rtt()
            && let (Some(stamps), Some(rtt)) = (placed.segment.timestamps, self.echoed(now, placed))
        {
            self.receiver.acks.on_echo(u64::from(placed.segment.payload_len), stamps.echo_reply, rtt);
        }
        let received = self.receiver.receive(now, placed.seq, placed.end, placed.fin, &mut self.counters);
        if self.receiver.tunes() {
            let echoed = self.echoed(now, placed);
            let stamp = placed.segment.timestamps.map(|stamps| stamps.value);
            self.receiver.tune(now, stamp, echoed);
        }
        self.schedule_ack(received.ack);
        if received.finished {
            self.events.push_back(Event::PeerClosed);
            match self.state {
                State::Established => self.state = State::CloseWait,
                State::FinWait1 => self.state = State::Closing,
                _ => self.enter_time_wait(now),
            }
        }
    }
}

/// Circular order of timestamps modulo 2^32 (RFC 7323 section 5.2).
pub(super) fn before(value: u32, other: u32) -> bool {
    SeqNumber(value).before(SeqNumber(other))
}
