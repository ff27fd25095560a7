//! The counters of running thinners, for `tacit thin status`. Each listens at a socket with an abstract name, which its
//! process takes along.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use serde::{Deserialize, Serialize};

use super::Counters;
use crate::error::LiveError;

/// Beginning of the names of the sockets; the device follows.
const PREFIX: &str = "tacit-thin-";
/// Longest answer that is read, in bytes.
const ANSWER_MAX: u64 = 4_096;
/// How long an answer may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// A thinner of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Its device.
    pub device: String,
    /// Its counters.
    pub counters: Counters,
}

/// Answers with the counters.
#[derive(Debug)]
pub struct Socket(UnixListener);

fn name_of(device: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{PREFIX}{device}"))
}

impl Socket {
    /// For the thinner of `device`.
    ///
    /// # Errors
    /// If there is one already.
    pub fn listen(device: &str) -> Result<Self, LiveError> {
        let listener = name_of(device).and_then(|name| UnixListener::bind_addr(&name));
        let listener = listener.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => LiveError::Argument {
                argument: "DEVICE",
                what: format!("{device} is thinned already"),
                allowed: "one `tacit thin` for each device".to_owned(),
            },
            _ => LiveError::Io { what: "the socket of tacit thin status".to_owned(), source: error },
        })?;
        listener.set_nonblocking(true).map_err(LiveError::io("the socket of tacit thin status"))?;
        Ok(Self(listener))
    }

    /// Answers one question, if there is one. What fails concerns only the one that asks.
    pub fn answer(&self, counters: &Counters) {
        if let Ok((mut asks, _)) = self.0.accept() {
            let text = serde_json::to_string(counters).unwrap_or_default();
            let _ = asks.set_nonblocking(true).and_then(|()| asks.write_all(text.as_bytes()));
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The thinners of this network namespace, by device. One that has just ended is left out.
///
/// # Errors
/// If the kernel does not list its sockets.
pub fn running() -> Result<Vec<Running>, LiveError> {
    let list = "/proc/net/unix";
    let text = std::fs::read_to_string(list).map_err(LiveError::io(list))?;
    let mut devices = devices(&text);
    devices.sort_unstable();
    devices.dedup();
    Ok(devices.into_iter().filter_map(|device| query(device).ok()).collect())
}

/// The devices in the kernel's list of sockets.
fn devices(list: &str) -> Vec<&str> {
    let names = list.lines().filter_map(|line| line.split_whitespace().next_back());
    names.filter_map(|name| name.strip_prefix('@')?.strip_prefix(PREFIX)).collect()
}

fn query(device: &str) -> io::Result<Running> {
    let stream = UnixStream::connect_addr(&name_of(device)?)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut text)?;
    Ok(Running { device: device.to_owned(), counters: serde_json::from_str(&text)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinners_are_found_by_their_names() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0: 00000002 00000000 00010000 0001 01 17 @tacit-thin-wwan0\n\
                    0: 00000002 00000000 00010000 0001 01 18 /run/tacit-thin-no\n\
                    0: 00000002 00000000 00010000 0001 01 19\n";
        assert_eq!(devices(list), ["wwan0"]);
    }

    #[test]
    fn a_thinner_tells_its_counters_and_is_alone() {
        let device = format!("test-{}", std::process::id());
        let socket = Socket::listen(&device).unwrap();
        let again = Socket::listen(&device).unwrap_err().to_string();
        assert!(again.contains("is thinned already"), "{again}");
        let counters = Counters { packets: 7, acks: 6, dropped_acks: 5, ..Counters::default() };
        let asks = std::thread::spawn({
            let device = device.clone();
            move || query(&device)
        });
        while !asks.is_finished() {
            socket.answer(&counters);
            std::thread::yield_now();
        }
        assert_eq!(asks.join().unwrap().unwrap(), Running { device, counters });
    }
}
