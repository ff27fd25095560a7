//! Shared by the integration tests: the captures and a reader for them.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::PathBuf;

/// Directory of the shared captures. Returns `None`, with a message on stderr, if this machine does not have them.
pub fn data(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("TACIT_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data")),
        PathBuf::from,
    );
    let path = root.join(path);
    if !path.exists() {
        eprintln!("SKIPPED: no {}", path.display());
        return None;
    }
    Some(path)
}

/// The pure-ACK captures.
pub const ACKS: [&str; 5] =
    ["tun_11a_25MB_v4", "tun_11n_aggr_v4", "veth_clean_v4", "veth_loss1_v4", "veth_clean_v6"];

/// The captures of both directions, truncated to 128 bytes per packet.
pub const BIDIR: [&str; 3] = ["bidir_l2_v4", "bidir_4flows_v6", "bidir_gro_v4"];

/// The IP packets of a classic little-endian pcap file, Ethernet or raw IP. Truncated packets are padded with zeros to
/// the length in the IP header; link padding is removed.
pub fn pcap(path: &PathBuf) -> Vec<Vec<u8>> {
    let file = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert!(matches!(word(0), 0xa1b2_c3d4 | 0xa1b2_3c4d), "classic little-endian pcap");
    let link = if word(20) & 0xfff_ffff == 1 { 14 } else { 0 };
    let mut packets = Vec::new();
    let mut at = 24;
    while at + 16 <= file.len() {
        let len = word(at + 8) as usize;
        let mut packet = file[at + 16 + link..at + 16 + len].to_vec();
        let stated = match packet[0] >> 4 {
            4 => usize::from(u16::from_be_bytes([packet[2], packet[3]])),
            _ => 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]])),
        };
        packet.resize(stated, 0);
        packets.push(packet);
        at += 16 + len;
    }
    packets
}

/// The packets of a `.rohc` file, in which a 16-bit little-endian length precedes each packet.
pub fn rohc(path: &PathBuf) -> Vec<Vec<u8>> {
    let file = std::fs::read(path).unwrap();
    let mut packets = Vec::new();
    let mut rest = &file[..];
    while let Some((len, more)) = rest.split_first_chunk::<2>() {
        let (packet, more) = more.split_at(usize::from(u16::from_le_bytes(*len)));
        packets.push(packet.to_vec());
        rest = more;
    }
    packets
}

/// The packets of one of [`ACKS`] or [`BIDIR`].
pub fn capture(name: &str) -> Option<Vec<Vec<u8>>> {
    let ending = if name.starts_with("bidir") { "pcap" } else { "acks.pcap" };
    data(&format!("captures/{name}.{ending}")).map(|path| pcap(&path))
}

/// Pure ACKs as sent by a Linux receiver at 200 Mb/s: one per two segments, a timestamp clock of 1 ms with about eight
/// ACKs per tick, an IP-ID that increases by one, and an occasional single segment or new window.
pub fn synthetic(count: u32, v6: bool) -> Vec<Vec<u8>> {
    use tacit_rohc::header::{Header, Ip, Options, flags};
    let mut ack = 0x8213_0000u32;
    let mut window = 800;
    (0..count)
        .map(|at| {
            ack = ack.wrapping_add(if at % 61 == 0 { 1448 } else { 2896 });
            if at % 97 == 0 {
                window += 3;
            }
            let now = 1_000_000 + at / 8;
            let mut area = vec![1, 1, 8, 10];
            area.extend(now.to_be_bytes());
            area.extend((now + 77_000 - u32::from(at % 8 == 0)).to_be_bytes());
            let ip = if v6 {
                let (source, destination) = ([0xfd; 16], [0xfc; 16]);
                Ip::V6 { source, destination, flow_label: 0x1_2345 }
            } else {
                let (source, destination) = ([10, 0, 0, 2], [10, 0, 0, 1]);
                Ip::V4 { source, destination, id: at as u16, dont_fragment: true }
            };
            let mut header = Header {
                ip,
                dscp: 0,
                ip_ecn: 0,
                ttl: 64,
                source_port: 5201,
                destination_port: 40000,
                seq: 0x1234_5678,
                ack,
                reserved: 0,
                flags: flags::ACK,
                window,
                checksum: 0,
                urgent: 0,
                options: Options::new(&area).unwrap(),
                payload_len: 0,
            };
            header.checksum = header.tcp_checksum(&[]);
            let mut packet = vec![0; header.len()];
            header.emit(&mut packet).unwrap();
            packet
        })
        .collect()
}
