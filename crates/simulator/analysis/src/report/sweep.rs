//! Draws a sweep over an axis.

use std::collections::BTreeMap;
use std::path::Path;

use maud::{Markup, html};
use serde::Serialize;

use super::figure::{Shown, scroller, table_markup};
use crate::chart::{Line, LineChart, PAPER_WIDTH, Panel, Picture, stacked};
use crate::first_seen;
use tacit_runs::RunsError;
use tacit_runs::aggregate::{self, Column, Group};
use tacit_runs::metric::{self, resolve_column};
use tacit_runs::record::RunSummary;
use tacit_runs::store::{Provenance, Sheet, write_whole};
use tacit_scenario::InputError;
use tacit_scenario::scheme::Scheme;
use tacit_scenario::table::{TextTable, number, number_or_dash};

/// The metric of sweeps that do not set one.
const GOODPUT: &str = "goodput_mbps";
/// From this ratio of the largest to the smallest x on, the x axis is logarithmic, if there are enough places.
const LOG_RATIO: f64 = 30.0;
const LOG_PLACES: usize = 4;

/// A metric of each scheme along the axis of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sweep {
    /// Name of the scenario.
    pub scenario: String,
    /// Title of the sweep.
    pub title: String,
    /// Label of the axis.
    pub x_label: String,
    /// Names of the values on the axis, if they are not numbers. x is an index into them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub x_names: Vec<String>,
    /// The averaged quantity, with its unit.
    pub y_label: String,
    /// Its name: a metric; `_mbps` means a `_bps` metric in millions, `_ms` a `_us` metric in thousands.
    pub column: String,
    /// Rows ordered by setting, then scheme, as in the scheme table, then x.
    pub rows: Vec<SweepRow>,
    /// The provenance of the results.
    #[serde(skip)]
    pub provenance: Provenance,
}

/// One scheme at one x value, averaged over seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SweepRow {
    /// Name of the scheme.
    pub scheme: String,
    /// Number of clients and values of swept keys that are not on the axis, where they vary. Each has a chart of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub setting: String,
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
        let rows = Column::named(&column).map_or_else(Vec::new, |column| rows(records, column));
        Self {
            title: provenance.description.clone(),
            x_label: named(&provenance.x_label, "place on the axis"),
            y_label: named(&provenance.y_label, "goodput (Mb/s)"),
            ..Self::from_rows(&provenance.scenario, &column, rows)
        }
        .with_provenance(provenance)
    }

    /// A sweep of these rows in any order, without labels.
    pub(crate) fn from_rows(scenario: &str, column: &str, mut rows: Vec<SweepRow>) -> Self {
        let settings = first_seen(rows.iter().map(|row| row.setting.clone()));
        let place = |row: &SweepRow| settings.iter().position(|setting| *setting == row.setting);
        rows.sort_by(|a, b| {
            let schemes = Scheme::position(&a.scheme).cmp(&Scheme::position(&b.scheme));
            place(a).cmp(&place(b)).then(schemes).then(a.x.total_cmp(&b.x))
        });
        Self { scenario: scenario.to_owned(), column: column.to_owned(), rows, ..Self::default() }
    }

    fn with_provenance(self, provenance: Provenance) -> Self {
        Self { provenance, ..self }
    }

    /// Scenario, quantity and axis in one line.
    pub(super) fn heading(&self) -> String {
        let name = |label| name_and_unit(label)[0];
        format!("{}: {} over {}", self.scenario, name(&self.y_label), name(&self.x_label))
    }

    /// As text: the title and the numbers.
    pub fn to_text(&self) -> String {
        format!("{} ({})\n\n{}", self.title, self.scenario, self.table().render())
    }

    fn table(&self) -> TextTable {
        let mut table = TextTable::new(&[
            ["scheme", ""],
            name_and_unit(&self.x_label),
            name_and_unit(&self.y_label),
            ["±", name_and_unit(&self.y_label)[1]],
            ["seeds", ""],
        ]);
        for row in &self.rows {
            table.push(vec![
                row.series(),
                self.x_text(row),
                number(row.mean, 2),
                number_or_dash(row.ci95, 2),
                row.seeds.to_string(),
            ]);
        }
        table
    }

    fn x_text(&self, row: &SweepRow) -> String {
        self.x_names.get(row.x as usize).cloned().unwrap_or_else(|| number(row.x, 3))
    }

    /// A chart for each setting.
    fn charts(&self) -> Vec<LineChart> {
        let settings = first_seen(self.rows.iter().map(|row| &row.setting));
        settings.into_iter().map(|setting| self.chart(setting)).collect()
    }

    fn chart(&self, setting: &str) -> LineChart {
        let rows = || self.rows.iter().filter(|row| row.setting == setting);
        let line = |scheme: String| {
            let of_scheme = || rows().filter(|row| row.scheme == scheme);
            Line {
                points: of_scheme().map(|row| (row.x, row.mean)).collect(),
                ci95: of_scheme().map(|row| row.ci95).collect(),
                name: scheme,
            }
        };
        let [least, most] = rows()
            .fold([f64::INFINITY, 0.0], |[least, most], row| [f64::min(least, row.x), f64::max(most, row.x)]);
        let mut places: Vec<f64> = rows().map(|row| row.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let title = match setting {
            "" => self.heading(),
            setting => format!("{} ({setting})", self.heading()),
        };
        LineChart {
            alt: title.clone(),
            title,
            x: self.x_label.clone(),
            places: self.x_names.clone(),
            y: self.y_label.clone(),
            log_x: self.x_names.is_empty()
                && least > 0.0
                && most / least >= LOG_RATIO
                && places.len() >= LOG_PLACES,
            lines: first_seen(rows().map(|row| row.scheme.clone())).into_iter().map(line).collect(),
            ..LineChart::default()
        }
    }

    /// All charts below each other.
    pub fn picture(&self, width: u32) -> Picture {
        let charts = self.charts();
        stacked(&self.heading(), &charts.iter().map(Panel::Lines).collect::<Vec<_>>(), width)
    }

    /// A row for each point.
    pub fn sheet(&self) -> Sheet {
        let rows = || self.rows.iter();
        let mut sheet = Sheet::default();
        sheet.text("scheme", rows().map(|row| row.scheme.as_str()));
        if rows().any(|row| !row.setting.is_empty()) {
            sheet.text("setting", rows().map(|row| row.setting.as_str()));
        }
        if self.x_names.is_empty() {
            sheet.number(&self.x_label, rows().map(|row| Some(row.x)));
        } else {
            let name = |row: &SweepRow| self.x_names.get(row.x as usize).map_or("", String::as_str);
            sheet.text(&self.x_label, self.rows.iter().map(name));
        }
        sheet.number(&self.y_label, rows().map(|row| Some(row.mean)));
        sheet.number("ci95", rows().map(|row| row.ci95));
        sheet.integer("seeds", rows().map(|row| Some(row.seeds as u64)));
        sheet
    }

    /// Writes the picture or its numbers to `path`, in the format that its name ends in.
    ///
    /// # Errors
    /// If there is no such format, or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), RunsError> {
        let content = match PlotFormat::from_path(path)? {
            PlotFormat::Svg => self.picture(PAPER_WIDTH).to_svg_file().into_bytes(),
            PlotFormat::Pdf => self.picture(PAPER_WIDTH).to_pdf(),
            PlotFormat::Csv => self.sheet().to_csv().into_bytes(),
        };
        write_whole(path, &content)
    }

    /// The charts as figures of a page.
    pub(super) fn figures(&self) -> Markup {
        html! {
            @if let Some((metric, _)) = resolve_column(&self.column) { p { (metric::ALL[metric].summary) } }
            @for chart in self.charts() { (Shown::lines(&chart).markup()) }
        }
    }

    /// The curves, and the table of values.
    pub(super) fn sections(&self) -> Markup {
        html! {
            section {
                h2 { (self.y_label) }
                (self.figures())
            }
            section {
                h2 { "Numbers" }
                (scroller("Numbers", &table_markup(None, &self.table())))
            }
        }
    }
}

impl SweepRow {
    /// Its scheme and setting.
    fn series(&self) -> String {
        match self.setting.as_str() {
            "" => self.scheme.clone(),
            setting => format!("{}, {setting}", self.scheme),
        }
    }
}

/// Format of a plot's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotFormat {
    /// A picture for web pages and drawing programs.
    Svg,
    /// A picture for papers.
    Pdf,
    /// The numbers.
    Csv,
}

impl PlotFormat {
    /// The format that the name of `path` ends in.
    ///
    /// # Errors
    /// If it ends in no known one.
    pub fn from_path(path: &Path) -> Result<Self, InputError> {
        let known = [("svg", Self::Svg), ("pdf", Self::Pdf), ("csv", Self::Csv)];
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_lowercase();
        known.iter().find(|(name, _)| *name == end).map(|(_, format)| *format).ok_or_else(|| {
            let what = format!("{} ends in no format of plots", path.display());
            InputError::new("--output", what).allowed("a file that ends in .svg, .pdf or .csv")
        })
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
            setting: String::new(),
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
