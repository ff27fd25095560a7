//! Shared by the tests of the HACK variant: captures, and frames as a driver would form them.
#![allow(dead_code, reason = "the benchmark takes its share")]

pub mod packets;

use crate::common;
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits, Report};
use tacit_rohc::header::{Header, MAX_HEADER_LEN};

/// A packet and its capture time in microseconds.
pub struct Seen {
    pub at_us: u64,
    pub packet: Vec<u8>,
}

/// The IP packets of a capture; `None`, with a message, if the shared data is not available.
pub fn capture(name: &str) -> Option<Vec<Seen>> {
    let bytes = std::fs::read(common::data(&format!("captures/{name}.acks.pcap"))?).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let per_us = match word(0) {
        0xa1b2_c3d4 => 1,
        0xa1b2_3c4d => 1000,
        magic => panic!("not a little-endian capture: {magic:#x}"),
    };
    let link_len = if word(20) == 1 { 14 } else { 0 };
    let mut packets = Vec::new();
    let mut at = 24;
    while at < bytes.len() {
        let len = word(at + 8) as usize;
        let at_us = u64::from(word(at)) * 1_000_000 + u64::from(word(at + 4) / per_us);
        packets.push(Seen { at_us, packet: with_checksum(&bytes[at + 16 + link_len..at + 16 + len]) });
        at += 16 + len;
    }
    Some(packets)
}

/// The packet with the checksum it would have on the wire. A packet captured on its way to an interface with checksum
/// offload contains the sum over the pseudo-header only.
fn with_checksum(packet: &[u8]) -> Vec<u8> {
    let mut header = Header::parse(packet).unwrap();
    assert_eq!(header.len(), packet.len(), "no pure ACK");
    header.checksum = header.tcp_checksum(&[]);
    bytes_of(&header)
}

/// The packet that consists of this header alone.
pub fn bytes_of(header: &Header) -> Vec<u8> {
    let mut bytes = [0; MAX_HEADER_LEN];
    let len = header.emit(&mut bytes).unwrap();
    bytes[..len].to_vec()
}

/// How to divide a capture into frames.
#[derive(Clone, Copy)]
pub struct FrameRule {
    pub gap_us: u64,
    pub acks: usize,
    /// After this number of frames, the next ACK is sent natively and starts a new incarnation.
    pub frames: usize,
}

/// Totals of a capture.
#[derive(Debug, Default)]
pub struct Sum {
    pub acks: usize,
    pub frames: usize,
    pub bytes: usize,
}

impl Sum {
    pub fn per_ack(&self) -> f64 {
        self.bytes as f64 / self.acks as f64
    }
}

/// Compresses a capture, checks that all packets are restored, and counts bytes.
pub fn round_trip(packets: &[Seen], coding: Coding, rule: FrameRule) -> Sum {
    let mut compressor = Compressor::new(coding, Limits::default());
    let mut decompressor = Decompressor::new(Limits::default());
    let (first, rest) = packets.split_first().unwrap();
    compressor.note_native(&first.packet);
    decompressor.note_native(&first.packet);
    let mut sum = Sum::default();
    let mut natives = 0;
    let mut sent = Vec::new();
    let mut last_us = first.at_us;
    for seen in rest {
        if seen.at_us - last_us > rule.gap_us || compressor.pending() == rule.acks {
            ship(&mut compressor, &mut decompressor, &mut sent, &mut sum);
        }
        last_us = seen.at_us;
        if sum.frames == (natives + 1) * rule.frames && sent.is_empty() {
            natives += 1;
            compressor.note_native(&seen.packet);
            decompressor.note_native(&seen.packet);
            continue;
        }
        compressor.push(&seen.packet).unwrap();
        sent.push(seen.packet.clone());
    }
    ship(&mut compressor, &mut decompressor, &mut sent, &mut sum);
    assert_eq!(sum.acks + natives, rest.len());
    sum
}

fn ship(
    compressor: &mut Compressor,
    decompressor: &mut Decompressor,
    sent: &mut Vec<Vec<u8>>,
    sum: &mut Sum,
) {
    let mut frame = Vec::new();
    if compressor.finish_frame(&mut frame) == 0 {
        return;
    }
    let mut got = Vec::new();
    let report = decompressor.receive(&frame, &mut |packet| got.push(packet.to_vec()));
    assert_eq!(report, Report { frames: 1, acks: sent.len(), ..Report::default() });
    assert_eq!(&got, sent);
    sum.acks += got.len();
    sum.frames += 1;
    sum.bytes += frame.len();
    sent.clear();
}
