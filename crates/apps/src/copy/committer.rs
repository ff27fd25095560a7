//! Whole files get their names once they are on disk. Waiting for the disk takes milliseconds per file, so many files wait at
//! once, and while others come in.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::{JoinHandle, spawn_blocking};

use rustix::io::Errno;

use super::pattern::{Exclude, excludes};
use super::tree::{self, Relative, Removed, Tree};
use super::wire::Timestamp;
use super::writers::Claim;

/// Files that are brought to disk at once at most, each of which is open, while as many come in. Ours.
const FILES_MAX: usize = 1024;
/// Files that a process may have open, of which none are for this. Ours.
const OTHER_FILES: u64 = 256;
/// Bytes that they have together, from which on no more are waited for. Ours.
const BYTES_MAX: u64 = 32 << 20;
/// Files up to which each is brought to disk by itself, and nothing of others on the way. Ours.
const SINGLE_MAX: usize = 4;
/// Bytes of a file that are received before the disk is told to take them. Ours: bytes that remain when the file ends are waited for.
const WRITEBACK_BYTES: u64 = 32 << 20;

/// A file whose bytes are all there.
pub(super) struct CompleteFile {
    /// Its place in the manifest.
    pub index: usize,
    /// The bytes that were there before this copy.
    pub offset_bytes: u64,
    pub file: File,
    /// The name that it has, and the one it is to get.
    pub partial: Relative,
    pub path: Relative,
    pub mode: u32,
    /// `None`: none is known, and it is now.
    pub mtime: Option<Timestamp>,
    pub size_bytes: u64,
}

/// Which paths a file may replace when it gets its name.
#[derive(Clone, Debug)]
pub(super) enum Replace {
    /// Nothing.
    Nothing,
    /// Anything but a directory with entries.
    Files,
    /// A directory, too, with all entries that these patterns do not match.
    Directories(Vec<Exclude>),
}

/// Outcome for a file.
pub(super) struct Committed {
    /// Its place in the manifest.
    pub index: usize,
    /// The bytes of it that were there before this copy.
    pub offset_bytes: u64,
    /// Or why it has no name.
    pub outcome: Result<(), String>,
    /// Paths removed for it.
    pub removed: Vec<Removed>,
}

impl Committed {
    fn failed(index: usize, reason: String) -> Self {
        Self { index, offset_bytes: 0, outcome: Err(reason), removed: Vec::new() }
    }
}

/// Files on their way to disk.
pub(super) struct Committer<'a> {
    tree: Arc<Tree>,
    replace: Replace,
    files_max: usize,
    waiting: Vec<CompleteFile>,
    waiting_bytes: u64,
    /// Of a server: those of the files that wait. They go after the files.
    claims: Vec<Claim<'a>>,
    running: Option<(JoinHandle<Vec<Committed>>, Vec<Claim<'a>>)>,
    /// Those that were begun and did not end, by their places.
    begun: Vec<usize>,
    committed: Vec<Committed>,
}

impl<'a> Committer<'a> {
    /// Below `tree`, as one of `copies` at once.
    pub fn new(tree: &Tree, copies: usize, replace: Replace) -> io::Result<Self> {
        Ok(Self {
            replace,
            files_max: files_max(copies),
            tree: Arc::new(tree.subtree(&Relative::default())?),
            waiting: Vec::new(),
            waiting_bytes: 0,
            claims: Vec::new(),
            running: None,
            begun: Vec::new(),
            committed: Vec::new(),
        })
    }

    /// Takes a file, which may wait for others. Waits itself where the disk is slower than the stream.
    pub async fn take(&mut self, complete: CompleteFile, claim: Option<Claim<'a>>) {
        self.waiting_bytes += complete.size_bytes;
        self.waiting.push(complete);
        self.claims.extend(claim);
        if self.waiting.len() >= self.files_max || self.waiting_bytes >= BYTES_MAX {
            self.start().await;
        }
    }

    /// A file failed before it was whole.
    pub fn failed(&mut self, index: usize, reason: String) {
        self.committed.push(Committed::failed(index, reason));
    }

    /// Brings all to disk; returns each file's outcome, in no order.
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
        let committer = spawn_blocking(move || land(&tree, &replace, batch));
        self.running = Some((committer, std::mem::take(&mut self.claims)));
    }

    async fn join(&mut self) {
        let Some((running, claims)) = self.running.take() else { return };
        match running.await {
            Ok(committed) => self.committed.extend(committed),
            Err(error) => {
                let failed = |index| Committed::failed(index, error.to_string());
                self.committed.extend(self.begun.drain(..).map(failed));
            }
        }
        drop(claims);
    }
}

/// Files that one of several copies may bring to disk at once: all copies together stay below the limit of open files.
fn files_max(copies: usize) -> usize {
    let open = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let each = open.saturating_sub(OTHER_FILES) / (2 * copies.max(1) as u64);
    usize::try_from(each).unwrap_or(FILES_MAX).clamp(1, FILES_MAX)
}

/// Lets this process have as many files open as its user may.
pub fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is not allowed, fewer files are brought to disk at once.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Gives the files of `batch` their permissions, times and names, the last when all the rest is on disk. They are locked until then.
fn land(tree: &Tree, replace: &Replace, batch: Vec<CompleteFile>) -> Vec<Committed> {
    let mut committed = Vec::with_capacity(batch.len());
    let mut ready = Vec::with_capacity(batch.len());
    for complete in batch {
        match tree::finish(&complete.file, complete.mode, complete.mtime) {
            Ok(()) => ready.push(complete),
            Err(error) => committed.push(Committed::failed(complete.index, error.to_string())),
        }
    }
    let synced = sync(&ready);
    for (complete, synced) in ready.iter().zip(synced) {
        let mut removed = Vec::new();
        let named = synced.and_then(|()| name(tree, replace, complete, &mut removed));
        let outcome = named.map_err(|error| error.to_string());
        committed.push(Committed {
            index: complete.index,
            offset_bytes: complete.offset_bytes,
            outcome,
            removed,
        });
    }
    committed
}

/// Gives a file its name. A directory that has it goes now, not before there is something in its place.
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

/// Brings files to disk: few one by one, many with all else that their file systems have to write, which is one wait for all.
fn sync(files: &[CompleteFile]) -> Vec<io::Result<()>> {
    if files.len() <= SINGLE_MAX {
        return files.iter().map(|complete| complete.file.sync_all()).collect();
    }
    // A directory may be another file system's.
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

/// Has the disk take the received bytes of a file while the rest of it comes.
#[derive(Default)]
pub(super) struct Writeback {
    bytes: u64,
    running: Option<JoinHandle<io::Result<()>>>,
    failure: Option<io::Error>,
}

impl Writeback {
    /// Notes bytes that were written to `file`.
    ///
    /// # Errors
    /// Where the disk did not take earlier bytes.
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
        // Without another handle it is waited for at the end.
        if let Ok(file) = file.try_clone() {
            self.running = Some(spawn_blocking(move || file.sync_data()));
        }
        Ok(())
    }

    /// Waits for the write-back under way. A failure is told here or never: the system tells it once.
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
