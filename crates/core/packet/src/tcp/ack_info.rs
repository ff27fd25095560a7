//! Contents of a pure ACK, for queues that drop an ACK if a later one contains all its information.

use super::segment::{Flags, SackBlocks, SackRange, Segment, Timestamps};
use crate::units::SeqNumber;

/// Contents of a segment that only acknowledges: no payload, no flags except ACK, ECE and CWR, and no options except
/// timestamps and SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckInfo {
    /// Next byte expected.
    pub ack: SeqNumber,
    /// ACK, and possibly ECE and CWR.
    pub flags: Flags,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
}

impl AckInfo {
    /// Contents of `segment`; `None` if it does not only acknowledge.
    pub fn from_segment(segment: &Segment) -> Option<Self> {
        let Segment { ack, flags, timestamps, sack, .. } = *segment;
        // PSH requests fast delivery, so filters do not drop such segments.
        let pure = segment.is_pure_ack() && !flags.contains(Flags::PSH);
        pure.then_some(Self { ack, flags, timestamps, sack })
    }

    /// True if it contains only a number: no flag except ACK, and no SACK block.
    pub fn is_plain(&self) -> bool {
        self.flags == Flags::ACK && self.sack.is_empty()
    }

    /// True if a sender that received both, `older` first, knows no more than one that received only this one.
    ///
    /// The rule is that of CAKE's filter (Høiland-Jørgensen et al., LANMAN 2018; tc-cake(8)): a higher number, or the
    /// same number with more SACKed; everything that `older` SACKs is acknowledged or SACKed; the same ECE and CWR;
    /// timestamps that do not go back. The same number without news is a duplicate ACK or a window update, which
    /// matters (RFC 5681 section 2). Two rules are stricter than CAKE's: an ACK that reports a duplicate segment (RFC
    /// 2883) is covered by no ACK and covers no duplicate ACK, and flags must always be equal.
    pub fn covers(&self, older: &Self) -> bool {
        let sacks_more = !self.reports_duplicate() && !older.sacks_all_of(self);
        let more = self.ack.after(older.ack) || self.ack == older.ack && sacks_more;
        more && self.flags == older.flags
            && self.timestamps_follow(older)
            && !older.reports_duplicate()
            && self.sacks_all_of(older)
    }

    /// True if this ACK may replace `older`: both contain only a number, and this one [covers](Self::covers) `older`
    /// with a higher number.
    pub fn replaces(&self, older: &Self) -> bool {
        self.is_plain() && older.is_plain() && self.ack.after(older.ack) && self.covers(older)
    }

    /// True if a sender that gets both at the same time loses nothing without `older`: this one
    /// [replaces](Self::replaces) it, and both echo the same timestamp, so that either gives the same round-trip sample
    /// (RFC 7323 section 4).
    pub fn stands_for(&self, older: &Self) -> bool {
        let echo = |info: &Self| info.timestamps.map(|timestamps| timestamps.echo_reply);
        self.replaces(older) && echo(self) == echo(older)
    }

    /// True if each block of `other` is acknowledged or within a block of this one.
    fn sacks_all_of(&self, other: &Self) -> bool {
        let within = |block: &SackRange, outer: &SackRange| {
            outer.start.before_eq(block.start) && block.end.before_eq(outer.end)
        };
        other.sack.as_slice().iter().all(|block| {
            block.end.before_eq(self.ack) || self.sack.as_slice().iter().any(|outer| within(block, outer))
        })
    }

    /// RFC 2883 section 4: the first block is below the acknowledgment, or within the second.
    fn reports_duplicate(&self) -> bool {
        match self.sack.as_slice() {
            [first, ..] if first.start.before(self.ack) => true,
            [first, second, ..] => second.start.before_eq(first.start) && first.end.before_eq(second.end),
            _ => false,
        }
    }

    fn timestamps_follow(&self, older: &Self) -> bool {
        let follows = |new: u32, old: u32| SeqNumber(old).before_eq(SeqNumber(new));
        match (self.timestamps, older.timestamps) {
            (None, None) => true,
            (Some(new), Some(old)) => {
                follows(new.value, old.value) && follows(new.echo_reply, old.echo_reply)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u32, blocks: &[(u32, u32)]) -> AckInfo {
        let mut sack = SackBlocks::EMPTY;
        for (start, end) in blocks {
            assert!(sack.push(SackRange { start: SeqNumber(*start), end: SeqNumber(*end) }));
        }
        let timestamps = Some(Timestamps { value: 5, echo_reply: 4 });
        AckInfo { ack: SeqNumber(number), flags: Flags::ACK, timestamps, sack }
    }

    #[test]
    fn a_later_number_covers_an_earlier_one_even_around_the_circle() {
        assert!(ack(300, &[]).covers(&ack(200, &[])));
        assert!(!ack(200, &[]).covers(&ack(300, &[])));
        assert!(ack(10, &[]).covers(&ack(u32::MAX - 10, &[])));
    }

    #[test]
    fn a_duplicate_is_covered_only_by_one_that_sacks_more() {
        assert!(!ack(200, &[]).covers(&ack(200, &[])));
        assert!(!ack(200, &[(300, 400)]).covers(&ack(200, &[(300, 400)])));
        assert!(ack(200, &[(300, 500)]).covers(&ack(200, &[(300, 400)])));
        assert!(ack(200, &[(300, 400)]).covers(&ack(200, &[])));
        assert!(!ack(200, &[(600, 700)]).covers(&ack(200, &[(300, 400)])));
    }

    #[test]
    fn a_later_number_does_not_cover_blocks_it_does_not_repeat() {
        assert!(ack(400, &[]).covers(&ack(200, &[(300, 400)])));
        assert!(!ack(300, &[]).covers(&ack(200, &[(300, 400)])));
        assert!(ack(300, &[(300, 500), (600, 700)]).covers(&ack(200, &[(600, 700), (400, 450)])));
    }

    #[test]
    fn news_of_a_duplicate_segment_is_covered_by_nothing() {
        assert!(!ack(900, &[]).covers(&ack(200, &[(100, 200)])));
        assert!(!ack(900, &[]).covers(&ack(200, &[(300, 350), (300, 400)])));
    }

    #[test]
    fn flags_and_clocks_must_agree() {
        let (old, new) = (ack(200, &[]), ack(300, &[]));
        let echo = AckInfo { flags: Flags::ACK | Flags::ECE, ..old };
        assert!(!new.covers(&echo) && !echo.is_plain());
        assert!(AckInfo { flags: echo.flags, ..new }.covers(&echo));
        let stamped = |value| AckInfo { timestamps: Some(Timestamps { value, echo_reply: 4 }), ..old };
        assert!(!new.covers(&stamped(6)));
        assert!(new.covers(&stamped(3)));
        assert!(!new.covers(&AckInfo { timestamps: None, ..old }));
    }

    #[test]
    fn a_segment_that_does_more_than_acknowledge_is_no_pure_ack() {
        let pure = Segment { flags: Flags::ACK, ..Segment::default() };
        assert!(AckInfo::from_segment(&pure).is_some());
        assert!(AckInfo::from_segment(&Segment { payload_len: 1, ..pure }).is_none());
        for other in [Flags::SYN, Flags::FIN, Flags::RST, Flags::PSH, Flags::URG] {
            assert!(AckInfo::from_segment(&Segment { flags: Flags::ACK | other, ..pure }).is_none());
        }
        assert!(AckInfo::from_segment(&Segment { flags: Flags::NONE, ..pure }).is_none());
    }
}
