//! Between captures and files of ROHC packets.
//!
//! A ROHC file is a sequence of packets, each with its length before it: 16 bits, little-endian. It says
//! neither how contexts are numbered nor when packets were sent.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::Serialize;
use tacit_rohc::{CidSpace, CompressError, Compressor, Config, Decompressor, DecompressorConfig, MAX_REPEAT};
use tacit_sim::capture::AtomicFile;

use super::RohcError;
use super::packets::{Chunk, LeftOut, Packets, Wanted};
use super::strict::GROWTH;
use crate::capture::CaptureError;
use tacit_scenario::InputError;

/// Octets of packets held at a time.
pub(super) const CHUNK: usize = 1024 * 1024;
/// Octets of the longest IP packet.
pub(super) const LONGEST_PACKET: usize = 65_535;
/// Link types of pcap files.
const RAW_IP: u8 = 101;
const ETHERNET: u8 = 1;
/// From 02:00:00:00:00:01 to 02:00:00:00:00:02, with the EtherType of ROHC (0x22F1, IEEE).
const ETHERNET_HEADER: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x22, 0xf1];

/// A pcap file header: version 2.4, microseconds, little-endian.
const fn pcap_header(link_type: u8) -> [u8; 24] {
    [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, link_type, 0, 0, 0]
}

/// What both ends of a ROHC channel agree on, and how often changes are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    cids: CidSpace,
    repeat: u8,
}

impl Default for Channel {
    /// Small CIDs, every change twice: the codec's own choice.
    fn default() -> Self {
        let Config { cids, repeat, .. } = Config::default();
        Self { cids, repeat }
    }
}

impl Channel {
    /// A channel with CIDs of this name, and every change said in `repeat` packets.
    ///
    /// # Errors
    /// Where there are no such CIDs, or nobody says anything so often.
    pub fn parse(cids: &str, repeat: u8) -> Result<Self, InputError> {
        let cids = match cids {
            "small" => CidSpace::Small { max: 15 },
            "large" => CidSpace::Large { max: 16_383 },
            other => {
                let error = InputError::new("--cid", format!("unknown CIDs {other:?}"));
                return Err(error.allowed("small, large"));
            }
        };
        if !(1..=MAX_REPEAT).contains(&repeat) {
            let error = InputError::new("--repeat", format!("{repeat} packets are out of range"));
            return Err(error.allowed(format!("1 to {MAX_REPEAT}")));
        }
        Ok(Self { cids, repeat })
    }

    pub(super) fn compressor(self) -> Compressor {
        // No refreshes: of a file nothing is lost.
        let Self { cids, repeat } = self;
        Compressor::new(Config { cids, repeat, refresh_ir: 0, refresh_ir_dyn: 0, ..Config::default() })
    }

    pub(super) fn decompressor(self) -> Decompressor {
        Decompressor::new(DecompressorConfig { cids: self.cids, ..DecompressorConfig::default() })
    }
}

/// What a conversion came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Converted {
    /// The file that was written.
    pub name: String,
    /// Packets in it.
    pub packets: u64,
    /// Octets of these packets as IP packets, payload included.
    pub ip_bytes: u64,
    /// Octets of these packets as ROHC packets, payload included, the lengths before them not.
    pub rohc_bytes: u64,
    /// Packets of the capture that are not in the file.
    pub left_out: LeftOut,
}

impl Converted {
    /// One line for people.
    pub fn to_text(&self) -> String {
        let Self { name, packets, ip_bytes, rohc_bytes, left_out } = self;
        let mut text = format!("{name}: {packets} packets, {ip_bytes} B as IP, {rohc_bytes} B as ROHC");
        let reasons = left_out.reasons();
        if !reasons.is_empty() {
            text.push_str("; left out: ");
            text.push_str(&reasons.join(", "));
        }
        text.push('\n');
        text
    }
}

/// Compresses the TCP packets of the capture `from` into the ROHC file `to`; where that ends in `.pcap`, into a capture of
/// Ethernet with the EtherType of ROHC and the times of `from`.
///
/// Every packet is decompressed again and compared before the file appears.
///
/// # Errors
/// Where the capture cannot be read to its end or holds no TCP packet, the file cannot be written, or a
/// packet does not come back as it was ([`RohcError::RoundTrip`]). Nothing is left behind.
pub fn compress(from: &Path, to: &Path, channel: Channel) -> Result<Converted, RohcError> {
    different(from, to)?;
    let mut packets = Packets::open(from, Wanted::Exact)?;
    let mut out = AtomicFile::create(to).map_err(RohcError::io(to))?;
    let as_capture = to.extension().is_some_and(|extension| extension == "pcap");
    if as_capture {
        out.write_all(&pcap_header(ETHERNET)).map_err(RohcError::io(to))?;
    }
    let mut ends = (channel.compressor(), channel.decompressor());
    let mut converted = Converted::new(to);
    let mut chunk = Chunk::default();
    let mut buffers = (vec![0; LONGEST_PACKET + GROWTH], vec![0; LONGEST_PACKET]);
    loop {
        let is_more = packets.fill(&mut chunk, CHUNK)?;
        for place in &chunk.places {
            let packet = chunk.packet(place);
            let at = || format!("{}: packet {}", from.display(), place.number);
            let Some(rohc) = there_and_back(&mut ends, &mut buffers, packet, &at)? else {
                converted.left_out.options += 1;
                continue;
            };
            let written = if as_capture {
                write_record(&mut out, place.at_nanos, &ETHERNET_HEADER, rohc)
            } else {
                let len = u16::try_from(rohc.len()).map_err(|_| {
                    InputError::new(at(), format!("takes {} octets as a ROHC packet", rohc.len()))
                        .allowed("65535, for the length in the file has 16 bits")
                })?;
                out.write_all(&len.to_le_bytes()).and_then(|()| out.write_all(rohc))
            };
            written.map_err(RohcError::io(to))?;
            converted.count(packet.len(), rohc.len());
        }
        if !is_more {
            break;
        }
    }
    if converted.packets == 0 {
        let error = InputError::new(from.display(), "no TCP packet that was captured whole");
        return Err(error.allowed("a capture of TCP over plain IPv4 or IPv6").into());
    }
    let options = converted.left_out.options;
    converted.left_out = LeftOut { options, ..packets.tally.left_out };
    out.commit().map_err(RohcError::io(to))?;
    Ok(converted)
}

/// The ROHC packet of a packet, once it is known to come back; `None` where the codec cannot say it.
fn there_and_back<'a>(
    (compressor, decompressor): &mut (Compressor, Decompressor),
    (rohc, back): &'a mut (Vec<u8>, Vec<u8>),
    packet: &[u8],
    at: &dyn Fn() -> String,
) -> Result<Option<&'a [u8]>, RohcError> {
    let wrong = |what: String| RohcError::RoundTrip { place: at(), what };
    let made = match compressor.compress(packet, rohc) {
        Ok(made) => made,
        Err(CompressError::Options) => return Ok(None),
        Err(error) => return Err(wrong(format!("cannot be compressed: {error}"))),
    };
    let (rohc, format) = (&rohc[..made.len], made.format.name());
    match decompressor.decompress(rohc, back) {
        Ok(done) if back[..done.len] == *packet => Ok(Some(rohc)),
        Ok(_) => Err(wrong(format!("comes back changed from a {format} packet"))),
        Err(error) => Err(wrong(format!("does not come back from a {format} packet: {error}"))),
    }
}

/// Decompresses the ROHC file `from` into the capture `to`: classic pcap of raw IP, all times zero.
///
/// # Errors
/// Where the file cannot be read, is cut short or holds a packet that does not decompress, or the capture
/// cannot be written. Nothing is left behind.
pub fn decompress(from: &Path, to: &Path, channel: Channel) -> Result<Converted, RohcError> {
    different(from, to)?;
    let name = from.display().to_string();
    let file = File::open(from).map_err(|source| CaptureError::Open { name, source })?;
    let mut reader = BufReader::new(file);
    let mut out = AtomicFile::create(to).map_err(RohcError::io(to))?;
    out.write_all(&pcap_header(RAW_IP)).map_err(RohcError::io(to))?;
    let mut decompressor = channel.decompressor();
    let mut converted = Converted::new(to);
    let (mut rohc, mut back) = (Vec::new(), vec![0; LONGEST_PACKET]);
    let mut offset: u64 = 0;
    loop {
        let bad = |what: &dyn Display, allowed: &str| {
            let place = format!("{}: packet {} (byte {offset})", from.display(), converted.packets + 1);
            InputError::new(place, what.to_string()).allowed(allowed)
        };
        match next_rohc(&mut reader, &mut rohc).map_err(RohcError::io(from))? {
            Next::Packet => {}
            Next::End => break,
            Next::Cut => return Err(bad(&"the file ends inside it", LAYOUT).into()),
        }
        let done = decompressor.decompress(&rohc, &mut back).map_err(|error| bad(&error, STREAM))?;
        offset += 2 + rohc.len() as u64;
        let packet = &back[..done.len];
        if packet.is_empty() {
            // An IR of profile 0x0000 may come without a packet.
            continue;
        }
        write_record(&mut out, None, &[], packet).map_err(RohcError::io(to))?;
        converted.count(packet.len(), rohc.len());
    }
    if converted.packets == 0 {
        return Err(InputError::new(from.display(), "is empty").allowed(LAYOUT).into());
    }
    out.commit().map_err(RohcError::io(to))?;
    Ok(converted)
}

pub(super) const LAYOUT: &str = "ROHC packets, each with a 16-bit little-endian length before it";
const STREAM: &str =
    "ROHC-TCP packets of one channel from its first IR packet on, none missing (large CIDs: --cid large)";

impl Converted {
    fn new(to: &Path) -> Self {
        let name = to.display().to_string();
        Self { name, packets: 0, ip_bytes: 0, rohc_bytes: 0, left_out: LeftOut::default() }
    }

    fn count(&mut self, ip_len: usize, rohc_len: usize) {
        self.packets += 1;
        self.ip_bytes += ip_len as u64;
        self.rohc_bytes += rohc_len as u64;
    }
}

/// Refuses to write over what is read.
fn different(from: &Path, to: &Path) -> Result<(), InputError> {
    match (from.canonicalize(), to.canonicalize()) {
        (Ok(from), Ok(same)) if from == same => {
            Err(InputError::new(to.display(), "is also the input").allowed("another file"))
        }
        _ => Ok(()),
    }
}

pub(super) enum Next {
    Packet,
    End,
    Cut,
}

/// Reads a length and the packet behind it.
pub(super) fn next_rohc(reader: &mut impl Read, rohc: &mut Vec<u8>) -> io::Result<Next> {
    rohc.clear();
    match reader.by_ref().take(2).read_to_end(rohc)? {
        0 => return Ok(Next::End),
        2 => {}
        _ => return Ok(Next::Cut),
    }
    let len = u16::from_le_bytes([rohc[0], rohc[1]]);
    rohc.clear();
    let read = reader.by_ref().take(len.into()).read_to_end(rohc)?;
    Ok(if read == usize::from(len) { Next::Packet } else { Next::Cut })
}

/// A pcap record of `head` and `packet`; at time zero where nobody knows when it was.
fn write_record(out: &mut impl Write, at_nanos: Option<i128>, head: &[u8], packet: &[u8]) -> io::Result<()> {
    let micros = at_nanos.unwrap_or(0).max(0) / 1_000;
    // Seconds have 32 bits in the file, and go round.
    let at = [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32];
    let len = (head.len() + packet.len()) as u32;
    for field in [at[0], at[1], len, len] {
        out.write_all(&field.to_le_bytes())?;
    }
    out.write_all(head)?;
    out.write_all(packet)
}
