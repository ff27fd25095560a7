//! Spatial streams that each carry their own aggregate in parallel, as in the emulator of the FWP paper (section V). No
//! standard does this; the standards spread one A-MPDU over all streams.
//!
//! Each stream has its own window, sequence numbers and limits, kept by an [`Originator`] of its own. All streams share
//! the queue of the first. Waiting packets are assigned in runs of equal length, so that a PPDU without losses is
//! passed up in order, and streams with a stalled window take fewer.

use tacit_packet::units::{Duration, Instant};

use super::block_ack::Recipient;
use super::originator::{Delays, Need, Originator, Settled};
use super::plan::PpduPlan;
use crate::packet::Holders;
use crate::wifi::bitmap::AckBitmap;

impl Originator {
    /// Whether each spatial stream has its own aggregate.
    pub fn has_stream_queues(&self) -> bool {
        !self.others.is_empty()
    }

    /// The originators of all streams; only itself if all streams carry one aggregate.
    pub fn streams(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }

    /// Settles each stream; returns the combined outcome.
    pub fn settle_streams(&mut self, mut settle: impl FnMut(&mut Self) -> Settled) -> Settled {
        let mut settled = settle(self);
        for stream in &mut self.others {
            settled.add(settle(stream));
        }
        settled
    }

    /// An acknowledgment arrived that says, per stream, which MPDUs have arrived; `streams` are the recipients.
    pub fn acknowledged_by_stream(
        &mut self,
        streams: &[Recipient],
        retry_limit: u32,
        oldest: Instant,
        holders: &mut Holders,
    ) -> Settled {
        let mut recipients = streams.iter();
        self.settle_streams(|stream| {
            let (start, bitmap) = recipients.next().map_or((0, AckBitmap::new(0)), Recipient::scoreboard);
            stream.block_acknowledged(start, &bitmap, retry_limit, oldest, holders)
        })
    }

    pub(super) fn need_of_streams(&self) -> Need {
        if self.streams().any(|stream| stream.request_due) {
            Need::BlockAckRequest
        } else if self.asks_due {
            Need::RepairRequest
        } else if !self.upper.queue.is_empty() || self.streams().any(|stream| stream.upper.waiting > 0) {
            Need::Data
        } else {
            Need::Nothing
        }
    }

    /// Assembles a PPDU with one aggregate per stream, in total at most `bytes` bytes if there is a limit. It lasts as
    /// long as the longest aggregate.
    pub(super) fn assemble_streams(
        &mut self,
        now: Instant,
        ages: (Instant, Duration),
        bytes: Option<u32>,
        delays: &mut Delays<'_>,
    ) {
        let mut others = std::mem::take(&mut self.others);
        let count = others.len() as u32 + 1;
        let most = bytes.map(|bytes| bytes / count);
        self.assemble_part(now, ages, (count, most), delays);
        let mut plan = self.plan;
        for (stream, left) in others.iter_mut().zip((1..count).rev()) {
            std::mem::swap(&mut self.upper.queue, &mut stream.upper.queue);
            stream.assemble_part(now, ages, (left, most), delays);
            std::mem::swap(&mut self.upper.queue, &mut stream.upper.queue);
            plan.put_beside(&stream.plan);
        }
        self.others = others;
        // A byte on one stream takes as long as one byte on every stream.
        plan.bytes *= count;
        plan.more_data =
            !self.upper.queue.is_empty() || self.streams().any(|stream| stream.upper.waiting > 0);
        plan.sync = self.streams().any(|stream| stream.sync_due);
        self.last_class = plan.class();
        self.plan = plan;
    }

    /// Assembles an aggregate of at most `most` bytes from this stream's retransmissions and its share of the queue;
    /// `left` streams are still to be served.
    fn assemble_part(
        &mut self,
        now: Instant,
        ages: (Instant, Duration),
        (left, most): (u32, Option<u32>),
        delays: &mut Delays<'_>,
    ) {
        let part = (self.upper.queue.len() as u32).div_ceil(left);
        if self.upper.waiting + part == 0 {
            self.plan = PpduPlan::default();
            return;
        }
        let usual = self.limits;
        self.limits = usual.at_most(self.upper.waiting + part);
        if let Some(most) = most {
            self.limits = self.limits.within(most);
        }
        self.assemble(now, ages, 0, delays);
        self.limits = usual;
    }
}

impl Settled {
    fn add(&mut self, other: Self) {
        let Self { first_try, after_retry, bytes, dropped, mpdus } = other;
        self.first_try += first_try;
        self.after_retry += after_retry;
        self.bytes += bytes;
        self.dropped += dropped;
        self.mpdus += mpdus;
    }
}

impl PpduPlan {
    /// Adds an aggregate that is sent at the same time, on another spatial stream or in another resource unit.
    pub fn put_beside(&mut self, other: &Self) {
        self.mpdus += other.mpdus;
        self.msdus += other.msdus;
        self.bytes = self.bytes.max(other.bytes);
        self.padded_bytes = self.padded_bytes.max(other.padded_bytes);
        self.mpdu_bytes += other.mpdu_bytes;
        self.retry_bytes += other.retry_bytes;
        self.ack_bytes += other.ack_bytes;
        self.ack_packet_bytes += other.ack_packet_bytes;
        self.retries += other.retries;
        self.tcp_acks += other.tcp_acks;
        self.expired += other.expired;
        self.discarded += other.discarded;
    }
}

#[cfg(test)]
mod tests {
    use tacit_packet::units::BitRate;

    use super::*;
    use crate::packet::PacketRef;
    use crate::queue::QueueConfig;
    use crate::waits::Waits;
    use crate::wifi::config::LinkAcks;
    use crate::wifi::mac::aggregation::AggregationLimits;
    use crate::wifi::mac::block_ack::BlockAckRecipient;
    use crate::wifi::phy::{Mode, Standard};

    /// Three streams with aggregates and windows of 4 MPDUs.
    struct Harness {
        originator: Originator,
        recipients: Vec<Recipient>,
        waits: Waits<8>,
        holders: Holders,
    }

    impl Harness {
        fn new(packets: u32) -> Self {
            let phy = Standard::N.phy();
            let mode = Mode::for_rate(Standard::N, BitRate::from_mbps(150)).expect("802.11n has it");
            let control = phy.control_mode(&mode);
            let modes = [&mode, &control];
            let limits = AggregationLimits::new(phy, phy.mac_header_len(), modes, (Some(4), 64), None, None)
                .of_stream(3)
                .with_window(4);
            let one = || Originator::new(mode, control, limits, LinkAcks::Normal, QueueConfig::default());
            let mut originator = one();
            (0..2).for_each(|_| originator.add_stream(one()));
            let mut holders = Holders::default();
            for _ in 0..packets {
                // No place is free yet, so the packets are numbered from 0.
                let packet = PacketRef { id: holders.insert(), len: 1_000, ..PacketRef::default() };
                assert!(originator.enqueue(Instant::ZERO, packet, &mut holders).0);
            }
            let recipients = (0..3).map(|_| Recipient::Block(BlockAckRecipient::new(64))).collect();
            Self { originator, recipients, waits: Waits::new(), holders }
        }

        /// Sends a PPDU with the losses in `lost` per stream; returns the packets of each stream, and those passed up.
        fn exchange(&mut self, lost: &[(usize, u32)]) -> (Vec<Vec<u32>>, Vec<u32>) {
            let mut time = Duration::ZERO;
            let holders = &mut self.holders;
            let delays = &mut Delays { holders, waits: &mut self.waits, time: &mut time };
            self.originator.build(Instant::ZERO, Duration::from_secs(1), delays);
            let (mut carried, mut up) = (Vec::new(), Vec::new());
            for (number, (stream, recipient)) in
                self.originator.streams().zip(&mut self.recipients).enumerate()
            {
                carried.push(Vec::new());
                for mpdu in stream.in_flight() {
                    let packet = mpdu.msdus.parts().0.id;
                    carried[number].push(packet);
                    if !lost.contains(&(number, packet)) {
                        let received = (mpdu.sequence, &mpdu.msdus);
                        let pass_up = &mut |packet: PacketRef| up.push(packet.id);
                        recipient.receive(Instant::ZERO, received, &mut self.holders, pass_up);
                    }
                }
            }
            self.originator.acknowledged_by_stream(&self.recipients, 7, Instant::ZERO, &mut self.holders);
            (carried, up)
        }
    }

    /// A stream whose first MPDU is lost can only resend it; the other streams continue.
    #[test]
    fn a_stream_stalls_alone() {
        let mut h = Harness::new(100);
        let (carried, up) = h.exchange(&[(1, 4)]);
        assert_eq!(carried, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]);
        assert_eq!(up, [0, 1, 2, 3, 8, 9, 10, 11]);
        let (carried, up) = h.exchange(&[(1, 4)]);
        assert_eq!(carried, [vec![12, 13, 14, 15], vec![4], vec![16, 17, 18, 19]]);
        assert_eq!(up, [12, 13, 14, 15, 16, 17, 18, 19]);
        // The missing MPDU arrived: the stream continues after the packets that waited for it.
        let (_, up) = h.exchange(&[]);
        assert_eq!(up, [20, 21, 22, 23, 4, 5, 6, 7, 24, 25, 26, 27]);
        let plan = h.originator.plan();
        assert_eq!((plan.mpdus, plan.retries), (9, 1));
        assert_eq!(h.originator.backlog(), 100 - 28);
    }

    /// The waiting packets are spread evenly, and the PPDU lasts as long as the longest part at a third of the rate.
    #[test]
    fn few_packets_are_spread_over_the_streams() {
        let mut h = Harness::new(4);
        let (carried, up) = h.exchange(&[]);
        assert_eq!(carried, [vec![0, 1], vec![2], vec![3]]);
        assert_eq!(up, [0, 1, 2, 3]);
        let [mpdu, subframe] = [1_038, 1_044];
        assert_eq!(h.originator.plan().bytes, 3 * (subframe + 4 + mpdu));
        assert_eq!(h.originator.need(), Need::Nothing);
        let (carried, _) = h.exchange(&[]);
        assert_eq!(carried, [[0_u32; 0]; 3]);
    }
}
