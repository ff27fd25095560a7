//! A separate queue, transmitter and path, for pipes in which the fate of a packet is decided when it is transmitted,
//! or later.

use std::collections::VecDeque;

use tacit_packet::units::{Bytes, Instant};

use super::impair::{Impaired, Impairments};
use super::service::Progress;
use super::{InTransit, NEVER, PipeConfig, PipeCounters, Waits};
use crate::loss::LossProcess;
use crate::packet::{Holders, PacketRef};
use crate::queue::{AckFilter, Queue};

/// The queue and the transmitter of a pipe, and the packets in flight if they may overtake one another.
#[derive(Clone, Debug)]
pub(super) struct Staged {
    progress: Progress,
    /// The queue before the transmitter.
    queue: Queue,
    /// When the first packet in it is transmitted or dropped by the discipline; [`NEVER`] if the queue is empty.
    next_start: Instant,
    impaired: Option<Impaired>,
}

/// The parts of a pipe that a transmission needs in addition to the queue.
pub(super) struct Parts<'a> {
    pub config: &'a PipeConfig,
    pub loss: &'a mut LossProcess,
    pub waits: &'a mut Waits,
    pub l4s_waits: &'a mut Waits,
    pub counters: &'a mut PipeCounters,
    pub transit: &'a mut VecDeque<InTransit>,
    pub holders: &'a mut Holders,
}

impl Parts<'_> {
    /// The same, taken by the call.
    pub fn reborrow(&mut self) -> Parts<'_> {
        Parts {
            config: self.config,
            loss: self.loss,
            waits: self.waits,
            l4s_waits: self.l4s_waits,
            counters: self.counters,
            transit: self.transit,
            holders: self.holders,
        }
    }
}

impl Staged {
    /// An empty one; draws come from streams of `seed` named after `name`.
    pub fn new(config: &PipeConfig, seed: u64, name: &str) -> Self {
        let is_impaired = config.impairments != Impairments::NONE;
        Self {
            progress: Progress::default(),
            queue: Queue::new(config.queue),
            next_start: NEVER,
            impaired: is_impaired.then(|| Impaired::new(config.impairments, seed, name)),
        }
    }

    /// Queues `packet` at `now`, to which it has [advanced](Self::advance); returns false if the packet was dropped.
    pub fn enqueue(&mut self, now: Instant, packet: PacketRef, mut pipe: Parts<'_>) -> bool {
        let waited = self.next_start != NEVER;
        let mut dropped = 0;
        let mut drop = |packet, holders: &mut Holders| {
            dropped += 1;
            holders.release(packet);
        };
        let filter = pipe.config.ack_filter;
        let (taken, filtered) = if filter == AckFilter::Off || !waited {
            (self.queue.push(now, packet, &mut |packet| drop(packet, pipe.holders)), 0)
        } else {
            filter.push(&mut self.queue, now, packet, pipe.holders, &mut drop)
        };
        if !taken {
            pipe.holders.release(packet);
        }
        pipe.counters.dropped += dropped + u64::from(!taken);
        pipe.counters.filtered_acks += filtered;
        if dropped + filtered > 0 || !waited {
            self.first_changed(pipe.config);
            self.advance(now, &mut pipe);
        }
        taken
    }

    /// Updates `next_start` after the first waiting packet changed.
    fn first_changed(&mut self, config: &PipeConfig) {
        let since = self.queue.waiting_since();
        self.next_start = since.map_or(NEVER, |since| self.progress.next_start(&config.service, since));
    }

    /// Transmits the packets whose transmission has started by `now`.
    pub fn advance(&mut self, now: Instant, pipe: &mut Parts<'_>) {
        // If packets leave in order of arrival, no decision is needed.
        let is_decided = matches!(self.queue, Queue::Bounded(_));
        while self.next_start <= now && (is_decided || self.decide(now, pipe)) {
            let queued = self.queue.pop().expect("it has a front");
            let since = queued.at;
            let (start, end) = self.progress.transmit(&pipe.config.service, since, queued.len());
            let wait = start.saturating_since(since);
            pipe.waits.record(wait);
            if !is_decided && queued.is_l4s {
                pipe.l4s_waits.record(wait);
            }
            let delay = pipe.config.delay;
            let packet = InTransit { at: end + delay, lost: pipe.loss.takes(), payload: queued.payload };
            match &mut self.impaired {
                None => pipe.transit.push_back(packet),
                Some(impaired) => {
                    pipe.counters.duplicated += impaired.launch(end, delay, packet, pipe.holders);
                }
            }
            self.first_changed(pipe.config);
        }
    }

    /// Whether the transmission of a packet starts by `now`. Which packet and when may be decided only then.
    #[inline(never)]
    fn decide(&mut self, now: Instant, pipe: &mut Parts<'_>) -> bool {
        while self.next_start <= now {
            let (dropped, holders) = (&mut pipe.counters.dropped, &mut *pipe.holders);
            let mut drop = |packet| {
                *dropped += 1;
                holders.release(packet);
            };
            let Some(first) = self.queue.front(self.next_start, &mut drop) else {
                self.next_start = NEVER;
                return false;
            };
            let start = self.progress.next_start(&pipe.config.service, first.at);
            if start <= self.next_start {
                return true;
            }
            // The packet arrived too late for that opportunity.
            self.next_start = start;
        }
        false
    }

    /// A packet that has arrived by `now`, if packets may overtake one another; the outer `None` means that they may
    /// not.
    pub fn pop_impaired(&mut self, now: Instant) -> Option<Option<InTransit>> {
        self.impaired.as_mut().map(|impaired| impaired.pop(now))
    }

    /// When to poll it next, if the first packet in flight in order arrives at `in_order`.
    pub fn poll_timeout(&self, in_order: Option<Instant>) -> Option<Instant> {
        let next_start = Some(self.next_start).filter(|at| *at != NEVER);
        match &self.impaired {
            None => in_order.or(next_start),
            Some(impaired) => impaired.next_arrival().into_iter().chain(next_start).min(),
        }
    }

    pub fn has_room(&self, len: Bytes) -> bool {
        self.queue.has_room(len)
    }

    /// Since when the oldest waiting packet has waited; `None` if none waits.
    pub fn oldest_at(&self) -> Option<Instant> {
        self.queue.oldest_at()
    }

    /// Packets waiting for the transmitter.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Bytes waiting for the transmitter.
    pub fn waiting_bytes(&self) -> Bytes {
        Bytes(self.queue.iter().map(|queued| queued.len().0).sum())
    }

    /// Packets waiting, plus those in flight that may overtake one another.
    pub fn held(&self) -> usize {
        self.queue.len() + self.impaired.as_ref().map_or(0, Impaired::len)
    }

    /// Shows `see` these packets.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        self.queue.iter().for_each(|queued| see(&queued.payload));
        self.impaired.iter().flat_map(Impaired::iter).for_each(see);
    }

    /// When half of the waiting packets will have gone to the transmitter, provided that none is dropped and their
    /// order is kept; `None` if none waits.
    pub fn half_begun_at(&self, config: &PipeConfig) -> Option<Instant> {
        let mut progress = self.progress;
        let half = self.waiting() / 2;
        for queued in self.queue.iter().take(half) {
            progress.transmit(&config.service, queued.at, queued.len());
        }
        self.queue.iter().nth(half).map(|queued| progress.next_start(&config.service, queued.at))
    }
}
