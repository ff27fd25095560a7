//! A file that appears whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Links followed from a destination's name: as many as Linux follows (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// Temporary names tried: as many as a process may have writers of one file finish at once.
const NAMES_MAX: usize = 1_000;

/// A file that takes its destination's name only on [`AtomicFile::commit`]; dropped before that, it
/// leaves nothing behind.
///
/// Linux keeps a file without a name until then, so that a process that is killed leaves nothing either;
/// where that is not possible (other systems, file systems without O_TMPFILE) the file is
/// `NAME.tmp-PID` beside its destination.
///
/// A destination that is there and is no regular file (a device, a pipe, a terminal) stays as it is:
/// bytes go into it at once. Symbolic links are followed and stay.
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
    /// In a file with a name of its own.
    Named { temporary: Temporary, destination: PathBuf },
}

impl AtomicFile {
    /// Opens a file that `destination` will name, or `destination` itself where it is no regular file.
    ///
    /// # Errors
    /// When it cannot be created: no such directory, no permission, a directory of that name, links in a
    /// circle.
    pub fn create(destination: &Path) -> io::Result<Self> {
        Self::create_with(destination, unnamed::open)
    }

    /// Opens a file that `destination` will name, if it can with `open_unnamed`, which opens one without a name in a
    /// directory.
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
            // Any other obstacle, such as permissions, hinders a name too.
            Err(_) => {
                let (file, temporary) = Temporary::create(&destination)?;
                (file, CommitTarget::Named { temporary, destination })
            }
        };
        Ok(Self { file: BufWriter::new(file), place })
    }

    /// Flushes and takes the destination's name.
    ///
    /// # Errors
    /// When either fails; nothing is left behind then.
    pub fn commit(self) -> io::Result<()> {
        let Self { file, place } = self;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        match place {
            CommitTarget::Destination => Ok(()),
            CommitTarget::Named { temporary, destination } => temporary.rename_to(&destination),
            CommitTarget::Unnamed { destination } => match unnamed::link(&file, &destination) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A link replaces nothing; a new name can.
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

/// Target of `path` when the links it names are followed, the last of which may point nowhere yet.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(target) => path = directory_of(&path).join(target),
            // No link, or nothing there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file `NAME.tmp-PID`, or `NAME.tmp-PID-NUMBER`, that is removed unless it is renamed.
#[derive(Debug)]
struct Temporary {
    /// `None` once it is renamed.
    path: Option<PathBuf>,
}

impl Temporary {
    /// Opens one beside `destination`.
    fn create(destination: &Path) -> io::Result<(File, Self)> {
        // create_new: never through a link that another process placed there.
        Self::make(destination, |name| OpenOptions::new().write(true).create_new(true).open(name))
    }

    /// Lets `make` make one under the first name beside `destination` that is not taken.
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
                made => return Ok((made?, Self { path: Some(path) })),
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
            // No caller is left to tell if this fails.
            let _ = fs::remove_file(path);
        }
    }
}

/// Files without a name: O_TMPFILE of open(2).
#[cfg(target_os = "linux")]
pub(super) mod unnamed {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::path::{Path, PathBuf};

    use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
    use nix::unistd::linkat;

    /// Opens one in the file system of `directory`.
    pub fn open(directory: &Path) -> io::Result<File> {
        let file = OpenOptions::new().write(true).custom_flags(OFlag::O_TMPFILE.bits()).open(directory)?;
        // Without /proc there would be no way to name it.
        fs::metadata(through_proc(&file))?;
        Ok(file)
    }

    /// Names it.
    pub fn link(file: &File, name: &Path) -> io::Result<()> {
        Ok(linkat(AT_FDCWD, &through_proc(file), AT_FDCWD, name, AtFlags::AT_SYMLINK_FOLLOW)?)
    }

    fn through_proc(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

/// Other systems have none.
#[cfg(not(target_os = "linux"))]
pub(super) mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    /// Opens none.
    pub fn open(_directory: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Names none.
    pub fn link(_file: &File, _name: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
