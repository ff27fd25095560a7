//! Sockets, and what the kernel says of a device by them.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use nix::libc;

pub(super) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub(super) fn open(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers.
    let fd =
        checked(unsafe { libc::socket(family, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the kernel has just opened it, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What the kernel says of a device.
pub(super) struct Found {
    pub index: i32,
    pub mtu: u32,
    /// Kind of its hardware.
    pub kind: u16,
}

impl Found {
    /// A device in the network of this thread, which /sys need not show (netdevice(7)).
    pub fn find(device: &str) -> Option<Self> {
        let fd = open(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
        // SAFETY: an `ifreq` of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // One byte of zero stays behind the name.
        if device.len() >= request.ifr_name.len() {
            return None;
        }
        for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *place = byte as libc::c_char;
        }
        let mut query = |what| {
            // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
            checked(unsafe { libc::ioctl(fd.as_raw_fd(), what, &raw mut request) }).ok()?;
            Some(request.ifr_ifru)
        };
        // SAFETY: the kernel has written the index, the MTU and the hardware's address.
        unsafe {
            Some(Self {
                index: query(libc::SIOCGIFINDEX as _)?.ifru_ifindex,
                mtu: u32::try_from(query(libc::SIOCGIFMTU as _)?.ifru_mtu).ok()?,
                kind: query(libc::SIOCGIFHWADDR as _)?.ifru_hwaddr.sa_family,
            })
        }
    }
}
