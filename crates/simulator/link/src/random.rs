//! Random streams: one per purpose, so that draws for one purpose never affect those for another.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tacit_packet::units::Ratio;

/// A portable stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of `purpose` for `seed`. The name selects one of 2^64 streams of the seed, so streams with different
    /// names are independent, and a new name does not change existing streams.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(fnv1a(purpose.as_bytes()));
        Self(rng)
    }

    /// 32 uniform bits.
    pub fn draw(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Uniform in `0..=max`, without division; the bias is below `max / 2^32`.
    pub fn up_to(&mut self, max: u32) -> u32 {
        ((u64::from(self.draw()) * (u64::from(max) + 1)) >> 32) as u32
    }

    /// True with probability `ratio`; uses no random number if the result is certain.
    pub fn hit(&mut self, ratio: Ratio) -> bool {
        ratio != Ratio::ZERO && ratio.hit_by(self.draw())
    }
}

/// FNV-1a, 64 bits, which spreads names over stream numbers.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_name_and_seed() {
        let draws = |seed, name| {
            let mut stream = Stream::new(seed, name);
            [stream.draw(), stream.draw(), stream.draw()]
        };
        assert_eq!(draws(1, "backoff ap"), draws(1, "backoff ap"));
        assert_ne!(draws(1, "backoff ap"), draws(1, "backoff client1"));
        assert_ne!(draws(1, "backoff ap"), draws(2, "backoff ap"));
    }

    #[test]
    fn draws_are_portable() {
        // Known result: a change here changes every published digest.
        let mut stream = Stream::new(42, "known answer");
        assert_eq!([stream.draw(), stream.draw()], [930_646_962, 3_875_019_622]);
    }

    #[test]
    fn up_to_covers_its_range_evenly() {
        let mut stream = Stream::new(7, "range");
        let mut counts = [0_u32; 16];
        for _ in 0..16_000 {
            counts[stream.up_to(15) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
