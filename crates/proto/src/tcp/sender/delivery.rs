//! What rate-based congestion control asks of the sender: delivery rate samples and pacing.

use super::{ArrivedAck, Outgoing, Phase, Sender, Timer, Timers};
use crate::tcp::congestion::{Delivery, Repair};
use crate::tcp::pacing::{Pacer, Pacing};
use crate::tcp::segment::Segment;
use crate::units::Instant;

impl Sender {
    /// Arranges for what the controller just made wants to know and to do.
    pub(super) fn set_up_rate_control(&mut self, pacing: Pacing) {
        self.board.rate = self.congestion.wants_delivery().then(Default::default);
        let paced = match pacing {
            Pacing::Auto => self.congestion.wants_pacing(),
            Pacing::On => true,
            Pacing::Off => false,
        };
        self.pacer = paced.then(Pacer::default);
    }

    /// An ACK arrived. Returns the pipe before it, when the controller wants to know what it delivers.
    pub(super) fn begin_delivery(&mut self, now: Instant) -> Option<u64> {
        let rate = self.board.rate.as_mut()?;
        rate.begin_ack(now);
        Some(self.pipe())
    }

    /// The ACK was taken in, losses found and the phase decided.
    #[inline(never)]
    pub(super) fn finish_delivery(&mut self, prior_pipe: u64, arrived: &ArrivedAck, segment: &Segment) {
        let pipe = self.pipe();
        let Some(rate) = &mut self.board.rate else { return };
        let sample = rate.finish_ack();
        self.congestion.on_delivery(&Delivery {
            now: arrived.now,
            sample,
            // Nothing is sent while an ACK is taken in: what left the pipe and did not arrive was lost.
            lost: prior_pipe.saturating_sub(pipe).saturating_sub(sample.newly_delivered),
            prior_in_flight: prior_pipe,
            in_flight: pipe,
            repair: match self.phase {
                Phase::Open => Repair::None,
                Phase::Recovery(_) => Repair::Fast,
                Phase::Timeout(_) => Repair::Timeout,
            },
            smoothed_rtt: self.rtt.smoothed(),
            stamps: segment.timestamps,
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

    /// `outgoing` leaves.
    pub(super) fn pace(&mut self, outgoing: Outgoing, now: Instant) {
        let rate = self.congestion.pacing_rate(self.rtt.smoothed(), self.board.pipe());
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(u64::from(outgoing.payload), now, rate, u64::from(self.mss));
        }
    }

    /// Nothing could be sent. When that was for want of data, what is delivered next says nothing about
    /// the network (draft-ietf-ccwg-bbr section 4.1.2.4).
    #[inline]
    pub(super) fn note_application_limit(&mut self) {
        if self.board.rate.is_none() || self.unsent() >= u64::from(self.mss) || !self.has_room(self.mss) {
            return;
        }
        let pipe = self.pipe();
        if let Some(rate) = &mut self.board.rate {
            rate.limit_by_application(pipe);
        }
    }
}
