//! Work that a TUN device leaves to its reader: checksums, and splitting large packets.
//!
//! A kernel passes up to 64 KiB of a connection at once if the device claims to split them (TSO, USO), as network cards
//! do. Like those, a radio sends packets with separate headers.

use std::ops::Range;

use crate::checksum::{self, IP_HEADERS, PROTOCOL_TCP, PROTOCOL_UDP};

/// Length of virtio's network header (VIRTIO 1.2 section 5.1.6, legacy form), which precedes each packet.
pub const HEADER_LEN: usize = 10;

/// Value of `flags`: the checksum has to be completed.
const NEEDS_CHECKSUM: u8 = 1;
/// Value of `flags`: the checksum has been verified.
const CHECKSUM_VALID: u8 = 2;
/// Values of `gso_type`: nothing to split; TCP over IPv4; TCP over IPv6; UDP.
const NONE: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
/// Bit of `gso_type`: the CWR flag applies only to the first segment (RFC 3168 section 6.1.2).
const WITH_ECN: u8 = 0x80;

/// Length of a UDP header, and of a TCP header without options, in bytes.
pub const UDP_HEADER: usize = 8;
const TCP_HEADER: usize = 20;
/// Maximum length of headers that are copied to each packet: IP and TCP with all options, with room for IPv6
/// extensions.
const HEADERS_MAX: usize = 256;
/// Flags in byte 13 of the TCP header for the last segment, and for the first.
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Virtio's network header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    flags: u8,
    gso_type: u8,
    /// Length of the headers in bytes, if the packet has to be split.
    header_len: u16,
    /// Payload length of each packet except the last, in bytes.
    gso_size: u16,
    /// Offset at which the checksum starts to count.
    csum_start: u16,
    /// Offset of the checksum field from there.
    csum_offset: u16,
}

impl Header {
    /// The header of a packet without remaining work. With `verified`, its checksum need not be checked.
    pub fn whole(verified: bool) -> Self {
        Self { flags: if verified { CHECKSUM_VALID } else { 0 }, ..Self::default() }
    }

    /// The header of a merged packet, whose checksum field contains the sum of the pseudo-header.
    pub fn large(large: &Large) -> Self {
        let gso_type = match (large.is_tcp, large.is_v4) {
            (true, true) => TCP_V4,
            (true, false) => TCP_V6,
            (false, _) => UDP,
        };
        Self {
            flags: NEEDS_CHECKSUM,
            gso_type,
            header_len: large.payload_at,
            gso_size: large.size,
            csum_start: large.transport_at,
            csum_offset: if large.is_tcp { 16 } else { 6 },
        }
    }

    /// Parses a header in native byte order.
    pub fn read(bytes: [u8; HEADER_LEN]) -> Self {
        let [flags, gso_type, words @ ..] = bytes;
        let word = |at: usize| u16::from_ne_bytes([words[at], words[at + 1]]);
        let [header_len, gso_size, csum_start, csum_offset] = [0, 2, 4, 6].map(word);
        Self { flags, gso_type, header_len, gso_size, csum_start, csum_offset }
    }

    /// The header as bytes in native byte order.
    pub fn bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        let words = [self.header_len, self.gso_size, self.csum_start, self.csum_offset];
        for (place, word) in bytes[2..].as_chunks_mut::<2>().0.iter_mut().zip(words) {
            *place = word.to_ne_bytes();
        }
        bytes
    }

    /// Whether the kernel left the checksum of its own packet to be completed. It is then correct after completion.
    pub fn completes_checksum(&self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }
}

/// The layout of a merged packet.
#[derive(Clone, Copy, Debug)]
pub struct Large {
    /// IPv4 instead of IPv6.
    pub is_v4: bool,
    /// TCP instead of UDP.
    pub is_tcp: bool,
    /// Offset of the TCP or UDP header.
    pub transport_at: u16,
    /// Offset of the payload.
    pub payload_at: u16,
    /// Payload length of each packet except the last, in bytes.
    pub size: u16,
}

/// Passes on `packet` with its checksum completed, or the packets into which it is split. `packet` is overwritten.
/// Returns `None` if it cannot be parsed; some of the packets may then have been passed on.
pub fn packets(header: &Header, packet: &mut [u8], mut give: impl FnMut(&[u8])) -> Option<()> {
    if header.gso_type == NONE {
        if header.completes_checksum() {
            complete(packet, usize::from(header.csum_start), usize::from(header.csum_offset))?;
        }
        give(packet);
        return Some(());
    }
    Cut::new(header, packet)?.packets(packet, give)
}

/// Completes a checksum whose field contains the sum of the pseudo-header.
fn complete(packet: &mut [u8], start: usize, offset: usize) -> Option<()> {
    let sum = !checksum::folded(checksum::sum_of(packet.get(start..)?));
    // A computed UDP checksum of zero is sent as all ones (RFC 768). For TCP both are equivalent.
    let sum = if sum == 0 { 0xffff } else { sum };
    packet.get_mut(start + offset..start + offset + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// How to split a large packet.
struct Cut {
    is_v4: bool,
    is_tcp: bool,
    with_ecn: bool,
    /// Offset of the TCP or UDP header.
    transport_at: usize,
    /// Offset of the payload.
    payload_at: usize,
    /// Payload length of each packet except the last, in bytes.
    size: usize,
}

impl Cut {
    fn new(header: &Header, packet: &[u8]) -> Option<Self> {
        let is_v4 = packet.first()? >> 4 == 4;
        let is_tcp = match (header.gso_type & !WITH_ECN, is_v4) {
            (TCP_V4, true) | (TCP_V6, false) => true,
            (UDP, _) => false,
            _ => return None,
        };
        let transport_at = usize::from(header.csum_start);
        if transport_at < IP_HEADERS[usize::from(!is_v4)] {
            return None;
        }
        let transport_len = match is_tcp {
            true => usize::from(packet.get(transport_at + 12)? >> 4) * 4,
            false => UDP_HEADER,
        };
        let payload_at = transport_at + transport_len;
        let size = usize::from(header.gso_size);
        let fits = payload_at < packet.len() && payload_at <= HEADERS_MAX && size > 0;
        let whole = !is_tcp || transport_len >= TCP_HEADER;
        let with_ecn = header.gso_type & WITH_ECN != 0;
        (fits && whole).then_some(Self { is_v4, is_tcp, with_ecn, transport_at, payload_at, size })
    }

    fn packets(&self, packet: &mut [u8], mut give: impl FnMut(&[u8])) -> Option<()> {
        let mut headers = [0; HEADERS_MAX];
        let headers = &mut headers[..self.payload_at];
        headers.copy_from_slice(packet.get(..self.payload_at)?);
        let (mut at, mut number) = (self.payload_at, 0);
        while at < packet.len() {
            let payload = at..packet.len().min(at + self.size);
            // The headers overwrite the preceding payload, which has already been passed on.
            let whole = at - self.payload_at..payload.end;
            let is_last = payload.end == packet.len();
            let one = &mut packet[whole];
            one[..self.payload_at].copy_from_slice(headers);
            self.mend(one, number, is_last)?;
            give(one);
            (at, number) = (payload.end, number + 1);
        }
        Some(())
    }

    /// Updates the fields of packet `number`, whose headers are a copy of those of the large packet.
    fn mend(&self, one: &mut [u8], number: u32, is_last: bool) -> Option<()> {
        let len = one.len();
        if self.is_v4 {
            let identification = u16::from_be_bytes([one[4], one[5]]).wrapping_add(number as u16);
            one[4..6].copy_from_slice(&identification.to_be_bytes());
            let header_len = usize::from(one[0] & 0x0f) * 4;
            if header_len < IP_HEADERS[0] || header_len > self.transport_at {
                return None;
            }
            checksum::finish_ipv4(one, header_len, u16::try_from(len).ok()?);
        } else {
            one[4..6].copy_from_slice(&u16::try_from(len - IP_HEADERS[1]).ok()?.to_be_bytes());
        }
        let segment = self.transport_at..len;
        let (protocol, checksum_at) = if self.is_tcp {
            self.mend_tcp(&mut one[segment.clone()], number, is_last);
            (PROTOCOL_TCP, 16)
        } else {
            one[self.transport_at + 4..][..2]
                .copy_from_slice(&u16::try_from(segment.len()).ok()?.to_be_bytes());
            (PROTOCOL_UDP, 6)
        };
        self.sum(one, protocol, segment, checksum_at);
        Some(())
    }

    fn mend_tcp(&self, segment: &mut [u8], number: u32, is_last: bool) {
        let seq = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
        let seq = seq.wrapping_add(number.wrapping_mul(self.size as u32));
        segment[4..8].copy_from_slice(&seq.to_be_bytes());
        if !is_last {
            segment[13] &= !FIN_PSH;
        }
        if self.with_ecn && number > 0 {
            segment[13] &= !CWR;
        }
    }

    fn sum(&self, one: &mut [u8], protocol: u8, segment: Range<usize>, checksum_at: usize) {
        let field = segment.start + checksum_at..segment.start + checksum_at + 2;
        one[field.clone()].fill(0);
        let sum = checksum::transport(one, protocol, segment);
        let sum = if sum == 0 && !self.is_tcp { 0xffff } else { sum };
        one[field].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{
        NetHeaders, PacketBuilder, PacketHeaders, SlicedPacket, TransportHeader, TransportSlice,
    };
    use proptest::prelude::*;

    use super::*;

    const SEQ: u32 = u32::MAX - 100;
    const SOURCE: [u8; 16] = [7; 16];

    /// A packet as passed by a kernel: one header for all data, and only the checksum of the pseudo-header.
    fn large(is_v4: bool, is_tcp: bool, payload: &[u8]) -> (Vec<u8>, u16) {
        let builder = match is_v4 {
            true => PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 64),
            false => PacketBuilder::ipv6(SOURCE, [8; 16], 64),
        };
        let mut bytes = Vec::new();
        match is_tcp {
            true => builder.tcp(80, 9000, SEQ, 500).ack(1).psh().fin().cwr().write(&mut bytes, payload),
            false => builder.udp(80, 9000).write(&mut bytes, payload),
        }
        .unwrap();
        let start = IP_HEADERS[usize::from(!is_v4)];
        let at = start + if is_tcp { 16 } else { 6 };
        bytes[at..at + 2].fill(0);
        let end = bytes.len();
        let protocol = if is_tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
        let pseudo = u64::from(!checksum::transport(&bytes, protocol, start..end))
            + u64::from(!checksum::folded(checksum::sum_of(&bytes[start..])));
        bytes[at..at + 2].copy_from_slice(&checksum::folded(pseudo).to_be_bytes());
        (bytes, start as u16)
    }

    fn header(gso_type: u8, gso_size: u16, csum_start: u16, is_tcp: bool) -> Header {
        let csum_offset = if is_tcp { 16 } else { 6 };
        Header { flags: NEEDS_CHECKSUM, gso_type, header_len: 0, gso_size, csum_start, csum_offset }
    }

    fn cut(header: &Header, mut packet: Vec<u8>) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        packets(header, &mut packet, |one| all.push(one.to_vec())).unwrap();
        all
    }

    /// Verifies the checksums of a packet with another implementation. Returns its payload.
    fn content(bytes: &[u8]) -> Vec<u8> {
        let sum = |transport: &TransportHeader| match transport {
            TransportHeader::Tcp(tcp) => tcp.checksum,
            TransportHeader::Udp(udp) => udp.checksum,
            other => panic!("{other:?}"),
        };
        let headers = PacketHeaders::from_ip_slice(bytes).unwrap();
        let (stated, payload) = (headers.transport.unwrap(), headers.payload.slice());
        let mut right = stated.clone();
        let has_checksum = match &headers.net {
            Some(NetHeaders::Ipv4(ip, _)) => {
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                assert_eq!(usize::from(ip.total_len), bytes.len());
                right.update_checksum_ipv4(ip, payload).is_ok()
            }
            Some(NetHeaders::Ipv6(ip, _)) => right.update_checksum_ipv6(ip, payload).is_ok(),
            other => panic!("{other:?}"),
        };
        assert!(has_checksum);
        assert_eq!(sum(&stated), sum(&right));
        payload.to_vec()
    }

    fn payload(len: usize) -> Vec<u8> {
        (0..len).map(|number| (number * 31 % 251) as u8).collect()
    }

    #[test]
    fn a_large_packet_is_cut_into_right_ones() {
        let kinds = [(true, true, TCP_V4), (false, true, TCP_V6), (true, false, UDP), (false, false, UDP)];
        for (is_v4, is_tcp, gso_type) in kinds {
            for (len, size) in [(4_344, 1_448), (4_345, 1_448), (10, 3), (1_448, 1_448), (60_001, 1_447)] {
                let (bytes, start) = large(is_v4, is_tcp, &payload(len));
                let all = cut(&header(gso_type, size, start, is_tcp), bytes);
                let contents: Vec<_> = all.iter().map(|one| content(one)).collect();
                assert_eq!(contents.concat(), payload(len), "{is_v4} {is_tcp} {len} by {size}");
                let (last, others) = contents.split_last().unwrap();
                assert!(others.iter().all(|one| one.len() == usize::from(size)));
                assert!(!last.is_empty());
            }
        }
    }

    #[test]
    fn each_segment_has_its_number_and_the_flags_that_are_its_own() {
        let (bytes, start) = large(true, true, &payload(300));
        let all = cut(&header(TCP_V4 | WITH_ECN, 100, start, true), bytes);
        let seen = all.iter().map(|one| {
            let sliced = SlicedPacket::from_ip(one).unwrap();
            let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
            (tcp.sequence_number().wrapping_sub(SEQ), tcp.cwr(), tcp.psh() && tcp.fin(), [one[4], one[5]])
        });
        let first = [all[0][4], all[0][5]];
        let identification = |number: u16| (u16::from_be_bytes(first) + number).to_be_bytes();
        let expected = [
            (0, true, false, identification(0)),
            (100, false, false, identification(1)),
            (200, false, true, identification(2)),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_checksum_is_completed() {
        for (is_v4, is_tcp) in [(true, true), (true, false), (false, true), (false, false)] {
            let (bytes, start) = large(is_v4, is_tcp, &payload(77));
            let all = cut(&header(NONE, 0, start, is_tcp), bytes);
            assert_eq!(all.iter().map(|one| content(one)).collect::<Vec<_>>(), [payload(77)]);
        }
    }

    #[test]
    fn a_packet_of_a_raw_socket_stays_as_it_is() {
        let wrong = vec![0x45, 0, 0, 3];
        assert_eq!(cut(&Header::default(), wrong.clone()), [wrong]);
        assert_eq!(cut(&Header::default(), Vec::new()), [Vec::<u8>::new()]);
    }

    proptest! {
        #[test]
        fn nothing_that_a_header_says_does_harm(
            head in any::<[u8; HEADER_LEN]>(),
            kind in prop::sample::select(vec![NONE, TCP_V4, TCP_V6, UDP, TCP_V4 | WITH_ECN, 77]),
            size in 0_u16..50,
            start in 0_u16..100,
            version in 4_u8..7,
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut header = Header::read(head);
            (header.gso_type, header.gso_size, header.csum_start) = (kind, size, start);
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 0x0f;
            }
            let len = bytes.len();
            let mut given = 0;
            let cut = packets(&header, &mut bytes, |one| given += one.len());
            // Headers are repeated at most once per byte.
            prop_assert!(cut.is_none() || given <= len * (1 + HEADERS_MAX));
        }
    }
}
