//! Finds the IP packets in a captured frame, through tunnels from the outermost to the innermost.

mod dot11;
mod ethernet;
mod kind;
mod radiotap;
mod tunnel;

use std::collections::HashMap;

use tacit_link::wifi::phy::Mode;

pub(crate) use kind::{Kind, Kinds};
pub(crate) use tunnel::kind_of;

/// The result for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its IP packets, if any, were passed on.
    Read,
    /// Encrypted 802.11 data.
    Opaque,
    /// An 802.11 frame with a bad FCS.
    BadFcs,
    /// An 802.11 retransmission of a frame that was already passed on.
    Copy,
    /// An 802.11 ACK or Block Ack with compressed TCP ACKs (TCP/HACK) of this length in bytes.
    HackAck(usize),
    /// Not IP: ARP, beacons, and so on.
    NotIp(Kind),
    /// Truncated before the IP header, or malformed.
    Short,
    /// More nested headers than the parser follows.
    TooDeep,
    /// An unsupported link type.
    Unsupported,
}

/// Link types that [`ip_packets`] reads, for messages.
pub(crate) const SUPPORTED: &str = "Ethernet (1), BSD loopback (0, 108), PPP (9, 50), PPPoE (51), \
     raw IP (12, 14, 101, 228, 229), Cisco HDLC (104), 802.11 (105), 802.11 with Prism (119), radiotap (127), \
     AVS (163) or PPI (192) header, Linux cooked v1 (113) and v2 (276), MPLS (219)";

/// Maximum number of nested headers below TCP. Real stacks have fewer than twenty; the limit bounds the work for
/// untrusted frames.
const MOST_LAYERS: u8 = 32;

/// The captured part of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpBytes<'a> {
    /// Bytes from the IP version on. Link padding may follow the packet.
    pub bytes: &'a [u8],
    /// Bytes from the IP version to the end of the frame, captured or not.
    pub on_link: u32,
    /// The interface index in a cooked v2 header.
    pub interface: Option<u32>,
    /// The innermost tunnel around it.
    pub tunnel: Option<&'static str>,
    /// PHY mode of the 802.11 frame, if a radio header contains it.
    pub mode: Option<Mode>,
}

/// A position in a frame, with both the captured bytes and the length on the link.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    on_link: u32,
}

impl<'a> Cursor<'a> {
    fn skip(self, len: usize) -> Option<Self> {
        let bytes = self.bytes.get(len..)?;
        Some(Self { bytes, on_link: self.on_link.saturating_sub(len as u32) })
    }

    fn u8_at(self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn u16_at(self, at: usize) -> Option<u16> {
        let field = self.bytes.get(at..at + 2)?;
        Some(u16::from_be_bytes([field[0], field[1]]))
    }

    fn u32_at(self, at: usize) -> Option<u32> {
        let field = self.bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes([field[0], field[1], field[2], field[3]]))
    }

    /// Removes the last `len` bytes of the frame on the link.
    fn without_tail(self, len: u32) -> Self {
        let on_link = self.on_link.saturating_sub(len);
        Self { bytes: &self.bytes[..self.bytes.len().min(on_link as usize)], on_link }
    }

    /// The first `len` bytes of the frame on the link.
    fn first(self, len: u32) -> Self {
        let on_link = self.on_link.min(len);
        Self { bytes: &self.bytes[..self.bytes.len().min(on_link as usize)], on_link }
    }

    /// The first `len` bytes, from a length field that hosts with offloading leave zero.
    fn first_if_stated(self, len: u16) -> Self {
        if len == 0 { self } else { self.first(len.into()) }
    }
}

/// A sequence number space: receiver and transmitter address, and TID.
type Stream = ([u8; 12], u8);

/// Recent 802.11 frames, used to distinguish retransmissions from first copies as a receiver does (802.11-2020 clause
/// 10.3.2.14).
#[derive(Default)]
pub(crate) struct RetryFilter {
    /// The last sequence numbers of each stream, each stored at its value modulo the length. Only looked up, never
    /// iterated.
    numbers: HashMap<Stream, [u16; 64]>,
}

impl RetryFilter {
    /// Maximum number of streams. Retransmissions in further streams count as packets.
    const MOST: usize = 1_024;
    /// Marks an empty entry; sequence numbers have 12 bits.
    const NONE: u16 = u16::MAX;

    /// Records a frame. Returns true if it is a retransmission of a recorded one.
    fn is_copy(&mut self, stream: Stream, number: u16, is_retry: bool) -> bool {
        if self.numbers.len() >= Self::MOST && !self.numbers.contains_key(&stream) {
            return false;
        }
        let numbers = self.numbers.entry(stream).or_insert([Self::NONE; 64]);
        let before = std::mem::replace(&mut numbers[usize::from(number % 64)], number);
        is_retry && before == number
    }
}

/// Receives the IP packets of a frame.
pub(crate) trait Sink {
    /// Receives a packet that is not a tunnel's.
    fn packet(&mut self, ip: IpBytes<'_>);

    /// Returns true to receive this tunnel packet as a whole, instead of the packets inside.
    fn takes_tunnel(&mut self, _ip: IpBytes<'_>) -> bool {
        false
    }
}

/// Passes every IP packet in `frame` to `sink`. Only an A-MSDU contains more than one.
pub(crate) fn ip_packets(
    link_type: u16,
    frame: &[u8],
    original_len: u32,
    heard: &mut RetryFilter,
    sink: &mut impl Sink,
) -> Verdict {
    let cursor = Cursor { bytes: frame, on_link: original_len };
    let mut walk = Walk { heard, sink, interface: None, tunnel: None, mode: None, layers: 0 };
    walk.link(link_type, cursor).unwrap_or(Verdict::Short)
}

/// Parses the headers of a frame. The methods return `None` if the frame is truncated.
struct Walk<'w, S> {
    heard: &'w mut RetryFilter,
    sink: &'w mut S,
    interface: Option<u32>,
    tunnel: Option<&'static str>,
    mode: Option<Mode>,
    layers: u8,
}

impl<S: Sink> Walk<'_, S> {
    fn link(&mut self, link_type: u16, frame: Cursor<'_>) -> Option<Verdict> {
        match link_type {
            1 => self.ethernet(frame),
            0 | 108 => self.ip(frame.skip(4)?),
            9 | 50 => self.ppp(frame),
            12 | 14 | 101 | 228 | 229 => self.ip(frame),
            51 => self.pppoe(frame),
            104 => self.by_ether_type(frame.u16_at(2)?, frame.skip(4)?),
            105 => self.dot11(dot11::without_fcs(frame), false),
            113 => self.by_ether_type(frame.u16_at(14)?, frame.skip(16)?),
            119 => self.prism(frame),
            127 => self.radiotap(frame),
            163 => self.avs(frame),
            192 => self.ppi(frame),
            219 => self.mpls(frame),
            276 => {
                // Linux cooked v2: protocol, reserved, interface index, hardware type, packet type, address.
                self.interface = Some(frame.u32_at(4)?);
                self.by_ether_type(frame.u16_at(0)?, frame.skip(20)?)
            }
            _ => Some(Verdict::Unsupported),
        }
    }

    /// Counts a header that can contain another one. Returns false if there are too many.
    fn deeper(&mut self) -> bool {
        self.layers += 1;
        self.layers <= MOST_LAYERS
    }

    fn ip(&mut self, ip: Cursor<'_>) -> Option<Verdict> {
        if !self.deeper() {
            return Some(Verdict::TooDeep);
        }
        if !matches!(ip.u8_at(0)? >> 4, 4 | 6) {
            return Some(Verdict::NotIp(Kind::NO_IP_VERSION));
        }
        let (interface, tunnel, mode) = (self.interface, self.tunnel, self.mode);
        let packet = IpBytes { bytes: ip.bytes, on_link: ip.on_link, interface, tunnel, mode };
        if let Some(entrance) = tunnel::TunnelHeader::parse(ip)
            && !self.sink.takes_tunnel(packet)
        {
            return self.enter(&entrance);
        }
        self.sink.packet(packet);
        Some(Verdict::Read)
    }
}

#[cfg(test)]
mod tests;
