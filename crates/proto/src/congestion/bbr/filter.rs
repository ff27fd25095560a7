//! A maximum over the last rounds.

use crate::units::BitRate;

/// "BBR.BtlBwFilterLen ... 10 packet-timed round trips" (draft-cardwell-iccrg-bbr-congestion-control-00
/// section 4.1.1.4).
const ROUNDS: usize = 10;

/// The largest rate of the latest ten rounds, one slot a round: exact, where Linux keeps the three
/// best samples and may forget a maximum a little late.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    slots: [BitRate; ROUNDS],
    round: u64,
    largest: BitRate,
}

impl MaxFilter {
    /// Takes in a sample of `round`; rounds only grow.
    pub fn update(&mut self, round: u64, rate: BitRate) {
        let missed = (round - self.round).min(ROUNDS as u64);
        for step in 1..=missed {
            self.slots[((self.round + step) % ROUNDS as u64) as usize] = BitRate::default();
        }
        self.round = round;
        let slot = &mut self.slots[(round % ROUNDS as u64) as usize];
        *slot = rate.max(*slot);
        self.largest = self.slots.iter().copied().max().unwrap_or_default();
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
    fn a_maximum_lives_for_ten_rounds() {
        let mut filter = MaxFilter::default();
        filter.update(3, BitRate::from_mbps(50));
        for round in 4..=12 {
            filter.update(round, BitRate::from_mbps(round));
            assert_eq!(filter.largest(), BitRate::from_mbps(50));
        }
        filter.update(13, BitRate::from_mbps(1));
        assert_eq!(filter.largest(), BitRate::from_mbps(12));
        // Rounds without a sample count too.
        filter.update(40, BitRate::from_mbps(2));
        assert_eq!(filter.largest(), BitRate::from_mbps(2));
    }
}
