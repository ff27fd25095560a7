//! The short-term model: what the path delivers while the flow does not probe for more (draft section 5.5.10.3).
//!
//! Each round with losses cuts it towards what was delivered in that round, by 0.7 at most. The next probe forgets it.

use super::BETA;
use crate::bbr::parts::{UNIT, scaled};
use crate::rate::RateSample;
use tacit_packet::units::BitRate;

#[derive(Clone, Debug, Default)]
pub(super) struct ShortTerm {
    /// BBR.bw_shortterm; `None` is infinity.
    pub bandwidth: Option<BitRate>,
    /// BBR.inflight_shortterm in bytes; `None` is infinity.
    pub in_flight: Option<u64>,
    /// BBR.bw_latest and BBR.inflight_latest: the most of the round.
    bandwidth_latest: BitRate,
    pub in_flight_latest: u64,
    /// BBR.loss_round_delivered: the round is over when data sent after it is delivered.
    round_end: u64,
    /// BBR.loss_round_start: the last delivery began a round.
    pub round_started: bool,
    /// BBR.is_loss_in_round.
    loss_in_round: bool,
    /// Deliveries of the round that reported losses (Linux `loss_events_in_round`).
    pub loss_events: u32,
}

impl ShortTerm {
    /// NoteLoss(): the round is counted from the first loss. True if this is that.
    pub fn note_loss(&mut self, delivered: u64) -> bool {
        let first = !self.loss_in_round;
        if first {
            self.round_end = delivered;
        }
        self.loss_in_round = true;
        self.loss_events += 1;
        first
    }

    /// UpdateLatestDeliverySignals(), near the start of a delivery.
    pub fn begin(&mut self, sample: &RateSample) {
        self.round_started = false;
        let (Some(rate), Some((volume, _))) = (sample.rate(), sample.over) else { return };
        self.bandwidth_latest = self.bandwidth_latest.max(rate);
        self.in_flight_latest = self.in_flight_latest.max(volume.0);
        if sample.prior_delivered >= self.round_end {
            self.round_end = sample.delivered;
            self.round_started = true;
        }
    }

    /// UpdateCongestionSignals(): once per round, adapts to its losses unless the flow `probes` for more. Starts from the
    /// largest bandwidth and the window `cwnd`.
    pub fn adapt(&mut self, probes: bool, largest: BitRate, cwnd: u64) {
        if !self.round_started {
            return;
        }
        if self.loss_in_round && !probes {
            let bandwidth = scaled(self.bandwidth.unwrap_or(largest), BETA);
            let in_flight = self.in_flight.unwrap_or(cwnd) * BETA / UNIT;
            self.bandwidth = Some(bandwidth.max(self.bandwidth_latest));
            self.in_flight = Some(in_flight.max(self.in_flight_latest));
        }
        self.loss_in_round = false;
    }

    /// AdvanceLatestDeliverySignals(), near the end of a delivery.
    pub fn end(&mut self, sample: &RateSample) {
        if self.round_started {
            self.bandwidth_latest = sample.rate().unwrap_or_default();
            self.in_flight_latest = sample.over.map_or(0, |(volume, _)| volume.0);
            self.loss_events = 0;
        }
    }

    /// ResetCongestionSignals().
    pub fn reset_signals(&mut self) {
        self.forgive();
        self.bandwidth_latest = BitRate::default();
        self.in_flight_latest = 0;
    }

    /// The losses of this round were none.
    pub fn forgive(&mut self) {
        self.loss_in_round = false;
    }

    /// ResetShortTermModel().
    pub fn forget(&mut self) {
        self.bandwidth = None;
        self.in_flight = None;
    }
}
