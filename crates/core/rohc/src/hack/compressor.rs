//! The end that sends ACKs.

use super::batch::{FramePosition, Model};
use super::context::Context;
use super::flow::Flow;
use super::frame::{Kind, OpenFrame};
use super::memory::{Heap, List, Memory};
use super::range::Encoder;
use super::{Coding, Limits, Refusal, native_check, per_ack, pure_ack};
use crate::crc::CRC8;
use crate::header::{Header, MAX_HEADER_LEN};

/// Upper limit of [`Slot::hold`]: a flow gives up its CID after at most this number of native ACKs from other flows,
/// regardless of how many ACKs it has sent.
const MOST_HOLD: u8 = 32;

/// Number of incarnations of a CID whose CRC-16 a new one must not reuse.
const REMEMBERED_CHECKS: usize = 8;

/// State of the flow that owns a CID.
#[derive(Clone, Debug)]
struct Slot {
    flow: Flow,
    cid: u8,
    /// False until the peer has received a native ACK, and again after the driver has given up frames.
    live: bool,
    /// The CRC-16 to send with the next frame, which is the first of an incarnation.
    begins: Option<u16>,
    /// The CRC-16s of the latest incarnations that sent a frame.
    recent: [Option<u16>; REMEMBERED_CHECKS],
    context: Context,
    model: Model,
    /// Number of ACKs of this flow in the frame under construction.
    pending: usize,
    last_use: u64,
    /// Number of ACKs of this flow minus native ACKs of other flows with its CID: a majority vote for the owner.
    hold: u8,
}

/// An ACK in the frame under construction.
#[derive(Clone, Copy, Debug)]
struct Pending {
    slot: usize,
    header: Header,
    /// Offset of the packet in the store. Its length is that of its header.
    start: usize,
}

/// Compresses pure ACKs towards one peer. See the [module](super) for the rules.
#[derive(Clone, Debug)]
pub struct Compressor<M: Memory = Heap> {
    coding: Coding,
    limits: Limits,
    slots: M::List<Slot>,
    /// The next MSN of every CID. Never reset, so that old frames remain recognisable.
    msn: [u8; 256],
    pending: M::List<Pending>,
    /// The pending packets, concatenated. The CRC is computed over them.
    store: M::List<u8>,
    clock: u64,
}

impl Compressor {
    /// Creates a compressor without contexts. `limits` are clamped to their ranges.
    pub fn new(coding: Coding, limits: Limits) -> Self {
        Self::new_in(coding, limits, &mut Heap)
    }
}

impl<M: Memory> Compressor<M> {
    /// As [`Compressor::new`], with all lists in `memory`.
    pub fn new_in(coding: Coding, limits: Limits, memory: &mut M) -> Self {
        let limits = limits.clamped();
        Self {
            coding,
            limits,
            slots: memory.growing(limits.contexts),
            msn: [0; 256],
            pending: memory.list(limits.frame_acks),
            store: memory.list(limits.frame_acks * MAX_HEADER_LEN),
            clock: 0,
        }
    }

    /// Reports that a native pure ACK reached the peer (the link layer acknowledged it). Its flow can be compressed
    /// from now on.
    ///
    /// `packet` is the whole IP packet. Anything but a valid pure ACK is ignored, so a driver may pass every packet.
    /// ACKs of the flow that are already in the frame under construction stay in it.
    pub fn note_native(&mut self, packet: &[u8]) {
        let Ok(header) = pure_ack(packet) else { return };
        self.clock += 1;
        let flow = Flow::from_header(&header);
        let check = native_check(&header);
        let Some(at) = self.find(&flow).or_else(|| self.claim(flow, &header)) else { return };
        let slot = &mut self.slots[at];
        slot.vote();
        // The peer could not distinguish the new incarnation from the one that started with the same CRC-16.
        if slot.recent.contains(&Some(check)) {
            return;
        }
        slot.live = true;
        slot.begins = Some(check);
        slot.context = Context::new(&header);
        slot.model = Model::NEW;
        slot.last_use = self.clock;
    }

    /// True if the flow of this packet has a context, so that [`Compressor::push`] may succeed.
    pub fn has_context(&self, packet: &[u8]) -> bool {
        Header::parse(packet)
            .is_ok_and(|header| self.find(&Flow::from_header(&header)).is_some_and(|at| self.slots[at].live))
    }

    /// Checks whether [`Compressor::push`] would accept `packet`, apart from [`Refusal::FrameFull`]. Changes nothing.
    ///
    /// # Errors
    ///
    /// The packet has to be sent uncompressed; see [`Refusal`].
    pub fn accepts(&self, packet: &[u8]) -> Result<(), Refusal> {
        self.slot_of(&pure_ack(packet)?).map(drop)
    }

    /// The index of the context of this ACK's flow.
    #[inline(always)]
    fn slot_of(&self, header: &Header) -> Result<usize, Refusal> {
        let flow = Flow::from_header(header);
        self.find(&flow).filter(|&at| self.slots[at].live).ok_or_else(|| {
            let cid = flow.cid();
            let taken = self.slots.iter().any(|slot| slot.cid == cid && slot.live && slot.flow != flow);
            if taken { Refusal::CidTaken } else { Refusal::NoContext }
        })
    }

    /// Adds a pure ACK, given as a whole IP packet, to the frame under construction.
    ///
    /// # Errors
    ///
    /// A packet that has to be sent uncompressed is refused and changes nothing; see [`Refusal`].
    pub fn push(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        let header = pure_ack(packet)?;
        let at = self.slot_of(&header)?;
        if self.pending.len() >= self.limits.frame_acks {
            return Err(Refusal::FrameFull);
        }
        self.clock += 1;
        let slot = &mut self.slots[at];
        slot.pending += 1;
        slot.last_use = self.clock;
        slot.vote();
        self.pending.push(Pending { slot: at, header, start: self.store.len() });
        self.store.extend_from_slice(packet);
        Ok(())
    }

    /// Number of ACKs in the frame under construction.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Completes the frame under construction and appends it to `out`. Returns the number of ACKs in it, 0 if nothing
    /// was appended.
    ///
    /// ACKs of several flows produce one frame per flow, in the order in which the flows first appeared. If `out` has too
    /// little room for all of them ([`List::is_cut`]), nothing is appended, and their flows are
    /// [invalidated](Compressor::invalidate): the ACKs have to be sent uncompressed.
    pub fn finish_frame(&mut self, out: &mut impl List<u8>) -> usize {
        let (mut acks, start) = (0, out.len());
        for i in 0..self.pending.len() {
            let at = self.pending[i].slot;
            let pending = core::mem::take(&mut self.slots[at].pending);
            if pending > 0 {
                self.encode(at, i, pending, out);
                acks += pending;
            }
        }
        if out.is_cut() {
            out.truncate(start);
            self.pending.iter().for_each(|ack| self.slots[ack.slot].live = false);
            acks = 0;
        }
        self.clear_pending();
        acks
    }

    /// Removes the context of this packet's flow, and the flow's ACKs from the frame under construction. Call this when
    /// giving up frames that the peer may not have received. The flow is sent uncompressed until the next
    /// [`Compressor::note_native`].
    pub fn invalidate(&mut self, packet_of_flow: &[u8]) {
        let flow = Header::parse(packet_of_flow).map(|header| Flow::from_header(&header));
        if let Some(at) = flow.ok().and_then(|flow| self.find(&flow)) {
            self.slots[at].live = false;
            self.slots[at].pending = 0;
            self.remove_pending(at);
        }
    }

    /// Removes the ACKs of one slot from the frame under construction, and the gaps that they leave in the store.
    fn remove_pending(&mut self, slot: usize) {
        let (mut kept, mut end) = (0, 0);
        for i in 0..self.pending.len() {
            let ack = self.pending[i];
            if ack.slot != slot {
                let len = ack.header.len();
                self.store.copy_within(ack.start..ack.start + len, end);
                self.pending[kept] = Pending { start: end, ..ack };
                kept += 1;
                end += len;
            }
        }
        self.pending.truncate(kept);
        self.store.truncate(end);
    }

    /// Calls [`Compressor::invalidate`] for every flow.
    pub fn invalidate_all(&mut self) {
        for slot in self.slots.iter_mut() {
            slot.live = false;
            slot.pending = 0;
        }
        self.clear_pending();
    }

    fn clear_pending(&mut self) {
        self.pending.truncate(0);
        self.store.truncate(0);
    }

    fn find(&self, flow: &Flow) -> Option<usize> {
        self.slots.iter().position(|slot| slot.flow == *flow)
    }

    /// Finds a slot for a new flow: that of its CID if the owner yields it, otherwise a free one, otherwise the least
    /// recently used one.
    ///
    /// The owner yields when the native ACKs of other flows outnumber its own ACKs, so that a finished or nearly idle
    /// connection does not block a busy one. Only the compressor decides this. The peer learns it from the first frame
    /// of the new owner, which identifies a native ACK of its flow and continues the MSN.
    fn claim(&mut self, flow: Flow, header: &Header) -> Option<usize> {
        let cid = flow.cid();
        let context = Context::new(header);
        let mut fresh = Slot {
            flow,
            cid,
            live: false,
            begins: None,
            recent: [None; REMEMBERED_CHECKS],
            context,
            model: Model::NEW,
            pending: 0,
            last_use: self.clock,
            hold: 0,
        };
        let at = match self.slots.iter().position(|slot| slot.cid == cid) {
            Some(at) => {
                let owner = &mut self.slots[at];
                if owner.live && owner.hold > 0 {
                    owner.hold -= 1;
                    return None;
                }
                if owner.pending > 0 {
                    return None;
                }
                fresh.recent = owner.recent;
                at
            }
            None if self.slots.len() < self.limits.contexts => {
                self.slots.push(fresh);
                return Some(self.slots.len() - 1);
            }
            None => {
                let idle = self.slots.iter().enumerate().filter(|(_, slot)| slot.pending == 0);
                idle.min_by_key(|(_, slot)| slot.last_use)?.0
            }
        };
        self.slots[at] = fresh;
        Some(at)
    }

    /// Appends the frame of one slot. It has `count` ACKs, starting with `pending[from]`.
    fn encode(&mut self, at: usize, from: usize, count: usize, out: &mut impl List<u8>) {
        let slot = &mut self.slots[at];
        let store = &self.store;
        let is_alone = count == self.pending.len();
        let acks = self.pending[from..]
            .iter()
            .filter(|ack| is_alone || ack.slot == at)
            .map(|ack| (&ack.header, &store[ack.start..ack.start + ack.header.len()]));
        let check = if is_alone {
            CRC8.check(&store[..])
        } else {
            acks.clone().fold(CRC8.start(), |state, (_, bytes)| CRC8.update(state, bytes))
        };
        let msn = self.msn[usize::from(slot.cid)];
        self.msn[usize::from(slot.cid)] = msn.wrapping_add(count as u8);
        let frame = OpenFrame::begin(out, slot.begins);
        let kind = if self.coding == Coding::PerAck || slot.fits_head(&self.pending[from].header, count) {
            slot.encode_per_ack(acks, msn, out)
        } else {
            slot.encode_batch(acks.map(|(header, _)| header), count, out)
        };
        let begins = slot.begins.take();
        if begins.is_some() {
            slot.recent.rotate_right(1);
            slot.recent[0] = begins;
        }
        frame.finish(out, kind, [slot.cid, msn, check]);
    }
}

impl Slot {
    /// Counts an ACK of this flow in the majority vote.
    fn vote(&mut self) {
        self.hold = (self.hold + 1).min(MOST_HOLD);
    }

    /// True if the frame header alone can encode the frame, that is, a single ACK that is almost as expected. No run
    /// can be shorter.
    fn fits_head(&self, header: &Header, count: usize) -> bool {
        count == 1
            && self.begins.is_none()
            && per_ack::head(&self.context, &self.context.diff(header)).is_some()
    }

    fn encode_per_ack<'a>(
        &mut self,
        acks: impl Iterator<Item = (&'a Header, &'a [u8])>,
        msn: u8,
        body: &mut impl List<u8>,
    ) -> Kind {
        let mut kind = if self.begins.is_some() { Kind::LongInit } else { Kind::Long };
        for (i, (header, bytes)) in acks.enumerate() {
            let delta = self.context.diff(header);
            let in_head =
                if i == 0 && kind == Kind::Long { per_ack::head(&self.context, &delta) } else { None };
            match in_head {
                Some(short) => kind = short,
                None => {
                    let mark = (i > 0).then(|| per_ack::mark(msn.wrapping_add(i as u8), bytes));
                    per_ack::write(body, &self.context, &delta, mark);
                }
            }
            self.context.advance(&delta, header);
        }
        kind
    }

    fn encode_batch<'a>(
        &mut self,
        acks: impl Iterator<Item = &'a Header>,
        count: usize,
        body: &mut impl List<u8>,
    ) -> Kind {
        let kind = if self.begins.is_some() { Kind::BatchInit } else { Kind::Batch };
        let mut coder = Encoder::new(body);
        for (index, header) in acks.enumerate() {
            let delta = self.context.diff(header);
            let is_last = self.model.last(&mut coder, index, index + 1 == count);
            // An encoder with a valid delta never returns `None`.
            let _ = self.model.ack(&mut coder, &self.context, FramePosition { index, is_last }, &delta);
            self.context.advance(&delta, header);
        }
        coder.finish();
        kind
    }
}
