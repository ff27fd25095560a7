//! Receive-side flow control: the receiver keeps the queue on the path short by limiting the window that it offers (Xu,
//! Leong, Leong and Razeen, "Dynamic regulation of mobile 3G/HSPA uplink buffer with receiver-side flow control", ICNP
//! 2012).
//!
//! The slides of TCP-RRE only describe the paper's signal: the relative delay between the clocks of both ends, from TCP
//! timestamps, minus its minimum, is the queueing delay. The numbers here are our own.

use tacit_packet::position::Position;
use tacit_packet::units::{Bytes, Duration, Instant};

/// Target queueing delay.
const TARGET: Duration = Duration::from_millis(50);
/// Queueing delays above this shrink the window.
const MOST: Duration = Duration::from_millis(100);
/// While the queueing delay is short, the window is larger than required for the rate and the target by this fraction;
/// while it is long, smaller by this fraction: a quarter. The excess finds higher rates.
const STEP: u64 = 4;
/// Segments that the window has beyond that at any rate. Two flows whose windows only follow their own rates keep
/// any ratio of them; a part that is equal for both lets them meet (Chiu and Jain 1989). One segment leaves Jain's index at
/// 0.87 at 3 Mb/s, where none leaves it at 0.65.
const SHARING_SEGMENTS: u64 = 2;
/// Shortest time over which a rate is measured, and the weight of the previous rate in the next.
const SPAN_MIN: Duration = Duration::from_millis(100);
/// Smallest window in segments: two, so that delayed ACKs cause no wait, and two to make up for a loss.
const MIN_SEGMENTS: u64 = 4;
/// The minimum relative delay and round-trip time are over this time, because clocks drift and paths change.
const FORGET: Duration = Duration::from_secs(30);
/// At this interval the window is set to its minimum for a few round trips, so that the queue empties. Otherwise a flow
/// that started while others' data was queued would mistake that for the path's own delay, and leave the others little
/// (LEDBAT++ does the same, draft-irtf-iccrg-ledbat-plus-plus).
const DRAIN_EVERY: Duration = Duration::from_secs(10);
/// Tick of the sender's clock, as in Linux.
const TICK: Duration = Duration::from_millis(1);

/// A recent minimum, kept for two halves of the validity period.
#[derive(Clone, Copy, Debug, Default)]
struct Smallest {
    before: Option<i64>,
    now: Option<i64>,
    since: Instant,
}

impl Smallest {
    fn note(&mut self, now: Instant, value: i64) -> i64 {
        if now.saturating_since(self.since) > FORGET / 2 {
            (self.before, self.now, self.since) = (self.now, None, now);
        }
        let least = self.now.map_or(value, |least| least.min(value));
        self.now = Some(least);
        self.before.map_or(least, |before| before.min(least))
    }
}

/// The receiver's model of the path to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rsfc {
    max: u64,
    mss: u64,
    /// The first value of the sender's clock; relative delays count from it.
    first_stamp: Option<u32>,
    delay: Smallest,
    rtt: Smallest,
    /// Minimum queueing delay in the current measurement span, in microseconds.
    wait_us: Option<i64>,
    span: (Instant, Position),
    /// Bytes per second; `None` before the first measurement.
    rate: Option<u64>,
    /// The last offered window, and when the next drain begins, or until when it lasts.
    window: u64,
    drain_at: Instant,
    drain_until: Option<Instant>,
}

impl Rsfc {
    pub fn new(max: u64, mss: u64) -> Self {
        Self { max, mss, span: (Instant::ZERO, Position::default()), window: max, ..Self::default() }
    }

    /// Data arrived in order up to `rcv_nxt`, sent when the sender's clock was `stamp`, in answer to a segment sent
    /// `echoed` ago. Returns the window to offer from now on, once a measurement span has ended.
    pub fn on_data(
        &mut self,
        now: Instant,
        rcv_nxt: Position,
        stamp: Option<u32>,
        echoed: Option<Duration>,
    ) -> Option<u64> {
        let stamp = stamp?;
        let micros = |span: Duration| (span.as_nanos() / 1_000) as i64;
        let first = *self.first_stamp.get_or_insert(stamp);
        let ticks = i64::from(stamp.wrapping_sub(first) as i32);
        let delay = micros(now.saturating_since(Instant::ZERO)) - ticks * micros(TICK);
        let wait = delay - self.delay.note(now, delay);
        self.wait_us = Some(self.wait_us.map_or(wait, |least| least.min(wait)));
        let rtt = echoed.map(|echoed| self.rtt.note(now, micros(echoed)))?;
        if let Some(until) = self.drain_until {
            return self.drain(now, rcv_nxt, until);
        }
        let (since, from) = self.span;
        let span = now.saturating_since(since);
        if span < SPAN_MIN.max(Duration::from_micros(rtt as u64)) {
            return None;
        }
        let is_first = since == Instant::ZERO;
        self.span = (now, rcv_nxt);
        let wait = self.wait_us.take()?;
        if is_first {
            self.drain_at = now + DRAIN_EVERY;
            return None;
        }
        if now >= self.drain_at {
            // Data in flight arrives within a round trip plus the queueing delay; the same time again measures the path
            // without it.
            self.drain_until = Some(now + Duration::from_micros((rtt + wait) as u64) * 2);
            return Some(MIN_SEGMENTS * self.mss);
        }
        let arrived = rcv_nxt.saturating_since(from);
        let measured = (u128::from(arrived) * 1_000_000_000 / u128::from(span.as_nanos())) as u64;
        let rate = self.rate.map_or(measured, |rate| rate / 2 + measured / 2);
        self.rate = Some(rate);
        let wanted = Duration::from_micros(rtt as u64) + TARGET;
        let window = (u128::from(rate) * u128::from(wanted.as_nanos()) / 1_000_000_000) as u64;
        let window = if wait < micros(TARGET) {
            window + window / STEP
        } else if wait > micros(MOST) {
            window - window / STEP
        } else {
            window
        };
        let window = window + SHARING_SEGMENTS * self.mss;
        self.window = window.clamp(MIN_SEGMENTS * self.mss, self.max);
        Some(self.window)
    }

    /// The queue is drained until `until`: then the previous window is offered again, and rates are measured again.
    fn drain(&mut self, now: Instant, rcv_nxt: Position, until: Instant) -> Option<u64> {
        self.wait_us = None;
        self.span = (now, rcv_nxt);
        if now < until {
            return None;
        }
        self.drain_until = None;
        self.drain_at = now + DRAIN_EVERY;
        Some(self.window)
    }
}

impl super::ReceiveAutotuning {
    /// Receive-side flow control with the same maximum as Linux's buffer.
    pub const RSFC: Self = Self::Rsfc(Bytes(6 << 20));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::position::at;

    const MSS: u64 = 1_000;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// 1 MB/s arrives for a second, each packet after queueing for `wait` (the first without queueing), with round
    /// trips of 50 ms in addition. Returns the last offered window.
    fn window(wait: Duration) -> u64 {
        let mut rsfc = Rsfc::new(1 << 20, MSS);
        let mut offered = None;
        for packet in 0..1_000 {
            let waited = if packet == 0 { Duration::ZERO } else { wait };
            let now = Instant::ZERO + MS(1_000 + packet) + waited;
            let window = rsfc.on_data(now, at(packet * MSS), Some(packet as u32), Some(MS(50) + waited));
            offered = window.or(offered);
        }
        offered.unwrap()
    }

    /// The rate times round-trip time and target, 100 kB, plus or minus a quarter, and two segments.
    #[test]
    fn the_window_grows_beyond_the_rate_while_the_queue_is_short_and_shrinks_while_it_is_long() {
        let close = |window: u64, expected: u64| {
            assert!(window.abs_diff(expected) < expected / 100, "{window} {expected}");
        };
        close(window(MS(10)), 127_000);
        close(window(MS(70)), 102_000);
        close(window(MS(200)), 77_000);
    }

    #[test]
    fn every_ten_seconds_the_window_lets_the_queue_empty() {
        let mut rsfc = Rsfc::new(1 << 20, MSS);
        let mut windows = Vec::new();
        for packet in 0..12_000 {
            let now = Instant::ZERO + MS(1_000 + packet);
            windows.extend(rsfc.on_data(now, at(packet * MSS), Some(packet as u32), Some(MS(50))));
        }
        assert_eq!(windows.iter().filter(|window| **window == MIN_SEGMENTS * MSS).count(), 1, "{windows:?}");
        assert_eq!(windows.last(), Some(&127_000));
    }

    #[test]
    fn no_window_without_clocks() {
        let mut rsfc = Rsfc::new(1 << 20, MSS);
        assert_eq!(rsfc.on_data(Instant::ZERO + MS(1_000), at(0), None, Some(MS(50))), None);
    }
}
