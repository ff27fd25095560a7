//! Control groups: whose sockets use the control.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, fstatfs};
use tacit_live::LiveError;

/// Names of the groups that `tacit rre run` makes begin with this.
const PREFIX: &str = "tacit-rre-";
/// Most processes of one number, each in its PID namespace, that have a group at the same time.
const SAME_NUMBER_MAX: u32 = 1_000;
/// How often a group is looked at until it is empty, and how many times.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const LOOKS_MAX: u32 = 2_000;

/// Where cgroup2 is mounted.
///
/// # Errors
/// Where it is not.
pub fn root() -> Result<PathBuf, LiveError> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(LiveError::io("/proc/self/mounts"))?;
    // Something else may have been mounted over it since.
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
        // The kernel writes a blank as an octal escape.
        (words.next()? == "cgroup2").then(|| PathBuf::from(path.replace("\\040", " ")))
    })
}

/// Opens a control group.
///
/// # Errors
/// Where `path` is none of cgroup2.
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

/// The group this process is in.
fn own() -> Result<PathBuf, LiveError> {
    let file = "/proc/self/cgroup";
    let groups = fs::read_to_string(file).map_err(LiveError::io(file))?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = root()?;
    let own = root.join(path);
    // A process moved out of its cgroup namespace is in a group that has no path in here.
    Ok(if own.is_dir() { own } else { root })
}

/// A control group made for a command. When it is dropped, or this process dies, the processes in it are killed and it
/// is removed.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    /// Held while it is in use; its watcher holds it too, as a copy.
    directory: Flock<File>,
    /// Removes it when its standard input ends, which it does with this process.
    watcher: Child,
}

impl Group {
    /// Makes one below the group that this process is in, and removes abandoned ones.
    ///
    /// # Errors
    /// Where the kernel does not let us.
    pub fn make() -> Result<Self, LiveError> {
        let parent = own()?;
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
                // It is still empty.
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// A directory of this process alone. Processes of other PID namespaces may have its number: then it counts on.
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

    /// The directory.
    pub fn directory(&self) -> &File {
        &self.directory
    }

    /// The file that a process writes to, to be in it.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub fn door(&self) -> Result<File, LiveError> {
        let path = self.path.join("cgroup.procs");
        File::options().write(true).open(&path).map_err(LiveError::io(&path.display().to_string()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The watcher waits for this.
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// Starts this very program as `tacit rre watch PATH`, in a process group of its own, so that a signal that ends this one
/// spares it.
fn start_watcher(path: &Path) -> Result<Child, LiveError> {
    use std::os::unix::process::CommandExt as _;
    let mut watcher = Command::new("/proc/self/exe");
    watcher.arg("rre").arg("watch").arg(path).process_group(0);
    watcher.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watcher = watcher.spawn().map_err(LiveError::io("a watcher"))?;
    // One byte says that it is there. Without the byte there is no watcher.
    let mut ready = [0];
    let mut answer = watcher.stdout.take();
    match answer.as_mut().map(|answer| answer.read_exact(&mut ready)) {
        Some(Ok(())) => Ok(watcher),
        _ => {
            drop(watcher.stdin.take());
            let _ = watcher.wait();
            Err(LiveError::Setup { what: "a watcher".to_owned(), said: "did not start".to_owned() })
        }
    }
}

/// The watcher: waits until its standard input ends, then kills the processes in the group and removes it.
///
/// # Errors
/// Where the group cannot be removed.
pub fn watch(path: &Path) -> Result<(), LiveError> {
    use std::io::Write as _;
    // Only groups that `Group` made may be killed, for any caller.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with(PREFIX) {
        return Err(LiveError::Setup { what: path.display().to_string(), said: "is not ours".to_owned() });
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
        // Linux 5.14. A process that cannot be killed shows below.
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

/// Commands may make groups of their own.
fn remove_groups_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups_below(&entry.path());
            // A process that is still in there shows at the parent.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Removes groups below that of this process, of which the owner and its watcher were both killed, as they are with the PID
/// namespace that they are in.
pub fn remove_abandoned_groups() {
    if let Ok(parent) = own() {
        remove_abandoned(&parent);
    }
}

/// Removes groups whose process and watcher were both killed, unless something still runs in them.
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
