//! A transmitter with one rate and a drop-tail queue before it. The time at which a packet leaves is known when it
//! arrives.

use std::collections::VecDeque;

use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

use super::{NEVER, PipeConfig, Service, Waits};
use crate::queue::{AckFilter, Discipline, QueueLimit};
use crate::wired::impair::Impairments;

/// State of such a transmitter. The packets are stored with those in flight, because after acceptance no decision about
/// them is left.
///
/// It accepts the same packets, which leave at the same times after the same waits, as a drop-tail
/// [`Queue`](crate::queue::Queue) before the same transmitter.
#[derive(Clone, Debug)]
pub(super) struct DropTailTransmitter {
    rate: BitRate,
    limit: QueueLimit,
    /// When it will have transmitted all accepted packets.
    free_at: Instant,
    /// Packets whose transmission has not started, in order.
    waiting: VecDeque<Waiting>,
    /// Bytes of these packets.
    bytes: Bytes,
    /// When the transmission of the first waiting packet starts; [`NEVER`] if none waits.
    next_start: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    starts_at: Instant,
    wait: Duration,
    len: Bytes,
}

impl DropTailTransmitter {
    /// The line for `config`; `None` if the fate of a packet may depend on those after it, or on more than a rate.
    pub fn from_config(config: &PipeConfig) -> Option<Self> {
        let Service::Rate(rate) = config.service else { return None };
        let plain = config.queue.discipline == Discipline::DropTail
            && config.ack_filter == AckFilter::Off
            && config.impairments == Impairments::NONE;
        plain.then(|| Self {
            rate,
            limit: config.queue.limit,
            free_at: Instant::ZERO,
            waiting: VecDeque::new(),
            bytes: Bytes(0),
            next_start: NEVER,
        })
    }

    /// Records in `waits` the waiting times of the packets whose transmission has started by `now`.
    #[inline]
    pub fn advance(&mut self, now: Instant, waits: &mut Waits) {
        while self.next_start <= now {
            let Some(begun) = self.waiting.pop_front() else { break };
            self.bytes -= begun.len;
            waits.record(begun.wait);
            self.next_start = self.waiting.front().map_or(NEVER, |next| next.starts_at);
        }
    }

    /// Accepts a packet of `len` bytes at `now`, to which it has [advanced](Self::advance); returns when its
    /// transmission ends, or `None` if the queue is full.
    #[inline]
    pub fn take(&mut self, now: Instant, len: Bytes, waits: &mut Waits) -> Option<Instant> {
        if !self.has_room(len) {
            return None;
        }
        let starts_at = self.free_at.max(now);
        self.free_at = starts_at + self.rate.time_for(len);
        if starts_at == now {
            waits.record(Duration::ZERO);
        } else {
            self.wait(Waiting { starts_at, wait: starts_at - now, len });
        }
        Some(self.free_at)
    }

    fn wait(&mut self, waiting: Waiting) {
        if self.waiting.is_empty() {
            self.next_start = waiting.starts_at;
        }
        self.bytes += waiting.len;
        self.waiting.push_back(waiting);
    }

    /// True if a packet of `len` bytes would be accepted.
    #[inline]
    pub fn has_room(&self, len: Bytes) -> bool {
        self.limit.admits(self.waiting.len(), self.bytes, len)
    }

    /// When the transmission of the first waiting packet starts; [`NEVER`] if none waits.
    #[inline]
    pub fn next_start(&self) -> Instant {
        self.next_start
    }

    /// Since when the first waiting packet has waited; `None` if none waits.
    pub fn oldest_at(&self) -> Option<Instant> {
        self.waiting.front().map(|first| first.starts_at - first.wait)
    }

    /// Packets whose transmission has not started.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When the transmission of half of them will have started; `None` if none waits.
    pub fn half_begun_at(&self) -> Option<Instant> {
        self.waiting.get(self.waiting.len() / 2).map(|waiting| waiting.starts_at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::loss::Loss;
    use crate::packet::{Holders, PacketRef};
    use crate::wired::staged::Staged;
    use crate::wired::{Entry, Pipe};
    use tacit_packet::FlowKey;
    use tacit_packet::units::{FlowId, HostId};

    /// Two pipes for `config`: one as a line, one with a queue and a transmitter.
    fn both(config: &PipeConfig) -> [Pipe; 2] {
        let line = Pipe::new(config.clone(), 1, "pipe");
        assert!(matches!(line.entry, Entry::DropTail(_)));
        let staged = Entry::Staged(Box::new(Staged::new(config, 1, "pipe")));
        [line, Pipe::with_entry(staged, config.clone(), 1, "pipe")]
    }

    fn configs() -> impl Strategy<Value = PipeConfig> {
        let loss = prop_oneof![Just(Loss::None), Just(Loss::Scripted(vec![1, 2, 5, 30]))];
        let packets = proptest::option::of(0_u32..6);
        let bytes = proptest::option::of((0_u64..6_000).prop_map(Bytes));
        (0_u64..3_000, packets, bytes, loss).prop_map(|(delay_us, packets, bytes, loss)| PipeConfig {
            loss,
            ..PipeConfig::new(
                BitRate::from_mbps(12),
                Duration::from_micros(delay_us),
                QueueLimit { packets, bytes }.into(),
            )
        })
    }

    #[derive(Clone, Copy, Debug)]
    enum Call {
        Enqueue(u32),
        Deliver,
        HasRoom(u64),
        StartMeasuring,
    }

    fn calls() -> impl Strategy<Value = Vec<(u64, Call)>> {
        let call = prop_oneof![
            6 => (1_u32..2_000).prop_map(Call::Enqueue),
            3 => Just(Call::Deliver),
            1 => (1_u64..2_000).prop_map(Call::HasRoom),
            1 => Just(Call::StartMeasuring),
        ];
        proptest::collection::vec((prop_oneof![Just(0), 0_u64..1_500], call), 0..100)
    }

    proptest! {
        #[test]
        fn a_line_says_what_a_queue_and_a_transmitter_do(config in configs(), calls in calls()) {
            let mut pipes = both(&config).map(|pipe| (pipe, Holders::default()));
            let mut now = Instant::ZERO;
            for (number, (later_us, call)) in (0..).zip(calls) {
                now += Duration::from_micros(later_us);
                let outcome = pipes.each_mut().map(|(pipe, holders)| {
                    let outcome = match call {
                        Call::Enqueue(len) => {
                            let flow = FlowKey::simulated(FlowId(number), HostId(0));
                            let packet = PacketRef { id: holders.insert(), len, flow, ..PacketRef::default() };
                            (pipe.enqueue(now, packet, holders), None)
                        }
                        Call::Deliver => {
                            let arrived = std::iter::from_fn(|| pipe.poll_deliver(now, holders));
                            (true, Some(arrived.map(|packet| (packet.flow, packet.len)).collect::<Vec<_>>()))
                        }
                        Call::HasRoom(len) => (pipe.has_room(now, Bytes(len), holders), None),
                        Call::StartMeasuring => {
                            pipe.start_measuring();
                            (true, None)
                        }
                    };
                    let waiting =
                        (pipe.waiting(), pipe.half_begun_at(), pipe.in_transit(), pipe.longest_wait(now, holders));
                    (outcome, pipe.poll_timeout(), waiting, pipe.counters(), pipe.queueing_delay_us())
                });
                prop_assert_eq!(&outcome[0], &outcome[1]);
            }
        }
    }
}
