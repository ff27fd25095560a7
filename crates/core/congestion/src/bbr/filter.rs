//! A maximum over the latest rounds, or other spans of time that are numbered.

use tacit_packet::units::BitRate;

/// Most spans that a filter remembers.
const SLOTS: usize = 40;

/// The largest rate of the latest spans, one slot each: exact, where Linux keeps the three best samples and may
/// forget a maximum a little late.
#[derive(Clone, Debug)]
pub(super) struct MaxFilter {
    slots: [BitRate; SLOTS],
    length: usize,
    newest: u64,
    largest: BitRate,
}

impl MaxFilter {
    /// One that remembers `length` spans, 1 to 40.
    pub fn new(length: usize) -> Self {
        Self {
            slots: [BitRate::default(); SLOTS],
            length: length.clamp(1, SLOTS),
            newest: 0,
            largest: BitRate::default(),
        }
    }

    /// Adds a sample of the span numbered `span`; numbers only grow.
    pub fn update(&mut self, span: u64, rate: BitRate) {
        let length = self.length as u64;
        let missed = (span - self.newest).min(length);
        for step in 1..=missed {
            self.slots[((self.newest + step) % length) as usize] = BitRate::default();
        }
        self.newest = span;
        let slot = &mut self.slots[(span % length) as usize];
        *slot = rate.max(*slot);
        self.largest = self.slots[..self.length].iter().copied().max().unwrap_or_default();
    }

    /// The maximum as of the last update.
    pub fn largest(&self) -> BitRate {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lives_for_as_many_rounds_as_it_was_told() {
        for length in [10, 40] {
            let mut filter = MaxFilter::new(length as usize);
            filter.update(3, BitRate::from_mbps(500));
            for round in 4..length + 3 {
                filter.update(round, BitRate::from_mbps(round));
                assert_eq!(filter.largest(), BitRate::from_mbps(500));
            }
            filter.update(length + 3, BitRate::from_mbps(1));
            assert_eq!(filter.largest(), BitRate::from_mbps(length + 2));
            // Rounds without a sample count too.
            filter.update(3 * length + 3, BitRate::from_mbps(2));
            assert_eq!(filter.largest(), BitRate::from_mbps(2));
        }
    }
}
