//! Powers and logarithms in fixed point, accurate to some 2^-14, for utility functions that are equal on every machine.

/// Fractional bits of all numbers in this module.
pub(super) const BITS: u32 = 16;
/// One.
pub(super) const ONE: i64 = 1 << BITS;

/// log2 of the integer `value`, which must be at least 1. Computed bit by bit: squaring doubles a logarithm.
pub(super) fn log2(value: u64) -> i64 {
    let value = value.max(1);
    let whole = value.ilog2();
    // The mantissa, in 1..2 with 31 fractional bits.
    let mut mantissa = if whole > 31 { value >> (whole - 31) } else { value << (31 - whole) };
    let mut fraction = 0;
    for bit in (0..BITS).rev() {
        mantissa = (mantissa * mantissa) >> 31;
        if mantissa >> 32 != 0 {
            mantissa >>= 1;
            fraction |= 1 << bit;
        }
    }
    (i64::from(whole) << BITS) + fraction
}

/// 2 to the power of `exponent`, in fixed point; zero if it is too small, and at most 2^46.
pub(super) fn exp2(exponent: i64) -> i64 {
    /// Most integer bits of a result.
    const LARGEST: i64 = 46;
    /// ln 2 with 31 bits, and the Taylor series of e^x: 10 terms leave an error below 2^-30.
    const LN_2: i64 = 1_488_522_236;
    const TERMS: i64 = 10;
    let (whole, fraction) = (exponent >> BITS, exponent & (ONE - 1));
    if whole >= LARGEST {
        return 1 << (LARGEST + i64::from(BITS));
    }
    let x = (fraction * LN_2) >> BITS;
    let one = 1_i64 << 31;
    let series = (1..=TERMS).rev().fold(one, |sum, n| one + ((x * sum) >> 31) / n);
    let shift = 31 - i64::from(BITS) - whole;
    match shift {
        ..0 => series << -shift,
        0..=62 => series >> shift,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(number: f64) -> i64 {
        (number * ONE as f64).round() as i64
    }

    #[test]
    fn logarithms_are_good_to_the_last_bits() {
        for value in [1, 2, 3, 10, 1_000, 123_456_789, u64::from(u32::MAX), 1 << 50] {
            let known = fixed((value as f64).log2());
            assert!((log2(value) - known).abs() <= 2, "{value}: {} {known}", log2(value));
        }
    }

    #[test]
    fn powers_are_good_to_a_part_in_ten_thousand() {
        for exponent in [-20.0, -3.7, -0.5, 0.0, 0.1, 0.999, 1.0, 7.25, 19.9, 40.5] {
            let (power, known) = (exp2(fixed(exponent)), fixed(f64::exp2(exponent)));
            assert!((power - known).abs() <= 1 + known / 10_000, "{exponent}: {power} {known}");
        }
        assert_eq!(exp2(-100 * ONE), 0);
        assert_eq!(exp2(1_000 * ONE), 1 << 62);
    }
}
