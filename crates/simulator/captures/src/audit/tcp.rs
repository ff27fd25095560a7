//! Extracts from IP packets the TCP fields that the audit needs.

use std::net::SocketAddr;

use tacit_packet::tcp::Flags;
use tacit_packet::wire::headers::{self, Fragment, Headers, TcpOption, Transport};

use crate::capture::link::IpBytes;

/// Why a packet has no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTcp {
    /// Another protocol.
    Other,
    /// A fragment without the TCP header.
    Fragment,
    /// Truncated before the end of the TCP flags, or malformed.
    Short,
}

/// A TCP segment's header, as far as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tcp {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Length of the IP packet in bytes, captured or not.
    pub ip_len: u32,
    /// Length of the IP and TCP headers in bytes.
    pub header_len: u32,
    /// Length of the TCP header in bytes.
    pub tcp_header_len: u32,
    pub payload_len: u32,
    pub seq: u32,
    pub ack: u32,
    pub flags: Flags,
    /// `None` if it was not captured.
    pub window: Option<u16>,
    pub options: Options,
    /// IPv4 identification.
    pub ip_id: Option<u16>,
    /// The captured TCP header without its checksum, which offloading interfaces compute after the capture.
    pub header: [u8; 60],
}

/// The TCP options that the audit needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub timestamps: bool,
    pub sack: bool,
    pub mss: Option<u16>,
}

/// IP protocol number of TCP (RFC 9293 section 3.1).
const PROTOCOL_TCP: u8 = 6;
/// Length of a TCP header up to and including the flags, up to and including the window, and without options.
const UP_TO_FLAGS: usize = 14;
const UP_TO_WINDOW: usize = 16;
const WITHOUT_OPTIONS: usize = 20;

impl Tcp {
    /// True for a pure ACK.
    pub fn is_pure_ack(&self) -> bool {
        self.payload_len == 0 && self.flags.only_acknowledge()
    }

    /// Parses a packet that starts with the IP header.
    pub fn parse(ip: &IpBytes<'_>) -> Result<Self, NotTcp> {
        let mut headers = Headers::read(ip.bytes).ok_or(NotTcp::Short)?;
        if headers.fragment == Fragment::Later && headers.protocol == PROTOCOL_TCP {
            return Err(NotTcp::Fragment);
        }
        let captured = ip.bytes.len().saturating_sub(headers.header_len as usize);
        if matches!(headers.transport, Transport::Unreadable)
            && (UP_TO_FLAGS..WITHOUT_OPTIONS).contains(&captured)
        {
            // Window, checksum and urgent pointer were not captured, and are not needed: zeros.
            let mut bytes = ip.bytes.to_vec();
            bytes.resize(headers.header_len as usize + WITHOUT_OPTIONS, 0);
            headers = Headers::read(&bytes).ok_or(NotTcp::Short)?;
        }
        let tcp = match &headers.transport {
            Transport::Tcp(tcp) => tcp,
            Transport::Unreadable => return Err(NotTcp::Short),
            Transport::Udp { .. } | Transport::Other => return Err(NotTcp::Other),
        };
        let [source, destination] = headers.ends();
        let header_len = headers.header_len + tcp.header_len;
        // If the header does not contain the length, use that of the frame. No packet is longer than what carries it.
        let ip_len = headers.stated_len.unwrap_or(u32::MAX).min(ip.on_link);
        Ok(Self {
            source,
            destination,
            ip_len,
            header_len,
            tcp_header_len: tcp.header_len,
            payload_len: ip_len.checked_sub(header_len).ok_or(NotTcp::Short)?,
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            window: (captured >= UP_TO_WINDOW).then_some(tcp.window),
            options: Options::parse(tcp),
            ip_id: ip_id(ip.bytes),
            header: without_checksum(&ip.bytes[headers.header_len as usize..], tcp.header_len),
        })
    }
}

fn ip_id(ip: &[u8]) -> Option<u16> {
    match ip {
        [version, _, _, _, high, low, ..] if version >> 4 == 4 => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

fn without_checksum(tcp: &[u8], header_len: u32) -> [u8; 60] {
    let mut header = [0; 60];
    let there = tcp.len().min(header_len as usize).min(header.len());
    header[..there].copy_from_slice(&tcp[..there]);
    header[16..18].fill(0);
    header
}

impl Options {
    fn parse(tcp: &headers::Tcp) -> Self {
        let mut options = Self::default();
        for option in tcp.options().map_while(Result::ok) {
            match (option.kind, option.len, option.value) {
                (TcpOption::MSS, 2, [high, low]) => options.mss = Some(u16::from_be_bytes([*high, *low])),
                (TcpOption::SACK, ..) => options.sack = true,
                (TcpOption::TIMESTAMPS, 8, _) => options.timestamps = true,
                _ => {}
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, TcpOptionElement};

    fn parse(bytes: &[u8], on_link: usize) -> Result<Tcp, NotTcp> {
        Tcp::parse(&IpBytes { bytes, on_link: on_link as u32, interface: None, tunnel: None, mode: None })
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
            assert_eq!((tcp.seq, tcp.ack, tcp.window), (7, 99, Some(1024)));
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
        for (len, window) in [(39, Some(1024)), (36, Some(1024)), (35, None), (34, None)] {
            let cut = parse(&bytes[..len], bytes.len()).unwrap();
            assert_eq!((cut.seq, cut.ack, cut.flags), (whole.seq, whole.ack, whole.flags), "{len}");
            assert_eq!((cut.payload_len, cut.header_len, cut.window), (100, 64, window), "{len}");
        }
        assert_eq!(parse(&bytes[..33], bytes.len()), Err(NotTcp::Short));
    }

    /// As Wireshark, which calls such a length bogus.
    #[test]
    fn no_packet_is_longer_than_what_carries_it() {
        let bytes = packet(false);
        let carried = parse(&bytes[..bytes.len() - 30], bytes.len() - 30).unwrap();
        assert_eq!((carried.payload_len, carried.ip_len), (70, bytes.len() as u32 - 30));
        assert_eq!(parse(&bytes[..60], 60), Err(NotTcp::Short), "not even its headers");
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
    fn later_fragments_and_other_protocols_are_told_apart() {
        let mut fragment = packet(false);
        fragment[7] = 1;
        assert_eq!(parse(&fragment, fragment.len()), Err(NotTcp::Fragment));
        fragment[9] = 17;
        assert_eq!(parse(&fragment, fragment.len()), Err(NotTcp::Other), "of a UDP datagram");
        for v6 in [false, true] {
            let mut icmp = packet(v6);
            icmp[if v6 { 6 } else { 9 }] = if v6 { 58 } else { 1 };
            assert_eq!(parse(&icmp, icmp.len()), Err(NotTcp::Other));
        }
    }
}
