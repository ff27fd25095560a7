//! Losses: the share that the path loses at any rate, which is to be sent again, and more, which bounds the bytes in flight and
//! the rate: BBRv3's inflight_hi and bw_lo (draft-ietf-ccwg-bbr-02, where they are `BBR.inflight_longterm` and
//! `BBR.bw_shortterm`), with a condition of its own.

use super::super::super::Delivery;
use super::super::parts::UNIT;
use tacit_packet::units::BitRate;

/// Heavy is a loss of more than one packet in fifty of a round, `BBR.LossThresh`, beside the path's own.
const LOSS_PART: u64 = 50;
/// And of a few packets more: chance must not do it.
const ALLOWANCE_SEGMENTS: u64 = 2;
/// Rounds of fewer packets are judged together. Ours.
const LEAST_SEGMENTS: u64 = 32;
/// As are rounds of fewer reports, once the start-up is over: on Wi-Fi one report covers one A-MPDU, and its rate varies with the
/// turns of others. A round trip of the paper has four.
const LEAST_REPORTS: u64 = 4;
/// A start-up bears one round that lost this part more. One that asks for 2.89 times the bottleneck's rate loses two thirds. Ours.
const BORNE_PART: u64 = 4;
/// What heavy loss leaves of bytes in flight and rate, at least of the latter: `BBR.Beta`, 0.7.
const BETA_TENTHS: u64 = 7;
/// And this part of what arrives, beside those 0.7: the queue that overflowed drains. Ours.
const GIVEN_UP_PART: u64 = 64;
/// Growth of the bound in the first cycle without heavy loss, as much as its probe asks for; each after it adds twice as much
/// as the last, as a probe of BBRv3 does each round: a bound that a bad moment brought must not stay.
const GROWTH: u64 = UNIT / 4;
/// Of a smaller share of the path's own, in 256ths, a probe makes up for itself.
const LEAST_BASE: u64 = 8;
/// And of a larger one no more is believed.
const MOST_BASE: u64 = 128;

#[derive(Clone, Debug, Default)]
pub(super) struct LossBound {
    /// Bytes that may be in flight, where losses have said so.
    pub bytes: Option<u64>,
    /// And the rate at which they may arrive in this cycle.
    pub rate: Option<BitRate>,
    round: Round,
    /// A round of the current cycle lost too much; in a start-up the latest.
    is_heavy: bool,
    /// Cycles since that did not.
    clean: u32,
    /// The share that the path loses at any rate, in 256ths.
    base: u64,
}

/// Counts of a round so far.
#[derive(Clone, Debug, Default)]
struct Round {
    /// Bytes lost and delivered.
    lost: u64,
    delivered: u64,
    /// Of `delivered`, bytes that were sent while the application or the receiver set the pace.
    limited: u64,
    /// Most bytes in flight.
    in_flight: u64,
    /// Rates of arrival, by report: their sum and number.
    rates_bps: u64,
    reports: u64,
}

impl Round {
    /// The mean rate of arrival.
    fn rate(&self) -> BitRate {
        BitRate::from_bps(self.rates_bps.checked_div(self.reports).unwrap_or(0))
    }
}

impl LossBound {
    /// Counts a delivery; data arrives at `rate` now.
    pub fn update(&mut self, delivery: &Delivery, rate: BitRate) {
        if let Some(report) = &delivery.receiver {
            self.base = u64::from(report.base_loss).min(MOST_BASE);
        }
        let round = &mut self.round;
        round.lost += delivery.lost;
        round.delivered += delivery.sample.newly_delivered;
        round.limited += if delivery.sample.app_limited { delivery.sample.newly_delivered } else { 0 };
        round.in_flight = round.in_flight.max(delivery.prior_in_flight);
        round.rates_bps = round.rates_bps.saturating_add(rate.as_bps());
        round.reports += 1;
    }

    /// A round is over. True when it lost too much: then data that arrived at the rate `before` arrives a little more slowly than
    /// in this round, or at 0.7 of that, until the cycle ends; and the bytes in flight are bounded by the share of them that arrived, 0.7 at
    /// most, but `floor` bytes at least. A start-up that is `starting` bears one such round, if it lost a quarter at most: of a path
    /// that reorders, the first packets that come late count as lost.
    pub fn on_round(&mut self, mss: u64, floor: u64, before: BitRate, starting: bool) -> bool {
        let sent = self.round.lost + self.round.delivered;
        if sent < LEAST_SEGMENTS * mss || (!starting && self.round.reports < LEAST_REPORTS) {
            return false;
        }
        let round = core::mem::take(&mut self.round);
        let allowed = sent / LOSS_PART + sent * self.base * 5 / (4 * 256) + ALLOWANCE_SEGMENTS * mss;
        // Where data or room at the receiver lacked, the bytes in flight are no measure of the path (draft-ietf-ccwg-bbr: samples
        // with `is_app_limited` set no `BBR.inflight_longterm`).
        let limited = round.limited > round.delivered / 2;
        let heavy = round.lost > allowed && !limited;
        let borne = starting && heavy && !self.is_heavy && round.lost <= allowed + sent / BORNE_PART;
        self.is_heavy = if starting { heavy } else { heavy || self.is_heavy };
        if !heavy || borne {
            return false;
        }
        self.clean = 0;
        let arrived = (u128::from(round.in_flight) * u128::from(round.delivered) / u128::from(sent)) as u64;
        let cut = arrived.min(round.in_flight / 10 * BETA_TENTHS).max(floor);
        self.bytes = Some(self.bytes.map_or(cut, |bound| bound.min(cut).max(floor)));
        let least = BitRate::from_bps(before.as_bps() / 10 * BETA_TENTHS);
        let arrives = round.rate().as_bps();
        let left = BitRate::from_bps(arrives - arrives / GIVEN_UP_PART);
        self.rate = Some(left.max(least).min(before));
        true
    }

    /// A cycle is over. Without heavy loss in it the bound grows; one above `cap` bounds nothing.
    pub fn on_cycle(&mut self, cap: u64) {
        self.rate = None;
        if core::mem::take(&mut self.is_heavy) {
            return;
        }
        let growth = GROWTH << self.clean.min(8);
        self.clean += 1;
        self.bytes = self.bytes.map(|bound| bound + bound * growth / UNIT).filter(|bound| *bound < cap);
    }

    /// The share of the path's own losses for which more is sent, in 256ths.
    fn share(&self) -> u64 {
        if self.base < LEAST_BASE { 0 } else { self.base }
    }

    /// And that for which nothing more is.
    pub fn uncompensated(&self) -> u64 {
        self.base - self.share()
    }

    /// The rate at which to send for data to arrive at `rate`.
    pub fn sent_for(&self, rate: BitRate) -> BitRate {
        BitRate::from_bps((u128::from(rate.as_bps()) * 256 / u128::from(256 - self.share())) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReceiverReport;
    use crate::rate::RateSample;
    use tacit_packet::units::{Bytes, Duration, Instant};

    const MSS: u64 = 1000;
    const MBPS: fn(u64) -> BitRate = BitRate::from_mbps;

    /// Sends `packets` and loses `lost` of them, over a path that loses `base` of 256, in as many reports as a round needs.
    fn send(bound: &mut LossBound, packets: u64, lost: u64, base: u8, app_limited: bool) {
        report(bound, packets, lost, base, app_limited);
        (1..LEAST_REPORTS).for_each(|_| report(bound, 0, 0, base, app_limited));
    }

    fn report(bound: &mut LossBound, packets: u64, lost: u64, base: u8, app_limited: bool) {
        let (interval, wait) = (Duration::from_millis(10), Duration::ZERO);
        let delivery = Delivery {
            now: Instant::ZERO,
            sample: RateSample {
                newly_delivered: (packets - lost) * MSS,
                app_limited,
                ..RateSample::default()
            },
            lost: lost * MSS,
            prior_in_flight: packets * MSS,
            advanced: true,
            receiver: Some(ReceiverReport { rate: None, base_loss: base, interval, wait, burst: Bytes(0) }),
            ..Delivery::default()
        };
        bound.update(&delivery, MBPS(8));
    }

    /// The end of a round in which 8 Mb/s arrived, and 10 before.
    fn end(bound: &mut LossBound) -> bool {
        bound.on_round(MSS, 100 * MSS, MBPS(10), false)
    }

    fn round(bound: &mut LossBound, packets: u64, lost: u64, base: u8) -> bool {
        send(bound, packets, lost, base, false);
        end(bound)
    }

    #[test]
    fn two_per_cent_and_two_packets_beside_five_quarters_of_the_paths_own_are_no_heavy_loss() {
        for (packets, lost, base, heavy) in [
            (1_000, 22, 0, false),
            (1_000, 23, 0, true),
            (1_024, 22 + 80, 16, false),
            (1_024, 23 + 80, 16, true),
            (32, 2, 0, false),
            (32, 3, 0, true),
            // More than a half is never the path's own.
            (1_024, 22 + 640, 128, false),
            (1_024, 23 + 640, 255, true),
        ] {
            let found = round(&mut LossBound::default(), packets, lost, base);
            assert_eq!(found, heavy, "{lost} of {packets}, {base} of 256");
        }
    }

    #[test]
    fn rounds_of_fewer_than_32_packets_are_judged_together() {
        let mut bound = LossBound::default();
        assert!(!round(&mut bound, 15, 2, 0));
        assert!(!round(&mut bound, 16, 14, 0), "31 packets");
        assert!(round(&mut bound, 1, 0, 0));
        assert!(!round(&mut bound, 31, 31, 0), "they begin again");
    }

    #[test]
    fn rounds_of_fewer_than_four_reports_are_judged_together_after_the_start_up() {
        let mut bound = LossBound::default();
        for reports in 1..=4 {
            report(&mut bound, 100, 50, 0, false);
            assert_eq!(end(&mut bound), reports == 4, "{reports}");
        }
        let mut starting = LossBound::default();
        for heavy in [false, true] {
            report(&mut starting, 100, 20, 0, false);
            assert_eq!(starting.on_round(MSS, MSS, MBPS(10), true), heavy);
        }
    }

    #[test]
    fn a_share_of_a_thirty_second_and_up_to_a_half_is_sent_in_addition() {
        for (base, rate, uncompensated) in
            [(7, 100, 7), (8, 103, 0), (64, 133, 0), (128, 200, 0), (255, 200, 0)]
        {
            let mut bound = LossBound::default();
            send(&mut bound, 100, 0, base, false);
            let found = (bound.sent_for(MBPS(100)).as_bps() / 1_000_000, bound.uncompensated());
            assert_eq!(found, (rate, uncompensated), "{base} of 256");
        }
    }

    /// A sender that waits for the receiver's window has little in flight, and its losses may be mostly of earlier data.
    #[test]
    fn a_round_in_which_the_path_was_not_asked_for_more_bounds_nothing() {
        let mut bound = LossBound::default();
        send(&mut bound, 200, 90, 0, true);
        assert!(!end(&mut bound));
        send(&mut bound, 120, 40, 0, false);
        send(&mut bound, 80, 50, 0, true);
        assert!(end(&mut bound), "less than half of it");
    }

    #[test]
    fn heavy_loss_bounds_what_is_in_flight_and_the_rate_until_the_next_cycle() {
        let mut bound = LossBound::default();
        assert!(round(&mut bound, 1_000, 30, 0));
        assert_eq!(
            (bound.bytes, bound.rate),
            (Some(700 * MSS), Some(BitRate::from_kbps(7_875))),
            "63 of 64 of what arrived"
        );
        for (before, rate) in [(MBPS(20), MBPS(14)), (MBPS(5), MBPS(5))] {
            send(&mut bound, 700, 420, 0, false);
            assert!(bound.on_round(MSS, 100 * MSS, before, false));
            assert_eq!((bound.bytes, bound.rate), (Some(280 * MSS), Some(rate)));
        }
        bound.on_cycle(1_000 * MSS);
        assert_eq!((bound.bytes, bound.rate), (Some(280 * MSS), None));
    }

    #[test]
    fn a_start_up_ends_by_the_second_heavy_loss_in_a_row() {
        let mut bound = LossBound::default();
        for (lost, heavy) in [(272, false), (0, false), (272, false), (272, true)] {
            send(&mut bound, 1_000, lost, 0, false);
            assert_eq!(bound.on_round(MSS, MSS, MBPS(10), true), heavy);
            assert_eq!(bound.bytes.is_some(), heavy);
        }
    }

    /// 22 of 1,000 are none, and 250 more may be late.
    #[test]
    fn a_start_up_ends_by_a_loss_of_more_than_a_quarter() {
        for (lost, base, heavy) in
            [(272, 0, false), (273, 0, true), (272 + 122, 25, false), (273 + 122, 25, true)]
        {
            let mut bound = LossBound::default();
            send(&mut bound, 1_000, lost, base, false);
            assert_eq!(bound.on_round(MSS, MSS, MBPS(10), true), heavy, "{lost}");
        }
    }

    #[test]
    fn a_bound_never_lies_below_its_floor_and_grows_ever_faster_without_losses() {
        let mut bound = LossBound::default();
        assert!(round(&mut bound, 120, 60, 0));
        assert_eq!(bound.bytes, Some(100 * MSS));
        bound.on_cycle(200 * MSS);
        assert_eq!(bound.bytes, Some(100 * MSS), "this cycle had losses");
        bound.on_cycle(200 * MSS);
        assert_eq!(bound.bytes, Some(125 * MSS));
        bound.on_cycle(200 * MSS);
        assert_eq!(bound.bytes, Some(125 * MSS * 3 / 2));
        bound.on_cycle(200 * MSS);
        assert_eq!(bound.bytes, None);
    }
}
