//! Performance-oriented congestion control (PCC): a sender tries each rate for a monitor interval, computes the utility
//! of the outcome, and moves towards the higher utility. There are two variants: [`allegro`] and [`vivace`].
//!
//! Ours, where the papers are silent or the sender has no such data: a loss counts for the interval in which the newest
//! data was sent that the same ACK reports; after a move, the rate does not change again until the move has been
//! reported; the window is twice the data of a round trip at the rate.

mod allegro;
mod fixed;
mod interval;
mod vivace;

use std::collections::VecDeque;

use super::chance::Chance;
use super::control::{CongestionControl, own_window};
use super::window::Window;
use super::{Delivery, Start};
use allegro::{Allegro, Decision};
use interval::{Interval, Purpose, Report};
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use vivace::Vivace;

/// The variant of PCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    /// Two pairs of trials determine the direction (NSDI 2015).
    Allegro,
    /// Follows the gradient of utility (NSDI 2018).
    Vivace,
}

/// Assumed round-trip time before the first measurement.
const USUAL_RTT: Duration = Duration::from_millis(100);
/// Allegro's intervals have ten packets at least (section 3.1).
const PACKETS_MIN: u64 = 10;
/// Allegro's intervals last a random 1.7 to 2.2 round trips, in tenths (section 3.1); Vivace's last one.
const ALLEGRO_TENTHS: (u64, u32) = (17, 6);
const VIVACE_TENTHS: u64 = 10;
/// An interval's data is fully reported once data sent this much later is reported: an eighth of a round trip. Ours.
const SETTLE: u64 = 8;
/// Most intervals with pending results. Ours.
const MAX_INTERVALS: usize = 64;
/// Highest rate; the lowest is two packets per round trip. Ours.
const MAX_RATE: BitRate = BitRate::from_mbps(100_000);

#[derive(Clone, Debug)]
enum Learner {
    Allegro(Allegro),
    Vivace(Vivace),
}

/// Phase of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Rates double each interval until utility falls.
    Start,
    /// Trials of this round that have started.
    Trials(u8),
    /// A rate that was moved to has to be measured.
    Move,
    /// Waiting for results.
    Wait,
}

#[derive(Clone, Debug)]
pub(crate) struct Pcc {
    window: Window,
    learner: Learner,
    phase: Phase,
    /// The rate in the middle of the trials.
    base: BitRate,
    /// The current interval is the last one.
    intervals: VecDeque<Interval>,
    /// In the current pair of trials, the higher rate is first.
    higher_first: bool,
    /// During start-up: rate and utility of the last reported generation, and the number of generations.
    last: Option<(BitRate, i64)>,
    generation: u32,
    chance: Chance,
    rtt: Duration,
}

impl Pcc {
    pub fn new(window: Window, law: Law, start: Start) -> Self {
        let rtt = start.rtt.unwrap_or(USUAL_RTT).max(Duration::from_micros(1));
        let base = BitRate::from_amount(Bytes(window.cwnd), rtt).unwrap_or(MAX_RATE);
        Self {
            window,
            learner: match law {
                Law::Allegro => Learner::Allegro(Allegro::default()),
                Law::Vivace => Learner::Vivace(Vivace::default()),
            },
            phase: Phase::Start,
            base,
            intervals: VecDeque::new(),
            higher_first: true,
            last: None,
            generation: 0,
            chance: Chance(start.seed),
            rtt,
        }
    }

    /// The rate of the current interval (section 2.1 of the first paper).
    fn rate(&self) -> BitRate {
        self.intervals.back().map_or(self.base, |interval| interval.rate)
    }

    fn take_in(&mut self, report: &Report) {
        if let Purpose::Start(generation) = report.purpose {
            self.started(generation, report);
            return;
        }
        match &mut self.learner {
            Learner::Allegro(allegro) => match allegro.decide(self.base, report) {
                Decision::Wait => {}
                Decision::Try(rate) => (self.base, self.phase) = (rate, Phase::Trials(0)),
                Decision::Move(rate) => (self.base, self.phase) = (rate, Phase::Move),
            },
            Learner::Vivace(vivace) => {
                if let Some(rate) = vivace.decide(self.base, report) {
                    (self.base, self.phase) = (rate, Phase::Trials(0));
                }
            }
        }
        self.base = self.bounded(self.base);
    }

    /// "Doubles its rate each interval until utility decreases, then returns to the rate before" (section 3.2).
    fn started(&mut self, generation: u32, report: &Report) {
        if self.phase != Phase::Start || generation > self.generation {
            return;
        }
        let utility = match self.learner {
            Learner::Allegro(_) => allegro::utility(report),
            Learner::Vivace(_) => vivace::utility(report),
        };
        match self.last {
            Some((rate, before)) if utility < before => {
                (self.base, self.phase) = (self.bounded(rate), Phase::Trials(0));
            }
            _ => self.last = Some((report.rate, utility)),
        }
    }

    /// Starts the next interval.
    fn begin(&mut self, now: Instant) {
        let (purpose, rate) = self.next();
        let rate = self.bounded(rate);
        let length = match self.learner {
            Learner::Allegro(_) => {
                let (least, choices) = ALLEGRO_TENTHS;
                let random = self.rtt * (least + u64::from(self.chance.draw(choices))) / 10;
                random.max(rate.time_for(Bytes(PACKETS_MIN * self.window.mss)))
            }
            Learner::Vivace(_) => {
                (self.rtt * VIVACE_TENTHS / 10).max(rate.time_for(Bytes(2 * self.window.mss)))
            }
        };
        if let Some(last) = self.intervals.back_mut() {
            last.end = now;
        }
        if self.intervals.len() == MAX_INTERVALS {
            self.intervals.pop_front();
        }
        self.intervals.push_back(Interval::new(purpose, rate, now, length));
    }

    fn next(&mut self) -> (Purpose, BitRate) {
        let (trials, percent) = match &self.learner {
            Learner::Allegro(allegro) => (allegro::TRIALS, allegro.percent()),
            Learner::Vivace(_) => (vivace::TRIALS, vivace::PERCENT),
        };
        match self.phase {
            Phase::Start => {
                self.generation += 1;
                let rate = self.base;
                self.base = self.bounded(BitRate::from_bps(rate.as_bps().saturating_mul(2)));
                (Purpose::Start(self.generation), rate)
            }
            Phase::Trials(place) => {
                if place % 2 == 0 {
                    self.higher_first = self.chance.draw(2) == 0;
                }
                let higher = self.higher_first == (place % 2 == 0);
                let is_last = usize::from(place) + 1 == trials;
                self.phase = if is_last { Phase::Wait } else { Phase::Trials(place + 1) };
                let percent = if higher { 100 + percent } else { 100 - percent };
                let rate = (u128::from(self.base.as_bps()) * u128::from(percent) / 100) as u64;
                (Purpose::Trial { place, higher }, BitRate::from_bps(rate))
            }
            Phase::Move => {
                self.phase = Phase::Wait;
                (Purpose::Move, self.base)
            }
            Phase::Wait => (Purpose::Hold, self.base),
        }
    }

    fn bounded(&self, rate: BitRate) -> BitRate {
        let least = BitRate::from_amount(Bytes(2 * self.window.mss), self.rtt).unwrap_or(rate);
        rate.max(least.min(MAX_RATE)).min(MAX_RATE)
    }

    fn hold_window(&mut self) {
        let sent = self.rate().amount_in(self.rtt).0;
        self.window.cwnd = (2 * sent).max(PACKETS_MIN * self.window.mss);
    }
}

impl CongestionControl for Pcc {
    own_window!();

    fn wants_delivery(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        let now = delivery.now;
        self.rtt = delivery.smoothed_rtt.unwrap_or(self.rtt).max(Duration::from_micros(1));
        if self.intervals.is_empty() {
            self.begin(now);
        }
        let rtt = delivery.sample.rtt.unwrap_or(self.rtt);
        let sent_at = Instant::ZERO + now.saturating_since(Instant::ZERO).saturating_sub(rtt);
        let at = self.intervals.iter().rposition(|interval| interval.start <= sent_at);
        if let Some(interval) = at.and_then(|at| self.intervals.get_mut(at)) {
            interval.note(sent_at, rtt, delivery.sample.newly_delivered, delivery.lost);
        }
        let settled = |interval: &Interval| sent_at >= interval.end + self.rtt / SETTLE;
        let complete = self.intervals.iter().take_while(|interval| settled(interval)).count();
        // The current interval is never removed here.
        for interval in self.intervals.drain(..complete.min(self.intervals.len() - 1)).collect::<Vec<_>>() {
            self.take_in(&interval.report());
        }
        if self.intervals.back().is_none_or(|interval| now >= interval.end) {
            self.begin(now);
        }
        self.hold_window();
    }

    /// The path may have changed: halves the rate and starts over. Ours.
    fn on_timeout(&mut self, _now: Instant, _flight: u64) {
        self.base = self.bounded(BitRate::from_bps(self.base.as_bps() / 2));
        self.intervals.clear();
        self.phase = Phase::Trials(0);
        match &mut self.learner {
            Learner::Allegro(allegro) => *allegro = Allegro::default(),
            Learner::Vivace(vivace) => *vivace = Vivace::default(),
        }
        self.hold_window();
    }

    fn in_start_up(&self) -> bool {
        self.phase == Phase::Start
    }

    fn state(&self) -> Option<&'static str> {
        Some(match self.phase {
            Phase::Start => "start-up",
            Phase::Trials(_) => "trials",
            Phase::Move => "move",
            Phase::Wait => "wait",
        })
    }

    fn pacing_rate(&self, _smoothed_rtt: Option<Duration>, _in_flight: u64) -> Option<BitRate> {
        Some(self.rate())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate::RateSample;
    use super::*;
    use crate::{Algorithm, Config};

    const MSS: u32 = 1_250;
    const RTT: Duration = Duration::from_millis(40);

    /// A link of `mbps` without a queue: excess data is lost. Returns the mean rate of the second half.
    fn mean_rate(law: Law, mbps: u64) -> f64 {
        let window = Config::from(Algorithm::NewReno).window(MSS);
        let start = Start { seed: 7, at: Instant::ZERO, rtt: Some(RTT), ..Start::default() };
        let mut pcc = Pcc::new(window, law, start);
        let (mut now, mut sent_later) = (Instant::ZERO + RTT, VecDeque::new());
        let (mut delivered, mut sum, mut count) = (0, 0.0, 0.0);
        for step in 0..40_000 {
            now += Duration::from_millis(1);
            let rate = pcc.rate().min(BitRate::from_mbps(10_000));
            sent_later.push_back(rate);
            if sent_later.len() <= 40 {
                continue;
            }
            let rate = sent_later.pop_front().unwrap();
            let sent = rate.amount_in(Duration::from_millis(1)).0;
            let acked = sent.min(BitRate::from_mbps(mbps).amount_in(Duration::from_millis(1)).0);
            delivered += acked;
            let sample =
                RateSample { newly_delivered: acked, delivered, rtt: Some(RTT), ..RateSample::default() };
            pcc.on_delivery(&Delivery {
                now,
                sample,
                lost: sent - acked,
                advanced: true,
                smoothed_rtt: Some(RTT),
                ..Delivery::default()
            });
            if step > 20_000 {
                sum += pcc.base.as_mbps_f64();
                count += 1.0;
            }
        }
        sum / count
    }

    #[test]
    fn both_find_the_rate_of_a_link_and_stay_about_it() {
        for law in [Law::Allegro, Law::Vivace] {
            for mbps in [10, 100] {
                let rate = mean_rate(law, mbps);
                let share = rate / mbps as f64;
                assert!((0.85..1.1).contains(&share), "{law:?} at {mbps}: {rate}");
            }
        }
    }
}
