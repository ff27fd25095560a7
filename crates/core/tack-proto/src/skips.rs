//! Packet numbers that are left out on purpose: a receiver that acknowledges one of them guesses (RFC 9000 section 21.4).
//!
//! Each costs an IACK, so they are as rare as they may be. The next is due when both a number of packets and a time
//! have passed, each drawn evenly from nothing up, so that no packet is safe to guess. A guesser gains only as it raises
//! the rate: once that has doubled, time does not count.

use std::collections::VecDeque;

use tacit_congestion::chance::Chance;
use tacit_packet::position::Position;
use tacit_packet::units::{BitRate, Duration, Instant};

/// Packets from one to the next at most, where time does not ask for more. Ours.
const MOST_PACKETS: u32 = 4096;
/// Time likewise: one in 3 s on average. Ours.
const MOST_TIME: Duration = Duration::from_secs(6);
/// Numbers that are remembered, so that they reach back further than any packet in flight.
const REMEMBERED: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Skips {
    numbers: VecDeque<Position>,
    /// The next is due from this number on, and not before this time.
    number: Position,
    at: Instant,
    /// The pace when one was left out, or when it had last doubled.
    pace: BitRate,
    chance: Chance,
}

impl Skips {
    /// Until the first, packets count alone: in startup a guess raises the rate most.
    pub fn new(start: Position, seed: u32) -> Self {
        let mut skips = Self {
            numbers: VecDeque::new(),
            number: start,
            at: Instant::ZERO,
            pace: BitRate::default(),
            chance: Chance(seed),
        };
        skips.number = skips.draw(start);
        skips
    }

    /// Whether `next`, at `now`, is to be left out by a sender whose fastest pace lately was `pace`.
    pub fn takes(&mut self, next: Position, now: Instant, pace: BitRate) -> bool {
        if pace.as_bps() > 2 * self.pace.as_bps() {
            self.pace = pace;
            if self.at > now {
                self.at = now;
                if self.number <= next {
                    self.number = self.draw(next);
                }
            }
        }
        if next < self.number || now < self.at {
            return false;
        }
        if self.numbers.len() >= REMEMBERED {
            self.numbers.pop_front();
        }
        self.numbers.push_back(next);
        self.number = self.draw(next);
        let micros = self.chance.draw((MOST_TIME.as_nanos() / 1000) as u32);
        self.at = now + Duration::from_micros(u64::from(micros));
        self.pace = pace;
        true
    }

    /// Chance is mixed with a number that no other end knows.
    pub fn add_entropy(&mut self, fresh: u32) {
        self.chance.0 ^= fresh;
    }

    /// Whether one of them is at `start` or behind it, before `end`.
    pub fn is_within(&self, start: Position, end: Position) -> bool {
        self.numbers.iter().any(|number| start <= *number && *number < end)
    }

    fn draw(&mut self, next: Position) -> Position {
        next + 1 + u64::from(self.chance.draw(MOST_PACKETS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incoming::START;

    const PACE: BitRate = BitRate::from_mbps(600);

    /// When numbers are left out, and which, of `packets` at an even distance.
    fn left_out(skips: &mut Skips, packets: u64, distance: Duration) -> Vec<(Duration, u64)> {
        let mut found = Vec::new();
        for index in 0..packets {
            let now = distance.saturating_mul(index);
            if skips.takes(START + index, Instant::ZERO + now, PACE) {
                found.push((now, index));
            }
        }
        found
    }

    #[test]
    fn a_fast_sender_leaves_out_one_in_three_seconds() {
        let mut skips = Skips::new(START, 7);
        // 600 Mb/s for ten minutes.
        let found = left_out(&mut skips, 30_000_000, Duration::from_micros(20));
        assert!((180..220).contains(&found.len()), "{}", found.len());
        assert!(found[0].1 <= u64::from(MOST_PACKETS));
        for pair in found.windows(2) {
            let most = MOST_TIME + Duration::from_micros(20 * u64::from(MOST_PACKETS));
            assert!(pair[1].0 - pair[0].0 <= most, "{pair:?}");
        }
        // Some follow soon: that one was just left out makes no guess safe.
        assert!(found.windows(2).any(|pair| pair[1].0 - pair[0].0 < MOST_TIME / 20));
    }

    #[test]
    fn a_slow_sender_counts_packets() {
        let mut skips = Skips::new(START, 7);
        // 1 Mb/s: 4,096 packets take 49 s.
        let found = left_out(&mut skips, 2_000_000, Duration::from_millis(12));
        assert!((900..1050).contains(&found.len()), "{}", found.len());
        assert!(found.windows(2).all(|pair| pair[1].1 - pair[0].1 <= u64::from(MOST_PACKETS)));
    }

    #[test]
    fn a_doubled_pace_waits_for_no_time() {
        for seed in 0..200 {
            let mut skips = Skips::new(START, seed);
            let first = (0..).find(|index| skips.takes(START + *index, Instant::ZERO, PACE)).unwrap_or(0);
            let doubled = BitRate::from_mbps(1201);
            let most = 1 + u64::from(MOST_PACKETS);
            let next = (1..=most)
                .find(|index| skips.takes(START + first + *index, Instant::ZERO, doubled))
                .unwrap_or_else(|| panic!("seed {seed}: none in {most} packets"));
            assert!(skips.is_within(START + first + next, START + first + next + 1));
            assert!(!skips.is_within(START + first + 1, START + first + next));
        }
    }
}
