//! Sweeps in batches, which others may make.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::ThreadPoolBuilder;
use tacit_runs::batches::{Batches, Directory, Order, grid as places_of};

use crate::answer::{Answer, Told};
use crate::error::{Failure, Outcome};
use crate::watch::{on_all_cores, watched};

/// A sweep and the directory that keeps it.
#[pyclass(module = "tacit._native", frozen)]
pub struct Sweep {
    sweep: Batches,
    directory: Directory,
}

#[pymethods]
impl Sweep {
    /// `places` are lists of assignments, such as `["wifi.distance=5 m"]`.
    #[new]
    #[pyo3(signature = (scenario, assignments, places, *, schemes, clients, seeds, directory))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords of Python's")]
    fn new(
        py: Python<'_>,
        scenario: &str,
        assignments: Vec<String>,
        places: Vec<Vec<String>>,
        schemes: Vec<String>,
        clients: Vec<u32>,
        seeds: Option<u32>,
        directory: PathBuf,
    ) -> PyResult<Self> {
        let opened = || -> Outcome<Self> {
            let sweep = Batches::new(scenario, &assignments, &places, &schemes, &clients, seeds)?;
            let directory = Directory::open(&directory, &sweep)?;
            Ok(Self { sweep, directory })
        };
        py.detach(opened).map_err(|failure| failure.raised(py))
    }

    /// How many runs there are.
    #[getter]
    fn runs(&self) -> usize {
        self.sweep.runs()
    }

    /// How many files, one for each batch.
    #[getter]
    fn files(&self) -> usize {
        self.sweep.batches().count()
    }

    /// The batches that are missing, as (first run, end), and how many runs are there.
    fn missing(&self, py: Python<'_>) -> PyResult<(Vec<(usize, usize)>, usize)> {
        let missing = py.detach(|| self.directory.missing(&self.sweep));
        let (missing, there) = missing.map_err(|error| Failure::from(error).raised(py))?;
        Ok((missing.into_iter().map(|batch| (batch.start, batch.end)).collect(), there))
    }

    /// All it takes to make a batch elsewhere.
    fn order(&self, py: Python<'_>, first: usize, end: usize) -> PyResult<String> {
        let order = self.sweep.order(&(first..end));
        Ok(order.map_err(|error| Failure::from(error).raised(py))?.to_text())
    }

    /// Keeps a batch that was made elsewhere.
    fn keep(&self, py: Python<'_>, first: usize, end: usize, parquet: &[u8]) -> PyResult<()> {
        let kept = py.detach(|| self.directory.keep(&self.sweep, &(first..end), parquet));
        kept.map_err(|error| Failure::from(error).raised(py))
    }

    /// Makes the missing batches here, on all cores.
    fn complete(&self, py: Python<'_>, cache: bool, progress: Option<Bound<'_, PyAny>>) -> PyResult<Answer> {
        let work = |control: tacit_runs::sweep::Control<'_>| {
            let swept = on_all_cores(|| Ok(self.directory.complete(&self.sweep, control)?))?;
            Told::new(&swept, String::new())
        };
        watched(py, cache, progress.as_ref(), work)?.answered(py)
    }
}

/// The places of a grid from lists as the command line has them, such as `wifi.distance=5 m,17 m`.
#[pyfunction]
pub fn grid(py: Python<'_>, lists: Vec<String>) -> PyResult<Vec<Vec<String>>> {
    places_of(&lists).map_err(|error| Failure::from(error).raised(py))
}

/// Makes the batch of an order on the calling thread, and gives it as a Parquet file.
#[pyfunction]
pub fn make_order<'py>(py: Python<'py>, order: &str) -> PyResult<Bound<'py, PyBytes>> {
    let made = py.detach(|| -> Outcome<Vec<u8>> {
        // The process that hands out orders counts threads: one each.
        let pool = ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(|error| Failure::Other(error.to_string()))?;
        let order = Order::parse(order)?;
        Ok(pool.install(|| order.parquet(tacit_runs::sweep::Control::unattended()))?)
    });
    Ok(PyBytes::new(py, &made.map_err(|failure| failure.raised(py))?))
}
