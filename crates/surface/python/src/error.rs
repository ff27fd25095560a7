//! Converts errors to exceptions. Each is one line of text, as on the command line.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use tacit_captures::CaptureError;
use tacit_captures::rohc::RohcError;
use tacit_runs::RunsError;
use tacit_scenario::{InputError as Input, ScenarioError};

create_exception!(tacit._native, TacitError, PyException, "There is no result.");
create_exception!(
    tacit._native,
    InputError,
    TacitError,
    "Bad input: its `place`, the mistake (`what`), and the `allowed` values."
);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("TacitError", module.py().get_type::<TacitError>())?;
    module.add("InputError", module.py().get_type::<InputError>())
}

/// Why a call failed, before conversion to an exception, which requires the interpreter.
pub enum Failure {
    Input(Input),
    Other(String),
    Interrupted(String),
}

/// Result of a call.
pub type Outcome<T> = Result<T, Failure>;

impl From<Input> for Failure {
    fn from(error: Input) -> Self {
        Self::Input(error)
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        RunsError::from(error).into()
    }
}

impl From<RunsError> for Failure {
    fn from(error: RunsError) -> Self {
        match error {
            RunsError::Input(error) => Self::Input(error),
            RunsError::Interrupted { .. } => Self::Interrupted(error.to_string()),
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<RohcError> for Failure {
    fn from(error: RohcError) -> Self {
        match error {
            RohcError::Capture(error) => error.into(),
            other => Self::Other(other.to_string()),
        }
    }
}

impl Failure {
    /// If a keyword argument is wrong, it is given its Python name.
    fn from_input(py: Python<'_>, error: Input) -> PyErr {
        let place = error.place.trim_start_matches("--").replace('-', "_");
        let is_keyword = error.place.starts_with("--") && !place.contains(' ');
        let error = if is_keyword { Input { place, ..error } } else { error };
        let exception = InputError::new_err(error.to_string());
        let value = exception.value(py);
        let set = value
            .setattr("place", error.place)
            .and_then(|()| value.setattr("what", error.what))
            .and_then(|()| value.setattr("allowed", error.allowed));
        match set {
            Ok(()) => exception,
            Err(other) => other,
        }
    }

    /// Converts the failure to an exception.
    pub fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Input(error) => Self::from_input(py, error),
            Self::Other(what) => TacitError::new_err(what),
            Self::Interrupted(what) => PyKeyboardInterrupt::new_err(what),
        }
    }
}
