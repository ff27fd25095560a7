//! Headers of a receiver that only acknowledges, and their packets.
#![allow(clippy::unwrap_used)]

use tacit_rohc::header::{Header, Ip, Options, flags};

/// Two bytes of padding, kind and length, value and echo.
pub const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0];

/// A pure ACK over IPv4 with timestamps.
pub fn pure_ack() -> Header {
    Header {
        ip: Ip::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2], id: 100, dont_fragment: true },
        dscp: 0,
        ip_ecn: 0,
        ttl: 64,
        source_port: 1000,
        destination_port: 80,
        seq: 5000,
        ack: 9000,
        reserved: 0,
        flags: flags::ACK,
        window: 1000,
        checksum: 0x1234,
        urgent: 0,
        options: Options::new(&TIMESTAMPS).unwrap(),
        payload_len: 0,
    }
}

/// The bytes of a header alone.
pub fn emit(header: &Header) -> Vec<u8> {
    let mut bytes = vec![0; header.len()];
    header.emit(&mut bytes).unwrap();
    bytes
}

/// The packet of a header, with a payload of zeros.
pub fn packet(header: &Header) -> Vec<u8> {
    let mut bytes = emit(header);
    bytes.resize(header.len() + usize::from(header.payload_len), 0);
    bytes
}

/// Advances to the next pure ACK of a Linux receiver. Does not update its checksum.
pub fn next(header: &mut Header) {
    header.ack = header.ack.wrapping_add(2896);
    if let Ip::V4 { id, .. } = &mut header.ip {
        *id = id.wrapping_add(1);
    }
}
