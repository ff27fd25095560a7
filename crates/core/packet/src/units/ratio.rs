//! A fraction between 0 and 1 in fixed point.

use core::fmt;

/// A fraction in parts per billion, 0 to 1 inclusive: loss rates, shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(u32);

impl Ratio {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// One.
    pub const ONE: Self = Self(Self::SCALE);
    const SCALE: u32 = 1_000_000_000;

    /// A ratio of `parts` per billion; `None` above one.
    pub const fn from_parts_per_billion(parts: u32) -> Option<Self> {
        if parts <= Self::SCALE { Some(Self(parts)) } else { None }
    }

    /// A ratio from a fraction in 0..=1 (rounded to a part per billion); `None` outside, or for NaN.
    pub fn from_fraction(fraction: f64) -> Option<Self> {
        let parts = (fraction * f64::from(Self::SCALE)).round();
        (0.0..=f64::from(Self::SCALE)).contains(&parts).then_some(Self(parts as u32))
    }

    /// Parts per billion.
    pub const fn parts_per_billion(self) -> u32 {
        self.0
    }

    /// As a fraction, for reports.
    pub fn as_fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::SCALE)
    }

    /// True for exactly this share of all 32-bit draws. Decides random events without floating point.
    pub fn hit_by(self, draw: u32) -> bool {
        // draw / 2^32 < parts / 10^9, in integers.
        u64::from(draw) * u64::from(Self::SCALE) < (u64::from(self.0) << 32)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.as_fraction() * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_hit_in_proportion() {
        assert!(!Ratio::ZERO.hit_by(0));
        assert!(Ratio::ONE.hit_by(u32::MAX));
        let half = Ratio::from_fraction(0.5).unwrap();
        assert!(half.hit_by((1 << 31) - 1));
        assert!(!half.hit_by(1 << 31));
    }

    #[test]
    fn a_fraction_is_parts_of_a_billion() {
        let ratio = Ratio::from_parts_per_billion(250_000_000).unwrap();
        assert_eq!((ratio.as_fraction(), ratio.to_string().as_str()), (0.25, "25 %"));
        assert_eq!(Ratio::from_fraction(0.25), Some(ratio));
    }

    #[test]
    fn out_of_range_is_refused() {
        assert_eq!(Ratio::from_fraction(1.1), None);
        assert_eq!(Ratio::from_fraction(-0.1), None);
        assert_eq!(Ratio::from_fraction(f64::NAN), None);
        assert_eq!(Ratio::from_parts_per_billion(1_000_000_001), None);
    }
}
