//! PCC Allegro (Dong, Li, Zarchy, Godfrey and Schapira, "PCC: Re-architecting Congestion Control for Consistent High
//! Performance", NSDI 2015): tries rates and moves to the one with the higher measured utility.

use super::fixed::{ONE, exp2};
use super::interval::{Purpose, Report};
use tacit_packet::units::BitRate;

/// epsilon in hundredths: by how much trials differ from the base rate, from one to five (section 3.2).
const STEP_MIN: u64 = 1;
const STEP_MAX: u64 = 5;
/// Trials per decision: two pairs in random order (section 3.2).
pub(super) const TRIALS: usize = 4;
/// Sigmoid of the loss rate: 5 % is the threshold, alpha = 100 (section 2.2).
const LOSS_THRESHOLD: i64 = ONE / 20;
const ALPHA: i64 = 100;
/// log2 e.
const LOG2_E: i64 = 94_548;

/// u = T * Sigmoid(L - 0.05) - x * L, with T = x * (1 - L) (section 2.2), in bits per second.
pub(super) fn utility(report: &Report) -> i64 {
    let rate = i128::from(report.rate.as_bps());
    let power = exp2((report.loss - LOSS_THRESHOLD) * ALPHA * LOG2_E / ONE);
    let sigmoid = ((i128::from(ONE) << 16) / (i128::from(power) + i128::from(ONE))) as i64;
    let share = (ONE - report.loss) * sigmoid / ONE - report.loss;
    (rate * i128::from(share) / i128::from(ONE)) as i64
}

/// State of the search.
#[derive(Clone, Debug)]
pub(super) struct Allegro {
    /// epsilon in hundredths.
    step: u64,
    results: [Option<(bool, i64)>; TRIALS],
    /// Number of moves in the current direction, and that direction.
    moves: u64,
    upward: bool,
    last_utility: i64,
    before: BitRate,
}

/// What to do after a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Wait for more results.
    Wait,
    /// Try rates around this one next.
    Try(BitRate),
    /// Send at this rate and measure its utility.
    Move(BitRate),
}

impl Default for Allegro {
    fn default() -> Self {
        let zero = BitRate::from_bps(0);
        Self {
            step: STEP_MIN,
            results: [None; TRIALS],
            moves: 0,
            upward: true,
            last_utility: 0,
            before: zero,
        }
    }
}

impl Allegro {
    /// By how many hundredths the trials differ from the base rate.
    pub fn percent(&self) -> u64 {
        self.step
    }

    /// Handles the report of a trial or a move around `rate`.
    pub fn decide(&mut self, rate: BitRate, report: &Report) -> Decision {
        match report.purpose {
            Purpose::Trial { place, higher } => self.tried(rate, place, higher, utility(report)),
            Purpose::Move => self.moved(rate, utility(report)),
            Purpose::Start(_) | Purpose::Hold => Decision::Wait,
        }
    }

    fn tried(&mut self, rate: BitRate, place: u8, higher: bool, utility: i64) -> Decision {
        if let Some(result) = self.results.get_mut(usize::from(place)) {
            *result = Some((higher, utility));
        }
        let [Some(a), Some(b), Some(c), Some(d)] = self.results else { return Decision::Wait };
        self.results = [None; TRIALS];
        let favours_higher = |one: (bool, i64), other: (bool, i64)| {
            let (high, low) = if one.0 { (one.1, other.1) } else { (other.1, one.1) };
            high > low
        };
        let (first, second) = (favours_higher(a, b), favours_higher(c, d));
        if first != second {
            self.step = (self.step + STEP_MIN).min(STEP_MAX);
            return Decision::Try(rate);
        }
        self.upward = first;
        self.moves = 0;
        self.last_utility =
            [a, b, c, d].into_iter().filter(|one| one.0 == first).map(|one| one.1).max().unwrap_or(0);
        self.before = self.shifted(rate, self.step);
        self.step = STEP_MIN;
        self.next_move(self.before)
    }

    /// "r_n = r_(n-1) * (1 + n * epsilon_min * dir)" until utility falls; then returns to the previous rate and starts
    /// new trials (section 3.2).
    fn moved(&mut self, rate: BitRate, utility: i64) -> Decision {
        if utility < self.last_utility {
            return Decision::Try(self.before);
        }
        self.last_utility = utility;
        self.before = rate;
        self.next_move(rate)
    }

    fn next_move(&mut self, rate: BitRate) -> Decision {
        self.moves += 1;
        Decision::Move(self.shifted(rate, (self.moves * STEP_MIN).min(50)))
    }

    fn shifted(&self, rate: BitRate, percent: u64) -> BitRate {
        let percent = if self.upward { 100 + percent } else { 100 - percent };
        BitRate::from_bps(rate.as_bps() / 100 * percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(purpose: Purpose, mbps: u64, loss: i64) -> Report {
        Report { purpose, rate: BitRate::from_mbps(mbps), loss, rtt_gradient: 0 }
    }

    /// Without losses the sigmoid is 1 / (1 + e^-5) = 0.9933; at 5 % it is 0.5, and above that it falls to zero.
    #[test]
    fn utility_is_throughput_until_five_per_cent_are_lost() {
        let utility_at = |loss| utility(&report(Purpose::Hold, 100, loss));
        assert!((utility_at(0) - 99_330_000).abs() < 10_000, "{}", utility_at(0));
        assert!((utility_at(ONE / 20) - (47_500_000 - 5_000_000)).abs() < 30_000, "{}", utility_at(ONE / 20));
        assert!((utility_at(ONE / 5) + 20_000_000).abs() < 10_000, "{}", utility_at(ONE / 5));
    }

    #[test]
    fn two_pairs_that_agree_move_the_rate_and_a_fall_of_utility_moves_it_back() {
        let mut allegro = Allegro::default();
        let rate = BitRate::from_mbps(100);
        let mut decision = Decision::Wait;
        for (place, higher) in [(0, true), (1, false), (2, false), (3, true)] {
            assert_eq!(decision, Decision::Wait);
            let mbps = if higher { 101 } else { 99 };
            decision = allegro.decide(rate, &report(Purpose::Trial { place, higher }, mbps, 0));
        }
        let Decision::Move(next) = decision else { panic!("{decision:?}") };
        assert_eq!(next, BitRate::from_bps(102_010_000));
        let decision = allegro.decide(next, &report(Purpose::Move, 102, ONE / 10));
        assert_eq!(decision, Decision::Try(BitRate::from_mbps(101)));
    }

    #[test]
    fn pairs_that_disagree_are_tried_again_further_apart() {
        let mut allegro = Allegro::default();
        let rate = BitRate::from_mbps(100);
        for (place, higher, mbps) in [(0, true, 101), (1, false, 99), (2, true, 95)] {
            assert_eq!(
                allegro.decide(rate, &report(Purpose::Trial { place, higher }, mbps, 0)),
                Decision::Wait
            );
        }
        let last = report(Purpose::Trial { place: 3, higher: false }, 99, 0);
        assert_eq!(allegro.decide(rate, &last), Decision::Try(rate));
        assert_eq!(allegro.percent(), 2);
    }
}
