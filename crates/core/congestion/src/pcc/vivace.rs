//! PCC Vivace (Dong, Meng, Zarchy, Arslan, Gilad, Godfrey and Schapira, "PCC Vivace: Online-Learning Congestion
//! Control", NSDI 2018): the rate follows the gradient of a utility that includes delay.

use super::fixed::{BITS, ONE, exp2, log2};
use super::interval::{Purpose, Report};
use tacit_packet::units::BitRate;

/// u = x^0.9 - 900 x dRTT/dt - 11.35 x L, with x in Mb/s (sections 3 and 5.1).
const EXPONENT: (i64, i64) = (9, 10);
const RTT_WEIGHT: i64 = 900;
const LOSS_WEIGHT: (i64, i64) = (1_135, 100);
/// Gradients of the round-trip time below a hundredth are noise (section 5.2).
const GRADIENT_MIN: i64 = ONE / 100;
/// Trials are 5 % above and below the base rate (section 4.1).
pub(super) const PERCENT: u64 = 5;
/// Trials per pair.
pub(super) const TRIALS: usize = 2;
/// theta_0 = 1: the change of the rate in Mb/s per unit of gradient (section 4.2 and the authors' code).
const CONVERSION_BPS: i64 = 1_000_000;
/// m(tau) = tau up to 3, then 2 tau - 3 (section 4.2).
const STEADY: i64 = 3;
/// omega = omega_0 + k delta: the largest change of the rate per step (section 4.2), in hundredths.
const BOUND_FIRST: i64 = 5;
const BOUND_STEP: i64 = 10;

/// The utility for x in Mb/s, in units of 2^-16.
pub(super) fn utility(report: &Report) -> i64 {
    let rate = report.rate.as_bps();
    // log2 of x in Mb/s: that of bits per second less that of 10^6.
    let power = exp2((log2(rate) - log2(1_000_000)) * EXPONENT.0 / EXPONENT.1);
    let gradient = if report.rtt_gradient.abs() < GRADIENT_MIN { 0 } else { report.rtt_gradient };
    let bad = i128::from(RTT_WEIGHT * gradient + LOSS_WEIGHT.0 * report.loss / LOSS_WEIGHT.1);
    power - (i128::from(rate) * bad / 1_000_000) as i64
}

/// State of the gradient ascent.
#[derive(Clone, Debug, Default)]
pub(super) struct Vivace {
    results: [Option<(bool, i64)>; TRIALS],
    /// tau: consecutive steps in one direction; negative if downwards.
    confidence: i64,
    /// k of the bound.
    widened: i64,
}

impl Vivace {
    /// Handles the report of a trial around `rate`. Returns the next base rate once both trials are reported.
    pub fn decide(&mut self, rate: BitRate, report: &Report) -> Option<BitRate> {
        let Purpose::Trial { place, higher } = report.purpose else { return None };
        *self.results.get_mut(usize::from(place))? = Some((higher, utility(report)));
        let [Some(one), Some(other)] = self.results else { return None };
        self.results = [None; TRIALS];
        let (high, low) = if one.0 { (one.1, other.1) } else { (other.1, one.1) };
        Some(self.step(rate, high.saturating_sub(low)))
    }

    /// gamma = (u(r (1 + e)) - u(r (1 - e))) / (2 e r); the rate moves by m(tau) theta_0 gamma, within the bound.
    fn step(&mut self, rate: BitRate, difference: i64) -> BitRate {
        let bps = rate.as_bps().max(1) as i64;
        let direction = difference.signum();
        if direction * self.confidence <= 0 {
            (self.confidence, self.widened) = (0, 0);
        }
        self.confidence += direction;
        let steps = self.confidence.abs();
        let amplifier = if steps <= STEADY { steps } else { 2 * steps - STEADY };
        // 2 e r in Mb/s is r / 10, so gamma in units of 2^-16 is difference * 10^7 / r.
        let gamma = i128::from(difference) * 10_000_000 / i128::from(bps);
        let moved = (gamma * i128::from(amplifier) * i128::from(CONVERSION_BPS)) >> BITS;
        let share = |percent: i64| i128::from(bps) * i128::from(percent) / 100;
        let bound = share(BOUND_FIRST + self.widened * BOUND_STEP);
        let kept = moved.clamp(-bound, bound);
        // The bound widens while steps reach it, and otherwise narrows to the smallest that allows the step.
        self.widened = if moved.abs() > bound {
            self.widened + 1
        } else {
            (0..=self.widened)
                .find(|k| moved.abs() <= share(BOUND_FIRST + k * BOUND_STEP))
                .unwrap_or(self.widened)
        };
        BitRate::from_bps((i128::from(bps) + kept).max(1) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(purpose: Purpose, rate: BitRate, loss: i64, rtt_gradient: i64) -> Report {
        Report { purpose, rate, loss, rtt_gradient }
    }

    #[test]
    fn utility_is_the_papers() {
        let utility_at = |mbps, loss, gradient| {
            utility(&report(Purpose::Hold, BitRate::from_mbps(mbps), loss, gradient)) as f64 / ONE as f64
        };
        let close = |measured: f64, known: f64| {
            assert!((measured - known).abs() < 0.02 + known.abs() / 1_000.0, "{measured} {known}");
        };
        close(utility_at(10, 0, 0), 10_f64.powf(0.9));
        close(utility_at(10, ONE / 20, 0), 10_f64.powf(0.9) - 11.35 * 10.0 * 0.05);
        close(utility_at(10, 0, ONE / 50), 10_f64.powf(0.9) - 900.0 * 10.0 * 0.02);
        close(utility_at(10, 0, ONE / 200), 10_f64.powf(0.9));
    }

    /// Without a queue, utility grows by 0.9 x^-0.1 per Mb/s. The first step is that; the next ones are 2, 3, 5 and 7
    /// times as large, but never more than the bound.
    #[test]
    fn steps_grow_while_the_direction_stays_and_start_anew_when_it_turns() {
        let mut vivace = Vivace::default();
        let mut rate = BitRate::from_mbps(100);
        let mut steps = Vec::new();
        for turn in [1_i64, 1, 1, 1, -1] {
            let difference = turn * ONE * 10 * 6 / 10;
            let next = vivace.step(rate, difference);
            steps.push((next.as_bps() as i64 - rate.as_bps() as i64) / 10_000);
            rate = next;
        }
        assert!((59..=60).contains(&steps[0]), "{steps:?}");
        assert!(steps[1] > steps[0] && steps[2] > steps[1] && steps[3] > steps[2], "{steps:?}");
        assert!(steps[4] < 0 && steps[4] > -70, "{steps:?}");
        let leap = Vivace::default().step(BitRate::from_mbps(1), 100 * ONE);
        assert_eq!(leap, BitRate::from_bps(1_050_000));
    }
}
