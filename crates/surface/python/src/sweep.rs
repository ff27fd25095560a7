//! Sweeps in batches, which other machines may simulate.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::ThreadPoolBuilder;
use tacit_runs::batches::{Batches, Directory, Order, grid as places_of};

use crate::answer::{Answer, PlainAnswer};
use crate::error::{Failure, Outcome};
use crate::own::OwnScheme;
use crate::watch::{on_all_cores, watched};

/// A sweep, and the directory with its results.
#[pyclass(module = "tacit._native", frozen)]
pub struct Sweep {
    directory: Directory,
    /// Schemes of the user's, which the sweep knows by name.
    own_schemes: Vec<OwnScheme>,
}

#[pymethods]
impl Sweep {
    /// `places` are lists of assignments, such as `["wifi.distance=5 m"]`.
    #[new]
    #[pyo3(signature = (scenario, assignments, places, *, schemes, own, clients, seeds, directory))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords of Python's")]
    fn new(
        py: Python<'_>,
        scenario: &str,
        assignments: Vec<String>,
        places: Vec<Vec<String>>,
        schemes: Vec<String>,
        own: Vec<Bound<'_, PyAny>>,
        clients: Vec<u32>,
        seeds: Option<u32>,
        directory: PathBuf,
    ) -> PyResult<Self> {
        let own_schemes = OwnScheme::bring(py, &own)?;
        for (scheme, place) in
            own_schemes.iter().flat_map(|scheme| places.iter().map(move |place| (scheme, place)))
        {
            scheme.try_on(py, scenario, &[assignments.as_slice(), place].concat())?;
        }
        let opened = || -> Outcome<Self> {
            let sweep = Batches::new(scenario, &assignments, &places, &schemes, &clients, seeds)?;
            Ok(Self { directory: Directory::open(&directory, sweep)?, own_schemes })
        };
        py.detach(opened).map_err(|failure| failure.raised(py))
    }

    /// Number of runs.
    #[getter]
    fn runs(&self) -> usize {
        self.directory.sweep().runs()
    }

    /// Number of files, one per batch.
    #[getter]
    fn files(&self) -> usize {
        self.directory.sweep().batches().count()
    }

    /// The missing batches as (first run, end), and the number of existing runs.
    fn missing(&self, py: Python<'_>) -> PyResult<(Vec<(usize, usize)>, usize)> {
        let missing = py.detach(|| self.directory.missing());
        let (missing, there) = missing.map_err(|error| Failure::from(error).raised(py))?;
        Ok((missing.into_iter().map(|batch| (batch.start, batch.end)).collect(), there))
    }

    /// Everything needed to simulate a batch on another machine.
    fn order(&self, py: Python<'_>, first: usize, end: usize) -> PyResult<String> {
        let order = self.directory.sweep().order(&(first..end));
        Ok(order.map_err(|error| Failure::from(error).raised(py))?.to_text())
    }

    /// Stores a batch that another machine has simulated.
    fn keep(&self, py: Python<'_>, first: usize, end: usize, record: &[u8]) -> PyResult<()> {
        let kept = py.detach(|| self.directory.keep(&(first..end), record));
        kept.map_err(|error| Failure::from(error).raised(py))
    }

    /// Simulates the missing batches on all cores of this machine.
    fn complete(&self, py: Python<'_>, cache: bool, progress: Option<Bound<'_, PyAny>>) -> PyResult<Answer> {
        let work = |control: tacit_runs::sweep::Control<'_>| {
            let swept = on_all_cores(|| Ok(self.directory.complete(control)?))?;
            PlainAnswer::new(&swept, String::new())
        };
        // No other process can make runs of these classes.
        let answer = watched(py, cache && self.own_schemes.is_empty(), progress.as_ref(), work);
        self.own_schemes.iter().try_for_each(|scheme| scheme.externals.check())?;
        answer?.answered(py)
    }
}

/// The places of a grid from lists as on the command line, such as `wifi.distance=5 m,17 m`.
#[pyfunction]
pub fn grid(py: Python<'_>, lists: Vec<String>) -> PyResult<Vec<Vec<String>>> {
    places_of(&lists).map_err(|error| Failure::from(error).raised(py))
}

/// Simulates the batch of an order on the calling thread. Returns the record of its runs, for `Sweep.keep`.
#[pyfunction]
pub fn make_order<'py>(py: Python<'py>, order: &str) -> PyResult<Bound<'py, PyBytes>> {
    let record = py.detach(|| -> Outcome<Vec<u8>> {
        // The process that distributes orders counts threads, so each order uses one.
        let pool = ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(|error| Failure::Other(error.to_string()))?;
        let order = Order::parse(order)?;
        Ok(pool.install(|| order.make(tacit_runs::sweep::Control::unattended()))?)
    });
    Ok(PyBytes::new(py, &record.map_err(|failure| failure.raised(py))?))
}
