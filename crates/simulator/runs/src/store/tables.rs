//! Runs as a sheet.

use super::sheet::Sheet;
use crate::metric;
use crate::record::{Label, RunRecord};

/// A run without its parts.
#[derive(Clone, Copy)]
pub(crate) struct RunRow<'a> {
    pub id: &'a str,
    pub label: &'a Label,
    pub digest: &'a str,
    pub measured_s: f64,
    pub metrics: &'a [Option<f64>],
}

impl<'a> From<&'a RunRecord> for RunRow<'a> {
    fn from(run: &'a RunRecord) -> Self {
        let RunRecord { id, label, digest, measured_s, metrics, .. } = run;
        Self { id, label, digest, measured_s: *measured_s, metrics }
    }
}

/// Adds columns between the label of a run and its results.
type Between<'a> = dyn Fn(&mut Sheet) + 'a;

pub(super) fn runs(records: &[RunRecord]) -> Sheet {
    let texts = |sheet: &mut Sheet| {
        sheet.text("scenario_text", records.iter().map(|record| record.scenario_text.as_str()));
    };
    rows(&records.iter().map(RunRow::from).collect::<Vec<_>>(), &texts)
}

/// Runs as rows. The columns that `between` adds replace the text of the scenario.
pub(crate) fn rows(runs: &[RunRow<'_>], between: &Between<'_>) -> Sheet {
    let mut sheet = Sheet::default();
    let labels = || runs.iter().map(|run| run.label);
    sheet.text("run", runs.iter().map(|run| run.id));
    sheet.text("scenario", labels().map(|label| label.scenario.as_str()));
    sheet.text("scheme", labels().map(|label| label.scheme.as_str()));
    sheet.integer("clients", labels().map(|label| Some(label.clients.into())));
    sheet.number("x", labels().map(|label| label.x));
    sheet.number("best_of", labels().map(|label| label.best_of));
    sheet.integer("seed", labels().map(|label| Some(label.seed)));
    between(&mut sheet);
    sheet.text("digest", runs.iter().map(|run| run.digest));
    sheet.number("measured_s", runs.iter().map(|run| Some(run.measured_s)));
    for (index, metric) in metric::ALL.iter().enumerate() {
        sheet.number(metric.name, runs.iter().map(|run| run.metrics.get(index).copied().flatten()));
    }
    sheet
}

/// A sheet with one row per part of a run, with the columns that identify the run.
pub(super) fn labelled<'a>(runs: impl Iterator<Item = &'a RunRecord> + Clone) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.text("run", runs.clone().map(|record| record.id.as_str()));
    sheet.text("scheme", runs.clone().map(|record| record.label.scheme.as_str()));
    sheet.integer("clients", runs.clone().map(|record| Some(record.label.clients.into())));
    sheet.integer("seed", runs.map(|record| Some(record.label.seed)));
    sheet
}
