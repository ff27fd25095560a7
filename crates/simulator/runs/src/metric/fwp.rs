//! Counters of FWP shims and of the downloads they serve.

use tacit_between::fwp;
use tacit_sim::record::{ApplicationResult, Downloaded, Percentiles};

use super::view::View;

impl<'a> View<'a> {
    /// Sum over all FWP shims; `None` if there are none.
    pub fn fwp(&self, count: impl Fn(&fwp::Counters) -> u64) -> Option<f64> {
        let stations = self.outcome.bss.iter().flat_map(|bss| &bss.stations);
        let counts = stations.filter_map(|station| Some(count(&station.driver.fwp()?)));
        counts.reduce(|sum, more| sum + more).map(|sum| sum as f64)
    }

    pub fn downloads(&self) -> impl Iterator<Item = &'a Downloaded> {
        self.outcome.applications.iter().filter_map(|application| match &application.result {
            ApplicationResult::Download(got) => Some(got),
            _ => None,
        })
    }

    /// Sum over all repaired downloads; `None` if there are none.
    pub fn repaired(&self, count: impl Fn(&Downloaded) -> f64) -> Option<f64> {
        self.downloads().map(count).reduce(|sum, more| sum + more)
    }

    /// A value of the download with the longest delay; `None` if nothing was repaired.
    pub fn slowest_repair(&self, percentile: impl Fn(&Percentiles) -> u64) -> Option<f64> {
        let delays = self.downloads().map(|got| &got.repair_delay_us).filter(|delay| delay.count > 0);
        delays.map(|delay| percentile(delay) as f64 / 1e3).reduce(f64::max)
    }
}
