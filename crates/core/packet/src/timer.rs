//! A table of timers indexed by an enum: setting, clearing and reading cost one array access.

use crate::units::Instant;

/// Identifies the timers of one endpoint by indexes `0..N` into a [`TimerTable`].
pub trait TimerKind: Copy {
    /// Index of this timer in the table.
    fn index(self) -> usize;
}

/// The deadline of a timer that is not armed.
const DISARMED: Instant = Instant::from_nanos(u64::MAX);

/// `N` optional deadlines.
#[derive(Clone, Debug)]
pub struct TimerTable<const N: usize> {
    deadlines: [Instant; N],
}

impl<const N: usize> Default for TimerTable<N> {
    fn default() -> Self {
        Self { deadlines: [DISARMED; N] }
    }
}

impl<const N: usize> TimerTable<N> {
    /// Arms `timer` for `at`, replacing an earlier setting.
    #[inline]
    pub fn set(&mut self, timer: impl TimerKind, at: Instant) {
        self.deadlines[timer.index()] = at;
    }

    /// Disarms `timer`.
    #[inline]
    pub fn clear(&mut self, timer: impl TimerKind) {
        self.deadlines[timer.index()] = DISARMED;
    }

    /// The deadline of `timer`, if it is armed.
    #[inline]
    pub fn get(&self, timer: impl TimerKind) -> Option<Instant> {
        armed(self.deadlines[timer.index()])
    }

    /// Disarms `timer` and returns true if it was due at `now`.
    #[inline]
    pub fn take_expired(&mut self, timer: impl TimerKind, now: Instant) -> bool {
        let due = self.get(timer).is_some_and(|at| at <= now);
        if due {
            self.clear(timer);
        }
        due
    }

    /// The earliest deadline.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        armed(self.deadlines.iter().copied().fold(DISARMED, Instant::min))
    }
}

#[inline]
fn armed(at: Instant) -> Option<Instant> {
    (at != DISARMED).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Duration;

    #[derive(Clone, Copy)]
    enum Kind {
        First,
        Second,
    }

    impl TimerKind for Kind {
        fn index(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn the_earliest_deadline_wins_and_expires_once() {
        let start = Instant::ZERO;
        let mut table = TimerTable::<2>::default();
        assert_eq!(table.next(), None);
        table.set(Kind::First, start + Duration::from_millis(2));
        table.set(Kind::Second, start + Duration::from_millis(1));
        assert_eq!(table.next(), table.get(Kind::Second));
        let now = start + Duration::from_millis(1);
        assert!(!table.take_expired(Kind::First, now));
        assert!(table.take_expired(Kind::Second, now));
        assert!(!table.take_expired(Kind::Second, now));
        assert_eq!(table.next(), table.get(Kind::First));
    }
}
