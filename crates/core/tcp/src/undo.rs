//! Detects that a timeout or a fast recovery was unnecessary, and restores the state before it.
//!
//! [`Episode`] keeps the state that is needed for detecting and undoing it; `sender/undo.rs` uses it.

use tacit_congestion::Controller;
use tacit_packet::position::Position;
use tacit_packet::tcp::TIMESTAMP_TICK;
use tacit_packet::units::{Duration, Instant};

/// How a sender detects that it retransmitted unnecessarily. In that case the congestion window is restored (RFC 4015)
/// and segments are no longer declared lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Undo {
    /// Never.
    #[default]
    Never,
    /// By timestamps: the first ACK after a retransmission echoes the original (Eifel, RFC 3522). For timeouts and fast
    /// recoveries.
    Eifel,
    /// By the ACKs after a timeout: they acknowledge data that was not retransmitted (F-RTO, RFC 5682).
    FRto,
    /// By both, and by a duplicate report for every retransmission (RFC 2883, RFC 3708), as Linux does.
    All,
}

impl Undo {
    pub(crate) fn by_timestamps(self) -> bool {
        matches!(self, Self::Eifel | Self::All)
    }

    pub(crate) fn by_frto(self) -> bool {
        matches!(self, Self::FRto | Self::All)
    }

    pub(crate) fn by_duplicates(self) -> bool {
        self == Self::All
    }
}

/// Why the window was reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    FastRecovery,
    Timeout,
}

/// One reduction of the window, from its cause until it can no longer be found unnecessary.
#[derive(Clone, Debug)]
pub(crate) struct Episode {
    pub cause: Cause,
    /// The controller before the reduction.
    pub before: Controller,
    /// SND.UNA when it began: its retransmissions are above this.
    una: Position,
    first_copy_at: Option<Instant>,
    /// The first ACK since then that acknowledges new data has arrived.
    answered: bool,
    /// Retransmitted segments, and segments reported as duplicates.
    copies: u64,
    duplicates: u64,
    /// Recovery has ended; an ACK beyond this ends the episode.
    ends: Option<Position>,
}

impl Episode {
    pub fn new(cause: Cause, before: Controller, una: Position) -> Self {
        Self {
            cause,
            before,
            una,
            first_copy_at: None,
            answered: false,
            copies: 0,
            duplicates: 0,
            ends: None,
        }
    }

    /// Records a retransmission.
    pub fn on_copy(&mut self, now: Instant) {
        self.first_copy_at.get_or_insert(now);
        self.copies += 1;
    }

    /// Recovery has ended; data sent until now, up to `snd_nxt`, may still be reported.
    pub fn on_repaired(&mut self, snd_nxt: Position) {
        self.ends.get_or_insert(snd_nxt);
    }

    /// True if the episode can no longer be found unnecessary.
    pub fn is_over(&self, ack: Position) -> bool {
        self.ends.is_some_and(|end| ack > end)
    }

    /// Eifel detection: the ACK at `now` is the first for new data since the first retransmission, and echoes a
    /// timestamp from before that retransmission (RFC 3522 section 3.2). In ticks of our clock, so that a
    /// retransmission sent within the tick of the original proves nothing.
    pub fn is_answer_to_original(&mut self, now: Instant, echoed: Option<Duration>) -> bool {
        let Some(copy_at) = self.first_copy_at else { return false };
        if core::mem::replace(&mut self.answered, true) {
            return false;
        }
        let ticks = |at: Instant| at.as_nanos() / TIMESTAMP_TICK.as_nanos();
        let since_copy = TIMESTAMP_TICK * (ticks(now) - ticks(copy_at)).max(1);
        echoed.is_some_and(|echoed| echoed > since_copy)
    }

    /// A duplicate of `segments` segments from `start` on was reported. Returns true if every retransmission is now
    /// known to be unnecessary.
    pub fn on_duplicate(&mut self, start: Position, segments: u64) -> bool {
        if start < self.una || self.copies == 0 {
            return false;
        }
        self.duplicates += segments;
        self.duplicates >= self.copies
    }
}

/// F-RTO (RFC 5682 section 3.1; section 2.1 without SACK), after the timeout's retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frto {
    /// Step 2: the retransmission, which ends here, is not acknowledged yet.
    First { resent_end: Position },
    /// Step 3: new data is sent instead of lost segments, and the next ACK decides: the timeout was spurious if the ACK
    /// covers something, but nothing beyond `point`.
    Second { point: Position },
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_congestion::Start;
    use tacit_packet::position::at;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn episode() -> Episode {
        let before = Controller::new(&tacit_congestion::Config::default(), 1000, Start::default());
        Episode::new(Cause::FastRecovery, before, at(1000))
    }

    #[test]
    fn only_the_first_answer_counts_and_only_an_echo_from_before_the_copy() {
        let now = Instant::ZERO + MS(150);
        let mut none_sent = episode();
        assert!(!none_sent.is_answer_to_original(now, Some(MS(120))));
        for (echoed, spurious) in [(Some(MS(120)), true), (Some(MS(50)), false), (None, false)] {
            let mut episode = episode();
            episode.on_copy(Instant::ZERO + MS(100));
            assert_eq!(episode.is_answer_to_original(now, echoed), spurious, "{echoed:?}");
            assert!(!episode.is_answer_to_original(now, Some(MS(120))));
        }
    }

    #[test]
    fn a_copy_within_the_tick_of_its_original_proves_nothing() {
        let mut episode = episode();
        episode.on_copy(Instant::ZERO + Duration::from_micros(1_900));
        // An echo within the current tick counts as one tick.
        assert!(!episode.is_answer_to_original(Instant::ZERO + Duration::from_micros(1_950), Some(MS(1))));
    }

    #[test]
    fn all_copies_must_be_reported_and_earlier_ones_do_not_count() {
        let mut episode = episode();
        assert!(!episode.on_duplicate(at(1000), 1), "nothing was sent again");
        episode.on_copy(Instant::ZERO);
        episode.on_copy(Instant::ZERO);
        assert!(!episode.on_duplicate(at(0), 2));
        assert!(!episode.on_duplicate(at(1000), 1));
        assert!(episode.on_duplicate(at(2000), 1));
    }
}
