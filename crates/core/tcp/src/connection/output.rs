//! Building segments.

use super::{Connection, State};
use crate::ecn;
use crate::sender::{Outgoing, Timer};
use tacit_packet::position::Position;
use tacit_packet::tcp::{Flags, SackBlocks, Segment, TIMESTAMP_TICK, Timestamps};
use tacit_packet::units::{Duration, Instant, SeqNumber};
use tacit_packet::{Ecn, IpHeader, Packet, Transport};

/// Room for options in a TCP header, in bytes (RFC 9293 section 3.1: 60 minus 20).
const OPTION_ROOM: u64 = 40;

/// The Timestamps option with its padding.
pub(super) const TIMESTAMPS_LEN: u32 = 12;

/// A segment that was decided on but not built. It is small, so that the packet itself is built once and in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outbound {
    Reset(Reset),
    Syn,
    Data(Outgoing),
    Probe,
    Ack,
}

/// A reset: `<SEQ=seq><CTL=RST>`, or with an ACK if the received segment had none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reset {
    pub seq: SeqNumber,
    pub ack: Option<SeqNumber>,
}

impl Connection {
    /// True if established with nothing at all to send; a cheap check.
    pub(super) fn is_quiet(&self) -> bool {
        self.state == State::Established
            && !self.ack_due
            && self.reset_due.is_none()
            && self.owed_ack.is_none()
            && self.sender.is_quiet()
    }

    /// The next packet to send at `now`.
    // Never inlined, so that a packet is built directly in the caller's place.
    #[inline(never)]
    pub(super) fn transmit(&mut self, now: Instant) -> Option<Packet> {
        if let Some(packet) = self.owed_ack.take() {
            return Some(*packet);
        }
        let outbound = self.next_outbound(now)?;
        let (seq, payload, flags) = match outbound {
            Outbound::Data(outgoing) => {
                self.counters.data_segments_sent += 1;
                self.counters.bytes_sent += u64::from(outgoing.payload);
                let cwr = if self.agreed.ecn { self.sender.cwr_flags(&outgoing) } else { Flags::NONE };
                (outgoing.start, outgoing.payload, outgoing.flags() | cwr)
            }
            Outbound::Ack => {
                self.counters.window_updates_sent += u64::from(self.update_due);
                self.counters.acks_sent += 1;
                (self.sender.snd_nxt, 0, Flags::ACK)
            }
            Outbound::Probe => {
                self.counters.window_probes += 1;
                (self.probe_position(), 0, Flags::ACK)
            }
            Outbound::Syn => {
                let segment = self.syn_segment(now);
                return Some(self.wrap(segment, Ecn::NotEct));
            }
            Outbound::Reset(reset) => return Some(self.wrap(reset_segment(reset), Ecn::NotEct)),
        };
        let codepoint = self.codepoint(&outbound);
        let mut packet = self.acking_packet(now, seq, payload, flags, codepoint);
        if self.agreed.sack && self.receiver.has_blocks() {
            self.add_blocks(&mut packet, payload);
        }
        self.note_ack_sent();
        Some(packet)
    }

    /// The next output at `now`: RST, SYN, urgent ACKs, data, probe, ACK, in this order.
    pub(super) fn next_outbound(&mut self, now: Instant) -> Option<Outbound> {
        if self.state == State::Established && self.reset_due.is_none() && !self.receiver.has_blocks() {
            if let Some(outgoing) = self.sender.next_full(now, &self.timers) {
                return Some(Outbound::Data(outgoing));
            }
            if self.sender.is_quiet() {
                return self.next_ack();
            }
        }
        self.next_in_turn(now)
    }

    /// [`next_outbound`](Self::next_outbound) for any state and any output.
    #[inline(never)]
    fn next_in_turn(&mut self, now: Instant) -> Option<Outbound> {
        if let Some(reset) = self.reset_due.take() {
            return Some(Outbound::Reset(reset));
        }
        match self.state {
            State::Closed | State::Listen => return None,
            State::SynSent | State::SynReceived => {
                let syn = core::mem::take(&mut self.syn_due);
                return if syn { Some(Outbound::Syn) } else { self.next_ack() };
            }
            State::TimeWait => return self.next_ack(),
            _ => {}
        }
        // A duplicate ACK counts only without payload (RFC 5681 section 2), and a full data segment has no room for
        // SACK blocks.
        if self.ack_due && self.receiver.has_blocks() {
            return self.next_ack();
        }
        if let Some(outgoing) = self.sender.next(now, &mut self.timers, &mut self.counters) {
            return Some(Outbound::Data(outgoing));
        }
        if core::mem::take(&mut self.sender.probe_due) {
            return Some(Outbound::Probe);
        }
        self.next_ack()
    }

    fn next_ack(&mut self) -> Option<Outbound> {
        self.ack_due.then_some(Outbound::Ack)
    }

    /// The position of a byte that the peer has already acknowledged, with no data. Such a segment is unacceptable, so
    /// it must be answered with the current window (RFC 9293 section 3.10.7.4), but it is never part of the stream.
    /// Linux and others probe this way. It replaces section 3.8.6.1's new data or retransmission without splitting
    /// segments.
    fn probe_position(&self) -> Position {
        self.sender.snd_una - 1
    }

    /// `<SEQ=seq><ACK=RCV.NXT>` with the current window and timestamps.
    #[inline(always)]
    pub(super) fn acking_packet(
        &mut self,
        now: Instant,
        seq: Position,
        payload: u32,
        flags: Flags,
        codepoint: Ecn,
    ) -> Packet {
        let segment = Segment {
            seq: seq.wire(),
            ack: self.receiver.rcv_nxt.wire(),
            payload_len: payload,
            window: self.receiver.offer_window(),
            flags: flags | self.echo.flags(),
            timestamps: self.agreed.timestamps.then(|| self.stamp(now, true)),
            sack: SackBlocks::EMPTY,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            placeholder: false,
        };
        self.wrap(segment, codepoint)
    }

    /// A SYN offers the options that the configuration allows; a SYN-ACK only those that the peer's SYN also offered
    /// (RFC 7323 sections 2.2, 3.2; RFC 2018 section 2).
    #[inline(never)]
    fn syn_segment(&mut self, now: Instant) -> Segment {
        if self.syn_sent_at.is_some() {
            self.syn_resent = true;
            self.counters.syn_retransmissions += 1;
            self.counters.segments_retransmitted += 1;
        }
        self.syn_sent_at = Some(now);
        self.sender.snd_nxt = self.iss + 1;
        self.timers.set(Timer::Retransmit, now + self.sender.rtt.rto());
        let answering = self.state == State::SynReceived;
        let timestamps = if answering { self.agreed.timestamps } else { self.config.timestamps };
        let scaling = !answering || self.agreed.scaling;
        let sack_permitted = if answering { self.agreed.sack } else { self.config.sack };
        let mut flags = Flags::SYN;
        let mut ack = SeqNumber(0);
        if self.config.uses_ecn() && !answering && !self.syn_resent {
            // Some paths drop SYNs with these flags, so the second SYN has none (RFC 3168 section 6.1.1.1).
            flags |= ecn::OFFER;
        }
        if answering {
            flags |= Flags::ACK;
            if self.agreed.ecn {
                flags |= ecn::ACCEPTANCE;
            }
            ack = self.receiver.rcv_nxt.wire();
            self.note_ack_sent();
        }
        Segment {
            seq: self.iss.wire(),
            ack,
            window: self.receiver.offer_unscaled_window(),
            flags,
            timestamps: timestamps.then(|| self.stamp(now, answering)),
            mss: Some(self.config.mss()),
            window_scale: scaling.then_some(self.receiver.scale),
            sack_permitted,
            ..Segment::default()
        }
    }

    /// Adds the SACK blocks that fit with `payload` within the MTU.
    #[inline(never)]
    fn add_blocks(&mut self, packet: &mut Packet, payload: u32) {
        let stamps = if self.agreed.timestamps { u64::from(TIMESTAMPS_LEN) } else { 0 };
        let free = u64::from(self.config.mss()).saturating_sub(u64::from(payload));
        let room = free.min(OPTION_ROOM).saturating_sub(stamps + 4) / 8;
        if let Transport::Tcp(segment) = &mut packet.transport {
            segment.sack = self.receiver.take_blocks(room as usize, &mut self.counters);
        }
    }

    pub(super) fn note_ack_sent(&mut self) {
        self.ack_due = false;
        self.update_due = false;
        self.timers.clear(Timer::DelayedAck);
        let follows = self.receiver.acks.on_ack_sent();
        self.schedule_ack(follows);
        self.stamps.last_ack_sent = self.receiver.rcv_nxt;
    }

    /// TSval is our clock; TSecr is TS.Recent, or zero without the ACK flag (RFC 7323 section 3.2).
    fn stamp(&self, now: Instant, acking: bool) -> Timestamps {
        Timestamps {
            value: self.timestamp_offset().wrapping_add(self.timestamp_ticks(now)),
            echo_reply: if acking { self.stamps.recent } else { 0 },
        }
    }

    /// Each connection's clock starts at another value (RFC 7323 section 7.1): the initial sequence number multiplied
    /// by an odd constant near 2^32 divided by the golden ratio, which spreads well enough.
    pub(super) fn timestamp_offset(&self) -> u32 {
        self.iss.wire().0.wrapping_mul(0x9E37_79B1)
    }

    /// Ticks of the timestamp clock so far.
    pub(super) fn timestamp_ticks(&self, now: Instant) -> u32 {
        let since = now.saturating_since(Instant::ZERO);
        match self.config.timestamp_tick {
            // Division by a constant is cheaper.
            None => (since.as_nanos() / TIMESTAMP_TICK.as_nanos()) as u32,
            Some(tick) => self.ticks_of(tick, since),
        }
    }

    /// Number of ticks of a clock with ticks of length `tick`; the first tick comes after a fraction that depends on
    /// the initial sequence number.
    #[inline(never)]
    fn ticks_of(&self, tick: Duration, since: Duration) -> u32 {
        let tick = tick.as_nanos().max(1);
        let phase = (u128::from(tick) * u128::from(self.timestamp_offset())) >> 32;
        (u128::from(since.as_nanos()) + phase).div_euclid(u128::from(tick)) as u32
    }

    /// ECT(0) on new data, ECT(1) on that of a scalable control (RFC 9331 section 4.1); not on ACKs, probes and
    /// retransmissions (RFC 3168 sections 6.1.4 to 6.1.6).
    pub(super) fn codepoint(&self, outbound: &Outbound) -> Ecn {
        match outbound {
            Outbound::Data(outgoing) if self.agreed.ecn && !outgoing.again && outgoing.payload > 0 => {
                if self.config.congestion.algorithm.is_scalable() { Ecn::Ect1 } else { Ecn::Ect0 }
            }
            _ => Ecn::NotEct,
        }
    }

    /// Puts a segment into a packet.
    #[inline(always)]
    pub(super) fn wrap(&mut self, segment: Segment, ecn: Ecn) -> Packet {
        self.counters.segments_sent += 1;
        Packet {
            flow: self.ends.flow,
            source: self.ends.local,
            destination: self.ends.remote,
            ip: IpHeader::numbered(self.config.ip, ecn, &mut self.identification),
            transport: Transport::Tcp(segment),
        }
    }
}

fn reset_segment(reset: Reset) -> Segment {
    Segment {
        seq: reset.seq,
        ack: reset.ack.unwrap_or_default(),
        flags: if reset.ack.is_some() { Flags::RST | Flags::ACK } else { Flags::RST },
        ..Segment::default()
    }
}
