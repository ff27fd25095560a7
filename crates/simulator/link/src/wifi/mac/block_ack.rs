//! The recipient's side of acknowledgment: duplicate detection, the Block Ack scoreboard and the
//! reorder buffer (802.11-2020 clause 10.25.6).

use std::collections::VecDeque;

use tacit_packet::units::{Duration, Instant};

use super::amsdu::Msdus;
use super::repair::RepairRecipient;
use super::{SEQUENCE_MODULUS, sequence_add, sequence_distance};
use crate::packet::{Holders, PacketRef};
use crate::waits::Waits;
use crate::wifi::bitmap::AckBitmap;
use crate::wifi::multi_link::BlockAckScope;

/// What a recipient stores for one transmitter.
#[derive(Clone, Debug)]
pub(crate) enum Recipient {
    /// Without a Block Ack agreement: the last sequence number, to drop retransmissions.
    Immediate {
        /// Sequence number of the last MPDU passed up.
        last: Option<u16>,
    },
    /// Under a Block Ack agreement.
    Block(BlockAckRecipient),
    /// For unacknowledged data: nothing is sent twice, and no MPDU waits for a missing one.
    Unanswered {
        /// The sequence number after that of the last arrival. The first is 0, the Starting Sequence Number in the
        /// ADDBA.
        next: u16,
    },
    /// For unacknowledged data that the recipient requests again if it does not arrive.
    Deferred(RepairRecipient),
    /// One recipient per spatial stream, if each stream has its own aggregate.
    Streams(Vec<Self>),
}

impl Recipient {
    /// Accepts an MPDU received at `now` and passes up the MPDUs in order.
    pub fn receive(
        &mut self,
        now: Instant,
        (sequence, msdus): (u16, &Msdus),
        holders: &mut Holders,
        pass_up: &mut impl FnMut(PacketRef),
    ) {
        match self {
            Self::Immediate { last } => {
                if last.replace(sequence) != Some(sequence) {
                    msdus.share(holders, pass_up);
                }
            }
            Self::Block(recipient) => recipient.receive(now, (sequence, msdus), holders, pass_up),
            Self::Unanswered { next } => {
                *next = sequence_add(sequence, 1);
                msdus.share(holders, pass_up);
            }
            Self::Deferred(recipient) => {
                if recipient.takes(now, sequence) {
                    msdus.share(holders, pass_up);
                }
            }
            Self::Streams(_) => unreachable!("streams receive each for itself"),
        }
    }

    /// Number of MPDUs directly before `sequence`, which just arrived, that were sent and did not arrive. This is known
    /// only for unacknowledged data, because other data is sent again.
    pub fn missing_before(&self, sequence: u16) -> u16 {
        match self {
            Self::Unanswered { next } => sequence_distance(*next, sequence),
            Self::Deferred(recipient) => recipient.gap_before(sequence).unwrap_or(0),
            Self::Immediate { .. } | Self::Block(_) | Self::Streams(_) => 0,
        }
    }

    /// Itself, or the recipients of the streams.
    pub fn each_stream(&mut self) -> &mut [Self] {
        match self {
            Self::Streams(streams) => streams,
            one => std::slice::from_mut(one),
        }
    }

    /// Scoreboard of a Block Ack, or of an ACK for the last MPDU: the sequence number for bit 0, and a bitmap of the
    /// MPDUs received.
    pub fn scoreboard(&self) -> (u16, AckBitmap) {
        const NOTHING: (u16, AckBitmap) = (0, AckBitmap::new(0));
        match self {
            Self::Immediate { last } => last.map_or(NOTHING, |last| (last, AckBitmap::of_64(1))),
            Self::Block(recipient) => recipient.block_ack(),
            Self::Unanswered { .. } | Self::Deferred(_) => NOTHING,
            Self::Streams(streams) => streams.first().map_or(NOTHING, Self::scoreboard),
        }
    }

    /// Accepts the leading part of `mpdus`, received at `now`, that is next in order while no frame waits behind a gap.
    /// It has the effect of [`receive`](Self::receive) for each of them. Returns how many it accepted.
    pub fn receive_in_order<'a>(
        &mut self,
        mpdus: impl Iterator<Item = (u16, &'a Msdus)>,
        holders: &mut Holders,
        pass_up: &mut impl FnMut(PacketRef),
    ) -> usize {
        match self {
            Self::Block(recipient) => recipient.receive_in_order(mpdus, holders, pass_up),
            Self::Immediate { .. } | Self::Unanswered { .. } | Self::Deferred(_) | Self::Streams(_) => 0,
        }
    }

    /// Shows `see` the packets that wait behind a gap.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        match self {
            Self::Block(recipient) => {
                let held = recipient.reorder.buffer.iter().flatten();
                held.flat_map(|held| held.msdus.iter()).for_each(see);
            }
            Self::Streams(streams) => streams.iter().for_each(|stream| stream.each_held(see)),
            Self::Immediate { .. } | Self::Unanswered { .. } | Self::Deferred(_) => {}
        }
    }

    /// Forgets how long packets waited so far.
    pub fn start_measuring(&mut self) {
        if let Self::Block(recipient) = self {
            recipient.start_measuring();
        }
    }

    /// Since when frames have waited behind a gap.
    pub fn gap_since(&self) -> Option<Instant> {
        match self {
            Self::Block(recipient) => recipient.reorder.gap_since,
            Self::Immediate { .. } | Self::Unanswered { .. } | Self::Deferred(_) => None,
            Self::Streams(streams) => streams.iter().filter_map(Self::gap_since).min(),
        }
    }
}

/// Scoreboard and reorder buffer. Both windows are as long as the bitmap. The scoreboard follows the highest number
/// received, and the reorder buffer the lowest number still missing.
#[derive(Clone, Debug)]
pub(crate) struct BlockAckRecipient {
    /// WinStartR: the sequence number for bit 0 of `scoreboard`.
    scoreboard_start: u16,
    scoreboard: AckBitmap,
    reorder: ReorderBuffer,
}

/// An MPDU that waits behind a gap.
#[derive(Clone, Debug)]
struct Held {
    since: Instant,
    msdus: Msdus,
}

/// The reorder buffer; one for all links of a multi-link device.
#[derive(Clone, Debug, Default)]
struct ReorderBuffer {
    /// WinStartB: the next number to pass up.
    next: u16,
    /// Slot i holds sequence number `next + i`.
    buffer: VecDeque<Option<Held>>,
    /// Number of occupied slots.
    held: usize,
    /// Since when the MPDU at the head has been missing while later frames wait.
    gap_since: Option<Instant>,
    /// How long packets waited, of those that did.
    holds: Waits<8>,
}

impl ReorderBuffer {
    /// Passes up an MPDU that waited until `now`.
    fn pass(&mut self, Held { since, msdus }: Held, now: Instant, pass_up: &mut impl FnMut(PacketRef)) {
        let hold = now.saturating_since(since);
        msdus.into_each(|packet| {
            if hold > Duration::ZERO {
                self.holds.record(hold);
            }
            pass_up(packet);
        });
    }
}

impl BlockAckRecipient {
    /// How long packets waited behind gaps, of those that did.
    pub fn holds(&self) -> &Waits<8> {
        &self.reorder.holds
    }

    /// Forgets earlier waits.
    pub fn start_measuring(&mut self) {
        self.reorder.holds.reset();
    }

    /// State for an agreement with `window` outstanding MPDUs.
    pub fn new(window: u32) -> Self {
        Self { scoreboard_start: 0, scoreboard: AckBitmap::new(window), reorder: ReorderBuffer::default() }
    }

    /// Lends what the links of a multi-link device have in common to `other`, the recipient on another link, and what a
    /// Block Ack may say by `scope`.
    pub fn lend(&mut self, other: &mut Self, scope: BlockAckScope) {
        std::mem::swap(&mut self.reorder, &mut other.reorder);
        if scope == BlockAckScope::Shared {
            std::mem::swap(&mut self.scoreboard_start, &mut other.scoreboard_start);
            std::mem::swap(&mut self.scoreboard, &mut other.scoreboard);
        }
    }

    /// The scoreboard leaves behind the numbers before the window of the reorder buffer, which no link has in flight. So it
    /// does not lag by half the numbers while its link is idle.
    pub fn keep_up(&mut self, next: u16) {
        self.move_scoreboard(sequence_add(next, SEQUENCE_MODULUS - self.window()));
    }

    /// WinStartB: the next number to pass up.
    pub fn next(&self) -> u16 {
        self.reorder.next
    }

    /// Number of sequence numbers in each window.
    fn window(&self) -> u16 {
        self.scoreboard.len()
    }

    /// Accepts an MPDU received at `now` and passes up the MPDUs in order.
    pub fn receive(
        &mut self,
        now: Instant,
        (sequence, msdus): (u16, &Msdus),
        holders: &mut Holders,
        pass_up: &mut impl FnMut(PacketRef),
    ) {
        self.score(sequence);
        let offset = sequence_distance(self.reorder.next, sequence);
        if offset == 0 && self.reorder.held == 0 {
            // In order and no frame waits: the common case.
            self.reorder.next = sequence_add(self.reorder.next, 1);
            msdus.share(holders, pass_up);
            return;
        }
        if offset >= SEQUENCE_MODULUS / 2 {
            // Older than the window: a duplicate of an MPDU that was passed up or given up.
            return;
        }
        if offset >= self.window() {
            // Beyond the window: the originator has given up the MPDUs that leave the window.
            self.advance_to(now, sequence_add(sequence, SEQUENCE_MODULUS - (self.window() - 1)), pass_up);
        }
        let slot = usize::from(sequence_distance(self.reorder.next, sequence));
        if self.reorder.buffer.len() <= slot {
            self.reorder.buffer.resize_with(slot + 1, || None);
        }
        match self.reorder.buffer[slot].replace(Held { since: now, msdus: msdus.held_twice(holders) }) {
            Some(duplicate) => drop(duplicate.msdus.release(holders)),
            None => self.reorder.held += 1,
        }
        self.release(now, pass_up);
    }

    /// [`Recipient::receive_in_order`] under an agreement.
    pub fn receive_in_order<'a>(
        &mut self,
        mpdus: impl Iterator<Item = (u16, &'a Msdus)>,
        holders: &mut Holders,
        pass_up: &mut impl FnMut(PacketRef),
    ) -> usize {
        if self.reorder.held > 0 {
            return 0;
        }
        let first = self.reorder.next;
        let mut count = 0;
        for (sequence, msdus) in mpdus.take(usize::from(self.window())) {
            if sequence != sequence_add(first, count) {
                break;
            }
            msdus.share(holders, pass_up);
            count += 1;
        }
        self.reorder.next = sequence_add(first, count);
        self.score_run(first, count);
        usize::from(count)
    }

    /// [`score`](Self::score)s `count` numbers from `first` up, at most one window of them.
    fn score_run(&mut self, first: u16, count: u16) {
        if count == 0 {
            return;
        }
        let last = sequence_add(first, count - 1);
        // The highest number alone moves the scoreboard as far as all of them would, and marks itself.
        self.score(last);
        let offset = sequence_distance(self.scoreboard_start, first);
        if offset < self.window() {
            self.scoreboard.insert_run(offset, count);
        }
    }

    /// Handles a Block Ack Request: gives up all MPDUs before `start`.
    pub fn request(&mut self, now: Instant, start: u16, pass_up: &mut impl FnMut(PacketRef)) {
        self.move_scoreboard(start);
        if sequence_distance(self.reorder.next, start) < SEQUENCE_MODULUS / 2 {
            self.advance_to(now, start, pass_up);
            self.release(now, pass_up);
        }
    }

    /// Gives up the gap and passes up the MPDUs after it, up to the next gap.
    pub fn give_up_gap(&mut self, now: Instant, pass_up: &mut impl FnMut(PacketRef)) {
        while self.reorder.held > 0 && self.reorder.buffer.front().is_some_and(Option::is_none) {
            self.reorder.buffer.pop_front();
            self.reorder.next = sequence_add(self.reorder.next, 1);
        }
        self.reorder.gap_since = None;
        self.release(now, pass_up);
    }

    /// Since when the head has been missing, if frames wait behind it.
    pub fn gap_since(&self) -> Option<Instant> {
        self.reorder.gap_since
    }

    /// Starting sequence number and bitmap of the Block Ack.
    pub fn block_ack(&self) -> (u16, AckBitmap) {
        (self.scoreboard_start, self.scoreboard)
    }

    /// Marks `sequence` in the scoreboard, and moves the scoreboard if the number is beyond it (clause 10.25.6).
    fn score(&mut self, sequence: u16) {
        let mut offset = sequence_distance(self.scoreboard_start, sequence);
        if offset >= SEQUENCE_MODULUS / 2 {
            return;
        }
        let window = self.window();
        if offset >= window {
            self.move_scoreboard(sequence_add(sequence, SEQUENCE_MODULUS - (window - 1)));
            offset = window - 1;
        }
        self.scoreboard.insert(offset);
    }

    fn move_scoreboard(&mut self, start: u16) {
        let steps = sequence_distance(self.scoreboard_start, start);
        if steps >= SEQUENCE_MODULUS / 2 {
            return;
        }
        self.scoreboard.advance(steps);
        self.scoreboard_start = start;
    }

    /// Moves the reorder window to `start` and passes up in order all MPDUs that leave it.
    fn advance_to(&mut self, now: Instant, start: u16, pass_up: &mut impl FnMut(PacketRef)) {
        for _ in 0..sequence_distance(self.reorder.next, start) {
            if let Some(Some(held)) = self.reorder.buffer.pop_front() {
                self.reorder.held -= 1;
                self.reorder.pass(held, now, &mut *pass_up);
            }
        }
        self.reorder.next = start;
        self.note_gap(now);
    }

    /// Passes up the MPDUs at the head until the first gap.
    fn release(&mut self, now: Instant, pass_up: &mut impl FnMut(PacketRef)) {
        let mut moved = false;
        while let Some(Some(_)) = self.reorder.buffer.front() {
            if let Some(Some(held)) = self.reorder.buffer.pop_front() {
                self.reorder.held -= 1;
                self.reorder.next = sequence_add(self.reorder.next, 1);
                moved = true;
                self.reorder.pass(held, now, &mut *pass_up);
            }
        }
        if self.reorder.held == 0 {
            self.reorder.buffer.clear();
        }
        if moved {
            self.reorder.gap_since = None;
        }
        self.note_gap(now);
    }

    fn note_gap(&mut self, now: Instant) {
        if self.reorder.held == 0 {
            self.reorder.gap_since = None;
        } else if self.reorder.gap_since.is_none() {
            self.reorder.gap_since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An MPDU whose packet is named after its number.
    fn msdus(sequence: u16) -> Msdus {
        Msdus::new(PacketRef { id: u32::from(sequence), ..PacketRef::default() }, Vec::new())
    }

    /// Holders of a packet for each sequence number.
    fn holders() -> Holders {
        let mut holders = Holders::default();
        for sequence in 0..SEQUENCE_MODULUS {
            assert_eq!(holders.insert(), u32::from(sequence));
        }
        holders
    }

    #[derive(Clone)]
    struct Harness {
        recipient: BlockAckRecipient,
        holders: Holders,
        up: Vec<u16>,
    }

    impl Harness {
        fn new() -> Self {
            Self::with_window(64)
        }

        fn with_window(window: u32) -> Self {
            Self { recipient: BlockAckRecipient::new(window), holders: holders(), up: Vec::new() }
        }

        fn receive(&mut self, sequences: impl IntoIterator<Item = u16>) {
            for sequence in sequences {
                let pass_up = &mut |packet: PacketRef| self.up.push(packet.id as u16);
                let received = (sequence, &msdus(sequence));
                self.recipient.receive(Instant::ZERO, received, &mut self.holders, pass_up);
            }
        }

        fn request(&mut self, start: u16) {
            self.recipient.request(Instant::ZERO, start, &mut |p| self.up.push(p.id as u16));
        }
    }

    #[test]
    fn a_gap_holds_back_what_follows() {
        let mut h = Harness::new();
        h.receive([0, 2, 3]);
        assert_eq!(h.up, [0]);
        assert!(h.recipient.gap_since().is_some());
        assert_eq!(h.recipient.block_ack(), (0, AckBitmap::of_64(0b1101)));
        h.receive([1]);
        assert_eq!(h.up, [0, 1, 2, 3]);
        assert!(h.recipient.gap_since().is_none());
    }

    #[test]
    fn duplicates_are_acknowledged_and_not_passed_up() {
        let mut h = Harness::new();
        h.receive([0, 1, 3, 3, 0, 1]);
        assert_eq!(h.up, [0, 1]);
        assert_eq!(h.recipient.block_ack(), (0, AckBitmap::of_64(0b1011)));
    }

    #[test]
    fn the_scoreboard_cannot_pass_the_first_missing_frame_by_more_than_its_window() {
        let mut h = Harness::new();
        h.receive(1..64);
        assert!(h.up.is_empty());
        // Sequence number 64 moves both windows by one, so 0 is given up.
        h.receive([64]);
        assert_eq!(h.up, (1..=64).collect::<Vec<_>>());
        assert_eq!(h.recipient.block_ack(), (1, AckBitmap::of_64(u64::MAX)));
    }

    /// With the windows of 802.11ax and 802.11be, a gap holds back more MPDUs, and a longer bitmap reports them.
    #[test]
    fn longer_windows_wait_for_more() {
        for window in [256, 512, 1024] {
            let mut h = Harness::with_window(u32::from(window));
            h.receive(1..window);
            assert!(h.up.is_empty());
            let (start, bitmap) = h.recipient.block_ack();
            assert_eq!((start, bitmap.len(), bitmap.count()), (0, window, u32::from(window) - 1));
            assert!(!bitmap.contains(0));
            h.receive([window]);
            assert_eq!(h.up, (1..=window).collect::<Vec<_>>());
            assert_eq!(h.recipient.block_ack().1.count(), u32::from(window));
        }
    }

    #[test]
    fn a_request_gives_up_what_lies_before_it() {
        let mut h = Harness::new();
        h.receive([0, 2, 4]);
        h.request(3);
        assert_eq!(h.up, [0, 2]);
        assert_eq!(h.recipient.block_ack(), (3, AckBitmap::of_64(0b10)));
        h.receive([3]);
        assert_eq!(h.up, [0, 2, 3, 4]);
        h.request(2);
        assert_eq!(h.recipient.block_ack().0, 3, "a request never moves backwards");
    }

    #[test]
    fn a_gap_can_be_given_up_by_time() {
        let mut h = Harness::new();
        h.receive([1, 2, 5]);
        h.recipient.give_up_gap(Instant::ZERO, &mut |p| h.up.push(p.id as u16));
        assert_eq!(h.up, [1, 2]);
        h.receive([3, 4]);
        assert_eq!(h.up, [1, 2, 3, 4, 5]);
    }

    /// The timeout starts when the first frame arrives behind the current gap.
    #[test]
    fn each_gap_is_timed_from_its_own_first_frame() {
        let mut h = Harness::new();
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut receive = |now, sequence| {
            let pass_up = &mut |packet: PacketRef| h.up.push(packet.id as u16);
            h.recipient.receive(at(now), (sequence, &msdus(sequence)), &mut h.holders, pass_up);
            h.recipient.gap_since()
        };
        assert_eq!(receive(1, 1), Some(at(1)));
        assert_eq!(receive(2, 4), Some(at(1)), "more behind the same gap");
        assert_eq!(receive(3, 0), Some(at(3)), "the next gap is before 2");
        assert_eq!(receive(4, 6), Some(at(3)));
        h.recipient.give_up_gap(at(5), &mut |p| h.up.push(p.id as u16));
        assert_eq!(h.recipient.gap_since(), Some(at(5)), "and the next before 5");
        assert_eq!(h.up, [0, 1, 4]);
    }

    #[test]
    fn numbers_wrap() {
        let mut h = Harness::new();
        h.receive((0..4096).chain([1, 0]));
        assert_eq!(h.up[4095..], [4095, 0, 1]);
    }

    proptest::proptest! {
        /// A run has the same effect as its frames received one by one, at any place and after any arrivals.
        #[test]
        fn a_run_is_taken_in_as_its_frames_are(
            before in proptest::collection::vec(0_u16..200, 0..100),
            start in proptest::option::of(0_u16..4096),
            offset in proptest::prop_oneof![4 => proptest::strategy::Just(0_u16), 1 => 0_u16..4096],
            count in 0_u16..=256,
            gap in proptest::option::of(0_u16..256),
            window in proptest::sample::select(vec![64_u32, 256, 1024]),
        ) {
            let mut one_by_one = Harness::with_window(window);
            one_by_one.receive(before);
            if let Some(start) = start {
                one_by_one.request(start);
            }
            let mut together = one_by_one.clone();
            let first = sequence_add(one_by_one.recipient.reorder.next, offset);
            let numbers: Vec<_> = (0..count)
                .filter(|number| Some(*number) != gap)
                .map(|number| sequence_add(first, number))
                .map(|number| (number, msdus(number)))
                .collect();
            one_by_one.receive(numbers.iter().map(|(number, _)| *number));
            let run = numbers.iter().map(|(number, msdus)| (*number, msdus));
            let taken = together.recipient.receive_in_order(run, &mut together.holders, &mut |packet| {
                together.up.push(packet.id as u16);
            });
            proptest::prop_assert!(offset != 0 || gap == Some(0) || taken > 0 || count == 0 || together.recipient.reorder.held > 0);
            together.receive(numbers[taken..].iter().map(|(number, _)| *number));
            proptest::prop_assert_eq!(&together.up, &one_by_one.up);
            let state = |harness: &Harness| format!("{:?} {:?}", harness.recipient, harness.holders);
            proptest::prop_assert_eq!(state(&together), state(&one_by_one));
        }

        /// For any arrivals, each number of a window is passed up at most once, in order.
        #[test]
        fn order_is_kept(arrivals in proptest::collection::vec(0_u16..64, 0..200)) {
            let mut h = Harness::new();
            h.receive(arrivals);
            proptest::prop_assert!(h.up.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", h.up);
        }
    }
}
