//! Deterministic pseudo-random numbers.

/// A 32-bit linear congruential generator (constants of Numerical Recipes): each run gets the same numbers.
#[derive(Clone, Debug)]
pub struct Chance(pub u32);

impl Chance {
    /// A number in `0..choices`, uniformly distributed.
    pub fn draw(&mut self, choices: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The upper bits have the best randomness.
        ((u64::from(self.0) * u64::from(choices)) >> 32) as u32
    }
}
