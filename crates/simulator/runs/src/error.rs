//! Errors of runs and their results. Each is one line of text.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tacit_scenario::{InputError, ScenarioError};
use tacit_sim::RunError;

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// An error in the user's input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file or directory that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A results file that is not in the format of this program.
    #[error("{}: {what}; allowed: a results file written by this version of tacit", path.display())]
    Store {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A run failed.
    #[error("{run}: {source}; the same again: {command}")]
    Run {
        /// The run.
        run: String,
        /// The command that repeats it.
        command: String,
        /// The reason.
        source: RunError,
    },
    /// A program started for a figure failed.
    #[error("{command}: {message}")]
    Program {
        /// Its command line.
        command: String,
        /// The last line of its output.
        message: String,
    },
    /// Stored results were requested but do not exist.
    #[error("{}: {} of {total} runs are missing: {}; {command} makes them{}", directory.display(), missing.len(), listed(missing), there.as_ref().map_or(String::new(), |other| format!(", the stored runs come from {other}")))]
    Missing {
        /// The directory that was searched.
        directory: PathBuf,
        /// Descriptions of the missing runs.
        missing: Vec<String>,
        /// Number of requested runs.
        total: usize,
        /// The command that simulates them.
        command: String,
        /// The command that created the runs in the directory, if it differs.
        there: Option<String>,
    },
    /// The user stopped the program between runs. Finished runs are kept if there is a results directory.
    #[error("interrupted: {finished} of {total} runs finished{}", resume_hint(resume_from.as_deref()))]
    Interrupted {
        /// Number of finished runs, including earlier ones.
        finished: usize,
        /// Number of planned runs.
        total: usize,
        /// The directory with the finished runs.
        resume_from: Option<PathBuf>,
    },
}

/// Maximum number of runs that a message names.
const LISTED: usize = 3;

fn listed(runs: &[String]) -> String {
    let named = runs.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match runs.len().saturating_sub(LISTED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

fn resume_hint(directory: Option<&Path>) -> String {
    directory.map_or(String::new(), |directory| {
        format!(" and kept in {}; the same command again makes the others", directory.display())
    })
}

impl RunsError {
    /// Creates an I/O error with the path of the file.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// Creates a results-file error with the path of the file.
    pub(crate) fn store<E: fmt::Display>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |error| Self::Store { path, what: error.to_string() }
    }
}

impl From<ScenarioError> for RunsError {
    fn from(error: ScenarioError) -> Self {
        match error {
            ScenarioError::Input(error) => Self::Input(error),
            ScenarioError::Io { path, source } => Self::Io { path, source },
        }
    }
}
