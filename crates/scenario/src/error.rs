//! Errors of a scenario, as one line each.

use std::io;
use std::path::{Path, PathBuf};

pub use tacit_input::InputError;

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Something the user wrote.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file or directory that cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ScenarioError {
    /// Makes an I/O error that names its file.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
