//! The HACK variant: pure TCP ACKs that ride in link-layer ACKs (Salameh et al., USENIX ATC 2014, sections 3.3.2 and
//! 3.4).
//!
//! # Frames
//!
//! The unit is a *frame*: the compressed ACKs of one flow since the previous frame. A driver hands frames to its NIC
//! as opaque bytes, the NIC appends them to a link-layer ACK and repeats them until it knows that one arrived. A
//! frame arrives whole or not at all, and perhaps again; several in a row separate themselves by their lengths.
//! Four bytes (length and kind, CID, MSN, CRC-8) precede the ACKs, two more when the frame is the first since a native
//! ACK.
//!
//! # Contexts
//!
//! There are no IR packets. A *native* (plain) ACK is known to both ends once the link has acknowledged it, so either
//! end derives the same context from it by one rule ([`Compressor::note_native`], [`Decompressor::note_native`]). The CID is the
//! lowest byte of the MD5 digest of the 5-tuple; of two live flows with one CID the second stays uncompressed.
//!
//! # Why nothing wrong is ever delivered
//!
//! Every ACK is coded against the one before it, so a frame may only be decoded in exactly the state it was made in.
//! Call the ACKs coded from one native ACK on an *incarnation* of the flow.
//!
//! - Within an incarnation a frame is decoded only when its MSN is exactly the next one. The compressor counts
//!   the MSN per CID and never resets it, so a frame of an earlier incarnation, or of another flow with this CID, is
//!   behind, never next, as long as frames are not kept while 128 further ACKs are sent ([`RETAINED_ACKS`]). An
//!   MSN is read as lsb(8, 128) beside the highest one seen, not the last one accepted: should the ends ever run
//!   apart, an MSN that comes round again is still no match.
//! - The first frame of an incarnation says so and carries the CRC-16 of the native ACK it starts from. It
//!   is decoded only against a native ACK with that check which came later than the one the present incarnation
//!   started from, so neither a repetition nor a stale first frame passes. The compressor does not start
//!   from a native ACK whose check one of the CID's latest eight incarnations had. Frames of those may all have been
//!   taken back before they rode, so a ninth may share its check with the peer's present incarnation: its first frame
//!   has another MSN, a repetition has the same.
//! - A native ACK that only the decompressor knows of (the link's acknowledgment of it was lost) changes nothing:
//!   the present incarnation goes on until a first frame ends it.
//!
//! The CRC-8 over all reconstructed headers is therefore not there to tell states apart; it is the last line
//! behind the driver's mistakes and against stray bytes, where it lets 1 of 256 pass beside an MSN that only 1 of 256
//! has. The LL ACK's own 32-bit FCS and the MSN stand before it. Sixteen bits would cost a quarter of a short frame.
//! Against forged frames no CRC helps: link-layer ACKs are not encrypted.
//!
//! A frame that fails leaves every context as it was. The next native ACK that both ends see starts afresh.
//!
//! Beyond the window this holds: a frame that comes again when 129 or more further ACKs of its CID were sent is taken for new
//! if its MSN is the next one by chance, which is one state in 256 (and certain after exactly 256, 512 and so on); then the
//! CRC-8 lets one of 256 through, whose ACKs are wrong. In any other state it is dropped unread. First frames
//! are safe beyond the window, too, by their CRC-16.
//!
//! # Duties of the driver
//!
//! - [`Compressor::note_native`] for native ACKs that the link acknowledged, and only those that the peer's
//!   codec sees before any later frame.
//! - Frames in the order they were made, the retained ones first, none left out while a later one is sent.
//! - [`Compressor::invalidate`] when it gives up frames that may not have arrived; then the flow goes natively.
//! - No frame repeated after [`RETAINED_ACKS`] further ACKs were compressed.
//!
//! Breaking these costs ACKs until the next native one and nothing else, but for the frames beyond the window (above).
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
mod per_ack;
mod range;

use core::fmt;

pub use compressor::Compressor;
pub use decompressor::{Decompressor, Report};

use crate::header::{Header, MAX_HEADER_LEN, Options, ParseError, flags};

/// Most ACKs one frame holds, under any [`Limits`].
pub const MAX_FRAME_ACKS: usize = 64;
/// Most ACKs a driver may have finished since a frame that it still repeats: beyond that an old frame could look new.
pub const RETAINED_ACKS: usize = 127;

/// The coding of frames. A decompressor recognises it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// Every ACK a compressed header of its own, as in the paper.
    #[default]
    PerAck,
    /// The ACKs of a frame as one range-coded run.
    Batch,
}

/// Bounds on the state of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows with a context: 1..=256. The longest unused one makes room.
    pub contexts: usize,
    /// ACKs that [`Compressor::push`] takes for one call of [`Compressor::finish_frame`]:
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

/// Why an ACK has to go natively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a TCP/IP header that could be restored bit for bit.
    Header(ParseError),
    /// Bytes behind the length that the IP header states.
    Trailer,
    /// Payload, or other flags than ACK, PSH and ECE.
    NotPureAck,
    /// The TCP checksum is wrong: recomputing it would turn a broken ACK into a good one.
    Checksum,
    /// No native ACK of this flow has reached the peer since it was last forgotten.
    NoContext,
    /// Another live flow has this flow's CID.
    CidTaken,
    /// The frame is full: [`Compressor::finish_frame`] first.
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

/// The kinds of the frames in `bytes`, for statistics: `short`, `long` and `long-init` are coded ACK by ACK, `batch`
/// and `batch-init` as one run; `-init` frames are the first since a native ACK. Ends where no frame can be found.
pub fn frame_kinds(bytes: &[u8]) -> impl Iterator<Item = &'static str> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (frame, behind) = frame::Frame::split(rest)?;
        rest = behind;
        frame.map(|frame| frame.kind.name())
    })
}

/// True if `bytes` are whole frames and nothing else. Those of kinds that the codec has not, such as feedback of other
/// transports, count too: their length is where all have it.
pub fn are_frames(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some((_, behind)) = frame::Frame::split(rest) {
        rest = behind;
    }
    !bytes.is_empty() && rest.is_empty()
}

/// True for a pure ACK that the codec carries. CWR has no code: it goes with new data (RFC 3168 section 6.1.2).
#[inline(always)]
const fn is_carried(header: &Header) -> bool {
    header.is_pure_ack() && !header.has(flags::CWR)
}

/// The pure ACK that is all of `packet`.
#[inline(always)]
fn pure_ack(packet: &[u8]) -> Result<Header, Refusal> {
    let (mut header, options) = Header::parse_apart(packet).map_err(Refusal::Header)?;
    if !is_carried(&header) {
        return Err(Refusal::NotPureAck);
    }
    if header.len() + options.len() != packet.len() {
        return Err(Refusal::Trailer);
    }
    // Before the options are copied: bytes just stored are slow to load.
    if !header.packet_checks(packet) {
        return Err(Refusal::Checksum);
    }
    header.options = Options::new(options).ok_or(Refusal::Header(ParseError::Length))?;
    Ok(header)
}

/// The check by which a frame names the native ACK it starts from.
fn native_check(header: &Header) -> u16 {
    let mut bytes = [0; MAX_HEADER_LEN];
    let len = header.emit(&mut bytes).unwrap_or(0);
    crate::crc::crc16(&bytes[..len])
}
