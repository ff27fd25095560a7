//! Content of placeholders.

use super::control::NONCE_LEN;

/// The content of a flow's placeholders: its nonce, followed by bytes that are derived from nonce and position. Other
/// content equals it with a probability of 2^-128.
///
/// The messages to the reader are authoritative about holes. This content is for inspection of the bytes (the paper's
/// way), and ensures that bytes that were never sent are not mistaken for other data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    nonce: [u8; NONCE_LEN],
}

impl Marker {
    /// The content for the flow with this nonce.
    pub const fn new(nonce: [u8; NONCE_LEN]) -> Self {
        Self { nonce }
    }

    /// The nonce sent to the reader.
    pub const fn nonce(&self) -> [u8; NONCE_LEN] {
        self.nonce
    }

    /// Byte `index` of a placeholder whose first byte is at position `start` of the stream.
    fn byte(&self, start: u64, index: usize) -> u8 {
        match self.nonce.get(index) {
            Some(byte) => *byte,
            None => self.word(start + (index as u64 & !7)).to_le_bytes()[index % 8],
        }
    }

    fn word(&self, place: u64) -> u64 {
        let half = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&self.nonce[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        mix(mix(place ^ half(0)) ^ half(8))
    }

    /// Fills `content` of a placeholder whose first byte is at position `start` of the stream.
    pub fn fill(&self, start: u64, content: &mut [u8]) {
        for (index, byte) in content.iter_mut().enumerate() {
            *byte = self.byte(start, index);
        }
    }

    /// True if `content`, whose first byte is at position `start` of the stream, is a placeholder.
    pub fn matches(&self, start: u64, content: &[u8]) -> bool {
        content.iter().enumerate().all(|(index, byte)| *byte == self.byte(start, index))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of the result depends on all of `value`.
fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_begin_with_the_nonce_and_differ_by_place() {
        let marker = Marker::new([9; NONCE_LEN]);
        let placeholder = |start, len| {
            let mut content = vec![0; len];
            marker.fill(start, &mut content);
            content
        };
        let one = placeholder(1000, 100);
        assert_eq!(one[..16], [9; 16]);
        assert!(marker.matches(1000, &one) && !marker.matches(1001, &one));
        assert!(!Marker::new([8; NONCE_LEN]).matches(1000, &one));
        assert_ne!(one[16..], placeholder(2000, 100)[16..]);
        assert_eq!(placeholder(0, 3), [9; 3], "shorter than the nonce");
        let mut forged = one;
        forged[99] ^= 1;
        assert!(!marker.matches(1000, &forged));
    }
}
