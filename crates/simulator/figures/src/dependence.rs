//! How a result depends on variants: a value of a sweep compared with its value in each variant.

use serde::Serialize;

use super::measure::same;
use super::sweep::Sweep;
use super::value;
use super::variant::Depends;
use tacit_runs::aggregate::{Column, Group};
use tacit_runs::record::RunSummary;
use tacit_scenario::table::{TextTable, number};

/// The same value in the sweep and in each of its variants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dependence {
    /// The measure that is shown.
    pub measure: String,
    /// Its unit.
    pub unit: String,
    /// Label of the axis.
    pub x_label: String,
    /// Places on the axis, one column each.
    pub x: Vec<f64>,
    /// The sweep as drawn, followed by its variants.
    pub rows: Vec<DependenceRow>,
}

/// The value in one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DependenceRow {
    /// Name of the variant.
    pub name: String,
    /// One cell per place; null if it was not run.
    pub cells: Vec<Option<DependenceCell>>,
}

/// The value at one place, over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DependenceCell {
    /// The mean, or the gain of means.
    pub value: f64,
    /// Half the width of its 95 % confidence interval (of a gain: over pairs of equal seeds); null with one seed.
    pub ci95: Option<f64>,
    /// For a gain, the reference mean.
    pub from: Option<f64>,
    /// For a gain, the mean compared with the reference.
    pub to: Option<f64>,
}

impl DependenceCell {
    /// The value with its interval.
    pub(super) fn number(&self) -> String {
        let ci95 = self.ci95.map_or(String::new(), |half| format!(" ± {}", number(half, 1)));
        let sign = if self.from.is_some() && self.value >= 0.0 { "+" } else { "" };
        format!("{sign}{}{ci95}", number(self.value, 1))
    }

    /// For a gain, the two means.
    pub(super) fn ends(&self) -> Option<String> {
        Some(format!("{} to {}", value(self.from?), value(self.to?)))
    }
}

impl Dependence {
    /// Caption of the table.
    pub(super) fn caption(&self) -> String {
        format!("Dependence: {} ({}), by {}", self.measure, self.unit, self.x_label)
    }

    /// Headings and rows.
    pub(super) fn table(&self) -> TextTable {
        let heads: Vec<[String; 1]> =
            [[String::new()]].into_iter().chain(self.x.iter().map(|x| [value(*x)])).collect();
        let heads: Vec<[&str; 1]> = heads.iter().map(|[head]| [head.as_str()]).collect();
        let mut table = TextTable::new(&heads);
        let cell = |cell: &Option<DependenceCell>| match cell {
            None => "–".to_owned(),
            Some(cell) => {
                let ends = cell.ends().map_or(String::new(), |ends| format!(" ({ends})"));
                format!("{}{ends}", cell.number())
            }
        };
        for row in &self.rows {
            table.push([row.name.clone()].into_iter().chain(row.cells.iter().map(cell)).collect());
        }
        table
    }
}

impl Depends {
    /// The table of the sweep as drawn and of its variants, in this order.
    pub fn table(
        &self,
        sweep: &Sweep,
        plain: &[RunSummary],
        variants: &[(&str, &[RunSummary])],
    ) -> Dependence {
        let runs = [(self.plain.as_str(), plain)].into_iter().chain(variants.iter().copied());
        let mut x = if self.x.is_empty() { sweep.axis.values.clone() } else { self.x.clone() };
        let has_runs =
            |at: f64| runs.clone().any(|(_, records)| records.iter().any(|record| at_x(record, at)));
        x.retain(|at| has_runs(*at));
        let column = self.column.as_deref().unwrap_or(&sweep.column);
        let row = |(name, records): (&str, &[RunSummary])| DependenceRow {
            name: name.to_owned(),
            cells: x.iter().map(|at| self.cell(sweep, records, column, *at)).collect(),
        };
        let rows = runs.clone().map(row).collect();
        let measure = match &self.over {
            Some(over) => format!("gain of {} over {over}", self.curve),
            None => format!("{} of {}", sweep.y_label_of(column), self.curve),
        };
        Dependence { measure, unit: self.unit.clone(), x_label: sweep.x_label.clone(), x, rows }
    }

    fn cell(&self, sweep: &Sweep, records: &[RunSummary], column: &str, x: f64) -> Option<DependenceCell> {
        let column = Column::named(column)?;
        let group = |scheme: &str| {
            Group::new(records.iter().filter(|run| run.label.scheme == scheme && at_x(run, x)))
        };
        let runs = group(&self.curve);
        let (value, ci95) = sweep.middle(&runs, column)?;
        let Some(over) = &self.over else {
            return Some(DependenceCell { value, ci95, from: None, to: None });
        };
        let over = group(over);
        let (gain, ci95) = sweep.gain(&runs, &over, column)?;
        Some(DependenceCell {
            value: gain * 100.0,
            ci95: ci95.map(|ci95| ci95 * 100.0),
            from: Some(sweep.middle(&over, column)?.0),
            to: Some(value),
        })
    }
}

fn at_x(record: &RunSummary, x: f64) -> bool {
    record.label.x.is_some_and(|at| same(at, x))
}
