//! A path with one bottleneck under a virtual clock, a sender that uses its window as quinn's does, and a receiver that
//! acknowledges as quinn's does after an ACK_FREQUENCY request.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use quinn::congestion::Controller as _;

use crate::controller::TackController;

const TICK: Duration = Duration::from_micros(50);
/// An approximate probe timeout in round trips (RFC 9002 section 6.2.1, including its variation).
const PROBE_ROUND_TRIPS: u32 = 2;
pub(crate) const PACKET_BYTES: u64 = 1_452;

/// Start of virtual time; only differences matter.
#[expect(clippy::disallowed_methods, reason = "there is no other way to make an Instant")]
pub(crate) fn start() -> Instant {
    Instant::now()
}

/// Parameters of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub rate_bytes_per_s: u64,
    /// Without queueing delay.
    pub rtt: Duration,
    pub queue_bytes: u64,
    pub max_ack_delay: Duration,
    /// Packets per thousand that are lost at random before the bottleneck.
    pub lost_per_mille: u64,
    /// ACKs per thousand that are lost.
    pub acks_lost_per_mille: u64,
}

/// Observations since the last call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub delivered_bytes: u64,
    pub time: Duration,
    pub acks: u64,
    pub lost_bytes: u64,
    pub window_min: u64,
    pub window_max: u64,
    /// Bytes queued at the bottleneck, at each tick.
    waiting_bytes: Vec<u64>,
}

impl Seen {
    pub(crate) fn bytes_per_s(&self) -> u64 {
        u64::try_from(u128::from(self.delivered_bytes) * 1_000_000 / self.time.as_micros()).unwrap()
    }

    pub(crate) fn waiting_percentile(&self, percent: usize) -> u64 {
        let mut waiting = self.waiting_bytes.clone();
        waiting.sort_unstable();
        waiting[(waiting.len() - 1) * percent / 100]
    }
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    sent: Instant,
    /// Requests an immediate acknowledgment (IMMEDIATE_ACK of draft-ietf-quic-ack-frequency).
    is_probe: bool,
}

pub(crate) struct Model {
    pub path: Path,
    pub controller: TackController,
    pub now: Instant,
    random: u64,
    next_number: u64,
    in_flight: VecDeque<Packet>,
    tokens: u64,
    smoothed_rtt: Duration,
    /// Time of the last transmission or acknowledgment.
    active: Instant,
    queue: VecDeque<Packet>,
    credit_nanobytes: u128,
    /// On the wire to the receiver; received packets move to `unacked`.
    arriving: VecDeque<(Instant, Packet)>,
    unacked: Vec<Packet>,
    ack_due: Option<Instant>,
    expected: u64,
    acks: VecDeque<(Instant, Duration, Vec<Packet>)>,
    /// When the newest of `unacked` arrived.
    arrived: Instant,
    seen: Seen,
    /// All packets are dropped until then.
    pub outage_until: Option<Instant>,
}

impl Model {
    pub(crate) fn new(path: Path) -> Self {
        let began = start();
        Self {
            path,
            controller: TackController::new(PACKET_BYTES as u16),
            now: began,
            random: 1,
            next_number: 0,
            in_flight: VecDeque::new(),
            tokens: 10 * PACKET_BYTES,
            smoothed_rtt: path.rtt,
            active: began,
            arrived: began,
            queue: VecDeque::new(),
            credit_nanobytes: 0,
            arriving: VecDeque::new(),
            unacked: Vec::new(),
            ack_due: None,
            expected: 0,
            acks: VecDeque::new(),
            seen: Seen { window_min: u64::MAX, ..Seen::default() },
            outage_until: None,
        }
    }

    /// Runs for `time`, and returns the observations.
    pub(crate) fn run(&mut self, time: Duration) -> Seen {
        self.seen = Seen { time, window_min: u64::MAX, ..Seen::default() };
        let end = self.now + time;
        while self.now < end {
            self.now += TICK;
            self.take_acks();
            self.send();
            self.serve();
            self.receive();
            let waiting = self.queue.len() as u64 * PACKET_BYTES;
            self.seen.waiting_bytes.push(waiting);
            let window = self.controller.window();
            self.seen.window_min = self.seen.window_min.min(window);
            self.seen.window_max = self.seen.window_max.max(window);
        }
        std::mem::take(&mut self.seen)
    }

    /// Knuth's linear congruential generator (MMIX); true for `per_mille` of a thousand draws.
    fn happens(&mut self, per_mille: u64) -> bool {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 1_000 < per_mille
    }

    /// quinn's pacer: 5/4 of a window per smoothed round-trip time, in bursts of at most 2 ms.
    fn send(&mut self) {
        let (window, rtt) = (self.controller.window(), self.smoothed_rtt.max(TICK));
        let in_time = |time: Duration| (u128::from(window) * time.as_nanos() / rtt.as_nanos()) as u64;
        let capacity = in_time(Duration::from_millis(2)).clamp(10 * PACKET_BYTES, 256 * PACKET_BYTES);
        self.tokens = (self.tokens + in_time(TICK) * 5 / 4).min(capacity);
        let probe_due = self.active + rtt * PROBE_ROUND_TRIPS + self.path.max_ack_delay;
        let mut is_probe = self.now >= probe_due;
        let mut sent = false;
        while is_probe
            || (self.in_flight.len() as u64 + 1) * PACKET_BYTES < window && self.tokens >= PACKET_BYTES
        {
            self.tokens = self.tokens.saturating_sub(PACKET_BYTES);
            let packet = Packet { number: self.next_number, sent: self.now, is_probe };
            is_probe = false;
            self.next_number += 1;
            self.in_flight.push_back(packet);
            sent = true;
            let is_lost = self.happens(self.path.lost_per_mille)
                || self.outage_until.is_some_and(|until| self.now < until)
                || self.queue.len() as u64 * PACKET_BYTES >= self.path.queue_bytes;
            if !is_lost {
                self.queue.push_back(packet);
            }
        }
        if sent {
            self.active = self.now;
            self.controller.on_sent(self.now, 0, self.next_number - 1);
        }
    }

    fn serve(&mut self) {
        let packet = u128::from(PACKET_BYTES) * 1_000_000_000;
        self.credit_nanobytes += u128::from(self.path.rate_bytes_per_s) * TICK.as_nanos();
        while self.credit_nanobytes >= packet {
            let Some(served) = self.queue.pop_front() else {
                // Credit does not accumulate while the link is idle.
                self.credit_nanobytes = packet;
                return;
            };
            self.credit_nanobytes -= packet;
            self.arriving.push_back((self.now + self.path.rtt / 2, served));
        }
    }

    fn receive(&mut self) {
        while self.arriving.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, packet)) = self.arriving.pop_front() else { break };
            self.seen.delivered_bytes += PACKET_BYTES;
            self.unacked.push(packet);
            self.arrived = self.now;
            let at_once = packet.is_probe || packet.number > self.expected;
            let due = if at_once { self.now } else { self.now + self.path.max_ack_delay };
            self.ack_due = Some(self.ack_due.map_or(due, |before| before.min(due)));
            self.expected = packet.number + 1;
        }
        if self.ack_due.is_some_and(|due| due <= self.now) {
            self.ack_due = None;
            let packets = std::mem::take(&mut self.unacked);
            if !self.happens(self.path.acks_lost_per_mille) {
                self.acks.push_back((self.now + self.path.rtt / 2, self.now - self.arrived, packets));
            } else {
                // The next ACK repeats the lost information.
                self.unacked = packets;
            }
        }
    }

    fn take_acks(&mut self) {
        while self.acks.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, ack_delay, packets)) = self.acks.pop_front() else { break };
            self.seen.acks += 1;
            self.active = self.now;
            let Some(newest) = packets.last().copied() else { continue };
            let rtt = self.now - newest.sent - ack_delay;
            self.smoothed_rtt = (self.smoothed_rtt * 7 + rtt) / 8;
            self.controller.measure_rtt(self.now, rtt);
            for packet in &packets {
                self.controller.acked(packet.sent, PACKET_BYTES, false);
            }
            // Older packets are acknowledged, lost after three newer ones are acknowledged, or still waiting.
            let newer = self.in_flight.partition_point(|packet| packet.number <= newest.number);
            let newer = self.in_flight.split_off(newer);
            let mut acked = packets.iter().map(|packet| packet.number).peekable();
            let mut lost = 0;
            self.in_flight.retain(|packet| {
                let is_acked = acked.next_if_eq(&packet.number).is_some();
                let is_lost = !is_acked && newest.number >= packet.number + 3;
                lost += if is_lost { PACKET_BYTES } else { 0 };
                !is_acked && !is_lost
            });
            self.in_flight.extend(newer);
            let in_flight = self.in_flight.len() as u64 * PACKET_BYTES + lost;
            self.controller.end_acks(self.now, in_flight);
            self.seen.lost_bytes += lost;
            if lost > 0 {
                self.controller.congestion(false, lost);
            }
        }
    }
}
