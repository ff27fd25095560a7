//! Impairments of packets on a path: jitter, reordering and duplication.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tacit_packet::units::{Duration, Instant, Ratio};

use super::InTransit;
use crate::packet::{Holders, PacketRef};
use crate::random::Stream;

/// Impairments of one direction; none by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impairments {
    /// How the delay varies.
    pub jitter: Option<Jitter>,
    /// Which packets are overtaken by others.
    pub reordering: Option<Reordering>,
    /// Probability that a packet arrives twice; drawn independently per packet.
    pub duplication: Ratio,
}

impl Impairments {
    /// No impairments.
    pub const NONE: Self = Self { jitter: None, reordering: None, duplication: Ratio::ZERO };
}

/// A delay that varies from packet to packet; never below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// Distribution around the mean.
    pub distribution: Distribution,
    /// Treatment of packets that would overtake the one before.
    pub order: Order,
}

/// How a delay varies around its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Uniformly, by at most this in each direction.
    Uniform(Duration),
    /// As a normal distribution with this standard deviation, cut off at 2.9 standard deviations.
    Normal(Duration),
}

/// Whether packets may overtake one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No: they wait behind slower ones, as in a queue further along the path.
    Kept,
    /// Yes, as on parallel paths.
    Free,
}

/// Some packets are held back and overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordering {
    /// Probability that a packet is held back; drawn independently per packet.
    pub chance: Ratio,
    /// Number of packets that overtake it before it continues; `None` to wait for all of `delay`.
    pub packets: Option<u32>,
    /// Longest time that a packet is held back.
    pub delay: Duration,
}

/// Most packets held back at once; beyond that, packets keep their position.
const MAX_HELD: usize = 64;

/// Quantiles `0.5 + i / 256` of the normal distribution in units of 1/4096 of its standard deviation; the last one is
/// for 0.5 + 127.5 / 256.
const HALF_NORMAL: [u16; 129] = [
    0, 40, 80, 120, 160, 201, 241, 281, 321, 361, 402, 442, 482, 523, 563, 604, 644, 685, 726, 766, 807, 848,
    889, 930, 972, 1013, 1054, 1096, 1137, 1179, 1221, 1263, 1305, 1347, 1390, 1432, 1475, 1518, 1561, 1604,
    1648, 1691, 1735, 1779, 1823, 1868, 1912, 1957, 2002, 2047, 2093, 2139, 2185, 2231, 2278, 2325, 2372,
    2420, 2468, 2516, 2565, 2613, 2663, 2713, 2763, 2813, 2864, 2916, 2968, 3020, 3073, 3126, 3180, 3235,
    3290, 3345, 3402, 3459, 3516, 3575, 3634, 3694, 3754, 3816, 3878, 3941, 4005, 4071, 4137, 4204, 4273,
    4342, 4414, 4486, 4560, 4635, 4712, 4790, 4871, 4953, 5038, 5124, 5213, 5304, 5399, 5496, 5596, 5700,
    5807, 5919, 6035, 6157, 6284, 6417, 6558, 6706, 6865, 7034, 7216, 7413, 7630, 7870, 8141, 8452, 8822,
    9282, 9902, 10_896, 11_820,
];

impl Distribution {
    /// Draws the difference from the mean, in nanoseconds.
    fn draw(self, stream: &mut Stream) -> i64 {
        let draw = stream.draw();
        match self {
            Self::Uniform(spread) => {
                let width = u128::from(spread.as_nanos()) * 2 + 1;
                ((u128::from(draw) * width) >> 32) as i64 - spread.as_nanos() as i64
            }
            Self::Normal(deviation) => {
                // One bit for the sign, seven for the index, 24 between two quantiles.
                let (index, between) = (((draw >> 24) & 0x7f) as usize, i128::from(draw & 0x00ff_ffff));
                let [low, high] = [HALF_NORMAL[index], HALF_NORMAL[index + 1]].map(i128::from);
                let quantile = (low << 24) + (high - low) * between;
                let size = ((i128::from(deviation.as_nanos()) * quantile) >> 36) as i64;
                if draw >> 31 == 0 { size } else { -size }
            }
        }
    }
}

/// Running impairments: the path between the transmitter and the other end.
#[derive(Clone, Debug)]
pub(super) struct Impaired {
    config: Impairments,
    jitter: Stream,
    reordering: Stream,
    duplication: Stream,
    /// Arrival of the last packet that kept its position.
    last_arrival: Instant,
    /// Ordered by arrival, then by time of sending.
    flight: BinaryHeap<Numbered>,
    sent: u64,
    held: Vec<Held>,
}

#[derive(Clone, Debug)]
struct Numbered {
    number: u64,
    packet: InTransit,
}

/// A packet held back until others have overtaken it.
#[derive(Clone, Debug)]
struct Held {
    overtakers_left: u32,
    /// When it would have arrived without being held back.
    due_at: Instant,
    /// The packet, with its latest arrival.
    packet: InTransit,
}

impl Impaired {
    pub fn new(config: Impairments, seed: u64, name: &str) -> Self {
        let stream = |what: &str| Stream::new(seed, &format!("{what} {name}"));
        Self {
            config,
            jitter: stream("jitter"),
            reordering: stream("reordering"),
            duplication: stream("duplication"),
            last_arrival: Instant::ZERO,
            flight: BinaryHeap::new(),
            sent: 0,
            held: Vec::new(),
        }
    }

    /// Accepts a packet that leaves the transmitter at `end` and would arrive after `delay`; returns the number of
    /// copies created.
    pub fn launch(&mut self, end: Instant, delay: Duration, packet: InTransit, holders: &mut Holders) -> u64 {
        let twice = !packet.lost && self.duplication.hit(self.config.duplication);
        if twice {
            holders.hold(packet.payload);
            self.send(end, delay, packet);
        }
        self.send(end, delay, packet);
        u64::from(twice)
    }

    fn send(&mut self, end: Instant, delay: Duration, packet: InTransit) {
        let arrival_at = self.jittered(end, delay);
        if let Some(reordering) = self.config.reordering
            && self.reordering.hit(reordering.chance)
            && (reordering.packets.is_none() || self.held.len() < MAX_HELD)
        {
            let packet = InTransit { at: arrival_at + reordering.delay, ..packet };
            match reordering.packets {
                None => self.push(packet),
                Some(overtakers_left) => {
                    self.held.push(Held { overtakers_left, due_at: arrival_at, packet });
                }
            }
            return;
        }
        self.push(InTransit { at: arrival_at, ..packet });
        self.release_overtaken(arrival_at);
    }

    /// Arrival of a packet that keeps its position.
    fn jittered(&mut self, end: Instant, delay: Duration) -> Instant {
        let Some(jitter) = self.config.jitter else { return end + delay };
        let nanos = delay.as_nanos() as i64 + jitter.distribution.draw(&mut self.jitter);
        let arrival_at = end + Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        if jitter.order == Order::Free {
            return arrival_at;
        }
        self.last_arrival = self.last_arrival.max(arrival_at);
        self.last_arrival
    }

    fn push(&mut self, packet: InTransit) {
        self.flight.push(Numbered { number: self.sent, packet });
        self.sent += 1;
    }

    /// A packet arrives at `overtaker_at`: packets that enough others have overtaken follow it.
    fn release_overtaken(&mut self, overtaker_at: Instant) {
        let mut index = 0;
        while index < self.held.len() {
            self.held[index].overtakers_left = self.held[index].overtakers_left.saturating_sub(1);
            if self.held[index].overtakers_left > 0 {
                index += 1;
                continue;
            }
            let Held { due_at, mut packet, .. } = self.held.remove(index);
            packet.at = packet.at.min(overtaker_at.max(due_at));
            self.push(packet);
        }
    }

    /// The next packet that has arrived by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<InTransit> {
        if let Some(index) = self.held.iter().position(|held| held.packet.at <= now) {
            let packet = self.held.remove(index).packet;
            self.push(packet);
        }
        if self.flight.peek()?.packet.at > now {
            return None;
        }
        self.flight.pop().map(|numbered| numbered.packet)
    }

    /// When the next packet arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        let held = self.held.iter().map(|held| held.packet.at).min();
        held.into_iter().chain(self.flight.peek().map(|numbered| numbered.packet.at)).min()
    }

    /// The packets on their way.
    pub fn iter(&self) -> impl Iterator<Item = &PacketRef> {
        let flight = self.flight.iter().map(|numbered| &numbered.packet);
        flight.chain(self.held.iter().map(|held| &held.packet)).map(|packet| &packet.payload)
    }

    pub fn len(&self) -> usize {
        self.flight.len() + self.held.len()
    }
}

impl Numbered {
    fn key(&self) -> (Instant, u64) {
        (self.packet.at, self.number)
    }
}

impl PartialEq for Numbered {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Numbered {}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Reversed, because a heap returns the greatest first.
impl Ord for Numbered {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation of a million draws, in microseconds.
    fn moments(distribution: Distribution) -> (f64, f64) {
        let mut stream = Stream::new(1, "jitter");
        let draws: Vec<f64> = (0..1_000_000).map(|_| distribution.draw(&mut stream) as f64 / 1e3).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn draws_have_the_moments_of_their_distribution() {
        let millis = Duration::from_millis(1);
        let (mean, deviation) = moments(Distribution::Uniform(millis));
        assert!(mean.abs() < 3.0, "{mean}");
        // A uniform distribution over 2 ms has a deviation of 2 / sqrt(12).
        assert!((deviation - 577.35).abs() < 2.0, "{deviation}");
        let (mean, deviation) = moments(Distribution::Normal(millis));
        assert!(mean.abs() < 3.0, "{mean}");
        // Cutting off the tails reduces it by slightly over 1 %.
        assert!((980.0..1_000.0).contains(&deviation), "{deviation}");
    }

    #[test]
    fn draws_stay_in_their_range() {
        let spread = Duration::from_millis(3);
        let mut stream = Stream::new(1, "jitter");
        let mut draw = |distribution: Distribution| distribution.draw(&mut stream).unsigned_abs();
        let uniform = (0..100_000).map(|_| draw(Distribution::Uniform(spread))).max();
        assert!((2_990_000..=3_000_000).contains(&uniform.unwrap()), "{uniform:?}");
        let normal = (0..100_000).map(|_| draw(Distribution::Normal(spread))).max();
        assert!((8_500_000..=8_658_000).contains(&normal.unwrap()), "{normal:?}");
    }
}
