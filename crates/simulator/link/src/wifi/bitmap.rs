//! The bitmap of a compressed Block Ack.

use super::phy::bitmap_bits;

/// Words of the longest bitmap: 1024 bits.
const WORDS: usize = 16;

/// Which MPDUs arrived: a bit per sequence number from the Block Ack's start on. Its length depends on the negotiated
/// window, 64 to 1024 bits (802.11-2020 clause 9.3.1.8, and 802.11be).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckBitmap {
    words: [u64; WORDS],
    /// Words in use; the others are zero.
    used: u8,
}

impl AckBitmap {
    /// An empty bitmap for a window of `window` numbers.
    pub const fn new(window: u32) -> Self {
        Self { words: [0; WORDS], used: (bitmap_bits(window) / u64::BITS) as u8 }
    }

    /// A bitmap of 64 bits.
    pub const fn of_64(bits: u64) -> Self {
        let mut bitmap = Self::new(64);
        bitmap.words[0] = bits;
        bitmap
    }

    /// Number of sequence numbers that it covers.
    pub const fn len(&self) -> u16 {
        self.used as u16 * u64::BITS as u16
    }

    /// Always false: it covers at least 64 numbers.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Whether the number at `offset` from the start arrived; false beyond the bitmap.
    pub const fn contains(&self, offset: u16) -> bool {
        offset < self.len() && self.words[offset as usize / 64] >> (offset % 64) & 1 == 1
    }

    /// Sets the number at `offset` from the start.
    ///
    /// # Panics
    /// If `offset` is beyond the bitmap.
    pub fn insert(&mut self, offset: u16) {
        assert!(offset < self.len(), "a number beyond the bitmap");
        self.words[usize::from(offset / 64)] |= 1 << (offset % 64);
    }

    /// Sets `count` numbers from that one on, as far as the bitmap covers them.
    pub fn insert_run(&mut self, offset: u16, count: u16) {
        let end = offset.saturating_add(count).min(self.len());
        let mut at = offset;
        while at < end {
            let bit = at % 64;
            let here = (64 - bit).min(end - at);
            self.words[usize::from(at / 64)] |= (u64::MAX >> (64 - here)) << bit;
            at += here;
        }
    }

    /// Clears the number at `offset` from the start.
    pub fn remove(&mut self, offset: u16) {
        if offset < self.len() {
            self.words[usize::from(offset / 64)] &= !(1 << (offset % 64));
        }
    }

    /// Moves the start by `steps` numbers.
    pub fn advance(&mut self, steps: u16) {
        let used = usize::from(self.used);
        let (words, bits) = (usize::from(steps / 64), u32::from(steps % 64));
        for to in 0..used {
            let word = |from: usize| if from < used { self.words[from] } else { 0 };
            let low = word(to + words) >> bits;
            let high = if bits == 0 { 0 } else { word(to + words + 1) << (64 - bits) };
            self.words[to] = low | high;
        }
    }

    /// Number of set bits.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Offset of the last set bit.
    pub fn last(&self) -> Option<u16> {
        (0..self.len()).rev().find(|offset| self.contains(*offset))
    }

    /// The bytes in the frame: 8 bytes per 64 numbers.
    pub fn bytes(&self) -> impl Iterator<Item = u8> {
        self.words[..usize::from(self.used)].iter().flat_map(|word| word.to_le_bytes())
    }

    /// The first 64 bits.
    pub const fn first_64(&self) -> u64 {
        self.words[0]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_as_long_as_the_window_needs() {
        let bytes =
            [2, 64, 65, 256, 257, 512, 513, 1024].map(|window| AckBitmap::new(window).bytes().count());
        assert_eq!(bytes, [8, 8, 32, 32, 64, 64, 128, 128]);
    }

    proptest::proptest! {
        /// Compares with a set of numbers.
        #[test]
        fn it_holds_what_a_set_holds(
            window in proptest::sample::select(vec![64_u32, 256, 512, 1024]),
            steps in proptest::collection::vec((0..4_u8, 0..1100_u16, 0..1100_u16), 0..40),
        ) {
            let mut bitmap = AckBitmap::new(window);
            let mut set = BTreeSet::new();
            let bits = window as u16;
            for (what, offset, count) in steps {
                match what {
                    0 => {
                        bitmap.insert(offset % bits);
                        set.insert(offset % bits);
                    }
                    1 => {
                        bitmap.insert_run(offset % bits, count);
                        set.extend((offset % bits..(offset % bits).saturating_add(count)).filter(|at| *at < bits));
                    }
                    2 => {
                        bitmap.remove(offset);
                        set.remove(&offset);
                    }
                    _ => {
                        bitmap.advance(offset);
                        set = set.iter().filter_map(|at| at.checked_sub(offset)).collect();
                    }
                }
                proptest::prop_assert!((0..1100).all(|at| bitmap.contains(at) == set.contains(&at)));
                proptest::prop_assert_eq!(bitmap.count() as usize, set.len());
                proptest::prop_assert_eq!(bitmap.last(), set.last().copied());
                let first = (0..64).filter(|at| set.contains(at)).fold(0_u64, |bits, at| bits | 1 << at);
                proptest::prop_assert_eq!(bitmap.first_64(), first);
            }
        }
    }
}
