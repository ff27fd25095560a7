//! The Internet checksum (RFC 1071), and the header fields that depend on it.

use std::ops::Range;

/// IP protocol numbers of TCP and UDP.
pub const PROTOCOL_TCP: u8 = 6;
pub const PROTOCOL_UDP: u8 = 17;
/// Length of an IPv4 header without options, and of an IPv6 header without extensions, in bytes.
pub const IP_HEADERS: [usize; 2] = [20, 40];

/// The sum of all 16-bit words. An odd last byte is the high half of a word. Sums of parts may be added if each part
/// starts at an even offset.
pub fn sum_of(bytes: &[u8]) -> u64 {
    // Wider words in native byte order give the byte-swapped sum of 16-bit words (section 2B).
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let sum: u64 = words.iter().chain([&last]).map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    u64::from(u16::from_be_bytes(folded(sum).to_ne_bytes()))
}

/// Folds a sum to 16 bits by adding carries.
pub fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Writes the length of an IPv4 packet and the checksum of its header, which has `header_len` bytes.
///
/// # Panics
/// If `bytes` is shorter than the header, or `header_len` is less than 20.
pub fn finish_ipv4(bytes: &mut [u8], header_len: usize, len: u16) {
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    bytes[10..12].fill(0);
    let sum = !folded(sum_of(&bytes[..header_len]));
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum over the TCP segment or UDP datagram at `range` of an IP packet, including the pseudo-header. If the
/// checksum field is zero, this is the correct value for the field; if the field is correct, this is zero.
///
/// # Panics
/// If `range` does not follow the IP header.
pub fn transport(bytes: &[u8], protocol: u8, range: Range<usize>) -> u16 {
    let pseudo = pseudo_header(bytes, protocol, range.len());
    !folded(u64::from(pseudo) + sum_of(&bytes[range]))
}

/// The sum of the pseudo-header of an IP packet with `len` bytes of payload.
///
/// # Panics
/// If `bytes` is shorter than an IP header.
pub fn pseudo_header(bytes: &[u8], protocol: u8, len: usize) -> u16 {
    let addresses = if bytes[0] >> 4 == 4 { 12..20 } else { 8..40 };
    folded(sum_of(&bytes[addresses]) + u64::from(protocol) + len as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sum_is_that_of_16_bit_words(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let words = bytes.chunks(2).map(|word| {
                u64::from(word[0]) << 8 | word.get(1).map_or(0, |byte| u64::from(*byte))
            });
            prop_assert_eq!(folded(sum_of(&bytes)), folded(words.sum()));
        }
    }

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(folded(sum_of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }
}
