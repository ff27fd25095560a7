//! Tunnels over IP: IP in IP, GRE, L2TP, VXLAN, Geneve, GTP-U, CAPWAP, and the mirroring of Aruba access points.

use tacit_packet::wire::headers::{Fragment, Headers, Transport};

use super::ethernet::{TRANSPARENT_ETHERNET, is_ethernet_with_ip};
use super::{Cursor, Kind, Sink, Verdict, Walk};

/// IP protocol numbers (IANA).
const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const L2TP: u8 = 115;
const UDP_HEADER_LEN: usize = 8;

/// Type of a tunnel's payload.
#[derive(Clone, Copy)]
enum Inside {
    Ip,
    Ethernet,
    EtherType(u16),
    Ppp,
    Dot11 { swapped: bool },
}

/// A tunnel header and its payload.
pub(super) struct TunnelHeader<'a> {
    name: &'static str,
    inside: Inside,
    payload: Cursor<'a>,
}

impl<'a> TunnelHeader<'a> {
    /// Parses the tunnel header of an IP packet; `None` if there is none. The header must be well-formed, because a
    /// port alone does not prove that it is a tunnel.
    pub fn parse(ip: Cursor<'a>) -> Option<Self> {
        let headers = Headers::read(ip.bytes)?;
        if headers.fragment == Fragment::Later {
            return None;
        }
        let ip = headers.stated_len.map_or(ip, |stated| ip.first(stated));
        let payload = ip.skip(headers.header_len as usize)?;
        match (headers.protocol, headers.transport) {
            (IPV4 | IPV6, _) => Some(Self { name: "IP in IP", inside: Inside::Ip, payload }),
            (GRE, _) => gre(payload),
            (L2TP, _) => l2tp_v3(payload),
            (_, Transport::Udp { source, destination }) => {
                // A length of zero: an IPv6 jumbogram (RFC 2675 section 4), or offloading.
                let datagram = payload.first_if_stated(payload.u16_at(4)?);
                in_udp(source, destination, datagram.skip(UDP_HEADER_LEN)?)
            }
            _ => None,
        }
    }
}

impl<S: Sink> Walk<'_, S> {
    pub(super) fn enter(&mut self, entrance: &TunnelHeader<'_>) -> Option<Verdict> {
        self.tunnel = Some(entrance.name);
        let payload = entrance.payload;
        match entrance.inside {
            Inside::Ip => self.ip(payload),
            Inside::Ethernet => self.ethernet(payload),
            Inside::EtherType(ether_type) => self.by_ether_type(ether_type, payload),
            Inside::Ppp => self.ppp(payload),
            Inside::Dot11 { swapped: false } => self.dot11(payload, false),
            Inside::Dot11 { swapped: true } => {
                // Old CAPWAP senders swap the bytes of Frame Control.
                let Some([second, first, rest @ ..]) = payload.bytes.get(..) else { return None };
                let bytes = [&[*first, *second], rest].concat();
                self.dot11(Cursor { bytes: &bytes, on_link: payload.on_link }, false)
            }
        }
    }
}

/// GRE (RFC 2784, RFC 2890; version 1 is for PPTP, RFC 2637 section 4.1).
fn gre(packet: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGMENT: u16 = 0x0080;
    const VERSION: u16 = 0x0007;
    const PPP: u16 = 0x880b;
    const WCCP: u16 = 0x883e;
    const ERSPAN_2: u16 = 0x88be;
    const ERSPAN_3: u16 = 0x22eb;
    let (flags, protocol) = (packet.u16_at(0)?, packet.u16_at(2)?);
    let word = |flag: u16| if flags & flag != 0 { 4 } else { 0 };
    if flags & VERSION == 1 && protocol == PPP {
        let payload = packet.skip(8 + word(SEQUENCE) + word(ACKNOWLEDGMENT))?;
        let payload = payload.first(packet.u16_at(4)?.into());
        // A header with only an acknowledgment has no payload.
        return (payload.on_link > 0).then_some(TunnelHeader { name: "PPTP", inside: Inside::Ppp, payload });
    }
    if flags & VERSION != 0 || flags & ROUTING != 0 {
        return None;
    }
    let payload = packet.skip(4 + word(CHECKSUM) + word(KEY) + word(SEQUENCE))?;
    Some(match protocol {
        // ERSPAN type I has neither a header of its own nor a sequence number in the GRE header.
        ERSPAN_2 => {
            let header_len = if flags & SEQUENCE != 0 { 8 } else { 0 };
            TunnelHeader { name: "ERSPAN", inside: Inside::Ethernet, payload: payload.skip(header_len)? }
        }
        ERSPAN_3 => {
            let has_subheader = payload.u8_at(11)? & 1 != 0;
            let header_len = if has_subheader { 20 } else { 12 };
            TunnelHeader { name: "ERSPAN", inside: Inside::Ethernet, payload: payload.skip(header_len)? }
        }
        // A redirect header of four bytes may precede the packet, whose first nibble is an IP version.
        WCCP => {
            let header_len = if matches!(payload.u8_at(0)? >> 4, 4 | 6) { 0 } else { 4 };
            TunnelHeader { name: "GRE", inside: Inside::Ip, payload: payload.skip(header_len)? }
        }
        // Between Aruba access points and controllers: 802.11 frames without FCS.
        0x8200..=0x82ff => {
            TunnelHeader { name: "Aruba GRE", inside: Inside::Dot11 { swapped: false }, payload }
        }
        PPP => TunnelHeader { name: "GRE", inside: Inside::Ppp, payload },
        other => TunnelHeader { name: "GRE", inside: Inside::EtherType(other), payload },
    })
}

fn in_udp(source: u16, destination: u16, payload: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    match (destination, source) {
        // The older port is used by Linux only.
        (4789 | 8472, _) => vxlan(payload),
        (6081, _) => geneve(payload),
        (2152, _) => gtp_u(payload),
        (5247, _) | (_, 5247) => capwap(payload),
        (1701, _) | (_, 1701) => l2tp(payload),
        (5555, _) => aruba_mirror(payload),
        _ => None,
    }
}

/// L2TP over UDP: version 2 (RFC 2661 section 3.1), or version 3 (RFC 3931 section 4.1.2.1). Control messages are no
/// tunnel.
fn l2tp(packet: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = packet.u16_at(0)?;
    match flags & 0x000f {
        _ if flags & CONTROL != 0 => None,
        2 => {
            let has = |flag: u16| flags & flag != 0;
            let packet = if has(LENGTH) { packet.first_if_stated(packet.u16_at(2)?) } else { packet };
            let mut at = if has(LENGTH) { 8 } else { 6 };
            if has(SEQUENCE) {
                at += 4;
            }
            if has(OFFSET) {
                at += 2 + usize::from(packet.u16_at(at)?);
            }
            let payload = packet.skip(at)?;
            (payload.on_link > 0).then_some(TunnelHeader { name: "L2TP", inside: Inside::Ppp, payload })
        }
        3 => l2tp_v3(packet.skip(4)?),
        _ => None,
    }
}

/// L2TPv3 data (RFC 3931 section 4.1): session, and then a cookie of 0, 4 or 8 bytes and a sublayer of 0 or 4, whose
/// lengths only the control connection tells. Wireshark needs that connection in the capture. Here the payload starts
/// where an Ethernet frame with a whole IP packet fits exactly.
fn l2tp_v3(packet: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    const SESSION_LEN: usize = 4;
    if packet.u32_at(0)? == 0 {
        // A control message over IP.
        return None;
    }
    let payload = [0, 4, 8, 12]
        .into_iter()
        .filter_map(|len| packet.skip(SESSION_LEN + len))
        .find(|frame| is_ethernet_with_ip(*frame))?;
    Some(TunnelHeader { name: "L2TPv3", inside: Inside::Ethernet, payload })
}

/// VXLAN (RFC 7348 section 5). The flag for a valid identifier must be set.
fn vxlan(packet: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    const HAS_VNI: u8 = 0x08;
    if packet.u8_at(0)? & HAS_VNI == 0 {
        return None;
    }
    Some(TunnelHeader { name: "VXLAN", inside: Inside::Ethernet, payload: packet.skip(8)? })
}

/// Geneve (RFC 8926 section 3.4): version and length of options in words, flags, an EtherType.
fn geneve(packet: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    let first = packet.u8_at(0)?;
    if first >> 6 != 0 {
        return None;
    }
    let payload = packet.skip(8 + 4 * usize::from(first & 0x3f))?;
    let inside = match packet.u16_at(2)? {
        TRANSPARENT_ETHERNET => Inside::Ethernet,
        other => Inside::EtherType(other),
    };
    Some(TunnelHeader { name: "Geneve", inside, payload })
}

/// GTP-U (3GPP TS 29.281 clause 5): a user's packet after a header of eight bytes, four more if any of three flags is
/// set, and extension headers.
fn gtp_u(packet: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    const VERSION_1_AND_GTP: u8 = 0x30;
    const EXTENSION: u8 = 0x04;
    const ANY_OPTIONAL: u8 = 0x07;
    const G_PDU: u8 = 0xff;
    let flags = packet.u8_at(0)?;
    if flags & 0xf0 != VERSION_1_AND_GTP || packet.u8_at(1)? != G_PDU {
        return None;
    }
    let mut at = 8;
    if flags & ANY_OPTIONAL != 0 {
        at += 4;
        let mut next = if flags & EXTENSION != 0 { packet.u8_at(11)? } else { 0 };
        // Extension headers: length in words, content, type of the next one.
        for _ in 0..8 {
            if next == 0 {
                break;
            }
            let bytes = 4 * usize::from(packet.u8_at(at)?);
            if bytes == 0 {
                return None;
            }
            at += bytes;
            next = packet.u8_at(at - 1)?;
        }
    }
    // The length counts from the end of the first eight bytes.
    let packet = match packet.u16_at(2)? {
        0 => packet,
        length => packet.first(8 + u32::from(length)),
    };
    Some(TunnelHeader { name: "GTP-U", inside: Inside::Ip, payload: packet.skip(at)? })
}

/// CAPWAP data (RFC 5415 section 4.3): preamble, header length in words, WBID, flags. Encrypted packets have another
/// preamble, and later fragments have no 802.11 header.
fn capwap(packet: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    const NATIVE_FRAME: u32 = 1 << 8;
    const FRAGMENT: u32 = 1 << 7;
    const KEEP_ALIVE: u32 = 1 << 3;
    let word = packet.u32_at(0)?;
    let (preamble, header_words) = (word >> 24, word >> 19 & 0x1f);
    let fragment_offset = packet.u16_at(6)? >> 3;
    if preamble != 0 || header_words < 2 || word & KEEP_ALIVE != 0 {
        return None;
    }
    if word & FRAGMENT != 0 && fragment_offset != 0 {
        return None;
    }
    let payload = packet.skip(4 * header_words as usize)?;
    let inside = if word & NATIVE_FRAME != 0 {
        // Version 0 and type data in the first byte, or, if swapped, in the second.
        let swapped = payload.u8_at(0)? & 0x0f != 0x08 && payload.u8_at(1)? & 0x0f == 0x08;
        Inside::Dot11 { swapped }
    } else {
        Inside::Ethernet
    };
    Some(TunnelHeader { name: "CAPWAP", inside, payload })
}

/// Mirrored frames of Aruba access points: a pcap record header with big-endian seconds, microseconds and two lengths,
/// followed by an 802.11 frame.
fn aruba_mirror(packet: Cursor<'_>) -> Option<TunnelHeader<'_>> {
    let (captured, original) = (packet.u32_at(8)?, packet.u32_at(12)?);
    let payload = packet.skip(16)?;
    let is_sane = packet.u32_at(4)? < 1_000_000 && captured <= original && captured <= payload.on_link;
    let inside = Inside::Dot11 { swapped: false };
    (is_sane && captured > 0).then(|| TunnelHeader {
        name: "Aruba mirror",
        inside,
        payload: payload.first(captured),
    })
}

/// Kind of an IP packet without TCP.
pub(crate) fn kind_of(ip: &[u8]) -> Kind {
    match Headers::read(ip) {
        Some(Headers { transport: Transport::Udp { source, destination }, .. }) => {
            Kind::Udp(source.min(destination))
        }
        Some(headers) => match headers.protocol {
            17 => Kind::Named("UDP fragments"),
            other => Kind::IpProtocol(other),
        },
        None => Kind::NO_IP_VERSION,
    }
}
