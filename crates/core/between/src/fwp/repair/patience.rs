//! Time limit for silence on a repair connection.

use tacit_packet::units::Duration;

/// A connection is given up after this multiple of the usual answer time, because requests queue behind it.
const ANSWER_TIMES: u64 = 8;
/// But not before this: Linux's TCP retransmits lost data after at least 200 ms (`TCP_RTO_MIN`), and then delivers it.
const MIN: Duration = Duration::from_millis(250);
/// Each answer moves the mean by an eighth of the difference, like a round-trip sample (RFC 6298 section 2).
const GAIN: u64 = 8;

/// How long a repair connection may be silent, given the answer times so far. A connection that waits for TCP's timers
/// delays everything behind its holes; requested again on another connection, the data arrives in a round trip.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Smoothed time from a request to the first bytes of its answer; `None` before the first.
    answered_in: Option<Duration>,
    longest: Duration,
}

impl Patience {
    /// At most `longest`, which is also the limit before the first answer.
    pub fn new(longest: Duration) -> Self {
        Self { answered_in: None, longest }
    }

    /// Records that an answer began `after` its request.
    pub fn answered(&mut self, after: Duration) {
        let after = after.min(self.longest);
        let smoothed = self.answered_in.map_or(after.as_nanos(), |mean| {
            mean.as_nanos() - mean.as_nanos() / GAIN + after.as_nanos() / GAIN
        });
        self.answered_in = Some(Duration::from_nanos(smoothed));
    }

    /// The current limit.
    pub fn time(&self) -> Duration {
        let limit = |mean: Duration| mean.saturating_mul(ANSWER_TIMES).max(MIN).min(self.longest);
        self.answered_in.map_or(self.longest, limit)
    }

    /// The largest limit.
    pub fn longest(&self) -> Duration {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_the_path_between_tcps_timer_and_the_setting() {
        let longest = Duration::from_secs(3);
        let ms = Duration::from_millis;
        let limit_after = |answered_in| {
            let mut patience = Patience::new(longest);
            patience.answered(ms(answered_in));
            patience.time()
        };
        assert_eq!(Patience::new(longest).time(), longest);
        assert_eq!([limit_after(0), limit_after(20), limit_after(100)], [250, 250, 800].map(ms));
        assert_eq!([limit_after(600), limit_after(60_000)], [longest, longest]);
        let mut patience = Patience::new(longest);
        patience.answered(ms(20));
        patience.answered(ms(1000));
        assert_eq!(patience.time(), ms(1140), "a stall alone is no slow path");
        (0..40).for_each(|_| patience.answered(ms(200)));
        assert!((ms(1590)..=ms(1610)).contains(&patience.time()), "queues have filled up: {patience:?}");
    }
}
