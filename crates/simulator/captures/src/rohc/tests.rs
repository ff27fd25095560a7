use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tacit_rohc::header::{Header, Ip, Options, flags};

use super::*;

/// The pure ACK with this number in the flow from this port.
fn ack(port: u16, number: u32) -> Header {
    let mut area = vec![1, 1, 8, 10];
    area.extend((1_000 + number / 8).to_be_bytes());
    area.extend((2_000 + number / 8).to_be_bytes());
    let mut header = Header {
        ip: Ip::V4 {
            source: [10, 0, 0, 2],
            destination: [10, 0, 0, 1],
            id: number as u16,
            dont_fragment: true,
        },
        dscp: 0,
        ip_ecn: 0,
        ttl: 64,
        source_port: port,
        destination_port: 80,
        seq: 1,
        ack: number * 2_896,
        reserved: 0,
        flags: flags::ACK,
        window: 500,
        checksum: 0,
        urgent: 0,
        options: Options::new(&area).unwrap(),
        payload_len: 0,
    };
    header.checksum = header.tcp_checksum(&[]);
    header
}

fn bytes(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; header.len()];
    header.emit(&mut packet).unwrap();
    packet.extend_from_slice(payload);
    packet
}

/// A data segment with 1,000 bytes.
fn data(number: u32) -> Vec<u8> {
    let payload = [number as u8; 1_000];
    let mut header = ack(443, 7);
    header.seq = number * 1_000;
    header.payload_len = 1_000;
    header.checksum = header.tcp_checksum(&payload);
    bytes(&header, &payload)
}

/// A raw-IP capture. Each packet has its time in microseconds and the number of bytes that were not captured.
fn capture(directory: &Path, packets: &[(u32, Vec<u8>, usize)]) -> PathBuf {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    file.extend([0; 8]);
    file.extend([0, 0, 4, 0, 101, 0, 0, 0]);
    for (micros, packet, cut) in packets {
        file.extend([0; 4]);
        file.extend(micros.to_le_bytes());
        file.extend((packet.len() as u32 - *cut as u32).to_le_bytes());
        file.extend((packet.len() as u32).to_le_bytes());
        file.extend_from_slice(&packet[..packet.len() - cut]);
    }
    let path = directory.join("in.pcap");
    fs::write(&path, file).unwrap();
    path
}

/// Stats with a clock that advances by a microsecond at each call.
fn measured(path: &Path, codec: Codec) -> Result<Stats, RohcError> {
    let clock = Cell::new(Duration::ZERO);
    stats(path, codec, &|| {
        clock.set(clock.get() + Duration::from_micros(1));
        clock.get()
    })
}

#[test]
fn frames_end_at_gaps_and_after_21_acks() {
    let directory = tempfile::tempdir().unwrap();
    // One native ACK, 21 in a frame, 4 in the next; a gap; 5; a gap of exactly 1 ms, which does not end the frame; 3
    // more.
    let mut packets: Vec<_> = (0..26).map(|i| (i * 10, bytes(&ack(4_000, i), &[]), 0)).collect();
    packets.extend((26..31).map(|i| (1_251 + i - 26, bytes(&ack(4_000, i), &[]), 0)));
    packets.extend((31..34).map(|i| (2_255, bytes(&ack(4_000, i), &[]), 0)));
    let path = capture(directory.path(), &packets);
    for (codec, kinds) in [(Codec::Hack, ["long-init", "short"]), (Codec::HackBatch, ["batch", "batch-init"])]
    {
        let stats = measured(&path, codec).unwrap();
        assert_eq!((stats.packets, stats.native, stats.frames), (33, 1, Some(3)), "{codec:?}");
        assert_eq!((stats.failures, stats.wrong, stats.flows), (0, 0, 1));
        assert_eq!(stats.formats.keys().copied().collect::<Vec<_>>(), kinds);
        assert_eq!(stats.formats.values().sum::<u64>(), 3);
        // One microsecond for 34 packets.
        assert!((stats.compress_ns_per_packet - 1_000.0 / 34.0).abs() < 1e-9);
        assert!((stats.decompress_ns_per_packet - 1_000.0 / 34.0).abs() < 1e-9);
    }
}

#[test]
fn a_capture_in_parts_gives_the_same() {
    let directory = tempfile::tempdir().unwrap();
    // Each ACK is in its own frame, so that chunks always end at the end of a frame.
    let packets: Vec<_> =
        (0..100).map(|i| (i * 2_000, bytes(&ack(4_000 + i as u16 % 2, i / 2), &[]), 0)).collect();
    let path = capture(directory.path(), &packets);
    for codec in [Codec::Strict, Codec::Hack, Codec::HackBatch] {
        let whole = stats(&path, codec, &|| Duration::ZERO).unwrap();
        for limit in [1, 1_000, 5_199, 5_200, 5_201] {
            let parts = stats::in_chunks(&path, codec, &|| Duration::ZERO, limit).unwrap();
            assert_eq!(Stats { passes: whole.passes, ..parts }, whole, "{codec:?} {limit}");
        }
    }
}

#[test]
fn flows_share_frames() {
    let directory = tempfile::tempdir().unwrap();
    let ports = [4_000, 4_001, 4_002];
    let packets: Vec<_> = (0..60).map(|i| (0, bytes(&ack(ports[i as usize % 3], i / 3), &[]), 0)).collect();
    let stats = measured(&capture(directory.path(), &packets), Codec::Hack).unwrap();
    assert_eq!((stats.packets, stats.native, stats.flows, stats.frames), (57, 3, 3, Some(3)));
    assert_eq!((stats.failures, stats.wrong), (0, 0));
    assert_eq!(stats.formats.values().sum::<u64>(), 9, "a frame of each flow in each");
}

#[test]
fn differences_from_the_link_are_corrected_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut offloaded = ack(4_000, 3);
    offloaded.checksum = 0xbeef;
    let mut udp = bytes(&ack(4_000, 4), &[]);
    udp[9] = 17;
    udp[11] = udp[11].wrapping_sub(11);
    let packets = [
        (0, bytes(&ack(4_000, 1), &[]), 0),
        (0, bytes(&offloaded, &[]), 0),
        (0, data(1), 900),
        (0, data(2), 0),
        (0, data(3), 1_010),
        (0, bytes(&ack(4_000, 5), &[]), 0),
        (0, udp, 0),
        (0, vec![0x10; 40], 0),
    ];
    let path = capture(directory.path(), &packets);
    let strict = measured(&path, Codec::Strict).unwrap();
    assert_eq!((strict.packets, strict.flows, strict.native, strict.frames), (5, 2, 0, None));
    assert_eq!((strict.checksums_set_right, strict.payloads_filled), (1, 1));
    assert_eq!((strict.failures, strict.wrong, strict.header_bytes), (0, 0, 5 * 52));
    assert!(strict.compressed_bytes < strict.header_bytes + 20, "payload is not counted");
    let left_out = LeftOut { not_ip: 1, not_plain_tcp: 1, cut: 1, ..LeftOut::default() };
    assert_eq!(strict.left_out, left_out);
    let text = strict.to_text();
    assert!(text.contains("1 TCP checksums were wrong") && text.contains("1 without IP"), "{text}");
    let hack = measured(&path, Codec::Hack).unwrap();
    assert_eq!((hack.packets, hack.native, hack.checksums_set_right, hack.wrong), (2, 1, 1, 0));
    assert_eq!(hack.left_out, LeftOut { not_pure_acks: 2, ..left_out });
}

/// Every packet is in a GRE tunnel. One has a wrong TCP checksum, and the payload of another was not captured.
#[test]
fn packets_in_a_tunnel_are_compressed_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let around = |packet: Vec<u8>| {
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 47, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        ip[2..4].copy_from_slice(&((24 + packet.len()) as u16).to_be_bytes());
        let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        ip[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
        [ip, vec![0, 0, 8, 0], packet].concat()
    };
    let packets: Vec<_> = (0..20u32)
        .map(|number| {
            let mut packet = data(number);
            if number == 7 {
                packet[36] ^= 1;
            }
            (number * 500, around(packet), if number == 9 { 900 } else { 0 })
        })
        .collect();
    let path = capture(directory.path(), &packets);
    let stats = measured(&path, Codec::Strict).unwrap();
    assert_eq!((stats.packets, stats.flows, stats.failures, stats.wrong), (20, 1, 0, 0));
    assert_eq!((stats.checksums_set_right, stats.payloads_filled), (1, 1));
    assert_eq!(stats.header_bytes, 20 * (24 + 52));
    let refused = measured(&path, Codec::Hack).unwrap_err().to_string();
    assert!(refused.contains("no pure ACK"), "{refused}");
}

#[test]
fn files_of_both_cid_spaces_come_back() {
    let directory = tempfile::tempdir().unwrap();
    // Twenty flows, which exceeds the number of small CIDs.
    let mut packets: Vec<_> =
        (0..200).map(|i| (i, bytes(&ack(4_000 + i as u16 % 20, i / 20), &[]), 0)).collect();
    packets.extend((0..20).map(|i| (300 + i, data(i), 0)));
    let path = capture(directory.path(), &packets);
    let (rohc, back) = (directory.path().join("a.rohc"), directory.path().join("b.pcap"));
    for (cids, repeat) in [("small", 2), ("large", 1), ("small", 8)] {
        let channel = Channel::parse(cids, repeat).unwrap();
        let compressed = compress(&path, &rohc, channel).unwrap();
        assert_eq!((compressed.packets, compressed.left_out), (220, LeftOut::default()));
        assert!(compressed.rohc_bytes < compressed.ip_bytes);
        let done = decompress(&rohc, &back, channel).unwrap();
        assert_eq!((done.packets, done.ip_bytes), (compressed.packets, compressed.ip_bytes));
        let file = fs::read(&back).unwrap();
        let mut rest = &file[24..];
        for (_, packet, _) in &packets {
            assert_eq!(rest[8..12], (packet.len() as u32).to_le_bytes());
            assert_eq!(rest[16..16 + packet.len()], packet[..]);
            rest = &rest[16 + packet.len()..];
        }
        assert!(rest.is_empty());
    }
    assert!(Channel::parse("tiny", 2).is_err() && Channel::parse("small", 0).is_err());
    assert!(Channel::parse("small", 9).is_err());
}

/// A file of the shared data; `None`, with a message, if it is not available.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: no {}", path.display());
    None
}

#[test]
fn files_of_another_compressor_give_the_captures() {
    for name in ["tun_11a_25MB_v4", "tun_11n_aggr_v4", "veth_clean_v4", "veth_clean_v6", "veth_loss1_v4"] {
        let Some(golden) = shared(&format!("rohc-golden/{name}.U.oa4.smallcid.rohc")) else { continue };
        let Some(path) = shared(&format!("captures/{name}.acks.pcap")) else { continue };
        let directory = tempfile::tempdir().unwrap();
        let back = directory.path().join("back.pcap");
        let done = decompress(&golden, &back, Channel::default()).unwrap();
        let read = |path: &Path| {
            let mut packets = packets::Packets::open(path, packets::Wanted::Exact).unwrap();
            let mut chunk = packets::Chunk::default();
            assert!(!packets.fill(&mut chunk, usize::MAX).unwrap());
            chunk
        };
        let (back, sent) = (read(&back), read(&path));
        assert_eq!(done.packets, sent.places.len() as u64);
        assert!(back.bytes == sent.bytes, "{name} comes back changed");
    }
}

#[test]
fn real_captures_stay_within_the_published_bytes() {
    // Bytes per packet: strict, hack, hack-batch.
    for (name, goals) in [
        ("tun_11a_25MB_v4", [8.55, 4.49, 4.49]),
        ("tun_11n_aggr_v4", [12.38, 4.49, 2.24]),
        ("veth_clean_v4", [10.08, 2.25, 1.12]),
        ("veth_clean_v6", [10.09, 2.25, 1.12]),
        ("veth_loss1_v4", [10.86, 3.15, 1.57]),
    ] {
        let Some(path) = shared(&format!("captures/{name}.acks.pcap")) else { continue };
        for (codec, goal) in [Codec::Strict, Codec::Hack, Codec::HackBatch].into_iter().zip(goals) {
            let stats = measured(&path, codec).unwrap();
            assert_eq!((stats.failures, stats.wrong), (0, 0), "{name} {codec:?}");
            assert!(stats.bytes_per_packet <= goal, "{name} {codec:?}: {}", stats.bytes_per_packet);
        }
    }
}

#[test]
fn a_busy_flow_is_not_kept_native_by_a_silent_one_with_its_cid() {
    // iperf3's control connection and its data connection have the same CID. Of 555 ACKs, 545 belong to the data
    // connection.
    let Some(path) = shared("captures/bidir_l2_v4.pcap") else { return };
    for codec in [Codec::Hack, Codec::HackBatch] {
        let stats = measured(&path, codec).unwrap();
        assert_eq!((stats.failures, stats.wrong), (0, 0), "{codec:?}");
        assert!(stats.native <= 22 && stats.cid_taken <= 19, "{} of {}", stats.cid_taken, stats.native);
    }
}

/// Captures of ROHC packets are meant for other tools and contain the times of the packets. This test reads them as
/// ordinary captures.
#[test]
fn rohc_packets_go_into_captures_at_their_times() {
    use crate::capture::open;

    let directory = tempfile::tempdir().unwrap();
    let packets: Vec<_> = (0..20).map(|i| (7 + i * 10, bytes(&ack(5_001, i), &[]), 0)).collect();
    let from = capture(directory.path(), &packets);
    let read = |name: &str| -> Vec<(Vec<u8>, i128)> {
        let to = directory.path().join(name);
        compress(&from, &to, Channel::default()).unwrap();
        let mut container = open(&to).unwrap();
        let (mut bytes, mut found) = (Vec::new(), Vec::new());
        while let Some(record) = container.next(&mut bytes).unwrap() {
            assert_eq!((record.link_type, &bytes[12..14]), (1, &[0x22, 0xf1][..]), "{name}");
            found.push((bytes[14..].to_vec(), record.at_nanos.unwrap()));
        }
        found
    };
    let (pcap, pcapng) = (read("out.pcap"), read("out.pcapng"));
    assert_eq!(pcap, pcapng);
    let times: Vec<_> = pcap.iter().map(|(_, at)| *at).collect();
    assert_eq!(times, (0..20).map(|i| 7_000 + i * 10_000).collect::<Vec<_>>());
    // The bytes equal those in the file with length fields.
    let plain = directory.path().join("out.rohc");
    compress(&from, &plain, Channel::default()).unwrap();
    let with_lengths =
        |(bytes, _): &(Vec<u8>, i128)| [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat();
    assert_eq!(fs::read(&plain).unwrap(), pcap.iter().flat_map(with_lengths).collect::<Vec<_>>());
}
