//! Ethernet and the layers between it and IP: VLAN, Cisco and HSR tags, MPLS, PPPoE and PPP.

use super::{Cursor, Kind, Sink, Verdict, Walk};

/// Smallest type field of Ethernet II. A smaller value is a length (802.3 clause 3.2.6).
const LEAST_ETHER_TYPE: u16 = 0x0600;
const LONGEST_LENGTH: u16 = 1_500;
/// Transparent Ethernet bridging, in GRE and its successors (RFC 1701).
pub(super) const TRANSPARENT_ETHERNET: u16 = 0x6558;

impl<S: Sink> Walk<'_, S> {
    pub(super) fn ethernet(&mut self, frame: Cursor<'_>) -> Option<Verdict> {
        self.by_ether_type(frame.u16_at(12)?, frame.skip(14)?)
    }

    pub(super) fn by_ether_type(&mut self, ether_type: u16, rest: Cursor<'_>) -> Option<Verdict> {
        if !self.deeper() {
            return Some(Verdict::TooDeep);
        }
        match ether_type {
            0x0800 | 0x86dd => self.ip(rest),
            // 802.1Q, 802.1ad, and earlier tag types.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => self.by_ether_type(rest.u16_at(2)?, rest.skip(4)?),
            0x8847 | 0x8848 => self.mpls(rest),
            0x8864 => self.pppoe(rest),
            // Cisco MetaData: version, length, options and a security group tag, as Wireshark's packet-cisco-metadata.c.
            0x8909 => self.by_ether_type(rest.u16_at(6)?, rest.skip(8)?),
            // HSR (IEC 62439-3 clause 5.7): path and LSDU size, sequence number. The size has 12 bits, which jumbo frames
            // exceed, and devices disagree about what it counts: Wireshark does not shorten the frame by it either.
            0x892f => self.by_ether_type(rest.u16_at(4)?, rest.skip(6)?),
            TRANSPARENT_ETHERNET => self.ethernet(rest),
            // An 802.3 length. LLC follows, possibly with padding.
            0..=LONGEST_LENGTH => self.llc(rest.first(ether_type.into())),
            _ => Some(Verdict::NotIp(Kind::EtherType(ether_type))),
        }
    }

    /// LLC and SNAP (RFC 1042). Other LLC headers are not read.
    pub(super) fn llc(&mut self, frame: Cursor<'_>) -> Option<Verdict> {
        let header = frame.bytes.get(..3)?;
        if header != [0xaa, 0xaa, 0x03] {
            return Some(Verdict::NotIp(Kind::LLC));
        }
        let ether_type = frame.u16_at(6)?;
        if ether_type < LEAST_ETHER_TYPE {
            return Some(Verdict::NotIp(Kind::LLC));
        }
        self.by_ether_type(ether_type, frame.skip(8)?)
    }

    /// A label stack (RFC 3032 section 2.1). No field identifies the payload after the last label. Its first four bits
    /// distinguish IP from the control word of a pseudowire (RFC 4385 section 3).
    pub(super) fn mpls(&mut self, mut rest: Cursor<'_>) -> Option<Verdict> {
        const BOTTOM_OF_STACK: u8 = 0x01;
        self.tunnel = Some("MPLS");
        loop {
            if !self.deeper() {
                return Some(Verdict::TooDeep);
            }
            let is_last = rest.u8_at(2)? & BOTTOM_OF_STACK != 0;
            rest = rest.skip(4)?;
            if is_last {
                break;
            }
        }
        match rest.u8_at(0)? >> 4 {
            4 | 6 => self.ip(rest),
            0 => match rest.skip(4)? {
                frame if is_ethernet(frame) => self.ethernet(frame),
                _ => Some(Verdict::NotIp(Kind::ETHERNET_PSEUDOWIRE)),
            },
            _ if is_ethernet(rest) => self.ethernet(rest),
            _ => Some(Verdict::NotIp(Kind::ETHERNET_PSEUDOWIRE)),
        }
    }

    /// A PPPoE session (RFC 2516 section 4): version, type, code, session, length.
    pub(super) fn pppoe(&mut self, rest: Cursor<'_>) -> Option<Verdict> {
        self.tunnel = Some("PPPoE");
        let stated = rest.u16_at(4)?;
        let payload = rest.skip(6)?;
        // The length separates payload from the padding of short frames.
        self.ppp(payload.first_if_stated(stated))
    }

    /// PPP (RFC 1661 section 2). Its address and control fields may be compressed (RFC 1662 section 3.2).
    pub(super) fn ppp(&mut self, rest: Cursor<'_>) -> Option<Verdict> {
        if !self.deeper() {
            return Some(Verdict::TooDeep);
        }
        let rest = match rest.bytes {
            [0xff, 0x03, ..] => rest.skip(2)?,
            _ => rest,
        };
        // Protocol numbers end in an odd byte. If the first byte is odd, the leading zero byte was compressed.
        let (protocol, payload) = match rest.u8_at(0)? {
            compressed if compressed & 1 != 0 => (u16::from(compressed), rest.skip(1)?),
            _ => (rest.u16_at(0)?, rest.skip(2)?),
        };
        match protocol {
            0x0021 | 0x0057 => self.ip(payload),
            0x0281 | 0x0283 => self.mpls(payload),
            _ => Some(Verdict::NotIp(Kind::Ppp(protocol))),
        }
    }
}

/// Whether a frame looks like Ethernet, judging by its type or length.
fn is_ethernet(frame: Cursor<'_>) -> bool {
    let known = [0x0800, 0x86dd, 0x8100, 0x88a8, 0x9100, 0x9200, 0x8847, 0x8848, 0x8864, 0x0806];
    frame.u16_at(12).is_some_and(|ether_type| ether_type <= LONGEST_LENGTH || known.contains(&ether_type))
}

/// Whether a frame is Ethernet with an IP packet as long as the frame, or shorter than the padding of short frames allows.
pub(super) fn is_ethernet_with_ip(frame: Cursor<'_>) -> bool {
    /// Smallest payload of an Ethernet frame (802.3 clause 3.2.8).
    const LEAST_PAYLOAD: u32 = 46;
    let mut at = 12;
    // Up to two VLAN tags.
    while at < 20 && matches!(frame.u16_at(at), Some(0x8100 | 0x88a8)) {
        at += 4;
    }
    let (Some(ether_type), Some(ip)) = (frame.u16_at(at), frame.skip(at + 2)) else { return false };
    let stated = match (ether_type, ip.u8_at(0).map(|first| first >> 4)) {
        (0x0800, Some(4)) => ip.u16_at(2).map(u32::from),
        (0x86dd, Some(6)) => ip.u16_at(4).map(|len| u32::from(len) + 40),
        _ => None,
    };
    stated.is_some_and(|stated| stated == ip.on_link || stated < ip.on_link && ip.on_link <= LEAST_PAYLOAD)
}
