//! How much more arrives at once than the rate explains: links that save up ACKs, Wi-Fi first among
//! them, would starve a window of two bandwidth-delay products (Linux 5.1 and later; presented at
//! IETF 101).

use super::super::Delivery;
use tacit_packet::units::{BitRate, Duration, Instant};

/// Rounds each of the two slots covers (`bbr_extra_acked_win_rtts`).
const SLOT_ROUNDS: u32 = 5;
/// Longest silence that is compensated (`bbr_extra_acked_max_us`).
const MAX_SILENCE: Duration = Duration::from_millis(100);
/// An epoch this long starts over: 2^20 segments (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_SEGMENTS: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    slot_rounds: u32,
    extra: [u64; 2],
    slot: usize,
    rounds: u32,
    epoch_start: Instant,
    epoch_acked: u64,
}

impl Default for Aggregation {
    fn default() -> Self {
        Self {
            slot_rounds: SLOT_ROUNDS,
            extra: [0; 2],
            slot: 0,
            rounds: 0,
            epoch_start: Instant::ZERO,
            epoch_acked: 0,
        }
    }
}

impl Aggregation {
    /// Remembers one round while a flow of version 3 `starts`, since its rate is of yesterday then, and later five as usual
    /// (`extra_acked_win_rtts_thresh` in Google's version 3).
    pub fn set_startup(&mut self, starts: bool) {
        self.slot_rounds = if starts { 1 } else { SLOT_ROUNDS };
    }

    /// The next epoch starts at `now`.
    pub fn restart(&mut self, now: Instant) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// Counts an ACK, with the estimated `rate`.
    pub fn update(&mut self, delivery: &Delivery, round_start: bool, rate: BitRate, cwnd: u64, mss: u64) {
        let acked = delivery.sample.newly_delivered;
        if acked == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= self.slot_rounds {
                self.rounds = 0;
                self.slot ^= 1;
                self.extra[self.slot] = 0;
            }
        }
        let mut expected = rate.amount_in(delivery.now.saturating_since(self.epoch_start)).0;
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_SEGMENTS * mss {
            // The ACKs fell behind the rate: an aggregate, if there was one, is over.
            self.restart(delivery.now);
            expected = 0;
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected).min(cwnd);
        self.extra[self.slot] = self.extra[self.slot].max(extra);
    }

    /// Bytes the window should have on top.
    pub fn allowance(&self, rate: BitRate) -> u64 {
        self.extra[0].max(self.extra[1]).min(rate.amount_in(MAX_SILENCE).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::RateSample;
    use tacit_packet::units::Bytes;

    const MSS: u64 = 1000;

    fn ack(aggregation: &mut Aggregation, micros: u64, bytes: u64, round_start: bool, rate: BitRate) {
        let delivery = Delivery {
            now: Instant::ZERO + Duration::from_micros(micros),
            sample: RateSample { newly_delivered: bytes, ..RateSample::default() },
            advanced: true,
            ..Delivery::default()
        };
        aggregation.update(&delivery, round_start, rate, 1_000_000, MSS);
    }

    /// One segment a millisecond, but the ACKs for twenty of them come at once.
    #[test]
    fn lumps_of_acks_make_room_for_a_lump() {
        let rate = BitRate::from_mbps(8);
        let mut aggregation = Aggregation::default();
        for lump in 1..=10 {
            ack(&mut aggregation, lump * 20_000, 20 * MSS, false, rate);
        }
        assert_eq!(aggregation.allowance(rate), 20 * MSS);
        // Never more than the rate brings in 100 ms.
        assert_eq!(aggregation.allowance(BitRate::from_kbps(80)), Bytes(1000).0);
    }

    #[test]
    fn a_maximum_not_seen_again_is_forgotten_in_the_tenth_round() {
        let rate = BitRate::from_mbps(8);
        let mut aggregation = Aggregation::default();
        ack(&mut aggregation, 20_000, 20 * MSS, true, rate);
        for round in 2..=10 {
            assert!(aggregation.allowance(rate) >= 20 * MSS);
            ack(&mut aggregation, round * 20_000, MSS, true, rate);
        }
        assert!(aggregation.allowance(rate) <= 2 * MSS);
    }
}
