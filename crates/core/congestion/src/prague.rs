//! Prague (draft-briscoe-iccrg-prague-congestion-control): a scalable control, which answers each round trip's share of
//! congestion marks, as DCTCP (RFC 8257) does, and grows as if its round trip were at least 25 ms.
//!
//! The receiver tells the marks as DCTCP's does (RFC 8257 section 3.2) instead of by AccECN. Windows of less than two
//! segments and the detection of classic queues are not here.

use super::AckSample;
use super::control::{CongestionControl, own_window};
use super::window::Window;
use tacit_packet::position::Position;
use tacit_packet::units::{Duration, Instant};

/// A share of one. Shares of marks are fractions of it.
const ONE: u64 = 1 << 20;
/// Weight of a round trip in the average share of marks: 1/16 (RFC 8257 section 4.2).
const GAIN: u64 = 16;
/// The reference round-trip time (draft section 2.4.4), in microseconds.
const REFERENCE_US: u64 = 25_000;

/// Additive increase, and a decrease by half of the share of marks.
#[derive(Clone, Debug)]
pub(crate) struct Prague {
    window: Window,
    /// Average share of marked bytes; `None` before the first mark, which shows that a queue on the path marks.
    alpha: Option<u64>,
    /// Bytes acknowledged in this round trip, and those of them that were marked.
    acked: u64,
    marked: u64,
    /// The round trip ends when this is acknowledged.
    round_end: Option<Position>,
    /// Marks up to here belong to a round trip that was answered.
    answered: Option<Position>,
    /// Fraction of a byte not yet added to the window, in bytes * cwnd.
    credit: u64,
}

impl Prague {
    pub fn new(window: Window) -> Self {
        Self { window, alpha: None, acked: 0, marked: 0, round_end: None, answered: None, credit: 0 }
    }

    /// The first marks are answered by half (RFC 8257 section 3.3).
    fn share(&self) -> u64 {
        self.alpha.unwrap_or(ONE)
    }

    /// Averages the share of marks when a round trip is over.
    fn end_round(&mut self, sample: &AckSample) {
        if self.round_end.is_some_and(|end| sample.snd_una < end) {
            return;
        }
        if (self.marked > 0 || self.alpha.is_some())
            && let Some(share) = (self.marked * ONE).checked_div(self.acked)
        {
            let alpha = self.share();
            self.alpha = Some(alpha - alpha / GAIN + share / GAIN);
        }
        (self.acked, self.marked) = (0, 0);
        self.round_end = Some(sample.snd_nxt);
    }

    /// One answer per round trip: cwnd = cwnd (1 - alpha / 2).
    fn answer(&mut self, sample: &AckSample) {
        if self.answered.is_some_and(|answered| sample.snd_una <= answered) {
            return;
        }
        let cut = self.window.cwnd * self.share() / (2 * ONE);
        self.window.ssthresh = (self.window.cwnd - cut).max(2 * self.window.mss);
        self.window.cwnd = self.window.ssthresh;
        self.answered = Some(sample.snd_nxt);
    }

    /// A segment per round trip, or less by the square of the round-trip time below the reference: a flow then grows
    /// per second as one with that round trip does, to the rate that this one has.
    fn increase(&mut self, acked: u64, smoothed_rtt: Option<Duration>) {
        let Window { cwnd, mss, .. } = self.window;
        let rtt = smoothed_rtt.map_or(REFERENCE_US, Duration::as_micros).min(REFERENCE_US);
        let growth = acked * mss * rtt / REFERENCE_US * rtt / REFERENCE_US;
        self.credit += growth;
        self.window.cwnd += self.credit / cwnd;
        self.credit %= cwnd;
    }
}

impl CongestionControl for Prague {
    own_window!();

    fn is_scalable(&self) -> bool {
        true
    }

    fn on_marks(&mut self, sample: &AckSample, is_marked: bool) {
        self.acked += sample.acked;
        if is_marked {
            self.marked += sample.acked;
            self.answer(sample);
        }
        self.end_round(sample);
    }

    fn on_ack(&mut self, sample: &AckSample) {
        if !sample.window_limited {
            return;
        }
        let mut acked = sample.acked;
        if self.window.in_slow_start() {
            acked = self.window.slow_start(sample);
            if self.window.in_slow_start() {
                return;
            }
        }
        self.increase(acked, sample.smoothed_rtt);
    }

    /// As Reno: scalable controls must answer losses as others do (RFC 9331 section 4.3).
    fn on_loss(&mut self, flight: u64) {
        self.window.halve_ssthresh(flight);
        self.window.cwnd = self.window.ssthresh;
        self.credit = 0;
    }

    fn on_timeout(&mut self, _now: Instant, flight: u64) {
        self.window.halve_ssthresh(flight);
        self.window.collapse();
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::units::SeqNumber;

    const MSS: u64 = 1_000;

    fn prague(segments: u64) -> Prague {
        let mut prague = Prague::new(crate::Config::default().window(MSS as u32));
        prague.window.cwnd = segments * MSS;
        prague.window.ssthresh = prague.window.cwnd;
        prague
    }

    /// Acknowledges `rounds` windows segment by segment, and marks every `nth`.
    fn rounds(prague: &mut Prague, rounds: u64, nth: u64, rtt: Duration) {
        let at = |byte: u64| Position::first(SeqNumber(0)) + byte;
        let mut una = 0;
        let mut count = 0;
        for _ in 0..rounds {
            let window = prague.window.cwnd / MSS;
            for _ in 0..window {
                una += MSS;
                count += 1;
                let sample = AckSample {
                    now: Instant::ZERO,
                    acked: MSS,
                    snd_una: at(una),
                    snd_nxt: at(una + prague.window.cwnd),
                    rtt: None,
                    smoothed_rtt: Some(rtt),
                    window_limited: true,
                    after_timeout: false,
                };
                let is_marked = nth > 0 && count % nth == 0;
                prague.on_marks(&sample, is_marked);
                if !is_marked {
                    prague.on_ack(&sample);
                }
            }
        }
    }

    const LONG: Duration = Duration::from_millis(50);

    #[test]
    fn the_share_of_marks_is_averaged_over_some_sixteen_round_trips() {
        let mut prague = prague(100);
        rounds(&mut prague, 200, 10, LONG);
        let share = prague.share() as f64 / ONE as f64;
        assert!((share - 0.1).abs() < 0.02, "{share}");
    }

    /// Two marks per round trip at any rate: the share of marks settles at 2 / cwnd (RFC 9331, appendix A.2).
    #[test]
    fn a_share_of_marks_gives_a_window_of_two_over_it() {
        for nth in [20, 50] {
            let mut prague = prague(40);
            rounds(&mut prague, 400, nth, LONG);
            let window = prague.window.cwnd / MSS;
            assert!((nth * 3 / 2..nth * 3).contains(&window), "every {nth}th: {window}");
        }
    }

    #[test]
    fn a_short_round_trip_grows_by_its_square() {
        let grown = |ms: u64| {
            let mut prague = prague(100);
            rounds(&mut prague, 16, 0, Duration::from_millis(ms));
            prague.window.cwnd - 100 * MSS
        };
        assert!((15_000..=16_000).contains(&grown(25)) && grown(50) == grown(25), "{}", grown(25));
        // 144/625 of that.
        assert!((3_500..=3_700).contains(&grown(12)), "{}", grown(12));
    }

    #[test]
    fn a_loss_halves_and_a_mark_without_history_too() {
        let mut lost = prague(100);
        lost.on_loss(100 * MSS);
        assert_eq!(lost.window.cwnd, 50 * MSS);
        let mut marked = prague(100);
        rounds(&mut marked, 1, 100, LONG);
        assert!((50..=52).contains(&(marked.window.cwnd / MSS)), "{}", marked.window.cwnd);
    }
}
