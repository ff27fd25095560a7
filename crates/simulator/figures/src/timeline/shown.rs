//! The frames of a time line.

use tacit_analysis::chart::Views;
use tacit_analysis::chart::timeline::TimelineChart;
use tacit_runs::air::Ppdu;

use super::measure::Measure;
use super::words;

/// The frames shown, and their run.
pub(crate) struct Shown {
    pub ppdus: Vec<Ppdu>,
    pub metrics: Vec<Option<f64>>,
}

impl Shown {
    /// Evaluates `measure`.
    pub fn measured(&self, measure: &Measure) -> Option<f64> {
        measure.evaluate(&self.ppdus, &self.metrics)
    }

    /// The picture under this title.
    pub fn picture(&self, title: &str) -> Views {
        let chart = TimelineChart {
            alt: format!("{title}. {}", words::in_words(&self.ppdus)),
            lanes: words::lanes(&self.ppdus),
            exchanges: words::exchanges(&self.ppdus),
            legend: words::legend(&self.ppdus),
        };
        Views::one(chart.picture())
    }
}
