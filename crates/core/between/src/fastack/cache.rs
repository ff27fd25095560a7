//! Copies of segments that have reached a client's NIC but are not acknowledged by its TCP.

use std::collections::VecDeque;

use tacit_packet::Packet;
use tacit_packet::tcp::SackBlocks;
use tacit_packet::units::{Instant, SeqNumber};

/// Most copies per flow, of any size.
const MOST_SEGMENTS: usize = 1 << 14;

/// SACKed segments above a hole from which it counts as lost (RFC 6675 section 2, DupThresh).
pub(super) const DUPLICATES: usize = 3;

/// A copy.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    pub packet: Packet,
    pub start: SeqNumber,
    /// Sequence number after its last byte.
    pub end: SeqNumber,
    /// When it reached the NIC, and its rank in the order of arrival there.
    pub at: Instant,
    order: u64,
    /// The client's TCP has SACKed it.
    sacked: bool,
    /// It was retransmitted, and its fate is not known yet.
    pub resent: bool,
}

/// The copies of one flow: first those acknowledged for the client, in order and without gaps, then those that wait
/// behind a hole, sorted by start.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    segments: VecDeque<Cached>,
    /// Number of copies that were acknowledged for the client.
    promised: usize,
    bytes: u64,
    next_order: u64,
    /// Ranks of the latest three copies that the client SACKed, earliest first.
    latest_sacked: [Option<u64>; DUPLICATES],
    /// The blocks in the client's last ACK.
    known_blocks: SackBlocks,
}

impl Cache {
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Keeps a copy of `packet`, the bytes from `start` to `end`, which reached the NIC; returns false if there is no
    /// room.
    pub fn insert(
        &mut self,
        now: Instant,
        packet: Packet,
        [start, end]: [SeqNumber; 2],
        most_bytes: u64,
    ) -> bool {
        let len = u64::from(end - start);
        let after = self.position(start);
        if self.segments.get(after).is_some_and(|next| next.start == start && end.before_eq(next.end)) {
            return true;
        }
        while self.bytes + len > most_bytes || self.segments.len() >= MOST_SEGMENTS {
            // Makes room by dropping the highest data, because the lowest can be acknowledged soonest.
            let last = self.segments.back().filter(|last| last.start.after(start));
            if last.is_none() || self.segments.len() == self.promised {
                return false;
            }
            self.segments.pop_back().inspect(|gone| self.bytes -= u64::from(gone.end - gone.start));
        }
        let copy =
            Cached { packet, start, end, at: now, order: self.next_order, sacked: false, resent: false };
        self.segments.insert(after.min(self.segments.len()), copy);
        self.next_order += 1;
        self.bytes += len;
        true
    }

    /// Index at which a copy with this `start` belongs among those that wait.
    fn position(&self, start: SeqNumber) -> usize {
        match self.segments.back() {
            // Almost always it is the next one.
            Some(last) if self.segments.len() > self.promised && !last.start.before(start) => {
                let waiting = self.segments.range(self.promised..);
                self.promised + waiting.take_while(|known| known.start.before(start)).count()
            }
            _ => self.segments.len(),
        }
    }

    /// The next copy that continues the data acknowledged up to `acked`, within the window that ends at `edge`; from
    /// now on it counts as acknowledged.
    pub fn promise(&mut self, acked: SeqNumber, edge: SeqNumber) -> Option<&Cached> {
        while self.segments.get(self.promised).is_some_and(|next| next.end.before_eq(acked)) {
            let gone = self.segments.remove(self.promised)?;
            self.bytes -= u64::from(gone.end - gone.start);
        }
        let next = self.segments.get(self.promised)?;
        if next.start.after(acked) || next.end.after(edge) {
            return None;
        }
        self.promised += 1;
        self.segments.get(self.promised - 1)
    }

    /// The client's own TCP has acknowledged everything below `acked`.
    pub fn release(&mut self, acked: SeqNumber) {
        while self.segments.front().is_some_and(|first| first.end.before_eq(acked)) {
            let Some(gone) = self.segments.pop_front() else { break };
            self.bytes -= u64::from(gone.end - gone.start);
            self.promised = self.promised.saturating_sub(1);
        }
    }

    /// The client's TCP has `blocks` behind a hole. Only the parts that were not in its last ACK are examined.
    pub fn sack(&mut self, blocks: SackBlocks) {
        let known_blocks = std::mem::replace(&mut self.known_blocks, blocks);
        for block in blocks.as_slice() {
            let before = known_blocks.as_slice().iter().find(|known| known.start == block.start);
            let from = before.map_or(block.start, |known| known.end);
            let first = self.segments.partition_point(|copy| copy.start.before(from));
            let latest = &mut self.latest_sacked;
            let inside = self.segments.range_mut(first..).take_while(|copy| copy.start.before(block.end));
            for copy in inside.filter(|copy| copy.end.before_eq(block.end)) {
                copy.sacked = true;
                if latest[0] < Some(copy.order) && !latest.contains(&Some(copy.order)) {
                    latest[0] = Some(copy.order);
                    latest.sort_unstable();
                }
            }
        }
    }

    /// The copy of the first data that the client's TCP lacks, if that was acknowledged for it.
    pub fn first(&mut self) -> Option<&mut Cached> {
        if self.promised == 0 { None } else { self.segments.front_mut() }
    }

    /// Calls `each` with every copy that was acknowledged for the client but that its TCP lacks: at least three copies
    /// that reached its NIC later are SACKed.
    pub fn for_each_lost(&mut self, mut each: impl FnMut(&mut Cached)) {
        let Some(third) = self.latest_sacked[0] else { return };
        let missing = |copy: &&mut Cached| !copy.sacked && !copy.resent && copy.order < third;
        self.segments.iter_mut().take(self.promised).filter(missing).for_each(&mut each);
    }

    /// The link gave up a retransmitted copy.
    pub fn resent_lost(&mut self, start: SeqNumber) {
        if let Some(copy) = self.resent(start) {
            copy.resent = false;
        }
    }

    /// A retransmitted copy reached the NIC, or found no room in a queue; in either case later SACK blocks show whether
    /// it arrived.
    pub fn resent_anew(&mut self, now: Instant, start: SeqNumber) {
        let order = self.next_order;
        if let Some(copy) = self.resent(start) {
            (copy.resent, copy.at, copy.order) = (false, now, order);
            self.next_order += 1;
        }
    }

    fn resent(&mut self, start: SeqNumber) -> Option<&mut Cached> {
        let place = self.segments.partition_point(|copy| copy.start.before(start));
        self.segments.get_mut(place).filter(|copy| copy.resent && copy.start == start)
    }

    /// Whether everything from `from` to `to` is cached, with no more than `most_bytes` in total.
    pub fn holds(&self, from: SeqNumber, to: SeqNumber, most_bytes: u64) -> bool {
        let mut reached = from;
        for copy in self.segments.iter().take(self.promised) {
            if copy.start.after(reached) {
                return false;
            }
            reached = reached.max(copy.end);
        }
        let bytes: u64 = self.segments.iter().map(|copy| u64::from(copy.end - copy.start)).sum();
        reached == to && bytes == self.bytes && bytes <= most_bytes
    }
}
