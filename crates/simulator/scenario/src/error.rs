//! Errors in scenarios. Each is one line of text.

use std::io;
use std::path::{Path, PathBuf};

pub use tacit_input::InputError;

/// Why a scenario could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// An error in the user's input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file or directory that cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ScenarioError {
    /// Creates an I/O error with the path of the file.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// The error in the words of a sweep: a setting at the place `at` was given with `--sweep`, not with `--set`.
    #[must_use]
    pub fn at_place(self, at: &[String]) -> Self {
        let key_of =
            |assignment: &String| assignment.split('=').next().unwrap_or(assignment).trim().to_owned();
        match self {
            Self::Input(InputError { place, what, allowed }) => {
                let is_swept = |key: &str| at.iter().any(|assignment| key_of(assignment) == key);
                let place = match place.strip_prefix("--set ") {
                    Some(key) if is_swept(key) => format!("--sweep {key}"),
                    _ => place,
                };
                Self::Input(InputError { place, what, allowed })
            }
            other @ Self::Io { .. } => other,
        }
    }
}
