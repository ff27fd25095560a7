//! Finds the scaling factor of the acknowledgment number (RFC 6846 section 6.4.8.2).

/// Steps below this are shorter than a segment.
const MIN_STRIDE: u32 = 128;
/// Steps above this are jumps.
const MAX_STEP: u32 = 1 << 22;
/// Number of steps that must agree before a stride is used, and before a larger one replaces one that works.
const TRUST: u16 = 3;
const TRUST_LARGER: u16 = 64;
/// Number of consecutive steps that a candidate may fail to divide.
const PATIENCE: u8 = 4;

/// Learns the greatest common divisor of the steps of the acknowledgment number, which is the segment size of the other
/// direction.
///
/// A multiple of it would work too while every acknowledgment covers a multiple of that many segments. Otherwise the
/// residue changes, which costs more than the larger range saves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StrideFinder {
    stride: u32,
    candidate: u32,
    hits: u16,
    misses: u8,
    last_ack: u32,
    /// The last step that the candidate divided, or 0.
    divided: u32,
}

impl StrideFinder {
    pub(crate) const EMPTY: Self =
        Self { stride: 0, candidate: 0, hits: 0, misses: 0, last_ack: 0, divided: 0 };

    /// The stride, or 0 while it is unknown.
    pub(crate) const fn get(&self) -> u32 {
        self.stride
    }

    /// Processes the acknowledgment number of the next packet.
    #[inline]
    pub(crate) fn observe(&mut self, ack: u32) {
        let step = ack.wrapping_sub(self.last_ack);
        self.last_ack = ack;
        if step == 0 || step >= MAX_STEP {
            return;
        }
        // Steps are usually equal, and a division is expensive.
        let divides = step == self.divided || (self.candidate != 0 && step.is_multiple_of(self.candidate));
        if divides {
            self.divided = step;
            self.hits = self.hits.saturating_add(1);
            self.misses = 0;
        } else {
            self.revise(step);
            self.divided = 0;
        }
        if self.candidate != self.stride {
            self.adopt();
        }
    }

    /// The step to this acknowledgment number, if it does not affect the stride: either zero, or a multiple of the
    /// stride.
    #[inline(always)]
    pub(crate) fn usual_step(&self, ack: u32) -> Option<u32> {
        let step = ack.wrapping_sub(self.last_ack);
        let divides = step == self.divided || (self.stride != 0 && step.is_multiple_of(self.stride));
        (step == 0 || (step < MAX_STEP && self.candidate == self.stride && divides)).then_some(step)
    }

    /// Does the same as [`StrideFinder::observe`] with a step returned by [`StrideFinder::usual_step`].
    pub(crate) fn note_usual_step(&mut self, ack: u32, step: u32) {
        self.last_ack = ack;
        if step != 0 {
            self.divided = step;
            self.hits = self.hits.saturating_add(1);
            self.misses = 0;
        }
    }

    fn revise(&mut self, step: u32) {
        let common = gcd(self.candidate, step);
        if self.candidate != 0 && common < MIN_STRIDE {
            self.misses += 1;
            if self.misses < PATIENCE {
                return;
            }
            self.candidate = step;
            self.hits = 1;
        } else {
            self.hits = if self.candidate == 0 { 1 } else { self.hits.min(TRUST) + 1 };
            self.candidate = common;
        }
        self.misses = 0;
    }

    fn adopt(&mut self) {
        let larger = self.stride != 0 && self.candidate.is_multiple_of(self.stride);
        let trust = if larger { TRUST_LARGER } else { TRUST };
        if self.hits >= trust && (MIN_STRIDE..=0xffff).contains(&self.candidate) {
            self.stride = self.candidate;
        }
    }
}

pub(crate) const fn gcd(a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(steps: &[u32]) -> u32 {
        let mut finder = StrideFinder { last_ack: 77, ..StrideFinder::EMPTY };
        let mut ack = 77u32;
        for step in steps {
            ack = ack.wrapping_add(*step);
            finder.observe(ack);
        }
        finder.get()
    }

    #[test]
    fn the_segment_size_is_found() {
        assert_eq!(after(&[2896, 2896, 1448, 2896, 2896]), 1448);
        assert_eq!(after(&[2896, 0, 2896, 0, 5792]), 2896);
        assert_eq!(after(&[2896, 2896]), 0, "too early to tell");
    }

    #[test]
    fn an_odd_segment_does_not_disturb() {
        assert_eq!(after(&[1448, 1448, 1448, 1448, 17, 1448, 1448]), 1448);
        assert_eq!(after(&[17, 33, 1448, 1448, 1448, 1448, 1448, 1448, 1448]), 1448);
    }

    #[test]
    fn random_steps_give_no_stride() {
        assert_eq!(after(&[1, 3, 7, 12, 99, 101, 77, 13, 1001, 2003]), 0);
    }
}
