//! Loss detection and recovery (RFC 5681, 6298, 6582, 6675).

use super::{MAX_RETRIES, Phase, Sender};
use crate::counters::Counters;
use crate::prr::{Prr, Recovery};
use crate::sack::DUP_THRESH;
use crate::undo::Cause;
use tacit_congestion::AckSample;
use tacit_packet::position::Position;
use tacit_packet::units::Instant;

impl Sender {
    /// Changes the phase and grows the window.
    pub(super) fn react(
        &mut self,
        now: Instant,
        flight: u64,
        ack: Position,
        sample: Option<AckSample>,
        counters: &mut Counters,
    ) {
        match self.phase {
            Phase::Recovery(point) if ack >= point => self.finish_recovery(point),
            Phase::Recovery(_) => {
                if let Some(sample) = sample
                    && !self.use_sack
                {
                    self.on_partial_ack(sample.acked);
                }
                return;
            }
            Phase::Timeout(point) => {
                if let Some(sample) = sample {
                    self.congestion.on_ack(&sample);
                }
                if ack >= point {
                    self.phase = Phase::Open;
                    self.rack_recovered();
                    self.end_episode();
                }
            }
            Phase::Open => {
                if let Some(sample) = sample {
                    self.inferred = 0;
                    self.congestion.on_ack(&sample);
                }
            }
        }
        if self.phase == Phase::Open && self.should_recover() {
            self.enter_recovery(now, flight, counters);
        }
    }

    /// Three duplicate ACKs, or the first segment declared lost (RFC 6675 section 5 steps (1), (2)). RACK checks times
    /// after this.
    fn should_recover(&mut self) -> bool {
        if self.rack_tlp.is_some() {
            return false;
        }
        if self.board.next_lost().is_some() {
            return true;
        }
        // Without SACK the duplicates may be echoes of our own unnecessary retransmissions (RFC 6582 section 3.2 step
        // 1).
        let believable = self.use_sack || self.snd_una > self.recover;
        self.dup_acks >= DUP_THRESH && believable && !self.board.is_empty()
    }

    /// RFC 6675 section 5 step (4).
    #[inline(never)]
    pub(super) fn enter_recovery(&mut self, now: Instant, flight: u64, counters: &mut Counters) {
        self.begin_episode(Cause::FastRecovery);
        self.phase = Phase::Recovery(self.snd_nxt);
        self.congestion.on_loss(flight);
        self.note_reduction();
        if self.rack_tlp.is_none() {
            self.board.mark_first_lost();
        }
        self.forget_probe(now);
        if !self.use_sack {
            // "plus 3*SMSS": the segments that triggered the duplicates (RFC 5681 section 3.2 step 3).
            self.inferred = u64::from(DUP_THRESH * self.mss).min(self.board.pipe());
        }
        self.resend_first = true;
        self.start_prr();
        self.rescue_after = self.snd_una;
        counters.fast_recoveries += 1;
    }

    #[inline(never)]
    fn finish_recovery(&mut self, point: Position) {
        self.phase = Phase::Open;
        self.prr = None;
        self.recover = point;
        self.resend_first = false;
        self.inferred = 0;
        self.rack_recovered();
        self.end_episode();
        if !self.use_sack && !self.congestion.sets_window_itself() {
            // "cwnd = min (ssthresh, max(FlightSize, SMSS) + SMSS)" keeps the exit from being a burst
            // (RFC 6582 section 3.2 step 3).
            let mss = u64::from(self.mss);
            self.congestion.limit(self.flight().max(mss) + mss);
        }
    }

    /// A reduction begins. PRR spreads it over the next ACKs, unless the controller sets its own window.
    pub(super) fn start_prr(&mut self) {
        let spread = self.recovery == Recovery::Prr && !self.congestion.sets_window_itself();
        self.prr = spread.then(|| Prr::new(self.flight()));
    }

    /// Sets the amount that may be sent after an ACK; before it the peer had `held_before`. The controller has set its
    /// window to ssthresh, or to a value of its own.
    pub(super) fn allow_proportionally(&mut self, held_before: Position) {
        let delivered = self.held_by_peer().saturating_since(held_before);
        let (pipe, target) = (self.pipe(), self.congestion.cwnd());
        if let Some(prr) = &mut self.prr {
            prr.on_ack(delivered, pipe, target, u64::from(self.mss));
        }
    }

    fn rack_recovered(&mut self) {
        if let Some(rack) = self.board.rack() {
            rack.on_recovered();
        }
    }

    /// NewReno: a partial ACK identifies the next lost segment. Of the segments it covers, all except one were already
    /// counted as having left the network.
    fn on_partial_ack(&mut self, acked: u64) {
        self.inferred = self.inferred.saturating_sub(acked.saturating_sub(u64::from(self.mss)));
        self.board.mark_first_lost();
        self.inferred = self.inferred.min(self.board.pipe());
        self.resend_first = true;
    }

    /// The retransmission timer expired. Returns false if the connection should be abandoned.
    pub(super) fn on_retransmit_timeout(&mut self, now: Instant, counters: &mut Counters) -> bool {
        if self.board.is_empty() {
            return true;
        }
        self.retries += 1;
        if self.retries > MAX_RETRIES {
            return false;
        }
        counters.timeouts += 1;
        self.begin_episode(Cause::Timeout);
        self.note_reduction();
        self.congestion.on_timeout(now, self.flight().min(self.congestion.cwnd()), self.retries > 1);
        self.rtt.back_off();
        if self.rack_tlp.is_some() {
            self.board.mark_overdue_lost(now, self.rtt.smoothed());
        } else {
            self.board.mark_all_lost();
        }
        self.forget_probe(now);
        self.begin_frto(self.phase);
        self.phase = Phase::Timeout(self.snd_nxt);
        self.prr = None;
        self.recover = self.snd_nxt;
        self.dup_acks = 0;
        self.inferred = 0;
        self.resend_first = true;
        true
    }
}
