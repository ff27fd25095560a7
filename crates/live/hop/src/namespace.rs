//! The two sides of a hop: network namespaces that exist only as long as their processes.
//!
//! A side is a child process, which is number one of a new PID namespace, in a new network and mount namespace. When it
//! dies, the kernel kills all other processes in the side and removes the namespaces. It dies when its parent dies, for
//! any reason. Therefore no cleanup is necessary, and nothing can be left behind.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, clone, unshare};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getgid, getuid};

use crate::error::LiveError;

/// Stack size of a side's first process, which needs it for its own code and a thread. Commands have separate stacks.
const STACK_BYTES: usize = 1 << 20;
/// Maximum length of an error message from a side, in bytes.
const MESSAGE_MAX: usize = 4_096;

/// The program that sets up networks (iproute2).
const IP: &str = "ip";

/// Command and environment of a side.
#[derive(Debug)]
pub struct Inside {
    /// Input for `ip -batch` once the device exists.
    pub script: String,
    /// Sysctls below `/proc/sys` with their values.
    pub sysctls: Vec<(String, String)>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Environment variables in addition to ours.
    pub environment: Vec<(String, String)>,
    /// The command's standard streams.
    pub streams: Streams,
}

/// A command's standard streams. Standard error is always ours.
#[derive(Debug)]
pub enum Streams {
    /// All are ours.
    Inherited,
    /// Standard output is redirected to our standard error.
    OutputToError,
    /// Standard input is empty. Standard output is redirected to the file, or discarded.
    Detached(Option<File>),
}

/// A running side.
#[derive(Debug)]
pub struct Side {
    process: Pid,
    control: UnixStream,
}

/// Orders to a side: one byte. The last one is followed by a signal number.
const CONFIGURE: u8 = b'c';
const START: u8 = b's';
const SIGNAL: u8 = b'k';
/// Responses from a side.
const READY: u8 = b'r';
const FAILED: u8 = b'f';
const NOT_STARTED: u8 = b'n';
const ENDED: u8 = b'e';

/// How the command of a side ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The command exited with this status, or 128 plus the number of the signal that killed it.
    Exited(u8),
    /// The side itself has died.
    Gone,
}

/// Moves this process into a separate network namespace, and into a user namespace if necessary. Must be called before
/// a second thread exists.
///
/// # Errors
/// If the kernel does not support or permit it.
pub fn leave_the_hosts_network() -> Result<(), LiveError> {
    let refused = |source: Errno| LiveError::Refused {
        what: "cannot make a network namespace".to_owned(),
        source: source.into(),
        advice: "run as root, or allow unprivileged user namespaces (tacit doctor says more)",
    };
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => Ok(()),
        Err(Errno::EPERM) => {
            let (user, group) = (getuid(), getgid());
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(refused)?;
            let write = |path: &str, text: String| fs::write(path, text).map_err(LiveError::io(path));
            write("/proc/self/setgroups", "deny".to_owned())?;
            write("/proc/self/uid_map", format!("0 {user} 1"))?;
            write("/proc/self/gid_map", format!("0 {group} 1"))
        }
        Err(error) => Err(refused(error)),
    }
}

/// Runs commands with `ip -batch`.
///
/// # Errors
/// If `ip` is missing or fails, with its message.
pub fn ip_batch(script: &str) -> Result<(), LiveError> {
    let failed = |reason: String| LiveError::Setup { what: format!("{IP} -batch"), reason };
    let started = Command::new(IP)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut ip = started.map_err(|error| failed(format!("{error}; install iproute2")))?;
    if let Some(mut stdin) = ip.stdin.take() {
        // If `ip` fails, it closes its input early. Its message is more informative.
        let _ = stdin.write_all(script.as_bytes());
    }
    let output = ip.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(failed(stderr.lines().take(3).collect::<Vec<_>>().join("; ")))
}

impl Side {
    /// Creates the namespaces of a side. `others` are descriptors of the hop that are closed in the side.
    ///
    /// Must be called before a second thread exists, because it copies the process.
    ///
    /// # Errors
    /// If the kernel does not permit it.
    pub fn make(inside: Inside, others: &[BorrowedFd<'_>]) -> Result<Self, LiveError> {
        let (control, theirs) = UnixStream::pair().map_err(LiveError::io("socketpair"))?;
        let ours = control.as_raw_fd();
        let close: Vec<_> = others.iter().map(AsRawFd::as_raw_fd).chain([ours]).collect();
        let mut stack = vec![0; STACK_BYTES];
        let mut once = Some((inside, theirs));
        let first = Box::new(|| -> isize {
            for fd in &close {
                // SAFETY: these are descriptors of the parent, copied into this process with everything
                // else; their owners in this copy are never dropped, since the process ends by _exit.
                unsafe { libc::close(*fd) };
            }
            let code = once.take().map_or(1, |(inside, control)| first_process(inside, control));
            // SAFETY: ends this process without running the exit handlers that the parent registered.
            unsafe { libc::_exit(code) }
        });
        let flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
        // SAFETY: without CLONE_VM the child has a copy of our memory, the stack included, and there is no
        // other thread that could hold a lock in it.
        let process = unsafe { clone(first, &mut stack, flags, Some(libc::SIGCHLD)) };
        let process = process.map_err(|source| LiveError::Refused {
            what: "cannot make namespaces for a side".to_owned(),
            source: source.into(),
            advice: "run as root, or allow unprivileged user namespaces (tacit doctor says more)",
        })?;
        Ok(Self { process, control })
    }

    /// PID of the side's first process, as seen by the parent.
    pub fn process(&self) -> Pid {
        self.process
    }

    /// Moves the device into the side and configures the network.
    ///
    /// # Errors
    /// If this fails, with the error message.
    pub fn configure(&mut self, device: &str) -> Result<(), LiveError> {
        ip_batch(&format!("link set dev {device} netns {}\n", self.process))?;
        self.order(&[CONFIGURE])?;
        match self.answer()? {
            (READY, _) => Ok(()),
            (_, reason) => Err(LiveError::Setup { what: "setting a side up".to_owned(), reason }),
        }
    }

    /// Starts the command.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, command: &str) -> Result<(), LiveError> {
        self.order(&[START])?;
        match self.answer()? {
            (READY, _) => Ok(()),
            (NOT_STARTED, code) => Err(LiveError::Command {
                command: command.to_owned(),
                source: io::Error::from_raw_os_error(code.parse().unwrap_or(libc::ENOENT)),
            }),
            (_, reason) => Err(LiveError::Setup { what: command.to_owned(), reason }),
        }
    }

    /// Sends a signal to the command.
    pub fn signal(&mut self, signal: i32) {
        // If the side has died, there is no command to signal.
        let _ = self.order(&[SIGNAL, signal as u8]);
    }

    /// Waits for the end of the command. Call it when [`Side::as_fd`] is readable.
    pub fn ending(&mut self) -> Ending {
        match self.answer() {
            Ok((ENDED, status)) => status.parse().map_or(Ending::Gone, Ending::Exited),
            _ => Ending::Gone,
        }
    }

    fn order(&mut self, order: &[u8]) -> Result<(), LiveError> {
        self.control.write_all(order).map_err(LiveError::io("a side of the hop"))
    }

    fn answer(&mut self) -> Result<(u8, String), LiveError> {
        read_message(&mut self.control).map_err(LiveError::io("a side of the hop"))
    }
}

impl AsFd for Side {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // All other processes of the side die with the first one.
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }
}

/// Reads a message: a kind, two bytes of length, and a text.
fn read_message(control: &mut UnixStream) -> io::Result<(u8, String)> {
    let mut head = [0; 3];
    control.read_exact(&mut head)?;
    let mut text = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
    control.read_exact(&mut text)?;
    Ok((head[0], String::from_utf8_lossy(&text).into_owned()))
}

fn write_message(control: &mut UnixStream, kind: u8, text: &str) -> io::Result<()> {
    let text = &text.as_bytes()[..text.len().min(MESSAGE_MAX)];
    let mut message = vec![kind];
    message.extend((text.len() as u16).to_be_bytes());
    message.extend(text);
    control.write_all(&message)
}

// --- Inside ---------------------------------------------------------------------------------------

/// The first process of a side. Returns its exit status.
fn first_process(inside: Inside, mut control: UnixStream) -> i32 {
    // This process, and with it the side, dies when the parent dies for any reason.
    if prctl::set_pdeathsig(Signal::SIGKILL).is_err() {
        return 1;
    }
    // If the parent died before that call, its end of the connection is closed.
    let mut order = [0];
    if control.read_exact(&mut order).is_err() || order[0] != CONFIGURE {
        return 1;
    }
    let answered = match set_up(&inside) {
        Ok(()) => write_message(&mut control, READY, ""),
        Err(error) => write_message(&mut control, FAILED, &error.to_string()),
    };
    if answered.is_err() || control.read_exact(&mut order).is_err() || order[0] != START {
        return 1;
    }
    match start_command(inside) {
        Ok(child) => {
            if write_message(&mut control, READY, "").is_err() {
                return 1;
            }
            look_after(child, control)
        }
        Err(error) => {
            let code = error.raw_os_error().unwrap_or(libc::ENOENT).to_string();
            i32::from(write_message(&mut control, NOT_STARTED, &code).is_err())
        }
    }
}

fn set_up(inside: &Inside) -> Result<(), LiveError> {
    // Mounts in this side must not propagate.
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|error| LiveError::Io { what: "mounts of a side".to_owned(), source: error.into() })?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none).map_err(|error| LiveError::Refused {
        what: "cannot mount /proc for a side".to_owned(),
        source: error.into(),
        advice: "containers that mask /proc forbid it; run outside, or with more privileges",
    })?;
    // Some programs look up devices in sysfs. Most use netlink and do not need it, so an error is ignored.
    let _ = mount(Some("sysfs"), "/sys", Some("sysfs"), flags, none);
    // Mounting sysfs has hidden the control groups, which `tacit rre run` needs inside a hop. Without root they are
    // unavailable.
    let _ = mount(Some("cgroup2"), "/sys/fs/cgroup", Some("cgroup2"), flags, none);
    for (name, value) in &inside.sysctls {
        let path = format!("/proc/sys/{name}");
        fs::write(&path, value).map_err(LiveError::io(&path))?;
    }
    ip_batch(&inside.script)
}

fn start_command(inside: Inside) -> io::Result<Pid> {
    let Some((program, arguments)) = inside.command.split_first() else {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(inside.environment);
    match inside.streams {
        Streams::Inherited => {}
        Streams::OutputToError => {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        Streams::Detached(file) => {
            command.stdin(Stdio::null());
            command.stdout(file.map_or_else(Stdio::null, Stdio::from));
        }
    }
    // SAFETY: calls nothing but sigprocmask, which is safe between fork and exec.
    unsafe { command.pre_exec(|| Ok(nix::sys::signal::SigSet::empty().thread_set_mask()?)) };
    let child = command.spawn()?;
    Ok(Pid::from_raw(child.id() as i32))
}

/// Waits for `child`, reaps orphans and forwards signals. Returns the exit status of the first process.
fn look_after(child: Pid, control: UnixStream) -> i32 {
    let Ok(mut orders) = control.try_clone() else { return 1 };
    std::thread::spawn(move || {
        let mut order = [0; 2];
        while orders.read_exact(&mut order).is_ok() {
            if let (SIGNAL, Ok(signal)) = (order[0], Signal::try_from(i32::from(order[1]))) {
                // The process may have ended in the meantime.
                let _ = kill(child, signal);
            }
        }
    });
    let mut control = control;
    loop {
        let status = match waitpid(None, None) {
            Ok(WaitStatus::Exited(process, status)) if process == child => status as u8,
            Ok(WaitStatus::Signaled(process, signal, _)) if process == child => 128 + signal as u8,
            Ok(_) | Err(Errno::EINTR) => continue,
            Err(_) => return 1,
        };
        if write_message(&mut control, ENDED, &status.to_string()).is_err() {
            return 1;
        }
        // Keeps the network up for the other side until the parent ends this process.
        loop {
            let _ = waitpid(None, None);
            nix::unistd::pause();
        }
    }
}
