//! Signals and the terminal while a command of the user runs.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};

use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{getpgrp, tcsetpgrp};

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

    /// The next signal for the command. What a terminal sends, it sends to the command too.
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

/// An interactive shell leaves the terminal to a process group that is gone.
pub fn take_the_terminal_back() {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return;
    }
    let mut set = SigSet::empty();
    set.add(Signal::SIGTTOU);
    // Where it cannot be had back, whoever started us takes it.
    if set.thread_block().is_ok() {
        let _ = tcsetpgrp(stdin.as_fd(), getpgrp());
        let _ = set.thread_unblock();
    }
}
