//! A source that alternates between sending and silence.

use tacit_link::random::Stream;
use tacit_packet::units::{Duration, FlowId, Instant};

use super::Sockets;
use crate::flow::End;
use crate::record::OnOffTimes;
use crate::setup::OnOff;

/// Bytes written ahead of TCP if there is no rate limit. They are sent even after the sending period has ended, so this
/// is only as much as TCP needs to stay busy.
const AHEAD: u64 = 128 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    On { since: Instant, until: Instant },
    Off { until: Instant },
    Stopped,
}

#[derive(Debug)]
pub(super) struct OnOffSource {
    plan: OnOff,
    flow: FlowId,
    draws: Stream,
    phase: Phase,
    /// When the next chunk is due, if there is a rate limit.
    chunk_at: Option<Instant>,
    /// Number of sending periods in the measured window, and their total duration.
    periods: u64,
    on_time: Duration,
    opened: bool,
}

impl OnOffSource {
    pub fn new(plan: OnOff, flow: FlowId, draws: Stream, start: Instant) -> Self {
        Self {
            plan,
            flow,
            draws,
            phase: Phase::Off { until: start },
            chunk_at: None,
            periods: 0,
            on_time: Duration::ZERO,
            opened: false,
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::On { until, .. } => Some(self.chunk_at.map_or(until, |at| at.min(until))),
            Phase::Off { until } => Some(until),
            Phase::Stopped => None,
        }
    }

    pub fn handle_timeout(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        match self.phase {
            Phase::On { since, until } if until <= now => {
                self.on_time += now.saturating_since(since);
                self.phase = Phase::Off { until: now + self.plan.off.drawn(&mut self.draws) };
                self.chunk_at = None;
            }
            Phase::Off { until } if until <= now => {
                self.phase = Phase::On { since: now, until: now + self.plan.on.drawn(&mut self.draws) };
                self.periods += 1;
                self.chunk_at = self.plan.rate.map(|_| now);
                if !std::mem::replace(&mut self.opened, true) {
                    sockets.open(self.flow, End::Source);
                }
            }
            _ => {}
        }
        self.feed(now, sockets);
    }

    /// An ACK may have made room.
    pub fn arrived(&mut self, end: End, sockets: &mut Sockets<'_>) {
        if end == End::Source && self.plan.rate.is_none() {
            self.top_up(sockets);
        }
    }

    fn feed(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        let Some(rate) = self.plan.rate else {
            self.top_up(sockets);
            return;
        };
        if self.chunk_at.is_some_and(|at| at <= now) {
            sockets.write(self.flow, End::Source, self.plan.chunk.0);
            self.chunk_at = Some(now + rate.time_for(self.plan.chunk));
        }
    }

    fn top_up(&mut self, sockets: &mut Sockets<'_>) {
        if matches!(self.phase, Phase::On { .. }) && sockets.unsent(self.flow) < AHEAD / 2 {
            sockets.write(self.flow, End::Source, AHEAD);
        }
    }

    pub fn stop(&mut self, now: Instant) {
        if let Phase::On { since, .. } = self.phase {
            self.on_time += now.saturating_since(since);
        }
        self.phase = Phase::Stopped;
    }

    pub fn start_measuring(&mut self, now: Instant) {
        (self.periods, self.on_time) = (0, Duration::ZERO);
        if let Phase::On { since, .. } = &mut self.phase {
            *since = now;
        }
    }

    pub fn result(&self, now: Instant) -> OnOffTimes {
        let under_way = match self.phase {
            Phase::On { since, .. } => now.saturating_since(since),
            Phase::Off { .. } | Phase::Stopped => Duration::ZERO,
        };
        OnOffTimes { periods: self.periods, on_time: self.on_time + under_way }
    }
}
