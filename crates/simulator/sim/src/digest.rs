//! A fingerprint of all events of a run.

/// Hashes the words of an event trace to 64 bits. Not cryptographic; it only distinguishes runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub fn new() -> Self {
        // Digits of pi; any odd value would work.
        Self(0x243f_6a88_85a3_08d3)
    }

    /// Adds one word. Each step is a bijection of the state, so no word can cancel another.
    #[inline]
    pub fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    pub fn value(self) -> u64 {
        let mut value = self.0;
        value ^= value >> 32;
        value = value.wrapping_mul(0xd6e8_feb8_6659_fd93);
        value ^ (value >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_matter() {
        let digest = |words: &[u64]| {
            let mut digest = Digest::new();
            words.iter().for_each(|word| digest.mix(*word));
            digest.value()
        };
        assert_eq!(digest(&[1, 2]), digest(&[1, 2]));
        assert_ne!(digest(&[1, 2]), digest(&[2, 1]));
        assert_ne!(digest(&[0]), digest(&[0, 0]));
    }
}
