//! TUN devices: the kernel's side of a hop.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;

/// The file every TUN device is opened through.
pub const TUN_FILE: &str = "/dev/net/tun";

// The number of TUNSETIFF in linux/if_tun.h; the macro builds it from the header's parts.
nix::ioctl_write_int!(tun_set_iff, b'T', 202);

/// A TUN device that is gone when this is dropped, or the process dies.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// A new device in the network namespace of this thread, named by the kernel: IP packets without
    /// further headers, no offloads, reads that do not block.
    ///
    /// # Errors
    /// When the kernel has no TUN, or does not let us.
    pub fn create() -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(TUN_FILE)?;
        // SAFETY: an `ifreq` of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, octet) in request.ifr_name.iter_mut().zip(b"tacit%d") {
            *place = *octet as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
        unsafe { tun_set_iff(file.as_raw_fd(), (&raw mut request) as u64) }.map_err(io::Error::from)?;
        let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| char::from(*c as u8)).collect();
        Ok(Self { file, name })
    }

    /// Name of the device, in the namespace where it was made.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one packet; `None` when none waits.
    ///
    /// # Errors
    /// When the device is gone: with its namespace.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.file.read(buffer) {
            Ok(len) => Ok(Some(len)),
            // A device that is down has nothing to say either.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::EIO)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives the kernel one packet; false when it did not want it: too long, not IP, or the device is
    /// down.
    pub fn send(&mut self, packet: &[u8]) -> bool {
        self.file.write(packet).is_ok_and(|len| len == packet.len())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
