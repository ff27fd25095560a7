//! A bound on bytes in flight, by losses: BBRv3's inflight_hi (draft-ietf-ccwg-bbr-02, where it is `BBR.inflight_longterm`),
//! with a condition of its own.

use super::super::super::Delivery;
use super::super::parts::UNIT;
use super::base_loss::BaseLoss;
use crate::units::Duration;

/// More lost in a round than one packet in fifty, where there is a queue: `BBR.LossThresh`, 2 %.
const LOSS_PART: u64 = 50;
/// Without a queue losses are the path's, up to one in six: the satellite paths of the successor paper's appendix C
/// lose 10 %, a policer's or a shallow buffer's overflow is more.
const LOSS_PART_ALONE: u64 = 6;
/// While the rate of startup still grows, up to one in two: a pipe that overflows carries no more than before. After a round
/// without growth up to one in three. Ours.
const LOSS_PARTS_GROWING: [u64; 2] = [2, 3];
/// In so few packets half are lost by chance.
const SEGMENTS_GROWING: u64 = 64;
/// And this number of packets more: chance must not do it in a short round.
const ALLOWANCE_SEGMENTS: u64 = 4;
/// A queue stood all through a round whose least round-trip time was this part above the smallest.
const QUEUE_PART: u64 = 4;
/// Share of the bytes in flight that heavy loss leaves: `BBR.Beta`, 0.7.
const BETA_TENTHS: u64 = 7;
/// Growth of the bound in the first cycle without heavy loss, as much as its probe asks for; each after it adds twice as much
/// as the last, as a probe of BBRv3 does each round: a bound that a bad moment brought must not stay.
const GROWTH: u64 = UNIT / 4;

#[derive(Clone, Debug, Default)]
pub(super) struct LossBound {
    /// Bytes that may be in flight, where losses have said so.
    pub bytes: Option<u64>,
    round: Round,
    /// A round of the current cycle lost too much.
    is_heavy: bool,
    /// Cycles since that did not.
    clean: u32,
    /// The path's own losses, independent of the bytes in flight, which are no sign of too much.
    pub base: BaseLoss,
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
    /// The least round-trip time.
    rtt: Option<Duration>,
}

impl LossBound {
    /// Takes in a delivery.
    pub fn update(&mut self, delivery: &Delivery) {
        let round = &mut self.round;
        round.lost += delivery.lost;
        round.delivered += delivery.sample.newly_delivered;
        round.limited += if delivery.sample.app_limited { delivery.sample.newly_delivered } else { 0 };
        round.in_flight = round.in_flight.max(delivery.prior_in_flight);
        if let Some(rtt) = delivery.sample.rtt {
            round.rtt = Some(round.rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// A round is over. True when it lost too much: then the bytes in flight are bounded by the share of them that arrived, 0.7
    /// at most; but `floor` bytes at least. In startup `stalled` rounds went by without growth.
    pub fn on_round(
        &mut self,
        rtt_min: Option<Duration>,
        mss: u64,
        floor: u64,
        stalled: Option<u32>,
    ) -> bool {
        let round = core::mem::take(&mut self.round);
        let queue = round.rtt.zip(rtt_min).is_some_and(|(rtt, least)| rtt > least + least / QUEUE_PART);
        let growing = stalled.and_then(|rounds| LOSS_PARTS_GROWING.get(rounds as usize));
        let part = if queue { LOSS_PART } else { growing.copied().unwrap_or(LOSS_PART_ALONE) };
        let sent = round.lost + round.delivered;
        let allowed = sent / part + self.base.expected(sent) + ALLOWANCE_SEGMENTS * mss;
        let few = growing.is_some() && sent < SEGMENTS_GROWING * mss;
        // Where data or room at the receiver lacked, the bytes in flight are no measure of the path (draft-ietf-ccwg-bbr: samples
        // with `is_app_limited` set no `BBR.inflight_longterm`).
        let limited = round.limited > round.delivered / 2;
        let heavy = round.lost > allowed && !few && !limited;
        if heavy {
            (self.is_heavy, self.clean) = (true, 0);
            let arrived =
                (u128::from(round.in_flight) * u128::from(round.delivered) / u128::from(sent)) as u64;
            let cut = arrived.min(round.in_flight / 10 * BETA_TENTHS).max(floor);
            self.bytes = Some(self.bytes.map_or(cut, |bound| bound.min(cut).max(floor)));
        }
        heavy
    }

    /// A cycle is over. Without heavy loss in it the bound grows; one above `cap` bounds nothing.
    pub fn on_cycle(&mut self, cap: u64) {
        if core::mem::take(&mut self.is_heavy) {
            return;
        }
        let growth = GROWTH << self.clean.min(8);
        self.clean += 1;
        self.bytes = self.bytes.map(|bound| bound + bound * growth / UNIT).filter(|bound| *bound < cap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Repair;
    use crate::congestion::rate::RateSample;
    use crate::units::Instant;

    const MSS: u64 = 1000;
    const RTT_MIN: Duration = Duration::from_millis(10);

    /// A round of `packets`, of which `lost` were lost.
    fn round(bound: &mut LossBound, packets: u64, lost: u64, rtt_ms: u64) -> bool {
        send(bound, packets, lost, rtt_ms, false);
        bound.on_round(Some(RTT_MIN), MSS, 100 * MSS, None)
    }

    fn send(bound: &mut LossBound, packets: u64, lost: u64, rtt_ms: u64, app_limited: bool) {
        bound.update(&Delivery {
            now: Instant::ZERO,
            sample: RateSample {
                newly_delivered: (packets - lost) * MSS,
                rtt: Some(Duration::from_millis(rtt_ms)),
                app_limited,
                ..RateSample::default()
            },
            lost: lost * MSS,
            prior_in_flight: packets * MSS,
            in_flight: 0,
            advanced: true,
            repair: Repair::None,
            smoothed_rtt: None,
            stamps: None,
            receiver_limited: false,
            receiver: None,
        });
    }

    /// A sender that waits for the receiver's window has little in flight, and its losses may be mostly of earlier data.
    #[test]
    fn a_round_in_which_the_path_was_not_asked_for_more_bounds_nothing() {
        let mut bound = LossBound::default();
        send(&mut bound, 200, 90, 10, true);
        assert!(!bound.on_round(Some(RTT_MIN), MSS, 10 * MSS, None));
        send(&mut bound, 120, 40, 10, false);
        send(&mut bound, 80, 50, 10, true);
        assert!(bound.on_round(Some(RTT_MIN), MSS, 10 * MSS, None), "less than half of it");
    }

    #[test]
    fn a_rate_that_grows_bears_the_loss_of_half_and_few_packets_of_more() {
        for (packets, lost, stalled, heavy) in [
            (400, 190, Some(0), false),
            (400, 240, Some(0), true),
            (400, 190, Some(1), true),
            (400, 120, Some(1), false),
            (400, 90, Some(2), true),
            (400, 90, None, true),
            (60, 50, Some(1), false),
            (60, 50, None, true),
        ] {
            let mut bound = LossBound::default();
            send(&mut bound, packets, lost, 10, false);
            assert_eq!(
                bound.on_round(Some(RTT_MIN), MSS, MSS, stalled),
                heavy,
                "{lost} of {packets}, {stalled:?}"
            );
        }
    }

    #[test]
    fn losses_bound_what_is_in_flight_where_a_queue_stands_or_where_they_are_many() {
        let mut bound = LossBound::default();
        assert!(!round(&mut bound, 1000, 20, 20), "2 %");
        assert!(!round(&mut bound, 1000, 100, 10), "10 % without a queue");
        assert_eq!(bound.bytes, None);
        assert!(round(&mut bound, 1000, 30, 20), "3 % in a queue");
        assert_eq!(bound.bytes, Some(700 * MSS));
        assert!(round(&mut bound, 700, 420, 10), "60 %");
        assert_eq!(bound.bytes, Some(280 * MSS));
        assert!(!round(&mut bound, 20, 3, 20), "a few packets");
    }

    #[test]
    fn a_bound_never_lies_below_its_floor_and_grows_ever_faster_without_losses() {
        let mut bound = LossBound::default();
        assert!(round(&mut bound, 120, 60, 20));
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
