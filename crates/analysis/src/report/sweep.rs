//! Draws a sweep over an axis.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::chart::{Line, LineChart};
use tacit_runs::aggregate::{self, Column, Group};
use tacit_runs::metric::{self, resolve_column};
use tacit_runs::record::RunSummary;
use tacit_runs::store::Provenance;
use tacit_scenario::scheme::Scheme;
use tacit_scenario::table::{TextTable, number, number_or_dash};

/// The metric of sweeps that do not set one.
const GOODPUT: &str = "goodput_mbps";

/// A metric of each scheme along the axis of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Name of the scenario.
    pub scenario: String,
    /// Title of the sweep.
    pub title: String,
    /// Label of the axis.
    pub x_label: String,
    /// The averaged quantity, with its unit.
    pub y_label: String,
    /// Its name: a metric; `_mbps` means a `_bps` metric in millions.
    pub column: String,
    /// Rows ordered by scheme, as in the scheme table, then x.
    pub rows: Vec<SweepRow>,
    /// The provenance of the results.
    #[serde(skip)]
    pub provenance: Provenance,
}

/// One scheme at one x value, averaged over seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepRow {
    /// Name of the scheme.
    pub scheme: String,
    /// Position on the axis.
    pub x: f64,
    /// If the sweep has a second axis, its best value at this x.
    pub best_of: Option<f64>,
    /// Number of runs averaged.
    pub seeds: usize,
    /// Mean of the column over the seeds.
    pub mean: f64,
    /// Half-width of its 95 % confidence interval.
    pub ci95: Option<f64>,
}

impl Sweep {
    /// Aggregates the runs of a sweep.
    pub fn from_records(provenance: Provenance, records: &[RunSummary]) -> Self {
        let named = |label: &str, otherwise: &str| match label {
            "" => otherwise.to_owned(),
            label => label.to_owned(),
        };
        let column = named(&provenance.column, GOODPUT);
        let mut rows = Column::named(&column).map_or_else(Vec::new, |column| rows(records, column));
        rows.sort_by(|a, b| {
            Scheme::position(&a.scheme).cmp(&Scheme::position(&b.scheme)).then(a.x.total_cmp(&b.x))
        });
        Self {
            scenario: provenance.scenario.clone(),
            title: provenance.description.clone(),
            x_label: named(&provenance.x_label, "place on the axis"),
            y_label: named(&provenance.y_label, "goodput (Mb/s)"),
            column,
            rows,
            provenance,
        }
    }

    fn schemes(&self) -> Vec<&str> {
        let mut schemes: Vec<&str> = self.rows.iter().map(|row| row.scheme.as_str()).collect();
        schemes.dedup();
        schemes
    }

    /// The sweep as a text table.
    pub fn to_text(&self) -> String {
        let mut table = TextTable::new(&[
            ["scheme", ""],
            name_and_unit(&self.x_label),
            name_and_unit(&self.y_label),
            ["±", name_and_unit(&self.y_label)[1]],
            ["seeds", ""],
        ]);
        for row in &self.rows {
            table.push(vec![
                row.scheme.clone(),
                number(row.x, 3),
                number(row.mean, 2),
                number_or_dash(row.ci95, 2),
                row.seeds.to_string(),
            ]);
        }
        format!("{} ({})\n\n{}", self.title, self.scenario, table.render())
    }

    /// The curves, and the table of values.
    pub(super) fn sections(&self) -> Markup {
        let line = |scheme: &str| Line {
            name: scheme.to_owned(),
            points: self
                .rows
                .iter()
                .filter(|row| row.scheme == scheme)
                .map(|row| (row.x, row.mean))
                .collect(),
            ci95: self.rows.iter().filter(|row| row.scheme == scheme).map(|row| row.ci95).collect(),
        };
        let chart = LineChart {
            alt: format!("{}: {}", self.y_label, self.title),
            x: self.x_label.clone(),
            y: self.y_label.clone(),
            lines: self.schemes().into_iter().map(line).collect(),
            ..LineChart::default()
        };
        html! {
            section {
                h2 { (self.y_label) }
                @if let Some((metric, _)) = resolve_column(&self.column) { p { (metric::ALL[metric].summary) } }
                (PreEscaped(chart.to_svg()))
            }
            section {
                h2 { "Numbers" }
                div.scroll { table {
                    thead { tr {
                        th.name scope="col" { "scheme" }
                        th scope="col" { (self.x_label) }
                        th scope="col" { (self.y_label) }
                        th scope="col" { "±" }
                        th scope="col" { "seeds" }
                    } }
                    tbody { @for row in &self.rows { tr {
                        th.name scope="row" { (row.scheme) }
                        td { (row.x) }
                        td { (number(row.mean, 2)) }
                        td { (number_or_dash(row.ci95, 2)) }
                        td { (row.seeds) }
                    } } }
                } }
            }
        }
    }
}

/// For each scheme and x, the best value on the second axis, in the order of the runs.
fn rows(records: &[RunSummary], column: Column) -> Vec<SweepRow> {
    let mut places: Vec<Vec<Group<'_>>> = Vec::new();
    let mut known = BTreeMap::new();
    for group in aggregate::groups(records) {
        let Some((label, x)) = group.label().and_then(|label| Some((label, label.x?))) else { continue };
        let place = *known.entry((label.scheme.as_str(), x.to_bits())).or_insert(places.len());
        if place == places.len() {
            places.push(Vec::new());
        }
        // The place exists, because it was added above if it was missing.
        places[place].push(group);
    }
    let row = |groups| {
        let best = Group::best(groups, column)?;
        let (label, mean) = (best.label()?, best.mean(column)?);
        Some(SweepRow {
            scheme: label.scheme.clone(),
            x: label.x?,
            best_of: label.best_of,
            seeds: mean.count,
            mean: mean.mean,
            ci95: mean.ci95,
        })
    };
    places.into_iter().filter_map(row).collect()
}

/// Splits `goodput (Mb/s)` into name and unit.
fn name_and_unit(label: &str) -> [&str; 2] {
    let parts = label.strip_suffix(')').and_then(|label| label.rsplit_once(" ("));
    parts.map_or([label, ""], |(name, unit)| [name, unit])
}
