//! The driver's part of TCP/HACK (paper sections 3.2 to 3.4): which ACKs wait for a link-layer ACK.
//!
//! It is designed for TCP's ACKs; other transports' feedback may be appended as well ([`Rides::AsIs`]). The comments on
//! ACKs apply to both.

use std::collections::VecDeque;

use tacit_rohc::hack::{RETAINED_ACKS, Refusal};

use super::airtime::AckAirtime;
use super::config::{Config, Rule, Variant};
use super::counters::{Counters, FlowCounters};
use super::nic::{Response, SolicitedBy};
use super::packet::{AckPacket, Rides};
use super::peer::{Finished, Fresh, POSTPONED_ACKS, Peer, Waiting};
use tacit_packet::FlowKey;
use tacit_packet::units::{Duration, Instant};

/// An action of the driver for the peer with number `.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<P> {
    /// Queue the packet unchanged.
    Send(usize, P),
    /// Hand the frame to the NIC.
    Descriptor(usize, Vec<u8>),
    /// Remove the frames that were not sent from the NIC.
    ClearFresh(usize),
    /// Remove the frames that were sent but not proven from the NIC.
    ClearRetained(usize),
    /// Remove these packets from the transmit queue, because they were sent on a link-layer ACK.
    Retract(usize, Vec<P>),
}

/// A driver. Peers have the same numbers as in the NIC.
#[derive(Debug)]
pub struct Driver<P> {
    config: Config,
    peers: Vec<Peer<P>>,
    /// The earlier deadline of each peer, and the earliest of all; most calls change neither.
    deadlines: Vec<Option<Instant>>,
    next_deadline: Option<Instant>,
    /// Since when a packet other than an ACK has waited, if the station has sent nothing since.
    packets_wait_since: Option<Instant>,
    actions: VecDeque<Action<P>>,
    /// Reconstituted ACKs, each with its peer.
    reconstituted: VecDeque<(usize, P)>,
    counters: Counters,
    /// Scratch buffer, kept to reuse its capacity.
    bytes: Vec<u8>,
}

impl<P: AckPacket> Driver<P> {
    /// A driver for `peers` destinations.
    pub fn new(config: Config, peers: usize) -> Self {
        Self {
            config,
            peers: (0..peers).map(|_| Peer::new(&config)).collect(),
            deadlines: vec![None; peers],
            next_deadline: None,
            packets_wait_since: None,
            actions: VecDeque::new(),
            reconstituted: VecDeque::new(),
            counters: Counters::default(),
            bytes: Vec::new(),
        }
    }

    /// Sets the airtime of ACKs to `peer` for [`Rule::Airtime`]; without it no ACK is sent as a packet to save airtime.
    pub fn compare_airtime(&mut self, peer: usize, airtime: Box<dyn AckAirtime>) {
        self.peers[peer].airtime = Some(airtime);
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Counters of the flow with this [key](AckPacket::flow_key) since the start.
    pub fn flow_counters(&self, flow: FlowKey) -> FlowCounters {
        let counted = self.peers.iter().flat_map(|peer| &peer.flows).filter(|(key, _)| *key == flow);
        counted.fold(FlowCounters::default(), |sum, (_, counters)| sum.plus(counters))
    }

    /// The next action. Drain it to `None` after any other call.
    pub fn poll_action(&mut self) -> Option<Action<P>> {
        self.actions.pop_front()
    }

    /// The next reconstituted ACK to pass up, and its peer. Drain it to `None` after [`handle_appended`](Self::handle_appended);
    /// what the stack sends in between goes first, so that its queue is known when it has the next ACK.
    pub fn poll_reconstituted(&mut self) -> Option<(usize, P)> {
        self.reconstituted.pop_front()
    }

    /// The time for the next [`Driver::handle_timeout`]; it may change after any call.
    pub fn poll_timeout(&self) -> Option<Instant> {
        debug_assert_eq!(self.next_deadline, self.peers.iter().filter_map(Peer::deadline).min());
        debug_assert!(
            self.peers.iter().all(|peer| peer.holds_until(self.hold_max())),
            "an ACK waits without end"
        );
        self.next_deadline
    }

    /// Updates the deadlines after a change of `peer`.
    fn note_deadline(&mut self, peer: usize) {
        let deadline = self.peers[peer].deadline();
        if deadline != self.deadlines[peer] {
            self.deadlines[peer] = deadline;
            self.next_deadline = self.deadlines.iter().flatten().min().copied();
        }
    }

    /// The stack sends `packet` to `peer`.
    pub fn handle_outgoing(&mut self, now: Instant, peer: usize, packet: P) {
        if packet.rides() == Rides::Never {
            self.packets_wait_since.get_or_insert(now);
            self.actions.push_back(Action::Send(peer, packet));
            return;
        }
        let state = &self.peers[peer];
        let overtakes_too_long =
            self.packets_wait_since.is_some_and(|since| now >= since + self.config.overtake_limit);
        let may_wait = !overtakes_too_long
            && match self.config.variant {
                // Both ways at once, unless some ACKs can no longer be taken back.
                Variant::Opportunistic => state.all_natives() as usize == state.held(),
                variant => state.will_send(variant, now),
            };
        let comes_later = match self.config.variant {
            Variant::Opportunistic => false,
            _ => self.thins().is_some() || state.has_no_room_for(&packet),
        };
        let taken = may_wait
            && if comes_later {
                self.postpone(now, peer, &packet)
            } else {
                self.hold(now + self.config.turnaround, now, peer, &packet)
            };
        if taken && self.config.variant != Variant::Opportunistic {
            return;
        }
        if !taken {
            self.make_way(peer, packet.flow_key());
        }
        self.send_native(peer, packet);
    }

    /// The NIC acknowledged a PPDU from `peer`.
    pub fn handle_received(
        &mut self,
        now: Instant,
        peer: usize,
        heard: SolicitedBy,
        more_data: bool,
        response: Response,
    ) {
        let state = &mut self.peers[peer];
        let proven = (response.proven_frames as usize).min(state.retained_frames.len());
        state.retained_frames.drain(..proven);
        if state.retained_frames.is_empty() {
            state.retained.clear();
        }
        if response.fresh_frames > 0 {
            self.note_sent(now, peer, response.fresh_frames as usize);
        }
        if heard == SolicitedBy::BlockAckRequest {
            return;
        }
        self.peers[peer].more_data = more_data;
        if !self.peers[peer].will_send(self.config.variant, now) {
            // No link-layer ACK will follow that could carry the waiting ACKs: the race of section 3.3.1, or the end of
            // a burst.
            self.flush(peer);
        } else if response.proven || response.proven_frames > 0 {
            self.unblock(now, peer);
        }
    }

    /// The oldest `frames` in the NIC were sent for the first time.
    fn note_sent(&mut self, now: Instant, peer: usize, frames: usize) {
        let longest_hold = self.longest_hold(peer);
        let state = &mut self.peers[peer];
        let mut sent = Vec::new();
        for Fresh { packets, bytes, .. } in state.fresh.drain(..frames.min(state.fresh.len())) {
            let (bytes, count) = (bytes as u64, packets.len() as u64);
            state.retained_frames.push_back(packets.len());
            self.counters.compressed_bytes += bytes;
            for (packet, i) in packets.iter().zip(0..) {
                let flow = packet.flow_key();
                if !state.retained.contains(&flow) {
                    state.retained.push(flow);
                }
                self.bytes.clear();
                packet.write_to(&mut self.bytes);
                let whole = self.bytes.len() as u64;
                if self.config.variant == Variant::TimestampEcho {
                    state.echoes.note_sent(now, packet);
                }
                self.counters.uncompressed_bytes += whole;
                let of_flow = counters_of(&mut state.flows, flow);
                of_flow.compressed_acks += 1;
                of_flow.uncompressed_bytes += whole;
                of_flow.compressed_bytes += bytes * (i + 1) / count - bytes * i / count;
            }
            sent.extend(packets);
        }
        self.counters.compressed_acks += sent.len() as u64;
        state.hold_until = state.oldest_held().map(|oldest| oldest + longest_hold);
        self.note_deadline(peer);
        if self.config.variant == Variant::Opportunistic {
            self.actions.push_back(Action::Retract(peer, sent));
        }
    }

    /// Handles `bytes` that a link-layer ACK from `peer` carried. `read` parses a reconstituted packet, as for any
    /// packet that the host receives.
    pub fn handle_appended(&mut self, peer: usize, bytes: &[u8], read: impl Fn(&[u8]) -> Option<P>) {
        let reconstituted = &mut self.reconstituted;
        let mut unreadable = 0;
        let report = self.peers[peer].decoder.receive(bytes, &mut |packet| match read(packet) {
            Some(packet) => reconstituted.push_back((peer, packet)),
            None => unreadable += 1,
        });
        self.counters.reconstituted_acks += report.delivered as u64 - unreadable;
        self.counters.duplicate_frames += report.duplicates as u64;
        self.counters.failed_frames += report.failures as u64 + unreadable;
    }

    /// `packet` arrived from `peer` as a packet.
    pub fn handle_incoming(&mut self, now: Instant, peer: usize, packet: &P) {
        if packet.rides() == Rides::Compressed {
            self.bytes.clear();
            packet.write_to(&mut self.bytes);
            self.peers[peer].decoder.note_native(&self.bytes);
        }
        if self.config.variant == Variant::TimestampEcho {
            let state = &mut self.peers[peer];
            state.echoes.note_received(now, packet);
            if !state.will_send(Variant::TimestampEcho, now) {
                self.flush(peer);
            }
        }
    }

    /// A pure ACK queued for `peer` was acknowledged, or given up.
    pub fn handle_settled(&mut self, now: Instant, peer: usize, packet: &P, delivered: bool) {
        let state = &mut self.peers[peer];
        state.native_gone(packet.flow_key());
        self.bytes.clear();
        packet.write_to(&mut self.bytes);
        if delivered {
            state.encoder.note_native(&self.bytes);
            if self.config.variant == Variant::TimestampEcho {
                state.echoes.note_sent(now, packet);
            }
        } else {
            state.encoder.invalidate(&self.bytes);
        }
        if state.natives_of(packet.flow_key()) == 0 {
            self.unblock(now, peer);
        }
    }

    /// Packets for `peer` leave the transmit queue. The station wins access, so ACKs may overtake its other packets again; and ACKs
    /// that also wait for a link-layer ACK must not be sent twice.
    pub fn handle_drained(&mut self, peer: usize) {
        self.packets_wait_since = None;
        if self.config.variant == Variant::Opportunistic {
            self.forget_waiting(peer);
            self.forget_retained(peer);
        }
    }

    /// A packet requested by [`Action::Retract`] was still in the queue.
    pub fn handle_retracted(&mut self, peer: usize, packet: &P) {
        let state = &mut self.peers[peer];
        state.native_gone(packet.flow_key());
        self.counters.native_acks -= 1;
        counters_of(&mut state.flows, packet.flow_key()).native_acks -= 1;
    }

    /// Performs the actions that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for peer in 0..self.peers.len() {
            if self.deadlines[peer].is_none_or(|at| at > now) {
                continue;
            }
            if self.peers[peer].job_at.is_some_and(|at| at <= now) {
                self.hand_over(now, peer);
            }
            if self.peers[peer].hold_until.is_some_and(|at| at <= now) {
                self.counters.hold_limits += 1;
                self.peers[peer].more_data = false;
                self.flush(peer);
            }
        }
    }

    /// If ACKs are gathered before they are compressed: one ACK in how many is appended. `None` if each is compressed
    /// as it arrives.
    fn thins(&self) -> Option<u32> {
        match (self.config.rule, self.config.variant) {
            (Rule::Every, _) | (_, Variant::Opportunistic) => None,
            (Rule::Airtime { one_in }, _) => Some(one_in),
        }
    }

    /// Makes an ACK wait until it may enter a frame. As a packet it would not be faster behind packets of its flow, and
    /// beyond the limit of unproven ACKs it would force all of those to be packets. Returns false if too many wait, or
    /// no frame would accept it.
    fn postpone(&mut self, now: Instant, peer: usize, packet: &P) -> bool {
        let (thins, hold_until) = (self.thins(), now + self.longest_hold(peer));
        let state = &mut self.peers[peer];
        if state.postponed.len() >= POSTPONED_ACKS {
            return false;
        }
        let mut ready_at = None;
        if thins.is_some() && !state.has_no_room_for(packet) {
            self.bytes.clear();
            packet.write_to(&mut self.bytes);
            if state.encoder.accepts(packet.rides(), &self.bytes).is_err() {
                self.counters.refused_acks += 1;
                return false;
            }
            let at = now + self.config.turnaround;
            ready_at = Some(at);
            state.job_at = Some(state.job_at.map_or(at, |job| job.min(at)));
        }
        let flow = packet.flow_key();
        let info = thins.and_then(|_| packet.ack_info());
        let packet = packet.clone();
        // Whether its number advances is determined by comparison with the ACK before it.
        let waiting = Waiting { packet, flow, info, since: now, advances: false, stands_for: 1, ready_at };
        if state.gather(waiting, thins.unwrap_or(1)) {
            self.counters.thinned_acks += 1;
            counters_of(&mut state.flows, flow).thinned_acks += 1;
        }
        state.hold_until.get_or_insert(hold_until);
        self.note_deadline(peer);
        true
    }

    /// Some of the postponed ACKs may now enter a frame.
    fn unblock(&mut self, now: Instant, peer: usize) {
        let at = now + self.config.turnaround;
        if self.thins().is_none() {
            self.compress_postponed(at, peer, |_| true);
            return;
        }
        let state = &mut self.peers[peer];
        state.unblock(at);
        state.job_at = state.next_job();
        self.note_deadline(peer);
    }

    /// Compresses the postponed ACKs that are `due` and allowed, in order, into frames that will be in the NIC at
    /// `ready_at`. Returns false if all waiting ACKs were sent as packets instead.
    fn compress_postponed(
        &mut self,
        ready_at: Instant,
        peer: usize,
        due: impl Fn(&Waiting<P>) -> bool,
    ) -> bool {
        let mut kept = 0;
        for _ in 0..self.peers[peer].postponed.len() {
            let state = &mut self.peers[peer];
            let Some(mut waiting) = state.postponed.pop_front() else { break };
            let is_due = due(&waiting);
            // Within this loop no room is freed and no packets arrive, so once an ACK of a flow is blocked, its later
            // ones are, too.
            let is_blocked = state.in_frames() >= RETAINED_ACKS || state.natives_of(waiting.flow) > 0;
            if is_blocked || !is_due {
                waiting.ready_at = waiting.ready_at.filter(|_| !is_due);
                state.postponed.push_back(waiting);
                kept += 1;
            } else if !self.hold(ready_at, waiting.since, peer, &waiting.packet) {
                let state = &mut self.peers[peer];
                state.postponed.push_front(waiting);
                state.postponed.rotate_right(kept);
                self.flush(peer);
                return false;
            }
        }
        true
    }

    /// No ACK waits for longer.
    fn hold_max(&self) -> Duration {
        match self.config.variant {
            Variant::Timer(delay) => delay,
            Variant::Opportunistic | Variant::MoreData | Variant::TimestampEcho => self.config.hold_limit,
        }
    }

    fn longest_hold(&self, peer: usize) -> Duration {
        match self.config.variant {
            Variant::TimestampEcho if !self.peers[peer].more_data => {
                self.peers[peer].echoes.patience().min(self.hold_max())
            }
            _ => self.hold_max(),
        }
    }

    /// Adds an ACK that arrived at `since` to the frame that will be in the NIC at `ready_at`; returns false if the
    /// codec refuses it.
    fn hold(&mut self, ready_at: Instant, since: Instant, peer: usize, packet: &P) -> bool {
        self.bytes.clear();
        packet.write_to(&mut self.bytes);
        let hold_until = since + self.longest_hold(peer);
        let state = &mut self.peers[peer];
        if state.building_ready_at != ready_at {
            state.finish_frame();
        }
        let mut taken = Err(Refusal::FrameFull);
        if state.in_frames() < RETAINED_ACKS {
            taken = state.encoder.push(packet.rides(), &self.bytes);
            if taken == Err(Refusal::FrameFull) {
                state.finish_frame();
                taken = state.encoder.push(packet.rides(), &self.bytes);
            }
        }
        if taken.is_err() {
            self.counters.refused_acks += 1;
            return false;
        }
        let oldest = if state.building.is_empty() { since } else { state.building_oldest.min(since) };
        state.building.push(packet.clone());
        (state.building_ready_at, state.building_oldest) = (ready_at, oldest);
        state.building_bytes += self.bytes.len() as u32;
        state.job_at.get_or_insert(ready_at);
        state.hold_until.get_or_insert(hold_until);
        self.note_deadline(peer);
        true
    }

    /// Compression and DMA have finished: hands over the frames that are ready.
    fn hand_over(&mut self, now: Instant, peer: usize) {
        let gathers = self.thins().is_some();
        let is_ready = |waiting: &Waiting<P>| waiting.ready_at.is_some_and(|at| at <= now);
        if gathers && !self.compress_postponed(now, peer, is_ready) {
            return;
        }
        self.peers[peer].finish_frame();
        if gathers && self.packets_are_cheaper(peer) {
            self.counters.cheaper_acks += self.peers[peer].held() as u64;
            self.flush(peer);
            return;
        }
        let state = &mut self.peers[peer];
        while state.finished.front().is_some_and(|next| next.ready_at <= now) {
            let Some(Finished { packets, frame, oldest, packet_bytes, .. }) = state.finished.pop_front()
            else {
                break;
            };
            state.fresh.push_back(Fresh { packets, bytes: frame.len(), oldest, packet_bytes });
            self.counters.frames += 1;
            self.actions.push_back(Action::Descriptor(peer, frame));
        }
        state.job_at = state.next_job();
        self.note_deadline(peer);
    }

    /// True if all waiting ACKs take less airtime as packets.
    fn packets_are_cheaper(&self, peer: usize) -> bool {
        let state = &self.peers[peer];
        let airtime = state.airtime.as_deref().filter(|_| self.config.appended_limit.is_none());
        airtime.is_some_and(|airtime| state.load().goes_cheaper_as_packets(airtime))
    }

    /// Sends the waiting ACKs as packets, in order.
    fn flush(&mut self, peer: usize) {
        let variant = self.config.variant;
        let waiting = self.forget_waiting(peer);
        if variant == Variant::Opportunistic {
            // They are already in the transmit queue.
            return;
        }
        self.counters.flushed_acks += waiting.len() as u64;
        for packet in waiting {
            self.send_native(peer, packet);
        }
    }

    /// Removes all waiting ACKs; packets must refresh their contexts.
    fn forget_waiting(&mut self, peer: usize) -> Vec<P> {
        (self.peers[peer].job_at, self.peers[peer].hold_until) = (None, None);
        self.note_deadline(peer);
        let state = &mut self.peers[peer];
        let mut waiting: Vec<P> = state.fresh.drain(..).flat_map(|fresh| fresh.packets).collect();
        waiting.extend(state.finished.drain(..).flat_map(|finished| finished.packets));
        waiting.append(&mut state.building);
        state.building_bytes = 0;
        waiting.extend(state.postponed.drain(..).map(|waiting| waiting.packet));
        if waiting.is_empty() {
            return waiting;
        }
        self.bytes.clear();
        state.encoder.finish_frame(&mut self.bytes);
        for packet in &waiting {
            self.bytes.clear();
            packet.write_to(&mut self.bytes);
            state.encoder.invalidate(&self.bytes);
        }
        self.actions.push_back(Action::ClearFresh(peer));
        waiting
    }

    /// Gives up frames that were sent and not proven; packets must refresh their contexts.
    fn forget_retained(&mut self, peer: usize) {
        let state = &mut self.peers[peer];
        if state.retained.is_empty() {
            return;
        }
        state.retained.clear();
        state.retained_frames.clear();
        state.encoder.invalidate_all();
        self.actions.push_back(Action::ClearRetained(peer));
    }

    /// Before an ACK of `flow` is sent as a packet: ensures that no older ACK of the flow follows it.
    fn make_way(&mut self, peer: usize, flow: FlowKey) {
        let state = &self.peers[peer];
        let in_nic = state.fresh.iter().flat_map(|fresh| &fresh.packets);
        let on_their_way = state.finished.iter().flat_map(|finished| &finished.packets);
        let postponed = state.postponed.iter().map(|waiting| &waiting.packet);
        let mut waiting = in_nic.chain(on_their_way).chain(&state.building).chain(postponed);
        if waiting.any(|packet| packet.flow_key() == flow) {
            self.flush(peer);
        }
    }

    fn send_native(&mut self, peer: usize, packet: P) {
        let flow = packet.flow_key();
        if self.config.variant != Variant::Opportunistic && self.peers[peer].retained.contains(&flow) {
            // Figure 7: cumulative ACKs cover those that may have been lost. Flows that shared those frames do not know
            // the peer's contexts, and also need new ones.
            self.forget_retained(peer);
            self.flush(peer);
        }
        let state = &mut self.peers[peer];
        state.native_queued(flow);
        self.counters.native_acks += 1;
        counters_of(&mut state.flows, flow).native_acks += 1;
        self.actions.push_back(Action::Send(peer, packet));
    }
}

/// Flows per peer with separate counters; on a live hop, further flows are counted together.
const COUNTED_FLOWS: usize = 256;
/// Key for the flows counted together.
const OTHER_FLOWS: FlowKey = FlowKey::OTHERS;

fn counters_of(flows: &mut Vec<(FlowKey, FlowCounters)>, flow: FlowKey) -> &mut FlowCounters {
    let is_known = |flow| flows.iter().any(|(key, _)| *key == flow);
    let flow = if flows.len() < COUNTED_FLOWS || is_known(flow) { flow } else { OTHER_FLOWS };
    let at = flows.iter().position(|(key, _)| *key == flow).unwrap_or_else(|| {
        flows.push((flow, FlowCounters::default()));
        flows.len() - 1
    });
    &mut flows[at].1
}
