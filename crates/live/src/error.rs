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
    /// The user's argument cannot be used.
    #[error("{argument}: {what}; allowed: {allowed}")]
    Argument {
        /// Which.
        argument: &'static str,
        /// What is wrong with it.
        what: String,
        /// What would have been right.
        allowed: String,
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
    /// For `map_err`, with a file that `argument` names.
    pub(crate) fn not_writable<'p>(
        argument: &'static str,
        path: &'p Path,
    ) -> impl FnOnce(io::Error) -> Self + 'p {
        move |source| Self::Argument {
            argument,
            what: format!("{}: {source}", path.display()),
            allowed: "a file that can be written".to_owned(),
        }
    }

    /// For `map_err`.
    pub fn io(what: &str) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { what: what.to_owned(), source }
    }
}
