//! The end that receives the files. It does not trust the sender.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::committer::{Committed, Committer, CompleteFile, Replace, Writeback};
use super::lists::{ListBudget, Lists};
use super::manifest::{Item, NotAdmitted, State, TopNames, admit};
use super::tree::{self, PARTIAL_SUFFIX, Relative, Tree};
use super::wire::{self, Arriving, ENTRIES_MAX, Entry, Kind, Message, NAMES_BYTES_MAX, Piece, Timestamp};
use super::writers::{Claim, Writers};
use super::{Action, COPIES_MAX, CopyError, CopyReport, Options, Progress, Report, Rights};

/// Parameters of a receiving copy.
pub(super) struct Terms<'a> {
    pub options: &'a Options,
    pub rights: Rights,
    pub tops: TopNames,
    /// On a server: the other writers, and the owner of this copy.
    pub writers: Option<(&'a Writers, &'a str)>,
    /// Memory of the lists of all copies.
    pub lists: &'a Lists,
}

impl Terms<'_> {
    /// True if existing paths may be changed.
    pub fn replaces(&self) -> bool {
        self.rights != Rights::Drop
    }

    fn replace(&self) -> Replace {
        match (self.replaces(), self.options.delete) {
            (false, _) => Replace::Nothing,
            (true, false) => Replace::Files,
            (true, true) => Replace::Directories(self.options.exclude.clone()),
        }
    }
}

/// A file that the receiver wants, and its first missing byte.
pub(super) struct Want {
    pub index: usize,
    pub offset_bytes: u64,
}

/// Offset, size and modification time of a file when the sender opened it.
#[derive(Clone, Copy)]
struct Opened {
    offset_bytes: u64,
    size_bytes: Option<u64>,
    mtime: Option<Timestamp>,
}

/// State of a copy at its receiver.
pub(super) struct Receiver<'a> {
    pub tree: &'a Tree,
    pub terms: Terms<'a>,
    /// By manifest index; `None` for a path that was not admitted.
    pub items: Vec<Option<Item>>,
    /// Paths that the sender has but does not send.
    pub omitted: BTreeSet<String>,
    /// Of these, directories that the sender could not list.
    pub unlisted: BTreeSet<String>,
    /// The sender listed a path that no honest sender lists.
    pub has_refused: bool,
    pub is_top_listed: bool,
    committer: Committer<'a>,
    pub outcome: CopyReport,
    list_budget: ListBudget<'a>,
}

/// Receives the files that a sender lists into `tree`, and reports the outcome to the sender.
///
/// # Errors
/// If the stream breaks, the sender violates the protocol, or a limit is exceeded. Files that cannot be written are in
/// the outcome.
pub(super) async fn receive<'a, R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
    tree: &'a Tree,
    terms: Terms<'a>,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<CopyReport, CopyError> {
    let copies = if terms.writers.is_some() { COPIES_MAX } else { 1 };
    let mut receiver = Receiver {
        tree,
        items: Vec::new(),
        omitted: BTreeSet::new(),
        unlisted: BTreeSet::new(),
        has_refused: false,
        is_top_listed: false,
        committer: Committer::new(tree, copies, terms.replace())?,
        outcome: CopyReport::default(),
        list_budget: terms.lists.list_budget(),
        terms,
    };
    receiver.manifest(reader).await?;
    let wants = receiver.plan(progress, writer).await?;
    let received = receiver.files(&wants, progress, reader, writer).await;
    // Complete files get their names even if the rest of the copy fails.
    let committed = receiver.committer.finish().await;
    received?;
    receiver.on_committed(committed);
    receiver.finish();
    for report in &receiver.outcome.paths {
        wire::write(writer, &Message::Report(report.clone())).await?;
    }
    wire::write(writer, &Message::Summary(receiver.outcome.summary)).await?;
    writer.flush().await?;
    Ok(receiver.outcome)
}

impl Receiver<'_> {
    pub fn report(&mut self, path: &str, action: Action, reason: Option<String>) {
        self.outcome.summary.count(action);
        let reason = reason.map(wire::bounded);
        self.outcome.paths.push(Report { path: wire::bounded(path.to_owned()), action, reason });
    }

    /// Name for the bytes of `path` until the file is complete. It contains a hash, because the file's own name may
    /// leave no room for a suffix. In a drop box the hash also covers the user's key, so that users cannot detect each
    /// other's partial files.
    pub fn partial(&self, path: &Relative) -> Result<Relative, String> {
        let (directory, name) = path.split();
        let mut hasher = blake3::Hasher::new();
        hasher.update(name.as_bytes());
        if let (Rights::Drop, Some((_, owner))) = (self.terms.rights, self.terms.writers) {
            hasher.update(b"\0").update(owner.as_bytes());
        }
        let hash = hasher.finalize().to_hex();
        Relative::parse(directory)?.join(&format!(".{}{PARTIAL_SUFFIX}", &hash.as_str()[..16]))
    }

    /// Reads the sender's manifest.
    async fn manifest<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> Result<(), CopyError> {
        // For a million paths, hashes need less memory than the paths.
        let mut seen = BTreeSet::new();
        let (mut paths, mut names_bytes) = (0, 0);
        loop {
            let message = wire::read(reader).await?;
            paths += 1;
            let text_bytes = match &message {
                Message::Entry(Entry { path, kind: Kind::Symlink { target }, .. }) => {
                    path.len() + target.len()
                }
                Message::Entry(entry) => entry.path.len(),
                Message::Omitted { path, reason, .. } => path.len() + reason.len(),
                _ => 0,
            };
            names_bytes += text_bytes;
            if paths > ENTRIES_MAX + 1 {
                return Err(CopyError::Limit { what: "paths", max: ENTRIES_MAX });
            }
            if names_bytes > NAMES_BYTES_MAX {
                return Err(CopyError::Limit { what: "bytes of names", max: NAMES_BYTES_MAX });
            }
            self.list_budget.add(text_bytes)?;
            match message {
                Message::Entry(entry) => self.on_entry(entry, &mut seen),
                Message::Omitted { path, reason, is_failure } => {
                    let path = wire::bounded(path);
                    let action = if is_failure { Action::Failed } else { Action::Skipped };
                    self.report(&path, action, Some(reason));
                    if is_failure {
                        self.unlisted.insert(path.clone());
                    }
                    self.omitted.insert(path);
                }
                Message::EntriesEnd { is_top_listed } => {
                    self.is_top_listed = is_top_listed;
                    return Ok(());
                }
                other => return Err(wire::unexpected(&other)),
            }
        }
    }

    fn on_entry(&mut self, entry: Entry, seen: &mut BTreeSet<[u8; 32]>) {
        let path = admit(&entry, &self.terms.tops).and_then(|path| {
            let is_first = seen.insert(*blake3::hash(path.as_str().as_bytes()).as_bytes());
            is_first.then_some(path).ok_or_else(|| NotAdmitted::Refused("it is listed twice".to_owned()))
        });
        let Entry { path: shown, kind, mtime, mode } = entry;
        let item = match path {
            Ok(path) => Some(Item { path, kind, mtime, mode, state: State::Found }),
            Err(NotAdmitted::Skipped(reason)) => {
                self.report(&shown, Action::Skipped, Some(reason));
                self.omitted.insert(shown);
                None
            }
            Err(NotAdmitted::Refused(reason)) => {
                self.has_refused = true;
                self.report(&shown, Action::Failed, Some(reason));
                None
            }
        };
        self.items.push(item);
    }

    /// Receives all wanted files.
    async fn files<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        wants: &[Want],
        progress: &Progress,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<(), CopyError> {
        for want in wants {
            self.file(want, progress, reader, writer).await?;
        }
        Ok(())
    }

    /// Reports the outcomes of files in manifest order.
    fn on_committed(&mut self, mut committed: Vec<Committed>) {
        committed.sort_unstable_by_key(|committed| committed.index);
        for Committed { index, offset_bytes, outcome, removed } in committed {
            self.on_removed(removed);
            let Some(item) = &mut self.items[index] else { continue };
            item.state = if outcome.is_ok() { State::Made } else { State::Failed };
            let path = item.path.as_str().to_owned();
            match outcome {
                Ok(()) if offset_bytes > 0 => {
                    self.outcome.summary.resumed_bytes += offset_bytes;
                    self.report(&path, Action::Resumed, None);
                }
                Ok(()) => self.report(&path, Action::Copied, None),
                Err(reason) => self.report(&path, Action::Failed, Some(reason)),
            }
        }
    }

    /// Receives one file. If the file cannot be stored, the sender is asked to stop, and its bytes are discarded until
    /// it does.
    async fn file<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        want: &Want,
        progress: &Progress,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<(), CopyError> {
        let index = want.index;
        let opened = opened(wire::read(reader).await?, want)?;
        // Always there: `plan` only wants files that have an item.
        let Some(item) = &self.items[index] else { return Ok(()) };
        let (path, mode) = (item.path.clone(), item.mode);
        let offset_bytes = opened.offset_bytes;
        let mut partial_file = self.open_partial(&path, offset_bytes).await;
        let claim = match (self.terms.writers, &partial_file) {
            (Some((writers, owner)), Ok(partial_file)) => writers.claim(owner, &partial_file.file).ok(),
            _ => None,
        };
        let mut at_bytes = offset_bytes;
        let mut arriving = Arriving::default();
        let mut is_told = false;
        loop {
            if let (Err(reason), false) = (&partial_file, is_told) {
                is_told = true;
                progress.on_failure(path.as_str(), reason);
                wire::write(writer, &Message::Stop { index, reason: wire::bounded(reason.clone()) }).await?;
                writer.flush().await?;
            }
            let piece = read_unless_stopped(reader, &mut arriving, claim.as_ref()).await?;
            let (bytes, received) = match piece {
                Piece::End => break,
                Piece::Hole(bytes) => (bytes, 0),
                Piece::Bytes(bytes) => (bytes.len() as u64, bytes.len()),
            };
            at_bytes = at_bytes.saturating_add(bytes);
            if opened.size_bytes.is_some_and(|size_bytes| at_bytes > size_bytes) {
                return Err(CopyError::Protocol("a file is longer than it was when it was opened".into()));
            }
            progress.done_bytes.fetch_add(bytes, Relaxed);
            self.outcome.summary.received_bytes += received as u64;
            if let Ok(open) = &mut partial_file
                && let Err(error) = open.take(piece, at_bytes).await
            {
                self.forget_where_full(&path, &error);
                partial_file = Err(error.to_string());
            }
            arriving.take(reader, received);
        }
        let (blake3, failure) = match wire::read(reader).await? {
            Message::ContentsEnd { blake3, failure } => (blake3, failure),
            other => return Err(wire::unexpected(&other)),
        };
        let size_bytes = opened.size_bytes.unwrap_or(at_bytes);
        let complete = match (partial_file, failure) {
            (Err(reason), _) | (Ok(_), Some(reason)) => Err(reason),
            (Ok(PartialFile { file, hasher, writeback }), None) => writeback.finish().await.and_then(|()| {
                let is_whole = at_bytes == size_bytes && hasher.finalize().to_hex().as_str() == blake3;
                let partial = self.complete(is_whole, &path)?;
                let mtime = opened.mtime;
                Ok(CompleteFile { index, offset_bytes, file, partial, path, mode, mtime, size_bytes })
            }),
        };
        match complete {
            Ok(complete) => self.committer.take(complete, claim).await,
            Err(reason) => self.committer.failed(index, reason),
        }
        Ok(())
    }

    /// Opens the partial file of `path` for writing at `offset_bytes`. Another copy of the same user that has the file
    /// open, and receives nothing, is stopped.
    async fn open_partial(&self, path: &Relative, offset_bytes: u64) -> Result<PartialFile, String> {
        let open = |partial: &Relative| -> io::Result<Option<PartialFile>> {
            let mut file = self.tree.write_alone(partial)?;
            let Some(hasher) = tree::hash_prefix(&mut file, offset_bytes)? else { return Ok(None) };
            file.set_len(offset_bytes)?;
            file.seek(SeekFrom::Start(offset_bytes))?;
            Ok(Some(PartialFile { file, hasher, writeback: Writeback::default() }))
        };
        let partial = self.partial(path)?;
        let mut opened = open(&partial);
        if let (Err(error), Some((writers, owner))) = (&opened, self.terms.writers)
            && error.kind() == ErrorKind::WouldBlock
            && let Ok(stat) = self.tree.stat(&partial)
            && writers.take_over(owner, (stat.st_dev, stat.st_ino)).await
        {
            opened = open(&partial);
        }
        let opened = opened.map_err(|error| error.to_string())?;
        opened.ok_or_else(|| "the part of an earlier copy has changed".to_owned())
    }

    /// After a full disk, deletes the partial file of a path, so that shorter files may fit.
    fn forget_where_full(&self, path: &Relative, error: &io::Error) {
        if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            && let Ok(partial) = self.partial(path)
        {
            // Errors are ignored: nothing can be done about a file that remains.
            let _ = self.tree.remove(partial.as_str(), false);
        }
    }

    /// Name of a complete file until it is synced. If its checksum is wrong the file is deleted, because no prefix of
    /// it can be trusted.
    fn complete(&self, is_whole: bool, path: &Relative) -> Result<Relative, String> {
        let partial = self.partial(path)?;
        if !is_whole {
            self.tree.remove(partial.as_str(), false).map_err(|error| error.to_string())?;
            return Err("its checksum is wrong".into());
        }
        Ok(partial)
    }
}

/// The sender's `contents` message, if it answers `want`.
fn opened(message: Message, want: &Want) -> Result<Opened, CopyError> {
    match message {
        Message::Contents { index, offset_bytes, size_bytes, mtime }
            if index == want.index
                && (offset_bytes == 0 || offset_bytes == want.offset_bytes)
                && size_bytes.is_none_or(|size_bytes| offset_bytes <= size_bytes) =>
        {
            Ok(Opened { offset_bytes, size_bytes, mtime })
        }
        other => Err(wire::unexpected(&other)),
    }
}

/// A file that is being received.
struct PartialFile {
    file: File,
    hasher: blake3::Hasher,
    writeback: Writeback,
}

impl PartialFile {
    /// Stores a piece of the contents, which ends at offset `at_bytes`.
    async fn take(&mut self, piece: Piece<'_>, at_bytes: u64) -> io::Result<()> {
        match piece {
            Piece::Hole(bytes) => {
                tree::hash_hole(&mut self.hasher, bytes);
                self.file.set_len(at_bytes)?;
                self.file.seek(SeekFrom::Start(at_bytes))?;
                Ok(())
            }
            Piece::Bytes(bytes) => {
                self.hasher.update(bytes);
                self.file.write_all(bytes)?;
                self.writeback.on_written(&self.file, bytes.len()).await
            }
            Piece::End => Ok(()),
        }
    }
}

/// Waits for a piece, unless another copy takes over the file.
async fn read_unless_stopped<'a, R: AsyncBufRead + Unpin>(
    reader: &'a mut R,
    arriving: &mut Arriving,
    claim: Option<&Claim<'_>>,
) -> Result<Piece<'a>, CopyError> {
    let Some(claim) = claim else { return arriving.next(reader).await };
    let piece = tokio::select! {
        read = arriving.next(reader) => read?,
        () = claim.stopped() => {
            return Err(io::Error::other("another copy of this user continues the file").into());
        }
    };
    claim.on_bytes(match piece {
        Piece::Hole(bytes) => bytes,
        Piece::Bytes(bytes) => bytes.len() as u64,
        Piece::End => 0,
    });
    Ok(piece)
}
