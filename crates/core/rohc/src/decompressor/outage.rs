//! Keeps track of losses and of the flow's pace, to predict its next MSNs.

use crate::formats::{ContextFields, Field};

/// Number of wraps of the 4-bit MSN that are tried; each wrap means 16 more lost packets.
pub(super) const TURNS: usize = 8;
/// Number of decoded packets that earn one repair, and the largest credit. This bounds the work that a sender of
/// garbage can cause.
const PRICE: u8 = 4;
const SAVINGS: u8 = 8 * PRICE;
/// Number of packets between two samples of the pace.
const PACE_PACKETS: u32 = 64;

/// What a context knows about losses: the pace of its flow, and the packets that failed since the last success.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    /// Possible MSNs of the last failed packet, consistent with all failures since the last success.
    suspects: [u16; TURNS],
    len: u8,
    /// No packet has failed yet.
    fresh: bool,
    credit: u8,
    /// The last two samples, older first: the MSN, and the sum of sequence and acknowledgment number.
    notes: [(u16, u32); 2],
}

impl Outage {
    pub(super) const NONE: Self =
        Self { suspects: [0; TURNS], len: 0, fresh: true, credit: 0, notes: [(0, 0); 2] };

    /// True if there is enough credit for a repair.
    pub(super) const fn can_pay(&self) -> bool {
        self.credit >= PRICE
    }

    /// Spends the credit for repairing a packet that failed with the reference `msn`. The caller must have checked
    /// [`Outage::can_pay`].
    pub(super) fn pay(&mut self, msn: u16) {
        self.credit -= PRICE;
        if self.fresh {
            self.suspects = core::array::from_fn(|turn| msn.wrapping_add(16 * turn as u16));
            self.len = TURNS as u8;
            self.fresh = false;
        }
    }

    /// Possible MSNs of the last failed packet.
    pub(super) fn suspects(&self) -> &[u16] {
        &self.suspects[..usize::from(self.len)]
    }

    /// Replaces the possible MSNs by those in `left`.
    pub(super) fn suspect(&mut self, left: impl ExactSizeIterator<Item = u16>) {
        self.len = left.len() as u8;
        for (suspect, msn) in self.suspects.iter_mut().zip(left) {
            *suspect = msn;
        }
    }

    /// Resets the failures after a success.
    pub(super) fn clear(&mut self) {
        self.fresh = true;
        self.credit = (self.credit + 1).min(SAVINGS);
    }

    /// Takes a sample of the pace every [`PACE_PACKETS`] packets.
    pub(super) fn note(&mut self, kept: &ContextFields) {
        if kept[Field::Msn as usize].is_multiple_of(PACE_PACKETS) || self.notes[1] == (0, 0) {
            self.notes = [self.notes[1], (kept[Field::Msn as usize] as u16, progress(kept))];
        }
    }

    /// Number of packets in which a flow at its usual pace makes this progress after `kept`.
    pub(super) fn expected(&self, kept: &ContextFields, advance: u32) -> Option<u32> {
        let (msn, start) = self.notes[0];
        let packets = u32::from((kept[Field::Msn as usize] as u16).wrapping_sub(msn));
        let gained = progress(kept).wrapping_sub(start);
        if gained == 0 || packets > 3 * PACE_PACKETS {
            return None;
        }
        Some((u64::from(advance) * u64::from(packets) / u64::from(gained)).min(u64::from(u32::MAX)) as u32)
    }
}

/// Progress of a flow in bytes, as the sum of both directions.
pub(super) fn progress(kept: &ContextFields) -> u32 {
    kept[Field::Seq as usize].wrapping_add(kept[Field::Ack as usize])
}
