//! The end that gets the files. It trusts nothing that the sender says.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::landing::{Ahead, Landed, Landing, Whole};
use super::sender::PARTIAL_SUFFIX;
use super::tree::{self, Relative, Tree};
use super::wire::{self, ENTRIES_MAX, Entry, Kind, Message, NAMES_OCTETS_MAX};
use super::writers::{Claim, Writers};
use super::{Action, COPIES_MAX, CopyError, Options, Outcome, Progress, Report};

/// What is wanted of a file.
struct Want {
    index: usize,
    offset_octets: u64,
}

/// A copy as its receiver sees it.
struct Receiver<'a> {
    tree: &'a Tree,
    options: Options,
    /// Of a server: who else writes there, and for whom this copy is.
    writers: Option<(&'a Writers, &'a str)>,
    /// By place; a path that was refused is `None`. The entry has no path of its own.
    entries: Vec<Option<(Relative, Entry)>>,
    /// False where the sender could not list all it has.
    is_complete: bool,
    landing: Landing<'a>,
    outcome: Outcome,
}

/// Receives into `tree` what a sender lists, and tells it what came of it.
///
/// # Errors
/// Where the stream or the protocol breaks, or a limit. Files that cannot be written are in the outcome.
pub(super) async fn receive<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    tree: &Tree,
    options: Options,
    writers: Option<(&Writers, &str)>,
    progress: &Progress,
    reader: &mut R,
    writer: &mut W,
) -> Result<Outcome, CopyError> {
    let mut receiver = Receiver {
        tree,
        options,
        writers,
        entries: Vec::new(),
        is_complete: false,
        landing: Landing::new(tree, if writers.is_some() { COPIES_MAX } else { 1 })?,
        outcome: Outcome::default(),
    };
    receiver.manifest(reader).await?;
    let wants = receiver.plan(progress, writer).await?;
    let received = receiver.files(&wants, progress, reader).await;
    // What is whole gets its name, whatever becomes of the rest.
    let landed = receiver.landing.finish().await;
    received?;
    receiver.on_landed(landed);
    receiver.finish();
    for report in &receiver.outcome.paths {
        wire::write(writer, &Message::Report(report.clone())).await?;
    }
    wire::write(writer, &Message::Summary(receiver.outcome.summary)).await?;
    writer.flush().await?;
    Ok(receiver.outcome)
}

/// Where the octets of `path` stand until they are whole. Of the name's hash, as a name has no room for an ending.
fn partial(path: &Relative) -> Result<Relative, String> {
    let (directory, name) = path.split();
    let hash = blake3::hash(name.as_bytes()).to_hex();
    Relative::parse(directory)?.join(&format!(".{}{PARTIAL_SUFFIX}", &hash.as_str()[..16]))
}

impl Receiver<'_> {
    fn report(&mut self, path: &str, action: Action, reason: Option<String>) {
        let summary = &mut self.outcome.summary;
        match action {
            Action::Copied | Action::Resumed => summary.copied += 1,
            Action::Deleted => summary.deleted += 1,
            Action::Failed => summary.failed += 1,
        }
        let reason = reason.map(wire::bounded);
        self.outcome.paths.push(Report { path: wire::bounded(path.to_owned()), action, reason });
    }

    /// Reads what the sender has.
    async fn manifest<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> Result<(), CopyError> {
        // Of a million paths their hashes take less than they do.
        let mut seen = BTreeSet::new();
        let mut names_octets = 0;
        loop {
            match wire::read(reader).await? {
                Message::Entry(mut entry) => {
                    if self.entries.len() == ENTRIES_MAX {
                        return Err(CopyError::Limit { what: "paths", max: ENTRIES_MAX });
                    }
                    names_octets += entry.path.len();
                    if let Kind::Symlink { target } = &entry.kind {
                        names_octets += target.len();
                    }
                    if names_octets > NAMES_OCTETS_MAX {
                        return Err(CopyError::Limit { what: "octets of names", max: NAMES_OCTETS_MAX });
                    }
                    let path = admit(&entry).and_then(|path| {
                        let is_first = seen.insert(*blake3::hash(path.as_str().as_bytes()).as_bytes());
                        is_first.then_some(path).ok_or_else(|| "it is listed twice".to_owned())
                    });
                    match path {
                        Ok(path) => {
                            // It stands beside it from now on.
                            entry.path = String::new();
                            self.entries.push(Some((path, entry)));
                        }
                        Err(reason) => {
                            self.report(&entry.path, Action::Failed, Some(reason));
                            self.entries.push(None);
                        }
                    }
                }
                Message::EntriesEnd { unlisted, unlisted_count } => {
                    self.is_complete = unlisted_count == 0 && unlisted.is_empty();
                    let told = unlisted.len() as u64;
                    for report in unlisted {
                        self.report(&report.path, Action::Failed, report.reason);
                    }
                    self.outcome.summary.failed += unlisted_count.saturating_sub(told);
                    return Ok(());
                }
                other => return Err(wire::unexpected(&other)),
            }
        }
    }

    /// Makes directories, and says which files it wants.
    async fn plan<W: AsyncWrite + Unpin>(
        &mut self,
        progress: &Progress,
        writer: &mut W,
    ) -> Result<Vec<Want>, CopyError> {
        let mut wants = Vec::new();
        let mut total_octets = 0u64;
        for index in 0..self.entries.len() {
            let Some((path, entry)) = self.entries[index].clone() else { continue };
            // An entry that failed is done with: nothing else of it is tried, and nothing is deleted for it.
            match self.plan_entry(&path, &entry) {
                Ok(Step::Want { offset_octets, blake3 }) => {
                    if let Kind::File { size_octets, .. } = entry.kind {
                        total_octets = total_octets.saturating_add(size_octets - offset_octets);
                    }
                    wire::write(writer, &Message::Want { index, offset_octets, blake3 }).await?;
                    wants.push(Want { index, offset_octets });
                }
                Ok(Step::Done) => self.report(path.as_str(), Action::Copied, None),
                Ok(Step::Unchanged) => self.outcome.summary.unchanged += 1,
                Err(reason) => {
                    self.report(path.as_str(), Action::Failed, Some(reason));
                    self.entries[index] = None;
                }
            }
        }
        progress.total_octets.store(total_octets, Relaxed);
        wire::write(writer, &Message::WantsEnd).await?;
        writer.flush().await?;
        Ok(wants)
    }

    fn plan_entry(&self, path: &Relative, entry: &Entry) -> Result<Step, String> {
        let said = |error: std::io::Error| error.to_string();
        let there = self.tree.stat(path).ok();
        let there_is = |kind| there.as_ref().is_some_and(|stat| tree::file_type(stat) == kind);
        match &entry.kind {
            Kind::Directory if there_is(FileType::Directory) => Ok(Step::Unchanged),
            Kind::Directory => {
                if !self.options.dry_run {
                    self.tree.make_directory(path).map_err(said)?;
                }
                Ok(Step::Done)
            }
            Kind::Symlink { target } => {
                if there_is(FileType::Symlink)
                    && self.tree.link_target(path).map_err(said)? == target.as_str()
                {
                    return Ok(Step::Unchanged);
                }
                if !self.options.dry_run {
                    self.tree.make_link(path, target).map_err(said)?;
                }
                Ok(Step::Done)
            }
            Kind::File { size_octets, blake3 } => {
                if let Some(stat) = there.as_ref().filter(|_| there_is(FileType::RegularFile)) {
                    let same_size = u64::try_from(stat.st_size) == Ok(*size_octets);
                    let same = match blake3 {
                        _ if !same_size => false,
                        Some(hash) => self.has_hash(path, *size_octets, hash).map_err(said)?,
                        None => tree::mtime_ns(stat) == entry.mtime_ns,
                    };
                    if same {
                        return Ok(Step::Unchanged);
                    }
                } else if there.is_some() {
                    return Err("something else than a file is there".into());
                }
                if self.options.dry_run {
                    return Ok(Step::Done);
                }
                let (offset_octets, blake3) = self.left(path, *size_octets)?;
                Ok(Step::Want { offset_octets, blake3 })
            }
        }
    }

    fn has_hash(&self, path: &Relative, size_octets: u64, hash: &str) -> std::io::Result<bool> {
        let hasher = tree::hash_prefix(&mut self.tree.read(path)?, size_octets)?;
        Ok(hasher.is_some_and(|hasher| hasher.finalize().to_hex().as_str() == hash))
    }

    /// What an earlier copy left of `path`: so many octets, with their hash.
    fn left(&self, path: &Relative, size_octets: u64) -> Result<(u64, String), String> {
        let partial = partial(path)?;
        let left = self.tree.stat(&partial).ok();
        let left = left.filter(|stat| tree::file_type(stat) == FileType::RegularFile);
        let length_octets = left.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        if length_octets == 0 || length_octets > size_octets {
            return Ok((0, String::new()));
        }
        let hash = self.tree.read(&partial).and_then(|mut file| tree::hash_prefix(&mut file, length_octets));
        Ok(match hash {
            Ok(Some(hasher)) => (length_octets, hasher.finalize().to_hex().to_string()),
            _ => (0, String::new()),
        })
    }

    /// Receives all files that are wanted.
    async fn files<R: AsyncRead + Unpin>(
        &mut self,
        wants: &[Want],
        progress: &Progress,
        reader: &mut R,
    ) -> Result<(), CopyError> {
        for want in wants {
            self.file(want, progress, reader).await?;
        }
        Ok(())
    }

    /// Tells what became of files, in their order.
    fn on_landed(&mut self, mut landed: Vec<Landed>) {
        landed.sort_unstable_by_key(|landed| landed.index);
        for Landed { index, offset_octets, outcome } in landed {
            let Some((path, _)) = self.entries[index].clone() else { continue };
            match outcome {
                Ok(()) if offset_octets > 0 => {
                    self.outcome.summary.resumed_octets += offset_octets;
                    self.report(path.as_str(), Action::Resumed, None);
                }
                Ok(()) => self.report(path.as_str(), Action::Copied, None),
                Err(reason) => self.report(path.as_str(), Action::Failed, Some(reason)),
            }
        }
    }

    /// Receives one file. Its octets are read to their end whatever happens to them.
    async fn file<R: AsyncRead + Unpin>(
        &mut self,
        want: &Want,
        progress: &Progress,
        reader: &mut R,
    ) -> Result<(), CopyError> {
        let offset_octets = match wire::read(reader).await? {
            Message::Contents { index, offset_octets }
                if index == want.index && (offset_octets == 0 || offset_octets == want.offset_octets) =>
            {
                offset_octets
            }
            other => return Err(wire::unexpected(&other)),
        };
        // A want has an entry, and the entry is a file's: `plan` looked.
        let Some((path, entry)) = self.entries[want.index].clone() else { return Ok(()) };
        let Kind::File { size_octets, .. } = entry.kind else { return Ok(()) };
        let mut opened = self.open_partial(&path, offset_octets).await;
        let claim = match (self.writers, &opened) {
            (Some((writers, owner)), Ok((file, _))) => writers.claim(owner, file).ok(),
            _ => None,
        };
        let mut ahead = Ahead::default();
        let mut at_octets = offset_octets;
        let mut piece = Vec::new();
        loop {
            read_unless_stopped(reader, &mut piece, claim.as_ref()).await?;
            if piece.is_empty() {
                break;
            }
            at_octets += piece.len() as u64;
            if at_octets > size_octets {
                return Err(CopyError::Protocol("a file is longer than it was listed".into()));
            }
            progress.done_octets.fetch_add(piece.len() as u64, Relaxed);
            self.outcome.summary.received_octets += piece.len() as u64;
            if let Ok((file, hasher)) = &mut opened {
                hasher.update(&piece);
                match file.write_all(&piece) {
                    Ok(()) => ahead.on_written(file, piece.len()).await,
                    Err(error) => opened = Err(error.to_string()),
                }
            }
        }
        let (blake3, failure) = match wire::read(reader).await? {
            Message::ContentsEnd { blake3, failure } => (blake3, failure),
            other => return Err(wire::unexpected(&other)),
        };
        let index = want.index;
        let whole = match (opened, failure, ahead.finish().await) {
            (_, Some(reason), _) | (Err(reason), None, _) | (_, None, Err(reason)) => Err(reason),
            (Ok((file, hasher)), None, Ok(())) => {
                let is_whole = at_octets == size_octets && hasher.finalize().to_hex().as_str() == blake3;
                self.whole(is_whole, &path).map(|partial| {
                    let (mode, mtime_ns) = (entry.mode, entry.mtime_ns);
                    Whole { index, offset_octets, file, partial, path, mode, mtime_ns, size_octets }
                })
            }
        };
        match whole {
            Ok(whole) => self.landing.take(whole, claim).await,
            Err(reason) => self.landing.failed(index, reason),
        }
        Ok(())
    }

    /// Opens what holds `path` until it is whole, for writing from `offset_octets` on. Another copy of the same user that has it
    /// and gets nothing is stopped.
    async fn open_partial(
        &self,
        path: &Relative,
        offset_octets: u64,
    ) -> Result<(File, blake3::Hasher), String> {
        let open = |partial: &Relative| -> std::io::Result<Option<(File, blake3::Hasher)>> {
            let mut file = self.tree.write_alone(partial)?;
            let Some(hasher) = tree::hash_prefix(&mut file, offset_octets)? else { return Ok(None) };
            file.set_len(offset_octets)?;
            file.seek(SeekFrom::Start(offset_octets))?;
            Ok(Some((file, hasher)))
        };
        let partial = partial(path)?;
        let mut opened = open(&partial);
        if let (Err(error), Some((writers, owner))) = (&opened, self.writers)
            && error.kind() == std::io::ErrorKind::WouldBlock
            && let Ok(stat) = self.tree.stat(&partial)
            && writers.take_over(owner, (stat.st_dev, stat.st_ino)).await
        {
            opened = open(&partial);
        }
        let opened = opened.map_err(|error| error.to_string())?;
        opened.ok_or_else(|| "what an earlier copy left has changed".to_owned())
    }

    /// What a file is called until it is on disk. One that is not whole is removed: no prefix of it can be trusted.
    fn whole(&self, is_whole: bool, path: &Relative) -> Result<Relative, String> {
        let partial = partial(path)?;
        if !is_whole {
            self.tree.remove(&partial, false).map_err(|error| error.to_string())?;
            return Err("its checksum does not fit".into());
        }
        Ok(partial)
    }

    /// Removes what the source has not, and gives directories their times, the inner ones first.
    fn finish(&mut self) {
        if self.options.delete {
            self.delete();
        }
        if self.options.dry_run {
            return;
        }
        for index in (0..self.entries.len()).rev() {
            let Some((path, entry)) = &self.entries[index] else { continue };
            if entry.kind != Kind::Directory {
                continue;
            }
            if let Err(error) = self.tree.finish_directory(path, entry.mode, entry.mtime_ns) {
                let path = path.as_str().to_owned();
                self.report(&path, Action::Failed, Some(error.to_string()));
            }
        }
    }

    /// Looks only into directories that the source has: what stands beside them is none of its business.
    fn delete(&mut self) {
        if !self.is_complete || self.entries.iter().any(Option::is_none) {
            let reason = "nothing was deleted: the list of the source is not complete";
            return self.report("", Action::Failed, Some(reason.into()));
        }
        let entries = std::mem::take(&mut self.entries);
        let listed: BTreeSet<_> = entries.iter().flatten().map(|(path, _)| path).collect();
        let directories = entries.iter().flatten().filter(|(_, entry)| entry.kind == Kind::Directory);
        for (directory, _) in directories {
            // One that a dry run did not make has nothing to delete.
            for name in self.tree.names(directory).unwrap_or_default() {
                let Some(path) = name.to_str().and_then(|name| directory.join(name).ok()) else { continue };
                // What is left of a file that failed is for the next copy.
                if !listed.contains(&path) && !name.as_encoded_bytes().ends_with(PARTIAL_SUFFIX.as_bytes()) {
                    self.delete_tree(path);
                }
            }
        }
        drop(listed);
        self.entries = entries;
    }

    fn delete_tree(&mut self, start: Relative) {
        let mut open = vec![(start, false)];
        while let Some((path, is_empty)) = open.pop() {
            let is_directory =
                self.tree.stat(&path).is_ok_and(|stat| tree::file_type(&stat) == FileType::Directory);
            if is_directory && !is_empty {
                let names = self.tree.names(&path).unwrap_or_default();
                let inner: Vec<_> = names.iter().filter_map(|name| path.join(name.to_str()?).ok()).collect();
                open.push((path, true));
                open.extend(inner.into_iter().map(|path| (path, false)));
                continue;
            }
            let removed = if self.options.dry_run { Ok(()) } else { self.tree.remove(&path, is_directory) };
            match removed {
                Ok(()) => self.report(path.as_str(), Action::Deleted, None),
                Err(error) => self.report(path.as_str(), Action::Failed, Some(error.to_string())),
            }
        }
    }
}

/// Reads a piece, unless another copy takes the file over.
async fn read_unless_stopped<R: AsyncRead + Unpin>(
    reader: &mut R,
    piece: &mut Vec<u8>,
    claim: Option<&Claim<'_>>,
) -> Result<(), CopyError> {
    let Some(claim) = claim else { return wire::read_piece(reader, piece).await };
    tokio::select! {
        read = wire::read_piece(reader, piece) => read?,
        () = claim.stopped() => {
            return Err(std::io::Error::other("another copy of this user goes on with the file").into());
        }
    }
    claim.on_octets(piece.len());
    Ok(())
}

/// What a receiver does about an entry.
enum Step {
    Want { offset_octets: u64, blake3: String },
    Done,
    Unchanged,
}

/// Judges what the sender lists.
fn admit(entry: &Entry) -> Result<Relative, String> {
    let path = Relative::parse(&entry.path)?;
    if path.is_empty() {
        return Err("it has no name".into());
    }
    if path.split().1.ends_with(PARTIAL_SUFFIX) {
        return Err(format!("names that end in {PARTIAL_SUFFIX} are for copies that are not whole"));
    }
    match &entry.kind {
        Kind::Symlink { target } if !path.keeps_inside(target) => {
            Err("a symbolic link that may lead out of the destination".into())
        }
        _ => Ok(path),
    }
}
