//! Rate adaptation in the manner of Minstrel (D. Smithies, F. Fietkau, the rate control of Linux's mac80211):
//! recent deliveries say which rate carries most, and a few PPDUs try the others.
//!
//! Tries are a share of the PPDUs to a station, not of time: a station that is served seldom would get nothing but
//! tries otherwise. Evidence is weighed by MPDUs for the same reason: a long PPDU says at once as much as many tries.
//!
//! A channel half as wide halves the noise, which is worth the next slower modulation: it carries about as much. Only where
//! the slowest rates of a width fail a narrower one is better, and only then it is tried.

use core::ops::Range;

use tacit_proto::units::{BitRate, Duration, Instant};

use super::aggregation::AggregationLimits;
use crate::random::Stream;
use crate::wifi::phy::Mode;

/// Between two looks at the counts (minstrel_ht: 50 ms), if there is enough to see.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Enough to see, in MPDUs.
const LOOK_ATTEMPTS: u64 = 10;
/// After this long less is enough.
const LONGEST_LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// One PPDU in this number tries another rate (minstrel_ht: a tenth of the frames).
const PPDUS_PER_TRY: u32 = 10;
/// After this number of lost tries in a row the next one waits twice as long, and so on up to [`TRIES_RARER_MAX`]
/// times: where the channel stands still nothing new is to be learnt.
const VAIN_TRIES: u32 = 4;
const TRIES_RARER_MAX: u32 = 4;
/// Of the rates of a width and number of streams that could carry more, only the lowest of this number are tried: rates
/// far above hardly ever work.
const TRIED: usize = 2;
/// A narrower channel is tried while the best rate is one of this number of slowest rates of the wider one.
const SLOWEST: usize = 2;
/// Certainty, in the unit of chances.
const CERTAIN: u64 = 1 << 16;
/// Weight of an MPDU as evidence: room for the fractions that fading leaves.
const MPDU: u64 = 1 << 12;
/// Part of earlier evidence that a look leaves: three quarters (minstrel_ht's EWMA level of 96 / 128).
const KEPT: [u64; 2] = [3, 4];
/// But not less than this, so that a try of one MPDU weighs a quarter,
const LEAST_KEPT: u64 = 3 * MPDU;
/// nor more, so that a station that walks away is noticed in a few looks.
const MOST_KEPT: u64 = 64 * MPDU;
/// Most tries lost until a rate counts as tried in vain.
const LOST_TRIES: u32 = 4;
/// Least number of PPDUs lost whole in a row after which the next of the chain is used. It is large enough that collisions
/// explain them once in [`UNLIKELY`] only, and twice as many for the last of the chain.
const LEAST_FAILURES: u32 = 2;
const UNLIKELY: u64 = 64;
/// Last attempts of an MPDU, which go at the most probable rate, as the last of Linux's retry chain do: a rate that loses two of
/// five MPDUs may carry most bytes, but of every 1,500 MPDUs it loses one to the last of seven retries, and TCP starves.
const SURE_ATTEMPTS: u32 = 2;
/// PPDUs over which the share of those not lost whole is averaged.
const ANSWERED_OVER: u64 = 64;
/// That share is not taken for less.
const LEAST_ANSWERED: u64 = CERTAIN / 8;
/// A rate that gets less than a tenth through carries nothing (minstrel_ht).
const LEAST_CHANCE: u64 = CERTAIN / 10;

/// A rate, with its control rate and its limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub mode: Mode,
    pub control_mode: Mode,
    pub limits: AggregationLimits,
}

impl Rate {
    /// Key by which rates are numbered: those of a width next to each other, and of these those with as many streams.
    pub fn order(&self) -> (u32, u32, BitRate) {
        (self.mode.width_mhz.into(), self.mode.streams.into(), self.mode.rate())
    }
}

/// Evidence about a rate.
#[derive(Clone, Debug)]
struct Known {
    rate: Rate,
    /// MPDUs since the last look. A PPDU lost whole counts as one: mostly it collided, which no rate could help.
    attempts: u64,
    successes: u64,
    /// Evidence of earlier looks, faded: MPDUs times [`MPDU`], and of them those that got through.
    seen: u64,
    through: u64,
    /// The share that gets through, cautiously.
    surely: u64,
    /// PPDUs lost whole, ever: evidence fades, and a rate without any was new again.
    lost: u32,
}

impl Known {
    /// The share that got through; `None` before the first try.
    fn chance(&self) -> Option<u64> {
        (self.seen > 0).then(|| self.through * CERTAIN / self.seen)
    }

    /// Nothing got through yet, in less than this number of tries.
    fn is_open(&self, tries: u32) -> bool {
        self.through == 0 && self.lost < tries
    }

    /// The share that got through, and the part that chance may have taken from it: two standard deviations.
    fn chance_at_best(&self) -> u64 {
        let Some(chance) = self.chance() else { return 0 };
        (chance + 2 * (chance * (CERTAIN - chance) * MPDU / self.seen).isqrt()).min(CERTAIN)
    }

    /// The share that got through if two more had by a chance of `expected`: little evidence makes no rate sure.
    fn chance_at_worst(&self, expected: u64) -> u64 {
        (self.through * CERTAIN + 2 * MPDU * expected) / (self.seen + 2 * MPDU)
    }

    /// Adds the new counts to the rest of earlier evidence.
    fn look(&mut self) {
        let faded = (self.seen * KEPT[0] / KEPT[1]).clamp(LEAST_KEPT, MOST_KEPT).min(self.seen);
        // Where nothing was seen nothing got through.
        self.through = (self.through * faded).checked_div(self.seen).unwrap_or_default();
        self.seen = faded + self.attempts * MPDU;
        self.through += self.successes * MPDU;
        (self.attempts, self.successes) = (0, 0);
    }
}

/// The rates to one destination.
#[derive(Clone, Debug)]
pub(crate) struct Minstrel {
    /// Ascending, those of a width next to each other, and of these those with as many streams.
    rates: Vec<Known>,
    /// Best throughput, second best, most probable.
    chain: [usize; 3],
    current: usize,
    /// PPDUs lost whole in a row.
    failures: u32,
    /// Moving average of the share of PPDUs that were not lost whole, tries apart.
    answered: u64,
    /// PPDUs since the last try.
    ppdus: u32,
    /// MPDUs counted since the last look.
    counted: u64,
    looked_at: Instant,
    /// The last PPDU was a try.
    trying: bool,
    /// It was a try, and got through.
    got_through: bool,
    /// Tries lost since one got through.
    vain_tries: u32,
    /// It was the first of its rate, and is looked at right away.
    is_news: bool,
    /// Moving averages of MPDUs that wait for a PPDU, times [`MPDU`], and of their bytes.
    waiting: u64,
    mpdu_bytes: u64,
    /// Duration of an exchange besides its PPDU.
    overhead: Duration,
    /// Most retries of an MPDU.
    retry_limit: u32,
    stream: Stream,
}

impl Minstrel {
    /// Begins at the first of `rates`, which are in [order](Rate::order). An exchange takes `overhead` besides its PPDU.
    ///
    /// # Panics
    /// Without a rate, or in another order: a caller that knows rates by their numbers would mean others.
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

    /// The rate of the PPDU that is put together at `now`, its number, and whether it only tries the rate: then one MPDU is
    /// enough. Of the MPDUs that wait one had as many as `retries`.
    pub fn choose(&mut self, now: Instant, retries: u32) -> (Rate, usize, bool) {
        if self.is_look_due(now) {
            self.look(now);
        }
        // PPDUs lost whole may have collided: they alone do not make it the last chance.
        let is_last_chance = retries > self.failures.max(self.retry_limit.saturating_sub(SURE_ATTEMPTS));
        let stage = match self.failures / self.failures_per_stage() {
            _ if is_last_chance => 2,
            stage => stage.min(2) as usize,
        };
        // While the rate in use fails there is enough to learn from it.
        let tried = if self.failures == 0 && !is_last_chance { self.next_try() } else { None };
        self.trying = tried.is_some();
        self.current = tried.unwrap_or(self.chain[stage]);
        (self.rates[self.current].rate, self.current, self.trying)
    }

    /// The most probable rate of the chain.
    pub fn surest(&self) -> Rate {
        self.rates[self.chain[2]].rate
    }

    /// PPDUs lost in a row that are the rate's fault: with fifty stations that send, half of all PPDUs collide.
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

    /// Tries lost until a rate counts as tried in vain.
    fn lost_tries(&self) -> u32 {
        self.failures_per_stage().min(LOST_TRIES)
    }

    fn is_look_due(&self, now: Instant) -> bool {
        let interval = if self.counted >= LOOK_ATTEMPTS { LOOK_INTERVAL } else { LONGEST_LOOK_INTERVAL };
        self.is_news || self.counted > 0 && now.saturating_since(self.looked_at) >= interval
    }

    /// The rate to try with the next PPDU, if it is time for a try and one could carry more than the best does.
    fn next_try(&mut self) -> Option<usize> {
        // First tries follow each other until one is lost: an MPDU is not sent too often.
        if self.ppdus == 0 && !self.got_through {
            return None;
        }
        if let Some(new) = self.never_tried() {
            return Some(new);
        }
        let rarer = 1 << (self.vain_tries / VAIN_TRIES).min(TRIES_RARER_MAX.ilog2());
        if self.ppdus + 1 < PPDUS_PER_TRY * rarer {
            return None;
        }
        let candidates = self.candidates().count() as u32;
        let pick = self.stream.up_to(candidates.checked_sub(1)?) as usize;
        self.candidates().nth(pick)
    }

    /// The numbers of the rates of a width with as many streams, for each of both, the most first.
    fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = self.rates.len();
        core::iter::from_fn(move || {
            let group = self.group_of(end.checked_sub(1)?);
            end = group.start;
            Some(group)
        })
    }

    /// The numbers of the rates with the width and the streams of this one.
    fn group_of(&self, index: usize) -> Range<usize> {
        let kind = |known: &Known| (known.rate.mode.width_mhz, known.rate.mode.streams);
        let own = kind(&self.rates[index]);
        let start = self.rates.partition_point(|known| kind(known) < own);
        start..self.rates.partition_point(|known| kind(known) <= own)
    }

    /// How many rates of `group` are tried that could be better than the best. Of another width only the slowest, with as many
    /// streams as the best: once that gets through, the width is that of the best.
    fn tried_of(&self, group: &Range<usize>) -> usize {
        let best = self.chain[0];
        let [own, other] = [best, group.start].map(|index| &self.rates[index].rate.mode);
        if other.width_mhz == own.width_mhz {
            return TRIED;
        }
        let is_too_narrow = other.width_mhz < own.width_mhz && best >= self.group_of(best).start + SLOWEST;
        usize::from(!is_too_narrow && other.streams == own.streams)
    }

    /// Those of `group` besides the best that would carry more than that if everything got through, ascending.
    fn better(&self, group: Range<usize>) -> impl Iterator<Item = usize> + Clone {
        let best = self.throughput(self.chain[0]);
        group.filter(move |index| *index != self.chain[0] && self.throughput_at(*index, CERTAIN) > best)
    }

    /// Of those that could carry more the middle one below the lowest that was tried: halving finds the best in as many
    /// tries as the number of rates has bits.
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

    /// The rates that are tried now and then.
    fn candidates(&self) -> impl Iterator<Item = usize> {
        self.groups().flat_map(|group| {
            let tried = self.tried_of(&group);
            self.better(group).take(tried)
        })
    }

    /// Outcome of the last PPDU: `successes` of `attempts` MPDUs, its bytes, and whether `more` packets waited.
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
            // A try that failed says nothing about the rate in use.
            return;
        }
        self.ppdus = self.ppdus.saturating_add(1);
        self.failures = if successes == 0 { self.failures.saturating_add(1) } else { 0 };
        let answered = if successes == 0 { 0 } else { CERTAIN };
        self.answered = ((ANSWERED_OVER - 1) * self.answered + answered) / ANSWERED_OVER;
        let mpdu_bytes = bytes / attempts.max(1);
        self.mpdu_bytes = (7 * self.mpdu_bytes + u64::from(mpdu_bytes)) / 8;
        // The rate or the Block Ack window kept them back: as many wait as the fastest rate takes.
        let most = self.rates.last().map_or(1, |known| known.rate.limits.most_mpdus(mpdu_bytes));
        let waiting = if more { attempts.max(most) } else { attempts };
        self.waiting = (7 * self.waiting + u64::from(waiting) * MPDU) / 8;
    }

    /// Judges the rates anew by the counts since the last look.
    fn look(&mut self, now: Instant) {
        self.looked_at = now;
        self.counted = 0;
        self.is_news = false;
        self.rates.iter_mut().for_each(Known::look);
        let best_of = |except: Option<usize>| {
            let others = (0..self.rates.len()).filter(|index| Some(*index) != except);
            // Of rates that carry nothing the lowest; max_by_key takes the last of equals.
            others.rev().max_by_key(|index| self.throughput(*index)).unwrap_or(0)
        };
        // The rate in use stays unless chance cannot explain that another seems better: that one is not tried often,
        // and it would take long to come back.
        let (used, better) = (self.chain[0], best_of(None));
        let at_best = self.throughput_at(used, self.rates[used].chance_at_best());
        let best = if self.throughput(better) > at_best { better } else { used };
        let second = best_of(Some(best));
        self.weigh_slower(best);
        // The fastest of those that get nearly as much through as the surest.
        let surest = self.rates.iter().map(|known| known.surely).max().unwrap_or(0);
        let is_sure = |index: &usize| self.rates[*index].surely >= surest - surest / 8;
        let carried = |index: &usize| self.throughput_at(*index, self.rates[*index].surely);
        let probable = (0..self.rates.len()).rev().filter(is_sure).max_by_key(carried);
        self.chain = [best, second, probable.unwrap_or(0)];
    }

    /// Says how sure each rate is. Rates slower than `best` are hardly ever used, and little is known of them: each is
    /// expected to lose half as much as the next faster one. (minstrel_ht takes a rate that it never sent at for as
    /// probable as the next faster one of its group.)
    fn weigh_slower(&mut self, best: usize) {
        self.rates.iter_mut().for_each(|known| known.surely = known.chance_at_worst(0));
        let mut faster = best;
        while let Some(slower) = self.next_slower(faster) {
            let expected = CERTAIN - (CERTAIN - self.rates[faster].surely) / 2;
            self.rates[slower].surely = self.rates[slower].chance_at_worst(expected);
            faster = slower;
        }
    }

    /// The next slower rate of the same width, or the slowest of the next narrower one, with as many streams.
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

    /// Bytes per second that a rate carries, by the evidence about it.
    fn throughput(&self, index: usize) -> u64 {
        self.throughput_at(index, self.rates[index].chance().unwrap_or(0))
    }

    /// Bytes per second that a rate carries if MPDUs get through with `chance`.
    fn throughput_at(&self, index: usize, chance: u64) -> u64 {
        if chance < LEAST_CHANCE {
            return 0;
        }
        let rate = &self.rates[index].rate;
        let open = open_window(rate.limits.window.into(), chance);
        let bytes =
            (self.waiting.min(open).max(MPDU) * self.mpdu_bytes / MPDU).min(rate.limits.longest().into());
        let time = rate.mode.ppdu_duration(bytes as u32) + self.overhead;
        // At most 2^20 bytes times 2^16 times 10^9 ns: 67 bits.
        (u128::from(bytes) * u128::from(chance) * 1_000_000_000
            / u128::from(CERTAIN)
            / u128::from(time.as_nanos())) as u64
    }
}

/// MPDUs, times [`MPDU`], in the mean PPDU of a sender that always has more and that nothing but its Block Ack window of
/// `window` MPDUs limits, where each gets through with `chance`: the window moves on when the first MPDU in it has arrived.
fn open_window(window: u64, chance: u64) -> u64 {
    /// In percent of the window, where of a whole window an eighth of an MPDU is lost, a quarter, a half and so on: played.
    const OPEN: [u64; 12] = [95, 90, 84, 75, 66, 59, 53, 47, 40, 35, 30, 26];
    let eighths = 8 * window * (CERTAIN - chance) / CERTAIN;
    let Some(index) = eighths.checked_ilog2() else { return window * MPDU };
    let at = |index: u32| OPEN[(index as usize).min(OPEN.len() - 1)];
    // Between two of them in proportion.
    let beyond = ((at(index) - at(index + 1)) * MPDU * (eighths - (1 << index))) >> index;
    window * (at(index) * MPDU - beyond) / 100
}

#[cfg(test)]
#[path = "rate_control_tests.rs"]
mod tests;
