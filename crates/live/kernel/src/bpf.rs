//! The system call bpf(2). Numbers and layouts are those of `linux/bpf.h`.

use std::ffi::{CStr, c_long};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use nix::libc;

/// `enum bpf_cmd`.
const MAP_CREATE: c_long = 0;
const MAP_LOOKUP_ELEM: c_long = 1;
const MAP_UPDATE_ELEM: c_long = 2;
const PROG_LOAD: c_long = 5;
const PROG_RUN: c_long = 10;
const MAP_GET_NEXT_ID: c_long = 12;
const MAP_GET_FD_BY_ID: c_long = 14;
const OBJ_GET_INFO_BY_FD: c_long = 15;
const BTF_LOAD: c_long = 18;
const MAP_FREEZE: c_long = 22;
const LINK_CREATE: c_long = 28;
const ITER_CREATE: c_long = 33;
/// sizeof(union bpf_attr) in Linux 6.6. Kernels take longer and shorter ones.
const ATTRIBUTE_BYTES: usize = 144;
/// BPF_OBJ_NAME_LEN, with the terminator.
const NAME_BYTES: usize = 16;
/// The part of `struct bpf_map_info` up to the name.
const MAP_INFO_BYTES: usize = 40;

/// Where a program is attached (`enum bpf_attach_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attach {
    CgroupSockOps = 3,
    TraceIter = 28,
    StructOps = 44,
    TcxIngress = 46,
    TcxEgress = 47,
}

/// The part of `union bpf_attr` of a command.
#[repr(align(8))]
struct Attributes([u8; ATTRIBUTE_BYTES]);

impl Attributes {
    fn new() -> Self {
        Self([0; ATTRIBUTE_BYTES])
    }

    /// A field of 32 bits at a byte.
    fn half(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// A field of 64 bits at a byte.
    fn word(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn fd(self, at: usize, file: &OwnedFd) -> Self {
        self.half(at, file.as_raw_fd() as u32)
    }

    fn address<T>(self, at: usize, slice: &[T]) -> Self {
        self.word(at, slice.as_ptr() as u64)
    }

    /// An object's name, shortened to what fits.
    fn name(mut self, at: usize, name: &str) -> Self {
        let len = name.len().min(NAME_BYTES - 1);
        self.0[at..at + len].copy_from_slice(&name.as_bytes()[..len]);
        self
    }

    fn read_half(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[at..at + 4]);
        u32::from_ne_bytes(bytes)
    }

    /// The system call. The memory at its addresses must outlive the call and be as the command wants it.
    unsafe fn call(&mut self, command: c_long) -> io::Result<RawFd> {
        let (at, len) = (self.0.as_mut_ptr(), self.0.len());
        // SAFETY: the kernel reads and writes the attributes; the caller answers for the memory at their addresses.
        match unsafe { libc::syscall(libc::SYS_bpf, command, at, len) } {
            -1 => Err(io::Error::last_os_error()),
            result => Ok(result as RawFd),
        }
    }

    /// As [`call`](Self::call), for commands that open a file.
    unsafe fn open(&mut self, command: c_long) -> io::Result<OwnedFd> {
        // SAFETY: the caller's.
        let fd = unsafe { self.call(command) }?;
        // SAFETY: the kernel has just opened it, so nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// A map to be created.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MapDefinition<'a> {
    pub name: &'a str,
    pub kind: u32,
    pub key_bytes: u32,
    pub value_bytes: u32,
    pub entries_max: u32,
    pub flags: u32,
    /// Type information, and the types of key and value in it.
    pub types: Option<(&'a OwnedFd, u32, u32)>,
    /// The type of the value in the kernel's own type information.
    pub kernel_value_type: u32,
}

pub(crate) fn create_map(map: &MapDefinition<'_>) -> io::Result<OwnedFd> {
    let mut create = Attributes::new()
        .half(0, map.kind)
        .half(4, map.key_bytes)
        .half(8, map.value_bytes)
        .half(12, map.entries_max)
        .half(16, map.flags)
        .name(28, map.name)
        .half(60, map.kernel_value_type);
    if let Some((types, key, value)) = map.types {
        create = create.fd(48, types).half(52, key).half(56, value);
    }
    // SAFETY: it has no addresses.
    unsafe { create.open(MAP_CREATE) }
}

/// Writes an entry of an array. The value has the length that the map has.
pub(crate) fn write_entry(map: &OwnedFd, key: u32, value: &[u8]) -> io::Result<()> {
    let key = [key];
    let mut update = Attributes::new().fd(0, map).address(8, &key).address(16, value);
    // SAFETY: key and value have the lengths of the map, and outlive the call.
    unsafe { update.call(MAP_UPDATE_ELEM) }.map(drop)
}

/// Reads an entry of an array with values of `value_bytes`.
pub(crate) fn read_entry(map: &OwnedFd, key: u32, value_bytes: usize) -> io::Result<Vec<u8>> {
    let (key, mut value) = ([key], vec![0_u8; value_bytes]);
    let mut lookup = Attributes::new().fd(0, map).address(8, &key).word(16, value.as_mut_ptr() as u64);
    // SAFETY: key and value have the lengths of the map, and outlive the call.
    unsafe { lookup.call(MAP_LOOKUP_ELEM) }?;
    Ok(value)
}

/// Makes a map constant.
pub(crate) fn freeze(map: &OwnedFd) -> io::Result<()> {
    // SAFETY: it has no addresses.
    unsafe { Attributes::new().fd(0, map).call(MAP_FREEZE) }.map(drop)
}

/// Loads type information (BTF).
pub(crate) fn load_types(types: &[u8]) -> io::Result<OwnedFd> {
    let mut load = Attributes::new().address(0, types).half(16, types.len() as u32);
    // SAFETY: the types outlive the call.
    unsafe { load.open(BTF_LOAD) }
}

/// A program to be loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramDefinition<'a> {
    pub name: &'a str,
    /// `enum bpf_prog_type`.
    pub kind: u32,
    pub flags: u32,
    /// An attach type, or the number of a member.
    pub expected_attach_type: u32,
    /// The type in the kernel's own type information.
    pub kernel_type: u32,
    pub license: &'a CStr,
    /// 8 bytes each.
    pub instructions: &'a [u8],
    pub types: &'a OwnedFd,
    /// `struct bpf_func_info` of each function: bytes, number and bytes of one.
    pub functions: (&'a [u8], u32, u32),
}

/// Loads a program. The verifier writes into `log` unless it is empty.
pub(crate) fn load_program(program: &ProgramDefinition<'_>, log: &mut [u8]) -> io::Result<OwnedFd> {
    let (functions, count, function_bytes) = program.functions;
    let mut load = Attributes::new()
        .half(0, program.kind)
        .half(4, (program.instructions.len() / 8) as u32)
        .address(8, program.instructions)
        .address(16, program.license.to_bytes_with_nul())
        .half(44, program.flags)
        .name(48, program.name)
        .half(68, program.expected_attach_type)
        .fd(72, program.types)
        .half(76, function_bytes)
        .address(80, functions)
        .half(88, count)
        .half(108, program.kernel_type);
    if !log.is_empty() {
        load = load.half(24, 1).half(28, log.len() as u32).word(32, log.as_mut_ptr() as u64);
    }
    // SAFETY: instructions, license, functions and log outlive the call.
    unsafe { load.open(PROG_LOAD) }
}

/// Runs a program of the type "syscall", which reads and writes `context`.
pub(crate) fn run(program: &OwnedFd, context: &mut [u8]) -> io::Result<()> {
    let mut run = Attributes::new().fd(0, program).half(40, context.len() as u32);
    run = run.word(48, context.as_mut_ptr() as u64);
    // SAFETY: the context has the length that is given, and outlives the call.
    unsafe { run.call(PROG_RUN) }?;
    match run.read_half(4) as i32 {
        0 => Ok(()),
        returned => Err(io::Error::other(format!("it returned {returned}"))),
    }
}

/// Attaches a program to `target`, a file or the index of a device, until the returned file is closed. A map of
/// operations has no target.
pub(crate) fn attach(program_or_map: &OwnedFd, target: RawFd, to: Attach) -> io::Result<OwnedFd> {
    let mut create = Attributes::new().fd(0, program_or_map).half(4, target as u32).half(8, to as u32);
    // SAFETY: it has no addresses.
    unsafe { create.open(LINK_CREATE) }
}

/// Starts a program of the type "iterator" over a map. Reading the file runs it.
pub(crate) fn iterate(program: &OwnedFd, map: &OwnedFd) -> io::Result<File> {
    let map = [map.as_raw_fd()];
    let mut create = Attributes::new().fd(0, program).half(8, Attach::TraceIter as u32);
    create = create.address(16, &map).half(24, size_of_val(&map) as u32);
    // SAFETY: the map's number outlives the call.
    let link = unsafe { create.open(LINK_CREATE) }?;
    // SAFETY: it has no addresses.
    unsafe { Attributes::new().fd(0, &link).open(ITER_CREATE) }.map(File::from)
}

/// The maps of this machine whose values have `value_bytes`, by name.
pub(crate) fn maps_named(name: &str, value_bytes: u32) -> io::Result<Vec<OwnedFd>> {
    let mut found = Vec::new();
    let mut next = Attributes::new();
    loop {
        // SAFETY: it has no addresses.
        match unsafe { next.call(MAP_GET_NEXT_ID) } {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(error),
        }
        let id = next.read_half(4);
        // SAFETY: it has no addresses. The map may have gone in the meantime.
        if let Ok(map) = unsafe { Attributes::new().half(0, id).open(MAP_GET_FD_BY_ID) } {
            let mut info = [0_u8; MAP_INFO_BYTES];
            let mut query = Attributes::new().fd(0, &map).half(4, info.len() as u32);
            query = query.word(8, info.as_mut_ptr() as u64);
            // SAFETY: the kernel writes as many bytes as are given, and they outlive the call.
            unsafe { query.call(OBJ_GET_INFO_BY_FD) }?;
            let is_named = CStr::from_bytes_until_nul(&info[24..])
                .is_ok_and(|found_name| found_name.to_bytes() == name.as_bytes());
            if is_named && info[12..16] == value_bytes.to_ne_bytes() {
                found.push(map);
            }
        }
        next = Attributes::new().half(0, id);
    }
}
