//! Decides what a receiver does with each listed path, before contents are sent.

use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{FileType, Stat};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::manifest::State;
use super::receiver::{Left, Receiver, Want};
use super::tree::{self, Relative};
use super::wire::{self, Kind, Message};
use super::writers::Registered;
use super::{Action, CopyError, Progress, Rights};

/// The next step for an entry.
enum Step {
    /// The file is wanted, from the end of what an earlier copy left of it.
    Want(Option<Box<Left>>),
    Done,
    Unchanged,
}

impl Receiver<'_> {
    /// Creates directories, and requests the wanted files.
    pub async fn plan<W: AsyncWrite + Unpin>(
        &mut self,
        registered: Option<&Registered<'_>>,
        progress: &Progress,
        writer: &mut W,
    ) -> Result<Vec<Want>, CopyError> {
        let mut wants = Vec::new();
        let mut total_bytes = 0u64;
        for index in 0..self.items.len() {
            if self.items[index].is_none() {
                continue;
            }
            let step = self.plan_entry(index);
            registered.inspect(|registered| registered.on_progress(1));
            // Still there: it was checked above, and planning removes no item.
            let Some(item) = &mut self.items[index] else { continue };
            let path = item.path.as_str().to_owned();
            match step {
                Ok(Step::Want(left)) => {
                    let want = Want { index, left };
                    let offset_bytes = want.offset_bytes();
                    let hash = want.left.as_ref().map(|left| left.hasher.finalize().to_hex().to_string());
                    let blake3 = hash.unwrap_or_default();
                    if let Kind::File { size_bytes, .. } = item.kind {
                        total_bytes = total_bytes.saturating_add(size_bytes - offset_bytes);
                    }
                    wire::write(writer, &Message::Want { index, offset_bytes, blake3 }).await?;
                    wants.push(want);
                }
                Ok(Step::Done) => {
                    item.state = State::Made;
                    self.report(&path, Action::Copied, None);
                }
                Ok(Step::Unchanged) => self.outcome.summary.unchanged += 1,
                Err(reason) => {
                    // The path has failed; nothing else is tried for it.
                    item.state = State::Failed;
                    let is_file = matches!(item.kind, Kind::File { .. } | Kind::Stream);
                    let reason = wire::bounded(reason);
                    progress.on_failure(&path, &reason);
                    if is_file {
                        wire::write(writer, &Message::Stop { index, reason: reason.clone() }).await?;
                    }
                    self.report(&path, Action::Failed, Some(reason));
                }
            }
        }
        progress.total_bytes.store(total_bytes, Relaxed);
        progress.wanted.store(wants.len() as u64, Relaxed);
        wire::write(writer, &Message::WantsEnd).await?;
        writer.flush().await?;
        Ok(wants)
    }

    fn plan_entry(&mut self, index: usize) -> Result<Step, String> {
        // Always there: only admitted entries are planned.
        let Some(item) = &self.items[index] else { return Ok(Step::Unchanged) };
        let (path, kind) = (item.path.clone(), item.kind.clone());
        let there = match self.tree.find(&path) {
            // In a dry run the parent directory may not exist.
            Err(_) if self.terms.options.dry_run => None,
            found => found.map_err(|error| error.to_string())?,
        };
        if self.terms.rights == Rights::Drop {
            self.may_drop(&kind, there.as_ref())?;
        }
        match kind {
            Kind::Directory => self.plan_directory(&path, there.as_ref()),
            Kind::Symlink { target } => self.plan_link(&path, &target, there.as_ref()),
            Kind::File { size_bytes, blake3 } => {
                self.plan_file(index, &path, size_bytes, blake3.as_deref(), there.as_ref())
            }
            Kind::Stream => {
                if let Some(there) = &there {
                    self.may_replace(&path, there)?;
                }
                match self.terms.options.dry_run {
                    true => Ok(Step::Done),
                    false => Ok(Step::Want(None)),
                }
            }
        }
    }

    /// Whether a drop box accepts an entry.
    fn may_drop(&self, kind: &Kind, there: Option<&Stat>) -> Result<(), String> {
        let is_directory = there.is_some_and(|there| tree::file_type(there) == FileType::Directory);
        match kind {
            Kind::Symlink { .. } => Err("this server accepts no links".into()),
            Kind::Directory if is_directory => Ok(()),
            _ if there.is_some() => Err("it exists, and this server overwrites nothing".into()),
            _ => Ok(()),
        }
    }

    fn plan_directory(&mut self, path: &Relative, there: Option<&Stat>) -> Result<Step, String> {
        let dry_run = self.terms.options.dry_run;
        match there {
            Some(there) if tree::file_type(there) == FileType::Directory => {
                // An earlier copy may have set the directory read-only. `finish` restores its permissions.
                if !dry_run && self.terms.replaces() {
                    // If this fails, the writes below fail and are reported.
                    let _ = self.tree.unlock_directory(path.as_str(), there);
                }
                return Ok(Step::Unchanged);
            }
            Some(there) => self.make_way(path, there)?,
            None => (),
        }
        if !dry_run {
            self.tree.make_directory(path).map_err(|error| error.to_string())?;
        }
        Ok(Step::Done)
    }

    fn plan_link(&mut self, path: &Relative, target: &str, there: Option<&Stat>) -> Result<Step, String> {
        if let Some(there) = there {
            if tree::file_type(there) == FileType::Symlink
                && self.tree.link_target(path).map_err(|error| error.to_string())? == target
            {
                return Ok(Step::Unchanged);
            }
            self.make_way(path, there)?;
        }
        if !self.terms.options.dry_run {
            self.tree.make_link(path, target).map_err(|error| error.to_string())?;
        }
        Ok(Step::Done)
    }

    fn plan_file(
        &mut self,
        index: usize,
        path: &Relative,
        size_bytes: u64,
        blake3: Option<&str>,
        there: Option<&Stat>,
    ) -> Result<Step, String> {
        if let Some(there) = there {
            if tree::file_type(there) == FileType::RegularFile {
                if self.is_same(index, path, size_bytes, blake3, there)? {
                    return self.finish_same(index, path, there);
                }
            } else {
                self.may_replace(path, there)?;
            }
        }
        if self.terms.options.dry_run {
            if there.is_some_and(|there| tree::file_type(there) == FileType::Directory) {
                self.remove_all(path.as_str().into());
            }
            return Ok(Step::Done);
        }
        // An empty file has no part that saves anything.
        Ok(Step::Want(if size_bytes == 0 { None } else { self.left(path, size_bytes)? }))
    }

    /// Whether the existing file `there` has the listed contents: by checksum if requested, otherwise by size and time.
    fn is_same(
        &self,
        index: usize,
        path: &Relative,
        size_bytes: u64,
        blake3: Option<&str>,
        there: &Stat,
    ) -> Result<bool, String> {
        if tree::size_of(there) != size_bytes {
            return Ok(false);
        }
        if let Some(hash) = blake3 {
            return self.has_hash(path, size_bytes, hash).map_err(|error| error.to_string());
        }
        let listed = self.items[index].as_ref().map(|item| item.mtime);
        let mtime = Some(tree::mtime_of(there));
        // The file system may have rounded the time, and would round it again.
        Ok(mtime == listed || mtime == listed.and_then(|mtime| self.tree.kept_time(path, mtime)))
    }

    /// Gives an existing file the listed permissions and time.
    fn finish_same(&self, index: usize, path: &Relative, there: &Stat) -> Result<Step, String> {
        let Some(item) = &self.items[index] else { return Ok(Step::Unchanged) };
        let has_mode = there.st_mode & 0o7777 == item.mode & 0o777;
        // With checksums, files count as the same although their times differ.
        let mtime = tree::mtime_of(there);
        let has_time = mtime == item.mtime || Some(mtime) == self.tree.kept_time(path, item.mtime);
        if has_mode && has_time {
            return Ok(Step::Unchanged);
        }
        if !self.terms.options.dry_run {
            self.tree.finish_file(path, item.mode, item.mtime).map_err(|error| error.to_string())?;
        }
        Ok(Step::Done)
    }

    /// Whether a file or link may replace the existing path `there`.
    fn may_replace(&self, path: &Relative, there: &Stat) -> Result<(), String> {
        if tree::file_type(there) != FileType::Directory || self.terms.options.delete {
            return Ok(());
        }
        match self.tree.names(path.as_str()).map_err(|error| error.to_string())?.is_empty() {
            true => Ok(()),
            false => Err("a non-empty directory is in its place; --delete replaces it".into()),
        }
    }

    /// Deletes the existing path `there`, if it may be replaced.
    fn make_way(&mut self, path: &Relative, there: &Stat) -> Result<(), String> {
        self.may_replace(path, there)?;
        if tree::file_type(there) == FileType::Directory {
            self.remove_all(path.as_str().into());
        } else if !self.terms.options.dry_run {
            self.tree.remove(path.as_str(), false).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn has_hash(&self, path: &Relative, size_bytes: u64, hash: &str) -> std::io::Result<bool> {
        let hasher = tree::hash_prefix(&mut self.tree.read(path)?, size_bytes)?;
        Ok(hasher.is_some_and(|hasher| hasher.finalize().to_hex().as_str() == hash))
    }

    /// The partial file that an earlier copy of `path` left, if no other copy is writing it.
    fn left(&mut self, path: &Relative, size_bytes: u64) -> Result<Option<Box<Left>>, String> {
        let partial = self.partial(path)?;
        let found = self.tree.find(&partial).map_err(|error| error.to_string())?;
        let found = found.filter(|stat| tree::file_type(stat) == FileType::RegularFile);
        let length_bytes = found.map_or(0, |stat| tree::size_of(&stat));
        if self.left_max == 0 || length_bytes == 0 || length_bytes > size_bytes {
            return Ok(None);
        }
        let Ok(mut file) = self.tree.lock(&partial) else { return Ok(None) };
        let Ok(Some(hasher)) = tree::hash_prefix(&mut file, length_bytes) else { return Ok(None) };
        self.left_max -= 1;
        Ok(Some(Box::new(Left { file, length_bytes, hasher })))
    }
}
