//! Context identifiers on the wire (RFC 5795 sections 5.1.3 and 5.3.2).

use crate::wire::{Reader, Short, Writer};

/// How a channel numbers its contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CidSpace {
    /// CIDs 0 to `max`, at most 15. CID 0 takes no byte on the wire, the others take one.
    Small {
        /// The largest CID (MAX_CID).
        max: u8,
    },
    /// CIDs 0 to `max`, at most 16383. CIDs up to 127 take one byte, others two.
    Large {
        /// The largest CID (MAX_CID).
        max: u16,
    },
}

impl CidSpace {
    /// The largest CID, within the bounds of the coding.
    pub const fn max(self) -> u16 {
        match self {
            Self::Small { max } => {
                if max > 15 {
                    15
                } else {
                    max as u16
                }
            }
            Self::Large { max } => {
                if max > 16383 {
                    16383
                } else {
                    max
                }
            }
        }
    }

    pub(crate) const fn is_large(self) -> bool {
        matches!(self, Self::Large { .. })
    }

    /// Writes what precedes the first byte of a header: the add-CID byte of a small CID other than 0.
    pub(crate) fn write_before(self, cid: u16, writer: &mut Writer<'_>) -> Result<(), Short> {
        if self.is_large() || cid == 0 { Ok(()) } else { writer.put(&[0xe0 | cid as u8]) }
    }

    /// Writes what follows the first byte of a header: a large CID.
    pub(crate) fn write_after(self, cid: u16, writer: &mut Writer<'_>) -> Result<(), Short> {
        if self.is_large() { write_large(cid, writer) } else { Ok(()) }
    }

    /// Reads the first byte of a header and the CID before or after it. Returns the CID and the first byte.
    pub(crate) fn read(self, reader: &mut Reader<'_>) -> Result<(u16, u8), Short> {
        let first = reader.next()?;
        if self.is_large() {
            return Ok((read_large(reader)?, first));
        }
        if first & 0xf0 == 0xe0 {
            return Ok((u16::from(first & 0xf), reader.next()?));
        }
        Ok((0, first))
    }
}

/// One context on a channel.
#[derive(Clone, Copy)]
pub(crate) struct Cid {
    pub(crate) space: CidSpace,
    pub(crate) number: u16,
}

impl Cid {
    /// See [`CidSpace::write_before`].
    pub(crate) fn write_before(self, writer: &mut Writer<'_>) -> Result<(), Short> {
        self.space.write_before(self.number, writer)
    }

    /// See [`CidSpace::write_after`].
    pub(crate) fn write_after(self, writer: &mut Writer<'_>) -> Result<(), Short> {
        self.space.write_after(self.number, writer)
    }
}

/// Writes a large CID as a self-describing variable-length value of one or two bytes.
pub(crate) fn write_large(cid: u16, writer: &mut Writer<'_>) -> Result<(), Short> {
    if cid < 128 { writer.put(&[cid as u8]) } else { writer.put(&(0x8000 | cid).to_be_bytes()) }
}

/// Reads a CID that [`write_large`] wrote.
pub(crate) fn read_large(reader: &mut Reader<'_>) -> Result<u16, Short> {
    let first = reader.next()?;
    match first >> 6 {
        0 | 1 => Ok(u16::from(first)),
        2 => Ok(u16::from(first & 0x3f) << 8 | u16::from(reader.next()?)),
        _ => Err(Short),
    }
}
