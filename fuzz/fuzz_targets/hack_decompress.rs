//! Arbitrary bytes after a link-layer ACK: the result is whole pure ACKs of known flows, or nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tacit_rohc::hack::{Decompressor, Limits, MAX_FRAME_ACKS};
use tacit_rohc::header::{Header, Ip, MAX_HEADER_LEN, Options, flags};

/// Native ACKs of an IPv4 and an IPv6 flow, from which both ends start.
fn natives() -> [Vec<u8>; 2] {
    let v4 = Ip::V4 { source: [10, 0, 0, 2], destination: [192, 0, 2, 1], id: 7, dont_fragment: true };
    let v6 = Ip::V6 { source: [0x20; 16], destination: [0xfd; 16], flow_label: 5 };
    [v4, v6].map(|ip| {
        let mut header = Header {
            ip,
            dscp: 0,
            ip_ecn: 0,
            ttl: 64,
            source_port: 40000,
            destination_port: 443,
            seq: 1,
            ack: 0xffff_f000,
            reserved: 0,
            flags: flags::ACK,
            window: 500,
            checksum: 0,
            urgent: 0,
            options: Options::new(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]).expect("twelve bytes"),
            payload_len: 0,
        };
        header.checksum = header.tcp_checksum(&[]);
        let mut bytes = [0; MAX_HEADER_LEN];
        let len = header.emit(&mut bytes).expect("room for any header");
        bytes[..len].to_vec()
    })
}

fuzz_target!(|bytes: &[u8]| {
    let mut decompressor = Decompressor::new(Limits::default());
    for native in natives() {
        decompressor.note_native(&native);
    }
    // The first byte determines where to split the input into several link-layer ACKs.
    let (first, rest) = bytes.split_at(bytes.len().min(usize::from(bytes.first().copied().unwrap_or(0))));
    for bytes in [first.get(1..).unwrap_or(&[]), rest] {
        let mut acks = 0;
        let report = decompressor.receive(bytes, &mut |packet| {
            let header = Header::parse(packet).expect("a whole packet");
            assert!(header.is_pure_ack() && header.has_valid_checksum(&[]) && header.len() == packet.len());
            assert_eq!(header.source_port, 40000);
            acks += 1;
        });
        assert_eq!(acks, report.acks);
        assert!(acks <= MAX_FRAME_ACKS * report.frames && report.frames <= bytes.len());
    }
});
