//! Errors of runs and their results, as one line each.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tacit_scenario::{InputError, ScenarioError};
use tacit_sim::RunError;

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// Something the user wrote.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file or directory that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A results file that this program does not write.
    #[error("{}: {what}; allowed: a results file written by this version of tacit", path.display())]
    Store {
        /// Which.
        path: PathBuf,
        /// Its fault.
        what: String,
    },
    /// A run failed.
    #[error("{run}: {source}; the same again: {command}")]
    Run {
        /// Which run.
        run: String,
        /// The command that makes it.
        command: String,
        /// Why.
        source: RunError,
    },
    /// A program that was started for a figure failed.
    #[error("{command}: {said}")]
    Program {
        /// Its command line.
        command: String,
        /// The last thing it said.
        said: String,
    },
    /// Results that were to be read and were never made.
    #[error("{}: {} of {total} runs are missing: {}; {command} makes them{}", directory.display(), missing.len(), listed(missing), there.as_ref().map_or(String::new(), |other| format!(", the stored runs come from {other}")))]
    Missing {
        /// Where they were looked for.
        directory: PathBuf,
        /// Which, in words.
        missing: Vec<String>,
        /// How many were asked for.
        total: usize,
        /// The command that makes them.
        command: String,
        /// The command that made the runs there, where it is another.
        there: Option<String>,
    },
    /// Stopped by the user between runs; the finished ones are kept where there is a directory to
    /// keep them in.
    #[error("interrupted: {finished} of {total} runs finished{}", resume_hint(resume_from.as_deref()))]
    Interrupted {
        /// Runs that finished, earlier ones included.
        finished: usize,
        /// Runs planned.
        total: usize,
        /// Where the finished runs are.
        resume_from: Option<PathBuf>,
    },
}

/// Most runs that a message names.
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
    /// Makes an I/O error that names its file.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// Makes a results-file error that names its file.
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
