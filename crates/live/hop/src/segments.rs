//! The view of TCP segments that FWP's shim needs, and the generation of packets for it.

use std::ops::Range;

use tacit_between::fwp::{Marker, SegmentPacket};
use tacit_packet::FlowKey;
use tacit_packet::tcp::Segment;
use tacit_packet::units::SeqNumber;
use tacit_packet::wire::headers::{Fragment, Headers, Tcp, TcpOption, Transport};

use crate::checksum::{self, IP_HEADERS, PROTOCOL_TCP};
use crate::datagram::Datagram;

/// Kind of the window scale option (RFC 7323 section 2.2).
const WINDOW_SCALE: u8 = 3;
/// Length of a TCP header without options, and with timestamps and padding, in bytes.
const TCP_HEADERS: [usize; 2] = [20, 32];

/// A TCP segment in the bytes of a packet.
struct Parts {
    tcp: Tcp,
    /// Offset of its TCP header.
    header_at: usize,
    text: Range<usize>,
}

/// The segment in `bytes`; `None` for other packets, for fragments, and if there are IP options or extension headers.
fn parts(bytes: &[u8]) -> Option<Parts> {
    let headers = Headers::read(bytes)?;
    let end = headers.stated_len.map(|len| len as usize).filter(|len| *len <= bytes.len())?;
    let Transport::Tcp(tcp) = headers.transport else { return None };
    let header_at = headers.header_len as usize;
    let text_at = header_at + tcp.header_len as usize;
    let is_plain = match bytes.first()? >> 4 {
        4 => header_at == usize::from(bytes[0] & 0x0f) * 4,
        _ => header_at == IP_HEADERS[1],
    };
    let whole = headers.fragment == Fragment::Whole && text_at <= end;
    (is_plain && whole).then_some(Parts { tcp, header_at, text: text_at..end })
}

impl SegmentPacket for Datagram {
    fn flow_key(&self) -> FlowKey {
        self.summary().flow
    }

    fn reverse_key(&self) -> FlowKey {
        self.summary().reverse
    }

    fn segment(&self) -> Option<Segment> {
        let Parts { tcp, text, .. } = parts(self.bytes())?;
        let mut segment = Segment {
            seq: SeqNumber(tcp.seq),
            ack: SeqNumber(tcp.ack),
            payload_len: text.len() as u32,
            window: tcp.window,
            flags: tcp.flags,
            ..Segment::default()
        };
        for option in tcp.options() {
            match option {
                Ok(option @ TcpOption { kind: TcpOption::TIMESTAMPS, .. }) => {
                    segment.timestamps = option.timestamps().or(segment.timestamps);
                }
                Ok(TcpOption { kind: WINDOW_SCALE, value: [scale], .. }) => {
                    segment.window_scale = Some(*scale);
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Some(segment)
    }

    fn is_intact(&self) -> bool {
        let bytes = self.bytes();
        parts(bytes).is_some_and(|parts| {
            checksum::transport(bytes, PROTOCOL_TCP, parts.header_at..parts.text.end) == 0
        })
    }

    fn payload(&self) -> &[u8] {
        parts(self.bytes()).map_or(&[], |parts| &self.bytes()[parts.text])
    }

    fn forged(&self, segment: &Segment, text: Option<(Marker, u64)>) -> Self {
        let Some(bytes) = parts(self.bytes()).and_then(|parts| forge(self.bytes(), &parts, segment, text))
        else {
            // A packet without a segment cannot be the template of one.
            return self.clone();
        };
        Self::new(&bytes, self.destination())
    }
}

/// Creates a packet with the addresses and ports of `like` and the content of `segment`; `None` if it would be too
/// long.
fn forge(like: &[u8], parts: &Parts, segment: &Segment, text: Option<(Marker, u64)>) -> Option<Vec<u8>> {
    let tcp_len = TCP_HEADERS[usize::from(segment.timestamps.is_some())];
    let text_len = segment.payload_len as usize;
    let is_v4 = like.first()? >> 4 == 4;
    // IP options of the sender are not copied.
    let ip_len = IP_HEADERS[usize::from(!is_v4)];
    let mut bytes = vec![0; ip_len + tcp_len + text_len];
    bytes[..ip_len].copy_from_slice(like.get(..ip_len)?);
    if is_v4 {
        bytes[0] = 0x45;
        unmark(&mut bytes[1], 0);
        let len = u16::try_from(bytes.len()).ok()?;
        checksum::finish_ipv4(&mut bytes, ip_len, len);
    } else {
        bytes[4..6].copy_from_slice(&u16::try_from(tcp_len + text_len).ok()?.to_be_bytes());
        unmark(&mut bytes[1], 4);
    }
    let (_, tcp) = bytes.split_at_mut(ip_len);
    tcp[..4].copy_from_slice(&like[parts.header_at..parts.header_at + 4]);
    tcp[4..8].copy_from_slice(&segment.seq.0.to_be_bytes());
    tcp[8..12].copy_from_slice(&segment.ack.0.to_be_bytes());
    tcp[12] = (tcp_len as u8 / 4) << 4;
    tcp[13] = segment.flags.0;
    tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
    if let Some(stamps) = segment.timestamps {
        // Two bytes of padding first, as in Linux (RFC 7323 appendix A).
        tcp[20..24].copy_from_slice(&[1, 1, TcpOption::TIMESTAMPS, 10]);
        tcp[24..28].copy_from_slice(&stamps.value.to_be_bytes());
        tcp[28..32].copy_from_slice(&stamps.echo_reply.to_be_bytes());
    }
    if let Some((marker, start)) = text {
        marker.fill(start, &mut tcp[tcp_len..]);
    }
    let sum = checksum::transport(&bytes, PROTOCOL_TCP, ip_len..bytes.len());
    bytes[ip_len + 16..ip_len + 18].copy_from_slice(&sum.to_be_bytes());
    Some(bytes)
}

/// Clears congestion experienced in the ECN field at bit `shift` of this byte, because a generated segment has not met
/// congestion (RFC 3168 section 5).
fn unmark(byte: &mut u8, shift: u8) {
    if *byte >> shift & 0b11 == 0b11 {
        *byte &= !(0b01 << shift);
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{Ipv4HeaderSlice, PacketBuilder, TcpHeaderSlice, TcpOptionElement};
    use tacit_packet::tcp::Flags;
    use tacit_packet::units::HostId;

    use super::*;
    use tacit_packet::tcp::Timestamps;

    const MARKER: Marker = Marker::new([5; 16]);

    fn packet(is_v4: bool, payload: &[u8]) -> Datagram {
        let builder = match is_v4 {
            true => PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 60),
            false => PacketBuilder::ipv6([1; 16], [2; 16], 60),
        };
        let options = [TcpOptionElement::Timestamp(77, 88), TcpOptionElement::WindowScale(9)];
        let tcp = builder.tcp(80, 40_000, 1000, 512).ack(7).psh().options(&options).unwrap();
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, payload).unwrap();
        Datagram::new(&bytes, HostId(3))
    }

    #[test]
    fn a_segment_is_read_with_what_the_shim_needs() {
        for is_v4 in [true, false] {
            let datagram = packet(is_v4, b"hello");
            let segment = datagram.segment().unwrap();
            assert_eq!((segment.seq, segment.ack, segment.payload_len), (SeqNumber(1000), SeqNumber(7), 5));
            assert_eq!((segment.window, segment.flags), (512, Flags::ACK | Flags::PSH));
            assert_eq!(segment.timestamps, Some(Timestamps { value: 77, echo_reply: 88 }));
            assert_eq!((segment.window_scale, datagram.payload()), (Some(9), &b"hello"[..]));
            assert!(datagram.is_intact());
            for place in 0..datagram.bytes().len() {
                let mut bytes = datagram.bytes().to_vec();
                bytes[place] ^= 0x10;
                // Damage causes no panic, and is detected if the checksum covers it.
                let damaged = Datagram::new(&bytes, HostId(3));
                let header_len = if is_v4 { 20 } else { 40 };
                assert!(place < header_len || !damaged.is_intact(), "byte {place}");
            }
        }
    }

    #[test]
    fn forged_segments_have_right_checksums_and_the_addresses_of_their_model() {
        for is_v4 in [true, false] {
            for (len, stamps) in [(0, None), (1448, Some(Timestamps { value: 5, echo_reply: 6 })), (33, None)]
            {
                let like = packet(is_v4, b"hello");
                let flags = if len == 0 { Flags::RST } else { Flags::ACK };
                let segment = Segment {
                    seq: SeqNumber(u32::MAX - 3),
                    ack: SeqNumber(9),
                    payload_len: len,
                    window: 77,
                    flags,
                    timestamps: stamps,
                    ..Segment::default()
                };
                let forged = like.forged(&segment, (len > 0).then_some((MARKER, 42)));
                assert_eq!(forged.segment(), Some(segment));
                assert!(forged.is_intact());
                assert_eq!((forged.flow_key(), forged.destination()), (like.flow_key(), like.destination()));
                assert!(MARKER.matches(42, forged.payload()));
                let header_len = if is_v4 { 20 } else { 40 };
                // Another implementation can parse it.
                let tcp = TcpHeaderSlice::from_slice(&forged.bytes()[header_len..]).unwrap();
                assert_eq!((tcp.source_port(), tcp.destination_port()), (80, 40_000));
                if is_v4 {
                    let ip = Ipv4HeaderSlice::from_slice(forged.bytes()).unwrap().to_header();
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                    assert_eq!(
                        tcp.calc_checksum_ipv4(
                            &Ipv4HeaderSlice::from_slice(forged.bytes()).unwrap(),
                            forged.payload()
                        )
                        .unwrap(),
                        tcp.checksum()
                    );
                }
            }
        }
    }

    #[test]
    fn forged_segments_carry_no_congestion_mark() {
        for (is_v4, place, shift) in [(true, 1, 0), (false, 1, 4)] {
            for (marked, unmarked) in [(3, 2), (2, 2), (1, 1), (0, 0)] {
                let mut bytes = packet(is_v4, b"hello").bytes().to_vec();
                bytes[place] |= marked << shift;
                let forged = Datagram::new(&bytes, HostId(3)).forged(&Segment::default(), None);
                assert_eq!(forged.bytes()[place] >> shift & 3, unmarked);
            }
        }
    }

    #[test]
    fn truncated_segments_are_none() {
        let bytes = packet(true, b"hello").bytes().to_vec();
        let mut fragment = bytes.clone();
        fragment[6] = 0x20;
        let mut udp = bytes.clone();
        udp[9] = 17;
        for bytes in [&bytes[..bytes.len() - 1], &fragment, &udp, &[], &[0x45; 7]] {
            let datagram = Datagram::new(bytes, HostId(3));
            assert!(datagram.segment().is_none() && !datagram.is_intact() && datagram.payload().is_empty());
        }
    }
}
