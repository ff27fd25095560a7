//! TCP/HACK's codec: both ends in memory of the caller's.

use core::ffi::{c_int, c_void};

use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, List, MAX_FRAME_ACKS, Report, Room};

use crate::error::*;
use crate::handle::{self, Handle, State, init, input, output, put, put_if_wanted, with};
use crate::memory::Region;
pub use crate::memory::TACIT_ALIGN;

/// Each ACK of a frame is coded on its own, as in the paper.
pub const TACIT_HACK_PER_ACK: c_int = 0;
/// All ACKs of a frame are one range-coded run: shorter, with a little more work.
pub const TACIT_HACK_BATCH: c_int = 1;
/// ACKs in a frame, at most.
pub const TACIT_HACK_FRAME_ACKS: usize = 64;
/// Flows of an end, at most.
pub const TACIT_HACK_CONTEXTS: usize = 256;

const _: () = assert!(TACIT_HACK_FRAME_ACKS == MAX_FRAME_ACKS);

/// The end that sends ACKs.
pub type tacit_hack_compressor = Handle<Compressor<Region>>;

/// The end that restores ACKs.
pub type tacit_hack_decompressor = Handle<Decompressor<Region>>;

impl State for Compressor<Region> {
    const KIND: u32 = u32::from_be_bytes(*b"hckC");
}

impl State for Decompressor<Region> {
    const KIND: u32 = u32::from_be_bytes(*b"hckD");
}

/// Takes a restored ACK, a whole IP packet that lives until the call returns.
pub type tacit_hack_deliver = Option<unsafe extern "C" fn(user: *mut c_void, packet: *const u8, len: usize)>;

/// The outcome of the frames of one link-layer ACK. All but `acks` count frames.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct tacit_hack_report {
    /// Frames found.
    pub frames: u32,
    /// ACKs delivered.
    pub acks: u32,
    /// Duplicates.
    pub duplicates: u32,
    /// Wrong lengths, unknown kinds, or fields that no pure ACK has.
    pub malformed: u32,
    /// No flow with this CID is active.
    pub no_context: u32,
    /// A frame before this one is missing.
    pub gap: u32,
    /// First frames whose native ACK is unknown or superseded.
    pub stale: u32,
    /// The CRC-8 does not match the restored headers.
    pub check: u32,
}

fn limits(contexts: usize, frame_acks: usize) -> Option<Limits> {
    let possible =
        (1..=TACIT_HACK_CONTEXTS).contains(&contexts) && (1..=TACIT_HACK_FRAME_ACKS).contains(&frame_acks);
    possible.then_some(Limits { contexts, frame_acks })
}

/// Bytes of memory for a compressor of 1 to TACIT_HACK_CONTEXTS flows, whose frames have 1 to TACIT_HACK_FRAME_ACKS ACKs;
/// 0 for other arguments.
#[unsafe(no_mangle)]
pub extern "C" fn tacit_hack_compressor_size(contexts: usize, frame_acks: usize) -> usize {
    let make = |limits| handle::size(|region| Compressor::new_in(Coding::PerAck, limits, region));
    limits(contexts, frame_acks).map_or(0, make)
}

/// Makes a compressor in `memory`, which has `len` bytes and is aligned to TACIT_ALIGN. It stays the caller's, but only
/// this library may touch it while the handle is used; then it may be freed. `coding` is TACIT_HACK_PER_ACK or
/// TACIT_HACK_BATCH. Nothing is allocated, now or later.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_hack_compressor_init(
    memory: *mut c_void,
    len: usize,
    coding: c_int,
    contexts: usize,
    frame_acks: usize,
    compressor: *mut *mut tacit_hack_compressor,
) -> c_int {
    let coding = match coding {
        TACIT_HACK_PER_ACK => Coding::PerAck,
        TACIT_HACK_BATCH => Coding::Batch,
        _ => return TACIT_ERR_ARGUMENT,
    };
    let Some(limits) = limits(contexts, frame_acks) else { return TACIT_ERR_ARGUMENT };
    // SAFETY: by contract.
    unsafe { init(memory, len, compressor, |region| Compressor::new_in(coding, limits, region)) }
}

/// The link layer acknowledged this native ACK, a whole IP packet: its flow can be compressed from now on. Other packets
/// than pure ACKs are ignored, so that a driver may pass every packet.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_hack_native_sent(
    compressor: *mut tacit_hack_compressor,
    packet: *const u8,
    len: usize,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe {
        with(compressor, |compressor| {
            compressor.note_native(input(packet, len)?);
            Ok(())
        })
    }
}

/// Adds a pure ACK, a whole IP packet, to the frame under construction. One that is refused has to be sent
/// uncompressed; nothing changes then.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_hack_push(
    compressor: *mut tacit_hack_compressor,
    packet: *const u8,
    len: usize,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe { with(compressor, |compressor| compressor.push(input(packet, len)?).map_err(refused)) }
}

/// Writes the frames of the ACKs since the last call to `frames`, which has room for `room` bytes: a frame for each flow.
/// `len` gets their bytes, and `acks`, unless it is NULL, the ACKs in them; both 0 where there are none.
///
/// TACIT_ERR_SPACE: they are longer. Nothing is written, the ACKs have to be sent uncompressed, and their flows have
/// no context until the next native ACK.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_hack_finish(
    compressor: *mut tacit_hack_compressor,
    frames: *mut u8,
    room: usize,
    len: *mut usize,
    acks: *mut usize,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe {
        with(compressor, |compressor| {
            put(len, 0)?;
            put_if_wanted(acks, 0)?;
            let mut out = Room::new(output(frames, room)?);
            let count = compressor.finish_frame(&mut out);
            put_if_wanted(acks, count)?;
            put(len, out.len())?;
            if out.is_cut() { Err(TACIT_ERR_SPACE) } else { Ok(()) }
        })
    }
}

/// Frames that may not have arrived were given up: the flow of `packet` has no context until its next native ACK, and its
/// ACKs leave the frame under construction. A NULL packet of length 0 stands for all flows.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_hack_invalidate(
    compressor: *mut tacit_hack_compressor,
    packet: *const u8,
    len: usize,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe {
        with(compressor, |compressor| {
            match input(packet, len)? {
                [] => compressor.invalidate_all(),
                packet => compressor.invalidate(packet),
            }
            Ok(())
        })
    }
}

/// Bytes of memory for a decompressor of 1 to TACIT_HACK_CONTEXTS flows; 0 for other arguments.
#[unsafe(no_mangle)]
pub extern "C" fn tacit_hack_decompressor_size(contexts: usize) -> usize {
    let make = |limits| handle::size(|region| Decompressor::new_in(limits, region));
    limits(contexts, 1).map_or(0, make)
}

/// Makes a decompressor in `memory`, as tacit_hack_compressor_init does. It needs more contexts than the compressor by
/// the flows whose CID another has.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_hack_decompressor_init(
    memory: *mut c_void,
    len: usize,
    contexts: usize,
    decompressor: *mut *mut tacit_hack_decompressor,
) -> c_int {
    let Some(limits) = limits(contexts, 1) else { return TACIT_ERR_ARGUMENT };
    // SAFETY: by contract.
    unsafe { init(memory, len, decompressor, |region| Decompressor::new_in(limits, region)) }
}

/// A native packet arrived from the peer. Other packets than pure ACKs are ignored.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_hack_native_received(
    decompressor: *mut tacit_hack_decompressor,
    packet: *const u8,
    len: usize,
) -> c_int {
    // SAFETY: by contract, here and within.
    unsafe {
        with(decompressor, |decompressor| {
            decompressor.note_native(input(packet, len)?);
            Ok(())
        })
    }
}

/// The bytes behind one link-layer ACK arrived: restores the ACKs of its frames, and calls `deliver` with `user` for each.
/// `report`, unless it is NULL, gets the counts. Frames that cannot be restored are counted there; they are no error.
///
/// # Safety
///
/// Each pointer is NULL or as the text says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tacit_hack_receive(
    decompressor: *mut tacit_hack_decompressor,
    frames: *const u8,
    len: usize,
    deliver: tacit_hack_deliver,
    user: *mut c_void,
    report: *mut tacit_hack_report,
) -> c_int {
    let Some(deliver) = deliver else { return TACIT_ERR_NULL };
    // SAFETY: by contract, here and within.
    unsafe {
        with(decompressor, |decompressor| {
            put_if_wanted(report, tacit_hack_report::default())?;
            let seen = decompressor
                .receive(input(frames, len)?, &mut |packet| deliver(user, packet.as_ptr(), packet.len()));
            put_if_wanted(report, counts(&seen))
        })
    }
}

fn counts(report: &Report) -> tacit_hack_report {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    tacit_hack_report {
        frames: count(report.frames),
        acks: count(report.acks),
        duplicates: count(report.duplicates),
        malformed: count(report.malformed),
        no_context: count(report.no_context),
        gap: count(report.gap),
        stale: count(report.stale),
        check: count(report.check),
    }
}
