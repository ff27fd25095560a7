//! Files below one directory. Each component of a path is opened relative to its parent and symbolic links are not
//! followed, so no name or link leads outside, even if other processes change the tree concurrently.

use std::collections::{BTreeSet, VecDeque};
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

/// Suffix of the partial file that an interrupted copy leaves. Such files are never sent.
pub const PARTIAL_SUFFIX: &str = ".tacit-part";
/// Digits of the hash in the name of a partial file.
const PART_DIGITS: usize = 16;

/// Name of the partial file for a file whose name, and perhaps user, has this `hash`.
pub fn part_name(hash: &blake3::Hash) -> String {
    format!(".{}{PARTIAL_SUFFIX}", &hash.to_hex().as_str()[..PART_DIGITS])
}

/// True if the last name of `path` is one of [`part_name`].
pub fn is_part(path: &OsStr) -> bool {
    let name = split_os(path).1.as_bytes();
    let digits = name.strip_prefix(b".").and_then(|name| name.strip_suffix(PARTIAL_SUFFIX.as_bytes()));
    digits.is_some_and(|digits| digits.len() == PART_DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

/// A relative path that cannot lead outside its start. The empty path is the start itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relative(String);

impl Relative {
    /// Parses a path of the protocol.
    ///
    /// # Errors
    /// A message, if the path could lead outside or is not a valid path.
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

    /// Parent directory and last name.
    pub fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }

    /// The path of `name` in this directory.
    pub fn join(&self, name: &str) -> Result<Self, String> {
        Self::parse(&if self.is_empty() { name.to_owned() } else { format!("{}/{name}", self.0) })
    }

    /// True if a link at this path to `target` stays below the start; with `is_first_the_top`, below the first name of
    /// this path, which is then the destination of the copy.
    pub fn keeps_inside(&self, target: &str, is_first_the_top: bool) -> bool {
        if target.is_empty()
            || target.len() > PATH_BYTES_MAX
            || target.starts_with('/')
            || target.contains('\0')
        {
            return false;
        }
        let mut depth = self.0.matches('/').count().saturating_sub(usize::from(is_first_the_top));
        // After a name, `..` could leave through a link of that name, so `..` is allowed only before any name.
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

/// A directory and everything below it.
#[derive(Debug)]
pub struct Tree(Option<OwnedFd>);

/// Links that a path may lead through: as Linux (`MAXSYMLINKS`).
const LINKS_MAX: u32 = 40;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Path resolution must not leave the directory or follow links.
const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Permissions that allow the owner to change a directory's entries.
const OWNER: Mode = Mode::RWXU;

/// A deleted path, or why it could not be deleted.
pub type Removed = (OsString, io::Result<()>);

impl Tree {
    /// Opens the directory that the user named; links are followed.
    pub fn open(path: &FsPath) -> io::Result<Self> {
        Ok(Self(Some(rustix::fs::openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)))
    }

    /// A directory that a dry run would create: it contains nothing.
    pub fn missing() -> Self {
        Self(None)
    }

    /// Opens the directory `path`.
    pub fn directory(&self, path: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
        let top = self.0.as_ref().ok_or(Errno::NOENT)?;
        // In one call if the system has it (Linux 5.6). If that fails, opening component by component handles paths
        // that are too long for one call, and returns the error of the component that failed.
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

    /// The subtree at `path`.
    pub fn subtree(&self, path: &Relative) -> io::Result<Self> {
        if self.0.is_none() && path.is_empty() {
            return Ok(Self::missing());
        }
        Ok(Self(Some(self.directory(path.as_str())?)))
    }

    /// The subtree at `path`. Missing directories are created, unless it is a `dry_run`.
    pub fn make_subtree(&self, path: &Relative, dry_run: bool) -> io::Result<Self> {
        let mut at = self.subtree(&Relative::default())?;
        for part in path.0.split('/').filter(|part| !part.is_empty()) {
            let part = Relative(part.to_owned());
            at = match at.subtree(&part) {
                Err(error) if error.kind() == ErrorKind::NotFound && dry_run => return Ok(Self::missing()),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let created =
                        rustix::fs::mkdirat(at.directory("")?, part.as_str(), Mode::from_raw_mode(0o777));
                    // Another copy may create it at the same time.
                    created.or_else(|error| if error == Errno::EXIST { Ok(()) } else { Err(error) })?;
                    at.subtree(&part)?
                }
                opened => opened?,
            };
        }
        Ok(at)
    }

    /// Status of `path`, without following links.
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

    /// Opens the file `path` for reading. Anything but a regular file is refused without blocking.
    pub fn read(&self, path: &Relative) -> io::Result<File> {
        let (directory, name) = path.split();
        Ok(open_file(&self.directory(directory)?, name, OFlags::RDONLY)?.0)
    }

    /// Opens the file `path` for writing by this copy alone: two copies that write the same file would each verify only
    /// their own bytes. If it does not exist, it is created with access for the owner only.
    pub fn write_alone(&self, path: &Relative) -> io::Result<File> {
        self.open_alone(path, OFlags::RDWR | OFlags::CREATE)
    }

    /// Like [`Self::write_alone`] for a file that exists.
    pub fn lock(&self, path: &Relative) -> io::Result<File> {
        self.open_alone(path, OFlags::RDWR)
    }

    fn open_alone(&self, path: &Relative, flags: OFlags) -> io::Result<File> {
        let busy = || io::Error::new(ErrorKind::WouldBlock, "another copy is writing it");
        let (directory, name) = path.split();
        let directory = self.directory(directory)?;
        let (file, opened) = open_file(&directory, name, flags)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| busy())?;
        // Another copy may have finished in the meantime and renamed the file.
        let named = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino) { Ok(file) } else { Err(busy()) }
    }

    pub fn link_target(&self, path: &Relative) -> io::Result<OsString> {
        let (directory, name) = path.split();
        let target = rustix::fs::readlinkat(self.directory(directory)?, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// `path` with links to directories replaced by where they lead, as long as that is below this directory. A last name
    /// that is a link is followed only with `follows_last`. Nothing is opened through a link: opening refuses a path in
    /// which one remains.
    pub fn followed(&self, path: &Relative, follows_last: bool) -> Relative {
        self.try_followed(path, follows_last).unwrap_or_else(|| path.clone())
    }

    fn try_followed(&self, path: &Relative, follows_last: bool) -> Option<Relative> {
        let mut at = Relative::default();
        let mut left: VecDeque<_> = path.as_str().split('/').map(ToOwned::to_owned).collect();
        let mut links = 0;
        while let Some(name) = left.pop_front() {
            match &name[..] {
                "" | "." => continue,
                ".." => at = Relative(at.split().0.to_owned()),
                _ => {
                    let next = at.join(&name).ok()?;
                    let is_link =
                        self.stat(&next).ok().map(|stat| file_type(&stat)) == Some(FileType::Symlink);
                    if is_link && (follows_last || !left.is_empty()) {
                        let target = self.link_target(&next).ok()?.into_string().ok()?;
                        links += 1;
                        if links > LINKS_MAX || !next.keeps_inside(&target, false) {
                            return None;
                        }
                        for name in target.rsplit('/') {
                            left.push_front(name.to_owned());
                        }
                    } else {
                        at = next;
                    }
                }
            }
        }
        Some(at)
    }

    /// Names in the directory `path`, sorted.
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

    /// `path` if it exists; otherwise the paths that match it as a pattern, sorted. Names that begin with a dot match
    /// only patterns that begin with a dot.
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
                // A file contains no names.
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

    /// Gives the owner of the directory `path`, which must be this user, permission to change its entries.
    pub fn unlock_directory(&self, path: impl AsRef<OsStr>, stat: &Stat) -> io::Result<()> {
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.contains(OWNER) || rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let (directory, name) = split_os(path.as_ref());
        // O_PATH needs no read permission, and its descriptor can be used to change permissions.
        let flags = OFlags::PATH | DIRECTORY;
        let fd = rustix::fs::openat(self.directory(directory)?, name, flags, Mode::empty())?;
        Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode | OWNER)?)
    }

    /// Creates a link at `path`, which must not exist.
    pub fn make_link(&self, path: &Relative, target: &str) -> io::Result<()> {
        let (directory, name) = path.split();
        Ok(rustix::fs::symlinkat(target, self.directory(directory)?, name)?)
    }

    /// Renames `from` to `to`, in the same directory. With `is_new`, `to` must not exist yet.
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

    /// Deletes `start` and everything below it, except paths for which `is_kept` (called with the path and whether it
    /// is a directory) returns true. Directories that are not empty afterwards remain. A `dry_run` only reports the
    /// paths.
    pub fn remove_all(
        &self,
        start: OsString,
        dry_run: bool,
        is_kept: &dyn Fn(&OsStr, bool) -> bool,
    ) -> Vec<Removed> {
        let mut removed = Vec::new();
        let mut open = vec![(start, false)];
        // Directories that contain kept entries.
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
                    // If this fails, the deletion fails as well.
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

    /// Number and bytes of the partial files in all directories that can be read.
    pub fn parts(&self) -> (u64, u64) {
        let (mut number, mut bytes) = (0, 0u64);
        let mut open = vec![OsString::new()];
        while let Some(path) = open.pop() {
            let Ok(directory) = self.directory(&path) else { continue };
            for entry in Dir::read_from(&directory).into_iter().flatten().flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let below = join_os(&path, name);
                // Some file systems do not give the type here.
                let is_unknown = entry.file_type() == FileType::Unknown;
                let stat = || self.stat_os(&below).ok();
                let file_type =
                    if is_unknown { stat().map(|stat| file_type(&stat)) } else { Some(entry.file_type()) };
                match file_type {
                    Some(FileType::Directory) if name != "." && name != ".." => open.push(below),
                    Some(FileType::RegularFile) if is_part(name) => {
                        number += 1;
                        bytes = bytes.saturating_add(stat().map_or(0, |stat| size_of(&stat)));
                    }
                    _ => (),
                }
            }
        }
        (number, bytes)
    }

    fn stat_os(&self, path: &OsStr) -> io::Result<Stat> {
        let (directory, name) = split_os(path);
        Ok(rustix::fs::statat(self.directory(directory)?, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Sets permissions and modification time of the directory `path`.
    pub fn finish_directory(&self, path: &Relative, mode: u32, mtime: Timestamp) -> io::Result<()> {
        finish(&self.directory(path.as_str())?, mode, Some(mtime))
    }

    /// Sets permissions and modification time of the file `path` without reading it.
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

    /// The modification time that the file system near `path` stores for `mtime`: file systems differ in range and
    /// resolution. `None` if that cannot be tested without creating a visible file.
    pub fn kept_time(&self, path: &Relative, mtime: Timestamp) -> Option<Timestamp> {
        let directory = self.directory(path.split().0).ok()?;
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, ".", flags, Mode::RUSR | Mode::WUSR).ok()?;
        set_time(&file, mtime).ok()?;
        Some(mtime_of(&rustix::fs::fstat(&file).ok()?))
    }
}

/// Opens the file `name` in `directory`, with its status. Anything but a regular file is refused without blocking.
fn open_file(directory: &OwnedFd, name: &str, flags: OFlags) -> io::Result<(File, Stat)> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = rustix::fs::fstat(&fd)?;
    if file_type(&stat) != FileType::RegularFile {
        return Err(io::Error::other("not a plain file"));
    }
    // Another hard link to it may be outside the tree.
    if flags.contains(OFlags::RDWR) && stat.st_nlink != 1 {
        return Err(io::Error::other("a file with several names"));
    }
    Ok((fd.into(), stat))
}

fn split_os(path: &OsStr) -> (&OsStr, &OsStr) {
    let bytes = path.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])),
        None => (OsStr::new(""), path),
    }
}

/// The path of `name` in `directory`, which is empty for the top.
pub fn join_os(directory: &OsStr, name: &OsStr) -> OsString {
    let mut path = directory.to_owned();
    if !path.is_empty() {
        path.push("/");
    }
    path.push(name);
    path
}

/// Sets permissions (without setuid, setgid and sticky bits) and the modification time, unless they are already set.
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

/// Modification time.
pub fn mtime_of(stat: &Stat) -> Timestamp {
    u32::try_from(stat.st_mtime_nsec)
        .ok()
        .and_then(|ns| Timestamp::new(stat.st_mtime, ns))
        .unwrap_or_default()
}

pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Size in bytes.
pub fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// True for a file with holes.
pub fn is_sparse(stat: &Stat) -> bool {
    // POSIX: st_blocks counts 512 bytes.
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512) < size_of(stat)
}

/// Offset of the first data byte at or after `at_bytes`; `None` if only a hole follows.
pub fn next_data(file: &File, at_bytes: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at_bytes)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Offset of the first hole at or after `at_bytes`, or the end of the file.
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

/// Hashes the next `length_bytes` of `file`; `None` if it has fewer.
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

    #[test]
    fn links_that_stay_below_lead_to_what_is_read() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        std::fs::create_dir_all(top.join("releases/x/deep")).unwrap();
        for (target, link) in [
            ("releases/x", "current"),
            ("../current/deep", "releases/hop"),
            ("/etc", "absolute"),
            ("../top/releases", "out"),
            ("releases/x/../../..", "around"),
            ("circle", "circle"),
        ] {
            symlink(target, top.join(link)).unwrap();
        }
        let tree = Tree::open(&top).unwrap();
        let followed =
            |path: &str, follows_last| tree.followed(&Relative::parse(path).unwrap(), follows_last).0;
        assert_eq!(followed("current/f", false), "releases/x/f");
        assert_eq!(followed("current", false), "current", "the link itself");
        assert_eq!(followed("current", true), "releases/x");
        assert_eq!(followed("releases/hop/f", false), "releases/x/deep/f");
        for stays in ["absolute/passwd", "out/x", "around/f", "circle/f", "none/f", ""] {
            assert_eq!(followed(stays, true), stays);
        }
    }
}
