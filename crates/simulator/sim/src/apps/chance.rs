//! Random numbers from distributions, computed with integers.

use tacit_link::random::Stream;
use tacit_packet::units::Duration;

use super::setup::{Law, Span};

/// ln 2 in units of 2^-32.
const LN_2: u64 = 2_977_044_472;

/// Converts 32 uniform bits to an exponential variable of mean 1, in units of 2^-32: -ln of (bits + 1) / 2^32, at most
/// 32 ln 2. The logarithm is computed bit by bit, because squaring a number doubles its logarithm.
fn exponential(bits: u32) -> u64 {
    let uniform = u64::from(bits) + 1;
    let whole = u64::from(63 - uniform.leading_zeros());
    // In [1, 2), in units of 2^-31.
    let mut rest = if whole <= 31 { uniform << (31 - whole) } else { uniform >> (whole - 31) };
    let mut log2 = whole << 32;
    for bit in (0..32).rev() {
        rest = (rest * rest) >> 31;
        if rest >= 1 << 32 {
            rest >>= 1;
            log2 |= 1 << bit;
        }
    }
    let below_zero = (32 << 32) - log2;
    ((u128::from(below_zero) * u128::from(LN_2)) >> 32) as u64
}

/// A random number from the exponential distribution with this mean, rounded down.
pub(super) fn exponential_of(mean: u64, draws: &mut Stream) -> u64 {
    ((u128::from(mean) * u128::from(exponential(draws.draw()))) >> 32) as u64
}

impl Span {
    /// A random duration; at least a nanosecond unless the mean is zero.
    pub(super) fn drawn(&self, draws: &mut Stream) -> Duration {
        match self.law {
            Law::Fixed => self.mean,
            Law::Exponential if self.mean == Duration::ZERO => self.mean,
            Law::Exponential => Duration::from_nanos(exponential_of(self.mean.as_nanos(), draws).max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right() {
        for bits in [0, 1, 2, 12_345, 1 << 20, (1 << 31) - 1, 1 << 31, 3_000_000_000, u32::MAX - 1, u32::MAX]
        {
            let expected = -((f64::from(bits) + 1.0) / 2_f64.powi(32)).ln();
            let drawn = exponential(bits) as f64 / 2_f64.powi(32);
            assert!((drawn - expected).abs() < 1e-8, "{bits}: {drawn} for {expected}");
        }
    }

    #[test]
    fn draws_are_exponential() {
        // The distribution has mean 1; half of it is below ln 2, and 1 - 1/e of it below the mean.
        let mut draws = Stream::new(1, "exponential");
        let drawn: Vec<u64> = (0..100_000).map(|_| exponential_of(1_000_000, &mut draws)).collect();
        let mean = drawn.iter().sum::<u64>() / 100_000;
        assert!((990_000..1_010_000).contains(&mean), "{mean}");
        let below = |limit| drawn.iter().filter(|value| **value < limit).count();
        assert!((49_500..50_500).contains(&below(693_147)), "{}", below(693_147));
        assert!((62_700..63_700).contains(&below(1_000_000)), "{}", below(1_000_000));
    }
}
