//! One description for both directions: a [`Coder`] either writes the given values or replaces them by those it reads.

use crate::lsb::Lsb;

/// The input is too short, or the output has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short;

/// Writes or reads a sequence of bytes, depending on the implementation.
pub(crate) trait Coder {
    /// True for a reader, which replaces values.
    const READS: bool;

    fn bytes(&mut self, value: &mut [u8]) -> Result<(), Short>;

    fn u8(&mut self, value: &mut u8) -> Result<(), Short> {
        let mut bytes = [*value];
        self.bytes(&mut bytes)?;
        *value = bytes[0];
        Ok(())
    }

    fn u16(&mut self, value: &mut u16) -> Result<(), Short> {
        let mut bytes = value.to_be_bytes();
        self.bytes(&mut bytes)?;
        *value = u16::from_be_bytes(bytes);
        Ok(())
    }

    fn u32(&mut self, value: &mut u32) -> Result<(), Short> {
        let mut bytes = value.to_be_bytes();
        self.bytes(&mut bytes)?;
        *value = u32::from_be_bytes(bytes);
        Ok(())
    }

    /// Codes the low `count` bytes (at most four) of a word.
    fn low(&mut self, count: usize, word: &mut u32) -> Result<(), Short> {
        let mut bytes = word.to_be_bytes();
        self.bytes(&mut bytes[4 - count..])?;
        bytes[..4 - count].fill(0);
        *word = u32::from_be_bytes(bytes);
        Ok(())
    }

    /// Codes `value` as the `lsb.bits / 8` bytes of an LSB encoding relative to `reference`, modulo `width_mask` + 1.
    fn lsb(&mut self, lsb: Lsb, width_mask: u32, reference: u32, value: &mut u32) -> Result<(), Short> {
        let mut bits = lsb.encode(*value);
        self.low(lsb.bits as usize / 8, &mut bits)?;
        if Self::READS {
            *value = lsb.decode(reference, bits) & width_mask;
        }
        Ok(())
    }
}

/// Reads from a slice.
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Short)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn next(&mut self) -> Result<u8, Short> {
        let (&first, rest) = self.rest.split_first().ok_or(Short)?;
        self.rest = rest;
        Ok(first)
    }
}

impl Coder for Reader<'_> {
    const READS: bool = true;

    fn bytes(&mut self, value: &mut [u8]) -> Result<(), Short> {
        value.copy_from_slice(self.take(value.len())?);
        Ok(())
    }
}

/// Writes to a slice.
pub(crate) struct Writer<'a> {
    pub(crate) out: &'a mut [u8],
    pub(crate) len: usize,
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Short> {
        let end = self.len + bytes.len();
        self.out.get_mut(self.len..end).ok_or(Short)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    /// Writes the first `len` bytes of a big-endian word.
    pub(crate) fn put_word(&mut self, word: u64, len: usize) -> Result<(), Short> {
        let bytes = word.to_be_bytes();
        // If there is room for all eight bytes, a copy of fixed length is faster. The excess is overwritten or ignored.
        if let Some(room) = self.out.get_mut(self.len..).and_then(|room| room.first_chunk_mut()) {
            *room = bytes;
            self.len += len;
            return Ok(());
        }
        self.put(&bytes[..len])
    }

    /// The bytes written so far.
    pub(crate) fn written(&mut self) -> &mut [u8] {
        &mut self.out[..self.len]
    }
}

impl Coder for Writer<'_> {
    const READS: bool = false;

    fn bytes(&mut self, value: &mut [u8]) -> Result<(), Short> {
        self.put(value)
    }
}
