//! Spatial streams that carry an aggregate each, beside one another: the emulator of the FWP paper (section V). No
//! standard has them; it spreads one A-MPDU over all streams.
//!
//! Each stream has a window, numbers and limits of its own, which an [`Originator`] of its own keeps; all share the queue
//! of the first. What waits there is dealt out in runs of equal length, so that a PPDU of which nothing is lost is passed
//! up in order, and streams whose window has stalled take less.

use tacit_proto::units::{Duration, Instant};

use super::block_ack::Recipient;
use super::originator::{Delays, Need, Originator, Settled};
use super::plan::PpduPlan;
use crate::payload::Payload;

impl<P: Payload> Originator<P> {
    /// Whether each spatial stream has an aggregate of its own.
    #[inline]
    pub fn has_stream_queues(&self) -> bool {
        !self.others.is_empty()
    }

    /// What is sent on each stream; itself where all streams carry one aggregate.
    pub fn streams(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }

    /// Settles each stream; returns what became of all.
    #[inline]
    pub fn settle_streams(&mut self, mut settle: impl FnMut(&mut Self) -> Settled) -> Settled {
        let mut settled = settle(self);
        for stream in &mut self.others {
            settled.add(settle(stream));
        }
        settled
    }

    /// An acknowledgment came that says of each stream what its recipient, one of `streams`, has got.
    pub fn acknowledged_by_stream(
        &mut self,
        streams: &[Recipient<P>],
        retry_limit: u32,
        oldest: Instant,
    ) -> Settled {
        let mut recipients = streams.iter();
        self.settle_streams(|stream| {
            let (start, bitmap) = recipients.next().map_or((0, 0), Recipient::scoreboard);
            stream.block_acknowledged(start, bitmap, retry_limit, oldest)
        })
    }

    pub(super) fn need_of_streams(&self) -> Need {
        if self.streams().any(|stream| stream.request_due) {
            Need::BlockAckRequest
        } else if !self.queue.is_empty() || self.streams().any(|stream| stream.waiting > 0) {
            Need::Data
        } else {
            Need::Nothing
        }
    }

    /// Puts a PPDU together of an aggregate for each stream, `octets` at most in what the PPDU has time for. It lasts as
    /// long as the longest of them.
    pub(super) fn assemble_streams(
        &mut self,
        now: Instant,
        ages: (Instant, Duration),
        octets: u32,
        delays: &mut Delays<'_>,
    ) {
        let mut others = std::mem::take(&mut self.others);
        let count = others.len() as u32 + 1;
        let most = octets / count;
        self.assemble_part(now, ages, (count, most), delays);
        let mut plan = self.plan;
        for (stream, left) in others.iter_mut().zip((1..count).rev()) {
            std::mem::swap(&mut self.queue, &mut stream.queue);
            stream.assemble_part(now, ages, (left, most), delays);
            std::mem::swap(&mut self.queue, &mut stream.queue);
            plan.put_beside(&stream.plan);
        }
        self.others = others;
        // An octet of one stream takes as long as one of each stream.
        plan.octets *= count;
        plan.more_data = !self.queue.is_empty() || self.streams().any(|stream| stream.waiting > 0);
        plan.sync = self.streams().any(|stream| stream.sync_due);
        self.last_class = plan.class();
        self.plan = plan;
    }

    /// Puts an aggregate of at most `most` octets together from what this stream has to send again, and from its part of
    /// the queue, where `left` streams have not had theirs.
    fn assemble_part(
        &mut self,
        now: Instant,
        ages: (Instant, Duration),
        (left, most): (u32, u32),
        delays: &mut Delays<'_>,
    ) {
        let part = (self.queue.len() as u32).div_ceil(left);
        if self.waiting + part == 0 {
            self.plan = PpduPlan::default();
            return;
        }
        let usual = self.limits;
        self.limits = usual.at_most(self.waiting + part);
        if most < u32::MAX / left {
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
    /// Adds an aggregate that goes on another spatial stream.
    fn put_beside(&mut self, other: &Self) {
        self.mpdus += other.mpdus;
        self.msdus += other.msdus;
        self.octets = self.octets.max(other.octets);
        self.padded_octets = self.padded_octets.max(other.padded_octets);
        self.mpdu_octets += other.mpdu_octets;
        self.retry_octets += other.retry_octets;
        self.ack_octets += other.ack_octets;
        self.ack_packet_octets += other.ack_packet_octets;
        self.retries += other.retries;
        self.tcp_acks += other.tcp_acks;
        self.expired += other.expired;
        self.discarded += other.discarded;
    }
}
