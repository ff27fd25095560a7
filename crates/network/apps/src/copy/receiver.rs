//! The end that receives the files. It does not trust the sender.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::FileType;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::committer::{Committed, Committer, CompleteFile, NotLanded, Replace, Writeback};
use super::descriptors::Share;
use super::lists::{ListBudget, Lists};
use super::manifest::{Item, NotAdmitted, State, TopNames, admit};
use super::tree::{self, Relative, Tree};
use super::wire::{self, Arriving, ENTRIES_MAX, Entry, Kind, Message, NAMES_BYTES_MAX, Piece, Timestamp};
use super::writers::{Registered, Writers, file_hash};
use super::{Action, CopyError, CopyReport, Options, Progress, Report, Rights};

/// Parameters of a receiving copy.
pub(super) struct Terms<'a> {
    pub options: &'a Options,
    pub rights: Rights,
    pub tops: TopNames,
    /// On a server: this copy among the others.
    pub on_server: Option<OnServer<'a>>,
    /// Memory of the lists of all copies.
    pub lists: &'a Lists,
}

/// A receiving copy of a server.
pub(super) struct OnServer<'a> {
    pub writers: &'a Writers,
    /// The user of the client.
    pub owner: &'a str,
    /// Its place in the order of requests.
    pub arrival: u64,
    /// The destination, below the served directory.
    pub below: Relative,
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

/// A file that the receiver wants.
pub(super) struct Want {
    pub index: usize,
    /// What an earlier copy has left of it: rare, and larger than the rest.
    pub left: Option<Box<Left>>,
}

impl Want {
    /// Its first missing byte.
    pub fn offset_bytes(&self) -> u64 {
        self.left.as_ref().map_or(0, |left| left.length_bytes)
    }
}

/// A partial file, which stays locked from the plan until its contents are complete: it has one owner.
pub(super) struct Left {
    pub file: File,
    pub length_bytes: u64,
    /// Hash of its bytes.
    pub hasher: blake3::Hasher,
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
    committer: Committer,
    /// Most parts of earlier copies that are kept open until their contents arrive.
    pub left_max: usize,
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
    let share = Share::of_process();
    let mut receiver = Receiver {
        tree,
        items: Vec::new(),
        omitted: BTreeSet::new(),
        unlisted: BTreeSet::new(),
        has_refused: false,
        is_top_listed: false,
        left_max: share.files_max(),
        committer: Committer::new(tree, share, terms.replace())?,
        outcome: CopyReport::default(),
        list_budget: terms.lists.list_budget(),
        terms,
    };
    receiver.manifest(reader).await?;
    // Earlier copies of these files are over before this one looks at what they left.
    let registered = receiver.register().await;
    let received = receiver.contents(registered.as_ref(), progress, reader, writer).await;
    // Complete files get their names even if the rest of the copy fails.
    let committed = receiver.committer.finish().await;
    received?;
    receiver.on_committed(committed);
    receiver.finish();
    drop(registered);
    for report in &receiver.outcome.paths {
        wire::write(writer, &Message::Report(report.clone())).await?;
    }
    wire::write(writer, &Message::Summary(receiver.outcome.summary)).await?;
    writer.flush().await?;
    Ok(receiver.outcome)
}

impl<'a> Receiver<'a> {
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
        if let (Rights::Drop, Some(on_server)) = (self.terms.rights, &self.terms.on_server) {
            hasher.update(b"\0").update(on_server.owner.as_bytes());
        }
        Relative::parse(directory)?.join(&tree::part_name(&hasher.finalize()))
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

    /// On a server: registers this copy, once earlier copies of the same files that its user has left are over.
    async fn register(&self) -> Option<Registered<'a>> {
        let OnServer { writers, owner, arrival, below } = self.terms.on_server.as_ref()?;
        let is_file = |item: &&Item| matches!(item.kind, Kind::File { .. } | Kind::Stream);
        let files = self.items.iter().flatten().filter(is_file);
        let files = files.map(|item| match below.is_empty() {
            true => file_hash(item.path.as_str()),
            false => file_hash(&format!("{}/{}", below.as_str(), item.path.as_str())),
        });
        let (writers, arrival, files): (&'a Writers, _, _) = (writers, *arrival, files.collect());
        Some(writers.register(owner, arrival, files).await)
    }

    /// Plans, and receives all wanted files, unless a later copy takes over.
    async fn contents<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        registered: Option<&Registered<'_>>,
        progress: &Progress,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<(), CopyError> {
        let receiving = async {
            for want in self.plan(registered, progress, writer).await? {
                self.file(want, registered, progress, reader, writer).await?;
            }
            Ok(())
        };
        let Some(registered) = registered else { return receiving.await };
        tokio::select! {
            received = receiving => received,
            () = registered.stopped() => {
                Err(io::Error::other("another copy of this user continues the files").into())
            }
        }
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
                Err(NotLanded::Failed(reason)) => self.report(&path, Action::Failed, Some(reason)),
                Err(NotLanded::Vanished) => {
                    self.report(&path, Action::Skipped, Some("it vanished".into()));
                }
            }
        }
    }

    /// Receives one file. If the file cannot be stored, the sender is asked to stop, and its bytes are discarded until
    /// it does.
    async fn file<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        want: Want,
        registered: Option<&Registered<'_>>,
        progress: &Progress,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<(), CopyError> {
        let opened = opened(wire::read(reader).await?, &want)?;
        let Want { index, mut left } = want;
        // Always there: `plan` only wants files that have an item.
        let Some(item) = &self.items[index] else { return Ok(()) };
        let (path, mode) = (item.path.clone(), item.mode);
        let offset_bytes = opened.offset_bytes;
        // Opened when the first byte is there: a copy that breaks leaves no empty part.
        let mut part = None;
        let mut at_bytes = offset_bytes;
        let mut arriving = Arriving::default();
        let mut is_told = false;
        loop {
            let piece = arriving.next(reader).await?;
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
            let part = part.get_or_insert_with(|| self.open_part(&path, left.take(), offset_bytes));
            if let Ok(open) = part
                && let Err(error) = open.take(piece, at_bytes).await
            {
                self.forget_where_full(&path, &error);
                *part = Err(error.to_string());
            }
            arriving.take(reader, received);
            registered.inspect(|registered| registered.on_progress(bytes));
            if let (Err(reason), false) = (part, is_told) {
                is_told = true;
                progress.on_failure(path.as_str(), reason);
                wire::write(writer, &Message::Stop { index, reason: wire::bounded(reason.clone()) }).await?;
                writer.flush().await?;
            }
        }
        registered.inspect(|registered| registered.on_progress(1));
        let (blake3, failure) = match wire::read(reader).await? {
            Message::ContentsEnd { has_vanished: true, .. } => {
                self.committer.failed(index, NotLanded::Vanished);
                return Ok(());
            }
            Message::ContentsEnd { blake3, failure, .. } => (blake3, failure),
            other => return Err(wire::unexpected(&other)),
        };
        let size_bytes = opened.size_bytes.unwrap_or(at_bytes);
        let part = match (part, failure) {
            (Some(Err(reason)), _) | (_, Some(reason)) => Err(reason),
            (Some(part), None) => part,
            (None, None) => self.open_part(&path, left, offset_bytes),
        };
        let complete = match part {
            Err(reason) => Err(reason),
            Ok(PartialFile { file, hasher, writeback }) => writeback.finish().await.and_then(|()| {
                let is_whole = at_bytes == size_bytes && hasher.finalize().to_hex().as_str() == blake3;
                let partial = self.complete(is_whole, &path)?;
                let mtime = opened.mtime;
                Ok(CompleteFile { index, offset_bytes, file, partial, path, mode, mtime, size_bytes })
            }),
        };
        match complete {
            Ok(complete) => self.committer.take(complete).await,
            Err(reason) => self.committer.failed(index, NotLanded::Failed(reason)),
        }
        Ok(())
    }

    /// Opens the partial file of `path` for writing at `offset_bytes`, which is 0 or the length of what is `left` of an
    /// earlier copy.
    fn open_part(
        &self,
        path: &Relative,
        left: Option<Box<Left>>,
        offset_bytes: u64,
    ) -> Result<PartialFile, String> {
        let (mut file, hasher) = match left {
            Some(left) if offset_bytes > 0 => (left.file, left.hasher),
            Some(left) => (left.file, blake3::Hasher::new()),
            None => {
                let partial = self.partial(path)?;
                let opened = self.tree.write_alone(&partial).or_else(|error| {
                    // Nothing but a part has such a name. A link, a directory or another file's second name there would
                    // hinder this file for ever; what a link leads to, and the other name, stay.
                    let stat = self.tree.stat(&partial)?;
                    let kind = tree::file_type(&stat);
                    if kind == FileType::RegularFile && stat.st_nlink == 1 {
                        return Err(error);
                    }
                    self.tree.remove(partial.as_str(), kind == FileType::Directory)?;
                    self.tree.write_alone(&partial)
                });
                let file = opened.map_err(|error| error.to_string())?;
                (file, blake3::Hasher::new())
            }
        };
        place(&mut file, offset_bytes).map_err(|error| error.to_string())?;
        Ok(PartialFile { file, hasher, writeback: Writeback::default() })
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

/// Cuts `file` at `offset_bytes`, where writing begins. A new file is as it should be: two calls less for each of many small files.
fn place(file: &mut File, offset_bytes: u64) -> io::Result<()> {
    if offset_bytes > 0 || file.metadata()?.len() > 0 {
        file.set_len(offset_bytes)?;
        file.seek(SeekFrom::Start(offset_bytes))?;
    }
    Ok(())
}

/// The sender's `contents` message, if it answers `want`.
fn opened(message: Message, want: &Want) -> Result<Opened, CopyError> {
    match message {
        Message::Contents { index, offset_bytes, size_bytes, mtime }
            if index == want.index
                && (offset_bytes == 0 || offset_bytes == want.offset_bytes())
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
