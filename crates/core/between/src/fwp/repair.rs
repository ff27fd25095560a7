//! Session repair of FWP (§V-D), without sockets and without the bytes themselves: which bytes of a body with holes are
//! there, which must be requested again, and which can be handed on.
//!
//! The reader reports the placeholders among the bytes from TCP ([`Repair::hole`], always first) and then the bytes
//! that TCP delivered ([`Repair::arrived`]). It sends the requests from [`Repair::poll_request`], reports their
//! outcome, and hands on the bytes from [`Repair::poll_release`], in order and each once. Positions count bytes of the
//! server's whole body.
//!
//! Memory is bounded: at most [`Config::held_max`] bytes are read but not handed on ([`Repair::room`] is how many more
//! may be read), and at most [`Config::holes_max`] holes are open. A hole that cannot be filled ends the repair
//! ([`Repair::failure`]); the paper waits forever and names a timeout as future work.

mod missing;
mod patience;

pub use patience::Patience;

use std::collections::BTreeMap;

use missing::{Missing, Part};
use tacit_packet::units::{Duration, Instant};

/// The bytes `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

impl Range {
    /// The bytes `start..end`; `None` if that is empty.
    pub const fn new(start: u64, end: u64) -> Option<Self> {
        if start < end { Some(Self { start, end }) } else { None }
    }

    /// Number of bytes.
    pub const fn bytes(self) -> u64 {
        self.end - self.start
    }

    /// The overlap of both.
    pub fn common(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}

/// How holes are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most requests in progress.
    pub parallel_max: usize,
    /// Most bytes of one request; a longer hole is split.
    pub request_max: u64,
    /// Most bytes between holes that go into one request.
    pub gap_max: u64,
    /// The same, while more holes wait than requests are allowed.
    pub gap_busy_max: u64,
    /// Time limit for a hole, from its first request on.
    pub deadline: Duration,
    /// A request fails after this time without a byte.
    pub answer_timeout: Duration,
    /// How many requests for the same bytes may fail, be short or be hit by holes.
    pub attempts_max: u32,
    /// Delay before a retry after a failure. It doubles each time, up to 64 times.
    pub retry_wait: Duration,
    /// Most bytes that are read but not handed on.
    pub held_max: u64,
    /// Most open holes.
    pub holes_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // Browsers open six connections to a host; RFC 9112 section 9.4 advises restraint without a number.
            parallel_max: 6,
            request_max: 256 * 1024,
            // The heads of a request and its answer cost about this much, so closer holes are cheaper together.
            gap_max: 512,
            // Ten segments of 1,460 bytes: at a frame error rate of 10 % the holes of a burst become one.
            gap_busy_max: 14_600,
            // Players of live video buffer 8 s (§V-D), so a hole must not take longer.
            deadline: Duration::from_secs(8),
            answer_timeout: Duration::from_secs(3),
            // With half of the frames lost, one in 17 million holes is hit this many times; a minute at 50 Mb/s has a
            // quarter of a million frames.
            attempts_max: 24,
            retry_wait: Duration::from_millis(10),
            held_max: 8 * 1024 * 1024,
            holes_max: 8192,
        }
    }
}

/// Identifies a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Bytes to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its identifier.
    pub id: RequestId,
    /// Holes, including the bytes between them.
    pub range: Range,
}

/// Why a body cannot be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The hole of this byte was the lowest, and open for longer than [`Config::deadline`].
    #[error("byte {0} did not come in time")]
    Deadline(u64),
    /// This byte was requested [`Config::attempts_max`] times.
    #[error("byte {0} did not come, however often it was asked for")]
    Attempts(u64),
    /// More holes than [`Config::holes_max`].
    #[error("more holes than can be kept track of")]
    Holes,
}

tacit_packet::counters! {
    /// Counts since the start.
    pub struct Counters {
        /// Reported holes.
        holes: u64,
        /// Bytes in them.
        hole_bytes: u64,
        /// Bytes of holes whose original arrived late, but before an answer.
        late_bytes: u64,
        /// Requests made.
        requests: u64,
        /// Requests that failed, timed out or left a hole open.
        requests_short: u64,
        /// Requests that were no longer needed before they ended.
        requests_cancelled: u64,
        /// Bytes of answers that filled holes.
        repaired_bytes: u64,
        /// Bytes of answers that were already there.
        spare_bytes: u64,
        /// Total time in which an open hole, or [`Repair::hold_from`], held back received bytes.
        blocked_total: Duration,
    }
    peaks {
        /// Most bytes held back at one time.
        held_bytes_max: u64,
        /// Longest of these times.
        blocked_max: Duration,
    }
}

/// A request in progress.
#[derive(Clone, Copy, Debug)]
struct Running {
    range: Range,
    /// Open holes that it should fill.
    parts: usize,
    quiet_since: Instant,
}

/// The repair of one body.
#[derive(Clone, Debug)]
pub struct Repair {
    config: Config,
    end: u64,
    released: u64,
    reached: u64,
    held_from: Option<u64>,
    missing: Missing,
    running: BTreeMap<RequestId, Running>,
    cancelled: Vec<RequestId>,
    next_id: u64,
    /// No request times out before this.
    quiet_at: Instant,
    /// The latest time that was passed to this repair.
    now: Instant,
    blocked_since: Option<Instant>,
    failure: Option<Failure>,
    counters: Counters,
}

impl Repair {
    /// Repairs the bytes `body`.
    pub fn new(config: Config, body: Range) -> Self {
        Self {
            config,
            end: body.end,
            released: body.start,
            reached: body.start,
            held_from: None,
            missing: Missing::default(),
            running: BTreeMap::new(),
            cancelled: Vec::new(),
            next_id: 0,
            quiet_at: Instant::ZERO,
            now: Instant::ZERO,
            blocked_since: None,
            failure: None,
            counters: Counters::default(),
        }
    }

    /// How many more bytes may be read from TCP now. If zero, read nothing until bytes are released.
    pub fn room(&self) -> u64 {
        (self.released + self.config.held_max).min(self.end).saturating_sub(self.reached)
    }

    /// The first byte that has not been read from TCP.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// The first byte that has not been released.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// The byte after the last of the body.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// True once all bytes are released.
    pub fn is_done(&self) -> bool {
        self.released == self.end
    }

    /// The reason, if the repair has failed; nothing more is released or requested then.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Counts and readings.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// True when `byte` is missing.
    pub fn is_missing(&self, byte: u64) -> bool {
        self.missing.next(byte).is_some_and(|(start, _)| start <= byte)
    }

    /// The parts of `range` that are missing, lowest first.
    pub fn missing_in(&self, range: Range) -> impl Iterator<Item = Range> + '_ {
        self.missing.within(range)
    }

    /// The bytes of `hole` are, or will be, placeholders. Bytes that were already released are not affected. A byte
    /// that was already filled becomes missing again, so each hole must be reported once, and before its bytes are
    /// read.
    pub fn hole(&mut self, now: Instant, hole: Range) {
        let Some(hole) = hole.common(Range { start: self.released, end: self.end }) else { return };
        let added = self.missing.add(hole);
        if added == 0 {
            return;
        }
        self.counters.holes += 1;
        self.counters.hole_bytes += added;
        if self.missing.len() > self.config.holes_max {
            self.failure.get_or_insert(Failure::Holes);
        }
        self.note_blocked(now);
    }

    /// TCP has delivered everything up to `end`, including placeholders.
    pub fn arrived(&mut self, now: Instant, end: u64) {
        debug_assert!(end <= self.reached + self.room(), "the reader keeps to the room there is");
        self.reached = self.reached.max(end.min(self.end));
        self.counters.held_bytes_max = self.counters.held_bytes_max.max(self.reached - self.released);
        self.note_blocked(now);
    }

    /// The original bytes of `range` arrived after their placeholder.
    pub fn late(&mut self, now: Instant, range: Range) {
        self.counters.late_bytes += self.fill(range, None);
        self.note_blocked(now);
    }

    /// Forbids releasing bytes from `start` on, although they are there; `None` allows all.
    pub fn hold_from(&mut self, now: Instant, start: Option<u64>) {
        self.held_from = start;
        self.note_blocked(now);
    }

    /// The next request, if there are missing bytes and the limit of requests allows one.
    pub fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.now = self.now.max(now);
        if self.failure.is_some() || self.running.len() >= self.config.parallel_max {
            return None;
        }
        let range = self.next_range(now)?;
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let parts = self.missing.mark_requested(range, id, now + self.config.deadline);
        if self.running.is_empty() {
            self.quiet_at = now + self.config.answer_timeout;
        }
        self.running.insert(id, Running { range, parts, quiet_since: now });
        self.counters.requests += 1;
        Some(Request { id, range })
    }

    /// The bytes of `range` arrived as (part of) the answer to `id`, which may have been cancelled. Returns true while
    /// more of the answer is needed.
    pub fn answered(&mut self, now: Instant, id: RequestId, range: Range) -> bool {
        let Some(running) = self.running.get_mut(&id) else {
            let filled = self.fill(range, None);
            self.counters.repaired_bytes += filled;
            self.counters.spare_bytes += range.bytes() - filled;
            self.note_blocked(now);
            return false;
        };
        running.quiet_since = now;
        let Some(range) = range.common(running.range) else { return true };
        let filled = self.fill(range, Some(id));
        self.counters.repaired_bytes += filled;
        self.counters.spare_bytes += range.bytes() - filled;
        self.note_blocked(now);
        self.running.contains_key(&id)
    }

    /// The answer to `id` has ended. Bytes that it left open, because it was short or had holes itself, are requested
    /// again at once.
    pub fn ended(&mut self, now: Instant, id: RequestId) {
        if let Some(request) = self.running.remove(&id) {
            self.fall_short(now, id, request.range, Duration::ZERO);
        }
    }

    /// The request `id` has failed.
    pub fn failed(&mut self, now: Instant, id: RequestId) {
        if let Some(request) = self.running.remove(&id) {
            self.fall_short(now, id, request.range, self.config.retry_wait);
        }
    }

    /// A request to cancel: its bytes are there, or it takes too long. Nothing needs to be reported for it any more.
    pub fn poll_cancel(&mut self) -> Option<RequestId> {
        self.cancelled.pop()
    }

    /// Bytes to hand on, at most `limit`. Each byte is released only once.
    pub fn poll_release(&mut self, now: Instant, limit: u64) -> Option<Range> {
        if self.failure.is_some() {
            return None;
        }
        let free = self.releasable_to().min(self.released.saturating_add(limit));
        let range = Range::new(self.released, free)?;
        self.released = free;
        self.note_blocked(now);
        Some(range)
    }

    /// True if [`Repair::poll_release`] would return bytes.
    pub fn can_release(&self) -> bool {
        self.failure.is_none() && self.releasable_to() > self.released
    }

    /// When [`Repair::handle_timeout`] is due, or when [`Repair::poll_request`] will return a request that only has to
    /// wait for time to pass.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.failure.is_some() {
            return None;
        }
        let quiet = (!self.running.is_empty()).then_some(self.quiet_at);
        let has_room = self.running.len() < self.config.parallel_max;
        let waiting = has_room.then(|| self.first_askable()).flatten();
        quiet.into_iter().chain(waiting).chain(self.first_deadline().map(|(_, at)| at)).min()
    }

    /// When the first part may be requested; if several may be requested by now, the time of any of them.
    fn first_askable(&self) -> Option<Instant> {
        let mut first = None;
        for (_, part) in self.askable() {
            first = Some(first.map_or(part.not_before, |first: Instant| first.min(part.not_before)));
            if part.not_before <= self.now {
                break;
            }
        }
        first
    }

    /// Cancels requests that are silent for too long, and fails once a hole is open for too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some((start, at)) = self.first_deadline()
            && at <= now
        {
            self.failure.get_or_insert(Failure::Deadline(start));
        }
        self.now = self.now.max(now);
        if self.running.is_empty() || self.quiet_at > now {
            return;
        }
        let timeout = self.config.answer_timeout;
        let is_quiet = |running: &Running| running.quiet_since + timeout <= now;
        let quiet: Vec<_> =
            self.running.iter().filter(|(_, running)| is_quiet(running)).map(|(id, _)| *id).collect();
        for id in quiet {
            self.cancelled.push(id);
            self.failed(now, id);
        }
        let first = self.running.values().map(|running| running.quiet_since).min();
        self.quiet_at = first.unwrap_or(now) + timeout;
    }

    /// The lowest hole and its deadline. Other holes have later deadlines, or hold nothing back before it is filled.
    fn first_deadline(&self) -> Option<(u64, Instant)> {
        self.missing.iter().next().and_then(|(start, part)| part.deadline.map(|at| (start, at)))
    }

    /// Bytes that are there and wait for earlier ones.
    pub fn held(&self) -> u64 {
        let above = Range::new(self.released, self.reached);
        let missing: u64 = above.into_iter().flat_map(|range| self.missing_in(range)).map(Range::bytes).sum();
        above.map_or(0, Range::bytes) - missing
    }

    fn releasable_to(&self) -> u64 {
        let there =
            self.missing.next(self.released).map_or(self.reached, |(start, _)| start.min(self.reached));
        self.held_from.map_or(there, |held| there.min(held.max(self.released)))
    }

    /// There is no room for bytes after this.
    fn window_end(&self) -> u64 {
        (self.released + self.config.held_max).min(self.end)
    }

    /// Parts without a request, as far as there is room for them.
    fn askable(&self) -> impl Iterator<Item = (u64, &Part)> {
        let end = self.window_end();
        self.missing.unasked().take_while(move |(start, _)| *start < end)
    }

    /// The lowest holes to request, combined where they are close together.
    fn next_range(&self, now: Instant) -> Option<Range> {
        let (start, first) = self.askable().find(|(_, part)| part.not_before <= now)?;
        let longest = (start + self.config.request_max).min(self.window_end());
        let mut range = Range { start, end: first.end.min(longest) };
        let free = self.config.parallel_max - self.running.len();
        let gap_max = if self.missing.unasked_len() > free && self.askable().nth(free).is_some() {
            self.config.gap_busy_max.max(self.config.gap_max)
        } else {
            self.config.gap_max
        };
        for (start, part) in self.missing.from(range.end) {
            let fits = part.end <= longest && start - range.end <= gap_max;
            if !fits || part.asked.is_some() || part.not_before > now {
                break;
            }
            range.end = part.end;
        }
        Some(range)
    }

    /// Marks `range` as filled, and cancels requests that are no longer needed.
    fn fill(&mut self, range: Range, by: Option<RequestId>) -> u64 {
        let running = &mut self.running;
        let mut idle = Vec::new();
        let filled = self.missing.remove(range, |id, parts| {
            let Some(request) = running.get_mut(&id) else { return };
            request.parts = request.parts.saturating_add_signed(parts);
            if request.parts == 0 {
                idle.push(id);
            }
        });
        for id in idle {
            let Some(request) = self.running.remove(&id) else { continue };
            // A request that has delivered its last byte ends by itself.
            if by != Some(id) || range.end < request.range.end {
                self.cancelled.push(id);
                self.counters.requests_cancelled += 1;
            }
        }
        filled
    }

    /// Returns the parts that `id` should have filled, so that they wait for another request.
    fn fall_short(&mut self, now: Instant, id: RequestId, range: Range, wait: Duration) {
        let attempts_max = self.config.attempts_max;
        let mut exhausted = None;
        let left = self.missing.give_back(id, range, |start, part| {
            part.attempts += 1;
            // Doubled at most six times, which exceeds most round-trip times.
            part.not_before = now + wait.saturating_mul(1 << (part.attempts - 1).min(6));
            if part.attempts >= attempts_max && exhausted.is_none() {
                exhausted = Some(start);
            }
        });
        self.counters.requests_short += u64::from(left > 0);
        if let Some(start) = exhausted {
            self.failure.get_or_insert(Failure::Attempts(start));
        }
    }

    /// Starts or stops the clock of data that an open hole holds back.
    fn note_blocked(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let blocked = self.releasable_to() == self.released && self.reached > self.released;
        if blocked {
            self.blocked_since.get_or_insert(now);
        } else if let Some(since) = self.blocked_since.take() {
            let span = now.saturating_since(since);
            self.counters.blocked_max = self.counters.blocked_max.max(span);
            self.counters.blocked_total += span;
        }
    }
}

#[cfg(test)]
mod tests;
