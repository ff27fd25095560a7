//! CUBIC (RFC 9438) in fixed point.

use super::AckSample;
use super::control::{CongestionControl, own_window};
use super::hystart::HyStart;
use super::window::Window;
use tacit_packet::units::{Duration, Instant};

/// beta_cubic = 0.7 (RFC 9438 section 4.6).
const BETA: (u64, u64) = (7, 10);

/// alpha_cubic = 3 * (1 - beta) / (1 + beta) = 9/17 (RFC 9438 section 4.3).
const ALPHA: (u64, u64) = (9, 17);

/// C = 0.4 segments per second cubed (RFC 9438 section 5.1).
const C: (u128, u128) = (4, 10);

/// Until a loss has shown how much the path carries, the window grows by at least this fraction per round trip. RFC
/// 9438 has no such rule; Linux has it (tcp_cubic.c: with no known maximum, one ACK in 20 adds a segment), because the
/// curve starts flat if HyStart ends slow start early.
const SEARCH_SHARE: u64 = 20;

/// Times on the cubic curve are in units of 2^-16 s, about 15 us.
const TIME_SHIFT: u32 = 16;

/// Longest time from the plateau that is computed, over an hour; beyond that the curve is steep in any case, and the
/// cube would overflow.
const TIME_LIMIT: u64 = 1 << 28;

/// How CUBIC's slow start ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// At ssthresh or at the first loss (RFC 5681 section 3.1).
    Standard,
    /// Also when the round-trip time rises, or when the ACK train becomes longer than half of it: HyStart (Ha and Rhee
    /// 2011), on by default in ns-3.
    #[default]
    HyStart,
    /// Like [`HyStart`](Self::HyStart); in addition, until a loss has shown how much the path carries, the window grows
    /// by at least a twentieth per round trip. Linux does both by default.
    Linux,
}

/// Options of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How slow start ends.
    pub slow_start: SlowStart,
}

impl Config {
    /// RFC 9438 with HyStart.
    pub const USUAL: Self = Self { slow_start: SlowStart::HyStart };
    /// As in Linux.
    pub const LINUX: Self = Self { slow_start: SlowStart::Linux };
}

/// One congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// t_epoch, moved forward by the time in which the application did not fill the window.
    start: Instant,
    /// K in units of 2^-16 s.
    plateau: u64,
    /// W_est in bytes.
    reno_window: u64,
    /// Fraction of a byte not yet added to W_est, in bytes * cwnd * 17.
    reno_credit: u64,
    /// Fraction of a byte not yet added to cwnd, in bytes * cwnd.
    credit: u64,
}

/// Window growth as a cubic function of the time since the last congestion event.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    window: Window,
    /// W_max in bytes; zero before the first congestion event.
    w_max: u64,
    /// cwnd_prior in bytes.
    cwnd_prior: u64,
    epoch: Option<Epoch>,
    last_ack: Instant,
    hystart: Option<HyStart>,
    /// The rule of [`SEARCH_SHARE`] is enabled.
    searches: bool,
    /// The rule applies now: nothing was lost yet, or nothing since a timeout.
    is_searching: bool,
    /// The stage after a timeout starts on the plateau: K = 0 (RFC 9438 section 4.8).
    start_on_plateau: bool,
}

impl Cubic {
    pub fn new(window: Window, config: Config) -> Self {
        let hystart = (config.slow_start != SlowStart::Standard).then(HyStart::default);
        let searches = config.slow_start == SlowStart::Linux;
        Self {
            window,
            w_max: 0,
            cwnd_prior: 0,
            epoch: None,
            last_ack: Instant::ZERO,
            hystart,
            searches,
            is_searching: searches,
            // A slow start that ends without loss also begins its stage on the plateau (section 4.10).
            start_on_plateau: true,
        }
    }

    fn avoid_congestion(&mut self, sample: &AckSample, acked: u64) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(sample.now),
        };
        let round_trip = sample.smoothed_rtt.unwrap_or(Duration::ZERO);
        let elapsed = sample.now.saturating_since(epoch.start);
        let cwnd = self.window.cwnd;
        let mss = self.window.mss;

        // Figure 4; alpha becomes 1 once W_est has reached the window before the reduction.
        let (numerator, denominator) =
            if epoch.reno_window >= self.cwnd_prior { (ALPHA.1, ALPHA.1) } else { ALPHA };
        epoch.reno_credit += numerator * acked * mss;
        epoch.reno_window += epoch.reno_credit / (denominator * cwnd);
        epoch.reno_credit %= denominator * cwnd;

        let is_reno_faster = self.curve(epoch.plateau, elapsed) < epoch.reno_window;
        if !is_reno_faster || self.is_searching {
            // Sections 4.4 and 4.5, per acknowledged byte instead of per ACK, so that fewer ACKs do not slow down the
            // growth.
            let least = if self.is_searching { cwnd + cwnd / SEARCH_SHARE } else { cwnd };
            let target = self.curve(epoch.plateau, elapsed + round_trip).clamp(least, cwnd + cwnd / 2);
            epoch.credit += (target - cwnd) * acked;
            self.window.cwnd += epoch.credit / cwnd;
            epoch.credit %= cwnd;
        }
        if is_reno_faster {
            self.window.cwnd = self.window.cwnd.max(epoch.reno_window);
        }
        self.epoch = Some(epoch);
    }

    fn begin_epoch(&mut self, now: Instant) -> Epoch {
        let cwnd = self.window.cwnd;
        if self.start_on_plateau || self.w_max < cwnd {
            self.w_max = cwnd;
        }
        if self.cwnd_prior == 0 {
            self.cwnd_prior = cwnd;
        }
        self.start_on_plateau = false;
        let plateau = time_to_plateau(self.w_max - cwnd, self.window.mss);
        Epoch { start: now, plateau, reno_window: cwnd, reno_credit: 0, credit: 0 }
    }

    /// W_cubic(t) = C * (t - K)^3 + W_max (Figure 1), in bytes.
    fn curve(&self, plateau: u64, elapsed: Duration) -> u64 {
        let time = ((u128::from(elapsed.as_nanos()) << TIME_SHIFT) / 1_000_000_000) as u64;
        let distance = u128::from(time.abs_diff(plateau).min(TIME_LIMIT));
        let cube = distance * distance * distance;
        let rise = ((cube * C.0 * u128::from(self.window.mss) / C.1) >> (3 * TIME_SHIFT)) as u64;
        if time < plateau { self.w_max.saturating_sub(rise) } else { self.w_max.saturating_add(rise) }
    }

    /// Figure 5 and, for W_max, section 4.7's fast convergence.
    fn reduce(&mut self, flight: u64) {
        let cwnd = self.window.cwnd;
        self.cwnd_prior = cwnd;
        // W_max is reduced further if the flow did not reach its previous W_max: (1 + beta) / 2 = 17/20.
        self.w_max = if cwnd < self.w_max { cwnd * (BETA.1 + BETA.0) / (2 * BETA.1) } else { cwnd };
        self.window.ssthresh = (flight * BETA.0 / BETA.1).max(2 * self.window.mss);
        self.epoch = None;
        if let Some(hystart) = &mut self.hystart {
            hystart.reset();
        }
    }

    /// Excludes time in which the application did not use the window.
    fn stop_clock(&mut self, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }
}

impl CongestionControl for Cubic {
    own_window!();

    fn on_ack(&mut self, sample: &AckSample) {
        let since_last = sample.now.saturating_since(self.last_ack);
        self.last_ack = sample.now;
        if !sample.window_limited {
            // "The elapsed time MUST NOT include periods during which cwnd has not been updated due
            // to application-limited behavior" (RFC 9438 section 4.2).
            self.stop_clock(since_last);
            return;
        }
        let mut acked = sample.acked;
        if self.window.in_slow_start() {
            acked = self.window.slow_start(sample);
            if let Some(hystart) = &mut self.hystart
                && hystart.should_leave(sample, self.window.cwnd, self.window.mss)
            {
                self.window.ssthresh = self.window.cwnd;
            }
            if self.window.in_slow_start() {
                return;
            }
        }
        self.avoid_congestion(sample, acked);
    }

    fn on_loss(&mut self, flight: u64) {
        self.reduce(flight);
        self.window.cwnd = self.window.ssthresh;
        self.start_on_plateau = false;
        self.is_searching = false;
    }

    fn on_timeout(&mut self, _now: Instant, flight: u64) {
        self.reduce(flight);
        self.window.collapse();
        self.start_on_plateau = true;
        // Linux forgets the maximum after a timeout.
        self.is_searching = self.searches;
    }

    fn on_restart(&mut self, idle: Duration) {
        self.stop_clock(idle);
        self.last_ack += idle;
        if self.window.in_slow_start() {
            // t_epoch and W_est belong to a congestion avoidance stage, which slow start ends (RFC 9438 section 4.2).
            self.epoch = None;
        }
    }
}

/// K = cbrt((W_max - cwnd_epoch) / C) (Figure 2), in 2^-16 s.
fn time_to_plateau(below: u64, mss: u64) -> u64 {
    let cubed_seconds_shifted = (u128::from(below) << (3 * TIME_SHIFT)) * C.1 / (C.0 * u128::from(mss));
    cube_root(cubed_seconds_shifted)
}

/// The largest integer whose cube is at most `value`, computed bit by bit.
fn cube_root(value: u128) -> u64 {
    let mut root: u128 = 0;
    for bit in (0..42).rev() {
        let candidate = root | (1 << bit);
        if candidate * candidate * candidate <= value {
            root = candidate;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::position::Position;

    const MSS: u64 = 1000;

    fn cubic(segments: u64) -> Cubic {
        let window = crate::Config::default().window(MSS as u32);
        let mut cubic = Cubic::new(window, Config { slow_start: SlowStart::Standard });
        cubic.window.cwnd = segments * MSS;
        cubic
    }

    #[test]
    fn the_cube_root_is_exact() {
        for root in [0u128, 1, 2, 1000, (1 << 40) + 12345] {
            assert_eq!(u128::from(cube_root(root * root * root)), root);
        }
        assert_eq!(cube_root(26), 2);
    }

    #[test]
    fn k_is_what_the_rfc_formula_gives() {
        // A window of 1000 segments cut to 700: K = cbrt(300 / 0.4) = 9.0856 s.
        let k = time_to_plateau(300 * MSS, MSS) as f64 / f64::from(1u32 << TIME_SHIFT);
        assert!((k - 9.0856).abs() < 1e-3, "{k}");
    }

    #[test]
    fn a_loss_cuts_to_seven_tenths_and_the_curve_comes_back_to_w_max() {
        let mut cubic = cubic(1000);
        cubic.on_loss(1000 * MSS);
        assert_eq!(cubic.window.cwnd, 700 * MSS);
        let epoch = cubic.begin_epoch(Instant::ZERO);
        assert_eq!(cubic.curve(epoch.plateau, Duration::ZERO) / MSS, 700);
        let at_plateau = cubic.curve(epoch.plateau, Duration::from_micros(9_085_603));
        assert_eq!(at_plateau, 1000 * MSS);
        // The curve is symmetric about the plateau.
        assert_eq!(cubic.curve(epoch.plateau, Duration::from_micros(18_171_206)) / MSS, 1299);
    }

    #[test]
    fn fast_convergence_gives_way() {
        let mut cubic = cubic(1000);
        cubic.on_loss(1000 * MSS);
        cubic.window.cwnd = 800 * MSS;
        cubic.on_loss(800 * MSS);
        assert_eq!(cubic.w_max, 680 * MSS);
    }

    /// A window's worth of ACKs that arrive together at `now`.
    fn ack_window(cubic: &mut Cubic, now: Instant, smoothed_rtt: Option<Duration>, window_limited: bool) {
        let sample = AckSample {
            now,
            acked: cubic.window.cwnd,
            snd_una: Position::default(),
            snd_nxt: Position::default(),
            rtt: None,
            smoothed_rtt,
            window_limited,
            after_timeout: false,
        };
        cubic.on_ack(&sample);
    }

    #[test]
    fn two_segments_are_left_of_the_smallest_window() {
        let mut cubic = cubic(2);
        cubic.on_loss(2 * MSS);
        assert_eq!((cubic.window.ssthresh, cubic.window.cwnd), (2 * MSS, 2 * MSS));
    }

    /// A round trip's ACKs raise the window to the curve's value one round trip later (section 4.2): here 1000 - 0.4
    /// (9.0856 - 2)^3 segments, one second after the loss.
    #[test]
    fn the_window_aims_a_round_trip_ahead() {
        let mut cubic = cubic(1000);
        cubic.on_loss(1000 * MSS);
        for seconds in 0..2 {
            let now = Instant::ZERO + Duration::from_secs(seconds);
            ack_window(&mut cubic, now, Some(Duration::from_secs(1)), true);
        }
        assert_eq!(cubic.window.cwnd / MSS, 857);
    }

    /// However steep the curve is, the window grows by at most half per round trip (section 4.2).
    #[test]
    fn a_round_trip_adds_no_more_than_half() {
        let mut cubic = cubic(1000);
        cubic.on_loss(1000 * MSS);
        cubic.epoch = Some(cubic.begin_epoch(Instant::ZERO));
        ack_window(&mut cubic, Instant::ZERO + Duration::from_secs(100), None, true);
        assert_eq!(cubic.window.cwnd, 1050 * MSS);
    }

    /// Ten round trips after a slow start that HyStart ended: 1.05^10, while the curve alone would have gone from 100
    /// to 100.4 segments and Reno to 110.
    #[test]
    fn before_the_first_loss_a_round_trip_adds_a_twentieth() {
        let mut cubic = cubic(100);
        cubic.is_searching = true;
        cubic.window.ssthresh = cubic.window.cwnd;
        for round in 0..10 {
            let now = Instant::ZERO + Duration::from_millis(100 * round);
            ack_window(&mut cubic, now, Some(Duration::from_millis(100)), true);
        }
        assert_eq!(cubic.window.cwnd / MSS, 162);
        cubic.on_loss(162 * MSS);
        assert!(!cubic.is_searching);
        let cut = cubic.window.cwnd;
        ack_window(
            &mut cubic,
            Instant::ZERO + Duration::from_secs(2),
            Some(Duration::from_millis(100)),
            true,
        );
        assert!(cubic.window.cwnd < cut + cut / 40);
    }

    /// In the Reno-friendly region: 9/17 of a segment per round trip up to the window before the loss, then a whole
    /// segment (section 4.3).
    #[test]
    fn in_reno_s_region_the_slope_is_reno_s_beyond_the_old_window() {
        let mut cubic = cubic(10);
        cubic.on_loss(10 * MSS);
        let mut grown = Vec::new();
        for _ in 0..8 {
            let before = cubic.window.cwnd;
            // Time does not advance, so the curve remains constant.
            ack_window(&mut cubic, Instant::ZERO, None, true);
            grown.push(cubic.window.cwnd - before);
        }
        assert_eq!(grown, [529, 529, 530, 529, 529, 530, 1000, 1000]);
    }

    /// "The elapsed time MUST NOT include periods during which cwnd has not been updated" (section 4.2): neither ACKs
    /// of an application that does not fill the window nor its idle time advance the curve.
    #[test]
    fn a_pause_of_the_application_does_not_move_the_curve() {
        let ms = |millis| Instant::ZERO + Duration::from_millis(millis);
        let grown = |pause: &dyn Fn(&mut Cubic), after: u64| {
            let mut cubic = cubic(1000);
            cubic.on_loss(1000 * MSS);
            ack_window(&mut cubic, ms(0), None, true);
            pause(&mut cubic);
            ack_window(&mut cubic, ms(after + 500), None, true);
            cubic.window.cwnd
        };
        let straight = grown(&|_| {}, 0);
        assert_eq!(grown(&|cubic| ack_window(cubic, ms(5_000), None, false), 5_000), straight);
        assert_eq!(grown(&|cubic| cubic.on_restart(Duration::from_secs(5)), 5_000), straight);
    }

    /// After a timeout, slow start ends on the plateau (section 4.8); after a loss, the curve leads back to the
    /// plateau.
    #[test]
    fn after_a_timeout_the_stage_begins_on_the_plateau() {
        let plateau = |reduce: fn(&mut Cubic, u64)| {
            let mut cubic = cubic(1000);
            reduce(&mut cubic, 1000 * MSS);
            cubic.window.cwnd = cubic.window.ssthresh;
            cubic.begin_epoch(Instant::ZERO).plateau
        };
        assert_eq!(plateau(|cubic, flight| cubic.on_timeout(Instant::ZERO, flight)), 0);
        assert!(plateau(Cubic::on_loss) > 0);
    }

    #[test]
    fn the_farthest_future_does_not_overflow() {
        let cubic = cubic(4000);
        assert!(cubic.curve(0, Duration::from_nanos(u64::MAX)) > cubic.window.cwnd);
    }

    /// W_est from before a pause is far above the window after it: slow start must end the stage that it belongs to.
    #[test]
    fn one_ack_after_a_pause_does_not_bring_the_old_window_back() {
        let mut cubic = cubic(100);
        cubic.on_loss(100 * MSS);
        let (mut now, round_trip) = (Instant::ZERO, Duration::from_millis(5));
        let at = Position::default();
        let ack = |cubic: &mut Cubic, now: Instant| {
            let before = cubic.window.cwnd;
            cubic.on_ack(&AckSample {
                now,
                acked: 2 * MSS,
                snd_una: at,
                snd_nxt: at,
                rtt: Some(round_trip),
                smoothed_rtt: Some(round_trip),
                window_limited: true,
                after_timeout: false,
            });
            cubic.window.cwnd - before
        };
        // In the Reno-friendly region, until W_est is well above the window at the loss.
        for _ in 0..150 {
            for _ in 0..cubic.window.cwnd / (2 * MSS) {
                ack(&mut cubic, now);
            }
            now += round_trip;
        }
        let pause = Duration::from_secs(2);
        now += pause;
        cubic.window.cwnd = 10 * MSS;
        cubic.on_restart(pause);
        for _ in 0..60 {
            now += Duration::from_micros(500);
            assert!(ack(&mut cubic, now) <= 2 * MSS, "{} bytes", cubic.window.cwnd);
        }
    }
}
