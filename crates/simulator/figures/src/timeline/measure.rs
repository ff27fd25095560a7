//! Measures of claims over time lines.

use super::select::Selector;
use crate::metrics::known_metric;
use tacit_runs::air::Ppdu;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, text};

/// Measure of a claim over a time line.
#[derive(Clone, Debug)]
pub(crate) enum Measure {
    /// Number of PPDUs shown that match.
    Count(Selector),
    /// A metric of the run: its index in the table, and a factor.
    Metric(usize, f64),
}

impl Measure {
    pub fn read(section: Section<'_>) -> Result<Self, InputError> {
        let measure = match section.optional("metric", |name| known_metric(&text(name)?))? {
            Some((metric, factor)) => Self::Metric(metric, factor),
            None => {
                if section.node("count").is_none() {
                    return Err(section.error("count", "one of count and metric is needed"));
                }
                Self::Count(Selector::read(&section, "count")?)
            }
        };
        section.finish()?;
        Ok(measure)
    }

    /// The value for the PPDUs shown and the metrics of their run.
    pub fn evaluate(&self, ppdus: &[Ppdu], metrics: &[Option<f64>]) -> Option<f64> {
        match self {
            Self::Count(selector) => Some(ppdus.iter().filter(|ppdu| selector.matches(ppdu)).count() as f64),
            Self::Metric(metric, factor) => Some(metrics.get(*metric).copied().flatten()? * factor),
        }
    }
}
