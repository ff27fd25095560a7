//! Least-significant-bit encoding of fields that change little: `lsb(k, p)` of RFC 4997 section 4.11.5.
//!
//! The compressor sends the `k` low bits of a value. The decompressor, which holds a reference value, takes the one
//! value in the interpretation interval `[reference - p, reference + 2^k - 1 - p]` that ends in those bits. All
//! arithmetic is modulo the width of the field. A compressor that does not know which of several values the peer holds
//! may only send bits that decode correctly with every one of them (W-LSB): [`Window`].

/// One `lsb(bits, offset)` encoding.
///
/// The compressed form consists of the `bits` low bits. The interpretation interval starts `offset` below the
/// reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lsb {
    /// Number of bits sent: 1..=31.
    pub bits: u32,
    /// Distance from the start of the interval up to the reference. Negative if the interval starts above the
    /// reference.
    pub offset: i32,
}

impl Lsb {
    /// The encoding `lsb(bits, offset)`.
    pub const fn new(bits: u32, offset: i32) -> Self {
        debug_assert!(bits >= 1 && bits <= 31);
        Self { bits, offset }
    }

    const fn mask(self) -> u32 {
        (1 << self.bits) - 1
    }

    /// The low bits of `value`, which are sent.
    pub const fn encode(self, value: u32) -> u32 {
        value & self.mask()
    }

    /// Decodes `bits` relative to `reference` (32-bit field).
    pub const fn decode(self, reference: u32, bits: u32) -> u32 {
        let low = reference.wrapping_sub(self.offset as u32);
        low.wrapping_add(bits.wrapping_sub(low) & self.mask())
    }

    /// Decodes `bits` relative to `reference` (16-bit field).
    pub const fn decode16(self, reference: u16, bits: u32) -> u16 {
        self.decode(reference as u32, bits) as u16
    }

    /// True if a decompressor with this reference decodes `value` correctly (32-bit field).
    pub const fn fits(self, reference: u32, value: u32) -> bool {
        let low = reference.wrapping_sub(self.offset as u32);
        value.wrapping_sub(low) <= self.mask()
    }

    /// True if a decompressor with this reference decodes `value` correctly (16-bit field).
    pub const fn fits16(self, reference: u16, value: u16) -> bool {
        let low = reference.wrapping_sub(self.offset as u16);
        value.wrapping_sub(low) as u32 <= self.mask()
    }
}

/// The references that a decompressor may hold for one field: the last values sent, at most `N`.
///
/// Initially empty: nothing fits until a value is pushed, because the peer holds no reference yet.
#[derive(Clone, Copy, Debug)]
pub struct Window<const N: usize> {
    values: [u32; N],
    len: u8,
    next: u8,
}

impl<const N: usize> Default for Window<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Window<N> {
    /// Creates an empty window.
    pub const fn new() -> Self {
        assert!(N >= 1 && N < 256);
        Self { values: [0; N], len: 0, next: 0 }
    }

    /// Records a value that was sent, and keeps the latest `width` values (1..=N).
    pub fn push(&mut self, value: u32, width: usize) {
        let width = width.clamp(1, N);
        let at = usize::from(self.next) % width;
        self.values[at] = value;
        self.next = ((at + 1) % width) as u8;
        self.len = (usize::from(self.len) + 1).min(width) as u8;
    }

    /// The values, in no particular order.
    pub fn values(&self) -> &[u32] {
        &self.values[..usize::from(self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_the_interval_returns_and_no_other() {
        for (bits, offset) in [(3, 1), (4, 4), (4, 3), (7, -1), (8, 127), (15, 8191)] {
            let lsb = Lsb::new(bits, offset);
            for reference in [0u32, 1, 77, 65535, 65536, u32::MAX, u32::MAX - 3] {
                let size = 1i64 << bits;
                for delta in [-i64::from(offset), 0, 1, size - 1 - i64::from(offset)] {
                    let value = reference.wrapping_add(delta as u32);
                    let inside = delta >= -i64::from(offset) && delta < size - i64::from(offset);
                    assert_eq!(lsb.fits(reference, value), inside, "{lsb:?} {reference} {delta}");
                    if inside {
                        assert_eq!(lsb.decode(reference, lsb.encode(value)), value);
                        let (short, low) = (reference as u16, value as u16);
                        assert!(lsb.fits16(short, low));
                        assert_eq!(lsb.decode16(short, lsb.encode(value)), low);
                    }
                }
                for delta in [-i64::from(offset) - 1, size - i64::from(offset)] {
                    assert!(!lsb.fits(reference, reference.wrapping_add(delta as u32)));
                }
            }
        }
    }

    #[test]
    fn a_16_bit_field_wraps_at_its_own_width() {
        let msn = Lsb::new(4, 4);
        assert!(msn.fits16(65535, 0));
        assert_eq!(msn.decode16(65535, 0), 0);
        assert_eq!(msn.decode16(2, msn.encode(65534)), 65534);
        assert!(!msn.fits16(65535, 15));
    }

    #[test]
    fn a_window_keeps_the_latest_values() {
        let mut window = Window::<4>::new();
        assert_eq!(window.values(), &[] as &[u32], "an empty window knows nothing");
        window.push(100, 2);
        window.push(110, 2);
        assert_eq!(window.values(), &[100, 110]);
        window.push(111, 2);
        assert_eq!(window.values(), &[111, 110], "100 has left");
    }
}
