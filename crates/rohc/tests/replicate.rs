//! IR-CR packets made by hand from RFC 6846 section 8.2, for this crate's compressor never sends one.
#![allow(clippy::unwrap_used)]

use tacit_rohc::crc::{CRC7, CRC8};
use tacit_rohc::header::{Header, Ip, Options, flags};
use tacit_rohc::{
    CidSpace, Compressor, Config, DecompressErrorKind, Decompressor, DecompressorConfig, FeedbackKind,
    FormatKind,
};

fn base() -> Header {
    Header {
        ip: Ip::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2], id: 100, dont_fragment: true },
        dscp: 0,
        ip_ecn: 0,
        ttl: 64,
        source_port: 40000,
        destination_port: 80,
        seq: 5000,
        ack: 9000,
        reserved: 0,
        flags: flags::ACK,
        window: 1000,
        checksum: 0x1234,
        urgent: 0,
        options: Options::new(&[1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0]).unwrap(),
        payload_len: 0,
    }
}

/// A second flow between the same hosts: other ports, numbers and timestamps.
fn second(ip: Ip) -> Header {
    let options = Options::new(&[1, 1, 8, 10, 0, 0, 1, 9, 0, 0, 2, 0]).unwrap();
    Header { ip, source_port: 40010, seq: 77, ack: 0xdead_beef, window: 7, options, ..base() }
}

fn emit(header: &Header) -> Vec<u8> {
    let mut octets = vec![0; header.len()];
    header.emit(&mut octets).unwrap();
    octets
}

/// IR-CR for `header` on CID 3 with base CID 0: all fields that may be sent are.
fn ir_cr(header: &Header, space: CidSpace, payload: &[u8]) -> Vec<u8> {
    let crc7 = CRC7.check(&emit(&Header { payload_len: payload.len() as u16, ..*header }));
    let mut octets = match space {
        CidSpace::Small { .. } => vec![0xe3, 0xfc, 6, 0, 0x80 | crc7, 0],
        CidSpace::Large { .. } => vec![0xfc, 3, 6, 0, 0x80 | crc7, 0],
    };
    let crc_at = 3;
    match header.ip {
        Ip::V4 { id, .. } => {
            octets.extend([0b0000_0011, header.dscp << 2 | header.ip_ecn]);
            octets.extend(id.to_be_bytes());
            octets.push(header.ttl);
        }
        Ip::V6 { flow_label, .. } => {
            octets.extend([header.dscp << 2 | header.ip_ecn, 0x10 | (flow_label >> 16) as u8]);
            octets.extend((flow_label as u16).to_be_bytes());
        }
    }
    // Window, list, source port as eight bits, destination port unchanged, stride; ACK and urgent pointer, flags.
    octets.extend([0b0110_1001, 0b1001_0000]);
    octets.extend(0xabcdu16.to_be_bytes());
    octets.extend(header.seq.to_be_bytes());
    octets.push(header.source_port as u8);
    octets.extend(header.window.to_be_bytes());
    octets.extend(header.ack.to_be_bytes());
    octets.extend(header.checksum.to_be_bytes());
    octets.extend(1448u16.to_be_bytes());
    octets.extend([0x03, 0x88, 0xc0]);
    octets.extend(&header.options.as_bytes()[4..]);
    octets[crc_at] = CRC8.check(&octets);
    octets.extend(payload);
    octets
}

fn established(space: CidSpace, base: &Header) -> Decompressor {
    let mut compressor = Compressor::new(Config { cids: space, ..Config::default() });
    let mut decompressor = Decompressor::new(DecompressorConfig {
        cids: space,
        feedback: true,
        ..DecompressorConfig::default()
    });
    let (mut rohc, mut out) = ([0; 200], [0; 200]);
    let made = compressor.compress(&emit(base), &mut rohc).unwrap();
    decompressor.decompress(&rohc[..made.len], &mut out).unwrap();
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
            let octets = ir_cr(&header, space, &payload);
            let done = decompressor.decompress(&octets, &mut out).unwrap();
            assert_eq!((done.format, done.cid), (FormatKind::IrCr, 3));
            assert_eq!(done.feedback.map(|feedback| feedback.kind()), Some(FeedbackKind::Ack));
            let mut expected = emit(&Header { payload_len: 3, ..header });
            expected.extend(payload);
            assert_eq!(&out[..done.len], &expected[..]);
        }
    }
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
        assert!(decompressor.decompress(&bad, &mut out).is_err(), "octet {at}");
    }
    // A right CRC-8 over a wrong CRC-7: the base differs from what the compressor had.
    let mut other = established(space, &Header { ttl: 64, dscp: 0, destination_port: 81, ..base() });
    assert_eq!(other.decompress(&good, &mut out).unwrap_err().kind, DecompressErrorKind::Crc);
    for cut in 0..good.len() {
        assert!(decompressor.decompress(&good[..cut], &mut out).is_err(), "cut at {cut}");
    }
    assert!(decompressor.decompress(&good, &mut out).is_ok());
}
