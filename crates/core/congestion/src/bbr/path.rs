//! A connection for tests, on a path of 10 ms.

use super::common::Version;
use crate::Delivery;
use crate::rate::RateSample;
use tacit_packet::units::{Bytes, Duration, Instant};

pub(super) const MSS: u64 = 1_000;
pub(super) const RTT: Duration = Duration::from_millis(10);

/// All ACKs of a round trip come at once.
pub(super) struct Path<V> {
    pub bbr: V,
    pub now: Instant,
    delivered: u64,
}

impl<V: Version> Path<V> {
    pub fn new(bbr: V) -> Self {
        Self { bbr, now: Instant::ZERO, delivered: 0 }
    }

    /// The ACK for `bytes` that end a round trip in which the path carried as much, with a window's worth still
    /// in flight after it.
    pub fn delivery(&mut self, bytes: u64) -> Delivery {
        let prior_delivered = self.delivered;
        self.now += RTT;
        self.delivered += bytes;
        Delivery {
            now: self.now,
            sample: RateSample {
                over: Some((Bytes(bytes), RTT)),
                prior_delivered,
                newly_delivered: bytes,
                delivered: self.delivered,
                rtt: Some(RTT),
                tx_in_flight: bytes,
                ..RateSample::default()
            },
            prior_in_flight: 2 * bytes,
            in_flight: bytes,
            advanced: true,
            smoothed_rtt: Some(RTT),
            ..Delivery::default()
        }
    }

    /// A round trip at `mbps`.
    pub fn round(&mut self, mbps: u64) {
        let delivery = self.delivery(mbps * 1_250);
        self.bbr.update(&delivery);
    }

    pub fn app_limited_round(&mut self, mbps: u64) {
        let mut delivery = self.delivery(mbps * 1_250);
        delivery.sample.app_limited = true;
        self.bbr.update(&delivery);
    }
}
