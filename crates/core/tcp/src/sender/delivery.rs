//! The sender's part of rate-based congestion control: delivery rate samples and pacing.

use super::extended::Seen;
use super::{Phase, Sender, Timer, Timers};
use crate::small_queues;
use tacit_congestion::pacing::Bursts;
use tacit_congestion::{Delivery, Pacing, Repair, Stamps};
use tacit_packet::tcp::Timestamps;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};

impl Sender {
    /// Creates the rate samples and the pacer that the new controller needs.
    pub(super) fn set_up_rate_control(&mut self, pacing: Pacing) {
        self.board.rate = self.congestion.wants_delivery().then(Default::default);
        self.pacer = self.congestion.pacer(pacing, Bursts::Segments);
        self.extended |= self.pacer.is_some() || self.board.rate.is_some();
    }

    /// An ACK arrived. If nothing waits to be sent although the window has room, the data delivered by it and the next
    /// ACKs says nothing about the network (draft-ietf-ccwg-bbr section 4.1.2.4).
    pub(super) fn begin_delivery(&mut self, now: Instant) {
        let idle = self.unsent() < u64::from(self.mss) && self.has_room(self.mss);
        let pipe = self.pipe();
        let Some(rate) = &mut self.board.rate else { return };
        if idle {
            rate.limit_by_application(pipe);
        }
        rate.begin_ack(now);
    }

    /// Called after the ACK was processed, losses were detected and the phase was decided.
    pub(super) fn finish_delivery(&mut self, seen: &Seen<'_>) {
        let pipe = self.pipe();
        let prior_pipe = seen.before.pipe;
        let Some(rate) = &mut self.board.rate else { return };
        let sample = rate.finish_ack();
        self.congestion.on_delivery(&Delivery {
            now: seen.now,
            sample,
            // Nothing is sent while an ACK is processed, so data that left the pipe without arriving was lost.
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
            stamps: seen.segment.timestamps.map(stamps),
            receiver_limited: false,
            receiver: None,
        });
        if self.congestion.holds_back()
            && let Some(rate) = &mut self.board.rate
        {
            rate.limit_by_application(pipe);
        }
    }

    /// True if there is data to send that must wait for the pacer; its timer is then set.
    pub(super) fn held_by_pacer(&self, now: Instant, timers: &mut Timers) -> bool {
        let Some(at) = self.pacer.as_ref().and_then(|pacer| pacer.held_until(now)) else { return false };
        if self.unsent() > 0 || self.phase != Phase::Open || self.closing {
            timers.set(Timer::Pacing, at);
        }
        true
    }

    /// The current pacing rate; `None` if it is not paced.
    pub(crate) fn pacing_rate(&self) -> Option<BitRate> {
        self.pacer.as_ref()?;
        self.congestion.pacing_rate(self.rtt.smoothed(), self.board.pipe())
    }

    /// Bytes that small queues of `time` allow in the host's queue, once a rate is known; `None` if there is no such
    /// limit now.
    pub(crate) fn small_queue(&self, time: Duration) -> Option<Bytes> {
        if self.unsent() == 0 || self.board.is_empty() || self.phase != Phase::Open {
            return None;
        }
        let rate = self.congestion.pacing_rate(self.rtt.smoothed(), self.board.pipe())?;
        Some(small_queues::limit(time, rate, u64::from(self.mss), self.pacer.is_some()))
    }

    /// `payload` bytes are being sent.
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

/// The clocks in a segment.
pub(super) fn stamps(timestamps: Timestamps) -> Stamps {
    Stamps { receiver: timestamps.value, sender: timestamps.echo_reply }
}
