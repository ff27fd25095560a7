//! A sender's model of the way that acknowledgments take: how long they queue on it, and how many it carries.
//!
//! RFC 5690 has a TCP receiver's ACK ratio follow from lost ACKs. Here the time between ACKs follows from their queue, before
//! any is lost.

use tacit_ack::{RelativeDelay, WindowedMin};

use tacit_packet::tack::packet::Stamp;
use tacit_packet::units::{Duration, Instant};

/// A queue that counts: an access to a busy channel takes less.
const QUEUEING_MIN: Duration = Duration::from_millis(10);

/// ACKs over which a queue grows or stands.
const RUN: u32 = 4;

/// ACKs in the queue beyond which it is drained.
const QUEUED_MAX: u64 = 2;

/// The longest interval that is asked for.
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The queue of ACKs, by the receiver's time stamps in TACKs.
#[derive(Clone, Debug, Default)]
pub(super) struct AckPath {
    delay: RelativeDelay,
    /// How long the last ACK queued, and the mean of late ones.
    queueing: Duration,
    smoothed: Duration,
    last_arrival: Instant,
    run: Option<Run>,
    /// The least time between ACKs that queued: the bottleneck's service time of one.
    gaps: WindowedMin,
    /// The least time between ACKs that the receiver is asked for.
    interval: Duration,
    changed: Instant,
}

/// Successive ACKs.
#[derive(Clone, Copy, Debug)]
struct Run {
    began: Instant,
    left: Stamp,
    gaps: u32,
    /// The least that one of them queued.
    least: Duration,
}

impl AckPath {
    /// An ACK that left at `left` of its sender's clock arrived at `now`, `arrived` on ours. The round trip took `rtt`, and
    /// `rtt_min` where nothing queues: a clock that is wrong, or a receiver that lies, cannot make a queue longer than that.
    pub fn on_ack(&mut self, now: Instant, arrived: Stamp, left: Stamp, rtt: Duration, rtt_min: Duration) {
        let queueing =
            self.delay.update(now, arrived.0.wrapping_sub(left.0)).min(rtt.saturating_sub(rtt_min));
        if queueing.min(self.queueing) >= QUEUEING_MIN {
            self.gaps.update(now, now.saturating_since(self.last_arrival));
        }
        (self.queueing, self.last_arrival) = (queueing, now);
        self.smoothed = (self.smoothed * 7 + queueing) / 8;
        if self.is_overloaded(now, left, queueing) {
            self.interval = self.steady_interval();
            self.changed = now;
        }
        self.adapt(now, rtt);
    }

    /// ACKs arrive more slowly than they left, or as fast while a queue stands.
    fn is_overloaded(&mut self, now: Instant, left: Stamp, queueing: Duration) -> bool {
        let begin = Run { began: now, left, gaps: 0, least: queueing };
        let run = self.run.get_or_insert(begin);
        // One that overtook the first says nothing.
        let Some(sent_us) = left.since(run.left).filter(|_| now > run.began) else { return false };
        run.gaps += 1;
        run.least = run.least.min(queueing);
        let sent = Duration::from_micros(sent_us.into());
        let arrived = now.saturating_since(run.began);
        let grown = arrived.saturating_sub(sent);
        let grows = grown >= QUEUEING_MIN && grown >= sent / 4;
        let is_over = run.gaps >= RUN;
        let stands = is_over && run.least >= QUEUEING_MIN && arrived + arrived / 8 >= sent;
        if grows || is_over {
            self.run = Some(begin);
        }
        grows || stands
    }

    /// The bottleneck's service time of an ACK, once seen.
    fn service_time(&self) -> Duration {
        self.gaps.get().unwrap_or_default()
    }

    /// A little more than the bottleneck needs.
    fn steady_interval(&self) -> Duration {
        let service = self.service_time();
        service + service / 4
    }

    /// A long queue drains at half the rate. Without one a higher rate is tried, a step in a round trip.
    fn adapt(&mut self, now: Instant, rtt: Duration) {
        if self.interval == Duration::ZERO {
            return;
        }
        let service = self.service_time();
        if self.queueing > service * QUEUED_MAX {
            self.interval = service * 2;
        } else if self.interval > self.steady_interval() {
            self.interval = self.steady_interval();
        } else if self.queueing < service && now.saturating_since(self.changed) >= rtt {
            self.interval = self.interval - self.interval / 8;
            self.changed = now;
        }
        if self.interval < service / 4 {
            self.interval = Duration::ZERO;
        }
    }

    /// How long the last ACK queued.
    pub fn queueing(&self) -> Duration {
        self.queueing
    }

    /// The mean of late ones.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The least time between ACKs that the receiver should keep; `beta` in a round trip are enough. Those that
    /// queue behind others' packets bring no news sooner.
    pub fn interval(&self, beta: u8) -> Duration {
        self.interval.max(self.smoothed / u64::from(beta.max(1))).min(INTERVAL_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_MIN: Duration = Duration::from_millis(60);

    /// A queue that serves packets one after another, ours and others'.
    struct Queue {
        path: AckPath,
        free_at: u64,
        /// ACKs that arrived: when, in microseconds, and how long they queued.
        queued: Vec<(u64, u64)>,
    }

    impl Queue {
        fn new() -> Self {
            Self { path: AckPath::default(), free_at: 0, queued: Vec::new() }
        }

        /// A packet of another flow comes at `at_us`, which takes `service_us`.
        fn other(&mut self, at_us: u64, service_us: u64) {
            self.free_at = self.free_at.max(at_us) + service_us;
        }

        /// An ACK leaves at `at_us`, which takes `service_us`; its stamp is that of a clock `offset` ahead.
        fn ack(&mut self, at_us: u64, service_us: u64, offset: u32) {
            self.other(at_us, service_us);
            let queued = self.free_at - at_us - service_us;
            self.queued.push((self.free_at, queued));
            let arrived = Instant::ZERO + Duration::from_micros(self.free_at + 25_000);
            let left = Stamp((at_us as u32).wrapping_add(offset));
            let rtt = RTT_MIN + Duration::from_micros(queued);
            self.path.on_ack(arrived, Stamp::at(arrived, 0), left, rtt, RTT_MIN);
        }

        /// ACKs leave as often as is asked for, and no more often than each `least_us`, from `at_us` on until `end_us`.
        fn acks(
            &mut self,
            at_us: u64,
            end_us: u64,
            least_us: u64,
            service_us: u64,
            mut between: impl FnMut(&mut Self, u64),
        ) {
            let mut at = at_us;
            while at < end_us {
                between(self, at);
                self.ack(at, service_us, 77);
                at += least_us.max(self.path.interval(4).as_micros());
            }
        }
    }

    /// 91 bytes at 20 kb/s take 36.4 ms. The receiver of a start-up sends an ACK each 4 ms until it is asked for fewer.
    #[test]
    fn acks_that_the_way_back_does_not_carry_are_not_made() {
        let mut queue = Queue::new();
        queue.acks(0, 20_000_000, 4_000, 36_400, |_, _| {});
        let most =
            |from: u64| queue.queued.iter().filter(|(at, _)| *at > from).map(|(_, queued)| *queued).max();
        assert!(most(0) < Some(200_000), "{:?}", most(0));
        assert!(most(2_000_000) < Some(3 * 36_400), "{:?}", most(2_000_000));
        // The bottleneck is busy four fifths of the time at least.
        assert!(queue.queued.len() as u64 * 36_400 > 16_000_000, "{}", queue.queued.len());
    }

    #[test]
    fn nothing_is_asked_for_where_nothing_queues() {
        let mut queue = Queue::new();
        // Access to a channel takes up to 10 ms.
        queue.acks(0, 10_000_000, 25_000, 1_000, |queue, at| queue.other(at, at * 7 % 10_000));
        assert_eq!(queue.path.interval, Duration::ZERO);
        assert!(queue.path.interval(4) < Duration::from_millis(3));
    }

    /// An upload soon keeps a second waiting. Fewer ACKs would not shorten that: β in a round trip remain.
    #[test]
    fn a_queue_of_others_does_not_silence_the_receiver() {
        let mut queue = Queue::new();
        queue.acks(0, 9_000_000, 25_000, 7_280, |queue, at| {
            while queue.free_at < at + at.min(1_000_000) {
                queue.other(at, 120_000);
            }
        });
        let interval = queue.path.interval(4);
        assert!((150..=320).contains(&interval.as_millis()), "{interval:?}");
    }

    #[test]
    fn a_rate_is_tried_again_after_the_queue_is_gone() {
        let mut queue = Queue::new();
        queue.acks(0, 2_000_000, 4_000, 36_400, |_, _| {});
        assert!(queue.path.interval(4) >= Duration::from_millis(25));
        queue.acks(2_500_000, 12_000_000, 4_000, 100, |_, _| {});
        assert_eq!(queue.path.interval(4).as_millis(), 0);
    }

    #[test]
    fn stamps_cannot_claim_more_than_the_round_trip_shows() {
        let mut path = AckPath::default();
        for ack in 0..100 {
            let arrived = Instant::ZERO + Duration::from_millis(25 * ack);
            // The clock of a receiver that is set back by a minute, or one that lies.
            let left = Stamp((25_000 * ack as u32).wrapping_sub(if ack > 50 { 60_000_000 } else { 0 }));
            path.on_ack(arrived, Stamp::at(arrived, 0), left, RTT_MIN + RTT_MIN / 4, RTT_MIN);
        }
        assert!(path.smoothed() <= RTT_MIN / 4);
        assert!(path.interval(4) <= RTT_MIN, "{:?}", path.interval(4));
    }
}
