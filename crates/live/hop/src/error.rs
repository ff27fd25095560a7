//! Errors of live runs.

use std::io;
use std::path::Path;

/// Why a live run could not be started, or failed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The kernel does not permit or support it.
    #[error("{what}: {source}; {advice}")]
    Refused {
        /// The attempted action.
        what: String,
        /// The kernel's error.
        source: io::Error,
        /// Advice for the user.
        advice: &'static str,
    },
    /// The value of an argument is not valid.
    #[error("{argument}: {what}; allowed: {allowed}")]
    Argument {
        /// The argument.
        argument: &'static str,
        /// What is wrong with the value.
        what: String,
        /// Allowed values.
        allowed: String,
    },
    /// The scenario has a setting that only simulations support.
    #[error("{what} is not possible in a live hop; allowed: {allowed}")]
    Unsupported {
        /// The setting.
        what: &'static str,
        /// Settings that live hops support.
        allowed: &'static str,
    },
    /// A program for setting up networks is missing or failed.
    #[error("{what}: {reason}")]
    Setup {
        /// The action.
        what: String,
        /// Its error message.
        reason: String,
    },
    /// The user's command could not be started.
    #[error("{command}: {source}")]
    Command {
        /// The command.
        command: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The world simulated by the hop failed.
    #[error(transparent)]
    World(#[from] tacit_sim::RunError),
    /// Reading or writing failed.
    #[error("{what}: {source}")]
    Io {
        /// The file or action.
        what: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl LiveError {
    /// For `map_err`: an error about a file that `argument` names.
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

    /// For `map_err`: an I/O error in the action `what`.
    pub fn io(what: &str) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { what: what.to_owned(), source }
    }
}
