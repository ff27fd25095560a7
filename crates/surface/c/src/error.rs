//! What functions return.

use core::ffi::{c_char, c_int};

use tacit_rohc::hack::Refusal;

/// Done.
pub const TACIT_OK: c_int = 0;
/// A pointer that must not be NULL is.
pub const TACIT_ERR_NULL: c_int = -1;
/// No handle of the kind that the function takes: never initialised, freed, or of another kind.
pub const TACIT_ERR_HANDLE: c_int = -2;
/// The handle is in use: its own callback called it.
pub const TACIT_ERR_BUSY: c_int = -3;
/// The memory for a handle is too short, or not aligned to TACIT_ALIGN.
pub const TACIT_ERR_MEMORY: c_int = -4;
/// An argument is outside of its range, or input and output overlap.
pub const TACIT_ERR_ARGUMENT: c_int = -5;
/// The output buffer is too short.
pub const TACIT_ERR_SPACE: c_int = -6;
/// HACK: the TCP/IP header could not be restored bit for bit.
pub const TACIT_ERR_HEADER: c_int = -20;
/// HACK: bytes stand behind the packet.
pub const TACIT_ERR_TRAILER: c_int = -21;
/// HACK: the packet has payload, or a flag other than ACK, PSH and ECE.
pub const TACIT_ERR_NOT_PURE_ACK: c_int = -22;
/// HACK: the TCP checksum is wrong.
pub const TACIT_ERR_CHECKSUM: c_int = -23;
/// HACK: no native ACK of the flow has reached the peer yet. ROHC: the flow or CID has no context.
pub const TACIT_ERR_NO_CONTEXT: c_int = -24;
/// HACK: another live flow has the CID of this one.
pub const TACIT_ERR_CID_TAKEN: c_int = -25;
/// HACK: the frame is full. Finish it first.
pub const TACIT_ERR_FRAME_FULL: c_int = -26;
/// ROHC: the packet cannot be compressed: its header or its TCP options are not of the profile.
pub const TACIT_ERR_PROFILE: c_int = -40;
/// ROHC: the peer refused the flow.
pub const TACIT_ERR_REJECTED: c_int = -41;
/// ROHC: there is only padding or feedback.
pub const TACIT_ERR_EMPTY: c_int = -42;
/// ROHC: the packet is truncated, or has bits that no valid packet has.
pub const TACIT_ERR_MALFORMED: c_int = -43;
/// ROHC: the context may be damaged, and the packet's CRC is too weak to repair it.
pub const TACIT_ERR_DAMAGED: c_int = -44;
/// ROHC: the CRC is wrong, or the packet is late.
pub const TACIT_ERR_CRC: c_int = -45;
/// ROHC: no room for another context.
pub const TACIT_ERR_NO_ROOM: c_int = -46;

/// What a code means, in English: a string that is never freed. Codes that no function returns have one, too.
#[unsafe(no_mangle)]
pub extern "C" fn tacit_error_text(code: c_int) -> *const c_char {
    let text = match code {
        TACIT_OK => c"done",
        TACIT_ERR_NULL => c"a pointer is NULL",
        TACIT_ERR_HANDLE => c"no handle of this kind",
        TACIT_ERR_BUSY => c"the handle is in use",
        TACIT_ERR_MEMORY => c"memory too short or not aligned",
        TACIT_ERR_ARGUMENT => c"argument out of range",
        TACIT_ERR_SPACE => c"output too small",
        TACIT_ERR_HEADER => c"a header that could not be restored",
        TACIT_ERR_TRAILER => c"bytes behind the packet",
        TACIT_ERR_NOT_PURE_ACK => c"not a pure ACK",
        TACIT_ERR_CHECKSUM => c"wrong TCP checksum",
        TACIT_ERR_NO_CONTEXT => c"flow without a context",
        TACIT_ERR_CID_TAKEN => c"another flow has the same CID",
        TACIT_ERR_FRAME_FULL => c"frame is full",
        TACIT_ERR_PROFILE => c"not a packet of profile 0x0006",
        TACIT_ERR_REJECTED => c"the peer refuses this flow",
        TACIT_ERR_EMPTY => c"no packet behind padding and feedback",
        TACIT_ERR_MALFORMED => c"malformed ROHC packet",
        TACIT_ERR_DAMAGED => c"context in doubt, check too weak to repair it",
        TACIT_ERR_CRC => c"wrong check",
        TACIT_ERR_NO_ROOM => c"no room for another context",
        _ => c"unknown code",
    };
    text.as_ptr()
}

/// The version of this library, such as "0.2.0".
#[unsafe(no_mangle)]
pub extern "C" fn tacit_version() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}

/// The code of a result.
pub(crate) fn code(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(TACIT_OK)
}

/// The code of a refusal.
pub(crate) fn refused(refusal: Refusal) -> c_int {
    match refusal {
        Refusal::Header(_) => TACIT_ERR_HEADER,
        Refusal::Trailer => TACIT_ERR_TRAILER,
        Refusal::NotPureAck => TACIT_ERR_NOT_PURE_ACK,
        Refusal::Checksum => TACIT_ERR_CHECKSUM,
        Refusal::NoContext => TACIT_ERR_NO_CONTEXT,
        Refusal::CidTaken => TACIT_ERR_CID_TAKEN,
        Refusal::FrameFull => TACIT_ERR_FRAME_FULL,
    }
}
