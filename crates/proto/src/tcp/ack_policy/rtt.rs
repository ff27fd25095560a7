//! The round-trip time as a receiver sees it.

use crate::units::Duration;

/// From the ACK that carried a timestamp to the first full segment that echoes it, as Linux measures
/// its `rcv_rtt` (`tcp_rcv_rtt_measure_ts`). In ticks of the timestamp clock, one at least, and only
/// for full segments: a sender that has little to send echoes late. Without timestamps there is the
/// handshake's, if that was measured.
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

    /// `stamp` came back after `rtt`; only the first echo of each counts.
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

    /// The mean, an eighth of it new with each sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The smallest ever.
    pub fn least(&self) -> Option<Duration> {
        self.least
    }
}
