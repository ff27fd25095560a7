//! ICMP errors for datagrams that were sent (ICMP and ICMPv6: RFC 1122 section 4.1.3.3, RFC 4443 section 3.1): no
//! program listens at a port, or there is no route to a host.
//!
//! Linux keeps them in a separate queue of the socket (`IP_RECVERR`), with the datagram's address and its first bytes,
//! which identify the connection. They are only hints, because any host that has seen a datagram can forge one.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{self, sock_extended_err};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};

/// Bytes of a datagram that are needed: its kind and its connection number.
const BEGINS: usize = 5;

/// Bytes for control messages other than the error: addresses, marks and lengths, a few dozen bytes.
const OTHERS: usize = 512;

/// A datagram that was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpError {
    pub to: SocketAddr,
    pub begins: [u8; BEGINS],
    /// The host reports that no program listens; otherwise a router reports that the host cannot be reached.
    pub by_host: bool,
}

/// Makes the system queue ICMP errors for this socket's datagrams.
///
/// # Errors
/// If the system does not support it.
pub(crate) fn enable(socket: &UdpSocket) -> io::Result<()> {
    if socket.local_addr()?.is_ipv6() {
        setsockopt(socket, sockopt::Ipv6RecvErr, &true)?;
    }
    // Also for the IPv4 datagrams of a dual-stack socket.
    Ok(setsockopt(socket, sockopt::Ipv4RecvErr, &true)?)
}

/// Returns the next queued error; `None` if it does not concern the other end.
///
/// # Errors
/// `WouldBlock` if the queue is empty.
pub(crate) fn next(socket: &UdpSocket) -> io::Result<Option<IcmpError>> {
    let mut begins = [0; BEGINS];
    let mut slices = [IoSliceMut::new(&mut begins)];
    // The error with its sender's address; the system puts the ancillary data that the socket asked for in front of it.
    let mut space = cmsg_space!(sock_extended_err, libc::sockaddr_in6, [u8; OTHERS]);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(&mut space), flags)?;
    let to = message.address.and_then(|address| socket_addr(&address));
    let by_host = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
            by_host(&error)
        }
        _ => None,
    });
    let len = message.bytes;
    Ok(to.zip(by_host).filter(|_| len == BEGINS).map(|(to, by_host)| IcmpError { to, begins, by_host }))
}

/// Whether the host itself reports the error; `None` for errors of the local system, and for packets that are too long.
fn by_host(error: &sock_extended_err) -> Option<bool> {
    if !matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6) {
        return None;
    }
    match Errno::from_raw(error.ee_errno as i32) {
        Errno::ECONNREFUSED => Some(true),
        Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN | Errno::ENONET => Some(false),
        _ => None,
    }
}

fn socket_addr(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::from((v6.ip(), v6.port()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Socket;
    use std::net::Ipv4Addr;
    use tokio::io::Interest;

    #[tokio::test]
    async fn a_port_where_nobody_listens_is_told_with_the_datagram() {
        let gone = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        // An endpoint's socket asks for further ancillary data.
        let socket = Socket::bind_all((Ipv4Addr::LOCALHOST, 0).into(), 1, true).unwrap().remove(0).socket;
        assert_eq!(next(socket.get_ref()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        socket.get_ref().send_to(b"1234567", gone).unwrap();
        drop(socket.ready(Interest::ERROR).await.unwrap());
        let error = IcmpError { to: gone, begins: *b"12345", by_host: true };
        assert_eq!(next(socket.get_ref()).unwrap(), Some(error));
        assert_eq!(next(socket.get_ref()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
