//! What this machine's UDP can do, found by trying on loopback.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit};

use crate::driver::{SOCKET_BUFFER, offloads};

/// What the system's UDP does for an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// Datagrams that leave by one call at most (GSO).
    pub send_segments: usize,
    /// Datagrams that arrive by one call at most (GRO).
    pub receive_segments: usize,
    /// Marks of ECN are written and read.
    pub ecn: bool,
    /// Octets that the system holds of a socket before it sends them, where 4 MiB were asked for.
    pub send_buffer: usize,
    /// Octets that it holds before they are read, likewise.
    pub receive_buffer: usize,
}

/// Octets of each datagram that is tried.
const SEGMENT: usize = 1200;

/// Tries what this machine can do. Takes a few milliseconds; nothing leaves loopback.
///
/// # Errors
/// Where loopback carries nothing.
pub fn machine() -> io::Result<Machine> {
    let (from, to) = (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    let (sender, receiver) = (offloads(&from)?, offloads(&to)?);
    // More than the system allows is no error: it gives what it allows.
    let _ = sender.set_send_buffer_size((&from).into(), SOCKET_BUFFER);
    let _ = receiver.set_recv_buffer_size((&to).into(), SOCKET_BUFFER);
    let contents = vec![0; 2 * SEGMENT];
    sender.try_send(
        (&from).into(),
        &Transmit {
            destination: to.local_addr()?,
            ecn: Some(EcnCodepoint::Ect0),
            contents: &contents[..if sender.max_gso_segments() > 1 { 2 * SEGMENT } else { SEGMENT }],
            segment_size: (sender.max_gso_segments() > 1).then_some(SEGMENT),
            src_ip: None,
        },
    )?;
    // The socket waits no longer than it must: what was sent on loopback is there.
    to.set_nonblocking(false)?;
    to.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut buffers = vec![vec![0; 65_535]; BATCH_SIZE];
    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
    let mut metas = [RecvMeta::default(); BATCH_SIZE];
    receiver.recv((&to).into(), &mut slices, &mut metas)?;
    Ok(Machine {
        // A system that refuses to send batches says so when it is asked to, and the count is then 1.
        send_segments: sender.max_gso_segments(),
        receive_segments: receiver.gro_segments(),
        ecn: metas[0].ecn == Some(EcnCodepoint::Ect0),
        send_buffer: sender.send_buffer_size((&from).into())?,
        receive_buffer: receiver.recv_buffer_size((&to).into())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_carries_marks_and_batches() {
        let machine = machine().unwrap();
        assert!(machine.ecn, "{machine:?}");
        assert!(machine.send_segments >= 1 && machine.receive_segments >= 1);
        assert!(machine.send_buffer > SEGMENT && machine.receive_buffer > SEGMENT);
    }
}
