//! Choice of the next segment: NextSeg (RFC 6675 section 4), windows, probes (RFC 9293 section 3.8.6).

use super::{MAX_RETRIES, Outgoing, Phase, Sender, Timer, Timers};
use crate::counters::Counters;
use crate::sack::Resend;
use tacit_packet::position::Position;
use tacit_packet::units::Instant;

impl Sender {
    /// The next bytes to send at `now`.
    #[inline]
    pub fn next(&mut self, now: Instant, timers: &mut Timers, counters: &mut Counters) -> Option<Outgoing> {
        if self.pacer.is_some() && self.held_by_pacer(now, timers) {
            return None;
        }
        let outgoing = self.choose(now, timers, counters)?;
        self.last_sent = Some(now);
        // "Every time a packet containing data is sent, if the timer is not running, start it"
        // (RFC 6298 section 5.1).
        if timers.get(Timer::Retransmit).is_none() {
            self.restart_timeout(now, timers);
        }
        if self.extended {
            self.after_sending(now, outgoing.payload, timers, counters);
        }
        Some(outgoing)
    }

    /// [`next`](Self::next) for the case of a full segment of new data, with no loss and more data outstanding. Returns
    /// `None`, and changes nothing, in all other cases.
    #[inline]
    pub fn next_full(&mut self, now: Instant, timers: &Timers) -> Option<Outgoing> {
        let start = self.snd_nxt;
        let end = start + u64::from(self.mss);
        let allowed = end <= self.data_end
            && end <= self.snd_una + self.snd_wnd
            && end - self.snd_una <= self.send_buffer
            && self.phase == Phase::Open
            && !self.extended
            && !self.board.is_empty()
            && self.pipe() + u64::from(self.mss) <= self.congestion.cwnd()
            && timers.get(Timer::Retransmit).is_some();
        if !allowed {
            return None;
        }
        self.override_sws = false;
        self.last_sent = Some(now);
        self.board.push(start, self.mss, now);
        self.snd_nxt = end;
        Some(Outgoing { start, payload: self.mss, fin: false, push: end == self.data_end, again: false })
    }

    /// True if nothing is left to send and nothing was lost, without features that time segments.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.data_end == self.snd_nxt
            && self.phase == Phase::Open
            && !self.closing
            && !self.extended
            && !self.probe_due
    }

    /// NextSeg (RFC 6675 section 4), rules (1) to (4) in order, within cwnd.
    fn choose(&mut self, now: Instant, timers: &mut Timers, counters: &mut Counters) -> Option<Outgoing> {
        if self.phase != Phase::Open {
            if core::mem::take(&mut self.resend_first)
                && let Some(lost) = self.board.next_lost()
            {
                if matches!(self.phase, Phase::Recovery(_)) && self.rescue_after == self.snd_una {
                    self.rescue_after = lost.end();
                }
                // The first transmission was long ago, so this one gets a full timeout (RFC 6675 section 6).
                self.restart_timeout_behind(now, timers);
                return Some(self.resend(lost, now, counters));
            }
            if !self.has_room(self.mss) {
                self.window_limited_until = self.snd_nxt;
                return None;
            }
            if !self.frto_waits()
                && let Some(lost) = self.board.next_lost()
            {
                if self.rack_tlp.is_some() && lost.start == self.snd_una {
                    self.restart_timeout_behind(now, timers);
                }
                return Some(self.resend(lost, now, counters));
            }
        }
        if let Some(fresh) = self.next_fresh(now, timers, counters) {
            return Some(fresh);
        }
        if self.probe_due() {
            return self.repeat_last(now, counters);
        }
        if let Phase::Recovery(point) = self.phase
            && self.use_sack
            && self.rack_tlp.is_none()
            && self.has_room(self.mss)
        {
            if let Some(hole) = self.board.next_below_sacked() {
                return Some(self.resend(hole, now, counters));
            }
            return self.rescue(point, now, counters);
        }
        None
    }

    /// True if `bytes` more fit in the congestion window.
    pub(super) fn has_room(&self, bytes: u32) -> bool {
        let pipe = self.pipe();
        if let Some(prr) = &self.prr {
            return pipe == 0 || prr.allows(u64::from(bytes));
        }
        pipe == 0 || pipe + u64::from(bytes) <= self.congestion.cwnd()
    }

    #[inline(never)]
    fn resend(&mut self, segment: Resend, now: Instant, counters: &mut Counters) -> Outgoing {
        self.board.resent(segment, now);
        self.outgoing_again(segment, now, counters)
    }

    /// NextSeg rule (4): one segment per recovery, with the highest outstanding byte.
    fn rescue(&mut self, point: Position, now: Instant, counters: &mut Counters) -> Option<Outgoing> {
        if self.snd_una <= self.rescue_after {
            return None;
        }
        let last = self.board.last_unsacked()?;
        self.rescue_after = point;
        self.board.rescued(last, now);
        counters.rescue_retransmissions += 1;
        Some(self.outgoing_again(last, now, counters))
    }

    pub(super) fn outgoing_again(
        &mut self,
        segment: Resend,
        now: Instant,
        counters: &mut Counters,
    ) -> Outgoing {
        let payload_end = segment.end().min(self.data_end);
        let payload = payload_end.saturating_since(segment.start) as u32;
        counters.segments_retransmitted += 1;
        self.note_copy(now);
        counters.bytes_retransmitted += u64::from(payload);
        Outgoing {
            start: segment.start,
            payload,
            fin: self.closing && segment.end() > self.data_end,
            push: payload_end == self.data_end,
            again: true,
        }
    }

    /// New data, within the congestion window, the peer's window and the send buffer.
    fn next_fresh(&mut self, now: Instant, timers: &mut Timers, counters: &mut Counters) -> Option<Outgoing> {
        let unsent = self.unsent();
        let fin_waits = self.closing && self.snd_nxt <= self.data_end;
        if unsent == 0 && !fin_waits {
            return None;
        }
        let usable = (self.snd_una + self.snd_wnd).saturating_since(self.snd_nxt);
        let payload = u64::from(self.mss).min(unsent).min(usable) as u32;
        let fin = fin_waits && u64::from(payload) == unsent && usable > unsent;
        if (payload == 0 && !fin) || !self.worth_sending(payload, unsent, usable) {
            if self.board.is_empty() && timers.get(Timer::Persist).is_none() {
                timers.set(Timer::Persist, now + self.rtt.rto_backed_off(self.probes));
            }
            return None;
        }
        if self.flight() + u64::from(payload) > self.send_buffer && !self.board.is_empty() {
            return None;
        }
        self.restart_if_idle(now, counters);
        if !self.has_room(payload) && !self.probe_due() {
            self.window_limited_until = self.snd_nxt;
            return None;
        }
        self.override_sws = false;
        let len = payload + u32::from(fin);
        let start = self.snd_nxt;
        self.board.push(start, len, now);
        self.snd_nxt += u64::from(len);
        Some(Outgoing { start, payload, fin, push: u64::from(payload) == unsent, again: false })
    }

    /// Sender's SWS avoidance, with Nagle off (RFC 9293 section 3.8.6.2.1): sends a full segment, or all that is left,
    /// or half the largest window ever offered, or if the override timer has expired.
    pub(super) fn worth_sending(&self, payload: u32, unsent: u64, usable: u64) -> bool {
        payload == self.mss
            || unsent <= usable
            || u64::from(payload) * 2 >= self.max_window
            || self.override_sws
    }

    fn restart_if_idle(&mut self, now: Instant, counters: &mut Counters) {
        if !self.board.is_empty() {
            return;
        }
        self.congestion.on_transmit_start(now, self.last_sent.and(self.board.rate.as_deref()));
        let Some(last_sent) = self.last_sent else { return };
        let idle = now.saturating_since(last_sent);
        if idle > self.rtt.rto() && !self.congestion.sets_window_itself() {
            if self.congestion.cwnd() > self.initial_window {
                counters.idle_restarts += 1;
            }
            self.congestion.on_restart(self.initial_window, idle);
        }
    }

    /// The persist timer expired: sends a probe, or as much as fits in spite of SWS avoidance. Returns false if the
    /// peer has left too many probes unanswered; while it answers, a window may stay closed forever (RFC 9293 section
    /// 3.8.6.1).
    pub fn on_persist_timeout(&mut self) -> bool {
        self.probes += 1;
        self.unanswered += 1;
        if self.unanswered > MAX_RETRIES {
            return false;
        }
        if self.snd_una + self.snd_wnd > self.snd_nxt {
            self.override_sws = true;
        } else {
            self.probe_due = true;
        }
        true
    }
}
