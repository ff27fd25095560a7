//! How a station serves one destination: how long packets wait for their turn, and how much data the turns carry.

use tacit_packet::units::{Duration, Instant};

tacit_packet::counters! {
    /// A station's service to one destination. Time that is neither waited nor served is time without packets for it.
    pub struct Turns {
        /// Time during which packets for it waited, without its exchanges.
        waited: Duration,
        /// Duration of its exchanges, each from the first frame until the sender knows the outcome.
        served: Duration,
        /// Data PPDUs in these exchanges.
        ppdus: u64,
        /// Packets in these PPDUs, including repeated ones.
        sent: u64,
        /// Packets that the destination passed up.
        arrived: u64,
        /// Bytes of these packets.
        arrived_bytes: u64,
    }
}

/// Maintains [`Turns`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnLog {
    pub turns: Turns,
    /// Since when packets have waited; [`None`] if no packet waits.
    waits_since: Option<Instant>,
    /// When its last wait ended.
    waited_until: Instant,
    /// End of the last exchange, or of the time before measurement.
    booked_until: Instant,
}

impl TurnLog {
    /// Packets wait from `at` on.
    pub fn wait(&mut self, at: Instant) {
        self.waits_since = Some(at.max(self.booked_until).max(self.waited_until));
    }

    /// No packet waits any more, or the destination has its turn.
    pub fn end_wait(&mut self, at: Instant) {
        if let Some(since) = self.waits_since.take() {
            self.turns.waited += at.saturating_since(since);
            self.waited_until = at;
        }
    }

    /// No packet waits any more, after packets that came during the exchange that is on the air: they did not wait.
    pub fn cancel_wait(&mut self) {
        self.waits_since = None;
    }

    /// An exchange lasted from the first instant to the second. Packets that arrived during it wait from its end.
    pub fn serve(&mut self, [begin, end]: [Instant; 2]) {
        self.turns.served += end.saturating_since(begin.max(self.booked_until));
        self.booked_until = self.booked_until.max(end);
        self.waits_since = self.waits_since.map(|since| since.max(end));
    }

    /// The destination passed up `packets` packets with `bytes` bytes in total.
    pub fn arrived(&mut self, packets: u64, bytes: u64) {
        self.turns.arrived += packets;
        self.turns.arrived_bytes += bytes;
    }

    /// Starts the measurement at `at`.
    pub fn start_measuring(&mut self, at: Instant) {
        self.turns = Turns::default();
        self.booked_until = self.booked_until.max(at);
        self.waits_since = self.waits_since.map(|since| since.max(at));
    }

    /// The turns until `now`, cut off there: the last exchange may start a SIFS later, or its outcome may become known
    /// later.
    pub fn until(&self, now: Instant) -> Turns {
        let mut log = *self;
        log.turns.waited = log.turns.waited.saturating_sub(log.waited_until.saturating_since(now));
        log.end_wait(now);
        log.turns.served = log.turns.served.saturating_sub(log.booked_until.saturating_since(now));
        log.turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn times_ms(turns: Turns) -> (u64, u64) {
        (turns.waited.as_millis(), turns.served.as_millis())
    }

    #[test]
    fn every_moment_counts_once() {
        let mut log = TurnLog::default();
        log.wait(at(2));
        log.end_wait(at(5));
        // A packet arrived during the exchange and waits after it.
        log.wait(at(6));
        log.serve([at(5), at(9)]);
        assert_eq!(times_ms(log.until(at(10))), (3 + 1, 4));
        log.end_wait(at(12));
        // A request about the same PPDU, whose beginning is already booked.
        log.serve([at(5), at(13)]);
        assert_eq!(times_ms(log.until(at(20))), (3 + 3, 4 + 4));
        assert_eq!(times_ms(log.until(at(11))), (3 + 2, 4 + 2));
        // The same with a packet that already waits for the next exchange.
        log.wait(at(11));
        assert_eq!(times_ms(log.until(at(11))), (3 + 2, 4 + 2));
    }

    #[test]
    fn turns_that_began_before_count_from_then_on() {
        let mut log = TurnLog::default();
        log.wait(at(2));
        log.start_measuring(at(5));
        log.end_wait(at(6));
        log.serve([at(6), at(8)]);
        assert_eq!(times_ms(log.until(at(9))), (1, 2));
        log.start_measuring(at(10));
        log.serve([at(9), at(12)]);
        assert_eq!(times_ms(log.until(at(12))), (0, 2));
    }
}
