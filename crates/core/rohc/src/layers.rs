//! The headers around the innermost IP header and TCP: tunnel headers before them, and extension headers between the
//! two.
//!
//! RFC 6846 section 6.2 lists the headers that are allowed there: IPv4, IPv6, GRE, minimal encapsulation (MINE), the
//! Authentication Header and three kinds of IPv6 extension headers. Each of them is a layer. [`Layers`] stores their
//! bytes, with zeros in place of lengths and checksums that can be inferred.

pub(crate) mod chains;
mod packet;

use crate::header::{Header, Ip};
use crate::ip_id::behavior;
use crate::wire::Short;

/// Maximum number of layers in a packet. A limit of this crate; RFC 6846 sets none.
pub const MAX_LAYERS: usize = 8;
/// Maximum total length of all layers in a packet, in bytes. A limit of this crate; RFC 6846 sets none.
pub const MAX_LAYERS_LEN: usize = 512;

/// Protocol numbers (IANA), which IPv6 next header fields also use.
pub(crate) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const IPV4: u8 = 4;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const IPV6: u8 = 41;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const AH: u8 = 51;
    pub(crate) const MINE: u8 = 55;
    pub(crate) const DESTINATION: u8 = 60;
}

/// Kind of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    V4,
    V6,
    HopByHop,
    Routing,
    Destination,
    Ah,
    Gre,
    Mine,
}

/// The next header that a header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Tcp,
    Ip(Version),
    Layer(Kind),
}

/// The version of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Version {
    pub(crate) const fn from_ip(ip: &Ip) -> Self {
        match ip {
            Ip::V4 { .. } => Self::V4,
            Ip::V6 { .. } => Self::V6,
        }
    }

    const fn kind(self) -> Kind {
        match self {
            Self::V4 => Kind::V4,
            Self::V6 => Kind::V6,
        }
    }
}

impl Next {
    /// The meaning of a protocol number within an IP header of this version. Returns `None` for headers that are not
    /// compressed.
    pub(crate) const fn from_protocol(number: u8, within: Version) -> Option<Self> {
        Some(match (number, within) {
            (protocol::TCP, _) => Self::Tcp,
            (protocol::IPV4, _) => Self::Ip(Version::V4),
            (protocol::IPV6, _) => Self::Ip(Version::V6),
            (protocol::AH, _) => Self::Layer(Kind::Ah),
            (protocol::GRE, _) => Self::Layer(Kind::Gre),
            // RFC 2004 section 3: only within IPv4.
            (protocol::MINE, Version::V4) => Self::Layer(Kind::Mine),
            (protocol::HOP_BY_HOP, Version::V6) => Self::Layer(Kind::HopByHop),
            (protocol::ROUTING, Version::V6) => Self::Layer(Kind::Routing),
            (protocol::DESTINATION, Version::V6) => Self::Layer(Kind::Destination),
            _ => return None,
        })
    }

    /// The header that follows a layer with these bytes.
    pub(crate) fn behind(kind: Kind, bytes: &[u8], within: Version) -> Option<Self> {
        let number = match kind {
            Kind::V4 => bytes[9],
            Kind::V6 => bytes[6],
            Kind::Gre => {
                return match [bytes[2], bytes[3]] {
                    ETHERTYPE_V4 => Some(Self::Ip(Version::V4)),
                    ETHERTYPE_V6 => Some(Self::Ip(Version::V6)),
                    _ => None,
                };
            }
            _ => bytes[0],
        };
        Self::from_protocol(number, within)
    }
}

/// EtherTypes in GRE (gre_proto in RFC 6846 section 8.2).
const ETHERTYPE_V4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_V6: [u8; 2] = [0x86, 0xdd];

/// Optional fields of GRE as indicated by its flags (RFC 2890 section 2): checksum and reserved, key, sequence number.
pub(crate) mod gre {
    pub(crate) const CHECKSUM: u8 = 0x80;
    pub(crate) const KEY: u8 = 0x20;
    pub(crate) const SEQUENCE: u8 = 0x10;

    /// Length of a GRE header with these flags, in bytes.
    pub(crate) const fn len(flags: u8) -> usize {
        4 + 4 * (flags & (CHECKSUM | KEY | SEQUENCE)).count_ones() as usize
    }

    /// Offset of the key.
    pub(crate) const fn key_at(flags: u8) -> usize {
        if flags & CHECKSUM != 0 { 8 } else { 4 }
    }
}

/// Length of a MINE header with this second byte (RFC 2004 section 3.1): with or without the original source address.
pub(crate) const fn mine_len(flags: u8) -> usize {
    if flags & 0x80 != 0 { 12 } else { 8 }
}

/// One header among [`Layers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) kind: Kind,
    /// Offset of its first byte.
    at: u16,
    len: u16,
    /// ip_id_behavior_outer: random or zero (RFC 6846 section 6.1.2). Used for IPv4 only.
    pub(crate) behavior: u8,
    /// The sequence number is sent in seven bits (compressor only).
    pub(crate) short_sequence: bool,
}

impl Layer {
    const NONE: Self =
        Self { kind: Kind::V4, at: 0, len: 0, behavior: behavior::RANDOM as u8, short_sequence: false };

    pub(crate) const fn range(&self) -> core::ops::Range<usize> {
        self.at as usize..self.at as usize + self.len as usize
    }
}

/// The headers of one packet, except the innermost IP header and TCP; see the module documentation.
#[derive(Clone, Debug)]
pub struct Layers {
    /// All layers, concatenated and followed by zeros.
    bytes: [u8; MAX_LAYERS_LEN],
    layers: [Layer; MAX_LAYERS],
    count: u8,
    /// Number of layers before the innermost IP header.
    outer: u8,
}

impl Layers {
    /// No layers: a packet with one IP header and TCP.
    pub(crate) const EMPTY: Self =
        Self { bytes: [0; MAX_LAYERS_LEN], layers: [Layer::NONE; MAX_LAYERS], count: 0, outer: 0 };

    /// True if the packet has no headers other than one IP header and TCP.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Total length of all layers in bytes.
    pub fn len(&self) -> usize {
        self.all().last().map_or(0, |layer| layer.range().end)
    }

    pub(crate) fn all(&self) -> &[Layer] {
        &self.layers[..usize::from(self.count)]
    }

    /// Number of layers before the innermost IP header.
    pub(crate) const fn outer(&self) -> usize {
        self.outer as usize
    }

    pub(crate) const fn count(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn bytes_of(&self, layer: &Layer) -> &[u8] {
        &self.bytes[layer.range()]
    }

    /// A layer and its bytes. Their number cannot change.
    pub(crate) fn get_mut(&mut self, index: usize) -> (&mut Layer, &mut [u8]) {
        let layer = &mut self.layers[..usize::from(self.count)][index];
        let bytes = &mut self.bytes[layer.range()];
        (layer, bytes)
    }

    pub(crate) fn clear(&mut self) {
        let len = self.len();
        self.bytes[..len].fill(0);
        (self.count, self.outer) = (0, 0);
    }

    /// Appends a layer. `fill` writes its bytes into the remaining room and returns their number.
    pub(crate) fn append(
        &mut self,
        kind: Kind,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, Short>,
    ) -> Result<&[u8], Short> {
        let at = self.len();
        if self.count() == MAX_LAYERS {
            return Err(Short);
        }
        let len = fill(&mut self.bytes[at..]).inspect_err(|_| self.bytes[at..].fill(0))?;
        self.layers[self.count()] = Layer { kind, at: at as u16, len: len as u16, ..Layer::NONE };
        self.count += 1;
        Ok(&self.bytes[at..at + len])
    }

    /// Inserts this IP header, with the next protocol `next`, as a layer before index `index`, because another IP
    /// header follows further in.
    pub(crate) fn insert_ip(&mut self, index: usize, ip: &Ip, next: u8) -> Result<(), Short> {
        let (at, end, len) =
            (self.all().get(index).map(|layer| layer.range().start), self.len(), ip.header_len());
        let at = at.unwrap_or(end);
        if self.count() == MAX_LAYERS || end + len > MAX_LAYERS_LEN {
            return Err(Short);
        }
        self.bytes.copy_within(at..end, at + len);
        packet::static_ip(ip, next, &mut self.bytes[at..at + len]);
        self.layers.copy_within(index..usize::from(self.count), index + 1);
        let kind = Version::from_ip(ip).kind();
        self.layers[index] = Layer { kind, at: at as u16, len: len as u16, ..Layer::NONE };
        self.count += 1;
        for layer in &mut self.layers[index + 1..usize::from(self.count)] {
            layer.at += len as u16;
        }
        Ok(())
    }

    /// Sets the number of layers before the innermost IP header.
    pub(crate) fn set_outer(&mut self, outer: usize) {
        self.outer = outer as u8;
    }

    /// The protocol number of the innermost IP header.
    pub(crate) fn inner_protocol(&self) -> u8 {
        match self.all().get(self.outer()).map(|layer| layer.kind) {
            None => protocol::TCP,
            Some(Kind::V4) => protocol::IPV4,
            Some(Kind::V6) => protocol::IPV6,
            Some(Kind::HopByHop) => protocol::HOP_BY_HOP,
            Some(Kind::Routing) => protocol::ROUTING,
            Some(Kind::Destination) => protocol::DESTINATION,
            Some(Kind::Ah) => protocol::AH,
            Some(Kind::Gre) => protocol::GRE,
            Some(Kind::Mine) => protocol::MINE,
        }
    }

    /// A copy in which every field outside the static chain is zero.
    fn static_part(&self) -> Self {
        let mut part = self.clone();
        for index in 0..part.count() {
            let (layer, bytes) = part.get_mut(index);
            (layer.behavior, layer.short_sequence) = (0, false);
            match layer.kind {
                Kind::V4 => {
                    bytes[1] = 0;
                    bytes[4..9].fill(0);
                }
                Kind::V6 => {
                    set_traffic_class(bytes, 0);
                    bytes[7] = 0;
                }
                Kind::HopByHop | Kind::Destination => bytes[2..].fill(0),
                Kind::Ah => {
                    bytes[2..4].fill(0);
                    bytes[8..].fill(0);
                }
                Kind::Gre => {
                    let flags = bytes[0];
                    bytes[4..gre::key_at(flags)].fill(0);
                    let key_end = gre::key_at(flags) + if flags & gre::KEY != 0 { 4 } else { 0 };
                    bytes[key_end..].fill(0);
                }
                Kind::Routing | Kind::Mine => {}
            }
        }
        part
    }

    /// True if both have the same static chain.
    pub(crate) fn is_same_flow(&self, other: &Self) -> bool {
        let (one, other) = (self.static_part(), other.static_part());
        one.outer == other.outer
            && one.all() == other.all()
            && one.bytes[..one.len()] == other.bytes[..other.len()]
    }

    /// Eight bytes that identify a tunnel (FNV-1a of the static part without flow labels). Two tunnels with the same
    /// fingerprint share a context, and each switch between them is sent as a change.
    pub(crate) fn fingerprint(&self) -> [u8; 8] {
        let mut part = self.static_part();
        for index in 0..part.count() {
            let (layer, bytes) = part.get_mut(index);
            if layer.kind == Kind::V6 {
                bytes[1..4].fill(0);
            }
        }
        let ends = [part.outer, part.count];
        let bytes = part.bytes[..part.len()].iter().chain(&ends);
        bytes
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
            .to_be_bytes()
    }

    /// The header with the addresses that its TCP checksum covers. These are the final addresses if a routing header or
    /// MINE contains them (RFC 8200 section 8.1, RFC 2004 section 3.1).
    pub(crate) fn for_checksum(&self, header: &Header) -> Header {
        let mut header = *header;
        for layer in &self.all()[self.outer()..] {
            let bytes = self.bytes_of(layer);
            match (&mut header.ip, layer.kind) {
                (Ip::V4 { source, destination, .. }, Kind::Mine) => {
                    destination.copy_from_slice(&bytes[4..8]);
                    if let Some(original) = bytes.get(8..12) {
                        source.copy_from_slice(original);
                    }
                }
                (Ip::V6 { destination, .. }, Kind::Routing) => {
                    if let Some(address) = final_destination(bytes) {
                        destination.copy_from_slice(address);
                    }
                }
                _ => {}
            }
        }
        header
    }

    /// The TCP checksum of a packet with these headers and `payload`.
    pub fn tcp_checksum(&self, header: &Header, payload: &[u8]) -> u16 {
        self.for_checksum(header).tcp_checksum(payload)
    }

    /// True if the TCP checksum of a packet with these headers is correct.
    pub fn has_valid_checksum(&self, header: &Header, payload: &[u8]) -> bool {
        self.for_checksum(header).has_valid_checksum(payload)
    }
}

/// The final destination in a routing header that has segments left. Segment routing stores it first (RFC 8754 section
/// 2), other types store it last (RFC 6275 section 6.4).
fn final_destination(bytes: &[u8]) -> Option<&[u8]> {
    const SEGMENT_ROUTING: u8 = 4;
    let (kind, segments_left) = (bytes[2], bytes[3]);
    if segments_left == 0 {
        return None;
    }
    match kind {
        SEGMENT_ROUTING => bytes.get(8..24),
        0 | 2 => bytes.get(8..)?.last_chunk::<16>().map(|address| &address[..]),
        _ => None,
    }
}

/// DSCP and ECN bits of an IPv6 header.
pub(crate) const fn traffic_class(bytes: &[u8]) -> u8 {
    bytes[0] << 4 | bytes[1] >> 4
}

pub(crate) const fn set_traffic_class(bytes: &mut [u8], class: u8) {
    bytes[0] = bytes[0] & 0xf0 | class >> 4;
    bytes[1] = bytes[1] & 0x0f | class << 4;
}
