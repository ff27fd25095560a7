//! Gives complete files their final names once they are synced to disk. A sync takes milliseconds per file. Therefore many
//! files are synced together while further files arrive.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;

use tokio::task::{JoinHandle, spawn_blocking};

use rustix::io::Errno;

use super::descriptors::Share;
use super::pattern::{Exclude, excludes};
use super::tree::{self, Relative, Removed, Tree};
use super::wire::Timestamp;

/// Bytes in a batch from which it is synced without waiting for more files. Ours.
const BYTES_MAX: u64 = 32 << 20;
/// Up to this number of files, each is synced individually, without flushing unrelated data. Ours.
const SINGLE_MAX: usize = 4;
/// Bytes of a file after which the system is asked to start writing them to disk. Ours: what is unwritten when the file
/// ends delays the end.
const WRITEBACK_BYTES: u64 = 32 << 20;

/// A file that was received completely.
pub(super) struct CompleteFile {
    /// Its index in the manifest.
    pub index: usize,
    /// Its bytes that an earlier copy had transferred.
    pub offset_bytes: u64,
    pub file: File,
    /// Its current name, followed by its final name.
    pub partial: Relative,
    pub path: Relative,
    pub mode: u32,
    /// Modification time; `None` if unknown, in which case the time of the copy is kept.
    pub mtime: Option<Timestamp>,
    pub size_bytes: u64,
}

/// Which existing paths a file may replace when it gets its final name.
#[derive(Clone, Debug)]
pub(super) enum Replace {
    /// Nothing.
    Nothing,
    /// Anything except a directory that is not empty.
    Files,
    /// Directories, too, including all entries that do not match these patterns.
    Directories(Vec<Exclude>),
}

/// Outcome of a file.
pub(super) struct Committed {
    /// Its index in the manifest.
    pub index: usize,
    /// Its bytes that an earlier copy had transferred.
    pub offset_bytes: u64,
    /// On failure, why the file has no final name.
    pub outcome: Result<(), NotLanded>,
    /// Paths that were deleted to make room for it.
    pub removed: Vec<Removed>,
}

/// Why a wanted file did not get its final name.
#[derive(Debug)]
pub(super) enum NotLanded {
    /// It could not be sent or stored.
    Failed(String),
    /// The sender no longer had it.
    Vanished,
}

impl Committed {
    fn failed(index: usize, reason: NotLanded) -> Self {
        Self { index, offset_bytes: 0, outcome: Err(reason), removed: Vec::new() }
    }
}

/// Files that are being synced to disk.
pub(super) struct Committer {
    tree: Arc<Tree>,
    replace: Replace,
    share: Share<'static>,
    waiting: Vec<CompleteFile>,
    waiting_bytes: u64,
    running: Option<JoinHandle<Vec<Committed>>>,
    /// Manifest indexes of the files in the running batch.
    begun: Vec<usize>,
    committed: Vec<Committed>,
}

impl Committer {
    /// A committer for files below `tree`, with the copy's `share` of descriptors.
    pub fn new(tree: &Tree, share: Share<'static>, replace: Replace) -> io::Result<Self> {
        Ok(Self {
            replace,
            share,
            tree: Arc::new(tree.subtree(&Relative::default())?),
            waiting: Vec::new(),
            waiting_bytes: 0,
            running: None,
            begun: Vec::new(),
            committed: Vec::new(),
        })
    }

    /// Adds a file, which may have to wait for others. Blocks while the disk is slower than the stream.
    pub async fn take(&mut self, complete: CompleteFile) {
        self.waiting_bytes += complete.size_bytes;
        self.waiting.push(complete);
        if self.waiting.len() >= self.share.files_max() || self.waiting_bytes >= BYTES_MAX {
            self.start().await;
        }
    }

    /// Records that a file failed before it was complete.
    pub fn failed(&mut self, index: usize, reason: NotLanded) {
        self.committed.push(Committed::failed(index, reason));
    }

    /// Syncs all files and returns their outcomes, in no particular order.
    pub async fn finish(&mut self) -> Vec<Committed> {
        self.start().await;
        self.join().await;
        std::mem::take(&mut self.committed)
    }

    async fn start(&mut self) {
        self.join().await;
        if self.waiting.is_empty() {
            return;
        }
        let (batch, tree, replace) =
            (std::mem::take(&mut self.waiting), self.tree.clone(), self.replace.clone());
        self.waiting_bytes = 0;
        self.begun = batch.iter().map(|complete| complete.index).collect();
        self.running = Some(spawn_blocking(move || land(&tree, &replace, batch)));
    }

    /// Waits for the running batch. Cancel safe: the batch stays until it is over.
    async fn join(&mut self) {
        let Some(running) = &mut self.running else { return };
        let landed = running.await;
        self.running = None;
        match landed {
            Ok(committed) => self.committed.extend(committed),
            Err(error) => {
                let failed = |index| Committed::failed(index, NotLanded::Failed(error.to_string()));
                self.committed.extend(self.begun.drain(..).map(failed));
            }
        }
    }
}

/// Gives the files of `batch` their permissions and times and, once everything is synced, their names. They stay locked
/// until then.
fn land(tree: &Tree, replace: &Replace, batch: Vec<CompleteFile>) -> Vec<Committed> {
    let mut committed = Vec::with_capacity(batch.len());
    let mut ready = Vec::with_capacity(batch.len());
    for complete in batch {
        match tree::finish(&complete.file, complete.mode, complete.mtime) {
            Ok(()) => ready.push(complete),
            Err(error) => {
                let reason = NotLanded::Failed(error.to_string());
                committed.push(Committed::failed(complete.index, reason));
            }
        }
    }
    let synced = sync(&ready);
    for (complete, synced) in ready.iter().zip(synced) {
        let mut removed = Vec::new();
        let named = synced.and_then(|()| name(tree, replace, complete, &mut removed));
        let outcome = named.map_err(|error| NotLanded::Failed(error.to_string()));
        committed.push(Committed {
            index: complete.index,
            offset_bytes: complete.offset_bytes,
            outcome,
            removed,
        });
    }
    committed
}

/// Renames a file to its final name. A directory of that name is deleted only now, when its replacement is complete.
fn name(
    tree: &Tree,
    replace: &Replace,
    complete: &CompleteFile,
    removed: &mut Vec<Removed>,
) -> io::Result<()> {
    let (from, to) = (&complete.partial, &complete.path);
    match tree.rename(from, to, matches!(replace, Replace::Nothing)) {
        Err(error) if error.raw_os_error() == Some(Errno::ISDIR.raw_os_error()) => {
            match replace {
                Replace::Nothing => return Err(error),
                Replace::Files => tree.remove(to.as_str(), true)?,
                Replace::Directories(excluded) => {
                    let is_kept = |path: &OsStr, is_directory| {
                        excludes(excluded, &path.to_string_lossy(), is_directory)
                    };
                    removed.extend(tree.remove_all(to.as_str().into(), false, &is_kept));
                }
            }
            tree.rename(from, to, false)
        }
        named => named,
    }
}

/// Syncs files: a few individually, many with one sync per file system, which also writes unrelated data.
fn sync(files: &[CompleteFile]) -> Vec<io::Result<()>> {
    if files.len() <= SINGLE_MAX {
        return files.iter().map(|complete| complete.file.sync_all()).collect();
    }
    // A directory may be on another file system.
    let mut done: Vec<(u64, Result<(), Errno>)> = Vec::new();
    let mut sync = |complete: &CompleteFile| {
        let device = rustix::fs::fstat(&complete.file)?.st_dev;
        let known = done.iter().find(|(known, _)| *known == device).map(|(_, synced)| *synced);
        let synced = known.unwrap_or_else(|| {
            let synced = rustix::fs::syncfs(&complete.file);
            done.push((device, synced));
            synced
        });
        synced.map_err(io::Error::from)
    };
    files.iter().map(&mut sync).collect()
}

/// Starts writing received bytes of a file to disk while the rest is being received.
#[derive(Default)]
pub(super) struct Writeback {
    bytes: u64,
    running: Option<JoinHandle<io::Result<()>>>,
    failure: Option<io::Error>,
}

impl Writeback {
    /// Records that bytes were written to `file`.
    ///
    /// # Errors
    /// If writing earlier bytes to disk failed.
    pub async fn on_written(&mut self, file: &File, bytes: usize) -> io::Result<()> {
        self.bytes += bytes as u64;
        if self.bytes < WRITEBACK_BYTES || self.running.as_ref().is_some_and(|running| !running.is_finished())
        {
            return Ok(());
        }
        self.bytes = 0;
        self.join().await;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        // If the handle cannot be cloned, the sync at the end waits for these bytes.
        if let Ok(file) = file.try_clone() {
            self.running = Some(spawn_blocking(move || file.sync_data()));
        }
        Ok(())
    }

    /// Waits for the write-back in progress. The system reports a write error only once, so it must be reported here.
    pub async fn finish(mut self) -> Result<(), String> {
        self.join().await;
        self.failure.map_or(Ok(()), |failure| Err(failure.to_string()))
    }

    async fn join(&mut self) {
        let Some(running) = self.running.take() else { return };
        let failure = match running.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(error) => error.into(),
        };
        self.failure.get_or_insert(failure);
    }
}
