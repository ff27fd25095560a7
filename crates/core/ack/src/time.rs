//! Time in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A span of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

/// A point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// From microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }
    /// From milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// From seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }
    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// `self * factor`, or [`Duration::MAX`] on overflow.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
    /// How many times `other` fits, rounded up. Panics if `other` is zero.
    pub const fn div_ceil(self, other: Self) -> u64 {
        self.0.div_ceil(other.0)
    }
}

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds since the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Time since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + span.0)
    }
}
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0 - span.0)
    }
}
impl Sub for Instant {
    type Output = Duration;
    /// Panics in debug builds if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        Duration(self.0 - earlier.0)
    }
}
impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}
impl core::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 1_000 => write!(f, "{n}ns"),
            n if n < 1_000_000 => write!(f, "{}us", n as f64 / 1e3),
            n if n < 1_000_000_000 => write!(f, "{}ms", n as f64 / 1e6),
            n => write!(f, "{}s", n as f64 / 1e9),
        }
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
