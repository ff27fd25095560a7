//! The decompressor: RFC 6846 section 5.3.

mod context;
mod options;
mod replicate;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::cid::CidSpace;
use crate::feedback::{Feedback, FeedbackKind, split_feedback};
use crate::formats::{Format, FormatKind};
use crate::items::Generics;
use crate::wire::Reader;
use context::{Context, Fault};
use options::NO_GENERICS;

const PROFILE_TCP: u8 = 6;

/// How a [`Decompressor`] behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressorConfig {
    /// The numbering of contexts; both ends of a channel must agree.
    pub cids: CidSpace,
    /// Answer with feedback (the O-mode); `false` never does (the U-mode).
    pub feedback: bool,
    /// Consecutive failures after which the dynamic context is taken for damaged (from FC to SC): then headers with
    /// a 3-bit check are refused until one with seven or eight bits has succeeded.
    pub damaged_after: u32,
    /// Further failures after which the static context is given up, too (from SC to NC).
    pub lost_after: u32,
    /// Refuse what passed a 3-bit check only if its TCP checksum is wrong, too. One in eight packets that were decoded
    /// beside a wrong reference passes such a check, one in half a million passes both. Costs a sum over each segment,
    /// and the compressor's side must not send segments with wrong checksums: those would be lost here, not later.
    pub verify_tcp_checksum: bool,
}

impl Default for DecompressorConfig {
    /// Sixteen small CIDs, no feedback, damage assumed after 4 failures, loss after 256 more (only an IR helps then,
    /// before that an IR-DYN does), TCP checksums not looked at.
    fn default() -> Self {
        Self {
            cids: CidSpace::Small { max: 15 },
            feedback: false,
            damaged_after: 4,
            lost_after: 256,
            verify_tcp_checksum: false,
        }
    }
}

/// A packet that was decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decompressed {
    /// Octets of the IP packet in the output.
    pub len: usize,
    /// Its context.
    pub cid: u16,
    /// How it had been coded.
    pub format: FormatKind,
    /// What to send back to the compressor, if anything.
    pub feedback: Option<Feedback>,
}

/// Why a ROHC packet gave no IP packet. The context is as it was, but for the count of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressError {
    /// The reason.
    pub kind: DecompressErrorKind,
    /// What to send back to the compressor, if anything.
    pub feedback: Option<Feedback>,
}

/// The reasons of a [`DecompressError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecompressErrorKind {
    /// Nothing but padding or feedback.
    Empty,
    /// Cut short, or bits that no packet may have.
    Malformed,
    /// A segment (RFC 5795 section 5.2.5); this crate does not reassemble.
    Segment,
    /// A CID beyond the channel's largest.
    Cid,
    /// A profile other than 0x0006.
    Profile,
    /// No context for this CID: only an IR packet can help.
    NoContext,
    /// The context may be damaged and the packet has only a 3-bit check.
    Damaged,
    /// The check failed.
    Crc,
    /// The check failed, and by its MSN the packet is a duplicate or came late. Says nothing about the context.
    Stale,
    /// The output is shorter than the packet.
    OutputTooSmall,
}

impl fmt::Display for DecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DecompressErrorKind::Empty => "no packet behind padding and feedback",
            DecompressErrorKind::Malformed => "malformed ROHC packet",
            DecompressErrorKind::Segment => "ROHC segment",
            DecompressErrorKind::Cid => "CID beyond the channel's largest",
            DecompressErrorKind::Profile => "profile other than ROHC-TCP",
            DecompressErrorKind::NoContext => "no context",
            DecompressErrorKind::Damaged => "context in doubt, check too weak to repair it",
            DecompressErrorKind::Crc => "wrong check",
            DecompressErrorKind::Stale => "wrong check of a packet older than the reference",
            DecompressErrorKind::OutputTooSmall => "output too small",
        })
    }
}

impl core::error::Error for DecompressError {}

impl From<Fault> for DecompressErrorKind {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed => Self::Malformed,
            Fault::Crc => Self::Crc,
            Fault::Stale => Self::Stale,
            Fault::OutputTooSmall => Self::OutputTooSmall,
        }
    }
}

/// Turns ROHC packets of profile 0x0006 back into IP packets.
pub struct Decompressor {
    config: DecompressorConfig,
    contexts: Vec<Option<Box<Context>>>,
    scratch: Box<Generics>,
    /// Packets to let pass before the next negative feedback.
    quiet: u32,
}

/// At most one negative feedback in so many packets (RFC 6846 section 5.3.2 asks for a limit).
const QUIET_PACKETS: u32 = 8;

impl Decompressor {
    /// A decompressor without contexts. Memory for a context is taken when its first IR packet comes.
    pub fn new(config: DecompressorConfig) -> Self {
        let mut contexts = Vec::new();
        contexts.resize_with(usize::from(config.cids.max()) + 1, || None);
        Self { config, contexts, scratch: Box::new(NO_GENERICS), quiet: 0 }
    }

    /// Decompresses one ROHC packet into `out`, which bounds the length of what comes out.
    ///
    /// Padding and feedback before the packet are skipped; see [`split_feedback`] for getting at the latter.
    ///
    /// # Errors
    ///
    /// See [`DecompressErrorKind`]. No context changes on an error, and what `out` then holds means nothing.
    pub fn decompress(&mut self, rohc: &[u8], out: &mut [u8]) -> Result<Decompressed, DecompressError> {
        self.quiet = self.quiet.saturating_sub(1);
        let packet = match rohc.first() {
            Some(0xe0 | 0xf0..=0xf7) => split_feedback(rohc).1,
            _ => rohc,
        };
        if packet.is_empty() {
            return Err(DecompressError { kind: DecompressErrorKind::Empty, feedback: None });
        }
        let mut reader = Reader::new(packet);
        let Ok((cid, first)) = self.config.cids.read(&mut reader) else {
            return Err(DecompressError { kind: DecompressErrorKind::Malformed, feedback: None });
        };
        if usize::from(cid) >= self.contexts.len() {
            return Err(DecompressError { kind: DecompressErrorKind::Cid, feedback: None });
        }
        let result = match first {
            0xfc | 0xfd | 0xf8 => self.decompress_ir(cid, first, packet, reader.rest, out),
            0xfe | 0xff => Err(DecompressErrorKind::Segment),
            _ => self.decompress_co(cid, first, reader.rest, out),
        };
        match result {
            Ok((len, format)) => {
                let feedback = self.positive_feedback(cid, format);
                Ok(Decompressed { len, cid, format, feedback })
            }
            Err(kind) => Err(DecompressError { kind, feedback: self.failed(cid, kind) }),
        }
    }

    #[inline]
    fn decompress_co(
        &mut self,
        cid: u16,
        first: u8,
        rest: &[u8],
        out: &mut [u8],
    ) -> Result<(usize, FormatKind), DecompressErrorKind> {
        let context = self.contexts[usize::from(cid)].as_deref_mut().ok_or(DecompressErrorKind::NoContext)?;
        let format = Format::of(first, context.is_sequential()).ok_or(DecompressErrorKind::Malformed)?;
        if context.damaged && !format.crc7 {
            return Err(DecompressErrorKind::Damaged);
        }
        let len = context.decode_co(
            format,
            first,
            rest,
            self.config.verify_tcp_checksum,
            &mut self.scratch,
            out,
        )?;
        Ok((len, format.kind))
    }

    fn decompress_ir(
        &mut self,
        cid: u16,
        first: u8,
        packet: &[u8],
        rest: &[u8],
        out: &mut [u8],
    ) -> Result<(usize, FormatKind), DecompressErrorKind> {
        if *rest.first().ok_or(DecompressErrorKind::Malformed)? != PROFILE_TCP {
            return Err(DecompressErrorKind::Profile);
        }
        let crc_at = packet.len() - rest.len() + 1;
        if first == 0xfc {
            let len = self.replicate(cid, packet, crc_at, out)?;
            return Ok((len, FormatKind::IrCr));
        }
        let is_static = first == 0xfd;
        let slot = &mut self.contexts[usize::from(cid)];
        if let Some(context) = slot {
            let len = context.decode_ir(is_static, packet, crc_at, &mut self.scratch, out)?;
            return Ok((len, if is_static { FormatKind::Ir } else { FormatKind::IrDyn }));
        }
        if !is_static {
            return Err(DecompressErrorKind::NoContext);
        }
        let mut fresh = Context::EMPTY;
        let len = fresh.decode_ir(true, packet, crc_at, &mut self.scratch, out)?;
        *slot = Some(Box::new(fresh));
        Ok((len, FormatKind::Ir))
    }

    /// Counts a failure and decides on negative feedback (RFC 6846 sections 5.3.1.3 to 5.3.1.5).
    #[cold]
    fn failed(&mut self, cid: u16, kind: DecompressErrorKind) -> Option<Feedback> {
        use DecompressErrorKind as Kind;
        let slot = &mut self.contexts[usize::from(cid)];
        let answer = match (slot.as_deref_mut(), kind) {
            (None, Kind::NoContext | Kind::Crc | Kind::Malformed) => Some((FeedbackKind::StaticNack, None)),
            (Some(context), Kind::Crc | Kind::Malformed | Kind::Damaged) => {
                context.failures = context.failures.saturating_add(1);
                let msn = Some(context.msn());
                if context.failures >= self.config.damaged_after.saturating_add(self.config.lost_after) {
                    *slot = None;
                    Some((FeedbackKind::StaticNack, None))
                } else if context.failures >= self.config.damaged_after {
                    context.damaged = true;
                    Some((FeedbackKind::Nack, msn))
                } else {
                    None
                }
            }
            _ => None,
        };
        let (kind, msn) = answer.filter(|_| self.config.feedback && self.quiet == 0)?;
        self.quiet = QUIET_PACKETS;
        Some(Feedback::new(kind, self.config.cids, cid, msn))
    }

    /// Acknowledges what changes a context much; the rest needs no answer.
    #[inline]
    fn positive_feedback(&self, cid: u16, format: FormatKind) -> Option<Feedback> {
        let significant =
            matches!(format, FormatKind::Ir | FormatKind::IrDyn | FormatKind::IrCr | FormatKind::CoCommon);
        if !(self.config.feedback && significant) {
            return None;
        }
        let msn = self.contexts[usize::from(cid)].as_deref()?.msn();
        Some(Feedback::new(FeedbackKind::Ack, self.config.cids, cid, Some(msn)))
    }
}
