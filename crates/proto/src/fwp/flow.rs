//! One registered flow: the data that its host's TCP has, the missing data, and the placeholders for it.

use std::collections::VecDeque;

use super::handshake::Handshake;
use super::packet::SegmentPacket;
use super::readers::Readers;
use super::switch::{Limit, RoundTrip, Switch};
use super::{Config, Counters, Marker};
use crate::FlowKey;
use crate::congestion::position::Position;
use crate::ranges::{Range, RangeSet};
use crate::tcp::{Flags, Segment, Timestamps};
use crate::units::{Duration, Instant, SeqNumber};

/// A position beyond all waiting segments.
const END: Position = Position::first(SeqNumber(0)).saturating_add(u64::MAX);
/// Ranges that a reader may have allowed and TCP not passed yet.
const MOST_ALLOWED: usize = 256;
/// Ranges beyond a hole that TCP repairs; with more the shim waits for the host's ACKs.
const MOST_BEYOND: usize = 1024;
/// Holes left to TCP whose age is known; a hole above this number stays with TCP however long it takes.
const MOST_LEFT: usize = 1024;
/// Unrepaired bytes of overdue holes, beyond which others wait: all that a queue dropped at the end of slow start would keep
/// the repair connections busy for longer than TCP takes.
const MOST_OVERDUE: u64 = 32 << 10;
/// Bytes that may wait for holes to settle: 4 ms at 1 Gb/s.
const MOST_HELD: u64 = 512 << 10;
/// The segment size of a sender that has shown none (RFC 9293 section 3.7.1).
const USUAL_SEGMENT: u32 = 536;
/// Resets of one connection: a host that takes none has another idea of where it stands, which its ACKs tell.
const MOST_RESETS: u32 = 10;

/// Packets for the host, and counters.
#[derive(Clone, Debug)]
pub(super) struct Outbox<P> {
    pub down: VecDeque<P>,
    pub counters: Counters,
}

/// Fate of a packet.
pub(super) enum Fate<P> {
    /// It goes to the host behind the packets in the outbox.
    Passes(P),
    /// It is in the outbox, waits, or goes nowhere.
    Taken,
}

/// A hole that was filled.
#[derive(Clone, Copy, Debug)]
struct Hole {
    range: Range,
    at: Instant,
    /// The sender's clock when it sent the data after the hole: earlier packets bear nothing later.
    stamp: Option<u32>,
    /// It had been left to TCP.
    is_overdue: bool,
}

impl Hole {
    /// Its bytes, where it had been left to TCP.
    fn overdue_len(&self) -> u64 {
        if self.is_overdue { self.range.len() } else { 0 }
    }
}

/// A hole that was left to TCP.
#[derive(Clone, Copy, Debug)]
struct LeftHole {
    range: Range,
    since: Instant,
    /// The first timestamp of the host that was not sent yet then; `None` where it sends none.
    next_stamp: Option<u32>,
    /// When something arrived that echoes that timestamp or a later one: the sender has heard of the hole.
    answered: Option<Instant>,
    /// When data arrived that the sender sent after the hole's retransmission.
    overtaken: Option<Instant>,
}

/// Fields of the last segment that went to the host, beside its text.
#[derive(Clone, Copy, Debug, Default)]
struct LastHeader {
    ack: SeqNumber,
    window: u16,
    timestamps: Option<Timestamps>,
}

impl LastHeader {
    fn of(segment: &Segment) -> Self {
        Self { ack: segment.ack, window: segment.window, timestamps: segment.timestamps }
    }
}

/// The reason to leave a hole to TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Congested,
    Capped,
    Untold,
    Other,
}

/// A packet behind a hole that may yet be reordering.
#[derive(Clone, Debug)]
struct Held<P> {
    text: Range,
    since: Instant,
    segment: Segment,
    /// Frames that the link lost since this flow had something new, where it says so.
    lost_frames: Option<u64>,
    packet: P,
}

/// A registered flow.
#[derive(Clone, Debug)]
pub(super) struct Flow<P> {
    pub key: FlowKey,
    marker: Marker,
    /// Where the stream begins.
    first: Position,
    /// Shift of the host's windows.
    scale: u8,
    /// The end of the window that the host offered; `None` until it said something.
    edge: Option<Position>,
    /// The host has everything before, placeholders included.
    next: Position,
    /// The end of the data passed on; above `next` while TCP repairs a hole.
    top: Position,
    /// Data that the host has beyond `next`.
    beyond: RangeSet,
    /// Where placeholders may stand.
    allowed: RangeSet,
    /// In order; none of them is repaired.
    holes: VecDeque<Hole>,
    hole_bytes: u64,
    /// Those of holes that had been left to TCP.
    overdue_bytes: u64,
    /// Holes left to TCP, in order of position and of age. TCP may have repaired parts of them.
    left: VecDeque<LeftHole>,
    /// When data came last.
    data_at: Option<Instant>,
    /// A placeholder's timestamp must not be older than the last that the host took (RFC 7323 section 5.3).
    last_header: LastHeader,
    /// The newest timestamp of the host.
    host_stamp: Option<u32>,
    /// By start.
    held: VecDeque<Held<P>>,
    held_bytes: u64,
    /// The largest text of a segment.
    largest: u32,
    switch: Switch,
    /// Frames that the link had lost when the newest of the flow came.
    lost_frames: u64,
    trip: RoundTrip,
    stopped: bool,
    /// The connection is being reset, so often so far.
    resets: Option<u32>,
    /// A packet of the sender, to forge others like it.
    like: P,
}

impl<P: SegmentPacket> Flow<P> {
    /// The connection whose SYNs said this; `None` where the sender's is missing.
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

    /// State that a later registration needs; `None` where the host has unrepaired placeholders, or is being reset.
    pub fn into_handshake(self) -> Option<Handshake<P>> {
        let is_clean = self.holes.is_empty() && self.resets.is_none();
        is_clean.then(|| Handshake::known(self.key, (self.first.wire(), self.like), self.scale, self.next))
    }

    /// The first byte of its stream has this number.
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

    /// No more placeholders; waiting segments go on.
    pub fn stop(&mut self, out: &mut Outbox<P>) {
        self.stopped = true;
        self.left.clear();
        self.release_all(out);
    }

    /// Resets the connection at the host, as often as it takes.
    pub fn fail(&mut self, out: &mut Outbox<P>) {
        self.stop(out);
        if self.resets.is_none() {
            self.resets = Some(0);
            out.counters.failed_flows += 1;
            self.reset(self.next.wire(), out);
        }
    }

    /// A host resets a connection for the very number that it expects (RFC 5961 section 3.2).
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

    /// `packet` came with `segment`, which is no SYN and no RST.
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
        // A probe asks for an ACK, and an ACK fills nothing: neither shows a hole.
        if segment.payload_len == 0 && !fin {
            return Fate::Passes(packet);
        }
        let start = self.next.nearest(segment.seq);
        let mut text = Range { start, end: start + u64::from(segment.payload_len) };
        self.note_overtaken(now, text, segment.timestamps, config);
        let Some(edge) = self.edge.filter(|_| self.resets.is_none()) else {
            // Where the host stands is not known yet: its next ACK says, and until then nothing is missing.
            self.pass(text);
            self.lost_frames = limit.lost_frames.unwrap_or(0);
            return Fate::Passes(packet);
        };
        if text.start > edge {
            return Fate::Passes(packet);
        }
        // The host takes nothing beyond its window.
        text.end = text.end.min(edge);
        self.largest = self.largest.max(segment.payload_len);
        if text.start < self.top && self.is_late(text, segment, &packet, &mut out.counters, readers) {
            return Fate::Taken;
        }
        let lost_frames = self.lost_before(text, limit);
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
        self.last_header = LastHeader::of(segment);
        if self.held.is_empty() {
            return Fate::Passes(packet);
        }
        out.down.push_back(packet);
        self.release_reached(out);
        Fate::Taken
    }

    /// Frames that the link lost since the newest of the flow came, which `text` may be now. Late data, or data sent again,
    /// moves nothing: frames that are missing before it are not missing before new data.
    fn lost_before(&mut self, text: Range, limit: Limit) -> Option<u64> {
        let newest = self.held.back().map_or(self.top, |held| held.text.end.max(self.top));
        let lost = limit.lost_frames?;
        let since = lost.saturating_sub(self.lost_frames);
        if text.end > newest {
            self.lost_frames = lost;
        }
        Some(since)
    }

    /// `text` goes to the host.
    fn pass(&mut self, text: Range) {
        if text.start <= self.next {
            self.advance(text.end);
        } else if text.start < text.end {
            self.beyond.insert(text, MOST_BEYOND);
        }
        self.top = self.top.max(text.end);
    }

    /// A new segment arrived, and `lost` before it did not.
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
        // A link that reports its losses needs no statistics.
        if limit.lost_frames.is_none() && self.switch.note(now, lost, self.trip.or(config.round_trip), limit)
        {
            let on = self.switch.on;
            *(if on { &mut counters.switched_on } else { &mut counters.switched_off }) += 1;
            readers.switched(self.key, on);
        }
    }

    /// Something is missing before `new`.
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
        // All waiting segments are decided too: they must not come behind this.
        while let Some(first) = self.take_held(END) {
            self.decide(now, first, (config, limit), out, readers);
        }
    }

    /// The first that waits and begins before `limit` or there.
    fn take_held(&mut self, limit: Position) -> Option<Held<P>> {
        self.held.front().filter(|first| first.text.start <= limit)?;
        let first = self.held.pop_front()?;
        self.held_bytes -= first.text.len();
        Some(first)
    }

    /// The data missing before `new` is filled, or left to TCP; then `new` goes on.
    fn decide(
        &mut self,
        now: Instant,
        new: Held<P>,
        (config, limit): (&Config, Limit),
        out: &mut Outbox<P>,
        readers: &mut impl Readers,
    ) {
        let hole = Range { start: self.top, end: new.text.start };
        // Below data that arrived already TCP repairs, and knows best.
        if hole.start < hole.end {
            let size = u64::from(self.segment_size());
            let segments = hole.len().div_ceil(size);
            self.count(now, segments, config, limit, &mut out.counters, readers);
            let is_links = match new.lost_frames {
                Some(frames) => segments <= frames,
                None => self.switch.on && limit.expected_ppm > 0,
            };
            match self.announce(now, hole, (config, is_links), readers) {
                Ok(()) => {
                    out.counters.holes += 1;
                    self.fill(now, hole, LastHeader::of(&new.segment), Some(&new.packet), out);
                }
                Err(reason) => self.leave(now, hole, reason, config, &mut out.counters),
            }
        } else if new.text.end > self.top {
            self.count(now, 0, config, limit, &mut out.counters, readers);
        }
        self.hand_on(new, out);
    }

    /// `held` goes to the host.
    fn hand_on(&mut self, held: Held<P>, out: &mut Outbox<P>) {
        self.pass(held.text);
        self.last_header = LastHeader::of(&held.segment);
        out.down.push_back(held.packet);
    }

    /// The size of the sender's segments.
    fn segment_size(&self) -> u32 {
        if self.largest == 0 { USUAL_SEGMENT } else { self.largest }
    }

    /// Placeholders could stand in `hole`, regardless of the losses: the reader allows it and the host has room. Data missing
    /// before it was left to TCP, which knows by its own signs the data to send again.
    fn may_stand(&self, hole: Range) -> bool {
        !self.stopped && self.edge.is_some_and(|edge| hole.end <= edge) && self.allowed.covers(hole)
    }

    /// Tells the reader that placeholders will stand in `hole`, which is the link's doing or not.
    ///
    /// # Errors
    /// Why none may; then the reader was not told.
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

    /// `hole` is left to TCP, for `reason`, until its retransmission is overdue.
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

    /// A segment with `stamps` arrived: it tells of which holes that were left to TCP the sender has heard.
    fn note_answer(&mut self, now: Instant, stamps: Option<Timestamps>) {
        let Some(stamps) = stamps.filter(|_| !self.left.is_empty()) else { return };
        // A sender that has heard of a hole has heard of those before it.
        let first = self.left.partition_point(|hole| hole.answered.is_some());
        let heard = |hole: &&mut LeftHole| hole.next_stamp.is_some_and(|stamp| stamps.echoes(stamp));
        for hole in self.left.range_mut(first..).take_while(heard) {
            hole.answered = Some(now);
        }
    }

    /// `text` arrived, which tells of which holes the retransmissions are lost where a path keeps the order. A sender
    /// sends lost segments again from the lowest on, so data that it sends again beyond a hole followed the hole's own; and
    /// it sends nothing new while something is lost (RFC 6675 section 5, NextSeg), but for the data that it sends before it takes
    /// the hole for a loss, within the half round trip after its first answer.
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

    /// When the retransmission of the oldest hole that was left to TCP is overdue: a share of round trips after the hole
    /// was left, once later data has come in its place. In a retransmission's place TCP would meet the ACK of a
    /// placeholder whose timestamp is older, and take the loss for none (Eifel, RFC 3522): congestion would be hidden.
    /// A sender that is silent for as long waits for a timer; for twice as long where it has not heard of the hole. `None`
    /// while [`MOST_OVERDUE`] bytes wait for repair.
    fn overdue_at(&self, config: &Config) -> Option<Instant> {
        let oldest = self.left.front().filter(|_| self.overdue_bytes < MOST_OVERDUE)?;
        let round_trip = self.trip.or(config.round_trip);
        // A round trip is at least 1 ms and at most 1 s: neither loses digits that matter nor overflows.
        let share = Duration::from_nanos(round_trip.as_nanos() / 100 * u64::from(config.overdue_percent));
        let silent_since = self.data_at.map_or(oldest.since, |at| at.max(oldest.since));
        Some(match (oldest.next_stamp, oldest.answered, oldest.overtaken) {
            (None, _, _) => oldest.since + share,
            (Some(_), _, Some(overtaken)) => overtaken.max(oldest.since + share),
            (Some(_), Some(_), None) => silent_since + share,
            (Some(_), None, None) => silent_since + share + share,
        })
    }

    /// Fills holes that TCP did not repair in time. Its duplicate ACKs have told the sender of these losses, and the link may have
    /// lost the retransmission; a link that loses nothing did not, so that loss too is left to TCP.
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

    /// Placeholders for `hole` go to the host, as if the sender had sent them with `header` just before `after`, or where
    /// nothing is after it, just after the last segment.
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
        // Behind all others, unless it was left to TCP first.
        let place = self.holes.partition_point(|other| other.range.start < hole.start);
        let filled = Hole { range: hole, at: now, stamp, is_overdue: after.is_none() };
        self.hole_bytes += hole.len();
        self.overdue_bytes += filled.overdue_len();
        self.holes.insert(place, filled);
        out.counters.placeholder_bytes += hole.len();
        out.counters.hole_bytes_max = out.counters.hole_bytes_max.max(self.hole_bytes);
        self.pass(hole);
    }

    /// Bytes that the host has came again: those that placeholders stand for are told. True where the host need not see them:
    /// all of them stand in holes, and the sender sent them before the data that showed them to be missing. TCP would
    /// answer with a duplicate ACK. Bytes sent again later ask for an ACK, and pass.
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
        // A keep-alive may have one byte of garbage (RFC 9293 section 3.8.4).
        let tells = segment.payload_len > 1;
        for hole in self.holes.range(from..).take_while(|hole| tells && hole.range.start < known.end) {
            let (start, end) = (hole.range.start.max(known.start), hole.range.end.min(known.end));
            let place = |at: Position| (at - text.start) as usize;
            let bytes = packet.payload().get(place(start)..place(end)).unwrap_or(&[]);
            readers.late(self.key, start - self.first, end - self.first, bytes);
            covered += end - start;
            overtaken &= match (segment.timestamps, hole.stamp) {
                (Some(own), Some(stamp)) => stamp.wrapping_sub(own.value) as i32 >= 0,
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

    /// Passes on segments that wait for data that the host has by now.
    fn release_reached(&mut self, out: &mut Outbox<P>) {
        while let Some(held) = self.take_held(self.next) {
            out.counters.reordered_segments += 1;
            out.counters.segments += 1;
            self.switch.arrived();
            self.hand_on(held, out);
        }
    }

    /// All that waits.
    fn release_all(&mut self, out: &mut Outbox<P>) {
        while let Some(held) = self.held.pop_front() {
            self.hand_on(held, out);
        }
        self.held_bytes = 0;
    }

    /// When something waits to be decided.
    pub fn poll_timeout(&self, config: &Config) -> Option<Instant> {
        self.settles_at(config).into_iter().chain(self.overdue_at(config)).min()
    }

    fn settles_at(&self, config: &Config) -> Option<Instant> {
        // The first hole is before the first that waits; the first to come behind it may stand later in the list.
        self.held.iter().map(|held| held.since).min().map(|since| since + config.settle)
    }

    /// Holes that have had time to settle are decided.
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
