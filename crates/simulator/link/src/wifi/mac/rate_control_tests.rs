use tacit_packet::units::Ratio;

use super::*;
use crate::wifi::error_rate::mpdu_success;
use crate::wifi::phy::{GuardInterval, Standard, Variant};
use crate::wifi::propagation::Decibels;

const OVERHEAD: Duration = Duration::from_micros(160);
/// Bytes of a full-size MPDU.
const FULL: u32 = 1_544;
/// Greatest number of retries of an MPDU.
const RETRIES: u32 = 7;

fn rate(standard: Standard, mode: Mode) -> Rate {
    let phy = standard.phy();
    let control_mode = phy.control_mode(&mode);
    let limits =
        AggregationLimits::new(phy, phy.mac_header_len(), [&mode, &control_mode], (None, 64), None, None);
    Rate { mode, control_mode, limits }
}

/// HT rates of one stream in 40 MHz.
fn rates() -> Vec<Rate> {
    let mode = |mcs| Mode::ht(mcs, 1, true, GuardInterval::Ns400).unwrap();
    (0..8).map(mode).map(|mode| rate(Standard::N, mode)).collect()
}

/// VHT rates of 20 to 160 MHz with up to four streams.
fn rates_of_every_width() -> Vec<Rate> {
    let widest = Mode::vht(9, 4, 160, GuardInterval::Ns400).unwrap();
    let modes = widest.and_slower(Standard::Ac, Variant::for_standard(Standard::Ac)).into_iter();
    let mut rates: Vec<_> = modes.map(|mode| rate(Standard::Ac, mode)).collect();
    rates.sort_by_key(Rate::order);
    rates
}

/// A sender that always has data, on a noisy link.
struct Link {
    rates: Vec<Rate>,
    control: Minstrel,
    now: Instant,
    noise: Stream,
    /// Bytes of tries count too, since their airtime does.
    delivered_bytes: u64,
    /// Most MPDUs that wait at each access.
    waiting: u32,
}

impl Link {
    fn new(seed: u64) -> Self {
        Self::at(rates(), seed)
    }

    fn at(rates: Vec<Rate>, seed: u64) -> Self {
        Self {
            control: Minstrel::new(rates.clone(), OVERHEAD, RETRIES, Stream::new(seed, "rates")),
            rates,
            now: Instant::ZERO,
            noise: Stream::new(seed, "noise"),
            delivered_bytes: 0,
            waiting: 42,
        }
    }

    /// Bytes per second at the best rate, chosen with knowledge of the SNR.
    fn ideal(&self, snr_db: f64) -> f64 {
        let carried = |rate: &Rate| {
            let bytes = (rate.limits.longest() / FULL).min(self.waiting) * FULL;
            let time = rate.mode.ppdu_duration(bytes) + OVERHEAD;
            f64::from(bytes) * self.success(&rate.mode, snr_db) / time.as_secs_f64()
        };
        self.rates.iter().map(carried).fold(0.0, f64::max)
    }

    /// Delivery probability at an SNR of `snr_db` over the widest channel.
    fn success(&self, mode: &Mode, snr_db: f64) -> f64 {
        let widest = self.rates.iter().map(|rate| rate.mode.width_mhz).max().unwrap();
        let gained_db = 10.0 * (f64::from(widest) / f64::from(mode.width_mhz)).log10();
        mpdu_success(mode, Decibels::from_db(snr_db + gained_db), FULL)
    }

    /// Bytes per second during `span` at `snr_db`.
    fn run(&mut self, span: Duration, snr_db: f64) -> f64 {
        let (until, before) = (self.now + span, self.delivered_bytes);
        while self.now < until {
            let (rate, _, sample) = self.control.choose(self.now, 0);
            let mpdus = if sample { 1 } else { (rate.limits.longest() / FULL).min(self.waiting) };
            let chance = Ratio::from_fraction(self.success(&rate.mode, snr_db)).unwrap();
            let through = (0..mpdus).filter(|_| self.noise.hit(chance)).count() as u32;
            self.control.report(mpdus, through, mpdus * FULL, mpdus < self.waiting);
            self.delivered_bytes += u64::from(through * FULL);
            self.now += rate.mode.ppdu_duration(mpdus * FULL) + OVERHEAD;
        }
        (self.delivered_bytes - before) as f64 / span.as_secs_f64()
    }
}

#[test]
fn it_comes_within_a_tenth_of_the_ideal_rate_over_the_sweep() {
    for snr_db in (4..=32).step_by(2).map(f64::from) {
        let mut link = Link::new(snr_db as u64);
        link.run(Duration::from_secs(2), snr_db);
        let share = link.run(Duration::from_secs(4), snr_db) / link.ideal(snr_db);
        println!("{snr_db} dB: {:.1} % of the ideal rate", share * 100.0);
        assert!(share > 0.9, "{snr_db} dB: {share}");
    }
}

/// Below 2 dB no rate at 160 MHz works, but narrower channels do.
#[test]
fn it_finds_the_width_that_carries_most() {
    for snr_db in (-6..=36).step_by(2).map(f64::from) {
        let mut link = Link::at(rates_of_every_width(), 7);
        link.run(Duration::from_secs(2), snr_db);
        let share = link.run(Duration::from_secs(4), snr_db) / link.ideal(snr_db);
        println!("{snr_db} dB: {:.1} % of the ideal rate", share * 100.0);
        assert!(share > 0.88, "{snr_db} dB: {share}");
    }
}

/// TCP with a small window sends one or two MPDUs at a time, and most of them are lost on too wide a channel. With this
/// loss it takes more tries to rule out a rate. The tries must still end, or a narrower channel is never tried.
#[test]
fn it_leaves_a_channel_that_is_too_wide_for_few_mpdus() {
    let widest = Mode::vht(9, 4, 80, GuardInterval::Ns400).unwrap();
    let modes = widest.and_slower(Standard::Ac, Variant::for_standard(Standard::Ac)).into_iter();
    let mut rates: Vec<_> = modes.map(|mode| rate(Standard::Ac, mode)).collect();
    rates.sort_by_key(Rate::order);
    // An SNR at which the slowest rate with all streams delivers two of five MPDUs.
    let slowest = Mode::vht(0, 4, 80, GuardInterval::Ns400).unwrap();
    let tenths_db = (-100..200).map(|tenths| f64::from(tenths) / 10.0);
    let one = Link::at(rates.clone(), 0);
    let snr_db = tenths_db.into_iter().find(|snr_db| one.success(&slowest, *snr_db) > 0.4).unwrap();
    for (seed, waiting) in (1..=16).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let mut link = Link { waiting, ..Link::at(rates.clone(), seed) };
        link.run(Duration::from_secs(3), snr_db);
        let share = link.run(Duration::from_secs(3), snr_db) / link.ideal(snr_db);
        assert!(share > 0.9, "seed {seed}, {waiting} MPDUs: {share}");
    }
}

#[test]
fn it_follows_a_client_to_where_only_a_narrow_channel_carries_and_back() {
    let mut link = Link::at(rates_of_every_width(), 3);
    for snr_db in [30.0, 24.0, 18.0, 12.0, 6.0, 0.0, -6.0, 0.0, 6.0, 12.0, 18.0, 24.0, 30.0] {
        // On a narrow channel there are a few hundred PPDUs per second; one in ten to forty is a try.
        link.run(Duration::from_secs(6), snr_db);
        let share = link.run(Duration::from_secs(1), snr_db) / link.ideal(snr_db);
        println!("{snr_db} dB: {:.1} % of the ideal rate", share * 100.0);
        assert!(share > 0.85, "{snr_db} dB: {share}");
    }
}

/// A wider channel stays untried until its slowest rate is tried, and a narrower one until the wider has only its
/// slowest rates left.
#[test]
fn widths_are_tried_from_their_slowest_rates_and_only_where_they_can_help() {
    let mut control = Minstrel::new(rates_of_every_width(), OVERHEAD, RETRIES, Stream::new(1, "rates"));
    let width = |control: &Minstrel, index: usize| control.rates[index].rate.mode.width_mhz;
    let slowest = (0..control.rates.len()).find(|index| width(&control, *index) == 160).unwrap();
    assert_eq!(control.never_tried(), Some(slowest), "160 MHz first, by its slowest");
    control.waiting = 40 * MPDU;
    let know = |control: &mut Minstrel, index: usize, successes| {
        let known = &mut control.rates[index];
        (known.attempts, known.successes) = (100, successes);
        control.look(Instant::ZERO);
    };
    know(&mut control, slowest + 3, 100);
    assert!(control.candidates().all(|index| width(&control, index) == 160), "nothing narrower");
    (0..20).for_each(|_| know(&mut control, slowest + 3, 0));
    know(&mut control, slowest, 30);
    assert_eq!(control.chain[0], slowest);
    assert!(control.candidates().any(|index| width(&control, index) == 80), "80 MHz may be better");
}

#[test]
fn it_follows_a_client_that_walks_away_and_comes_back() {
    let mut link = Link::new(1);
    for snr_db in [30.0, 24.0, 18.0, 12.0, 6.0, 12.0, 18.0, 24.0, 30.0] {
        // The first second is for adaptation; then the rate must be as good as with a long history.
        link.run(Duration::from_secs(1), snr_db);
        let share = link.run(Duration::from_secs(1), snr_db) / link.ideal(snr_db);
        println!("{snr_db} dB: {:.1} % of the ideal rate", share * 100.0);
        assert!(share > 0.9, "{snr_db} dB: {share}");
    }
}

/// A rate control with long PPDUs and a history: for each rate (by index), the MPDUs delivered out of a hundred.
fn knowing(shares: &[(usize, u64)]) -> Minstrel {
    let mut control = Minstrel::new(rates(), OVERHEAD, RETRIES, Stream::new(1, "rates"));
    control.waiting = 40 * MPDU;
    for (rate, successes) in shares {
        let known = &mut control.rates[*rate];
        (known.attempts, known.successes) = (100, *successes);
    }
    control.look(Instant::ZERO);
    control
}

/// At 90 Mb/s nearly every MPDU is delivered, at 120 Mb/s about half, at 45 Mb/s all: the most reliable rate of the
/// chain need not be the slowest. At 150 Mb/s fewer than a tenth are delivered, which counts as none.
#[test]
fn the_chain_is_the_best_the_second_best_and_the_fastest_that_is_sure() {
    assert_eq!(knowing(&[(2, 100), (4, 97), (5, 60), (7, 9)]).chain, [4, 5, 4]);
    assert_eq!(knowing(&[(0, 80), (7, 9)]).chain[0], 0);
}

#[test]
fn a_try_weighs_a_quarter_a_long_ppdu_nearly_all_and_rates_not_used_stay_as_they_were() {
    let mut control = knowing(&[(3, 100), (4, 50), (5, 100)]);
    let percent = |control: &Minstrel, rate: usize| {
        (control.rates[rate].chance().unwrap() * 100 + CERTAIN / 2) / CERTAIN
    };
    // Each update ages the evidence about a rate.
    (0..20).for_each(|_| control.look(Instant::ZERO));
    (control.rates[3].attempts, control.rates[5].attempts) = (1, 42);
    control.look(Instant::ZERO);
    assert_eq!([3, 4, 5].map(|rate| percent(&control, rate)), [75, 50, 7]);
}

/// After a PPDU without a delivered MPDU, the rate or a collision may be to blame.
#[test]
fn a_ppdu_lost_whole_counts_as_one_mpdu() {
    let mut control = knowing(&[(3, 100)]);
    control.choose(Instant::ZERO, 0);
    control.report(42, 0, 42 * FULL, false);
    assert_eq!((control.rates[3].attempts, control.rates[3].successes), (1, 0));
}

/// Of all rates that could exceed 45 Mb/s, only the next two are tried.
#[test]
fn tries_go_to_the_nearest_rates_above() {
    let control = knowing(&[(2, 100), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)]);
    assert_eq!(control.candidates().collect::<Vec<_>>(), [3, 4]);
}

/// Each try follows the previous one directly, or after one other PPDU if it was lost, until no promising rate is left
/// untried. Then one PPDU in twenty is a try, because four were lost, and one in forty after four more.
#[test]
fn first_tries_halve_what_is_open_and_later_ones_get_rarer_while_they_are_lost() {
    let mut control = knowing(&[]);
    let mut tried = Vec::new();
    for ppdu in 0..300_u64 {
        // The PPDUs are a millisecond apart; only their number counts, not how rarely the station is served.
        let (_, number, is_try) = control.choose(Instant::ZERO + Duration::from_millis(ppdu), 0);
        if is_try {
            tried.push((ppdu, number));
        }
        let mpdus = if is_try { 1 } else { 10 };
        control.report(mpdus, if number <= 4 { mpdus } else { 0 }, mpdus * FULL, false);
    }
    assert_eq!(tried[..5], [(1, 4), (2, 6), (4, 6), (6, 5), (8, 5)], "one that is lost is tried again");
    let later: Vec<_> = tried[5..].iter().map(|(ppdu, _)| *ppdu).collect();
    assert_eq!(later, [28, 48, 68, 88, 128, 168, 208, 248, 288]);
    // A successful try makes tries frequent again.
    control.ppdus = 10 * PPDUS_PER_TRY;
    assert!(control.choose(Instant::ZERO + Duration::from_millis(300), 0).2);
    control.report(1, 1, FULL, false);
    control.ppdus = PPDUS_PER_TRY;
    assert!(control.next_try().is_some());
}

/// 90 Mb/s with three of four MPDUs has a higher throughput than 60 Mb/s with all of them, until an MPDU is near its
/// retry limit.
#[test]
fn the_last_two_attempts_of_an_mpdu_go_at_the_surest_rate() {
    let mut control = knowing(&[(3, 100), (4, 95)]);
    (control.rates[4].seen, control.rates[4].through) = (100 * MPDU, 75 * MPDU);
    control.waiting = 8 * MPDU;
    control.look(Instant::ZERO);
    assert_eq!((control.chain[0], control.chain[2]), (4, 3));
    let rate_after = |control: &mut Minstrel, retries| control.choose(Instant::ZERO, retries).1;
    let rates: Vec<_> = (0..=RETRIES).map(|retries| rate_after(&mut control, retries)).collect();
    assert_eq!(rates, [4, 4, 4, 4, 4, 4, 3, 3]);
    // Nor is it sent as a try, though one is due.
    control.ppdus = 100 * PPDUS_PER_TRY;
    assert_eq!(rate_after(&mut control, RETRIES), 3);
    // Where half of the PPDUs collide, retries that lost PPDUs explain say nothing about the rate.
    control.ppdus = 0;
    (control.failures, control.answered) = (RETRIES, CERTAIN / 8);
    assert_eq!(rate_after(&mut control, RETRIES), 4);
    // Without retries, the first attempt is also the last.
    (control.failures, control.retry_limit) = (0, 0);
    assert_eq!(rate_after(&mut control, 0), 4);
}

/// Rates slower than the best are hardly ever used, so there is no evidence about them.
#[test]
fn where_the_best_rate_loses_much_a_slower_one_is_surer_before_it_was_used() {
    assert_eq!(knowing(&[(4, 60)]).chain, [4, 0, 2], "79 of 100 are expected at 60 Mb/s, 90 at 45");
    // If those lost as much when they were used, the most reliable is one below them.
    assert_eq!(knowing(&[(2, 60), (3, 60), (4, 60)]).chain[2], 1);
    // Below the slowest rate of a width and number of streams is the slowest of the next narrower width.
    let mut control = Minstrel::new(rates_of_every_width(), OVERHEAD, RETRIES, Stream::new(1, "rates"));
    let slowest = |control: &Minstrel, width_mhz, streams| {
        let is_meant =
            |known: &Known| (known.rate.mode.width_mhz, known.rate.mode.streams) == (width_mhz, streams);
        control.rates.iter().position(is_meant).unwrap()
    };
    let of_two_streams = [160, 80, 40, 20].map(|width_mhz| slowest(&control, width_mhz, 2));
    assert_eq!(control.next_slower(of_two_streams[0] + 1), Some(of_two_streams[0]));
    let narrower = of_two_streams.map(|index| control.next_slower(index));
    assert_eq!(narrower, [Some(of_two_streams[1]), Some(of_two_streams[2]), Some(of_two_streams[3]), None]);
    let known = &mut control.rates[of_two_streams[0]];
    (known.attempts, known.successes) = (100, 50);
    control.look(Instant::ZERO);
    assert_eq!(control.chain[0], of_two_streams[0]);
    assert!(of_two_streams[1..].contains(&control.chain[2]), "{:?}", control.chain);
}

/// A missing MPDU in the Block Ack window delays new MPDUs: 1,560 Mb/s with a loss of eight in a hundred has a lower
/// throughput than 1,170 Mb/s without loss, but a higher one if at most twenty MPDUs wait.
#[test]
fn losses_close_the_window_of_who_has_much_to_send() {
    let mut control = Minstrel::new(rates_of_every_width(), OVERHEAD, RETRIES, Stream::new(1, "rates"));
    control.mpdu_bytes = FULL.into();
    let throughput = |control: &Minstrel, mbps: u64, percent: u64| {
        let is_meant = |known: &Known| known.rate.mode.rate() == BitRate::from_mbps(mbps);
        let index = control.rates.iter().position(is_meant).unwrap();
        control.throughput_at(index, percent * CERTAIN / 100)
    };
    control.waiting = 64 * MPDU;
    assert!(throughput(&control, 1_560, 92) < throughput(&control, 1_170, 100));
    control.waiting = 20 * MPDU;
    assert!(throughput(&control, 1_560, 92) > throughput(&control, 1_170, 100));
}

/// Compares with simulated windows, in which each PPDU has its share of new, lost and retransmitted MPDUs.
#[test]
fn as_much_of_a_window_is_open_as_where_it_is_played() {
    let mut noise = Stream::new(1, "noise");
    for (window, lost) in
        [(16, 0.02), (64, 0.002), (64, 0.02), (64, 0.3), (256, 0.01), (256, 0.1), (1_024, 0.01)]
    {
        let loss = Ratio::from_fraction(lost).unwrap();
        // For each MPDU from the start of the window, whether it is missing.
        let mut missing = std::collections::VecDeque::new();
        let (ppdus, mut sent) = (40_000 / window, 0);
        for _ in 0..ppdus {
            missing.resize(window, true);
            sent += missing.iter().filter(|missing| **missing).count();
            missing.iter_mut().for_each(|missing| *missing = *missing && noise.hit(loss));
            while missing.front() == Some(&false) {
                missing.pop_front();
            }
        }
        let played = sent as f64 / ppdus as f64;
        let chance = CERTAIN - (lost * CERTAIN as f64) as u64;
        let predicted = open_window(window as u64, chance) as f64 / MPDU as f64;
        println!("{window} MPDUs, {lost}: {predicted:.1} predicted, {played:.1} played");
        assert!((predicted / played - 1.0).abs() < 0.15, "{window} MPDUs, {lost}: {predicted} and {played}");
    }
    assert_eq!(open_window(64, CERTAIN), 64 * MPDU);
}

/// Two losses in a row would change the rate; lost tries of another rate do not.
#[test]
fn a_lost_try_says_nothing_about_the_rate_in_use() {
    let mut control = knowing(&[(2, 100), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)]);
    for _ in 0..4 {
        control.ppdus = PPDUS_PER_TRY;
        let (_, number, is_try) = control.choose(Instant::ZERO, 0);
        assert!(is_try && number > 2);
        control.report(1, 0, FULL, false);
        assert_eq!(control.choose(Instant::ZERO, 0).1, 2);
        control.report(42, 42, 42 * FULL, false);
        control.ppdus = 0;
        assert_eq!(control.choose(Instant::ZERO, 0).1, 2);
        control.report(42, 0, 42 * FULL, false);
        assert_eq!(control.choose(Instant::ZERO, 0).1, 2);
        control.report(42, 42, 42 * FULL, false);
    }
}

/// With fifty sending stations, half of all PPDUs collide, and three losses in a row mean nothing.
#[test]
fn where_many_ppdus_collide_it_takes_more_of_them_to_blame_the_rate() {
    let mut control = knowing(&[(2, 100)]);
    for (answered, expected) in [(CERTAIN, 2), (CERTAIN * 9 / 10, 2), (CERTAIN / 2, 6), (0, 32)] {
        control.answered = answered;
        assert_eq!(control.failures_per_stage(), expected, "{answered}");
    }
}

/// An unused rate is tried rarely, so a little luck must not make it replace the rate in use.
#[test]
fn the_rate_in_use_stays_unless_another_is_better_beyond_chance() {
    // 60 Mb/s with 20 of 40 and 45 Mb/s with 7 of 10 give 30 and 31.5 Mb/s, but 60 Mb/s may have had bad luck.
    let mut control = knowing(&[(3, 50)]);
    control.rates[3].seen = 40 * MPDU;
    control.rates[3].through = 20 * MPDU;
    (control.rates[2].attempts, control.rates[2].successes) = (10, 7);
    control.look(Instant::ZERO);
    assert_eq!(control.chain[0], 3);
    (control.rates[4].attempts, control.rates[4].successes) = (100, 99);
    control.look(Instant::ZERO);
    assert_eq!(control.chain[0], 4);
}

#[test]
fn after_losses_it_goes_down_the_chain() {
    let mut link = Link::new(1);
    link.run(Duration::from_secs(2), 30.0);
    let control = &mut link.control;
    let chain = control.chain;
    control.trying = false;
    control.report(1, 1, FULL, false);
    (control.ppdus, control.looked_at) = (0, link.now);
    let mut story = Vec::new();
    for _ in 0..6 {
        let (_, number, _) = control.choose(link.now, 0);
        story.push(chain.iter().position(|link| *link == number).unwrap());
        control.report(42, 0, 42 * FULL, false);
    }
    let expected =
        [0, 0, 1, 1, 2, 2].map(|stage| chain.iter().position(|link| *link == chain[stage]).unwrap());
    assert_eq!(story, expected);
    // One success, and the best rate is used again.
    control.report(1, 1, FULL, false);
    assert_eq!(control.choose(link.now, 0).1, chain[0]);
}
