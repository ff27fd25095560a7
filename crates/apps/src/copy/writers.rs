//! Tracks which copy writes which file, so that a copy whose client is gone can be replaced by the next copy of the
//! same user. The old connection would otherwise remain until the idle timeout.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

/// A copy that has received nothing for this long counts as gone when its user starts to copy the file again. Ours.
const SILENCE: Duration = Duration::from_secs(2);
/// How long to wait for such a silence: bytes of a client that is gone may still be in transit or in buffers, and the
/// disk may be slow. Ours; shorter than the idle timeout of a connection.
const FALLS_SILENT: Duration = Duration::from_secs(20);
/// A copy that receives more than this is not from a client that is gone: the bytes that fit in the largest window of a
/// connection and in the buffer of a stream.
const OF_GONE_MAX: u64 = (64 << 20) + (256 << 10);
/// Time limit for a stopped copy to release its file. Ours.
const LET_GO: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Identifies a file independently of its name: device and inode number.
type FileId = (u64, u64);

/// The writing copies of a server.
#[derive(Debug, Default)]
pub(super) struct Writers(Mutex<BTreeMap<FileId, Arc<Writing>>>);

/// One copy that writes one file.
#[derive(Debug)]
struct Writing {
    owner: String,
    bytes: AtomicU64,
    stop: Notify,
}

/// The claim of a copy to a file, registered in [`Writers`] until it is dropped.
pub(super) struct Claim<'a> {
    writers: &'a Writers,
    file: FileId,
    writing: Arc<Writing>,
}

impl Writers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<FileId, Arc<Writing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers that `owner` writes `file`.
    pub fn claim(&self, owner: &str, file: &File) -> io::Result<Claim<'_>> {
        let stat = rustix::fs::fstat(file)?;
        let file = (stat.st_dev, stat.st_ino);
        let writing =
            Arc::new(Writing { owner: owner.to_owned(), bytes: AtomicU64::new(0), stop: Notify::new() });
        self.all().insert(file, writing.clone());
        Ok(Claim { writers: self, file, writing })
    }

    /// Stops the copy that writes `file`, if it is of the same `owner` and receives nothing. Returns true once it has
    /// released the file.
    pub async fn take_over(&self, owner: &str, file: FileId) -> bool {
        let Some(writing) = self.all().get(&file).filter(|writing| writing.owner == owner).cloned() else {
            return false;
        };
        let begun = writing.bytes.load(Relaxed);
        let (mut before, mut silent, mut waited) = (begun, Duration::ZERO, Duration::ZERO);
        while silent < SILENCE {
            if waited >= FALLS_SILENT || before - begun > OF_GONE_MAX {
                return false;
            }
            sleep(LOOK_EVERY).await;
            let now = writing.bytes.load(Relaxed);
            silent = if now == before { silent + LOOK_EVERY } else { Duration::ZERO };
            (before, waited) = (now, waited + LOOK_EVERY);
        }
        writing.stop.notify_one();
        let mut waited = Duration::ZERO;
        while self.all().get(&file).is_some_and(|now| Arc::ptr_eq(now, &writing)) {
            if waited >= LET_GO {
                return false;
            }
            sleep(LOOK_EVERY).await;
            waited += LOOK_EVERY;
        }
        true
    }
}

impl Claim<'_> {
    pub fn on_bytes(&self, count: u64) {
        self.writing.bytes.fetch_add(count, Relaxed);
    }

    /// Waits until another copy takes over the file.
    pub async fn stopped(&self) {
        self.writing.stop.notified().await;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut all = self.writers.all();
        if all.get(&self.file).is_some_and(|now| Arc::ptr_eq(now, &self.writing)) {
            all.remove(&self.file);
        }
    }
}
