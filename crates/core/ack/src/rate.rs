//! Amounts of data and data rates.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};

use super::Duration;

/// An amount of data in bytes.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// From bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// From kilobits (1000 bits) per second.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps * 1_000)
    }
    /// From megabits (10^6 bits) per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Megabits per second, for reports.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Time for `amount` at this rate, rounded up to a nanosecond. Panics at rate zero.
    #[inline]
    pub const fn time_for(self, amount: Bytes) -> Duration {
        match amount.0.checked_mul(8_000_000_000) {
            Some(nanobits) => Duration::from_nanos(nanobits.div_ceil(self.0)),
            None => Duration::from_nanos((amount.0 as u128 * 8_000_000_000).div_ceil(self.0 as u128) as u64),
        }
    }

    /// Amount transferred in `span`, rounded down to a byte.
    pub const fn amount_in(self, span: Duration) -> Bytes {
        Bytes((self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000) as u64)
    }

    /// The rate of `amount` per `span`, rounded down; `None` for an empty span.
    pub const fn from_amount(amount: Bytes, span: Duration) -> Option<Self> {
        if span.as_nanos() == 0 {
            return None;
        }
        Some(Self((amount.0 as u128 * 8_000_000_000 / span.as_nanos() as u128) as u64))
    }
}

impl Mul<Duration> for BitRate {
    type Output = Bytes;
    fn mul(self, span: Duration) -> Bytes {
        self.amount_in(span)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}
impl core::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000 => write!(f, "{}Mbps", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{}kbps", n as f64 / 1e3),
            n => write!(f, "{n}bps"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_times_time_is_size_and_back() {
        let rate = BitRate::from_mbps(500);
        assert_eq!(rate.time_for(Bytes(1500)), Duration::from_nanos(24_000));
        assert_eq!(rate * Duration::from_micros(24), Bytes(1500));
        assert_eq!(BitRate::from_amount(Bytes(1500), Duration::from_micros(24)), Some(rate));
        assert_eq!(BitRate::from_amount(Bytes(1), Duration::ZERO), None);
    }

    #[test]
    fn odd_rates_round_up() {
        assert_eq!(BitRate::from_bps(3).time_for(Bytes(1)), Duration::from_nanos(2_666_666_667));
    }
}
