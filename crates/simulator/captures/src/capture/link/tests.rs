use crc32fast::hash as crc32;

use super::*;

struct Found<'f>(&'f mut Vec<(usize, u32)>);

impl Sink for Found<'_> {
    fn packet(&mut self, ip: IpBytes<'_>) {
        self.0.push((ip.bytes.len(), ip.on_link));
    }
}

const IP: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

fn read(link_type: u16, frame: &[u8]) -> (Verdict, Vec<(usize, u32)>) {
    let mut found = Vec::new();
    let verdict =
        ip_packets(link_type, frame, frame.len() as u32, &mut RetryFilter::default(), &mut Found(&mut found));
    (verdict, found)
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn finds_ip_behind_every_link_header() {
    let mac = [0; 12];
    let cases: [(u16, Vec<u8>); 11] = [
        (1, joined(&[&mac, &[8, 0], &IP])),
        (1, joined(&[&mac, &[0x81, 0, 0, 5, 8, 0], &IP])),
        (1, joined(&[&mac, &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], &IP])),
        (1, joined(&[&mac, &[0, 28], &SNAP, &IP])),
        (1, joined(&[&mac, &[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21], &IP])),
        (0, joined(&[&[2, 0, 0, 0], &IP])),
        (108, joined(&[&[0, 0, 0, 2], &IP])),
        (101, IP.to_vec()),
        (113, joined(&[&[0; 14], &[8, 0], &IP])),
        (276, joined(&[&[8, 0, 0, 0, 0, 0, 0, 3], &[0; 12], &IP])),
        (105, joined(&[&[0x08, 0x02], &[0; 22], &SNAP, &IP])),
    ];
    for (link_type, frame) in cases {
        assert_eq!(read(link_type, &frame), (Verdict::Read, vec![(20, 20)]), "{link_type} {frame:?}");
    }
}

#[test]
fn dot11_variants() {
    let qos = |flags: u8, qos: u8, middle: &[u8], body: &[u8]| {
        joined(&[&[0x88, flags], &[0; 22], middle, &[qos, 0], body])
    };
    let plain = joined(&[&SNAP, &IP]);
    assert_eq!(read(105, &qos(0x01, 0, &[], &plain)), (Verdict::Read, vec![(20, 20)]));
    assert_eq!(read(105, &qos(0x09, 0, &[], &plain)), (Verdict::Read, vec![(20, 20)]));
    assert_eq!(read(105, &qos(0x03, 0, &[0; 6], &plain)), (Verdict::Read, vec![(20, 20)]));
    assert_eq!(read(105, &qos(0x41, 0, &[], &plain)), (Verdict::Opaque, vec![]));
    let htc = joined(&[&[0; 4], &plain]);
    assert_eq!(read(105, &qos(0x81, 0, &[], &htc)), (Verdict::Read, vec![(20, 20)]));
    let subframe = joined(&[&[0; 12], &[0, 28], &plain]);
    let two = joined(&[&subframe, &[0; 2], &subframe]);
    assert_eq!(read(105, &qos(0x01, 0x80, &[], &two)), (Verdict::Read, vec![(20, 20), (20, 20)]));
    // A QoS Null and a beacon carry no packets.
    assert!(matches!(read(105, &joined(&[&[0xc8, 1], &[0; 30]])).0, Verdict::NotIp(_)));
    assert!(matches!(read(105, &joined(&[&[0x80, 0], &[0; 30]])).0, Verdict::NotIp(_)));
}

/// A data MPDU with an IP packet, without and with FCS.
fn mpdus() -> [Vec<u8>; 2] {
    let plain = joined(&[&[0x08, 0x02], &[0; 22], &SNAP, &IP]);
    let fcs = crc32(&plain).to_le_bytes();
    [plain.clone(), joined(&[&plain, &fcs])]
}

/// An IPv4 packet after an Ethernet header: UDP between these ports, or GRE with this protocol.
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let ip = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    joined(&[&[0; 12], &[8, 0], &ip, payload])
}

fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let header = [source, destination, length, 0].map(u16::to_be_bytes);
    outer(17, &joined(&[header.as_flattened(), payload]))
}

#[test]
fn capwap_carries_802_11_in_either_order_of_bytes_or_ethernet() {
    let [mpdu, _] = mpdus();
    let ethernet = joined(&[&[0; 12], &[8, 0], &IP]);
    let swapped = joined(&[&[mpdu[1], mpdu[0]], &mpdu[2..]]);
    // Two header words (RFC 5415 section 4.3), binding 1. The flag indicates an 802.11 frame.
    let native: &[u8] = &[0, 0x10, 0x03, 0, 0, 0, 0, 0];
    let with_mac: &[u8] = &[0, 0x20, 0x03, 0x10, 0, 0, 0, 0, 6, 1, 2, 3, 4, 5, 6, 0];
    let plain: &[u8] = &[0, 0x10, 0x02, 0, 0, 0, 0, 0];
    let first_fragment: &[u8] = &[0, 0x10, 0x03, 0x80, 0, 7, 0, 0];
    let read_inside = |header: &[u8], frame: &[u8]| read(1, &udp(5247, 40_000, &joined(&[header, frame])));
    let found = (Verdict::Read, vec![(20, 20)]);
    for (header, frame) in
        [(native, &mpdu), (native, &swapped), (with_mac, &mpdu), (plain, &ethernet), (first_fragment, &mpdu)]
    {
        assert_eq!(read_inside(header, frame), found, "{header:?}");
        assert_eq!(read(1, &udp(40_000, 5247, &joined(&[header, frame]))), found, "{header:?}");
    }
    // A later fragment, a keep-alive, and DTLS.
    for header in
        [[0, 0x10, 0x03, 0x80, 0, 7, 0, 0x40], [0, 0x10, 0x03, 8, 0, 0, 0, 0], [1, 0, 0, 0, 22, 1, 0, 0]]
    {
        assert!(read_inside(&header, &mpdu).1.iter().all(|found| *found != (20, 20)), "{header:?}");
    }
}

#[test]
fn aruba_mirrors_records_of_802_11_and_tunnels_it_in_gre() {
    let [mpdu, _] = mpdus();
    let len = (mpdu.len() as u32).to_be_bytes();
    let record = |micros: u32, captured: [u8; 4]| {
        let fields = [1_700_000_000_u32.to_be_bytes(), micros.to_be_bytes(), captured, len];
        udp(5555, 5555, &joined(&[fields.as_flattened(), &mpdu]))
    };
    assert_eq!(read(1, &record(999_999, len)), (Verdict::Read, vec![(20, 20)]));
    // Invalid microseconds, or more bytes than the datagram has.
    for wrong in [record(1_000_000, len), record(0, [0, 0, 9, 9]), record(0, [0; 4])] {
        assert!(read(1, &wrong).1.iter().all(|found| *found != (20, 20)));
    }
    let gre = outer(47, &joined(&[&[0, 0, 0x82, 0x10], &mpdu]));
    assert_eq!(read(1, &gre), (Verdict::Read, vec![(20, 20)]));
}

/// L2TP version 2 (RFC 2661 section 3.1): a length, numbers and an offset may each be there.
#[test]
fn l2tp_carries_ppp() {
    let ppp: &[u8] = &[0xff, 3, 0, 0x21];
    let headers: [&[u8]; 4] = [
        &[0, 2, 0, 7, 0, 8],
        &[0x40, 2, 0, 32, 0, 7, 0, 8],
        &[0x48, 2, 0, 36, 0, 7, 0, 8, 0, 1, 0, 2],
        &[0x42, 2, 0, 37, 0, 7, 0, 8, 0, 3, 9, 9, 9],
    ];
    let found = (Verdict::Read, vec![(20, 20)]);
    for header in headers {
        let packet = joined(&[header, ppp, &IP]);
        assert_eq!(read(1, &udp(1701, 1701, &packet)), found, "{header:?}");
        assert_eq!(read(1, &udp(40_000, 1701, &packet)), found, "{header:?}");
        assert_eq!(read(1, &udp(1701, 40_000, &packet)), found, "{header:?}");
    }
    // A length of zero is none.
    assert_eq!(read(1, &udp(1701, 1701, &joined(&[&[0x40, 2, 0, 0, 0, 7, 0, 8], ppp, &IP]))), found);
    // A control message, another version, and a data message without data.
    for header in [[0xc8, 2, 0, 36], [0, 1, 0, 7], [0x40, 2, 0, 8]] {
        let packet = joined(&[&header, &[0, 7, 0, 8], ppp, &IP]);
        assert!(read(1, &udp(1701, 1701, &packet)).1.iter().all(|found| *found != (20, 20)), "{header:?}");
    }
}

/// L2TPv3: nothing in a packet tells the length of its cookie, but an IP packet fits at one place only.
#[test]
fn l2tp_version_3_carries_ethernet_behind_any_cookie() {
    let found = (Verdict::Read, vec![(20, 20)]);
    let tagged: &[u8] = &[0x81, 0, 0, 5, 8, 0];
    for len in [0, 4, 8, 12] {
        for ether_type in [&[8, 0], tagged] {
            let frame = joined(&[&[0, 0, 0, 9], &vec![0xc0; len], &[2; 12], ether_type, &IP]);
            assert_eq!(read(1, &outer(115, &frame)), found, "{len}");
            assert_eq!(read(1, &udp(1701, 40_000, &joined(&[&[0, 3, 0, 0], &frame]))), found, "{len}");
        }
    }
    let control = joined(&[&[0; 4], &[2; 12], &[8, 0], &IP]);
    let longer = joined(&[&[0, 0, 0, 9], &[2; 12], &[8, 0], &IP, &[0; 30]]);
    for frame in [control, longer] {
        assert!(read(1, &outer(115, &frame)).1.iter().all(|found| *found != (20, 20)));
    }
}

#[test]
fn tags_of_cisco_and_hsr_precede_an_ether_type() {
    let cisco: &[u8] = &[0x89, 0x09, 1, 1, 0, 1, 0, 5];
    let hsr: &[u8] = &[0x89, 0x2f, 0x10, 26, 0, 1];
    for tags in [cisco, hsr, &joined(&[hsr, cisco]), &joined(&[&[0x81, 0, 0, 5], hsr])] {
        let frame = joined(&[&[0; 12], tags, &[8, 0], &IP]);
        assert_eq!(read(1, &frame), (Verdict::Read, vec![(20, 20)]), "{tags:x?}");
    }
    // The trailer of PRP (IEC 62439-3 clause 4.2.7) is link padding for the IP header's length.
    let prp = joined(&[&[0; 12], &[8, 0], &IP, &[0, 1, 0xa0, 26, 0x88, 0xfb]]);
    assert_eq!(read(1, &prp), (Verdict::Read, vec![(26, 26)]));
}

/// A header with a length ends its contents there: behind them is padding.
#[test]
fn outer_lengths_bound_what_is_inside() {
    let behind = [0xee; 6];
    let found = (Verdict::Read, vec![(20, 20)]);
    let pppoe = |len: u8| joined(&[&[0; 12], &[0x88, 0x64, 0x11, 0, 0, 1, 0, len, 0, 0x21], &IP, &behind]);
    assert_eq!(read(1, &pppoe(22)), found);
    assert_eq!(read(1, &pppoe(0)), (Verdict::Read, vec![(26, 26)]), "zero is none");
    let l2tp = joined(&[&[0x40, 2, 0, 32, 0, 7, 0, 8, 0xff, 3, 0, 0x21], &IP, &behind]);
    assert_eq!(read(1, &udp(1701, 1701, &l2tp)), found);
    let gtp = joined(&[&[0x30, 0xff, 0, 20, 0, 0, 0, 1], &IP, &behind]);
    assert_eq!(read(1, &udp(2152, 2152, &gtp)), found);
    let pptp = joined(&[&[0x30, 1, 0x88, 0x0b, 0, 24, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, 0x21], &IP, &behind]);
    assert_eq!(read(1, &outer(47, &pptp)), found);
    // The outer UDP header, which ends before the IP packet that carries it.
    let vxlan = joined(&[&[8, 0, 0, 0, 0, 0, 7, 0], &[0; 12], &[8, 0], &IP]);
    let len = 8 + vxlan.len() as u16;
    let udp_header = [40_000, 4789, len, 0].map(u16::to_be_bytes);
    assert_eq!(read(1, &outer(17, &joined(&[udp_header.as_flattened(), &vxlan, &behind]))), found);
    // The outer IP header, which ends before the frame.
    let in_ip = joined(&[&outer(4, &IP), &behind]);
    assert_eq!(read(1, &in_ip), found);
    let llc = joined(&[&[0; 12], &[0, 28], &SNAP, &IP, &behind]);
    assert_eq!(read(1, &llc), found);
}

/// Link type 192: little-endian fields. The 802.11 field indicates whether there is an FCS.
#[test]
fn ppi_says_what_follows_and_whether_it_has_an_fcs() {
    let [plain, with_fcs] = mpdus();
    let packet = |link_type: u8, flags: u8, frame: &[u8]| {
        let mut common = [0; 20];
        common[8] = flags;
        // Another field precedes the 802.11 field (type 2).
        let fields = joined(&[&[9, 0, 4, 0, 1, 2, 3, 4], &[2, 0, 20, 0], &common]);
        let length = 8 + fields.len() as u8;
        joined(&[&[0, 0, length, 0, link_type, 0, 0, 0], &fields, frame])
    };
    let found = (Verdict::Read, vec![(20, 20)]);
    assert_eq!(read(192, &packet(105, 1, &with_fcs)), found);
    assert_eq!(read(192, &packet(105, 0, &plain)), found);
    assert_eq!(read(192, &packet(105, 0, &with_fcs)), found, "an FCS that no flag announces");
    assert_eq!(read(192, &packet(105, 5, &with_fcs)), (Verdict::BadFcs, vec![]));
    assert_eq!(read(192, &packet(1, 0, &joined(&[&[0; 12], &[8, 0], &IP]))), found);
    assert_eq!(read(192, &packet(192, 0, &packet(105, 0, &plain))).0, Verdict::Unsupported, "not in itself");
}

/// Link type 163, and also 119 (Prism): a magic number with a version, and a big-endian length.
#[test]
fn avs_headers_have_a_length() {
    let [plain, with_fcs] = mpdus();
    let header = |magic: [u8; 4], length: u8| joined(&[&magic, &[0, 0, 0, length], &[7; 56]]);
    for link_type in [163, 119] {
        for frame in [&plain, &with_fcs] {
            let packet = joined(&[&header([0x80, 0x21, 0x10, 0x01], 64), frame]);
            assert_eq!(read(link_type, &packet), (Verdict::Read, vec![(20, 20)]), "{link_type}");
        }
    }
    let packet = joined(&[&header([0x12, 0x34, 0x50, 0x01], 64), &plain]);
    assert_eq!(read(163, &packet), (Verdict::Short, vec![]));
}

#[test]
fn only_a_retransmission_of_a_heard_frame_is_a_copy() {
    let mut heard = RetryFilter::default();
    let (one, other, third) = (([1; 12], 0), ([1; 12], 1), ([2; 12], 0));
    assert!(!heard.is_copy(one, 7, true));
    assert!(heard.is_copy(one, 7, true));
    assert!(!heard.is_copy(one, 7, false));
    assert!(!heard.is_copy(other, 7, true));
    assert!(!heard.is_copy(third, 7, true));
    // After 64 further numbers, the old one is forgotten.
    assert!(!heard.is_copy(one, 71, false));
    assert!(!heard.is_copy(one, 7, true));
    for i in 0..3 * RetryFilter::MOST as u32 {
        let [a, b, c, d] = i.to_be_bytes();
        heard.is_copy(([0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d], 0), 1, false);
    }
    assert_eq!(heard.numbers.len(), RetryFilter::MOST);
}

fn block_ack(control: u8, fragment: u8, bitmap: &[u8]) -> Vec<u8> {
    joined(&[&[0x94, 0, 0, 0], &[2; 12], &[control, 0, fragment, 0], bitmap])
}

#[test]
fn only_whole_frames_of_hack_make_a_hack_ack() {
    let ack = joined(&[&[0xd4, 0, 0, 0], &[2; 6]]);
    let compressed = block_ack(5, 0, &[0xff; 8]);
    // Bitmaps for 256, 512 and 1024 MPDUs.
    let longer = [(4, 32), (8, 64), (10, 128)].map(|(code, bytes)| block_ack(5, code, &vec![0xff; bytes]));
    let wrapped = joined(&[&[0x74, 0, 0, 0], &[2; 6], &[0xd4, 0, 0, 0, 0, 0xc0]]);
    // Short TCP/HACK frames: one without bytes after the CRC, and two, the second with one such byte.
    let riding = [&[0, 7, 1, 2][..], &[0, 7, 1, 2, 0x10, 7, 2, 3, 0x33]];
    for plain in [ack, compressed, wrapped].into_iter().chain(longer) {
        assert!(matches!(read(105, &plain).0, Verdict::NotIp(_)));
        for bytes in riding {
            let whole = joined(&[&plain, bytes]);
            assert_eq!(read(105, &whole).0, Verdict::HackAck(bytes.len()), "{plain:x?}");
            let with_fcs = joined(&[&whole, &crc32(&whole).to_le_bytes()]);
            assert_eq!(read(105, &with_fcs).0, Verdict::HackAck(bytes.len()), "{plain:x?}");
            assert!(matches!(read(105, &whole[..whole.len() - 1]).0, Verdict::NotIp(_)));
        }
        // A length that exceeds the end.
        assert!(matches!(read(105, &joined(&[&plain, &[0x40, 7, 1, 2]])).0, Verdict::NotIp(_)));
    }
}

/// A basic bitmap, a bitmap for more than 64 MPDUs, a reserved bitmap length, and a multi-TID Block Ack are all longer
/// than a compressed Block Ack for 64 MPDUs. Zeros would be valid TCP/HACK frames.
#[test]
fn longer_block_acks_are_no_hack_acks() {
    for (control, fragment, bytes) in
        [(1, 0, 128), (5, 4, 32), (5, 8, 64), (5, 10, 128), (5, 2, 200), (7, 0, 44)]
    {
        let stock = block_ack(control, fragment, &vec![0; bytes]);
        assert!(matches!(read(105, &stock).0, Verdict::NotIp(_)), "{control} {fragment}");
    }
}

/// For one in sixteen frames, the FCS could be mistaken for a TCP/HACK frame.
#[test]
fn an_fcs_that_nobody_announces_is_nothing_appended() {
    for duration in 0..=255 {
        let ack = joined(&[&[0xd4, 0, duration, 0], &[2; 6]]);
        assert!(
            matches!(read(105, &joined(&[&ack, &crc32(&ack).to_le_bytes()])).0, Verdict::NotIp(_)),
            "{duration}"
        );
    }
    // The check value of CRC-32 in catalogues of CRCs.
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn radiotap_flags() {
    let mpdu = joined(&[&[0x08, 0x02], &[0; 22], &SNAP, &IP]);
    let header = |flags: u8| joined(&[&[0, 0, 17, 0, 3, 0, 0, 0], &[0; 8], &[flags]]);
    assert_eq!(read(127, &joined(&[&header(0), &mpdu])), (Verdict::Read, vec![(20, 20)]));
    assert_eq!(read(127, &joined(&[&header(0x10), &mpdu, &[0; 4]])), (Verdict::Read, vec![(20, 20)]));
    assert_eq!(read(127, &joined(&[&header(0x50), &mpdu, &[0; 4]])), (Verdict::BadFcs, vec![]));
    let no_fields = [0, 0, 8, 0, 0, 0, 0, 0];
    assert_eq!(read(127, &joined(&[&no_fields, &mpdu])), (Verdict::Read, vec![(20, 20)]));
}

#[test]
fn every_cut_is_harmless() {
    let mpdu = joined(&[&[0x88, 0x83], &[0; 28], &[0x80, 0], &[0; 4], &[0; 12], &[0, 28], &SNAP, &IP]);
    for link_type in [0, 1, 9, 12, 50, 51, 101, 104, 105, 108, 113, 119, 127, 163, 192, 219, 228, 276] {
        for cut in 0..mpdu.len() {
            read(link_type, &mpdu[..cut]);
        }
    }
}
