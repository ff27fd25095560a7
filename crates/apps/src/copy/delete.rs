//! Deletes paths that the source does not have, and sets permissions and times of directories.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;

use super::Action;
use super::manifest::State;
use super::pattern::excludes;
use super::receiver::Receiver;
use super::tree::{PARTIAL_SUFFIX, Removed, join_os};
use super::wire::{self, Kind};

impl Receiver<'_> {
    /// Deletes paths that the source does not have, then sets permissions and times of directories, inner directories
    /// first.
    pub fn finish(&mut self) {
        if self.terms.options.delete && self.terms.replaces() {
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

    /// Examines only directories that the source has and could list. Other directories are not part of the copy.
    fn delete(&mut self) {
        if self.has_refused {
            let reason = "nothing was deleted: the sender lists paths that are refused";
            return self.report("", Action::Failed, Some(reason.into()));
        }
        let mut doomed: Vec<OsString> = Vec::new();
        let mut unread: Vec<(String, String)> = Vec::new();
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
                    Err(error) if self.terms.options.dry_run || error.kind() == ErrorKind::NotFound => {
                        continue;
                    }
                    Err(error) => {
                        unread.push((directory.to_owned(), error.to_string()));
                        continue;
                    }
                };
                let paths = names.iter().map(|name| join_os(OsStr::new(directory), name));
                doomed.extend(paths.filter(|path| {
                    // Partial files of failed transfers are kept for the next copy.
                    let is_left = path.as_encoded_bytes().ends_with(PARTIAL_SUFFIX.as_bytes());
                    !is_left && !path.to_str().is_some_and(|path| listed.contains(path))
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
