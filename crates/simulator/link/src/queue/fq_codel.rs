//! FQ-CoDel (RFC 8290): flows take turns by bytes, new flows before those with a standing queue, and each flow has
//! CoDel.

use std::collections::VecDeque;

use tacit_packet::FlowKey;
use tacit_packet::units::{Bytes, Instant};

use super::codel::Control;
use super::fifo::Fifo;
use super::{FqCoDelConfig, QueueLimit, Queued};
use crate::packet::PacketRef;

/// Marks a bucket that no flow has used yet.
const UNUSED: u16 = u16::MAX;

/// The queue of one bucket.
#[derive(Clone, Debug)]
struct Flow {
    fifo: Fifo,
    control: Control,
    /// Bytes it may still send in this turn; negative if it has borrowed.
    credit: i64,
    /// True if it is in the list of new or of old flows.
    listed: bool,
}

/// Queues of flows with a common limit.
#[derive(Clone, Debug)]
pub struct FqCoDel {
    pub(super) limit: QueueLimit,
    config: FqCoDelConfig,
    /// Index into `flows` for each bucket.
    buckets: Vec<u16>,
    /// Flows of the buckets used so far.
    flows: Vec<Flow>,
    /// Flows whose queues were empty, in order of arrival.
    new: VecDeque<u16>,
    /// Other flows with queued packets, in the order of their turns.
    old: VecDeque<u16>,
    /// The packet that was decided on but not taken yet.
    next: Option<Queued>,
    packets: usize,
    bytes: Bytes,
    largest: Bytes,
    peak: usize,
}

impl FqCoDel {
    /// An empty queue.
    pub fn new(limit: QueueLimit, config: FqCoDelConfig) -> Self {
        Self {
            limit,
            config,
            buckets: vec![UNUSED; usize::from(config.flows.max(1))],
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            next: None,
            packets: 0,
            bytes: Bytes(0),
            largest: Bytes(0),
            peak: 0,
        }
    }

    /// Never refuses: if a packet does not fit, the longest flow loses its oldest packets.
    pub(super) fn push(
        &mut self,
        now: Instant,
        payload: PacketRef,
        dropped: &mut impl FnMut(PacketRef),
    ) -> bool {
        let len = payload.len();
        let fits = self.has_room(len);
        let index = self.flow_of(payload.flow);
        let flow = &mut self.flows[usize::from(index)];
        if !flow.listed {
            flow.listed = true;
            flow.credit = i64::from(self.config.quantum);
            self.new.push_back(index);
        }
        flow.fifo.push(Queued::new(payload, now));
        self.packets += 1;
        self.bytes += len;
        self.largest = self.largest.max(len);
        if !fits {
            while !self.limit.admits(self.packets.saturating_sub(1), self.bytes, Bytes(0))
                && self.drop_from_longest(dropped)
            {}
        }
        self.peak = self.peak.max(self.packets);
        true
    }

    pub(super) fn has_room(&self, len: Bytes) -> bool {
        self.limit.admits(self.packets, self.bytes, len)
    }

    /// The flow of the bucket for `key`.
    fn flow_of(&mut self, key: FlowKey) -> u16 {
        // Fibonacci hashing spreads consecutive flow numbers over the buckets.
        let spread = (key.as_u64().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let count = self.buckets.len();
        let bucket = &mut self.buckets[(spread * count) >> 32];
        if *bucket == UNUSED {
            *bucket = self.flows.len() as u16;
            self.flows.push(Flow {
                fifo: Fifo::new(),
                control: Control::default(),
                credit: 0,
                listed: false,
            });
        }
        *bucket
    }

    /// Drops the oldest packet of the flow with the most waiting bytes; returns false if nothing waits (RFC 8290
    /// section 4.1; one packet at a time, as in mac80211).
    fn drop_from_longest(&mut self, dropped: &mut impl FnMut(PacketRef)) -> bool {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.fifo.bytes());
        let Some(queued) = longest.and_then(|flow| flow.fifo.pop()) else { return false };
        self.packets -= 1;
        self.bytes -= queued.len();
        dropped(queued.payload);
        true
    }

    pub(super) fn front(&mut self, now: Instant, dropped: &mut impl FnMut(PacketRef)) -> Option<&Queued> {
        if self.next.is_none() {
            self.next = self.dequeue(now, dropped);
        }
        self.next.as_ref()
    }

    /// RFC 8290 section 4.2. The returned packet still counts as waiting.
    fn dequeue(&mut self, now: Instant, dropped: &mut impl FnMut(PacketRef)) -> Option<Queued> {
        loop {
            let was_new = !self.new.is_empty();
            let list = if was_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[usize::from(index)];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (&mut self.packets, &mut self.bytes);
            let mut gone = |payload: PacketRef| {
                *packets -= 1;
                *bytes -= payload.len();
                dropped(payload);
            };
            let codel = &self.config.codel;
            if let Some(queued) = flow.control.dequeue(codel, self.largest, &mut flow.fifo, now, &mut gone) {
                flow.credit -= queued.len().0 as i64;
                return Some(queued);
            }
            list.pop_front();
            if was_new && !self.old.is_empty() {
                // It must pass the list of old flows before it can be new again, so that a flow cannot starve others by
                // pausing often.
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        let queued = self.next.take()?;
        self.packets -= 1;
        self.bytes -= queued.len();
        Some(queued)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.next.iter().chain(self.flows.iter().flat_map(|flow| flow.fifo.iter()))
    }

    pub(super) fn waiting_since(&self) -> Option<Instant> {
        match &self.next {
            Some(queued) => Some(queued.at),
            // The next flow is only decided on request.
            None => (self.packets > 0).then_some(Instant::ZERO),
        }
    }

    pub(super) fn oldest_at(&self) -> Option<Instant> {
        let heads = self.flows.iter().filter_map(|flow| flow.fifo.front());
        self.next.iter().chain(heads).map(|queued| queued.at).min()
    }

    pub(super) fn each(&mut self, see: &mut impl FnMut(&mut PacketRef)) {
        self.next.iter_mut().for_each(|queued| see(&mut queued.payload));
        self.flows.iter_mut().for_each(|flow| flow.fifo.each(see));
    }

    pub(super) fn retract(&mut self, mut unwanted: impl FnMut(&PacketRef) -> bool) -> usize {
        let before = self.packets;
        if self.next.as_ref().is_some_and(|queued| unwanted(&queued.payload)) {
            self.pop();
        }
        let (packets, bytes) = (&mut self.packets, &mut self.bytes);
        for flow in &mut self.flows {
            flow.fifo.retract(&mut unwanted, &mut |len| {
                *packets -= 1;
                *bytes -= len;
            });
        }
        before - self.packets
    }

    pub(super) fn len(&self) -> usize {
        self.packets
    }

    pub(super) fn peak(&self) -> usize {
        self.peak
    }

    pub(super) fn reset_peak(&mut self) {
        self.peak = self.packets;
    }

    pub(super) fn marks(&self) -> u64 {
        self.flows.iter().map(|flow| flow.control.marks).sum()
    }
}

#[cfg(test)]
#[path = "fq_codel_tests.rs"]
mod tests;
