//! Cyclic redundancy checks: CRC-3, CRC-7 and CRC-8 of RFC 5795 section 5.3.1, CRC-16 for frames, CRC-32 for segments.
//!
//! All are reflected (least significant bit first). The three ROHC CRCs start with all ones and have no final
//! exclusive-or. Each step processes eight bytes, because a byte at a time costs the latency of one table look-up per
//! byte.
//!
//! Long inputs are folded first. If a polynomial divides x^n - 1, bits that are n places apart contribute equally to
//! the remainder. The smallest such n is 7 for x^3 + x + 1, 56 for the CRC-7 polynomial, and 127 for the CRC-8
//! polynomial. So seven bytes can be XORed onto the seven bytes before them, and, for CRC-8, sixteen bytes onto the
//! sixteen before them with a shift by one bit.

/// A reflected CRC of at most eight bits: look-up tables for eight bytes at a time.
#[derive(Debug)]
pub struct Crc {
    /// `tables[n][byte]`: the remainder of `byte` followed by `n` zero bytes.
    tables: [[u8; 256]; 8],
    initial: u8,
    /// The polynomial divides x^period - 1.
    period: u32,
}

impl Crc {
    /// The CRC with this reflected polynomial, width in bits, and period in bits.
    const fn new(polynomial: u8, width: u32, period: u32) -> Self {
        let mut tables = [[0; 256]; 8];
        let mut byte = 0;
        while byte < 256 {
            let mut remainder = byte as u8;
            let mut bit = 0;
            while bit < 8 {
                let carry = remainder & 1 != 0;
                remainder >>= 1;
                if carry {
                    remainder ^= polynomial;
                }
                bit += 1;
            }
            tables[0][byte] = remainder;
            byte += 1;
        }
        let mut zeros = 1;
        while zeros < 8 {
            let mut byte = 0;
            while byte < 256 {
                tables[zeros][byte] = tables[0][tables[zeros - 1][byte] as usize];
                byte += 1;
            }
            zeros += 1;
        }
        Self { tables, initial: (0xffu16 >> (8 - width)) as u8, period }
    }

    /// The state before the first byte.
    pub const fn start(&self) -> u8 {
        self.initial
    }

    /// The state after `bytes`. The state after the last byte is the CRC itself.
    pub fn update(&self, state: u8, bytes: &[u8]) -> u8 {
        let mut state = state;
        let mut blocks = bytes.chunks_exact(8);
        let t = &self.tables;
        for block in &mut blocks {
            state = t[7][usize::from(block[0] ^ state)]
                ^ t[6][usize::from(block[1])]
                ^ t[5][usize::from(block[2])]
                ^ t[4][usize::from(block[3])]
                ^ t[3][usize::from(block[4])]
                ^ t[2][usize::from(block[5])]
                ^ t[1][usize::from(block[6])]
                ^ t[0][usize::from(block[7])];
        }
        for &byte in blocks.remainder() {
            state = t[0][usize::from(byte ^ state)];
        }
        state
    }

    /// The CRC of `bytes`.
    #[inline]
    pub fn check(&self, bytes: &[u8]) -> u8 {
        match self.period {
            127 if bytes.len() >= 64 => {
                let (head, blocks) = bytes.split_at(bytes.len() % 16);
                self.update(0, &fold_sixteen(self.update(self.initial, head), blocks).to_le_bytes())
            }
            56 if bytes.len() >= 8 => self.remainder(fold_seven(self.initial, bytes)),
            7 if bytes.len() >= 8 => {
                let word = fold_seven(self.initial, bytes);
                let word = word ^ word >> 28;
                let word = word ^ word >> 14;
                // The remaining seven bits are the last ones of a byte.
                self.tables[0][usize::from(((word ^ word >> 7) << 1) as u8)]
            }
            _ => self.update(self.initial, bytes),
        }
    }

    /// CRC-3 of a header of fixed length, at least 8 bytes. Same result as [`Crc::check`].
    #[inline(always)]
    pub(crate) fn check_header<const LEN: usize>(&self, bytes: &[u8; LEN]) -> u8 {
        const SEVEN: u64 = u64::MAX >> 8;
        debug_assert!(self.period == 7);
        let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        // Like `fold_seven`, with lengths known at compile time. The eighth byte of each word is ignored.
        let head = LEN % 7;
        let first = word(0) & !(SEVEN << (8 * head)) & SEVEN ^ u64::from(self.initial);
        let mut folded = if head == 0 { first } else { first << (8 * (7 - head)) };
        let mut at = head;
        while at + 8 <= LEN {
            folded ^= word(at);
            at += 7;
        }
        let folded = (folded ^ word(LEN - 8) >> 8) & SEVEN;
        let folded = folded ^ folded >> 28;
        let folded = folded ^ folded >> 14;
        self.tables[0][usize::from(((folded ^ folded >> 7) << 1) as u8)]
    }

    /// The remainder of seven bytes, the first of them lowest in `word`.
    fn remainder(&self, word: u64) -> u8 {
        let bytes = word.to_le_bytes();
        (0..7).fold(0, |state, at| state ^ self.tables[6 - at][usize::from(bytes[at])])
    }
}

/// Sixteen bytes with the same remainder as `blocks` after this state; the length of `blocks` is a multiple of sixteen.
/// Requires a period of 127, so that a bit one block earlier is equivalent to a bit one place earlier.
fn fold_sixteen(state: u8, blocks: &[u8]) -> u128 {
    let mut folded = 0;
    let mut state = u128::from(state);
    for block in blocks.chunks_exact(16) {
        let block = block.first_chunk().map_or(0, |block| u128::from_le_bytes(*block));
        folded = folded >> 1 ^ (folded & 1) << 126 ^ block ^ state;
        state = 0;
    }
    folded
}

/// Seven bytes with the same remainder as `bytes`, at least eight, after this initial state.
fn fold_seven(initial: u8, bytes: &[u8]) -> u64 {
    const SEVEN: u64 = u64::MAX >> 8;
    let head = bytes.len() % 7;
    let first = bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let first = first & !(SEVEN << (8 * head)) & SEVEN ^ u64::from(initial);
    // Positions count from the end, so the head is aligned to the end of the seven bytes. An empty head consists of the
    // initial state alone.
    let mut folded = if head == 0 { first } else { first << (8 * (7 - head)) };
    let mut rest = &bytes[head..];
    while let Some(chunk) = rest.first_chunk::<8>() {
        folded ^= u64::from_le_bytes(*chunk) & SEVEN;
        rest = &rest[7..];
    }
    let last = bytes.last_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
    folded ^ last >> 8
}

/// CRC-3: 1 + x + x^3.
pub static CRC3: Crc = Crc::new(0x6, 3, 7);
/// CRC-7: 1 + x + x^2 + x^3 + x^6 + x^7.
pub static CRC7: Crc = Crc::new(0x79, 7, 56);
/// CRC-8: 1 + x + x^2 + x^8.
pub static CRC8: Crc = Crc::new(0xe0, 8, 127);

const CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u16;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder >> 1) ^ (0x8408 * (remainder & 1));
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

/// CRC-16-CCITT of `bytes`, as in the frame check sequence of RFC 1662 (X.25: x^16 + x^12 + x^5 + 1, reflected, all
/// ones at the start, complemented at the end).
pub fn crc16(bytes: &[u8]) -> u16 {
    let state =
        bytes.iter().fold(0xffff, |state: u16, &byte| (state >> 8) ^ CRC16[usize::from(byte ^ state as u8)]);
    !state
}

/// CRC-32 of `bytes` (RFC 5795 section 5.3.1.4): reflected, all ones at the start, and complemented at the end as in
/// PPP, which the note in appendix A of the RFC requires. Processes one nibble at a time, because segments are rare.
pub fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut nibble = 0;
        while nibble < 16 {
            let mut remainder = nibble as u32;
            let mut bit = 0;
            while bit < 4 {
                remainder = (remainder >> 1) ^ (0xedb8_8320 * (remainder & 1));
                bit += 1;
            }
            table[nibble] = remainder;
            nibble += 1;
        }
        table
    };
    let step = |state: u32, nibble: u8| (state >> 4) ^ TABLE[((state ^ u32::from(nibble)) & 0xf) as usize];
    !bytes.iter().fold(u32::MAX, |state, &byte| step(step(state, byte & 0xf), byte >> 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &[u8] = b"123456789";

    fn bit_by_bit(polynomial: u8, width: u32, bytes: &[u8]) -> u8 {
        let mut state = ((1u16 << width) - 1) as u8;
        for byte in bytes {
            for bit in 0..8 {
                let carry = (state ^ (byte >> bit)) & 1;
                state = (state >> 1) ^ (polynomial * carry);
            }
        }
        state
    }

    #[test]
    fn known_checks() {
        // CRC-3/ROHC, CRC-7/ROHC, CRC-8/ROHC and CRC-16/X-25 of the catalogue of CRCs.
        assert_eq!(CRC3.check(CHECK), 0x6);
        assert_eq!(CRC7.check(CHECK), 0x53);
        assert_eq!(CRC8.check(CHECK), 0xd0);
        assert_eq!(crc16(CHECK), 0x906e);
        // CRC-32/ISO-HDLC.
        assert_eq!(crc32(CHECK), 0xcbf4_3926);
    }

    #[test]
    fn headers_of_fixed_length_have_the_same_check() {
        let bytes: [u8; 72] = core::array::from_fn(|i| (i * 53 + 7) as u8);
        assert_eq!(CRC3.check_header(&bytes), CRC3.check(&bytes));
        assert_eq!(
            bytes.first_chunk::<52>().map(|header| CRC3.check_header(header)),
            Some(CRC3.check(&bytes[..52]))
        );
        assert_eq!(
            bytes.first_chunk::<49>().map(|header| CRC3.check_header(header)),
            Some(CRC3.check(&bytes[..49]))
        );
    }

    #[test]
    fn tables_agree_with_the_definition_at_every_length() {
        let bytes: [u8; 211] = core::array::from_fn(|i| (i * 37 + 11) as u8);
        for len in 0..bytes.len() {
            let bytes = &bytes[..len];
            assert_eq!(CRC3.check(bytes), bit_by_bit(0x6, 3, bytes));
            assert_eq!(CRC7.check(bytes), bit_by_bit(0x79, 7, bytes));
            assert_eq!(CRC8.check(bytes), bit_by_bit(0xe0, 8, bytes));
            let (head, tail) = bytes.split_at(len / 3);
            let state = CRC8.update(CRC8.start(), head);
            assert_eq!(CRC8.update(state, tail), CRC8.check(bytes));
        }
    }
}
