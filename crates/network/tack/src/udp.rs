//! The UDP features of this machine: offloads, ECN, buffers.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

use crate::socket::{SOCKET_BUFFER, offloads};

/// UDP features of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Largest number of datagrams per send call (GSO); 1 if batches do not work.
    pub send_segments: usize,
    /// Largest number of datagrams per receive call (GRO); 1 if batches do not work.
    pub receive_segments: usize,
    /// ECN works over IPv4.
    pub ecn: bool,
    /// ECN works over IPv6; `None` without IPv6.
    pub ecn_v6: Option<bool>,
    /// Send buffer that the system grants for [`REQUESTED_BUFFER`](Self::REQUESTED_BUFFER), in bytes.
    pub send_buffer: usize,
    /// Receive buffer, likewise.
    pub receive_buffer: usize,
}

impl Capabilities {
    /// Bytes that an endpoint requests for each buffer of its socket. Linux adds its own overhead and reports twice the
    /// size.
    pub const REQUESTED_BUFFER: usize = SOCKET_BUFFER;
}

/// Bytes of each test datagram.
const SEGMENT: usize = 1200;

/// Datagrams in the test batch.
const BATCH: usize = 4;

/// Tests the UDP features of this machine over loopback, in a few milliseconds.
///
/// # Errors
/// If loopback does not carry IPv4 datagrams.
pub fn probe() -> io::Result<Capabilities> {
    let found = probe_at(Ipv4Addr::LOCALHOST.into())?;
    let ecn_v6 = probe_at(Ipv6Addr::LOCALHOST.into()).ok().map(|found| found.ecn);
    Ok(Capabilities { ecn_v6, ..found })
}

/// Capabilities of loopback at `host`.
fn probe_at(host: IpAddr) -> io::Result<Capabilities> {
    let (from, to) = (UdpSocket::bind((host, 0))?, UdpSocket::bind((host, 0))?);
    let (sender, receiver) = (offloads(&from, false)?, offloads(&to, false)?);
    // A request above the system's limit does not fail; the limit is used.
    let _ = sender.set_send_buffer_size((&from).into(), SOCKET_BUFFER);
    let _ = receiver.set_recv_buffer_size((&to).into(), SOCKET_BUFFER);
    // Datagrams over loopback arrive at once, so the read needs only a short timeout.
    to.set_nonblocking(false)?;
    to.set_read_timeout(Some(Duration::from_secs(1)))?;
    let contents = vec![0; BATCH * SEGMENT];
    let send = |bytes: usize, segment_size: Option<usize>| {
        let destination = to.local_addr()?;
        let ecn = Some(EcnCodepoint::Ect0);
        let contents = &contents[..bytes];
        sender.try_send((&from).into(), &Transmit { destination, ecn, contents, segment_size, src_ip: None })
    };
    let batched = sender.max_gso_segments() >= BATCH && send(BATCH * SEGMENT, Some(SEGMENT)).is_ok();
    let batch = if batched { received(&receiver, &to, BATCH * SEGMENT).ok() } else { None };
    send(SEGMENT, None)?;
    let single = received(&receiver, &to, SEGMENT)?;
    let most_at_once = batch.map_or(1, |batch| batch.most_at_once);
    Ok(Capabilities {
        send_segments: if batch.is_some() { sender.max_gso_segments() } else { 1 },
        receive_segments: if most_at_once > 1 { receiver.gro_segments() } else { 1 },
        ecn: single.is_marked,
        ecn_v6: None,
        send_buffer: sender.send_buffer_size((&from).into())?,
        receive_buffer: receiver.recv_buffer_size((&to).into())?,
    })
}

/// What a test received.
#[derive(Clone, Copy)]
struct Arrived {
    /// Most datagrams received in one batch.
    most_at_once: usize,
    /// The last datagram had the ECN mark with which it was sent.
    is_marked: bool,
}

/// Reads until `bytes` have arrived.
fn received(state: &UdpSocketState, socket: &UdpSocket, bytes: usize) -> io::Result<Arrived> {
    // One message per call: a blocking socket would wait for further messages until its timeout.
    let mut buffer = vec![0; 65_535];
    let mut arrived = Arrived { most_at_once: 0, is_marked: false };
    let mut left = bytes;
    while left > 0 {
        let mut meta = [RecvMeta::default()];
        state.recv(socket.into(), &mut [IoSliceMut::new(&mut buffer)], &mut meta)?;
        let [meta] = meta;
        arrived.most_at_once = arrived.most_at_once.max(meta.len / meta.stride.max(1));
        arrived.is_marked = meta.ecn == Some(EcnCodepoint::Ect0);
        left = left.saturating_sub(meta.len);
    }
    Ok(arrived)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_carries_marks_and_batches() {
        let machine = probe().unwrap();
        assert!(machine.ecn && machine.ecn_v6 != Some(false), "{machine:?}");
        assert!(machine.send_segments >= 1 && machine.receive_segments >= 1);
        assert!(machine.send_buffer > SEGMENT && machine.receive_buffer > SEGMENT);
    }
}
