//! Compares our ROHC packets with those of another implementation for the same capture.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::Serialize;
use tacit_scenario::InputError;

use super::RohcError;
use super::convert::{CHUNK, Channel, LAYOUT, LONGEST_PACKET, Next, next_rohc};
use super::packets::{Chunk, Packets, Wanted};
use super::strict::GROWTH;
use crate::capture::CaptureError;

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The capture.
    pub name: String,
    /// The other implementation's file.
    pub other: String,
    /// Number of TCP packets in the capture, which equals that of ROHC packets in the file.
    pub packets: u64,
    /// Total length as IP packets in bytes, including payload.
    pub ip_bytes: u64,
    /// Total length of our ROHC packets in bytes, including payload.
    pub rohc_bytes: u64,
    /// Total length of their ROHC packets in bytes, including payload.
    pub other_bytes: u64,
    /// Number of our packets by RFC 6846 format.
    pub formats: BTreeMap<&'static str, u64>,
    /// Number of their packets by format, for those that we could decompress.
    pub other_formats: BTreeMap<&'static str, u64>,
    /// Number of packets that our codec cannot compress. They are not included in `rohc_bytes`.
    pub not_compressed: u64,
    /// Number of their packets that we could not decompress.
    pub failures: u64,
    /// Number of their packets that decompressed to something else than the capture's packet.
    pub wrong: u64,
}

impl Comparison {
    /// The comparison as a text table.
    pub fn to_text(&self) -> String {
        let each = |bytes: u64, packets: u64| bytes as f64 / packets.max(1) as f64;
        let ours = self.packets - self.not_compressed;
        let mut text = format!(
            "{}: {} packets, {} B as IP\n  ours    {} B, {:.2} each\n  theirs  {} B, {:.2} each; {} did not decompress, {} came out wrong\n",
            self.name,
            self.packets,
            self.ip_bytes,
            self.rohc_bytes,
            each(self.rohc_bytes, ours),
            self.other_bytes,
            each(self.other_bytes, self.packets),
            self.failures,
            self.wrong,
        );
        let count = |formats: &BTreeMap<&'static str, u64>, name| formats.get(name).copied().unwrap_or(0);
        text.push_str("  format           ours    theirs\n");
        let mut names: Vec<_> = self.formats.keys().chain(self.other_formats.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (ours, theirs) = (count(&self.formats, name), count(&self.other_formats, name));
            text.push_str(&format!("  {name:<12} {ours:>8}  {theirs:>8}\n"));
        }
        text
    }
}

/// Compresses the TCP packets of the capture `from`, and decompresses the ROHC file `other`, whose n-th packet another
/// implementation generated from the n-th of them.
///
/// # Errors
/// If a file cannot be read to its end, the capture contains no TCP packet, or the numbers of packets differ.
pub fn compare(from: &Path, other: &Path, channel: Channel) -> Result<Comparison, RohcError> {
    let mut packets = Packets::open(from, Wanted::Exact)?;
    let name = other.display().to_string();
    let file = File::open(other).map_err(|source| CaptureError::Open { name: name.clone(), source })?;
    let mut reader = BufReader::new(file);
    let (mut compressor, mut decompressor) = (channel.compressor(), channel.decompressor());
    let mut comparison = Comparison::new(from, name);
    let (mut theirs, mut rohc, mut back) =
        (Vec::new(), vec![0; LONGEST_PACKET + GROWTH], vec![0; LONGEST_PACKET]);
    let mut chunk = Chunk::default();
    loop {
        let is_more = packets.fill(&mut chunk, CHUNK)?;
        for place in &chunk.places {
            let packet = chunk.packet(place);
            match next_rohc(&mut reader, &mut theirs).map_err(RohcError::io(other))? {
                Next::Packet => {}
                Next::End => return Err(comparison.unequal("more").into()),
                Next::Cut => {
                    let place = format!("{}: packet {}", other.display(), comparison.packets + 1);
                    return Err(InputError::new(place, "the file ends inside it".to_owned())
                        .allowed(LAYOUT)
                        .into());
                }
            }
            comparison.packets += 1;
            comparison.ip_bytes += packet.len() as u64;
            comparison.other_bytes += theirs.len() as u64;
            match compressor.compress(packet, &mut rohc) {
                Ok(compressed) => {
                    comparison.rohc_bytes += compressed.len as u64;
                    *comparison.formats.entry(compressed.format.name()).or_default() += 1;
                }
                Err(_) => comparison.not_compressed += 1,
            }
            match decompressor.decompress(&theirs, &mut back) {
                Ok(done) => {
                    comparison.wrong += u64::from(back[..done.len] != *packet);
                    *comparison.other_formats.entry(done.format.name()).or_default() += 1;
                }
                Err(_) => comparison.failures += 1,
            }
        }
        if !is_more {
            break;
        }
    }
    if comparison.packets == 0 {
        let error = InputError::new(from.display(), "no TCP packet that was captured whole");
        return Err(error.allowed("a capture of TCP over plain IPv4 or IPv6").into());
    }
    match next_rohc(&mut reader, &mut theirs).map_err(RohcError::io(other))? {
        Next::End => Ok(comparison),
        _ => Err(comparison.unequal("fewer").into()),
    }
}

impl Comparison {
    fn new(from: &Path, other: String) -> Self {
        Self { name: from.display().to_string(), other, ..Self::default() }
    }

    /// The error that the capture has more or fewer TCP packets than the file.
    fn unequal(&self, capture_has: &str) -> InputError {
        let what =
            format!("{} has {capture_has} TCP packets than it; {} are common", self.name, self.packets);
        InputError::new(self.other.clone(), what)
            .allowed("one ROHC packet for each TCP packet of the capture")
    }
}
