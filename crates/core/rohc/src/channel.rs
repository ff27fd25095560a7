//! One end of a ROHC channel, both directions: packets in, frames out, and the reverse (RFC 5795 section 5.1).

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::cid::{Cid, CidSpace};
use crate::crc::{CRC8, crc32};
use crate::feedback::{self, FeedbackKind};
use crate::wire::Writer;
use crate::{
    CompressError, Compressor, CompressorConfig, DecompressError, Decompressor, DecompressorConfig, Feedback,
    FormatKind, split_feedback,
};

/// Configuration of a [`Channel`]. Both ends must agree on `cids`, and `reconstructed_bytes` must not exceed the peer's
/// limit.
#[derive(Clone, Copy, Debug)]
pub struct ChannelConfig {
    /// CID space of both directions. Overrides the `cids` of `compressor` and `decompressor`.
    pub cids: CidSpace,
    /// How packets are compressed.
    pub compressor: CompressorConfig,
    /// How frames are decompressed; without `feedback` the channel is unidirectional.
    pub decompressor: DecompressorConfig,
    /// Length of the longest IP packet in either direction, in bytes.
    pub packet_bytes: usize,
    /// Length of the longest frame that the link carries, in bytes, at least 16. Longer packets are segmented.
    pub frame_bytes: usize,
    /// Length of the longest unit reassembled from segments, including its CRC (MRRU), in bytes. 0 disables segments in
    /// both directions.
    pub reconstructed_bytes: usize,
}

impl Default for ChannelConfig {
    /// Sixteen small CIDs, feedback, packets and frames of up to 65,535 bytes, no segments.
    fn default() -> Self {
        Self {
            cids: CidSpace::Small { max: 15 },
            compressor: CompressorConfig::default(),
            decompressor: DecompressorConfig { feedback: true, ..DecompressorConfig::default() },
            packet_bytes: 65_535,
            frame_bytes: usize::MAX,
            reconstructed_bytes: 0,
        }
    }
}

/// How a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// The packet format.
    pub format: FormatKind,
    /// The CID of its context.
    pub cid: u16,
    /// Number of frames that carry it.
    pub frames: usize,
    /// Total length of these frames, including feedback, in bytes.
    pub bytes: usize,
}

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// Longer than [`ChannelConfig::packet_bytes`].
    Packet,
    /// The frame would exceed [`ChannelConfig::frame_bytes`], and the reassembled unit would exceed
    /// [`ChannelConfig::reconstructed_bytes`].
    Frame,
    /// Neither IPv4 nor IPv6.
    NoIp,
    /// Profile 0x0006 cannot compress the packet, and the only CID belongs to that profile.
    Compress(CompressError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet => f.write_str("packet longer than the channel was made for"),
            Self::Frame => {
                f.write_str("frame longer than the link's, and no segments of that length allowed")
            }
            Self::NoIp => f.write_str("neither IPv4 nor IPv6"),
            Self::Compress(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SendError {}

/// Why a frame that should contain or complete a packet did not yield one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The packet could not be decompressed.
    Decompress(DecompressError),
    /// Reassembly failed: the CRC is wrong, or the unit exceeds [`ChannelConfig::reconstructed_bytes`].
    Segments,
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decompress(error) => error.fmt(f),
            Self::Segments => f.write_str("segments that are no whole unit"),
        }
    }
}

impl core::error::Error for ReceiveError {}

/// Capacity for feedback that waits for a frame to piggyback on. When it overflows, all older feedback is dropped.
const FEEDBACK_BYTES: usize = 64;
/// Frames shorter than this carry no segments.
const LEAST_FRAME: usize = 16;
/// Number of consecutive packets that announce profile 0x0000, and number of packets after which it is announced again
/// if no feedback has arrived.
const PLAIN_ANNOUNCED: u32 = 3;
const PLAIN_REFRESH: u32 = 256;

/// One end of a channel: compressor, decompressor, the feedback between them, and profile 0x0000 for packets other than
/// TCP.
///
/// ```
/// use tacit_rohc::{Channel, ChannelConfig};
///
/// let (mut here, mut there) = (Channel::new(ChannelConfig::default()), Channel::new(ChannelConfig::default()));
/// let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0x66, 0xe5, 10, 0, 0, 1, 10, 0, 0, 2]; // no TCP: goes uncompressed
/// let mut frames = Vec::new();
/// here.send(&packet, |frame| frames.push(frame.to_vec())).unwrap();
/// let mut packets = Vec::new();
/// for frame in &frames {
///     there.receive(frame, |packet| packets.push(packet.to_vec())).unwrap();
/// }
/// assert_eq!(packets, [packet]);
/// // The answer rides on the next frame, or goes alone.
/// let mut answer = [0; 64];
/// let len = there.take_feedback(&mut answer);
/// here.receive(&answer[..len], |_| unreachable!()).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Channel {
    config: ChannelConfig,
    compressor: Compressor,
    decompressor: Decompressor,
    plain: Plain,
    /// Feedback about received packets, and the number of bytes in use.
    answers: [u8; FEEDBACK_BYTES],
    answers_len: usize,
    malformed_feedback: u64,
    /// The frame under construction, or the packet to deliver.
    scratch: Vec<u8>,
    /// Received segments of an incomplete unit.
    segments: Vec<u8>,
    /// The segments exceeded the maximum length of a unit.
    overrun: bool,
}

/// The sending side of profile 0x0000.
#[derive(Clone, Debug)]
struct Plain {
    /// Its CID, the largest of the channel; `None` if the channel has only one CID.
    cid: Option<u16>,
    packets: u32,
    is_known: bool,
}

impl Plain {
    /// True if the next packet must announce that this CID belongs to profile 0x0000.
    fn announces(&mut self) -> bool {
        let announces =
            !self.is_known && (self.packets < PLAIN_ANNOUNCED || self.packets.is_multiple_of(PLAIN_REFRESH));
        self.packets = self.packets.wrapping_add(1);
        announces
    }
}

impl Channel {
    /// Creates a channel without contexts. Allocates the buffer for one packet and its header.
    pub fn new(config: ChannelConfig) -> Self {
        let max = config.cids.max();
        let rest = max.saturating_sub(1);
        // Profile 0x0000 gets the largest CID. In a large CID space it costs no more than any other; in a small one TCP
        // benefits more from CID 0, which takes no byte.
        let compressor_cids = match config.cids {
            CidSpace::Small { .. } => CidSpace::Small { max: rest as u8 },
            CidSpace::Large { .. } => CidSpace::Large { max: rest },
        };
        let plain = Plain { cid: (max > 0).then_some(max), packets: 0, is_known: false };
        Self {
            compressor: Compressor::new(CompressorConfig { cids: compressor_cids, ..config.compressor }),
            decompressor: Decompressor::new(DecompressorConfig { cids: config.cids, ..config.decompressor }),
            plain,
            answers: [0; FEEDBACK_BYTES],
            answers_len: 0,
            malformed_feedback: 0,
            scratch: vec![0; FEEDBACK_BYTES + config.packet_bytes + LONGEST_GROWTH],
            segments: Vec::with_capacity(config.reconstructed_bytes),
            overrun: false,
            config,
        }
    }

    /// See [`Compressor::set_time`].
    pub fn set_time(&mut self, now: Duration) {
        self.compressor.set_time(now);
    }

    /// Sends an IP packet. Calls `transmit` with one frame, or with each of its segments in order. Pending feedback is
    /// piggybacked on the first frame.
    ///
    /// Packets that are not TCP, and TCP packets that profile 0x0006 cannot compress, are sent with profile 0x0000.
    ///
    /// # Errors
    ///
    /// See [`SendError`]. Pending feedback stays pending.
    pub fn send(&mut self, packet: &[u8], mut transmit: impl FnMut(&[u8])) -> Result<Sent, SendError> {
        if packet.len() > self.config.packet_bytes {
            return Err(SendError::Packet);
        }
        // A segmented unit does not include feedback.
        let (before, unit) = self.scratch.split_at_mut(FEEDBACK_BYTES);
        let (len, format, cid) = match self.compressor.compress(packet, unit) {
            Ok(compressed) => (compressed.len, compressed.format, compressed.cid),
            Err(error) => {
                let cid = self.plain.cid.ok_or(SendError::Compress(error))?;
                let name = Cid { space: self.config.cids, number: cid };
                let (len, format) = write_plain(packet, name, self.plain.announces(), unit)?;
                (len, format, cid)
            }
        };
        let answers = self.answers_len;
        let whole = answers + len;
        if whole <= self.config.frame_bytes {
            before[FEEDBACK_BYTES - answers..].copy_from_slice(&self.answers[..answers]);
            self.answers_len = 0;
            transmit(&self.scratch[FEEDBACK_BYTES - answers..FEEDBACK_BYTES + len]);
            return Ok(Sent { format, cid, frames: 1, bytes: whole });
        }
        if len > self.config.frame_bytes {
            let (frames, bytes) = self.send_segments(len, transmit)?;
            return Ok(Sent { format, cid, frames, bytes });
        }
        // Each fits in a frame, but not both in one.
        transmit(&self.answers[..answers]);
        self.answers_len = 0;
        transmit(&self.scratch[FEEDBACK_BYTES..FEEDBACK_BYTES + len]);
        Ok(Sent { format, cid, frames: 2, bytes: whole })
    }

    /// Segments the unit in the scratch buffer (RFC 5795 section 5.2.5.2). Returns the number of frames and of bytes.
    fn send_segments(
        &mut self,
        len: usize,
        mut transmit: impl FnMut(&[u8]),
    ) -> Result<(usize, usize), SendError> {
        let unit_len = len + 4;
        let room = self.config.frame_bytes.saturating_sub(1);
        if unit_len > self.config.reconstructed_bytes || self.config.frame_bytes < LEAST_FRAME {
            return Err(SendError::Frame);
        }
        let check = crc32(&self.scratch[FEEDBACK_BYTES..FEEDBACK_BYTES + len]);
        self.scratch[FEEDBACK_BYTES + len..FEEDBACK_BYTES + unit_len].copy_from_slice(&check.to_le_bytes());
        let (mut frames, mut bytes, mut at) = (0, 0, 0);
        // Feedback is sent in a separate frame.
        if self.answers_len != 0 {
            transmit(&self.answers[..self.answers_len]);
            (frames, bytes) = (1, self.answers_len);
            self.answers_len = 0;
        }
        while at < unit_len {
            let end = unit_len.min(at + room);
            // The type byte overwrites the byte before the segment, which has already been sent.
            let start = FEEDBACK_BYTES + at - 1;
            self.scratch[start] = 0xfe | u8::from(end == unit_len);
            transmit(&self.scratch[start..FEEDBACK_BYTES + end]);
            frames += 1;
            bytes += 1 + end - at;
            at = end;
        }
        Ok((frames, bytes))
    }

    /// Processes a received frame: passes feedback to the compressor, and the packet, if the frame contains or
    /// completes one, to `deliver`.
    ///
    /// # Errors
    ///
    /// See [`ReceiveError`]. Feedback in front of a packet is processed even if that packet fails.
    pub fn receive(&mut self, frame: &[u8], mut deliver: impl FnMut(&[u8])) -> Result<(), ReceiveError> {
        let (elements, packet) = split_feedback(frame);
        self.take_in(elements);
        if packet.is_empty() {
            return Ok(());
        }
        if let 0xfe | 0xff = packet[0] {
            return self.receive_segment(packet, deliver);
        }
        self.segments.clear();
        self.overrun = false;
        let result = self.decompressor.decompress(packet, &mut self.scratch);
        self.finish(result, &mut deliver)
    }

    fn receive_segment(&mut self, packet: &[u8], mut deliver: impl FnMut(&[u8])) -> Result<(), ReceiveError> {
        let is_final = packet[0] & 1 != 0;
        self.overrun |= self.segments.len() + packet.len() - 1 > self.config.reconstructed_bytes;
        if !self.overrun {
            self.segments.extend_from_slice(&packet[1..]);
        }
        if !is_final {
            return if self.overrun { Err(ReceiveError::Segments) } else { Ok(()) };
        }
        // Moved out while the decompressor runs, and moved back to keep the allocation.
        let mut unit = core::mem::take(&mut self.segments);
        let overrun = core::mem::take(&mut self.overrun);
        let result = match unit.split_last_chunk::<4>() {
            Some((unit, check)) if !overrun && checks(unit, *check) => {
                let result = self.decompressor.decompress(unit, &mut self.scratch);
                self.finish(result, &mut deliver)
            }
            _ => Err(ReceiveError::Segments),
        };
        unit.clear();
        self.segments = unit;
        result
    }

    /// Delivers the packet and stores the feedback until a frame can carry it.
    fn finish(
        &mut self,
        result: Result<crate::Decompressed, DecompressError>,
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<(), ReceiveError> {
        let (len, answer, error) = match result {
            Ok(done) => (done.len, done.feedback, None),
            Err(error) => (0, error.feedback, Some(ReceiveError::Decompress(error))),
        };
        if let Some(answer) = answer {
            self.answer(&answer);
        }
        if len != 0 {
            deliver(&self.scratch[..len]);
        }
        error.map_or(Ok(()), Err)
    }

    fn answer(&mut self, answer: &Feedback) {
        let bytes = answer.as_bytes();
        if self.answers_len + bytes.len() > FEEDBACK_BYTES.min(self.config.frame_bytes.max(LEAST_FRAME)) {
            // The newest feedback is the most useful.
            self.answers_len = 0;
        }
        self.answers[self.answers_len..self.answers_len + bytes.len()].copy_from_slice(bytes);
        self.answers_len += bytes.len();
    }

    /// Passes feedback elements to the contexts they refer to.
    fn take_in(&mut self, elements: &[u8]) {
        if elements.is_empty() {
            return;
        }
        self.malformed_feedback += self.compressor.feedback(elements) as u64;
        let plain = &mut self.plain;
        feedback::parse(elements, self.config.cids, |element| {
            plain.is_known |= Some(element.cid) == plain.cid && element.kind == FeedbackKind::Ack;
        });
    }

    /// Moves pending feedback into `out` and returns its length in bytes. Use this to send a frame with feedback alone
    /// when no packet is due soon. Feedback that does not fit stays pending.
    pub fn take_feedback(&mut self, out: &mut [u8]) -> usize {
        let len = self.answers_len;
        match out.get_mut(..len) {
            Some(room) if len != 0 => {
                room.copy_from_slice(&self.answers[..len]);
                self.answers_len = 0;
                len
            }
            _ => 0,
        }
    }

    /// True if feedback is pending.
    pub const fn has_feedback(&self) -> bool {
        self.answers_len != 0
    }

    /// Number of feedback elements that were malformed or had a wrong CRC.
    pub const fn malformed_feedback(&self) -> u64 {
        self.malformed_feedback
    }

    /// The sending half: for statistics, removal and pinning of contexts, and re-initialisation.
    pub const fn compressor(&mut self) -> &mut Compressor {
        &mut self.compressor
    }

    /// Requests a refresh of the context with this CID from the peer. The request is queued like other feedback.
    pub fn request_repair(&mut self, cid: u16) {
        let request = self.decompressor.request_repair(cid);
        self.answer(&request);
    }

    /// Removes the decompressor's context with this CID; see [`Decompressor::remove`].
    pub fn remove_received(&mut self, cid: u16) -> bool {
        self.decompressor.remove(cid)
    }
}

/// The most bytes by which a frame can exceed its packet: see [`Compressor::compress`], plus a CRC-32.
const LONGEST_GROWTH: usize = 72;

/// Writes a packet of profile 0x0000, as an IR if it announces the profile.
fn write_plain(
    packet: &[u8],
    cid: Cid,
    announce: bool,
    out: &mut [u8],
) -> Result<(usize, FormatKind), SendError> {
    let first = *packet.first().filter(|first| matches!(**first >> 4, 4 | 6)).ok_or(SendError::NoIp)?;
    let mut writer = Writer::new(out);
    let mut write = || {
        cid.write_before(&mut writer)?;
        if announce {
            writer.put(&[0xfc])?;
            cid.write_after(&mut writer)?;
            writer.put(&[0])?;
            let check = CRC8.check(writer.written());
            writer.put(&[check])?;
            writer.put(packet)
        } else {
            writer.put(&[first])?;
            cid.write_after(&mut writer)?;
            writer.put(&packet[1..])
        }
    };
    write().map_err(|_| SendError::Packet)?;
    Ok((writer.len, if announce { FormatKind::PlainIr } else { FormatKind::Plain }))
}

/// Checks the CRC-32 of a unit, least significant byte first. RFC 5795 does not state clearly whether the CRC is
/// complemented (appendix A says that the text implies it), and implementations differ, so both variants are accepted.
fn checks(unit: &[u8], check: [u8; 4]) -> bool {
    let expected = crc32(unit);
    let found = u32::from_le_bytes(check);
    found == expected || found == !expected
}
