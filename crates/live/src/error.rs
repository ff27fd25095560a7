//! Why there is no live run.

use std::io;
use std::path::Path;

/// Why a live run could not be made or did not end.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The kernel does not let us, or has no such thing.
    #[error("{what}: {source}; {advice}")]
    Refused {
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
        /// What would help.
        advice: &'static str,
    },
    /// What the scenario wants is possible in simulations only.
    #[error("{what} is not possible in a live hop; allowed: {allowed}")]
    Unsupported {
        /// What it wants.
        what: &'static str,
        /// What it may.
        allowed: &'static str,
    },
    /// A program that networks are set up with is missing or failed.
    #[error("{what}: {said}")]
    Setup {
        /// What was to be done.
        what: String,
        /// What was said about it.
        said: String,
    },
    /// A command of the user cannot be started.
    #[error("{command}: {source}")]
    Command {
        /// Which.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The world that the hop is broke.
    #[error(transparent)]
    World(#[from] tacit_sim::RunError),
    /// Reading or writing failed.
    #[error("{what}: {source}")]
    Io {
        /// What.
        what: String,
        /// Why.
        source: io::Error,
    },
}

impl LiveError {
    /// For `map_err`, with a file.
    pub(crate) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { what: path.display().to_string(), source }
    }

    /// For `map_err`.
    pub(crate) fn io(what: &str) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { what: what.to_owned(), source }
    }
}
