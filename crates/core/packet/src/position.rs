//! Sequence numbers unwrapped to 64 bits.

use core::ops::{Add, AddAssign, Sub};

use crate::units::SeqNumber;

/// A position in the sequence space of one direction of a connection, in 64 bits.
///
/// A sequence number on the wire has 32 bits and wraps; a position never wraps. Positions therefore compare as plain
/// integers, and a peer cannot confuse comparisons with numbers half the sequence space away. The low 32 bits are the
/// number on the wire. Positions start at 2^32 plus the initial sequence number, so that slightly earlier numbers can
/// be represented, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u64);

impl Position {
    /// Position of the initial sequence number of a direction.
    pub const fn first(initial: SeqNumber) -> Self {
        Self((1 << 32) + initial.0 as u64)
    }

    /// The number the wire carries.
    #[inline]
    pub const fn wire(self) -> SeqNumber {
        SeqNumber(self.0 as u32)
    }

    /// The position nearest to `self` with the wire number `seq`, at most 2^31 away.
    #[inline]
    pub const fn nearest(self, seq: SeqNumber) -> Self {
        let ahead = seq.0.wrapping_sub(self.0 as u32) as i32;
        Self(self.0.wrapping_add_signed(ahead as i64))
    }

    /// The position nearest to `self` whose wire number has the low 16 bits `low`, at most 2^15 away.
    #[inline]
    pub const fn nearest_to_low(self, low: u16) -> Self {
        let ahead = low.wrapping_sub(self.0 as u16) as i16;
        Self(self.0.wrapping_add_signed(ahead as i64))
    }

    /// Bytes from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// `self - bytes`, saturating at the start of the number space.
    #[inline]
    pub const fn saturating_sub(self, bytes: u64) -> Self {
        Self(self.0.saturating_sub(bytes))
    }

    /// `self + bytes`, saturating at the end of the number space.
    #[inline]
    pub const fn saturating_add(self, bytes: u64) -> Self {
        // Leaves room for a FIN and for adding windows without overflow.
        const LAST: u64 = u64::MAX >> 1;
        let sum = self.0.saturating_add(bytes);
        Self(if sum > LAST { LAST } else { sum })
    }
}

impl Add<u64> for Position {
    type Output = Self;
    #[inline]
    fn add(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl AddAssign<u64> for Position {
    #[inline]
    fn add_assign(&mut self, bytes: u64) {
        self.0 += bytes;
    }
}

impl Sub<u64> for Position {
    type Output = Self;
    #[inline]
    fn sub(self, bytes: u64) -> Self {
        Self(self.0 - bytes)
    }
}

impl Sub for Position {
    type Output = u64;
    /// Bytes from `earlier` to `self`. Panics in debug builds if `earlier` is later.
    #[inline]
    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

/// The byte numbered `byte` of a stream whose initial sequence number is 0.
pub fn at(byte: u64) -> Position {
    Position::first(SeqNumber(0)) + byte
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_position_is_found_across_the_wrap() {
        let start = Position::first(SeqNumber(u32::MAX - 1));
        let later = start + 10;
        assert_eq!(later.wire(), SeqNumber(8));
        assert_eq!(start.nearest(SeqNumber(8)), later);
        assert_eq!(later.nearest(SeqNumber(u32::MAX - 1)), start);
        assert!(start < later);
    }

    #[test]
    fn sixteen_bits_suffice_near_by() {
        let start = Position::first(SeqNumber(u32::MAX - 1));
        for away in [0, 1, 2, 1000, (1 << 15) - 1] {
            assert_eq!(start.nearest_to_low((start + away).wire().0 as u16), start + away);
            assert_eq!(start.nearest_to_low((start - away).wire().0 as u16), start - away);
        }
    }

    #[test]
    fn numbers_from_the_far_side_of_the_circle_do_not_underflow() {
        let start = Position::first(SeqNumber(0));
        assert_eq!(start - start.nearest(SeqNumber(1 << 31)), 1 << 31);
    }

    #[test]
    fn an_endless_supply_of_data_stays_addable() {
        let end = Position::first(SeqNumber(7)).saturating_add(u64::MAX);
        assert!(end + (1 << 40) > end);
    }
}
