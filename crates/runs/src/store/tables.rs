//! Runs as a sheet.

use super::sheet::Sheet;
use crate::metric;
use crate::record::RunRecord;

pub(super) fn runs(records: &[RunRecord]) -> Sheet {
    let mut sheet = Sheet::default();
    let labels = || records.iter().map(|record| &record.label);
    sheet.text("run", records.iter().map(|record| record.id.as_str()));
    sheet.text("scenario", labels().map(|label| label.scenario.as_str()));
    sheet.text("scheme", labels().map(|label| label.scheme.as_str()));
    sheet.integer("clients", labels().map(|label| Some(label.clients.into())));
    sheet.number("x", labels().map(|label| label.x));
    sheet.number("best_of", labels().map(|label| label.best_of));
    sheet.integer("seed", labels().map(|label| Some(label.seed)));
    sheet.text("scenario_text", records.iter().map(|record| record.scenario_text.as_str()));
    sheet.text("digest", records.iter().map(|record| record.digest.as_str()));
    sheet.number("measured_s", records.iter().map(|record| Some(record.measured_s)));
    for (index, metric) in metric::ALL.iter().enumerate() {
        let value = |record: &RunRecord| record.metrics.get(index).copied().flatten();
        sheet.number(metric.name, records.iter().map(value));
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
