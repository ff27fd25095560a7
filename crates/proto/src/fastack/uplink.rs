//! A client's ACKs, and the parts of them that its sender has to hear.

use super::cache::DUPLICATES;
use super::flow::{Flow, Outbox};
use super::{Config, Verdict};
use crate::packet::Packet;
use crate::tcp::{Flags, SackBlocks, Segment};
use crate::units::{Duration, Instant, SeqNumber};

/// Without SACK duplicates do not name their segment: they count against a copy that has had this long to show.
const SETTLING: Duration = Duration::from_millis(50);

impl Flow {
    /// A segment of the client comes up.
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
        // The client may have moved the window's end, or closed a hole that the link left.
        self.answer(now, config, out);
        self.flush(out);
        verdict
    }

    /// Notes the fields that later ACKs in the client's name carry.
    fn note_client(&mut self, packet: &Packet, segment: &Segment) {
        self.client_ip = packet.ip;
        self.client_next = self.client_next.max(segment.seq + segment.sequence_len());
        if let (Some(clock), Some(stamps)) = (self.client_clock, segment.timestamps) {
            // Never backwards: the sender's PAWS would drop later segments.
            self.client_clock = Some(SeqNumber(clock).max(SeqNumber(stamps.value)).0);
        }
    }

    fn note_window(&mut self, segment: &Segment) {
        let window = u32::from(segment.window) << self.scale;
        self.edge = segment.ack + window;
        self.largest_window = self.largest_window.max(window);
    }

    /// The client's TCP has more than it had.
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
        if !self.owes() {
            self.caused_duplicates = 0;
        }
        self.moved_on(now, config);
        if self.repairs_until.is_some_and(|until| segment.ack.before(until)) {
            // Part of the missing data: the next hole begins here (RFC 6582 section 3.2). SACKs say more than that.
            if segment.sack.is_empty() && self.cache.first().is_some_and(|copy| !copy.resent) {
                self.resend_first(out);
            }
        } else {
            self.repairs_until = None;
        }
    }

    /// Sends again the data that the client shows to miss and that its sender holds for arrived.
    fn repair(&mut self, now: Instant, segment: &Segment, out: &mut Outbox) {
        if !self.owes() {
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

    /// A duplicate ACK that no copy of ours has caused.
    fn is_own_duplicate(&mut self, segment: &Segment) -> bool {
        // Data that came twice is no news to a sender that sent it once (RFC 2883).
        if !segment.sack.is_empty() {
            return false;
        }
        let ours = self.caused_duplicates > 0;
        self.caused_duplicates = self.caused_duplicates.saturating_sub(1);
        !ours
    }

    /// The blocks of `segment` that tell its sender something: above the data that it knows to have arrived.
    fn blocks_above(&self, segment: &Segment) -> SackBlocks {
        let mut above = SackBlocks::EMPTY;
        for block in segment.sack.as_slice().iter().filter(|block| block.start.after(self.answered)) {
            // No more than there were.
            above.push(*block);
        }
        above
    }

    /// True when the sender must hear how far the window reaches: it moved by a segment, or half of its size (RFC 9293
    /// section 3.8.6.2.2), and of the window that the sender knows half is used. With more than that left it is not held up, and
    /// hears of it with the next forged ACK. Or the window was taken back.
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
