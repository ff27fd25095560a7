//! The end that reconstructs and forwards ACKs.

use super::batch::{FramePosition, Model};
use super::bytes::Reader;
use super::context::{Context, Delta};
use super::flow::Flow;
use super::frame::{Frame, Kind};
use super::memory::{Heap, List, Memory};
use super::range::Decoder;
use super::{Limits, MAX_FRAME_ACKS, native_check, per_ack, pure_ack};
use crate::crc::CRC8;
use crate::header::{Header, MAX_HEADER_LEN};
use crate::lsb::Lsb;

/// Interpretation of an 8-bit MSN relative to the highest one seen: up to 128 behind it and up to 127 ahead. Even if
/// one stray frame has moved the highest one, the next MSN is still decoded correctly.
const MSN: Lsb = Lsb::new(8, 128);

/// Number of native ACKs per flow that may start its next incarnation.
const CANDIDATES: usize = 4;

/// The outcome of the frames of one link-layer ACK. All counts are frames unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Frames found.
    pub frames: usize,
    /// ACKs delivered.
    pub acks: usize,
    /// Duplicate frames.
    pub duplicates: usize,
    /// Wrong lengths, unknown kinds, or fields that no pure ACK has. Bytes after a wrong length are ignored.
    pub malformed: usize,
    /// No flow with this CID is active.
    pub no_context: usize,
    /// A frame before this one is missing.
    pub gap: usize,
    /// First frames of an incarnation whose native ACK is unknown or superseded.
    pub stale: usize,
    /// The CRC-8 does not match the reconstructed headers.
    pub check: usize,
}

impl Report {
    /// Number of frames that were neither delivered nor duplicates.
    pub const fn failures(&self) -> usize {
        self.malformed + self.no_context + self.gap + self.stale + self.check
    }
}

/// Why a frame was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropped {
    Duplicate,
    Malformed,
    NoContext,
    Gap,
    Stale,
    Check,
}

/// A native ACK that was received.
#[derive(Clone, Copy, Debug)]
struct Native {
    check: u16,
    header: Header,
}

/// The current incarnation of a flow.
#[derive(Clone, Debug)]
struct Incarnation {
    /// CRC-16 of the native ACK it started from.
    started: u16,
    /// MSN of its first frame. It distinguishes a duplicate of that frame from the first frame of a later incarnation
    /// whose native ACK has the same CRC-16.
    first: u8,
    /// MSN of the next frame, extended beyond 8 bits like `seen`.
    next: u32,
    /// Highest MSN seen in any frame of the compressor. If it gets far ahead of `next` (frames were lost that should
    /// not have been), an MSN that has wrapped is recognised as a later one.
    seen: u32,
    context: Context,
    model: Model,
}

impl Incarnation {
    /// The incarnation that this native ACK starts, before its first frame is decoded.
    fn new(native: &Native, msn: u8) -> Self {
        let next = u32::from(msn);
        let context = Context::new(&native.header);
        Self { started: native.check, first: msn, next, seen: next, context, model: Model::NEW }
    }

    /// Whether `frame` is a duplicate of the first frame of this incarnation.
    fn repeats(&self, frame: &Frame<'_>) -> bool {
        frame.native == self.started && frame.msn == self.first
    }

    /// Distance of this MSN from the next one, negative if it is behind. Updates the highest MSN seen.
    fn age(&mut self, msn: u8) -> i32 {
        let msn = MSN.decode(self.seen, msn.into());
        if msn.wrapping_sub(self.seen) as i32 > 0 {
            self.seen = msn;
        }
        msn.wrapping_sub(self.next) as i32
    }

    /// Decodes the next frame and advances. On failure, `self` is unchanged.
    fn decode(&mut self, frame: &Frame<'_>, output: &mut Output<impl List<u8>>) -> Result<(), Dropped> {
        output.clear();
        let mut context = self.context;
        if frame.kind.is_batch() {
            let mut model = self.model;
            output.decode_batch(frame, &mut context, &mut model)?;
            output.check(frame)?;
            self.model = model;
        } else {
            output.decode_per_ack(frame, &mut context)?;
            output.check(frame)?;
        }
        self.context = context;
        self.next = self.next.wrapping_add(output.lengths.len() as u32);
        self.seen = self.next;
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Slot {
    flow: Flow,
    cid: u8,
    /// Newest first. All are newer than the native ACK from which the incarnation started.
    candidates: [Option<Native>; CANDIDATES],
    incarnation: Option<Incarnation>,
    last_use: u64,
}

/// Decompresses the ACKs of one peer. See the [module](super) for the rules.
#[derive(Clone, Debug)]
pub struct Decompressor<M: Memory = Heap> {
    slots: M::List<Slot>,
    limits: Limits,
    output: Output<M::List<u8>>,
    clock: u64,
}

impl Decompressor {
    /// Creates a decompressor without contexts. `limits` are clamped to their ranges. `contexts` must exceed the
    /// compressor's by the number of flows whose CID another flow uses: their ACKs arrive uncompressed but still occupy
    /// a context here.
    pub fn new(limits: Limits) -> Self {
        Self::new_in(limits, &mut Heap)
    }
}

impl<M: Memory> Decompressor<M> {
    /// As [`Decompressor::new`], with all lists in `memory`.
    pub fn new_in(limits: Limits, memory: &mut M) -> Self {
        let limits = limits.clamped();
        Self { slots: memory.growing(limits.contexts), limits, output: Output::new(memory), clock: 0 }
    }

    /// Reports that a native pure ACK was received from the peer. Compressed ACKs may follow it.
    ///
    /// `packet` is the whole IP packet. Anything but a valid pure ACK is ignored, so a driver may pass every packet.
    pub fn note_native(&mut self, packet: &[u8]) {
        let Ok(header) = pure_ack(packet) else { return };
        self.clock += 1;
        let native = Native { check: native_check(&header), header };
        let at = self.claim(Flow::from_header(&header));
        let slot = &mut self.slots[at];
        slot.last_use = self.clock;
        // The newest is first. A known one moves to the front.
        let known = slot.candidates.iter().position(|c| c.is_some_and(|c| c.check == native.check));
        slot.candidates[..=known.unwrap_or(CANDIDATES - 1)].rotate_right(1);
        slot.candidates[0] = Some(native);
    }

    /// Decodes the frames in one LL ACK. Calls `deliver` with each new ACK, as a whole IP packet with computed
    /// checksums.
    ///
    /// A frame is delivered as a whole or not at all. It changes a context only if it is delivered.
    pub fn receive(&mut self, bytes: &[u8], deliver: &mut dyn FnMut(&[u8])) -> Report {
        let mut report = Report::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            report.frames += 1;
            let outcome = match Frame::split(rest) {
                None => {
                    report.malformed += 1;
                    return report;
                }
                Some((frame, behind)) => {
                    rest = behind;
                    frame.ok_or(Dropped::Malformed).and_then(|frame| self.receive_frame(&frame))
                }
            };
            match outcome {
                Ok(()) => report.acks += self.output.deliver(deliver),
                Err(Dropped::Duplicate) => report.duplicates += 1,
                Err(Dropped::Malformed) => report.malformed += 1,
                Err(Dropped::NoContext) => report.no_context += 1,
                Err(Dropped::Gap) => report.gap += 1,
                Err(Dropped::Stale) => report.stale += 1,
                Err(Dropped::Check) => report.check += 1,
            }
        }
        report
    }

    /// Puts the frame's ACKs into the output. On failure every context is unchanged.
    fn receive_frame(&mut self, frame: &Frame<'_>) -> Result<(), Dropped> {
        self.clock += 1;
        if frame.kind.is_init() {
            return self.receive_first(frame);
        }
        let at = self.current(frame.cid).ok_or(Dropped::NoContext)?;
        let slot = &mut self.slots[at];
        let Some(incarnation) = &mut slot.incarnation else { return Err(Dropped::NoContext) };
        // The MSN is checked before anything else in the context is used.
        match incarnation.age(frame.msn) {
            ..0 => return Err(Dropped::Duplicate),
            0 => {}
            _ => return Err(Dropped::Gap),
        }
        incarnation.decode(frame, &mut self.output)?;
        slot.last_use = self.clock;
        Ok(())
    }

    /// Processes the first frame of an incarnation, which is decoded relative to the native ACK it identifies.
    fn receive_first(&mut self, frame: &Frame<'_>) -> Result<(), Dropped> {
        let named =
            |slot: &Slot| slot.candidates.iter().position(|c| c.is_some_and(|c| c.check == frame.native));
        let found = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.cid == frame.cid)
            .find_map(|(at, slot)| Some((at, named(slot)?)));
        let Some((at, candidate)) = found else {
            return Err(self.why_not_first(frame));
        };
        if self.slots[at].incarnation.as_ref().is_some_and(|present| present.repeats(frame)) {
            return Err(Dropped::Duplicate);
        }
        let Some(native) = self.slots[at].candidates[candidate] else { return Err(Dropped::Stale) };
        let mut incarnation = Incarnation::new(&native, frame.msn);
        incarnation.decode(frame, &mut self.output)?;
        // The compressor assigns a CID to only one flow at a time.
        for slot in self.slots.iter_mut().filter(|slot| slot.cid == frame.cid) {
            slot.incarnation = None;
        }
        let slot = &mut self.slots[at];
        slot.incarnation = Some(incarnation);
        slot.candidates[candidate..].fill(None);
        slot.last_use = self.clock;
        Ok(())
    }

    /// The reason to drop a first frame whose CRC-16 matches no candidate.
    fn why_not_first(&mut self, frame: &Frame<'_>) -> Dropped {
        let Some(at) = self.current(frame.cid) else {
            let known = self.slots.iter().any(|slot| slot.cid == frame.cid);
            return if known { Dropped::Stale } else { Dropped::NoContext };
        };
        let age = self.slots[at].incarnation.as_mut().map_or(0, |incarnation| incarnation.age(frame.msn));
        if age < 0 { Dropped::Duplicate } else { Dropped::Stale }
    }

    /// The slot of the flow that currently uses this CID.
    fn current(&self, cid: u8) -> Option<usize> {
        self.slots.iter().position(|slot| slot.cid == cid && slot.incarnation.is_some())
    }

    /// The slot for this flow: its own, a free one, or the least recently used one.
    fn claim(&mut self, flow: Flow) -> usize {
        if let Some(at) = self.slots.iter().position(|slot| slot.flow == flow) {
            return at;
        }
        let fresh = Slot {
            flow,
            cid: flow.cid(),
            candidates: [None; CANDIDATES],
            incarnation: None,
            last_use: self.clock,
        };
        if self.slots.len() < self.limits.contexts {
            self.slots.push(fresh);
            return self.slots.len() - 1;
        }
        let oldest = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.last_use);
        let at = oldest.map_or(0, |(at, _)| at);
        self.slots[at] = fresh;
        at
    }
}

/// The ACKs of the frame being decoded.
#[derive(Clone, Debug)]
struct Output<L> {
    /// Their headers, concatenated, up to `end`. The buffer is large enough for the longest frame.
    bytes: L,
    end: usize,
    /// The length of each header.
    lengths: L,
}

impl<L: List<u8>> Output<L> {
    fn new(memory: &mut impl Memory<List<u8> = L>) -> Self {
        let mut bytes: L = memory.list::<u8>(MAX_FRAME_ACKS * MAX_HEADER_LEN);
        (0..MAX_FRAME_ACKS).for_each(|_| bytes.extend_from_slice(&[0; MAX_HEADER_LEN]));
        Self { bytes, end: 0, lengths: memory.list::<u8>(MAX_FRAME_ACKS) }
    }

    fn clear(&mut self) {
        self.end = 0;
        self.lengths.truncate(0);
    }

    fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |&length| {
            let (packet, behind) = rest.split_at(usize::from(length));
            rest = behind;
            packet
        })
    }

    fn deliver(&self, deliver: &mut dyn FnMut(&[u8])) -> usize {
        self.packets().for_each(deliver);
        self.lengths.len()
    }

    fn check(&self, frame: &Frame<'_>) -> Result<(), Dropped> {
        if CRC8.check(&self.bytes[..self.end]) == frame.check { Ok(()) } else { Err(Dropped::Check) }
    }

    fn decode_batch(
        &mut self,
        frame: &Frame<'_>,
        context: &mut Context,
        model: &mut Model,
    ) -> Result<(), Dropped> {
        let mut coder = Decoder::new(frame.body);
        for index in 0..MAX_FRAME_ACKS {
            let is_last = model.last(&mut coder, index, false);
            let place = FramePosition { index, is_last };
            let delta = model.ack(&mut coder, context, place, &Delta::NONE).ok_or(Dropped::Malformed)?;
            self.push(context, &delta)?;
            if is_last {
                return Ok(());
            }
        }
        Err(Dropped::Malformed)
    }

    fn decode_per_ack(&mut self, frame: &Frame<'_>, context: &mut Context) -> Result<(), Dropped> {
        let mut reader = Reader::new(frame.body);
        if let Kind::Short { pair } = frame.kind {
            let delta = per_ack::from_head(context, pair);
            self.push(context, &delta)?;
        }
        // The second byte of each ACK except the first, which has none.
        let mut marks = [0; MAX_FRAME_ACKS];
        while !reader.rest().is_empty() || self.lengths.is_empty() {
            let index = self.lengths.len();
            let at = marks.get_mut(index).ok_or(Dropped::Malformed)?;
            let (delta, mark) = per_ack::read(&mut reader, context, index == 0).ok_or(Dropped::Malformed)?;
            *at = mark.unwrap_or(0);
            self.push(context, &delta)?;
        }
        // Not checked while decoding each ACK, because loading words that were just stored byte by byte is slow.
        for (index, packet) in self.packets().enumerate().skip(1) {
            if marks[index] != per_ack::mark(frame.msn.wrapping_add(index as u8), packet) {
                return Err(Dropped::Check);
            }
        }
        Ok(())
    }

    /// Appends the header that differs by `delta` and advances the context to it.
    fn push(&mut self, context: &mut Context, delta: &Delta) -> Result<(), Dropped> {
        let header = context.apply(delta).ok_or(Dropped::Malformed)?;
        let room = self.bytes.get_mut(self.end..).ok_or(Dropped::Malformed)?;
        let length = header.emit(room).ok_or(Dropped::Malformed)?;
        self.end += length;
        self.lengths.push(length as u8);
        Ok(())
    }
}
