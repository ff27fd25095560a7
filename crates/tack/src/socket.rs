//! UDP sockets, with the system's support for batches of datagrams.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Type};
use tokio::net::UdpSocket;

use crate::icmp;
use crate::shard;

/// Socket buffer that the system is asked for each way: a round trip of 20 ms at 1.6 Gb/s. Ours; it may give less.
pub(crate) const SOCKET_BUFFER: usize = 4 << 20;

/// A UDP socket of an endpoint, which takes and gives batches.
pub(crate) struct Socket {
    pub socket: UdpSocket,
    pub state: UdpSocketState,
}

impl Socket {
    /// The sockets of an endpoint at `address`, of which a datagram finds its own.
    pub fn bind_all(address: SocketAddr, shards: u16, is_client: bool) -> io::Result<Vec<Self>> {
        let first = Self::bind(address, shards > 1)?;
        if is_client {
            // A server has no connection to give up for it.
            icmp::ask_for(&first.socket)?;
        }
        let address = first.local_addr()?;
        let mut sockets = vec![first];
        for _ in 1..shards {
            sockets.push(Self::bind(address, true)?);
        }
        if shards > 1 {
            shard::steer(&sockets[0].socket, shards)?;
        }
        Ok(sockets)
    }

    fn bind(address: SocketAddr, reuse_port: bool) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        if reuse_port {
            socket.set_reuse_port(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        let socket = UdpSocket::from_std(socket.into())?;
        let state = offloads(&socket)?;
        // A request above the system's limit is no error: it gives its limit.
        let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
        let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
        Ok(Self { socket, state })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Bytes that the system holds, out and in; 0 where it does not say.
    pub fn buffers(&self) -> [usize; 2] {
        let socket = UdpSockRef::from(&self.socket);
        [
            self.state.send_buffer_size(socket).unwrap_or(0),
            self.state.recv_buffer_size((&self.socket).into()).unwrap_or(0),
        ]
    }

    pub fn max_gso(&self) -> usize {
        self.state.max_gso_segments()
    }
}

/// Has the system send and receive in batches, with marks of ECN.
pub(crate) fn offloads<'a, S: AsFd>(socket: &'a S) -> io::Result<UdpSocketState>
where
    UdpSockRef<'a>: From<&'a S>,
{
    let state = UdpSocketState::new(socket.into())?;
    // quinn-udp 0.6.3 asks for times of arrival, which leave no room for the mark of a batch (MSG_CTRUNC).
    #[cfg(any(target_os = "linux", target_os = "android"))]
    setsockopt(socket, sockopt::ReceiveTimestampns, &false)?;
    Ok(state)
}
