//! Files below one directory. Every part of a path is opened from the directory before it and no symbolic link is
//! followed, so that no name and no link leads out, whoever changes the tree meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path as FsPath;

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps};

use super::wire::{LENGTH_MAX, NAME_OCTETS_MAX, PATH_OCTETS_MAX};

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
        if path.len() > PATH_OCTETS_MAX {
            return wrong("is too long");
        }
        if path.contains('\0') {
            return wrong("has a NUL");
        }
        for part in path.split('/').filter(|_| !path.is_empty()) {
            match part {
                "" => return wrong("has an empty part or is absolute"),
                "." | ".." => return wrong("has a part that is no name"),
                _ if part.len() > NAME_OCTETS_MAX => return wrong("has a name that is too long"),
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

    /// True when a link that stands here and points at `target` points below the start.
    pub fn keeps_inside(&self, target: &str) -> bool {
        if target.is_empty()
            || target.len() > PATH_OCTETS_MAX
            || target.starts_with('/')
            || target.contains('\0')
        {
            return false;
        }
        let mut depth = self.0.matches('/').count();
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

/// A directory and what is below it.
#[derive(Debug)]
pub struct Tree(OwnedFd);

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Tree {
    /// The directory that the user named, by links or not.
    pub fn open(path: &FsPath) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// The directory `path`.
    pub fn directory(&self, path: &str) -> io::Result<OwnedFd> {
        let mut at = rustix::fs::openat(&self.0, ".", DIRECTORY, Mode::empty())?;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            at = rustix::fs::openat(&at, part, DIRECTORY, Mode::empty())?;
        }
        Ok(at)
    }

    /// The part of this tree at `path`.
    pub fn subtree(&self, path: &Relative) -> io::Result<Self> {
        Ok(Self(self.directory(path.as_str())?))
    }

    /// What stands at `path`, links not followed.
    pub fn stat(&self, path: &Relative) -> io::Result<Stat> {
        if path.is_empty() {
            return Ok(rustix::fs::fstat(&self.0)?);
        }
        let (directory, name) = path.split();
        Ok(rustix::fs::statat(self.directory(directory)?, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The file `path` for reading. What is no plain file is refused, and never waited for.
    pub fn read(&self, path: &Relative) -> io::Result<File> {
        self.open_file(path, OFlags::RDONLY)
    }

    /// The file `path` for writing, made where it is not there, for the owner only.
    pub fn write(&self, path: &Relative) -> io::Result<File> {
        self.open_file(path, OFlags::RDWR | OFlags::CREATE)
    }

    /// As [`Self::write`], and for nobody else: two copies that write one file would each verify its own octets only.
    pub fn write_alone(&self, path: &Relative) -> io::Result<File> {
        let busy = || io::Error::new(io::ErrorKind::WouldBlock, "another copy is writing it");
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
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
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
        Ok(OsStr::from_bytes(target.as_bytes()).to_owned())
    }

    /// Names in the directory `path`, in order.
    pub fn names(&self, path: &Relative) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.directory(path.as_str())?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    pub fn make_directory(&self, path: &Relative) -> io::Result<()> {
        let (directory, name) = path.split();
        Ok(rustix::fs::mkdirat(self.directory(directory)?, name, Mode::RWXU)?)
    }

    /// A link at `path`, whatever link was there.
    pub fn make_link(&self, path: &Relative, target: &str) -> io::Result<()> {
        let (directory, name) = path.split();
        let directory = self.directory(directory)?;
        if let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                return Err(io::Error::other("something else than a link is there"));
            }
            rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
        }
        Ok(rustix::fs::symlinkat(target, &directory, name)?)
    }

    /// Gives the file `from` the name `to`, which stands in the same directory.
    pub fn rename(&self, from: &Relative, to: &Relative) -> io::Result<()> {
        let (directory, name) = to.split();
        let directory = self.directory(directory)?;
        rustix::fs::renameat(&directory, from.split().1, &directory, name)?;
        Ok(())
    }

    pub fn remove(&self, path: &Relative, is_directory: bool) -> io::Result<()> {
        let (directory, name) = path.split();
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        Ok(rustix::fs::unlinkat(self.directory(directory)?, name, flags)?)
    }

    /// Sets permissions and time of the directory `path`.
    pub fn finish_directory(&self, path: &Relative, mode: u32, mtime_ns: i64) -> io::Result<()> {
        finish(&self.directory(path.as_str())?, mode, mtime_ns)
    }
}

/// Sets permissions, without the bits that lend rights, and the time of last change.
pub fn finish(fd: &impl std::os::fd::AsFd, mode: u32, mtime_ns: i64) -> io::Result<()> {
    rustix::fs::fchmod(fd, Mode::from_raw_mode(mode & 0o777))?;
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let changed =
        Timespec { tv_sec: mtime_ns.div_euclid(1_000_000_000), tv_nsec: mtime_ns.rem_euclid(1_000_000_000) };
    Ok(rustix::fs::futimens(fd, &Timestamps { last_access: omit, last_modification: changed })?)
}

/// Time of last change, ns since 1970, as far as 64 bits go (the year 2262).
pub fn mtime_ns(stat: &Stat) -> i64 {
    stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64)
}

pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Hashes the next `length_octets` of `file`; `None` where there are fewer.
pub fn hash_prefix(file: &mut File, length_octets: u64) -> io::Result<Option<blake3::Hasher>> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; LENGTH_MAX];
    let mut left_octets = length_octets;
    while left_octets > 0 {
        let take = buffer.len().min(usize::try_from(left_octets).unwrap_or(usize::MAX));
        match file.read(&mut buffer[..take])? {
            0 => return Ok(None),
            count => {
                hasher.update(&buffer[..count]);
                left_octets -= count as u64;
            }
        }
    }
    Ok(Some(hasher))
}
