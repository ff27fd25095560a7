//! Reads from a capture the packets that a codec supports, in chunks.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use serde::Serialize;
use tacit_rohc::Layers;
use tacit_rohc::header::{Header, Ip, MAX_HEADER_LEN, ParseError};

use crate::capture::compressed::Decompressed;
use crate::capture::container::Container;
use crate::capture::link::{IpBytes, RetryFilter, Sink, Verdict, ip_packets};
use crate::capture::{CaptureError, open};

/// Number of bytes kept per captured frame: the longest IP packet plus any link header.
const LONGEST_FRAME: usize = 65_535 + 1_024;

/// Packets in a capture that are not passed to a codec, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Frames without a readable IP packet, or retransmissions of one on the air.
    pub not_ip: u64,
    /// Packets with IPv4 options, an unsupported header, or no TCP.
    pub not_plain_tcp: u64,
    /// IP fragments.
    pub fragments: u64,
    /// Truncated packets: without complete headers, or, when writing a file, without the complete packet.
    pub cut: u64,
    /// Packets with a wrong IPv4 header checksum or inconsistent lengths.
    pub malformed: u64,
    /// TCP packets other than pure ACKs, if the codec only supports these.
    pub not_pure_acks: u64,
    /// Packets with options that a compressed list cannot represent.
    pub options: u64,
}

impl LeftOut {
    /// The counts with their reasons as text, without reasons that did not occur.
    pub(super) fn reasons(&self) -> Vec<String> {
        [
            (self.not_ip, "without IP"),
            (self.not_plain_tcp, "not plain TCP/IP"),
            (self.fragments, "fragments"),
            (self.cut, "not captured whole"),
            (self.malformed, "malformed"),
            (self.not_pure_acks, "not pure ACKs"),
            (self.options, "with options that cannot be coded"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// Which packets to read, and how to modify them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Every TCP packet that was captured completely, unchanged.
    Exact,
    /// Every TCP packet. Missing payload is filled with zeros, and wrong TCP checksums are corrected.
    Tcp,
    /// Pure ACKs, with wrong TCP checksums corrected.
    PureAcks,
}

/// Location of a packet in its chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketSpan {
    pub start: usize,
    pub len: usize,
    pub payload_len: usize,
    pub at_nanos: Option<i128>,
    /// Number in the capture, counted from 1.
    pub number: u64,
}

/// Packets in memory, concatenated.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub bytes: Vec<u8>,
    pub places: Vec<PacketSpan>,
}

impl Chunk {
    pub fn packet(&self, place: &PacketSpan) -> &[u8] {
        &self.bytes[place.start..place.start + place.len]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
}

/// Counts of modified and of omitted packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub left_out: LeftOut,
    pub checksums_set_right: u64,
    pub payloads_filled: u64,
}

/// A capture being read.
pub(super) struct Packets {
    container: Container<Decompressed<File>>,
    name: String,
    wanted: Wanted,
    heard: RetryFilter,
    frame: Vec<u8>,
    number: u64,
    unknown_link_type: Option<u16>,
    understood: bool,
    pub tally: Tally,
}

impl Packets {
    pub fn open(path: &Path, wanted: Wanted) -> Result<Self, CaptureError> {
        let mut container = open(path)?;
        container.keep(LONGEST_FRAME);
        Ok(Self {
            container,
            name: path.display().to_string(),
            wanted,
            heard: RetryFilter::default(),
            frame: Vec::new(),
            number: 0,
            unknown_link_type: None,
            understood: false,
            tally: Tally::default(),
        })
    }

    /// Reads the next packets into `chunk`, up to and including the packet that exceeds `limit` bytes. Returns false at
    /// the end of the capture.
    pub fn fill(&mut self, chunk: &mut Chunk, limit: usize) -> Result<bool, CaptureError> {
        chunk.clear();
        while chunk.bytes.len() < limit {
            let offset = self.container.offset();
            match self.container.next(&mut self.frame) {
                Ok(Some(record)) => {
                    self.number += 1;
                    self.frame(chunk, record.link_type, record.original_len, record.at_nanos);
                }
                Ok(None) => return self.at_end().map(|()| false),
                Err(fault) if self.number == 0 => {
                    let offset = self.container.offset();
                    return Err(CaptureError::before_any_packet(fault, &self.name, offset));
                }
                Err(fault) => {
                    let (name, packet) = (self.name.clone(), self.number + 1);
                    return Err(CaptureError::Broken { name, packet, offset, problem: fault.describe() });
                }
            }
        }
        Ok(true)
    }

    fn at_end(&self) -> Result<(), CaptureError> {
        match self.unknown_link_type {
            Some(link_type) if !self.understood => {
                Err(CaptureError::LinkType { name: self.name.clone(), link_type })
            }
            _ => Ok(()),
        }
    }

    fn frame(&mut self, chunk: &mut Chunk, link_type: u16, original_len: u32, at_nanos: Option<i128>) {
        let (tally, wanted, number) = (&mut self.tally, self.wanted, self.number);
        let mut sink = Admission { wanted, chunk, tally, number, at_nanos };
        let verdict = ip_packets(link_type, &self.frame, original_len, &mut self.heard, &mut sink);
        match verdict {
            Verdict::Read => self.understood = true,
            Verdict::Unsupported => {
                self.unknown_link_type.get_or_insert(link_type);
                self.tally.left_out.not_ip += 1;
            }
            _ => {
                self.understood = true;
                self.tally.left_out.not_ip += 1;
            }
        }
    }
}

/// Receives the packets of one frame.
struct Admission<'p> {
    wanted: Wanted,
    chunk: &'p mut Chunk,
    tally: &'p mut Tally,
    number: u64,
    at_nanos: Option<i128>,
}

impl Sink for Admission<'_> {
    fn packet(&mut self, ip: IpBytes<'_>) {
        let number = (self.number, self.at_nanos);
        if let Err(reason) = admit(&ip, self.wanted, self.chunk, self.tally, number) {
            *reason.counter(&mut self.tally.left_out) += 1;
        }
    }

    /// The strict codec compresses chains of IP and GRE headers itself (RFC 6846 section 6.2).
    fn takes_tunnel(&mut self, ip: IpBytes<'_>) -> bool {
        if self.wanted == Wanted::PureAcks {
            return false;
        }
        // Bytes beyond the snap length cannot be part of a header.
        let mut whole = ip.bytes.to_vec();
        whole.resize(stated_len(ip.bytes).unwrap_or(0).max(whole.len()), 0);
        Layers::parse(&whole).is_ok()
    }
}

/// Why a packet is omitted.
enum Reason {
    NotPlainTcp,
    Fragment,
    Cut,
    Malformed,
    NotPureAck,
}

impl Reason {
    fn counter(self, left_out: &mut LeftOut) -> &mut u64 {
        match self {
            Self::NotPlainTcp => &mut left_out.not_plain_tcp,
            Self::Fragment => &mut left_out.fragments,
            Self::Cut => &mut left_out.cut,
            Self::Malformed => &mut left_out.malformed,
            Self::NotPureAck => &mut left_out.not_pure_acks,
        }
    }
}

impl From<ParseError> for Reason {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::Version | ParseError::NotPlainTcp | ParseError::TooManyHeaders => Self::NotPlainTcp,
            ParseError::Fragment => Self::Fragment,
            _ => Self::Malformed,
        }
    }
}

/// Length of the whole packet according to its IP header; `None` if the header is incomplete.
fn stated_len(ip: &[u8]) -> Option<usize> {
    let short = |at: usize| Some(usize::from(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?])));
    match ip.first()? >> 4 {
        4 => short(2),
        _ => Some(40 + short(4)?),
    }
}

/// Appends a packet to the chunk, modified as `wanted` requires.
fn admit(
    ip: &IpBytes<'_>,
    wanted: Wanted,
    chunk: &mut Chunk,
    tally: &mut Tally,
    (number, at_nanos): (u64, Option<i128>),
) -> Result<(), Reason> {
    let len = stated_len(ip.bytes).ok_or(Reason::Cut)?;
    let captured = ip.bytes.len().min(len);
    // Bytes are missing because of the snap length, not because the sender omitted them.
    let is_cut = captured < len && ip.on_link as usize >= len;
    if is_cut && wanted == Wanted::Exact {
        return Err(Reason::Cut);
    }
    let start = chunk.bytes.len();
    chunk.bytes.extend_from_slice(&ip.bytes[..captured]);
    if is_cut {
        chunk.bytes.resize(start + len, 0);
    }
    let packet = &mut chunk.bytes[start..];
    let kept = match Layers::parse(packet) {
        // Zeros beyond the captured bytes must not be taken for a header.
        Ok((layers, header)) if layers.len() + header.len() > captured => Err(Reason::Cut),
        // The HACK variant is only for segments of a station's own TCP.
        Ok((layers, _)) if wanted == Wanted::PureAcks && !layers.is_empty() => Err(Reason::NotPlainTcp),
        Ok((_, header)) if wanted == Wanted::PureAcks && !header.is_pure_ack() => Err(Reason::NotPureAck),
        Ok(headers) => Ok(headers),
        Err(error) => match error.into() {
            Reason::Malformed if is_cut && captured < MAX_HEADER_LEN => Err(Reason::Cut),
            reason => Err(reason),
        },
    };
    let (layers, header) = match kept {
        Ok(headers) => headers,
        Err(reason) => {
            chunk.bytes.truncate(start);
            return Err(reason);
        }
    };
    if is_cut {
        tally.payloads_filled += 1;
    } else if wanted != Wanted::Exact && set_right(&layers, &header, packet) {
        tally.checksums_set_right += 1;
    }
    let payload_len = usize::from(header.payload_len);
    chunk.places.push(PacketSpan { start, len: packet.len(), payload_len, at_nanos, number });
    Ok(())
}

/// Sets the checksum that the packet has on the link, where an offloading interface computes it. Returns whether it
/// changed.
fn set_right(layers: &Layers, header: &Header, packet: &mut [u8]) -> bool {
    let (_, payload) = packet.split_at(layers.len() + header.len());
    let right = layers.tcp_checksum(header, payload);
    if right == header.checksum {
        return false;
    }
    let at = layers.len() + header.ip.header_len() + 16;
    packet[at..at + 2].copy_from_slice(&right.to_be_bytes());
    true
}

/// The addresses and ports of a packet with a plain IP header; empty if it is too short.
pub(super) fn plain_flow_bytes(packet: &[u8]) -> &[u8] {
    let range = match packet.first().map(|byte| byte >> 4) {
        Some(4) => 12..24,
        _ => 8..44,
    };
    packet.get(range).unwrap_or(&[])
}

/// The addresses and ports of an accepted packet, taken from the innermost IP header.
pub(super) fn flow_bytes(packet: &[u8]) -> Cow<'_, [u8]> {
    let Some((_, header)) = Layers::parse(packet).ok().filter(|(layers, _)| !layers.is_empty()) else {
        return Cow::Borrowed(plain_flow_bytes(packet));
    };
    let mut bytes = match header.ip {
        Ip::V4 { source, destination, .. } => [source, destination].concat(),
        Ip::V6 { source, destination, .. } => [source, destination].concat(),
    };
    bytes.extend(header.source_port.to_be_bytes());
    bytes.extend(header.destination_port.to_be_bytes());
    Cow::Owned(bytes)
}
