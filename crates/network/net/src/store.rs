//! Buffer between TCP and the reader: a ring indexed by positions of the body.

use bytes::Bytes;
use tacit_between::fwp::repair::Range;

/// Bytes at positions that span less than its length.
#[derive(Debug)]
pub struct Store {
    ring: Vec<u8>,
}

impl Store {
    /// Allocates `len` bytes. Pages that are never written use no memory.
    pub fn new(len: usize) -> Self {
        Self { ring: vec![0; len.max(1)] }
    }

    /// Stores `bytes` at `position`.
    pub fn write(&mut self, position: u64, bytes: &[u8]) {
        let at = self.index(position);
        let first = bytes.len().min(self.ring.len() - at);
        self.ring[at..at + first].copy_from_slice(&bytes[..first]);
        self.ring[..bytes.len() - first].copy_from_slice(&bytes[first..]);
    }

    /// The bytes of `range`.
    pub fn read(&self, range: Range) -> Bytes {
        // Ranges that are held are no longer than the ring.
        let len = range.bytes() as usize;
        let at = self.index(range.start);
        let first = len.min(self.ring.len() - at);
        [&self.ring[at..at + first], &self.ring[..len - first]].concat().into()
    }

    fn index(&self, position: u64) -> usize {
        (position % self.ring.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_round() {
        let mut store = Store::new(8);
        store.write(5, b"abcdef");
        assert_eq!(store.read(Range::new(5, 11).unwrap()), &b"abcdef"[..]);
        assert_eq!(store.read(Range::new(8, 10).unwrap()), &b"de"[..]);
        store.write(16, b"");
        assert_eq!(store.read(Range::new(7, 8).unwrap()), &b"c"[..]);
    }
}
