//! Encoding and decoding of packets.
//!
//! A [`Packet`] holds the fields that vary, and the rest can be computed: addresses from [`HostId`]s and ports from
//! [`FlowId`] (see [`address`]), the payload from flow, direction and stream position (see [`payload`]), the layout of
//! TCP options from [`Segment::header_len`]. A TACK packet is the payload of a datagram, encoded by [`tack::wire`].
//! Therefore `decode(encode(p)) == p`, and [`decode`] refuses everything that this crate would not have sent, including
//! other payload. TTL and DSCP, which networks change, are ignored.

pub mod address;
pub mod headers;
mod options;
pub mod payload;
mod segments;

use etherparse::{IpNumber, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};

use crate::tcp::{Flags, Segment};
use crate::udp::Datagram;
use crate::units::{FlowId, HostId, SeqNumber};
use crate::{Ecn, IpHeader, IpVersion, Packet, Transport, tack};

use payload::Stream;
pub use segments::segment;

/// TTL of packets (RFC 1700's recommendation, the default of Linux).
const TTL: u8 = 64;

/// Why a packet cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Only 2^24 hosts have an IPv4 address in 10/8.
    #[error("{0} has no IPv4 address in 10.0.0.0/8")]
    Host(HostId),
    /// Flows are identified by port, and there are only [`address::MAX_FLOWS`].
    #[error("{0} has no port number: flows are numbered below {max}", max = address::MAX_FLOWS)]
    Flow(FlowId),
    /// The length does not fit in the 16-bit length field.
    #[error("{0} bytes do not fit in an IP packet")]
    TooLong(u64),
    /// TCP options need more than 40 bytes.
    #[error("{0} bytes of TCP options, where 40 fit")]
    Options(u32),
    /// The payload does not have the length that the packet gives.
    #[error("{0} bytes of payload in a packet with {1}")]
    Content(usize, u32),
    /// There is no room for the datagram's number.
    #[error("{0} bytes of UDP payload cannot hold the datagram's number")]
    ShortDatagram(u32),
    /// The content of a TACK packet cannot be encoded.
    #[error("TACK: {0}")]
    Tack(tack::wire::EncodeError),
}

/// Why bytes are not a packet of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end within this header.
    #[error("the bytes end within the {0} header")]
    Truncated(&'static str),
    /// The IP version is not 4 or 6, or the header contradicts itself.
    #[error("not a sound IP header")]
    IpHeader,
    /// A length field disagrees with the number of bytes.
    #[error("the {0} length field disagrees with the bytes there are")]
    Length(&'static str),
    /// A checksum is wrong.
    #[error("wrong {0} checksum")]
    Checksum(&'static str),
    /// There are IP options or extension headers, which we never send.
    #[error("IP options or extension headers")]
    IpOptions,
    /// It is a fragment.
    #[error("a fragment")]
    Fragment,
    /// It is neither TCP nor UDP.
    #[error("IP protocol {0} is neither TCP nor UDP")]
    Protocol(u8),
    /// An address is outside 10/8 or our part of fd00::/8.
    #[error("an address that names no host")]
    Address,
    /// The ports belong to no flow, or to the other direction.
    #[error("ports {0} and {1} name no flow in this direction")]
    Ports(u16, u16),
    /// A TCP header field is used that we never use.
    #[error("an unsound or unused field in the TCP header")]
    TcpHeader,
    /// A TCP option is unknown, invalid, repeated, or not in our order.
    #[error("unknown, unsound or differently laid out TCP options")]
    TcpOptions,
    /// A byte of the payload differs from the one for its stream position.
    #[error("payload byte {0} is not the one for its place in the stream")]
    Payload(u32),
    /// A datagram to TACK's port is not a TACK packet.
    #[error("TACK: {0}")]
    Tack(tack::wire::DecodeError),
}

/// Encodes `packet`, including checksums.
pub fn encode(packet: &Packet) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    encode_into(packet, &mut bytes)?;
    Ok(bytes)
}

/// The first `snap_len` bytes of `packet`, for captures: headers, and as much payload as fits. The transport checksum
/// is that of the whole packet.
pub fn encode_headers(packet: &Packet, snap_len: usize) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = encode(packet)?;
    bytes.truncate(snap_len);
    Ok(bytes)
}

/// Appends the bytes of `packet` to `bytes`, which is unchanged on error.
pub fn encode_into(packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let stream = Stream::from_packet(packet);
    let content = match &packet.transport {
        Transport::Tcp(segment) => stream.tcp(segment),
        Transport::Udp(datagram) => stream.udp(*datagram)?,
        Transport::Tack(packet) => stream.tack(packet),
    };
    encode_foreign(packet, &content, bytes)
}

/// Appends the bytes of `packet` with the payload `content` to `bytes`, which is unchanged on error; [`decode_foreign`] reads
/// the result.
///
/// # Errors
///
/// As for [`encode`], and if `content` does not have the length that the packet gives.
pub fn encode_foreign(packet: &Packet, content: &[u8], bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let payload_len = match &packet.transport {
        Transport::Tcp(segment) => segment.payload_len,
        Transport::Udp(datagram) => datagram.payload_len,
        Transport::Tack(packet) => packet.payload_len(),
    };
    if payload_len as usize != content.len() {
        return Err(EncodeError::Content(content.len(), payload_len));
    }
    let ports = address::ports(packet)?;
    let ip = Ip::encode(packet)?;
    // Everything that can fail comes before the first byte is written.
    match &packet.transport {
        Transport::Tcp(segment) => {
            let mut header = tcp_header(segment, ports)?;
            header.checksum = ip.tcp_checksum(&header, content);
            ip.write(bytes);
            bytes.extend_from_slice(&header.to_bytes());
            bytes.extend_from_slice(content);
        }
        Transport::Udp(_) => write_udp(&ip, ports, content, bytes),
        Transport::Tack(packet) => {
            let mut payload = Vec::new();
            tack::wire::encode(packet, content, &mut payload).map_err(EncodeError::Tack)?;
            write_udp(&ip, ports, &payload, bytes);
        }
    }
    Ok(())
}

/// Decodes `bytes`, which must be exactly one packet.
///
/// # Errors
///
/// If [`encode`] would not have produced the bytes, apart from TTL, DSCP and the form of a zero checksum.
pub fn decode(bytes: &[u8]) -> Result<Packet, DecodeError> {
    let (packet, content) = decode_foreign(bytes)?;
    Stream::from_packet(&packet).verify(&packet.transport, content)?;
    Ok(packet)
}

/// Decodes the packet in `bytes` and its payload, like [`decode`] but with any payload.
///
/// # Errors
///
/// As for [`decode`], but never [`DecodeError::Payload`].
pub fn decode_foreign(bytes: &[u8]) -> Result<(Packet, &[u8]), DecodeError> {
    let (ip, rest) = Ip::decode(bytes)?;
    let (source, destination) = ip.hosts()?;
    let (transport, ports, content) = match ip.protocol() {
        IpNumber::TCP => decode_tcp(&ip, rest)?,
        IpNumber::UDP => decode_udp(&ip, rest)?,
        other => return Err(DecodeError::Protocol(other.0)),
    };
    let flow = address::flow(source, destination, ports, &transport)?;
    Ok((Packet { flow, source, destination, ip: ip.fields(), transport }, content))
}

/// Transport header, ports, and the payload that follows.
type Decoded<'a> = (Transport, (u16, u16), &'a [u8]);

/// An IP header of either version.
enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl Ip {
    fn encode(packet: &Packet) -> Result<Self, EncodeError> {
        let protocol = match packet.transport {
            Transport::Tcp(_) => IpNumber::TCP,
            Transport::Udp(_) | Transport::Tack(_) => IpNumber::UDP,
        };
        let too_long = EncodeError::TooLong(packet.len().0);
        match packet.ip.version {
            IpVersion::V4 => {
                let total_len = u16::try_from(packet.len().0).map_err(|_| too_long)?;
                let mut header = Ipv4Header {
                    ecn: ecn_bits(packet.ip.ecn).try_into().unwrap_or_default(),
                    total_len,
                    identification: packet.ip.identification,
                    dont_fragment: true,
                    time_to_live: TTL,
                    protocol,
                    source: address::ipv4(packet.source)?,
                    destination: address::ipv4(packet.destination)?,
                    ..Ipv4Header::default()
                };
                header.header_checksum = header.calc_header_checksum();
                Ok(Self::V4(header))
            }
            IpVersion::V6 => {
                let payload = packet.len().0 - u64::from(IpVersion::V6.header_len());
                Ok(Self::V6(Ipv6Header {
                    traffic_class: ecn_bits(packet.ip.ecn),
                    payload_length: u16::try_from(payload).map_err(|_| too_long)?,
                    next_header: protocol,
                    hop_limit: TTL,
                    source: address::ipv6(packet.source),
                    destination: address::ipv6(packet.destination),
                    ..Ipv6Header::default()
                }))
            }
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::V4(header) => bytes.extend_from_slice(&header.to_bytes()),
            Self::V6(header) => bytes.extend_from_slice(&header.to_bytes()),
        }
    }

    fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        match bytes.first().ok_or(DecodeError::Truncated("IP"))? >> 4 {
            4 => Self::decode_v4(bytes),
            6 => {
                if bytes.len() < Ipv6Header::LEN {
                    return Err(DecodeError::Truncated("IP"));
                }
                let (header, rest) = Ipv6Header::from_slice(bytes).map_err(|_| DecodeError::IpHeader)?;
                if usize::from(header.payload_length) != rest.len() {
                    return Err(DecodeError::Length("IP"));
                }
                if header.flow_label.value() != 0 {
                    return Err(DecodeError::IpHeader);
                }
                Ok((Self::V6(header), rest))
            }
            _ => Err(DecodeError::IpHeader),
        }
    }

    fn decode_v4(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        if bytes.len() < Ipv4Header::MIN_LEN {
            return Err(DecodeError::Truncated("IP"));
        }
        let (header, rest) = Ipv4Header::from_slice(bytes).map_err(|_| DecodeError::IpHeader)?;
        if usize::from(header.total_len) != bytes.len() {
            return Err(DecodeError::Length("IP"));
        }
        if header.header_checksum != header.calc_header_checksum() {
            return Err(DecodeError::Checksum("IP"));
        }
        // The reserved flag, which the header struct does not contain.
        if bytes[6] & 0x80 != 0 {
            return Err(DecodeError::IpHeader);
        }
        if !header.options.is_empty() {
            return Err(DecodeError::IpOptions);
        }
        if header.is_fragmenting_payload() {
            return Err(DecodeError::Fragment);
        }
        Ok((Self::V4(header), rest))
    }

    fn protocol(&self) -> IpNumber {
        match self {
            Self::V4(header) => header.protocol,
            Self::V6(header) => header.next_header,
        }
    }

    fn hosts(&self) -> Result<(HostId, HostId), DecodeError> {
        match self {
            Self::V4(header) => {
                Ok((address::host_of_ipv4(header.source)?, address::host_of_ipv4(header.destination)?))
            }
            Self::V6(header) => {
                Ok((address::host_of_ipv6(header.source)?, address::host_of_ipv6(header.destination)?))
            }
        }
    }

    fn fields(&self) -> IpHeader {
        match self {
            Self::V4(header) => IpHeader {
                version: IpVersion::V4,
                ecn: ecn_of(header.ecn.value()),
                identification: header.identification,
            },
            Self::V6(header) => {
                IpHeader { version: IpVersion::V6, ecn: ecn_of(header.traffic_class & 3), identification: 0 }
            }
        }
    }

    /// The checksum that `header` should have before `content`, which fits in the IP packet.
    fn tcp_checksum(&self, header: &TcpHeader, content: &[u8]) -> u16 {
        match self {
            Self::V4(ip) => header.calc_checksum_ipv4(ip, content),
            Self::V6(ip) => header.calc_checksum_ipv6(ip, content),
        }
        .expect("the IP length field has bounded the content")
    }

    fn udp_checksum(&self, header: &UdpHeader, content: &[u8]) -> u16 {
        match self {
            Self::V4(ip) => header.calc_checksum_ipv4(ip, content),
            Self::V6(ip) => header.calc_checksum_ipv6(ip, content),
        }
        .expect("the IP length field has bounded the content")
    }
}

/// RFC 3168 section 5.
fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

/// The ECN field in the two low `bits` (RFC 3168 section 5).
pub fn ecn_of(bits: u8) -> Ecn {
    match bits & 0b11 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

fn tcp_header(segment: &Segment, ports: (u16, u16)) -> Result<TcpHeader, EncodeError> {
    let mut header = TcpHeader::new(ports.0, ports.1, segment.seq.0, segment.window);
    header.acknowledgment_number = segment.ack.0;
    let has = |flag| segment.flags.contains(flag);
    (header.fin, header.syn, header.rst, header.psh) =
        (has(Flags::FIN), has(Flags::SYN), has(Flags::RST), has(Flags::PSH));
    (header.ack, header.urg, header.ece, header.cwr) =
        (has(Flags::ACK), has(Flags::URG), has(Flags::ECE), has(Flags::CWR));
    let options = options::encode(segment)?;
    header
        .set_options_raw(options.as_slice())
        .map_err(|_| EncodeError::Options(segment.header_len() - 20))?;
    Ok(header)
}

fn decode_tcp<'a>(ip: &Ip, bytes: &'a [u8]) -> Result<Decoded<'a>, DecodeError> {
    if bytes.len() < TcpHeader::MIN_LEN {
        return Err(DecodeError::Truncated("TCP"));
    }
    let reserved = bytes[12] & 0x0f;
    let (header, content) = TcpHeader::from_slice(bytes).map_err(|_| DecodeError::TcpHeader)?;
    if !sums_agree(header.checksum, ip.tcp_checksum(&header, content)) {
        return Err(DecodeError::Checksum("TCP"));
    }
    if reserved != 0 || header.urgent_pointer != 0 {
        return Err(DecodeError::TcpHeader);
    }
    let mut segment = Segment {
        seq: SeqNumber(header.sequence_number),
        ack: SeqNumber(header.acknowledgment_number),
        payload_len: content.len() as u32,
        window: header.window_size,
        flags: Flags(bytes[13]),
        ..Segment::default()
    };
    options::decode(&header, &mut segment)?;
    Ok((Transport::Tcp(segment), (header.source_port, header.destination_port), content))
}

/// In one's complement, zero has two forms (RFC 1624 section 3), and Linux sends either.
fn sums_agree(one: u16, other: u16) -> bool {
    one == other || (matches!(one, 0 | 0xffff) && matches!(other, 0 | 0xffff))
}

/// Appends `ip` and a datagram with `payload`, which fits in it.
fn write_udp(ip: &Ip, ports: (u16, u16), payload: &[u8], bytes: &mut Vec<u8>) {
    let mut header = UdpHeader {
        source_port: ports.0,
        destination_port: ports.1,
        // The IP length field limits it.
        length: (Datagram::HEADER_LEN as usize + payload.len()) as u16,
        checksum: 0,
    };
    header.checksum = ip.udp_checksum(&header, payload);
    ip.write(bytes);
    bytes.extend_from_slice(&header.to_bytes());
    bytes.extend_from_slice(payload);
}

fn decode_udp<'a>(ip: &Ip, bytes: &'a [u8]) -> Result<Decoded<'a>, DecodeError> {
    let (header, content) = UdpHeader::from_slice(bytes).map_err(|_| DecodeError::Truncated("UDP"))?;
    if usize::from(header.length) != bytes.len() {
        return Err(DecodeError::Length("UDP"));
    }
    if !sums_agree(header.checksum, ip.udp_checksum(&header, content)) {
        return Err(DecodeError::Checksum("UDP"));
    }
    let ports = (header.source_port, header.destination_port);
    if address::is_tack(ports) {
        let (packet, content) = tack::wire::decode(content).map_err(DecodeError::Tack)?;
        return Ok((Transport::Tack(packet), ports, content));
    }
    let number = content.first_chunk().ok_or(DecodeError::Length("UDP"))?;
    let datagram = Datagram { number: u64::from_be_bytes(*number), payload_len: content.len() as u32 };
    Ok((Transport::Udp(datagram), ports, content))
}
