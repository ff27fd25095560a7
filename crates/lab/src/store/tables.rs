//! Runs as a sheet, and a sheet as runs.

use super::sheet::{Column, Sheet};
use crate::metric;
use crate::record::{Label, RunRecord};

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

/// The runs of a sheet, each without its parts.
pub(super) fn read_runs(runs: &Sheet) -> Result<Vec<RunRecord>, String> {
    let cells = |name| Cells::new(runs, name);
    let (id, scenario, scheme, digest) =
        (cells("run")?, cells("scenario")?, cells("scheme")?, cells("digest")?);
    let (clients, x, best_of) = (cells("clients")?, cells("x")?, cells("best_of")?);
    let (seed, measured) = (cells("seed")?, cells("measured_s")?);
    let scenario_text = cells("scenario_text")?;
    let metrics = metric::ALL.iter().map(|metric| cells(metric.name)).collect::<Result<Vec<_>, _>>()?;
    let record = |row| RunRecord {
        id: id.text(row).to_owned(),
        label: Label {
            scenario: scenario.text(row).to_owned(),
            scheme: scheme.text(row).to_owned(),
            clients: clients.small(row),
            x: x.number(row),
            best_of: best_of.number(row),
            seed: seed.integer(row).unwrap_or_default(),
        },
        scenario_text: scenario_text.text(row).to_owned(),
        digest: digest.text(row).to_owned(),
        measured_s: measured.number(row).unwrap_or_default(),
        metrics: metrics.iter().map(|metric| metric.number(row)).collect(),
        flows: Vec::new(),
        applications: Vec::new(),
        hops: Vec::new(),
        stations: Vec::new(),
        series: Vec::new(),
    };
    Ok((0..id.len()).map(record).collect())
}

/// A column by name; cells of another type than asked for read as absent.
pub(super) struct Cells<'a>(&'a Column);

impl<'a> Cells<'a> {
    pub fn new(sheet: &'a Sheet, name: &str) -> Result<Self, String> {
        let column = sheet.columns.iter().find(|(column, _)| column == name);
        column.map(|(_, column)| Self(column)).ok_or_else(|| format!("there is no column {name:?}"))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn text(&self, row: usize) -> &'a str {
        match self.0 {
            Column::Text(values) => values.get(row).map_or("", String::as_str),
            _ => "",
        }
    }

    fn integer(&self, row: usize) -> Option<u64> {
        match self.0 {
            Column::Integer(values) => {
                values.get(row).copied().flatten().and_then(|value| value.try_into().ok())
            }
            _ => None,
        }
    }

    fn small(&self, row: usize) -> u32 {
        self.integer(row).and_then(|value| value.try_into().ok()).unwrap_or_default()
    }

    fn number(&self, row: usize) -> Option<f64> {
        match self.0 {
            Column::Number(values) => values.get(row).copied().flatten(),
            _ => None,
        }
    }
}
