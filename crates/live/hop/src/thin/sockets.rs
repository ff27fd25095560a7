//! The socket to the uplink, and the one that sees what arrives.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use tacit_between::ack_hold::QueueCounts;
use tacit_packet::units::Bytes;

use super::device::Device;
use super::system::{checked, open};

/// Send buffer, in bytes as the kernel counts them: some 700 ACKs, or 230 full packets.
const SEND_BUFFER: libc::c_int = 512 << 10;
/// Most packets that are remembered as not sent yet: more than the send buffer holds.
const UNSENT_MAX: usize = 4_096;
/// Longest packet that can arrive, merged by the kernel.
const READ_MAX: usize = 65_535;

fn set(fd: &OwnedFd, option: libc::c_int, value: &[u8]) -> io::Result<()> {
    let (at, len) = (value.as_ptr().cast(), value.len() as libc::socklen_t);
    // SAFETY: the kernel reads `len` bytes at `at`, which outlive the call.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, option, at, len) }).map(drop)
}

/// Raw sockets that are bound to the uplink's device. Routes by other devices do not apply to them.
#[derive(Debug)]
pub(super) struct Uplink {
    /// For each IP version that leaves by the device.
    sockets: Vec<RawSocket>,
}

#[derive(Debug)]
struct RawSocket {
    fd: OwnedFd,
    version: u8,
    unsent: Unsent,
}

impl Uplink {
    pub fn open(device: &Device) -> io::Result<Self> {
        let versions = [(4, libc::AF_INET), (6, libc::AF_INET6)];
        let used = versions.into_iter().filter(|(version, _)| device.has(*version == 4));
        let sockets = used.map(|(version, family)| RawSocket::open(device, version, family));
        Ok(Self { sockets: sockets.collect::<io::Result<_>>()? })
    }

    /// Sends an IP packet. Returns false if it was refused, by a full queue for instance.
    pub fn send(&mut self, packet: &[u8]) -> bool {
        let version = packet.first().map(|first| first >> 4);
        let socket = self.sockets.iter_mut().find(|socket| Some(socket.version) == version);
        socket.is_some_and(|socket| socket.send(packet))
    }

    /// What has left for the device's transmitter, and what waits.
    pub fn counts(&mut self) -> QueueCounts {
        let each = self.sockets.iter_mut().map(RawSocket::counts);
        each.fold(QueueCounts::default(), |sum, counts| QueueCounts {
            sent: sum.sent + counts.sent,
            waiting: sum.waiting + counts.waiting,
        })
    }

    /// Whether something waits, as of the last call.
    pub fn is_busy(&self) -> bool {
        self.sockets.iter().any(|socket| socket.unsent.waiting > 0)
    }
}

/// `N` bytes of `packet` from `at` on.
fn field<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..at + N)?.try_into().ok()
}

impl RawSocket {
    fn open(device: &Device, version: u8, family: libc::c_int) -> io::Result<Self> {
        // IPPROTO_RAW: packets bring their IP headers (raw(7); inet6_create() does the same for IPv6).
        let fd = open(family, libc::SOCK_RAW, libc::IPPROTO_RAW)?;
        set(&fd, libc::SO_BINDTODEVICE, device.name.as_bytes())?;
        // A refusal leaves the default, which is as large in most systems.
        let _ = set(&fd, libc::SO_SNDBUF, &SEND_BUFFER.to_ne_bytes());
        Ok(Self { fd, version, unsent: Unsent::default() })
    }

    fn send(&mut self, packet: &[u8]) -> bool {
        if self.version == 4 {
            let Some(destination) = field(packet, 16) else { return false };
            // SAFETY: zeros are an address.
            let mut to: libc::sockaddr_in = unsafe { std::mem::zeroed() };
            to.sin_family = libc::AF_INET as libc::sa_family_t;
            to.sin_addr.s_addr = u32::from_ne_bytes(destination);
            self.send_to(packet, &to)
        } else {
            let Some(destination) = field(packet, 24) else { return false };
            // SAFETY: zeros are an address.
            let mut to: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
            to.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            to.sin6_addr.s6_addr = destination;
            self.send_to(packet, &to)
        }
    }

    /// Sends `packet` to an address of the socket's family.
    fn send_to<A>(&mut self, packet: &[u8], to: &A) -> bool {
        let before = self.charged();
        let (at, len) = (packet.as_ptr().cast(), packet.len());
        let (to, to_len) = ((&raw const *to).cast(), size_of::<A>() as libc::socklen_t);
        // SAFETY: the kernel reads the packet and the address, which outlive the call.
        let sent = unsafe { libc::sendto(self.fd.as_raw_fd(), at, len, libc::MSG_DONTWAIT, to, to_len) };
        let is_sent = usize::try_from(sent) == Ok(len);
        if is_sent {
            self.unsent.note_sent(self.charged().saturating_sub(before), len as u32);
        }
        is_sent
    }

    /// What the kernel still has of it, with its own overhead (`sk_wmem_alloc`).
    fn charged(&self) -> u32 {
        let mut amount: libc::c_int = 0;
        // SAFETY: the kernel writes one number, which outlives the call.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut amount) };
        if result < 0 { 0 } else { u32::try_from(amount).unwrap_or(0) }
    }

    fn counts(&mut self) -> QueueCounts {
        let charged = self.charged();
        self.unsent.counts(charged)
    }
}

/// The packets that a kernel has not sent yet, read off the memory that it charges for them.
#[derive(Debug, Default)]
struct Unsent {
    /// Charge and length of each, in order.
    packets: VecDeque<(u32, u32)>,
    /// Sum of the charges.
    charged: u64,
    /// Largest charge of packets of up to 2^n bytes. A kernel charges equal lengths equally, but less is seen where it
    /// has sent something in between.
    charges: [u32; 17],
    sent: u64,
    waiting: u64,
}

impl Unsent {
    fn note_sent(&mut self, seen: u32, len: u32) {
        let class = &mut self.charges[(len.max(1).next_power_of_two().trailing_zeros() as usize).min(16)];
        *class = (*class).max(seen);
        let charge = *class;
        if self.packets.len() >= UNSENT_MAX {
            self.forget_first();
        }
        self.packets.push_back((charge, len));
        (self.charged, self.waiting) = (self.charged + u64::from(charge), self.waiting + u64::from(len));
    }

    fn counts(&mut self, charged: u32) -> QueueCounts {
        while (self.charged > u64::from(charged) || charged == 0) && self.forget_first() {}
        QueueCounts { sent: Bytes(self.sent), waiting: Bytes(self.waiting) }
    }

    /// The first packet was sent; returns false if there is none.
    fn forget_first(&mut self) -> bool {
        let Some((charge, len)) = self.packets.pop_front() else { return false };
        self.charged -= u64::from(charge);
        (self.sent, self.waiting) = (self.sent + u64::from(len), self.waiting - u64::from(len));
        true
    }
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It arrived for this machine.
    In,
    /// This machine sends it.
    Out,
}

/// A packet socket for the TCP segments that pass a device.
#[derive(Debug)]
pub(super) struct ArrivalSocket {
    fd: OwnedFd,
    buffer: Box<[u8]>,
}

/// Of `linux/if_packet.h`.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
static IGNORED: libc::c_int = 1;

const fn filter(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Passes TCP over IPv4 and, without extension headers, over IPv6, whole.
const TCP_ONLY: [libc::sock_filter; 9] = [
    // The protocol behind the link's header (BPF_LD | BPF_H | BPF_ABS at SKF_AD_OFF + SKF_AD_PROTOCOL).
    filter(0x28, 0, 0, 0xffff_f000),
    // BPF_JMP | BPF_JEQ | BPF_K.
    filter(0x15, 3, 0, libc::ETH_P_IP as u32),
    filter(0x15, 0, 5, libc::ETH_P_IPV6 as u32),
    // The next header of IPv6 (BPF_LD | BPF_B | BPF_ABS).
    filter(0x30, 0, 0, 6),
    // BPF_JMP | BPF_JA.
    filter(0x05, 0, 0, 1),
    // The protocol of IPv4.
    filter(0x30, 0, 0, 9),
    filter(0x15, 0, 1, libc::IPPROTO_TCP as u32),
    // BPF_RET | BPF_K.
    filter(0x06, 0, 0, 0x4_0000),
    filter(0x06, 0, 0, 0),
];

impl ArrivalSocket {
    /// For what arrives.
    pub fn open(device: &Device) -> io::Result<Self> {
        let socket = Self::open_both_ways(device)?;
        let (at, len) = ((&raw const IGNORED).cast(), size_of_val(&IGNORED) as libc::socklen_t);
        // SAFETY: the kernel reads a number, which is constant. Kernels before 4.20 refuse, and show what leaves too.
        let _ = unsafe {
            libc::setsockopt(socket.fd.as_raw_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, at, len)
        };
        Ok(socket)
    }

    /// For what arrives and what leaves.
    pub fn open_both_ways(device: &Device) -> io::Result<Self> {
        // Nothing arrives before it is bound.
        let fd = open(libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
        let filter = libc::sock_fprog { len: TCP_ONLY.len() as u16, filter: TCP_ONLY.as_ptr().cast_mut() };
        let (at, len) = ((&raw const filter).cast(), size_of::<libc::sock_fprog>() as libc::socklen_t);
        // SAFETY: the kernel copies the program, which is constant.
        let attached =
            unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, at, len) };
        checked(attached)?;
        // SAFETY: zeros are an address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        // The kernel shows what leaves to sockets for all protocols alone (packet(7); dev_queue_xmit_nit()).
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = device.index;
        let (at, len) = ((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t);
        // SAFETY: the kernel reads the address, which outlives the call.
        checked(unsafe { libc::bind(fd.as_raw_fd(), at, len) })?;
        Ok(Self { fd, buffer: vec![0; READ_MAX].into() })
    }

    /// Calls `on_packet` with the next packet. Returns false if there is none.
    pub fn receive(&mut self, on_packet: impl FnOnce(Way, &[u8])) -> io::Result<bool> {
        // SAFETY: zeros are an address.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut from_len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let (at, len) = (self.buffer.as_mut_ptr().cast(), self.buffer.len());
        // SAFETY: the kernel writes at most `len` bytes and one address, which outlive the call.
        let read = unsafe {
            libc::recvfrom(self.fd.as_raw_fd(), at, len, 0, (&raw mut from).cast(), &raw mut from_len)
        };
        let Ok(read) = usize::try_from(read) else {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                // ENETDOWN: the device is down; it may come back.
                Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => Ok(false),
                _ => Err(error),
            };
        };
        let way = match from.sll_pkttype {
            libc::PACKET_HOST => Way::In,
            libc::PACKET_OUTGOING => Way::Out,
            _ => return Ok(true),
        };
        on_packet(way, &self.buffer[..read.min(len)]);
        Ok(true)
    }
}

impl AsFd for ArrivalSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sent: u64, waiting: u64) -> QueueCounts {
        QueueCounts { sent: Bytes(sent), waiting: Bytes(waiting) }
    }

    #[test]
    fn what_a_kernel_still_charges_for_waits() {
        let mut unsent = Unsent::default();
        for charge in [768, 768, 768] {
            unsent.note_sent(charge, 52);
        }
        unsent.note_sent(2_304, 1_500);
        assert_eq!(unsent.counts(3 * 768 + 2_304), counts(0, 3 * 52 + 1_500));
        assert_eq!(unsent.counts(768 + 2_304), counts(2 * 52, 52 + 1_500));
        assert_eq!(unsent.counts(0), counts(3 * 52 + 1_500, 0));
    }

    /// Less seems to be charged where something was sent in between.
    #[test]
    fn equal_packets_are_charged_equally() {
        let mut unsent = Unsent::default();
        for seen in [768, 0, 768] {
            unsent.note_sent(seen, 52);
        }
        assert_eq!(unsent.counts(2 * 768), counts(52, 2 * 52), "the first was sent meanwhile");
    }

    #[test]
    fn a_queue_that_is_never_looked_at_is_bounded() {
        let mut unsent = Unsent::default();
        (0..2 * UNSENT_MAX).for_each(|_| unsent.note_sent(768, 52));
        assert_eq!(unsent.packets.len(), UNSENT_MAX);
        assert_eq!(unsent.counts(768), counts(2 * 52 * UNSENT_MAX as u64 - 52, 52));
    }

    #[test]
    fn an_uplink_that_charges_nothing_has_no_queue() {
        let mut unsent = Unsent::default();
        unsent.note_sent(0, 52);
        assert_eq!(unsent.counts(0), counts(52, 0));
    }
}
