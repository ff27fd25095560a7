//! Rate adaptation like Minstrel (D. Smithies, F. Fietkau, the rate control of Linux's mac80211): recent deliveries
//! show which rate has the highest throughput, and a few PPDUs try other rates.
//!
//! Tries are a share of the PPDUs to a station, not of time; otherwise a rarely served station would get only tries.
//! Evidence is weighted by MPDUs for the same reason: one long PPDU tells as much as several tries.
//!
//! A channel of half the width has half the noise, which allows the next faster modulation, so its throughput is about
//! the same. A narrower channel is better only where the slowest rates of a width fail, and it is tried only there.

use core::ops::Range;

use tacit_packet::units::{BitRate, Duration, Instant};

use super::aggregation::AggregationLimits;
use crate::random::Stream;
use crate::wifi::phy::Mode;

/// Time between two updates of the statistics (minstrel_ht: 50 ms), if there are enough counts.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Enough counts for an update, in MPDUs.
const LOOK_ATTEMPTS: u64 = 10;
/// After this time an update needs only one count.
const LONGEST_LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// One PPDU in this number tries another rate (minstrel_ht: a tenth of the frames).
const PPDUS_PER_TRY: u32 = 10;
/// After this number of consecutive lost tries the interval between tries doubles, and again after each further such
/// number, up to [`TRIES_RARER_MAX`] times the normal interval: on a channel that does not change, tries find nothing
/// new.
const VAIN_TRIES: u32 = 4;
const TRIES_RARER_MAX: u32 = 4;
/// Per width and number of streams, only this number of the lowest rates above the best is tried: much faster rates
/// hardly ever work.
const TRIED: usize = 2;
/// A narrower channel is tried while the best rate is among this number of slowest rates of the wider one.
const SLOWEST: usize = 2;
/// A delivery probability of 1.
const CERTAIN: u64 = 1 << 16;
/// Weight of one MPDU as evidence, in a unit that leaves room for the fractions from aging.
const MPDU: u64 = 1 << 12;
/// Fraction of the earlier evidence that an update keeps: three quarters (minstrel_ht's EWMA level of 96 / 128).
const KEPT: [u64; 2] = [3, 4];
/// Least evidence that an update keeps, so that a try of one MPDU has a quarter of the weight.
const LEAST_KEPT: u64 = 3 * MPDU;
/// Most evidence that an update keeps, so that a change of distance is noticed within a few updates.
const MOST_KEPT: u64 = 64 * MPDU;
/// Most lost tries until a rate is considered useless.
const LOST_TRIES: u32 = 4;
/// Least number of consecutive PPDUs without a delivered MPDU after which the next rate of the chain is used. It is
/// raised until collisions explain such a series only once in [`UNLIKELY`]; the last rate of the chain needs twice as
/// many.
const LEAST_FAILURES: u32 = 2;
const UNLIKELY: u64 = 64;
/// Number of last attempts of an MPDU that use the most reliable rate, as the end of Linux's retry chain does. A rate
/// that loses two of five MPDUs may have the highest throughput, but it loses one of every 1,500 MPDUs on the last of
/// seven retries, and TCP starves.
const SURE_ATTEMPTS: u32 = 2;
/// Number of PPDUs over which the share of PPDUs with a delivered MPDU is averaged.
const ANSWERED_OVER: u64 = 64;
/// Lower limit of that share.
const LEAST_ANSWERED: u64 = CERTAIN / 8;
/// A rate that delivers less than a tenth counts as useless (minstrel_ht).
const LEAST_CHANCE: u64 = CERTAIN / 10;

/// A rate, with its control rate and its limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub mode: Mode,
    pub control_mode: Mode,
    pub limits: AggregationLimits,
}

impl Rate {
    /// Sort key of rates: by width, then by number of streams, then by bit rate.
    pub fn order(&self) -> (u32, u32, BitRate) {
        (self.mode.width_mhz.into(), self.mode.streams.into(), self.mode.rate())
    }
}

/// Evidence for one rate.
#[derive(Clone, Debug)]
struct Known {
    rate: Rate,
    /// MPDUs since the last update. A PPDU without a delivered MPDU counts as one MPDU, because it probably collided.
    attempts: u64,
    successes: u64,
    /// Aged evidence of earlier updates: MPDUs times [`MPDU`], and the delivered part.
    seen: u64,
    through: u64,
    /// Cautious estimate of the delivery probability.
    surely: u64,
    /// PPDUs without a delivered MPDU, ever. Unlike the evidence this does not age, so an old rate does not count as
    /// untried.
    lost: u32,
}

impl Known {
    /// Delivery probability; `None` before the first try.
    fn chance(&self) -> Option<u64> {
        (self.seen > 0).then(|| self.through * CERTAIN / self.seen)
    }

    /// Whether no MPDU has been delivered in fewer than `tries` tries.
    fn is_open(&self, tries: u32) -> bool {
        self.through == 0 && self.lost < tries
    }

    /// Delivery probability plus two standard deviations.
    fn chance_at_best(&self) -> u64 {
        let Some(chance) = self.chance() else { return 0 };
        (chance + 2 * (chance * (CERTAIN - chance) * MPDU / self.seen).isqrt()).min(CERTAIN)
    }

    /// Delivery probability after adding two MPDUs at the probability `expected`, so that little evidence does not make
    /// a rate look reliable.
    fn chance_at_worst(&self, expected: u64) -> u64 {
        (self.through * CERTAIN + 2 * MPDU * expected) / (self.seen + 2 * MPDU)
    }

    /// Ages the evidence and adds the new counts.
    fn look(&mut self) {
        let faded = (self.seen * KEPT[0] / KEPT[1]).clamp(LEAST_KEPT, MOST_KEPT).min(self.seen);
        // If nothing was sent, nothing was delivered.
        self.through = (self.through * faded).checked_div(self.seen).unwrap_or_default();
        self.seen = faded + self.attempts * MPDU;
        self.through += self.successes * MPDU;
        (self.attempts, self.successes) = (0, 0);
    }
}

/// The rates for one destination.
#[derive(Clone, Debug)]
pub(crate) struct Minstrel {
    /// In ascending order: rates with the same width are adjacent, and within a width those with the same number of
    /// streams.
    rates: Vec<Known>,
    /// Best throughput, second best throughput, most reliable.
    chain: [usize; 3],
    current: usize,
    /// Consecutive PPDUs without a delivered MPDU.
    failures: u32,
    /// Moving average of the share of PPDUs with a delivered MPDU, without tries.
    answered: u64,
    /// PPDUs since the last try.
    ppdus: u32,
    /// MPDUs counted since the last update.
    counted: u64,
    looked_at: Instant,
    /// Whether the last PPDU was a try.
    trying: bool,
    /// Whether the last PPDU was a try and delivered an MPDU.
    got_through: bool,
    /// Lost tries since the last successful one.
    vain_tries: u32,
    /// Whether the last PPDU was the first try of its rate, after which an update follows at once.
    is_news: bool,
    /// Moving averages of the MPDUs waiting for a PPDU, times [`MPDU`], and of their size in bytes.
    waiting: u64,
    mpdu_bytes: u64,
    /// Duration of an exchange apart from its PPDU.
    overhead: Duration,
    /// Greatest number of retries of an MPDU.
    retry_limit: u32,
    stream: Stream,
}

impl Minstrel {
    /// Starts with the first of `rates`, which must be in [order](Rate::order). An exchange takes `overhead` beyond its
    /// PPDU.
    ///
    /// # Panics
    /// If `rates` is empty or not in order: callers refer to rates by index.
    pub fn new(
        rates: impl IntoIterator<Item = Rate>,
        overhead: Duration,
        retry_limit: u32,
        stream: Stream,
    ) -> Self {
        let known = |rate| Known { rate, attempts: 0, successes: 0, seen: 0, through: 0, surely: 0, lost: 0 };
        let rates: Vec<_> = rates.into_iter().map(known).collect();
        assert!(!rates.is_empty(), "there is a rate");
        assert!(rates.is_sorted_by_key(|known| known.rate.order()), "rates are numbered in order");
        Self {
            rates,
            chain: [0; 3],
            current: 0,
            failures: 0,
            answered: CERTAIN / 8 * 7,
            ppdus: 0,
            counted: 0,
            looked_at: Instant::ZERO,
            trying: false,
            got_through: false,
            vain_tries: 0,
            is_news: false,
            waiting: MPDU,
            mpdu_bytes: 1_500,
            overhead,
            retry_limit,
            stream,
        }
    }

    /// Number of rates.
    pub fn count(&self) -> usize {
        self.rates.len()
    }

    /// What [`choose`](Self::choose) returned last.
    pub fn chosen(&self) -> (Rate, usize, bool) {
        (self.rates[self.current].rate, self.current, self.trying)
    }

    /// Updates the statistics at `now` if that is due.
    pub fn update(&mut self, now: Instant) {
        if self.is_look_due(now) {
            self.look(now);
        }
    }

    /// The rate of the next PPDU if it is no try, and its index; see [`choose`](Self::choose).
    pub fn steady(&self, retries: u32) -> (Rate, usize) {
        let index = self.chain[self.stage(retries)];
        (self.rates[index].rate, index)
    }

    /// The PPDU that is assembled next is sent at that rate.
    pub fn use_steady(&mut self, retries: u32) -> Rate {
        let (rate, index) = self.steady(retries);
        self.trying = false;
        self.current = index;
        rate
    }

    /// Whether the next PPDU of its own is to try another rate.
    pub fn wants_try(&self, retries: u32) -> bool {
        let may_try = self.failures == 0 && !self.is_last_chance(retries);
        may_try
            && (self.first_try().is_some() || self.is_further_try_due() && self.candidates().next().is_some())
    }

    /// The rate of the PPDU assembled at `now`, its index, and whether it is a try, for which one MPDU is enough.
    /// `retries` is the highest retry count among the waiting MPDUs.
    pub fn choose(&mut self, now: Instant, retries: u32) -> (Rate, usize, bool) {
        self.update(now);
        // While the current rate fails, its failures give enough evidence.
        let may_try = self.failures == 0 && !self.is_last_chance(retries);
        let tried = if may_try { self.next_try() } else { None };
        self.trying = tried.is_some();
        self.current = tried.unwrap_or(self.chain[self.stage(retries)]);
        self.chosen()
    }

    /// PPDUs without a delivered MPDU may have collided: they alone do not make this the last attempt.
    fn is_last_chance(&self, retries: u32) -> bool {
        retries > self.failures.max(self.retry_limit.saturating_sub(SURE_ATTEMPTS))
    }

    /// The rate of the chain to use.
    fn stage(&self, retries: u32) -> usize {
        match self.failures / self.failures_per_stage() {
            _ if self.is_last_chance(retries) => 2,
            stage => stage.min(2) as usize,
        }
    }

    /// The most reliable rate of the chain.
    pub fn surest(&self) -> Rate {
        self.rates[self.chain[2]].rate
    }

    /// Consecutive lost PPDUs for which the rate is to blame: with fifty sending stations, half of all PPDUs collide.
    fn failures_per_stage(&self) -> u32 {
        let lost = CERTAIN - self.answered.max(LEAST_ANSWERED);
        let mut odds = CERTAIN;
        let mut failures = 0;
        while odds > CERTAIN / UNLIKELY {
            odds = odds * lost / CERTAIN;
            failures += 1;
        }
        failures.max(LEAST_FAILURES)
    }

    /// Lost tries until a rate is considered useless.
    fn lost_tries(&self) -> u32 {
        self.failures_per_stage().min(LOST_TRIES)
    }

    fn is_look_due(&self, now: Instant) -> bool {
        let interval = if self.counted >= LOOK_ATTEMPTS { LOOK_INTERVAL } else { LONGEST_LOOK_INTERVAL };
        self.is_news || self.counted > 0 && now.saturating_since(self.looked_at) >= interval
    }

    /// The rate to try with the next PPDU, if a try is due and some rate could exceed the best.
    fn next_try(&mut self) -> Option<usize> {
        if let Some(new) = self.first_try() {
            return Some(new);
        }
        if !self.is_further_try_due() {
            return None;
        }
        let candidates = self.candidates().count() as u32;
        let pick = self.stream.up_to(candidates.checked_sub(1)?) as usize;
        self.candidates().nth(pick)
    }

    /// The rate to try for the first time with the next PPDU. First tries follow one another until one is lost, so that no
    /// MPDU uses up its retries.
    fn first_try(&self) -> Option<usize> {
        if self.ppdus == 0 && !self.got_through { None } else { self.never_tried() }
    }

    /// Whether the next PPDU is to try a rate that was tried before.
    fn is_further_try_due(&self) -> bool {
        let rarer = 1 << (self.vain_tries / VAIN_TRIES).min(TRIES_RARER_MAX.ilog2());
        (self.ppdus > 0 || self.got_through) && self.ppdus + 1 >= PPDUS_PER_TRY * rarer
    }

    /// The index ranges of all groups with the same width and number of streams, the last group first.
    fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = self.rates.len();
        core::iter::from_fn(move || {
            let group = self.group_of(end.checked_sub(1)?);
            end = group.start;
            Some(group)
        })
    }

    /// The index range of all rates with the same width and number of streams as rate `index`.
    fn group_of(&self, index: usize) -> Range<usize> {
        let kind = |known: &Known| (known.rate.mode.width_mhz, known.rate.mode.streams);
        let group = kind(&self.rates[index]);
        let start = self.rates.partition_point(|known| kind(known) < group);
        start..self.rates.partition_point(|known| kind(known) <= group)
    }

    /// Number of rates in `group` to try, if they could exceed the best. In a group of another width, it is at most
    /// one: the slowest, if it has as many streams as the best. Once it succeeds, that width is the width of the best
    /// rate.
    fn tried_of(&self, group: &Range<usize>) -> usize {
        let best = self.chain[0];
        let [own, other] = [best, group.start].map(|index| &self.rates[index].rate.mode);
        if other.width_mhz == own.width_mhz {
            return TRIED;
        }
        let is_too_narrow = other.width_mhz < own.width_mhz && best >= self.group_of(best).start + SLOWEST;
        usize::from(!is_too_narrow && other.streams == own.streams)
    }

    /// The rates of `group` other than the best that would exceed it if they lost nothing, in ascending order.
    fn better(&self, group: Range<usize>) -> impl Iterator<Item = usize> + Clone {
        let best = self.throughput(self.chain[0]);
        group.filter(move |index| *index != self.chain[0] && self.throughput_at(*index, CERTAIN) > best)
    }

    /// Of the untried rates that could exceed the best, the middle one below the lowest that was tried. Bisection finds
    /// the best in about log2(n) tries for n rates.
    fn never_tried(&self) -> Option<usize> {
        let tries = self.lost_tries();
        let in_group = |group: Range<usize>| {
            let tried = match self.tried_of(&group) {
                TRIED => usize::MAX,
                fewer => fewer,
            };
            let better = self.better(group).take(tried);
            let mut open = better.take_while(|index| self.rates[*index].is_open(tries));
            let count = open.clone().count();
            open.nth(count / 2)
        };
        self.groups().find_map(in_group)
    }

    /// The rates that are tried periodically.
    fn candidates(&self) -> impl Iterator<Item = usize> {
        self.groups().flat_map(|group| {
            let tried = self.tried_of(&group);
            self.better(group).take(tried)
        })
    }

    /// Reports the last PPDU: `successes` of `attempts` MPDUs were delivered in `bytes` bytes, and `more` packets were
    /// waiting.
    pub fn report(&mut self, attempts: u32, successes: u32, bytes: u32, more: bool) {
        let counted = if successes == 0 { attempts.min(1) } else { attempts };
        let tries = self.lost_tries();
        let known = &mut self.rates[self.current];
        let was_open = known.is_open(tries);
        known.lost = known.lost.saturating_add(u32::from(successes == 0));
        known.attempts += u64::from(counted);
        known.successes += u64::from(successes);
        self.counted += u64::from(counted);
        self.got_through = self.trying && successes > 0;
        if self.trying {
            self.ppdus = 0;
            self.vain_tries = if self.got_through { 0 } else { self.vain_tries.saturating_add(1) };
            self.is_news = was_open;
            // A failed try says nothing about the rate in use.
            return;
        }
        self.ppdus = self.ppdus.saturating_add(1);
        self.failures = if successes == 0 { self.failures.saturating_add(1) } else { 0 };
        let answered = if successes == 0 { 0 } else { CERTAIN };
        self.answered = ((ANSWERED_OVER - 1) * self.answered + answered) / ANSWERED_OVER;
        let mpdu_bytes = bytes / attempts.max(1);
        self.mpdu_bytes = (7 * self.mpdu_bytes + u64::from(mpdu_bytes)) / 8;
        // The rate or the Block Ack window limited the PPDU: assume as many waiting packets as the fastest rate could
        // take.
        let most = self.rates.last().map_or(1, |known| known.rate.limits.most_mpdus(mpdu_bytes));
        let waiting = if more { attempts.max(most) } else { attempts };
        self.waiting = (7 * self.waiting + u64::from(waiting) * MPDU) / 8;
    }

    /// Updates the evidence with the counts since the last update, and the chain from the evidence.
    fn look(&mut self, now: Instant) {
        self.looked_at = now;
        self.counted = 0;
        self.is_news = false;
        self.rates.iter_mut().for_each(Known::look);
        let best_of = |except: Option<usize>| {
            let others = (0..self.rates.len()).filter(|index| Some(*index) != except);
            // Among useless rates the lowest is chosen, because max_by_key takes the last of equals.
            others.rev().max_by_key(|index| self.throughput(*index)).unwrap_or(0)
        };
        // The rate in use stays unless chance cannot explain that another seems better. The other rate is tried rarely,
        // so a wrong switch would take long to correct.
        let (used, better) = (self.chain[0], best_of(None));
        let at_best = self.throughput_at(used, self.rates[used].chance_at_best());
        let best = if self.throughput(better) > at_best { better } else { used };
        let second = best_of(Some(best));
        self.weigh_slower(best);
        // The fastest rate that is nearly as reliable as the most reliable one.
        let surest = self.rates.iter().map(|known| known.surely).max().unwrap_or(0);
        let is_sure = |index: &usize| self.rates[*index].surely >= surest - surest / 8;
        let carried = |index: &usize| self.throughput_at(*index, self.rates[*index].surely);
        let probable = (0..self.rates.len()).rev().filter(is_sure).max_by_key(carried);
        self.chain = [best, second, probable.unwrap_or(0)];
    }

    /// Estimates the reliability of each rate. Rates slower than `best` are hardly ever used, so little is known about
    /// them: each is assumed to lose half as much as the next faster one. (minstrel_ht assumes that an untried rate is
    /// as reliable as the next faster one of its group.)
    fn weigh_slower(&mut self, best: usize) {
        self.rates.iter_mut().for_each(|known| known.surely = known.chance_at_worst(0));
        let mut faster = best;
        while let Some(slower) = self.next_slower(faster) {
            let expected = CERTAIN - (CERTAIN - self.rates[faster].surely) / 2;
            self.rates[slower].surely = self.rates[slower].chance_at_worst(expected);
            faster = slower;
        }
    }

    /// The next slower rate of the same width, or the slowest of the next narrower one with as many streams.
    fn next_slower(&self, index: usize) -> Option<usize> {
        let group = self.group_of(index);
        if index > group.start {
            return Some(index - 1);
        }
        let streams = self.rates[index].rate.mode.streams;
        let narrower =
            (0..group.start).rev().find(|index| self.rates[*index].rate.mode.streams == streams)?;
        Some(self.group_of(narrower).start)
    }

    /// Throughput of a rate in bytes per second, from the evidence about it.
    fn throughput(&self, index: usize) -> u64 {
        self.throughput_at(index, self.rates[index].chance().unwrap_or(0))
    }

    /// Throughput of a rate in bytes per second if MPDUs are delivered with probability `chance`.
    fn throughput_at(&self, index: usize, chance: u64) -> u64 {
        if chance < LEAST_CHANCE {
            return 0;
        }
        let rate = &self.rates[index].rate;
        let open = open_window(rate.limits.window.into(), chance);
        let bytes =
            (self.waiting.min(open).max(MPDU) * self.mpdu_bytes / MPDU).min(rate.limits.longest().into());
        let time = rate.mode.ppdu_duration(bytes as u32) + self.overhead;
        // At most 2^20 bytes times 2^16 times 10^9 ns, which is 67 bits.
        (u128::from(bytes) * u128::from(chance) * 1_000_000_000
            / u128::from(CERTAIN)
            / u128::from(time.as_nanos())) as u64
    }
}

/// MPDUs in the average PPDU, times [`MPDU`], if the sender always has data and only its Block Ack window of `window`
/// MPDUs limits it. Each MPDU is delivered with probability `chance`. The window advances when the first MPDU in it
/// arrives.
fn open_window(window: u64, chance: u64) -> u64 {
    /// Percent of the window if a window loses an eighth of an MPDU on average, a quarter, a half and so on; from
    /// simulation.
    const OPEN: [u64; 12] = [95, 90, 84, 75, 66, 59, 53, 47, 40, 35, 30, 26];
    let eighths = 8 * window * (CERTAIN - chance) / CERTAIN;
    let Some(index) = eighths.checked_ilog2() else { return window * MPDU };
    let at = |index: u32| OPEN[(index as usize).min(OPEN.len() - 1)];
    // Linear interpolation between the entries.
    let beyond = ((at(index) - at(index + 1)) * MPDU * (eighths - (1 << index))) >> index;
    window * (at(index) * MPDU - beyond) / 100
}

#[cfg(test)]
#[path = "rate_control_tests.rs"]
mod tests;
