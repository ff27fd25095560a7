//! BBR.min_rtt and when to probe for it (draft section 5.3.4.3).

use crate::bbr::parts::RTT_MIN_LIFETIME;
use tacit_packet::units::{Duration, Instant};

/// BBR.ProbeRTTInterval.
pub(super) const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// The smallest round-trip time of ten seconds (BBR.MinRTTFilterLen), and that of five.
#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// BBR.min_rtt.
    pub least: Option<Duration>,
    least_at: Instant,
    /// BBR.probe_rtt_min_delay.
    recent: Option<Duration>,
    recent_at: Instant,
}

impl MinRtt {
    pub fn new(rtt: Option<Duration>, now: Instant) -> Self {
        Self { least: rtt, least_at: now, recent: rtt, recent_at: now }
    }

    /// UpdateMinRTT(). True if the recent one has expired, so that it should be probed for.
    pub fn update(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = now > self.recent_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (expired || self.recent.is_none_or(|recent| rtt < recent))
        {
            (self.recent, self.recent_at) = (Some(rtt), now);
        }
        let old = now > self.least_at + RTT_MIN_LIFETIME;
        if let Some(recent) = self.recent
            && (old || self.least.is_none_or(|least| recent < least))
        {
            (self.least, self.least_at) = (Some(recent), self.recent_at);
        }
        expired
    }

    /// It has been probed for.
    pub fn on_probed(&mut self, now: Instant) {
        self.recent_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A longer round trip counts once the probe is due after five seconds, and becomes the smallest after ten.
    #[test]
    fn the_probe_is_due_after_five_seconds_and_the_smallest_forgotten_after_ten() {
        let at = |millis| Instant::ZERO + ms(millis);
        let mut rtt = MinRtt::new(Some(ms(10)), at(0));
        assert!(!rtt.update(at(5_000), Some(ms(30))));
        assert!(rtt.update(at(5_001), Some(ms(20))), "none as small for five seconds");
        assert_eq!(rtt.least, Some(ms(10)), "kept for ten");
        rtt.on_probed(at(5_200));
        assert!(!rtt.update(at(10_000), Some(ms(40))));
        assert_eq!(rtt.least, Some(ms(10)));
        assert!(!rtt.update(at(10_001), Some(ms(40))));
        assert_eq!(rtt.least, Some(ms(20)));
        assert!(!rtt.update(at(10_002), Some(ms(15))), "a smaller one needs no probe");
        assert_eq!(rtt.least, Some(ms(15)));
    }
}
