//! Loads eBPF without a library.
//!
//! bpftool makes a "light skeleton" of an object: a program that makes the maps and loads the programs inside the kernel, and
//! the data that it reads. Numbers and layouts here are those of `linux/bpf.h` and libbpf's `skel_internal.h`.

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use nix::libc;

/// `enum bpf_cmd`.
const BPF_MAP_CREATE: c_long = 0;
const BPF_MAP_UPDATE_ELEM: c_long = 2;
const BPF_PROG_LOAD: c_long = 5;
const BPF_PROG_RUN: c_long = 10;
const BPF_LINK_CREATE: c_long = 28;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_PROG_TYPE_SYSCALL: u32 = 31;
const BPF_F_SLEEPABLE: u32 = 1 << 4;
/// `struct bpf_loader_ctx`, `bpf_map_desc` and `bpf_prog_desc` in bytes.
const CONTEXT_BYTES: usize = 24;
const MAP_BYTES: usize = 16;
const PROGRAM_BYTES: usize = 4;

/// Where a program hangs at a device (`enum bpf_attach_type`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Ingress = 46,
    Egress = 47,
}

/// A light skeleton.
pub(crate) struct Skeleton {
    pub instructions: &'static [u8],
    pub data: &'static [u8],
    pub maps: usize,
    pub programs: usize,
    /// Which map has the constants that are set before it is loaded.
    pub constants_map: usize,
}

/// Maps and programs, in the order of the skeleton. The kernel removes them with the last of these files.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub maps: Vec<OwnedFd>,
    pub programs: Vec<OwnedFd>,
}

/// The part of `union bpf_attr` of a command.
#[derive(Default)]
struct Attributes([u64; 16]);

impl Attributes {
    /// A 32-bit field at a byte.
    fn half(mut self, at: usize, value: u32) -> Self {
        let word = &mut self.0[at / 8];
        let mut bytes = word.to_ne_bytes();
        bytes[at % 8..][..4].copy_from_slice(&value.to_ne_bytes());
        *word = u64::from_ne_bytes(bytes);
        self
    }

    /// A 64-bit field at a byte.
    fn word(mut self, at: usize, value: u64) -> Self {
        self.0[at / 8] = value;
        self
    }

    fn address<T>(self, at: usize, of: &[T]) -> Self {
        self.word(at, of.as_ptr() as u64)
    }

    /// The system call. What its addresses lead to must outlive it, and be as the command wants it.
    unsafe fn call(&mut self, command: c_long) -> io::Result<RawFd> {
        let (at, len) = (self.0.as_mut_ptr(), size_of_val(&self.0));
        // SAFETY: the kernel reads and writes the attributes; what they lead to is the caller's business.
        match unsafe { libc::syscall(libc::SYS_bpf, command, at, len) } {
            -1 => Err(io::Error::last_os_error()),
            result => Ok(result as RawFd),
        }
    }
}

/// Takes a file that the kernel has just opened.
fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

impl Skeleton {
    /// Loads it with `constants` at the beginning of its constants.
    pub fn load(&self, constants: &[u8]) -> io::Result<Loaded> {
        let key = [0_u32];
        let mut create = Attributes::default().half(0, BPF_MAP_TYPE_ARRAY).half(4, 4).half(12, 1);
        create = create.half(8, self.data.len() as u32);
        // SAFETY: it has no addresses.
        let data = owned(unsafe { create.call(BPF_MAP_CREATE) }?);
        let mut update = Attributes::default().half(0, data.as_raw_fd() as u32);
        update = update.address(8, &key).address(16, self.data);
        // SAFETY: key and value have the lengths of the map, and outlive the call.
        unsafe { update.call(BPF_MAP_UPDATE_ELEM) }?;

        let (license, files) = (c"Dual BSD/GPL", [data.as_raw_fd()]);
        let mut load = Attributes::default()
            .half(0, BPF_PROG_TYPE_SYSCALL)
            .half(4, (self.instructions.len() / 8) as u32)
            .address(8, self.instructions)
            .address(16, license.to_bytes_with_nul())
            .half(44, BPF_F_SLEEPABLE)
            .address(120, &files);
        // SAFETY: instructions, license and files outlive the call.
        let loader = owned(unsafe { load.call(BPF_PROG_LOAD) }?);

        let len = CONTEXT_BYTES + self.maps * MAP_BYTES + self.programs * PROGRAM_BYTES;
        let mut context = vec![0; len];
        context[..4].copy_from_slice(&(len as u32).to_ne_bytes());
        let address = constants.as_ptr() as u64;
        context[CONTEXT_BYTES + self.constants_map * MAP_BYTES + 8..][..8]
            .copy_from_slice(&address.to_ne_bytes());
        run(&loader, &mut context)?;
        let file = |at: usize| {
            let fd = context[at..].first_chunk().map(|bytes| RawFd::from_ne_bytes(*bytes));
            fd.filter(|fd| *fd > 0).map(owned).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        let maps = (0..self.maps).map(|map| file(CONTEXT_BYTES + map * MAP_BYTES));
        let first = CONTEXT_BYTES + self.maps * MAP_BYTES;
        let programs = (0..self.programs).map(|program| file(first + program * PROGRAM_BYTES));
        Ok(Loaded { maps: maps.collect::<io::Result<_>>()?, programs: programs.collect::<io::Result<_>>()? })
    }
}

/// Runs a program of the type "syscall", which reads and writes `context`.
pub(crate) fn run(program: &OwnedFd, context: &mut [u8]) -> io::Result<()> {
    let mut run = Attributes::default().half(0, program.as_raw_fd() as u32).half(40, context.len() as u32);
    run = run.word(48, context.as_mut_ptr() as u64);
    // SAFETY: the context has the length that is given, and outlives the call.
    unsafe { run.call(BPF_PROG_RUN) }?;
    match (run.0[0] >> 32) as i32 {
        0.. => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// Hangs a program on a device (tcx, Linux 6.6), until the file is closed.
pub(crate) fn hang(program: &OwnedFd, device_index: i32, side: Side) -> io::Result<OwnedFd> {
    let mut create = Attributes::default().half(0, program.as_raw_fd() as u32);
    create = create.half(4, device_index as u32).half(8, side as u32);
    // SAFETY: it has no addresses.
    Ok(owned(unsafe { create.call(BPF_LINK_CREATE) }?))
}
