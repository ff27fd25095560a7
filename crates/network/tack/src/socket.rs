//! UDP sockets, with the system's support for batches of datagrams.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::icmp;
use crate::radio;
use crate::shard;

/// Socket buffer requested for each direction: 20 ms at 1.6 Gb/s. Ours; the system may grant less.
pub(crate) const SOCKET_BUFFER: usize = 4 << 20;

/// A UDP socket of an endpoint that sends and receives batches.
pub(crate) struct Socket {
    /// The runtime watches only whether it can be read. If it watched for room too, the system would wake the driver for each
    /// datagram that has left.
    pub socket: AsyncFd<UdpSocket>,
    pub state: UdpSocketState,
}

impl Socket {
    /// Binds the sockets of an endpoint at `address`; the kernel delivers each datagram to its shard.
    pub fn bind_all(address: SocketAddr, shards: u16, is_client: bool) -> io::Result<Vec<Self>> {
        // A client's datagrams leave from the address of their route; a server's from the one to which a client has sent.
        let asks_for_host = !is_client && address.ip().is_unspecified();
        let first = Self::bind(address, shards > 1, asks_for_host)?;
        if is_client {
            // Only clients: a server would not end a connection because of an ICMP error.
            icmp::enable(first.socket.get_ref())?;
        }
        let address = first.local_addr()?;
        let mut sockets = vec![first];
        for _ in 1..shards {
            sockets.push(Self::bind(address, true, asks_for_host)?);
        }
        if shards > 1 {
            shard::steer(sockets[0].socket.get_ref(), shards)?;
        }
        Ok(sockets)
    }

    fn bind(address: SocketAddr, reuse_port: bool, asks_for_host: bool) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        if reuse_port {
            socket.set_reuse_port(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        let state = offloads(&socket, asks_for_host)?;
        // A request above the system's limit does not fail; the limit is used.
        let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
        let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
        Ok(Self { socket: watched(socket, Interest::READABLE)?, state })
    }

    /// The same socket, to wait until a full send buffer has room again.
    pub fn watch_room(&self) -> io::Result<AsyncFd<UdpSocket>> {
        watched(self.socket.get_ref().try_clone()?, Interest::WRITABLE)
    }

    /// Leaves little to the queue of this host, or as much as at first: a send waits then until some of that has gone out.
    pub fn keep_own_queue_short(&self, short: bool) {
        let bytes = if short { radio::SEND_BUFFER } else { SOCKET_BUFFER };
        // What the system grants is enough either way.
        let _ = self.state.set_send_buffer_size(self.socket.get_ref().into(), bytes);
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.get_ref().local_addr()
    }

    /// Sizes of the system's buffers for sending and receiving, in bytes; 0 if unknown.
    pub fn buffers(&self) -> [usize; 2] {
        let socket = UdpSockRef::from(self.socket.get_ref());
        [
            self.state.send_buffer_size(socket).unwrap_or(0),
            self.state.recv_buffer_size(self.socket.get_ref().into()).unwrap_or(0),
        ]
    }

    pub fn max_gso(&self) -> usize {
        self.state.max_gso_segments()
    }
}

/// The runtime watches `socket` for `interest` alone.
#[expect(
    deprecated,
    reason = "unsound for types that give away their descriptor; a socket keeps it as long as it lives"
)]
fn watched(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
    AsyncFd::with_interest(socket, interest)
}

/// Makes the system send and receive in batches, with ECN marks, the address of this host to which each was sent if `asks_for_host`,
/// and nothing else: each datagram that is received costs its messages.
pub(crate) fn offloads<'a, S: AsFd>(socket: &'a S, asks_for_host: bool) -> io::Result<UdpSocketState>
where
    UdpSockRef<'a>: From<&'a S>,
{
    let state = UdpSocketState::new(socket.into())?;
    // quinn-udp 0.6.3 requests receive timestamps, which leave no room for the ECN mark of a batch (MSG_CTRUNC).
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        setsockopt(socket, sockopt::ReceiveTimestampns, &false)?;
        // It also requests the local address. A socket of IPv4 alone has no option of IPv6.
        if !asks_for_host {
            setsockopt(socket, sockopt::Ipv4PacketInfo, &false)?;
            let _ = setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &false);
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::getsockopt;

    /// Each datagram that brings one costs time.
    #[tokio::test]
    async fn only_servers_at_all_addresses_hear_to_which_one_a_datagram_came() {
        for (address, is_client, hears) in [
            ("127.0.0.1:0", false, false),
            ("[::1]:0", false, false),
            ("0.0.0.0:0", true, false),
            ("[::]:0", true, false),
            ("0.0.0.0:0", false, true),
            ("[::]:0", false, true),
        ] {
            let sockets = Socket::bind_all(address.parse().unwrap(), 1, is_client).unwrap();
            let socket = sockets[0].socket.get_ref();
            let of_v6 = getsockopt(socket, sockopt::Ipv6RecvPacketInfo);
            let (v4, v6) = (getsockopt(socket, sockopt::Ipv4PacketInfo), of_v6 == Ok(true));
            // A socket of IPv6 says it for IPv4 too.
            let is_v4 = address.starts_with(|first: char| first.is_ascii_digit());
            assert_eq!((v4, v6), (Ok(hears && is_v4), hears && !is_v4), "{address}, client: {is_client}");
        }
    }

    #[tokio::test]
    async fn before_a_radio_the_system_holds_two_aggregates() {
        let socket = Socket::bind(([127, 0, 0, 1], 0).into(), false, false).unwrap();
        let [usual, _] = socket.buffers();
        socket.keep_own_queue_short(true);
        let [short, _] = socket.buffers();
        assert!((radio::SEND_BUFFER..=2 * radio::SEND_BUFFER).contains(&short), "{short}");
        socket.keep_own_queue_short(false);
        assert_eq!(socket.buffers()[0], usual);
    }
}
