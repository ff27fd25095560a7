//! Converts between captures and files of ROHC packets.
//!
//! A ROHC file is a sequence of packets, each preceded by its length as 16 bits, little-endian. It contains neither the
//! CID space nor packet times. For use with other tools, ROHC packets can instead be written as captures with times;
//! this crate does not read those.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::Serialize;
use tacit_rohc::{
    CidSpace, CompressError, Compressor, CompressorConfig, Decompressor, DecompressorConfig, MAX_REPEAT,
};
use tacit_sim::capture::AtomicFile;

use super::RohcError;
use super::output::{Clock, RAW_IP, RohcFile, pcap_header, pcap_record};
use super::packets::{Chunk, LeftOut, Packets, Wanted};
use super::strict::GROWTH;
use crate::capture::CaptureError;
use tacit_scenario::InputError;

/// Number of bytes of packets in memory at a time.
pub(super) const CHUNK: usize = 1024 * 1024;
/// Length of the longest IP packet in bytes.
pub(super) const LONGEST_PACKET: usize = 65_535;

/// Parameters that both ends of a ROHC channel agree on, and the number of repetitions of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The CID space.
    pub cids: CidSpace,
    /// Number of packets that carry each change.
    pub repeat: u8,
}

impl Default for Channel {
    /// Small CIDs and two repetitions, which are the defaults of the codec.
    fn default() -> Self {
        let CompressorConfig { cids, repeat, .. } = CompressorConfig::default();
        Self { cids, repeat }
    }
}

impl Channel {
    /// A channel with the CID space of this name and `repeat` repetitions.
    ///
    /// # Errors
    /// If there is no such CID space, or `repeat` is out of range.
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
        // No refreshes, because nothing is lost in a file.
        let Self { cids, repeat } = self;
        Compressor::new(CompressorConfig {
            cids,
            repeat,
            refresh_ir: 0,
            refresh_ir_dyn: 0,
            ..CompressorConfig::default()
        })
    }

    pub(super) fn decompressor(self) -> Decompressor {
        Decompressor::new(DecompressorConfig { cids: self.cids, ..DecompressorConfig::default() })
    }
}

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Converted {
    /// The file that was written.
    pub name: String,
    /// Packets in it.
    pub packets: u64,
    /// Total length of these packets as IP packets in bytes, including payload.
    pub ip_bytes: u64,
    /// Total length of these packets as ROHC packets in bytes, including payload, but not the length fields.
    pub rohc_bytes: u64,
    /// Packets in the capture that are not in the file.
    pub left_out: LeftOut,
}

impl Converted {
    /// A summary as one line.
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

/// Compresses the TCP packets of the capture `from` into the ROHC file `to`. If its name ends in `.pcap` or `.pcapng`,
/// `to` is a capture of ROHC packets over Ethernet with their original times.
///
/// Every packet is also decompressed and compared before the file appears.
///
/// # Errors
/// If the capture cannot be read to its end or contains no TCP packet, the file cannot be written, or a packet is not
/// restored unchanged ([`RohcError::RoundTrip`]). In these cases no file is left behind.
pub fn compress(from: &Path, to: &Path, channel: Channel) -> Result<Converted, RohcError> {
    different(from, to)?;
    let mut packets = Packets::open(from, Wanted::Exact)?;
    let mut out = RohcFile::create(to).map_err(RohcError::io(to))?;
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
            if rohc.len() > out.longest() {
                let error = InputError::new(at(), format!("takes {} bytes as a ROHC packet", rohc.len()));
                return Err(error.allowed("65535, for the length in the file has 16 bits").into());
            }
            out.write(rohc, place.at_nanos).map_err(RohcError::io(to))?;
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

/// The ROHC packet of a packet, after verifying that it can be restored; `None` if the codec cannot compress it.
fn there_and_back<'a>(
    (compressor, decompressor): &mut (Compressor, Decompressor),
    (rohc, back): &'a mut (Vec<u8>, Vec<u8>),
    packet: &[u8],
    at: &dyn Fn() -> String,
) -> Result<Option<&'a [u8]>, RohcError> {
    let wrong = |what: String| RohcError::RoundTrip { place: at(), what };
    let compressed = match compressor.compress(packet, rohc) {
        Ok(compressed) => compressed,
        Err(CompressError::Options) => return Ok(None),
        Err(error) => return Err(wrong(format!("cannot be compressed: {error}"))),
    };
    let (rohc, format) = (&rohc[..compressed.len], compressed.format.name());
    match decompressor.decompress(rohc, back) {
        Ok(done) if back[..done.len] == *packet => Ok(Some(rohc)),
        Ok(_) => Err(wrong(format!("comes back changed from a {format} packet"))),
        Err(error) => Err(wrong(format!("does not come back from a {format} packet: {error}"))),
    }
}

/// Decompresses the ROHC file `from` into the capture `to`, a classic pcap file of raw IP with zero times.
///
/// # Errors
/// If the file cannot be read, is truncated or contains a packet that cannot be decompressed, or the capture cannot be
/// written. In these cases no file is left behind.
pub fn decompress(from: &Path, to: &Path, channel: Channel) -> Result<Converted, RohcError> {
    different(from, to)?;
    let name = from.display().to_string();
    let file = File::open(from).map_err(|source| CaptureError::Open { name, source })?;
    let mut reader = BufReader::new(file);
    let mut out = AtomicFile::create(to).map_err(RohcError::io(to))?;
    let header = pcap_header(Clock::Microseconds, RAW_IP, LONGEST_PACKET as u32);
    out.write_all(&header).map_err(RohcError::io(to))?;
    let mut decompressor = channel.decompressor();
    let mut converted = Converted::new(to);
    let (mut rohc, mut back, mut record) = (Vec::new(), vec![0; LONGEST_PACKET], Vec::new());
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
            // An IR of profile 0x0000 need not contain a packet.
            continue;
        }
        record.clear();
        pcap_record(&mut record, (0, 0), &[packet]);
        out.write_all(&record).map_err(RohcError::io(to))?;
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

/// Refuses to overwrite the input.
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

/// Reads a length and the packet after it.
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
