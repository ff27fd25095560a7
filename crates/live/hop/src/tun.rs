//! TUN devices, the interface between a hop and the kernel.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;

use crate::offload::{self, Header};

/// The file used to open TUN devices.
pub const TUN_FILE: &str = "/dev/net/tun";

// The numbers of TUNSETIFF and TUNSETOFFLOAD in linux/if_tun.h. The macro constructs the full request codes.
nix::ioctl_write_int!(tun_set_iff, b'T', 202);
nix::ioctl_write_int!(tun_set_offload, b'T', 208);

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// [`TUN_FILE`] cannot be opened.
    #[error("cannot open {TUN_FILE}: {0}")]
    Open(io::Error),
    /// The kernel refuses a device in this network.
    #[error("cannot make a TUN device: {0}")]
    Make(io::Error),
}

impl TunError {
    /// The error of the operating system.
    pub fn into_source(self) -> io::Error {
        let (Self::Open(source) | Self::Make(source)) = self;
        source
    }
}

/// What users can do about an error in opening [`TUN_FILE`].
pub fn opening_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "chmod 0666 /dev/net/tun as root, which is its mode in most distributions, or run as root"
        }
        _ => "modprobe tun",
    }
}

/// Opens [`TUN_FILE`], with the open(2) flags `flags`.
///
/// # Errors
/// If it does not exist, the kernel has no driver, or this user has no access.
pub fn open(flags: libc::c_int) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(TUN_FILE)
}

/// Work that this program takes over from the kernel: checksums (TUN_F_CSUM), and splitting TCP over IPv4 and IPv6,
/// also with ECN (TUN_F_TSO4, TUN_F_TSO6, TUN_F_TSO_ECN).
const OFFLOAD_TCP: u64 = 0x01 | 0x02 | 0x04 | 0x08;
/// Splitting UDP over IPv4 and IPv6 (TUN_F_USO4, TUN_F_USO6), supported from Linux 6.2 on.
const OFFLOAD_UDP: u64 = 0x20 | 0x40;

/// Maximum number of bytes per read: a header, and an IP packet of maximum length.
const READ_MAX: usize = offload::HEADER_LEN + 65_535;

/// A TUN device, which disappears when this value is dropped or the process dies.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    buffer: Box<[u8]>,
    malformed: u64,
}

impl Tun {
    /// Creates a device in the network namespace of this thread, with a name chosen by the kernel. It passes IP packets
    /// after virtio's header, including large ones and packets without checksums. Reads do not block.
    ///
    /// # Errors
    /// If the kernel does not support or permit it.
    pub fn create() -> Result<Self, TunError> {
        let file = open(libc::O_NONBLOCK | libc::O_CLOEXEC).map_err(TunError::Open)?;
        Self::from_file(file).map_err(TunError::Make)
    }

    fn from_file(file: File) -> io::Result<Self> {
        // SAFETY: an `ifreq` of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, byte) in request.ifr_name.iter_mut().zip(b"tacit%d") {
            *place = *byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
        unsafe { tun_set_iff(file.as_raw_fd(), (&raw mut request) as u64) }.map_err(io::Error::from)?;
        let offload = |what: u64| {
            // SAFETY: the kernel takes a number.
            unsafe { tun_set_offload(file.as_raw_fd(), what) }
        };
        offload(OFFLOAD_TCP | OFFLOAD_UDP).or_else(|_| offload(OFFLOAD_TCP)).map_err(io::Error::from)?;
        let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| char::from(*c as u8)).collect();
        Ok(Self { file, name, buffer: vec![0; READ_MAX].into(), malformed: 0 })
    }

    /// Name of the device in the namespace where it was created.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one buffer from the kernel, and calls `each` with its packets, each with a flag for whether this program
    /// computed its checksum. Returns the number of packets, or `None` if nothing was available.
    ///
    /// # Errors
    /// If the device has disappeared together with its namespace.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8], bool)) -> io::Result<Option<usize>> {
        let len = match self.file.read(&mut self.buffer) {
            Ok(len) => len,
            // A device that is down has nothing to read either.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::EIO)) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some((header, packet)) = self.buffer[..len].split_first_chunk_mut() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let header = Header::read(*header);
        let mut packets = 0;
        let cut = offload::packets(&header, packet, |packet| {
            packets += 1;
            each(packet, header.completes_checksum());
        });
        self.malformed += u64::from(cut.is_none());
        Ok(Some(packets))
    }

    /// Number of packets from the kernel that could not be split. Programs with raw sockets can cause them.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Passes one packet to the kernel. Returns false if the kernel refused it: too long, not IP, or the device is
    /// down. With `verified`, the kernel need not check its checksum.
    pub fn send(&mut self, packet: &[u8], verified: bool) -> bool {
        self.write(&Header::whole(verified), packet)
    }

    /// Passes a merged packet, which is overwritten, to the kernel. Returns the number of contained packets that it
    /// refused.
    pub(crate) fn send_large(&mut self, header: &Header, packet: &mut [u8]) -> usize {
        if self.write(header, packet) {
            return 0;
        }
        // A kernel before 6.2 refuses merged datagrams.
        let mut refused = 0;
        let cut = offload::packets(header, packet, |packet| refused += usize::from(!self.send(packet, true)));
        refused + usize::from(cut.is_none())
    }

    fn write(&mut self, header: &Header, packet: &[u8]) -> bool {
        let header = header.bytes();
        let parts = [IoSlice::new(&header), IoSlice::new(packet)];
        self.file.write_vectored(&parts).is_ok_and(|len| len == header.len() + packet.len())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
