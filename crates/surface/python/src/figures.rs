//! Figures of the papers, and closed forms.

use std::path::PathBuf;

use pyo3::prelude::*;
use tacit_figures::{FigureOutcome, Options, all, find, run};
use tacit_runs::store::Sheet;
use tacit_runs::sweep::Control;
use tacit_theory::hop::{bounds, parse};

use crate::answer::{Answer, PlainAnswer, rows};
use crate::error::{Failure, Outcome};
use crate::table::Table;
use crate::watch::{on_all_cores, watched};

/// All figures: `id`, `title`, `paper`.
#[pyfunction]
pub fn figures(py: Python<'_>) -> PyResult<Table> {
    let figures = all().map_err(|error| Failure::from(error).raised(py))?;
    let mut sheet = Sheet::default();
    sheet.text("id", figures.iter().map(|figure| figure.id.as_str()));
    sheet.text("title", figures.iter().map(|figure| figure.title.as_str()));
    sheet.text("paper", figures.iter().map(|figure| figure.paper.as_deref().unwrap_or_default()));
    Table::new(sheet).map_err(|error| Failure::Other(error.to_string()).raised(py))
}

/// Produces a figure in a directory and judges its claims. With `from_directory`, judges the results stored there
/// instead. Figures with live runs are skipped and report this, because live runs require a process with a single
/// thread, which an interpreter does not have.
#[pyfunction]
#[pyo3(signature = (id, *, quick, directory, from_directory, cache, progress))]
pub fn figure(
    py: Python<'_>,
    id: String,
    quick: bool,
    directory: Option<PathBuf>,
    from_directory: Option<PathBuf>,
    cache: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let work = |control: Control<'_>| {
        let figures = [find(&id)?];
        let options = Options {
            quick,
            directory: directory.or_else(|| from_directory.clone()),
            from: from_directory,
            ..Options::default()
        };
        let outcomes = on_all_cores(|| Ok(run(&figures, &options, control)?))?;
        let [outcome] = outcomes.as_slice() else {
            return Err(Failure::Other(format!("{id} gave no outcome")));
        };
        plain_answer(outcome)
    };
    watched(py, cache, progress.as_ref(), work)?.answered(py)
}

fn plain_answer(outcome: &FigureOutcome) -> Outcome<PlainAnswer> {
    Ok(PlainAnswer::new(outcome, outcome.to_text())?.with("claims", rows(&outcome.claims)?))
}

/// The maximum goodput of a Wi-Fi hop, in closed form.
#[pyfunction]
pub fn theory(py: Python<'_>, phy: &str, rate: &str) -> PyResult<Answer> {
    let compute = || -> Outcome<PlainAnswer> {
        let bounds = bounds(&parse(phy, rate)?);
        PlainAnswer::new(&bounds, bounds.to_text())
    };
    compute().map_err(|failure| failure.raised(py))?.answered(py)
}
