//! Lists of scenarios, schemes and metrics, and the looks of schemes.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tacit_analysis::chart::SeriesStyle;
use tacit_analysis::report;
use tacit_runs::aggregate::Mean;
use tacit_runs::metric;
use tacit_runs::store::Sheet;
use tacit_scenario::explain::explain as explanation;
use tacit_scenario::scheme::{self, Listing};
use tacit_scenario::{Scenario, Subject, library};

use crate::answer::{Answer, PlainAnswer};
use crate::error::{Failure, Outcome};
use crate::table::Table;

fn table(py: Python<'_>, sheet: Sheet) -> PyResult<Table> {
    Table::new(sheet).map_err(|error| Failure::Other(error.to_string()).raised(py))
}

/// The bundled scenarios: `name`, `description`.
#[pyfunction]
pub fn scenarios(py: Python<'_>) -> PyResult<Table> {
    let described = library::names().map(|name| Ok((name, Scenario::load(name, &[])?.description)));
    let described: Vec<(&str, String)> =
        described.collect::<Outcome<_>>().map_err(|failure| failure.raised(py))?;
    let mut sheet = Sheet::default();
    sheet.text("name", described.iter().map(|(name, _)| *name));
    sheet.text("description", described.iter().map(|(_, description)| description.as_str()));
    table(py, sheet)
}

/// The schemes: `name`, `summary`, and whether each is compared by default.
#[pyfunction]
pub fn schemes(py: Python<'_>) -> PyResult<Table> {
    let mut sheet = Sheet::default();
    sheet.text("name", scheme::ALL.iter().map(|scheme| scheme.name));
    sheet.text("summary", scheme::ALL.iter().map(|scheme| scheme.summary));
    let by_default = scheme::ALL.iter().map(|scheme| u64::from(scheme.listing == Listing::Default));
    sheet.integer("by_default", by_default.map(Some));
    table(py, sheet)
}

/// Metrics of each run: `name`, `summary`.
#[pyfunction]
pub fn metrics(py: Python<'_>) -> PyResult<Table> {
    let mut sheet = Sheet::default();
    sheet.text("name", metric::ALL.iter().map(|metric| metric.name));
    sheet.text("summary", metric::ALL.iter().map(|metric| metric.summary));
    table(py, sheet)
}

/// The looks of series in reports on a light background: `colour`, `marker` by name, and the `dash` of lines in pixels.
#[pyfunction]
pub fn looks(py: Python<'_>, names: Vec<String>) -> PyResult<Table> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let looks = SeriesStyle::for_series(&names);
    let markers: Vec<String> = looks.iter().map(|look| format!("{:?}", look.shape)).collect();
    let mut sheet = Sheet::default();
    sheet.text("name", names.iter().copied());
    sheet.text("colour", looks.iter().map(|look| look.ink.light()));
    sheet.text("marker", markers.iter().map(String::as_str));
    sheet.text("dash", looks.iter().map(|look| look.dash()));
    table(py, sheet)
}

/// The mean of `values`, and half the width of its 95 % confidence interval; `None` for fewer than two values.
///
/// # Errors
/// `ValueError` without values.
#[pyfunction]
pub fn mean_and_ci95(values: Vec<f64>) -> PyResult<(f64, Option<f64>)> {
    let mean = Mean::from_values(values).ok_or_else(|| PyValueError::new_err("a mean of no values"))?;
    Ok((mean.mean, mean.ci95))
}

/// The looks of uses of airtime in reports on a light background: `name` as in results, `label` and `colour`.
#[pyfunction]
pub fn airtime_looks(py: Python<'_>) -> PyResult<Table> {
    let looks: Vec<_> = report::airtime_looks().collect();
    let names: Vec<String> = looks.iter().map(|(what, ..)| metric::airtime_name(*what)).collect();
    let mut sheet = Sheet::default();
    sheet.text("name", names.iter().map(String::as_str));
    sheet.text("label", looks.iter().map(|(_, label, _)| *label));
    sheet.text("colour", looks.iter().map(|(.., colour)| *colour));
    table(py, sheet)
}

/// Loads a scenario: its name, its description, and the whole scenario as TOML.
#[pyfunction]
pub fn load(py: Python<'_>, scenario: &str, assignments: Vec<String>) -> PyResult<(String, String, String)> {
    let scenario = Scenario::load(scenario, &assignments).map_err(|error| Failure::from(error).raised(py))?;
    Ok((scenario.name, scenario.description, scenario.text.to_string()))
}

/// Raises the errors that a run with `scheme` and `clients` clients would raise.
#[pyfunction]
pub fn check(
    py: Python<'_>,
    scenario: &str,
    assignments: Vec<String>,
    scheme: Option<&str>,
    clients: Option<u32>,
) -> PyResult<()> {
    let checked = || -> Outcome<()> {
        let scenario = Scenario::load(scenario, &assignments)?;
        let scheme = scheme.map(|name| scheme::find("--scheme", name)).transpose()?;
        let clients = scenario.run_count(clients)?;
        Ok(Subject::new(Arc::new(scenario), scheme.unwrap_or(&scheme::AS_WRITTEN)).check(clients)?)
    };
    checked().map_err(|failure| failure.raised(py))
}

/// Every setting of a scenario with its meaning and origin.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    scenario: &str,
    assignments: Vec<String>,
    scheme: Option<&str>,
    keys: Vec<String>,
) -> PyResult<Answer> {
    let compute = || -> Outcome<PlainAnswer> {
        let explained = explanation(scenario, &assignments, scheme, &keys)?;
        let column =
            |column: fn(&tacit_scenario::explain::Setting) -> &str| explained.settings.iter().map(column);
        let mut sheet = Sheet::default();
        sheet.text("key", column(|setting| &setting.key));
        sheet.text("value", column(|setting| &setting.value));
        sheet.text("unit", column(|setting| setting.unit.as_deref().unwrap_or_default()));
        sheet.text("origin", column(|setting| &setting.origin));
        sheet.text("default", column(|setting| &setting.default));
        sheet.text("allowed", column(|setting| &setting.allowed));
        sheet.text("meaning", column(|setting| &setting.meaning));
        Ok(PlainAnswer::new(&explained, explained.to_text(None))?.with("settings", sheet))
    };
    compute().map_err(|failure| failure.raised(py))?.answered(py)
}
