//! DualPI2 (RFC 9332, appendix A): L4S packets in a queue with a shallow marking threshold, all others in one with the
//! AQM PI2, and a coupling of the two by which scalable and classic flows get equal rates.

use tacit_packet::units::{Bytes, Duration, Instant};

use super::fifo::Fifo;
use super::{DualPi2Config, QueueLimit, Queued};
use crate::packet::PacketRef;

/// A probability of one. Probabilities are fractions of it.
const ONE: u64 = 1 << 32;

/// Times that a byte of L4S is served for each byte of classic traffic while both wait (our choice; RFC 9332 section
/// 2.5.1.1 asks only that classic traffic not starve).
const L4S_WEIGHT: i64 = 15;

/// The base probability p' and what follows from it.
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    /// p', from 0 to [`ONE`].
    base: u64,
    /// prevq: the delay at the last update.
    previous: Duration,
    /// When p' is updated next.
    update_at: Instant,
}

impl Control {
    /// Updates p' to `now`. `since` is when the oldest packet was queued.
    fn advance(&mut self, config: &DualPi2Config, now: Instant, since: Option<Instant>) {
        while self.update_at <= now {
            if self.base == 0 && self.previous == Duration::ZERO && since.is_none() {
                // Nothing changes until a packet waits.
                let late = now.saturating_since(self.update_at).as_nanos();
                let interval = config.update_interval().as_nanos();
                self.update_at += Duration::from_nanos((late / interval + 1) * interval);
                return;
            }
            let delay = since.map_or(Duration::ZERO, |since| self.update_at.saturating_since(since));
            self.update(config, delay);
            self.update_at += config.update_interval();
        }
    }

    /// p' = p' + alpha (curq - target) + beta (curq - prevq), with alpha = 0.1 Tupdate / RTT_max^2 and beta = 0.3 /
    /// RTT_max (appendix A.1).
    fn update(&mut self, config: &DualPi2Config, delay: Duration) {
        let nanos = |time: Duration| i128::from(time.as_nanos());
        let rtt = nanos(config.rtt_max);
        let excess = nanos(delay) - nanos(config.target);
        let growth = nanos(delay) - nanos(self.previous);
        let integral = ((excess * nanos(config.update_interval())) << 32) / (10 * rtt * rtt);
        let proportional = ((3 * growth) << 32) / (10 * rtt);
        let base = i128::from(self.base) + integral + proportional;
        self.base = base.clamp(0, i128::from(ONE)) as u64;
        self.previous = delay;
    }

    /// p_C = p'^2, the probability of classic drops and marks.
    fn classic(self) -> u64 {
        ((u128::from(self.base) * u128::from(self.base)) >> 32) as u64
    }

    /// p_CL = k p', the coupled probability of L4S marks.
    fn coupled(self, config: &DualPi2Config) -> u64 {
        self.base * u64::from(config.coupling)
    }
}

/// The native L4S AQM: a ramp of marking over the delay.
fn ramp(config: &DualPi2Config, delay: Duration) -> u64 {
    let above = delay.as_nanos().saturating_sub(config.l4s_threshold.as_nanos());
    let range = config.l4s_range.as_nanos().max(1);
    if above >= range { ONE } else { ((u128::from(above) << 32) / u128::from(range)) as u64 }
}

/// True with a certain likelihood, without randomness (`recur` of appendix A.1).
fn recurs(count: &mut u64, likelihood: u64) -> bool {
    *count += likelihood;
    let recurs = *count > ONE;
    if recurs {
        *count -= ONE;
    }
    recurs
}

/// Fewer bytes than two full-sized packets are no queue. Otherwise a link with p' of one would send nothing (Linux
/// `must_drop` of sch_dualpi2).
const NO_QUEUE: Bytes = Bytes(2 * 1_500);

/// One half of the queue.
#[derive(Clone, Debug)]
struct Half {
    fifo: Fifo,
    /// Sum of likelihoods since the last signal.
    count: u64,
}

/// Two coupled queues with a common limit.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    pub(super) limit: QueueLimit,
    config: DualPi2Config,
    control: Control,
    l4s: Half,
    classic: Half,
    /// Bytes of L4S served, less the weighted bytes of classic traffic, while both waited.
    balance: i64,
    /// The packet that was decided on but not taken yet.
    next: Option<Queued>,
    marks: u64,
    peak: usize,
}

impl DualPi2 {
    /// An empty queue.
    pub fn new(limit: QueueLimit, config: DualPi2Config) -> Self {
        let half = || Half { fifo: Fifo::new(), count: 0 };
        Self {
            limit,
            config,
            control: Control::default(),
            l4s: half(),
            classic: half(),
            balance: 0,
            next: None,
            marks: 0,
            peak: 0,
        }
    }

    pub(super) fn push(&mut self, now: Instant, payload: PacketRef) -> bool {
        let len = payload.len();
        if !self.has_room(len) {
            return false;
        }
        self.advance(now);
        let half = if payload.is_l4s() { &mut self.l4s } else { &mut self.classic };
        half.fifo.push(Queued::new(payload, now));
        self.peak = self.peak.max(self.len());
        true
    }

    pub(super) fn has_room(&self, len: Bytes) -> bool {
        let next = self.next.as_ref().map_or(Bytes(0), |queued| queued.len());
        self.limit.admits(self.len(), self.l4s.fifo.bytes() + self.classic.fifo.bytes() + next, len)
    }

    fn advance(&mut self, now: Instant) {
        // The longer of both delays, so that p' also rises where L4S alone overloads the link (A.2; Linux
        // `calculate_probability` of sch_dualpi2).
        let since = self.heads().map(|queued| queued.at).min();
        self.control.advance(&self.config, now, since);
    }

    /// The oldest packet of each half.
    fn heads(&self) -> impl Iterator<Item = &Queued> {
        [self.l4s.fifo.front(), self.classic.fifo.front()].into_iter().flatten()
    }

    pub(super) fn front(&mut self, now: Instant, dropped: &mut impl FnMut(PacketRef)) -> Option<&Queued> {
        if self.next.is_none() {
            self.advance(now);
            self.next = self.dequeue(now, dropped);
        }
        self.next.as_ref()
    }

    /// Appendix A.2, which adds overload to A.1.
    fn dequeue(&mut self, now: Instant, dropped: &mut impl FnMut(PacketRef)) -> Option<Queued> {
        loop {
            let is_queue = self.l4s.fifo.bytes() + self.classic.fifo.bytes() >= NO_QUEUE;
            let (coupled, classic) = match is_queue {
                true => (self.control.coupled(&self.config), self.control.classic()),
                false => (0, 0),
            };
            let is_overloaded = coupled >= ONE;
            let mut queued;
            let (drops, marks);
            if self.is_l4s_next()? {
                queued = self.l4s.fifo.pop()?;
                let count = &mut self.l4s.count;
                if is_overloaded {
                    drops = recurs(count, classic);
                    marks = true;
                } else {
                    let delay = now.saturating_since(queued.at);
                    // One packet alone is no queue, however slow the link is (Th_len).
                    let native = if self.l4s.fifo.len() > 0 { ramp(&self.config, delay) } else { 0 };
                    drops = false;
                    marks = recurs(count, native.max(coupled));
                }
            } else {
                queued = self.classic.fifo.pop()?;
                let signals = recurs(&mut self.classic.count, classic);
                drops = signals && is_overloaded;
                marks = signals;
            }
            let is_marked = marks && !drops && queued.payload.mark_congestion();
            self.marks += u64::from(is_marked);
            // L4S packets can always be marked.
            if (marks && !is_marked) || drops {
                dropped(queued.payload);
                continue;
            }
            return Some(queued);
        }
    }

    /// Whose turn it is; `None` if nothing waits.
    fn is_l4s_next(&mut self) -> Option<bool> {
        let (Some(l4s), Some(classic)) = (self.l4s.fifo.front(), self.classic.fifo.front()) else {
            self.balance = 0;
            return (self.l4s.fifo.len() + self.classic.fifo.len() > 0).then_some(self.l4s.fifo.len() > 0);
        };
        let cost = L4S_WEIGHT * classic.len().0 as i64;
        let is_l4s = self.balance < cost;
        self.balance += if is_l4s { l4s.len().0 as i64 } else { -cost };
        Some(is_l4s)
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        self.next.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.next.iter().chain(self.l4s.fifo.iter()).chain(self.classic.fifo.iter())
    }

    pub(super) fn waiting_since(&self) -> Option<Instant> {
        match &self.next {
            Some(queued) => Some(queued.at),
            // Which half is next is only decided on request.
            None => (self.len() > 0).then_some(Instant::ZERO),
        }
    }

    pub(super) fn oldest_at(&self) -> Option<Instant> {
        self.next.iter().chain(self.heads()).map(|queued| queued.at).min()
    }

    pub(super) fn each(&mut self, see: &mut impl FnMut(&mut PacketRef)) {
        self.next.iter_mut().for_each(|queued| see(&mut queued.payload));
        self.l4s.fifo.each(see);
        self.classic.fifo.each(see);
    }

    pub(super) fn retract(&mut self, mut unwanted: impl FnMut(&PacketRef) -> bool) -> usize {
        let before = self.len();
        if self.next.as_ref().is_some_and(|queued| unwanted(&queued.payload)) {
            self.next = None;
        }
        self.l4s.fifo.retract(&mut unwanted, &mut |_| {});
        self.classic.fifo.retract(&mut unwanted, &mut |_| {});
        before - self.len()
    }

    pub(super) fn len(&self) -> usize {
        self.l4s.fifo.len() + self.classic.fifo.len() + usize::from(self.next.is_some())
    }

    pub(super) fn peak(&self) -> usize {
        self.peak
    }

    pub(super) fn reset_peak(&mut self) {
        self.peak = self.len();
    }

    pub(super) fn marks(&self) -> u64 {
        self.marks
    }
}

#[cfg(test)]
#[path = "dual_pi2_tests.rs"]
mod tests;
