//! Losses of a flow, as far as they foretell its next packets.

use crate::formats::{ContextFields, Field};

/// Turns of the MSN that are tried: after a loss of up to 16 times as many packets.
pub(super) const TURNS: usize = 8;
/// Decoded packets that pay for one repair, and the most repairs that can be saved up for. A sender of garbage makes a
/// decompressor work no more than this.
const PRICE: u8 = 4;
const SAVINGS: u8 = 8 * PRICE;
/// Packets between two notes of the flow's pace.
const PACE_PACKETS: u32 = 64;

/// A context's knowledge of losses: how fast its flow goes, and which packets failed since the last success.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    /// MSNs of the latest packet that failed, as far as all that failed since the last success allow.
    suspects: [u16; TURNS],
    len: u8,
    /// No packet has failed yet.
    fresh: bool,
    credit: u8,
    /// MSN, and sequence and acknowledgment number added up: at the note before the last one, and at that.
    notes: [(u16, u32); 2],
}

impl Outage {
    pub(super) const NONE: Self =
        Self { suspects: [0; TURNS], len: 0, fresh: true, credit: 0, notes: [(0, 0); 2] };

    /// True when there is credit for a repair.
    pub(super) const fn can_pay(&self) -> bool {
        self.credit >= PRICE
    }

    /// Pays for a repair of a packet that failed beside the reference `msn`; the caller has seen that this can be paid.
    pub(super) fn pay(&mut self, msn: u16) {
        self.credit -= PRICE;
        if self.fresh {
            self.suspects = core::array::from_fn(|turn| msn.wrapping_add(16 * turn as u16));
            self.len = TURNS as u8;
            self.fresh = false;
        }
    }

    /// MSNs that the latest packet that failed may have.
    pub(super) fn suspects(&self) -> &[u16] {
        &self.suspects[..usize::from(self.len)]
    }

    /// Of them, these are left.
    pub(super) fn suspect(&mut self, left: impl ExactSizeIterator<Item = u16>) {
        self.len = left.len() as u8;
        for (suspect, msn) in self.suspects.iter_mut().zip(left) {
            *suspect = msn;
        }
    }

    /// After a success.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.fresh = true;
        self.credit = (self.credit + 1).min(SAVINGS);
    }

    /// Notes the flow's pace now and then.
    #[inline]
    pub(super) fn note(&mut self, kept: &ContextFields) {
        if kept[Field::Msn as usize].is_multiple_of(PACE_PACKETS) || self.notes[1] == (0, 0) {
            self.notes = [self.notes[1], (kept[Field::Msn as usize] as u16, progress(kept))];
        }
    }

    /// Packets that a flow at its usual pace would have sent for this much progress since `kept`.
    pub(super) fn expected(&self, kept: &ContextFields, advance: u32) -> Option<u32> {
        let (msn, start) = self.notes[0];
        let packets = u32::from((kept[Field::Msn as usize] as u16).wrapping_sub(msn));
        let made = progress(kept).wrapping_sub(start);
        if made == 0 || packets > 3 * PACE_PACKETS {
            return None;
        }
        Some((u64::from(advance) * u64::from(packets) / u64::from(made)).min(u64::from(u32::MAX)) as u32)
    }
}

/// Progress of a flow in bytes, in both directions together.
pub(super) fn progress(kept: &ContextFields) -> u32 {
    kept[Field::Seq as usize].wrapping_add(kept[Field::Ack as usize])
}
