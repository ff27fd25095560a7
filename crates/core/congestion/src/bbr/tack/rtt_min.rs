//! The smallest round-trip time, and how long ago it was seen.

use tacit_packet::units::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct RttMin {
    /// The smallest round-trip time, as believed.
    pub least: Option<Duration>,
    seen_at: Option<Instant>,
    /// The least since it was seen, or since [`Self::look_again`].
    since: Option<Duration>,
}

impl RttMin {
    /// Believes `rtt` first.
    pub fn new(rtt: Option<Duration>) -> Self {
        Self { least: rtt, ..Self::default() }
    }

    /// Applies feedback at `now`. Only a sample no larger shows the smallest again: a flow that came to a standing queue would
    /// see about as much for ever.
    pub fn update(&mut self, now: Instant, rtt: Option<Duration>) {
        self.seen_at.get_or_insert(now);
        let Some(rtt) = rtt else { return };
        let is_seen = self.least.is_none_or(|least| rtt <= least);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.since = if is_seen {
            self.seen_at = Some(now);
            None
        } else {
            Some(self.since.map_or(rtt, |since| since.min(rtt)))
        };
    }

    /// How long it has not been seen.
    pub fn age(&self, now: Instant) -> Duration {
        self.seen_at.map_or(Duration::ZERO, |at| now.saturating_since(at))
    }

    /// Only samples from here on are evidence.
    pub fn look_again(&mut self) {
        self.since = None;
    }

    /// Believes the least seen since instead of it.
    pub fn forget(&mut self, now: Instant) {
        self.least = self.since.take().or(self.least);
        self.seen_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_smallest_shows_itself_again_and_what_was_seen_since_takes_its_place_when_it_is_forgotten() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut rtt_min = RttMin::new(Some(Duration::from_millis(160)));
        let mut takes = |now, rtt| {
            rtt_min.update(at(now), Some(Duration::from_millis(rtt)));
            (rtt_min.least.map(Duration::as_millis), rtt_min.age(at(now)).as_millis())
        };
        assert_eq!(takes(0, 200), (Some(160), 0));
        assert_eq!(takes(10, 161), (Some(160), 10), "almost");
        assert_eq!(takes(20, 160), (Some(160), 0));
        assert_eq!(takes(30, 190), (Some(160), 10));
        assert_eq!(takes(40, 210), (Some(160), 20));
        rtt_min.forget(at(40));
        assert_eq!((rtt_min.least, rtt_min.age(at(40))), (Some(Duration::from_millis(190)), Duration::ZERO));
        rtt_min.forget(at(50));
        assert_eq!(rtt_min.least, Some(Duration::from_millis(190)), "nothing else was seen");
    }
}
