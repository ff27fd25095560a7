//! Payload of a live world: IP packets as bytes, in addition to the simulated packets of background stations.

use std::net::IpAddr;
use std::sync::Arc;

use tacit_between::hack::{AckPacket, FlowTimestamps, Rides};
use tacit_link::PayloadClass;
use tacit_link::wifi::AccessCategory;
use tacit_packet::tcp::{Flags, Segment, Timestamps};
use tacit_packet::units::{Bytes, FlowId, HostId, Instant};
use tacit_packet::wire::headers::{Fragment, Headers, TcpOption, Transport};
use tacit_packet::{Ecn, FlowKey, Packet, udp, wire};
use tacit_sim::Carried;
use tacit_sim::capture::FrameBytes;

use crate::table::AddressTable;

/// An IP packet of a real host.
#[derive(Clone, Debug)]
pub struct Datagram {
    bytes: Arc<[u8]>,
    destination: HostId,
    summary: Summary,
    entry: Option<Entry>,
}

/// How a packet entered the hop.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The medium's time of entry.
    pub at: Instant,
    /// Its checksum was computed by this program on behalf of the kernel.
    pub verified: bool,
}

impl Datagram {
    /// Creates a datagram from `bytes` for the host `destination`. Any content is allowed: a packet that cannot be
    /// parsed is carried unchanged.
    pub fn new(bytes: &[u8], destination: HostId) -> Self {
        Self { bytes: bytes.into(), destination, summary: Summary::parse(bytes), entry: None }
    }

    /// The same packet, marked as received from a device.
    pub fn entered(self, entry: Entry) -> Self {
        Self { entry: Some(entry), ..self }
    }

    /// How it entered the hop; `None` for a packet created or reconstructed by this program.
    pub fn entry(&self) -> Option<Entry> {
        self.entry
    }

    /// A packet received as `bytes` on a link-layer ACK. Its destination follows from its address; `None` if there is
    /// none.
    fn addressed(bytes: &[u8], addresses: &AddressTable) -> Option<Self> {
        let summary = Summary::parse(bytes);
        let [_, destination] = summary.addresses?;
        Some(Self { bytes: bytes.into(), destination: addresses.host_at(destination)?, summary, entry: None })
    }

    /// The IP packet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The destination host.
    pub fn destination(&self) -> HostId {
        self.destination
    }

    /// Summary of its headers.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

/// Header fields of a packet that are needed for accounting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Identifies the flow and direction; the default for an unknown packet.
    pub flow: FlowKey,
    /// Identifies the opposite direction.
    pub reverse: FlowKey,
    /// Contents of the packet.
    pub content: Content,
    /// Source and destination address; `None` for an unparsable packet.
    pub addresses: Option<[IpAddr; 2]>,
}

/// Contents of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// A TCP segment.
    Tcp(TcpSummary),
    /// A UDP datagram.
    Udp {
        /// Length of its payload in bytes.
        payload_len: u32,
    },
    /// A fragment, another protocol, or an unparsable packet.
    #[default]
    Other,
}

/// Fields of a TCP header that are needed for accounting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSummary {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number, if the ACK flag is set.
    pub ack: Option<u32>,
    /// Length of the payload in bytes.
    pub payload_len: u32,
    /// Its flags.
    pub flags: Flags,
    /// Whether it has SACK blocks.
    pub sack: bool,
}

impl TcpSummary {
    /// True for a pure ACK. The codec may still be unable to compress it (because of ECN, unknown options, or a wrong
    /// checksum).
    pub fn is_pure_ack(&self) -> bool {
        self.payload_len == 0 && self.flags.only_acknowledge()
    }
}

impl Summary {
    fn parse(bytes: &[u8]) -> Self {
        let Some((headers, len)) = whole(bytes) else { return Self::default() };
        let payload_from = |header_len: u32| len.saturating_sub(headers.header_len + header_len);
        let content = match &headers.transport {
            // The rest of the packet is in other fragments.
            _ if headers.fragment != Fragment::Whole => Content::Other,
            Transport::Tcp(tcp) => Content::Tcp(TcpSummary {
                seq: tcp.seq,
                ack: tcp.flags.contains(Flags::ACK).then_some(tcp.ack),
                payload_len: payload_from(tcp.header_len),
                flags: tcp.flags,
                sack: tcp.options().flatten().any(|option| option.kind == TcpOption::SACK),
            }),
            Transport::Udp { .. } => Content::Udp { payload_len: payload_from(udp::Datagram::HEADER_LEN) },
            Transport::Unreadable | Transport::Other => Content::Other,
        };
        Self {
            flow: headers.flow_key(),
            reverse: headers.reverse_key(),
            content,
            addresses: Some([headers.source, headers.destination]),
        }
    }

    /// True for a pure ACK.
    pub fn is_pure_ack(&self) -> bool {
        matches!(&self.content, Content::Tcp(tcp) if tcp.is_pure_ack())
    }
}

/// The Timestamps option of a TCP segment.
fn timestamps(bytes: &[u8]) -> Option<Timestamps> {
    let (headers, _) = whole(bytes).filter(|(headers, _)| headers.fragment == Fragment::Whole)?;
    let Transport::Tcp(tcp) = &headers.transport else { return None };
    tcp.options().flatten().find(|option| option.kind == TcpOption::TIMESTAMPS)?.timestamps()
}

/// The headers and the length of a packet, if it has all the bytes that its length field states.
fn whole(bytes: &[u8]) -> Option<(Headers, u32)> {
    let headers = Headers::read(bytes)?;
    let len = headers.stated_len.filter(|len| *len as usize <= bytes.len())?;
    Some((headers, len))
}

/// Frames on the links of a live world.
#[derive(Clone, Debug)]
pub enum Frame {
    /// A packet of a simulated host.
    Simulated(Packet),
    /// A packet of a real host.
    Live(Datagram),
}

/// Compares only bytes, because a packet reconstructed from a compressed ACK has no other attributes.
impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Simulated(one), Self::Simulated(other)) => one == other,
            (Self::Live(one), Self::Live(other)) => one.bytes == other.bytes,
            (Self::Simulated(packet), Self::Live(datagram))
            | (Self::Live(datagram), Self::Simulated(packet)) => {
                let mut bytes = Vec::new();
                wire::encode_into(packet, &mut bytes).is_ok() && bytes[..] == datagram.bytes[..]
            }
        }
    }
}

/// The Differentiated Services Code Point of an IP packet (RFC 2474 section 3); 0 if it cannot be parsed.
fn dscp(bytes: &[u8]) -> u8 {
    match bytes {
        [first, tos, ..] if *first >> 4 == 4 => *tos >> 2,
        [first, second, ..] if *first >> 4 == 6 => (*first << 4 | *second >> 4) >> 2,
        _ => 0,
    }
}

/// The ECN field of an IP packet (RFC 3168 section 5); [`Ecn::NotEct`] if it cannot be parsed.
fn ecn(bytes: &[u8]) -> Ecn {
    wire::ecn_of(match bytes {
        [first, tos, ..] if *first >> 4 == 4 => *tos,
        // The traffic class starts in the second half of the first byte.
        [first, second, ..] if *first >> 4 == 6 => *second >> 4,
        _ => 0,
    })
}

/// Sets the ECN field of an IP packet to congestion experienced, unless it is zero, and corrects the checksum of an
/// IPv4 header (RFC 3168 section 5, RFC 1624). Returns false if the field is zero or the packet cannot be parsed.
fn mark_congestion(bytes: &mut [u8]) -> bool {
    const CE: u8 = 0b11;
    match bytes {
        [first, tos, ..] if *first >> 4 == 4 && *tos & CE != 0 => {
            let old = u16::from_be_bytes([*first, *tos]);
            *tos |= CE;
            let new = u16::from_be_bytes([*first, *tos]);
            if let Some([high, low]) = bytes.get_mut(10..12) {
                // RFC 1624 equation 3: HC' = ~(~HC + ~m + m').
                let sum = u32::from(!u16::from_be_bytes([*high, *low])) + u32::from(!old) + u32::from(new);
                let folded = (sum & 0xffff) + (sum >> 16);
                [*high, *low] = (!(((folded & 0xffff) + (folded >> 16)) as u16)).to_be_bytes();
            }
            true
        }
        // The traffic class starts in the second half of the first byte.
        [first, second, ..] if *first >> 4 == 6 && *second & (CE << 4) != 0 => {
            *second |= CE << 4;
            true
        }
        _ => false,
    }
}

impl AckPacket for Frame {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Simulated(packet) => AckPacket::write_to(packet, bytes),
            Self::Live(datagram) => bytes.extend_from_slice(&datagram.bytes),
        }
    }

    fn rides(&self) -> Rides {
        match self {
            Self::Simulated(packet) => packet.rides(),
            Self::Live(datagram) if datagram.summary.is_pure_ack() => Rides::Compressed,
            Self::Live(_) => Rides::Never,
        }
    }

    fn flow_key(&self) -> FlowKey {
        match self {
            Self::Simulated(packet) => packet.flow_key(),
            Self::Live(datagram) => datagram.summary.flow,
        }
    }

    fn reverse_key(&self) -> FlowKey {
        match self {
            Self::Simulated(packet) => AckPacket::reverse_key(packet),
            Self::Live(datagram) => datagram.summary.reverse,
        }
    }

    fn segment(&self) -> Option<Segment> {
        match self {
            Self::Simulated(packet) => AckPacket::segment(packet),
            Self::Live(datagram) => wire::segment(&datagram.bytes).map(|(_, segment)| segment),
        }
    }

    fn timestamps(&self) -> Option<FlowTimestamps> {
        match self {
            Self::Simulated(packet) => packet.timestamps(),
            Self::Live(datagram) => {
                let reverse = datagram.summary.reverse;
                timestamps(&datagram.bytes).map(|timestamps| FlowTimestamps { reverse, timestamps })
            }
        }
    }
}

impl From<Packet> for Frame {
    fn from(packet: Packet) -> Self {
        Self::Simulated(packet)
    }
}

impl Carried for Frame {
    type Addresses = AddressTable;

    fn from_bytes(bytes: &[u8], addresses: &AddressTable) -> Option<Self> {
        match addresses.simulated(bytes) {
            Some(packet) => Some(Self::Simulated(packet)),
            None => Datagram::addressed(bytes, addresses).map(Self::Live),
        }
    }

    fn len(&self) -> Bytes {
        match self {
            Self::Simulated(packet) => packet.len(),
            Self::Live(datagram) => Bytes(datagram.bytes.len() as u64),
        }
    }

    fn class(&self) -> PayloadClass {
        match self {
            Self::Simulated(packet) => packet.class(),
            Self::Live(datagram) if datagram.summary.is_pure_ack() => PayloadClass::Ack,
            Self::Live(_) => PayloadClass::Data,
        }
    }

    fn ecn(&self) -> Ecn {
        match self {
            Self::Simulated(packet) => packet.ip.ecn,
            Self::Live(datagram) => ecn(&datagram.bytes),
        }
    }

    fn mark_congestion(&mut self) {
        match self {
            Self::Simulated(packet) => packet.mark_congestion(),
            Self::Live(datagram) => {
                mark_congestion(Arc::make_mut(&mut datagram.bytes));
            }
        }
    }

    fn destination(&self) -> HostId {
        match self {
            Self::Simulated(packet) => packet.destination,
            Self::Live(datagram) => datagram.destination,
        }
    }

    fn flow(&self) -> Option<FlowId> {
        match self {
            Self::Simulated(packet) => Some(packet.flow),
            Self::Live(_) => None,
        }
    }

    fn access_category(&self) -> AccessCategory {
        match self {
            Self::Simulated(_) => AccessCategory::BestEffort,
            Self::Live(datagram) => AccessCategory::of_dscp(dscp(&datagram.bytes)),
        }
    }

    fn trace_word(&self) -> u64 {
        match self {
            Self::Simulated(packet) => packet.trace_word(),
            Self::Live(datagram) => datagram.summary.flow.as_u64(),
        }
    }

    fn simulated(&self) -> Option<&Packet> {
        match self {
            Self::Simulated(packet) => Some(packet),
            Self::Live(_) => None,
        }
    }
}

impl FrameBytes for Frame {
    fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Simulated(packet) => FrameBytes::write_to(packet, out),
            Self::Live(datagram) => out.extend_from_slice(&datagram.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{Ipv4HeaderSlice, PacketBuilder};
    use proptest::prelude::*;
    use tacit_packet::tcp::SackRange;
    use tacit_packet::units::SeqNumber;

    use super::*;
    use crate::address::Block;

    #[test]
    fn the_access_category_follows_the_code_point() {
        const EXPEDITED: u8 = 46 << 2;
        let category = |bytes: &[u8]| Frame::Live(Datagram::new(bytes, HostId(1))).access_category();
        let (mut v4, mut v6) = (vec![0x45, EXPEDITED], vec![0x60 | EXPEDITED >> 4, EXPEDITED << 4]);
        v4.resize(20, 0);
        v6.resize(40, 0);
        for packet in [v4, v6] {
            assert_eq!(category(&packet), AccessCategory::Voice, "EF");
        }
        assert_eq!(category(&[0x45]), AccessCategory::BestEffort, "cut short");
        assert_eq!(category(&[]), AccessCategory::BestEffort);
    }

    #[test]
    fn a_mark_keeps_the_header_valid_and_only_goes_where_it_is_understood() {
        for (ecn, marked) in [(0, 0), (1, 3), (2, 3), (3, 3)] {
            let mut bytes = Vec::new();
            let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
            builder.write(&mut bytes, b"hello").unwrap();
            bytes[1] = ecn;
            let checksum = Ipv4HeaderSlice::from_slice(&bytes).unwrap().to_header().calc_header_checksum();
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
            let mut frame = Frame::Live(Datagram::new(&bytes, HostId(1)));
            assert_eq!(frame.ecn(), wire::ecn_of(ecn));
            frame.mark_congestion();
            assert_eq!(frame.ecn() == Ecn::Ce, ecn != 0);
            let Frame::Live(datagram) = frame else { unreachable!("it was made live") };
            let header = Ipv4HeaderSlice::from_slice(datagram.bytes()).unwrap();
            assert_eq!(datagram.bytes()[1], marked);
            assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
        }
    }

    type Tcp = etherparse::PacketBuilderStep<etherparse::TcpHeader>;

    fn frame(flags: impl Fn(Tcp) -> Tcp, payload: &[u8]) -> Frame {
        let tcp = PacketBuilder::ipv4([198, 18, 0, 2], [198, 18, 0, 1], 64).tcp(40_000, 5_201, 7, 65_535);
        let mut bytes = Vec::new();
        flags(tcp).write(&mut bytes, payload).unwrap();
        Frame::Live(Datagram::new(&bytes, HostId(0)))
    }

    fn rides(frame: &Frame) -> bool {
        frame.rides() == Rides::Compressed
    }

    #[test]
    fn a_pure_ack_has_no_payload_and_no_flag_but_ack() {
        assert!(rides(&frame(|tcp| tcp.ack(9), b"")));
        assert!(!rides(&frame(|tcp| tcp.ack(9), b"x")));
        assert!(!rides(&frame(|tcp| tcp.ack(9).syn(), b"")));
        assert!(!rides(&frame(|tcp| tcp.ack(9).fin(), b"")));
        assert!(!rides(&frame(|tcp| tcp.ack(9).rst(), b"")));
        assert!(!rides(&frame(|tcp| tcp, b"")));
    }

    #[test]
    fn filters_read_of_bytes_what_they_read_of_packets() {
        use etherparse::TcpOptionElement::{Noop, SelectiveAcknowledgement, Timestamp, WindowScale};
        let info = AckPacket::ack_info;
        let sacking =
            [Noop, Noop, Timestamp(5, 4), Noop, Noop, SelectiveAcknowledgement((20, 30), [None; 3])];
        let ack = info(&frame(|tcp| tcp.ack(9).options(&sacking).unwrap(), b"")).unwrap();
        assert_eq!((ack.ack, ack.flags), (SeqNumber(9), Flags::ACK));
        assert_eq!(ack.timestamps, Some(Timestamps { value: 5, echo_reply: 4 }));
        assert_eq!(ack.sack.as_slice(), [SackRange { start: SeqNumber(20), end: SeqNumber(30) }]);
        assert!(info(&frame(|tcp| tcp.ack(9), b"")).is_some_and(|ack| ack.is_plain()));
        assert!(info(&frame(|tcp| tcp.ack(9).options(&[WindowScale(2)]).unwrap(), b"")).is_none());
        assert!(info(&frame(|tcp| tcp.ack(9), b"x")).is_none());
        assert!(info(&frame(|tcp| tcp.ack(9).psh(), b"")).is_none());
        let Frame::Live(whole) = frame(|tcp| tcp.ack(9), b"") else { panic!("a live frame") };
        for (byte, value) in [(6, 0x20), (20 + 12, 0x51)] {
            let mut bytes = whole.bytes().to_vec();
            bytes[byte] = value;
            assert!(wire::segment(&bytes).is_none(), "a fragment, or a reserved bit");
        }
        assert!((0..whole.bytes().len()).all(|len| wire::segment(&whole.bytes()[..len]).is_none()));
    }

    #[test]
    fn a_fragment_is_no_ack() {
        let Frame::Live(ack) = frame(|tcp| tcp.ack(9), b"") else { panic!("a live frame") };
        let mut bytes = ack.bytes().to_vec();
        bytes[6] = 0x20;
        assert!(!rides(&Frame::Live(Datagram::new(&bytes, HostId(0)))));
    }

    #[test]
    fn the_ways_of_a_connection_know_each_other() {
        let one = frame(|tcp| tcp.ack(9), b"");
        let tcp = PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 64).tcp(5_201, 40_000, 9, 65_535);
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, b"data").unwrap();
        let other = Datagram::new(&bytes, HostId(1));
        let Frame::Live(one) = one else { panic!("a live frame") };
        assert_eq!(one.summary().reverse, other.summary().flow);
        assert_ne!(one.summary().flow, other.summary().flow);
        let Content::Tcp(tcp) = other.summary().content else { panic!("TCP") };
        assert_eq!((tcp.seq, tcp.payload_len, tcp.ack), (9, 4, None));
    }

    #[test]
    fn reconstituted_datagrams_equal_the_originals_and_keep_their_addresses() {
        let ack = frame(|tcp| tcp.ack(9), b"");
        let mut bytes = Vec::new();
        AckPacket::write_to(&ack, &mut bytes);
        let mut addresses = AddressTable::new([], [HostId(5), HostId(0)], Block::first());
        let received = Frame::from_bytes(&bytes, &addresses).unwrap();
        assert_eq!((&received, received.destination()), (&ack, HostId(0)), "everything else is far");
        addresses.learn([198, 18, 0, 1].into(), HostId(5));
        assert_eq!(Frame::from_bytes(&bytes, &addresses).unwrap().destination(), HostId(5));
        assert_eq!(Frame::from_bytes(b"whatever", &addresses), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_carried_as_they_are(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let frame = Frame::Live(Datagram::new(&bytes, HostId(3)));
            let mut out = Vec::new();
            FrameBytes::write_to(&frame, &mut out);
            prop_assert_eq!(out, bytes);
            prop_assert_eq!(frame.destination(), HostId(3));
        }
    }
}
