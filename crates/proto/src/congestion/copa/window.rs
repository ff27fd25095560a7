//! The smallest or largest of recent samples.

use std::collections::VecDeque;

use crate::units::{Duration, Instant};

/// Number of parts in which a window is remembered: a sample may live longer than the window by one of them.
const PARTS: u64 = 16;

/// The extreme of the samples in a sliding window: those that may still become it, best first.
#[derive(Clone, Debug, Default)]
pub(super) struct Extreme {
    samples: VecDeque<(Instant, Duration)>,
}

impl Extreme {
    /// Takes in `value` at `now`, and forgets samples older than `window`. `beats` says which of two wins, and is the same each
    /// time.
    pub fn update(
        &mut self,
        now: Instant,
        value: Duration,
        window: Duration,
        beats: fn(Duration, Duration) -> bool,
    ) {
        while self.samples.back().is_some_and(|(_, last)| !beats(*last, value)) {
            self.samples.pop_back();
        }
        // Worse than one a moment ago: it would outlive that one by no more than the moment.
        let fresh = |(at, _): &(Instant, Duration)| now.saturating_since(*at) < window / PARTS;
        if !self.samples.back().is_some_and(fresh) {
            self.samples.push_back((now, value));
        }
        while self.samples.len() > 1
            && self.samples.front().is_some_and(|(at, _)| now.saturating_since(*at) > window)
        {
            self.samples.pop_front();
        }
    }

    /// The extreme, once anything was measured.
    pub fn get(&self) -> Option<Duration> {
        self.samples.front().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_of_the_window_is_known_and_the_memory_bounded() {
        const MS: fn(u64) -> Duration = Duration::from_millis;
        let mut least = Extreme::default();
        let smaller: fn(Duration, Duration) -> bool = |a, b| a < b;
        // Values that only grow are the worst case: each may become the smallest.
        for now in 0..10_000 {
            least.update(Instant::ZERO + MS(now), MS(now), MS(160), smaller);
            let age = now - least.get().unwrap().as_millis();
            assert!(age <= 170, "{age}");
            assert!(least.samples.len() <= 18);
        }
        least.update(Instant::ZERO + MS(10_000), MS(3), MS(160), smaller);
        assert_eq!((least.get(), least.samples.len()), (Some(MS(3)), 1));
    }
}
