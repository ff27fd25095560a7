//! A file that appears either complete or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Most symbolic links that are followed: the same as in Linux (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// Most temporary names that are tried: as many writers of one file may finish at the same time.
const NAMES_MAX: usize = 1_000;

/// A file that gets its destination's name only on [`AtomicFile::commit`]; if it is dropped before, nothing remains.
///
/// On Linux the file has no name until then, so that nothing remains even if the process is killed. Where that is not
/// possible (other systems, file systems without O_TMPFILE), the file is `NAME.tmp-PID` beside its destination.
///
/// An existing destination that is not a regular file (a device, a pipe, a terminal) is not replaced: bytes are written
/// to it directly. Symbolic links are followed and kept.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    place: CommitTarget,
}

/// Where the bytes are before the commit.
#[derive(Debug)]
enum CommitTarget {
    /// In the destination itself.
    Destination,
    /// In a file without a name.
    Unnamed { destination: PathBuf },
    /// In a file with a temporary name.
    Named { temporary: Temporary, destination: PathBuf },
}

impl AtomicFile {
    /// Opens a file for `destination`, or `destination` itself if it is not a regular file.
    ///
    /// # Errors
    /// If it cannot be created: no such directory, no permission, a directory of that name, or circular links.
    pub fn create(destination: &Path) -> io::Result<Self> {
        Self::create_with(destination, unnamed::open)
    }

    /// Opens a file for `destination`, if possible with `open_unnamed`, which opens an unnamed file in a directory.
    pub(super) fn create_with(
        destination: &Path,
        open_unnamed: impl FnOnce(&Path) -> io::Result<File>,
    ) -> io::Result<Self> {
        if fs::metadata(destination).is_ok_and(|there| !there.is_file()) {
            let file = OpenOptions::new().write(true).open(destination)?;
            return Ok(Self { file: BufWriter::new(file), place: CommitTarget::Destination });
        }
        let destination = without_links(destination)?;
        let (file, place) = match open_unnamed(directory_of(&destination)) {
            Ok(file) => (file, CommitTarget::Unnamed { destination }),
            // Other obstacles, such as permissions, prevent a named file as well.
            Err(_) => {
                let (file, temporary) = Temporary::create(&destination)?;
                (file, CommitTarget::Named { temporary, destination })
            }
        };
        Ok(Self { file: BufWriter::new(file), place })
    }

    /// Flushes, and gives the file its destination's name.
    ///
    /// # Errors
    /// If either fails; nothing remains then.
    pub fn commit(self) -> io::Result<()> {
        let Self { file, place } = self;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        match place {
            CommitTarget::Destination => Ok(()),
            CommitTarget::Named { temporary, destination } => temporary.rename_to(&destination),
            CommitTarget::Unnamed { destination } => match unnamed::link(&file, &destination) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A link cannot replace a file; a rename can.
                    let link = |name: &Path| unnamed::link(&file, name);
                    let ((), temporary) = Temporary::make(&destination, link)?;
                    temporary.rename_to(&destination)
                }
                linked => linked,
            },
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Target of `path` with symbolic links followed; the last link may point to a path that does not exist yet.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(target) => path = directory_of(&path).join(target),
            // Not a link, or nothing exists there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file `NAME.tmp-PID` or `NAME.tmp-PID-NUMBER`, which is removed unless it is renamed.
#[derive(Debug)]
struct Temporary {
    /// `None` after it is renamed.
    path: Option<PathBuf>,
}

impl Temporary {
    /// Opens a temporary file beside `destination`.
    fn create(destination: &Path) -> io::Result<(File, Self)> {
        // create_new never follows a link that another process has placed there.
        Self::make(destination, |name| OpenOptions::new().write(true).create_new(true).open(name))
    }

    /// Calls `make` with the first free name beside `destination`.
    fn make<T>(destination: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, Self)> {
        let name = |number: usize| {
            let mut name = destination.as_os_str().to_owned();
            name.push(format!(".tmp-{}", std::process::id()));
            if number > 0 {
                name.push(format!("-{number}"));
            }
            PathBuf::from(name)
        };
        for path in (0..NAMES_MAX).map(name) {
            match make(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return Ok((created?, Self { path: Some(path) })),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn rename_to(mut self, destination: &Path) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        fs::rename(path, destination)?;
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // Errors cannot be reported here.
            let _ = fs::remove_file(path);
        }
    }
}

/// Unnamed files: O_TMPFILE of open(2).
#[cfg(target_os = "linux")]
pub(super) mod unnamed {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::path::{Path, PathBuf};

    use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
    use nix::unistd::linkat;

    /// Opens an unnamed file in the file system of `directory`.
    pub fn open(directory: &Path) -> io::Result<File> {
        let file = OpenOptions::new().write(true).custom_flags(OFlag::O_TMPFILE.bits()).open(directory)?;
        // It can only be named through /proc.
        fs::metadata(through_proc(&file))?;
        Ok(file)
    }

    /// Gives it a name.
    pub fn link(file: &File, name: &Path) -> io::Result<()> {
        Ok(linkat(AT_FDCWD, &through_proc(file), AT_FDCWD, name, AtFlags::AT_SYMLINK_FOLLOW)?)
    }

    fn through_proc(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

/// Other systems do not have unnamed files.
#[cfg(not(target_os = "linux"))]
pub(super) mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    /// Always fails.
    pub fn open(_directory: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Always fails.
    pub fn link(_file: &File, _name: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
