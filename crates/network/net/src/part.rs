//! A file that is being downloaded: `NAME.part` beside its destination, with the state for resuming it in
//! `NAME.part.json`. The file gets its final name only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::NetError;
use crate::partial::PartialDownload;

/// State stored beside a part file, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartMetadata {
    /// The requested URL.
    url: String,
    /// URL of the file after redirects.
    found_at: String,
    begun: PartialDownload,
    checked: PrefixDigest,
}

/// Length and digest of the beginning of the part file, which are compared with the bytes on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrefixDigest {
    bytes: u64,
    sha256: String,
}

/// Bytes after which the digest of the part file is stored. Ours: at most this number is downloaded again after a kill.
const CHECKED_EVERY: u64 = 4 << 20;

/// What an earlier attempt left.
#[derive(Debug)]
pub enum EarlierPart {
    /// Nothing that could be resumed.
    Nothing,
    /// The bytes on disk are not those that were received.
    Damaged,
    /// A partial download, and the URL where its file was found.
    PartialDownload(PartialDownload, String),
}

/// Destination of the bytes.
#[derive(Debug)]
enum Output {
    /// A part file, locked against other processes.
    Part { file: Flock<File>, part: PathBuf, note: PathBuf, destination: PathBuf },
    /// A device, a pipe or standard output, where written bytes cannot be undone.
    Direct { file: File, name: PathBuf },
}

/// A file that is being received.
#[derive(Debug)]
pub struct Incoming {
    place: Output,
    hash: Sha256,
    bytes: u64,
    /// State for resuming, if that is possible.
    note: Option<PartMetadata>,
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn beside(destination: &Path, suffix: &str) -> PathBuf {
    let mut name = destination.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn error_at(path: &Path) -> impl Fn(io::Error) -> NetError + '_ {
    move |source| NetError::File { path: path.to_owned(), source }
}

impl Incoming {
    /// Opens the part file for `destination`; `None` is standard output.
    ///
    /// # Errors
    /// If it cannot be written, or another process is writing it.
    pub fn open(destination: Option<&Path>) -> Result<Self, NetError> {
        let fresh = |place| Self { place, hash: Sha256::new(), bytes: 0, note: None };
        let Some(destination) = destination else {
            let name = PathBuf::from("standard output");
            let file = io::stdout().as_fd().try_clone_to_owned().map_err(error_at(&name))?;
            return Ok(fresh(Output::Direct { file: file.into(), name }));
        };
        match fs::metadata(destination) {
            Ok(there) if there.is_dir() => {
                return Err(error_at(destination)(io::ErrorKind::IsADirectory.into()));
            }
            Ok(there) if !there.is_file() => {
                let file = OpenOptions::new().write(true).open(destination).map_err(error_at(destination))?;
                return Ok(fresh(Output::Direct { file, name: destination.to_owned() }));
            }
            _ => (),
        }
        // A symbolic link is kept, and its target is replaced.
        let destination = fs::canonicalize(destination).unwrap_or_else(|_| destination.to_owned());
        let (part, note) = (beside(&destination, ".part"), beside(&destination, ".part.json"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // In a directory shared with other users, a link created by one of them must not be followed.
        let file = options.custom_flags(nix::libc::O_NOFOLLOW).open(&part).map_err(error_at(&part))?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|_| NetError::Busy { path: destination.clone() })?;
        // Another process may have finished between the open and the lock; the open file is then no longer the part
        // file.
        let (opened, there) = (file.metadata().map_err(error_at(&part))?, fs::metadata(&part));
        if !there.is_ok_and(|there| (there.dev(), there.ino()) == (opened.dev(), opened.ino())) {
            return Err(NetError::Busy { path: destination });
        }
        Ok(fresh(Output::Part { file, part, note, destination }))
    }

    /// Loads what an earlier attempt at `url` left, and the URL where that found the file. Its bytes count as written.
    pub fn resume(&mut self, url: &str) -> EarlierPart {
        match self.read_left(url) {
            None => EarlierPart::Nothing,
            Some((note, None)) => {
                (self.hash, self.bytes, self.note) = (Sha256::new(), 0, None);
                if note.checked.bytes == 0 { EarlierPart::Nothing } else { EarlierPart::Damaged }
            }
            Some((note, Some(hash))) => {
                let begun = PartialDownload { have: note.checked.bytes, ..note.begun.clone() };
                let found_at = note.found_at.clone();
                (self.hash, self.bytes, self.note) = (hash, note.checked.bytes, Some(note));
                EarlierPart::PartialDownload(begun, found_at)
            }
        }
    }

    /// The stored state and, if the bytes on disk match it, the hash of those bytes.
    fn read_left(&mut self, url: &str) -> Option<(PartMetadata, Option<Sha256>)> {
        let Output::Part { file, note, .. } = &mut self.place else { return None };
        let note: PartMetadata = serde_json::from_slice(&fs::read(note).ok()?).ok()?;
        if note.url != url || note.checked.bytes >= note.begun.complete {
            return None;
        }
        let mut hash = Sha256::new();
        file.seek(io::SeekFrom::Start(0)).ok()?;
        let mut buffer = vec![0; 64 * 1024];
        let mut left = note.checked.bytes;
        while left > 0 {
            let take = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match file.read(&mut buffer[..take]).ok()? {
                0 => break,
                read => {
                    hash.update(&buffer[..read]);
                    left -= read as u64;
                }
            }
        }
        let is_whole = left == 0 && note.checked.bytes > 0 && hex(hash.clone()) == note.checked.sha256;
        // Bytes beyond the checked length have no stored digest.
        let is_whole = is_whole && file.set_len(note.checked.bytes).is_ok();
        Some((note, is_whole.then_some(hash)))
    }

    /// Discards the part file and starts over, with the state for resuming later. Returns false if bytes were already
    /// written that cannot be undone.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn begin(
        &mut self,
        url: &str,
        found_at: &str,
        begun: Option<&PartialDownload>,
    ) -> Result<bool, NetError> {
        let Output::Part { file, part, note, .. } = &mut self.place else { return Ok(self.bytes == 0) };
        // The order matters: state must never exist beside bytes that it does not describe.
        let _ = fs::remove_file(note);
        file.set_len(0).and_then(|()| file.rewind()).map_err(error_at(part))?;
        (self.hash, self.bytes) = (Sha256::new(), 0);
        self.note = begun.map(|begun| {
            let checked = PrefixDigest { bytes: 0, sha256: self.sha256() };
            PartMetadata { url: url.to_owned(), found_at: found_at.to_owned(), begun: begun.clone(), checked }
        });
        self.write_note()?;
        Ok(true)
    }

    /// Stores length and digest of the part file.
    fn write_note(&mut self) -> Result<(), NetError> {
        let (bytes, sha256) = (self.bytes, self.sha256());
        let (Output::Part { note: path, .. }, Some(note)) = (&self.place, &mut self.note) else {
            return Ok(());
        };
        note.checked = PrefixDigest { bytes, sha256 };
        let text = serde_json::to_vec(note).map_err(|error| error_at(path)(error.into()))?;
        // It is renamed once it is complete.
        let new = beside(path, ".new");
        let _ = fs::remove_file(&new);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).custom_flags(nix::libc::O_NOFOLLOW);
        let written = options.open(&new).and_then(|mut file| file.write_all(&text));
        written.and_then(|()| fs::rename(&new, path)).map_err(error_at(path))
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), NetError> {
        let (result, name) = match &mut self.place {
            Output::Part { file, part, .. } => (file.write_all(bytes), part),
            Output::Direct { file, name } => (file.write_all(bytes), name),
        };
        result.map_err(error_at(name))?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        let noted = self.note.as_ref().map_or(u64::MAX, |note| note.checked.bytes);
        if self.bytes.saturating_sub(noted) >= CHECKED_EVERY { self.write_note() } else { Ok(()) }
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// SHA-256 of the written bytes, in hexadecimal digits.
    pub fn sha256(&self) -> String {
        hex(self.hash.clone())
    }

    /// Renames the complete file to its final name after it was synced to disk.
    ///
    /// # Errors
    /// If that fails; the part file remains.
    pub fn commit(self) -> Result<(), NetError> {
        let Output::Part { file, part, note, destination } = &self.place else { return Ok(()) };
        file.sync_all().map_err(error_at(part))?;
        fs::rename(part, destination).map_err(error_at(destination))?;
        let _ = fs::remove_file(note);
        let folder = destination.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The new name is durable once its directory is synced, which not every file system supports.
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// Keeps the part file if it can be resumed later.
    pub fn leave(mut self) {
        if self.note.is_none() || self.bytes == 0 || self.write_note().is_err() {
            self.discard();
        }
    }

    /// Removes the part file.
    pub fn discard(self) {
        if let Output::Part { part, note, .. } = &self.place {
            // Errors are ignored: nothing can be done about files that remain.
            let _ = (fs::remove_file(note), fs::remove_file(part));
        }
    }
}
