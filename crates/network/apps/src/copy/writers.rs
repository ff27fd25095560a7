//! Tracks which copy writes which paths, so that a copy whose client is gone gives way to the next copy of the same
//! user. Its connection would otherwise remain until the idle timeout.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

/// A copy that has received nothing for this long counts as gone when its user starts to copy the same file. Ours.
const SILENCE: Duration = Duration::from_secs(2);
/// How long to wait for such a silence: bytes of a client that is gone may still be in transit or in buffers, and the
/// disk may be slow. Ours; shorter than the idle timeout of a connection.
const FALLS_SILENT: Duration = Duration::from_secs(20);
/// A copy that receives more than this is not from a client that is gone: the bytes that fit in the largest window of a
/// connection and in the buffer of a stream.
const OF_GONE_MAX: u64 = (64 << 20) + (256 << 10);
/// Time limit for a stopped copy to sync and name its complete files. Ours: a slow disk syncs 64 MiB in this time.
const DRAIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The writing copies of a server.
#[derive(Debug, Default)]
pub(super) struct Writers {
    arrivals: AtomicU64,
    copies: Mutex<Vec<Arc<Writing>>>,
}

/// One copy that writes files.
#[derive(Debug)]
struct Writing {
    owner: String,
    /// Its place in the order of requests.
    arrival: u64,
    /// Hashes of the paths of its files below the served directory, sorted.
    files: Vec<u64>,
    /// What it received and planned: grows as long as its client sends.
    progress: AtomicU64,
    stop: Notify,
}

/// A registered copy. It is removed from [`Writers`] on drop, when all its files are closed.
pub(super) struct Registered<'a> {
    writers: &'a Writers,
    writing: Arc<Writing>,
}

/// Identifies a file by its path below the served directory.
pub(super) fn file_hash(path: &str) -> u64 {
    blake3::hash(path.as_bytes()).as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

impl Writers {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Writing>>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a new request in the order of requests.
    pub fn arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Relaxed)
    }

    /// Registers a copy of `owner` that writes `files`. Ends earlier copies of the same owner that write one of these
    /// files and receive nothing, and waits until they have closed all files. A copy that still receives is left alone.
    pub async fn register(&self, owner: &str, arrival: u64, mut files: Vec<u64>) -> Registered<'_> {
        files.sort_unstable();
        let (owner, progress, stop) = (owner.to_owned(), AtomicU64::new(0), Notify::new());
        let writing = Arc::new(Writing { owner, arrival, files, progress, stop });
        let earlier: Vec<_> = {
            let mut all = self.all();
            all.push(writing.clone());
            all.iter().filter(|other| other.gives_way_to(&writing)).cloned().collect()
        };
        let registered = Registered { writers: self, writing };
        let mut watched: Vec<_> = earlier.into_iter().map(Watched::new).collect();
        loop {
            watched.retain_mut(|watched| self.has(&watched.writing) && !watched.is_left());
            if watched.is_empty() {
                break;
            }
            sleep(LOOK_EVERY).await;
            watched.iter_mut().for_each(Watched::look);
        }
        registered
    }

    fn has(&self, writing: &Arc<Writing>) -> bool {
        self.all().iter().any(|other| Arc::ptr_eq(other, writing))
    }
}

/// An earlier copy, as the next one sees it.
struct Watched {
    writing: Arc<Writing>,
    /// Its progress at first, and at the last look.
    begun: u64,
    before: u64,
    silent: Duration,
    waited: Duration,
    /// For how long it has been asked to stop.
    stopping: Option<Duration>,
}

impl Watched {
    fn new(writing: Arc<Writing>) -> Self {
        let begun = writing.progress.load(Relaxed);
        let (silent, waited) = (Duration::ZERO, Duration::ZERO);
        Self { writing, begun, before: begun, silent, waited, stopping: None }
    }

    /// Asks it to stop once it has received nothing for [`SILENCE`].
    fn look(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            *stopping += LOOK_EVERY;
            return;
        }
        let now = self.writing.progress.load(Relaxed);
        self.silent = if now == self.before { self.silent + LOOK_EVERY } else { Duration::ZERO };
        (self.before, self.waited) = (now, self.waited + LOOK_EVERY);
        if self.silent >= SILENCE {
            self.writing.stop.notify_one();
            self.stopping = Some(Duration::ZERO);
        }
    }

    /// True if the next copy does not wait for it any longer: it still receives, or does not end.
    fn is_left(&self) -> bool {
        match self.stopping {
            Some(stopping) => stopping >= DRAIN,
            None => self.waited >= FALLS_SILENT || self.before - self.begun > OF_GONE_MAX,
        }
    }
}

impl Writing {
    /// True if this copy was requested before `next`, by the same owner, and writes one of the same files.
    fn gives_way_to(&self, next: &Self) -> bool {
        let (few, many) = match self.files.len() < next.files.len() {
            true => (&self.files, &next.files),
            false => (&next.files, &self.files),
        };
        self.arrival < next.arrival
            && self.owner == next.owner
            && few.iter().any(|file| many.binary_search(file).is_ok())
    }
}

impl Registered<'_> {
    /// Records that the copy received `count` bytes, or planned as many files.
    pub fn on_progress(&self, count: u64) {
        self.writing.progress.fetch_add(count, Relaxed);
    }

    /// Waits until a later copy takes over.
    pub async fn stopped(&self) {
        self.writing.stop.notified().await;
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.writers.all().retain(|other| !Arc::ptr_eq(other, &self.writing));
    }
}
