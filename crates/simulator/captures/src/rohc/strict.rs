//! Compressor and decompressor of the strict codec in one process.

use tacit_rohc::{Compressor, CompressorConfig, Decompressor, DecompressorConfig, FormatKind};

use super::packets::Chunk;
use super::pair::{Counts, Pair};

/// Maximum number of bytes by which a ROHC packet exceeds the original packet.
pub(super) const GROWTH: usize = 65;

/// Measures the cost of headers alone, without refreshes. All other fields have their defaults.
fn config() -> CompressorConfig {
    CompressorConfig { refresh_ir: 0, refresh_ir_dyn: 0, ..CompressorConfig::default() }
}

/// A compressed packet.
struct CompressedPacket {
    format: FormatKind,
    /// Index of the packet in the chunk.
    at: usize,
    start: usize,
    len: usize,
}

pub(super) struct StrictPair {
    compressor: Compressor,
    decompressor: Decompressor,
    /// ROHC packets, concatenated, with room for one more.
    rohc: Vec<u8>,
    compressed: Vec<CompressedPacket>,
    refused: u64,
    /// Decompressed packets, concatenated, with room for one more.
    back: Vec<u8>,
    /// Start and length in `back` for each compressed packet; `None` for failures.
    done: Vec<Option<(usize, usize)>>,
}

impl StrictPair {
    pub fn new() -> Self {
        Self {
            compressor: Compressor::new(config()),
            decompressor: Decompressor::new(DecompressorConfig::default()),
            rohc: Vec::new(),
            compressed: Vec::new(),
            refused: 0,
            back: Vec::new(),
            done: Vec::new(),
        }
    }
}

impl Pair for StrictPair {
    fn renew(&mut self) {
        self.compressor = Compressor::new(config());
        self.decompressor = Decompressor::new(DecompressorConfig::default());
    }

    fn prepare(&mut self, chunk: &Chunk) {
        self.rohc.resize(chunk.bytes.len() + (chunk.places.len() + 1) * GROWTH, 0);
        self.back.resize(chunk.bytes.len(), 0);
        self.compressed.clear();
        self.compressed.reserve(chunk.places.len());
        self.done.clear();
        self.done.reserve(chunk.places.len());
        self.refused = 0;
    }

    fn compress(&mut self, chunk: &Chunk) {
        let mut start = 0;
        for (at, place) in chunk.places.iter().enumerate() {
            match self.compressor.compress(chunk.packet(place), &mut self.rohc[start..]) {
                Ok(compressed) => {
                    self.compressed.push(CompressedPacket {
                        format: compressed.format,
                        at,
                        start,
                        len: compressed.len,
                    });
                    start += compressed.len;
                }
                Err(_) => self.refused += 1,
            }
        }
    }

    fn decompress(&mut self) {
        let mut start = 0;
        for compressed in &self.compressed {
            let rohc = &self.rohc[compressed.start..compressed.start + compressed.len];
            let done = self.decompressor.decompress(rohc, &mut self.back[start..]).ok();
            self.done.push(done.map(|done| (start, done.len)));
            start += done.map_or(0, |done| done.len);
        }
    }

    fn check(&self, chunk: &Chunk, counts: &mut Counts) {
        counts.options += self.refused;
        for (compressed, done) in self.compressed.iter().zip(&self.done) {
            let place = &chunk.places[compressed.at];
            counts.packets += 1;
            counts.header_bytes += (place.len - place.payload_len) as u64;
            counts.compressed_bytes += (compressed.len - place.payload_len) as u64;
            *counts.formats.entry(compressed.format.name()).or_default() += 1;
            match done {
                None => counts.failures += 1,
                Some((start, len)) => {
                    counts.wrong += u64::from(self.back[*start..start + len] != *chunk.packet(place));
                }
            }
        }
    }
}
