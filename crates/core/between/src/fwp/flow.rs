//! One registered flow: the data that its host's TCP has, the missing data, and its placeholders.

use std::collections::VecDeque;

use super::handshake::Handshake;
use super::packet::SegmentPacket;
use super::readers::Readers;
use super::switch::{Limit, LinkFrames, RoundTrip, Switch};
use super::{Config, Counters, Marker, Placeholders};
use tacit_packet::FlowKey;
use tacit_packet::position::Position;
use tacit_packet::ranges::{Range, RangeSet};
use tacit_packet::tcp::{Flags, Segment, Timestamps};
use tacit_packet::units::{Duration, Instant, SeqNumber};

/// A position beyond all waiting segments.
const END: Position = Position::first(SeqNumber(0)).saturating_add(u64::MAX);
/// Most ranges that a reader may have allowed beyond TCP's position.
const MOST_ALLOWED: usize = 256;
/// Most ranges beyond a hole that TCP repairs; with more, the shim relies on the host's ACKs.
const MOST_BEYOND: usize = 1024;
/// Most holes left to TCP whose age is recorded; holes beyond this number are never overdue.
const MOST_LEFT: usize = 1024;
/// Most unrepaired bytes of overdue holes; with more, other overdue holes wait. Everything that a queue drops at the
/// end of slow start would keep the repair connections busy for longer than TCP takes.
const MOST_OVERDUE: u64 = 32 << 10;
/// Most bytes that may wait for holes to settle: 4 ms at 1 Gb/s.
const MOST_HELD: u64 = 512 << 10;
/// Assumed segment size of a sender that has not sent a segment (RFC 9293 section 3.7.1).
const USUAL_SEGMENT: u32 = 536;
/// Most resets of one connection: a host that ignores a reset expects another sequence number, which its ACKs show.
const MOST_RESETS: u32 = 10;

/// Packets for the host, and counters.
#[derive(Clone, Debug)]
pub(super) struct Outbox<P> {
    pub down: VecDeque<P>,
    pub counters: Counters,
}

/// What happens with a packet.
pub(super) enum Fate<P> {
    /// It is delivered to the host after the packets in the outbox.
    Passes(P),
    /// It is in the outbox, waits, or is dropped.
    Taken,
}

/// A hole that was filled.
#[derive(Clone, Copy, Debug)]
struct Hole {
    range: Range,
    at: Instant,
    /// The sender's timestamp of the data after the hole: earlier packets have no later timestamp.
    stamp: Option<u32>,
    /// The hole had first been left to TCP.
    is_overdue: bool,
}

impl Hole {
    /// Its bytes, if it had first been left to TCP.
    fn overdue_len(&self) -> u64 {
        if self.is_overdue { self.range.len() } else { 0 }
    }
}

/// A hole that was left to TCP.
#[derive(Clone, Copy, Debug)]
struct LeftHole {
    range: Range,
    since: Instant,
    /// The first timestamp that the host had not sent yet at that time; `None` if it sends no timestamps.
    next_stamp: Option<u32>,
    /// When a segment arrived that echoes that timestamp or a later one: the sender knows of the hole.
    answered: Option<Instant>,
    /// When data arrived that the sender sent after the hole's retransmission.
    overtaken: Option<Instant>,
}

/// Header fields of the last segment delivered to the host.
#[derive(Clone, Copy, Debug, Default)]
struct LastHeader {
    ack: SeqNumber,
    window: u16,
    timestamps: Option<Timestamps>,
}

impl LastHeader {
    fn from_segment(segment: &Segment) -> Self {
        Self { ack: segment.ack, window: segment.window, timestamps: segment.timestamps }
    }
}

/// Why a hole is left to TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Congested,
    Capped,
    Untold,
    Other,
}

/// A packet behind a hole that may be due to reordering.
#[derive(Clone, Debug)]
struct Held<P> {
    text: Range,
    since: Instant,
    segment: Segment,
    /// Frames that the link lost since the last new data of this flow.
    lost_frames: u64,
    packet: P,
}

/// A registered flow.
#[derive(Clone, Debug)]
pub(super) struct Flow<P> {
    pub key: FlowKey,
    marker: Marker,
    /// Position of the start of the stream.
    first: Position,
    /// Shift of the host's windows.
    scale: u8,
    /// End of the window that the host offered; `None` before its first segment.
    edge: Option<Position>,
    /// The host has everything before this position, including placeholders.
    next: Position,
    /// End of the delivered data; above `next` while TCP repairs a hole.
    top: Position,
    /// Data that the host has beyond `next`.
    beyond: RangeSet,
    /// Where placeholders are allowed.
    allowed: RangeSet,
    /// Filled holes in order of position, not yet repaired.
    holes: VecDeque<Hole>,
    hole_bytes: u64,
    /// Bytes of those that had first been left to TCP.
    overdue_bytes: u64,
    /// Holes left to TCP, in order of position and of age. TCP may have repaired parts of them.
    left: VecDeque<LeftHole>,
    /// When data last arrived.
    data_at: Option<Instant>,
    /// A placeholder's timestamp must not be older than the last one that the host accepted (RFC 7323 section 5.3).
    last_header: LastHeader,
    /// The newest timestamp of the host.
    host_stamp: Option<u32>,
    /// Sorted by start.
    held: VecDeque<Held<P>>,
    held_bytes: u64,
    /// The largest payload of a segment.
    largest: u32,
    switch: Switch,
    /// Frames that the link had lost when the newest data of the flow arrived.
    lost_frames: u64,
    trip: RoundTrip,
    stopped: bool,
    /// Number of resets sent, if the connection is being reset.
    resets: Option<u32>,
    /// A packet of the sender, as a template for forged ones.
    like: P,
}

impl<P: SegmentPacket> Flow<P> {
    /// The connection with these SYNs; `None` if the sender's SYN is missing.
    pub fn new(handshake: Handshake<P>, marker: Marker) -> Option<Self> {
        let (scale, reached) = (handshake.scale(), handshake.reached);
        let (first, like) = handshake.down?;
        let first = Position::first(first);
        Some(Self {
            key: handshake.key,
            marker,
            first,
            scale,
            edge: None,
            next: reached,
            top: reached,
            beyond: RangeSet::default(),
            allowed: RangeSet::default(),
            holes: VecDeque::new(),
            hole_bytes: 0,
            overdue_bytes: 0,
            left: VecDeque::new(),
            data_at: None,
            last_header: LastHeader::default(),
            host_stamp: None,
            held: VecDeque::new(),
            held_bytes: 0,
            largest: 0,
            switch: Switch::ON,
            lost_frames: 0,
            trip: RoundTrip::UNKNOWN,
            stopped: false,
            resets: None,
            like,
        })
    }

    /// State for a later registration; `None` if the host has unrepaired placeholders, or is being reset.
    pub fn into_handshake(self) -> Option<Handshake<P>> {
        let is_clean = self.holes.is_empty() && self.resets.is_none();
        is_clean.then(|| Handshake::known(self.key, (self.first.wire(), self.like), self.scale, self.next))
    }

    /// True if the first byte of its stream has this sequence number.
    pub fn begins_at(&self, first: SeqNumber) -> bool {
        self.first.wire() == first
    }

    pub fn allow(&mut self, start: u64, end: u64) {
        let range = Range { start: self.first.saturating_add(start), end: self.first.saturating_add(end) };
        if range.start < range.end {
            self.allowed.remove_below(self.next);
            self.allowed.insert(range, MOST_ALLOWED);
        }
    }

    /// Bytes `start..end` of the stream are no longer missing.
    pub fn repaired(&mut self, start: u64, end: u64) {
        let done = Range { start: self.first.saturating_add(start), end: self.first.saturating_add(end) };
        for hole in &mut self.holes {
            if done.start <= hole.range.start {
                hole.range.start = hole.range.start.max(done.end.min(hole.range.end));
            } else if done.end >= hole.range.end {
                hole.range.end = hole.range.end.min(done.start);
            }
        }
        self.holes.retain(|hole| hole.range.start < hole.range.end);
        self.hole_bytes = self.holes.iter().map(|hole| hole.range.len()).sum();
        self.overdue_bytes = self.holes.iter().map(Hole::overdue_len).sum();
    }

    /// Stops placeholders; waiting segments are delivered.
    pub fn stop(&mut self, out: &mut Outbox<P>) {
        self.stopped = true;
        self.left.clear();
        self.release_all(out);
    }

    /// Resets the connection at the host, repeatedly if necessary.
    pub fn fail(&mut self, out: &mut Outbox<P>) {
        self.stop(out);
        if self.resets.is_none() {
            self.resets = Some(0);
            out.counters.failed_flows += 1;
            self.reset(self.next.wire(), out);
        }
    }

    /// A host only accepts a reset with exactly the sequence number that it expects (RFC 5961 section 3.2).
    fn reset(&mut self, expected: SeqNumber, out: &mut Outbox<P>) {
        if let Some(resets) = self.resets.as_mut().filter(|resets| **resets < MOST_RESETS) {
            *resets += 1;
            let segment = Segment { seq: expected, flags: Flags::RST, ..Segment::default() };
            out.down.push_back(self.like.forged(&segment, None));
        }
    }

    /// The host sent `segment`.
    pub fn up(&mut self, now: Instant, segment: &Segment, out: &mut Outbox<P>) {
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        if self.resets.is_some() {
            return self.reset(segment.ack, out);
        }
        self.trip.sent(now, segment.timestamps);
        self.host_stamp = segment.timestamps.map(|stamps| stamps.value);
        let acked = self.next.nearest(segment.ack);
        let edge = acked + (u64::from(segment.window) << self.scale);
        let known = *self.edge.get_or_insert(edge);
        self.edge = Some(known.max(edge));
        if acked > self.next {
            self.advance(acked);
            self.release_reached(out);
        }
    }

    /// The host has everything before `next`.
    fn advance(&mut self, next: Position) {
        self.next = self.next.max(next);
        self.beyond.remove_below(self.next);
        while let Some(first) = self.beyond.first().filter(|first| first.start <= self.next) {
            self.next = self.next.max(first.end);
            self.beyond.pop_first();
        }
        self.top = self.top.max(self.next);
        while self.left.front().is_some_and(|hole| hole.range.end <= self.next) {
            self.left.pop_front();
        }
    }

    /// `packet` arrived with `segment`, which is neither a SYN nor a RST.
    pub fn down(
        &mut self,
        now: Instant,
        packet: P,
        segment: &Segment,
        (config, limit): (&Config, Limit),
        out: &mut Outbox<P>,
        readers: &mut impl Readers,
    ) -> Fate<P> {
        self.trip.arrived(now, segment.timestamps);
        self.note_answer(now, segment.timestamps);
        let fin = segment.flags.contains(Flags::FIN);
        // A probe asks for an ACK and fills nothing, so it does not show a hole.
        if segment.payload_len == 0 && !fin {
            return Fate::Passes(packet);
        }
        let start = self.next.nearest(segment.seq);
        let mut text = Range { start, end: start + u64::from(segment.payload_len) };
        self.note_overtaken(now, text, segment.timestamps, config);
        let Some(edge) = self.edge.filter(|_| self.resets.is_none()) else {
            // The host's position is not known yet; its next ACK gives it, and until then nothing counts as missing.
            self.pass(text);
            self.lost_frames = limit.link.lost;
            return Fate::Passes(packet);
        };
        if text.start > edge {
            return Fate::Passes(packet);
        }
        // The host accepts nothing beyond its window.
        text.end = text.end.min(edge);
        self.largest = self.largest.max(segment.payload_len);
        if text.start < self.top && self.is_late(text, segment, &packet, &mut out.counters, readers) {
            return Fate::Taken;
        }
        let lost_frames = self.lost_before(text, limit.link);
        if text.start > self.next {
            let held = Held { text, since: now, segment: *segment, lost_frames, packet };
            self.behind_a_hole(now, held, (config, limit), out, readers);
            return Fate::Taken;
        }
        let is_new = text.end > self.top || fin && text.end == self.top;
        if is_new {
            self.count(now, 0, config, limit, &mut out.counters, readers);
        }
        self.pass(text);
        self.last_header = LastHeader::from_segment(segment);
        if self.held.is_empty() {
            return Fate::Passes(packet);
        }
        out.down.push_back(packet);
        self.release_reached(out);
        Fate::Taken
    }

    /// Frames that the link lost since the newest data of the flow arrived, which may now be `text`. Late or
    /// retransmitted data does not update this number, because frames that are missing before it are not missing before
    /// new data.
    fn lost_before(&mut self, text: Range, LinkFrames { lost, .. }: LinkFrames) -> u64 {
        let newest = self.held.back().map_or(self.top, |held| held.text.end.max(self.top));
        let since = lost.saturating_sub(self.lost_frames);
        if text.end > newest {
            self.lost_frames = lost;
        }
        since
    }

    /// Records that `text` is delivered to the host.
    fn pass(&mut self, text: Range) {
        if text.start <= self.next {
            self.advance(text.end);
        } else if text.start < text.end {
            self.beyond.insert(text, MOST_BEYOND);
        }
        self.top = self.top.max(text.end);
    }

    /// A new segment arrived, and `lost` segments before it did not.
    fn count(
        &mut self,
        now: Instant,
        lost: u64,
        config: &Config,
        limit: Limit,
        counters: &mut Counters,
        readers: &mut impl Readers,
    ) {
        counters.segments += 1;
        counters.lost_segments += lost;
        // A driver that says whose each hole is needs no statistics.
        if config.placeholders == Placeholders::Tcp
            && self.switch.note(now, lost, self.trip.or(config.round_trip), limit)
        {
            let on = self.switch.on;
            *(if on { &mut counters.switched_on } else { &mut counters.switched_off }) += 1;
            readers.switched(self.key, on);
        }
    }

    /// Data is missing before `new`.
    fn behind_a_hole(
        &mut self,
        now: Instant,
        new: Held<P>,
        (config, limit): (&Config, Limit),
        out: &mut Outbox<P>,
        readers: &mut impl Readers,
    ) {
        let waits = config.settle > Duration::ZERO
            && self.switch.on
            && self.beyond.is_empty()
            && self.may_stand(Range { start: self.next, end: new.text.start })
            && self.held_bytes + new.text.len() <= MOST_HELD;
        let place = self.held.partition_point(|held| held.text.start <= new.text.start);
        self.held_bytes += new.text.len();
        self.held.insert(place, new);
        if waits {
            out.counters.held_bytes_max = out.counters.held_bytes_max.max(self.held_bytes);
            return;
        }
        // All waiting segments are decided as well, because they must not be delivered after this one.
        while let Some(first) = self.take_held(END) {
            self.decide(now, first, (config, limit), out, readers);
        }
    }

    /// Removes the first waiting segment that begins at or before `limit`.
    fn take_held(&mut self, limit: Position) -> Option<Held<P>> {
        self.held.front().filter(|first| first.text.start <= limit)?;
        let first = self.held.pop_front()?;
        self.held_bytes -= first.text.len();
        Some(first)
    }

    /// Fills the data missing before `new`, or leaves it to TCP; then delivers `new`.
    fn decide(
        &mut self,
        now: Instant,
        new: Held<P>,
        (config, limit): (&Config, Limit),
        out: &mut Outbox<P>,
        readers: &mut impl Readers,
    ) {
        let hole = Range { start: self.top, end: new.text.start };
        // Holes below data that has already arrived are repaired by TCP, which knows more about them.
        if hole.start < hole.end {
            let size = u64::from(self.segment_size());
            let segments = hole.len().div_ceil(size);
            self.count(now, segments, config, limit, &mut out.counters, readers);
            let is_links = match config.placeholders {
                Placeholders::Driver => segments <= new.lost_frames,
                Placeholders::Tcp => self.switch.on && limit.loses_frames(),
            };
            match self.announce(now, hole, (config, is_links), readers) {
                Ok(()) => {
                    out.counters.holes += 1;
                    self.fill(now, hole, LastHeader::from_segment(&new.segment), Some(&new.packet), out);
                }
                Err(reason) => self.leave(now, hole, reason, config, &mut out.counters),
            }
        } else if new.text.end > self.top {
            self.count(now, 0, config, limit, &mut out.counters, readers);
        }
        self.hand_on(new, out);
    }

    /// Delivers `held` to the host.
    fn hand_on(&mut self, held: Held<P>, out: &mut Outbox<P>) {
        self.pass(held.text);
        self.last_header = LastHeader::from_segment(&held.segment);
        out.down.push_back(held.packet);
    }

    /// Segment size of the sender.
    fn segment_size(&self) -> u32 {
        if self.largest == 0 { USUAL_SEGMENT } else { self.largest }
    }

    /// Whether placeholders would be possible in `hole`, regardless of losses: the reader allows it, the host has room,
    /// and no data before it was left to TCP, which uses its own signals for retransmission.
    fn may_stand(&self, hole: Range) -> bool {
        !self.stopped && self.edge.is_some_and(|edge| hole.end <= edge) && self.allowed.covers(hole)
    }

    /// Announces to the reader that placeholders will be put in `hole`, if the link caused the loss.
    ///
    /// # Errors
    /// Why there can be no placeholders; the reader was not informed then.
    fn announce(
        &mut self,
        now: Instant,
        hole: Range,
        (config, is_links): (&Config, bool),
        readers: &mut impl Readers,
    ) -> Result<(), Reason> {
        while let Some(old) = self.holes.front().filter(|hole| hole.at + config.patience <= now) {
            self.hole_bytes -= old.range.len();
            self.overdue_bytes -= old.overdue_len();
            self.holes.pop_front();
        }
        let has_room = self.holes.len() < config.most_holes as usize
            && self.hole_bytes + hole.len() <= config.most_hole_bytes.0;
        let [start, end] = [hole.start, hole.end].map(|at| at - self.first);
        if !is_links && !self.stopped {
            Err(Reason::Congested)
        } else if !self.may_stand(hole) {
            Err(Reason::Other)
        } else if !has_room {
            Err(Reason::Capped)
        } else if !readers.hole(self.key, start, end) {
            Err(Reason::Untold)
        } else {
            Ok(())
        }
    }

    /// Leaves `hole` to TCP, for `reason`, until its retransmission is overdue.
    fn leave(&mut self, now: Instant, hole: Range, reason: Reason, config: &Config, counters: &mut Counters) {
        *match reason {
            Reason::Congested => &mut counters.congested_holes,
            Reason::Capped => &mut counters.capped_holes,
            Reason::Untold => &mut counters.untold_holes,
            Reason::Other => &mut counters.other_holes,
        } += 1;
        if !self.stopped && config.overdue_percent > 0 && self.left.len() < MOST_LEFT {
            let next_stamp = self.host_stamp.map(|stamp| stamp.wrapping_add(1));
            self.left.push_back(LeftHole {
                range: hole,
                since: now,
                next_stamp,
                answered: None,
                overtaken: None,
            });
        }
    }

    /// A segment with `stamps` arrived. Its echo shows which of the holes left to TCP the sender already knows.
    fn note_answer(&mut self, now: Instant, stamps: Option<Timestamps>) {
        let Some(stamps) = stamps.filter(|_| !self.left.is_empty()) else { return };
        // A sender that has heard of a hole has heard of those before it.
        let first = self.left.partition_point(|hole| hole.answered.is_some());
        let heard = |hole: &&mut LeftHole| hole.next_stamp.is_some_and(|stamp| stamps.echoes(stamp));
        for hole in self.left.range_mut(first..).take_while(heard) {
            hole.answered = Some(now);
        }
    }

    /// `text` arrived, which shows which retransmissions are lost if the path preserves order. A sender retransmits
    /// lost segments from the lowest on, so data that it retransmits beyond a hole was sent after the retransmission of
    /// that hole. While data is missing it sends nothing new (RFC 6675 section 5, NextSeg), except before it treats the
    /// hole as a loss, which is within half a round trip after its first answer.
    fn note_overtaken(&mut self, now: Instant, text: Range, stamps: Option<Timestamps>, config: &Config) {
        self.data_at = Some(now);
        let Some(stamps) = stamps.filter(|_| !self.left.is_empty()) else { return };
        let half = Duration::from_nanos(self.trip.or(config.round_trip).as_nanos() / 2);
        let (is_new, top) = (text.end > self.top, self.top);
        let first = self.left.partition_point(|hole| hole.overtaken.is_some());
        let followed = |hole: &&mut LeftHole| {
            hole.next_stamp.is_some_and(|stamp| stamps.echoes(stamp))
                && match is_new {
                    true => hole.answered.is_some_and(|answered| answered + half <= now),
                    false => hole.range.end <= text.start && text.start < top,
                }
        };
        for hole in self.left.range_mut(first..).take_while(followed) {
            hole.overtaken = Some(now);
        }
    }

    /// When the retransmission of the oldest hole left to TCP is overdue: a share of a round trip after the hole was
    /// left, once later data has arrived instead. (Earlier, TCP would meet the ACK of a placeholder with an older
    /// timestamp in place of the retransmission's ACK, and treat the loss as spurious (Eifel, RFC 3522); congestion
    /// would be hidden.) If the sender is silent for that time, it waits for a timer; if it does not know of the hole
    /// yet, the time is doubled. `None` while [`MOST_OVERDUE`] bytes wait for repair.
    fn overdue_at(&self, config: &Config) -> Option<Instant> {
        let oldest = self.left.front().filter(|_| self.overdue_bytes < MOST_OVERDUE)?;
        let round_trip = self.trip.or(config.round_trip);
        // A round trip of 1 ms to 1 s neither loses significant digits nor overflows.
        let share = Duration::from_nanos(round_trip.as_nanos() / 100 * u64::from(config.overdue_percent));
        let silent_since = self.data_at.map_or(oldest.since, |at| at.max(oldest.since));
        Some(match (oldest.next_stamp, oldest.answered, oldest.overtaken) {
            (None, _, _) => oldest.since + share,
            (Some(_), _, Some(overtaken)) => overtaken.max(oldest.since + share),
            (Some(_), Some(_), None) => silent_since + share,
            (Some(_), None, None) => silent_since + share + share,
        })
    }

    /// Fills holes that TCP did not repair in time. Its duplicate ACKs have reported these losses to the sender, and
    /// the link may have lost the retransmissions. If the link loses nothing, it did not lose them, so the loss is left
    /// to TCP again.
    pub fn fill_overdue(
        &mut self,
        now: Instant,
        (config, limit): (&Config, Limit),
        out: &mut Outbox<P>,
        readers: &mut impl Readers,
    ) {
        while self.overdue_at(config).is_some_and(|due| due <= now) {
            let Some(mut hole) = self.left.pop_front() else { return };
            loop {
                hole.range.start = hole.range.start.max(self.next);
                let Some(gap) = self.beyond.first_gap(hole.range) else { break };
                if self.overdue_bytes >= MOST_OVERDUE {
                    self.left.push_front(hole);
                    break;
                }
                hole.range.start = gap.end;
                if self.announce(now, gap, (config, limit.loses_frames()), readers).is_ok() {
                    out.counters.overdue_holes += 1;
                    self.fill(now, gap, self.last_header, None, out);
                }
            }
            self.release_reached(out);
        }
    }

    /// Delivers placeholders for `hole` to the host, as if the sender had sent them with `header` just before `after`
    /// or, without `after`, just after the last segment.
    fn fill(
        &mut self,
        now: Instant,
        hole: Range,
        header: LastHeader,
        after: Option<&P>,
        out: &mut Outbox<P>,
    ) {
        let size = u64::from(self.segment_size());
        let like = after.unwrap_or(&self.like);
        let mut at = hole.start;
        while at < hole.end {
            let len = size.min(hole.end - at);
            let segment = Segment {
                seq: at.wire(),
                ack: header.ack,
                payload_len: len as u32,
                window: header.window,
                flags: Flags::ACK,
                timestamps: header.timestamps,
                ..Segment::default()
            };
            out.down.push_back(like.forged(&segment, Some((self.marker, at - self.first))));
            out.counters.placeholders += 1;
            at += len;
        }
        let stamp = header.timestamps.map(|stamps| stamps.value);
        // After all other holes, unless it was first left to TCP.
        let place = self.holes.partition_point(|other| other.range.start < hole.start);
        let filled = Hole { range: hole, at: now, stamp, is_overdue: after.is_none() };
        self.hole_bytes += hole.len();
        self.overdue_bytes += filled.overdue_len();
        self.holes.insert(place, filled);
        out.counters.placeholder_bytes += hole.len();
        out.counters.hole_bytes_max = out.counters.hole_bytes_max.max(self.hole_bytes);
        self.pass(hole);
    }

    /// Bytes that the host already has arrived again; those covered by placeholders are reported to the reader. Returns
    /// true if the host need not see the segment: all of its bytes are in holes, and the sender sent it before the data
    /// that revealed the holes. TCP would answer it with a duplicate ACK. Bytes that were retransmitted later need an
    /// ACK, and are delivered.
    fn is_late(
        &mut self,
        text: Range,
        segment: &Segment,
        packet: &P,
        counters: &mut Counters,
        readers: &mut impl Readers,
    ) -> bool {
        let known = text.start..text.end.min(self.top);
        let from = self.holes.partition_point(|hole| hole.range.end <= known.start);
        let (mut covered, mut overtaken) = (0, true);
        // A keep-alive may contain one byte of garbage (RFC 9293 section 3.8.4).
        let tells = segment.payload_len > 1;
        for hole in self.holes.range(from..).take_while(|hole| tells && hole.range.start < known.end) {
            let (start, end) = (hole.range.start.max(known.start), hole.range.end.min(known.end));
            let place = |at: Position| (at - text.start) as usize;
            let bytes = packet.payload().get(place(start)..place(end)).unwrap_or(&[]);
            readers.late(self.key, start - self.first, end - self.first, bytes);
            covered += end - start;
            overtaken &= match (segment.timestamps, hole.stamp) {
                (Some(late), Some(stamp)) => stamp.wrapping_sub(late.value) as i32 >= 0,
                _ => false,
            };
        }
        if covered == 0 {
            return false;
        }
        counters.late_segments += 1;
        let swallowed = overtaken && covered == text.len() && !segment.flags.contains(Flags::FIN);
        counters.swallowed_segments += u64::from(swallowed);
        swallowed
    }

    /// Delivers segments that waited for data that the host has by now.
    fn release_reached(&mut self, out: &mut Outbox<P>) {
        while let Some(held) = self.take_held(self.next) {
            out.counters.reordered_segments += 1;
            out.counters.segments += 1;
            self.switch.arrived();
            self.hand_on(held, out);
        }
    }

    /// Delivers all waiting segments.
    fn release_all(&mut self, out: &mut Outbox<P>) {
        while let Some(held) = self.held.pop_front() {
            self.hand_on(held, out);
        }
        self.held_bytes = 0;
    }

    /// When a waiting segment has to be decided.
    pub fn poll_timeout(&self, config: &Config) -> Option<Instant> {
        self.settles_at(config).into_iter().chain(self.overdue_at(config)).min()
    }

    fn settles_at(&self, config: &Config) -> Option<Instant> {
        // The first hole is before the first waiting segment; but the segment that arrived first behind it may be later
        // in the list.
        self.held.iter().map(|held| held.since).min().map(|since| since + config.settle)
    }

    /// Decides holes that have had time to settle.
    pub fn settle(
        &mut self,
        now: Instant,
        (config, limit): (&Config, Limit),
        out: &mut Outbox<P>,
        readers: &mut impl Readers,
    ) {
        while self.settles_at(config).is_some_and(|due| due <= now) {
            let Some(first) = self.take_held(END) else { return };
            self.decide(now, first, (config, limit), out, readers);
            self.release_reached(out);
        }
    }

    pub fn is_sound(&self, config: &Config) -> bool {
        let bytes: u64 = self.holes.iter().map(|hole| hole.range.len()).sum();
        let held: u64 = self.held.iter().map(|held| held.text.len()).sum();
        let mut ends = self.holes.iter().zip(self.holes.iter().skip(1));
        let in_order = ends.all(|(one, other)| one.range.end <= other.range.start);
        let mut left = self.left.iter().zip(self.left.iter().skip(1));
        let left_in_order =
            left.all(|(one, other)| one.range.end <= other.range.start && one.since <= other.since);
        bytes == self.hole_bytes
            && self.overdue_bytes == self.holes.iter().map(Hole::overdue_len).sum::<u64>()
            && held == self.held_bytes
            && held <= MOST_HELD
            && in_order
            && self.holes.len() <= config.most_holes as usize
            && bytes <= config.most_hole_bytes.0
            && self.holes.back().is_none_or(|last| last.range.end <= self.top)
            && self.left.len() <= MOST_LEFT
            && self.left.front().is_none_or(|first| first.range.end > self.next)
            && self.left.back().is_none_or(|last| last.range.end <= self.top)
            && left_in_order
            && self.next <= self.top
            && self.beyond.first().is_none_or(|first| first.start > self.next)
            && self.held.front().is_none_or(|first| first.text.start > self.next)
    }
}
