//! The receiver's estimate of the round-trip time.

use tacit_packet::units::Duration;

/// Measured from the ACK that carried a timestamp to the first full segment that echoes it, like Linux's `rcv_rtt`
/// (`tcp_rcv_rtt_measure_ts`). It is in ticks of the timestamp clock, at least one, and only from full segments,
/// because a sender with little to send echoes late. Without timestamps it is the round-trip time of the handshake, if
/// measured.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiverRtt {
    last_stamp: Option<u32>,
    smoothed: Option<Duration>,
    least: Option<Duration>,
}

impl ReceiverRtt {
    /// The handshake took `rtt`.
    pub fn start(&mut self, rtt: Duration) {
        self.take(rtt);
    }

    /// `stamp` was echoed after `rtt`; only the first echo of each timestamp counts.
    pub fn sample(&mut self, stamp: u32, rtt: Duration) {
        if self.last_stamp.replace(stamp) != Some(stamp) {
            self.take(rtt);
        }
    }

    fn take(&mut self, rtt: Duration) {
        let smoothed = self.smoothed.map_or(rtt, |smoothed| smoothed - smoothed / 8 + rtt / 8);
        self.smoothed = Some(smoothed);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
    }

    /// The mean; each sample has a weight of an eighth.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The minimum over the whole connection.
    pub fn least(&self) -> Option<Duration> {
        self.least
    }
}
