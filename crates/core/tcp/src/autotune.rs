//! A receive buffer that grows with the application's reading rate: dynamic right-sizing (Fisk and Feng, "Dynamic
//! right-sizing in TCP", 2001), with the rule and the limits of Linux.

use tacit_packet::position::Position;
use tacit_packet::units::{Bytes, Duration, Instant};

/// Whether the receive buffer grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveAutotuning {
    /// It keeps its configured size.
    #[default]
    Off,
    /// It starts with the configured size and grows up to this.
    UpTo(Bytes),
    /// It starts with the configured size, and is adjusted up to this limit so that the queue on the path remains
    /// short: receive-side flow control, see `rsfc.rs`.
    Rsfc(Bytes),
}

impl ReceiveAutotuning {
    /// Linux: initially 131072 bytes, at most 6 MiB (the last two numbers of net.ipv4.tcp_rmem).
    pub const LINUX: Self = Self::UpTo(Bytes(6 << 20));
    /// Initial buffer of [`LINUX`](Self::LINUX).
    pub const LINUX_START: Bytes = Bytes(131_072);

    /// The largest possible buffer, starting with `buffer`.
    pub(crate) fn largest(self, buffer: u64) -> u64 {
        match self {
            Self::Off => buffer,
            Self::UpTo(max) | Self::Rsfc(max) => max.0.max(buffer),
        }
    }
}

/// How the offered window follows a receive buffer that grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowGrowth {
    /// At once.
    #[default]
    AtOnce,
    /// As in Linux: by twice the data of each segment that arrives (`tcp_grow_window`), and a segment that widens the
    /// window is acknowledged at once by [Linux's rule](super::AckPolicy::Linux) (`icsk_ack.quick |= 1`).
    BySegment,
}

/// Segments of room in addition to twice the bytes read, as in Linux.
const SPARE_SEGMENTS: u64 = 16;

/// Measures round trips and the bytes that the application reads in each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Autotune {
    max: u64,
    mss: u64,
    rtt: Option<Duration>,
    /// A right edge and the time it was offered: data beyond it arrives at least a round trip later.
    offered: Option<(Position, Instant)>,
    round_start: Instant,
    /// Bytes read since then, and the maximum over all rounds.
    taken: u64,
    most_taken: u64,
}

impl Autotune {
    pub fn new(max: u64, mss: u64) -> Self {
        Self {
            max,
            mss,
            // RFC 6928's initial window.
            most_taken: 10 * mss,
            ..Self::default()
        }
    }

    /// The application has read `bytes`.
    pub fn on_taken(&mut self, bytes: u64) {
        self.taken += bytes;
    }

    /// Data arrived in order up to `rcv_nxt`, with the window open up to `edge`; its timestamp echoes a segment sent
    /// `echoed` ago. Returns the buffer's new size if `buffer` is too small.
    ///
    /// A buffer of twice the data of a round trip lets slow start double in the next one; it gets more room if the rate
    /// grows faster.
    pub fn on_data(
        &mut self,
        now: Instant,
        rcv_nxt: Position,
        edge: Position,
        echoed: Option<Duration>,
        buffer: u64,
    ) -> Option<u64> {
        self.measure(now, rcv_nxt, edge, echoed);
        if now.saturating_since(self.round_start) < self.rtt? {
            return None;
        }
        self.round_start = now;
        let taken = core::mem::take(&mut self.taken);
        if taken <= self.most_taken {
            return None;
        }
        let room = (2 * taken + SPARE_SEGMENTS * self.mss).min(self.max);
        // A sender at most doubles its rate: further bytes that arrived at once had waited behind a gap.
        let risen = (taken - self.most_taken).min(self.most_taken);
        let growth = (u128::from(room) * u128::from(risen) / u128::from(self.most_taken)) as u64;
        self.most_taken = taken;
        let wanted = (room + 2 * growth).min(self.max);
        (wanted > buffer).then_some(wanted)
    }

    /// With timestamps the round-trip time is measured and smoothed; without them, the time for a window is its upper
    /// bound.
    fn measure(&mut self, now: Instant, rcv_nxt: Position, edge: Position, echoed: Option<Duration>) {
        if let Some(sample) = echoed {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt - rtt / 8 + sample / 8));
            return;
        }
        match self.offered {
            Some((offered, _)) if rcv_nxt < offered => {}
            Some((_, since)) => {
                let sample = now.saturating_since(since);
                self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
                self.offered = Some((edge, now));
            }
            None => self.offered = Some((edge, now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_packet::position::at;

    const MSS: u64 = 1000;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_buffer_follows_twice_what_a_round_trip_brings() {
        let mut tuning = Autotune::new(1_000_000, MSS);
        let mut buffer = 20_000;
        let mut sizes = Vec::new();
        for (round, taken) in [(1, 10_000), (2, 20_000), (3, 40_000), (4, 40_000), (5, 400_000)] {
            tuning.on_taken(taken);
            let now = Instant::ZERO + MS(100 * round);
            buffer = tuning.on_data(now, at(0), at(0), Some(MS(100)), buffer).unwrap_or(buffer);
            sizes.push(buffer);
        }
        // Twice 20 kB and 16 segments, tripled because the rate doubled; and so on, up to the limit.
        assert_eq!(sizes, [20_000, 168_000, 288_000, 288_000, 1_000_000]);
    }

    #[test]
    fn without_timestamps_a_window_takes_a_round_trip() {
        let mut tuning = Autotune::new(1_000_000, MSS);
        let start = Instant::ZERO + MS(1_000);
        assert_eq!(tuning.on_data(start, at(0), at(20_000), None, 20_000), None);
        for step in 1..=20 {
            tuning.on_taken(MSS);
            let now = start + MS(step);
            assert_eq!(tuning.on_data(now, at(step * MSS - 1), at(40_000), None, 20_000), None);
        }
        // The initially offered 20,000 bytes have arrived, so the round-trip time is at most 21 ms.
        let grown = tuning.on_data(start + MS(21), at(20_000), at(40_000), None, 20_000);
        assert_eq!(grown, Some(168_000));
    }
}
