//! Distribution of waiting times.

use hdrhistogram::Histogram;
use tacit_packet::units::Duration;

/// Waiting times in microseconds. Values below 2^`EXACT_BITS` have a bucket each; above that, each power of two has
/// half that number of buckets. With 6 bits the error is below 3 %, and with 8 bits below 1 %, as in a histogram with
/// two significant digits.
///
/// It is a separate histogram because every packet of every queue is counted: hdrhistogram, which has the same buckets,
/// needs three times as many instructions in a simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits<const EXACT_BITS: u32> {
    /// As many buckets as needed so far.
    counts: Vec<u64>,
}

impl<const EXACT_BITS: u32> Waits<EXACT_BITS> {
    const EXACT: u64 = 1 << EXACT_BITS;

    pub fn new() -> Self {
        Self { counts: Vec::new() }
    }

    #[inline]
    pub fn record(&mut self, wait: Duration) {
        // Zero needs no division.
        let bucket = if wait == Duration::ZERO { 0 } else { Self::bucket(wait.as_micros()) };
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.record_longest(bucket),
        }
    }

    /// A wait longer than any before.
    #[cold]
    fn record_longest(&mut self, bucket: usize) {
        // Grows to the end of the power of two, so that slowly increasing waits do not grow it each time.
        let buckets = (bucket + 1).next_multiple_of(Self::EXACT as usize / 2);
        self.counts.resize(buckets, 0);
        self.counts[bucket] = 1;
    }

    pub fn reset(&mut self) {
        self.counts.fill(0);
    }

    /// For percentiles; each bucket is represented by its middle.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut all = Histogram::new(2).expect("the library allows 2 digits");
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            all.record_n(Self::middle(bucket), *count).expect("the histogram grows as needed");
        }
        all
    }

    fn bucket(us: u64) -> usize {
        if us < Self::EXACT {
            return us as usize;
        }
        // At least 1: how often the value must be halved to be below EXACT.
        let halved = u64::BITS - us.leading_zeros() - EXACT_BITS;
        (u64::from(halved) * (Self::EXACT / 2) + (us >> halved)) as usize
    }

    fn middle(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < Self::EXACT {
            return bucket;
        }
        let halved = bucket / (Self::EXACT / 2) - 1;
        let first = (bucket - halved * (Self::EXACT / 2)) << halved;
        first + (1 << halved) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        let mut last = 0;
        for us in 0..1_000_000 {
            let bucket = Waits::<6>::bucket(us);
            assert!(bucket == last || bucket == last + 1, "{us}");
            last = bucket;
            let error = Waits::<6>::middle(bucket).abs_diff(us);
            assert!(error * 64 <= us, "{us} is recorded as {}", Waits::<6>::middle(bucket));
        }
    }

    #[test]
    fn the_longest_wait_there_is_counts_too() {
        let mut waits = Waits::<6>::new();
        waits.record(Duration::MAX);
        waits.record(Duration::ZERO);
        assert_eq!(waits.histogram().len(), 2);
        waits.reset();
        assert_eq!(waits.histogram().len(), 0);
    }

    proptest::proptest! {
        #[test]
        fn eight_bits_are_two_significant_digits(
            waits_ns in proptest::collection::vec((0_u32..64, 0..=u64::MAX), 0..200),
        ) {
            let mut waits = Waits::<8>::new();
            let mut all = Histogram::<u64>::new(2).unwrap();
            for (halved, nanos) in waits_ns {
                let wait = Duration::from_nanos(nanos >> halved);
                waits.record(wait);
                all.record(wait.as_micros()).unwrap();
            }
            proptest::prop_assert_eq!(waits.histogram(), all);
        }
    }
}
