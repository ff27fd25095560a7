//! What can go wrong in the lab, as one line each.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tacit_sim::RunError;

use crate::capture::CaptureError;

/// A scenario, figure file or argument that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// `FILE:LINE`, or the argument.
    pub place: String,
    /// What is wrong with it.
    pub what: String,
    /// What would have been right, where that can be said briefly.
    pub allowed: Option<String>,
}

impl InputError {
    /// An error at `place`.
    pub fn new(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self { place: place.to_string(), what: what.into(), allowed: None }
    }

    /// The same error, saying what is allowed.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        match &self.allowed {
            Some(allowed) => write!(f, "; allowed: {allowed}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InputError {}

/// Why the lab could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Something the user wrote.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A capture that cannot be used.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A file or directory that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A results file that is not what this program writes.
    #[error("{}: {what}; allowed: a results file written by this version of tacit", path.display())]
    Store {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A packet did not come back from the codec as it went in: a defect of this program.
    #[error("{place}: {what}; no file was written")]
    RoundTrip {
        /// File and packet.
        place: String,
        /// What came instead.
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

fn resume_hint(directory: Option<&Path>) -> String {
    directory.map_or(String::new(), |directory| {
        format!(" and kept in {}; the same command again makes the others", directory.display())
    })
}

impl LabError {
    /// Makes an I/O error that names its file.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// Makes a results-file error that names its file.
    pub(crate) fn store<E: fmt::Display>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |error| Self::Store { path, what: error.to_string() }
    }
}
