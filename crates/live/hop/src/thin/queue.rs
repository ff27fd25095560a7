//! What the root queue of a device has sent and holds, as rtnetlink(7) tells it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use tacit_between::ack_hold::QueueCounts;
use tacit_packet::units::Bytes;

use super::device::Device;
use super::system::{checked, open};

/// Of `linux/rtnetlink.h` and `linux/pkt_sched.h`.
const RTM_GETQDISC: u16 = 38;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_STATS2: u16 = 7;
/// Of `linux/gen_stats.h`.
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// Lengths of `struct nlmsghdr` and `struct tcmsg`.
const HEADER: usize = 16;
const TCMSG: usize = 20;
/// Longer than an answer about one queue.
const ANSWER_MAX: usize = 8_192;
const ATTRIBUTE_TYPE: u16 = 0x3fff;

/// The root queue of a device.
#[derive(Debug)]
pub struct Queue {
    fd: OwnedFd,
    request: [u8; HEADER + TCMSG],
}

impl Queue {
    /// Of `device`.
    ///
    /// # Errors
    /// If the kernel gives no such socket.
    pub fn open(device: &Device) -> io::Result<Self> {
        let fd = open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        let mut request = [0; HEADER + TCMSG];
        request[..4].copy_from_slice(&((HEADER + TCMSG) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
        // Without an echo, only those hear the answer that listen to all changes (qdisc_notify()).
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ECHO) as u16;
        request[6..8].copy_from_slice(&flags.to_ne_bytes());
        request[HEADER + 4..HEADER + 8].copy_from_slice(&device.index.to_ne_bytes());
        request[HEADER + 12..HEADER + 16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
        Ok(Self { fd, request })
    }

    /// What it has sent and holds; zeros for a device without queue, or one that has vanished.
    pub fn counts(&self) -> QueueCounts {
        let mut answer = [0; ANSWER_MAX];
        let (at, len) = (self.request.as_ptr().cast(), self.request.len());
        // SAFETY: the kernel reads the request, which outlives the call. It answers before this returns.
        let asked = checked(unsafe { libc::send(self.fd.as_raw_fd(), at, len, 0) } as libc::c_int);
        let (at, len) = (answer.as_mut_ptr().cast(), answer.len());
        // SAFETY: the kernel writes at most `len` bytes, which outlive the call.
        let read = asked.map(|_| unsafe { libc::recv(self.fd.as_raw_fd(), at, len, libc::MSG_DONTWAIT) });
        let read = read.ok().and_then(|read| usize::try_from(read).ok()).unwrap_or(0);
        counts(&answer[..read.min(ANSWER_MAX)]).unwrap_or_default()
    }
}

/// The counts of an answer.
fn counts(answer: &[u8]) -> Option<QueueCounts> {
    let stats = attribute(answer.get(HEADER + TCMSG..)?, TCA_STATS2)?;
    let (basic, queue) = (attribute(stats, TCA_STATS_BASIC)?, attribute(stats, TCA_STATS_QUEUE)?);
    let sent = u64::from_ne_bytes(basic.first_chunk().copied()?);
    // After the number of packets.
    let waiting = u32::from_ne_bytes(queue.get(4..)?.first_chunk().copied()?);
    Some(QueueCounts { sent: Bytes(sent), waiting: Bytes(waiting.into()) })
}

/// The content of the first attribute of a kind.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let [len, kind] =
            [attributes.get(..2)?, attributes.get(2..4)?].map(|half| u16::from_ne_bytes([half[0], half[1]]));
        let len = usize::from(len);
        if kind & ATTRIBUTE_TYPE == wanted {
            return attributes.get(4..len);
        }
        attributes = attributes.get(len.max(4).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + content.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn counts_are_read_as_the_kernel_writes_them() {
        let basic = [&7_777_u64.to_ne_bytes()[..], &9_u32.to_ne_bytes()].concat();
        let queue: Vec<u8> = [3_u32, 198, 0, 0, 5].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let stats = [written(TCA_STATS_BASIC, &basic), written(TCA_STATS_QUEUE, &queue)].concat();
        let answer = [vec![0; HEADER + TCMSG], written(1, b"tbf\0"), written(TCA_STATS2, &stats)].concat();
        assert_eq!(counts(&answer), Some(QueueCounts { sent: Bytes(7_777), waiting: Bytes(198) }));
        (0..answer.len()).for_each(|len| {
            let _ = counts(&answer[..len]);
        });
        assert_eq!(counts(&answer[..HEADER]), None);
    }
}
