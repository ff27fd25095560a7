//! Signals and the terminal while a command of the user runs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getpgid, getpgrp, getppid, getsid, tcgetpgrp, tcsetpgrp};

use crate::error::LiveError;

/// Signals that are the command's business, not ours.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Takes them over for this thread and all that come after it. Commands start with none blocked.
    ///
    /// # Errors
    /// Where the kernel does not give a file for them.
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

    /// The next signal for the command. A terminal sends its signals to the command too.
    pub fn to_pass_on(&self) -> Option<i32> {
        let info = self.0.read_signal().ok().flatten()?;
        (info.ssi_code != libc::SI_KERNEL).then_some(info.ssi_signo as i32)
    }
}

/// Readable when there is one.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whose terminal standard input is when a command begins.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Our process group was the one in the foreground.
    ours: bool,
}

impl Terminal {
    /// Looks now.
    pub fn look() -> Self {
        Self { ours: foreground() == Some(getpgrp()) }
    }

    /// Takes the terminal back from an interactive shell, which leaves it to a process group that is gone. The program that had
    /// it otherwise keeps it: the shell that started us, when we are in its background.
    pub fn take_back(self) {
        let Some(group) = foreground().filter(|_| self.ours) else { return };
        let starters = [Some(getppid()), getsid(None).ok()];
        if starters.into_iter().flatten().any(|starter| getpgid(Some(starter)) == Ok(group)) {
            return;
        }
        let mut set = SigSet::empty();
        set.add(Signal::SIGTTOU);
        // Where it cannot be had back, the process that started us takes it.
        if set.thread_block().is_ok() {
            let _ = tcsetpgrp(io::stdin().as_fd(), getpgrp());
            let _ = set.thread_unblock();
        }
    }
}

/// The process group in the foreground of the terminal that standard input is; `None` where it is none.
fn foreground() -> Option<Pid> {
    tcgetpgrp(io::stdin().as_fd()).ok()
}

/// Whether another process group has the terminal, such as that of an interactive shell.
pub fn somebody_else_has_the_terminal() -> bool {
    foreground().is_some_and(|group| group != getpgrp())
}
