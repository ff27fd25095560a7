//! Reckoning with clock readings.

use super::packet::Stamp;
use crate::units::{Duration, Instant};

impl Stamp {
    /// The reading at `now` of a clock that runs `offset` microseconds ahead.
    pub fn at(now: Instant, offset: u32) -> Self {
        // 2^32 microseconds are 71 minutes: both ends reckon in differences.
        Self(((now.as_nanos() / 1000) as u32).wrapping_add(offset))
    }

    /// The reading after `span`.
    pub fn later(self, span: Duration) -> Self {
        Self(self.0.wrapping_add(span.as_micros() as u32))
    }

    /// Microseconds that make one of a [short](Self::short) reading, as a logarithm to base 2. Sixteen bits of them are 1.05 s,
    /// longer than most round trips with their queues and the interval between two TACKs.
    const SHORT_UNIT: u32 = 4;

    /// The 16 bits of the reading that [short data](super::packet::Data::short) carries, in units of 16 µs.
    #[must_use]
    pub fn short(self) -> Self {
        Self(self.0 >> Self::SHORT_UNIT & 0xffff)
    }

    /// The first reading from this one on, to a unit, whose [short](Self::short) form is `short`.
    pub fn next(self, short: Self) -> Self {
        let units = self.0 >> Self::SHORT_UNIT;
        Self(units.wrapping_add(short.0.wrapping_sub(units) & 0xffff) << Self::SHORT_UNIT)
    }

    /// The last reading up to this one whose [short](Self::short) form is `short`.
    pub fn last(self, short: Self) -> Self {
        let units = self.0 >> Self::SHORT_UNIT;
        Self(units.wrapping_sub(units.wrapping_sub(short.0) & 0xffff) << Self::SHORT_UNIT)
    }

    /// Microseconds since `earlier`, less than half the circle.
    pub fn since(self, earlier: Self) -> Option<u32> {
        let micros = self.0.wrapping_sub(earlier.0);
        (micros < 1 << 31).then_some(micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_reading_is_found_after_and_before_another() {
        for start in [0u32, 1, 15, 16, 0xf_ffff, 0x10_0000, u32::MAX - 5, 0x8000_0003] {
            for away in [0u32, 1, 16, 1_000, 500_000, (1 << 20) - 16] {
                let (later, earlier) = (start.wrapping_add(away), start.wrapping_sub(away));
                assert_eq!(Stamp(start).next(Stamp(later).short()).0, later & !15, "{start} and {away} on");
                assert_eq!(
                    Stamp(start).last(Stamp(earlier).short()).0,
                    earlier & !15,
                    "{start} and {away} back"
                );
            }
        }
        // A turn away it stands for the nearer one.
        assert_eq!(Stamp(1 << 20).next(Stamp(1 << 21).short()), Stamp(1 << 20));
        assert_eq!(Stamp(1 << 21).last(Stamp(1 << 20).short()), Stamp(1 << 21));
    }
}
