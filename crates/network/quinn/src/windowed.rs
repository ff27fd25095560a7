//! The maximum of the last rounds.

/// Round trips for which a value counts, as in BBR's bandwidth filter (draft-cardwell-iccrg-bbr-congestion-control-00
/// section 4.1.1.3).
const ROUNDS: usize = 10;

/// Maximum of each of the last [`ROUNDS`] rounds.
#[derive(Clone, Debug)]
pub(crate) struct WindowedMax<T> {
    rounds: [T; ROUNDS],
    current: usize,
}

impl<T: Copy + Default + Ord> WindowedMax<T> {
    pub(crate) fn new() -> Self {
        Self { rounds: [T::default(); ROUNDS], current: 0 }
    }

    pub(crate) fn add(&mut self, value: T) {
        self.rounds[self.current] = self.rounds[self.current].max(value);
    }

    /// The maximum over all rounds; the default value if there is none.
    pub(crate) fn max(&self) -> T {
        self.rounds.iter().copied().max().unwrap_or_default()
    }

    /// The maximum of this round.
    pub(crate) fn of_this_round(&self) -> T {
        self.rounds[self.current]
    }

    /// Starts a new round and drops the oldest one.
    pub(crate) fn next_round(&mut self) {
        self.current = (self.current + 1) % ROUNDS;
        self.rounds[self.current] = T::default();
    }

    /// Keeps only this round and the previous one.
    pub(crate) fn forget_older_rounds(&mut self) {
        let before = (self.current + ROUNDS - 1) % ROUNDS;
        for (index, value) in self.rounds.iter_mut().enumerate() {
            if index != self.current && index != before {
                *value = T::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_counts_for_ten_rounds() {
        let mut filter = WindowedMax::new();
        filter.add(7);
        filter.add(5);
        for _ in 1..ROUNDS {
            filter.next_round();
            filter.add(3);
            assert_eq!(filter.max(), 7);
        }
        filter.next_round();
        assert_eq!(filter.max(), 3);
        assert_eq!(filter.of_this_round(), 0);
    }

    #[test]
    fn older_rounds_are_forgotten_but_not_the_last_two() {
        let mut filter = WindowedMax::new();
        for value in [9, 4, 2] {
            filter.next_round();
            filter.add(value);
        }
        filter.forget_older_rounds();
        assert_eq!(filter.max(), 4);
    }
}
