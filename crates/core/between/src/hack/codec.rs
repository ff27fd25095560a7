//! Encodes feedback as bytes and back: TCP ACKs are compressed, other feedback is not; both share one sequence of
//! frames.
//!
//! A frame of feedback other than TCP's has the layout of the codec's other frames ([`tacit_rohc::hack`]), with a kind
//! that those do not use, so that each decoder can find the end of the other's frames:
//! ```text
//!   0 1 2 3   4 5 6 7
//! +---------+---------+
//! | length  |   13    |  bytes behind the number; 15: a varint of (length - 15) follows the number
//! +---------+---------+
//! |                   |
//! |      number       |  24 bits: counts such frames to this peer
//! |                   |
//! +-------------------+
//! |   [more length]   |
//! +-------------------+
//! |     feedback      |
//! +-------------------+
//! ```
//!
//! Frames of this kind do not depend on each other. The number is needed because the NIC repeats unproven frames (paper
//! section 3.4): a frame that is not newer than the newest is a repetition. Frames that were given up leave a gap in
//! the numbers, which the receiver ignores. Only the FCS of the link-layer ACK protects the bytes.

use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, Refusal};

use super::packet::Rides;

/// Bytes before the feedback, if the length is short.
const HEAD_LEN: usize = 4;
/// The kind, in the low nibble of the first byte.
const KIND: u8 = 13;
/// Length nibble of a frame with more length bytes after the number.
const MORE: usize = 15;
/// Most bytes of [`Rides::AsIs`] feedback in one frame for the NIC, unless a single one is longer.
const USUAL_BYTES: usize = 1024;

/// Flows known to the receiver, while the sender has contexts for 64. There is one per CID (256); flows whose CID is
/// taken, and whose ACKs are always packets, count here, too.
const DECODER_CONTEXTS: usize = 256;

/// The sending side.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    acks: Compressor,
    /// Frames of other feedback since the last [`Encoder::finish_frame`], and their number.
    others: Vec<u8>,
    pending: usize,
    number: u32,
    bytes_limit: usize,
}

/// The receiving side.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    acks: Decompressor,
    /// The number of the next frame of other feedback.
    next: u32,
}

/// Result for the bytes of one link-layer ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Packets passed on.
    pub delivered: usize,
    /// Repeated frames.
    pub duplicates: usize,
    /// Frames that could not be decoded.
    pub failures: usize,
}

impl Encoder {
    /// `appended_limit` is the most bytes that one link-layer ACK may carry; frames are small enough to fit.
    pub fn new(coding: Coding, appended_limit: Option<u32>) -> Self {
        Self {
            acks: Compressor::new(coding, frame_limits(appended_limit)),
            others: Vec::new(),
            pending: 0,
            number: 0,
            bytes_limit: appended_limit.map_or(USUAL_BYTES, |bytes| bytes as usize),
        }
    }

    /// Adds feedback to the frame being built.
    ///
    /// # Errors
    /// A [`Refusal`] if it has to be sent as a packet, or the frame is full.
    pub fn push(&mut self, rides: Rides, bytes: &[u8]) -> Result<(), Refusal> {
        match rides {
            Rides::Compressed => self.acks.push(bytes),
            Rides::AsIs
                if self.pending > 0 && self.others.len() + HEAD_LEN + bytes.len() > self.bytes_limit =>
            {
                Err(Refusal::FrameFull)
            }
            Rides::AsIs => {
                write_frame(&mut self.others, self.number, bytes);
                self.number = (self.number + 1) % NUMBERS;
                self.pending += 1;
                Ok(())
            }
            Rides::Never => Err(Refusal::NotPureAck),
        }
    }

    /// Whether [`Encoder::push`] would accept it if there is room.
    ///
    /// # Errors
    /// A [`Refusal`] if it has to be sent as a packet.
    pub fn accepts(&self, rides: Rides, bytes: &[u8]) -> Result<(), Refusal> {
        match rides {
            Rides::Compressed => self.acks.accepts(bytes),
            Rides::AsIs => Ok(()),
            Rides::Never => Err(Refusal::NotPureAck),
        }
    }

    /// Ends the frame being built and appends it to `out`; returns the number of packets in it.
    pub fn finish_frame(&mut self, out: &mut Vec<u8>) -> usize {
        let acks = self.acks.finish_frame(out);
        out.append(&mut self.others);
        acks + std::mem::take(&mut self.pending)
    }

    /// The peer has received this packet, which was sent as a packet.
    pub fn note_native(&mut self, packet: &[u8]) {
        self.acks.note_native(packet);
    }

    /// The peer may lack appended ACKs of this packet's flow.
    pub fn invalidate(&mut self, packet: &[u8]) {
        self.acks.invalidate(packet);
    }

    /// The peer may lack appended ACKs of any flow.
    pub fn invalidate_all(&mut self) {
        self.acks.invalidate_all();
    }
}

impl Decoder {
    pub fn new() -> Self {
        let limits = Limits { contexts: DECODER_CONTEXTS, ..Limits::default() };
        Self { acks: Decompressor::new(limits), next: 0 }
    }

    /// Records a packet that arrived as a packet.
    pub fn note_native(&mut self, packet: &[u8]) {
        self.acks.note_native(packet);
    }

    /// Decodes the bytes that a link-layer ACK carried; calls `deliver` for each new packet.
    pub fn receive(&mut self, bytes: &[u8], deliver: &mut dyn FnMut(&[u8])) -> Report {
        let mut report = Report::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            // ACKs up to the next frame of other feedback, or to the end.
            let acks = rest.len() - behind_acks(rest).len();
            if acks > 0 {
                let found = self.acks.receive(&rest[..acks], &mut *deliver);
                report.delivered += found.acks;
                report.duplicates += found.duplicates;
                report.failures += found.failures();
                rest = &rest[acks..];
            } else if let Some((frame, behind)) = split(rest) {
                if self.is_new(frame.number) {
                    deliver(frame.body);
                    report.delivered += 1;
                } else {
                    report.duplicates += 1;
                }
                rest = behind;
            } else {
                report.failures += 1;
                break;
            }
        }
        report
    }

    /// Records `number`; returns false if it is not newer than the newest, modulo 2^24.
    fn is_new(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.next) % NUMBERS;
        let new = ahead < NUMBERS / 2;
        if new {
            self.next = (number + 1) % NUMBERS;
        }
        new
    }
}

const NUMBERS: u32 = 1 << 24;

/// The header of a frame; for a frame of ACKs only its end matters.
struct Frame<'a> {
    number: u32,
    body: &'a [u8],
}

/// Splits off the first frame; `None` if its length exceeds the bytes.
fn split(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let (head, mut rest) = bytes.split_first_chunk::<HEAD_LEN>()?;
    let mut len = usize::from(head[0] >> 4);
    if len == MORE {
        let mut shift = 0;
        loop {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            len += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            // No link-layer ACK needs more than two groups of seven bits for a length.
            if shift > 14 {
                return None;
            }
        }
    }
    let (body, behind) = rest.split_at_checked(len)?;
    let number = u32::from_be_bytes([0, head[1], head[2], head[3]]);
    Some((Frame { number, body }, behind))
}

/// The bytes after the frames of compressed ACKs at the start of `bytes`; empty if one of them has an invalid length.
fn behind_acks(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while !rest.is_empty() && rest[0] & 0xf != KIND {
        let Some((_, behind)) = split(rest) else { return &[] };
        rest = behind;
    }
    rest
}

fn write_frame(out: &mut Vec<u8>, number: u32, body: &[u8]) {
    let [_, number @ ..] = number.to_be_bytes();
    out.push((body.len().min(MORE) as u8) << 4 | KIND);
    out.extend_from_slice(&number);
    if let Some(mut more) = body.len().checked_sub(MORE) {
        while more > 0x7f {
            out.push((more & 0x7f) as u8 | 0x80);
            more >>= 7;
        }
        out.push(more as u8);
    }
    out.extend_from_slice(body);
}

/// Limits with which one frame fits in `appended_limit` unless its ACKs are unusual: an ACK in which every field
/// changes takes up to about 12 bytes.
fn frame_limits(appended_limit: Option<u32>) -> Limits {
    let usual = Limits::default();
    let fitting = appended_limit.map_or(usual.frame_acks, |bytes| bytes as usize / 12);
    Limits { frame_acks: fitting.clamp(1, usual.frame_acks), ..usual }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoder() -> Encoder {
        Encoder::new(Coding::PerAck, None)
    }

    fn received(decoder: &mut Decoder, bytes: &[u8]) -> (Vec<Vec<u8>>, Report) {
        let mut packets = Vec::new();
        let report = decoder.receive(bytes, &mut |packet| packets.push(packet.to_vec()));
        (packets, report)
    }

    #[test]
    fn feedback_of_any_length_comes_back_as_it_was() {
        for len in [0, 1, 14, 15, 16, 142, 143, 500] {
            let feedback = vec![7; len];
            let mut frame = Vec::new();
            let mut encoder = encoder();
            encoder.push(Rides::AsIs, &feedback).unwrap();
            assert_eq!(encoder.finish_frame(&mut frame), 1);
            let (packets, report) = received(&mut Decoder::new(), &frame);
            assert_eq!(packets, [feedback], "{len}");
            assert_eq!(report, Report { delivered: 1, ..Report::default() });
        }
    }

    /// The NIC repeats frames until they are proven: old frames come before new ones.
    #[test]
    fn repetitions_are_dropped_by_number_and_gaps_are_nobodys_business() {
        let mut encoder = encoder();
        let frames: Vec<Vec<u8>> = (0..4_u8)
            .map(|n| {
                let mut frame = Vec::new();
                encoder.push(Rides::AsIs, &[n]).unwrap();
                encoder.finish_frame(&mut frame);
                frame
            })
            .collect();
        let mut decoder = Decoder::new();
        assert_eq!(received(&mut decoder, &frames[0]).0, [[0]]);
        let (packets, report) = received(&mut decoder, &[&frames[0][..], &frames[1]].concat());
        assert_eq!((packets, report.duplicates), (vec![vec![1]], 1));
        // The third frame was given up by its driver.
        assert_eq!(received(&mut decoder, &frames[3]).0, [[3]]);
        let (packets, report) = received(&mut decoder, &frames[2]);
        assert_eq!((packets.len(), report.duplicates), (0, 1), "older than the newest");
    }

    #[test]
    fn numbers_come_round() {
        let mut decoder = Decoder { next: NUMBERS - 1, ..Decoder::new() };
        assert!(decoder.is_new(NUMBERS - 1));
        assert!(!decoder.is_new(NUMBERS - 1));
        assert!(decoder.is_new(0));
        assert!(!decoder.is_new(NUMBERS - 1));
    }

    #[test]
    fn a_limit_makes_small_frames() {
        let mut encoder = Encoder::new(Coding::PerAck, Some(30));
        encoder.push(Rides::AsIs, &[0; 20]).unwrap();
        assert_eq!(encoder.push(Rides::AsIs, &[0; 20]), Err(Refusal::FrameFull));
        encoder.finish_frame(&mut Vec::new());
        encoder.push(Rides::AsIs, &[0; 200]).unwrap();
    }

    proptest! {
        #[test]
        fn stray_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (packets, report) = received(&mut Decoder::new(), &bytes);
            prop_assert_eq!(packets.len(), report.delivered);
        }
    }
}
