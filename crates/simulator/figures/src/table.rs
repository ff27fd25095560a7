//! A table of a paper: measured values next to the paper's numbers.

use serde::Serialize;

use super::measure::Measure;
use super::value;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, number, text, texts};
use tacit_scenario::table::TextTable;

/// `[table]`: the names of its columns, and its rows.
#[derive(Clone, Debug)]
pub(super) struct Table {
    columns: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    name: String,
    cells: Vec<Cell>,
}

/// A cell: the paper's number, and its measure if it is measured.
#[derive(Clone, Debug)]
struct Cell {
    paper: Option<f64>,
    measure: Option<Measure>,
}

impl Table {
    pub fn read(section: Section<'_>) -> Result<Option<Self>, InputError> {
        if !section.is_present() {
            return Ok(None);
        }
        let columns = section.required("columns", texts)?;
        let mut rows = Vec::new();
        for row in section.sections("row")? {
            let cells = row.sections("cells")?.into_iter().map(read_cell).collect::<Result<Vec<_>, _>>()?;
            if cells.len() != columns.len() {
                let what = format!("{} cells under {} columns", cells.len(), columns.len());
                return Err(row.error("cells", what).allowed("one for each column, {} for none"));
            }
            rows.push(Row { name: row.required("name", text)?, cells });
            row.finish()?;
        }
        section.finish()?;
        Ok(Some(Self { columns, rows }))
    }

    /// The measures of its cells.
    pub fn measures(&self) -> impl Iterator<Item = &Measure> {
        self.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.measure.as_ref())
    }

    /// The table with the recorded values. `recorded` returns the value for a row and a column.
    pub fn recorded(&self, recorded: impl Fn(&str, &str) -> Option<f64>) -> MeasuredTable {
        self.with(|row, column, _| recorded(&row.name, column))
    }

    /// The table with every cell evaluated by `measure`.
    pub fn measured(&self, measure: impl Fn(&Measure) -> Option<f64>) -> MeasuredTable {
        self.with(|_, _, cell| cell.measure.as_ref().and_then(&measure))
    }

    fn with(&self, value: impl Fn(&Row, &str, &Cell) -> Option<f64>) -> MeasuredTable {
        let row = |row: &Row| {
            let cells = row.cells.iter().zip(&self.columns);
            let cells = cells
                .map(|(cell, column)| MeasuredCell { paper: cell.paper, measured: value(row, column, cell) });
            MeasuredRow { name: row.name.clone(), cells: cells.collect() }
        };
        MeasuredTable { columns: self.columns.clone(), rows: self.rows.iter().map(row).collect() }
    }
}

fn read_cell(section: Section<'_>) -> Result<Cell, InputError> {
    let measure = section.section("measure")?;
    let measure = if measure.is_present() { Some(Measure::read(measure)?) } else { None };
    let cell = Cell { paper: section.optional("paper", number)?, measure };
    section.finish()?;
    Ok(cell)
}

/// A paper's table with measured values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredTable {
    /// Headings of the columns, except that of the row names.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<MeasuredRow>,
}

/// A row of a paper's table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredRow {
    /// Name of the row.
    pub name: String,
    /// One cell per column.
    pub cells: Vec<MeasuredCell>,
}

/// A cell of a paper's table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeasuredCell {
    /// The printed value; null if there is none.
    pub paper: Option<f64>,
    /// The measured value; null if it was not measured.
    pub measured: Option<f64>,
}

impl MeasuredTable {
    /// Caption of a printed table.
    pub(super) const CAPTION: &str = "measured (paper)";

    /// Text of a cell without a number.
    pub(super) const NOTHING: &str = "–";

    /// The row names with the cells as text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.rows.iter().map(|row| (row.name.as_str(), row.cells.iter().map(MeasuredCell::text).collect()))
    }

    /// Headings and rows.
    pub(super) fn table(&self) -> TextTable {
        let heads = std::iter::once(Self::CAPTION).chain(self.columns.iter().map(String::as_str));
        let mut table = TextTable::new(&heads.map(|head| [head]).collect::<Vec<_>>());
        for (name, cells) in self.texts() {
            table.push([name.to_owned()].into_iter().chain(cells).collect());
        }
        table
    }
}

impl MeasuredCell {
    fn text(&self) -> String {
        let measured = self.measured.map_or_else(|| MeasuredTable::NOTHING.to_owned(), value);
        match self.paper {
            Some(paper) => format!("{measured} ({})", value(paper)),
            None => measured,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Figure, Options, run};
    use tacit_runs::sweep::Control;

    const TABLE: &str = "\
title = \"t\"
paper = \"p\"
[theory]
figure = \"hack/fig1a\"
[table]
columns = [\"measured here\", \"printed only\"]
[[table.row]]
name = \"54 Mb/s\"
cells = [{ paper = 30.2, measure = { value = \"UDP\", x = 54 } }, { paper = 1 }]
";

    #[test]
    fn a_table_shows_what_is_measured_beside_what_is_printed() {
        let figure = Figure::parse("test/table", "table.toml", TABLE).unwrap();
        let outcome = &run(&[figure], &Options::default(), Control::unattended()).unwrap()[0];
        let cells = &outcome.table.as_ref().unwrap().rows[0].cells;
        assert!((cells[0].measured.unwrap() - 29.93).abs() < 0.01 && cells[1].measured.is_none());
        assert!(outcome.to_text().contains("29.93 (30.2)"), "{}", outcome.to_text());
        let error =
            Figure::parse("x", "x.toml", &TABLE.replace(", { paper = 1 }", "")).unwrap_err().to_string();
        assert!(error.contains("1 cells under 2 columns"), "{error}");
    }
}
