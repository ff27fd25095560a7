//! Runs a command whose sockets use the congestion control.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, write};
use tacit_hop::LiveError;
use tacit_hop::signals::{Signals, Terminal};

use crate::Settings;
use crate::cgroup::{self, Group};
use crate::loaded::Control;
use crate::namespace::cookie_of;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status, or 128 plus the number of the signal that killed it.
    pub status: u8,
    /// Number of its sockets that the kernel did not permit to use the congestion control.
    pub refused_sockets: u64,
}

/// Runs `command`. Only its sockets and those of its children use the congestion control. `target` has the meaning of
/// [`Settings::target`].
///
/// # Errors
/// If this machine does not support it, or the command cannot be started.
pub fn run(command: &[OsString], target: Option<Duration>) -> Result<Ended, LiveError> {
    let terminal = Terminal::look();
    let signals = Signals::taken_over()?;
    let mut control = Control::load(Settings { target, ..Settings::default() })?;
    let group = Group::make()?;
    control.use_in(group.directory())?;
    let child = start(command, &group)?;
    let status = until_it_ends(child, &signals)?;
    terminal.take_back();
    let status = status.code().map_or(128 + status.signal().unwrap_or_default(), |code| code) as u8;
    Ok(Ended { status, refused_sockets: control.refused_sockets() })
}

fn start(command: &[OsString], group: &Group) -> Result<Child, LiveError> {
    let failed = |source: io::Error| LiveError::Command {
        command: command.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        source,
    };
    let (program, arguments) = command.split_first().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let door = group.door()?;
    let mut command = Command::new(program);
    command.args(arguments);
    let enter = move || {
        write(&door, b"0")?;
        Ok(SigSet::empty().thread_set_mask()?)
    };
    // SAFETY: calls nothing but write and sigprocmask, which are safe between fork and exec.
    unsafe { command.pre_exec(enter) };
    command.spawn().map_err(failed)
}

/// Forwards signals until the command ends.
fn until_it_ends(mut child: Child, signals: &Signals) -> Result<ExitStatus, LiveError> {
    let process = Pid::from_raw(child.id() as i32);
    let (ended, end) = UnixStream::pair().map_err(LiveError::io("socketpair"))?;
    let waiting = std::thread::spawn(move || {
        let status = child.wait();
        drop(end);
        status
    });
    loop {
        let mut fds =
            [PollFd::new(ended.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(LiveError::Io { what: "poll".to_owned(), source: error.into() }),
        }
        let [has_ended, signalled] = fds.map(|fd| fd.any().unwrap_or(true));
        if has_ended {
            let status = waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            return status.map_err(LiveError::io("waiting for the command"));
        }
        if signalled
            && let Some(signal) = signals.to_pass_on()
            && let Ok(signal) = Signal::try_from(signal)
        {
            // It may have ended in the meantime.
            let _ = kill(process, signal);
        }
    }
}

/// The new sockets that should use the congestion control.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Those of processes in a control group and in groups below it.
    Cgroup(&'a Path),
    /// Those in a network namespace.
    Namespace(&'a str),
}

/// Loads the congestion control for `whose` sockets, calls `attached` with its name, and keeps it until a signal
/// requests to stop. `target` has the meaning of [`Settings::target`].
///
/// # Errors
/// If this machine does not support it.
pub fn attach(
    whose: Scope<'_>,
    target: Option<Duration>,
    attached: impl FnOnce(&str),
) -> Result<(), LiveError> {
    let signals = Signals::taken_over()?;
    let (directory, cookie) = match whose {
        Scope::Cgroup(path) => (cgroup::open(path)?, None),
        // The root group contains the sockets of every namespace; the program checks the namespace.
        Scope::Namespace(name) => {
            let cookie = cookie_of(name)?;
            (cgroup::open(&cgroup::root()?)?, Some(cookie))
        }
    };
    let mut control = Control::load(Settings { only_namespace_cookie: cookie, target })?;
    control.use_in(&directory)?;
    attached(control.name());
    let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    while poll(&mut fds, PollTimeout::NONE) == Err(Errno::EINTR) {}
    Ok(())
}
