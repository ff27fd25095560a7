//! An IP packet as a struct, as hosts exchange them in the simulator.
//!
//! The payload is only a length: its bytes can be computed from flow and position. [`wire`](crate::wire) encodes and
//! decodes packets.

use crate::FlowKey;
use crate::tack;
use crate::tcp::{AckInfo, Segment};
use crate::udp::Datagram;
use crate::units::{Bytes, FlowId, HostId};

/// The IP version of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4 without options: 20 bytes of header.
    #[default]
    V4,
    /// IPv6 without extension headers: 40 bytes of header.
    V6,
}

impl IpVersion {
    /// Length of the IP header in bytes.
    pub const fn header_len(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// The ECN field (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, codepoint 01.
    Ect1,
    /// ECN-capable, codepoint 10.
    Ect0,
    /// Congestion experienced.
    Ce,
}

/// The IP header fields that vary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpHeader {
    /// IP version, which determines the header length.
    pub version: IpVersion,
    /// ECN field.
    pub ecn: Ecn,
    /// IPv4 identification, incremented per packet of a connection; unused in IPv6.
    pub identification: u16,
}

impl IpHeader {
    /// The header of the next packet of a connection that has counted `sent` packets.
    #[inline(always)]
    pub fn numbered(version: IpVersion, ecn: Ecn, sent: &mut u16) -> Self {
        let identification = match version {
            IpVersion::V4 => *sent,
            IpVersion::V6 => 0,
        };
        *sent = sent.wrapping_add(1);
        Self { version, ecn, identification }
    }
}

/// Payload of the IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Datagram),
    /// A UDP datagram with a TACK packet.
    Tack(tack::Packet),
}

/// One IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The flow it belongs to; on the wire, the port numbers.
    pub flow: FlowId,
    /// Sending host; on the wire, the source address.
    pub source: HostId,
    /// Receiving host; on the wire, the destination address.
    pub destination: HostId,
    /// IP header fields.
    pub ip: IpHeader,
    /// Transport header and payload length.
    pub transport: Transport,
}

impl Packet {
    /// Length of the whole IP packet in bytes, with headers and payload.
    #[inline]
    pub fn len(&self) -> Bytes {
        let transport = match &self.transport {
            Transport::Tcp(segment) => segment.header_len() + segment.payload_len,
            Transport::Udp(datagram) => Datagram::HEADER_LEN + datagram.payload_len,
            Transport::Tack(packet) => Datagram::HEADER_LEN + packet.len(),
        };
        Bytes(u64::from(self.ip.version.header_len() + transport))
    }

    /// Payload bytes, of a stream or of a datagram.
    #[inline]
    pub fn payload_len(&self) -> u64 {
        u64::from(match &self.transport {
            Transport::Tcp(segment) => segment.payload_len,
            Transport::Udp(datagram) => datagram.payload_len,
            Transport::Tack(packet) => packet.payload_len(),
        })
    }

    /// Never true: a packet has headers.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// True for a TCP segment that only acknowledges ([`Segment::is_pure_ack`]).
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        matches!(&self.transport, Transport::Tcp(segment) if segment.is_pure_ack())
    }

    /// Fields of a pure TCP ACK with no options except timestamps and SACK; `None` for anything else.
    #[inline]
    pub fn ack_info(&self) -> Option<AckInfo> {
        match &self.transport {
            Transport::Tcp(segment) => AckInfo::from_segment(segment),
            Transport::Udp(_) | Transport::Tack(_) => None,
        }
    }

    /// The key of its flow and direction.
    #[inline]
    pub fn flow_key(&self) -> FlowKey {
        FlowKey::simulated(self.flow, self.source)
    }

    /// True for packets that only acknowledge: a pure TCP ACK, a TACK or IACK, or a [report](crate::udp::Reporter).
    #[inline]
    pub fn is_feedback(&self) -> bool {
        match &self.transport {
            Transport::Tcp(segment) => segment.is_pure_ack(),
            Transport::Udp(datagram) => datagram.is_report(),
            Transport::Tack(packet) => packet.is_feedback(),
        }
    }
}
