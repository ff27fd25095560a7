//! Executes a live run in a copy of this process, for a program that continues afterwards.
//!
//! A run changes the process in which it is executed: its network, signals and threads. In a copy, all of these changes
//! end with the run. The copy dies when this process dies, and so do both sides.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

use crate::error::LiveError;
use crate::report::Report;
use crate::shell::{self, Options};

/// Message from the copy: its report, or an error.
type RunResult = Result<Report, String>;

/// Runs the command through the hop until it ends, without changing this process.
///
/// # Errors
/// If this process has more than one thread; also the errors of [`shell::run`].
pub fn run(options: Options) -> Result<Report, LiveError> {
    options.check()?;
    let failed = |said: String| LiveError::Setup { what: "a live run".to_owned(), said };
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads != 1 {
        return Err(failed(format!(
            "this process has {threads} threads, and only one with one can be copied"
        )));
    }
    let (mut ours, theirs) = UnixStream::pair().map_err(LiveError::io("socketpair"))?;
    let parent = getpid();
    // SAFETY: there is one thread, so no lock in the copy stays held for ever.
    let copy = match unsafe { fork() }.map_err(|error| failed(error.to_string()))? {
        ForkResult::Child => {
            drop(ours);
            let code = catch_unwind(AssertUnwindSafe(|| in_the_copy(options, theirs, parent))).unwrap_or(1);
            // SAFETY: ends this process without running the exit handlers that the parent registered.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => Copy(child),
    };
    drop(theirs);
    let mut told = Vec::new();
    ours.read_to_end(&mut told).map_err(LiveError::io("a live run"))?;
    drop(copy);
    match serde_json::from_slice::<RunResult>(&told) {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(said)) => Err(failed(said)),
        Err(_) => Err(failed("ended without a report".to_owned())),
    }
}

/// Executes the run and sends its result. Returns the exit status of the copy.
fn in_the_copy(options: Options, mut parent_reads: UnixStream, parent: Pid) -> i32 {
    // A parent that died before this call does not cause a signal.
    if prctl::set_pdeathsig(Signal::SIGKILL).is_err() || getppid() != parent {
        return 1;
    }
    let told: RunResult = shell::run(options).map_err(|error| error.to_string());
    let told = serde_json::to_vec(&told).unwrap_or_default();
    i32::from(parent_reads.write_all(&told).is_err())
}

/// The copy, which is killed when this value is dropped.
struct Copy(Pid);

impl Drop for Copy {
    fn drop(&mut self) {
        // A copy that has sent its result has nothing left to do.
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}
