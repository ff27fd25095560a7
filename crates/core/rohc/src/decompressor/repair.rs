//! Decodes a packet again after its CRC failed, on the assumption that enough packets were lost for a field of a few
//! bits to wrap.
//!
//! RFC 3095 section 5.3.2.2.4 describes such repairs for the sequence number of RTP, and RFC 6846 section 5.3.1.1
//! allows them. Here the reference of the MSN is advanced by multiples of 16, and that of the number that the packet
//! carries by multiples of its range. A result is accepted if both its CRC and its TCP checksum are correct, at least
//! 19 bits together, and some field has advanced.
//!
//! The TCP checksum does not cover the IP-ID, which follows from the MSN if it is sequential. In that case the MSN must
//! be determined with certainty. Either the flow's pace predicts it to within 16 and excludes the nearest candidate, or
//! it is the only one that fits both this packet and those that failed before it.

use super::Scratch;
use super::context::{Co, Context, First};
use super::outage::{TURNS, progress};
use crate::formats::{CONTEXT_FIELDS, Field, Format, Values, bit};

/// Number of wraps of the packet's sequence or acknowledgment number that are tried.
const NUMBER_TURNS: u32 = 8;
/// MSN steps up to this are accepted at any pace, because such a short loss is more likely than one of 16 more packets.
const SHORT: i16 = 4;
/// The field that a format carries in few bits, and the range of these bits.
fn number(format: &Format) -> Option<(Field, u32)> {
    let slot = format.slots.iter().find(|slot| {
        bit(slot.field) & (bit(Field::AckScaled) | bit(Field::SeqScaled) | bit(Field::Ack) | bit(Field::Seq))
            != 0
    })?;
    Some((slot.field, 1 << slot.bits()))
}

impl Context {
    /// Looks for the only consistent interpretation of a packet that failed. If there is one, writes the packet,
    /// updates the context and returns the length.
    ///
    /// The caller must have checked that there is credit for it.
    #[cold]
    pub(super) fn repair(
        &mut self,
        co: &Co<'_>,
        first: First,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Option<usize> {
        self.outage.pay(self.msn());
        let sequential = self.is_sequential();
        let mut left = [(0, 0); TURNS];
        let mut count = 0;
        // The nearest MSN, and the one predicted by the pace, each as a reference and a number of wraps of the number.
        let (mut nearest, mut by_pace) = (None, None);
        for at in 0..self.outage.suspects().len() {
            let reference = self.outage.suspects()[at];
            // Without repair the packet was late, and this reference has been tried.
            let tried = reference == self.msn() && first.late;
            let Some((msn, turn, advance)) =
                (!tried).then(|| self.turns(co, reference, scratch, out)).flatten()
            else {
                continue;
            };
            left[count] = (reference, msn);
            count += 1;
            nearest = nearest.or(Some((reference, turn)));
            if self.has_pace(msn, advance) == Some(true) {
                by_pace = by_pace.or(Some((reference, turn)));
            }
        }
        // Without a sequential IP-ID, no delivered field depends on the MSN, so the nearest value is good enough.
        let is_next = nearest.is_some_and(|(reference, _)| reference == self.msn());
        let chosen = if first.good && by_pace.is_none() {
            Some((self.msn(), 0))
        } else if !sequential || count == 1 || (is_next && by_pace == nearest) {
            nearest
        } else if is_next || first.good {
            // Either a short loss with an unusual pace, or a long loss with a CRC that is correct by chance:
            // undecidable.
            None
        } else {
            by_pace
        };
        self.outage.suspect(left[..count].iter().map(|(_, msn)| *msn));
        let (reference, turn) = chosen?;
        let kept = self.moved(co.format, reference, turn);
        let mut decoded = self.attempt(co, &kept, scratch, out).ok()?;
        self.accept(&mut decoded, scratch);
        self.succeeded();
        self.counts.repaired += 1;
        Some(decoded.len)
    }

    /// True if the MSN of a packet decoded without repair is plausible, so that an IP-ID may be derived from it.
    pub(super) fn is_plausible(&self, values: &Values) -> bool {
        let advance = progress(values.kept()).wrapping_sub(progress(self.kept()));
        let age = self.age(values);
        age <= SHORT
            || !self.is_sequential()
            || self.has_pace(values[Field::Msn] as u16, advance) != Some(false)
    }

    /// True if this MSN fits the progress at the flow's pace; `None` if the pace is unknown.
    fn has_pace(&self, msn: u16, advance: u32) -> Option<bool> {
        let distance = u32::from(msn.wrapping_sub(self.msn()));
        Some(self.outage.expected(self.kept(), advance)?.abs_diff(distance) < 8)
    }

    /// Tries every wrap of the packet's number with one reference of the MSN. Returns the MSN, the number of wraps, and
    /// the progress.
    fn turns(&self, co: &Co<'_>, msn: u16, scratch: &mut Scratch, out: &mut [u8]) -> Option<(u16, u32, u32)> {
        let turns = if number(co.format).is_some() { NUMBER_TURNS } else { 1 };
        (0..turns).find_map(|turn| {
            let kept = self.moved(co.format, msn, turn);
            let decoded = self.attempt(co, &kept, scratch, out).ok()?;
            let right = decoded.good
                && self.age(&decoded.values) > 0
                && self.is_ahead(&decoded.values)
                && self.checksum_holds(&decoded.header, scratch, decoded.payload);
            let advance = progress(decoded.values.kept()).wrapping_sub(progress(self.kept()));
            right.then_some((decoded.values[Field::Msn] as u16, turn, advance))
        })
    }

    /// The references, advanced by the assumed wraps.
    fn moved(&self, format: &Format, msn: u16, turn: u32) -> [u32; CONTEXT_FIELDS] {
        let mut kept = *self.kept();
        kept[Field::Msn as usize] = u32::from(msn);
        if let Some((field, span)) = number(format) {
            let value = &mut kept[field as usize];
            *value = value.wrapping_add(span * turn);
        }
        kept
    }
}
