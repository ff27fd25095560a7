//! Loss detection by time of sending (RFC 8985 section 6): RACK's walks over the scoreboard.

use std::collections::VecDeque;

use super::{AMBIGUOUS, DUP_THRESH, LOST, RESENT, SACKED, Scoreboard, Sent};
use crate::rack::{Delivered, Rack};
use tacit_packet::units::{Duration, Instant};

/// RACK's state in addition to the segments.
///
/// First transmissions are in the board in order, so one cursor is enough for them; retransmissions are listed here in
/// order. Neither requires a list through all segments.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    pub rack: Rack,
    /// Retransmissions, oldest first; an entry is stale if its segment was removed, SACKed, or sent once more.
    copies: VecDeque<Copied>,
}

/// A retransmitted segment.
#[derive(Clone, Copy, Debug)]
struct Copied {
    index: u64,
    sent_at: Instant,
}

/// Result of checking the times of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overdue {
    /// When the next segment will have exceeded the tolerated reordering.
    pub again_at: Option<Instant>,
    /// When the latest retransmission that is now declared lost was sent.
    pub lost_again: Option<Instant>,
}

impl Timed {
    #[inline(never)]
    pub(super) fn on_delivered(&mut self, sent: &Sent, cumulatively: bool) {
        let resent = sent.has(AMBIGUOUS);
        self.rack.on_delivered(Delivered { end: sent.end(), sent_at: sent.sent_at, resent, cumulatively });
    }

    /// Lists the latest retransmissions of all segments, as if none had been checked.
    pub(super) fn list_copies(&mut self, segments: &VecDeque<Sent>, removed: u64) {
        let again = (removed..).zip(segments).filter(|(_, sent)| sent.has(AMBIGUOUS) && !sent.has(SACKED));
        self.copies = again.map(|(index, sent)| Copied { index, sent_at: sent.sent_at }).collect();
        self.copies.make_contiguous().sort_by_key(|copy| copy.sent_at);
    }

    pub(super) fn on_resent(&mut self, index: u64, now: Instant) {
        self.copies.push_back(Copied { index, sent_at: now });
    }
}

impl Scoreboard {
    /// From now on times of sending decide about loss; nothing may be outstanding yet.
    pub fn watch_times(&mut self, rack: Rack) {
        debug_assert!(self.is_empty());
        self.timed = Some(Box::new(Timed { rack, copies: VecDeque::new() }));
    }

    /// RACK's variables, if RACK is used.
    pub fn rack(&mut self) -> Option<&mut Rack> {
        self.timed.as_mut().map(|timed| &mut timed.rack)
    }

    /// RACK_detect_loss() (RFC 8985 section 6.2 step 5).
    ///
    /// In the RFC the timer runs until the last of the waiting segments is due; here it runs until the first is, so
    /// that each is declared lost at its own time.
    pub fn detect_lost_by_time(&mut self, now: Instant, repairing: bool, srtt: Option<Duration>) -> Overdue {
        let mut found = Overdue::default();
        let Some(timed) = &mut self.timed else { return found };
        if self.segments.is_empty() {
            timed.copies.clear();
            return found;
        }
        let rack = &timed.rack;
        let patience = rack.rtt + rack.reordering_window(repairing, DUP_THRESH, srtt);
        let from = (self.examined - self.removed) as usize;
        for (place, sent) in (from..).zip(self.segments.range_mut(from..)) {
            if !sent.has(SACKED | LOST | AMBIGUOUS) {
                if !rack.overtook((sent.sent_at, sent.end())) {
                    break;
                }
                let due = sent.sent_at + patience;
                if due > now {
                    found.again_at = Some(due);
                    break;
                }
                self.pipe -= sent.lose(sent.marks | LOST, place, &mut self.rate);
            }
            self.examined += 1;
        }
        while let Some(&copy) = timed.copies.front() {
            if let Some(sent) = outstanding(copy, self.removed, &mut self.segments) {
                if !rack.overtook((sent.sent_at, sent.end())) {
                    break;
                }
                let due = sent.sent_at + patience;
                if due > now {
                    found.again_at = found.again_at.into_iter().chain([due]).min();
                    break;
                }
                let place = (copy.index - self.removed) as usize;
                self.pipe -= sent.lose((sent.marks | LOST) & !RESENT, place, &mut self.rate);
                self.resend_from = self.resend_from.min(copy.index);
                found.lost_again = Some(copy.sent_at);
            }
            timed.copies.pop_front();
        }
        found
    }

    /// RACK_mark_losses_on_RTO() (RFC 8985 section 6.3): declares the first segment lost, and those sent a round trip
    /// ago. A reneging peer is treated as in [`mark_all_lost`](Self::mark_all_lost).
    pub fn mark_overdue_lost(&mut self, now: Instant, srtt: Option<Duration>) {
        let Some(timed) = &mut self.timed else { return self.mark_all_lost() };
        if self.segments.front().is_some_and(|sent| sent.has(SACKED)) {
            timed.rack.segments_sacked = 0;
            return self.mark_all_lost();
        }
        let patience = timed.rack.rtt + timed.rack.reordering_window(true, DUP_THRESH, srtt);
        for (place, sent) in self.segments.iter_mut().enumerate() {
            let due = place == 0 || sent.sent_at + patience <= now;
            if due && !sent.has(SACKED) {
                self.pipe -= sent.lose((sent.marks | LOST) & !RESENT, place, &mut self.rate);
            }
        }
        self.resend_from = self.removed;
    }
}

/// The segment of a listed retransmission, if that is the latest one and may be in flight.
fn outstanding(copy: Copied, removed: u64, segments: &mut VecDeque<Sent>) -> Option<&mut Sent> {
    let place = copy.index.checked_sub(removed)?;
    let sent = segments.get_mut(place as usize)?;
    let waiting = !sent.has(LOST) || sent.has(RESENT);
    (sent.sent_at == copy.sent_at && !sent.has(SACKED) && waiting).then_some(sent)
}
