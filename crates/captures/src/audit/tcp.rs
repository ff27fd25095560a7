//! From IP bytes to the TCP fields the audit counts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tacit_proto::tcp::Flags;

use crate::capture::link::IpBytes;

/// Why there is no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTcp {
    /// Another protocol.
    Other,
    /// A fragment without the TCP header.
    Fragment,
    /// Cut off before the end of the fixed TCP header, or nonsense.
    Short,
}

/// A TCP segment's header, as far as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tcp {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Octets of the IP packet, captured or not.
    pub ip_len: u32,
    /// Octets of IP and TCP headers.
    pub header_len: u32,
    /// Octets of TCP header.
    pub tcp_header_len: u32,
    pub payload_len: u32,
    pub seq: u32,
    pub ack: u32,
    pub flags: Flags,
    pub window: u16,
    pub options: Options,
}

/// The options that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub timestamps: bool,
    pub sack: bool,
    pub mss: Option<u16>,
}

const PROTOCOL_TCP: u8 = 6;
const TCP_FIXED_LEN: usize = 20;

impl Tcp {
    /// True for a segment that only acknowledges.
    pub fn is_pure_ack(&self) -> bool {
        self.payload_len == 0 && self.flags.only_acknowledge()
    }

    /// Parses from the IP header on.
    pub fn parse(ip: &IpBytes<'_>) -> Result<Self, NotTcp> {
        match ip.bytes.first().map(|octet| octet >> 4) {
            Some(4) => v4(ip),
            Some(6) => v6(ip),
            _ => Err(NotTcp::Short),
        }
    }
}

/// A length field of zero means a super-segment past 64 KiB, or one caught before the hardware
/// splits it: the frame's own length tells.
fn length_or_frame(field: u32, on_link: u32) -> u32 {
    if field == 0 { on_link } else { field }
}

fn v4(ip: &IpBytes<'_>) -> Result<Tcp, NotTcp> {
    let bytes = ip.bytes;
    let fixed: &[u8; 20] = bytes.first_chunk().ok_or(NotTcp::Short)?;
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    if header_len < 20 {
        return Err(NotTcp::Short);
    }
    if fixed[9] != PROTOCOL_TCP {
        return Err(NotTcp::Other);
    }
    let total = u32::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let fragment_offset = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff;
    if fragment_offset != 0 {
        return Err(NotTcp::Fragment);
    }
    let address =
        |at: usize| IpAddr::V4(Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]));
    segment(bytes, header_len, length_or_frame(total, ip.on_link), address(12), address(16))
}

fn v6(ip: &IpBytes<'_>) -> Result<Tcp, NotTcp> {
    let bytes = ip.bytes;
    let fixed: &[u8; 40] = bytes.first_chunk().ok_or(NotTcp::Short)?;
    let payload = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let ip_len = if payload == 0 { ip.on_link } else { payload + 40 };
    let mut next = fixed[6];
    let mut at = 40;
    // RFC 8200 section 4; no sane packet has this many extension headers.
    for _ in 0..8 {
        let header = |len: usize| bytes.get(at..at + len).ok_or(NotTcp::Short);
        match next {
            PROTOCOL_TCP => {
                let address = |at: usize| {
                    let octets: [u8; 16] = *fixed[at..].first_chunk().expect("two addresses end at 40");
                    IpAddr::V6(Ipv6Addr::from(octets))
                };
                return segment(bytes, at, ip_len, address(8), address(24));
            }
            // Hop-by-hop, routing, destination options, mobility: length in units of 8 past the first 8.
            0 | 43 | 60 | 135 => {
                let fields = header(2)?;
                next = fields[0];
                at += (usize::from(fields[1]) + 1) * 8;
            }
            // Fragment.
            44 => {
                let fields = header(8)?;
                if u16::from_be_bytes([fields[2], fields[3]]) & 0xfff8 != 0 {
                    return Err(NotTcp::Fragment);
                }
                next = fields[0];
                at += 8;
            }
            // Authentication: length in units of 4 past the first 8.
            51 => {
                let fields = header(2)?;
                next = fields[0];
                at += (usize::from(fields[1]) + 2) * 4;
            }
            _ => return Err(NotTcp::Other),
        }
    }
    Err(NotTcp::Other)
}

fn segment(
    bytes: &[u8],
    ip_header_len: usize,
    ip_len: u32,
    source: IpAddr,
    destination: IpAddr,
) -> Result<Tcp, NotTcp> {
    let tcp = bytes.get(ip_header_len..).ok_or(NotTcp::Short)?;
    let fixed: &[u8; TCP_FIXED_LEN] = tcp.first_chunk().ok_or(NotTcp::Short)?;
    let tcp_header_len = usize::from(fixed[12] >> 4) * 4;
    let header_len = (ip_header_len + tcp_header_len) as u32;
    if tcp_header_len < TCP_FIXED_LEN || ip_len < header_len {
        return Err(NotTcp::Short);
    }
    // Options cut off by the snap length: as many as there are.
    let options = &tcp[TCP_FIXED_LEN..tcp_header_len.min(tcp.len())];
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    Ok(Tcp {
        source: SocketAddr::new(source, half(0)),
        destination: SocketAddr::new(destination, half(2)),
        ip_len,
        header_len,
        tcp_header_len: tcp_header_len as u32,
        payload_len: ip_len - header_len,
        seq: word(4),
        ack: word(8),
        flags: Flags(fixed[13]),
        window: half(14),
        options: parse_options(options),
    })
}

/// RFC 9293 section 3.1; stops at the first option that makes no sense.
fn parse_options(mut bytes: &[u8]) -> Options {
    let mut options = Options::default();
    loop {
        bytes = match bytes {
            [] | [0, ..] => return options,
            [1, rest @ ..] => rest,
            [kind, len, ..] => {
                match (kind, len) {
                    (2, 4) => options.mss = bytes.get(2..4).map(|mss| u16::from_be_bytes([mss[0], mss[1]])),
                    (5, _) => options.sack = true,
                    (8, 10) => options.timestamps = true,
                    _ => {}
                }
                match bytes.get(usize::from(*len).max(2)..) {
                    Some(rest) if *len >= 2 => rest,
                    _ => return options,
                }
            }
            [_] => return options,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, TcpOptionElement};

    fn parse(bytes: &[u8], on_link: usize) -> Result<Tcp, NotTcp> {
        Tcp::parse(&IpBytes { bytes, on_link: on_link as u32, interface: None })
    }

    fn packet(v6: bool) -> Vec<u8> {
        let ip = if v6 {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
        } else {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        };
        let builder = ip
            .tcp(443, 50_000, 7, 1024)
            .ack(99)
            .options(&[
                TcpOptionElement::Noop,
                TcpOptionElement::Noop,
                TcpOptionElement::Timestamp(1, 2),
                TcpOptionElement::Noop,
                TcpOptionElement::Noop,
                TcpOptionElement::SelectiveAcknowledgement((1, 2), [None; 3]),
            ])
            .unwrap();
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &[0; 100]).unwrap();
        bytes
    }

    #[test]
    fn fields_of_both_versions() {
        for (v6, ip_header) in [(false, 20), (true, 40)] {
            let bytes = packet(v6);
            let tcp = parse(&bytes, bytes.len()).unwrap();
            assert_eq!((tcp.source.port(), tcp.destination.port()), (443, 50_000));
            assert_eq!((tcp.seq, tcp.ack, tcp.window), (7, 99, 1024));
            assert_eq!((tcp.payload_len, tcp.tcp_header_len, tcp.header_len), (100, 44, ip_header + 44));
            assert!(tcp.options.timestamps && tcp.options.sack);
            assert!(!tcp.is_pure_ack());
        }
    }

    #[test]
    fn snap_length_does_not_change_sizes() {
        let bytes = packet(false);
        let whole = parse(&bytes, bytes.len()).unwrap();
        assert_eq!(parse(&bytes[..64], bytes.len()).unwrap(), whole);
        let cut = parse(&bytes[..45], bytes.len()).unwrap();
        assert_eq!((cut.payload_len, cut.options.sack), (100, false));
        assert_eq!(parse(&bytes[..39], bytes.len()), Err(NotTcp::Short));
    }

    #[test]
    fn ethernet_padding_is_not_payload() {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([1; 4], [2; 4], 64).tcp(1, 2, 3, 4).ack(5).write(&mut bytes, &[]).unwrap();
        bytes.extend([0; 6]);
        let tcp = parse(&bytes, bytes.len()).unwrap();
        assert_eq!((tcp.payload_len, tcp.ip_len), (0, 40));
        assert!(tcp.is_pure_ack());
    }

    #[test]
    fn zero_total_length_takes_the_frame() {
        for v6 in [false, true] {
            let mut bytes = packet(v6);
            let field = if v6 { 4..6 } else { 2..4 };
            bytes[field].fill(0);
            let header = if v6 { 84 } else { 64 };
            assert_eq!(parse(&bytes, 70_000).unwrap().payload_len, 70_000 - header);
        }
    }

    #[test]
    fn extension_headers_and_fragments() {
        let tcp = &packet(true)[40..];
        let with = |next: u8, extension: &[u8]| {
            let mut bytes = packet(true)[..40].to_vec();
            bytes[6] = next;
            bytes[4..6].copy_from_slice(&((extension.len() + tcp.len()) as u16).to_be_bytes());
            bytes.extend_from_slice(extension);
            bytes.extend_from_slice(tcp);
            parse(&bytes, bytes.len())
        };
        assert_eq!(with(0, &[60, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]).unwrap().payload_len, 100);
        assert_eq!(
            with(51, &[6, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap().seq,
            7
        );
        assert_eq!(with(44, &[6, 0, 0, 1, 0, 0, 0, 0]).unwrap().payload_len, 100);
        assert_eq!(with(44, &[6, 0, 0, 8, 0, 0, 0, 0]), Err(NotTcp::Fragment));
        assert_eq!(with(58, &[]), Err(NotTcp::Other));
        let mut v4 = packet(false);
        v4[7] = 1;
        assert_eq!(parse(&v4, v4.len()), Err(NotTcp::Fragment));
    }
}
