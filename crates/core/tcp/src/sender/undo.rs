//! Undoes the response to a spurious loss (RFC 3522, 4015, 5682).

use super::extended::Seen;
use super::{Phase, Sender};
use crate::counters::Counters;
use crate::undo::{Cause, Episode, Frto, Undo};
use tacit_packet::ranges::Range;
use tacit_packet::units::Instant;

impl Sender {
    /// The window is about to be reduced. If an earlier episode is still open, undoing this one undoes it as well.
    pub(super) fn begin_episode(&mut self, cause: Cause) {
        if self.undo == Undo::Never {
            return;
        }
        match &mut self.episode {
            Some(episode) if self.phase != Phase::Open => episode.cause = cause,
            _ => self.episode = Some(Episode::new(cause, self.congestion.clone(), self.snd_una)),
        }
    }

    /// The timer has expired in `phase`, and the first segment will be retransmitted: restarts F-RTO, unless other data
    /// is already being repaired.
    pub(super) fn begin_frto(&mut self, phase: Phase) {
        let repairing_more = match phase {
            Phase::Open => false,
            Phase::Timeout(_) => self.retries == 1,
            Phase::Recovery(_) => true,
        };
        let first = self.board.next_lost().filter(|_| self.undo.by_frto() && !repairing_more);
        self.frto = first.map(|first| Frto::First { resent_end: first.end() });
    }

    /// Fast recovery, or the recovery after a timeout, has ended.
    pub(super) fn end_episode(&mut self) {
        self.frto = None;
        if let Some(episode) = &mut self.episode {
            episode.on_repaired(self.snd_nxt);
        }
    }

    /// Records a retransmission.
    pub(super) fn note_copy(&mut self, now: Instant) {
        self.copies.on_copy();
        if let Some(episode) = &mut self.episode {
            episode.on_copy(now);
        }
    }

    /// Called after SND.UNA and the scoreboard have changed, before any conclusion. `duplicate` was reported.
    pub(super) fn judge_episode(
        &mut self,
        seen: &Seen<'_>,
        duplicate: Option<Range>,
        counters: &mut Counters,
    ) {
        if self.episode.as_ref().is_some_and(|episode| episode.is_over(seen.ack)) {
            self.episode = None;
        }
        let by_frto = self.judge_frto(seen);
        let Some(episode) = &mut self.episode else { return };
        let by_timestamps = self.undo.by_timestamps()
            && seen.advanced
            && self.phase != Phase::Open
            && episode.is_answer_to_original(seen.now, seen.echoed);
        let segments = |range: Range| range.len().div_ceil(u64::from(self.mss));
        let by_duplicates = self.undo.by_duplicates()
            && duplicate.is_some_and(|range| episode.on_duplicate(range.start, segments(range)));
        if by_timestamps && let Some(echoed) = seen.echoed {
            // The round-trip time of the original, for which the timer was too short (RFC 4015 section 3.2 step (7)).
            self.rtt.sample(echoed);
        }
        if by_frto || by_timestamps || by_duplicates {
            self.undo_episode(counters);
        }
    }

    fn undo_episode(&mut self, counters: &mut Counters) {
        let Some(episode) = self.episode.take() else { return };
        match episode.cause {
            Cause::FastRecovery => counters.spurious_recoveries += 1,
            Cause::Timeout => counters.spurious_timeouts += 1,
        }
        if episode.before.cwnd() > self.congestion.cwnd() {
            self.congestion.undo(episode.before);
        }
        self.frto = None;
        if self.phase != Phase::Open {
            self.board.unmark_lost();
            self.phase = Phase::Open;
            self.prr = None;
            self.recover = self.snd_una;
            self.resend_first = false;
            self.inferred = 0;
            self.dup_acks = 0;
        }
    }

    /// Steps 2 and 3 of F-RTO; returns true if the timeout was spurious.
    fn judge_frto(&mut self, seen: &Seen<'_>) -> bool {
        match self.frto {
            None => false,
            Some(Frto::First { resent_end }) => {
                let Phase::Timeout(point) = self.phase else { return false };
                // Without SACK a duplicate ends the attempt (section 2.1 step 2a), with SACK it changes nothing.
                let duplicate = !seen.advanced && !self.use_sack;
                let room = (self.snd_una + self.snd_wnd).saturating_since(self.snd_nxt);
                let payload = u64::from(self.mss).min(self.unsent()).min(room);
                let sends = payload > 0 && self.worth_sending(payload as u32, self.unsent(), room);
                if seen.advanced && seen.ack >= resent_end && seen.ack < point && sends {
                    self.frto = Some(Frto::Second { point: self.snd_nxt });
                } else if seen.advanced || duplicate {
                    self.frto = None;
                }
                false
            }
            Some(Frto::Second { point }) => {
                self.frto = None;
                let highest = self.board.highest_sacked().max(Some(seen.ack));
                let genuine = highest > Some(point) || !(seen.advanced || seen.news > 0);
                if genuine {
                    self.congestion.limit(3 * u64::from(self.mss));
                }
                !genuine
            }
        }
    }

    /// While step 3 waits for its answer nothing is retransmitted; the two segments that the window allows by now are
    /// new data.
    pub(super) fn frto_waits(&self) -> bool {
        matches!(self.frto, Some(Frto::Second { .. }))
    }
}
