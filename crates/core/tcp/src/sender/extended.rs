//! Processing of an ACK for features beyond RFC 6675: RACK-TLP, PRR, ECN, undoing of unnecessary reductions, delivery
//! rates, pacing. Connections without any of them only check once whether there is one.

use super::{Outgoing, Phase, Sender, Timers};
use crate::counters::Counters;
use crate::dsack;
use crate::ecn::Reductions;
use tacit_congestion::AckSample;
use tacit_packet::position::Position;
use tacit_packet::ranges::Range;
use tacit_packet::tcp::{Flags, Segment};
use tacit_packet::units::{Duration, Instant};

/// An ACK, after the window and the scoreboard have processed it.
pub(super) struct Seen<'a> {
    pub now: Instant,
    /// SEG.ACK.
    pub ack: Position,
    /// Round-trip time from the timestamps.
    pub echoed: Option<Duration>,
    pub segment: &'a Segment,
    /// SND.UNA advanced.
    pub advanced: bool,
    /// Bytes newly SACKed.
    pub news: u64,
    /// It reports that a retransmission of ours was unnecessary (RFC 2883).
    pub dsack: bool,
    /// FlightSize before it.
    pub flight: u64,
    /// State before it.
    pub before: Before,
}

/// The state with which an ACK is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Data that the peer was known to have.
    held: Position,
    /// SND.WND.
    window: u64,
    /// The pipe.
    pub pipe: u64,
}

impl Seen<'_> {
    /// True for a duplicate ACK without any SACK option; `window` is SND.WND now.
    pub fn is_bare_duplicate(&self, window: u64) -> bool {
        let empty = self.segment.sequence_len() == 0 && self.segment.sack.is_empty();
        !self.advanced && empty && window == self.before.window
    }
}

impl Sender {
    /// A count of all data that the peer is known to have; its growth is RFC 6937's DeliveredData. Without SACK,
    /// duplicate ACKs count as in `inferred`.
    pub(super) fn held_by_peer(&self) -> Position {
        self.snd_una + self.board.sacked_bytes() + self.inferred
    }

    /// Called before any part of an ACK is processed; returns the state before it.
    #[inline(never)]
    pub(super) fn before_ack(&mut self, now: Instant, echoed: Option<Duration>) -> Before {
        if let Some(rack) = self.board.rack() {
            rack.begin_ack(now, echoed);
        }
        self.begin_delivery(now);
        Before { held: self.held_by_peer(), window: self.snd_wnd, pipe: self.pipe() }
    }

    /// Called after that, before any conclusions: checks whether an earlier conclusion was wrong.
    #[inline(never)]
    pub(super) fn look_back(&mut self, seen: &mut Seen<'_>, counters: &mut Counters) {
        let duplicate = self.note_duplicate(seen, counters);
        seen.dsack = duplicate.is_some();
        self.judge_episode(seen, duplicate, counters);
    }

    /// ECN was agreed on.
    pub fn use_ecn(&mut self) {
        self.extended = true;
        self.reductions = Some(Reductions::new(self.snd_una));
    }

    /// CWR on the first new data after a reduction (RFC 3168 section 6.1.2).
    pub fn cwr_flags(&mut self, outgoing: &Outgoing) -> Flags {
        match &mut self.reductions {
            Some(reductions) if !outgoing.again && outgoing.payload > 0 => reductions.take_flags(),
            _ => Flags::NONE,
        }
    }

    /// Records a reduction of the window, once per window, for any reason.
    pub(super) fn note_reduction(&mut self) {
        if let Some(reductions) = &mut self.reductions {
            reductions.on_reduced(self.snd_nxt);
        }
    }

    /// Answers ECE like a loss, but without retransmission (RFC 3168 section 6.1.2), or leaves it to a scalable control.
    /// Returns true if the ACK carries ECE; the window does not grow then.
    #[inline(never)]
    pub(super) fn answer_echo(
        &mut self,
        seen: &Seen<'_>,
        sample: Option<&AckSample>,
        counters: &mut Counters,
    ) -> bool {
        let Some(reductions) = self.reductions else { return false };
        let is_marked = seen.segment.flags.contains(Flags::ECE);
        if self.congestion.is_scalable() {
            if let Some(sample) = sample {
                self.congestion.on_marks(sample, is_marked);
            }
            return is_marked;
        }
        if !is_marked {
            return false;
        }
        if self.phase == Phase::Open && seen.advanced && reductions.is_news(seen.ack) {
            counters.ecn_reductions += 1;
            self.congestion.on_loss(seen.flight);
            self.note_reduction();
            // The response to an earlier loss can no longer be undone without undoing this one.
            self.episode = None;
            self.inferred = 0;
        }
        true
    }

    /// Called after conclusions were drawn.
    #[inline(never)]
    pub(super) fn after_ack(&mut self, seen: &Seen<'_>, timers: &mut Timers, counters: &mut Counters) {
        if self.rack_tlp.is_some() {
            self.look_at_times(seen.now, seen.flight, timers, counters);
            self.judge_probe(seen, timers);
        }
        self.allow_proportionally(seen.before.held);
        self.finish_delivery(seen);
    }

    /// `payload` bytes were put into a segment, new or retransmitted.
    #[inline(never)]
    pub(super) fn after_sending(
        &mut self,
        now: Instant,
        payload: u32,
        timers: &mut Timers,
        counters: &mut Counters,
    ) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent(u64::from(payload));
        }
        self.pace(payload, now);
        self.note_fresh_probe(counters);
        self.schedule_probe(now, timers);
    }

    /// The retransmission of ours that the ACK reports as unnecessary.
    fn note_duplicate(&mut self, seen: &Seen<'_>, counters: &mut Counters) -> Option<Range> {
        let blocks = &seen.segment.sack;
        if !self.use_sack || blocks.is_empty() {
            return None;
        }
        let ack = seen.ack;
        let range = dsack::reported(blocks, ack, self.snd_nxt, self.max_window)?;
        if !self.copies.believes(range.len().div_ceil(u64::from(self.mss))) {
            return None;
        }
        counters.dsacks_received += 1;
        let snd_nxt = self.snd_nxt;
        if let Some(rack) = self.board.rack() {
            rack.on_dsack(ack, snd_nxt);
        }
        Some(range)
    }
}
