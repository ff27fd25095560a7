//! Round-trip time estimate and retransmission timeout (RFC 6298).

use tacit_packet::units::Duration;

/// RTO before the first measurement (RFC 6298 section 2.1).
pub const INITIAL_RTO: Duration = Duration::from_secs(1);

/// RTO when data transfer starts after a SYN was retransmitted and nothing was measured (RFC 6298 section 5.7).
const RTO_AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// "A maximum value MAY be placed on RTO provided it is at least 60 seconds" (RFC 6298 section 2.5).
const RTO_MAX: Duration = Duration::from_secs(60);

/// SRTT, RTTVAR and the backed-off RTO.
///
/// Samples are exact to the nanosecond, far finer than the coarse clocks RFC 6298 was written for, and on a path with a
/// steady delay RTTVAR decays to zero. The lower bound therefore applies to the variance term, `RTO = SRTT +
/// max(rto_min, 4 * RTTVAR)`, as in Linux. This is never below section 2.4's bound on the sum, and it avoids spurious
/// timeouts when a long steady delay grows.
#[derive(Clone, Debug, Default)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Option<Duration>,
    base: Duration,
    rto_min: Duration,
    backoff: u32,
}

impl RttEstimator {
    /// Without a measurement yet; the timeout is never below `rto_min`.
    pub fn new(rto_min: Duration) -> Self {
        Self { base: INITIAL_RTO, rto_min, ..Self::default() }
    }

    /// Adds a measurement and ends any back-off (RFC 6298 sections 2.2, 2.3, 5).
    pub fn sample(&mut self, measured: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(measured);
                self.variation = measured / 2;
            }
            Some(smoothed) => {
                let error = smoothed.max(measured) - smoothed.min(measured);
                // beta = 1/4, alpha = 1/8; RTTVAR first, with the old SRTT.
                self.variation = Duration::from_nanos(
                    self.variation.as_nanos() - self.variation.as_nanos() / 4 + error.as_nanos() / 4,
                );
                self.smoothed = Some(Duration::from_nanos(
                    smoothed.as_nanos() - smoothed.as_nanos() / 8 + measured.as_nanos() / 8,
                ));
            }
        }
        self.latest = Some(measured);
        self.backoff = 0;
        let smoothed = self.smoothed.unwrap_or(measured);
        self.base = (smoothed + self.variation.saturating_mul(4).max(self.rto_min)).min(RTO_MAX);
    }

    /// Before the first measurement: an answer arrived this long after a message. It may answer an earlier copy of it, or the peer may
    /// have waited. The RTO is that of such a measurement, and `most` at most.
    pub fn guess(&mut self, round_trip: Duration, most: Duration) {
        if self.smoothed.is_none() {
            self.base = (round_trip + round_trip.saturating_mul(2).max(self.rto_min)).min(most);
        }
    }

    /// Starts the data transfer with the larger RTO of RFC 6298 section 5.7, if the handshake needed a retransmission
    /// and gave no measurement.
    pub fn syn_was_lost(&mut self) {
        self.backoff = 0;
        if self.smoothed.is_none() {
            self.base = RTO_AFTER_LOST_SYN;
        }
    }

    /// Doubles the RTO (RFC 6298 section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The current timeout.
    #[inline]
    pub fn rto(&self) -> Duration {
        self.base.saturating_mul(1 << self.backoff).min(RTO_MAX)
    }

    /// The timeout after `times` doublings, for probes with their own back-off.
    pub fn rto_backed_off(&self, times: u32) -> Duration {
        self.base.saturating_mul(1 << times.min(16)).min(RTO_MAX)
    }

    /// Smoothed round-trip time; `None` before the first measurement.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The latest measurement.
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Mean deviation of the round-trip time.
    pub fn variation(&self) -> Duration {
        self.variation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn first_and_second_sample_follow_the_rfc() {
        let mut rtt = RttEstimator::new(MS(200));
        assert_eq!(rtt.rto(), MS(1000));
        rtt.sample(MS(200));
        assert_eq!((rtt.smoothed(), rtt.variation()), (Some(MS(200)), MS(100)));
        assert_eq!(rtt.rto(), MS(600));
        rtt.sample(MS(280));
        assert_eq!((rtt.smoothed(), rtt.variation()), (Some(MS(210)), MS(95)));
    }

    #[test]
    fn a_guess_ends_with_the_first_sample() {
        let mut rtt = RttEstimator::new(MS(40));
        for (guess, rto) in [(20, 60), (5, 45), (80, 240), (900, 250)] {
            rtt.guess(MS(guess), MS(250));
            assert_eq!((rtt.rto(), rtt.smoothed()), (MS(rto), None));
        }
        rtt.sample(MS(100));
        rtt.guess(MS(20), MS(250));
        assert_eq!(rtt.rto(), MS(300));
    }

    #[test]
    fn the_bound_sits_under_the_variance() {
        let mut rtt = RttEstimator::new(MS(200));
        for _ in 0..100 {
            rtt.sample(MS(400));
        }
        assert_eq!(rtt.rto(), MS(600));
    }

    #[test]
    fn backing_off_doubles_up_to_a_minute_and_a_sample_ends_it() {
        let mut rtt = RttEstimator::new(MS(200));
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push(rtt.rto().as_millis() / 1000);
            rtt.back_off();
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        rtt.sample(MS(10));
        assert_eq!(rtt.rto(), MS(210));
    }

    #[test]
    fn a_lost_syn_makes_the_first_data_patient() {
        let mut rtt = RttEstimator::new(MS(200));
        rtt.back_off();
        rtt.syn_was_lost();
        assert_eq!(rtt.rto(), MS(3000));
    }
}
