//! Determines the owner of a TCP connection's socket with sock_diag(7).

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use nix::unistd::Uid;

/// `SOCK_DIAG_BY_FAMILY` in linux/sock_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` in linux/netlink.h.
const NLM_F_REQUEST: u16 = 1;
/// Length of `struct nlmsghdr`.
const HEADER_LEN: usize = 16;
/// Length of the request: the header and `struct inet_diag_req_v2` of linux/inet_diag.h.
const REQUEST_LEN: usize = HEADER_LEN + 56;
/// Minimum length of the response: the header and `struct inet_diag_msg`. Attributes may follow.
const ANSWER_LEN: usize = HEADER_LEN + 72;
/// Offsets in the response: `idiag_state`, `id.idiag_dport` and `idiag_uid`.
const STATE: usize = HEADER_LEN + 1;
const REMOTE_PORT: usize = HEADER_LEN + 6;
const UID: usize = HEADER_LEN + 64;
/// `INET_DIAG_NOCOOKIE`: any socket with these addresses.
const NO_COOKIE: [u8; 8] = [0xff; 8];
/// States in include/net/tcp_states.h without an owner: `TCP_TIME_WAIT` and `TCP_NEW_SYN_RECV`.
const OWNERLESS: [u8; 2] = [6, 12];

/// Finds owners of TCP sockets in one network namespace, which is that of the creating thread.
#[derive(Debug)]
pub struct SocketOwners {
    netlink: OwnedFd,
}

impl SocketOwners {
    /// For the calling thread's network; `None` if the kernel does not support it (no `CONFIG_INET_DIAG`).
    pub fn new() -> Option<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::NetlinkSockDiag;
        let netlink = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol).ok()?;
        let owners = Self { netlink };
        // A kernel without the handler answers as if the socket did not exist. Querying a socket of our own reveals
        // this.
        let known = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0));
        let known = known.or_else(|_| TcpListener::bind(("0.0.0.0", 0))).ok()?.local_addr().ok()?;
        let unconnected = SocketAddr::new(known.ip(), 0);
        (owners.uid(known, unconnected) == Ok(Some(Uid::current()))).then_some(owners)
    }

    /// The user of the socket that is connected from `local` to `remote`; `None` if there is none.
    ///
    /// # Errors
    /// If the kernel does not respond.
    pub fn uid(&self, local: SocketAddr, remote: SocketAddr) -> Result<Option<Uid>, Errno> {
        send(self.netlink.as_raw_fd(), &request(local, remote), MsgFlags::empty())?;
        // The kernel responds before send returns.
        let mut answer = [0; 512];
        let len = recv(self.netlink.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
        Ok(owner(&answer[..len], remote.port()))
    }
}

fn request(local: SocketAddr, remote: SocketAddr) -> [u8; REQUEST_LEN] {
    let family = if local.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let mut bytes = [0; REQUEST_LEN];
    let mut rest = &mut bytes[..];
    let mut put = |field: &[u8]| {
        let (place, behind) = std::mem::take(&mut rest).split_at_mut(field.len());
        place.copy_from_slice(field);
        rest = behind;
    };
    put(&(REQUEST_LEN as u32).to_ne_bytes());
    put(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(&NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and sender are not needed, because there is only one request at a time.
    put(&[0; 8]);
    // Family, protocol, no extensions, padding; all states.
    put(&[family as u8, nix::libc::IPPROTO_TCP as u8, 0, 0]);
    put(&u32::MAX.to_ne_bytes());
    put(&local.port().to_be_bytes());
    put(&remote.port().to_be_bytes());
    [local, remote].iter().for_each(|end| put(&address(end.ip())));
    // Any interface.
    put(&[0; 4]);
    put(&NO_COOKIE);
    bytes
}

/// An address in the form of `struct inet_diag_sockid`.
fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// The owner in `answer`. If there is no connection, the kernel may return a listening socket, which has no remote
/// port.
fn owner(answer: &[u8], remote_port: u16) -> Option<Uid> {
    let is_of_socket = answer.len() >= ANSWER_LEN && answer[4..6] == SOCK_DIAG_BY_FAMILY.to_ne_bytes();
    if !is_of_socket
        || answer[REMOTE_PORT..REMOTE_PORT + 2] != remote_port.to_be_bytes()
        || OWNERLESS.contains(&answer[STATE])
    {
        return None;
    }
    answer[UID..UID + 4].try_into().ok().map(|uid| Uid::from_raw(u32::from_ne_bytes(uid)))
}

/// The user at the other end of a Unix socket (`SO_PEERCRED`, unix(7)).
///
/// # Errors
/// If the kernel does not reveal it.
pub fn peer_uid(socket: &OwnedFd) -> io::Result<Uid> {
    let credentials = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials)?;
    Ok(Uid::from_raw(credentials.uid()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    fn has_owner(listener: &TcpListener) {
        let Some(owners) = SocketOwners::new() else {
            eprintln!("SKIPPED: this kernel has no sock_diag for TCP");
            return;
        };
        let server = listener.local_addr().unwrap();
        let stream = TcpStream::connect(server).unwrap();
        let (accepted, client) = listener.accept().unwrap();
        let owner = |local, remote| owners.uid(local, remote).unwrap();
        // Both ends are on this machine and belong to this user.
        assert_eq!(owner(client, server), Some(Uid::current()));
        assert_eq!(owner(server, client), Some(Uid::current()));
        // The listening socket does not own a connection, and a connection that does not exist has no owner.
        let nobody = SocketAddr::new(client.ip(), 1);
        assert_eq!(owner(server, nobody), None);
        assert_eq!(owner(nobody, server), None);
        // The end that closes first is in TIME-WAIT, which has no owner.
        drop(stream);
        drop(accepted);
        assert_eq!(owner(client, server), None);
    }

    #[test]
    fn connections_have_the_user_that_made_them() {
        has_owner(&TcpListener::bind("127.0.0.1:0").unwrap());
        match TcpListener::bind("[::1]:0") {
            Ok(listener) => has_owner(&listener),
            Err(error) => eprintln!("SKIPPED: no IPv6 on loopback: {error}"),
        }
    }

    #[test]
    fn answers_that_are_none_name_nobody() {
        assert_eq!(owner(&[], 80), None);
        assert_eq!(owner(&[0; ANSWER_LEN], 80), None);
        let mut answer = [0; ANSWER_LEN];
        answer[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        answer[REMOTE_PORT + 1] = 80;
        assert_eq!(owner(&answer, 80), Some(Uid::from_raw(0)));
        assert_eq!(owner(&answer[..ANSWER_LEN - 1], 80), None);
        answer[STATE] = OWNERLESS[0];
        assert_eq!(owner(&answer, 80), None);
    }
}
