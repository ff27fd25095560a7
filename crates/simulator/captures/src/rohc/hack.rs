//! Compressor and decompressor of the HACK variant in one process.
//!
//! All pure ACKs in a capture are treated as those of a single station. A frame is the payload of one link-layer ACK.
//! It ends before a gap of more than 1 ms or after 21 ACKs, the number that an A-MPDU of 42 subframes triggers,
//! including ACKs that are sent natively in the meantime. The first ACK of each flow is native and creates the context.
//! A frame also ends at the end of a chunk.

use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, MAX_FRAME_ACKS, Refusal, frame_kinds};

use super::packets::{Chunk, plain_flow_bytes};
use super::pair::{Counts, Pair};

/// A frame ends before a longer gap.
const GAP_NANOS: i128 = 1_000_000;
/// A frame ends after this number of ACKs.
const FRAME_ACKS: usize = 21;
/// Allows a context for every CID.
const LIMITS: Limits = Limits { contexts: 256, frame_acks: MAX_FRAME_ACKS };

/// An item sent to the other end; items are in order.
enum Sent {
    /// An uncompressed ACK and its length in bytes.
    Native(usize),
    /// A frame: the range of its bytes, and that of its ACKs in [`HackPair::acks`].
    Frame { bytes: (usize, usize), acks: (usize, usize) },
}

pub(super) struct HackPair {
    coding: Coding,
    compressor: Compressor,
    decompressor: Decompressor,
    last_nanos: Option<i128>,
    /// Number of ACKs since the start of the current frame, including native ones.
    in_burst: usize,
    sent: Vec<Sent>,
    /// Frames, concatenated.
    frames: Vec<u8>,
    /// Native packets for the decompressor, concatenated.
    natives: Vec<u8>,
    /// Indexes of the ACKs in frames.
    acks: Vec<usize>,
    /// Decompressed ACKs, concatenated.
    back: Vec<u8>,
    /// The end of each ACK in `back`.
    ends: Vec<usize>,
    /// Total number of ACKs delivered after each frame.
    delivered: Vec<usize>,
    /// Number of native packets whose CID is used by another flow.
    cid_taken: u64,
}

impl HackPair {
    pub fn new(coding: Coding) -> Self {
        Self {
            coding,
            compressor: Compressor::new(coding, LIMITS),
            decompressor: Decompressor::new(LIMITS),
            last_nanos: None,
            in_burst: 0,
            sent: Vec::new(),
            frames: Vec::new(),
            natives: Vec::new(),
            acks: Vec::new(),
            back: Vec::new(),
            ends: Vec::new(),
            delivered: Vec::new(),
            cid_taken: 0,
        }
    }

    fn finish_frame(&mut self) {
        self.in_burst = 0;
        let start = self.frames.len();
        let count = self.compressor.finish_frame(&mut self.frames);
        if count > 0 {
            let acks = (self.acks.len() - count, self.acks.len());
            self.sent.push(Sent::Frame { bytes: (start, self.frames.len()), acks });
        }
    }
}

impl Pair for HackPair {
    fn renew(&mut self) {
        self.compressor = Compressor::new(self.coding, LIMITS);
        self.decompressor = Decompressor::new(LIMITS);
        self.last_nanos = None;
    }

    fn prepare(&mut self, chunk: &Chunk) {
        self.sent.clear();
        self.frames.clear();
        self.natives.clear();
        self.acks.clear();
        self.back.clear();
        self.ends.clear();
        self.delivered.clear();
        self.cid_taken = 0;
        self.sent.reserve(chunk.places.len());
        self.frames.reserve(chunk.bytes.len());
        self.acks.reserve(chunk.places.len());
        self.back.reserve(chunk.bytes.len());
        self.ends.reserve(chunk.places.len());
        self.delivered.reserve(chunk.places.len());
    }

    fn compress(&mut self, chunk: &Chunk) {
        for (at, place) in chunk.places.iter().enumerate() {
            let gap = place.at_nanos.zip(self.last_nanos).map_or(0, |(now, last)| now - last);
            if gap > GAP_NANOS || self.in_burst == FRAME_ACKS {
                self.finish_frame();
            }
            self.last_nanos = place.at_nanos;
            let packet = chunk.packet(place);
            match self.compressor.push(packet) {
                Ok(()) => self.acks.push(at),
                // Either there is no context yet, or another flow uses the CID. The ACK is sent uncompressed.
                Err(refusal) => {
                    self.cid_taken += u64::from(refusal == Refusal::CidTaken);
                    self.compressor.note_native(packet);
                    self.natives.extend_from_slice(packet);
                    self.sent.push(Sent::Native(packet.len()));
                }
            }
            self.in_burst += usize::from(self.compressor.pending() > 0);
        }
        self.finish_frame();
    }

    fn decompress(&mut self) {
        let mut natives = self.natives.as_slice();
        for sent in &self.sent {
            match sent {
                Sent::Native(len) => {
                    let (packet, rest) = natives.split_at(*len);
                    natives = rest;
                    self.decompressor.note_native(packet);
                }
                Sent::Frame { bytes: (start, end), .. } => {
                    let (back, ends) = (&mut self.back, &mut self.ends);
                    self.decompressor.receive(&self.frames[*start..*end], &mut |packet| {
                        back.extend_from_slice(packet);
                        ends.push(back.len());
                    });
                    self.delivered.push(self.ends.len());
                }
            }
        }
    }

    fn check(&self, chunk: &Chunk, counts: &mut Counts) {
        counts.cid_taken += self.cid_taken;
        let mut delivered = self.delivered.iter();
        let mut from = 0;
        for sent in &self.sent {
            let Sent::Frame { bytes, acks } = sent else {
                counts.native += 1;
                continue;
            };
            let bytes = &self.frames[bytes.0..bytes.1];
            counts.frames += 1;
            counts.compressed_bytes += bytes.len() as u64;
            for kind in frame_kinds(bytes) {
                *counts.formats.entry(kind).or_default() += 1;
            }
            let to = delivered.next().copied().unwrap_or(from);
            let back = (from..to).map(|at| {
                let start = if at == 0 { 0 } else { self.ends[at - 1] };
                &self.back[start..self.ends[at]]
            });
            let sent = self.acks[acks.0..acks.1].iter().map(|&at| chunk.packet(&chunk.places[at]));
            check_frame(sent, back, counts);
            from = to;
        }
    }
}

/// Compares the ACKs decompressed from a frame with those that were compressed. They are grouped by flow; within a flow
/// they are in the order sent.
fn check_frame<'a>(
    sent: impl Iterator<Item = &'a [u8]>,
    back: impl Iterator<Item = &'a [u8]>,
    counts: &mut Counts,
) {
    let mut missing: Vec<&[u8]> = sent.collect();
    for packet in &missing {
        counts.packets += 1;
        counts.header_bytes += packet.len() as u64;
    }
    for packet in back {
        let flow = plain_flow_bytes(packet);
        match missing.iter().position(|sent| plain_flow_bytes(sent) == flow) {
            Some(next) => counts.wrong += u64::from(missing.remove(next) != packet),
            None => counts.wrong += 1,
        }
    }
    counts.failures += missing.len() as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet with only the fields that matter here.
    fn packet(port: u8, number: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[21], packet[30]) = (0x45, port, number);
        packet
    }

    fn checked(sent: &[Vec<u8>], back: &[Vec<u8>]) -> (u64, u64) {
        let mut counts = Counts::default();
        check_frame(sent.iter().map(Vec::as_slice), back.iter().map(Vec::as_slice), &mut counts);
        assert_eq!((counts.packets, counts.header_bytes), (sent.len() as u64, 40 * sent.len() as u64));
        (counts.failures, counts.wrong)
    }

    #[test]
    fn missing_and_wrong_headers_are_told_apart() {
        let sent = [packet(1, 1), packet(2, 1), packet(1, 2)];
        let by_flow = [packet(1, 1), packet(1, 2), packet(2, 1)];
        assert_eq!(checked(&sent, &by_flow), (0, 0));
        assert_eq!(checked(&sent, &by_flow[..2]), (1, 0));
        assert_eq!(checked(&sent, &[]), (3, 0));
        assert_eq!(checked(&sent, &[packet(1, 2), packet(1, 1), packet(2, 1)]), (0, 2));
        assert_eq!(checked(&sent, &[packet(1, 1), packet(3, 1)]), (2, 1));
        assert_eq!(checked(&sent, &[packet(1, 1), packet(1, 2), packet(2, 1), packet(2, 1)]), (0, 1));
    }
}
