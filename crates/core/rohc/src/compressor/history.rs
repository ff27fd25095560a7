//! The references that a decompressor may hold: all fields of the last packets sent (W-LSB, RFC 6846 section 5.2.1.1).

use crate::formats::{ALWAYS, CONTEXT_FIELDS, ContextFields, Field, Mask, SELDOM, Slot};
use crate::lsb::Lsb;

/// The maximum number of packets that carry a change.
pub const MAX_REPEAT: u8 = 8;

/// The last packets sent; the peer has one of them as its reference.
#[derive(Clone, Debug)]
pub(crate) struct History {
    entries: [ContextFields; MAX_REPEAT as usize],
    len: usize,
    latest: usize,
}

impl History {
    pub(crate) const EMPTY: Self =
        Self { entries: [[0; CONTEXT_FIELDS]; MAX_REPEAT as usize], len: 0, latest: 0 };

    /// In no particular order.
    pub(crate) fn entries(&self) -> &[ContextFields] {
        &self.entries[..self.len]
    }

    /// The last packet sent.
    #[inline]
    pub(crate) fn latest(&self) -> Option<&ContextFields> {
        self.entries().get(self.latest)
    }

    /// Records a packet that was sent and keeps the last `width` packets. `width` must be the same in every call.
    pub(crate) fn push(&mut self, kept: &ContextFields, width: u8) {
        let width = usize::from(width.clamp(1, MAX_REPEAT));
        let mut at = self.latest + 1;
        if self.len < width {
            at = self.len;
            self.len += 1;
        } else if at >= self.len {
            at = 0;
        }
        self.entries[at] = *kept;
        self.latest = at;
    }

    /// Appends an entry equal to the last one. The caller then sets the fields in which entries may differ.
    #[inline(always)]
    pub(crate) fn repeat_calm(&mut self, width: u8) -> &mut ContextFields {
        if self.len < usize::from(width) {
            let latest = self.entries[self.latest];
            self.push(&latest, width);
        } else {
            let next = self.latest + 1;
            self.latest = if next < self.len { next } else { 0 };
        }
        &mut self.entries[self.latest]
    }

    /// Forgets all references, because the peer may hold any values.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Records that the peer decompressed the packet with this MSN, so earlier packets are no longer references.
    pub(crate) fn confirm(&mut self, msn: u16) {
        let age = |kept: &ContextFields| (kept[Field::Msn as usize] as u16).wrapping_sub(msn) as i16;
        if !self.entries().iter().any(|kept| age(kept) == 0) {
            return;
        }
        let entries = &mut self.entries[..self.len];
        entries.sort_unstable_by_key(age);
        let gone = entries.partition_point(|kept| age(kept) < 0);
        entries.rotate_left(gone);
        self.len -= gone;
        self.latest = self.len - 1;
    }

    /// The fields in which any possible reference differs from `kept`, or every field if there is no reference. Does
    /// not report the fields from [`ALWAYS`] to [`SELDOM`], which are sent whether they changed or not.
    #[inline]
    pub(crate) fn changed(&self, kept: &ContextFields) -> Mask {
        if self.len == 0 {
            return Mask::MAX;
        }
        let mut differences = [0; CONTEXT_FIELDS];
        for entry in self.entries() {
            for at in 0..CONTEXT_FIELDS {
                differences[at] |= entry[at] ^ kept[at];
            }
        }
        let bits = |from: usize, to: usize| {
            (from..to).fold(0, |mask: Mask, at| mask | Mask::from(differences[at] != 0) << at)
        };
        let seldom = differences[SELDOM..].iter().fold(0, |any, difference| any | difference);
        bits(0, ALWAYS) | if seldom == 0 { 0 } else { bits(SELDOM, CONTEXT_FIELDS) }
    }

    /// True if every possible reference has this value.
    pub(crate) fn all(&self, field: Field, value: u32) -> bool {
        self.len > 0 && self.entries().iter().all(|entry| entry[field as usize] == value)
    }

    /// True if the encoding yields this value with every possible reference (32-bit field).
    pub(crate) fn fits(&self, field: Field, lsb: Lsb, value: u32) -> bool {
        self.len > 0 && self.entries().iter().all(|entry| lsb.fits(entry[field as usize], value))
    }

    /// True if the slot yields this value with every possible reference.
    pub(crate) fn fits_slot(&self, slot: &Slot, value: u32) -> bool {
        slot.is_raw() || self.entries().iter().all(|entry| slot.fits(entry[slot.field as usize], value))
    }
}
