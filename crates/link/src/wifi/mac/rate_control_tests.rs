use tacit_proto::units::Ratio;

use super::*;
use crate::wifi::error_rate::mpdu_success;
use crate::wifi::phy::Standard;
use crate::wifi::propagation::Decibels;

const OVERHEAD: Duration = Duration::from_micros(160);
const MPDU: u32 = 1_544;

/// HT rates of one stream in 40 MHz.
fn rates() -> Vec<Rate> {
    let phy = Standard::N.phy();
    let mode = |mcs| Mode::ht(mcs, 1, true, true).unwrap();
    let rate = |mode: Mode| {
        let control_mode = phy.control_mode(&mode);
        let limits =
            AggregationLimits::new(phy, phy.mac_header_len(), [&mode, &control_mode], None, None, None);
        Rate { mode, control_mode, limits }
    };
    (0..8).map(mode).map(rate).collect()
}

/// A sender that always has something to send over a noisy link.
struct Link {
    control: Minstrel,
    now: Instant,
    noise: Stream,
    /// What single-MPDU tries cost is counted too.
    delivered_octets: u64,
}

impl Link {
    fn new(seed: u64) -> Self {
        let control = Minstrel::new(rates(), OVERHEAD, Stream::new(seed, "rates"));
        Self { control, now: Instant::ZERO, noise: Stream::new(seed, "noise"), delivered_octets: 0 }
    }

    /// Octets per second over `span` at `snr_db`.
    fn run(&mut self, span: Duration, snr_db: f64) -> f64 {
        let (until, before) = (self.now + span, self.delivered_octets);
        while self.now < until {
            let (rate, _, sample) = self.control.choose(self.now);
            let mpdus = if sample { 1 } else { (rate.limits.longest() / MPDU).min(42) };
            let chance =
                Ratio::from_fraction(mpdu_success(&rate.mode, Decibels::from_db(snr_db), MPDU)).unwrap();
            let through = (0..mpdus).filter(|_| self.noise.hit(chance)).count() as u32;
            self.control.report(mpdus, through, mpdus * MPDU);
            self.delivered_octets += u64::from(through * MPDU);
            self.now += rate.mode.ppdu_duration(mpdus * MPDU) + OVERHEAD;
        }
        (self.delivered_octets - before) as f64 / span.as_secs_f64()
    }
}

/// Octets per second at the best rate there is, known beforehand.
fn ideal(snr_db: f64) -> f64 {
    let carried = |rate: &Rate| {
        let octets = (rate.limits.longest() / MPDU).min(42) * MPDU;
        let time = rate.mode.ppdu_duration(octets) + OVERHEAD;
        f64::from(octets) * mpdu_success(&rate.mode, Decibels::from_db(snr_db), MPDU) / time.as_secs_f64()
    };
    rates().iter().map(carried).fold(0.0, f64::max)
}

#[test]
fn it_comes_within_a_tenth_of_the_ideal_rate_over_the_sweep() {
    for snr_db in (4..=32).step_by(2).map(f64::from) {
        let mut link = Link::new(snr_db as u64);
        link.run(Duration::from_secs(2), snr_db);
        let share = link.run(Duration::from_secs(4), snr_db) / ideal(snr_db);
        println!("{snr_db} dB: {:.1} % of the ideal rate", share * 100.0);
        assert!(share > 0.9, "{snr_db} dB: {share}");
    }
}

#[test]
fn it_follows_a_client_that_walks_away_and_comes_back() {
    let mut link = Link::new(1);
    for snr_db in [30.0, 24.0, 18.0, 12.0, 6.0, 12.0, 18.0, 24.0, 30.0] {
        // A second to notice, then it must do as well as if it had always been there.
        link.run(Duration::from_secs(1), snr_db);
        let share = link.run(Duration::from_secs(1), snr_db) / ideal(snr_db);
        println!("{snr_db} dB: {:.1} % of the ideal rate", share * 100.0);
        assert!(share > 0.9, "{snr_db} dB: {share}");
    }
}

#[test]
fn after_losses_it_goes_down_the_chain() {
    let mut link = Link::new(1);
    link.run(Duration::from_secs(2), 30.0);
    let control = &mut link.control;
    let chain = control.chain;
    control.sampling = false;
    control.report(1, 1, MPDU);
    control.update_at = link.now + UPDATE_INTERVAL;
    control.sample_at = control.update_at;
    let mut story = Vec::new();
    for _ in 0..6 {
        let (_, number, _) = control.choose(link.now);
        story.push(chain.iter().position(|link| *link == number).unwrap());
        control.report(42, 0, 42 * MPDU);
    }
    let expected =
        [0, 0, 1, 1, 2, 2].map(|stage| chain.iter().position(|link| *link == chain[stage]).unwrap());
    assert_eq!(story, expected);
    // One success, and the best is used again.
    control.report(1, 1, MPDU);
    assert_eq!(control.choose(link.now).1, chain[0]);
}
