//! Delivery rate, from the times at which data was sent and acknowledged
//! (draft-cheng-iccrg-delivery-rate-estimation-02). A QUIC sender learns about arrivals only from ACKs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Packets sent within a millisecond, without an ACK in between, share one record.
const RECORD_EVERY: Duration = Duration::from_millis(1);

/// Four seconds without an ACK at one record per millisecond. Further packets count with the newest record.
const RECORDS_MAX: usize = 4_096;

/// State of delivery when packets were sent.
#[derive(Clone, Copy, Debug)]
struct Record {
    sent: Instant,
    delivered_bytes: u64,
    /// When the last of those was acknowledged.
    delivered_at: Instant,
    /// When the newest of those was sent.
    delivered_sent: Instant,
}

/// Delivery rate sample of a batch of ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Total bytes delivered when the newest packet of the batch was sent.
    pub delivered_before_bytes: u64,
    /// Bytes per second since then; `None` if no time passed.
    pub rate: Option<u64>,
    /// Time over which the rate was measured.
    pub interval: Duration,
}

/// Counts delivered bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    delivered_bytes: u64,
    /// `None` while nothing is in flight: the next packet starts the clock.
    last: Option<Last>,
    records: VecDeque<Record>,
}

/// The last batch of ACKs.
#[derive(Clone, Copy, Debug)]
struct Last {
    acked: Instant,
    sent: Instant,
}

impl Delivery {
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    pub(crate) fn on_sent(&mut self, now: Instant) {
        let last = *self.last.get_or_insert(Last { acked: now, sent: now });
        let is_known = self.records.back().is_some_and(|record| {
            record.delivered_bytes == self.delivered_bytes
                && now.saturating_duration_since(record.sent) < RECORD_EVERY
        });
        if is_known || self.records.len() >= RECORDS_MAX {
            return;
        }
        self.records.push_back(Record {
            sent: now,
            delivered_bytes: self.delivered_bytes,
            delivered_at: last.acked,
            delivered_sent: last.sent,
        });
    }

    pub(crate) fn on_acked(&mut self, bytes: u64) {
        self.delivered_bytes = self.delivered_bytes.saturating_add(bytes);
    }

    /// Ends a batch: all packets that it acknowledges have been counted, and the newest one was sent at `sent`. Returns
    /// `None` for a packet without a record, as after an idle time.
    pub(crate) fn on_end_acks(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes_in_flight: u64,
    ) -> Option<Sample> {
        while self.records.get(1).is_some_and(|next| next.sent <= sent) {
            self.records.pop_front();
        }
        let record = self.records.front().copied().filter(|record| record.sent <= sent);
        let sample = record.map(|record| {
            // The longer of both intervals: ACKs that arrive together must not look like a fast path (section 3.2).
            let interval = now
                .saturating_duration_since(record.delivered_at)
                .max(sent.saturating_duration_since(record.delivered_sent));
            let rate = bytes_per_s(self.delivered_bytes - record.delivered_bytes, interval);
            Sample { delivered_before_bytes: record.delivered_bytes, rate, interval }
        });
        if bytes_in_flight == 0 {
            self.last = None;
            self.records.clear();
        } else {
            let newest = self.last.map_or(sent, |last| last.sent.max(sent));
            self.last = Some(Last { acked: now, sent: newest });
        }
        sample
    }
}

/// `None` if no time passed.
pub(crate) fn bytes_per_s(bytes: u64, interval: Duration) -> Option<u64> {
    let per_s = (u128::from(bytes) * 1_000_000_000).checked_div(interval.as_nanos())?;
    Some(u64::try_from(per_s).unwrap_or(u64::MAX))
}

/// Bytes that arrive in `time` at `rate` bytes per second.
pub(crate) fn bytes_in(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_nanos() / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::start;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_rate_is_of_the_time_between_acks() {
        let (began, mut delivery) = (start(), Delivery::default());
        // 1,000 bytes per millisecond; ACKs arrive 10 ms later, one for every five packets.
        let mut rates = Vec::new();
        for tick in 0_u32..40 {
            let now = began + MS * tick;
            if tick >= 14 && (tick - 14) % 5 == 0 {
                delivery.on_acked(5_000);
                let sent = now - MS * 10;
                rates.extend(delivery.on_end_acks(now, sent, 10_000).and_then(|sample| sample.rate));
            }
            delivery.on_sent(now);
        }
        // The first samples include the start, when nothing had arrived.
        assert_eq!(rates.last(), Some(&1_000_000));
        assert!(rates.iter().all(|rate| *rate <= 1_000_000), "{rates:?}");
    }

    #[test]
    fn acks_that_arrive_together_are_no_fast_path() {
        let (began, mut delivery) = (start(), Delivery::default());
        for tick in 0_u32..20 {
            delivery.on_sent(began + MS * tick);
        }
        delivery.on_acked(1_000);
        delivery.on_end_acks(began + MS * 50, began, 20_000);
        delivery.on_sent(began + MS * 50);
        delivery.on_acked(19_000);
        let sample = delivery.on_end_acks(began + MS * 51, began + MS * 19, 1_000).unwrap();
        // Sent within 19 ms, acknowledged within 51 ms.
        assert_eq!(sample.interval, MS * 51);
        assert_eq!(sample.rate, Some(20_000 * 1_000 / 51));
    }

    #[test]
    fn idle_time_is_not_measured() {
        let (began, mut delivery) = (start(), Delivery::default());
        delivery.on_sent(began);
        delivery.on_acked(1_000);
        delivery.on_end_acks(began + MS * 10, began, 0);
        let later = began + MS * 60_000;
        delivery.on_sent(later);
        delivery.on_acked(1_000);
        let sample = delivery.on_end_acks(later + MS * 10, later, 0).unwrap();
        assert_eq!(sample.rate, Some(100_000));
    }

    /// ACKs are packets as well, and no ACK acknowledges them.
    #[test]
    fn packets_never_acknowledged_take_bounded_memory() {
        let (began, mut delivery) = (start(), Delivery::default());
        for tick in 0..100_000 {
            delivery.on_sent(began + MS * tick);
        }
        assert_eq!(delivery.records.len(), RECORDS_MAX);
        delivery.on_acked(1_000);
        delivery.on_end_acks(began + MS * 100_010, began + MS * 99_999, 1_000);
        assert_eq!(delivery.records.len(), 1);
    }
}
