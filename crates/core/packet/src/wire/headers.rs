//! Parses the headers of IP packets from other senders: on a live machine, or in captures that may be truncated. This
//! crate's own packets are parsed by [`decode`](super::decode), which refuses everything else.

use std::net::{IpAddr, SocketAddr};

use etherparse::{IpNumber, Ipv6ExtensionSlice, LaxIpSlice, TcpHeaderSlice, UdpHeaderSlice};

use super::options;
use crate::FlowKey;
use crate::tcp::{Flags, Timestamps};

/// Longest TCP header in bytes: its data offset has four bits and counts 32-bit words (RFC 9293 section 3.1).
const LONGEST_TCP_HEADER: usize = 60;

/// The headers of an IP packet.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Length of the packet in bytes; `None` if its length field is zero: a super-segment above 64 KiB, or one captured
    /// before the hardware splits it.
    pub stated_len: Option<u32>,
    /// Length of the IP header, including extension headers.
    pub header_len: u32,
    /// Whether it is a fragment.
    pub fragment: Fragment,
    /// IP protocol number of its content.
    pub protocol: u8,
    /// Its transport header; later fragments have none.
    pub transport: Transport,
}

/// Which part of a packet this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// The whole packet.
    Whole,
    /// The first fragment, with the transport's header.
    First,
    /// A later fragment.
    Later,
}

/// The header after the IP header.
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
    /// TCP or UDP, but truncated within the fixed part of the header, or with an invalid length.
    Unreadable,
    /// Another protocol, or a later fragment.
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
    /// Acknowledgment number; valid only if the ACK flag is set.
    pub ack: u32,
    /// Its flags.
    pub flags: Flags,
    /// The four reserved bits before the flags; AccECN uses one of them.
    pub reserved: u8,
    /// Window, not scaled.
    pub window: u16,
    /// Bytes of the header including options, even if truncated.
    pub header_len: u32,
    options: [u8; LONGEST_TCP_HEADER],
    /// Bytes of options that are present.
    options_len: u8,
}

/// One TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// Its kind.
    pub kind: u8,
    /// Bytes of its value, even if truncated.
    pub len: u8,
    /// Its value, possibly truncated.
    pub value: &'a [u8],
}

impl TcpOption<'_> {
    /// The kind of the maximum segment size.
    pub const MSS: u8 = options::MSS;
    /// The kind of SACK blocks.
    pub const SACK: u8 = options::SACK;
    /// The kind of timestamps.
    pub const TIMESTAMPS: u8 = options::TIMESTAMPS;

    /// The timestamps, if it is a complete Timestamps option (RFC 7323 section 3.2).
    pub fn timestamps(&self) -> Option<Timestamps> {
        let ([value, echo_reply], []) = self.value.as_chunks() else { return None };
        let [value, echo_reply] = [value, echo_reply].map(|word| u32::from_be_bytes(*word));
        (self.kind == Self::TIMESTAMPS).then_some(Timestamps { value, echo_reply })
    }
}

/// An option that is shorter than its kind and length, or ends between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a TCP option has no sound length")]
pub struct BadOption;

impl Headers {
    /// Parses `bytes`, the beginning of an IP packet; `None` if they are not, or end within the IP header or an
    /// extension header.
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
        // Not the payload that the library finds, which an invalid length field would hide.
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

    /// The key of its flow and direction. Fragments and packets without ports are one flow per pair of hosts and
    /// protocol.
    pub fn flow_key(&self) -> FlowKey {
        FlowKey::live(self.protocol, self.ends())
    }

    /// The key of the flow's other direction.
    pub fn reverse_key(&self) -> FlowKey {
        let [source, destination] = self.ends();
        FlowKey::live(self.protocol, [destination, source])
    }

    /// The two ends, sender first; ports are 0 if the transport has none.
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
    /// Parses the header at the beginning of `bytes`, with as many options as are present.
    fn read(bytes: &[u8]) -> Option<Self> {
        // The library needs all options; truncated ones are replaced by zeros, which end an option list.
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

    /// Its options except padding, in order (RFC 9293 section 3.1). An option with an invalid length is the last.
    ///
    /// Own code, because the library's iterator ends at the first unknown kind, and options after one of Multipath TCP,
    /// for example, count, too.
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
