//! Programs that end with this one.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{getpid, getppid};

/// Makes the kernel kill the process of `command` when the thread that starts it ends, for any reason.
pub fn end_with_this(command: &mut Command) -> &mut Command {
    let parent = getpid();
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // A parent that died before that call causes no signal.
            if getppid() == parent { Ok(()) } else { Err(io::Error::from(Errno::ESRCH)) }
        })
    }
}
