//! The steps that every codec takes with packets: there, back, and compare.

use std::collections::BTreeMap;

use super::packets::Chunk;

/// A compressor and its decompressor, and the compressed packets of one chunk between them.
pub(super) trait Pair {
    /// Forgets all contexts, and keeps its memory.
    fn renew(&mut self);
    /// Makes room for a chunk, so that nothing has to grow while time is taken.
    fn prepare(&mut self, chunk: &Chunk);
    /// Compresses the packets of the chunk, one after the other.
    fn compress(&mut self, chunk: &Chunk);
    /// Decompresses the output of [`Pair::compress`].
    fn decompress(&mut self);
    /// Compares the decompressed packets and counts.
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
