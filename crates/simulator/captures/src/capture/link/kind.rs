//! Frames and packets without TCP, by kind.

use std::collections::BTreeMap;
use std::fmt;

/// A kind of frame or packet that carries no TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A kind with a name.
    Named(&'static str),
    /// An unsupported EtherType.
    EtherType(u16),
    /// An unsupported IP protocol.
    IpProtocol(u8),
    /// An unsupported PPP protocol.
    Ppp(u16),
    /// UDP with this port, the lower of the two.
    Udp(u16),
}

impl Kind {
    pub const NO_IP_VERSION: Self = Self::Named("without an IP version");
    pub const LLC: Self = Self::Named("802.2 LLC");
    pub const ETHERNET_PSEUDOWIRE: Self = Self::Named("MPLS without IP or Ethernet");
    /// All kinds beyond the limit.
    const OTHERS: Self = Self::Named("others");
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Named(name) => name,
            Self::EtherType(0x0806) => "ARP",
            Self::EtherType(0x8863) => "PPPoE discovery",
            Self::EtherType(0x888e) => "EAPOL",
            Self::EtherType(0x88cc) => "LLDP",
            Self::EtherType(0x88e5) => "MACsec",
            Self::EtherType(other) => return write!(f, "EtherType 0x{other:04x}"),
            Self::IpProtocol(1) => "ICMP",
            Self::IpProtocol(2) => "IGMP",
            Self::IpProtocol(47) => "GRE of another kind",
            Self::IpProtocol(50) => "ESP",
            Self::IpProtocol(58) => "ICMPv6",
            Self::IpProtocol(89) => "OSPF",
            Self::IpProtocol(112) => "VRRP",
            Self::IpProtocol(115) => "L2TPv3",
            Self::IpProtocol(132) => "SCTP",
            Self::IpProtocol(other) => return write!(f, "IP protocol {other}"),
            Self::Ppp(0x002d | 0x002f) => "PPP with Van Jacobson's compression",
            Self::Ppp(0xc021) => "PPP LCP",
            Self::Ppp(0x8021) => "PPP IPCP",
            Self::Ppp(other) => return write!(f, "PPP protocol 0x{other:04x}"),
            Self::Udp(53) => "DNS over UDP",
            Self::Udp(443) => "QUIC or other UDP, port 443",
            Self::Udp(5353) => "mDNS",
            Self::Udp(port @ 0..=49_151) => return write!(f, "UDP, port {port}"),
            Self::Udp(_) => "UDP of ephemeral ports",
        };
        f.write_str(name)
    }
}

/// Number of packets of each kind, in bounded memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds(BTreeMap<Kind, u64>);

impl Kinds {
    /// Maximum number of kinds that are counted separately.
    const MOST: usize = 256;

    pub fn count(&mut self, kind: Kind) {
        let kind = match kind {
            Kind::Udp(49_152..) => Kind::Udp(u16::MAX),
            kind if self.0.len() >= Self::MOST && !self.0.contains_key(&kind) => Kind::OTHERS,
            kind => kind,
        };
        *self.0.entry(kind).or_default() += 1;
    }

    /// The kinds, most frequent first.
    pub fn by_count(&self) -> Vec<(String, u64)> {
        let mut kinds: Vec<_> = self.0.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
        kinds.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
        kinds
    }
}
