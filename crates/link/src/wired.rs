//! A one-way pipe: a queue, a transmitter of fixed rate, a delay, and perhaps losses.

use std::collections::VecDeque;

use tacit_proto::units::{BitRate, Bytes, Duration, Instant};

use crate::loss::{Loss, LossProcess};
use crate::payload::Payload;
use crate::queue::QueueLimit;
use crate::random::Stream;

/// One direction of a wired link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeConfig {
    /// Transmission rate.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Duration,
    /// What waits for the transmitter.
    pub queue: QueueLimit,
    /// What is lost after transmission.
    pub loss: Loss,
}

/// What a pipe did with the packets it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipeCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets that came out.
    pub delivered: u64,
    /// Packets the queue refused.
    pub dropped: u64,
    /// Packets the loss model took.
    pub lost: u64,
}

/// One direction of a wired link at work.
///
/// A packet's whole future is known when it is queued, so however many are in flight there is one
/// pending event: the next arrival.
#[derive(Clone, Debug)]
pub struct Pipe<P> {
    config: PipeConfig,
    loss: LossProcess,
    /// When the transmitter finishes what it has.
    free_at: Instant,
    /// In flight or waiting, in order of arrival.
    transit: VecDeque<InTransit<P>>,
    /// Transmission of everything before this index of `transit` has begun; the rest is the queue.
    begun: usize,
    /// Octets from `begun` on.
    queued_bytes: Bytes,
    counters: PipeCounters,
}

#[derive(Clone, Debug)]
struct InTransit<P> {
    transmission_at: Instant,
    arrival_at: Instant,
    lost: bool,
    payload: P,
}

impl<P: Payload> Pipe<P> {
    /// An idle pipe whose losses are drawn from `stream`.
    pub fn new(config: PipeConfig, stream: Stream) -> Self {
        let loss = LossProcess::new(config.loss.clone(), stream);
        Self {
            config,
            loss,
            free_at: Instant::ZERO,
            transit: VecDeque::new(),
            begun: 0,
            queued_bytes: Bytes(0),
            counters: PipeCounters::default(),
        }
    }

    /// Offers `payload` at `now`; returns false when the queue dropped it.
    pub fn enqueue(&mut self, now: Instant, payload: P) -> bool {
        self.counters.offered += 1;
        let len = payload.len();
        if !self.has_room(now, len) {
            self.counters.dropped += 1;
            return false;
        }
        let transmission_at = self.free_at.max(now);
        self.free_at = transmission_at + self.config.rate.time_for(len);
        let arrival_at = self.free_at + self.config.delay;
        let lost = self.loss.takes();
        self.queued_bytes += len;
        self.transit.push_back(InTransit { transmission_at, arrival_at, lost, payload });
        true
    }

    /// True when a packet of `len` octets would be taken at `now`.
    pub fn has_room(&mut self, now: Instant, len: Bytes) -> bool {
        while let Some(next) = self.transit.get(self.begun) {
            if next.transmission_at > now {
                break;
            }
            self.queued_bytes -= next.payload.len();
            self.begun += 1;
        }
        self.config.queue.admits(self.transit.len() - self.begun, self.queued_bytes, len)
    }

    /// The next packet that has arrived by `now`; lost ones are skipped. Drain it to `None`.
    pub fn poll_deliver(&mut self, now: Instant) -> Option<P> {
        while self.transit.front()?.arrival_at <= now {
            let transit = self.transit.pop_front()?;
            if self.begun == 0 {
                // Arrived, hence transmitted, though nobody asked for room meanwhile.
                self.queued_bytes -= transit.payload.len();
            } else {
                self.begun -= 1;
            }
            if transit.lost {
                self.counters.lost += 1;
            } else {
                self.counters.delivered += 1;
                return Some(transit.payload);
            }
        }
        None
    }

    /// When the next packet arrives, lost or not.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.transit.front().map(|transit| transit.arrival_at)
    }

    /// Packets waiting for the transmitter, as of the last question about room.
    pub fn waiting(&self) -> usize {
        self.transit.len() - self.begun
    }

    /// When half of what waits will have gone to the transmitter; `None` when nothing waits.
    pub fn half_begun_at(&self) -> Option<Instant> {
        self.transit.get(self.begun + self.waiting() / 2).map(|transit| transit.transmission_at)
    }

    /// Counters since the start.
    pub fn counters(&self) -> PipeCounters {
        self.counters
    }

    /// Packets accepted that have not come out yet.
    pub fn in_transit(&self) -> usize {
        self.transit.len()
    }
}

#[cfg(test)]
mod tests {
    use tacit_proto::packet::{IpHeader, Packet, Transport};
    use tacit_proto::udp::Datagram;
    use tacit_proto::units::{FlowId, HostId};

    use super::*;

    fn packet(number: u64) -> Packet {
        Packet {
            flow: FlowId(0),
            source: HostId(0),
            destination: HostId(1),
            ip: IpHeader::default(),
            transport: Transport::Udp(Datagram { number, payload_len: 1472 }),
        }
    }

    fn number(packet: Packet) -> u64 {
        match packet.transport {
            Transport::Udp(datagram) => datagram.number,
            Transport::Tcp(_) => unreachable!("only datagrams were sent"),
        }
    }

    fn pipe(queue_packets: u32, loss: Loss) -> Pipe<Packet> {
        let config = PipeConfig {
            rate: BitRate::from_mbps(12),
            delay: Duration::from_millis(5),
            queue: QueueLimit { packets: Some(queue_packets), bytes: None },
            loss,
        };
        Pipe::new(config, Stream::new(1, "pipe"))
    }

    #[test]
    fn packets_arrive_after_their_turn_and_the_delay() {
        let mut pipe = pipe(10, Loss::None);
        assert!(pipe.enqueue(Instant::ZERO, packet(0)));
        assert!(pipe.enqueue(Instant::ZERO, packet(1)));
        // 1500 octets at 12 Mb/s last 1 ms.
        let first = Instant::ZERO + Duration::from_millis(6);
        assert_eq!(pipe.poll_timeout(), Some(first));
        assert_eq!(pipe.poll_deliver(first - Duration::from_nanos(1)), None);
        assert_eq!(pipe.poll_deliver(first).map(number), Some(0));
        assert_eq!(pipe.poll_deliver(first), None);
        assert_eq!(pipe.poll_timeout(), Some(first + Duration::from_millis(1)));
    }

    #[test]
    fn the_queue_counts_only_what_waits() {
        let mut pipe = pipe(1, Loss::None);
        assert!(pipe.enqueue(Instant::ZERO, packet(0)), "goes to the transmitter at once");
        assert!(pipe.enqueue(Instant::ZERO, packet(1)), "waits");
        assert!(!pipe.enqueue(Instant::ZERO, packet(2)), "would wait as second");
        let later = Instant::ZERO + Duration::from_millis(1);
        assert!(pipe.enqueue(later, packet(3)), "the first has gone, the second is on its way");
        assert_eq!(pipe.counters(), PipeCounters { offered: 4, delivered: 0, dropped: 1, lost: 0 });
    }

    #[test]
    fn scripted_losses_take_exactly_those_packets() {
        let mut pipe = pipe(10, Loss::Scripted(vec![1, 2]));
        for n in 0..4 {
            pipe.enqueue(Instant::ZERO, packet(n));
        }
        let end = Instant::ZERO + Duration::from_secs(1);
        let delivered: Vec<_> = std::iter::from_fn(|| pipe.poll_deliver(end)).map(number).collect();
        assert_eq!(delivered, [0, 3]);
        assert_eq!(pipe.counters().lost, 2);
        assert_eq!(pipe.in_transit(), 0);
    }
}
