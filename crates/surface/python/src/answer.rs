//! The result of a call.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;
use tacit_runs::store::{Sheet, objects};

use crate::error::{Failure, Outcome};
use crate::table::Table;

/// A result: as JSON, as the text of the command line, as tables, and, if available, as HTML.
#[pyclass(module = "tacit._native", frozen)]
#[derive(Default)]
pub struct Answer {
    /// As printed by the command line with `--json`.
    #[pyo3(get)]
    json: String,
    /// As printed by the command line.
    #[pyo3(get)]
    text: String,
    /// Its table as HTML; empty if there is none.
    #[pyo3(get)]
    html: String,
    tables: Vec<(&'static str, Py<Table>)>,
}

/// A result before it is converted to Python objects.
#[derive(Default)]
pub struct PlainAnswer {
    json: String,
    text: String,
    html: String,
    sheets: Vec<(&'static str, Sheet)>,
}

impl PlainAnswer {
    /// Creates a result from `value`, with `text` as the readable form.
    pub fn new(value: &impl Serialize, text: String) -> Outcome<Self> {
        let json = serde_json::to_string(value).map_err(|error| Failure::Other(error.to_string()))?;
        Ok(Self { json, text, ..Self::default() })
    }

    /// Adds a table with this name.
    #[must_use]
    pub fn with(mut self, name: &'static str, sheet: Sheet) -> Self {
        self.sheets.push((name, sheet));
        self
    }

    /// Adds its table as HTML.
    #[must_use]
    pub fn with_html(self, html: String) -> Self {
        Self { html, ..self }
    }

    /// Converts the result to Python objects.
    pub fn answered(self, py: Python<'_>) -> PyResult<Answer> {
        let Self { json, text, html, sheets } = self;
        let table = |(name, sheet)| {
            let table = Table::new(sheet).map_err(|error| Failure::Other(error.to_string()).raised(py))?;
            Ok((name, Py::new(py, table)?))
        };
        Ok(Answer { json, text, html, tables: sheets.into_iter().map(table).collect::<PyResult<_>>()? })
    }
}

/// A sheet of rows of any type with fields.
pub fn rows<T: Serialize>(rows: &[T]) -> Outcome<Sheet> {
    let rows = rows.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>();
    Ok(objects(&rows.map_err(|error| Failure::Other(error.to_string()))?))
}

#[pymethods]
impl Answer {
    /// The table with this name; KeyError if there is none.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        let found = self.tables.iter().find(|(known, _)| *known == name);
        found.map(|(_, table)| table.clone_ref(py)).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}
