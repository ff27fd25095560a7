//! ROHC-TCP, RFC 6846: both ends on the heap.

use core::ffi::c_int;
use core::ptr;
use core::time::Duration;

use tacit_rohc::{
    CidSpace, CompressError, Compressor, CompressorConfig, DecompressErrorKind, Decompressor,
    DecompressorConfig, Feedback, MAX_REPEAT, split_feedback,
};

use crate::error::*;
use crate::handle::{Handle, State, boxed, free, input, output, put, put_if_wanted, with};

/// By how much a ROHC packet may be longer than its IP packet.
pub const TACIT_ROHC_GROWTH: usize = 65;
/// Bytes of a feedback element, at most.
pub const TACIT_ROHC_FEEDBACK: usize = 8;

/// The end that compresses.
pub type tacit_rohc_compressor = Handle<Compressor>;

/// The end that decompresses.
pub type tacit_rohc_decompressor = Handle<Decompressor>;

impl State for Compressor {
    const KIND: u32 = u32::from_be_bytes(*b"rohC");
}

impl State for Decompressor {
    const KIND: u32 = u32::from_be_bytes(*b"rohD");
}

/// What both ends agree on, and how each of them works. tacit_rohc_defaults fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tacit_rohc_config {
    /// The largest CID: up to 15 where CIDs are small, up to 16383 where they are large. It bounds the contexts.
    pub max_cid: u16,
    /// Not 0: CIDs are large.
    pub large_cids: u8,
    /// Packets in a row that carry each change, 1 to 8. Fewer losses in a row than this damage no other packet.
    pub repeat: u8,
    /// Not 0: the decompressor makes feedback.
    pub feedback: u8,
    /// Not 0: the decompressor verifies the TCP checksum of every packet.
    pub verify_tcp_checksum: u8,
    /// Seeds the first MSNs, which the RFC wants random, and the hash of flows.
    pub seed: u64,
}

/// Sixteen small CIDs, each change in two packets, feedback, no verification.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_defaults(config: *mut tacit_rohc_config) -> c_int {
    let usual = CompressorConfig::default();
    let value = tacit_rohc_config {
        max_cid: usual.cids.max(),
        large_cids: 0,
        repeat: usual.repeat,
        feedback: 1,
        verify_tcp_checksum: 0,
        seed: usual.seed,
    };
    // SAFETY: by contract.
    code(unsafe { put(config, value) })
}

impl tacit_rohc_config {
    /// The configuration at `config`.
    ///
    /// # Safety
    ///
    /// `config` is NULL or points to one.
    unsafe fn read(config: *const Self) -> Result<Self, c_int> {
        if config.is_null() {
            return Err(TACIT_ERR_NULL);
        }
        if !config.is_aligned() {
            return Err(TACIT_ERR_ARGUMENT);
        }
        // SAFETY: not null, aligned, and by contract; any bytes are a configuration.
        let config = unsafe { config.read() };
        let possible = config.cids().max() == config.max_cid && (1..=MAX_REPEAT).contains(&config.repeat);
        if possible { Ok(config) } else { Err(TACIT_ERR_ARGUMENT) }
    }

    fn cids(&self) -> CidSpace {
        match self.large_cids {
            0 => CidSpace::Small { max: u8::try_from(self.max_cid).unwrap_or(u8::MAX) },
            _ => CidSpace::Large { max: self.max_cid },
        }
    }
}

/// Makes a compressor. Its contexts are allocated with their flows, and freed with it.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_compressor_new(
    config: *const tacit_rohc_config,
    compressor: *mut *mut tacit_rohc_compressor,
) -> c_int {
    // SAFETY: by contract, here and within.
    code(unsafe { tacit_rohc_config::read(config) }.and_then(|config| {
        // SAFETY: by contract. A pointer that cannot be written is found before there is something to free.
        unsafe { put(compressor, ptr::null_mut()) }?;
        let usual = CompressorConfig::default();
        let config =
            CompressorConfig { cids: config.cids(), repeat: config.repeat, seed: config.seed, ..usual };
        // SAFETY: by contract.
        unsafe { put(compressor, boxed(Compressor::new(config))) }
    }))
}

/// Frees a compressor; NULL is none.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_compressor_free(compressor: *mut tacit_rohc_compressor) -> c_int {
    // SAFETY: by contract.
    unsafe { free(compressor) }
}

/// Compresses the IP packet at `packet` into `out`, which has room for `room` bytes and shares none with it; packet and
/// TACIT_ROHC_GROWTH always suffice. `out_len` gets the bytes. `now_ms` is the time of any clock: contexts are refreshed by
/// it, unless it is always 0. A packet that cannot be compressed has to go another way.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_compress(
    compressor: *mut tacit_rohc_compressor,
    now_ms: u64,
    packet: *const u8,
    len: usize,
    out: *mut u8,
    room: usize,
    out_len: *mut usize,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe {
        with(compressor, |compressor| {
            put(out_len, 0)?;
            apart(packet, len, out, room)?;
            compressor.set_time(Duration::from_millis(now_ms));
            let compressed = compressor.compress(input(packet, len)?, output(out, room)?);
            put(out_len, compressed.map_err(not_compressed)?.len)
        })
    }
}

fn not_compressed(error: CompressError) -> c_int {
    match error {
        CompressError::Rejected => TACIT_ERR_REJECTED,
        CompressError::NoContext => TACIT_ERR_NO_CONTEXT,
        CompressError::OutputTooSmall => TACIT_ERR_SPACE,
        _ => TACIT_ERR_PROFILE,
    }
}

/// Takes feedback elements of the peer's decompressor. Malformed ones are ignored; `ignored`, unless it is NULL, gets their
/// number.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_feedback(
    compressor: *mut tacit_rohc_compressor,
    feedback: *const u8,
    len: usize,
    ignored: *mut usize,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe {
        with(compressor, |compressor| {
            put_if_wanted(ignored, 0)?;
            put_if_wanted(ignored, compressor.feedback(input(feedback, len)?))
        })
    }
}

/// Bytes of feedback and padding in front of the ROHC packet at `packet`: for tacit_rohc_feedback of the other direction.
/// tacit_rohc_decompress skips them. `feedback_len` gets them.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_split(packet: *const u8, len: usize, feedback_len: *mut usize) -> c_int {
    // SAFETY: by contract, here and within.
    code(unsafe { input(packet, len) }.and_then(|packet| {
        // SAFETY: by contract.
        unsafe { put(feedback_len, split_feedback(packet).0.len()) }
    }))
}

/// Makes a decompressor. Its contexts are allocated with their first packets, and freed with it.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_decompressor_new(
    config: *const tacit_rohc_config,
    decompressor: *mut *mut tacit_rohc_decompressor,
) -> c_int {
    // SAFETY: by contract, here and within.
    code(unsafe { tacit_rohc_config::read(config) }.and_then(|config| {
        // SAFETY: by contract. A pointer that cannot be written is found before there is something to free.
        unsafe { put(decompressor, ptr::null_mut()) }?;
        let config = DecompressorConfig {
            cids: config.cids(),
            feedback: config.feedback != 0,
            verify_tcp_checksum: config.verify_tcp_checksum != 0,
            ..DecompressorConfig::default()
        };
        // SAFETY: by contract.
        unsafe { put(decompressor, boxed(Decompressor::new(config))) }
    }))
}

/// Frees a decompressor; NULL is none.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_decompressor_free(decompressor: *mut tacit_rohc_decompressor) -> c_int {
    // SAFETY: by contract.
    unsafe { free(decompressor) }
}

/// Decompresses the ROHC packet at `packet` into `out`, which has room for `room` bytes and shares none with it. `out_len`
/// gets the bytes. `feedback` has room for TACIT_ROHC_FEEDBACK bytes and gets what is to be sent to the compressor, also
/// after an error, and `feedback_len` their number; both may be NULL.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_rohc_decompress(
    decompressor: *mut tacit_rohc_decompressor,
    packet: *const u8,
    len: usize,
    out: *mut u8,
    room: usize,
    out_len: *mut usize,
    feedback: *mut u8,
    feedback_len: *mut usize,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe {
        with(decompressor, |decompressor| {
            put(out_len, 0)?;
            if feedback.is_null() != feedback_len.is_null() {
                return Err(TACIT_ERR_NULL);
            }
            put_if_wanted(feedback_len, 0)?;
            apart(packet, len, out, room)?;
            let (done, answer) = match decompressor.decompress(input(packet, len)?, output(out, room)?) {
                Ok(done) => (Ok(done.len), done.feedback),
                Err(error) => (Err(not_decompressed(error.kind)), error.feedback),
            };
            if !feedback.is_null() {
                let bytes = answer.as_ref().map_or(&[][..], Feedback::as_bytes);
                output(feedback, bytes.len())?.copy_from_slice(bytes);
                put(feedback_len, bytes.len())?;
            }
            put(out_len, done?)
        })
    }
}

fn not_decompressed(kind: DecompressErrorKind) -> c_int {
    match kind {
        DecompressErrorKind::Empty => TACIT_ERR_EMPTY,
        DecompressErrorKind::NoRoom => TACIT_ERR_NO_ROOM,
        DecompressErrorKind::NoContext | DecompressErrorKind::Cid => TACIT_ERR_NO_CONTEXT,
        DecompressErrorKind::Damaged => TACIT_ERR_DAMAGED,
        DecompressErrorKind::Crc | DecompressErrorKind::Stale => TACIT_ERR_CRC,
        DecompressErrorKind::OutputTooSmall => TACIT_ERR_SPACE,
        DecompressErrorKind::Profile => TACIT_ERR_PROFILE,
        _ => TACIT_ERR_MALFORMED,
    }
}

/// An error where input and output share bytes.
fn apart(input: *const u8, len: usize, output: *const u8, room: usize) -> Result<(), c_int> {
    let (input, output) = (input.addr(), output.addr());
    let overlap = input < output.saturating_add(room) && output < input.saturating_add(len);
    if overlap { Err(TACIT_ERR_ARGUMENT) } else { Ok(()) }
}
