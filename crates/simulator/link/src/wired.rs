//! A one-way pipe: a queue, a transmitter, a delay, and impairments of the path.

mod impair;
mod line;
mod service;
mod staged;
mod thinner;

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use tacit_packet::FlowKey;
use tacit_packet::tcp::Segment;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

pub use self::impair::{Distribution, Impairments, Jitter, Order, Reordering};
use self::line::DropTailTransmitter;
pub use self::service::{RateScript, Service};
use self::staged::{Parts, Staged};
use self::thinner::Thinner;
use crate::loss::{Loss, LossProcess};
use crate::packet::{Holders, PacketRef};
use crate::queue::{AckFilter, QueueConfig};
use crate::random::Stream;

/// Histogram of waiting times, accurate to 3 %.
type Waits = crate::waits::Waits<6>;

/// One direction of a wired or cellular link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeConfig {
    /// Rate or schedule of transmission.
    pub service: Service,
    /// Propagation delay.
    pub delay: Duration,
    /// The queue before the transmitter.
    pub queue: QueueConfig,
    /// Treatment of pure TCP ACKs that wait, or that wait before the queue.
    pub ack_filter: AckFilter,
    /// Losses after transmission.
    pub loss: Loss,
    /// Other impairments after transmission.
    pub impairments: Impairments,
}

impl PipeConfig {
    /// A queue of `queue` before a transmitter of `rate`, then a delay of `delay`, without loss.
    pub const fn new(rate: BitRate, delay: Duration, queue: QueueConfig) -> Self {
        Self {
            service: Service::Rate(rate),
            delay,
            queue,
            ack_filter: AckFilter::Off,
            loss: Loss::None,
            impairments: Impairments::NONE,
        }
    }
}

tacit_packet::counters! {
    /// What happened to the packets given to a pipe. Each of those `offered` and `duplicated` was delivered, dropped or
    /// lost, or is still in the pipe.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct PipeCounters {
        /// Packets offered.
        offered: u64,
        /// Packets that left the pipe.
        delivered: u64,
        /// Bytes of these packets.
        delivered_bytes: Bytes,
        /// Packets that the queue refused, or dropped after accepting them.
        dropped: u64,
        /// Pure ACKs that the ACK filter dropped from the queue or before it.
        filtered_acks: u64,
        /// Packets that the loss model dropped.
        lost: u64,
        /// Copies created by duplication.
        duplicated: u64,
    }
}

/// Later than every event.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// A running direction of a wired or cellular link.
///
/// However many packets are in flight, one event is pending: the next arrival, or the next transmission if no packet is
/// in flight or packets may overtake one another.
#[derive(Clone, Debug)]
pub struct Pipe {
    config: PipeConfig,
    loss: LossProcess,
    entry: Entry,
    /// Holds ACKs before the queue.
    thinner: Option<Box<Thinner>>,
    /// Packets that arrive in the order in which they were sent. Packets that wait to be sent are included if they have
    /// no queue of their own.
    transit: VecDeque<InTransit>,
    counters: PipeCounters,
    waits: Waits,
    /// Those of L4S packets in a queue with an AQM.
    l4s_waits: Waits,
}

/// Where packets wait, and their transmitter.
#[derive(Clone, Debug)]
enum Entry {
    /// A drop-tail queue before a fixed rate, as on most wires.
    DropTail(DropTailTransmitter),
    /// Any other configuration.
    Staged(Box<Staged>),
}

#[derive(Clone, Copy, Debug)]
struct InTransit {
    /// When it arrives.
    at: Instant,
    lost: bool,
    payload: PacketRef,
}

impl Pipe {
    /// An idle pipe. Loss, jitter, reordering and duplication each draw from a stream of `seed` named after the
    /// impairment and `name`.
    pub fn new(config: PipeConfig, seed: u64, name: &str) -> Self {
        let entry = match DropTailTransmitter::from_config(&config) {
            Some(line) => Entry::DropTail(line),
            None => Entry::Staged(Box::new(Staged::new(&config, seed, name))),
        };
        Self::with_entry(entry, config, seed, name)
    }

    fn with_entry(entry: Entry, config: PipeConfig, seed: u64, name: &str) -> Self {
        let loss = LossProcess::new(config.loss.clone(), Stream::new(seed, &format!("loss {name}")));
        let thinner = (config.ack_filter == AckFilter::Thin).then(|| Box::new(Thinner::new()));
        Self {
            config,
            loss,
            entry,
            thinner,
            transit: VecDeque::new(),
            counters: PipeCounters::default(),
            waits: Waits::new(),
            l4s_waits: Waits::new(),
        }
    }

    /// Offers `payload` at `now`; returns false if the queue dropped it.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, packet: PacketRef, holders: &mut Holders) -> bool {
        self.counters.offered += 1;
        let Entry::DropTail(line) = &mut self.entry else {
            return self.enqueue_staged(now, packet, holders);
        };
        line.advance(now, &mut self.waits);
        let len = packet.len();
        let Some(end) = line.take(now, len, &mut self.waits) else {
            self.counters.dropped += 1;
            holders.release(packet);
            return false;
        };
        let lost = self.loss.takes();
        self.transit.push_back(InTransit { at: end + self.config.delay, lost, payload: packet });
        true
    }

    #[inline(never)]
    fn enqueue_staged(&mut self, now: Instant, packet: PacketRef, holders: &mut Holders) -> bool {
        self.advance(now, holders);
        self.with_thinner(holders, |thinner, staged, beside| match thinner {
            Some(thinner) => {
                thinner.offer(now, packet, staged, beside);
                true
            }
            None => staged.enqueue(now, packet, beside),
        })
        .unwrap_or(false)
    }

    /// Calls `act` with what holds ACKs, and with the queue and the transmitter if they are separate.
    fn with_thinner<T>(
        &mut self,
        holders: &mut Holders,
        act: impl FnOnce(Option<&mut Thinner>, &mut Staged, Parts<'_>) -> T,
    ) -> Option<T> {
        let mut thinner = self.thinner.take();
        let result = self.staged(holders).map(|(staged, beside)| act(thinner.as_deref_mut(), staged, beside));
        self.thinner = thinner;
        result
    }

    /// Whether it wants to get [`Pipe::on_reverse_segment`] for what arrives where it begins.
    pub fn thins(&self) -> bool {
        self.thinner.is_some()
    }

    /// `segment`, which answers packets of the flow `answered`, arrived at the host that sends into this pipe.
    pub fn on_reverse_segment(&mut self, now: Instant, answered: FlowKey, segment: &Segment) {
        if let Some(thinner) = &mut self.thinner {
            thinner.on_reverse_segment(now, answered, segment);
        }
    }

    /// The queue and the transmitter, if they are separate, and the other parts that they need.
    fn staged<'a>(&'a mut self, holders: &'a mut Holders) -> Option<(&'a mut Staged, Parts<'a>)> {
        let Entry::Staged(staged) = &mut self.entry else { return None };
        let beside = Parts {
            config: &self.config,
            loss: &mut self.loss,
            waits: &mut self.waits,
            l4s_waits: &mut self.l4s_waits,
            counters: &mut self.counters,
            transit: &mut self.transit,
            holders,
        };
        Some((staged, beside))
    }

    /// True if a packet of `len` bytes would be accepted at `now` without dropping another.
    #[inline]
    pub fn has_room(&mut self, now: Instant, len: Bytes, holders: &mut Holders) -> bool {
        self.advance(now, holders);
        match &self.entry {
            Entry::DropTail(line) => line.has_room(len),
            Entry::Staged(staged) => staged.has_room(len),
        }
    }

    /// Transmits the packets whose transmission has started by `now`.
    #[inline]
    fn advance(&mut self, now: Instant, holders: &mut Holders) {
        match &mut self.entry {
            Entry::DropTail(line) => line.advance(now, &mut self.waits),
            Entry::Staged(_) => self.advance_staged(now, holders),
        }
    }

    #[inline(never)]
    fn advance_staged(&mut self, now: Instant, holders: &mut Holders) {
        self.with_thinner(holders, |thinner, staged, mut beside| {
            staged.advance(now, &mut beside);
            if let Some(thinner) = thinner {
                thinner.turn(now, staged, &mut beside);
            }
        });
    }

    /// The next packet that has arrived by `now`; lost ones are skipped. Call this until it returns `None`.
    #[inline]
    pub fn poll_deliver(&mut self, now: Instant, holders: &mut Holders) -> Option<PacketRef> {
        self.advance(now, holders);
        while let Some(InTransit { lost, payload, .. }) = self.next_arrived(now) {
            if lost {
                self.counters.lost += 1;
                holders.release(payload);
            } else {
                self.counters.delivered += 1;
                self.counters.delivered_bytes += payload.len();
                return Some(payload);
            }
        }
        None
    }

    /// The next packet that has arrived by `now`, including lost ones.
    #[inline]
    fn next_arrived(&mut self, now: Instant) -> Option<InTransit> {
        if let Entry::Staged(staged) = &mut self.entry
            && let Some(packet) = staged.pop_impaired(now)
        {
            return packet;
        }
        // Packets that still wait in a drop-tail line have an arrival time in the future.
        if self.transit.front()?.at > now {
            return None;
        }
        self.transit.pop_front()
    }

    /// True if a packet is in flight and no packet offered now can arrive before it. In this case
    /// [`Pipe::poll_timeout`] does not change.
    #[inline]
    pub fn is_busy(&self) -> bool {
        matches!(&self.entry, Entry::DropTail(line) if self.transit.len() > line.waiting())
    }

    /// When to poll the pipe next: at the next arrival of a packet, lost or not, or earlier.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.entry {
            Entry::DropTail(line) if self.transit.len() > line.waiting() => {
                self.transit.front().map(|next| next.at)
            }
            Entry::DropTail(line) => Some(line.next_start()).filter(|at| *at != NEVER),
            Entry::Staged(staged) => {
                let next = staged.poll_timeout(self.transit.front().map(|next| next.at));
                let held = self.thinner.as_ref().and_then(|thinner| thinner.poll_timeout());
                next.into_iter().chain(held).min()
            }
        }
    }

    /// Packets waiting for the transmitter, as of the last call with a time.
    #[inline]
    pub fn waiting(&self) -> usize {
        match &self.entry {
            Entry::DropTail(line) => line.waiting(),
            Entry::Staged(staged) => staged.waiting(),
        }
    }

    /// How long the oldest waiting packet has waited at `now`; zero if none waits.
    pub fn longest_wait(&mut self, now: Instant, holders: &mut Holders) -> Duration {
        self.advance(now, holders);
        let since = match &self.entry {
            Entry::DropTail(line) => line.oldest_at(),
            Entry::Staged(staged) => staged.oldest_at(),
        };
        since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }

    /// When half of the waiting packets will have gone to the transmitter, provided that none is dropped and their
    /// order is kept; `None` if none waits.
    pub fn half_begun_at(&self) -> Option<Instant> {
        match &self.entry {
            Entry::DropTail(line) => line.half_begun_at(),
            Entry::Staged(staged) => staged.half_begun_at(&self.config),
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> PipeCounters {
        self.counters
    }

    /// Packets accepted that have not left the pipe yet.
    pub fn in_transit(&self) -> usize {
        self.transit.len()
            + match &self.entry {
                Entry::DropTail(_) => 0,
                Entry::Staged(staged) => staged.held(),
            }
            + self.thinner.as_ref().map_or(0, |thinner| thinner.iter().count())
    }

    /// Shows `see` these packets.
    pub fn each_held(&self, see: &mut dyn FnMut(&PacketRef)) {
        self.transit.iter().for_each(|packet| see(&packet.payload));
        if let Entry::Staged(staged) = &self.entry {
            staged.each_held(see);
        }
        self.thinner.iter().flat_map(|thinner| thinner.iter()).for_each(see);
    }

    /// Time from queueing to the start of transmission, in microseconds and accurate to 3 %, of packets whose
    /// transmission started after [`start_measuring`](Self::start_measuring).
    pub fn queueing_delay_us(&self) -> Histogram<u64> {
        self.waits.histogram()
    }

    /// The same of L4S packets (RFC 9331), in queues with an AQM.
    pub fn l4s_queueing_delay_us(&self) -> Histogram<u64> {
        self.l4s_waits.histogram()
    }

    /// Discards the queueing delays recorded so far.
    pub fn start_measuring(&mut self) {
        self.waits.reset();
        self.l4s_waits.reset();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacit_packet::udp::Datagram;
    use tacit_packet::units::{FlowId, HostId, Ratio};
    use tacit_packet::{IpHeader, Packet, Transport};

    use super::*;
    use crate::cellular::Trace;
    use crate::packet::tests::Store;
    use crate::queue::{CoDelConfig, Discipline, DualPi2Config, FqCoDelConfig, QueueLimit};

    /// A pipe, and the packets in it.
    struct Line {
        pipe: Pipe,
        store: Store,
    }

    impl Line {
        fn new(config: PipeConfig, seed: u64, name: &str) -> Self {
            Self { pipe: Pipe::new(config, seed, name), store: Store::default() }
        }

        fn enqueue(&mut self, now: Instant, packet: Packet) -> bool {
            let packet = self.store.insert(packet);
            self.pipe.enqueue(now, packet, &mut self.store.holders)
        }

        fn poll_deliver(&mut self, now: Instant) -> Option<Packet> {
            let packet = self.pipe.poll_deliver(now, &mut self.store.holders);
            self.store
                .holders
                .check(|see| {
                    packet.iter().for_each(&mut *see);
                    self.pipe.each_held(see);
                })
                .unwrap();
            packet.map(|packet| self.store.take(packet))
        }

        fn longest_wait(&mut self, now: Instant) -> Duration {
            self.pipe.longest_wait(now, &mut self.store.holders)
        }
    }

    impl std::ops::Deref for Line {
        type Target = Pipe;

        fn deref(&self) -> &Pipe {
            &self.pipe
        }
    }

    fn packet(number: u64) -> Packet {
        Packet {
            flow: FlowId(0),
            source: HostId(0),
            destination: HostId(1),
            ip: IpHeader::default(),
            transport: Transport::Udp(Datagram { number, payload_len: 1472 }),
        }
    }

    fn number(packet: &Packet) -> u64 {
        match packet.transport {
            Transport::Udp(datagram) => datagram.number,
            _ => unreachable!("only datagrams were sent"),
        }
    }

    /// At 12 Mb/s, 1500 bytes take 1 ms.
    fn config(queue_packets: u32) -> PipeConfig {
        let queue = QueueLimit { packets: Some(queue_packets), bytes: None };
        PipeConfig::new(BitRate::from_mbps(12), Duration::from_millis(5), queue.into())
    }

    fn pipe(queue_packets: u32, loss: Loss) -> Line {
        Line::new(PipeConfig { loss, ..config(queue_packets) }, 1, "pipe")
    }

    #[test]
    fn packets_arrive_after_their_turn_and_the_delay() {
        let mut pipe = pipe(10, Loss::None);
        assert!(pipe.enqueue(Instant::ZERO, packet(0)));
        assert!(pipe.enqueue(Instant::ZERO, packet(1)));
        // 1500 bytes at 12 Mb/s take 1 ms.
        let first = Instant::ZERO + Duration::from_millis(6);
        assert_eq!(pipe.poll_timeout(), Some(first));
        assert_eq!(pipe.poll_deliver(first - Duration::from_nanos(1)), None);
        assert_eq!(pipe.poll_deliver(first).map(|packet| number(&packet)), Some(0));
        assert_eq!(pipe.poll_deliver(first), None);
        assert_eq!(pipe.poll_timeout(), Some(first + Duration::from_millis(1)));
    }

    #[test]
    fn the_longest_wait_is_that_of_the_first() {
        let mut pipe = pipe(10, Loss::None);
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        assert_eq!(pipe.longest_wait(at(0)), Duration::ZERO);
        for (us, number) in [(0, 0), (100, 1), (900, 2)] {
            assert!(pipe.enqueue(at(us), packet(number)));
        }
        // Each takes 1 ms to send.
        assert_eq!(pipe.longest_wait(at(950)).as_micros(), 850);
        assert_eq!(pipe.longest_wait(at(1_000)).as_micros(), 100);
        assert_eq!(pipe.longest_wait(at(2_000)), Duration::ZERO);
    }

    #[test]
    fn the_queue_counts_only_what_waits() {
        let mut pipe = pipe(1, Loss::None);
        assert!(pipe.enqueue(Instant::ZERO, packet(0)), "goes to the transmitter at once");
        assert!(pipe.enqueue(Instant::ZERO, packet(1)), "waits");
        assert!(!pipe.enqueue(Instant::ZERO, packet(2)), "would wait as second");
        let later = Instant::ZERO + Duration::from_millis(1);
        assert!(pipe.enqueue(later, packet(3)), "the first has gone, the second is on its way");
        assert_eq!(pipe.counters(), PipeCounters { offered: 4, dropped: 1, ..PipeCounters::default() });
    }

    #[test]
    fn scripted_losses_take_exactly_those_packets() {
        let mut pipe = pipe(10, Loss::Scripted(vec![1, 2]));
        for n in 0..4 {
            pipe.enqueue(Instant::ZERO, packet(n));
        }
        let end = Instant::ZERO + Duration::from_secs(1);
        let delivered: Vec<_> =
            std::iter::from_fn(|| pipe.poll_deliver(end)).map(|packet| number(&packet)).collect();
        assert_eq!(delivered, [0, 3]);
        assert_eq!(pipe.counters().lost, 2);
        assert_eq!(pipe.in_transit(), 0);
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Sends `count` packets through an impaired pipe, one per millisecond; returns the packets that arrive, with times
    /// in microseconds.
    fn sent_through(impairments: Impairments, count: u64) -> (Vec<(u64, u64)>, PipeCounters) {
        let mut pipe = Line::new(PipeConfig { impairments, ..config(10) }, 1, "pipe");
        let mut out = Vec::new();
        let mut next = 0;
        loop {
            let offer_at = (next < count).then(|| at(next));
            let Some(now) = offer_at.into_iter().chain(pipe.poll_timeout()).min() else { break };
            while let Some(packet) = pipe.poll_deliver(now) {
                out.push((number(&packet), now.as_nanos() / 1_000));
            }
            if offer_at == Some(now) {
                assert!(pipe.enqueue(now, packet(next)), "the rate is that of the pipe");
                next += 1;
            }
        }
        assert_eq!(pipe.in_transit(), 0);
        (out, pipe.counters())
    }

    fn ratio(fraction: f64) -> Ratio {
        Ratio::from_fraction(fraction).unwrap()
    }

    #[test]
    fn a_full_queue_that_drops_its_head_keeps_the_newest() {
        let mut config = config(2);
        config.queue.discipline = Discipline::DropHead;
        let mut pipe = Line::new(config, 1, "pipe");
        assert!((0..6).all(|n| pipe.enqueue(Instant::ZERO, packet(n))));
        let end = Instant::ZERO + Duration::from_secs(1);
        let delivered: Vec<_> =
            std::iter::from_fn(|| pipe.poll_deliver(end)).map(|packet| number(&packet)).collect();
        assert_eq!(delivered, [0, 4, 5]);
        assert_eq!(pipe.counters().dropped, 3);
    }

    /// Offers twice the capacity for `ms`; returns the packets that arrive if the pipe is polled after every `every`
    /// packets.
    fn overloaded(discipline: Discipline, service: Service, ms: u64, every: u64) -> Vec<(u64, PipeCounters)> {
        let limit = QueueLimit { packets: Some(1_000), bytes: None };
        let config = PipeConfig { queue: QueueConfig { limit, discipline }, service, ..config(0) };
        let mut pipe = Line::new(config, 1, "pipe");
        let mut out = Vec::new();
        for n in 0..2 * ms {
            let now = Instant::ZERO + Duration::from_micros(500) * n;
            pipe.enqueue(now, Packet { flow: FlowId((n % 3) as u32), ..packet(n) });
            if n % every == 0 {
                while let Some(packet) = pipe.poll_deliver(now) {
                    out.push(number(&packet));
                }
            }
        }
        while let Some(at) = pipe.poll_timeout() {
            out.extend(std::iter::from_fn(|| pipe.poll_deliver(at)).map(|packet| number(&packet)));
        }
        assert_eq!(pipe.in_transit(), 0);
        out.into_iter().map(|n| (n, pipe.counters())).collect()
    }

    /// Decisions depend on their own time, not on the time of a poll.
    #[test]
    fn looking_at_a_pipe_changes_nothing() {
        let services = [
            Service::Rate(BitRate::from_mbps(12)),
            Service::Trace(Arc::new(Trace::parse("1\n2\n2\n4\n").unwrap())),
        ];
        let disciplines = [
            Discipline::DropTail,
            Discipline::DropHead,
            Discipline::CoDel(CoDelConfig::INTERNET),
            Discipline::FqCoDel(FqCoDelConfig::MAC80211),
            Discipline::DualPi2(DualPi2Config::INTERNET),
        ];
        for service in services {
            for discipline in disciplines {
                let often = overloaded(discipline, service.clone(), 2_000, 1);
                let seldom = overloaded(discipline, service.clone(), 2_000, 700);
                assert_eq!(often, seldom, "{discipline:?}");
            }
        }
    }

    /// A standing queue of a thousand packets is a delay of one second at 12 Mb/s. CoDel drops with increasing
    /// frequency until the delay is small. The sender here does not slow down, so it takes time.
    #[test]
    fn codel_keeps_the_delay_down() {
        let (_, tail) = overloaded(Discipline::DropTail, Service::Rate(BitRate::from_mbps(12)), 4_000, 1)[0];
        let codel = overloaded(
            Discipline::CoDel(CoDelConfig { ecn: false, ..CoDelConfig::INTERNET }),
            Service::Rate(BitRate::from_mbps(12)),
            4_000,
            1,
        );
        let (_, counters) = codel[0];
        assert!(tail.dropped > 0 && counters.dropped > 0);
        assert_eq!(counters.delivered + counters.dropped, counters.offered);
        let first_gap = codel.windows(2).position(|pair| pair[1].0 != pair[0].0 + 1).unwrap();
        // The delay exceeds 5 ms after 10 ms; one interval later the first packet is dropped, long before a queue is
        // full.
        assert!((100..130).contains(&first_gap), "after {first_gap} packets");
    }

    #[test]
    fn flows_take_turns_on_a_wire_too() {
        let discipline = Discipline::FqCoDel(FqCoDelConfig::MAC80211);
        let config = PipeConfig { queue: QueueConfig { discipline, ..config(0).queue }, ..config(0) };
        let config =
            PipeConfig { queue: QueueConfig { limit: QueueLimit::default(), ..config.queue }, ..config };
        let mut pipe = Line::new(config, 1, "pipe");
        let of_flow = |flow, n| Packet { flow: FlowId(flow), ..packet(n) };
        (0..6).for_each(|n| assert!(pipe.enqueue(Instant::ZERO, of_flow(0, n))));
        (10..12).for_each(|n| assert!(pipe.enqueue(Instant::ZERO, of_flow(1, n))));
        let delivered: Vec<_> =
            std::iter::from_fn(|| pipe.poll_deliver(at(100))).map(|packet| number(&packet)).collect();
        assert_eq!(
            delivered,
            [0, 10, 1, 11, 2, 3, 4, 5],
            "the flow that comes later is new, and gets its turn"
        );
    }

    #[test]
    fn queueing_delay_counts_everyone() {
        let mut pipe = pipe(10, Loss::None);
        for n in 0..4 {
            pipe.enqueue(Instant::ZERO, packet(n));
        }
        while pipe.poll_deliver(at(10)).is_some() {}
        let delays = pipe.queueing_delay_us();
        assert_eq!((delays.len(), delays.min()), (4, 0));
        assert!((2_950..=3_050).contains(&delays.max()), "{}", delays.max());
        pipe.pipe.start_measuring();
        assert_eq!(pipe.queueing_delay_us().len(), 0);
    }

    #[test]
    fn half_of_what_waits_begins_when_it_is_said_to() {
        let mut pipe = pipe(100, Loss::None);
        for n in 0..11 {
            pipe.enqueue(Instant::ZERO, packet(n));
        }
        assert_eq!((pipe.waiting(), pipe.half_begun_at()), (10, Some(at(6))));
        pipe.poll_deliver(at(6));
        assert_eq!(pipe.waiting(), 4);
    }

    #[test]
    fn a_trace_delivers_at_its_opportunities() {
        let trace = Trace::parse("2\n2\n7\n").unwrap();
        let config = PipeConfig { service: Service::Trace(Arc::new(trace)), ..config(10) };
        let mut pipe = Line::new(config, 1, "pipe");
        for n in 0..4 {
            pipe.enqueue(Instant::ZERO, packet(n));
        }
        let mut out = Vec::new();
        while let Some(now) = pipe.poll_timeout() {
            while let Some(packet) = pipe.poll_deliver(now) {
                out.push((number(&packet), now));
            }
        }
        // The delay is 5 ms; the trace repeats after 7 ms.
        assert_eq!(out, [(0, at(7)), (1, at(7)), (2, at(12)), (3, at(14))]);
    }

    #[test]
    fn jitter_that_keeps_order_delays_the_ones_behind() {
        for order in [Order::Kept, Order::Free] {
            let distribution = Distribution::Uniform(Duration::from_millis(4));
            let jitter = Some(Jitter { distribution, order });
            let (out, _) = sent_through(Impairments { jitter, ..Impairments::NONE }, 1_000);
            assert!(out.windows(2).all(|pair| pair[0].1 <= pair[1].1), "time goes on");
            let in_order = out.iter().map(|(number, _)| *number).eq(0..1_000);
            assert_eq!(in_order, order == Order::Kept);
            for (number, at_us) in out {
                // Sent at `number` ms, with 1 ms of transmission, 5 ms of delay, and 4 ms more or less.
                let delay_us = at_us - number * 1_000;
                assert!((2_000..=10_000).contains(&delay_us), "{delay_us}");
            }
        }
    }

    #[test]
    fn some_packets_fall_behind_so_many_others() {
        let reordering =
            Reordering { chance: ratio(0.02), packets: Some(3), delay: Duration::from_millis(50) };
        let (out, _) = sent_through(Impairments { reordering: Some(reordering), ..Impairments::NONE }, 2_000);
        let late: Vec<usize> = (1..out.len()).filter(|at| out[*at].0 < out[*at - 1].0).collect();
        assert!((20..60).contains(&late.len()), "{} of 2000", late.len());
        for place in late {
            let overtakers = out[..place].iter().filter(|(number, _)| *number > out[place].0).count();
            // There is one more if an overtaking packet was held back too.
            assert!((3..=4).contains(&overtakers), "{overtakers} overtook {}", out[place].0);
        }
    }

    #[test]
    fn a_packet_that_nobody_overtakes_waits_for_the_delay() {
        let reordering =
            Reordering { chance: Ratio::ONE, packets: Some(1), delay: Duration::from_millis(50) };
        let (out, _) = sent_through(Impairments { reordering: Some(reordering), ..Impairments::NONE }, 3);
        assert_eq!(out, [(0, 56_000), (1, 57_000), (2, 58_000)]);
    }

    /// At most 64 packets are held back at once; packets that arrive beyond that keep their position.
    #[test]
    fn packets_beyond_those_that_may_be_held_keep_their_place() {
        let reordering =
            Reordering { chance: Ratio::ONE, packets: Some(1_000), delay: Duration::from_secs(1) };
        let (out, _) = sent_through(Impairments { reordering: Some(reordering), ..Impairments::NONE }, 70);
        assert_eq!(out[..6].iter().map(|(number, _)| *number).collect::<Vec<_>>(), [64, 65, 66, 67, 68, 69]);
    }

    #[test]
    fn a_lost_packet_has_no_copies() {
        let impairments = Impairments { duplication: Ratio::ONE, ..Impairments::NONE };
        let config = PipeConfig { impairments, loss: Loss::Scripted(vec![1]), ..config(10) };
        let mut pipe = Line::new(config, 1, "pipe");
        assert!((0..3).all(|n| pipe.enqueue(Instant::ZERO, packet(n))));
        let delivered: Vec<_> =
            std::iter::from_fn(|| pipe.poll_deliver(at(1_000))).map(|packet| number(&packet)).collect();
        assert_eq!(delivered, [0, 0, 2, 2]);
        assert_eq!((pipe.counters().lost, pipe.counters().duplicated), (1, 2));
    }

    #[test]
    fn packets_that_stay_behind_by_time_arrive_that_much_later() {
        let reordering =
            Reordering { chance: ratio(0.1), packets: None, delay: Duration::from_micros(2_500) };
        let (out, _) = sent_through(Impairments { reordering: Some(reordering), ..Impairments::NONE }, 1_000);
        let late = out.iter().filter(|(number, at_us)| at_us - number * 1_000 == 8_500).count();
        let rest = out.iter().filter(|(number, at_us)| at_us - number * 1_000 == 6_000).count();
        assert!((70..130).contains(&late), "{late} of 1000");
        assert_eq!(late + rest, 1_000);
    }

    #[test]
    fn copies_come_out_beside_the_original_and_are_counted() {
        let (out, counters) =
            sent_through(Impairments { duplication: ratio(0.1), ..Impairments::NONE }, 1_000);
        assert!((70..130).contains(&counters.duplicated), "{counters:?}");
        assert_eq!(counters.delivered, 1_000 + counters.duplicated);
        let doubles = out.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        assert_eq!(doubles, counters.duplicated);
    }
}
