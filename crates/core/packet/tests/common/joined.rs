//! Two connections joined by two links, in a deterministic event loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tacit_packet::endpoint::{Ends, Event};
use tacit_packet::tcp::Timestamps;
use tacit_packet::units::{BitRate, Duration, FlowId, HostId, Instant};
use tacit_packet::{Ecn, Endpoint, Packet, Transport, wire};

/// SplitMix64: small and deterministic.
#[derive(Clone, Debug, Default)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// True once in `n` on average; never for zero.
    pub fn once_in(&mut self, n: u64) -> bool {
        n > 0 && self.next().is_multiple_of(n)
    }
}

/// One direction of the pipe.
#[derive(Clone, Debug)]
pub struct Link {
    /// `None` is infinitely fast.
    pub rate: Option<BitRate>,
    pub delay: Duration,
    /// Longest queueing time of a packet; packets that would wait longer are dropped.
    pub queue: Duration,
    /// Every n-th packet with payload is lost; 0: none.
    pub lose_every: u64,
    /// Packets with these numbers are lost; only packets with payload count, from 0, including retransmissions.
    pub lose: Vec<u64>,
    /// One packet in n is lost, delayed by up to `jitter`, or duplicated; 0: never.
    pub lose_one_in: u64,
    /// Percent of packets that are lost by chance.
    pub lose_percent: u64,
    pub delay_one_in: u64,
    pub jitter: Duration,
    pub double_one_in: u64,
    /// Changes the timestamps of TCP segments: maps the time of sending and the timestamp to the delivered timestamp;
    /// `None` removes the option.
    pub restamp: Option<fn(Instant, u32) -> Option<u32>>,
    /// ECN-capable packets that wait longer than this are marked.
    pub mark_above: Option<Duration>,
    pub random: Random,
    free_at: Instant,
    carried: u64,
    pub dropped: u64,
}

impl Link {
    pub fn new(rate: Option<BitRate>, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            queue: Duration::from_secs(1000),
            lose_every: 0,
            lose: Vec::new(),
            lose_one_in: 0,
            lose_percent: 0,
            delay_one_in: 0,
            jitter: Duration::ZERO,
            double_one_in: 0,
            restamp: None,
            mark_above: None,
            random: Random(1),
            free_at: Instant::ZERO,
            carried: 0,
            dropped: 0,
        }
    }

    /// When a packet that is sent now arrives: no time if it is lost, two times if it is duplicated.
    fn carry(&mut self, now: Instant, packet: &mut Packet) -> [Option<Instant>; 2] {
        let data = match &packet.transport {
            Transport::Tcp(segment) => segment.payload_len > 0,
            Transport::Udp(datagram) => datagram.payload_len > 0,
            Transport::Tack(packet) => packet.payload_len() > 0,
        };
        if let (Some(restamp), Transport::Tcp(segment)) = (self.restamp, &mut packet.transport) {
            segment.timestamps = segment
                .timestamps
                .and_then(|stamps| restamp(now, stamps.value).map(|value| Timestamps { value, ..stamps }));
        }
        let mut lost = self.random.once_in(self.lose_one_in);
        lost |= self.lose_percent > 0 && self.random.next() % 100 < self.lose_percent;
        if data {
            let nth = self.carried;
            self.carried += 1;
            lost |= self.lose_every > 0 && (nth + 1).is_multiple_of(self.lose_every);
            lost |= self.lose.contains(&nth);
        }
        let start = self.free_at.max(now);
        if lost || start.saturating_since(now) > self.queue {
            self.dropped += 1;
            return [None; 2];
        }
        if packet.ip.ecn == Ecn::Ect0
            && self.mark_above.is_some_and(|limit| start.saturating_since(now) > limit)
        {
            packet.ip.ecn = Ecn::Ce;
        }
        self.free_at = start + self.rate.map_or(Duration::ZERO, |rate| rate.time_for(packet.len()));
        let mut arrival = self.free_at + self.delay;
        if self.random.once_in(self.delay_one_in) {
            arrival += Duration::from_nanos(self.random.next() % (self.jitter.as_nanos() + 1));
        }
        let double = self.random.once_in(self.double_one_in);
        [Some(arrival), double.then_some(arrival + Duration::from_micros(1))]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

struct Flying {
    at: Instant,
    order: u64,
    to: Side,
    packet: Packet,
}

impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Flying {}
impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// A client that connects to a server over two links.
pub struct Pipe<C> {
    pub now: Instant,
    pub client: C,
    pub server: C,
    pub up: Link,
    pub down: Link,
    pub client_events: Vec<Event>,
    pub server_events: Vec<Event>,
    /// Pass every packet through the codec, which must return it unchanged.
    pub wire: bool,
    /// A hash of the lengths and times of all sent packets, which represents the order of events.
    pub digest: u64,
    flying: BinaryHeap<Reverse<Flying>>,
    order: u64,
}

/// The two ends of a flow.
pub fn ends() -> [Ends; 2] {
    let ends = Ends { flow: FlowId(1), local: HostId(1), remote: HostId(2) };
    [ends, Ends { local: ends.remote, remote: ends.local, ..ends }]
}

impl<C: Endpoint<Packet = Packet, Event = Event>> Pipe<C> {
    pub fn between(client: C, server: C, up: Link, down: Link) -> Self {
        Self {
            now: Instant::ZERO,
            client,
            server,
            up,
            down,
            client_events: Vec::new(),
            server_events: Vec::new(),
            wire: false,
            digest: 0,
            flying: BinaryHeap::new(),
            order: 0,
        }
    }

    fn drain(&mut self) {
        while let Some(mut packet) = self.client.poll_transmit(self.now) {
            let arrivals = self.up.carry(self.now, &mut packet);
            self.launch(Side::Server, &packet, arrivals);
        }
        while let Some(mut packet) = self.server.poll_transmit(self.now) {
            let arrivals = self.down.carry(self.now, &mut packet);
            self.launch(Side::Client, &packet, arrivals);
        }
        self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
        self.server_events.extend(std::iter::from_fn(|| self.server.poll_event()));
    }

    fn launch(&mut self, to: Side, packet: &Packet, arrivals: [Option<Instant>; 2]) {
        if self.wire {
            let bytes = wire::encode(packet).expect("a connection's packets have a form on the wire");
            assert_eq!(wire::decode(&bytes).as_ref(), Ok(packet));
        }
        let what = self.now.as_nanos() ^ packet.len().0 << 48 ^ u64::from(to == Side::Client) << 63;
        self.digest = Random(self.digest ^ what).next();
        for at in arrivals.into_iter().flatten() {
            self.flying.push(Reverse(Flying { at, order: self.order, to, packet: packet.clone() }));
            self.order += 1;
        }
    }

    /// Processes the next event, if there is one before `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        self.drain();
        let arrival = self.flying.peek().map(|Reverse(flying)| flying.at);
        let timers = [self.client.poll_timeout(), self.server.poll_timeout()];
        let Some(next) = timers.into_iter().chain([arrival]).flatten().min() else { return false };
        if next > until {
            self.now = until;
            return false;
        }
        self.now = next.max(self.now);
        if arrival == Some(next)
            && let Some(Reverse(Flying { to, packet, .. })) = self.flying.pop()
        {
            match to {
                Side::Client => self.client.handle_packet(self.now, packet),
                Side::Server => self.server.handle_packet(self.now, packet),
            }
        } else {
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
        self.drain();
        true
    }

    pub fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
    }
}
