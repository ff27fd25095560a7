//! Which bytes of a body with holes are there, which to ask for again, and which to hand on: session repair of FWP
//! (§V-D), without sockets and without bytes.
//!
//! The reader tells of the bytes that TCP delivered ([`Repair::arrived`]) and of the placeholders in them ([`Repair::hole`],
//! always first); it makes the requests that [`Repair::poll_request`] gives, tells how they went, and takes the bytes to be
//! handed on from [`Repair::poll_release`], in order and once. Positions count bytes of the whole body that the server has.
//!
//! Memory is bounded: no more than [`Config::held_max`] bytes lie between those handed on and those read
//! ([`Repair::room`] says how many more may be read), and no more than [`Config::holes_max`] holes are open. A hole that
//! cannot be filled ends everything ([`Repair::failure`]): the paper waits for ever and names a timeout as future work.

mod missing;
mod patience;

pub use patience::Patience;

use std::collections::BTreeMap;

use crate::units::{Duration, Instant};
use missing::{Missing, Part};

/// The bytes `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

impl Range {
    /// The bytes `start..end`; `None` where those are none.
    pub const fn new(start: u64, end: u64) -> Option<Self> {
        if start < end { Some(Self { start, end }) } else { None }
    }

    /// How many bytes.
    pub const fn bytes(self) -> u64 {
        self.end - self.start
    }

    /// The common part of both.
    pub fn common(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}

/// How holes are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Requests at once.
    pub parallel_max: usize,
    /// Bytes of one request, unless the first hole alone is longer: that is cut.
    pub request_max: u64,
    /// Most bytes between holes that go into one request.
    pub gap_max: u64,
    /// Likewise, while more holes wait than requests may be made.
    pub gap_busy_max: u64,
    /// From the first request for a hole on, it may take so long.
    pub deadline: Duration,
    /// A request fails when no byte came for so long.
    pub answer_timeout: Duration,
    /// Requests for the same bytes that may fail, come back short or be hit by holes.
    pub attempts_max: u32,
    /// Wait before asking again after a failure; twice as long each further time, up to 64 times.
    pub retry_wait: Duration,
    /// Bytes between those handed on and those read.
    pub held_max: u64,
    /// Holes open at once.
    pub holes_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // Browsers open six connections to a host; RFC 9112 section 9.4 asks for restraint and names no number.
            parallel_max: 6,
            request_max: 256 * 1024,
            // A request costs about so much in heads of both directions: closer holes cost less together.
            gap_max: 512,
            // Ten segments of 1,460 bytes: at a frame error rate of 10 % the holes of a burst become one.
            gap_busy_max: 14_600,
            // Players of live video hold 8 s (§V-D): a hole must not take longer.
            deadline: Duration::from_secs(8),
            answer_timeout: Duration::from_secs(3),
            // Where half of the frames are lost one is hit so often once in 17 million times; a minute at 50 Mb/s has a quarter
            // of a million.
            attempts_max: 24,
            retry_wait: Duration::from_millis(10),
            held_max: 8 * 1024 * 1024,
            holes_max: 8192,
        }
    }
}

/// The name of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Bytes to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name.
    pub id: RequestId,
    /// Holes, and the bytes between them.
    pub range: Range,
}

/// Why a body cannot be made whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The byte's hole was the lowest, and open for longer than [`Config::deadline`].
    #[error("byte {0} did not come in time")]
    Deadline(u64),
    /// The byte was asked for [`Config::attempts_max`] times.
    #[error("byte {0} did not come, however often it was asked for")]
    Attempts(u64),
    /// More holes than [`Config::holes_max`].
    #[error("more holes than can be kept track of")]
    Holes,
}

crate::counters! {
    /// Counts since the start.
    pub struct Counters {
        /// Holes told of.
        holes: u64,
        /// Bytes in them.
        hole_bytes: u64,
        /// Bytes of them whose original came after all, before an answer had them.
        late_bytes: u64,
        /// Requests made.
        requests: u64,
        /// Requests that failed, timed out or left a hole open.
        requests_short: u64,
        /// Requests that were not needed any more before they had ended.
        requests_cancelled: u64,
        /// Bytes of answers that filled holes.
        repaired_bytes: u64,
        /// Bytes of answers that were there already.
        spare_bytes: u64,
        /// All times together for which an open hole, or [`Repair::hold_from`], held back bytes that were there.
        blocked_total: Duration,
    }
    peaks {
        /// Most bytes that were held at a time.
        held_bytes_max: u64,
        /// Longest of those times.
        blocked_max: Duration,
    }
}

/// A request that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    range: Range,
    /// Holes still open that it is to fill.
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
    /// No request is quiet for too long before.
    quiet_at: Instant,
    /// The latest time that it was told.
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

    /// How many more bytes may be read from TCP now. Zero: read nothing until something is released.
    pub fn room(&self) -> u64 {
        (self.released + self.config.held_max).min(self.end).saturating_sub(self.reached)
    }

    /// The first byte that was not read from TCP yet.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// The first byte that was not released yet.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// The byte after the last of the body.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// True once all is released.
    pub fn is_done(&self) -> bool {
        self.released == self.end
    }

    /// Why it cannot go on, if so: nothing is released or asked for any more.
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

    /// The bytes of `hole` are, or will be, placeholders. Released bytes stay; filled bytes stay filled only
    /// where the hole is told of before it is read, so holes are told of first and once.
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

    /// TCP delivered everything up to `end`, placeholders included.
    pub fn arrived(&mut self, now: Instant, end: u64) {
        debug_assert!(end <= self.reached + self.room(), "the reader keeps to the room there is");
        self.reached = self.reached.max(end.min(self.end));
        self.counters.held_bytes_max = self.counters.held_bytes_max.max(self.reached - self.released);
        self.note_blocked(now);
    }

    /// The original bytes of `range` came after their placeholder.
    pub fn late(&mut self, now: Instant, range: Range) {
        self.counters.late_bytes += self.fill(range, None);
        self.note_blocked(now);
    }

    /// Bytes from `start` on are not to be released, though they are there; `None` where all may be.
    pub fn hold_from(&mut self, now: Instant, start: Option<u64>) {
        self.held_from = start;
        self.note_blocked(now);
    }

    /// The bytes to ask for next, while there are any and requests are free.
    pub fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.now = self.now.max(now);
        if self.failure.is_some() || self.running.len() >= self.config.parallel_max {
            return None;
        }
        let range = self.next_range(now)?;
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let parts = self.missing.ask(range, id, now + self.config.deadline);
        if self.running.is_empty() {
            self.quiet_at = now + self.config.answer_timeout;
        }
        self.running.insert(id, Running { range, parts, quiet_since: now });
        self.counters.requests += 1;
        Some(Request { id, range })
    }

    /// The bytes of `range` came as (part of) the answer to `id`, which may have been given up. True while more of it is
    /// wanted.
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

    /// The answer to `id` is over. Bytes that it left open, because it was short or hit by holes itself, are asked for again at
    /// once.
    pub fn ended(&mut self, now: Instant, id: RequestId) {
        if let Some(request) = self.running.remove(&id) {
            self.fall_short(now, id, request.range, Duration::ZERO);
        }
    }

    /// There is no answer to `id`.
    pub fn failed(&mut self, now: Instant, id: RequestId) {
        if let Some(request) = self.running.remove(&id) {
            self.fall_short(now, id, request.range, self.config.retry_wait);
        }
    }

    /// A request to give up: its bytes are there, or it takes too long. Nothing has to be told of it any more.
    pub fn poll_cancel(&mut self) -> Option<RequestId> {
        self.cancelled.pop()
    }

    /// Bytes to hand on, at most `limit`. They are forgotten here: nothing is released twice.
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

    /// True when [`Repair::poll_release`] has something.
    pub fn can_release(&self) -> bool {
        self.failure.is_none() && self.releasable_to() > self.released
    }

    /// When [`Repair::handle_timeout`] has something to do, or [`Repair::poll_request`] something to ask for that waits
    /// for nothing but time.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.failure.is_some() {
            return None;
        }
        let quiet = (!self.running.is_empty()).then_some(self.quiet_at);
        let has_room = self.running.len() < self.config.parallel_max;
        let waiting = has_room.then(|| self.first_askable()).flatten();
        quiet.into_iter().chain(waiting).chain(self.first_deadline().map(|(_, at)| at)).min()
    }

    /// When the first part may be asked for; where several might by now, of any of them.
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

    /// Gives up requests that went quiet, and everything once a hole is open for too long.
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

    /// The lowest hole, and when it has to be filled. Others are asked for later, or hold nothing back before it is.
    fn first_deadline(&self) -> Option<(u64, Instant)> {
        self.missing.iter().next().and_then(|(start, part)| part.deadline.map(|at| (start, at)))
    }

    /// Bytes that are there and wait for others before them.
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

    /// Bytes behind this have no place yet.
    fn window_end(&self) -> u64 {
        (self.released + self.config.held_max).min(self.end)
    }

    /// Parts without a request, as far as there is room for them.
    fn askable(&self) -> impl Iterator<Item = (u64, &Part)> {
        let end = self.window_end();
        self.missing.unasked().take_while(move |(start, _)| *start < end)
    }

    /// The lowest holes to ask for, as many as belong together.
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

    /// Takes `range` out of the missing bytes, and gives up requests that are left without a purpose.
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
            // An answer that has brought its last byte ends by itself.
            if by != Some(id) || range.end < request.range.end {
                self.cancelled.push(id);
                self.counters.requests_cancelled += 1;
            }
        }
        filled
    }

    /// Parts that `id` was to fill wait for another request.
    fn fall_short(&mut self, now: Instant, id: RequestId, range: Range, wait: Duration) {
        let attempts_max = self.config.attempts_max;
        let mut exhausted = None;
        let left = self.missing.give_back(id, range, |start, part| {
            part.attempts += 1;
            // Doubled six times it is longer than most round trips.
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

    /// Keeps the clock of the data that an open hole holds back.
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
