//! The congestion window, and the rules of RFC 5681 that several controllers share.

use super::AckSample;
use tacit_packet::units::{BitRate, Bytes, Duration};

/// State that every controller has.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes.
    pub ssthresh: u64,
    /// Sender maximum segment size: payload of a full segment.
    pub mss: u64,
    /// Most segments the window grows by per ACK in slow start (RFC 3465's `L`).
    byte_counting_limit: u64,
}

impl Window {
    /// A window of `initial` bytes for segments of `mss`; a `byte_counting_limit` below 1 counts as 1.
    pub(super) fn new(initial: u64, mss: u32, byte_counting_limit: u32) -> Self {
        Self {
            cwnd: initial,
            // "The initial value of ssthresh SHOULD be set arbitrarily high" (RFC 5681 section 3.1).
            ssthresh: u64::MAX,
            mss: u64::from(mss),
            byte_counting_limit: u64::from(byte_counting_limit.max(1)),
        }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start with appropriate byte counting: grows by the acknowledged bytes, at most by `L` segments (RFC 3465
    /// section 2.2), and at most by one after a timeout, when one ACK may cover a whole window that left the network
    /// long ago (section 2.3). Returns the acknowledged bytes beyond ssthresh.
    pub(super) fn slow_start(&mut self, sample: &AckSample) -> u64 {
        let limit = if sample.after_timeout { 1 } else { self.byte_counting_limit };
        let growth = sample.acked.min(limit * self.mss);
        let room = self.ssthresh - self.cwnd;
        self.cwnd += growth.min(room);
        growth.saturating_sub(room)
    }

    /// "ssthresh = max (FlightSize / 2, 2*SMSS)" (RFC 5681 equation 4).
    pub(super) fn halve_ssthresh(&mut self, flight: u64) {
        self.ssthresh = (flight / 2).max(2 * self.mss);
    }

    /// "cwnd MUST be set to no more than the loss window, LW, which equals 1 full-sized segment"
    /// (RFC 5681 section 3.1).
    pub(super) fn collapse(&mut self) {
        self.cwnd = self.mss;
    }

    /// The pacing rate: 200 % of the window per smoothed round-trip time while far below ssthresh, then 120 % (Linux
    /// `tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`). Uses the bytes `in_flight` if they are more than the window.
    pub(super) fn pacing_rate(&self, smoothed_rtt: Duration, in_flight: u64) -> Option<BitRate> {
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        BitRate::from_amount(Bytes(self.cwnd.max(in_flight) * percent / 100), smoothed_rtt)
    }
}
