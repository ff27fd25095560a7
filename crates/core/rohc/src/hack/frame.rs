//! The fixed part of a frame.
//!
//! ```text
//!   0 1 2 3   4 5 6 7
//! +---------+---------+
//! | length  |  kind   |  bytes behind the check; 15: a varint of (length - 15) follows the check
//! +---------+---------+
//! |        CID        |
//! +-------------------+
//! |        MSN        |  of the first ACK in it
//! +-------------------+
//! |       CRC-8       |  over the whole headers of all its ACKs
//! +-------------------+
//! |  [more length]    |  1-2 bytes
//! +-------------------+
//! | [native's CRC-16] |  kinds that begin an incarnation
//! +-------------------+
//! |        ACKs       |
//! +-------------------+
//! ```

use super::bytes::{Bytes, Reader, Writer};
use super::memory::List;

/// Length of the fixed part of every frame.
const FIXED_LEN: usize = 4;
/// Length nibble of a frame whose remaining length follows the CRC-8.
const MORE: u8 = 15;

/// Meaning of the low nibble of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Each ACK coded separately. The first one has the expected step, and its TSval and TSecr rose by `pair / 3` and
    /// `pair % 3`.
    Short { pair: u8 },
    /// Each ACK coded separately, the first one by its own bytes.
    Long,
    /// First frame of an incarnation, each ACK coded separately, the first one by its own bytes.
    LongInit,
    /// Range coded.
    Batch,
    /// First frame of an incarnation, range coded.
    BatchInit,
}

impl Kind {
    const fn to_nibble(self) -> u8 {
        match self {
            Self::Short { pair } => pair,
            Self::Long => 9,
            Self::LongInit => 10,
            Self::Batch => 11,
            Self::BatchInit => 12,
        }
    }

    const fn from_nibble(nibble: u8) -> Option<Self> {
        Some(match nibble {
            0..9 => Self::Short { pair: nibble },
            9 => Self::Long,
            10 => Self::LongInit,
            11 => Self::Batch,
            12 => Self::BatchInit,
            _ => return None,
        })
    }

    /// True for range-coded kinds.
    pub const fn is_batch(self) -> bool {
        matches!(self, Self::Batch | Self::BatchInit)
    }

    /// Its name for display.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short { .. } => "short",
            Self::Long => "long",
            Self::LongInit => "long-init",
            Self::Batch => "batch",
            Self::BatchInit => "batch-init",
        }
    }

    /// True for kinds that carry the CRC-16 of the native ACK from which they start.
    pub const fn is_init(self) -> bool {
        matches!(self, Self::LongInit | Self::BatchInit)
    }
}

/// One frame, parsed as far as possible without a context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub kind: Kind,
    pub cid: u8,
    pub msn: u8,
    pub check: u8,
    /// CRC-16 of the native ACK from which this incarnation starts; 0 for other kinds.
    pub native: u16,
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Splits the first frame off `bytes`. Returns the frame and the remaining bytes.
    ///
    /// The frame is `None` if its kind is unknown; its length is still used to find the remaining bytes. Returns `None`
    /// if the length exceeds the input.
    pub fn split(bytes: &'a [u8]) -> Option<(Option<Self>, &'a [u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<FIXED_LEN>()?;
        let mut reader = Reader::new(rest);
        let mut length = usize::from(fixed[0] >> 4);
        if length == usize::from(MORE) {
            length += usize::try_from(reader.varint(0)?).ok()?;
        }
        let rest = reader.rest();
        let (body, rest) = (rest.get(..length)?, &rest[length..]);
        Some((Self::read(*fixed, body), rest))
    }

    fn read(fixed: [u8; FIXED_LEN], body: &'a [u8]) -> Option<Self> {
        let kind = Kind::from_nibble(fixed[0] & 0xf)?;
        let [_, cid, msn, check] = fixed;
        let (native, body) = if kind.is_init() {
            let (native, body) = body.split_first_chunk::<2>()?;
            (u16::from_be_bytes(*native), body)
        } else {
            (0, body)
        };
        Some(Self { kind, cid, msn, check, native, body })
    }
}

/// A frame whose ACKs are being appended to a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFrame {
    /// Offset of its first byte.
    start: usize,
}

impl OpenFrame {
    /// Appends the bytes that stand before the ACKs. `native` is the CRC-16 of a frame that begins an incarnation.
    pub fn begin(out: &mut impl List<u8>, native: Option<u16>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; FIXED_LEN]);
        if let Some(native) = native {
            out.extend_from_slice(&native.to_be_bytes());
        }
        Self { start }
    }

    /// Fills in the fixed part, and inserts the rest of a long length.
    pub fn finish(self, out: &mut impl List<u8>, kind: Kind, [cid, msn, check]: [u8; 3]) {
        let length = out.len().saturating_sub(self.start + FIXED_LEN);
        let nibble = length.min(usize::from(MORE)) as u8;
        if nibble == MORE {
            let end = out.len();
            Writer::new(out).varint((length - usize::from(MORE)) as u64);
            let inserted = out.len() - end;
            out[self.start + FIXED_LEN..].rotate_right(inserted);
        }
        if let Some(fixed) = out.get_mut(self.start..self.start + FIXED_LEN) {
            fixed.copy_from_slice(&[nibble << 4 | kind.to_nibble(), cid, msn, check]);
        }
    }
}
