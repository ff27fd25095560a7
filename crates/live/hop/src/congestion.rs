//! Congestion controls in the kernel of this machine.

use std::ffi::OsString;
use std::fs;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};

use crate::error::LiveError;

/// File with the names of those that are built in or loaded (tcp(7)).
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Requests `name` from the kernel, which loads its module if it exists and is permitted.
///
/// # Errors
/// [`LiveError::Argument`] if the kernel does not have it.
pub fn find(name: &str) -> Result<(), LiveError> {
    let asked = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .and_then(|socket| setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(name)));
    match asked {
        Err(Errno::ENOENT) => {
            let loaded = fs::read_to_string(AVAILABLE).unwrap_or_default();
            let loaded = loaded.split_whitespace().collect::<Vec<_>>().join(", ");
            Err(LiveError::Argument {
                argument: "--congestion",
                what: format!("this kernel has no {name:?}"),
                allowed: loaded,
            })
        }
        // Those that only root may set on a socket can be set on routes by any user.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reno_is_in_every_kernel_and_nothing_is_called_nope() {
        assert!(find("reno").is_ok());
        let error = find("nope").unwrap_err().to_string();
        assert!(error.starts_with("--congestion: ") && error.contains("reno"), "{error}");
    }
}
