//! Delivery rate samples: how fast the network delivered the data that an ACK reports.
//!
//! Samples are kept only for controllers that need them. The method is that of draft-ietf-ccwg-bbr section 4.1,
//! formerly draft-cheng-iccrg-delivery-rate-estimation. Each transmission records how much data had been delivered by
//! then. When its ACK arrives, the data delivered since then, divided by the elapsed time, is a rate. The time is the
//! longer of the sending time and the acknowledgment time of that data, so that neither a burst of data nor bunched
//! ACKs can increase the rate.
//!
//! Each transmission also records how much was in flight and how much had been lost by then, because BBRv3 asks at what
//! amount in flight too much is lost (section 5.5.10.2).

use std::collections::VecDeque;

use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

/// State when a segment was last sent.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    /// P.sent_time.
    sent_at: Instant,
    /// P.delivered.
    delivered: u64,
    /// P.delivered_time.
    delivered_at: Instant,
    /// P.first_sent_time.
    first_sent_at: Instant,
    /// C.inflight before it.
    in_flight: u64,
    /// P.lost.
    lost: u64,
    app_limited: bool,
    resent: bool,
}

/// BBR.LossThresh: more than a fiftieth of the data in flight is too much to lose (draft-ietf-ccwg-bbr section 2.5).
const LOSS_PART: u64 = 50;

/// A packet that was declared lost, with the data that was in flight and was lost around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its payload in bytes.
    pub size: u64,
    /// P.tx_in_flight: bytes in flight once it was sent.
    pub tx_in_flight: u64,
    /// Bytes declared lost since it was sent, with its own.
    pub lost: u64,
    /// The application, not the network, limited the rate when it was sent.
    pub app_limited: bool,
}

impl LostPacket {
    /// InflightAtLoss(): the bytes in flight at which losses crossed the threshold, somewhere in this packet.
    pub fn in_flight_at_loss(&self) -> u64 {
        let before = self.tx_in_flight - self.size;
        let lost_before = self.lost - self.size;
        // (before / 50 - lost_before) / (1 - 1/50)
        before + before.saturating_sub(LOSS_PART * lost_before) / (LOSS_PART - 1)
    }
}

/// Sample of the delivery rate from one ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered since the newest reported segment was sent, and the time that took. `None` if the ACK reports
    /// nothing, or if that time is below the minimum round-trip time, because such a sample is invalid.
    pub over: Option<(Bytes, Duration)>,
    /// C.delivered when that segment was sent.
    pub prior_delivered: u64,
    /// The application, not the network, limited the rate.
    pub app_limited: bool,
    /// Bytes that this ACK newly acknowledges, cumulatively or selectively.
    pub newly_delivered: u64,
    /// C.delivered: total delivered bytes.
    pub delivered: u64,
    /// Round-trip time of the newest reported segment, unless it was sent twice.
    pub rtt: Option<Duration>,
    /// Bytes in flight once the newest reported segment was sent.
    pub tx_in_flight: u64,
    /// Bytes declared lost since then.
    pub lost: u64,
    /// Bytes declared lost since the last sample.
    pub newly_lost: u64,
    /// The first of the packets declared lost since the last sample with which more was lost than BBR.LossThresh.
    pub heavy_loss: Option<LostPacket>,
}

impl RateSample {
    /// The delivery rate.
    pub fn rate(&self) -> Option<BitRate> {
        let (bytes, span) = self.over?;
        BitRate::from_amount(bytes, span)
    }

    /// IsInflightTooHigh() for the newest reported segment.
    pub fn loses_too_much(&self) -> bool {
        is_too_much(self.lost, self.tx_in_flight)
    }
}

fn is_too_much(lost: u64, in_flight: u64) -> bool {
    lost * LOSS_PART > in_flight
}

/// State of the samples of one connection. Snapshots are in the order of the scoreboard's segments.
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    snapshots: VecDeque<Snapshot>,
    /// C.delivered and C.delivered_time.
    delivered: u64,
    delivered_at: Instant,
    /// C.first_sent_time: when the newest segment reported so far was sent.
    first_sent_at: Instant,
    /// Data sent while less than this was delivered counts as limited by the application.
    app_limited_until: Option<u64>,
    /// Minimum round-trip time.
    rtt_min: Option<Duration>,
    /// C.lost, and its value at the last sample.
    lost: u64,
    lost_before: u64,
    heavy_loss: Option<LostPacket>,
    /// The current ACK: its time of arrival, the bytes it reports, and the newest reported segment, with its length.
    now: Instant,
    newly_delivered: u64,
    newest: Option<(Snapshot, u64)>,
}

impl RateSampler {
    /// Records that a segment of new data is sent, with `in_flight` bytes in flight before it.
    pub fn on_sent(&mut self, now: Instant, in_flight: u64) {
        let snapshot = self.snapshot(now, in_flight, false);
        self.snapshots.push_back(snapshot);
    }

    /// Records that the segment at index `place` is retransmitted.
    pub fn on_resent(&mut self, place: usize, now: Instant, in_flight: u64) {
        let snapshot = self.snapshot(now, in_flight, true);
        self.snapshots[place] = snapshot;
    }

    fn snapshot(&mut self, now: Instant, in_flight: u64, resent: bool) -> Snapshot {
        if in_flight == 0 {
            // A new flight begins; the idle time before it does not count.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight,
            lost: self.lost,
            app_limited: self.app_limited_until.is_some(),
            resent,
        }
    }

    /// Nothing is left to send although there is room; `in_flight` bytes are in flight.
    pub fn limit_by_application(&mut self, in_flight: u64) {
        self.app_limited_until = Some((self.delivered + in_flight).max(1));
    }

    /// True while data being sent counts as limited by the application.
    pub fn limited_by_application(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Starts processing an ACK.
    pub fn begin_ack(&mut self, now: Instant) {
        self.now = now;
        self.newly_delivered = 0;
        self.newest = None;
    }

    /// The segment at index `place`, of `bytes`, is reported for the first time.
    pub fn on_delivered(&mut self, place: usize, bytes: u64) {
        let snapshot = self.snapshots[place];
        self.on_partly_delivered(bytes);
        if self.newest.is_none_or(|(newest, _)| snapshot.sent_at >= newest.sent_at) {
            self.newest = Some((snapshot, bytes));
            self.first_sent_at = snapshot.sent_at;
        }
    }

    /// The segment at index `place`, of `bytes`, is declared lost.
    pub fn on_lost(&mut self, place: usize, bytes: u64) {
        let snapshot = self.snapshots[place];
        self.lost += bytes;
        let packet = LostPacket {
            size: bytes,
            tx_in_flight: snapshot.in_flight + bytes,
            lost: self.lost - snapshot.lost,
            app_limited: snapshot.app_limited,
        };
        if self.heavy_loss.is_none() && is_too_much(packet.lost, packet.tx_in_flight) {
            self.heavy_loss = Some(packet);
        }
    }

    /// Part of a segment is reported: its `bytes` count, but its time of sending is used with the rest.
    pub fn on_partly_delivered(&mut self, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = self.now;
        self.newly_delivered += bytes;
    }

    /// Removes the first segment.
    pub fn forget_first(&mut self) {
        self.snapshots.pop_front();
    }

    /// Ends the ACK and returns its sample.
    pub fn finish_ack(&mut self) -> RateSample {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let mut sample = RateSample {
            newly_delivered: self.newly_delivered,
            delivered: self.delivered,
            newly_lost: self.lost - self.lost_before,
            heavy_loss: self.heavy_loss.take(),
            ..RateSample::default()
        };
        self.lost_before = self.lost;
        let Some((newest, bytes)) = self.newest else { return sample };
        sample.tx_in_flight = newest.in_flight + bytes;
        sample.lost = self.lost - newest.lost;
        sample.prior_delivered = newest.delivered;
        sample.app_limited = newest.app_limited;
        if !newest.resent {
            let rtt = self.now.saturating_since(newest.sent_at);
            sample.rtt = Some(rtt);
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        let sending = newest.sent_at.saturating_since(newest.first_sent_at);
        let acking = self.delivered_at.saturating_since(newest.delivered_at);
        let span = sending.max(acking);
        // Data that was delivered in less than the minimum round-trip time arrived with an earlier transmission, or was
        // not lost when it was retransmitted; it gives no rate.
        if span.as_nanos() > 0 && self.rtt_min.is_some_and(|least| span >= least) {
            sample.over = Some((Bytes(self.delivered - newest.delivered), span));
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + MS(millis)
    }

    /// Acknowledges the first `segments` of 1000 bytes with one ACK.
    fn acknowledge(sampler: &mut RateSampler, now: Instant, segments: usize) -> RateSample {
        sampler.begin_ack(now);
        for _ in 0..segments {
            sampler.on_delivered(0, 1000);
            sampler.forget_first();
        }
        sampler.finish_ack()
    }

    #[test]
    fn a_steady_flow_is_measured_over_one_round_trip() {
        let mut sampler = RateSampler::default();
        // One segment per millisecond over a path of 10 ms.
        let mut last = RateSample::default();
        for now in 0..40 {
            if now >= 10 {
                last = acknowledge(&mut sampler, at(now), 1);
            }
            sampler.on_sent(at(now), 1000 * u64::from(now > 0));
        }
        assert_eq!(last.rtt, Some(MS(10)));
        assert_eq!(last.over, Some((Bytes(10_000), MS(10))));
        assert_eq!(last.rate(), Some(BitRate::from_mbps(8)));
    }

    #[test]
    fn acks_that_come_bunched_do_not_raise_the_rate() {
        let mut sampler = RateSampler::default();
        for now in 0..20 {
            sampler.on_sent(at(now), 1000 * u64::from(now > 0));
        }
        // All 20 ACKs are held back and arrive at 60 ms: 20 segments in 60 ms, not in an instant.
        let first = acknowledge(&mut sampler, at(60), 10);
        let second = acknowledge(&mut sampler, at(60), 10);
        assert_eq!(first.over, Some((Bytes(10_000), MS(60))));
        assert_eq!(second.over, Some((Bytes(20_000), MS(60))));
    }

    #[test]
    fn a_burst_of_sending_is_measured_by_its_acks_and_slow_sending_by_itself() {
        let mut sampler = RateSampler::default();
        for _ in 0..10 {
            sampler.on_sent(at(0), 1);
        }
        let first = acknowledge(&mut sampler, at(10), 1);
        sampler.on_sent(at(10), 9000);
        // The rest of the burst arrives at intervals of 1 ms.
        for now in 11..20 {
            acknowledge(&mut sampler, at(now), 1);
        }
        let next = acknowledge(&mut sampler, at(20), 1);
        assert_eq!(first.over, Some((Bytes(1000), MS(10))));
        assert_eq!(next.over, Some((Bytes(10_000), MS(10))));
        // 30 ms between two sends are due to the sender.
        sampler.on_sent(at(20), 1);
        sampler.on_sent(at(50), 1000);
        acknowledge(&mut sampler, at(60), 1);
        assert_eq!(acknowledge(&mut sampler, at(60), 1).over, Some((Bytes(2000), MS(40))));
    }

    #[test]
    fn app_limited_packets_stay_marked_until_they_are_delivered() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(at(0), 0);
        sampler.limit_by_application(1000);
        sampler.on_sent(at(5), 1000);
        assert!(!acknowledge(&mut sampler, at(10), 1).app_limited);
        assert!(acknowledge(&mut sampler, at(15), 1).app_limited);
        sampler.on_sent(at(20), 0);
        assert!(!acknowledge(&mut sampler, at(30), 1).app_limited);
    }

    #[test]
    fn a_retransmitted_packet_has_a_rate_but_no_round_trip() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(at(0), 0);
        sampler.on_sent(at(0), 1000);
        acknowledge(&mut sampler, at(10), 1);
        sampler.on_resent(0, at(20), 1000);
        let sample = acknowledge(&mut sampler, at(30), 1);
        assert_eq!(sample.rtt, None);
        assert_eq!(sample.over, Some((Bytes(1000), MS(20))));
    }

    #[test]
    fn less_than_a_round_trip_is_no_sample() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(at(0), 0);
        acknowledge(&mut sampler, at(10), 1);
        sampler.on_sent(at(10), 0);
        sampler.on_resent(0, at(15), 0);
        // The ACK of the first transmission arrives 5 ms after the second transmission.
        assert_eq!(acknowledge(&mut sampler, at(20), 1).over, None);
    }

    /// 100 segments are in flight: the third that is lost crosses 2 %, at 99 + (99 / 50 - 2) / 0.98 segments of 1000 bytes.
    #[test]
    fn the_first_packet_that_crosses_the_threshold_is_told() {
        let mut sampler = RateSampler::default();
        for sent in 0..100 {
            sampler.on_sent(at(0), 1000 * sent);
        }
        for sent in 0..3 {
            sampler.on_sent(at(1), 99_000 + sent);
        }
        sampler.begin_ack(at(10));
        sampler.on_lost(100, 1000);
        sampler.on_lost(101, 1000);
        assert_eq!(sampler.finish_ack().heavy_loss, None);
        sampler.begin_ack(at(11));
        sampler.on_lost(102, 1000);
        sampler.on_lost(99, 1000);
        let sample = sampler.finish_ack();
        let packet = sample.heavy_loss.expect("three of 100");
        assert_eq!((packet.tx_in_flight, packet.lost, sample.newly_lost), (100_002, 3000, 2000));
        assert_eq!(packet.in_flight_at_loss(), 99_002);
        let earlier = LostPacket { size: 1000, tx_in_flight: 50_000, lost: 1001, app_limited: false };
        assert_eq!(earlier.in_flight_at_loss(), 49_000 + (49_000 - 50) / 49);
        assert_eq!(sampler.finish_ack().heavy_loss, None, "told once");
    }

    #[test]
    fn losses_count_from_the_sending_of_the_newest_packet() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(at(0), 0);
        sampler.on_lost(0, 1000);
        sampler.on_sent(at(1), 7000);
        sampler.on_sent(at(2), 8000);
        sampler.on_lost(1, 500);
        sampler.begin_ack(at(10));
        sampler.on_delivered(2, 1000);
        let sample = sampler.finish_ack();
        assert_eq!((sample.lost, sample.newly_lost, sample.tx_in_flight), (500, 1500, 9000));
        assert!(sample.loses_too_much());
    }
}
