//! Control groups that determine whose sockets use the congestion control.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, fstatfs};
use tacit_hop::LiveError;

/// Prefix of the names of groups created by `tacit rre run`.
const PREFIX: &str = "tacit-rre-";
/// Maximum number of processes with the same PID, each in its own PID namespace, that have a group at the same time.
const SAME_NUMBER_MAX: u32 = 1_000;
/// Interval between checks whether a group is empty, and the maximum number of checks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const LOOKS_MAX: u32 = 2_000;

/// The mount point of cgroup2.
///
/// # Errors
/// If it is not mounted.
pub fn root() -> Result<PathBuf, LiveError> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(LiveError::io("/proc/self/mounts"))?;
    // Something else may have been mounted over it.
    let mounted = mounts_of_cgroup2(&mounts).find(|path| open(path).is_ok());
    mounted.ok_or_else(|| {
        crate::refused(
            "cgroup2 is not mounted",
            io::Error::from(io::ErrorKind::NotFound),
            "mount it with: mount -t cgroup2 none /sys/fs/cgroup",
        )
    })
}

fn mounts_of_cgroup2(mounts: &str) -> impl Iterator<Item = PathBuf> {
    mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let path = words.next()?;
        // The kernel writes a space as an octal escape.
        (words.next()? == "cgroup2").then(|| PathBuf::from(path.replace("\\040", " ")))
    })
}

/// Opens a control group.
///
/// # Errors
/// If `path` is not in cgroup2.
pub fn open(path: &Path) -> Result<File, LiveError> {
    let bad = |what: String| LiveError::Argument {
        argument: "--cgroup",
        what: format!("{}: {what}", path.display()),
        allowed: "a directory of cgroup2, such as /sys/fs/cgroup/system.slice/nginx.service".to_owned(),
    };
    let directory = File::open(path).map_err(|error| bad(error.to_string()))?;
    match fstatfs(&directory) {
        Ok(found) if found.filesystem_type() == CGROUP2_SUPER_MAGIC => Ok(directory),
        Ok(_) => Err(bad("is no control group".to_owned())),
        Err(error) => Err(bad(error.to_string())),
    }
}

/// The group of this process.
fn own_group() -> Result<PathBuf, LiveError> {
    let file = "/proc/self/cgroup";
    let groups = fs::read_to_string(file).map_err(LiveError::io(file))?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = root()?;
    let group = root.join(path);
    // The group of a process that was moved out of its cgroup namespace has no path here.
    Ok(if group.is_dir() { group } else { root })
}

/// A control group for a command. When this value is dropped or this process dies, the processes in the group are
/// killed and the group is removed.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    /// Locked while the group is in use. Its watcher shares the lock through an inherited descriptor.
    directory: Flock<File>,
    /// Removes the group when its standard input ends, which happens when this process ends.
    watcher: Child,
}

impl Group {
    /// Creates a group below that of this process, and removes abandoned groups.
    ///
    /// # Errors
    /// If the kernel does not permit it.
    pub fn make() -> Result<Self, LiveError> {
        let parent = own_group()?;
        remove_abandoned(&parent);
        let path = Self::make_directory(&parent)?;
        let locked = open(&path).and_then(|directory| {
            Flock::lock(directory, FlockArg::LockSharedNonblock).map_err(|(_, error)| LiveError::Io {
                what: path.display().to_string(),
                source: error.into(),
            })
        });
        let started = locked.and_then(|directory| Ok((start_watcher(&path)?, directory)));
        match started {
            Ok((watcher, directory)) => Ok(Self { path, directory, watcher }),
            Err(error) => {
                // The group is still empty.
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Creates a directory for this process alone. If a process in another PID namespace has the same PID, a counter is
    /// appended.
    fn make_directory(parent: &Path) -> Result<PathBuf, LiveError> {
        let number = std::process::id();
        let names = std::iter::once(format!("{PREFIX}{number}"))
            .chain((2..=SAME_NUMBER_MAX).map(|more| format!("{PREFIX}{number}-{more}")));
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for name in names {
            let path = parent.join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(path),
                Err(error) => last = error,
            }
            if last.kind() != io::ErrorKind::AlreadyExists {
                break;
            }
        }
        let what = format!("cannot make a control group in {}", parent.display());
        Err(crate::refused(&what, last, "run as root"))
    }

    /// The directory of the group.
    pub fn directory(&self) -> &File {
        &self.directory
    }

    /// The file to which a process writes to enter the group.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn door(&self) -> Result<File, LiveError> {
        let path = self.path.join("cgroup.procs");
        File::options().write(true).open(&path).map_err(LiveError::io(&path.display().to_string()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The watcher waits for the end of its standard input.
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// Starts this program as `tacit rre watch PATH` in a separate process group, so that a signal that ends this process
/// does not reach it.
fn start_watcher(path: &Path) -> Result<Child, LiveError> {
    use std::os::unix::process::CommandExt as _;
    let mut watcher = Command::new("/proc/self/exe");
    watcher.arg("rre").arg("watch").arg(path).process_group(0);
    watcher.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watcher = watcher.spawn().map_err(LiveError::io("a watcher"))?;
    // The watcher sends one byte when it is ready. Without the byte it has failed.
    let mut ready = [0];
    let mut answer = watcher.stdout.take();
    match answer.as_mut().map(|answer| answer.read_exact(&mut ready)) {
        Some(Ok(())) => Ok(watcher),
        _ => {
            drop(watcher.stdin.take());
            let _ = watcher.wait();
            Err(LiveError::Setup { what: "a watcher".to_owned(), reason: "did not start".to_owned() })
        }
    }
}

/// The watcher: waits until its standard input ends, then kills the processes in the group and removes it.
///
/// # Errors
/// If the group cannot be removed.
pub fn watch(path: &Path) -> Result<(), LiveError> {
    use std::io::Write as _;
    // The watcher may be called by anyone, and must only kill groups created by `Group`.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with(PREFIX) {
        return Err(LiveError::Setup { what: path.display().to_string(), reason: "is not ours".to_owned() });
    }
    let directory = open(path)?;
    let _lock = Flock::lock(directory, FlockArg::LockSharedNonblock)
        .map_err(|(_, error)| LiveError::Io { what: path.display().to_string(), source: error.into() })?;
    let mut out = io::stdout();
    let _ = out.write_all(b".").and_then(|()| out.flush());
    let mut input = Vec::new();
    let _ = io::stdin().read_to_end(&mut input);
    kill_and_remove(path)
}

fn kill_and_remove(path: &Path) -> Result<(), LiveError> {
    let mut last = Ok(());
    for _ in 0..LOOKS_MAX {
        // Requires Linux 5.14. If a process cannot be killed, the code below reports it.
        let _ = fs::write(path.join("cgroup.kill"), "1");
        remove_groups_below(path);
        last = fs::remove_dir(path);
        match &last {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => std::thread::park_timeout(LOOK_EVERY),
        }
    }
    last.map_err(LiveError::io(&path.display().to_string()))
}

/// Commands may create their own groups.
fn remove_groups_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups_below(&entry.path());
            // If a process is still in the group, removing the parent fails.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Removes groups below that of this process whose owner and watcher were both killed, as happens when their PID
/// namespace ends.
pub fn remove_abandoned_groups() {
    if let Ok(parent) = own_group() {
        remove_abandoned(&parent);
    }
}

/// Removes groups whose owner and watcher were both killed, unless a process still runs in them.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && let Ok(directory) = File::open(entry.path())
            && let Ok(_lock) = Flock::lock(directory, FlockArg::LockExclusiveNonblock)
        {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_cgroup2_are_found_among_others() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/a\\040b cgroup2 rw 0 0\n";
        assert_eq!(mounts_of_cgroup2(mounts).collect::<Vec<_>>(), [PathBuf::from("/sys/fs/a b")]);
    }

    #[test]
    fn a_directory_elsewhere_is_no_control_group() {
        let error = open(Path::new("/proc")).unwrap_err().to_string();
        assert!(error.starts_with("--cgroup: /proc: is no control group; allowed: "), "{error}");
    }

    #[test]
    fn a_watcher_takes_no_group_that_is_not_ours() {
        assert!(watch(Path::new("/sys/fs/cgroup")).is_err());
    }
}
