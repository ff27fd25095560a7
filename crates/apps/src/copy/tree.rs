//! Files below one directory. Every part of a path is opened from the directory before it and no symbolic link is
//! followed, so that no name and no link leads out, even while others change the tree.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path as FsPath;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom, Stat,
    Timespec, Timestamps,
};
use rustix::io::Errno;

use super::pattern::{is_pattern, matches};
use super::wire::{ENTRIES_MAX, LENGTH_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX, Timestamp};

/// Suffix of a partial file, which an interrupted copy leaves: no file of a source.
pub const PARTIAL_SUFFIX: &str = ".tacit-part";

/// A path that stays below where it starts. Empty: the start itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relative(String);

impl Relative {
    /// Reads a path as the protocol writes it.
    ///
    /// # Errors
    /// In words, where it could name something else or cannot be a path at all.
    pub fn parse(path: &str) -> Result<Self, String> {
        let wrong =
            |why: &str| Err(format!("the path {:?} {why}", path.chars().take(80).collect::<String>()));
        if path.len() > PATH_BYTES_MAX {
            return wrong("is too long");
        }
        if path.contains('\0') {
            return wrong("has a NUL");
        }
        for part in path.split('/').filter(|_| !path.is_empty()) {
            match part {
                "" => return wrong("has an empty part or is absolute"),
                "." | ".." => return wrong("has a part that is no name"),
                _ if part.len() > NAME_BYTES_MAX => return wrong("has a name that is too long"),
                _ => (),
            }
        }
        Ok(Self(path.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Directory and name.
    pub fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }

    /// The path of `name` in this directory.
    pub fn join(&self, name: &str) -> Result<Self, String> {
        Self::parse(&if self.is_empty() { name.to_owned() } else { format!("{}/{name}", self.0) })
    }

    /// True when a link that stands here and points at `target` points below the start, or below the first name of this path where
    /// that is where the copy goes to.
    pub fn keeps_inside(&self, target: &str, is_first_the_top: bool) -> bool {
        if target.is_empty()
            || target.len() > PATH_BYTES_MAX
            || target.starts_with('/')
            || target.contains('\0')
        {
            return false;
        }
        let mut depth = self.0.matches('/').count().saturating_sub(usize::from(is_first_the_top));
        // A `..` after a name may leave by a link of that name: those that climb do so first.
        let mut climbs = true;
        for part in target.split('/') {
            match part {
                "" | "." => (),
                ".." if climbs && depth > 0 => depth -= 1,
                ".." => return false,
                _ => climbs = false,
            }
        }
        true
    }
}

/// A directory and all below it.
#[derive(Debug)]
pub struct Tree(Option<OwnedFd>);

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// No part of a path leads out, or is a link.
const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Permissions that let an owner make and remove names in a directory.
const OWNER: Mode = Mode::RWXU;

/// Something that was removed, or why it could not be.
pub type Removed = (OsString, io::Result<()>);

impl Tree {
    /// The directory that the user named, by links or not.
    pub fn open(path: &FsPath) -> io::Result<Self> {
        Ok(Self(Some(rustix::fs::openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)))
    }

    /// A directory that would be made: nothing is in it.
    pub fn missing() -> Self {
        Self(None)
    }

    /// The directory `path`.
    pub fn directory(&self, path: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
        let top = self.0.as_ref().ok_or(Errno::NOENT)?;
        // In one call where the system has it (Linux 5.6). Where it fails, the walk fails with the reason of a single part, or a path
        // that is too long for one call is found.
        if !path.as_ref().is_empty()
            && let Ok(at) = rustix::fs::openat2(top, path.as_ref(), DIRECTORY, Mode::empty(), BELOW)
        {
            return Ok(at);
        }
        let mut at = rustix::fs::openat(top, ".", DIRECTORY, Mode::empty())?;
        for part in path.as_ref().as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            at = rustix::fs::openat(&at, part, DIRECTORY, Mode::empty())?;
        }
        Ok(at)
    }

    /// The part of this tree at `path`.
    pub fn subtree(&self, path: &Relative) -> io::Result<Self> {
        if self.0.is_none() && path.is_empty() {
            return Ok(Self::missing());
        }
        Ok(Self(Some(self.directory(path.as_str())?)))
    }

    /// The part of this tree at `path`; directories that are not there are made, unless it is a `dry_run`.
    pub fn make_subtree(&self, path: &Relative, dry_run: bool) -> io::Result<Self> {
        let mut at = self.subtree(&Relative::default())?;
        for part in path.0.split('/').filter(|part| !part.is_empty()) {
            let part = Relative(part.to_owned());
            at = match at.subtree(&part) {
                Err(error) if error.kind() == ErrorKind::NotFound && dry_run => return Ok(Self::missing()),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let made =
                        rustix::fs::mkdirat(at.directory("")?, part.as_str(), Mode::from_raw_mode(0o777));
                    // Another copy may be as fast.
                    made.or_else(|error| if error == Errno::EXIST { Ok(()) } else { Err(error) })?;
                    at.subtree(&part)?
                }
                opened => opened?,
            };
        }
        Ok(at)
    }

    /// Status of `path`, links not followed.
    pub fn stat(&self, path: &Relative) -> io::Result<Stat> {
        if path.is_empty() {
            return Ok(rustix::fs::fstat(self.directory("")?)?);
        }
        let (directory, name) = path.split();
        Ok(rustix::fs::statat(self.directory(directory)?, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Attributes of `path`, if it exists. Its directory must exist.
    pub fn find(&self, path: &Relative) -> io::Result<Option<Stat>> {
        let (directory, name) = path.split();
        match rustix::fs::statat(self.directory(directory)?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The file `path` for reading. Anything but a plain file is refused, and never waited for.
    pub fn read(&self, path: &Relative) -> io::Result<File> {
        self.open_file(path, OFlags::RDONLY)
    }

    /// The file `path` for writing, made where it is not there, for the owner only.
    pub fn write(&self, path: &Relative) -> io::Result<File> {
        self.open_file(path, OFlags::RDWR | OFlags::CREATE)
    }

    /// As [`Self::write`], but exclusive: two copies that write one file would each verify its own bytes only.
    pub fn write_alone(&self, path: &Relative) -> io::Result<File> {
        let busy = || io::Error::new(ErrorKind::WouldBlock, "another copy is writing it");
        let file = self.write(path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| busy())?;
        // Another copy may have finished since, and given the file its name.
        let (own, named) = (rustix::fs::fstat(&file)?, self.stat(path)?);
        if (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino) { Ok(file) } else { Err(busy()) }
    }

    fn open_file(&self, path: &Relative, flags: OFlags) -> io::Result<File> {
        let (directory, name) = path.split();
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self.directory(directory)?, name, flags, Mode::RUSR | Mode::WUSR)?;
        let stat = rustix::fs::fstat(&fd)?;
        if file_type(&stat) != FileType::RegularFile {
            return Err(io::Error::other("not a plain file"));
        }
        // A second name of it may stand outside.
        if flags.contains(OFlags::CREATE) && stat.st_nlink != 1 {
            return Err(io::Error::other("a file with several names"));
        }
        Ok(fd.into())
    }

    pub fn link_target(&self, path: &Relative) -> io::Result<OsString> {
        let (directory, name) = path.split();
        let target = rustix::fs::readlinkat(self.directory(directory)?, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// Names in the directory `path`, in order.
    pub fn names(&self, path: impl AsRef<OsStr>) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.directory(path)?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// `path`, if it exists; else the paths that it matches as a pattern, in order. Only patterns that begin with a dot match such names.
    pub fn expand(&self, path: &Relative) -> io::Result<Vec<Relative>> {
        let there = self.stat(path);
        if there.is_ok() || !is_pattern(path.as_str()) {
            return there.map(|_| vec![path.clone()]);
        }
        let mut found = vec![Relative::default()];
        for pattern in path.as_str().split('/') {
            let mut inner = Vec::new();
            for directory in &found {
                if !is_pattern(pattern) {
                    inner.extend(directory.join(pattern).ok().filter(|path| self.stat(path).is_ok()));
                    continue;
                }
                // A file has no names in it.
                let names = self.names(directory.as_str()).unwrap_or_default();
                let names = names.iter().filter_map(|name| name.to_str());
                let meant = names.filter(|name| {
                    let is_shown = !name.starts_with('.') || pattern.starts_with('.');
                    is_shown && !name.ends_with(PARTIAL_SUFFIX) && matches(pattern, name)
                });
                inner.extend(meant.filter_map(|name| directory.join(name).ok()));
                if inner.len() > ENTRIES_MAX {
                    return Err(io::Error::other(format!("more than {ENTRIES_MAX} paths match")));
                }
            }
            found = inner;
        }
        if found.is_empty() { Err(io::Error::new(ErrorKind::NotFound, "nothing matches")) } else { Ok(found) }
    }

    pub fn make_directory(&self, path: &Relative) -> io::Result<()> {
        let (directory, name) = path.split();
        Ok(rustix::fs::mkdirat(self.directory(directory)?, name, OWNER)?)
    }

    /// Lets the owner of the directory `path`, which is this user, make and remove names in it.
    pub fn unlock_directory(&self, path: impl AsRef<OsStr>, stat: &Stat) -> io::Result<()> {
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.contains(OWNER) || rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let (directory, name) = split_os(path.as_ref());
        // One that may not be read can be named, and by that be changed.
        let flags = OFlags::PATH | DIRECTORY;
        let fd = rustix::fs::openat(self.directory(directory)?, name, flags, Mode::empty())?;
        Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode | OWNER)?)
    }

    /// A link at `path`, where nothing is.
    pub fn make_link(&self, path: &Relative, target: &str) -> io::Result<()> {
        let (directory, name) = path.split();
        Ok(rustix::fs::symlinkat(target, self.directory(directory)?, name)?)
    }

    /// Gives the file `from` the name `to`, which stands in the same directory. With `is_new` nothing may have it yet.
    pub fn rename(&self, from: &Relative, to: &Relative, is_new: bool) -> io::Result<()> {
        let (directory, name) = to.split();
        let directory = self.directory(directory)?;
        let flags = if is_new { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        Ok(rustix::fs::renameat_with(&directory, from.split().1, &directory, name, flags)?)
    }

    pub fn remove(&self, path: impl AsRef<OsStr>, is_directory: bool) -> io::Result<()> {
        let (directory, name) = split_os(path.as_ref());
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        Ok(rustix::fs::unlinkat(self.directory(directory)?, name, flags)?)
    }

    /// Removes `start` and all below it that is not to be kept, which is asked by path and whether it is a directory; a directory with
    /// something in it stays. A `dry_run` only reports the paths.
    pub fn remove_all(
        &self,
        start: OsString,
        dry_run: bool,
        is_kept: &dyn Fn(&OsStr, bool) -> bool,
    ) -> Vec<Removed> {
        let mut removed = Vec::new();
        let mut open = vec![(start, false)];
        // Directories with something in them that is kept.
        let mut stay: BTreeSet<OsString> = BTreeSet::new();
        while let Some((path, is_emptied)) = open.pop() {
            let stat = self.stat_os(&path);
            let is_directory = stat.as_ref().is_ok_and(|stat| file_type(stat) == FileType::Directory);
            if is_kept(&path, is_directory) {
                let mut above = split_os(&path).0;
                while !above.is_empty() && stay.insert(above.to_owned()) {
                    above = split_os(above).0;
                }
                continue;
            }
            if is_directory && !is_emptied {
                if let (false, Ok(stat)) = (dry_run, &stat) {
                    // Where that fails, so will the removal.
                    let _ = self.unlock_directory(&path, stat);
                }
                let inner = self.names(&path).unwrap_or_default();
                let inner: Vec<_> = inner.iter().map(|name| join_os(&path, name)).collect();
                open.push((path, true));
                open.extend(inner.into_iter().map(|path| (path, false)));
                continue;
            }
            if stay.contains(&path) {
                continue;
            }
            let done = if dry_run { Ok(()) } else { self.remove(&path, is_directory) };
            removed.push((path, done));
        }
        removed
    }

    fn stat_os(&self, path: &OsStr) -> io::Result<Stat> {
        let (directory, name) = split_os(path);
        Ok(rustix::fs::statat(self.directory(directory)?, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Sets permissions and time of the directory `path`.
    pub fn finish_directory(&self, path: &Relative, mode: u32, mtime: Timestamp) -> io::Result<()> {
        finish(&self.directory(path.as_str())?, mode, Some(mtime))
    }

    /// Sets permissions and time of the file `path`, of which nothing is read.
    pub fn finish_file(&self, path: &Relative, mode: u32, mtime: Timestamp) -> io::Result<()> {
        let (directory, name) = path.split();
        let directory = self.directory(directory)?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(&directory, name, OFlags::RDONLY | flags, Mode::empty()) {
            Err(Errno::ACCESS) => rustix::fs::openat(&directory, name, OFlags::WRONLY | flags, Mode::empty()),
            opened => opened,
        };
        finish(&opened?, mode, Some(mtime))
    }

    /// The time that a file beside `path` has when it was given `mtime`: file systems have limits and steps of their own. `None`
    /// where that cannot be tried without leaving something.
    pub fn kept_time(&self, path: &Relative, mtime: Timestamp) -> Option<Timestamp> {
        let directory = self.directory(path.split().0).ok()?;
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, ".", flags, Mode::RUSR | Mode::WUSR).ok()?;
        set_time(&file, mtime).ok()?;
        Some(mtime_of(&rustix::fs::fstat(&file).ok()?))
    }
}

fn split_os(path: &OsStr) -> (&OsStr, &OsStr) {
    let bytes = path.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])),
        None => (OsStr::new(""), path),
    }
}

/// The path of `name` in `directory`, which is empty at the top.
pub fn join_os(directory: &OsStr, name: &OsStr) -> OsString {
    let mut path = directory.to_owned();
    if !path.is_empty() {
        path.push("/");
    }
    path.push(name);
    path
}

/// Sets permissions, without the bits that lend rights, and the time of last change, if they are others.
pub fn finish(fd: &impl std::os::fd::AsFd, mode: u32, mtime: Option<Timestamp>) -> io::Result<()> {
    let stat = rustix::fs::fstat(fd)?;
    if stat.st_mode & 0o7777 != mode & 0o777 {
        rustix::fs::fchmod(fd, Mode::from_raw_mode(mode & 0o777))?;
    }
    match mtime {
        Some(mtime) if mtime != mtime_of(&stat) => set_time(fd, mtime),
        _ => Ok(()),
    }
}

fn set_time(fd: &impl std::os::fd::AsFd, mtime: Timestamp) -> io::Result<()> {
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let changed = Timespec { tv_sec: mtime.s(), tv_nsec: mtime.ns().into() };
    Ok(rustix::fs::futimens(fd, &Timestamps { last_access: omit, last_modification: changed })?)
}

/// Time of last change.
pub fn mtime_of(stat: &Stat) -> Timestamp {
    u32::try_from(stat.st_mtime_nsec)
        .ok()
        .and_then(|ns| Timestamp::new(stat.st_mtime, ns))
        .unwrap_or_default()
}

pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Bytes of a file.
pub fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// True for a file with holes.
pub fn is_sparse(stat: &Stat) -> bool {
    // POSIX: st_blocks counts 512 bytes.
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512) < size_of(stat)
}

/// The first byte from `at_bytes` on that is no hole; `None` where all are.
pub fn next_data(file: &File, at_bytes: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at_bytes)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The first byte behind `at_bytes` that is a hole, or the end of the file.
pub fn next_hole(file: &File, at_bytes: u64) -> io::Result<u64> {
    Ok(rustix::fs::seek(file, SeekFrom::Hole(at_bytes))?)
}

/// Hashes `length_bytes` zeros.
pub fn hash_hole(hasher: &mut blake3::Hasher, length_bytes: u64) {
    static ZEROS: [u8; LENGTH_MAX] = [0; LENGTH_MAX];
    let mut left_bytes = length_bytes;
    while left_bytes > 0 {
        let take = ZEROS.len().min(usize::try_from(left_bytes).unwrap_or(usize::MAX));
        hasher.update(&ZEROS[..take]);
        left_bytes -= take as u64;
    }
}

/// Hashes the next `length_bytes` of `file`; `None` where there are fewer.
pub fn hash_prefix(file: &mut File, length_bytes: u64) -> io::Result<Option<blake3::Hasher>> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; LENGTH_MAX];
    let mut left_bytes = length_bytes;
    while left_bytes > 0 {
        let take = buffer.len().min(usize::try_from(left_bytes).unwrap_or(usize::MAX));
        match file.read(&mut buffer[..take])? {
            0 => return Ok(None),
            count => {
                hasher.update(&buffer[..count]);
                left_bytes -= count as u64;
            }
        }
    }
    Ok(Some(hasher))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_part_of_a_path_is_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        std::fs::create_dir_all(top.join("inner/deep")).unwrap();
        symlink("inner", top.join("link")).unwrap();
        symlink("../..", top.join("inner/out")).unwrap();
        let tree = Tree::open(&top).unwrap();
        tree.directory("inner/deep").unwrap();
        for path in ["link", "link/deep", "inner/out", "inner/out/top"] {
            assert_eq!(tree.directory(path).unwrap_err().kind(), ErrorKind::NotADirectory, "{path}");
        }
    }

    #[test]
    fn directories_deeper_than_one_path_can_name_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tree, name) = (Tree::open(folder.path()).unwrap(), "x".repeat(200));
        for _ in 0..PATH_BYTES_MAX / 200 + 1 {
            tree = tree.make_subtree(&Relative(name.clone()), false).unwrap();
        }
        let path = vec![name; PATH_BYTES_MAX / 200 + 1].join("/");
        let found = rustix::fs::fstat(Tree::open(folder.path()).unwrap().directory(&path).unwrap()).unwrap();
        assert_eq!(found.st_ino, rustix::fs::fstat(tree.directory("").unwrap()).unwrap().st_ino);
    }
}
