//! Runs as a sheet.

use super::sheet::Sheet;
use crate::metric;
use crate::record::{RunRecord, RunSummary};

/// Adds columns between the label of a run and its results.
type Between<'a> = dyn Fn(&mut Sheet) + 'a;

pub(super) fn runs(records: &[RunRecord]) -> Sheet {
    let runs: Vec<&RunSummary> = records.iter().map(|record| &record.run).collect();
    rows(&runs, &|sheet| sheet.text("scenario_text", runs.iter().map(|run| run.scenario_text.as_ref())))
}

/// Runs as rows. The columns that `between` adds replace the text of the scenario.
pub(crate) fn rows(runs: &[&RunSummary], between: &Between<'_>) -> Sheet {
    let mut sheet = Sheet::default();
    let labels = || runs.iter().map(|run| &run.label);
    sheet.text("run", runs.iter().map(|run| run.id.as_str()));
    sheet.text("scenario", labels().map(|label| label.scenario.as_str()));
    sheet.text("scheme", labels().map(|label| label.scheme.as_str()));
    sheet.integer("clients", labels().map(|label| Some(label.clients.into())));
    sheet.number("x", labels().map(|label| label.x));
    sheet.number("best_of", labels().map(|label| label.best_of));
    sheet.integer("seed", labels().map(|label| Some(label.seed)));
    between(&mut sheet);
    sheet.text("digest", runs.iter().map(|run| run.digest.as_str()));
    sheet.number("measured_s", runs.iter().map(|run| Some(run.measured_s)));
    for (index, metric) in metric::ALL.iter().enumerate() {
        sheet.number(metric.name, runs.iter().map(|run| run.metrics.get(index).copied().flatten()));
    }
    sheet
}

/// A sheet with one row per part of a run, with the columns that identify the run.
pub(super) fn labelled<'a>(runs: impl Iterator<Item = &'a RunSummary> + Clone) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.text("run", runs.clone().map(|run| run.id.as_str()));
    sheet.text("scheme", runs.clone().map(|run| run.label.scheme.as_str()));
    sheet.integer("clients", runs.clone().map(|run| Some(run.label.clients.into())));
    sheet.integer("seed", runs.map(|run| Some(run.label.seed)));
    sheet
}
