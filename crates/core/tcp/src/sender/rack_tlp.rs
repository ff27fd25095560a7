//! RACK's reordering timer and the tail loss probe (RFC 8985 sections 6 to 8).

use super::extended::Seen;
use super::{Outgoing, Phase, Sender, Timer, Timers};
use crate::counters::Counters;
use tacit_packet::position::Position;
use tacit_packet::units::{Duration, Instant};

/// PTO without a measured round-trip time (RFC 8985 section 7.2).
const PTO_UNMEASURED: Duration = Duration::from_secs(1);

/// Purpose of the retransmission timer: "one timer with an additional state variable indicating the type of the timer" (RFC
/// 8985 section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    Timeout,
    Probe,
    Reordering,
}

/// State of the timers and the probe.
#[derive(Clone, Debug)]
pub(super) struct RackTlp {
    watch: Watch,
    /// TCP_RTO_expiration().
    timeout_at: Instant,
    /// TLP.end_seq: end of the sent data when the probe now in flight was sent.
    probe_end: Option<Position>,
    /// TLP.is_retrans.
    probe_repeats: bool,
    /// A round-trip time was measured since the last probe.
    pub measured: bool,
    probe_due: bool,
    /// TLP.max_ack_delay.
    max_ack_delay: Duration,
    /// Retransmissions sent before this time belong to a loss that was already answered.
    answered_at: Instant,
}

impl RackTlp {
    pub fn new(max_ack_delay: Duration) -> Self {
        Self {
            watch: Watch::Timeout,
            timeout_at: Instant::ZERO,
            probe_end: None,
            probe_repeats: false,
            measured: true,
            probe_due: false,
            max_ack_delay,
            answered_at: Instant::ZERO,
        }
    }
}

impl Sender {
    /// Restarts the retransmission timer (RFC 6298 sections 5.1, 5.3).
    pub(super) fn restart_timeout(&mut self, now: Instant, timers: &mut Timers) {
        let at = now + self.rtt.rto();
        timers.set(Timer::Retransmit, at);
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.timeout_at = at;
            tlp.watch = Watch::Timeout;
        }
    }

    /// The first segment is retransmitted: restarts the timeout, behind a running reordering timer.
    pub(super) fn restart_timeout_behind(&mut self, now: Instant, timers: &mut Timers) {
        match &mut self.rack_tlp {
            Some(tlp) if tlp.watch == Watch::Reordering => tlp.timeout_at = now + self.rtt.rto(),
            _ => self.restart_timeout(now, timers),
        }
    }

    /// The retransmission timer expired. Returns false if the connection should be abandoned.
    pub fn on_retransmit_timer(
        &mut self,
        now: Instant,
        timers: &mut Timers,
        counters: &mut Counters,
    ) -> bool {
        let held_before = self.held_by_peer();
        match self.rack_tlp.as_ref().map(|tlp| tlp.watch) {
            None | Some(Watch::Timeout) => return self.on_retransmit_timeout(now, counters),
            Some(Watch::Probe) => self.on_probe_timeout(now, timers),
            Some(Watch::Reordering) => {
                let flight = self.flight().min(self.congestion.cwnd());
                self.look_at_times(now, flight, timers, counters);
                self.allow_proportionally(held_before);
            }
        }
        true
    }

    /// RACK_detect_loss_and_arm_timer(), for an ACK and for the reordering timer.
    pub(super) fn look_at_times(
        &mut self,
        now: Instant,
        flight: u64,
        timers: &mut Timers,
        counters: &mut Counters,
    ) {
        let repairing = self.phase != Phase::Open;
        let found = self.board.detect_lost_by_time(now, repairing, self.rtt.smoothed());
        let Some(tlp) = &mut self.rack_tlp else { return };
        if self.board.is_empty() {
            return;
        }
        if let Some(sent_at) = found.lost_again
            && matches!(self.phase, Phase::Recovery(_))
            && sent_at >= tlp.answered_at
        {
            // "the loss of a retransmission must be taken as two indications of congestion" (section 3.4).
            tlp.answered_at = now;
            self.congestion.on_loss(flight);
            self.start_prr();
        }
        if self.phase == Phase::Open && self.board.next_lost().is_some() {
            self.enter_recovery(now, flight, counters);
        }
        let quiet = self.phase == Phase::Open && !self.board.any_sacked();
        let Some(tlp) = &mut self.rack_tlp else { return };
        if let Some(at) = found.again_at {
            tlp.watch = Watch::Reordering;
            timers.set(Timer::Retransmit, at);
        } else if tlp.watch == Watch::Reordering || (tlp.watch == Watch::Probe && !quiet) {
            tlp.watch = Watch::Timeout;
            timers.set(Timer::Retransmit, tlp.timeout_at);
        }
    }

    /// A recovery begins: losses are counted from now on, and no probe is awaited (TLP_init()).
    pub(super) fn forget_probe(&mut self, now: Instant) {
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.answered_at = now;
            tlp.probe_end = None;
            tlp.probe_due = false;
        }
    }

    /// Sets the timer for a probe (RFC 8985 section 7.2), after new data was sent or acknowledged, unless another timer
    /// is running. No probe is sent without a round-trip measurement since the last one.
    pub(super) fn schedule_probe(&mut self, now: Instant, timers: &mut Timers) {
        let one_segment = self.flight() <= u64::from(self.mss);
        let Some(tlp) = &mut self.rack_tlp else { return };
        let idle = self.phase == Phase::Open && !self.board.any_sacked() && !self.board.is_empty();
        if !idle || tlp.watch == Watch::Reordering || tlp.probe_end.is_some() || !tlp.measured {
            return;
        }
        let mut wait = self.rtt.smoothed().map_or(PTO_UNMEASURED, |smoothed| smoothed * 2);
        if one_segment {
            wait += tlp.max_ack_delay;
        }
        tlp.watch = Watch::Probe;
        timers.set(Timer::Retransmit, (now + wait).min(tlp.timeout_at));
    }

    /// The decisions of TLP_send_probe(); `choose` selects the probe.
    fn on_probe_timeout(&mut self, now: Instant, timers: &mut Timers) {
        let nothing_else = self.phase == Phase::Open && !self.board.any_sacked();
        if self.board.is_empty() {
            return;
        }
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.probe_due = nothing_else;
        }
        self.restart_timeout(now, timers);
    }

    /// True if a probe is due, which may exceed the congestion window.
    pub(super) fn probe_due(&self) -> bool {
        self.rack_tlp.as_ref().is_some_and(|tlp| tlp.probe_due)
    }

    /// A segment was sent. If a probe was due and had not been sent, this segment, which is new data, is the probe.
    pub(super) fn note_fresh_probe(&mut self, counters: &mut Counters) {
        if self.probe_due() {
            self.note_probe(false, counters);
        }
    }

    /// Without new data the probe is a retransmission of the last segment.
    #[cold]
    pub(super) fn repeat_last(&mut self, now: Instant, counters: &mut Counters) -> Option<Outgoing> {
        self.note_probe(true, counters);
        let last = self.board.last_unsacked()?;
        self.board.rescued(last, now);
        Some(self.outgoing_again(last, now, counters))
    }

    fn note_probe(&mut self, repeats: bool, counters: &mut Counters) {
        counters.loss_probes += 1;
        let end = self.snd_nxt;
        if let Some(tlp) = &mut self.rack_tlp {
            tlp.probe_due = false;
            tlp.probe_end = Some(end);
            tlp.probe_repeats = repeats;
            tlp.measured = false;
        }
    }

    /// TLP_process_ack() (RFC 8985 section 7.4.2), and the probe's timer after an ACK.
    pub(super) fn judge_probe(&mut self, seen: &Seen<'_>, timers: &mut Timers) {
        let window = self.snd_wnd;
        let Some(tlp) = &mut self.rack_tlp else { return };
        let ack = seen.ack;
        if let Some(end) = tlp.probe_end.filter(|end| ack >= *end) {
            let repaired = tlp.probe_repeats && !seen.dsack && ack > end;
            if !tlp.probe_repeats || seen.dsack || repaired || seen.is_bare_duplicate(window) {
                tlp.probe_end = None;
            }
            if repaired && self.phase == Phase::Open {
                // One segment was lost and the probe repaired it, which is still a loss.
                self.congestion.on_loss(seen.flight);
                self.note_reduction();
            }
        }
        if seen.advanced {
            self.schedule_probe(seen.now, timers);
        }
    }
}
