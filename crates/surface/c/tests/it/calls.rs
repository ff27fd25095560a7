//! The library as C calls it, in types of Rust.

use std::ffi::{c_int, c_void};
use std::ptr;

use tacit::*;
use tacit_rohc::hack::{Coding, Limits, Report};

/// Memory as C would align it, filled with what it had before.
pub fn memory(bytes: usize) -> Vec<u128> {
    vec![0xa5a5_a5a5_a5a5_a5a5; bytes.div_ceil(16)]
}

/// The end that sends ACKs.
pub struct Client {
    _memory: Vec<u128>,
    pub handle: *mut tacit_hack_compressor,
}

impl Client {
    pub fn new(coding: Coding, limits: Limits) -> Self {
        let coding = if coding == Coding::Batch { TACIT_HACK_BATCH } else { TACIT_HACK_PER_ACK };
        let (contexts, acks) = (limits.contexts, limits.frame_acks);
        let size = tacit_hack_compressor_size(contexts, acks);
        let mut memory = memory(size);
        let mut handle = ptr::null_mut();
        let at = memory.as_mut_ptr().cast();
        // SAFETY: the memory has the size that the library asks for, and is dropped after the handle.
        let code = unsafe { tacit_hack_compressor_init(at, size, coding, contexts, acks, &raw mut handle) };
        assert_eq!(code, TACIT_OK);
        Self { _memory: memory, handle }
    }

    pub fn native(&mut self, packet: &[u8]) {
        // SAFETY: the handle lives, and the slice has its length.
        assert_eq!(unsafe { tacit_hack_native_sent(self.handle, packet.as_ptr(), packet.len()) }, TACIT_OK);
    }

    pub fn push(&mut self, packet: &[u8]) -> c_int {
        // SAFETY: as above.
        unsafe { tacit_hack_push(self.handle, packet.as_ptr(), packet.len()) }
    }

    pub fn invalidate(&mut self, packet: &[u8]) {
        // SAFETY: as above.
        assert_eq!(unsafe { tacit_hack_invalidate(self.handle, packet.as_ptr(), packet.len()) }, TACIT_OK);
    }

    /// Code, frames and ACKs; no byte behind the room is touched.
    pub fn finish(&mut self, room: usize) -> (c_int, Vec<u8>, usize) {
        let mut out = vec![0x5a; room + 16];
        let (mut len, mut acks) = (usize::MAX, usize::MAX);
        // SAFETY: as above.
        let code =
            unsafe { tacit_hack_finish(self.handle, out.as_mut_ptr(), room, &raw mut len, &raw mut acks) };
        assert!(out[room..].iter().all(|byte| *byte == 0x5a));
        out.truncate(len);
        (code, out, acks)
    }
}

/// The end that restores ACKs.
pub struct Ap {
    _memory: Vec<u128>,
    pub handle: *mut tacit_hack_decompressor,
}

unsafe extern "C" fn collect(user: *mut c_void, packet: *const u8, len: usize) {
    // SAFETY: `user` is the list of `Ap::receive`, and the packet has `len` bytes.
    unsafe { (*user.cast::<Vec<Vec<u8>>>()).push(std::slice::from_raw_parts(packet, len).to_vec()) }
}

impl Ap {
    pub fn new(contexts: usize) -> Self {
        let size = tacit_hack_decompressor_size(contexts);
        let mut memory = memory(size);
        let mut handle = ptr::null_mut();
        let at = memory.as_mut_ptr().cast();
        // SAFETY: the memory has the size that the library asks for, and is dropped after the handle.
        let code = unsafe { tacit_hack_decompressor_init(at, size, contexts, &raw mut handle) };
        assert_eq!(code, TACIT_OK);
        Self { _memory: memory, handle }
    }

    pub fn native(&mut self, packet: &[u8]) {
        // SAFETY: the handle lives, and the slice has its length.
        let code = unsafe { tacit_hack_native_received(self.handle, packet.as_ptr(), packet.len()) };
        assert_eq!(code, TACIT_OK);
    }

    pub fn receive(&mut self, frames: &[u8]) -> (Report, Vec<Vec<u8>>) {
        let mut got: Vec<Vec<u8>> = Vec::new();
        let mut report = tacit_hack_report::default();
        let user = (&raw mut got).cast();
        // SAFETY: as above; `collect` gets the list that it casts to.
        let code = unsafe {
            let deliver = Some(collect as _);
            tacit_hack_receive(self.handle, frames.as_ptr(), frames.len(), deliver, user, &raw mut report)
        };
        assert_eq!(code, TACIT_OK);
        (in_rust(&report), got)
    }
}

fn in_rust(report: &tacit_hack_report) -> Report {
    Report {
        frames: report.frames as usize,
        acks: report.acks as usize,
        duplicates: report.duplicates as usize,
        malformed: report.malformed as usize,
        no_context: report.no_context as usize,
        gap: report.gap as usize,
        stale: report.stale as usize,
        check: report.check as usize,
    }
}

/// The law of one receiver.
pub struct Law {
    _memory: Vec<u128>,
    pub handle: *mut tacit_ack_law,
}

impl Law {
    pub fn new(packet: u32) -> Self {
        let mut memory = memory(tacit_ack_law_size());
        let mut handle = ptr::null_mut();
        let at = memory.as_mut_ptr().cast();
        // SAFETY: the memory has the size that the library asks for, and is dropped after the handle.
        let code = unsafe { tacit_ack_law_init(at, tacit_ack_law_size(), packet, &raw mut handle) };
        assert_eq!(code, TACIT_OK);
        Self { _memory: memory, handle }
    }

    pub fn due(&mut self, now_ns: u64) -> (c_int, u64) {
        let mut due = u64::MAX;
        // SAFETY: the handle lives.
        let code = unsafe { tacit_ack_law_due(self.handle, now_ns, &raw mut due) };
        (code, due)
    }
}
