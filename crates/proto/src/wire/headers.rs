//! The headers of IP packets that others made: of a live machine, or in captures that may have cut them off. The one
//! reader of such; this crate's own packets are read by [`decode`](super::decode), which refuses anything else.

use std::net::{IpAddr, SocketAddr};

use etherparse::{IpNumber, Ipv6ExtensionSlice, LaxIpSlice, TcpHeaderSlice, UdpHeaderSlice};

use super::options;
use crate::FlowKey;
use crate::tcp::{Flags, Timestamps};

/// Bytes of the longest TCP header: its data offset has four bits, and counts words (RFC 9293 section 3.1).
const LONGEST_TCP_HEADER: usize = 60;

/// The headers of an IP packet.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// Bytes of the packet; `None` where its length field is zero: a super-segment beyond 64 KiB, or one caught before
    /// the hardware splits it.
    pub stated_len: Option<u32>,
    /// Bytes of IP header, extension headers included.
    pub header_len: u32,
    /// Whether it is a part of a packet.
    pub fragment: Fragment,
    /// The number of the protocol that it carries.
    pub protocol: u8,
    /// Its transport header. A fragment that is not the first has none.
    pub transport: Transport,
}

/// Which part of a packet something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// All of it.
    Whole,
    /// The first fragment, with the transport's header.
    First,
    /// A later one.
    Later,
}

/// The header after IP's.
#[derive(Clone, Copy, Debug)]
pub enum Transport {
    /// TCP's.
    Tcp(Tcp),
    /// UDP's.
    Udp {
        /// The sender's port.
        source: u16,
        /// The receiver's port.
        destination: u16,
    },
    /// TCP's or UDP's, but cut off within its fixed part, or of a length that cannot be.
    Unreadable,
    /// Another, or a later fragment.
    Other,
}

/// A TCP header.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number; means something where the ACK flag is set.
    pub ack: u32,
    /// Its flags.
    pub flags: Flags,
    /// The four reserved bits before the flags, of which AccECN has one.
    pub reserved: u8,
    /// Window, not scaled.
    pub window: u16,
    /// Bytes of the header, options included, be they there or cut off.
    pub header_len: u32,
    options: [u8; LONGEST_TCP_HEADER],
    /// Bytes of options that are there.
    options_len: u8,
}

/// One TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// Its kind.
    pub kind: u8,
    /// Bytes of its value, be they there or cut off.
    pub len: u8,
    /// Its value, possibly cut off.
    pub value: &'a [u8],
}

impl TcpOption<'_> {
    /// The kind of the maximum segment size.
    pub const MSS: u8 = options::MSS;
    /// The kind of SACK blocks.
    pub const SACK: u8 = options::SACK;
    /// The kind of timestamps.
    pub const TIMESTAMPS: u8 = options::TIMESTAMPS;

    /// Timestamps, where it is that option and whole (RFC 7323 section 3.2).
    pub fn timestamps(&self) -> Option<Timestamps> {
        let ([value, echo_reply], []) = self.value.as_chunks() else { return None };
        let [value, echo_reply] = [value, echo_reply].map(|word| u32::from_be_bytes(*word));
        (self.kind == Self::TIMESTAMPS).then_some(Timestamps { value, echo_reply })
    }
}

/// An option that is shorter than its own kind and length, or ends between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a TCP option has no sound length")]
pub struct BadOption;

impl Headers {
    /// Reads `bytes`, the beginning of an IP packet; `None` where they are none or end within the IP header or an extension
    /// header.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (ip, stopped) = LaxIpSlice::from_slice(bytes).ok()?;
        if stopped.is_some() {
            return None;
        }
        let (stated, offset, header_len) = match &ip {
            LaxIpSlice::Ipv4(ip) => {
                let header = ip.header();
                let authentication = ip.extensions().auth.map_or(0, |header| header.slice().len());
                let header_len = header.slice().len() + authentication;
                (u32::from(header.total_len()), header.fragments_offset().value(), header_len)
            }
            LaxIpSlice::Ipv6(ip) => {
                let fixed_len = ip.header().slice().len();
                let extensions = ip.extensions();
                let mut offsets = extensions.clone().into_iter().filter_map(|extension| match extension {
                    Ipv6ExtensionSlice::Fragment(header) => Some(header.fragment_offset().value()),
                    _ => None,
                });
                let payload_len = u32::from(ip.header().payload_length());
                let stated = if payload_len == 0 { 0 } else { payload_len + fixed_len as u32 };
                (stated, offsets.next().unwrap_or(0), fixed_len + extensions.slice().len())
            }
        };
        let fragment = match (ip.payload().fragmented, offset) {
            (false, _) => Fragment::Whole,
            (true, 0) => Fragment::First,
            (true, _) => Fragment::Later,
        };
        // Not the payload that the library finds: a length field of nonsense does not hide the bytes there.
        let rest = &bytes[header_len..];
        let transport = match ip.payload_ip_number() {
            _ if fragment == Fragment::Later => Transport::Other,
            IpNumber::TCP => Tcp::read(rest).map_or(Transport::Unreadable, Transport::Tcp),
            IpNumber::UDP => match UdpHeaderSlice::from_slice(rest) {
                Ok(udp) => Transport::Udp { source: udp.source_port(), destination: udp.destination_port() },
                Err(_) => Transport::Unreadable,
            },
            _ => Transport::Other,
        };
        Some(Self {
            source: ip.source_addr(),
            destination: ip.destination_addr(),
            stated_len: (stated > 0).then_some(stated),
            header_len: header_len as u32,
            fragment,
            protocol: ip.payload_ip_number().0,
            transport,
        })
    }

    /// The key of its flow and direction. Fragments and packets without ports are one flow per pair of hosts and protocol.
    pub fn flow_key(&self) -> FlowKey {
        FlowKey::live(self.protocol, self.ends())
    }

    /// The key of the flow's other direction.
    pub fn reverse_key(&self) -> FlowKey {
        let [source, destination] = self.ends();
        FlowKey::live(self.protocol, [destination, source])
    }

    /// The two ends, the sender's first; ports are 0 where the transport has none.
    pub fn ends(&self) -> [SocketAddr; 2] {
        let [source, destination] = match self.transport {
            Transport::Tcp(Tcp { source, destination, .. }) | Transport::Udp { source, destination } => {
                [source, destination]
            }
            Transport::Unreadable | Transport::Other => [0, 0],
        };
        [SocketAddr::new(self.source, source), SocketAddr::new(self.destination, destination)]
    }
}

impl Tcp {
    /// The header at the beginning of `bytes`, with as many of its options as are there.
    fn read(bytes: &[u8]) -> Option<Self> {
        // The library wants all options; those that are cut off are zeros to it, which end a list.
        let mut whole = [0; LONGEST_TCP_HEADER];
        let there = bytes.len().min(LONGEST_TCP_HEADER);
        whole[..there].copy_from_slice(&bytes[..there]);
        let header = TcpHeaderSlice::from_slice(&whole).ok()?;
        let fixed_len = header.slice().len() - header.options().len();
        let options_len = header.options().len().min(there.checked_sub(fixed_len)?);
        let mut options = [0; LONGEST_TCP_HEADER];
        options[..options_len].copy_from_slice(&header.options()[..options_len]);
        let [length_and_reserved, flags] = [header.slice()[12], header.slice()[13]];
        Some(Self {
            source: header.source_port(),
            destination: header.destination_port(),
            seq: header.sequence_number(),
            ack: header.acknowledgment_number(),
            flags: Flags(flags),
            reserved: length_and_reserved & 0x0f,
            window: header.window_size(),
            header_len: header.slice().len() as u32,
            options,
            options_len: options_len as u8,
        })
    }

    /// Its options but for padding, in order (RFC 9293 section 3.1); nothing follows one whose length cannot be.
    ///
    /// Own code: the library's iterator ends at the first kind that it does not know, and options after one of Multipath TCP's,
    /// say, count too.
    pub fn options(&self) -> impl Iterator<Item = Result<TcpOption<'_>, BadOption>> {
        let mut rest = &self.options[..usize::from(self.options_len)];
        std::iter::from_fn(move || {
            loop {
                match *rest {
                    [] | [0, ..] => return None,
                    [1, ref behind @ ..] => rest = behind,
                    [kind, len @ 2..=u8::MAX, ref behind @ ..] => {
                        let len = len - 2;
                        let (value, next) = behind.split_at(behind.len().min(usize::from(len)));
                        rest = next;
                        return Some(Ok(TcpOption { kind, len, value }));
                    }
                    [_, ..] => {
                        rest = &[];
                        return Some(Err(BadOption));
                    }
                }
            }
        })
    }
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
