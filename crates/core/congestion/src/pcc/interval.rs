//! Monitor intervals: what happened to the data that was sent at one rate.

use super::fixed::ONE;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

/// Purpose of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Start-up at the rate of this generation.
    Start(u32),
    /// A trial: its index, and whether it has the higher rate.
    Trial { place: u8, higher: bool },
    /// Measuring a rate that was moved to.
    Move,
    /// Sending while results are pending.
    Hold,
}

/// Data sent at one rate within a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub purpose: Purpose,
    pub rate: BitRate,
    pub start: Instant,
    /// When the next interval began, or will begin.
    pub end: Instant,
    acked: u64,
    lost: u64,
    /// Sums for a regression line of round-trip times over sending times, both in microseconds.
    slope: Slope,
}

/// A least-squares line.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    count: i128,
    x: i128,
    y: i128,
    xx: i128,
    xy: i128,
}

/// Outcome of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub purpose: Purpose,
    /// The sending rate: the interval's rate, or less if something else limited the sender.
    pub rate: BitRate,
    /// Fraction of the data that was lost, in fixed point.
    pub loss: i64,
    /// Growth of the round-trip time over the duration of the interval: a ratio in fixed point.
    pub rtt_gradient: i64,
}

impl Interval {
    pub fn new(purpose: Purpose, rate: BitRate, start: Instant, length: Duration) -> Self {
        Self { purpose, rate, start, end: start + length, acked: 0, lost: 0, slope: Slope::default() }
    }

    /// Records data sent at `sent_at` within the interval: `acked` bytes arrived, `lost` bytes are declared lost.
    pub fn note(&mut self, sent_at: Instant, rtt: Duration, acked: u64, lost: u64) {
        self.acked += acked;
        self.lost += lost;
        let (x, y) = (sent_at.saturating_since(self.start), rtt);
        let (x, y) = (i128::from(x.as_nanos() / 1_000), i128::from(y.as_nanos() / 1_000));
        let slope = &mut self.slope;
        slope.count += 1;
        slope.x += x;
        slope.y += y;
        slope.xx += x * x;
        slope.xy += x * y;
    }

    pub fn report(&self) -> Report {
        let sent = self.acked + self.lost;
        let actual = BitRate::from_amount(Bytes(sent), self.end.saturating_since(self.start));
        // The rate counts as limited only if it is well below: one packet more or less can matter, because an interval
        // may have only ten packets.
        let held_back = actual.filter(|actual| actual.as_bps() < self.rate.as_bps() / 10 * 8);
        let loss = if sent == 0 { 0 } else { (u128::from(self.lost) << 16) / u128::from(sent) };
        Report {
            purpose: self.purpose,
            rate: held_back.unwrap_or(self.rate),
            loss: loss as i64,
            rtt_gradient: self.slope.gradient(),
        }
    }
}

impl Slope {
    fn gradient(&self) -> i64 {
        let spread = self.count * self.xx - self.x * self.x;
        if spread <= 0 {
            return 0;
        }
        let gradient = (self.count * self.xy - self.x * self.y) * i128::from(ONE) / spread;
        // A queue cannot grow faster: at twice the rate of a link it grows by one second per second.
        gradient.clamp(-16 * i128::from(ONE), 16 * i128::from(ONE)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// 100 packets of 1250 bytes in 100 ms are 10 Mb/s; the round-trip time grows by 0.1 ms per millisecond.
    #[test]
    fn an_interval_reports_its_rate_losses_and_the_slope_of_its_round_trips() {
        let start = Instant::ZERO + MS(1_000);
        let mut interval = Interval::new(Purpose::Hold, BitRate::from_mbps(10), start, MS(100));
        for packet in 0..100 {
            let lost = if packet % 10 == 0 { 1_250 } else { 0 };
            let rtt = MS(50) + Duration::from_micros(100 * packet);
            interval.note(start + MS(packet), rtt, 1_250 - lost, lost);
        }
        let report = interval.report();
        assert_eq!(report.rate, BitRate::from_mbps(10));
        assert_eq!(report.loss, ONE / 10);
        assert!((report.rtt_gradient - ONE / 10).abs() < 10, "{report:?}");
    }

    #[test]
    fn a_sender_that_was_held_back_reports_what_it_sent() {
        let start = Instant::ZERO;
        let mut interval = Interval::new(Purpose::Hold, BitRate::from_mbps(10), start, MS(100));
        interval.note(start, MS(50), 12_500, 0);
        assert_eq!(interval.report().rate, BitRate::from_mbps(1));
    }
}
