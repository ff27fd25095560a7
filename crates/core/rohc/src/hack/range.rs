//! Adaptive binary range coder: each binary decision of a batch costs its information content, often far less than a
//! bit.
//!
//! One description of the fields serves both directions. It is written against [`BitCoder`], which both encoder and
//! decoder implement. An encoder writes the bit it is given. A decoder ignores that bit and returns the one it reads.

use super::memory::List;

/// When the range falls below this, it is renormalised by one byte.
const RENORMALISE: u32 = 1 << 24;

/// Probability of a 1, with 12 bits; the low four bits count the number of adaptations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chance(u16);

/// Adaptation rate as a right shift, by age: a new estimate adapts fast, an old one slowly.
const RATE: [u8; 16] = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5];
const AGE_MASK: u16 = 0xf;

impl Chance {
    /// Initial estimate without prior knowledge: 1 in 2.
    pub const EVEN: Self = Self(0x8000);
    /// A 1 is rare: 1 in 32.
    pub const RARE: Self = Self(0x0800 | 3);
    /// A 1 is less likely: 1 in 4.
    pub const SELDOM: Self = Self(0x4000 | 1);
    /// A 1 is likely: 7 in 8.
    pub const OFTEN: Self = Self(0xe000 | 2);

    /// The probability in units of 1/65536, never 0 or 1.
    fn value(self) -> u32 {
        u32::from(self.0 & !AGE_MASK).clamp(48, 0x1_0000 - 48)
    }

    fn adapt(&mut self, bit: bool) {
        let age = self.0 & AGE_MASK;
        let rate = RATE[usize::from(age)];
        let value = self.0 & !AGE_MASK;
        let value = if bit { value + ((0xfff0 - value) >> rate) } else { value - (value >> rate) };
        self.0 = (value & !AGE_MASK) | (age + 1).min(AGE_MASK);
    }
}

/// The common interface of encoder and decoder.
pub(super) trait BitCoder {
    /// Codes one bit with the probability `chance`, and adapts it.
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool;

    /// Codes the low `bits` (0..=32) of `value` without a probability model.
    fn plain(&mut self, bits: u32, value: u32) -> u32;
}

/// Appends coded bits to a buffer.
pub(super) struct Encoder<'a, L> {
    out: &'a mut L,
    /// Offset of this coder's first byte, which bounds the propagation of a carry.
    start: usize,
    low: u32,
    range: u32,
}

impl<'a, L: List<u8>> Encoder<'a, L> {
    /// Creates a coder that appends to `out`.
    pub fn new(out: &'a mut L) -> Self {
        let start = out.len();
        Self { out, start, low: 0, range: u32::MAX }
    }

    /// Adds to the code value written so far.
    fn add(&mut self, amount: u32) {
        let (low, carry) = self.low.overflowing_add(amount);
        self.low = low;
        if carry {
            self.carry();
        }
    }

    #[cold]
    fn carry(&mut self) {
        for byte in self.out[self.start..].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return;
            }
        }
    }

    fn renormalise(&mut self) {
        while self.range < RENORMALISE {
            self.out.push((self.low >> 24) as u8);
            self.low <<= 8;
            self.range <<= 8;
        }
    }

    /// Ends the code with the fewest bytes that identify it. The decoder reads zeros after the end.
    pub fn finish(mut self) {
        for bytes in 0..=4 {
            let tail = u32::MAX.checked_shr(8 * bytes).unwrap_or(0);
            let padding = (self.low.wrapping_neg()) & tail;
            if padding < self.range {
                self.add(padding);
                self.out.extend_from_slice(&self.low.to_be_bytes()[..bytes as usize]);
                break;
            }
        }
        while self.out.len() > self.start && self.out.last() == Some(&0) {
            self.out.truncate(self.out.len() - 1);
        }
    }
}

impl<L: List<u8>> BitCoder for Encoder<'_, L> {
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool {
        let bound = ((u64::from(self.range) * u64::from(chance.value())) >> 16) as u32;
        if bit {
            self.range = bound;
        } else {
            self.add(bound);
            self.range -= bound;
        }
        chance.adapt(bit);
        self.renormalise();
        bit
    }

    fn plain(&mut self, bits: u32, value: u32) -> u32 {
        for at in (0..bits).rev() {
            self.range >>= 1;
            if value >> at & 1 != 0 {
                self.add(self.range);
            }
            self.renormalise();
        }
        value
    }
}

/// Reads coded bits. Any byte sequence decodes to something.
pub(super) struct Decoder<'a> {
    bytes: core::slice::Iter<'a, u8>,
    code: u32,
    range: u32,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder for exactly these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { bytes: bytes.iter(), code: 0, range: u32::MAX };
        for _ in 0..4 {
            decoder.shift();
        }
        decoder
    }

    fn shift(&mut self) {
        self.code = self.code << 8 | u32::from(self.bytes.next().copied().unwrap_or(0));
    }

    fn renormalise(&mut self) {
        while self.range < RENORMALISE {
            self.shift();
            self.range <<= 8;
        }
    }
}

impl BitCoder for Decoder<'_> {
    fn bit(&mut self, chance: &mut Chance, _: bool) -> bool {
        let bound = ((u64::from(self.range) * u64::from(chance.value())) >> 16) as u32;
        let bit = self.code < bound;
        if bit {
            self.range = bound;
        } else {
            self.code -= bound;
            self.range -= bound;
        }
        chance.adapt(bit);
        self.renormalise();
        bit
    }

    fn plain(&mut self, bits: u32, _: u32) -> u32 {
        let mut value = 0;
        for _ in 0..bits {
            self.range >>= 1;
            let bit = self.code >= self.range;
            if bit {
                self.code -= self.range;
            }
            value = value << 1 | u32::from(bit);
            self.renormalise();
        }
        value
    }
}

/// Longest number, in bits: a 32-bit value and its flag bits.
const NUMBER_BITS: usize = 35;
/// Numbers up to this length in bits have adaptive probabilities for all bits.
const LEARNT_BITS: u32 = 5;

/// Probabilities for a number of widely varying size: its length in bits in unary, then the bits below the leading one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    longer: [Chance; NUMBER_BITS],
    below: [Chance; 1 << LEARNT_BITS],
}

impl Number {
    /// Initial estimates without prior knowledge.
    pub const NEW: Self =
        Self { longer: [Chance::SELDOM; NUMBER_BITS], below: [Chance::EVEN; 1 << LEARNT_BITS] };

    /// Codes `value` < 2^34.
    pub fn code<C: BitCoder>(&mut self, coder: &mut C, value: u64) -> u64 {
        // Zero has no leading one, so add one.
        let shifted = value + 1;
        let given = 64 - shifted.leading_zeros();
        let mut length = 1;
        while length < NUMBER_BITS as u32 && coder.bit(&mut self.longer[length as usize], given > length) {
            length += 1;
        }
        let mut decoded = 1u64;
        if length <= LEARNT_BITS {
            for at in (0..length - 1).rev() {
                let bit =
                    coder.bit(&mut self.below[decoded as usize | 1 << (length - 1)], shifted >> at & 1 != 0);
                decoded = decoded << 1 | u64::from(bit);
            }
        } else {
            let rest = length - 1;
            let high = rest.saturating_sub(32);
            let low = rest - high;
            for (bits, below) in [(high, shifted >> low), (low, shifted)] {
                decoded = decoded << bits | u64::from(coder.plain(bits, (below & ((1 << bits) - 1)) as u32));
            }
        }
        decoded - 1
    }
}
