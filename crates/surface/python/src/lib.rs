//! The native half of the Python package `tacit`: calls into the same library crates as the command line, without
//! holding the interpreter.
//!
//! Results are JSON, as printed by the command line, and tables with Arrow's C stream interface. The Python half
//! converts them to objects. Their Python types are in `python/tacit/_native.pyi`.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over as values")]

mod answer;
mod captures;
mod codec;
mod error;
mod external;
mod figures;
mod own;
mod runs;
mod scenarios;
mod slot;
mod sweep;
mod table;
mod watch;

use std::path::Path;

use pyo3::prelude::*;

/// The module `tacit._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The names of results depend on the program that simulates them, which is this library and not the interpreter.
    if let Ok(file) = module.filename() {
        tacit_runs::identity::set_library(Path::new(&file.to_string()));
    }
    module.add("VERSION", tacit_runs::VERSION)?;
    module.add("DEFAULT_SCENARIO", tacit_analysis::compare::DEFAULT_SCENARIO)?;
    error::register(module)?;
    module.add_class::<answer::Answer>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<external::Arrival>()?;
    module.add_class::<external::Acknowledged>()?;
    module.add_class::<external::ReadyUser>()?;
    module.add_class::<external::UplinkClient>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<codec::Compressor>()?;
    module.add_class::<codec::Decompressor>()?;
    for function in [
        wrap_pyfunction!(scenarios::scenarios, module)?,
        wrap_pyfunction!(scenarios::schemes, module)?,
        wrap_pyfunction!(scenarios::metrics, module)?,
        wrap_pyfunction!(scenarios::looks, module)?,
        wrap_pyfunction!(scenarios::mean_and_ci95, module)?,
        wrap_pyfunction!(scenarios::airtime_looks, module)?,
        wrap_pyfunction!(scenarios::load, module)?,
        wrap_pyfunction!(scenarios::explain, module)?,
        wrap_pyfunction!(scenarios::check, module)?,
        wrap_pyfunction!(runs::run, module)?,
        wrap_pyfunction!(runs::compare, module)?,
        wrap_pyfunction!(runs::report, module)?,
        wrap_pyfunction!(runs::why, module)?,
        wrap_pyfunction!(runs::advise, module)?,
        wrap_pyfunction!(figures::figures, module)?,
        wrap_pyfunction!(figures::figure, module)?,
        wrap_pyfunction!(figures::theory, module)?,
        wrap_pyfunction!(captures::audit, module)?,
        wrap_pyfunction!(captures::rohc_stats, module)?,
        wrap_pyfunction!(captures::rohc_compress, module)?,
        wrap_pyfunction!(captures::rohc_decompress, module)?,
        wrap_pyfunction!(captures::rohc_compare, module)?,
        wrap_pyfunction!(sweep::grid, module)?,
        wrap_pyfunction!(sweep::make_order, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
