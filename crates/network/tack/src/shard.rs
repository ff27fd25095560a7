//! Several sockets with one address (shards), and which of them a datagram is for.
//!
//! Each shard has its own connection numbers, so every datagram except a client's first one identifies its shard, from
//! any address. The kernel steers datagrams by this number (a classic BPF program, Linux 4.5). A datagram that still
//! reaches another socket is passed on: for example, a client may have put datagrams of several connections in one
//! batch.

use std::io;
use std::os::fd::AsFd;

use nix::libc::{self, sock_filter, sock_fprog};
use nix::sys::socket::{setsockopt, sockopt};

use crate::datagram::{addressed, kind};

/// Index of a socket among those that share its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub index: u16,
    /// Number of shards.
    pub count: u16,
}

impl Shard {
    /// The only shard of an address.
    #[cfg(any(test, fuzzing))]
    pub const ONLY: Self = Self { index: 0, count: 1 };

    /// A number for a connection of this shard near `random`; `None` if there is none below the maximum.
    pub fn number(self, random: u32) -> Option<u32> {
        let count = u32::from(self.count);
        (random - random % count).checked_add(self.index.into())
    }

    /// True if the connection with this `number` belongs to this shard.
    pub fn has(self, number: u32) -> bool {
        number % u32::from(self.count) == u32::from(self.index)
    }

    /// The shard that `datagram` is for, if it is another one.
    pub fn other_shard(self, datagram: &[u8]) -> Option<usize> {
        if self.count == 1 {
            return None;
        }
        // A client's first datagram contains the client's number: any shard handles it.
        let (kind, number, _) = addressed(datagram)?;
        let is_other = kind != kind::INITIATION && !self.has(number.0);
        is_other.then(|| (number.0 % u32::from(self.count)) as usize)
    }
}

/// Makes the kernel deliver each datagram to its shard: among the sockets that share the address of `socket`, in the
/// order of binding, the one with the index `number % count`. For a client's first datagram the kernel hashes the
/// addresses.
///
/// # Errors
/// If the system does not accept such a program.
pub(crate) fn steer(socket: &impl AsFd, count: u16) -> io::Result<()> {
    /// Offset of the connection number: after the first byte, in network byte order.
    const NUMBER_AT: u32 = 1;
    /// No socket has this index, so the kernel falls back to hashing the addresses.
    const BY_ADDRESS: u32 = u32::MAX;
    let step = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0),
        // An initiation skips three instructions.
        sock_filter { jt: 3, ..step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, kind::INITIATION.into()) },
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, NUMBER_AT),
        step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, count.into()),
        step(libc::BPF_RET | libc::BPF_A, 0),
        step(libc::BPF_RET | libc::BPF_K, BY_ADDRESS),
    ];
    let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    Ok(setsockopt(socket, sockopt::AttachReusePortCbpf, &program)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram;
    use std::net::{Ipv4Addr, UdpSocket};
    use tacit_packet::tack::packet::ConnectionId;

    #[test]
    fn numbers_are_of_their_shard() {
        let third = Shard { index: 2, count: 3 };
        for random in [0, 1, 2, 3, 4, 1 << 30, u32::MAX - 3] {
            assert!(third.number(random).is_some_and(|number| third.has(number)), "{random}");
        }
        assert_eq!(third.number(u32::MAX), None, "4,294,967,297 is no number");
        assert_eq!(Shard::ONLY.number(77), Some(77));
    }

    #[test]
    fn the_shard_that_gets_a_first_datagram_takes_it() {
        let shard = Shard { index: 1, count: 4 };
        let shard_for =
            |kind, number| shard.other_shard(&datagram::datagram(kind, ConnectionId(number), b"more"));
        assert_eq!(
            (shard_for(kind::INITIATION, 7), shard_for(kind::FINISH, 7), shard_for(kind::FINISH, 5)),
            (None, Some(3), None)
        );
        assert_eq!((shard_for(0x30, 8), shard.other_shard(b"abc")), (Some(0), None));
    }

    /// The kernel runs the program as intended: each of four sockets gets the datagrams with its numbers.
    #[test]
    fn the_kernel_brings_datagrams_to_their_shard() {
        let bound = |address: std::net::SocketAddr| {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
            socket.set_reuse_port(true).unwrap();
            socket.bind(&address.into()).unwrap();
            socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            UdpSocket::from(socket)
        };
        let first = bound((Ipv4Addr::LOCALHOST, 0).into());
        let address = first.local_addr().unwrap();
        let mut shards = vec![first];
        shards.extend((1..4).map(|_| bound(address)));
        steer(&shards[0], 4).unwrap();
        for number in 100..140 {
            // Each datagram is sent from another address.
            let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let datagram = datagram::datagram(0x30, ConnectionId(number), b"bytes");
            client.send_to(&datagram, address).unwrap();
            let mut read = [0; 100];
            let len = shards[(number % 4) as usize].recv(&mut read).unwrap();
            assert_eq!(&read[..len], &datagram[..]);
        }
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let first = datagram::datagram(kind::INITIATION, ConnectionId(7), b"hello");
        let mut got = 0;
        client.send_to(&first, address).unwrap();
        for shard in &shards {
            shard.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
            got += usize::from(shard.recv(&mut [0; 100]).is_ok());
        }
        assert_eq!(got, 1, "a first datagram comes to one of them");
    }
}
