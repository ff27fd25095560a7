//! The minimum or maximum of recent samples.

use std::collections::VecDeque;

use tacit_packet::units::{Duration, Instant};

/// Number of parts of the window: a sample may outlive the window by one part.
const PARTS: u64 = 16;

/// The extreme of the samples in a sliding window: keeps the samples that may still become the extreme, best first.
#[derive(Clone, Debug, Default)]
pub(super) struct Extreme {
    samples: VecDeque<(Instant, Duration)>,
}

impl Extreme {
    /// Adds `value` at `now`, and removes samples older than `window`. `beats` returns true if its first argument is
    /// more extreme than its second; it must be the same function each time.
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
        // Skipped: worse than a recent sample, which it would outlive only by a moment.
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

    /// The extreme; `None` before the first sample.
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
        // Increasing values are the worst case, because each may become the minimum.
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
