//! Rate adaptation in the manner of Minstrel (D. Smithies, F. Fietkau, the rate control of Linux's mac80211):
//! what got through lately says which rate carries most, and a few frames try the others.

use tacit_proto::units::{Duration, Instant};

use super::aggregation::AggregationLimits;
use crate::random::Stream;
use crate::wifi::phy::Mode;

/// Between two looks at what was counted (minstrel_ht: 50 ms).
const UPDATE_INTERVAL: Duration = Duration::from_millis(50);
/// From one try of another rate to the next: a few between two updates, and little beside A-MPDUs of 5 ms.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
/// Only the lowest of those that could carry more are tried: what is far above hardly ever works.
const SAMPLED: usize = 3;
/// Certainty, in the unit of chances.
const CERTAIN: u64 = 1 << 16;
/// Share of the old value in the moving average: 3 / 4 (minstrel_ht's EWMA level of 96 / 128).
const OLD_QUARTERS: u64 = 3;
/// PPDUs lost whole in a row after which the next of the chain is used: best throughput, second best, most
/// probable.
const CHAIN: [u32; 2] = [2, 4];
/// A rate that gets less than a tenth through carries nothing (minstrel_ht).
const LEAST_CHANCE: u64 = CERTAIN / 10;

/// A rate, and what goes with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub mode: Mode,
    pub control_mode: Mode,
    pub limits: AggregationLimits,
}

/// What is known of a rate.
#[derive(Clone, Debug)]
struct Known {
    rate: Rate,
    /// MPDUs since the last update.
    attempts: u64,
    successes: u64,
    /// Moving average of the share that got through; `None` before the first try.
    chance: Option<u64>,
}

/// The rates to one destination.
#[derive(Clone, Debug)]
pub(crate) struct Minstrel {
    /// Ascending.
    rates: Vec<Known>,
    /// Best throughput, second best, most probable.
    chain: [usize; 3],
    current: usize,
    /// PPDUs lost whole in a row.
    failures: u32,
    update_at: Instant,
    sample_at: Instant,
    /// The last PPDU was a try.
    sampling: bool,
    /// Moving average of the octets of a PPDU.
    mean_octets: u64,
    /// What an exchange takes besides the PPDU.
    overhead: Duration,
    stream: Stream,
}

impl Minstrel {
    /// Begins at the lowest of `rates`, which ascend. An exchange takes `overhead` besides its PPDU.
    ///
    /// # Panics
    /// Without a rate.
    pub fn new(rates: impl IntoIterator<Item = Rate>, overhead: Duration, stream: Stream) -> Self {
        let known = |rate| Known { rate, attempts: 0, successes: 0, chance: None };
        let rates: Vec<_> = rates.into_iter().map(known).collect();
        assert!(!rates.is_empty(), "there is a rate");
        Self {
            rates,
            chain: [0; 3],
            current: 0,
            failures: 0,
            update_at: Instant::ZERO + UPDATE_INTERVAL,
            sample_at: Instant::ZERO,
            sampling: false,
            mean_octets: 1_500,
            overhead,
            stream,
        }
    }

    /// The rate of the PPDU that is put together at `now`, its number, and whether it only tries the rate:
    /// then one MPDU is enough.
    pub fn choose(&mut self, now: Instant) -> (Rate, usize, bool) {
        if now >= self.update_at {
            self.update(now);
        }
        let stage = CHAIN.iter().filter(|failures| self.failures >= **failures).count();
        self.current = self.chain[stage];
        let due = now >= self.sample_at;
        let sample = if due { self.sample() } else { None };
        if due {
            self.sample_at = now + SAMPLE_INTERVAL;
        }
        self.sampling = sample.is_some();
        if let Some(sampled) = sample {
            self.current = sampled;
        }
        (self.rates[self.current].rate, self.current, sample.is_some())
    }

    /// A rate that could carry more than the best does, if there is one, picked by chance.
    fn sample(&mut self) -> Option<usize> {
        let candidates = self.candidates().count() as u32;
        let pick = self.stream.up_to(candidates.checked_sub(1)?) as usize;
        self.candidates().nth(pick)
    }

    /// The lowest rates besides the best that would carry more than the best if everything got through.
    fn candidates(&self) -> impl Iterator<Item = usize> {
        let best = self.throughput(self.chain[0]);
        let could =
            move |index: &usize| *index != self.chain[0] && self.throughput_at(*index, CERTAIN) > best;
        (0..self.rates.len()).filter(could).take(SAMPLED)
    }

    /// What became of the last PPDU: `successes` of `attempts` MPDUs, and its octets.
    pub fn report(&mut self, attempts: u32, successes: u32, octets: u32) {
        let known = &mut self.rates[self.current];
        known.attempts += u64::from(attempts);
        known.successes += u64::from(successes);
        if self.sampling {
            // A try that failed says nothing about the rate in use.
            return;
        }
        self.failures = if successes == 0 { self.failures.saturating_add(1) } else { 0 };
        self.mean_octets = (7 * self.mean_octets + u64::from(octets)) / 8;
    }

    fn update(&mut self, now: Instant) {
        self.update_at = now + UPDATE_INTERVAL;
        for known in &mut self.rates {
            if known.attempts == 0 {
                continue;
            }
            let fresh = known.successes * CERTAIN / known.attempts;
            known.chance = Some(match known.chance {
                Some(old) => (OLD_QUARTERS * old + (4 - OLD_QUARTERS) * fresh) / 4,
                None => fresh,
            });
            (known.attempts, known.successes) = (0, 0);
        }
        let best_of = |except: Option<usize>| {
            let others = (0..self.rates.len()).filter(|index| Some(*index) != except);
            // Of rates that carry nothing the lowest; max_by_key takes the last of equals.
            others.rev().max_by_key(|index| self.throughput(*index)).unwrap_or(0)
        };
        let best = best_of(None);
        let second = best_of(Some(best));
        // The fastest of those that get nearly all through, or else the surest.
        let sure = |index: &usize| self.rates[*index].chance.unwrap_or(0) >= CERTAIN * 95 / 100;
        let probable = (0..self.rates.len()).filter(sure).max_by_key(|index| self.throughput(*index));
        let surest = (0..self.rates.len()).rev().max_by_key(|index| self.rates[*index].chance.unwrap_or(0));
        self.chain = [best, second, probable.or(surest).unwrap_or(0)];
    }

    /// Octets per second that a rate carries, by what is known of it.
    fn throughput(&self, index: usize) -> u64 {
        self.throughput_at(index, self.rates[index].chance.unwrap_or(0))
    }

    /// Octets per second that a rate carries if MPDUs get through with `chance`.
    fn throughput_at(&self, index: usize, chance: u64) -> u64 {
        if chance < LEAST_CHANCE {
            return 0;
        }
        let rate = &self.rates[index].rate;
        let octets = self.mean_octets.min(u64::from(rate.limits.longest()));
        let time = rate.mode.ppdu_duration(octets as u32) + self.overhead;
        // At most 2^20 octets times 2^16 times 10^9 ns: 67 bits.
        (u128::from(octets) * u128::from(chance) * 1_000_000_000
            / u128::from(CERTAIN)
            / u128::from(time.as_nanos())) as u64
    }
}

#[cfg(test)]
#[path = "rate_control_tests.rs"]
mod tests;
