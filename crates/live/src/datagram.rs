//! What a live world carries: IP packets as bytes, beside the simulated packets of its background
//! stations.

use std::hash::{Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::Arc;

use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use rustc_hash::FxHasher;
use tacit_link::{Payload, PayloadClass};
use tacit_proto::hack::{AckPacket, Rides};
use tacit_proto::units::{Bytes, HostId};
use tacit_proto::{Packet, wire};
use tacit_sim::Carried;
use tacit_sim::capture::FrameBytes;

/// An IP packet of a real host.
#[derive(Clone, Debug)]
pub struct Datagram {
    octets: Arc<[u8]>,
    destination: HostId,
    summary: Summary,
}

impl Datagram {
    /// The packet that `octets` are, on its way to the host bound as `destination`. Anything will do:
    /// what cannot be read is carried as it is.
    pub fn new(octets: &[u8], destination: HostId) -> Self {
        Self { octets: octets.into(), destination, summary: Summary::of(octets) }
    }

    /// The IP packet.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The host it is for.
    pub fn destination(&self) -> HostId {
        self.destination
    }

    /// What its headers say.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

/// What the headers of a packet say that accounts need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// A number per direction of a connection; zero for what is not understood.
    pub flow: u64,
    /// The number of the other direction.
    pub reverse: u64,
    /// What it carries.
    pub content: Content,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// A TCP segment.
    Tcp(TcpSummary),
    /// A UDP datagram.
    Udp {
        /// Octets of its payload.
        payload_len: u32,
    },
    /// A fragment, another protocol, or nothing that can be read.
    #[default]
    Other,
}

/// A TCP header's part in accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSummary {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number, where the ACK flag is set.
    pub ack: Option<u32>,
    /// Octets of payload.
    pub payload_len: u32,
    /// SYN, FIN, RST or URG is set.
    pub flagged: bool,
    /// FIN is set.
    pub fin: bool,
    /// It carries SACK blocks.
    pub sack: bool,
}

impl TcpSummary {
    /// A segment that only acknowledges. Whether the codec can do something with it (ECN, unknown
    /// options, a wrong checksum) is the codec's business.
    pub fn is_pure_ack(&self) -> bool {
        self.payload_len == 0 && self.ack.is_some() && !self.flagged
    }
}

impl Summary {
    fn of(octets: &[u8]) -> Self {
        let Ok(packet) = SlicedPacket::from_ip(octets) else { return Self::default() };
        let (source, destination) = match &packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                (IpAddr::from(ip.header().source_addr()), IpAddr::from(ip.header().destination_addr()))
            }
            Some(NetSlice::Ipv6(ip)) => {
                (IpAddr::from(ip.header().source_addr()), IpAddr::from(ip.header().destination_addr()))
            }
            _ => return Self::default(),
        };
        let (content, from, to) = match &packet.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let summary = TcpSummary {
                    seq: tcp.sequence_number(),
                    ack: tcp.ack().then(|| tcp.acknowledgment_number()),
                    payload_len: tcp.payload().len() as u32,
                    flagged: tcp.syn() || tcp.fin() || tcp.rst() || tcp.urg(),
                    fin: tcp.fin(),
                    sack: tcp
                        .options_iterator()
                        .any(|option| matches!(option, Ok(TcpOptionElement::SelectiveAcknowledgement(..)))),
                };
                (Content::Tcp(summary), tcp.source_port(), tcp.destination_port())
            }
            Some(TransportSlice::Udp(udp)) => {
                let payload_len = udp.payload().len() as u32;
                (Content::Udp { payload_len }, udp.source_port(), udp.destination_port())
            }
            _ => (Content::Other, 0, 0),
        };
        let number = |ends: [(IpAddr, u16); 2]| {
            let mut hasher = FxHasher::default();
            (ends, std::mem::discriminant(&content)).hash(&mut hasher);
            hasher.finish()
        };
        let (sender, receiver) = ((source, from), (destination, to));
        Self { flow: number([sender, receiver]), reverse: number([receiver, sender]), content }
    }

    /// A TCP segment that only acknowledges.
    pub fn is_pure_ack(&self) -> bool {
        matches!(&self.content, Content::Tcp(tcp) if tcp.is_pure_ack())
    }
}

/// What the links of a live world carry.
#[derive(Clone, Debug)]
pub enum Frame {
    /// A packet of a simulated host.
    Simulated(Packet),
    /// A packet of a real one.
    Live(Datagram),
}

/// Equal when their octets are: a packet reconstituted from a compressed ACK knows nothing else.
impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Simulated(one), Self::Simulated(other)) => one == other,
            (Self::Live(one), Self::Live(other)) => one.octets == other.octets,
            (Self::Simulated(packet), Self::Live(datagram))
            | (Self::Live(datagram), Self::Simulated(packet)) => {
                let mut octets = Vec::new();
                wire::encode_into(packet, &mut octets).is_ok() && octets[..] == datagram.octets[..]
            }
        }
    }
}

impl Payload for Frame {
    fn len(&self) -> Bytes {
        match self {
            Self::Simulated(packet) => Payload::len(packet),
            Self::Live(datagram) => Bytes(datagram.octets.len() as u64),
        }
    }

    fn class(&self) -> PayloadClass {
        match self {
            Self::Simulated(packet) => packet.class(),
            Self::Live(datagram) if datagram.summary.is_pure_ack() => PayloadClass::Ack,
            Self::Live(_) => PayloadClass::Data,
        }
    }
}

impl AckPacket for Frame {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Simulated(packet) => AckPacket::write_to(packet, bytes),
            Self::Live(datagram) => bytes.extend_from_slice(&datagram.octets),
        }
    }

    /// Bytes do not say which host they are for: the world passes on the equal packet that the sender's
    /// driver was given.
    fn read_from(bytes: &[u8]) -> Option<Self> {
        Some(Self::Live(Datagram::new(bytes, HostId(u32::MAX))))
    }

    fn rides(&self) -> Rides {
        match self {
            Self::Simulated(packet) => packet.rides(),
            Self::Live(datagram) if datagram.summary.is_pure_ack() => Rides::Compressed,
            Self::Live(_) => Rides::Never,
        }
    }

    fn flow_key(&self) -> u64 {
        match self {
            Self::Simulated(packet) => AckPacket::flow_key(packet),
            Self::Live(datagram) => datagram.summary.flow,
        }
    }
}

impl From<Packet> for Frame {
    fn from(packet: Packet) -> Self {
        Self::Simulated(packet)
    }
}

impl Carried for Frame {
    fn destination(&self) -> HostId {
        match self {
            Self::Simulated(packet) => packet.destination,
            Self::Live(datagram) => datagram.destination,
        }
    }

    fn trace_word(&self) -> u64 {
        match self {
            Self::Simulated(packet) => packet.trace_word(),
            Self::Live(datagram) => datagram.summary.flow,
        }
    }

    fn into_simulated(self) -> Result<Packet, Self> {
        match self {
            Self::Simulated(packet) => Ok(packet),
            live @ Self::Live(_) => Err(live),
        }
    }
}

impl FrameBytes for Frame {
    fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Simulated(packet) => FrameBytes::write_to(packet, out),
            Self::Live(datagram) => out.extend_from_slice(&datagram.octets),
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    type Tcp = etherparse::PacketBuilderStep<etherparse::TcpHeader>;

    fn frame(flags: impl Fn(Tcp) -> Tcp, payload: &[u8]) -> Frame {
        let tcp = PacketBuilder::ipv4([198, 18, 0, 2], [198, 18, 0, 1], 64).tcp(40_000, 5_201, 7, 65_535);
        let mut octets = Vec::new();
        flags(tcp).write(&mut octets, payload).unwrap();
        Frame::Live(Datagram::new(&octets, HostId(0)))
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
    fn a_fragment_is_no_ack() {
        let Frame::Live(ack) = frame(|tcp| tcp.ack(9), b"") else { panic!("a live frame") };
        let mut octets = ack.octets().to_vec();
        octets[6] = 0x20;
        assert!(!rides(&Frame::Live(Datagram::new(&octets, HostId(0)))));
    }

    #[test]
    fn the_ways_of_a_connection_know_each_other() {
        let one = frame(|tcp| tcp.ack(9), b"");
        let tcp = PacketBuilder::ipv4([198, 18, 0, 1], [198, 18, 0, 2], 64).tcp(5_201, 40_000, 9, 65_535);
        let mut octets = Vec::new();
        tcp.write(&mut octets, b"data").unwrap();
        let other = Datagram::new(&octets, HostId(1));
        let Frame::Live(one) = one else { panic!("a live frame") };
        assert_eq!(one.summary().reverse, other.summary().flow);
        assert_ne!(one.summary().flow, other.summary().flow);
        let Content::Tcp(tcp) = other.summary().content else { panic!("TCP") };
        assert_eq!((tcp.seq, tcp.payload_len, tcp.ack), (9, 4, None));
    }

    #[test]
    fn what_is_reconstituted_equals_what_was_given() {
        let ack = frame(|tcp| tcp.ack(9), b"");
        let mut octets = Vec::new();
        AckPacket::write_to(&ack, &mut octets);
        assert_eq!(<Frame as AckPacket>::read_from(&octets), Some(ack));
    }

    proptest! {
        #[test]
        fn any_octets_are_carried_as_they_are(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let frame = Frame::Live(Datagram::new(&octets, HostId(3)));
            let mut out = Vec::new();
            FrameBytes::write_to(&frame, &mut out);
            prop_assert_eq!(out, octets);
            prop_assert_eq!(frame.destination(), HostId(3));
        }
    }
}
