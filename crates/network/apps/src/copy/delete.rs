//! Deletes paths that the source does not have and parts that no copy will continue, and sets permissions and times of
//! directories.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::time::Duration;

use super::Action;
use super::manifest::State;
use super::pattern::excludes;
use super::receiver::Receiver;
use super::tree::{self, PARTIAL_SUFFIX, Relative, Removed, join_os};
use super::wire::{self, Kind};

/// A part that was not written for this long, and whose file this copy did not leave unfinished, is deleted without
/// `--delete`. Ours.
const PART_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

impl Receiver<'_> {
    /// Deletes paths that the source does not have, then sets permissions and times of directories, inner directories
    /// first.
    pub fn finish(&mut self) {
        if self.terms.replaces() {
            self.delete();
        }
        if self.terms.options.dry_run {
            return;
        }
        for index in (0..self.items.len()).rev() {
            let Some(item) = &self.items[index] else { continue };
            let is_ours = match item.state {
                State::Made => true,
                State::Found => self.terms.replaces(),
                State::Failed => false,
            };
            if item.kind != Kind::Directory || !is_ours {
                continue;
            }
            if let Err(error) = self.tree.finish_directory(&item.path, item.mode, item.mtime) {
                let path = item.path.as_str().to_owned();
                self.report(&path, Action::Failed, Some(error.to_string()));
            }
        }
    }

    /// With `--delete` deletes paths that the source does not have. Deletes parts that no copy will continue: with
    /// `--delete` at once, otherwise after [`PART_AGE`].
    ///
    /// Examines only directories that the source has and could list. Other directories are not part of the copy.
    fn delete(&mut self) {
        let (deletes, dry_run) = (self.terms.options.delete, self.terms.options.dry_run);
        if self.has_refused {
            if !deletes {
                return;
            }
            let reason = "nothing was deleted: the sender lists paths that are refused";
            return self.report("", Action::Failed, Some(reason.into()));
        }
        let mut doomed: Vec<OsString> = Vec::new();
        let mut unread: Vec<(String, String)> = Vec::new();
        let needed = self.needed_parts();
        {
            let listed: BTreeSet<&str> = self.items.iter().flatten().map(|item| item.path.as_str()).collect();
            let top = self.is_top_listed.then_some("");
            let directories = self.items.iter().flatten();
            let directories = directories
                .filter(|item| item.kind == Kind::Directory && !matches!(item.state, State::Failed))
                .map(|item| item.path.as_str());
            for directory in top.into_iter().chain(directories).filter(|path| !self.unlisted.contains(*path))
            {
                let names = match self.tree.names(directory) {
                    Ok(names) => names,
                    // A directory that only a real run would have created has nothing to delete.
                    Err(error) if dry_run || !deletes || error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => {
                        unread.push((directory.to_owned(), error.to_string()));
                        continue;
                    }
                };
                let paths = names.iter().map(|name| join_os(OsStr::new(directory), name));
                doomed.extend(paths.filter(|path| match tree::is_part(path) {
                    true => !needed.contains(&**path) && self.is_over(path),
                    // Other names with the suffix are never listed.
                    false if path.as_encoded_bytes().ends_with(PARTIAL_SUFFIX.as_bytes()) => false,
                    false => deletes && !path.to_str().is_some_and(|path| listed.contains(path)),
                }));
            }
        }
        for (path, reason) in unread {
            self.report(&path, Action::Failed, Some(reason));
        }
        for path in doomed {
            self.remove_all(path);
        }
    }

    /// Parts that the next copy can continue: those of files that failed or could not be listed.
    fn needed_parts(&self) -> BTreeSet<OsString> {
        let failed = self.items.iter().flatten().filter(|item| item.state == State::Failed);
        let omitted = self.omitted.iter().filter_map(|path| Relative::parse(path).ok());
        let paths = failed.map(|item| item.path.clone()).chain(omitted);
        paths.filter_map(|path| self.partial(&path).ok()).map(|part| part.as_str().into()).collect()
    }

    /// True if no copy writes the part at `path`, and it need not be kept: with `--delete`, or after [`PART_AGE`].
    fn is_over(&self, path: &OsStr) -> bool {
        let Some(Ok(path)) = path.to_str().map(Relative::parse) else { return false };
        let Ok(part) = self.tree.lock(&path) else { return false };
        let modified = part.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        self.terms.options.delete || age.is_some_and(|age| age > PART_AGE)
    }

    /// Deletes and reports `start` and everything below it, except what the user excluded or the sender omitted.
    pub fn remove_all(&mut self, start: OsString) {
        let (options, omitted) = (&self.terms.options, &self.omitted);
        let is_kept = |path: &OsStr, is_directory| {
            let shown = path.to_string_lossy();
            excludes(&options.exclude, &shown, is_directory)
                || omitted.contains(&wire::bounded(shown.into_owned()))
        };
        let removed = self.tree.remove_all(start, options.dry_run, &is_kept);
        self.on_removed(removed);
    }

    /// Reports deleted paths.
    pub fn on_removed(&mut self, removed: Vec<Removed>) {
        for (path, done) in removed {
            match done {
                Ok(()) => self.report(&path.to_string_lossy(), Action::Deleted, None),
                Err(error) => self.report(&path.to_string_lossy(), Action::Failed, Some(error.to_string())),
            }
        }
    }
}
