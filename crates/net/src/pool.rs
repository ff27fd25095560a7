//! The connections for repairs of one body: opened before they are needed, kept, and replaced where they break.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tacit_proto::fwp::repair::RequestId;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::answers::Request;
use crate::entity::Entity;
use crate::repair::{ConnectionId, RepairEvent, run};

/// Connections that are open and were asked for nothing, while there may be more: a handshake takes a second where its
/// answer is lost (RFC 6298), and that many in a row are lost once in 40 times where 40 % are.
const SPARE: usize = 4;
/// Bytes of a body per connection.
const BYTES_OF_SPARE: u64 = 128 * 1024;
/// Wait before a connection is opened after one that brought nothing; twice as long each further time.
const REOPEN_WAIT: Duration = Duration::from_millis(50);
/// Connections in a row that do not open.
const UNOPENED_MAX: u32 = 8;
/// Requests that wait for a connection to open, or to write them.
const WAITING: usize = 4;

#[derive(Debug)]
struct PooledConnection {
    id: ConnectionId,
    requests: mpsc::Sender<Request>,
    task: JoinHandle<()>,
    open: bool,
    has_answered: bool,
    /// Requests under way.
    asked: usize,
    /// Requests that it has yet to answer.
    open_ids: BTreeSet<RequestId>,
    /// The last byte came, or the first was asked for.
    quiet_since: Instant,
    /// When it was asked for something while it had nothing to bring, until the first bytes are there.
    asked_at: Option<Instant>,
    /// Quiet for so long that others were asked; bytes that it brings yet are taken.
    is_given_up: bool,
}

/// All connections for repairs.
#[derive(Debug)]
pub struct ConnectionPool {
    lines: Vec<PooledConnection>,
    most: usize,
    /// Of those, connections that others opened: requests for the body, hedged.
    lent: usize,
    spare: usize,
    next_id: u64,
    events: mpsc::Sender<(ConnectionId, RepairEvent)>,
    /// None is opened before.
    open_at: Instant,
    /// Those in a row that answered nothing, and of them those that did not open.
    failures: u32,
    unopened: u32,
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        self.lines.iter().for_each(|line| line.task.abort());
    }
}

impl ConnectionPool {
    /// At most `most`, for a body of `len` bytes.
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

    /// Connections that may be opened yet.
    fn room(&self) -> usize {
        self.most.saturating_sub(self.lines.len() + self.lent)
    }

    /// Lends at most `wanted` of the connections that are not open; returns how many. They come back by [`Self::take_back`].
    pub fn lend(&mut self, wanted: usize) -> usize {
        let lent = wanted.min(self.room());
        self.lent += lent;
        lent
    }

    /// The lent ones are closed.
    pub fn take_back(&mut self) {
        self.lent = 0;
    }

    /// When there is something to open.
    pub fn opens_at(&self, now: Instant) -> Option<Instant> {
        (self.open_at > now && self.room() > 0).then_some(self.open_at)
    }

    /// True where a request would go out at once, to a connection that has fewer than `depth` under way.
    pub fn has_room(&self, pipelined: usize) -> bool {
        self.lines.iter().any(|line| line.has_room(pipelined))
    }

    /// Sends a copy of a request to a connection that is asked for nothing, whichever answer comes first.
    pub fn ask_again(&mut self, now: Instant, request: Request) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.has_room(1)) {
            (line.quiet_since, line.asked_at, line.asked) = (now, Some(now), 1);
            let _ = line.requests.try_send(request);
        }
    }

    /// Sends a request for `ids` over the first connection that has room: those in use stay in use, and have followers.
    /// False where none takes it.
    pub fn ask(
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
        // One that is over says so itself, and its requests are made again.
        let _ = line.requests.try_send(request);
        true
    }

    /// `id` is connected.
    pub fn opened(&mut self, id: ConnectionId) {
        self.unopened = 0;
        self.of(id).into_iter().for_each(|line| line.open = true);
    }

    /// `id` brought something, the last bytes of `ended` included, and `answered` whole answers. How long after the request,
    /// where an answer began with it that waited for no other.
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
        let line = self.of(id)?;
        line.has_answered |= answered > 0;
        (line.quiet_since, line.is_given_up) = (now, false);
        line.asked = line.asked.saturating_sub(answered);
        for id in ended {
            line.open_ids.remove(id);
        }
        line.asked_at.take().map(|asked_at| now - asked_at)
    }

    /// `id` is over; returns the requests that it had yet to answer.
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

    /// True where enough in a row did not open to say that none will.
    pub fn cannot_open(&self) -> bool {
        self.unopened >= UNOPENED_MAX
    }

    /// Open requests of quiet connections: an answer whose tail is lost waits for the server's timer, and where most is lost
    /// for several.
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

    /// When the first goes quiet for too long.
    pub fn quiet_at(&self, patience: Duration) -> Option<Instant> {
        self.lines.iter().filter_map(PooledConnection::waits_since).min().map(|since| since + patience)
    }

    /// Ends those that were given up, and quiet for so long since.
    pub fn end_quiet(&mut self, now: Instant, patience: Duration) {
        self.lines.retain(|line| {
            let ends = line.is_given_up && line.quiet_since + patience <= now;
            if ends {
                line.task.abort();
            }
            !ends
        });
    }

    fn of(&mut self, id: ConnectionId) -> Option<&mut PooledConnection> {
        self.lines.iter_mut().find(|line| line.id == id)
    }
}

impl PooledConnection {
    fn has_room(&self, pipelined: usize) -> bool {
        self.open && !self.is_given_up && self.asked < pipelined
    }

    /// Since when it has been asked for something and brought nothing.
    fn waits_since(&self) -> Option<Instant> {
        (!self.is_given_up && self.asked > 0).then_some(self.quiet_since)
    }
}
