//! Byte input and output with one interface, so that one description against [`Bytes`] serves both compressor and
//! decompressor.

use super::memory::List;

/// Longest varint, in bytes: enough for 34 bits.
const VARINT_LEN: u32 = 6;

/// A writer appends its argument. A reader ignores it and returns the value read, or `None` at the end or at an invalid
/// value.
pub(super) trait Bytes {
    fn byte(&mut self, byte: u8) -> Option<u8>;

    /// Little-endian groups of seven bits, the high bit set on all but the last.
    fn varint(&mut self, value: u64) -> Option<u64> {
        let mut read = 0;
        for group in 0..VARINT_LEN {
            let rest = value >> (7 * group);
            let more = if rest > 0x7f { 0x80 } else { 0 };
            let byte = self.byte((rest & 0x7f) as u8 | more)?;
            read |= u64::from(byte & 0x7f) << (7 * group);
            if byte & 0x80 == 0 {
                return Some(read);
            }
        }
        None
    }

    fn short(&mut self, value: u16) -> Option<u16> {
        let [high, low] = value.to_be_bytes();
        Some(u16::from_be_bytes([self.byte(high)?, self.byte(low)?]))
    }

    /// A varint whose value must fit in 32 bits.
    fn varint32(&mut self, value: u32) -> Option<u32> {
        u32::try_from(self.varint(value.into())?).ok()
    }
}

/// Appends to a buffer.
pub(super) struct Writer<'a, L>(&'a mut L);

impl<'a, L: List<u8>> Writer<'a, L> {
    pub fn new(out: &'a mut L) -> Self {
        Self(out)
    }
}

impl<L: List<u8>> Bytes for Writer<'_, L> {
    fn byte(&mut self, byte: u8) -> Option<u8> {
        self.0.push(byte);
        Some(byte)
    }
}

/// Reads a slice.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The unread bytes.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl Bytes for Reader<'_> {
    fn byte(&mut self, _: u8) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }
}
