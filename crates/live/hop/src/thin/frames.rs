//! Sends frames by a device unchanged: below routes and address translation.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;

use super::device::Device;
use super::system::{checked, open};
use crate::checksum;

/// A packet socket that sends by one device.
#[derive(Debug)]
pub struct FrameSocket {
    fd: OwnedFd,
    index: i32,
    /// Octets of a frame before its IP header.
    link_octets: usize,
}

impl FrameSocket {
    /// For `device`, whose frames have `link_octets` before the IP header.
    ///
    /// # Errors
    /// If the kernel does not permit it.
    pub fn open(device: &Device, link_octets: u32) -> io::Result<Self> {
        // Protocol 0: it receives nothing.
        let fd = open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        Ok(Self { fd, index: device.index, link_octets: link_octets as usize })
    }

    /// The kernel's number of this socket, which its frames carry inside the kernel.
    ///
    /// # Errors
    /// If the kernel has none (before Linux 4.12).
    pub fn cookie(&self) -> io::Result<u64> {
        let mut cookie = 0_u64;
        let mut len = size_of::<u64>() as libc::socklen_t;
        let at = (&raw mut cookie).cast();
        // SAFETY: the kernel writes one number, which outlives the call.
        checked(unsafe {
            libc::getsockopt(self.fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_COOKIE, at, &raw mut len)
        })?;
        Ok(cookie)
    }

    /// Sends the frame of a TCP ACK, and completes its checksum. Returns false if it was refused, by a full queue for
    /// instance.
    pub fn send_ack(&self, frame: &mut [u8]) -> bool {
        let Some(packet) = frame.get_mut(self.link_octets..).filter(|packet| packet.len() >= 20) else {
            return false;
        };
        complete(packet);
        let is_v4 = packet[0] >> 4 == 4;
        // SAFETY: zeros are an address.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_protocol = (if is_v4 { libc::ETH_P_IP } else { libc::ETH_P_IPV6 } as u16).to_be();
        to.sll_ifindex = self.index;
        let (to, to_len) = ((&raw const to).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t);
        let (at, len) = (frame.as_ptr().cast(), frame.len());
        // SAFETY: the kernel reads the frame and the address, which outlive the call.
        let sent = unsafe { libc::sendto(self.fd.as_raw_fd(), at, len, libc::MSG_DONTWAIT, to, to_len) };
        usize::try_from(sent) == Ok(len)
    }
}

/// Completes the TCP checksum of an IP packet without options in its IPv6 header: the kernel leaves the sum of the
/// pseudo-header where hardware is to do the rest. Any other sum stays, right or wrong: it is not ours.
fn complete(packet: &mut [u8]) {
    let header_len = if packet[0] >> 4 == 4 { usize::from(packet[0] & 15) * 4 } else { 40 };
    let tcp = header_len..packet.len();
    let Some(field) = packet.get(header_len + 16..header_len + 18) else { return };
    let found = u16::from_be_bytes([field[0], field[1]]);
    if found == checksum::pseudo_header(packet, checksum::PROTOCOL_TCP, tcp.len()) {
        packet[header_len + 16..header_len + 18].fill(0);
        let sum = checksum::transport(packet, checksum::PROTOCOL_TCP, tcp);
        packet[header_len + 16..header_len + 18].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK of 40 octets, whose checksum is as given.
    fn ack(sum: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet.extend([0x30, 0x39, 0x1f, 0x40, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn a_checksum_that_hardware_was_to_complete_is_completed_and_no_other() {
        let mut left = ack(checksum::pseudo_header(&ack(0), 6, 20));
        complete(&mut left);
        assert_eq!(checksum::transport(&left, 6, 20..40), 0, "it is right");
        let right = left.clone();
        complete(&mut left);
        assert_eq!(left, right);
        let mut wrong = ack(0x1234);
        complete(&mut wrong);
        assert_eq!(wrong, ack(0x1234));
    }
}
