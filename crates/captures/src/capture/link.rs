//! From a captured frame to the IP packets in it, through tunnels, outermost to innermost.

mod dot11;
mod ethernet;
mod kind;
mod radiotap;
mod tunnel;

use std::collections::HashMap;

use tacit_link::wifi::phy::Mode;

pub(crate) use kind::{Kind, Kinds};
pub(crate) use tunnel::kind_of;

/// Outcome for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its IP packets, if any, were handed out.
    Read,
    /// Encrypted 802.11 data.
    Opaque,
    /// An 802.11 frame whose FCS was bad.
    BadFcs,
    /// An 802.11 retransmission of a frame that was handed out before.
    Copy,
    /// An 802.11 ACK or Block Ack that carries compressed TCP ACKs (TCP/HACK): their length in bytes.
    HackAck(usize),
    /// Not IP: ARP, beacons, and so on.
    NotIp(Kind),
    /// Cut off before the IP header, or nonsense.
    Short,
    /// More headers around each other than are followed.
    TooDeep,
    /// A link type that this module cannot read.
    Unsupported,
}

/// Link types that [`ip_packets`] reads, for messages.
pub(crate) const SUPPORTED: &str = "Ethernet (1), BSD loopback (0, 108), PPP (9, 50), PPPoE (51), \
     raw IP (12, 14, 101, 228, 229), Cisco HDLC (104), 802.11 (105), 802.11 with Prism (119), radiotap (127), \
     AVS (163) or PPI (192) header, Linux cooked v1 (113) and v2 (276), MPLS (219)";

/// Headers below TCP that are followed into each other. Real stacks have fewer than twenty; the bound keeps a hostile frame
/// short.
const MOST_LAYERS: u8 = 32;

/// An IP packet as far as it was captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpBytes<'a> {
    /// From the IP version on; link padding may follow the packet.
    pub bytes: &'a [u8],
    /// Bytes from the IP version to the end of the frame, captured or not.
    pub on_link: u32,
    /// The interface index a cooked v2 header names.
    pub interface: Option<u32>,
    /// The innermost tunnel that it came through.
    pub tunnel: Option<&'static str>,
    /// How the 802.11 frame was sent, where a radio header says it.
    pub mode: Option<Mode>,
}

/// A frame being walked, always in step with its length on the link.
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

    /// Drops the last bytes of the frame on the link.
    fn without_tail(self, len: u32) -> Self {
        let on_link = self.on_link.saturating_sub(len);
        Self { bytes: &self.bytes[..self.bytes.len().min(on_link as usize)], on_link }
    }

    /// The first bytes of the frame on the link.
    fn first(self, len: u32) -> Self {
        let on_link = self.on_link.min(len);
        Self { bytes: &self.bytes[..self.bytes.len().min(on_link as usize)], on_link }
    }
}

/// A sequence number space: receiver and transmitter address, and TID.
type Stream = ([u8; 12], u8);

/// 802.11 frames heard, to tell retransmissions from first copies as a receiver does
/// (802.11-2020 clause 10.3.2.14).
#[derive(Default)]
pub(crate) struct Heard {
    /// The last sequence numbers of each stream, each at its value modulo the length. Only looked up,
    /// never iterated.
    numbers: HashMap<Stream, [u16; 64]>,
}

impl Heard {
    /// Streams remembered; retransmissions of any further ones count as packets.
    const MOST: usize = 1_024;
    /// No sequence number: those have 12 bits.
    const NONE: u16 = u16::MAX;

    /// Notes a frame; true for a retransmission of one noted before.
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
    /// Takes a packet that is no tunnel's.
    fn packet(&mut self, ip: IpBytes<'_>);

    /// True where it takes this tunnel's packet whole, and the walk goes no deeper.
    fn takes_tunnel(&mut self, _ip: IpBytes<'_>) -> bool {
        false
    }
}

/// Hands every IP packet in `frame` to `sink`; more than one only out of an A-MSDU.
pub(crate) fn ip_packets(
    link_type: u16,
    frame: &[u8],
    original_len: u32,
    heard: &mut Heard,
    sink: &mut impl Sink,
) -> Verdict {
    let cursor = Cursor { bytes: frame, on_link: original_len };
    let mut walk = Walk { heard, sink, interface: None, tunnel: None, mode: None, layers: 0 };
    walk.link(link_type, cursor).unwrap_or(Verdict::Short)
}

/// A walk through the headers of a frame. Its methods give `None` where the frame is cut off.
struct Walk<'w, S> {
    heard: &'w mut Heard,
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
                // Linux cooked v2: protocol, reserved, interface index, hardware type, type, address.
                self.interface = Some(frame.u32_at(4)?);
                self.by_ether_type(frame.u16_at(0)?, frame.skip(20)?)
            }
            _ => Some(Verdict::Unsupported),
        }
    }

    /// Counts a header that another may follow; false where there are too many.
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
        if let Some(entrance) = tunnel::Entrance::of(ip)
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
