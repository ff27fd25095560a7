//! BBR.inflight_longterm: the most in flight with which the losses were tolerable (draft sections 5.3.3.5 and 5.5.10.2).

use super::{BETA, HEADROOM};
use crate::bbr::parts::UNIT;
use crate::rate::LostPacket;

/// The growth of a probe doubles at most this many times.
const MOST_DOUBLINGS: u32 = 30;

#[derive(Clone, Debug, Default)]
pub(super) struct LongTerm {
    /// BBR.inflight_longterm in bytes; `None` is infinity.
    pub in_flight: Option<u64>,
    /// BBR.bw_probe_up_rounds.
    doublings: u32,
    /// BBR.bw_probe_up_acked.
    acked: u64,
    /// BBR.probe_up_acked_per_inc: bytes that must be acknowledged for a segment more. `None` is infinity.
    acked_per_segment: Option<u64>,
}

impl LongTerm {
    /// A window of `cwnd` bytes is all that this allows.
    pub fn is_reached_by(&self, cwnd: u64) -> bool {
        self.in_flight.is_some_and(|most| cwnd >= most)
    }

    /// InflightWithHeadroom(): less 15 %, and a segment at least, which others can use; `least` at least.
    pub fn with_headroom(&self, mss: u64, least: u64) -> Option<u64> {
        let most = self.in_flight?;
        let headroom = (most * HEADROOM / UNIT).max(mss);
        Some(most.saturating_sub(headroom).max(least))
    }

    /// HandleInflightTooHigh(): too much was lost around `packet`. Cuts to what was in flight then, and not below 0.7 of
    /// the `target`.
    pub fn cut(&mut self, packet: &LostPacket, target: u64) {
        if !packet.app_limited {
            self.in_flight = Some(packet.in_flight_at_loss().max(target * BETA / UNIT));
        }
    }

    /// A probe refills the pipe: its growth starts over.
    pub fn refill(&mut self) {
        self.doublings = 0;
        self.acked = 0;
    }

    /// A probe is over.
    pub fn stop_growing(&mut self) {
        self.acked_per_segment = None;
    }

    /// RaiseInflightLongtermSlope(): 1, 2, 4, … segments in a round.
    pub fn raise_slope(&mut self, cwnd: u64, mss: u64) {
        self.acked_per_segment = Some((cwnd >> self.doublings).max(mss));
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    /// A round lost little with `in_flight` bytes in flight.
    pub fn raise_to(&mut self, in_flight: u64) {
        self.in_flight = self.in_flight.map(|most| most.max(in_flight));
    }

    /// ProbeInflightLongtermUpward() in a window that this limits, with `acked` bytes.
    pub fn grow(&mut self, acked: u64, mss: u64) {
        let (Some(most), Some(step)) = (self.in_flight, self.acked_per_segment) else { return };
        self.acked += acked;
        self.in_flight = Some(most + self.acked / step * mss);
        self.acked %= step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// Section 5.3.3.5: one segment in the first round, then two, four and so on, while the bound limits the window.
    #[test]
    fn the_bound_grows_by_doubling_steps() {
        let mut long = LongTerm { in_flight: Some(128 * MSS), ..LongTerm::default() };
        let mut grown = Vec::new();
        for _ in 0..5 {
            let before = long.in_flight.unwrap();
            long.raise_slope(128 * MSS, MSS);
            for _ in 0..64 {
                long.grow(2 * MSS, MSS);
            }
            grown.push((long.in_flight.unwrap() - before) / MSS);
        }
        assert_eq!(grown, [1, 2, 4, 8, 16]);
        long.refill();
        long.raise_slope(128 * MSS, MSS);
        long.grow(127 * MSS, MSS);
        assert_eq!(long.in_flight, Some(159 * MSS), "from one again");
        long.stop_growing();
        long.grow(1_000 * MSS, MSS);
        assert_eq!(long.in_flight, Some(159 * MSS));
    }
}
