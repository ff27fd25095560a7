//! Network namespaces by name.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use tacit_hop::LiveError;

/// Directory in which `ip netns` stores names (ip-netns(8)).
const NAMED: &str = "/run/netns";

/// The cookie by which eBPF programs identify the network namespace `name`: a name from `ip netns`, or a path such as
/// `/proc/PID/ns/net`.
///
/// # Errors
/// If the namespace does not exist, or must not be entered.
pub fn cookie_of(name: &str) -> Result<u64, LiveError> {
    let path = if name.contains('/') { PathBuf::from(name) } else { Path::new(NAMED).join(name) };
    let file = File::open(&path).map_err(|error| no_namespace(&path, error))?;
    // A separate thread, because a namespace is left by ending the thread that entered it.
    let entered = std::thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET)?;
        own_cookie()
    });
    let entered = entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    entered.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => no_namespace(&path, "it is no network namespace"),
        _ => crate::refused("entering a network namespace", error, "run as root"),
    })
}

fn no_namespace(path: &Path, what: impl Display) -> LiveError {
    LiveError::Argument {
        argument: "--netns",
        what: format!("{}: {what}", path.display()),
        allowed: "a name that ip netns lists, or a path such as /proc/PID/ns/net".to_owned(),
    }
}

/// The cookie of this thread's namespace (SO_NETNS_COOKIE, Linux 5.14).
fn own_cookie() -> io::Result<u64> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut cookie: u64 = 0;
    let mut len = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into a u64 that lives until then.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut len,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_an_argument_that_cannot_be_used() {
        let error = cookie_of("there-is-no-such-namespace").unwrap_err();
        assert!(matches!(error, LiveError::Argument { argument: "--netns", .. }), "{error}");
        // Entering it takes no rights, because the kernel looks at its kind first.
        let error = cookie_of("/proc/self/ns/mnt").unwrap_err();
        assert!(error.to_string().contains("no network namespace"), "{error}");
    }

    #[test]
    fn every_namespace_has_a_cookie() {
        assert_ne!(own_cookie().unwrap(), 0);
    }
}
