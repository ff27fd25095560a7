//! The decompressor: RFC 6846 section 5.3.

mod context;
mod options;
mod outage;
mod quick;
mod repair;
mod replicate;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::cid::CidSpace;
use crate::crc::CRC8;
use crate::feedback::{Feedback, FeedbackKind, split_feedback};
use crate::formats::{Format, FormatKind};
use crate::items::Generics;
use crate::layers::Layers;
use crate::wire::Reader;
use context::{Co, Context, Fault, Trust};
use options::NO_GENERICS;

const PROFILE_TCP: u8 = 6;
const PROFILE_UNCOMPRESSED: u8 = 0;

/// Configuration of a [`Decompressor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressorConfig {
    /// The CID space, which both ends of a channel must agree on.
    pub cids: CidSpace,
    /// Send feedback (O-mode). If `false`, no feedback is sent (U-mode).
    pub feedback: bool,
    /// Number of consecutive failures after which the dynamic context counts as damaged (transition from FC to SC).
    /// Headers with a 3-bit CRC are then refused until one with a 7-bit or 8-bit CRC succeeds.
    pub damaged_after: u32,
    /// Number of IR-DYN failures in a damaged context after which the static part counts as damaged too (transition
    /// from SC to NC). After that only an IR can repair the context.
    pub lost_after: u32,
    /// After a failure, decode the packet again on the assumption that up to about 120 packets were lost, and accept
    /// the result if its TCP checksum is correct. With this, most losses that exceed the robustness of the encoding
    /// affect no other packet. The work is bounded, even for garbage.
    pub repair: bool,
    /// Maximum number of contexts of profile 0x0006, each about 1.5 kB. An IR for a further context is refused; if
    /// feedback is enabled, the compressor receives a REJECT (RFC 6846 section 8.3.2.1).
    pub max_contexts: usize,
    /// Refuse CO packets whose TCP checksum is wrong, even if their CRC is correct. A packet decoded with a wrong
    /// reference passes a 3-bit CRC with probability 1/8, a 7-bit CRC with 1/128, and the TCP checksum with 1/65,536.
    /// The cost is one sum over each segment. Segments sent with a wrong TCP checksum are dropped here instead of at
    /// the receiver.
    pub verify_tcp_checksum: bool,
}

impl Default for DecompressorConfig {
    /// Sixteen small CIDs, no feedback, repairs enabled. A context counts as damaged after 4 failures, and its static
    /// part after 3 more failures that only a wrong static part explains. `verify_tcp_checksum` is off.
    fn default() -> Self {
        Self {
            cids: CidSpace::Small { max: 15 },
            feedback: false,
            damaged_after: 4,
            lost_after: 3,
            repair: true,
            max_contexts: usize::MAX,
            verify_tcp_checksum: false,
        }
    }
}

/// The result of decompressing one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decompressed {
    /// Length of the IP packet in the output, in bytes. 0 after an IR of profile 0x0000 without a packet.
    pub len: usize,
    /// The CID of its context.
    pub cid: u16,
    /// The packet format.
    pub format: FormatKind,
    /// Feedback to send to the compressor, if any.
    pub feedback: Option<Feedback>,
}

/// Why a ROHC packet could not be decompressed. The context is unchanged, except for its failure count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecompressError {
    /// The reason.
    pub kind: DecompressErrorKind,
    /// Feedback to send to the compressor, if any.
    pub feedback: Option<Feedback>,
}

/// Reasons of a [`DecompressError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecompressErrorKind {
    /// The packet contains only padding or feedback.
    Empty,
    /// The packet is truncated or has bits that no valid packet has.
    Malformed,
    /// A segment (RFC 5795 section 5.2.5); a [`crate::Channel`] reassembles them.
    Segment,
    /// The CID exceeds the largest CID of the channel.
    Cid,
    /// A profile other than 0x0006 and 0x0000.
    Profile,
    /// The limit of contexts is reached ([`DecompressorConfig::max_contexts`]).
    NoRoom,
    /// No context for this CID. Only an IR packet can create one.
    NoContext,
    /// The context may be damaged, and the packet has only a 3-bit CRC.
    Damaged,
    /// The CRC is wrong.
    Crc,
    /// The CRC is wrong, and the MSN indicates a duplicate or late packet. This does not count against the context.
    Stale,
    /// The output buffer is too short for the packet.
    OutputTooSmall,
}

impl fmt::Display for DecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DecompressErrorKind::Empty => "no packet behind padding and feedback",
            DecompressErrorKind::Malformed => "malformed ROHC packet",
            DecompressErrorKind::Segment => "ROHC segment",
            DecompressErrorKind::Cid => "CID beyond the channel's largest",
            DecompressErrorKind::Profile => "profile other than ROHC-TCP and Uncompressed",
            DecompressErrorKind::NoRoom => "no room for another context",
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

/// Counts of a context since its flow began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextCounts {
    /// Packets decompressed.
    pub packets: u64,
    /// Their length before decompression, including payload.
    pub rohc_bytes: u64,
    /// Their length after decompression, including payload.
    pub ip_bytes: u64,
    /// IR, IR-DYN and IR-CR packets among them.
    pub initialisations: u64,
    /// Packets among them that were decoded on the assumption of a long loss ([`DecompressorConfig::repair`]).
    pub repaired: u64,
    /// Packets refused, duplicates and late ones included.
    pub refused: u64,
}

/// Scratch space for large or rare parts of a packet, until the packet is accepted.
#[derive(Clone, Debug)]
struct Scratch {
    generics: Generics,
    layers: Layers,
}

/// Decompresses ROHC packets of profile 0x0006 into IP packets.
#[derive(Clone, Debug)]
pub struct Decompressor {
    config: DecompressorConfig,
    contexts: Vec<Option<Box<Context>>>,
    /// Number of contexts of profile 0x0006.
    used: usize,
    /// Bit per CID, set for contexts of profile 0x0000.
    plain: Vec<u64>,
    scratch: Box<Scratch>,
    /// Number of failures without a context to ignore before the next negative feedback.
    quiet: u32,
}

/// At most one negative feedback is sent per this number of failures, per context and for all CIDs without a context
/// (RFC 6846 section 5.3.2 asks for a limit).
const QUIET_PACKETS: u32 = 8;
/// Number of failures of a damaged context after which its negative feedback becomes a STATIC-NACK.
const UNHEARD: u32 = 64;
const IR_DYN: u8 = 0xf8;

impl Decompressor {
    /// Creates a decompressor without contexts. A context is allocated when its first IR packet arrives.
    pub fn new(config: DecompressorConfig) -> Self {
        let mut contexts = Vec::new();
        contexts.resize_with(usize::from(config.cids.max()) + 1, || None);
        let plain = vec![0; contexts.len().div_ceil(64)];
        Self {
            config,
            contexts,
            used: 0,
            plain,
            scratch: Box::new(Scratch { generics: NO_GENERICS, layers: Layers::EMPTY }),
            quiet: 0,
        }
    }

    /// Removes the context with this CID; only an IR creates a new one. Returns false if there was none.
    pub fn remove(&mut self, cid: u16) -> bool {
        let plain = self.set_plain(cid, false);
        let slot = self.contexts.get_mut(usize::from(cid)).and_then(Option::take);
        self.used -= usize::from(slot.is_some());
        plain || slot.is_some()
    }

    /// Counts of the flow with this CID in profile 0x0006, if there is a context.
    pub fn counts(&self, cid: u16) -> Option<ContextCounts> {
        self.contexts.get(usize::from(cid))?.as_deref().map(|context| context.counts)
    }

    /// Creates feedback that requests a refresh of this context: of its dynamic part, or of all of it if there is no
    /// context. The context stays in use. For callers that detect a problem by other means.
    pub fn request_repair(&self, cid: u16) -> Feedback {
        let context = self.contexts.get(usize::from(cid)).and_then(Option::as_deref);
        match context {
            Some(context) => Feedback::new(FeedbackKind::Nack, self.config.cids, cid, Some(context.msn())),
            None => Feedback::new(FeedbackKind::StaticNack, self.config.cids, cid, None),
        }
    }

    /// True if this CID has a context of profile 0x0000.
    fn is_plain(&self, cid: u16) -> bool {
        self.plain.get(usize::from(cid) / 64).is_some_and(|word| word >> (cid % 64) & 1 != 0)
    }

    /// Creates or removes a context of profile 0x0000. Returns whether there was one.
    fn set_plain(&mut self, cid: u16, plain: bool) -> bool {
        let was = self.is_plain(cid);
        if was != plain
            && let Some(word) = self.plain.get_mut(usize::from(cid) / 64)
        {
            *word ^= 1 << (cid % 64);
        }
        was
    }

    /// Processes an IR packet of profile 0x0000, whose CRC is at `crc_at` (RFC 5795 section 5.4.1).
    fn decompress_plain_ir(
        &mut self,
        cid: u16,
        packet: &[u8],
        crc_at: usize,
        out: &mut [u8],
    ) -> Result<(usize, FormatKind), DecompressErrorKind> {
        let check = *packet.get(crc_at).ok_or(DecompressErrorKind::Malformed)?;
        if CRC8.check(&packet[..crc_at]) != check {
            return Err(DecompressErrorKind::Crc);
        }
        let len = copy_plain(&packet[crc_at + 1..], out)?;
        self.remove(cid);
        self.set_plain(cid, true);
        Ok((len, FormatKind::PlainIr))
    }

    /// Decompresses one ROHC packet into `out`, whose length limits the result.
    ///
    /// Padding and feedback in front of the packet are skipped; use [`split_feedback`] to obtain the feedback.
    ///
    /// # Errors
    ///
    /// See [`DecompressErrorKind`]. On an error no context changes, and the content of `out` is unspecified.
    pub fn decompress(&mut self, rohc: &[u8], out: &mut [u8]) -> Result<Decompressed, DecompressError> {
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
                if let Some(context) = self.contexts[usize::from(cid)].as_deref_mut() {
                    let counts = &mut context.counts;
                    counts.packets += 1;
                    counts.rohc_bytes += packet.len() as u64;
                    counts.ip_bytes += len as u64;
                    let initialises = matches!(first, 0xfc | 0xfd | IR_DYN);
                    counts.initialisations += u64::from(initialises);
                }
                let feedback = self.positive_feedback(cid, format);
                Ok(Decompressed { len, cid, format, feedback })
            }
            Err(kind) => Err(DecompressError { kind, feedback: self.failed(cid, kind, first == IR_DYN) }),
        }
    }

    fn decompress_co(
        &mut self,
        cid: u16,
        first: u8,
        rest: &[u8],
        out: &mut [u8],
    ) -> Result<(usize, FormatKind), DecompressErrorKind> {
        let Some(context) = self.contexts[usize::from(cid)].as_deref_mut() else {
            if !self.is_plain(cid) {
                return Err(DecompressErrorKind::NoContext);
            }
            if !matches!(first >> 4, 4 | 6) {
                return Err(DecompressErrorKind::Malformed);
            }
            // The first byte of the packet precedes a large CID.
            let (head, tail) = out.split_first_mut().ok_or(DecompressErrorKind::OutputTooSmall)?;
            *head = first;
            return Ok((1 + copy_plain(rest, tail)?, FormatKind::Plain));
        };
        let format = Format::find(first, context.is_sequential()).ok_or(DecompressErrorKind::Malformed)?;
        if context.damaged && !format.crc7 {
            return Err(DecompressErrorKind::Damaged);
        }
        let trust = Trust { verify: self.config.verify_tcp_checksum, repair: self.config.repair };
        let co = Co { format, first, rest };
        if !trust.verify
            && let Some(len) = context.quick(&co, out)
        {
            return Ok((len, format.kind));
        }
        let len = context.decode_co(&co, trust, &mut self.scratch, out)?;
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
        let crc_at = packet.len() - rest.len() + 1;
        match (*rest.first().ok_or(DecompressErrorKind::Malformed)?, first) {
            (PROFILE_TCP, _) => {}
            (PROFILE_UNCOMPRESSED, 0xfc) => return self.decompress_plain_ir(cid, packet, crc_at, out),
            _ => return Err(DecompressErrorKind::Profile),
        }
        let fresh = self.contexts[usize::from(cid)].is_none();
        if fresh && first != IR_DYN && self.used >= self.config.max_contexts {
            return Err(DecompressErrorKind::NoRoom);
        }
        let result = self.decompress_tcp_ir(cid, first, packet, crc_at, out);
        if fresh && self.contexts[usize::from(cid)].is_some() {
            self.used += 1;
            self.set_plain(cid, false);
        }
        result
    }

    /// Processes an IR, IR-DYN or IR-CR packet of profile 0x0006.
    fn decompress_tcp_ir(
        &mut self,
        cid: u16,
        first: u8,
        packet: &[u8],
        crc_at: usize,
        out: &mut [u8],
    ) -> Result<(usize, FormatKind), DecompressErrorKind> {
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
    fn failed(&mut self, cid: u16, kind: DecompressErrorKind, is_dynamic: bool) -> Option<Feedback> {
        use DecompressErrorKind as Kind;
        if kind == Kind::NoRoom {
            return self.config.feedback.then(|| Feedback::reject(self.config.cids, cid));
        }
        let slot = &mut self.contexts[usize::from(cid)];
        if let Some(context) = slot.as_deref_mut() {
            context.counts.refused += 1;
        }
        let (kind, msn, quiet) = match (slot.as_deref_mut(), kind) {
            (None, Kind::NoContext | Kind::Crc | Kind::Malformed) => {
                (FeedbackKind::StaticNack, None, &mut self.quiet)
            }
            (Some(context), Kind::Crc | Kind::Malformed | Kind::Damaged) => {
                context.failures = context.failures.saturating_add(1);
                if context.failures < self.config.damaged_after {
                    return None;
                }
                if context.damaged && is_dynamic {
                    context.strong_failures = context.strong_failures.saturating_add(1);
                }
                context.damaged = true;
                if context.strong_failures >= self.config.lost_after {
                    *slot = None;
                    self.used -= 1;
                    (FeedbackKind::StaticNack, None, &mut self.quiet)
                } else if context.failures >= self.config.damaged_after.saturating_add(UNHEARD) {
                    // A peer need not answer a NACK with an IR-DYN.
                    (FeedbackKind::StaticNack, None, &mut context.quiet)
                } else {
                    (FeedbackKind::Nack, Some(context.msn()), &mut context.quiet)
                }
            }
            _ => return None,
        };
        if !self.config.feedback || *quiet > 0 {
            *quiet = quiet.saturating_sub(1);
            return None;
        }
        *quiet = QUIET_PACKETS - 1;
        Some(Feedback::new(kind, self.config.cids, cid, msn))
    }

    /// Acknowledges packets that change much of a context. Other packets need no answer.
    ///
    /// A compressor repeats such packets until it receives feedback. One ACK is enough, but in case it is lost, ACKs
    /// are also sent for the 2nd, 4th and 8th packet of the run, and for every 16th.
    fn positive_feedback(&mut self, cid: u16, format: FormatKind) -> Option<Feedback> {
        if !self.config.feedback {
            return None;
        }
        if format == FormatKind::PlainIr {
            // Profile 0x0000 has no feedback other than a FEEDBACK-1 with a zero (RFC 5795 section 5.4.5).
            return Some(Feedback::new(FeedbackKind::Ack, self.config.cids, cid, Some(0)));
        }
        let significant =
            matches!(format, FormatKind::Ir | FormatKind::IrDyn | FormatKind::IrCr | FormatKind::CoCommon);
        let context = self.contexts[usize::from(cid)].as_deref_mut()?;
        if !significant {
            context.significant_row = 0;
            return None;
        }
        context.significant_row = context.significant_row.saturating_add(1);
        let row = context.significant_row;
        if !(row.is_power_of_two() || row.is_multiple_of(16)) {
            return None;
        }
        Some(Feedback::new(FeedbackKind::Ack, self.config.cids, cid, Some(context.msn())))
    }
}

/// Copies the whole packet, or its bytes after the first one, to the output.
fn copy_plain(packet: &[u8], out: &mut [u8]) -> Result<usize, DecompressErrorKind> {
    out.get_mut(..packet.len()).ok_or(DecompressErrorKind::OutputTooSmall)?.copy_from_slice(packet);
    Ok(packet.len())
}

#[cfg(test)]
impl Decompressor {
    /// Makes the next packet take the general path.
    pub(crate) fn without_quick_path(&mut self) {
        self.contexts.iter_mut().flatten().for_each(|context| context.template.forget());
    }

    /// True if a packet of some context may take the fast path.
    pub(crate) fn has_quick_path(&self) -> bool {
        self.contexts.iter().flatten().any(|context| context.template.layout().is_some())
    }
}
