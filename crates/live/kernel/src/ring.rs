//! Reads a ring of records that eBPF programs fill (BPF_MAP_TYPE_RINGBUF), as the kernel's `bpf/ringbuf.c` lays it out.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::libc;

/// Flags in the length of a record: it is being written; it is to be skipped.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// Length and offset, before each record.
const HEADER_BYTES: usize = 8;

/// The reader's side of a ring, which becomes readable with a record.
#[derive(Debug)]
pub(crate) struct Ring {
    map: OwnedFd,
    len: usize,
    page: usize,
    /// The reader's position, one page; then the writer's, one page, and the records twice, so that none is cut.
    reader: NonNull<libc::c_void>,
    writer: NonNull<libc::c_void>,
}

impl Ring {
    /// Of a map of `len` bytes.
    pub fn open(map: OwnedFd, len: usize) -> io::Result<Self> {
        // SAFETY: takes a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4_096);
        let view = |len: usize, protection: libc::c_int, at: usize| {
            let (fd, at) = (map.as_raw_fd(), at as libc::off_t);
            // SAFETY: it is a new mapping, which nothing else uses.
            let view = unsafe { libc::mmap(ptr::null_mut(), len, protection, libc::MAP_SHARED, fd, at) };
            let view = NonNull::new(view).filter(|view| view.as_ptr() != libc::MAP_FAILED);
            view.ok_or_else(io::Error::last_os_error)
        };
        let reader = view(page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let writer = view(page + 2 * len, libc::PROT_READ, page).inspect_err(|_| {
            // SAFETY: it was mapped above, and nothing has an address in it.
            unsafe { libc::munmap(reader.as_ptr(), page) };
        })?;
        Ok(Self { map, len, page, reader, writer })
    }

    /// Calls `each` with the records that are there, in order.
    pub fn read(&self, mut each: impl FnMut(&[u8])) {
        // SAFETY: the kernel has a 64-bit position at the beginning of each view, which lives as long as this value.
        let (reader, writer) = unsafe {
            (
                AtomicU64::from_ptr(self.reader.cast().as_ptr()),
                AtomicU64::from_ptr(self.writer.cast().as_ptr()),
            )
        };
        let mut position = reader.load(Ordering::Acquire);
        while position < writer.load(Ordering::Acquire) {
            let at = self.page + position as usize % self.len;
            // SAFETY: a record begins at each position below the writer's, at a multiple of 8, with its length.
            let header = unsafe { self.writer.cast::<u8>().add(at) };
            // SAFETY: as above; the kernel changes the length once more, when the record is whole.
            let stated = unsafe { AtomicU32::from_ptr(header.cast().as_ptr()) }.load(Ordering::Acquire);
            if stated & BUSY != 0 {
                break;
            }
            let len = (stated & !DISCARDED) as usize;
            if stated & DISCARDED == 0 && len <= self.len {
                // SAFETY: the record is whole, lies within the view, and stays until the position is behind it.
                each(unsafe { std::slice::from_raw_parts(header.add(HEADER_BYTES).as_ptr(), len) });
            }
            position += (len + HEADER_BYTES).next_multiple_of(8) as u64;
            reader.store(position, Ordering::Release);
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: both were mapped by `open`, and nothing has an address in them any more.
        unsafe {
            libc::munmap(self.reader.as_ptr(), self.page);
            libc::munmap(self.writer.as_ptr(), self.page + 2 * self.len);
        }
    }
}
