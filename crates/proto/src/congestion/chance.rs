//! Chance without a source of it.

/// Chance that is the same in each run: a 32-bit linear congruential step (constants of Numerical Recipes).
#[derive(Clone, Debug)]
pub(crate) struct Chance(pub u32);

impl Chance {
    /// One of `0..choices`, each as likely.
    pub fn draw(&mut self, choices: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The upper bits are the best.
        ((u64::from(self.0) * u64::from(choices)) >> 32) as u32
    }
}
