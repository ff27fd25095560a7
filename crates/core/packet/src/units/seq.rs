//! TCP sequence numbers: 32 bits, circular.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence or acknowledgment number, compared modulo 2^32 (RFC 9293 section 3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// True if `self` comes before `other`: less than half the number space away.
    #[inline]
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// True if `self` comes before `other` or is equal.
    #[inline]
    pub const fn before_eq(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) <= 0
    }

    /// True if `self` comes after `other`.
    #[inline]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// The later of the two.
    #[inline]
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The earlier of the two.
    #[inline]
    pub const fn min(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;
    #[inline]
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SeqNumber {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for SeqNumber {
    type Output = Self;
    #[inline]
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

impl Sub for SeqNumber {
    type Output = u32;
    /// Bytes from `earlier` to `self`.
    #[inline]
    fn sub(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let before = SeqNumber(u32::MAX - 10);
        let after = before + 20;
        assert_eq!(after, SeqNumber(9));
        assert!(before.before(after));
        assert!(after.after(before));
        assert_eq!(after - before, 20);
        assert_eq!(before.max(after), after);
        assert_eq!(before.min(after), before);
    }
}
