//! A simple path for the core: a bottleneck with a queue, a receiver with its own clock, and a return path for ACKs.

use std::collections::VecDeque;

use tacit_congestion::rre::{Ack, Core, Parameters};

use crate::event::Event;

pub const MSS: u64 = 1_448;
/// A packet of another flow.
const OTHERS: usize = usize::MAX;
/// A segment with its headers.
const PACKET: u64 = 1_500;
const SECOND_US: u64 = 1_000_000;
/// If a segment is delivered this many transmissions after another one, the other one is lost.
const REORDERED: u64 = 3;
const LEAST_RTO_US: u64 = 200_000;
const DELAYED_ACK_US: u64 = 40_000;
/// Our clock at the beginning, in milliseconds; it wraps within 2 s.
const FIRST_STAMP: u32 = u32::MAX - 2_000;
/// Start of the flow.
pub const BEGIN_US: u64 = 1_000_000;

/// Parameters of a path. Times are relative to the start of the flow.
#[derive(Clone)]
pub struct Path {
    pub duration_us: u64,
    /// Start times with a rate in bytes per second; 0 is an outage.
    pub rates: Vec<(u64, u64)>,
    pub queue: u64,
    /// Bytes of other flows in the queue.
    pub others: fn(u64) -> u64,
    /// Delay in each direction.
    pub delay_us: u64,
    /// Additional delay in the forward direction.
    pub more_delay_us: fn(u64) -> u64,
    /// Queueing delay of ACKs.
    pub ack_queue_us: fn(u64) -> u64,
    /// Packets per ACK of the receiver.
    pub packets_per_ack: u64,
    /// Interval at which the return path passes one ACK, the newest; 0: each ACK as it arrives.
    pub ack_turn_us: u64,
    /// The receiver's clock: its reading in microseconds, and its tick length; `None`: no timestamps.
    pub clock_us: fn(u64) -> Option<u64>,
    pub tick_us: u64,
    pub first_value: u32,
    /// Which transmissions are lost before the queue.
    pub lose: fn(u64) -> bool,
    /// When there is data to send.
    pub has_data: fn(u64) -> bool,
    pub target_us: u32,
}

impl Path {
    /// `rate` bytes per second, a buffer of a quarter of a second, 20 ms in each direction.
    pub fn new(rate: u64) -> Self {
        Self {
            duration_us: 5 * SECOND_US,
            rates: vec![(0, rate)],
            queue: 1 << 20,
            others: |_| 0,
            delay_us: 20_000,
            more_delay_us: |_| 0,
            ack_queue_us: |_| 0,
            packets_per_ack: 2,
            ack_turn_us: 0,
            clock_us: Some,
            tick_us: 1_000,
            first_value: u32::MAX - 300,
            lose: |_| false,
            has_data: |_| true,
            target_us: 0,
        }
    }
}

struct Segment {
    sent_us: u64,
    order: u64,
    again: bool,
    delivered: bool,
    lost: bool,
    in_flight: bool,
}

#[derive(Clone, Copy)]
struct Flying {
    at_us: u64,
    index: usize,
    order: u64,
    stamp: u32,
}

struct FlyingAck {
    at_us: u64,
    /// Number of arrivals it reports, the next expected segment, and the timestamps.
    arrivals: usize,
    next: usize,
    value: Option<u32>,
    echo: u32,
}

/// Record of a run: each event, the core's state after it, and the bytes delivered by then.
pub struct Run {
    pub steps: Vec<Step>,
    pub timeouts: u64,
    /// Longest time that a packet waited in the bottleneck's queue.
    pub longest_queue_us: u64,
}

pub struct Step {
    pub at_us: u64,
    pub event: Event,
    pub core: Core,
    pub delivered: u64,
    /// Queueing delay of the path in microseconds, at its current rate.
    pub queue_us: u64,
}

pub struct World {
    path: Path,
    core: Core,
    now_us: u64,
    run: Run,
    // The sender.
    segments: Vec<Segment>,
    una: usize,
    reported: usize,
    orders: u64,
    delivered_order: u64,
    delivered: u64,
    in_flight: u64,
    next_send_us: u64,
    smoothed_rtt_us: u64,
    rto_at_us: u64,
    backoff: u32,
    undo_before: Option<u32>,
    was_limited: bool,
    // The forward path.
    waiting: VecDeque<Flying>,
    serving: Option<Flying>,
    flying: VecDeque<Flying>,
    // The receiver and the return path.
    arrived: Vec<(usize, u64)>,
    received: Vec<bool>,
    next: usize,
    acked_next: usize,
    recent: u32,
    unacked: u64,
    ack_due_us: Option<u64>,
    acks: VecDeque<FlyingAck>,
}

fn stamp_at(now_us: u64) -> u32 {
    FIRST_STAMP.wrapping_add((now_us / 1_000) as u32)
}

impl World {
    pub fn run(path: Path) -> Run {
        let handshake_us = 2 * path.delay_us + (path.ack_queue_us)(0);
        let parameters = Parameters {
            mss: MSS as u32,
            initial_window: 10 * MSS as u32,
            handshake_rtt_us: handshake_us as u32,
            sender_tick_us: 1_000,
            target_us: path.target_us,
        };
        let mut world = Self {
            core: Core::new(parameters, BEGIN_US),
            now_us: BEGIN_US,
            run: Run { steps: Vec::new(), timeouts: 0, longest_queue_us: 0 },
            segments: Vec::new(),
            una: 0,
            reported: 0,
            orders: 0,
            delivered_order: 0,
            delivered: 0,
            in_flight: 0,
            next_send_us: BEGIN_US,
            smoothed_rtt_us: handshake_us,
            rto_at_us: u64::MAX,
            backoff: 0,
            undo_before: None,
            was_limited: false,
            waiting: VecDeque::new(),
            serving: None,
            flying: VecDeque::new(),
            arrived: Vec::new(),
            received: Vec::new(),
            next: 0,
            acked_next: 0,
            recent: stamp_at(BEGIN_US),
            unacked: 0,
            ack_due_us: None,
            acks: VecDeque::new(),
            path,
        };
        world.record(Event::Start(BEGIN_US, parameters));
        if let Some(value) = world.value_at(BEGIN_US - world.path.delay_us) {
            let echo = stamp_at(BEGIN_US - handshake_us);
            world.apply(Event::Handshake(BEGIN_US, value, echo));
        }
        while world.step() {}
        world.run
    }

    fn since_us(&self) -> u64 {
        self.now_us - BEGIN_US
    }

    fn record(&mut self, event: Event) {
        let queue_us = self.waiting.len() as u64 * PACKET * SECOND_US / self.rate().max(1);
        let (at_us, core, delivered) = (self.now_us, self.core, self.delivered);
        self.run.steps.push(Step { at_us, event, core, delivered, queue_us });
    }

    fn apply(&mut self, event: Event) {
        event.happen(&mut self.core);
        self.record(event);
    }

    /// The receiver's clock at local time `at_us`.
    fn value_at(&self, at_us: u64) -> Option<u32> {
        let shown_us = (self.path.clock_us)(at_us)?;
        Some(self.path.first_value.wrapping_add((shown_us / self.path.tick_us) as u32))
    }

    fn rate(&self) -> u64 {
        let since_us = self.now_us - BEGIN_US;
        self.path.rates.iter().rev().find(|(from_us, _)| *from_us <= since_us).map_or(0, |(_, rate)| *rate)
    }

    /// Time of the next event.
    fn next_us(&self) -> u64 {
        let change =
            self.path.rates.iter().map(|(from_us, _)| from_us + BEGIN_US).find(|at| *at > self.now_us);
        let silent = (self.in_flight > 0).then(|| self.core.silent_at_us());
        let send = if self.can_send() { Some(self.next_send_us) } else { None };
        // Data becomes available at whole milliseconds.
        let data = (!(self.path.has_data)(self.since_us())).then(|| (self.now_us / 1_000 + 1) * 1_000);
        let times = [
            self.serving.map(|packet| packet.at_us),
            self.flying.front().map(|packet| packet.at_us),
            self.acks.front().map(|ack| ack.at_us),
            self.ack_due_us,
            Some(self.rto_at_us).filter(|_| self.in_flight > 0),
            change,
            silent,
            send,
            data,
        ];
        times.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    fn step(&mut self) -> bool {
        let next_us = self.next_us();
        if next_us >= BEGIN_US + self.path.duration_us {
            return false;
        }
        self.now_us = self.now_us.max(next_us);
        self.serve();
        while self.flying.front().is_some_and(|packet| packet.at_us <= self.now_us)
            && let Some(packet) = self.flying.pop_front()
        {
            self.receive(packet);
        }
        if self.ack_due_us.is_some_and(|due_us| due_us <= self.now_us) {
            self.acknowledge();
        }
        while self.acks.front().is_some_and(|ack| ack.at_us <= self.now_us)
            && let Some(ack) = self.acks.pop_front()
        {
            self.on_ack(&ack);
        }
        if self.in_flight > 0 && self.rto_at_us <= self.now_us {
            self.on_timeout();
        }
        if self.in_flight > 0 && self.core.silent_at_us() <= self.now_us {
            self.apply(Event::Silence(self.now_us));
        }
        while self.can_send() && self.next_send_us <= self.now_us {
            self.send();
        }
        true
    }

    // The sender.

    fn first_lost(&self) -> Option<usize> {
        (self.una..self.segments.len()).find(|index| {
            let segment = &self.segments[*index];
            segment.lost && !segment.in_flight && !segment.delivered
        })
    }

    fn can_send(&self) -> bool {
        let room = self.in_flight + MSS <= self.core.window();
        room && ((self.path.has_data)(self.since_us()) || self.first_lost().is_some())
    }

    fn send(&mut self) {
        if self.in_flight == 0 && self.was_limited {
            self.apply(Event::TransmitStart(self.now_us));
            self.was_limited = false;
        }
        let order = self.orders;
        self.orders += 1;
        let index = self.first_lost().unwrap_or(self.segments.len());
        let again = index < self.segments.len();
        let segment =
            Segment { sent_us: self.now_us, order, again, delivered: false, lost: again, in_flight: true };
        if again {
            self.segments[index] = segment;
        } else {
            self.segments.push(segment);
        }
        if self.in_flight == 0 {
            self.restart_rto();
        }
        self.in_flight += MSS;
        self.next_send_us = self.now_us + PACKET * SECOND_US / self.core.rate().max(1);
        let stamp = stamp_at(self.now_us);
        if (self.path.lose)(order) || self.waiting.len() as u64 * PACKET >= self.path.queue {
            return;
        }
        self.waiting.push_back(Flying { at_us: self.now_us, index, order, stamp });
        self.serve();
    }

    fn restart_rto(&mut self) {
        let rto_us = (2 * self.smoothed_rtt_us).max(LEAST_RTO_US) << self.backoff.min(6);
        self.rto_at_us = self.now_us + rto_us;
    }

    fn on_timeout(&mut self) {
        self.run.timeouts += 1;
        self.backoff += 1;
        self.undo_before = Some(stamp_at(self.now_us));
        for segment in &mut self.segments[self.una..] {
            segment.lost |= !segment.delivered;
            segment.in_flight = false;
        }
        self.in_flight = 0;
        self.restart_rto();
        self.apply(Event::Timeout(self.now_us));
    }

    fn on_ack(&mut self, ack: &FlyingAck) {
        let advanced = ack.next > self.una;
        // The ACK echoes a segment from before the timeout, so the timeout was unnecessary (RFC 3522).
        let earlier = |before: u32| (ack.echo.wrapping_sub(before) as i32) < 0;
        if advanced && ack.value.is_some() && self.undo_before.take().is_some_and(earlier) {
            self.undo();
        }
        let (mut delivered, mut rtt_us) = (0, 0);
        for &(index, order) in &self.arrived[self.reported.min(ack.arrivals)..ack.arrivals] {
            let segment = &mut self.segments[index];
            self.delivered_order = self.delivered_order.max(order);
            if segment.delivered {
                continue;
            }
            segment.delivered = true;
            delivered += MSS;
            if segment.in_flight {
                segment.in_flight = false;
                self.in_flight -= MSS;
            }
            if !segment.again {
                rtt_us = self.now_us - segment.sent_us;
            }
        }
        self.delivered += delivered;
        self.reported = self.reported.max(ack.arrivals);
        self.una = self.una.max(ack.next);
        if rtt_us > 0 {
            self.smoothed_rtt_us = (7 * self.smoothed_rtt_us + rtt_us) / 8;
        }
        let lost = self.find_lost();
        if delivered > 0 {
            self.backoff = 0;
            self.restart_rto();
        }
        let limited = !(self.path.has_data)(self.since_us());
        self.was_limited |= limited;
        let repairing = self.segments[self.una..].iter().any(|segment| segment.lost && !segment.delivered);
        self.apply(Event::Ack(Ack {
            now_us: self.now_us,
            stamped: ack.value.is_some(),
            value: ack.value.unwrap_or(0),
            echo: if ack.value.is_some() { ack.echo } else { 0 },
            advanced,
            delivered: delivered as u32,
            lost: lost as u32,
            in_flight: self.in_flight as u32,
            rtt_us: rtt_us as u32,
            smoothed_rtt_us: self.smoothed_rtt_us as u32,
            limited,
            repairing,
        }));
    }

    /// The latest timeout was unnecessary: segments that were not retransmitted are still in flight.
    fn undo(&mut self) {
        for segment in &mut self.segments[self.una..] {
            if segment.lost && !segment.again && !segment.in_flight && !segment.delivered {
                (segment.in_flight, segment.lost) = (true, false);
                self.in_flight += MSS;
            }
        }
        self.apply(Event::Undo(self.now_us));
    }

    /// Bytes newly declared lost.
    fn find_lost(&mut self) -> u64 {
        let mut lost = 0;
        for segment in &mut self.segments[self.una..] {
            if segment.in_flight && segment.order + REORDERED <= self.delivered_order {
                (segment.in_flight, segment.lost) = (false, true);
                lost += MSS;
            }
        }
        self.in_flight -= lost;
        lost
    }

    // The bottleneck.

    fn serve(&mut self) {
        loop {
            if let Some(packet) = self.serving {
                if packet.at_us > self.now_us {
                    return;
                }
                if packet.index != OTHERS {
                    let delay_us = self.path.delay_us + (self.path.more_delay_us)(self.since_us());
                    self.flying.push_back(Flying { at_us: packet.at_us + delay_us, ..packet });
                }
                self.serving = None;
            }
            while (self.waiting.len() as u64) * PACKET < (self.path.others)(self.since_us()) {
                self.waiting.push_back(Flying { at_us: self.now_us, index: OTHERS, order: 0, stamp: 0 });
            }
            let rate = self.rate();
            if rate == 0 {
                return;
            }
            let Some(packet) = self.waiting.pop_front() else { return };
            self.run.longest_queue_us = self.run.longest_queue_us.max(self.now_us - packet.at_us);
            self.serving = Some(Flying { at_us: self.now_us + PACKET * SECOND_US / rate, ..packet });
        }
    }

    // The receiver.

    fn receive(&mut self, packet: Flying) {
        if self.received.len() <= packet.index {
            self.received.resize(packet.index + 1, false);
        }
        let in_order = packet.index == self.next;
        if packet.index <= self.acked_next {
            self.recent = packet.stamp;
        }
        self.received[packet.index] = true;
        self.arrived.push((packet.index, packet.order));
        while self.received.get(self.next).is_some_and(|received| *received) {
            self.next += 1;
        }
        self.unacked += 1;
        if !in_order || self.next < self.received.len() || self.unacked >= self.path.packets_per_ack {
            self.acknowledge();
        } else if self.ack_due_us.is_none() {
            self.ack_due_us = Some(packet.at_us + DELAYED_ACK_US);
        }
    }

    fn acknowledge(&mut self) {
        self.unacked = 0;
        self.ack_due_us = None;
        self.acked_next = self.next;
        let at_us = self.now_us + self.path.delay_us + (self.path.ack_queue_us)(self.since_us());
        let at_us = at_us.next_multiple_of(self.path.ack_turn_us.max(1));
        let last_us = self.acks.back().map_or(0, |ack| ack.at_us);
        if self.path.ack_turn_us > 0 && at_us == last_us {
            self.acks.pop_back();
        }
        self.acks.push_back(FlyingAck {
            at_us: at_us.max(last_us),
            arrivals: self.arrived.len(),
            next: self.next,
            value: self.value_at(self.now_us),
            echo: self.recent,
        });
    }
}
