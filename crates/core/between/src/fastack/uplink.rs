//! A client's ACKs, and which parts of them its sender needs.

use super::cache::DUPLICATES;
use super::flow::{Flow, Outbox};
use super::{Config, Verdict};
use tacit_packet::Packet;
use tacit_packet::tcp::{Flags, SackBlocks, Segment};
use tacit_packet::units::{Duration, Instant, SeqNumber};

/// Without SACK, duplicate ACKs do not identify a segment: they count against a copy only after this time since it was
/// sent.
const SETTLING: Duration = Duration::from_millis(50);

impl Flow {
    /// A segment of the client is on its way to the sender.
    pub fn uplink(
        &mut self,
        now: Instant,
        packet: &Packet,
        segment: &Segment,
        config: &Config,
        out: &mut Outbox,
    ) -> Verdict {
        self.note_client(packet, segment);
        let strange = segment.ack.after(self.highest);
        if !segment.flags.contains(Flags::ACK) || segment.flags.contains(Flags::SYN) || strange {
            return Verdict::Pass;
        }
        let pure = segment.is_pure_ack();
        let advances = segment.ack.after(self.client_acked);
        let is_old = segment.ack.before(self.client_acked);
        if !is_old {
            self.note_window(segment);
        }
        if advances {
            self.advance(now, segment, config, out);
        } else if pure && !is_old {
            self.duplicates += 1;
        }
        if !is_old {
            self.cache.sack(segment.sack);
            self.repair(now, segment, out);
        }
        let verdict = self.judge(packet, segment, pure, advances);
        match &verdict {
            Verdict::Drop => out.counters.suppressed_acks += 1,
            Verdict::Replace(_) => out.counters.raised_acks += 1,
            Verdict::Pass => {}
        }
        // The client may have moved the end of its window, or filled a hole that the link left.
        self.answer(now, config, out);
        self.flush(out);
        verdict
    }

    /// Records the fields that later forged ACKs carry.
    fn note_client(&mut self, packet: &Packet, segment: &Segment) {
        self.client_ip = packet.ip;
        self.client_next = self.client_next.max(segment.seq + segment.sequence_len());
        if let (Some(clock), Some(stamps)) = (self.client_clock, segment.timestamps) {
            // Never backwards, because the sender's PAWS would drop later segments.
            self.client_clock = Some(SeqNumber(clock).max(SeqNumber(stamps.value)).0);
        }
    }

    fn note_window(&mut self, segment: &Segment) {
        let window = u32::from(segment.window) << self.scale;
        self.edge = segment.ack + window;
        self.largest_window = self.largest_window.max(window);
    }

    /// The client's TCP has acknowledged more than before.
    fn advance(&mut self, now: Instant, segment: &Segment, config: &Config, out: &mut Outbox) {
        self.client_acked = segment.ack;
        self.cache.release(segment.ack);
        self.duplicates = 0;
        if segment.ack.after(self.answered) {
            self.answered = segment.ack;
            self.echoes_congestion = segment.flags.contains(Flags::ECE);
            if let (Some(stamps), Some(recent)) = (segment.timestamps, self.recent) {
                self.recent = Some(SeqNumber(recent).max(SeqNumber(stamps.echo_reply)).0);
            }
        }
        if !self.has_unconfirmed_acks() {
            self.caused_duplicates = 0;
        }
        self.moved_on(now, config);
        if self.repairs_until.is_some_and(|until| segment.ack.before(until)) {
            // Part of the missing data arrived, so the next hole begins here (RFC 6582 section 3.2). With SACK this is
            // not needed.
            if segment.sack.is_empty() && self.cache.first().is_some_and(|copy| !copy.resent) {
                self.resend_first(out);
            }
        } else {
            self.repairs_until = None;
        }
    }

    /// Retransmits data that the client's ACKs show as missing, and that its sender considers delivered.
    fn repair(&mut self, now: Instant, segment: &Segment, out: &mut Outbox) {
        if !self.has_unconfirmed_acks() {
            return;
        }
        if !segment.sack.is_empty() {
            self.resend_lost(out);
        } else if self.duplicates as usize >= DUPLICATES && self.repairs_until.is_none() {
            let ripe = |at: Instant| now.saturating_since(at) >= SETTLING;
            if self.cache.first().is_some_and(|copy| !copy.resent && ripe(copy.at)) {
                self.repairs_until = Some(self.answered);
                self.resend_first(out);
            }
        }
    }

    fn judge(&mut self, packet: &Packet, segment: &Segment, pure: bool, advances: bool) -> Verdict {
        let blocks = self.blocks_above(segment);
        if segment.ack == self.answered {
            let news = segment.ack.after(self.acked_to_sender)
                || !pure
                || std::mem::take(&mut self.probed)
                || self.window_is_news()
                || !blocks.is_empty()
                || !advances && self.is_own_duplicate(segment);
            if !news {
                return Verdict::Drop;
            }
            self.last_sack = blocks;
            self.note_told(segment);
            return Verdict::Pass;
        }
        let sack_is_news = !blocks.is_empty() && blocks != self.last_sack;
        if pure && !sack_is_news && !self.window_is_news() && !std::mem::take(&mut self.probed) {
            return Verdict::Drop;
        }
        self.last_sack = blocks;
        Verdict::Replace(self.speak_for(packet, Segment { sack: blocks, ..*segment }))
    }

    /// True for a duplicate ACK that was not caused by our own copies.
    fn is_own_duplicate(&mut self, segment: &Segment) -> bool {
        // A D-SACK is no news for a sender that sent the data once (RFC 2883).
        if !segment.sack.is_empty() {
            return false;
        }
        let ours = self.caused_duplicates > 0;
        self.caused_duplicates = self.caused_duplicates.saturating_sub(1);
        !ours
    }

    /// The blocks of `segment` that are news for its sender: those above the data that it knows to be delivered.
    fn blocks_above(&self, segment: &Segment) -> SackBlocks {
        let mut above = SackBlocks::EMPTY;
        for block in segment.sack.as_slice().iter().filter(|block| block.start.after(self.answered)) {
            // There are no more blocks than before, so there is room.
            above.push(*block);
        }
        above
    }

    /// True if the sender must get a window update. Either the window moved by a segment or by half of its size (RFC
    /// 9293 section 3.8.6.2.2), and half of the window known to the sender is used; with more than half left the sender
    /// is not limited, and gets the update with the next forged ACK. Or the window has shrunk.
    fn window_is_news(&self) -> bool {
        let unit = 1_u32 << self.scale;
        if self.edge.before(self.told_edge) {
            return self.told_edge - self.edge > unit;
        }
        let step = self.largest_segment.min(self.largest_window / 2).max(unit);
        let left = if self.told_edge.after(self.highest) { self.told_edge - self.highest } else { 0 };
        self.edge - self.told_edge >= step && left < self.largest_window / 2
    }
}
