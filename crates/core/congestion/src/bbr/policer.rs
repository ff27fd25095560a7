//! Long-term bandwidth sampling: noticing a token-bucket policer (the `lt_bw` of Linux `tcp_bbr.c`).
//!
//! A policer passes bursts at the full rate and then drops the excess over its own. When two successive intervals bounded by
//! losses lost a fifth or more each and delivered at the same rate, that rate is believed and kept to for a while.

use super::super::Delivery;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

/// Least length of an interval (`bbr_lt_intvl_min_rtts`).
const MIN_ROUNDS: u32 = 4;
/// An interval this many times longer says nothing.
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// Share of the delivered bytes that must be lost, in 256ths (`bbr_lt_loss_thresh`: about 20 %).
const LOSS_SHARE: u64 = 50;
/// Two rates agree within an eighth (`bbr_lt_bw_ratio`) or 4 kb/s (`bbr_lt_bw_diff`).
const AGREE_PART: u64 = 8;
const AGREE_BPS: u64 = 4_000;
/// How long the rate is used (`bbr_lt_bw_max_rtts`).
const USE_ROUNDS: u32 = 48;

#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    sampling: bool,
    /// The rate of the last interval that lost enough.
    rate: Option<BitRate>,
    /// The rate is used instead of the filter's.
    in_use: bool,
    rounds: u32,
    /// Where the interval began.
    since: Instant,
    delivered: u64,
    lost: u64,
    /// Bytes ever lost.
    total_lost: u64,
}

impl Policer {
    /// The rate to keep to instead of the filter's maximum.
    pub fn rate(&self) -> Option<BitRate> {
        self.rate.filter(|_| self.in_use)
    }

    /// Forgets everything but the losses counted.
    pub fn reset(&mut self) {
        *self = Self { total_lost: self.total_lost, ..Self::default() };
    }

    /// Counts an ACK. `may_expire` says that a rate in use may be given up, which happens only while
    /// probing for bandwidth; returns true when it was.
    pub fn update(&mut self, delivery: &Delivery, round_start: bool, may_expire: bool) -> bool {
        self.total_lost += delivery.lost;
        if self.in_use {
            if may_expire && round_start {
                self.rounds += 1;
                if self.rounds >= USE_ROUNDS {
                    self.reset();
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            // Intervals begin and end with a loss: then the policer's tokens are used up.
            if delivery.lost == 0 {
                return false;
            }
            self.begin_interval(delivery);
            self.sampling = true;
        }
        if delivery.sample.app_limited {
            self.reset();
            return false;
        }
        if round_start {
            self.rounds += 1;
        }
        if self.rounds < MIN_ROUNDS {
            return false;
        }
        if self.rounds > MAX_ROUNDS {
            self.reset();
            return false;
        }
        if delivery.lost > 0 {
            self.end_interval(delivery);
        }
        false
    }

    fn begin_interval(&mut self, delivery: &Delivery) {
        self.since = delivery.now;
        self.delivered = delivery.sample.delivered;
        self.lost = self.total_lost;
        self.rounds = 0;
    }

    fn end_interval(&mut self, delivery: &Delivery) {
        let lost = self.total_lost - self.lost;
        let delivered = delivery.sample.delivered - self.delivered;
        if delivered == 0 || lost * 256 < LOSS_SHARE * delivered {
            return;
        }
        let span = delivery.now.saturating_since(self.since);
        // Less than Linux' clock could tell apart from nothing.
        if span < Duration::from_millis(1) {
            return;
        }
        let Some(rate) = BitRate::from_amount(Bytes(delivered), span) else { return };
        if let Some(before) = self.rate {
            let apart = before.as_bps().abs_diff(rate.as_bps());
            if apart * AGREE_PART <= before.as_bps() || apart <= AGREE_BPS {
                self.rate = Some(BitRate::from_bps(u64::midpoint(before.as_bps(), rate.as_bps())));
                self.in_use = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = Some(rate);
        self.begin_interval(delivery);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::RateSample;

    /// A round of 10 ms in which `delivered` bytes arrive and `lost` do not.
    struct Path {
        policer: Policer,
        now: Instant,
        delivered: u64,
    }

    impl Path {
        fn new() -> Self {
            Self { policer: Policer::default(), now: Instant::ZERO, delivered: 0 }
        }

        fn round(&mut self, delivered: u64, lost: u64) -> bool {
            self.now += Duration::from_millis(10);
            self.delivered += delivered;
            let sample = RateSample { delivered: self.delivered, ..RateSample::default() };
            let delivery = Delivery { now: self.now, sample, lost, advanced: true, ..Delivery::default() };
            self.policer.update(&delivery, true, true)
        }
    }

    #[test]
    fn two_intervals_that_lose_a_fifth_at_one_rate_are_a_policer() {
        let mut path = Path::new();
        for _ in 0..4 {
            assert_eq!(path.policer.rate(), None);
            path.round(10_000, 2_500);
        }
        // 10 000 bytes in 10 ms are 8 Mb/s; it takes a second interval of four rounds to believe it.
        for _ in 0..4 {
            assert_eq!(path.policer.rate(), None);
            path.round(10_000, 2_500);
        }
        assert_eq!(path.policer.rate(), Some(BitRate::from_mbps(8)));
        // For 48 rounds, losses or not.
        for _ in 0..47 {
            assert!(!path.round(20_000, 0));
        }
        assert!(path.round(20_000, 0));
        assert_eq!(path.policer.rate(), None);
    }

    #[test]
    fn fewer_losses_or_rates_that_differ_are_none() {
        let mut mild = Path::new();
        let mut varied = Path::new();
        for round in 0..60 {
            mild.round(10_000, 1_000);
            varied.round(if round / 5 % 2 == 0 { 10_000 } else { 20_000 }, 6_000);
            assert_eq!((mild.policer.rate(), varied.policer.rate()), (None, None), "round {round}");
        }
    }
}
