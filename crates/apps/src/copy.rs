//! Copying files and trees over one stream of bytes, with two roles: `send` and
//! `receive`. Either end may be the client.
//!
//! The protocol has phases, in each of which one end talks and the other listens, so that neither waits for the other
//! with full buffers: the sender lists its files; the receiver names those that it wants, and from which byte; the sender
//! streams contents, with no round trip per file, and hears meanwhile which files the receiver cannot keep; the receiver
//! reports.

mod committer;
mod delete;
pub mod gate;
pub mod idle;
pub mod limit;
mod lists;
mod manifest;
pub mod pattern;
mod plan;
pub mod receiver;
pub mod sender;
pub mod session;
mod tree;
pub mod wire;
mod writers;

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use committer::open_many_files;
pub use pattern::Exclude;

/// Copies of a server at once at most: each has a thread while it runs. Ours.
pub const COPIES_MAX: usize = 64;

/// Why a copy ends before its summary.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The stream broke, or a file of this end did.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The peer breaks the protocol.
    #[error("the peer breaks the protocol: {0}")]
    Protocol(String),
    /// The peer refuses the request.
    #[error("refused: {0}")]
    Refused(String),
    /// More than this end takes.
    #[error("more than {max} {what} in one copy")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// How much of it is taken.
        max: usize,
    },
    /// An argument cannot be used.
    #[error("{0}")]
    Argument(String),
}

/// The user's options beside the copy itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Compare contents, not size and time.
    pub checksum: bool,
    /// Remove paths that the source does not have.
    pub delete: bool,
    /// Change nothing, report the changes that a copy would make.
    pub dry_run: bool,
    /// Neither send nor remove matching paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Exclude>,
}

/// Rights of a client to a served directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// Add new paths, and read nothing.
    Drop,
}

/// Action taken for a path, or that a dry run would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A file was copied whole, or a directory or symbolic link was made.
    Copied,
    /// A file was copied from where an earlier copy stopped.
    Resumed,
    /// It was removed from the destination.
    Deleted,
    /// It is nothing that is carried, and was left as it is.
    Skipped,
    /// It was not done.
    Failed,
}

/// Outcome for one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Relative to the destination.
    pub path: String,
    /// Action taken on it.
    pub action: Action,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Totals of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Files, directories and links made or changed.
    pub copied: u64,
    /// Those that were there already.
    pub unchanged: u64,
    /// Removed from the destination.
    pub deleted: u64,
    /// Not carried.
    pub skipped: u64,
    /// Not done.
    pub failed: u64,
    /// Bytes of contents that crossed the stream.
    pub received_bytes: u64,
    /// Bytes that an earlier copy had left.
    pub resumed_bytes: u64,
}

/// Summary, and the outcome for each path that was not there already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopyReport {
    /// In numbers.
    pub summary: Summary,
    /// In the order of the manifest, deletions last.
    pub paths: Vec<Report>,
}

impl Summary {
    /// Counts one path.
    fn count(&mut self, action: Action) {
        match action {
            Action::Copied | Action::Resumed => self.copied += 1,
            Action::Deleted => self.deleted += 1,
            Action::Skipped => self.skipped += 1,
            Action::Failed => self.failed += 1,
        }
    }
}

/// How far a copy is, for a progress bar.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of contents to move; 0 until it is known.
    pub total_bytes: AtomicU64,
    /// Bytes moved so far.
    pub done_bytes: AtomicU64,
    failures: Mutex<Vec<Report>>,
}

/// Failures that wait to be told before the end. Ours: all failures are in the outcome, too.
const FAILURES_TOLD_MAX: usize = 1024;

impl Progress {
    /// A file failed while others go on.
    fn on_failure(&self, path: &str, reason: &str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < FAILURES_TOLD_MAX {
            let (path, reason) = (path.to_owned(), Some(reason.to_owned()));
            failures.push(Report { path, action: Action::Failed, reason });
        }
    }

    /// Files that failed since the last call.
    pub fn take_failures(&self) -> Vec<Report> {
        std::mem::take(&mut *self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
