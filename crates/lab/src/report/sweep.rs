//! A sweep over an axis, drawn.

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::chart::{Line, LineChart};
use crate::record::RunRecord;
use crate::scheme::Scheme;
use crate::stats::Mean;
use crate::store::Provenance;
use crate::table::{TextTable, number, number_or_dash};

/// Goodput of each scheme along the axis of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Name of the scenario.
    pub scenario: String,
    /// What the sweep shows.
    pub title: String,
    /// By scheme, in the order of the scheme table, then x.
    pub rows: Vec<SweepRow>,
    /// Where it comes from.
    #[serde(skip)]
    pub provenance: Provenance,
}

/// One scheme at one place of the axis, averaged over seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepRow {
    /// Name of the scheme.
    pub scheme: String,
    /// Place on the axis.
    pub x: f64,
    /// Where the sweep has a second axis: the value of it that gives most at this x.
    pub best_of: Option<f64>,
    /// Runs averaged over.
    pub seeds: usize,
    /// Payload delivered in order per second, all flows, in bits.
    pub goodput_bps_mean: f64,
    /// Half-width of its 95 % confidence interval over the seeds.
    pub goodput_bps_ci95: Option<f64>,
}

impl Sweep {
    /// Aggregates the runs of a sweep.
    pub fn from_records(provenance: Provenance, records: &[RunRecord]) -> Self {
        let mut rows: Vec<SweepRow> = Vec::new();
        for (index, first) in records.iter().enumerate() {
            let place = |record: &RunRecord| {
                let label = &record.label;
                let bits = |value: Option<f64>| value.map(f64::to_bits);
                (label.scheme.clone(), bits(label.x), bits(label.best_of))
            };
            if records[..index].iter().any(|before| place(before) == place(first)) {
                continue;
            }
            let twins = records[index..].iter().filter(|record| place(record) == place(first));
            let Some(mean) = Mean::of(twins.filter_map(|record| record.metric("goodput_bps"))) else {
                continue;
            };
            let Some(x) = first.label.x else { continue };
            let row = SweepRow {
                scheme: first.label.scheme.clone(),
                x,
                best_of: first.label.best_of,
                seeds: mean.count,
                goodput_bps_mean: mean.mean,
                goodput_bps_ci95: mean.ci95,
            };
            let known =
                rows.iter_mut().find(|known| known.scheme == row.scheme && known.x.total_cmp(&x).is_eq());
            match known {
                Some(known) if known.goodput_bps_mean < row.goodput_bps_mean => *known = row,
                Some(_) => {}
                None => rows.push(row),
            }
        }
        rows.sort_by(|a, b| {
            Scheme::position(&a.scheme).cmp(&Scheme::position(&b.scheme)).then(a.x.total_cmp(&b.x))
        });
        Self {
            scenario: provenance.scenario.clone(),
            title: provenance.description.clone(),
            rows,
            provenance,
        }
    }

    fn schemes(&self) -> Vec<&str> {
        let mut schemes: Vec<&str> = self.rows.iter().map(|row| row.scheme.as_str()).collect();
        schemes.dedup();
        schemes
    }

    /// As a table of text.
    pub fn to_text(&self) -> String {
        let mut table =
            TextTable::new(&[["scheme", ""], ["x", ""], ["goodput", "Mb/s"], ["±", "Mb/s"], ["seeds", ""]]);
        for row in &self.rows {
            table.push(vec![
                row.scheme.clone(),
                number(row.x, 3),
                number(row.goodput_bps_mean / 1e6, 2),
                number_or_dash(row.goodput_bps_ci95.map(|ci| ci / 1e6), 2),
                row.seeds.to_string(),
            ]);
        }
        format!("{} ({})\n\n{}", self.title, self.scenario, table.render())
    }

    /// The curves and the numbers.
    pub(super) fn sections(&self) -> Markup {
        let line = |scheme: &str| Line {
            name: scheme.to_owned(),
            points: self
                .rows
                .iter()
                .filter(|row| row.scheme == scheme)
                .map(|row| (row.x, row.goodput_bps_mean / 1e6))
                .collect(),
        };
        let chart = LineChart {
            alt: format!("Goodput: {}", self.title),
            x: "place on the axis".to_owned(),
            y: "goodput, Mb/s".to_owned(),
            lines: self.schemes().into_iter().map(line).collect(),
            ..LineChart::default()
        };
        html! {
            section {
                h2 { "Goodput" }
                p { "Payload that reached the receiving applications in order, all flows together." }
                (PreEscaped(chart.to_svg()))
            }
            section {
                h2 { "Numbers" }
                div.scroll { table {
                    thead { tr {
                        th.name scope="col" { "scheme" }
                        th scope="col" { "x" }
                        th scope="col" { "goodput" br; small { "Mb/s" } }
                        th scope="col" { "±" br; small { "Mb/s" } }
                        th scope="col" { "seeds" }
                    } }
                    tbody { @for row in &self.rows { tr {
                        th.name scope="row" { (row.scheme) }
                        td { (row.x) }
                        td { (number(row.goodput_bps_mean / 1e6, 2)) }
                        td { (number_or_dash(row.goodput_bps_ci95.map(|ci| ci / 1e6), 2)) }
                        td { (row.seeds) }
                    } } }
                } }
            }
        }
    }
}
