//! IR-CR: packets assembled by hand from RFC 6846 section 8.2, and two flows through a compressor that replicates.

use crate::flow;
use crate::headers::{emit, pure_ack};
use proptest::prelude::*;
use tacit_rohc::crc::{CRC7, CRC8};
use tacit_rohc::header::{Header, Ip, Options, flags};
use tacit_rohc::{
    CidSpace, Compressor, CompressorConfig, DecompressErrorKind, Decompressor, DecompressorConfig,
    FeedbackKind, FormatKind,
};

fn base() -> Header {
    Header { source_port: 40000, ..pure_ack() }
}

/// A second flow between the same hosts, with other ports, numbers and timestamps.
fn second(ip: Ip) -> Header {
    let options = Options::new(&[1, 1, 8, 10, 0, 0, 1, 9, 0, 0, 2, 0]).unwrap();
    Header { ip, source_port: 40010, seq: 77, ack: 0xdead_beef, window: 7, options, ..base() }
}

/// An IR-CR for `header` on CID 3 with base CID 0, with every optional field present.
fn ir_cr(header: &Header, space: CidSpace, payload: &[u8]) -> Vec<u8> {
    let crc7 = CRC7.check(&emit(&Header { payload_len: payload.len() as u16, ..*header }));
    let mut bytes = match space {
        CidSpace::Small { .. } => vec![0xe3, 0xfc, 6, 0, 0x80 | crc7, 0],
        CidSpace::Large { .. } => vec![0xfc, 3, 6, 0, 0x80 | crc7, 0],
    };
    let crc_at = 3;
    match header.ip {
        Ip::V4 { id, .. } => {
            bytes.extend([0b0000_0011, header.dscp << 2 | header.ip_ecn]);
            bytes.extend(id.to_be_bytes());
            bytes.push(header.ttl);
        }
        Ip::V6 { flow_label, .. } => {
            bytes.extend([header.dscp << 2 | header.ip_ecn, 0x10 | (flow_label >> 16) as u8]);
            bytes.extend((flow_label as u16).to_be_bytes());
        }
    }
    // Window, list, source port as eight bits, destination port unchanged, stride; ACK and urgent pointer, flags.
    bytes.extend([0b0110_1001, 0b1001_0000]);
    bytes.extend(0xabcdu16.to_be_bytes());
    bytes.extend(header.seq.to_be_bytes());
    bytes.push(header.source_port as u8);
    bytes.extend(header.window.to_be_bytes());
    bytes.extend(header.ack.to_be_bytes());
    bytes.extend(header.checksum.to_be_bytes());
    bytes.extend(1448u16.to_be_bytes());
    bytes.extend([0x03, 0x88, 0xc0]);
    bytes.extend(&header.options.as_bytes()[4..]);
    bytes[crc_at] = CRC8.check(&bytes);
    bytes.extend(payload);
    bytes
}

fn established(space: CidSpace, base: &Header) -> Decompressor {
    let mut compressor = Compressor::new(CompressorConfig { cids: space, ..CompressorConfig::default() });
    let mut decompressor = Decompressor::new(DecompressorConfig {
        cids: space,
        feedback: true,
        ..DecompressorConfig::default()
    });
    let (mut rohc, mut out) = ([0; 200], [0; 200]);
    let compressed = compressor.compress(&emit(base), &mut rohc).unwrap();
    decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
    decompressor
}

#[test]
fn a_flow_is_replicated_from_another() {
    let v6 = Ip::V6 { source: [1; 16], destination: [2; 16], flow_label: 0 };
    let other_label = Ip::V6 { source: [1; 16], destination: [2; 16], flow_label: 0xabcde };
    for space in [CidSpace::Small { max: 15 }, CidSpace::Large { max: 100 }] {
        for (of_base, of_second) in [(base().ip, base().ip), (v6, other_label)] {
            let mut decompressor = established(space, &Header { ip: of_base, ..base() });
            let header = second(of_second);
            let payload = [1, 2, 3];
            let mut out = [0; 200];
            let bytes = ir_cr(&header, space, &payload);
            let done = decompressor.decompress(&bytes, &mut out).unwrap();
            assert_eq!((done.format, done.cid), (FormatKind::IrCr, 3));
            assert_eq!(done.feedback.map(|feedback| feedback.kind()), Some(FeedbackKind::Ack));
            let mut expected = emit(&Header { payload_len: 3, ..header });
            expected.extend(payload);
            assert_eq!(&out[..done.len], &expected[..]);
        }
    }
}

/// tcp_replicate of RFC 6846 section 8.2: window, urgent pointer, acknowledgment number, stride and options of the base stand where a
/// peer leaves them out. Our compressor sends them all.
#[test]
fn fields_that_a_replication_leaves_out_are_those_of_the_base() {
    let space = CidSpace::Small { max: 15 };
    let header = Header { source_port: 40010, seq: 77, checksum: 0x4711, ..base() };
    let Ip::V4 { id, .. } = header.ip else { unreachable!() };
    let mut bytes = vec![0xe3, 0xfc, 6, 0, 0x80 | CRC7.check(&emit(&header)), 0];
    // Sequential IP-ID, neither hop limit nor, except the source port, any of those fields; ACK.
    bytes.extend([1, header.dscp << 2 | header.ip_ecn]);
    bytes.extend(id.to_be_bytes());
    bytes.extend([0b0000_1000, 0b0001_0000]);
    bytes.extend(0xabcdu16.to_be_bytes());
    bytes.extend(header.seq.to_be_bytes());
    bytes.push(header.source_port as u8);
    bytes.extend(header.checksum.to_be_bytes());
    bytes[3] = CRC8.check(&bytes);
    let mut out = [0; 200];
    let done = established(space, &base()).decompress(&bytes, &mut out).unwrap();
    assert_eq!((done.format, &out[..done.len]), (FormatKind::IrCr, &emit(&header)[..]));
}

#[test]
fn a_replication_needs_its_base_and_both_checks() {
    let space = CidSpace::Small { max: 15 };
    let good = ir_cr(&second(base().ip), space, &[]);
    let mut out = [0; 200];
    let mut empty = Decompressor::new(DecompressorConfig { cids: space, ..DecompressorConfig::default() });
    assert_eq!(empty.decompress(&good, &mut out).unwrap_err().kind, DecompressErrorKind::NoContext);
    let mut decompressor = established(space, &base());
    for at in 3..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x08;
        assert!(decompressor.decompress(&bad, &mut out).is_err(), "byte {at}");
    }
    // A correct CRC-8, but a wrong CRC-7: the base differs from the compressor's.
    let mut other = established(space, &Header { ttl: 64, dscp: 0, destination_port: 81, ..base() });
    assert_eq!(other.decompress(&good, &mut out).unwrap_err().kind, DecompressErrorKind::Crc);
    for cut in 0..good.len() {
        assert!(decompressor.decompress(&good[..cut], &mut out).is_err(), "cut at {cut}");
    }
    assert!(decompressor.decompress(&good, &mut out).is_ok());
}

/// Both ends of a channel with feedback.
struct Channel {
    compressor: Compressor,
    decompressor: Decompressor,
}

impl Channel {
    fn new(cids: CidSpace, seed: u64) -> Self {
        Self {
            compressor: Compressor::new(CompressorConfig {
                cids,
                replicate: true,
                seed,
                ..CompressorConfig::default()
            }),
            decompressor: Decompressor::new(DecompressorConfig {
                cids,
                feedback: true,
                ..DecompressorConfig::default()
            }),
        }
    }

    /// Sends a packet, and returns the feedback unless it is lost. Returns the format and the length.
    fn send(&mut self, packet: &[u8], answered: bool) -> (FormatKind, usize) {
        let (mut rohc, mut out) = ([0; 2000], [0; 2000]);
        let compressed = self.compressor.compress(packet, &mut rohc).unwrap();
        let done = self.decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap();
        assert_eq!(&out[..done.len], packet, "{}", compressed.format.name());
        assert_eq!((done.format, done.cid), (compressed.format, compressed.cid));
        if let Some(feedback) = done.feedback.filter(|_| answered) {
            assert_eq!(self.compressor.feedback(feedback.as_bytes()), 0);
        }
        (compressed.format, compressed.len)
    }
}

#[test]
fn a_new_flow_starts_from_one_the_peer_confirmed() {
    let v6 = Ip::V6 { source: [1; 16], destination: [2; 16], flow_label: 0xabcde };
    for (ip, saved) in [(base().ip, 3), (v6, 30)] {
        for cids in [CidSpace::Small { max: 15 }, CidSpace::Large { max: 300 }] {
            let mut channel = Channel::new(cids, 1);
            let first = Header { ip, ..base() };
            // Without confirmation, the second flow starts without a base.
            let (kind, ir_len) = channel.send(&emit(&first), false);
            assert_eq!(kind, FormatKind::Ir);
            let alone = emit(&Header { source_port: 1, ..first });
            assert_eq!(channel.send(&alone, false).0, FormatKind::Ir);
            // With confirmation, the third flow starts from the first and, once confirmed itself, continues with small
            // headers.
            assert_eq!(channel.send(&emit(&first), true).0, FormatKind::Ir);
            let mut third = second(ip);
            let (kind, len) = channel.send(&emit(&third), true);
            assert_eq!(kind, FormatKind::IrCr);
            assert!(len + saved <= ir_len + 1, "{len} bytes instead of {ir_len}");
            third.ack = third.ack.wrapping_add(1448);
            let (kind, len) = channel.send(&emit(&third), true);
            assert!(len < 20, "{} of {len}", kind.name());
        }
    }
}

#[test]
fn fields_beyond_ir_cr_start_with_an_ir() {
    let v6 = Ip::V6 { source: [1; 16], destination: [2; 16], flow_label: 0 };
    let elsewhere = Ip::V4 { source: [10, 0, 0, 9], destination: [10, 0, 0, 2], id: 1, dont_fragment: true };
    for (of_base, other) in [
        // Another hop limit, both SYN and FIN, ECN bits that would have to be inherited, and other addresses.
        (v6, Header { ttl: 63, ..second(v6) }),
        (base().ip, Header { flags: flags::SYN | flags::FIN, ..second(base().ip) }),
        (base().ip, Header { flags: flags::ACK | flags::ECE, ..second(base().ip) }),
        (base().ip, second(elsewhere)),
    ] {
        let mut channel = Channel::new(CidSpace::Small { max: 15 }, 1);
        channel.send(&emit(&Header { ip: of_base, ..base() }), true);
        assert_eq!(channel.send(&emit(&other), true).0, FormatKind::Ir);
    }
}

#[test]
fn a_base_that_the_peer_lost_is_not_asked_for_twice() {
    let mut channel = Channel::new(CidSpace::Small { max: 15 }, 1);
    channel.send(&emit(&base()), true);
    // The peer restarts without any context.
    channel.decompressor = Channel::new(CidSpace::Small { max: 15 }, 1).decompressor;
    let (mut rohc, mut out) = ([0; 200], [0; 200]);
    let compressed = channel.compressor.compress(&emit(&second(base().ip)), &mut rohc).unwrap();
    assert_eq!(compressed.format, FormatKind::IrCr);
    let refused = channel.decompressor.decompress(&rohc[..compressed.len], &mut out).unwrap_err();
    assert_eq!(channel.compressor.feedback(refused.feedback.unwrap().as_bytes()), 0);
    assert_eq!(channel.send(&emit(&second(base().ip)), true).0, FormatKind::Ir);
}

/// The peer replicates what it has under the base's CID: by then a flow between other hosts.
#[test]
fn a_flow_that_took_the_cid_of_a_base_is_no_base() {
    let elsewhere = Ip::V4 { source: [10, 0, 0, 9], destination: [10, 0, 0, 8], id: 1, dont_fragment: true };
    for (is_replaced, format) in [(false, FormatKind::IrCr), (true, FormatKind::Ir)] {
        let mut channel = Channel::new(CidSpace::Small { max: 1 }, 1);
        channel.send(&emit(&base()), true);
        let mut replicated = second(base().ip);
        assert_eq!(channel.send(&emit(&replicated), false).0, FormatKind::IrCr);
        if is_replaced {
            assert!(channel.compressor.remove(0));
            channel.send(&emit(&Header { ip: elsewhere, ..base() }), true);
        }
        replicated.ack = replicated.ack.wrapping_add(1448);
        assert_eq!(channel.send(&emit(&replicated), true).0, format);
    }
}

fn script() -> impl Strategy<Value = flow::Script> {
    let change = (0u8..26, prop_oneof![any::<u32>(), 0u32..5000]);
    prop::collection::vec(prop::collection::vec(change, 0..3), 1..12)
}

/// Replaces the ports of a packet. No test here checks the TCP checksum.
fn with_ports(mut packet: Vec<u8>, v6: bool, ports: u32) -> Vec<u8> {
    let tcp = if v6 { 40 } else { 20 };
    packet[tcp..tcp + 4].copy_from_slice(&ports.to_be_bytes());
    packet
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Flows between two hosts start one after another and then alternate, with arbitrary changes in each of them and
    /// arbitrary losses of feedback.
    #[test]
    fn replicated_flows_return_bit_for_bit(
        scripts in prop::collection::vec((script(), prop_oneof![any::<u32>(), 0x1389_0050u32..0x1389_0150]), 2..6),
        v6: bool,
        large: bool,
        answers: u64,
    ) {
        let cids = if large { CidSpace::Large { max: 3 } } else { CidSpace::Small { max: 3 } };
        let mut channel = Channel::new(cids, answers);
        let mut sent = 0;
        let mut flows: Vec<Vec<Vec<u8>>> = Vec::new();
        for (script, ports) in scripts {
            let packets = flow::packets(&script, v6).into_iter().rev();
            flows.push(packets.map(|packet| with_ports(packet, v6, ports)).collect());
            // Two packets of each existing flow.
            for flow in &mut flows {
                for _ in 0..2 {
                    let Some(packet) = flow.pop() else { continue };
                    if channel.compressor.compress(&packet, &mut [0; 1]) == Err(tacit_rohc::CompressError::Options) {
                        continue;
                    }
                    channel.send(&packet, answers >> (sent % 64) & 1 != 0);
                    sent += 1;
                }
            }
        }
    }
}
