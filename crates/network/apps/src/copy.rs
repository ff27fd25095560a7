//! Copies files and trees over one byte stream, with two roles: `send` and `receive`. Either end may be the client.
//!
//! In each phase of the protocol one end sends and the other receives, so the ends never block each other with full
//! buffers. The sender lists its files. The receiver names the files it wants, and the first byte of each. The sender
//! streams the contents, without a round trip per file; meanwhile the receiver reports files that it cannot store.
//! Finally the receiver reports the outcome.

mod committer;
mod delete;
mod descriptors;
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
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use pattern::Exclude;

/// True if `path` is named as the partial file of an interrupted copy.
pub fn is_part(path: &str) -> bool {
    tree::is_part(path.as_ref())
}

/// Most concurrent copies of a server; each has its own thread. Ours.
pub const COPIES_MAX: usize = 64;

/// Why a copy ends without a summary.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The stream broke, or a local file operation failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The peer violates the protocol.
    #[error("the peer breaks the protocol: {0}")]
    Protocol(String),
    /// The peer refuses the request.
    #[error("refused: {0}")]
    Refused(String),
    /// The peer exceeds a limit of this end.
    #[error("more than {max} {what} in one copy")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// An argument cannot be used.
    #[error("{0}")]
    Argument(String),
}

/// Options of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Compare contents instead of size and modification time.
    pub checksum: bool,
    /// Delete paths at the destination that the source does not have.
    pub delete: bool,
    /// Change nothing; report what a copy would change.
    pub dry_run: bool,
    /// Neither send nor delete paths that match these patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Exclude>,
}

/// What a client may do in a served directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// Add new paths, without reading anything.
    Drop,
}

/// What a copy did with a path, or a dry run would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A file was copied completely, or a directory or symbolic link was created.
    Copied,
    /// A file was copied from the point where an earlier copy had stopped.
    Resumed,
    /// The path was deleted at the destination.
    Deleted,
    /// The path has a type that is not copied, and was left unchanged.
    Skipped,
    /// The operation failed.
    Failed,
}

/// Outcome for one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Relative to the destination.
    pub path: String,
    /// What was done with it.
    pub action: Action,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Totals of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Files, directories and links that were created or changed.
    pub copied: u64,
    /// Paths that were already up to date.
    pub unchanged: u64,
    /// Paths deleted at the destination.
    pub deleted: u64,
    /// Paths that were not copied because of their type.
    pub skipped: u64,
    /// Paths that failed.
    pub failed: u64,
    /// Bytes of contents sent over the stream.
    pub received_bytes: u64,
    /// Bytes that an earlier copy had already transferred.
    pub resumed_bytes: u64,
}

/// The totals, and the outcome of each path that was not up to date.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopyReport {
    /// The totals.
    pub summary: Summary,
    /// Outcomes in the order of the manifest, with deletions last.
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

/// Progress of a copy, as a progress bar shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of contents to transfer; 0 until known.
    pub total_bytes: AtomicU64,
    /// Bytes transferred so far.
    pub done_bytes: AtomicU64,
    /// Files that the receiver wants; 0 until known.
    pub wanted: AtomicU64,
    failures: Mutex<Vec<Report>>,
}

/// Most failures kept for [`Progress::take_failures`]. Ours: the report contains all failures, too.
const FAILURES_TOLD_MAX: usize = 1024;

/// What attempts of a copy have done whose connection broke.
#[derive(Clone, Copy, Debug, Default)]
pub struct Earlier {
    bytes: u64,
    wanted: u64,
}

impl Earlier {
    /// Adds the attempt that `progress` has recorded, which then begins again.
    pub fn add(&mut self, progress: &Progress) {
        self.bytes += progress.done_bytes.swap(0, Relaxed);
        progress.total_bytes.store(0, Relaxed);
        // Later attempts want files that the first one wanted.
        self.wanted = self.wanted.max(progress.wanted.swap(0, Relaxed));
    }

    /// Makes `summary`, of the last attempt, that of all. Files that the first attempt wanted and the last one did not
    /// were copied between.
    pub fn complete(&self, progress: &Progress, summary: &mut Summary) {
        let landed = self.wanted.saturating_sub(progress.wanted.load(Relaxed)).min(summary.unchanged);
        summary.copied += landed;
        summary.unchanged -= landed;
        summary.received_bytes += self.bytes;
        // What an earlier attempt received was not there before.
        summary.resumed_bytes = summary.resumed_bytes.saturating_sub(self.bytes);
    }
}

impl Progress {
    /// Records that a file failed while the copy continues.
    fn on_failure(&self, path: &str, reason: &str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < FAILURES_TOLD_MAX {
            let (path, reason) = (path.to_owned(), Some(reason.to_owned()));
            failures.push(Report { path, action: Action::Failed, reason });
        }
    }

    /// Returns and removes the failures since the last call.
    pub fn take_failures(&self) -> Vec<Report> {
        std::mem::take(&mut *self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
