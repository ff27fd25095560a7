//! The interface that all codecs have for a round trip: compress, decompress, compare.

use std::collections::BTreeMap;

use super::packets::Chunk;

/// A compressor and its decompressor, with the compressed packets of one chunk.
pub(super) trait Pair {
    /// Removes all contexts, but keeps allocated memory.
    fn renew(&mut self);
    /// Allocates memory for a chunk, so that no allocation occurs while time is measured.
    fn prepare(&mut self, chunk: &Chunk);
    /// Compresses the packets of the chunk in order.
    fn compress(&mut self, chunk: &Chunk);
    /// Decompresses the output of [`Pair::compress`].
    fn decompress(&mut self);
    /// Compares the decompressed packets with the originals, and counts.
    fn check(&self, chunk: &Chunk, counts: &mut Counts);
}

/// Counters of a capture.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub packets: u64,
    pub header_bytes: u64,
    pub compressed_bytes: u64,
    pub formats: BTreeMap<&'static str, u64>,
    pub native: u64,
    pub cid_taken: u64,
    pub options: u64,
    pub frames: u64,
    pub failures: u64,
    pub wrong: u64,
}
