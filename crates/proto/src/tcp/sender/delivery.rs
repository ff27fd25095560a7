//! The sender's part of rate-based congestion control: delivery rate samples and pacing.

use super::extended::Seen;
use super::{Phase, Sender, Timer, Timers};
use crate::congestion::pacing::Bursts;
use crate::congestion::{Delivery, Pacing, Repair, Stamps};
use crate::tcp::small_queues;
use crate::units::{BitRate, Bytes, Duration, Instant};

impl Sender {
    /// Sets up the samples and the pacer that the controller just made wants.
    pub(super) fn set_up_rate_control(&mut self, pacing: Pacing) {
        self.board.rate = self.congestion.wants_delivery().then(Default::default);
        self.pacer = self.congestion.pacer(pacing, Bursts::Segments);
        self.extended |= self.pacer.is_some() || self.board.rate.is_some();
    }

    /// An ACK arrived. When nothing waits to be sent though the window has room, the data that it and the next ones deliver
    /// says nothing about the network (draft-ietf-ccwg-bbr section 4.1.2.4).
    pub(super) fn begin_delivery(&mut self, now: Instant) {
        let idle = self.unsent() < u64::from(self.mss) && self.has_room(self.mss);
        let pipe = self.pipe();
        let Some(rate) = &mut self.board.rate else { return };
        if idle {
            rate.limit_by_application(pipe);
        }
        rate.begin_ack(now);
    }

    /// The ACK was taken in, losses found and the phase decided.
    pub(super) fn finish_delivery(&mut self, seen: &Seen<'_>) {
        let pipe = self.pipe();
        let prior_pipe = seen.before.pipe;
        let Some(rate) = &mut self.board.rate else { return };
        let sample = rate.finish_ack();
        self.congestion.on_delivery(&Delivery {
            now: seen.now,
            sample,
            // Nothing is sent while an ACK is taken in: data that left the pipe and did not arrive was lost.
            lost: prior_pipe.saturating_sub(pipe).saturating_sub(sample.newly_delivered),
            prior_in_flight: prior_pipe,
            in_flight: pipe,
            advanced: seen.advanced,
            repair: match self.phase {
                Phase::Open => Repair::None,
                Phase::Recovery(_) => Repair::Fast,
                Phase::Timeout(_) => Repair::Timeout,
            },
            smoothed_rtt: self.rtt.smoothed(),
            stamps: seen.segment.timestamps.map(Stamps::from),
            receiver_limited: false,
            receiver: None,
        });
        if self.congestion.holds_back()
            && let Some(rate) = &mut self.board.rate
        {
            rate.limit_by_application(pipe);
        }
    }

    /// True when there is something to send that must wait for the pacer; its timer is then set.
    pub(super) fn held_by_pacer(&self, now: Instant, timers: &mut Timers) -> bool {
        let Some(at) = self.pacer.as_ref().and_then(|pacer| pacer.held_until(now)) else { return false };
        if self.unsent() > 0 || self.phase != Phase::Open || self.closing {
            timers.set(Timer::Pacing, at);
        }
        true
    }

    /// The rate at which it paces now; `None` where it does not.
    pub(in crate::tcp) fn pacing_rate(&self) -> Option<BitRate> {
        self.pacer.as_ref()?;
        self.congestion.pacing_rate(self.rtt.smoothed(), self.board.pipe())
    }

    /// Bytes that small queues of `time` let lie in the host's queue, once a rate is known; `None` where it goes on independent
    /// of that queue.
    pub(in crate::tcp) fn small_queue(&self, time: Duration) -> Option<Bytes> {
        if self.unsent() == 0 || self.board.is_empty() || self.phase != Phase::Open {
            return None;
        }
        let rate = self.congestion.pacing_rate(self.rtt.smoothed(), self.board.pipe())?;
        Some(small_queues::limit(time, rate, u64::from(self.mss), self.pacer.is_some()))
    }

    /// `payload` bytes leave.
    pub(super) fn pace(&mut self, payload: u32, now: Instant) {
        if self.pacer.is_none() {
            return;
        }
        let rate = self.pacing_rate();
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(u64::from(payload), now, rate, u64::from(self.mss));
        }
    }
}
