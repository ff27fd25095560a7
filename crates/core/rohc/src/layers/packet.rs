//! Parsing layers from packets, and writing them.

use super::{Kind, Layers, MAX_LAYERS, Next, Version, gre, mine_len, set_traffic_class};
use crate::header::{
    Header, IPV4_LEN, IPV6_LEN, Ip, ParseError, be16, check_v4, fold, read_v4, read_v6, sum_bytes,
};

/// A header in a packet: kind, offset and length.
type HeaderSpan = (Kind, usize, usize);

impl Layers {
    /// Parses all headers of `packet`. Packets without layers are accepted too.
    ///
    /// # Errors
    ///
    /// Refuses headers that [`Layers::emit`] could not restore, see [`Header::parse`]. [`ParseError::NotPlainTcp`]
    /// means IPv4 options, or a header that RFC 6846 does not compress at this position. [`ParseError::TooManyHeaders`]
    /// means more headers than [`MAX_LAYERS`], or more bytes than [`MAX_LAYERS_LEN`](super::MAX_LAYERS_LEN).
    pub fn parse(packet: &[u8]) -> Result<(Self, Header), ParseError> {
        let mut layers = Self::EMPTY;
        let (mut header, options, _) = layers.read(packet)?;
        header.set_options(options)?;
        Ok((layers, header))
    }

    /// Parses all headers of `packet`. Returns TCP and the innermost IP without options, the options, and the packet
    /// without bytes beyond the length in its first header.
    pub(crate) fn read<'a>(&mut self, packet: &'a [u8]) -> Result<(Header, &'a [u8], &'a [u8]), ParseError> {
        self.clear();
        // One more than the maximum of layers, because of the innermost IP header.
        let mut places: [HeaderSpan; MAX_LAYERS + 1] = [(Kind::V4, 0, 0); MAX_LAYERS + 1];
        let (mut count, mut innermost) = (0, 0);
        let (mut at, mut end) = (0, packet.len());
        let mut version = match packet.first().ok_or(ParseError::Truncated)? >> 4 {
            4 => Version::V4,
            6 => Version::V6,
            _ => return Err(ParseError::Version),
        };
        let mut next = Next::Ip(version);
        loop {
            let kind = match next {
                Next::Tcp => break,
                Next::Ip(inner) => {
                    version = inner;
                    let stated = ip_len(version, &packet[at..end])?;
                    // Padding may follow only the packet of the first header.
                    if stated > end - at {
                        return Err(ParseError::Truncated);
                    }
                    if at > 0 && stated != end - at {
                        return Err(ParseError::Length);
                    }
                    end = at + stated;
                    innermost = count;
                    version.kind()
                }
                Next::Layer(kind) => kind,
            };
            let len = layer_len(kind, &packet[at..end])?;
            let bytes = packet.get(at..at + len).filter(|_| at + len <= end).ok_or(ParseError::Length)?;
            *places.get_mut(count).ok_or(ParseError::TooManyHeaders)? = (kind, at, len);
            count += 1;
            next = Next::behind(kind, bytes, version).ok_or(ParseError::NotPlainTcp)?;
            at += len;
        }
        self.take(packet, &places[..count], innermost)?;
        let ip = &packet[places[innermost].1..];
        let (ip, tos, ttl) = match version {
            Version::V4 => read_v4(ip.first_chunk().ok_or(ParseError::Length)?),
            Version::V6 => read_v6(ip.first_chunk().ok_or(ParseError::Length)?),
        };
        let (header, options) = Header::parse_tcp::<false>(ip, tos, ttl, &packet[at..end], end - at)?;
        Ok((header, options, &packet[..end]))
    }

    /// Copies all headers except the innermost IP header, and clears the fields that can be inferred.
    fn take(&mut self, packet: &[u8], places: &[HeaderSpan], innermost: usize) -> Result<(), ParseError> {
        for (index, &(kind, at, len)) in places.iter().enumerate() {
            if index == innermost {
                continue;
            }
            let fill = |room: &mut [u8]| {
                room.get_mut(..len).ok_or(crate::wire::Short)?.copy_from_slice(&packet[at..at + len]);
                match kind {
                    Kind::V4 => {
                        room[2..4].fill(0);
                        room[10..12].fill(0);
                    }
                    Kind::V6 => room[4..6].fill(0),
                    Kind::Mine => room[2..4].fill(0),
                    _ => {}
                }
                Ok(len)
            };
            self.append(kind, fill).map_err(|_| ParseError::TooManyHeaders)?;
        }
        self.set_outer(innermost);
        Ok(())
    }

    /// Writes all headers and returns their length in bytes, or `None` if `out` is too short.
    pub fn emit(&self, header: &Header, out: &mut [u8]) -> Option<usize> {
        let outer_len = self.all()[..self.outer()].last().map_or(0, |layer| layer.range().end);
        let (behind_len, plain) = (self.len() - outer_len, header.len());
        let len = self.len() + plain;
        let out = out.get_mut(..len)?;
        header.emit(&mut out[outer_len..])?;
        let ip_end = outer_len + header.ip.header_len();
        out.copy_within(ip_end..outer_len + plain, ip_end + behind_len);
        out[..outer_len].copy_from_slice(&self.bytes[..outer_len]);
        out[ip_end..ip_end + behind_len].copy_from_slice(&self.bytes[outer_len..self.len()]);
        let packet_len = len + usize::from(header.payload_len);
        for (index, layer) in self.all().iter().enumerate() {
            let at = layer.range().start + if index < self.outer() { 0 } else { header.ip.header_len() };
            match layer.kind {
                Kind::V4 => infer_v4(&mut out[at..at + IPV4_LEN], packet_len - at),
                Kind::V6 => infer_v6(&mut out[at..], packet_len - at),
                Kind::Mine => infer_checksum(&mut out[at..at + layer.range().len()], 2),
                _ => {}
            }
        }
        if behind_len > 0 {
            let inner = &mut out[outer_len..];
            match header.ip {
                Ip::V4 { .. } => {
                    inner[9] = self.inner_protocol();
                    infer_v4(&mut inner[..IPV4_LEN], packet_len - outer_len);
                }
                Ip::V6 { .. } => {
                    inner[6] = self.inner_protocol();
                    infer_v6(inner, packet_len - outer_len);
                }
            }
        }
        Some(len)
    }

    /// True if no length field overflows with a payload of `payload_len` bytes.
    pub(crate) fn has_room(&self, header: &Header, payload_len: usize) -> bool {
        // The length in the first header is the largest. An IPv6 header does not count itself.
        let first = self.all().first().filter(|_| self.outer() > 0).map(|layer| layer.kind);
        let uncounted_len = match first.unwrap_or(Version::from_ip(&header.ip).kind()) {
            Kind::V6 => IPV6_LEN,
            _ => 0,
        };
        self.len() + header.len() + payload_len - uncounted_len <= usize::from(u16::MAX)
    }
}

/// Length of an IP packet according to its header, in bytes.
fn ip_len(version: Version, ip: &[u8]) -> Result<usize, ParseError> {
    match version {
        Version::V4 => {
            let ip = ip.first_chunk::<IPV4_LEN>().ok_or(ParseError::Truncated)?;
            check_v4(ip)?;
            let len = usize::from(be16(ip, 2));
            if len < IPV4_LEN { Err(ParseError::Length) } else { Ok(len) }
        }
        Version::V6 => {
            let ip = ip.first_chunk::<IPV6_LEN>().ok_or(ParseError::Truncated)?;
            if ip[0] >> 4 != 6 {
                return Err(ParseError::Version);
            }
            Ok(IPV6_LEN + usize::from(be16(ip, 4)))
        }
    }
}

/// Length of a layer according to its first bytes. Fails if the layer could not be restored.
fn layer_len(kind: Kind, bytes: &[u8]) -> Result<usize, ParseError> {
    let byte = |at: usize| bytes.get(at).copied().ok_or(ParseError::Length);
    Ok(match kind {
        Kind::V4 => IPV4_LEN,
        Kind::V6 => IPV6_LEN,
        Kind::HopByHop | Kind::Routing | Kind::Destination => 8 + 8 * usize::from(byte(1)?),
        // RFC 4302 section 2.2: number of words minus two. The header must at least include the sequence number.
        Kind::Ah => match byte(1)? {
            0 => return Err(ParseError::Length),
            words => 8 + 4 * usize::from(words),
        },
        Kind::Gre => {
            let flags = byte(0)?;
            let len = gre::len(flags);
            // In every GRE header that RFC 6846 compresses, the reserved bits, the version, and the bytes after the
            // checksum are zero.
            let reserved = flags & !(gre::CHECKSUM | gre::KEY | gre::SEQUENCE) != 0 || byte(1)? != 0;
            let offset = flags & gre::CHECKSUM != 0 && [byte(6)?, byte(7)?] != [0; 2];
            if reserved || offset {
                return Err(ParseError::NotPlainTcp);
            }
            len
        }
        Kind::Mine => {
            let len = mine_len(byte(1)?);
            let header = bytes.get(..len).ok_or(ParseError::Length)?;
            // As with IPv4, only one of the two representations of zero in ones' complement can be restored.
            if fold(sum_bytes(0, header)) != 0xffff || be16(header, 2) == 0xffff {
                return Err(ParseError::MineChecksum);
            }
            len
        }
    })
}

fn infer_v4(ip: &mut [u8], len: usize) {
    ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    infer_checksum(ip, 10);
}

fn infer_v6(ip: &mut [u8], len: usize) {
    ip[4..6].copy_from_slice(&((len - IPV6_LEN) as u16).to_be_bytes());
}

/// Computes the checksum of all bytes and writes it at `at`.
fn infer_checksum(bytes: &mut [u8], at: usize) {
    bytes[at..at + 2].fill(0);
    let checksum = !u16::from_be(fold(sum_bytes(0, bytes)));
    bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes the fields of an IP header that its static chain carries, and zeros elsewhere.
pub(super) fn static_ip(ip: &Ip, next: u8, out: &mut [u8]) {
    out.fill(0);
    match ip {
        Ip::V4 { source, destination, .. } => {
            (out[0], out[9]) = (0x45, next);
            out[12..16].copy_from_slice(source);
            out[16..20].copy_from_slice(destination);
        }
        Ip::V6 { source, destination, flow_label } => {
            out[..4].copy_from_slice(&(6 << 28 | flow_label).to_be_bytes());
            set_traffic_class(out, 0);
            out[6] = next;
            out[8..24].copy_from_slice(source);
            out[24..40].copy_from_slice(destination);
        }
    }
}
