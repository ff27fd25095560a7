//! Why there is no live run.

use std::io;
use std::path::Path;

/// Why a live run could not be made or did not end.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The kernel does not let us, or has no such thing.
    #[error("{what}: {source}; {advice}")]
    Refused {
        /// The action that was tried.
        what: String,
        /// The kernel's error.
        source: io::Error,
        /// Advice.
        advice: &'static str,
    },
    /// The user's argument cannot be used.
    #[error("{argument}: {what}; allowed: {allowed}")]
    Argument {
        /// Which.
        argument: &'static str,
        /// The fault in it.
        what: String,
        /// Allowed values.
        allowed: String,
    },
    /// The scenario has a setting that is possible in simulations only.
    #[error("{what} is not possible in a live hop; allowed: {allowed}")]
    Unsupported {
        /// The setting.
        what: &'static str,
        /// Settings that are possible.
        allowed: &'static str,
    },
    /// A program that networks are set up with is missing or failed.
    #[error("{what}: {said}")]
    Setup {
        /// The action.
        what: String,
        /// The error message.
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
        /// The file or action.
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
