//! The references a decompressor may hold: all fields of the last packets sent (W-LSB, RFC 6846 section 5.2.1.1).

use crate::formats::{Field, KEPT, Kept, Mask, Slot};
use crate::lsb::Lsb;

/// The most packets a change may be repeated in.
pub const MAX_REPEAT: u8 = 8;

/// The last packets sent, at most `width` of them; the peer has one of them as its reference. The first is the latest.
pub(crate) struct History {
    entries: [Kept; MAX_REPEAT as usize],
    len: usize,
}

impl History {
    pub(crate) const EMPTY: Self = Self { entries: [[0; KEPT]; MAX_REPEAT as usize], len: 0 };

    #[inline]
    pub(crate) fn entries(&self) -> &[Kept] {
        &self.entries[..self.len]
    }

    /// Records a packet that was sent.
    #[inline]
    pub(crate) fn push(&mut self, kept: &Kept, width: u8) {
        let width = usize::from(width.clamp(1, MAX_REPEAT));
        let keep = self.len.min(width - 1);
        self.entries.copy_within(..keep, 1);
        self.entries[0] = *kept;
        self.len = keep + 1;
    }

    /// The peer may hold anything.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// The peer has decompressed the packet with this MSN: what was sent earlier is no reference any more.
    pub(crate) fn confirm(&mut self, msn: u16) {
        let at = self.entries().iter().position(|kept| kept[Field::Msn as usize] == u32::from(msn));
        if let Some(at) = at {
            self.len = at + 1;
        }
    }

    /// The fields in which some possible reference differs from `kept`; every field if there is no reference.
    #[inline]
    pub(crate) fn changed(&self, kept: &Kept) -> Mask {
        if self.len == 0 {
            return Mask::MAX;
        }
        let mut differences = [0; KEPT];
        for entry in self.entries() {
            for at in 0..KEPT {
                differences[at] |= entry[at] ^ kept[at];
            }
        }
        differences
            .iter()
            .enumerate()
            .fold(0, |mask, (at, &difference)| mask | Mask::from(difference != 0) << at)
    }

    /// True when every possible reference has this value.
    #[inline]
    pub(crate) fn all(&self, field: Field, value: u32) -> bool {
        self.len > 0 && self.entries().iter().all(|entry| entry[field as usize] == value)
    }

    /// True when every possible reference yields this value (32-bit field).
    #[inline]
    pub(crate) fn fits(&self, field: Field, lsb: Lsb, value: u32) -> bool {
        self.len > 0 && self.entries().iter().all(|entry| lsb.fits(entry[field as usize], value))
    }

    /// True when every possible reference yields this value in this slot.
    #[inline]
    pub(crate) fn fits_slot(&self, slot: &Slot, value: u32) -> bool {
        slot.is_raw() || self.entries().iter().all(|entry| slot.fits(entry[slot.field as usize], value))
    }
}
