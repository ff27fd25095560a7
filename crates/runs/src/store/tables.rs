//! Runs as a sheet.

use super::sheet::Sheet;
use crate::metric;
use crate::record::{Label, RunRecord, RunSummary};

/// What a run is, without its parts.
#[derive(Clone, Copy)]
struct Whole<'a> {
    id: &'a str,
    label: &'a Label,
    digest: &'a str,
    measured_s: f64,
    metrics: &'a [Option<f64>],
}

impl<'a> From<&'a RunRecord> for Whole<'a> {
    fn from(run: &'a RunRecord) -> Self {
        let RunRecord { id, label, digest, measured_s, metrics, .. } = run;
        Self { id, label, digest, measured_s: *measured_s, metrics }
    }
}

impl<'a> From<&'a RunSummary> for Whole<'a> {
    fn from(run: &'a RunSummary) -> Self {
        let RunSummary { id, label, digest, measured_s, metrics, .. } = run;
        Self { id, label, digest, measured_s: *measured_s, metrics }
    }
}

/// Columns between the label of a run and its results.
type Between<'a> = dyn Fn(&mut Sheet) + 'a;

pub(super) fn runs(records: &[RunRecord]) -> Sheet {
    let texts = |sheet: &mut Sheet| {
        sheet.text("scenario_text", records.iter().map(|record| record.scenario_text.as_str()));
    };
    rows(&records.iter().map(Whole::from).collect::<Vec<_>>(), &texts)
}

/// Runs without the texts of their scenarios, in whose place are the columns that `between` adds.
pub(crate) fn summaries(runs: &[RunSummary], between: &Between<'_>) -> Sheet {
    rows(&runs.iter().map(Whole::from).collect::<Vec<_>>(), between)
}

fn rows(runs: &[Whole<'_>], between: &Between<'_>) -> Sheet {
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

/// A sheet with a row for each part of a run, which says first whose part it is.
pub(super) fn labelled<'a>(runs: impl Iterator<Item = &'a RunRecord> + Clone) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.text("run", runs.clone().map(|record| record.id.as_str()));
    sheet.text("scheme", runs.clone().map(|record| record.label.scheme.as_str()));
    sheet.integer("clients", runs.clone().map(|record| Some(record.label.clients.into())));
    sheet.integer("seed", runs.map(|record| Some(record.label.seed)));
    sheet
}
