//! A TCP/IP header as plain values: IPv4 without options or IPv6 without extension headers, and TCP with all options.
//! [`Layers`](crate::Layers) holds other headers around it.
//!
//! [`Header::parse`] accepts exactly the headers that [`Header::emit`] can restore bit for bit. Fields that can be
//! inferred (lengths, the IPv4 header checksum) are checked once and not stored.

use core::fmt;

/// Length of the longest supported header in bytes: IPv6, and TCP with 40 bytes of options.
pub const MAX_HEADER_LEN: usize = 40 + 60;
/// Length of the longest TCP option area in bytes.
pub const MAX_OPTIONS_LEN: usize = 40;

const PROTOCOL_TCP: u8 = 6;
pub(crate) const IPV4_LEN: usize = 20;
pub(crate) const IPV6_LEN: usize = 40;
const TCP_LEN: usize = 20;

/// TCP flags, with the bit positions of byte 13 of the TCP header.
pub mod flags {
    /// Last segment of the sender.
    pub const FIN: u8 = 0x01;
    /// First segment of the sender.
    pub const SYN: u8 = 0x02;
    /// Reset.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;

    /// True for the flags of a segment that is a pure ACK if it has no payload: ACK is set, and SYN, FIN, RST and URG
    /// are clear. PSH, ECE and CWR (RFC 3168) are allowed.
    pub const fn only_acknowledge(flags: u8) -> bool {
        flags & (ACK | SYN | FIN | RST | URG) == ACK
    }
}

/// Why bytes are not a header that this crate can compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// The packet ends within the header, or before the length in the IP header.
    Truncated,
    /// Neither IPv4 nor IPv6.
    Version,
    /// There are IPv4 options, or a header other than IP and TCP; from [`Layers`](crate::Layers), a header that RFC
    /// 6846 does not compress.
    NotPlainTcp,
    /// A fragment, or the reserved IPv4 flag is set.
    Fragment,
    /// A length field contradicts the header it describes.
    Length,
    /// An IPv4 header checksum is wrong.
    Ipv4Checksum,
    /// The checksum of a minimal encapsulation header (RFC 2004) is wrong.
    MineChecksum,
    /// There are more headers before TCP than [`MAX_LAYERS`](crate::MAX_LAYERS), or they are too long.
    TooManyHeaders,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "packet shorter than its headers say",
            Self::Version => "neither IPv4 nor IPv6",
            Self::NotPlainTcp => "IP options, a header that is not compressed, or a protocol other than TCP",
            Self::Fragment => "a fragment",
            Self::Length => "a length field contradicts its header",
            Self::Ipv4Checksum => "wrong IPv4 header checksum",
            Self::MineChecksum => "wrong checksum of a minimal encapsulation header",
            Self::TooManyHeaders => "too many headers before TCP",
        })
    }
}

impl core::error::Error for ParseError {}

/// Fields that differ between IPv4 and IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ip {
    /// IPv4 without options.
    V4 {
        /// Source address.
        source: [u8; 4],
        /// Destination address.
        destination: [u8; 4],
        /// Identification.
        id: u16,
        /// The DF flag.
        dont_fragment: bool,
    },
    /// IPv6 without extension headers.
    V6 {
        /// Source address.
        source: [u8; 16],
        /// Destination address.
        destination: [u8; 16],
        /// Flow label, 20 bits.
        flow_label: u32,
    },
}

impl Ip {
    /// Length of the IP header in bytes.
    pub const fn header_len(&self) -> usize {
        match self {
            Self::V4 { .. } => IPV4_LEN,
            Self::V6 { .. } => IPV6_LEN,
        }
    }
}

/// The header of one TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Addresses, and the fields that only one IP version has.
    pub ip: Ip,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// ECN bits of the IP header, 2 bits.
    pub ip_ecn: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// TCP source port.
    pub source_port: u16,
    /// TCP destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number. Kept even if the ACK flag is clear.
    pub ack: u32,
    /// The four reserved bits next to the data offset.
    pub reserved: u8,
    /// Byte 13: see [`flags`].
    pub flags: u8,
    /// Window field, unscaled.
    pub window: u16,
    /// TCP checksum as received. Parsing does not verify it.
    pub checksum: u16,
    /// Urgent pointer. Kept even if the URG flag is clear.
    pub urgent: u16,
    /// The option area.
    pub options: Options,
    /// Length of the payload after the TCP header, in bytes.
    pub payload_len: u16,
}

impl Header {
    /// Parses the header at the start of `packet`.
    ///
    /// # Errors
    ///
    /// Refuses headers that [`Header::emit`] could not restore: IP options, extension headers, fragments, a wrong IPv4
    /// checksum, inconsistent lengths, or a truncated packet. Bytes beyond the length in the IP header (link padding)
    /// are ignored.
    pub fn parse(packet: &[u8]) -> Result<Self, ParseError> {
        Self::parse_either::<true>(packet).map(|(header, _)| header)
    }

    /// Like [`Header::parse`], but does not copy the options. The returned header has none, and the option area is
    /// returned as a slice.
    #[inline(always)]
    pub(crate) fn parse_apart(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        Self::parse_either::<false>(packet)
    }

    #[inline(always)]
    fn parse_either<const OPTIONS: bool>(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        match packet.first().ok_or(ParseError::Truncated)? >> 4 {
            4 => Self::parse_v4::<OPTIONS>(packet),
            6 => Self::parse_v6::<OPTIONS>(packet),
            _ => Err(ParseError::Version),
        }
    }

    #[inline(always)]
    fn parse_v4<const OPTIONS: bool>(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (ip, rest) = packet.split_first_chunk::<IPV4_LEN>().ok_or(ParseError::Truncated)?;
        if ip[0] != 0x45 || ip[9] != PROTOCOL_TCP {
            return Err(ParseError::NotPlainTcp);
        }
        check_v4(ip)?;
        let ip_payload_len = usize::from(be16(ip, 2)).checked_sub(IPV4_LEN).ok_or(ParseError::Length)?;
        let (ip, tos, ttl) = read_v4(ip);
        Self::parse_tcp::<OPTIONS>(ip, tos, ttl, rest, ip_payload_len)
    }

    #[inline(always)]
    fn parse_v6<const OPTIONS: bool>(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (ip, rest) = packet.split_first_chunk::<IPV6_LEN>().ok_or(ParseError::Truncated)?;
        if ip[6] != PROTOCOL_TCP {
            return Err(ParseError::NotPlainTcp);
        }
        let ip_payload_len = usize::from(be16(ip, 4));
        let (ip, tos, ttl) = read_v6(ip);
        Self::parse_tcp::<OPTIONS>(ip, tos, ttl, rest, ip_payload_len)
    }

    /// Parses TCP at the start of `rest`. `ip_payload_len` is the length of the IP payload.
    #[inline(always)]
    pub(crate) fn parse_tcp<const OPTIONS: bool>(
        ip: Ip,
        tos: u8,
        ttl: u8,
        rest: &[u8],
        ip_payload_len: usize,
    ) -> Result<(Self, &[u8]), ParseError> {
        let segment = rest.get(..ip_payload_len).ok_or(ParseError::Truncated)?;
        let (tcp, rest) = segment.split_first_chunk::<TCP_LEN>().ok_or(ParseError::Length)?;
        let options_len = usize::from(tcp[12] >> 4)
            .checked_mul(4)
            .and_then(|len| len.checked_sub(TCP_LEN))
            .ok_or(ParseError::Length)?;
        let options = rest.get(..options_len).ok_or(ParseError::Length)?;
        let header = Self {
            ip,
            dscp: tos >> 2,
            ip_ecn: tos & 3,
            ttl,
            source_port: be16(tcp, 0),
            destination_port: be16(tcp, 2),
            seq: be32(tcp, 4),
            ack: be32(tcp, 8),
            reserved: tcp[12] & 0xf,
            flags: tcp[13],
            window: be16(tcp, 14),
            checksum: be16(tcp, 16),
            urgent: be16(tcp, 18),
            options: if OPTIONS { Options::new(options).ok_or(ParseError::Length)? } else { Options::NONE },
            payload_len: (rest.len() - options_len) as u16,
        };
        Ok((header, options))
    }

    /// Sets the option area that [`Header::parse_tcp`] left out.
    pub(crate) fn set_options(&mut self, area: &[u8]) -> Result<(), ParseError> {
        self.options = Options::new(area).ok_or(ParseError::Length)?;
        Ok(())
    }

    /// True if the TCP checksum in `packet` equals [`Header::tcp_checksum`]. `packet` must be a whole packet with this
    /// IP header.
    #[cfg(any(test, feature = "hack"))]
    pub(crate) fn packet_checks(&self, packet: &[u8]) -> bool {
        let addresses = match self.ip {
            Ip::V4 { .. } => 12,
            Ip::V6 { .. } => 8,
        };
        let tcp_len = (packet.len() - self.ip.header_len()) as u16;
        let bytes = fold(sum_bytes(0, &packet[addresses..]));
        let sum = u64::from(PROTOCOL_TCP) + u64::from(tcp_len) + u64::from(u16::from_be(bytes));
        // 0x0000 and 0xffff both represent zero in ones' complement. Only the former can be restored.
        fold(sum) == 0xffff && self.checksum != 0xffff
    }

    /// Length of the IP and TCP headers together in bytes, at most [`MAX_HEADER_LEN`].
    pub const fn len(&self) -> usize {
        self.ip.header_len() + TCP_LEN + self.options.len as usize
    }

    /// Always false, because a header has at least 40 bytes. Complements [`Header::len`].
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// True if all flag bits in `mask` are set.
    pub const fn has(&self, mask: u8) -> bool {
        self.flags & mask == mask
    }

    /// True for a pure ACK: no payload, and [no flag with another meaning](flags::only_acknowledge).
    pub const fn is_pure_ack(&self) -> bool {
        self.payload_len == 0 && flags::only_acknowledge(self.flags)
    }

    /// The IPv4 identification; 0 for IPv6.
    pub const fn ip_id(&self) -> u16 {
        match self.ip {
            Ip::V4 { id, .. } => id,
            Ip::V6 { .. } => 0,
        }
    }

    /// Writes the header and returns its length in bytes, or `None` if `out` is shorter than [`Header::len`].
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> Option<usize> {
        let len = self.len();
        let out = out.get_mut(..len)?;
        let tcp_len = TCP_LEN as u16 + u16::from(self.options.len);
        let tcp = match self.ip {
            Ip::V4 { .. } => {
                let (ip, tcp) = out.split_first_chunk_mut::<IPV4_LEN>()?;
                self.emit_v4(ip, tcp_len);
                tcp
            }
            Ip::V6 { .. } => {
                let (ip, tcp) = out.split_first_chunk_mut::<IPV6_LEN>()?;
                self.emit_v6(ip, tcp_len);
                tcp
            }
        };
        let (tcp, options) = tcp.split_first_chunk_mut::<TCP_LEN>()?;
        tcp[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        tcp[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        tcp[4..8].copy_from_slice(&self.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.to_be_bytes());
        tcp[12] = (tcp_len as u8 / 4) << 4 | self.reserved & 0xf;
        tcp[13] = self.flags;
        tcp[14..16].copy_from_slice(&self.window.to_be_bytes());
        tcp[16..18].copy_from_slice(&self.checksum.to_be_bytes());
        tcp[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        copy_words(self.options.as_bytes(), options);
        Some(len)
    }

    fn emit_v4(&self, out: &mut [u8; IPV4_LEN], tcp_len: u16) {
        let Ip::V4 { source, destination, id, dont_fragment } = self.ip else {
            return;
        };
        let total = (IPV4_LEN as u16 + tcp_len).wrapping_add(self.payload_len);
        let tos = self.dscp << 2 | self.ip_ecn & 3;
        let words = [
            0x4500_0000 | u32::from(tos) << 16 | u32::from(total),
            u32::from(id) << 16 | u32::from(dont_fragment) << 14,
            u32::from(self.ttl) << 24 | u32::from(PROTOCOL_TCP) << 16,
            u32::from_be_bytes(source),
            u32::from_be_bytes(destination),
        ];
        let checksum = !fold(words.iter().map(|&word| u64::from(word)).sum());
        for (out, word) in out.chunks_exact_mut(4).zip(words) {
            out.copy_from_slice(&word.to_be_bytes());
        }
        out[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn emit_v6(&self, out: &mut [u8; IPV6_LEN], tcp_len: u16) {
        let Ip::V6 { source, destination, flow_label } = self.ip else {
            return;
        };
        let tos = u32::from(self.dscp << 2 | self.ip_ecn & 3);
        let word = 6 << 28 | tos << 20 | flow_label & 0xf_ffff;
        out[0..4].copy_from_slice(&word.to_be_bytes());
        out[4..6].copy_from_slice(&tcp_len.wrapping_add(self.payload_len).to_be_bytes());
        out[6] = PROTOCOL_TCP;
        out[7] = self.ttl;
        out[8..24].copy_from_slice(&source);
        out[24..40].copy_from_slice(&destination);
    }

    /// The TCP checksum of a segment with this header and `payload` (RFC 9293 section 3.1, RFC 8200 section 8.1).
    pub fn tcp_checksum(&self, payload: &[u8]) -> u16 {
        let tcp_len = TCP_LEN as u32 + u32::from(self.options.len) + payload.len() as u32;
        let addresses = match &self.ip {
            Ip::V4 { source, destination, .. } => sum_bytes(sum_bytes(0, source), destination),
            Ip::V6 { source, destination, .. } => sum_bytes(sum_bytes(0, source), destination),
        };
        let bytes = fold(sum_bytes(sum_bytes(addresses, self.options.as_bytes()), payload));
        let mut sum = u64::from(PROTOCOL_TCP) + u64::from(tcp_len) + u64::from(u16::from_be(bytes));
        let offset_and_flags = (5 + u64::from(self.options.len / 4)) << 12
            | u64::from(self.reserved & 0xf) << 8
            | u64::from(self.flags);
        sum += u64::from(self.source_port) + u64::from(self.destination_port) + u64::from(self.seq);
        sum += u64::from(self.ack) + offset_and_flags + u64::from(self.window) + u64::from(self.urgent);
        !fold(sum)
    }

    /// True if the TCP checksum is correct for `payload`.
    pub fn has_valid_checksum(&self, payload: &[u8]) -> bool {
        // 0x0000 and 0xffff both represent zero in ones' complement. Only the one that `tcp_checksum` computes can be
        // restored.
        self.checksum == self.tcp_checksum(payload)
    }
}

/// Refuses an IPv4 header that could not be restored: options, fragments, or a wrong checksum.
#[inline(always)]
pub(crate) fn check_v4(ip: &[u8; IPV4_LEN]) -> Result<(), ParseError> {
    if ip[0] >> 4 != 4 {
        return Err(ParseError::Version);
    }
    if ip[0] != 0x45 {
        return Err(ParseError::NotPlainTcp);
    }
    if ip[6] & !0x40 != 0 || ip[7] != 0 {
        return Err(ParseError::Fragment);
    }
    // The sum over all ten words, including the checksum, is 0xffff. It would be 0 only for an all-zero header.
    if fold(sum_bytes(0, ip)) != 0xffff || be16(ip, 10) == 0xffff {
        return Err(ParseError::Ipv4Checksum);
    }
    Ok(())
}

/// Reads the addresses and the IPv4-only fields, the byte with DSCP and ECN, and the TTL.
#[inline(always)]
pub(crate) fn read_v4(ip: &[u8; IPV4_LEN]) -> (Ip, u8, u8) {
    let fields = Ip::V4 {
        source: [ip[12], ip[13], ip[14], ip[15]],
        destination: [ip[16], ip[17], ip[18], ip[19]],
        id: be16(ip, 4),
        dont_fragment: ip[6] & 0x40 != 0,
    };
    (fields, ip[1], ip[8])
}

/// Reads the addresses and the IPv6-only fields, the traffic class, and the hop limit.
#[inline(always)]
pub(crate) fn read_v6(ip: &[u8; IPV6_LEN]) -> (Ip, u8, u8) {
    let word = be32(ip, 0);
    let mut source = [0; 16];
    let mut destination = [0; 16];
    source.copy_from_slice(&ip[8..24]);
    destination.copy_from_slice(&ip[24..40]);
    (Ip::V6 { source, destination, flow_label: word & 0xf_ffff }, (word >> 20) as u8, ip[7])
}

/// The option area of a TCP header, verbatim: 0 to 40 bytes, a multiple of four.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Options {
    len: u8,
    bytes: [u8; MAX_OPTIONS_LEN],
}

impl Options {
    /// No options.
    pub const NONE: Self = Self { len: 0, bytes: [0; MAX_OPTIONS_LEN] };

    /// Creates an area with these bytes. Returns `None` unless the length is a multiple of four and at most 40.
    pub fn new(options: &[u8]) -> Option<Self> {
        if options.len() > MAX_OPTIONS_LEN || !options.len().is_multiple_of(4) {
            return None;
        }
        let mut bytes = [0; MAX_OPTIONS_LEN];
        copy_words(options, &mut bytes);
        Some(Self { len: options.len() as u8, bytes })
    }

    /// Lets `fill` write the area and return its length. Returns false unless that length is a multiple of four.
    pub(crate) fn refill(&mut self, fill: impl FnOnce(&mut [u8; MAX_OPTIONS_LEN]) -> Option<usize>) -> bool {
        let Some(len) = fill(&mut self.bytes) else { return false };
        // Bytes after the area are zero, because headers are compared as a whole.
        let old = usize::from(self.len);
        if old > len {
            self.bytes[len..old].fill(0);
        }
        self.len = len as u8;
        len.is_multiple_of(4)
    }

    /// Iterates over the options in an option area.
    pub(crate) const fn iter_over(bytes: &[u8]) -> OptionIter<'_> {
        OptionIter { rest: bytes }
    }

    /// The bytes of the area.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Iterates over the options.
    pub fn iter(&self) -> OptionIter<'_> {
        OptionIter { rest: self.as_bytes() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Options {
    type Item = TcpOption<'a>;
    type IntoIter = OptionIter<'a>;
    fn into_iter(self) -> OptionIter<'a> {
        self.iter()
    }
}

/// One TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Kind 0 and the bytes after it. Always the last option.
    End(&'a [u8]),
    /// Kind 1.
    Nop,
    /// Kind 2: maximum segment size.
    Mss(u16),
    /// Kind 3: window scale.
    WindowScale(u8),
    /// Kind 4.
    SackPermitted,
    /// Kind 5: one to four blocks of two 32-bit edges each, as raw bytes.
    Sack(&'a [u8]),
    /// Kind 8 (RFC 7323).
    Timestamps {
        /// TSval.
        value: u32,
        /// TSecr.
        echo: u32,
    },
    /// Any other kind with a length byte, or a known kind with an unusual length.
    Other {
        /// Kind byte.
        kind: u8,
        /// The bytes after the length byte.
        data: &'a [u8],
    },
    /// An option whose length byte is missing or invalid, and all remaining bytes. Always the last option.
    Malformed(&'a [u8]),
}

/// Iterator over the options of a header; see [`Options::iter`].
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
}

impl<'a> OptionIter<'a> {
    /// The bytes not yet iterated over.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        let all = self.rest;
        let (&kind, rest) = all.split_first()?;
        if kind == 1 {
            self.rest = rest;
            return Some(TcpOption::Nop);
        }
        if kind == 0 {
            self.rest = &[];
            return Some(TcpOption::End(rest));
        }
        let data = rest
            .first()
            .and_then(|&len| usize::from(len).checked_sub(2))
            .and_then(|len| rest.get(1..1 + len));
        let Some(data) = data else {
            self.rest = &[];
            return Some(TcpOption::Malformed(all));
        };
        self.rest = &rest[1 + data.len()..];
        Some(match (kind, data.len()) {
            (2, 2) => TcpOption::Mss(be16(data, 0)),
            (3, 1) => TcpOption::WindowScale(data[0]),
            (4, 0) => TcpOption::SackPermitted,
            (5, 8 | 16 | 24 | 32) => TcpOption::Sack(data),
            (8, 8) => TcpOption::Timestamps { value: be32(data, 0), echo: be32(data, 4) },
            _ => TcpOption::Other { kind, data },
        })
    }
}

/// Copies word by word. An option area is short, and a call to memcpy would take longer.
fn copy_words(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.chunks_exact_mut(4).zip(from.chunks_exact(4)) {
        to.copy_from_slice(from);
    }
}

/// The 16-bit big-endian word at `at`. The caller must ensure that it exists.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The 32-bit big-endian word at `at`. The caller must ensure that it exists.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Adds `bytes` to a ones' complement sum, eight at a time. A remainder at the end is padded with zeros.
///
/// The words are in native byte order, and so is the result of [`fold`]. A ones' complement sum depends on neither the
/// byte order nor the width of the words (RFC 1071 section 2).
#[inline(always)]
pub(crate) fn sum_bytes(sum: u64, bytes: &[u8]) -> u64 {
    let mut sum = sum;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        sum = add(sum, word.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word)));
    }
    let mut rest = words.remainder();
    if let Some((word, behind)) = rest.split_first_chunk() {
        sum = add(sum, u64::from(u32::from_ne_bytes(*word)));
        rest = behind;
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        sum = add(sum, u64::from(u32::from_ne_bytes(last)));
    }
    sum
}

/// The ones' complement sum of two words.
#[inline(always)]
const fn add(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u64
}

/// Folds a sum of words to 16 bits.
pub(crate) const fn fold(sum: u64) -> u16 {
    // The result has 33 bits at first, then 18, 17 and 16.
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Header {
        let mut header = Header {
            ip: Ip::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2], id: 0x1234, dont_fragment: true },
            dscp: 5,
            ip_ecn: 2,
            ttl: 64,
            source_port: 40000,
            destination_port: 80,
            seq: 1,
            ack: u32::MAX,
            reserved: 0,
            flags: flags::ACK,
            window: 500,
            checksum: 0,
            urgent: 0,
            options: Options::new(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]).unwrap_or_default(),
            payload_len: 0,
        };
        header.checksum = header.tcp_checksum(&[]);
        header
    }

    fn v6() -> Header {
        let mut header = v4();
        header.ip = Ip::V6 { source: [1; 16], destination: [2; 16], flow_label: 0xabcde };
        header.checksum = header.tcp_checksum(&[]);
        header
    }

    fn bytes(header: &Header) -> ([u8; MAX_HEADER_LEN], usize) {
        let mut out = [0xaa; MAX_HEADER_LEN];
        let len = header.emit(&mut out).unwrap_or(0);
        (out, len)
    }

    #[test]
    fn emitted_headers_are_parsed_back() {
        for header in [v4(), v6()] {
            let (out, len) = bytes(&header);
            assert_eq!(len, header.len());
            let parsed = Header::parse(&out[..len]);
            assert_eq!(parsed, Ok(header));
            assert!(header.has_valid_checksum(&[]) && header.is_pure_ack());
            assert_eq!(Header::parse(&out), Ok(header), "link padding is ignored");
        }
    }

    /// Verifying a packet's sum and computing its checksum must agree. The checksum is never 0xffff, although 0x0000
    /// and 0xffff both represent zero.
    #[test]
    fn one_checksum_of_all_is_right_whichever_way_it_is_found() {
        let longest = Options::new(&core::array::from_fn::<u8, 40, _>(|at| at as u8 * 6)).unwrap_or_default();
        for mut header in
            [v4(), v6(), Header { options: longest, ..v4() }, Header { options: Options::NONE, ..v6() }]
        {
            let right = header.tcp_checksum(&[]);
            // Also covers a sum of zero.
            for seq in [header.seq, header.seq.wrapping_add(u32::from(right))] {
                header.seq = seq;
                let right = header.tcp_checksum(&[]);
                for checksum in 0..=u16::MAX {
                    header.checksum = checksum;
                    let (out, len) = bytes(&header);
                    assert_eq!(header.packet_checks(&out[..len]), checksum == right, "{checksum:#x}");
                    assert_eq!(header.has_valid_checksum(&[]), checksum == right);
                }
            }
        }
    }

    #[test]
    fn a_cut_anywhere_is_an_error() {
        for header in [v4(), v6()] {
            let (mut out, len) = bytes(&header);
            for cut in 0..len {
                assert!(Header::parse(&out[..cut]).is_err());
                assert_eq!(header.emit(&mut out[..cut]), None);
            }
        }
    }

    #[test]
    fn headers_that_cannot_be_restored_are_refused() {
        let (good, len) = bytes(&v4());
        for (at, value, error) in [
            (0, 0x55, ParseError::Version),
            (0, 0x46, ParseError::NotPlainTcp),
            (9, 17, ParseError::NotPlainTcp),
            (6, 0x60, ParseError::Fragment),
            (7, 1, ParseError::Fragment),
            (8, 63, ParseError::Ipv4Checksum),
            (32, 0x40, ParseError::Length),
            (32, 0xf0, ParseError::Length),
        ] {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(Header::parse(&bad[..len]), Err(error), "byte {at}");
        }
    }

    #[test]
    fn options_of_every_kind_are_told_apart() {
        let area = [2, 4, 5, 0xb4, 3, 3, 7, 4, 2, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 30, 3, 1, 5, 3, 9, 0, 0];
        let options = Options::new(&area).unwrap_or_default();
        let mut iter = options.iter();
        assert_eq!(iter.next(), Some(TcpOption::Mss(1460)));
        assert_eq!(iter.next(), Some(TcpOption::WindowScale(7)));
        assert_eq!(iter.next(), Some(TcpOption::SackPermitted));
        assert_eq!(iter.next(), Some(TcpOption::Nop));
        assert_eq!(iter.next(), Some(TcpOption::Timestamps { value: 9, echo: 8 }));
        assert_eq!(iter.next(), Some(TcpOption::Other { kind: 30, data: &[1] }));
        assert_eq!(iter.next(), Some(TcpOption::Other { kind: 5, data: &[9] }));
        assert_eq!(iter.next(), Some(TcpOption::End(&[0])));
        assert_eq!(iter.next(), None);
        let cut = Options::new(&[1, 1, 8, 10]).unwrap_or_default();
        assert_eq!(cut.iter().last(), Some(TcpOption::Malformed(&[8, 10])));
        assert_eq!(Options::new(&[0; 3]), None);
        assert_eq!(Options::new(&[0; 44]), None);
    }
}
