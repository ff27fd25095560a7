//! One test per known error of codecs of this kind.

use crate::headers::{TIMESTAMPS, next, packet, pure_ack as header};
use tacit_rohc::header::{Header, Ip, Options, ParseError, flags};
use tacit_rohc::{
    CidSpace, CompressError, Compressed, Compressor, CompressorConfig, DecompressErrorKind, Decompressor,
    DecompressorConfig, FormatKind,
};

/// Both ends of a channel without losses.
struct Pair {
    compressor: Compressor,
    decompressor: Decompressor,
    rohc: [u8; 2000],
}

impl Pair {
    fn new(config: CompressorConfig) -> Self {
        let decompressor = Decompressor::new(DecompressorConfig { cids: config.cids, ..Default::default() });
        Self { compressor: Compressor::new(config), decompressor, rohc: [0; 2000] }
    }

    /// A pair with an established context for `header`.
    fn settled(header: &mut Header) -> Self {
        let mut pair = Self::new(CompressorConfig::default());
        for _ in 0..12 {
            next(header);
            pair.send(header);
        }
        pair
    }

    /// Round trip of a header with a payload of zeros.
    fn send(&mut self, header: &Header) -> Compressed {
        let packet = packet(header);
        let compressed = self.compressor.compress(&packet, &mut self.rohc).unwrap();
        let mut back = [0; 2000];
        let done = self.decompressor.decompress(&self.rohc[..compressed.len], &mut back).unwrap();
        assert_eq!(&back[..done.len], &packet[..], "{}", compressed.format.name());
        compressed
    }
}

fn with_sack(header: &mut Header, edges: &[u32]) {
    let mut area = TIMESTAMPS.to_vec();
    area.extend([1, 1, 5, 2 + 4 * edges.len() as u8]);
    edges.iter().for_each(|edge| area.extend(edge.to_be_bytes()));
    header.options = Options::new(&area).unwrap();
}

#[test]
fn a_weak_check_never_repairs_a_damaged_context() {
    let mut header = header();
    let mut pair = Pair::settled(&mut header);
    let mut out = [0; 2000];
    // A format with a 3-bit CRC, damaged until the context counts as damaged.
    next(&mut header);
    let compressed = pair.compressor.compress(&packet(&header), &mut pair.rohc).unwrap();
    assert_eq!(compressed.format, FormatKind::Seq4);
    let good = pair.rohc[..compressed.len].to_vec();
    let mut bad = good.clone();
    bad[1] ^= 1;
    for _ in 0..4 {
        assert_eq!(pair.decompressor.decompress(&bad, &mut out).unwrap_err().kind, DecompressErrorKind::Crc);
    }
    assert_eq!(pair.decompressor.decompress(&good, &mut out).unwrap_err().kind, DecompressErrorKind::Damaged);
    // A 7-bit CRC repairs the context: a new DSCP needs co_common.
    header.dscp = 10;
    next(&mut header);
    assert_eq!(pair.send(&header).format, FormatKind::CoCommon);
    for _ in 0..8 {
        next(&mut header);
        pair.send(&header);
    }
}

#[test]
fn a_wrong_tcp_checksum_travels_as_it_is() {
    let mut header = header();
    let mut pair = Pair::settled(&mut header);
    for checksum in [0, 0xffff, 0xdead] {
        next(&mut header);
        header.checksum = checksum;
        assert_eq!(pair.send(&header).format, FormatKind::Seq4);
    }
}

#[test]
fn unchanged_sack_means_equal_edges_not_equal_distances() {
    let mut header = header();
    let mut pair = Pair::settled(&mut header);
    let base = header.ack + 10_000;
    for _ in 0..6 {
        with_sack(&mut header, &[base, base + 1448]);
        pair.send(&header);
    }
    let stable = pair.send(&header).len;
    // The edges stay while the ACK advances: still one byte for all of them.
    next(&mut header);
    assert_eq!(pair.send(&header).len, stable);
    // The edges advance with the ACK: the distances are equal, but the edges are not.
    next(&mut header);
    with_sack(&mut header, &[base + 2896, base + 4344]);
    assert_eq!(pair.send(&header).len, stable + 4);
}

#[test]
fn three_and_more_sack_blocks_follow_each_other_in_any_order() {
    let mut header = header();
    header.options = Options::NONE;
    let mut pair = Pair::settled(&mut header);
    for shift in 0..40u32 {
        next(&mut header);
        let ack = header.ack;
        // A D-SACK below the ACK, and four blocks out of order.
        let edges =
            [ack - 1448, ack, ack + 90_000, ack + 90_000 + shift, ack + 5000, ack + 6000, ack + 1, ack + 2];
        let mut area = vec![1, 1, 5, 34];
        edges.iter().for_each(|edge| area.extend(edge.to_be_bytes()));
        header.options = Options::new(&area).unwrap();
        pair.send(&header);
    }
}

#[test]
fn the_check_of_an_ir_covers_its_cid() {
    for cids in [CidSpace::Small { max: 15 }, CidSpace::Large { max: 300 }] {
        let mut pair = Pair::new(CompressorConfig { cids, ..CompressorConfig::default() });
        let mut header = header();
        let mut compressed = pair.send(&header);
        for port in 0..5 {
            header.source_port = port;
            compressed = pair.send(&header);
        }
        assert_eq!((compressed.cid, compressed.format), (5, FormatKind::Ir));
        let mut out = [0; 2000];
        for bit in 0..4 {
            let mut bad = pair.rohc[..compressed.len].to_vec();
            let at = usize::from(cids != CidSpace::Small { max: 15 });
            bad[at] ^= 1 << bit;
            let kind = pair.decompressor.decompress(&bad, &mut out).unwrap_err().kind;
            assert_eq!(kind, DecompressErrorKind::Crc, "{cids:?} bit {bit}");
        }
    }
}

#[test]
fn padding_behind_an_eol_is_counted_in_bits() {
    let mut pair = Pair::new(CompressorConfig::default());
    let mut header = header();
    for area in [&[0, 0, 0, 0][..], &[2, 4, 5, 180, 0, 0, 0, 0], &[3, 3, 7, 0], &[4, 2, 0, 0, 0, 0, 0, 0]] {
        header.options = Options::new(area).unwrap();
        for _ in 0..9 {
            next(&mut header);
            pair.send(&header);
        }
    }
    // Padding other than zero cannot be encoded.
    header.options = Options::new(&[0, 0, 0, 7]).unwrap();
    let refused = pair.compressor.compress(&packet(&header), &mut pair.rohc);
    assert_eq!(refused, Err(CompressError::Options));
}

#[test]
fn ecn_costs_an_byte_only_while_it_is_used() {
    let mut header = header();
    let mut pair = Pair::settled(&mut header);
    next(&mut header);
    let quiet = pair.send(&header).len;
    for _ in 0..20 {
        next(&mut header);
        header.flags ^= flags::ECE;
        pair.send(&header);
    }
    next(&mut header);
    assert_eq!(pair.send(&header).len, quiet + 1);
    header.ip_ecn = 2;
    for _ in 0..100 {
        next(&mut header);
        pair.send(&header);
    }
    next(&mut header);
    assert_eq!(pair.send(&header).len, quiet);
}

#[test]
fn co_common_with_a_sequential_ip_id_always_carries_some_of_it() {
    let mut header = header();
    let mut pair = Pair::settled(&mut header);
    for step in [1u16, 5, 200, 5000, 1] {
        next(&mut header);
        header.dscp ^= 1;
        if let Ip::V4 { id, .. } = &mut header.ip {
            *id = id.wrapping_add(step);
        }
        assert_eq!(pair.send(&header).format, FormatKind::CoCommon);
    }
}

#[test]
fn every_behaviour_of_the_ip_id_is_followed() {
    type Step = fn(u16, u16) -> u16;
    let steps: [(&str, Step); 5] = [
        ("one up", |id, _| id.wrapping_add(1)),
        ("swapped", |id, _| id.swap_bytes().wrapping_add(1).swap_bytes()),
        ("zero", |_, _| 0),
        ("random", |id, at| id.wrapping_mul(40503).wrapping_add(at)),
        ("constant", |_, _| 0x4711),
    ];
    for (name, step) in steps {
        for (other, before) in steps {
            let mut header = header();
            let mut pair = Pair::new(CompressorConfig::default());
            let mut len = 0;
            for at in 0..60 {
                header.ack += 2896;
                if let Ip::V4 { id, .. } = &mut header.ip {
                    *id = if at < 20 { before(*id, at) } else { step(*id, at) };
                }
                len = pair.send(&header).len;
            }
            let expected = if matches!(name, "random" | "constant") { 12 } else { 10 };
            assert_eq!(len, expected, "{name} after {other}");
        }
    }
}

#[test]
fn msn_65535_is_followed_by_0() {
    let mut header = header();
    let mut pair = Pair::new(CompressorConfig::default());
    for _ in 0..70_000 {
        next(&mut header);
        pair.send(&header);
    }
}

#[test]
fn the_residue_changes_where_the_ack_wraps() {
    let mut header = header();
    header.ack = 0u32.wrapping_sub(2896 * 40 + 77);
    let mut pair = Pair::new(CompressorConfig::default());
    let mut unscaled = 0;
    for at in 0..80 {
        next(&mut header);
        let compressed = pair.send(&header);
        if at > 20 && compressed.format != FormatKind::Seq4 {
            unscaled += 1;
            assert_eq!(compressed.format, FormatKind::Seq3);
        }
    }
    assert_eq!(unscaled, CompressorConfig::default().repeat, "said as often as any change");
}

#[test]
fn every_field_wraps_around() {
    let mut header = header();
    header.payload_len = 700;
    (header.seq, header.window, header.urgent) = (u32::MAX - 9000, 65_530, 65_535);
    let mut pair = Pair::new(CompressorConfig::default());
    for at in 0..200u32 {
        next(&mut header);
        header.seq = header.seq.wrapping_add(700);
        header.window = header.window.wrapping_add(1);
        header.urgent = header.urgent.wrapping_add(1);
        header.ttl = header.ttl.wrapping_add(1);
        header.flags = flags::ACK | if at % 3 == 0 { flags::URG } else { 0 };
        let mut area = TIMESTAMPS;
        area[4..8].copy_from_slice(&(u32::MAX - 20).wrapping_add(at).to_be_bytes());
        header.options = Options::new(&area).unwrap();
        pair.send(&header);
    }
}

#[test]
fn flags_that_no_index_names_take_an_ir_dyn() {
    let mut header = header();
    let mut pair = Pair::settled(&mut header);
    next(&mut header);
    header.flags = flags::SYN | flags::FIN | flags::ACK;
    assert_eq!(pair.send(&header).format, FormatKind::IrDyn);
    for flags in [flags::SYN, flags::FIN | flags::ACK, flags::RST | flags::ACK, 0, 0xff] {
        next(&mut header);
        header.flags = flags;
        pair.send(&header);
    }
}

#[test]
fn options_beyond_the_reserved_and_too_many_options() {
    let mut header = header();
    let mut pair = Pair::settled(&mut header);
    for at in 0..40u8 {
        next(&mut header);
        // An unknown kind that changes, as in MPTCP; two options of the same kind; and two MSS options.
        let area = [30, 4, at / 8, 7, 253, 3, 1, 253, 3, 2, 2, 4, 1, 1, 2, 4, 2, 2, 1, 0];
        header.options = Options::new(&area).unwrap();
        pair.send(&header);
    }
    header.options = Options::new(&[1; 40]).unwrap();
    let refused = pair.compressor.compress(&packet(&header), &mut pair.rohc);
    assert_eq!(refused, Err(CompressError::Options));
    header.options = Options::new(&[30, 40, 0, 0]).unwrap();
    let refused = pair.compressor.compress(&packet(&header), &mut pair.rohc);
    assert_eq!(refused, Err(CompressError::Options));
    // Nothing was sent, so the flow continues.
    header.options = Options::new(&TIMESTAMPS).unwrap();
    pair.send(&header);
}

#[test]
fn a_list_that_refers_to_what_was_never_sent_is_refused() {
    let mut header = header();
    header.options = Options::NONE;
    let mut pair = Pair::settled(&mut header);
    header.options = Options::new(&TIMESTAMPS).unwrap();
    next(&mut header);
    let compressed = pair.compressor.compress(&packet(&header), &mut pair.rohc).unwrap();
    let mut bad = pair.rohc[..compressed.len].to_vec();
    let head =
        bad.windows(3).position(|window| window == [0x03, 0x88, 0xc0]).expect("a list with all X bits");
    bad[head + 2] = 0x40;
    let error = pair.decompressor.decompress(&bad, &mut [0; 2000]).unwrap_err();
    assert_eq!(error.kind, DecompressErrorKind::Malformed);
}

#[test]
fn packets_other_than_plain_tcp_are_refused_with_a_reason() {
    let mut compressor = Compressor::new(CompressorConfig::default());
    let mut out = [0; 200];
    let mut v6 =
        packet(&Header { ip: Ip::V6 { source: [1; 16], destination: [2; 16], flow_label: 7 }, ..header() });
    // A fragment header, which RFC 6846 does not include.
    v6[6] = 44;
    let fragment = compressor.compress(&v6, &mut out);
    assert_eq!(fragment, Err(CompressError::Header(ParseError::NotPlainTcp)));
    let whole = packet(&header());
    for cut in 0..whole.len() {
        assert!(matches!(compressor.compress(&whole[..cut], &mut out), Err(CompressError::Header(_))));
    }
}

#[test]
fn more_flows_than_contexts() {
    for cids in [CidSpace::Small { max: 3 }, CidSpace::Large { max: 130 }] {
        let mut pair = Pair::new(CompressorConfig { cids, ..CompressorConfig::default() });
        let flows = cids.max() + 20;
        for round in 0..3u32 {
            for port in 0..flows {
                for at in 0..6 {
                    let ack = round * 1000 + at;
                    pair.send(&Header { source_port: port, ack, ..header() });
                }
            }
        }
    }
}

#[test]
fn segments_other_profiles_and_strange_cids_are_told_apart() {
    let mut decompressor =
        Decompressor::new(DecompressorConfig { cids: CidSpace::Small { max: 3 }, ..Default::default() });
    let mut out = [0; 100];
    for (bytes, kind) in [
        (&[][..], DecompressErrorKind::Empty),
        (&[0xe0, 0xe0], DecompressErrorKind::Empty),
        (&[0xf1, 0x00], DecompressErrorKind::Empty),
        (&[0xff, 1, 2], DecompressErrorKind::Segment),
        (&[0xe7, 0x00, 0x00], DecompressErrorKind::Cid),
        (&[0xfd, 0x02, 0x00], DecompressErrorKind::Profile),
        (&[0x00, 0x00, 0x00], DecompressErrorKind::NoContext),
        (&[0xf8, 0x06, 0x00], DecompressErrorKind::NoContext),
        (&[0xfd, 0x06], DecompressErrorKind::Malformed),
    ] {
        assert_eq!(decompressor.decompress(bytes, &mut out).unwrap_err().kind, kind, "{bytes:02x?}");
    }
}

/// The only context goes to another flow, and both of that flow's IRs are lost. The peer answers the next packets from
/// its own context, which is that of the previous flow. It would decode an IR-DYN with that context, and put the old
/// ports on the new flow's packets.
#[test]
fn a_nack_from_before_the_flow_is_no_proof_of_its_static_part() {
    let cids = CidSpace::Small { max: 0 };
    let config = CompressorConfig { cids, ..CompressorConfig::default() };
    let mut compressor = Compressor::new(config);
    let with_feedback = DecompressorConfig { cids, feedback: true, ..Default::default() };
    let mut decompressor = Decompressor::new(with_feedback);
    let (mut rohc, mut restored) = ([0; 300], [0; 300]);
    let mut old = header();
    let mut new = Header { source_port: 2000, ..header() };
    let (mut right, mut failed) = (0, 0);
    for number in 0..60 {
        let header = if number < 10 { &mut old } else { &mut new };
        next(header);
        let packet = packet(header);
        let compressed = compressor.compress(&packet, &mut rohc).unwrap();
        if (10..12).contains(&number) {
            assert_eq!(compressed.format, FormatKind::Ir, "lost");
            continue;
        }
        let feedback = match decompressor.decompress(&rohc[..compressed.len], &mut restored) {
            Ok(decompressed) => {
                assert_eq!(restored[..decompressed.len], packet, "packet {number}");
                right += 1;
                decompressed.feedback
            }
            Err(error) => {
                failed += 1;
                error.feedback
            }
        };
        if let Some(feedback) = feedback {
            compressor.feedback(feedback.as_bytes());
        }
    }
    assert!(right >= 50 && failed <= 8, "{right} right, {failed} failed");
}

/// An acknowledgment does not confirm an option that changed after the acknowledged packet (RFC 6846 section 5.2.2.1).
#[test]
fn an_early_acknowledgment_does_not_confirm_later_options() {
    let mut compressor = Compressor::new(CompressorConfig { repeat: 4, ..CompressorConfig::default() });
    let with_feedback = DecompressorConfig { feedback: true, ..Default::default() };
    let mut decompressor = Decompressor::new(with_feedback);
    let (mut rohc, mut restored) = ([0; 300], [0; 300]);
    let mut header = Header { options: Options::new(&[2, 4, 5, 0xb4, 3, 3, 7, 1]).unwrap(), ..header() };
    let compressed = compressor.compress(&packet(&header), &mut rohc).unwrap();
    let early = decompressor.decompress(&rohc[..compressed.len], &mut restored).unwrap().feedback.unwrap();
    // The next packet has another window scale, and is lost.
    next(&mut header);
    header.options = Options::new(&[2, 4, 5, 0xb4, 3, 3, 9, 1]).unwrap();
    compressor.compress(&packet(&header), &mut rohc).unwrap();
    compressor.feedback(early.as_bytes());
    for _ in 0..8 {
        next(&mut header);
        let packet = packet(&header);
        let compressed = compressor.compress(&packet, &mut rohc).unwrap();
        let decompressed = decompressor.decompress(&rohc[..compressed.len], &mut restored).unwrap();
        assert_eq!(restored[..decompressed.len], packet);
        if let Some(feedback) = decompressed.feedback {
            compressor.feedback(feedback.as_bytes());
        }
    }
}
