//! Time in TACK intervals, and the bandwidth by the rates that the receiver reports.

use super::super::filter::MaxFilter;
use tacit_packet::units::{BitRate, Duration, Instant};

/// A report speaks for as many intervals as its rate was measured over, one round trip at beta = 4. Longer silence,
/// of lost TACKs or of an outage, ages nothing.
const SPOKEN_FOR: u64 = 4;

/// Counts TACK intervals by the clock, so that neither lost TACKs nor instant ACKs stretch or shorten a cycle.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    since: Instant,
    /// One of them.
    pub length: Duration,
}

impl Intervals {
    pub fn new(length: Duration) -> Self {
        Self { since: Instant::ZERO, length }
    }

    /// Whole intervals that ended between the last call and `now`.
    pub fn pass(&mut self, now: Instant) -> u64 {
        let length = self.length.as_nanos().max(1);
        let passed = now.saturating_since(self.since).as_nanos() / length;
        self.since += Duration::from_nanos(passed * length);
        passed
    }

    /// Time until `now` does not count.
    pub fn restart(&mut self, now: Instant) {
        self.since = now;
    }
}

/// The bandwidth: the largest of the rates reported lately, where several reports of an interval have the weight of one.
/// In startup, where rates double, the reports themselves are taken.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// Reports of the current interval.
    sum_bps: u64,
    count: u64,
    /// The mean of those of the last interval that had any.
    mean: BitRate,
    /// Number of the current interval, as far as the filters age, and whether a report in it went into them.
    interval: u64,
    has_counted: bool,
    plain: MaxFilter,
    smooth: MaxFilter,
}

impl Rates {
    /// The largest of `filter` intervals' rates.
    pub fn new(filter: u8) -> Self {
        Self {
            sum_bps: 0,
            count: 0,
            mean: BitRate::default(),
            interval: 0,
            has_counted: false,
            plain: MaxFilter::new(usize::from(filter)),
            smooth: MaxFilter::new(usize::from(filter)),
        }
    }

    /// Intervals that have ended.
    pub fn pass(&mut self, intervals: u64) {
        if intervals == 0 || self.count == 0 {
            return;
        }
        self.mean = self.average();
        (self.sum_bps, self.count) = (0, 0);
        // Intervals in which all reports were of a sender that held back do not age the maximum.
        if core::mem::take(&mut self.has_counted) {
            self.interval += intervals.min(SPOKEN_FOR);
        }
    }

    /// A report; one that is `limited` by less than the network says "at least this much".
    pub fn report(&mut self, rate: BitRate, limited: bool) {
        self.sum_bps = self.sum_bps.saturating_add(rate.as_bps());
        self.count += 1;
        let smooth = self.average();
        for (filter, rate) in [(&mut self.plain, rate), (&mut self.smooth, smooth)] {
            if !limited || rate >= filter.largest() {
                self.has_counted = true;
                filter.update(self.interval, rate);
            }
        }
    }

    /// The recent rate of arrival: the mean of the current interval's reports, or of the last one's that had any.
    pub fn average(&self) -> BitRate {
        self.sum_bps.checked_div(self.count).map_or(self.mean, BitRate::from_bps)
    }

    /// BWmax, in `startup` or after.
    pub fn largest(&self, startup: bool) -> BitRate {
        if startup { self.plain.largest() } else { self.smooth.largest() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBPS: fn(u64) -> BitRate = BitRate::from_mbps;

    #[test]
    fn intervals_are_counted_by_the_clock_whoever_asks_when() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut intervals = Intervals::new(Duration::from_millis(10));
        assert_eq!((intervals.pass(at(9)), intervals.pass(at(9)), intervals.pass(at(10))), (0, 0, 1));
        assert_eq!((intervals.pass(at(55)), intervals.pass(at(60))), (4, 1));
        intervals.length = Duration::from_millis(2);
        assert_eq!(intervals.pass(at(65)), 2);
        intervals.restart(at(1000));
        assert_eq!(intervals.pass(at(1003)), 1);
    }

    #[test]
    fn several_reports_of_an_interval_have_the_weight_of_one() {
        let mut rates = Rates::new(40);
        for mbps in [8, 16, 12] {
            rates.report(MBPS(mbps), false);
        }
        assert_eq!((rates.largest(true), rates.largest(false)), (MBPS(16), MBPS(12)));
        assert_eq!(rates.average(), MBPS(12));
        // The last interval with reports stands until the next report.
        rates.pass(5);
        assert_eq!(rates.average(), MBPS(12));
        rates.report(MBPS(4), false);
        assert_eq!(rates.average(), MBPS(4));
    }

    #[test]
    fn a_bandwidth_sample_lives_for_so_many_intervals_with_reports() {
        let mut rates = Rates::new(40);
        rates.report(MBPS(100), false);
        rates.pass(1);
        for _ in 1..40 {
            rates.report(MBPS(10), false);
            assert_eq!(rates.largest(false), MBPS(100));
            rates.pass(1);
        }
        rates.report(MBPS(10), false);
        assert_eq!(rates.largest(false), MBPS(10));
        // An outage of 1000 intervals: the next report does not speak for them.
        rates.pass(1);
        rates.report(MBPS(100), false);
        rates.pass(1000);
        rates.report(MBPS(1), false);
        assert_eq!(rates.largest(false), MBPS(100));
    }

    #[test]
    fn app_limited_samples_count_only_if_they_are_larger() {
        let mut rates = Rates::new(40);
        rates.report(MBPS(100), false);
        for _ in 0..200 {
            rates.pass(1);
            rates.report(MBPS(10), true);
        }
        assert_eq!(rates.largest(false), MBPS(100));
        // And intervals in which it held back do not age the maximum.
        rates.report(MBPS(10), false);
        assert_eq!(rates.largest(false), MBPS(100));
        rates.pass(1);
        rates.report(MBPS(200), true);
        assert_eq!(rates.largest(false), MBPS(200));
    }
}
