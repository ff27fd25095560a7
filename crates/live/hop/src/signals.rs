//! Signals and the terminal while the user's command runs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpgid, getpgrp, getppid, getsid, tcgetpgrp, tcsetpgrp};

use crate::error::LiveError;

/// Signals that are meant for the command instead of this process.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Redirects them for this thread and for threads started later. Commands start with no signals blocked.
    ///
    /// # Errors
    /// If the kernel does not provide a file descriptor for them.
    pub fn taken_over() -> Result<Self, LiveError> {
        let failed =
            |error: nix::errno::Errno| LiveError::Io { what: "signals".to_owned(), source: error.into() };
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self(SignalFd::with_flags(&set, flags).map_err(failed)?))
    }

    /// The next signal to forward to the command. Signals from the terminal already reach the command directly.
    pub fn to_pass_on(&self) -> Option<i32> {
        let info = self.0.read_signal().ok().flatten()?;
        (info.ssi_code != libc::SI_KERNEL).then_some(info.ssi_signo as i32)
    }
}

/// Readable if there is a signal.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Ownership of the terminal on standard input when a command starts.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Our process group was in the foreground.
    ours: bool,
}

impl Terminal {
    /// Records the current state.
    pub fn look() -> Self {
        Self { ours: foreground() == Some(getpgrp()) }
    }

    /// Takes the terminal back from an interactive shell, which leaves it assigned to a process group that no longer
    /// exists. If another program owned the terminal before, it keeps it: the shell that started us, if we run in its
    /// background.
    pub fn take_back(self) {
        let Some(group) = foreground().filter(|_| self.ours) else { return };
        let starters = [Some(getppid()), getsid(None).ok()];
        if starters.into_iter().flatten().any(|starter| getpgid(Some(starter)) == Ok(group)) {
            return;
        }
        let mut set = SigSet::empty();
        set.add(Signal::SIGTTOU);
        // If this fails, the process that started us takes the terminal.
        if set.thread_block().is_ok() {
            let _ = tcsetpgrp(io::stdin().as_fd(), getpgrp());
            let _ = set.thread_unblock();
        }
    }
}

/// The foreground process group of the terminal on standard input; `None` if it is not a terminal.
fn foreground() -> Option<Pid> {
    tcgetpgrp(io::stdin().as_fd()).ok()
}

/// Whether another process group owns the terminal, such as that of an interactive shell.
pub fn somebody_else_has_the_terminal() -> bool {
    foreground().is_some_and(|group| group != getpgrp())
}
