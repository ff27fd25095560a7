//! Octets in either direction: a description written against [`Octets`] serves compressor and decompressor.

use alloc::vec::Vec;

/// Longest varint: 34 bits and a few to spare.
const VARINT_LEN: u32 = 6;

/// Writes what it is given, or ignores it and returns what it reads; `None` at the end or at what cannot be.
pub(super) trait Octets {
    fn octet(&mut self, octet: u8) -> Option<u8>;

    /// Little-endian groups of seven bits, the high bit set on all but the last.
    fn varint(&mut self, value: u64) -> Option<u64> {
        let mut read = 0;
        for group in 0..VARINT_LEN {
            let rest = value >> (7 * group);
            let more = if rest > 0x7f { 0x80 } else { 0 };
            let octet = self.octet((rest & 0x7f) as u8 | more)?;
            read |= u64::from(octet & 0x7f) << (7 * group);
            if octet & 0x80 == 0 {
                return Some(read);
            }
        }
        None
    }

    fn short(&mut self, value: u16) -> Option<u16> {
        let [high, low] = value.to_be_bytes();
        Some(u16::from_be_bytes([self.octet(high)?, self.octet(low)?]))
    }

    /// A varint that must fit 32 bits.
    fn varint32(&mut self, value: u32) -> Option<u32> {
        u32::try_from(self.varint(value.into())?).ok()
    }
}

/// Appends to a buffer.
pub(super) struct Writer<'a>(&'a mut Vec<u8>);

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }
}

impl Octets for Writer<'_> {
    #[inline]
    fn octet(&mut self, octet: u8) -> Option<u8> {
        self.0.push(octet);
        Some(octet)
    }
}

/// Reads a slice.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// What was not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl Octets for Reader<'_> {
    #[inline]
    fn octet(&mut self, _: u8) -> Option<u8> {
        let (&octet, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(octet)
    }
}
