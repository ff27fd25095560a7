//! The repair connections of one body: opened before they are needed, kept open, and replaced when they break.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tacit_between::fwp::repair::RequestId;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::answers::Request;
use crate::entity::Entity;
use crate::repair::{ConnectionId, RepairEvent, run};

/// Idle connections to keep open, within the limit. A handshake takes a second if its SYN-ACK is lost (RFC 6298); at 40
/// % loss, this number of handshakes in a row is lost once in 40 times.
const SPARE: usize = 4;
/// Bytes of a body per connection.
const BYTES_OF_SPARE: u64 = 128 * 1024;
/// Delay before a connection is opened after one that delivered nothing. It doubles with each failure.
const REOPEN_WAIT: Duration = Duration::from_millis(50);
/// Failures in a row to open a connection.
const UNOPENED_MAX: u32 = 8;
/// Requests that may wait for a connection to open or to become writable.
const WAITING: usize = 4;

#[derive(Debug)]
struct PooledConnection {
    id: ConnectionId,
    requests: mpsc::Sender<Request>,
    task: JoinHandle<()>,
    open: bool,
    has_answered: bool,
    /// Requests in progress.
    asked: usize,
    /// Repair requests that it has yet to answer.
    open_ids: BTreeSet<RequestId>,
    /// When the last byte arrived or, if later, when the first request was sent.
    quiet_since: Instant,
    /// When a request was sent on the idle connection; cleared by the first bytes of the answer.
    asked_at: Option<Instant>,
    /// It was quiet for too long, and its requests went to other connections. Bytes that still arrive are used.
    is_given_up: bool,
}

/// All repair connections.
#[derive(Debug)]
pub struct ConnectionPool {
    lines: Vec<PooledConnection>,
    most: usize,
    /// Of the limit, connections opened by others: hedged requests for the body.
    lent: usize,
    spare: usize,
    next_id: u64,
    events: mpsc::Sender<(ConnectionId, RepairEvent)>,
    /// No connection is opened earlier than this.
    open_at: Instant,
    /// Connections in a row that answered nothing, and of these the ones that could not be opened.
    failures: u32,
    unopened: u32,
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        self.lines.iter().for_each(|line| line.task.abort());
    }
}

impl ConnectionPool {
    /// A pool of at most `most` connections for a body of `len` bytes.
    pub fn new(
        most: usize,
        bytes: u64,
        events: mpsc::Sender<(ConnectionId, RepairEvent)>,
        now: Instant,
    ) -> Self {
        let wanted = usize::try_from(bytes.div_ceil(BYTES_OF_SPARE)).unwrap_or(SPARE);
        Self {
            lines: Vec::new(),
            most,
            lent: 0,
            spare: SPARE.min(wanted).max(1),
            next_id: 0,
            events,
            open_at: now,
            failures: 0,
            unopened: 0,
        }
    }

    /// Opens the connections that are missing.
    pub fn open(&mut self, now: Instant, entity: &Arc<Entity>) {
        let idle = self.lines.iter().filter(|line| line.asked == 0 && !line.is_given_up).count();
        if now < self.open_at {
            return;
        }
        for _ in idle..self.spare {
            if self.room() == 0 {
                return;
            }
            let id = ConnectionId(self.next_id);
            self.next_id += 1;
            let (requests, waiting) = mpsc::channel(WAITING);
            let task = tokio::spawn(run(id, Arc::clone(entity), waiting, self.events.clone()));
            self.lines.push(PooledConnection {
                id,
                requests,
                task,
                open: false,
                has_answered: false,
                asked: 0,
                open_ids: BTreeSet::new(),
                quiet_since: now,
                asked_at: None,
                is_given_up: false,
            });
        }
    }

    /// Connections that may still be opened.
    fn room(&self) -> usize {
        self.most.saturating_sub(self.lines.len() + self.lent)
    }

    /// Lends up to `wanted` connections of the limit that are not open, and returns their number. [`Self::take_back`]
    /// returns them.
    pub fn lend(&mut self, wanted: usize) -> usize {
        let lent = wanted.min(self.room());
        self.lent += lent;
        lent
    }

    /// Ends the loan: the lent connections are closed.
    pub fn take_back(&mut self) {
        self.lent = 0;
    }

    /// When the next connection may be opened, if one is missing.
    pub fn opens_at(&self, now: Instant) -> Option<Instant> {
        (self.open_at > now && self.room() > 0).then_some(self.open_at)
    }

    /// True if a request can be sent at once, on a connection with fewer than `pipelined` requests in progress.
    pub fn has_room(&self, pipelined: usize) -> bool {
        self.lines.iter().any(|line| line.has_room(pipelined))
    }

    /// Sends a copy of a request on an idle connection; the first answer is used.
    pub fn send_copy(&mut self, now: Instant, request: Request) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.has_room(1)) {
            (line.quiet_since, line.asked_at, line.asked) = (now, Some(now), 1);
            let _ = line.requests.try_send(request);
        }
    }

    /// Sends a request for `ids` on the first connection with room, so that busy connections stay busy. Returns false
    /// if none has room.
    pub fn send(
        &mut self,
        now: Instant,
        pipelined: usize,
        request: Request,
        ids: impl Iterator<Item = RequestId>,
    ) -> bool {
        let Some(line) = self.lines.iter_mut().find(|line| line.has_room(pipelined)) else { return false };
        line.open_ids.extend(ids);
        if line.asked == 0 {
            (line.quiet_since, line.asked_at) = (now, Some(now));
        }
        line.asked += 1;
        // A connection that has ended reports that itself, and its requests are then repeated.
        let _ = line.requests.try_send(request);
        true
    }

    /// Connection `id` is open.
    pub fn opened(&mut self, id: ConnectionId) {
        self.unopened = 0;
        self.find(id).into_iter().for_each(|line| line.open = true);
    }

    /// Connection `id` delivered bytes, including the last ones of `ended`, and `answered` complete answers. Returns
    /// the time since the request if an answer began with these bytes and had no other answer before it.
    pub fn received(
        &mut self,
        now: Instant,
        id: ConnectionId,
        ended: &[RequestId],
        answered: usize,
    ) -> Option<Duration> {
        if answered > 0 {
            self.failures = 0;
        }
        let line = self.find(id)?;
        line.has_answered |= answered > 0;
        (line.quiet_since, line.is_given_up) = (now, false);
        line.asked = line.asked.saturating_sub(answered);
        for id in ended {
            line.open_ids.remove(id);
        }
        line.asked_at.take().map(|asked_at| now - asked_at)
    }

    /// Connection `id` has ended; returns the repair requests that it had yet to answer.
    pub fn over(&mut self, now: Instant, id: ConnectionId) -> BTreeSet<RequestId> {
        let Some(place) = self.lines.iter().position(|line| line.id == id) else { return BTreeSet::new() };
        let line = self.lines.remove(place);
        self.unopened += u32::from(!line.open);
        if !line.has_answered {
            self.open_at = now + REOPEN_WAIT * (1 << self.failures.min(6));
            self.failures += 1;
        }
        line.open_ids
    }

    /// True after `UNOPENED_MAX` failures to open in a row, when further attempts are pointless.
    pub fn cannot_open(&self) -> bool {
        self.unopened >= UNOPENED_MAX
    }

    /// Gives up on quiet connections and returns their open repair requests. An answer with a lost tail waits for the
    /// server's retransmission timer, at high loss rates several times.
    pub fn give_up_quiet(&mut self, now: Instant, patience: Duration) -> Vec<RequestId> {
        let quiet =
            self.lines.iter_mut().filter(|line| line.waits_since().is_some_and(|at| at + patience <= now));
        let mut ids = Vec::new();
        for line in quiet {
            line.is_given_up = true;
            ids.extend(std::mem::take(&mut line.open_ids));
        }
        ids
    }

    /// When the first connection will have been quiet for too long.
    pub fn quiet_at(&self, patience: Duration) -> Option<Instant> {
        self.lines.iter().filter_map(PooledConnection::waits_since).min().map(|since| since + patience)
    }

    /// Closes connections that were given up and have since been quiet for `patience`.
    pub fn end_quiet(&mut self, now: Instant, patience: Duration) {
        self.lines.retain(|line| {
            let ends = line.is_given_up && line.quiet_since + patience <= now;
            if ends {
                line.task.abort();
            }
            !ends
        });
    }

    fn find(&mut self, id: ConnectionId) -> Option<&mut PooledConnection> {
        self.lines.iter_mut().find(|line| line.id == id)
    }
}

impl PooledConnection {
    fn has_room(&self, pipelined: usize) -> bool {
        self.open && !self.is_given_up && self.asked < pipelined
    }

    /// Since when it has waited for bytes, if a request is in progress.
    fn waits_since(&self) -> Option<Instant> {
        (!self.is_given_up && self.asked > 0).then_some(self.quiet_since)
    }
}
