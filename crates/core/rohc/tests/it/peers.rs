//! Packets that peers may send, and packets that must not be sent to them: one test per former refusal or error.

use crate::common;
use crate::headers::{self, TIMESTAMPS, packet, pure_ack};
use tacit_rohc::crc::CRC3;
use tacit_rohc::header::{Header, Options, flags};
use tacit_rohc::{
    CidSpace, CompressError, Compressor, CompressorConfig, DecompressErrorKind, Decompressor,
    DecompressorConfig, FeedbackKind, FormatKind,
};

/// Advances to the next pure ACK of a Linux receiver, with a correct checksum.
fn next(header: &mut Header) {
    headers::next(header);
    header.checksum = header.tcp_checksum(&[]);
}

/// Both ends, and a flow whose context is established.
struct Pair {
    compressor: Compressor,
    decompressor: Decompressor,
    header: Header,
}

impl Pair {
    fn new(options: Options, feedback: bool, verify_tcp_checksum: bool) -> Self {
        let config = DecompressorConfig { feedback, verify_tcp_checksum, ..Default::default() };
        let mut pair = Self {
            compressor: Compressor::new(CompressorConfig::default()),
            decompressor: Decompressor::new(config),
            header: Header { options, ..pure_ack() },
        };
        for _ in 0..12 {
            next(&mut pair.header);
            let (rohc, _) = pair.compress();
            pair.decompress(&rohc).unwrap();
        }
        pair
    }

    fn compress(&mut self) -> (Vec<u8>, FormatKind) {
        let mut rohc = [0; 300];
        let compressed = self.compressor.compress(&packet(&self.header), &mut rohc).unwrap();
        (rohc[..compressed.len].to_vec(), compressed.format)
    }

    fn decompress(&mut self, rohc: &[u8]) -> Result<Vec<u8>, DecompressErrorKind> {
        let mut out = [0; 300];
        let done = self.decompressor.decompress(rohc, &mut out).map_err(|error| error.kind)?;
        Ok(out[..done.len].to_vec())
    }
}

/// The length in bits has one byte: padding of 32 bytes or more used to be lost.
#[test]
fn padding_behind_an_eol_is_said_or_refused() {
    let (mut compressor, mut decompressor) =
        (Compressor::new(CompressorConfig::default()), Decompressor::new(DecompressorConfig::default()));
    let (mut rohc, mut out) = ([0; 300], [0; 300]);
    for nops in 0..40 {
        let mut area = [1; 40];
        area[nops..].fill(0);
        // A list names at most fifteen options.
        let has_form = nops < 15 && 40 - nops <= 32;
        let packet = packet(&Header { options: Options::new(&area).unwrap(), ..pure_ack() });
        match compressor.compress(&packet, &mut rohc) {
            Ok(compressed) => {
                let done = decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
                assert_eq!(&out[..done.len], packet, "{nops} NOPs before the EOL");
                assert!(has_form, "{nops} NOPs before the EOL");
            }
            Err(error) => assert!(error == CompressError::Options && !has_form, "{nops}: {error}"),
        }
    }
}

/// An item without contents need not be in the list (RFC 6846 section 6.3.4), not even initially.
#[test]
fn items_without_contents_need_not_come() {
    for (area, with_bits, without) in [
        (&TIMESTAMPS[..], [0x03, 0x88, 0xc0], [0x03, 0x00, 0xc0]),
        (&[4, 2, 1, 1], [0x03, 0xd8, 0x80], [0x03, 0x50, 0x00]),
    ] {
        let mut pair = Pair::new(Options::NONE, false, false);
        pair.header.options = Options::new(area).unwrap();
        next(&mut pair.header);
        let (mut rohc, _) = pair.compress();
        let head = rohc.windows(3).position(|bytes| bytes == with_bits).unwrap();
        rohc[head..head + 3].copy_from_slice(&without);
        assert_eq!(pair.decompress(&rohc), Ok(packet(&pair.header)));
    }
}

#[test]
fn the_tcp_checksum_is_looked_at_whatever_the_format() {
    for dscp in [0, 9] {
        let mut pair = Pair::new(Options::new(&TIMESTAMPS).unwrap(), false, true);
        next(&mut pair.header);
        pair.header.dscp = dscp;
        pair.header.checksum ^= 1;
        let (rohc, format) = pair.compress();
        assert_eq!(format == FormatKind::CoCommon, dscp != 0);
        assert_eq!(pair.decompress(&rohc), Err(DecompressErrorKind::Crc), "{}", format.name());
    }
}

#[test]
fn a_row_of_changes_is_acknowledged_once_and_seldom_again() {
    let mut pair = Pair::new(Options::new(&TIMESTAMPS).unwrap(), true, false);
    let mut out = [0; 300];
    let mut answered = Vec::new();
    for number in 1..=40 {
        next(&mut pair.header);
        pair.header.dscp = number;
        let (rohc, format) = pair.compress();
        assert_eq!(format, FormatKind::CoCommon);
        let done = pair.decompressor.decompress(&rohc, &mut out).unwrap();
        if let Some(feedback) = done.feedback {
            assert_eq!(feedback.kind(), FeedbackKind::Ack);
            answered.push(number);
        }
    }
    assert_eq!(answered, [1, 2, 4, 8, 16, 32]);
}

/// A peer that does not understand IR-CR, and whose feedback has a form that this crate does not understand.
#[test]
fn replication_without_an_answer_falls_back_to_ir() {
    let config =
        CompressorConfig { replicate: true, refresh_ir: 0, refresh_ir_dyn: 0, ..CompressorConfig::default() };
    let mut compressor = Compressor::new(config);
    let feedback = DecompressorConfig { feedback: true, ..Default::default() };
    let mut decompressor = Decompressor::new(feedback);
    let (mut rohc, mut out) = ([0; 300], [0; 300]);
    let first = pure_ack();
    let compressed = compressor.compress(&packet(&first), &mut rohc).unwrap();
    let done = decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
    compressor.feedback(done.feedback.unwrap().as_bytes());
    let mut second = Header { source_port: 77, ..first };
    let mut formats = Vec::new();
    let mut right = 0;
    for _ in 0..80 {
        next(&mut second);
        let compressed = compressor.compress(&packet(&second), &mut rohc).unwrap();
        formats.push(compressed.format);
        if compressed.format == FormatKind::IrCr {
            continue;
        }
        if let Ok(done) = decompressor.decompress(&rohc[..compressed.len], &mut out) {
            assert_eq!(&out[..done.len], packet(&second));
            right += 1;
        }
    }
    assert_eq!(formats.iter().filter(|format| **format == FormatKind::IrCr).count(), 2);
    assert_eq!(
        formats.iter().position(|format| *format == FormatKind::Ir),
        Some(34),
        "two IR-CR and 32 in vain"
    );
    assert!(right >= 80 - 34, "{right}");
}

/// The IP-ID follows from the MSN, and no TCP checksum covers it. Four bits of MSN wrap where more than 15 packets are lost, and three
/// of check fit the wrong MSN once in eight times; the ACK, which has more bits, then shows how many packets there were.
#[test]
fn an_msn_that_the_pace_of_its_flow_refutes_is_not_believed() {
    let mut pair = Pair::new(Options::NONE, false, false);
    let (mut delivered, mut refused) = (0, 0);
    for outage in 0..120 {
        let lost = 20 + outage % 8;
        for number in 0..200 + lost {
            next(&mut pair.header);
            // Unlike steps have no stride, so that the ACK has 16 bits.
            pair.header.ack = pair.header.ack.wrapping_sub(1900 + number % 2 * 7);
            pair.header.checksum = pair.header.tcp_checksum(&[]);
            let (rohc, _) = pair.compress();
            if number < lost {
                continue;
            }
            match pair.decompress(&rohc) {
                Ok(restored) => {
                    assert_eq!(restored, packet(&pair.header), "{number}, {lost} lost");
                    delivered += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    // Four after each outage, and those that fit more than one MSN.
    assert!(refused < 5 * 120 && delivered > 20_000, "{delivered} {refused}");
}

/// A rnd or seq header implies ACK = 1 and URG = 0 (RFC 6846 section 8.2, DEFAULT), but some peers take both from the
/// context. No such header is sent while the two interpretations differ.
#[test]
fn flags_out_of_the_ordinary_stay_in_co_common_until_every_peer_has_the_usual_ones() {
    for unusual in [flags::ACK | flags::URG, 0, flags::URG] {
        let mut pair = Pair::new(Options::new(&TIMESTAMPS).unwrap(), false, false);
        let mut formats = Vec::new();
        for number in 0..8 {
            next(&mut pair.header);
            pair.header.flags = if number < 3 { unusual } else { flags::ACK };
            let (rohc, format) = pair.compress();
            assert_eq!(pair.decompress(&rohc), Ok(packet(&pair.header)));
            formats.push(format == FormatKind::CoCommon);
        }
        // Three packets with other flags, and as many with the usual ones as each change is repeated.
        assert_eq!(formats, [true, true, true, true, true, false, false, false]);
    }
}

/// The other direction: such a peer sends the URG flag in a co_common, and then seq_4 while the flag stays set.
#[test]
fn flags_taken_from_the_context_are_understood() {
    let mut pair = Pair::new(Options::new(&TIMESTAMPS).unwrap(), false, false);
    next(&mut pair.header);
    pair.header.flags |= flags::URG;
    pair.header.checksum = pair.header.tcp_checksum(&[]);
    let (rohc, format) = pair.compress();
    assert_eq!(format, FormatKind::CoCommon);
    assert_eq!(pair.decompress(&rohc), Ok(packet(&pair.header)));
    let mut refused = 0;
    for _ in 0..40 {
        next(&mut pair.header);
        // Encoded by our compressor for a packet without the flag, but with the checksums of the packet with it.
        let mut plain = Header { flags: flags::ACK, ..pair.header };
        core::mem::swap(&mut plain, &mut pair.header);
        let (mut rohc, format) = pair.compress();
        core::mem::swap(&mut plain, &mut pair.header);
        if format == FormatKind::CoCommon {
            refused += 1;
            continue;
        }
        assert_eq!(format, FormatKind::Seq4);
        rohc[1] = rohc[1] & !7 | CRC3.check(&packet(&pair.header));
        assert_eq!(pair.decompress(&rohc), Ok(packet(&pair.header)));
    }
    assert_eq!(refused, 2);
}

/// Data and acknowledgments of hosts that merge segments: the IP-ID jumps by the number of segments that a packet
/// represents.
#[test]
fn jumping_ip_ids_do_not_cost_a_co_common_each() {
    let Some(packets) = common::capture("bidir_gro_v4") else { return };
    let mut compressor =
        Compressor::new(CompressorConfig { refresh_ir: 0, refresh_ir_dyn: 0, ..CompressorConfig::default() });
    let mut rohc = vec![0; 70_000];
    let (mut common, mut bytes) = (0, 0);
    for packet in &packets {
        let compressed = compressor.compress(packet, &mut rohc).unwrap();
        let payload = usize::from(Header::parse(packet).unwrap().payload_len);
        // Acknowledgments need a co_common for another reason: they advance by 260 kB, which no other format can
        // encode.
        common += u32::from(compressed.format == FormatKind::CoCommon && payload != 0);
        bytes += compressed.len - payload;
    }
    let each = bytes as f64 / packets.len() as f64;
    println!("{} packets, {common} co_common with payload, {each:.3} bytes each", packets.len());
    assert!(common <= 20 && each < 16.5, "{common} {each}");
}

#[test]
fn many_flows_share_few_contexts() {
    let cids = CidSpace::Large { max: 16_383 };
    let mut compressor = Compressor::new(CompressorConfig { cids, ..CompressorConfig::default() });
    let mut rohc = [0; 300];
    for round in 0..2 {
        for flow in 0..20_000u32 {
            let header = Header {
                source_port: flow as u16,
                destination_port: (flow >> 16) as u16,
                ack: round * 1000,
                ..pure_ack()
            };
            let compressed = compressor.compress(&packet(&header), &mut rohc).unwrap();
            // When a flow returns, its context has been assigned to another one.
            assert_eq!(compressed.format, FormatKind::Ir);
        }
    }
}
