//! Where ACKs are rarer than four in a round trip: the queue that the bottleneck keeps between them, and how far a probe goes.
//!
//! An access point fills an A-MPDU from its queue. A sender that paces at the rate it sees arrive, and no faster, finds that
//! rate confirmed by any size of A-MPDU that it leaves room for. So it keeps a burst waiting where the receiver says that
//! packets come in bursts; but no more than is taken for a good queue elsewhere.

use super::super::parts::UNIT;
use crate::ReceiverReport;
use tacit_packet::units::{BitRate, Bytes, Duration};

/// A standing queue of this time is good: the target of CoDel (RFC 8289 section 4.3).
const TARGET_MAX: Duration = Duration::from_millis(5);
/// Arrivals in an interval vary by some per cent, where stations contend for the channel: a part of them is kept waiting, so
/// that the bottleneck never runs dry. Found by search (docs/experiments/tack.md).
const TARGET_PART: u64 = 16;
/// The most that the gain is lifted by to fill a queue: as much as a probe asks for.
const LIFT_MAX: u64 = UNIT / 4;
/// A probe asks for this much more at first, twice as much each time that the last found something, and a quarter at most.
const STEP: u64 = UNIT / 16;
pub(super) const STEP_MAX: u64 = UNIT / 4;

#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// How long the receiver may withhold feedback; zero where it acknowledges by the round trip.
    wait: Duration,
    burst: Bytes,
    /// The least delay of the last interval above the smallest round-trip time.
    queue: Duration,
    /// Share of the rate that a probe asks for in addition, in 256ths.
    step: u64,
}

impl Default for Standing {
    fn default() -> Self {
        Self { wait: Duration::ZERO, burst: Bytes(0), queue: Duration::ZERO, step: STEP_MAX }
    }
}

impl Standing {
    /// Applies a receiver's report.
    pub fn on_report(&mut self, report: &ReceiverReport) {
        (self.wait, self.burst) = (report.wait, report.burst);
    }

    /// A round trip took `rtt`, where the smallest is `least`.
    pub fn on_round_trip(&mut self, rtt: Duration, least: Duration) {
        self.queue = rtt.saturating_sub(least);
    }

    /// ACKs are rarer than a part of each round trip.
    pub fn is_active(&self) -> bool {
        self.wait > Duration::ZERO
    }

    /// How long the receiver may withhold feedback.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Bytes to keep waiting at the bottleneck, which carries `rate`.
    pub fn target(&self, rate: BitRate) -> u64 {
        let part = rate.amount_in(self.wait / TARGET_PART).0;
        self.burst.0.min(rate.amount_in(TARGET_MAX).0).max(part) * u64::from(self.is_active())
    }

    /// How long that waits.
    pub fn target_time(&self, rate: BitRate) -> Duration {
        if rate.as_bps() == 0 { Duration::ZERO } else { rate.time_for(Bytes(self.target(rate))) }
    }

    /// The gain at which the queue reaches its target by the next report.
    pub fn cruising_gain(&self, rate: BitRate) -> u64 {
        if !self.is_active() {
            return UNIT;
        }
        let short = u128::from(self.target_time(rate).saturating_sub(self.queue).as_nanos());
        let lift = short * u128::from(UNIT) / u128::from(self.wait.as_nanos());
        UNIT + u64::try_from(lift).unwrap_or(u64::MAX).min(LIFT_MAX)
    }

    /// The queue is longer than this flow keeps it: others do, or it has not been drained.
    pub fn is_long(&self, rate: BitRate, least: Duration) -> bool {
        self.queue > self.target_time(rate) * 2 + least / 4
    }

    /// Share of the rate that a probe asks for in addition, and gives up after it, in 256ths.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// A cycle of gains begins, after a probe that `found` more. A queue that others keep up is answered by whole steps, or they
    /// would take the room that small ones leave.
    pub fn on_cycle(&mut self, found: bool, rate: BitRate, least: Duration) {
        self.step = match (self.is_long(rate, least), found) {
            (true, _) => STEP_MAX,
            (false, true) => (self.step * 2).min(STEP_MAX),
            (false, false) => STEP,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn standing(wait: u64, burst: u64) -> Standing {
        let mut standing = Standing::default();
        standing.on_report(&ReceiverReport {
            rate: None,
            base_loss: 0,
            interval: MS(wait),
            wait: MS(wait),
            burst: Bytes(burst),
        });
        standing
    }

    #[test]
    fn a_burst_is_kept_waiting_up_to_the_target_of_codel() {
        let rate = BitRate::from_mbps(80);
        assert_eq!(standing(25, 30_000).target(rate), 30_000);
        assert_eq!(standing(25, 300_000).target(rate), 50_000, "5 ms");
        assert_eq!(standing(25, 1_500).target(rate), 15_625, "a sixteenth of the interval");
        assert_eq!(standing(0, 30_000).target(rate), 0, "ACKs follow the round trip");
    }

    #[test]
    fn the_gain_is_lifted_by_what_lacks_until_the_next_report() {
        let rate = BitRate::from_mbps(80);
        let mut standing = standing(30, 30_000);
        assert_eq!(standing.cruising_gain(rate), UNIT + UNIT / 10, "3 of 30 ms");
        standing.on_round_trip(MS(12), MS(10));
        assert_eq!(standing.cruising_gain(rate), UNIT + UNIT / 30);
        standing.on_round_trip(MS(200), MS(10));
        assert_eq!(standing.cruising_gain(rate), UNIT, "never below the rate");
        assert_eq!(
            self::standing(10, 300_000).cruising_gain(rate),
            UNIT * 5 / 4,
            "5 of 10 ms, and no more than a probe"
        );
    }

    #[test]
    fn steps_double_while_they_find_and_are_whole_beside_others() {
        let rate = BitRate::from_mbps(80);
        let mut standing = standing(25, 1_500);
        let mut steps = Vec::new();
        for found in [false, true, true, true, false] {
            standing.on_cycle(found, rate, MS(10));
            steps.push(standing.step());
        }
        assert_eq!(steps, [16, 32, 64, 64, 16]);
        standing.on_round_trip(MS(60), MS(10));
        standing.on_cycle(false, rate, MS(10));
        assert_eq!(standing.step(), 64);
    }
}
