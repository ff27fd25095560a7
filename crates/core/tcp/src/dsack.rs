//! Duplicate SACK (RFC 2883): in the first block a receiver reports data that it already had, so that the sender learns
//! of an unnecessary retransmission.

use tacit_packet::position::Position;
use tacit_packet::ranges::Range;
use tacit_packet::tcp::SackBlocks;

/// The duplicate reported by the first of `blocks` in an ACK for `ack`; `None` if there is no such report, or if it
/// cannot be true: data above `snd_nxt`, or further below `ack` than `reach`, the largest window.
///
/// "If the first SACK block ... covers a part of the data below the cumulative acknowledgment, or is
/// contained in the second" (RFC 2883 section 4, in other words).
pub(crate) fn reported(blocks: &SackBlocks, ack: Position, snd_nxt: Position, reach: u64) -> Option<Range> {
    let placed = |index: usize| {
        let block = blocks.as_slice().get(index)?;
        let range = Range { start: ack.nearest(block.start), end: ack.nearest(block.end) };
        (range.start < range.end).then_some(range)
    };
    let first = placed(0)?;
    let below = first.end <= ack;
    let within = || placed(1).is_some_and(|second| second.start <= first.start && first.end <= second.end);
    let possible = first.end <= snd_nxt && first.start + reach >= ack;
    ((below || within()) && possible).then_some(first)
}

/// Limits the effect of false reports: at most as many duplicates are accepted as retransmissions were sent. More would
/// be due to a network that duplicates packets or a peer that lies, and say nothing about our retransmissions.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopyLedger {
    sent: u64,
    reported: u64,
}

impl CopyLedger {
    /// Records a retransmission.
    pub fn on_copy(&mut self) {
        self.sent += 1;
    }

    /// A duplicate of `segments` segments was reported; returns false if no retransmission of ours explains it.
    pub fn believes(&mut self, segments: u64) -> bool {
        let explained = self.reported + segments <= self.sent;
        if explained {
            self.reported += segments;
        }
        explained
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::tcp::SackRange;
    use tacit_packet::units::SeqNumber;

    fn at(byte: u64) -> Position {
        Position::first(SeqNumber(u32::MAX - 500)) + byte
    }

    fn read(blocks: &[(u64, u64)]) -> Option<(u64, u64)> {
        let mut sack = SackBlocks::EMPTY;
        for (start, end) in blocks {
            sack.push(SackRange { start: at(*start).wire(), end: at(*end).wire() });
        }
        let range = reported(&sack, at(1000), at(5000), 900)?;
        Some((range.start - at(0), range.end - at(0)))
    }

    #[test]
    fn below_the_ack_or_within_the_second_block_is_a_duplicate() {
        assert_eq!(read(&[(500, 1000)]), Some((500, 1000)));
        assert_eq!(read(&[(500, 1000), (2000, 3000)]), Some((500, 1000)));
        assert_eq!(read(&[(2000, 2500), (2000, 3000)]), Some((2000, 2500)));
        assert_eq!(read(&[(2000, 3000), (4000, 4500)]), None);
        assert_eq!(read(&[(2000, 3000)]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn ranges_never_sent_or_long_ago_are_no_duplicates() {
        assert_eq!(read(&[(5500, 6000), (5500, 7000)]), None);
        assert_eq!(read(&[(50, 90)]), None);
        assert_eq!(read(&[(1000, 500)]), None);
        assert_eq!(read(&[(700, 700)]), None);
    }

    #[test]
    fn no_more_duplicates_are_believed_than_copies_were_sent() {
        let mut copies = CopyLedger::default();
        assert!(!copies.believes(1));
        copies.on_copy();
        copies.on_copy();
        assert!(copies.believes(1));
        assert!(!copies.believes(2));
        assert!(copies.believes(1));
        assert!(!copies.believes(1));
    }
}
