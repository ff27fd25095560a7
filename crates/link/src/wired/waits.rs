//! How long packets waited.

use hdrhistogram::Histogram;
use tacit_proto::units::Duration;

/// Values below this have a bucket each; above, each power of two has half as many.
const EXACT: u64 = 1 << EXACT_BITS;
const EXACT_BITS: u32 = 6;
/// Waits of up to 2^42 us, seven weeks; what is longer counts as that.
const BUCKETS: usize = EXACT as usize + (42 - EXACT_BITS as usize) * (EXACT as usize / 2);

/// Waits in microseconds, within 3 %. A histogram of its own because every packet of every pipe is counted:
/// hdrhistogram costs a simulation more instructions here than the rest of a pipe does.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    counts: Box<[u32; BUCKETS]>,
}

impl Waits {
    pub fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]) }
    }

    #[inline]
    pub fn record(&mut self, wait: Duration) {
        // Zero costs no division.
        let bucket = if wait == Duration::ZERO { 0 } else { bucket(wait.as_micros()) };
        let count = &mut self.counts[bucket.min(BUCKETS - 1)];
        *count = count.saturating_add(1);
    }

    pub fn reset(&mut self) {
        self.counts.fill(0);
    }

    /// For percentiles; each value stands for the middle of its bucket.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut all = Histogram::new(2).expect("2 digits are within what the library allows");
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            all.record_n(middle(bucket), u64::from(*count)).expect("the histogram grows as needed");
        }
        all
    }
}

#[inline]
fn bucket(us: u64) -> usize {
    if us < EXACT {
        return us as usize;
    }
    // From 1: how often the value is halved until it is below EXACT.
    let halved = u64::BITS - us.leading_zeros() - EXACT_BITS;
    (u64::from(halved) * (EXACT / 2) + (us >> halved)) as usize
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let halved = bucket / (EXACT / 2) - 1;
    let first = (bucket - halved * (EXACT / 2)) << halved;
    first + (1 << halved) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        let mut last = 0;
        for us in 0..1_000_000 {
            let bucket = bucket(us);
            assert!(bucket == last || bucket == last + 1, "{us}");
            last = bucket;
            let error = middle(bucket).abs_diff(us);
            assert!(error * 64 <= us, "{us} is told as {}", middle(bucket));
        }
        assert_eq!(bucket((1 << 42) - 1), BUCKETS - 1);
    }

    #[test]
    fn the_longest_wait_there_is_counts_too() {
        let mut waits = Waits::new();
        waits.record(Duration::MAX);
        waits.record(Duration::ZERO);
        assert_eq!(waits.histogram().len(), 2);
        waits.reset();
        assert_eq!(waits.histogram().len(), 0);
    }
}
