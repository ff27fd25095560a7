//! The originator's side: one queue per destination, the MPDUs in the Block Ack window, and the next transmission.

mod settling;

use std::collections::VecDeque;

use tacit_packet::units::{Duration, Instant};

use super::aggregation::AggregationLimits;
use super::amsdu::Msdus;
use super::buffer_status::BufferStatus;
use super::mpdu::{Mpdu, MpduState};
use super::noise::Noise;
use super::plan::PpduPlan;
use super::rate_control::Minstrel;
use super::sent_buffer::SentBuffer;
use super::upper::UpperMac;
use super::{sequence_add, sequence_distance};
use crate::packet::{Holders, PacketRef, PayloadClass};
use crate::queue::{AckFilter, Queue, QueueConfig, Queued};
use crate::waits::Waits;
use crate::wifi::config::{LinkAcks, RepairConfig};
use crate::wifi::mac::link_role::{Gate, LinkRole};
use crate::wifi::phy::{BLOCK_ACK_REQUEST_LEN, Mode, ResourceUnit};

pub(crate) use settling::Settled;

/// How long packets waited before their first transmission.
pub(crate) struct Delays<'a> {
    pub holders: &'a mut Holders,
    pub waits: &'a mut Waits<8>,
    /// Sum of the waits.
    pub time: &'a mut Duration,
}

impl Delays<'_> {
    fn record(&mut self, delay: Duration) {
        self.waits.record(delay);
        *self.time += delay;
    }
}

/// Limits of a PPDU within a TXOP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Time for the PPDU and its acknowledgment, without the SIFS between them.
    pub time: Duration,
    /// Packets queued after this time are ignored.
    pub queued_by: Instant,
}

/// The part of a multi-user PPDU for one user, before it is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitPart {
    /// Modes of the data and of the response to it.
    pub modes: [Mode; 2],
    /// Most bytes of the PSDU.
    pub bytes: u32,
    /// Index of the first mode in the noise of the link.
    pub rate: usize,
    /// Limits at that mode, if they are not those of the rate in use.
    pub limits: Option<AggregationLimits>,
}

/// What one destination needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    BlockAckRequest,
    /// A request for data that did not arrive.
    RepairRequest,
    Data,
}

/// All state of a station for one destination.
#[derive(Clone, Debug)]
pub(crate) struct Originator {
    pub mode: Mode,
    pub control_mode: Mode,
    /// The two outside of a multi-user PPDU, while it has a part in one.
    single: [Mode; 2],
    pub(super) limits: AggregationLimits,
    /// Whether its data is acknowledged.
    acks: LinkAcks,
    /// Adapts mode and limits from PPDU to PPDU; `None` for a fixed rate.
    rate_control: Option<Box<Minstrel>>,
    /// Queue and window. The links of a multi-link device lend them to each other.
    pub upper: UpperMac,
    /// What this link carries.
    pub role: LinkRole,
    /// What the client's radio permits on it.
    pub gate: Gate,
    /// MPDUs of the present PPDU whose reception was decided before its end.
    pub early: Early,
    /// A Block Ack is missing or MPDUs were given up: the recipient needs the start of the window.
    pub(super) request_due: bool,
    request_retries: u32,
    /// Consecutive RTS frames without a CTS.
    rts_retries: u32,
    /// The most recently built PPDU.
    pub(super) plan: PpduPlan,
    /// Class of the most recent PPDU that was not empty.
    pub(super) last_class: PayloadClass,
    /// The next PPDUs carry the SYNC bit, until one is acknowledged.
    pub(super) sync_due: bool,
    /// A request to the peer for missing data is due.
    pub(super) asks_due: bool,
    /// Originators for the other spatial streams, if each stream has its own aggregate. They share the queue of the
    /// first.
    pub(super) others: Vec<Self>,
}

/// The first MPDUs of a PPDU, whose reception was decided before its end for a Block Ack on another link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Early {
    pub mpdus: u32,
    /// Bytes in the PPDU up to their end.
    pub bytes: u32,
    /// One of them arrived.
    pub any_arrived: bool,
}

impl Originator {
    pub fn new(
        mode: Mode,
        control_mode: Mode,
        limits: AggregationLimits,
        acks: LinkAcks,
        queue: QueueConfig,
    ) -> Self {
        Self {
            mode,
            control_mode,
            single: [mode, control_mode],
            limits,
            acks,
            rate_control: None,
            upper: UpperMac::new(queue),
            role: LinkRole::ALONE,
            gate: Gate::default(),
            early: Early::default(),
            request_due: false,
            request_retries: 0,
            rts_retries: 0,
            plan: PpduPlan::default(),
            last_class: PayloadClass::Data,
            sync_due: false,
            asks_due: false,
            others: Vec::new(),
        }
    }

    /// Adds a spatial stream with its own aggregate.
    pub fn add_stream(&mut self, stream: Self) {
        self.others.push(stream);
    }

    /// Works on one link of several in `role`, with at most `share` MPDUs in a PPDU, if given.
    pub fn work_on(&mut self, role: LinkRole, share: Option<u32>) {
        self.role = role;
        if let Some(share) = share {
            self.limits = self.limits.at_most(share);
        }
    }

    /// Keeps sent MPDUs for a recipient that may request them.
    pub fn keep_sent(&mut self, limits: RepairConfig) {
        self.upper.sent = Some(Box::new(SentBuffer::new(limits)));
    }

    /// Adapts the rate to the delivery of MPDUs.
    pub fn adapt_rate(&mut self, control: Minstrel) {
        self.rate_control = Some(Box::new(control));
    }

    /// Whether its PPDUs are answered by an ACK or a Block Ack.
    pub fn is_answered(&self) -> bool {
        self.acks == LinkAcks::Normal
    }

    /// Limits of a PPDU.
    pub fn limits(&self) -> AggregationLimits {
        self.limits
    }

    /// Whether a Block Ack agreement defines how its PPDUs are answered.
    pub fn has_agreement(&self) -> bool {
        self.is_answered() && self.limits.window > 1
    }

    /// Whether its data may share a PPDU with data for others: it is sent in A-MPDUs that are answered by a Block Ack
    /// or not at all.
    pub fn may_share(&self) -> bool {
        self.limits.window > 1 && self.acks != LinkAcks::Deferred && !self.has_stream_queues()
    }

    /// Keeps pure ACKs that leave the window for [`Originator::poll_settled_ack`]. Has no effect for unacknowledged
    /// data, whose outcome is unknown.
    pub fn report_acks(&mut self) {
        self.upper.reports_acks = self.is_answered();
    }

    /// Keeps the outcomes of packets in [`Originator::fates`], if they are known.
    pub fn report_fates(&mut self) {
        if self.is_answered() {
            self.upper.fates.ask();
        }
    }

    /// The next pure ACK that left the window, and whether it was delivered.
    pub fn poll_settled_ack(&mut self) -> Option<(PacketRef, bool)> {
        self.upper.settled_acks.pop_front()
    }

    /// Takes back the queued packets that match `unwanted` and have no sequence number yet.
    pub fn retract(&mut self, mut unwanted: impl FnMut(&PacketRef) -> bool, holders: &mut Holders) -> usize {
        self.upper.queue.retract(|packet| {
            let goes = unwanted(packet);
            if goes {
                holders.release(*packet);
            }
            goes
        })
    }

    /// Queues `payload`; returns whether it was accepted, and how many earlier packets were dropped for it.
    pub fn enqueue(&mut self, now: Instant, packet: PacketRef, holders: &mut Holders) -> (bool, u32) {
        let mut losses = Losses::new(self.upper.reports_acks, &mut self.upper.settled_acks);
        let taken = self.upper.queue.push(now, packet, &mut |packet| losses.take(packet, holders));
        (taken, losses.count)
    }

    /// Queues `payload` after `filter`; returns the result of [`Originator::enqueue`] and the number of ACKs the filter
    /// dropped.
    pub fn enqueue_filtered(
        &mut self,
        now: Instant,
        filter: AckFilter,
        packet: PacketRef,
        holders: &mut Holders,
    ) -> (bool, u32, u64) {
        let mut losses = Losses::new(self.upper.reports_acks, &mut self.upper.settled_acks);
        let mut dropped = |packet, holders: &mut Holders| losses.take(packet, holders);
        let (taken, filtered) = filter.push(&mut self.upper.queue, now, packet, holders, &mut dropped);
        (taken, losses.count, filtered)
    }

    pub fn queue(&self) -> &Queue {
        &self.upper.queue
    }

    /// Resets the queue's recorded peak.
    pub fn reset_queue_peak(&mut self) {
        self.upper.queue.reset_peak();
    }

    pub fn need(&self) -> Need {
        self.need_with(&self.upper)
    }

    /// What it needs if it holds `upper`.
    pub fn need_with(&self, upper: &UpperMac) -> Need {
        if self.has_stream_queues() {
            self.need_of_streams()
        } else if self.role.is_one_of_several {
            self.need_on_link(upper)
        } else if self.request_due {
            Need::BlockAckRequest
        } else if self.asks_due {
            Need::RepairRequest
        } else if upper.waiting > 0 || !upper.queue.is_empty() {
            Need::Data
        } else {
            Need::Nothing
        }
    }

    /// What it needs on this link of several if it holds `upper`.
    fn need_on_link(&self, upper: &UpperMac) -> Need {
        if self.gate.closed {
            Need::Nothing
        } else if self.request_due {
            Need::BlockAckRequest
        } else if upper.appending.is_empty() && self.has_data_for_link(upper) {
            Need::Data
        } else {
            Need::Nothing
        }
    }

    /// Whether `upper` has an MPDU that this link of several may send now.
    fn has_data_for_link(&self, upper: &UpperMac) -> bool {
        let mut waiting = upper.window.iter().filter(|mpdu| mpdu.state == MpduState::Waiting);
        let again = upper.waiting > 0 && waiting.any(|mpdu| self.role.carries_mpdu(mpdu));
        again || (self.is_window_open(upper) && self.may_take(upper))
    }

    /// Whether another MPDU fits into the window of `upper`.
    fn is_window_open(&self, upper: &UpperMac) -> bool {
        sequence_distance(upper.window_start(), upper.next_sequence) < self.limits.window
    }

    /// Whether the window keeps queued packets from this link of several.
    pub fn is_stalled(&self, upper: &UpperMac) -> bool {
        upper.appending.is_empty()
            && !self.gate.closed
            && self.may_take(upper)
            && !self.is_window_open(upper)
            && self.need_with(upper) == Need::Nothing
    }

    /// Whether this link may carry the first packet in the queue of `upper`.
    fn may_take(&self, upper: &UpperMac) -> bool {
        upper.queue.iter().next().is_some_and(|next| self.role.carries(next.payload.class))
    }

    /// Since when the next packet has waited; earlier than any packet for a Block Ack Request.
    pub fn oldest_at(&self) -> Option<Instant> {
        if self.request_due {
            return Some(Instant::ZERO);
        }
        let mut windows = self.streams().flat_map(|stream| &stream.upper.window);
        let again = windows.find(|mpdu| mpdu.state == MpduState::Waiting);
        again.map(|mpdu| mpdu.queued_at).or_else(|| self.upper.queue.oldest_at())
    }

    /// The most recently built PPDU.
    pub fn plan(&self) -> &PpduPlan {
        &self.plan
    }

    /// Whether each MPDU of that PPDU has a delimiter: in an A-MPDU, including the A-MPDU of one MPDU of VHT.
    pub fn is_delimited(&self) -> bool {
        self.plan.mpdus > 1 || self.limits.delimits_single()
    }

    /// Bytes of an MPDU of `len` bytes in that PPDU, including its delimiter and padding.
    pub fn subframe_len(&self, len: u32) -> u32 {
        self.limits.subframe_len(len)
    }

    /// Bytes of a Block Ack in response to that PPDU.
    pub const fn block_ack_len(&self) -> u32 {
        self.limits.block_ack_len()
    }

    /// Duration of a Block Ack Request and its response, without the SIFS between them.
    pub fn request_duration(&self) -> Duration {
        self.control_mode.ppdu_duration(BLOCK_ACK_REQUEST_LEN)
            + self.control_mode.ppdu_duration(self.block_ack_len())
    }

    /// Class of the most recent PPDU, to which a Block Ack Request refers.
    pub fn last_class(&self) -> PayloadClass {
        self.last_class
    }

    /// WinStartO: the first sequence number not settled.
    pub fn window_start(&self) -> u16 {
        self.upper.window_start()
    }

    /// MPDUs of the PPDU on the air, in order.
    pub fn in_flight(&self) -> impl Iterator<Item = &Mpdu> {
        let in_flight = MpduState::InFlight(self.role.link);
        self.upper.window.iter().filter(move |mpdu| mpdu.state == in_flight)
    }

    /// Drops packets that are too old, then assembles the next PPDU within the window and the limits: retransmissions
    /// first, then packets from the queue. `delays` records each new packet's time in the queue.
    pub fn build(&mut self, now: Instant, lifetime: Duration, delays: &mut Delays<'_>) {
        if self.has_stream_queues() {
            self.assemble_streams(now, (now, lifetime), None, delays);
            return;
        }
        let rate = self.choose_rate(now);
        let usual = self.limits;
        if let Some(end) = self.gate.ends_at {
            self.limits = usual.within(self.mode.bytes_within(end.saturating_since(now)));
        } else if let Some([own, all]) = self.gate.part {
            let outstanding = sequence_distance(self.window_start(), self.upper.next_sequence);
            let room = usize::from(usual.window.saturating_sub(outstanding));
            let waits = u64::from(self.upper.waiting) + self.upper.queue.len().min(room) as u64;
            self.limits = usual.at_most((waits * own).div_ceil(all).max(1) as u32);
        }
        self.assemble(now, (now, lifetime), rate, delays);
        self.limits = usual;
    }

    /// Whether the next MPDU of `upper` ends before `end` in a PPDU that begins at `now`, with nothing before it that must be alone.
    pub fn fits(&self, upper: &UpperMac, now: Instant, end: Instant) -> bool {
        let waiting = upper.window.iter().find(|mpdu| mpdu.state == MpduState::Waiting).map(|mpdu| mpdu.len);
        let next = waiting.or_else(|| Some(self.limits.mpdu_len(upper.queue.iter().next()?.len())));
        let room = self.mode.bytes_within(end.saturating_since(now));
        !self.request_due && next.is_some_and(|len| self.limits.subframe_len(len) <= room)
    }

    /// Drops packets that are too old, then assembles a PPDU that fits in `room`; the PPDU is empty if the first MPDU
    /// does not fit.
    pub fn build_within(&mut self, now: Instant, lifetime: Duration, room: Room, delays: &mut Delays<'_>) {
        let rate = self.choose_rate(now);
        let usual = self.limits;
        let time = room.time.saturating_sub(self.control_mode.ppdu_duration(self.block_ack_len()));
        let bytes = self.mode.bytes_within(time);
        let class = self.last_class;
        if self.has_stream_queues() {
            self.assemble_streams(now, (room.queued_by, lifetime), Some(bytes), delays);
        } else {
            self.limits = usual.within(bytes);
            self.assemble(now, (room.queued_by, lifetime), rate, delays);
            self.limits = usual;
        }
        if self.plan.mpdus == 0 {
            self.last_class = class;
            [self.mode, self.control_mode] = self.single;
        }
    }

    /// Drops packets that are too old, then assembles its part of a multi-user PPDU. [`Originator::mode`] and
    /// [`Originator::control_mode`] keep the modes of `part` until [`end_unit`](Self::end_unit).
    pub fn build_in_unit(
        &mut self,
        now: Instant,
        lifetime: Duration,
        part: UnitPart,
        delays: &mut Delays<'_>,
    ) {
        let (usual, class, retries) = (self.limits, self.last_class, self.most_retries());
        self.single = [self.mode, self.control_mode];
        [self.mode, self.control_mode] = part.modes;
        let steady = self.rate_control.as_mut().map(|control| control.use_steady(retries).limits);
        self.limits = part.limits.or(steady).unwrap_or(usual).within(part.bytes);
        self.assemble(now, (now, lifetime), part.rate, delays);
        self.limits = usual;
        if self.plan.mpdus == 0 {
            self.last_class = class;
            [self.mode, self.control_mode] = self.single;
        }
    }

    /// Chooses the mode if the rate adapts; returns the index of the rate.
    fn choose_rate(&mut self, now: Instant) -> usize {
        if self.rate_control.is_some() { self.choose_adapted(now) } else { 0 }
    }

    fn choose_adapted(&mut self, now: Instant) -> usize {
        let retries = self.most_retries();
        let Some(control) = &mut self.rate_control else { return 0 };
        let (rate, number, sample) = control.choose(now, retries);
        (self.mode, self.control_mode) = (rate.mode, rate.control_mode);
        self.limits = if sample { rate.limits.single() } else { rate.limits };
        number
    }

    /// Most retries of a waiting MPDU, if the rate adapts to them.
    pub fn most_retries(&self) -> u32 {
        if self.rate_control.is_none() {
            return 0;
        }
        let waiting = self.upper.window.iter().filter(|mpdu| mpdu.state == MpduState::Waiting);
        waiting.map(|mpdu| mpdu.retries).max().unwrap_or(0)
    }

    /// Updates the rate at `now`, before multi-user PPDUs are planned.
    pub fn update_rate(&mut self, now: Instant) {
        if let Some(control) = &mut self.rate_control {
            control.update(now);
        }
    }

    /// Modes of data and responses that its part of a multi-user PPDU is derived from: those in use, without tries.
    pub fn steady_modes(&self) -> [Mode; 2] {
        let steady = self.rate_control.as_ref().map(|control| control.steady(self.most_retries()).0);
        steady.map_or([self.mode, self.control_mode], |rate| [rate.mode, rate.control_mode])
    }

    /// Limits of a PPDU in these modes.
    pub fn steady_limits(&self) -> AggregationLimits {
        let steady = self.rate_control.as_ref().map(|control| control.steady(self.most_retries()).0);
        steady.map_or(self.limits, |rate| rate.limits)
    }

    /// Whether its next PPDU is to try another rate, which takes a PPDU of its own.
    pub fn wants_try(&self) -> bool {
        self.rate_control.as_ref().is_some_and(|control| control.wants_try(self.most_retries()))
    }

    /// Noise index of a part in `unit`: behind the rates of PPDUs of its own come the units of each.
    pub fn rate_in(&self, unit: ResourceUnit) -> usize {
        let count = self.rate_control.as_ref().map_or(1, |rates| rates.count());
        count + self.steady_rate() * ResourceUnit::ALL.len() + unit as usize
    }

    /// Index in the noise of the link of the rate of PPDUs that try no other.
    pub fn steady_rate(&self) -> usize {
        self.rate_control.as_ref().map_or(Noise::ALONE, |rates| rates.steady(self.most_retries()).1)
    }

    /// Its part of a multi-user PPDU has ended: PPDUs of its own use their modes again, or what the rate now is. Returns
    /// the noise index.
    pub fn end_unit(&mut self) -> usize {
        [self.mode, self.control_mode] = self.single;
        let Some(control) = &self.rate_control else { return Noise::ALONE };
        // A request for a Block Ack that is missing goes at the most reliable rate.
        let (rate, index) = control.steady(0);
        (self.mode, self.control_mode) = (rate.mode, control.surest().control_mode);
        index
    }

    /// Assembles a PPDU from packets that were queued at the first of `ages` or before, and at most as long ago as the
    /// second.
    pub(super) fn assemble(
        &mut self,
        now: Instant,
        ages: (Instant, Duration),
        rate: usize,
        delays: &mut Delays<'_>,
    ) {
        let mut plan = PpduPlan { rate, ..PpduPlan::default() };
        let mut is_full = false;
        for mpdu in &mut self.upper.window {
            if mpdu.state != MpduState::Waiting || !self.role.carries_mpdu(mpdu) {
                continue;
            }
            is_full = !self.limits.admit(&mut plan, mpdu.len);
            if is_full {
                break;
            }
            plan.count(mpdu);
            mpdu.state = MpduState::InFlight(self.role.link);
            self.upper.waiting -= 1;
        }
        if !is_full {
            self.fill_in_order(now, ages, &mut plan, delays);
            self.fill_from_queue(now, ages, &mut plan, delays);
        }
        plan.more_data = self.upper.waiting > 0 || !self.upper.queue.is_empty();
        plan.sync = self.sync_due || self.upper.unheard;
        self.upper.sending = self.upper.sending.with(self.role.link);
        self.last_class = plan.class();
        self.plan = plan;
        self.early = Early::default();
    }

    /// The PPDU on the air ends: of several links, its More Data bits say what is true now. Other links may have taken the rest
    /// of the queue, and their PPDUs still follow. One that has ended does not, although its Block Ack is still to come: ACKs
    /// would wait for it. A MAC computes headers and FCS as it sends them, and the bit is not part of what CCMP protects. Ours.
    pub fn renew_more_data(&mut self) {
        if !self.role.is_one_of_several {
            return;
        }
        self.upper.sending = self.upper.sending.without(self.role.link);
        let follows = |mpdu: &Mpdu| match mpdu.state {
            MpduState::InFlight(link) => self.upper.sending.contains(link),
            MpduState::Waiting => true,
            MpduState::Delivered | MpduState::GivenUp => false,
        };
        self.plan.more_data = !self.upper.queue.is_empty() || self.upper.window.iter().any(follows);
    }

    /// Does the work of [`fill_from_queue`](Self::fill_from_queue) while packets leave in order of arrival, none is
    /// dropped and each has its own MPDU.
    fn fill_in_order(
        &mut self,
        now: Instant,
        (queued_by, lifetime): (Instant, Duration),
        plan: &mut PpduPlan,
        delays: &mut Delays<'_>,
    ) {
        let outstanding = sequence_distance(self.window_start(), self.upper.next_sequence);
        let Queue::Bounded(queue) = &mut self.upper.queue else { return };
        if self.limits.joins_packets() {
            return;
        }
        let mut count = 0;
        let (role, in_flight) = (self.role, MpduState::InFlight(self.role.link));
        for queued in queue.iter().take(usize::from(self.limits.window.saturating_sub(outstanding))) {
            let (len, waited) = (self.limits.mpdu_len(queued.len()), now.saturating_since(queued.at));
            let stays = queued.at > queued_by || waited > lifetime || !role.carries(queued.payload.class);
            if stays || !self.limits.admit(plan, len) {
                break;
            }
            plan.count_fresh(len, queued.len(), queued.payload.class);
            delays.record(waited);
            self.upper.window.push_back(Mpdu {
                msdus: Msdus::new(queued.payload, Vec::new()),
                bytes: queued.len().0 as u32,
                sequence: sequence_add(self.upper.next_sequence, count),
                len,
                retries: 0,
                state: in_flight,
                queued_at: queued.at,
                is_decided: false,
            });
            count += 1;
        }
        queue.discard(usize::from(count));
        self.upper.next_sequence = sequence_add(self.upper.next_sequence, count);
    }

    fn fill_from_queue(
        &mut self,
        now: Instant,
        (queued_by, lifetime): (Instant, Duration),
        plan: &mut PpduPlan,
        delays: &mut Delays<'_>,
    ) {
        let window = self.limits.window;
        loop {
            let start = self.upper.window.front().map_or(self.upper.next_sequence, |mpdu| mpdu.sequence);
            if sequence_distance(start, self.upper.next_sequence) >= window {
                break;
            }
            let mut losses = Losses::new(self.upper.reports_acks, &mut self.upper.settled_acks);
            let front = self.upper.queue.front(now, &mut |packet| losses.take(packet, delays.holders));
            plan.discarded += losses.count;
            let is_due = |queued: &&Queued| queued.at <= queued_by && self.role.carries(queued.payload.class);
            let Some(queued) = front.filter(is_due) else { break };
            let too_old = now.saturating_since(queued.at) > lifetime;
            let len = self.limits.mpdu_len(queued.len());
            if !too_old && !self.limits.admit(plan, len) {
                break;
            }
            let Some(queued) = self.upper.queue.pop() else { break };
            if too_old {
                plan.expired += 1;
                losses.report(queued.payload, delays.holders);
                continue;
            }
            delays.record(now - queued.at);
            let joins = self.limits.joins_packets();
            let buffer = if joins { self.upper.spare.pop().unwrap_or_default() } else { Vec::new() };
            let mpdu = Mpdu {
                msdus: Msdus::new(queued.payload, buffer),
                bytes: queued.len().0 as u32,
                sequence: self.upper.next_sequence,
                len,
                retries: 0,
                state: MpduState::InFlight(self.role.link),
                queued_at: queued.at,
                is_decided: false,
            };
            self.upper.next_sequence = sequence_add(self.upper.next_sequence, 1);
            if joins {
                self.join_packets(now, (queued_by, lifetime), plan, mpdu, delays);
            } else {
                plan.count(&mpdu);
                self.upper.window.push_back(mpdu);
            }
        }
    }

    /// Puts `mpdu` into the window, with the following packets of the queue in its A-MSDU.
    fn join_packets(
        &mut self,
        now: Instant,
        (queued_by, lifetime): (Instant, Duration),
        plan: &mut PpduPlan,
        mut mpdu: Mpdu,
        delays: &mut Delays<'_>,
    ) {
        let mut losses = Losses::new(self.upper.reports_acks, &mut self.upper.settled_acks);
        while let Some(queued) =
            self.upper.queue.front(now, &mut |packet| losses.take(packet, delays.holders))
        {
            let in_time = now.saturating_since(queued.at) <= lifetime;
            if queued.at > queued_by
                || !in_time
                || !self.limits.join(plan, &mut mpdu.len, mpdu.msdus.iter(), &queued.payload)
            {
                break;
            }
            let Some(queued) = self.upper.queue.pop() else { break };
            delays.record(now - queued.at);
            mpdu.bytes += queued.len().0 as u32;
            mpdu.msdus.push(queued.payload);
        }
        plan.discarded += losses.count;
        plan.count(&mpdu);
        self.upper.window.push_back(mpdu);
    }

    /// Its buffer status report: bytes of the waiting packets, including those to be sent again.
    pub fn buffer_status(&self) -> BufferStatus {
        let again = self.upper.window.iter().filter(|mpdu| mpdu.state == MpduState::Waiting);
        let again = again.map(|mpdu| u64::from(mpdu.bytes));
        BufferStatus::from_packets(again.chain(self.upper.queue.iter().map(|queued| queued.len().0)))
    }

    /// Packets that were accepted and are not settled, including queued ones.
    pub fn backlog(&self) -> usize {
        let windows = self.streams().flat_map(|stream| &stream.upper.window);
        let unsettled = windows.filter(|mpdu| !mpdu.is_settled() && !self.is_copy(mpdu));
        self.upper.queue.len() + unsettled.map(|mpdu| mpdu.msdus.count() as usize).sum::<usize>()
    }

    /// Shows `see` every packet that it holds.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        self.upper.queue.iter().for_each(|queued| see(&queued.payload));
        for stream in self.streams() {
            let kept = stream.upper.sent.iter().flat_map(|sent| sent.iter());
            stream.upper.window.iter().chain(kept).flat_map(|mpdu| mpdu.msdus.iter()).for_each(&mut *see);
            stream.upper.settled_acks.iter().for_each(|(packet, _)| see(packet));
            stream.upper.fates.iter().for_each(&mut *see);
        }
    }

    /// The packets that [`Originator::backlog`] counts.
    pub fn unsettled(&self) -> impl Iterator<Item = &PacketRef> {
        let windows = self.streams().flat_map(|stream| &stream.upper.window);
        let unsettled = windows.filter(|mpdu| !mpdu.is_settled() && !self.is_copy(mpdu));
        unsettled
            .flat_map(|mpdu| mpdu.msdus.iter())
            .chain(self.upper.queue.iter().map(|queued| &queued.payload))
    }
}

/// Packets that a queue accepted and dropped later: counts them, and keeps pure ACKs if a driver asked for them.
struct Losses<'a> {
    settled_acks: Option<&'a mut VecDeque<(PacketRef, bool)>>,
    count: u32,
}

impl<'a> Losses<'a> {
    fn new(reports_acks: bool, settled_acks: &'a mut VecDeque<(PacketRef, bool)>) -> Self {
        Self { settled_acks: reports_acks.then_some(settled_acks), count: 0 }
    }

    /// A packet that the queue's discipline dropped.
    fn take(&mut self, packet: PacketRef, holders: &mut Holders) {
        self.count += 1;
        self.report(packet, holders);
    }

    fn report(&mut self, packet: PacketRef, holders: &mut Holders) {
        match &mut self.settled_acks {
            Some(settled_acks) if packet.class == PayloadClass::Ack => {
                settled_acks.push_back((packet, false));
            }
            _ => holders.release(packet),
        }
    }
}

#[cfg(test)]
#[path = "originator_tests.rs"]
mod tests;
