//! Arbitrary packets: those that the compressor accepts are restored bit for bit and only once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_rohc::hack::{Coding, Compressor, Decompressor, Limits};
use tacit_rohc::header::{Header, MAX_HEADER_LEN};

/// Interprets input as an ACK: overwrites some bytes of the previous ACK, then corrects the checksums.
fn next(packet: &mut Vec<u8>, edit: &[u8]) {
    let Ok(mut header) = Header::parse(packet) else { return };
    let mut bytes = [0; MAX_HEADER_LEN];
    let Some(len) = header.emit(&mut bytes) else { return };
    for pair in edit.chunks_exact(2) {
        bytes[usize::from(pair[0]) % len] = pair[1];
    }
    // Only the IPv4 checksum prevents a header from being parsed.
    if bytes[0] >> 4 == 4 {
        bytes[10..12].fill(0);
        let sum = bytes[..20].chunks_exact(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum::<u32>();
        let sum = (sum & 0xffff) + (sum >> 16);
        bytes[10..12].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
    }
    let Ok(parsed) = Header::parse(&bytes[..len]) else { return };
    header = parsed;
    header.checksum = header.tcp_checksum(&[]);
    if let Some(len) = header.emit(&mut bytes) {
        *packet = bytes[..len].to_vec();
    }
}

/// `settings`: bit 0 is the coding, bit 1 the IP version, and the rest the number of ACKs per frame. Edits follow, each
/// with its length.
fn run(settings: u8, mut edits: &[u8]) {
    let coding = if settings & 1 == 0 { Coding::PerAck } else { Coding::Batch };
    let frame_len = usize::from(settings >> 2) + 1;
    let mut compressor = Compressor::new(coding, Limits::default());
    let mut decompressor = Decompressor::new(Limits::default());
    let mut packet = if settings & 2 == 0 {
        let mut packet = vec![0; 52];
        packet[..10].copy_from_slice(&[0x45, 0, 0, 52, 0, 9, 0x40, 0, 64, 6]);
        packet[10..12].copy_from_slice(&0x7ab9u16.to_be_bytes());
        packet
    } else {
        let mut packet = vec![0; 72];
        packet[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 32, 6, 64]);
        packet
    };
    let tcp = packet.len() - 32;
    packet[tcp + 12..tcp + 14].copy_from_slice(&[0x80, 0x10]);
    packet[tcp + 20..tcp + 24].copy_from_slice(&[1, 1, 8, 10]);
    next(&mut packet, &[]);
    compressor.note_native(&packet);
    decompressor.note_native(&packet);
    let mut sent = Vec::new();
    while let Some((&len, rest)) = edits.split_first() {
        let (edit, behind) = rest.split_at(rest.len().min(usize::from(len)));
        edits = behind;
        next(&mut packet, edit);
        if compressor.push(&packet).is_ok() {
            sent.push(packet.clone());
        } else {
            compressor.note_native(&packet);
            decompressor.note_native(&packet);
        }
        if compressor.pending() >= frame_len || edits.is_empty() {
            let mut frames = Vec::new();
            compressor.finish_frame(&mut frames);
            let mut got = Vec::new();
            let report = decompressor.receive(&frames, &mut |packet| got.push(packet.to_vec()));
            assert_eq!(report.failures() + report.duplicates, 0, "{report:?}");
            // Frames of several flows are sent one after another, so ignore the order between flows.
            got.sort();
            sent.sort();
            assert_eq!(got, sent);
            sent.clear();
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Some((&settings, edits)) = bytes.split_first() {
        run(settings, edits);
    }
});
