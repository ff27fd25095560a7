//! From a captured frame to the IP packets in it.

use std::collections::HashMap;

use tacit_rohc::crc::crc32;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its IP packets, if any, were handed out.
    Read,
    /// Encrypted 802.11 data.
    Opaque,
    /// An 802.11 frame whose FCS was bad.
    BadFcs,
    /// An 802.11 retransmission of a frame that was handed out before.
    Copy,
    /// An 802.11 ACK or Block Ack that carries compressed TCP ACKs (TCP/HACK) in so many octets.
    HackAck(usize),
    /// Not IP: ARP, beacons, and so on.
    NotIp,
    /// Cut off before the IP header, or nonsense.
    Short,
    /// A link type that this module cannot read.
    Unsupported,
}

/// Link types that [`ip_packets`] reads, for messages.
pub(crate) const SUPPORTED: &str = "Ethernet (1), BSD loopback (0, 108), raw IP (12, 14, 101, 228, 229), \
     802.11 (105), 802.11 with radiotap (127), Linux cooked v1 (113) and v2 (276)";

/// An IP packet as far as it was captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpBytes<'a> {
    /// From the IP version on; link padding may follow the packet.
    pub bytes: &'a [u8],
    /// Octets from the IP version to the end of the frame, captured or not.
    pub on_link: u32,
    /// The interface index a cooked v2 header names.
    pub interface: Option<u32>,
}

/// A frame being walked, always in step with its length on the link.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    on_link: u32,
}

impl<'a> Cursor<'a> {
    fn skip(self, octets: usize) -> Option<Self> {
        let bytes = self.bytes.get(octets..)?;
        Some(Self { bytes, on_link: self.on_link.saturating_sub(octets as u32) })
    }

    fn u16_at(self, at: usize) -> Option<u16> {
        let field = self.bytes.get(at..at + 2)?;
        Some(u16::from_be_bytes([field[0], field[1]]))
    }

    /// Drops the last octets of the frame on the link.
    fn without_tail(self, octets: u32) -> Self {
        let on_link = self.on_link.saturating_sub(octets);
        Self { bytes: &self.bytes[..self.bytes.len().min(on_link as usize)], on_link }
    }

    /// The first octets of the frame on the link.
    fn first(self, octets: u32) -> Self {
        let on_link = self.on_link.min(octets);
        Self { bytes: &self.bytes[..self.bytes.len().min(on_link as usize)], on_link }
    }
}

/// What has sequence numbers of its own: receiver and transmitter address, and TID.
type Stream = ([u8; 12], u8);

/// 802.11 frames heard, to tell retransmissions from first copies as a receiver does
/// (802.11-2020 clause 10.3.2.14).
#[derive(Default)]
pub(crate) struct Heard {
    /// The last sequence numbers of each stream, each at its value modulo the length. Only looked up,
    /// never iterated.
    numbers: HashMap<Stream, [u16; 64]>,
}

impl Heard {
    /// Streams remembered; retransmissions of any further ones count as packets.
    const MOST: usize = 1_024;
    /// No sequence number: those have 12 bits.
    const NONE: u16 = u16::MAX;

    /// Notes a frame; true for a retransmission of one noted before.
    fn is_copy(&mut self, stream: Stream, number: u16, is_retry: bool) -> bool {
        if self.numbers.len() >= Self::MOST && !self.numbers.contains_key(&stream) {
            return false;
        }
        let numbers = self.numbers.entry(stream).or_insert([Self::NONE; 64]);
        let before = std::mem::replace(&mut numbers[usize::from(number % 64)], number);
        is_retry && before == number
    }
}

/// Hands every IP packet in `frame` to `sink`; more than one only out of an A-MSDU.
pub(crate) fn ip_packets<'a>(
    link_type: u16,
    frame: &'a [u8],
    original_len: u32,
    heard: &mut Heard,
    sink: &mut impl FnMut(IpBytes<'a>),
) -> Verdict {
    let cursor = Cursor { bytes: frame, on_link: original_len };
    let verdict = match link_type {
        1 => ethernet(cursor, sink),
        0 | 108 => cursor.skip(4).map(|ip| raw_ip(ip, None, sink)),
        12 | 14 | 101 | 228 | 229 => Some(raw_ip(cursor, None, sink)),
        105 => dot11(without_fcs(cursor), false, heard, sink),
        113 => cooked_v1(cursor, sink),
        127 => radiotap(cursor, heard, sink),
        276 => cooked_v2(cursor, sink),
        _ => Some(Verdict::Unsupported),
    };
    verdict.unwrap_or(Verdict::Short)
}

fn raw_ip<'a>(ip: Cursor<'a>, interface: Option<u32>, sink: &mut impl FnMut(IpBytes<'a>)) -> Verdict {
    match ip.bytes.first().map(|octet| octet >> 4) {
        Some(4 | 6) => {
            sink(IpBytes { bytes: ip.bytes, on_link: ip.on_link, interface });
            Verdict::Read
        }
        Some(_) => Verdict::NotIp,
        None => Verdict::Short,
    }
}

fn ethernet<'a>(frame: Cursor<'a>, sink: &mut impl FnMut(IpBytes<'a>)) -> Option<Verdict> {
    let ether_type = frame.u16_at(12)?;
    by_ether_type(ether_type, frame.skip(14)?, None, sink)
}

/// Linux cooked v1: type, hardware type, address length, address, protocol.
fn cooked_v1<'a>(frame: Cursor<'a>, sink: &mut impl FnMut(IpBytes<'a>)) -> Option<Verdict> {
    by_ether_type(frame.u16_at(14)?, frame.skip(16)?, None, sink)
}

/// Linux cooked v2: protocol, reserved, interface index, hardware type, type, address.
fn cooked_v2<'a>(frame: Cursor<'a>, sink: &mut impl FnMut(IpBytes<'a>)) -> Option<Verdict> {
    let index = frame.bytes.get(4..8)?;
    let interface = u32::from_be_bytes([index[0], index[1], index[2], index[3]]);
    by_ether_type(frame.u16_at(0)?, frame.skip(20)?, Some(interface), sink)
}

fn by_ether_type<'a>(
    mut ether_type: u16,
    mut rest: Cursor<'a>,
    interface: Option<u32>,
    sink: &mut impl FnMut(IpBytes<'a>),
) -> Option<Verdict> {
    // No sane frame has more than two tags; four keeps a hostile one short.
    for _ in 0..4 {
        match ether_type {
            0x0800 | 0x86dd => return Some(raw_ip(rest, interface, sink)),
            // 802.1Q, 802.1ad, and the tag types in use before it.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                ether_type = rest.u16_at(2)?;
                rest = rest.skip(4)?;
            }
            // PPPoE session (RFC 2516): six octets, then the PPP protocol.
            0x8864 => {
                let protocol = rest.u16_at(6)?;
                let ip = rest.skip(8)?;
                let is_ip = matches!(protocol, 0x0021 | 0x0057);
                return Some(if is_ip { raw_ip(ip, interface, sink) } else { Verdict::NotIp });
            }
            // An 802.3 length: LLC follows.
            0..=1500 => return llc(rest, interface, sink),
            _ => return Some(Verdict::NotIp),
        }
    }
    Some(Verdict::NotIp)
}

/// LLC and SNAP (RFC 1042), or nothing this module reads.
fn llc<'a>(frame: Cursor<'a>, interface: Option<u32>, sink: &mut impl FnMut(IpBytes<'a>)) -> Option<Verdict> {
    let header = frame.bytes.get(..8)?;
    if header[..3] != [0xaa, 0xaa, 0x03] {
        return Some(Verdict::NotIp);
    }
    let ether_type = u16::from_be_bytes([header[6], header[7]]);
    // A length here would recurse.
    if ether_type <= 1500 {
        return Some(Verdict::NotIp);
    }
    by_ether_type(ether_type, frame.skip(8)?, interface, sink)
}

/// Radiotap: version, pad, length, then present words; the flags field tells of FCS and padding.
fn radiotap<'a>(frame: Cursor<'a>, heard: &mut Heard, sink: &mut impl FnMut(IpBytes<'a>)) -> Option<Verdict> {
    const PRESENT_TSFT: u32 = 1;
    const PRESENT_FLAGS: u32 = 1 << 1;
    const PRESENT_MORE: u32 = 1 << 31;
    const FLAG_FCS: u8 = 0x10;
    const FLAG_DATA_PAD: u8 = 0x20;
    const FLAG_BAD_FCS: u8 = 0x40;

    let header_len = usize::from(u16::from_le_bytes([*frame.bytes.get(2)?, *frame.bytes.get(3)?]));
    let header = frame.bytes.get(..header_len)?;
    let word = |at: usize| {
        let word = header.get(at..at + 4)?;
        Some(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    let first = word(4)?;
    let mut fields = 8;
    let mut present = first;
    while present & PRESENT_MORE != 0 {
        present = word(fields)?;
        fields += 4;
    }
    let mut flags = 0;
    if first & PRESENT_FLAGS != 0 {
        let at = if first & PRESENT_TSFT != 0 { fields.next_multiple_of(8) + 8 } else { fields };
        flags = *header.get(at)?;
    }
    if flags & FLAG_BAD_FCS != 0 {
        return Some(Verdict::BadFcs);
    }
    let mut mpdu = frame.skip(header_len)?;
    if flags & FLAG_FCS != 0 {
        mpdu = mpdu.without_tail(4);
    }
    dot11(mpdu, flags & FLAG_DATA_PAD != 0, heard, sink)
}

/// The MPDU before its FCS, where it has one: link type 105 does not say.
fn without_fcs(mpdu: Cursor<'_>) -> Cursor<'_> {
    let is_whole = mpdu.bytes.len() as u64 == u64::from(mpdu.on_link);
    match mpdu.bytes.split_last_chunk::<4>() {
        // The FCS is the CRC-32 of everything before it, lowest octet first (clause 9.2.4.8).
        Some((before, fcs)) if is_whole && crc32(before).to_le_bytes() == *fcs => mpdu.without_tail(4),
        _ => mpdu,
    }
}

/// An MPDU (802.11-2020 clause 9.2): only data frames that carry something are of interest.
fn dot11<'a>(
    mpdu: Cursor<'a>,
    padded_to_four: bool,
    heard: &mut Heard,
    sink: &mut impl FnMut(IpBytes<'a>),
) -> Option<Verdict> {
    let (kind, flags) = (*mpdu.bytes.first()?, *mpdu.bytes.get(1)?);
    let subtype = kind >> 4;
    let is_data = kind & 0x0f == 0x08;
    if let Some(octets) = appended(mpdu.bytes) {
        return Some(Verdict::HackAck(octets));
    }
    // Subtype bit 2: no frame body.
    if !is_data || subtype & 0x4 != 0 {
        return Some(Verdict::NotIp);
    }
    let is_qos = subtype & 0x8 != 0;
    let four_addresses = flags & 0x03 == 0x03;
    let qos_at = if four_addresses { 30 } else { 24 };
    let mut header_len = qos_at;
    let mut is_amsdu = false;
    let mut tid = 0;
    if is_qos {
        let qos = mpdu.bytes.get(qos_at)?;
        is_amsdu = qos & 0x80 != 0;
        tid = qos & 0x0f;
        header_len += 2;
        // The +HTC bit: an HT Control field follows.
        if flags & 0x80 != 0 {
            header_len += 4;
        }
    }
    if padded_to_four {
        header_len = header_len.next_multiple_of(4);
    }
    if flags & 0x40 != 0 {
        return Some(Verdict::Opaque);
    }
    let sequence_control = u16::from_le_bytes([*mpdu.bytes.get(22)?, *mpdu.bytes.get(23)?]);
    if sequence_control & 0x0f != 0 {
        // A fragment after the first.
        return Some(Verdict::NotIp);
    }
    let addresses: [u8; 12] = *mpdu.bytes.get(4..)?.first_chunk()?;
    if heard.is_copy((addresses, tid), sequence_control >> 4, flags & 0x08 != 0) {
        return Some(Verdict::Copy);
    }
    let body = mpdu.skip(header_len)?;
    if is_amsdu { amsdu(body, sink) } else { llc(body, None, sink) }
}

/// Octets that TCP/HACK appended to an ACK or a compressed Block Ack (802.11-2020 clauses 9.3.1.4 and 9.3.1.8): there are
/// some, and they are whole frames of it. Others append things of their own.
fn appended(mpdu: &[u8]) -> Option<usize> {
    const CONTROL_WRAPPER: u8 = 0x74;
    /// The Carried Frame Control and HT Control fields.
    const WRAPPED_LEN: usize = 6;
    /// Frame Control, Duration and receiver.
    const ACK_LEN: usize = 10;
    /// BA Type in the BA Control field, and its value for a compressed bitmap.
    const TYPE_MASK: u8 = 0x1e;
    const TYPE_COMPRESSED: u8 = 0x04;
    /// Bits of the Fragment Number that say how long that bitmap is: with 0 it is for 64 MPDUs.
    const BITMAP_LENGTH_MASK: u8 = 0x0e;
    let (kind, wrapper) = match *mpdu.first()? {
        CONTROL_WRAPPER => (*mpdu.get(10)?, WRAPPED_LEN),
        kind => (kind, 0),
    };
    let from = match kind {
        0xd4 => ACK_LEN + wrapper,
        // Transmitter, BA Control, Starting Sequence Control and the bitmap follow.
        0x94 => {
            let is_known = mpdu.get(16 + wrapper)? & TYPE_MASK == TYPE_COMPRESSED
                && mpdu.get(18 + wrapper)? & BITMAP_LENGTH_MASK == 0;
            if !is_known {
                return None;
            }
            28 + wrapper
        }
        _ => return None,
    };
    let octets = mpdu.get(from..).filter(|octets| !octets.is_empty())?;
    tacit_rohc::hack::are_frames(octets).then_some(octets.len())
}

/// A-MSDU subframes: addresses, length, MSDU, padding to 4 (802.11-2020 clause 9.3.2.2).
fn amsdu<'a>(mut body: Cursor<'a>, sink: &mut impl FnMut(IpBytes<'a>)) -> Option<Verdict> {
    let mut verdict = Verdict::NotIp;
    loop {
        let Some(len) = body.u16_at(12) else { return Some(verdict) };
        let msdu = body.skip(14)?.first(u32::from(len));
        match llc(msdu, None, sink) {
            Some(Verdict::Read) => verdict = Verdict::Read,
            Some(_) => {}
            None => return Some(if verdict == Verdict::Read { verdict } else { Verdict::Short }),
        }
        match body.skip((14 + usize::from(len)).next_multiple_of(4)) {
            Some(next) if !next.bytes.is_empty() => body = next,
            _ => return Some(verdict),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

    fn read(link_type: u16, frame: &[u8]) -> (Verdict, Vec<(usize, u32)>) {
        let mut found = Vec::new();
        let verdict = ip_packets(link_type, frame, frame.len() as u32, &mut Heard::default(), &mut |ip| {
            found.push((ip.bytes.len(), ip.on_link));
        });
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
        // A QoS null and a beacon carry nothing.
        assert_eq!(read(105, &joined(&[&[0xc8, 1], &[0; 30]])).0, Verdict::NotIp);
        assert_eq!(read(105, &joined(&[&[0x80, 0], &[0; 30]])).0, Verdict::NotIp);
    }

    #[test]
    fn only_a_retransmission_of_a_heard_frame_is_a_copy() {
        let mut heard = Heard::default();
        let (one, other, third) = (([1; 12], 0), ([1; 12], 1), ([2; 12], 0));
        assert!(!heard.is_copy(one, 7, true));
        assert!(heard.is_copy(one, 7, true));
        assert!(!heard.is_copy(one, 7, false));
        assert!(!heard.is_copy(other, 7, true));
        assert!(!heard.is_copy(third, 7, true));
        // 64 numbers later the old one is forgotten.
        assert!(!heard.is_copy(one, 71, false));
        assert!(!heard.is_copy(one, 7, true));
        for i in 0..3 * Heard::MOST as u32 {
            let [a, b, c, d] = i.to_be_bytes();
            heard.is_copy(([0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d], 0), 1, false);
        }
        assert_eq!(heard.numbers.len(), Heard::MOST);
    }

    fn block_ack(control: u8, fragment: u8, bitmap: &[u8]) -> Vec<u8> {
        joined(&[&[0x94, 0, 0, 0], &[2; 12], &[control, 0, fragment, 0], bitmap])
    }

    #[test]
    fn only_whole_frames_of_hack_make_a_hack_ack() {
        let ack = joined(&[&[0xd4, 0, 0, 0], &[2; 6]]);
        let compressed = block_ack(5, 0, &[0xff; 8]);
        let wrapped = joined(&[&[0x74, 0, 0, 0], &[2; 6], &[0xd4, 0, 0, 0, 0, 0xc0]]);
        // Short frames: one without octets behind its check, and two, the second of which has one.
        let riding = [&[0, 7, 1, 2][..], &[0, 7, 1, 2, 0x10, 7, 2, 3, 0x33]];
        for plain in [ack, compressed, wrapped] {
            assert_eq!(read(105, &plain).0, Verdict::NotIp);
            for octets in riding {
                let whole = joined(&[&plain, octets]);
                assert_eq!(read(105, &whole).0, Verdict::HackAck(octets.len()), "{plain:x?}");
                let with_fcs = joined(&[&whole, &crc32(&whole).to_le_bytes()]);
                assert_eq!(read(105, &with_fcs).0, Verdict::HackAck(octets.len()), "{plain:x?}");
                assert_eq!(read(105, &whole[..whole.len() - 1]).0, Verdict::NotIp);
            }
            // A length that runs past the end.
            assert_eq!(read(105, &joined(&[&plain, &[0x40, 7, 1, 2]])).0, Verdict::NotIp);
        }
    }

    /// A basic bitmap, one of 256 MPDUs and a Block Ack of several TIDs are longer than a compressed one of 64, and zeros are
    /// whole frames of HACK.
    #[test]
    fn longer_block_acks_are_no_hack_acks() {
        for (control, fragment, octets) in [(1, 0, 128), (5, 4, 32), (7, 0, 44)] {
            let stock = block_ack(control, fragment, &vec![0; octets]);
            assert_eq!(read(105, &stock).0, Verdict::NotIp, "{control} {fragment}");
        }
    }

    /// Of some frames one in sixteen would pass for a frame of HACK with its FCS.
    #[test]
    fn an_fcs_that_nobody_announces_is_nothing_appended() {
        for duration in 0..=255 {
            let ack = joined(&[&[0xd4, 0, duration, 0], &[2; 6]]);
            assert_eq!(
                read(105, &joined(&[&ack, &crc32(&ack).to_le_bytes()])).0,
                Verdict::NotIp,
                "{duration}"
            );
        }
        // The check value that catalogues of CRCs give for CRC-32.
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
        for link_type in [0, 1, 12, 101, 105, 108, 113, 127, 228, 276, 9] {
            for cut in 0..mpdu.len() {
                read(link_type, &mpdu[..cut]);
            }
        }
    }
}
