//! The HACK variant: pure TCP ACKs carried in link-layer ACKs (Salameh et al., USENIX ATC 2014, sections 3.3.2 and
//! 3.4).
//!
//! # Frames
//!
//! The unit of transfer is a *frame*: the compressed ACKs of one flow since the previous frame. The driver hands frames
//! to its NIC as opaque bytes. The NIC appends them to a link-layer ACK, and repeats them until it knows that one copy
//! arrived. A frame arrives as a whole or not at all, and possibly more than once. When several frames are appended,
//! each is delimited by its length field. The ACKs in a frame are preceded by four bytes: length and kind, CID, MSN,
//! CRC-8. The first frame after a native ACK has two more bytes.
//!
//! # Contexts
//!
//! There are no IR packets. Once the link layer has acknowledged a *native* (uncompressed) ACK, both ends know it. Each
//! end then derives the same context from it with the same rule ([`Compressor::note_native`],
//! [`Decompressor::note_native`]). The CID is the lowest byte of the MD5 digest of the 5-tuple. If two live flows have
//! the same CID, the second one stays uncompressed.
//!
//! # Why nothing wrong is ever delivered
//!
//! Every ACK is coded relative to the previous one, so a frame may only be decoded in exactly the state in which it was
//! encoded. The ACKs coded since one native ACK form an *incarnation* of the flow.
//!
//! - Within an incarnation, a frame is decoded only if its MSN is exactly the next one. The compressor counts the MSN
//!   per CID and never resets it. So the MSN of a frame from an earlier incarnation, or from another flow with this
//!   CID, is behind the next one, provided that no frame is kept while 128 further ACKs are sent ([`RETAINED_ACKS`]).
//!   An MSN is decoded as lsb(8, 128) relative to the highest one seen, not the last one accepted. So if the two ends
//!   lose synchronisation, an MSN that has wrapped still does not match.
//! - The first frame of an incarnation is marked as such and carries the CRC-16 of the native ACK it starts from. It is
//!   decoded only relative to a native ACK with that CRC-16 that arrived after the one from which the current
//!   incarnation started. So neither a duplicate nor a stale first frame is accepted. The compressor does not start
//!   from a native ACK whose CRC-16 equals that of one of the CID's latest eight incarnations. The driver may have
//!   withdrawn all frames of those eight before they were sent, so a ninth incarnation may have the same CRC-16 as the
//!   peer's current one. They are distinguished by the MSN of the first frame: a duplicate has the same MSN, a new
//!   incarnation has another.
//! - A native ACK that only the decompressor knows (because the link-layer acknowledgment was lost) changes nothing:
//!   the current incarnation continues until a first frame ends it.
//!
//! The CRC-8 over all reconstructed headers is therefore not needed to distinguish states. It is the last defence
//! against driver errors and stray bytes. It passes 1 in 256 of those, and so does the MSN check before it. They must
//! also pass the 32-bit FCS of the LL ACK. A CRC-16 would add a quarter to the length of a short frame. No CRC helps
//! against forged frames, because link-layer ACKs are not encrypted.
//!
//! A frame that fails leaves every context unchanged. The next native ACK that both ends see starts a new incarnation.
//!
//! Outside the retention window, the guarantee is weaker. A duplicate of a frame that arrives after 129 or more further
//! ACKs of its CID is taken for new if its MSN happens to be the next one. That is the case in one of 256 states (and
//! always after exactly 256, 512 and so on). The CRC-8 then passes one in 256 of these, and the delivered ACKs are
//! wrong. In any other state the frame is dropped without being decoded. First frames are safe even outside the window,
//! because of their CRC-16.
//!
//! # Duties of the driver
//!
//! - Call [`Compressor::note_native`] for native ACKs that the link acknowledged, and only for those that the peer's
//!   codec sees before any later frame.
//! - Send frames in the order in which they were created, retained ones first. Do not skip a frame and then send a
//!   later one.
//! - Call [`Compressor::invalidate`] when giving up frames that may not have arrived. The flow is then sent
//!   uncompressed.
//! - Do not repeat a frame after [`RETAINED_ACKS`] further ACKs have been compressed.
//!
//! A violation loses ACKs until the next native one, and has no other effect, except outside the retention window
//! (above).
//!
//! # Example
//!
//! ```
//! use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits};
//!
//! # let packet = |id: u8, ack: u32| {
//! #     use tacit_rohc::header::{Header, Ip, Options, flags};
//! #     let mut header = Header {
//! #         ip: Ip::V4 { source: [10, 0, 0, 2], destination: [10, 0, 0, 1], id: id.into(), dont_fragment: true },
//! #         dscp: 0, ip_ecn: 0, ttl: 64, source_port: 4000, destination_port: 80, seq: 1, ack, reserved: 0,
//! #         flags: flags::ACK, window: 500, checksum: 0, urgent: 0, options: Options::NONE, payload_len: 0,
//! #     };
//! #     header.checksum = header.tcp_checksum(&[]);
//! #     let mut bytes = vec![0; header.len()];
//! #     header.emit(&mut bytes);
//! #     bytes
//! # };
//! // Three pure ACKs of 40 bytes; the first goes natively.
//! let acks = [packet(1, 1), packet(2, 2897), packet(3, 5793)];
//! let mut client = Compressor::new(Coding::Batch, Limits::default());
//! let mut ap = Decompressor::new(Limits::default());
//! client.note_native(&acks[0]);
//! ap.note_native(&acks[0]);
//!
//! // The others ride in a link-layer ACK, which is sent twice because the first is thought lost.
//! for ack in &acks[1..] {
//!     client.push(ack)?;
//! }
//! let mut appended = Vec::new();
//! assert_eq!(client.finish_frame(&mut appended), 2);
//! assert!(appended.len() <= 8);
//! let mut forwarded = Vec::new();
//! ap.receive(&appended, &mut |packet| forwarded.push(packet.to_vec()));
//! assert_eq!(forwarded, acks[1..]);
//! assert_eq!(ap.receive(&appended, &mut |_| unreachable!()).duplicates, 1);
//! # Ok::<(), tacit_rohc::hack::Refusal>(())
//! ```

mod area;
mod batch;
mod bytes;
mod compressor;
mod context;
mod decompressor;
mod flow;
mod frame;
mod memory;
mod per_ack;
mod range;

use core::fmt;

pub use compressor::Compressor;
pub use decompressor::{Decompressor, Report};
pub use memory::{Heap, List, Memory, Room};

use crate::header::{Header, MAX_HEADER_LEN, Options, ParseError, flags};

/// Maximum number of ACKs in a frame, regardless of [`Limits`].
pub const MAX_FRAME_ACKS: usize = 64;
/// Maximum number of ACKs that may be compressed after a frame that the driver still repeats. Beyond this, an old frame
/// could look new.
pub const RETAINED_ACKS: usize = 127;

/// The coding of frames. A decompressor detects it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// A separate compressed header for each ACK, as in the paper.
    #[default]
    PerAck,
    /// All ACKs of a frame as one range-coded run.
    Batch,
}

/// Bounds on the state of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of flows with a context: 1..=256. A new flow evicts the least recently used one.
    pub contexts: usize,
    /// Maximum number of ACKs accepted by [`Compressor::push`] before a call of [`Compressor::finish_frame`]:
    /// 1..=[`MAX_FRAME_ACKS`].
    pub frame_acks: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { contexts: 64, frame_acks: MAX_FRAME_ACKS }
    }
}

impl Limits {
    fn clamped(self) -> Self {
        Self { contexts: self.contexts.clamp(1, 256), frame_acks: self.frame_acks.clamp(1, MAX_FRAME_ACKS) }
    }
}

/// Why an ACK has to be sent uncompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The TCP/IP header could not be restored bit for bit.
    Header(ParseError),
    /// There are bytes beyond the length in the IP header.
    Trailer,
    /// There is payload, or a flag other than ACK, PSH and ECE is set.
    NotPureAck,
    /// The TCP checksum is wrong. Recomputing it would turn a corrupt ACK into a valid one.
    Checksum,
    /// No native ACK of this flow has reached the peer since the context was last invalidated.
    NoContext,
    /// Another live flow uses this flow's CID.
    CidTaken,
    /// The frame is full. Call [`Compressor::finish_frame`] first.
    FrameFull,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(error) => error.fmt(f),
            Self::Trailer => f.write_str("bytes behind the packet"),
            Self::NotPureAck => f.write_str("not a pure ACK"),
            Self::Checksum => f.write_str("wrong TCP checksum"),
            Self::NoContext => f.write_str("flow without a context"),
            Self::CidTaken => f.write_str("another flow has the same CID"),
            Self::FrameFull => f.write_str("frame is full"),
        }
    }
}

impl core::error::Error for Refusal {}

/// The kinds of the frames in `bytes`, for statistics. In `short`, `long` and `long-init` frames, each ACK is coded
/// separately; `batch` and `batch-init` frames are one range-coded run. `-init` marks the first frame after a native
/// ACK. The iterator stops at the first bytes that are not a frame.
pub fn frame_kinds(bytes: &[u8]) -> impl Iterator<Item = &'static str> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (frame, behind) = frame::Frame::split(rest)?;
        rest = behind;
        frame.map(|frame| frame.kind.name())
    })
}

/// True if `bytes` consists of whole frames. Frames of unknown kinds count too, such as feedback of other transports,
/// because the length field has the same position in all frames.
pub fn are_frames(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((_, behind)) = frame::Frame::split(rest) {
        rest = behind;
    }
    !bytes.is_empty() && rest.is_empty()
}

/// True for a pure ACK that the codec supports. CWR is not supported, because it is sent with new data (RFC 3168
/// section 6.1.2).
#[inline(always)]
const fn is_carried(header: &Header) -> bool {
    header.is_pure_ack() && !header.has(flags::CWR)
}

/// Parses `packet` as a pure ACK without trailing bytes.
#[inline(always)]
fn pure_ack(packet: &[u8]) -> Result<Header, Refusal> {
    let (mut header, options) = Header::parse_apart(packet).map_err(Refusal::Header)?;
    if !is_carried(&header) {
        return Err(Refusal::NotPureAck);
    }
    if header.len() + options.len() != packet.len() {
        return Err(Refusal::Trailer);
    }
    // Checked before the options are copied, because loading bytes that were just stored is slow.
    if !header.packet_checks(packet) {
        return Err(Refusal::Checksum);
    }
    header.options = Options::new(options).ok_or(Refusal::Header(ParseError::Length))?;
    Ok(header)
}

/// The CRC-16 that identifies the native ACK from which a frame starts.
fn native_check(header: &Header) -> u16 {
    let mut bytes = [0; MAX_HEADER_LEN];
    let len = header.emit(&mut bytes).unwrap_or(0);
    crate::crc::crc16(&bytes[..len])
}
