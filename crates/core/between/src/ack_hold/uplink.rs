//! When an uplink will have sent what it was given.
//!
//! `crates/live/kernel/bpf/thin.h` is the same in C. Its numbers have 64 bits, so those here stay within them.

use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

/// A rate is measured over this many times the largest packet, so that the packet in transmission at either end changes
/// it by a quarter at most.
const PACKETS_MEASURED: u64 = 4;
/// Most bytes that are reckoned with; their time in nanoseconds at one bit per second still has 64 bits.
const AMOUNT_MAX: u64 = 1 << 31;
/// Largest rate that is measured: beyond it, nothing waits.
const RATE_MAX: BitRate = BitRate::from_mbps(1_000_000);

/// What a device's queue has done so far, as Linux counts it for each queueing discipline (`struct gnet_stats_basic`,
/// `struct gnet_stats_queue`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Bytes of all packets that have left the queue for the transmitter.
    pub sent: Bytes,
    /// Bytes of the packets that wait.
    pub waiting: Bytes,
}

/// The rate of an uplink, learned from the drain of its queue, and the time at which the queue will be empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uplink {
    /// `None` until packets have waited for long enough.
    rate: Option<BitRate>,
    /// Packets have waited since this time, at which this much had been sent.
    busy: Option<(Instant, Bytes)>,
    /// Largest packet since then, in bytes.
    largest: u64,
    /// The last packet, in bytes.
    last: u64,
    /// When everything that it was given will have been sent.
    free_at: Instant,
    /// When the last of that which is no ACK will have been sent, or earlier.
    data_until: Instant,
}

impl Uplink {
    /// An uplink of a rate that is known.
    pub fn of_rate(rate: BitRate) -> Self {
        Self { rate: Some(rate).filter(|rate| rate.as_bps() > 0), ..Self::default() }
    }

    /// An uplink of a rate that may be known, zero if it is not, and that will be free at `free_at`.
    pub fn new(rate: BitRate, free_at: Instant) -> Self {
        Self { free_at, ..Self::of_rate(rate) }
    }

    /// The queue is as `counts` say. Corrects what was expected of it.
    pub fn observe(&mut self, now: Instant, counts: QueueCounts) {
        self.measure(now, counts);
        let least = now + self.time_for(counts.waiting.0);
        // The packet in transmission waits no longer, and its rest is unknown.
        let most = least + self.time_for(self.last);
        self.free_at = self.free_at.max(least).min(most);
    }

    /// Only a queue that holds packets all the time leaves at the rate of the uplink.
    fn measure(&mut self, now: Instant, counts: QueueCounts) {
        if counts.waiting == Bytes(0) {
            self.busy = None;
            return;
        }
        let Some((since, before)) = self.busy else {
            (self.busy, self.largest) = (Some((now, counts.sent)), self.last);
            return;
        };
        let sent = counts.sent.0.saturating_sub(before.0);
        if sent < PACKETS_MEASURED * self.largest.max(1) {
            return;
        }
        let sample = BitRate::from_amount(Bytes(sent.min(AMOUNT_MAX)), now.saturating_since(since));
        if let Some(sample) = sample.filter(|rate| rate.as_bps() > 0) {
            let sample = sample.min(RATE_MAX);
            let smoothed = |rate: BitRate| BitRate::from_bps((3 * rate.as_bps() + sample.as_bps()) / 4);
            self.rate = Some(self.rate.map_or(sample, smoothed));
            (self.busy, self.largest) = (Some((now, counts.sent)), self.last);
        }
    }

    /// A packet of `len` bytes was queued.
    pub fn note_queued(&mut self, now: Instant, len: u32) {
        self.last = u64::from(len);
        self.largest = self.largest.max(self.last);
        self.free_at = self.free_at.max(now) + self.time_for(self.last);
    }

    /// The last packet is no ACK.
    pub fn note_data(&mut self) {
        self.data_until = self.free_at;
    }

    /// When it will have sent everything. Before its rate is known, that is the past.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Whether it has ACKs to send at `now`, and nothing else. An ACK that waits before the queue loses its place there,
    /// which does not matter among ACKs.
    pub fn has_only_acks(&self, now: Instant) -> bool {
        self.data_until.min(self.free_at) <= now && now < self.free_at
    }

    /// Zero as long as the rate is unknown.
    fn time_for(&self, bytes: u64) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| rate.time_for(Bytes(bytes.min(AMOUNT_MAX))))
    }

    /// Its whole state, for comparisons with the C.
    pub fn words(&self) -> [u64; 8] {
        let (since, sent) = self.busy.unwrap_or_default();
        [
            self.rate.map_or(0, BitRate::as_bps),
            self.busy.is_some().into(),
            since.as_nanos(),
            sent.0,
            self.largest,
            self.last,
            self.free_at.as_nanos(),
            self.data_until.as_nanos(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn counts(sent: u64, waiting: u64) -> QueueCounts {
        QueueCounts { sent: Bytes(sent), waiting: Bytes(waiting) }
    }

    /// 50 bytes each 8 ms are 50 kb/s.
    fn learned() -> Uplink {
        let mut uplink = Uplink::default();
        for packet in 0..10 {
            uplink.note_queued(at(0), 50);
            assert_eq!(uplink.free_at(), at(0), "packet {packet}: its rate is unknown");
        }
        uplink.observe(at(0), counts(50, 450));
        uplink.observe(at(16), counts(150, 350));
        assert_eq!(uplink.rate, None, "two packets are too few");
        uplink.observe(at(32), counts(250, 250));
        uplink
    }

    #[test]
    fn a_queue_that_drains_shows_its_rate() {
        let uplink = learned();
        assert_eq!(uplink.rate, Some(BitRate::from_kbps(50)));
        assert_eq!(uplink.free_at(), at(32 + 40), "250 bytes wait");
    }

    /// A queue that was empty in between has not been sending all the time.
    #[test]
    fn pauses_are_not_measured() {
        let mut uplink = Uplink::default();
        uplink.note_queued(at(0), 50);
        uplink.observe(at(0), counts(0, 50));
        uplink.observe(at(1_000), counts(500, 0));
        uplink.observe(at(2_000), counts(500, 50));
        assert_eq!(uplink.rate, None);
    }

    #[test]
    fn data_counts_until_it_has_left() {
        let mut uplink = learned();
        assert!(uplink.has_only_acks(at(71)) && !uplink.has_only_acks(at(72)), "250 bytes take 40 ms");
        uplink.note_queued(at(32), 100);
        uplink.note_data();
        uplink.note_queued(at(32), 50);
        assert!(
            !uplink.has_only_acks(at(87)) && uplink.has_only_acks(at(88)) && !uplink.has_only_acks(at(96))
        );
        uplink.observe(at(40), counts(600, 0));
        assert!(!uplink.has_only_acks(at(50)), "it has left earlier");
    }

    #[test]
    fn an_empty_queue_is_free_after_the_packet_in_transmission() {
        let mut uplink = learned();
        uplink.observe(at(40), counts(500, 0));
        assert_eq!(uplink.free_at(), at(48), "not the 72 that were expected");
        uplink.note_queued(at(100), 100);
        assert_eq!(uplink.free_at(), at(116));
    }
}
