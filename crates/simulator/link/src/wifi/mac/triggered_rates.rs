//! Rates of a client's HE TB PPDUs, where its access point finds them.

use tacit_packet::units::Instant;

use super::aggregation::AggregationLimits;
use super::plan::PpduPlan;
use super::rate_control::Minstrel;
use crate::wifi::phy::{Mode, ResourceUnit};

/// An access point's rate control for the HE TB PPDUs of a client that MU EDCA keeps from sending PPDUs of its own, by which it
/// could find a rate. A trigger sets the MCS (802.11ax-2021 clause 9.3.1.22); to one that tries another rate a client responds with one
/// MPDU and padding (ours).
#[derive(Clone, Debug)]
pub(crate) struct TriggeredRates {
    /// Among the client's rates of full width.
    control: Minstrel,
    /// The client's narrower rates, which come first in the tables of its noise.
    narrower: usize,
}

impl TriggeredRates {
    /// `control` chooses among the client's rates after the first `narrower`.
    pub fn new(control: Minstrel, narrower: usize) -> Self {
        Self { control, narrower }
    }

    /// The mode of PPDUs that try no rate.
    pub fn steady_mode(&self) -> Mode {
        self.control.steady(0).0.mode
    }

    /// The mode to ask for in the trigger at `now`. An MPDU of the client was sent again `retries` times.
    pub fn choose(&mut self, now: Instant, retries: u32) -> Mode {
        self.control.choose(now, retries).0.mode
    }

    /// Limits of a PPDU at the rate chosen last, and the index of that rate in `unit` in the noise of the link.
    pub fn chosen(&self, unit: ResourceUnit) -> (AggregationLimits, usize) {
        let (rate, index, is_try) = self.control.chosen();
        let limits = if is_try { rate.limits.single() } else { rate.limits };
        let rates = self.narrower + self.control.count();
        (limits, rates + (self.narrower + index) * ResourceUnit::ALL.len() + unit as usize)
    }

    /// Of the PPDU of this `plan`, `delivered` MPDUs arrived.
    pub fn report(&mut self, plan: &PpduPlan, delivered: u32) {
        self.control.report(plan.mpdus, delivered, plan.bytes, plan.more_data);
    }
}
