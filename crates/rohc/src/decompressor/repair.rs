//! Decoding again after a check failed: perhaps enough packets were lost for a number of a few bits to wrap.
//!
//! RFC 3095 section 5.3.2.2.4 describes such repairs for the sequence number of RTP, RFC 6846 section 5.3.1.1 allows them.
//! Here the reference of the MSN is moved on by multiples of 16, and that of the number that the packet carries by
//! multiples of the span of its bits. A result counts if its own check and the TCP checksum are right, 19 bits together,
//! and something in it has grown.
//!
//! The TCP checksum does not cover an IP-ID, which follows from the MSN where it is sequential. There the MSN must be the
//! one that the flow's pace tells to the next 16 while the nearest does not fit, or the only one that fits this packet and
//! those that failed before it.

use super::Scratch;
use super::context::{Co, Context, First};
use super::outage::{TURNS, progress};
use crate::formats::{CONTEXT_FIELDS, Field, Format, Values, bit};

/// Turns of the packet's sequence or acknowledgment number that are tried.
const NUMBER_TURNS: u32 = 8;
/// Steps of the MSN that are believed at any pace: that much is lost more often than 16 more.
const SHORT: i16 = 4;
/// The number that a format carries in few bits, and the span of those.
fn number(format: &Format) -> Option<(Field, u32)> {
    let slot = format.slots.iter().find(|slot| {
        bit(slot.field) & (bit(Field::AckScaled) | bit(Field::SeqScaled) | bit(Field::Ack) | bit(Field::Seq))
            != 0
    })?;
    Some((slot.field, 1 << slot.bits()))
}

impl Context {
    /// Looks for the one way to understand a packet that failed: its length, once it is written and taken over.
    ///
    /// The caller has seen that this can be paid.
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
        // The nearest MSN, and that which the flow's pace tells: reference and turn of the number.
        let (mut nearest, mut by_pace) = (None, None);
        for at in 0..self.outage.suspects().len() {
            let reference = self.outage.suspects()[at];
            // By itself it came late, and was tried.
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
        // Without a sequential IP-ID the MSN is in nothing that is delivered, and its nearest value will do.
        let is_next = nearest.is_some_and(|(reference, _)| reference == self.msn());
        let chosen = if first.good && by_pace.is_none() {
            Some((self.msn(), 0))
        } else if !sequential || count == 1 || (is_next && by_pace == nearest) {
            nearest
        } else if is_next || first.good {
            // A short loss and an odd pace, or a long loss and a check that is right by chance.
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

    /// True when a packet that was decoded without repair has an MSN that its IP-ID may be made from.
    pub(super) fn is_plausible(&self, values: &Values) -> bool {
        let advance = progress(values.kept()).wrapping_sub(progress(self.kept()));
        let age = self.age(values);
        age <= SHORT
            || !self.is_sequential()
            || self.has_pace(values[Field::Msn] as u16, advance) != Some(false)
    }

    /// True when the flow's pace makes this MSN of the progress; `None` when it has no pace.
    fn has_pace(&self, msn: u16, advance: u32) -> Option<bool> {
        let distance = u32::from(msn.wrapping_sub(self.msn()));
        Some(self.outage.expected(self.kept(), advance)?.abs_diff(distance) < 8)
    }

    /// Tries every turn of the packet's number beside one reference of the MSN: the MSN, the turn, and the progress.
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

    /// The references, moved on.
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
