//! Tunnels and extension headers: packets assembled by hand from RFC 6846 section 8.2, and random flows.

use crate::headers::{emit, pure_ack};
use crate::tunnel::{Part, wrap};
use crate::{flow, scripts, tunnel};
use proptest::prelude::*;
use tacit_rohc::header::{Header, Ip, ParseError};
use tacit_rohc::{
    CidSpace, CompressError, Compressor, CompressorConfig, Decompressor, DecompressorConfig, FormatKind,
    Layers, MAX_LAYERS,
};

fn v6(header: Header) -> Header {
    Header { ip: Ip::V6 { source: [1; 16], destination: [2; 16], flow_label: 0 }, ..header }
}

/// Both ends of a channel on which nothing is lost.
struct Pair {
    compressor: Compressor,
    decompressor: Decompressor,
}

impl Pair {
    fn new(config: CompressorConfig) -> Self {
        let feedback = config.replicate;
        let decompressor =
            DecompressorConfig { cids: config.cids, feedback, ..DecompressorConfig::default() };
        Self { compressor: Compressor::new(config), decompressor: Decompressor::new(decompressor) }
    }

    /// Sends one packet, which must be restored unchanged. Returns its ROHC form.
    fn send(&mut self, packet: &[u8]) -> (FormatKind, Vec<u8>) {
        let (mut rohc, mut back) = ([0; 2000], [0; 2000]);
        let compressed = self.compressor.compress(packet, &mut rohc).unwrap();
        let done = self.decompressor.decompress(&rohc[..compressed.len], &mut back).unwrap();
        assert_eq!(&back[..done.len], packet, "{}", compressed.format.name());
        if let Some(feedback) = done.feedback {
            assert_eq!(self.compressor.feedback(feedback.as_bytes()), 0);
        }
        (compressed.format, rohc[..compressed.len].to_vec())
    }
}

/// ipv4_static, gre_static, ipv6_static, dest_opt_static, tcp_static; then the dynamic items in that order.
#[test]
fn an_ir_has_an_item_for_each_header_in_their_order() {
    let outer = [
        Part::V4 { tos: 0xb8, ttl: 9, id: 0x1234, dont_fragment: true },
        Part::Gre { flags: 0xb0, checksum: 0x5566, key: 0x0102_0304, sequence: 0x0a0b_0c0d },
    ];
    let behind = [Part::Options { number: 60, value: vec![1, 4, 0, 0, 0, 0] }];
    let header = v6(pure_ack());
    let (kind, rohc) = Pair::new(CompressorConfig::default()).send(&wrap(&emit(&header), &outer, &behind));
    assert_eq!(kind, FormatKind::Ir);
    let mut chains = vec![0, 47, 192, 0, 2, 1, 192, 0, 2, 2];
    chains.extend([0b1111_0000, 1, 2, 3, 4]);
    chains.extend([0x80, 60]);
    chains.extend([[1; 16], [2; 16]].concat());
    chains.extend([6, 0]);
    chains.extend([1000u16.to_be_bytes(), 80u16.to_be_bytes()].concat());
    // DF and a random IP-ID, TOS, TTL; checksum and sequence number; traffic class and hop limit; the options.
    chains.extend([0b110, 0xb8, 9, 0x12, 0x34, 0x55, 0x66, 0x0a, 0x0b, 0x0c, 0x0d, 0, 64, 1, 4, 0, 0, 0, 0]);
    assert_eq!(rohc[3..3 + chains.len()], chains);
}

/// The irregular chain contains the outer IP-ID, the outer TTL in co_common only, and seven bits of a sequence number.
#[test]
fn small_packets_say_what_changed_in_outer_headers() {
    let mut outer = [Part::V4 { tos: 0, ttl: 64, id: 500, dont_fragment: true }];
    let mut behind = [Part::Ah { reserved: 0, spi: 7, sequence: 1, icv: vec![0xaa; 12] }];
    let mut header = pure_ack();
    let mut pair = Pair::new(CompressorConfig::default());
    let mut send = |header: &mut Header, outer: &mut [Part], behind: &mut [Part], change: u8| {
        header.ack += 1448;
        if let Ip::V4 { id, .. } = &mut header.ip {
            *id += 1;
        }
        tunnel::next(outer);
        tunnel::next(behind);
        if change < 4 {
            tunnel::change(outer, change, 0x1600);
        }
        pair.send(&wrap(&emit(header), outer, behind))
    };
    for _ in 0..8 {
        send(&mut header, &mut outer, &mut behind, 9);
    }
    let (kind, rohc) = send(&mut header, &mut outer, &mut behind, 9);
    // seq_4 (two bytes), the outer IP-ID, the seven bits and the ICV, and the TCP checksum; nothing for unchanged
    // timestamps.
    assert_eq!(kind, FormatKind::Seq4);
    assert_eq!(rohc[2..4], 509u16.to_be_bytes());
    assert_eq!((rohc[4], &rohc[5..17], &rohc[17..19]), (10, &[0xaa; 12][..], &[0x12, 0x34][..]));
    let usual = rohc.len();
    // The new TTL is sent in as many packets as each change is repeated.
    let kinds: Vec<FormatKind> =
        (0..4).map(|at| send(&mut header, &mut outer, &mut behind, if at == 0 { 0 } else { 9 }).0).collect();
    assert_eq!(kinds, [FormatKind::CoCommon, FormatKind::CoCommon, FormatKind::Seq4, FormatKind::Seq4]);
    // A change of DSCP or ECN enables the corresponding bytes of the irregular chain.
    let (kind, rohc) = send(&mut header, &mut outer, &mut behind, 1);
    assert_eq!(kind, FormatKind::Seq8);
    assert!(rohc.windows(3).any(|bytes| bytes[..2] == 514u16.to_be_bytes() && bytes[2] == 0x16));
    send(&mut header, &mut outer, &mut behind, 9);
    let (kind, rohc) = send(&mut header, &mut outer, &mut behind, 9);
    assert_eq!((kind, rohc.len()), (FormatKind::Seq4, usual + 2), "a byte per IP header");
    // A change that the irregular chain cannot carry needs an IR-DYN.
    assert_eq!(send(&mut header, &mut outer, &mut behind, 3).0, FormatKind::IrDyn);
}

#[test]
fn two_tunnels_with_one_flow_inside_are_two_flows() {
    let mut pair = Pair::new(CompressorConfig::default());
    let mut cids = Vec::new();
    for key in [1, 2, 1, 2] {
        let gre = Part::Gre { flags: 0x20, checksum: 0, key, sequence: 0 };
        let outer = [Part::V4 { tos: 0, ttl: 64, id: 0, dont_fragment: true }, gre];
        let packet = wrap(&emit(&pure_ack()), &outer, &[]);
        pair.send(&packet);
        cids.push(pair.compressor.cid_of(&packet).unwrap());
    }
    assert_eq!(cids, [0, 1, 0, 1]);
}

/// RFC 8200 section 8.1: the TCP checksum of a packet in transit covers the final destination. A decompressor that
/// verifies the checksum must accept such a packet.
#[test]
fn a_checksum_of_the_final_destination_is_right() {
    let mut header = v6(pure_ack());
    let last = [0x33; 16];
    let at_the_end = Header { ip: Ip::V6 { source: [1; 16], destination: last, flow_label: 0 }, ..header };
    header.checksum = at_the_end.tcp_checksum(&[]);
    let segment = Part::Options { number: 43, value: [&[4, 1, 0, 0, 0, 0][..], &last].concat() };
    let packet = wrap(&emit(&header), &[], &[segment]);
    let (layers, parsed) = Layers::parse(&packet).unwrap();
    assert!(layers.has_valid_checksum(&parsed, &[]) && !parsed.has_valid_checksum(&[]));
    let mut v4 = pure_ack();
    let at_home =
        Header { ip: Ip::V4 { source: [3; 4], destination: [4; 4], id: 0, dont_fragment: false }, ..v4 };
    v4.checksum = at_home.tcp_checksum(&[]);
    let mine = Part::Mine { destination: [4; 4], source: Some([3; 4]) };
    let (layers, parsed) = Layers::parse(&wrap(&emit(&v4), &[], &[mine])).unwrap();
    assert!(layers.has_valid_checksum(&parsed, &[]));
}

#[test]
fn chains_that_could_not_be_restored_are_refused() {
    let plain = emit(&pure_ack());
    let v4 = Part::V4 { tos: 0, ttl: 64, id: 1, dont_fragment: false };
    let gre = Part::Gre { flags: 0xb0, checksum: 1, key: 2, sequence: 3 };
    let mine = Part::Mine { destination: [1; 4], source: None };
    let error = |packet: &[u8]| Layers::parse(packet).unwrap_err();
    let with = |at: usize, value: u8| {
        let mut packet = wrap(&plain, &[v4.clone(), gre.clone()], std::slice::from_ref(&mine));
        assert!(Layers::parse(&packet).is_ok());
        packet[at] = value;
        packet
    };
    // Routing bit and version of GRE, reserved bytes after its checksum, another protocol, and MINE's checksum.
    for at in [20, 21, 26] {
        assert_eq!(error(&with(at, 0xff)), ParseError::NotPlainTcp, "byte {at}");
    }
    assert_eq!(error(&with(23, 1)), ParseError::NotPlainTcp);
    assert_eq!(error(&with(20 + 16 + 20 + 2, 9)), ParseError::MineChecksum);
    let deep = wrap(&plain, &vec![v4.clone(); MAX_LAYERS + 1], &[]);
    assert_eq!(error(&deep), ParseError::TooManyHeaders);
    let long = wrap(&emit(&v6(pure_ack())), &[], &[Part::Options { number: 60, value: vec![0; 6 + 8 * 70] }]);
    assert_eq!(error(&long), ParseError::TooManyHeaders);
    let whole = wrap(&plain, &vec![v4; MAX_LAYERS], &[]);
    for cut in 0..whole.len() {
        assert!(Layers::parse(&whole[..cut]).is_err(), "cut at {cut}");
    }
    let mut inner = whole.clone();
    inner[21 * MAX_LAYERS] ^= 1;
    assert!(Layers::parse(&inner).is_err());
    // Link padding does not belong to any header.
    let padded = [whole.clone(), vec![0; 9]].concat();
    let (layers, header) = Layers::parse(&padded).unwrap();
    let mut back = vec![0; whole.len()];
    assert_eq!(layers.emit(&header, &mut back), Some(whole.len()));
    assert_eq!(back, whole);
}

/// A second flow through the same tunnel starts from the first.
#[test]
fn a_second_flow_in_a_tunnel_is_replicated() {
    for choice in 0..512 {
        for is_v6 in [false, true] {
            let (mut outer, mut behind) = tunnel::stack(choice, is_v6);
            let mut pair = Pair::new(CompressorConfig { replicate: true, ..CompressorConfig::default() });
            let mut header = if is_v6 { v6(pure_ack()) } else { pure_ack() };
            for _ in 0..6 {
                header.ack += 1448;
                tunnel::next(&mut outer);
                tunnel::next(&mut behind);
                pair.send(&wrap(&emit(&header), &outer, &behind));
            }
            header.source_port += 1;
            let (kind, _) = pair.send(&wrap(&emit(&header), &outer, &behind));
            assert_eq!(kind, FormatKind::IrCr, "{outer:?} {behind:?}");
            header.ack += 1448;
            tunnel::next(&mut outer);
            pair.send(&wrap(&emit(&header), &outer, &behind));
        }
    }
}

/// The packets of a script inside a stack of headers to which `changes` are applied.
fn packets(script: &flow::Script, is_v6: bool, choice: u32, changes: &[(u8, u32)]) -> Vec<Vec<u8>> {
    let (mut outer, mut behind) = tunnel::stack(choice, is_v6);
    let mut changes = changes.iter().cycle();
    flow::packets(script, is_v6)
        .iter()
        .map(|packet| {
            tunnel::next(&mut outer);
            tunnel::next(&mut behind);
            if let Some(&(kind, amount)) = changes.next() {
                // Most packets only differ by the regular changes.
                match kind >> 4 {
                    0 => tunnel::change(&mut outer, kind, amount),
                    1 => tunnel::change(&mut behind, kind, amount),
                    _ => {}
                }
            }
            wrap(packet, &outer, &behind)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Every packet of any legal flow in a tunnel is restored bit for bit, even if fewer consecutive packets are lost
    /// than each change is repeated.
    #[test]
    fn every_packet_returns(
        script in scripts::scripts(80), is_v6: bool, choice: u32, repeat in 1u8..=8, large: bool,
        changes in prop::collection::vec((0u8..80, any::<u32>()), 1..60),
        pattern in prop::collection::vec(any::<bool>(), 7..40),
    ) {
        let cids = if large { CidSpace::Large { max: 200 } } else { CidSpace::Small { max: 15 } };
        let mut compressor = Compressor::new(CompressorConfig { cids, repeat, refresh_ir_dyn: 30, ..CompressorConfig::default() });
        let mut decompressor = Decompressor::new(DecompressorConfig { cids, repair: false, ..Default::default() });
        let (mut rohc, mut back) = ([0; 3000], [0; 3000]);
        // Counted per context, because other tunnels are other flows.
        let mut lost = std::collections::BTreeMap::new();
        for (at, packet) in packets(&script, is_v6, choice, &changes).iter().enumerate() {
            let compressed = match compressor.compress(packet, &mut rohc) {
                Ok(compressed) => compressed,
                Err(CompressError::Options) => continue,
                Err(error) => return Err(TestCaseError::fail(format!("packet {at}: {error}"))),
            };
            prop_assert!(compressed.len <= packet.len() + 65, "packet {} grew by {}", at, compressed.len - packet.len());
            let lost = lost.entry(compressed.cid).or_insert(0);
            *lost = if pattern[at % pattern.len()] && *lost + 1 < repeat { *lost + 1 } else { 0 };
            if *lost > 0 {
                continue;
            }
            let name = compressed.format.name();
            match decompressor.decompress(&rohc[..compressed.len], &mut back) {
                Ok(done) => prop_assert_eq!(&back[..done.len], &packet[..], "packet {} as {}", at, name),
                Err(error) => return Err(TestCaseError::fail(format!("packet {at} as {name}: {error}"))),
            }
        }
    }

    /// A packet is either refused or written back unchanged.
    #[test]
    fn parsed_chains_are_emitted_again(choice: u32, is_v6: bool, flips in prop::collection::vec((any::<u16>(), any::<u8>()), 0..3)) {
        let (outer, behind) = tunnel::stack(choice, is_v6);
        let header = if is_v6 { v6(pure_ack()) } else { pure_ack() };
        let mut packet = wrap(&emit(&header), &outer, &behind);
        for (at, mask) in flips {
            let at = usize::from(at) % packet.len();
            packet[at] ^= mask;
        }
        if let Ok((layers, header)) = Layers::parse(&packet) {
            let mut back = vec![0; packet.len()];
            let len = layers.emit(&header, &mut back).unwrap();
            prop_assert_eq!(&back[..len], &packet[..len]);
        }
    }
}
