//! A body that is received over a flow with placeholders and completed by range requests.
//!
//! One task owns all state: the connection that carries the body (the main one), the repair requests, and the bytes
//! held back. If the main connection breaks, a new one continues with the missing bytes. Bytes that cannot be repaired
//! are received over a connection without placeholders. If the file changes on the server, the session fails.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use tacit_between::fwp::repair::{Config, Counters, Patience, Range, Repair};
use tacit_packet::units::Instant;
use tokio::sync::mpsc;

use crate::answers::{RANGES_MAX, Request, Several, Unusable};
use crate::body::RepairStats;
use crate::connection::Connection;
use crate::entity::{Entity, MainAnswer};
use crate::error::NetError;
use crate::hedge;
use crate::partial::RangeError;
use crate::pool::ConnectionPool;
use crate::prover::{Proof, Prover};
use crate::repair::{ConnectionId, Piece, RepairEvent};
use crate::store::Store;
use crate::unproven::UnprovenRanges;
use crate::watched::Watch;

/// A main answer and how far it has been read.
struct Reading {
    main: MainAnswer,
    /// Stream position of its first byte, if its flow is registered.
    stream: u64,
    /// Position in the file of the next byte.
    at: u64,
    /// Bytes that did not fit in the buffer.
    kept: Bytes,
    late: Vec<(u64, Vec<u8>)>,
    /// How often the shim has switched off, as last reported.
    switched_off: u64,
    /// Only late bytes can still arrive.
    is_over: bool,
}

/// An event that a session waits for.
enum Event {
    Repair(ConnectionId, RepairEvent),
    /// The reader has room for bytes that can be released; false if the reader is gone.
    Room(bool),
    Opened(Result<MainAnswer, NetError>),
    Proven(Result<Proof, NetError>),
    Frame(Result<Option<Bytes>, NetError>),
    /// A message from the shim has arrived.
    ShimMessage,
    Time,
}

/// Produces the bytes `body` of `entity`, whose beginning `first` carries, and sends them in order.
pub async fn run(
    entity: Arc<Entity>,
    body: Range,
    first: Option<MainAnswer>,
    bytes: mpsc::Sender<Result<Bytes, NetError>>,
    report: Arc<Mutex<RepairStats>>,
) {
    let mut session =
        Session::new(Arc::clone(&entity), body, first, true, bytes.clone(), Arc::clone(&report));
    let mut result = session.run().await;
    let released = session.repair.released();
    drop(session);
    if let (Err(error), Some(rest)) = (&result, Range::new(released, body.end))
        && is_repairs_fault(error)
    {
        report.lock().unwrap_or_else(PoisonError::into_inner).fell_back = true;
        result = Session::new(entity, rest, None, false, bytes.clone(), report).run().await;
    }
    if let Err(error) = result {
        // Fails if the reader is gone, too, which needs no handling.
        let _ = bytes.send(Err(error)).await;
    }
}

/// True for errors that could not occur without placeholders.
fn is_repairs_fault(error: &NetError) -> bool {
    matches!(
        error,
        NetError::Unrepaired(_)
            | NetError::Misplaced
            | NetError::Hop(_)
            | NetError::Range(
                RangeError::Ignored
                    | RangeError::Multipart
                    | RangeError::Coded
                    | RangeError::Wrong
                    | RangeError::Unproven
            )
    )
}

/// True for a status that a busy server sends and that may pass (RFC 9110 section 15.6).
fn is_passing(error: &NetError) -> bool {
    matches!(error, NetError::Range(RangeError::Status(429 | 500..=599)))
}

/// How often in a row the main connection may break without delivering anything.
const RESUMES_MAX: u32 = 5;
/// Delay before it is opened again. It doubles each time.
const RESUME_WAIT: Duration = Duration::from_millis(100);
/// Most late originals that are kept because they arrived before their placeholders were read.
const LATE_MAX: usize = 1024;
/// Connections that may end before a server has shown how it answers several ranges; after that, single ranges are
/// requested.
const ENDED_BEFORE_SHAPE_MAX: u32 = 4;
/// A request for at most this number of holes is also sent on other idle connections: the last holes wait for nothing
/// else, so only a lost answer can delay them.
const FEW: usize = 8;
/// Number of such copies.
const COPIES: usize = 2;
/// Most events of repair connections that may wait.
const REPAIR_EVENTS_WAITING: usize = 16;
/// Most bytes per chunk that is handed on.
const PIECE: u64 = 64 * 1024;

/// How long holes are collected before they are requested: the paper's round trip time (Table I). A few more holes in
/// one request cost little, and every further answer has a head that may be hit.
const GATHER: Duration = Duration::from_millis(40);
/// Requests need no timeout, because their connections have one.
const NEVER: tacit_packet::units::Duration = tacit_packet::units::Duration::from_secs(1 << 30);

fn std_time(span: tacit_packet::units::Duration) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

fn core_time(span: Duration) -> tacit_packet::units::Duration {
    tacit_packet::units::Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

type Opening = std::pin::Pin<Box<dyn Future<Output = Result<MainAnswer, NetError>> + Send>>;

struct Session {
    entity: Arc<Entity>,
    repair: Repair,
    store: Store,
    reading: Option<Reading>,
    opening: Option<Opening>,
    registered: bool,
    resumes: u32,
    started: tokio::time::Instant,
    last_bytes: tokio::time::Instant,
    /// When bytes arrived that had not been received before.
    last_progress: tokio::time::Instant,
    bytes: mpsc::Sender<Result<Bytes, NetError>>,
    repair_events: mpsc::Receiver<(ConnectionId, RepairEvent)>,
    pool: ConnectionPool,
    /// How long a repair connection may be silent.
    patience: Patience,
    /// Connections that have ended.
    ended_connections: u32,
    /// No request is sent earlier than this.
    ask_at: tokio::time::Instant,
    doubts: UnprovenRanges,
    prover: Prover,
    /// Counters of earlier attempts at the same body.
    before: Counters,
    report: Arc<Mutex<RepairStats>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.publish_counters();
    }
}

impl Session {
    fn new(
        entity: Arc<Entity>,
        body: Range,
        first: Option<MainAnswer>,
        registered: bool,
        bytes: mpsc::Sender<Result<Bytes, NetError>>,
        report: Arc<Mutex<RepairStats>>,
    ) -> Self {
        let config = entity.connector.settings.repair;
        // A body shorter than the ring needs no larger one.
        let room = config.held_max.min(body.bytes());
        let mut patience = Patience::new(config.answer_timeout);
        if let Some(main) = &first {
            patience.answered(core_time(main.connection.answered_in));
        }
        let lines_max = config.parallel_max;
        let parallel_max = lines_max.saturating_mul(2 * RANGES_MAX);
        let config = Config { held_max: room, answer_timeout: NEVER, parallel_max, ..config };
        let (events, repair_events) = mpsc::channel(REPAIR_EVENTS_WAITING);
        let now = tokio::time::Instant::now();
        // If the shim does not serve the first connection, there are no holes.
        let repairs = registered && first.as_ref().is_none_or(|main| main.connection.watch.flow.is_some());
        let pool = ConnectionPool::new(if repairs { lines_max } else { 0 }, body.bytes(), events, now);
        let before = report.lock().unwrap_or_else(PoisonError::into_inner).counters;
        let reading = first.map(Reading::new);
        Self {
            repair: Repair::new(config, body),
            store: Store::new(usize::try_from(room).unwrap_or(usize::MAX)),
            reading,
            opening: None,
            registered,
            resumes: 0,
            started: now,
            last_bytes: now,
            last_progress: now,
            bytes,
            repair_events,
            pool,
            patience,
            ended_connections: 0,
            ask_at: now,
            doubts: UnprovenRanges::default(),
            prover: Prover::default(),
            entity,
            before,
            report,
        }
    }

    fn now(&self) -> Instant {
        let since = tokio::time::Instant::now().saturating_duration_since(self.started);
        Instant::ZERO + core_time(since)
    }

    fn publish_counters(&self) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.counters = self.before.plus(self.repair.counters());
    }

    async fn run(&mut self) -> Result<(), NetError> {
        loop {
            self.step()?;
            if self.repair.is_done() {
                return Ok(());
            }
            if !self.wait().await? {
                // The reader is gone.
                return Ok(());
            }
        }
    }

    /// Does everything that is due now, without waiting.
    fn step(&mut self) -> Result<(), NetError> {
        let now = self.now();
        self.repair.handle_timeout(now);
        while self.repair.poll_cancel().is_some() {
            // The answer is already arriving on a connection that is kept; its bytes are ignored.
        }
        self.request_holes(now);
        self.request_proof();
        if let Some(failure) = self.repair.failure() {
            return Err(failure.into());
        }
        if self.reading.is_none() && self.opening.is_none() {
            self.reopen(None);
        }
        self.publish_counters();
        Ok(())
    }

    /// Waits for the next event. Returns false once the reader is gone.
    async fn wait(&mut self) -> Result<bool, NetError> {
        let idle = self.entity.connector.settings.idle_timeout;
        let quiet = self.last_bytes + idle;
        let timeout = self.timeout().map_or(quiet, |at| quiet.min(at));
        let wants_bytes = self.repair.room() > 0;
        let watch = self.reading.as_ref().map(|reading| Arc::clone(&reading.main.connection.watch));
        let event = tokio::select! {
            biased;
            // Never `None`: this task holds a sender, too.
            Some((id, event)) = self.repair_events.recv() => Event::Repair(id, event),
            room = self.bytes.reserve(), if self.repair.can_release() => Event::Room(room.is_ok()),
            opened = next(&mut self.opening) => Event::Opened(opened),
            proof = self.prover.next() => Event::Proven(proof),
            bytes = frame(&mut self.reading), if wants_bytes => Event::Frame(bytes),
            () = shim_message(watch.as_deref()) => Event::ShimMessage,
            () = tokio::time::sleep_until(timeout) => Event::Time,
        };
        match event {
            Event::Repair(id, event) => self.on_repair_event(id, event)?,
            Event::Room(false) => return Ok(false),
            Event::Room(true) => {
                if let Some(range) = self.repair.poll_release(self.now(), PIECE) {
                    // Cannot be full: there was room, and no other task sends.
                    return Ok(self.bytes.try_send(Ok(self.store.read(range))).is_ok());
                }
            }
            Event::Opened(opened) => {
                self.opening = None;
                self.pool.take_back();
                self.last_bytes = tokio::time::Instant::now();
                match opened {
                    Ok(main) => self.reading = Some(Reading::new(main)),
                    Err(error) => self.broke(error)?,
                }
            }
            Event::Proven(proof) => {
                if let Some(number) = self.prover.done(tokio::time::Instant::now(), proof)? {
                    self.settle(number);
                }
            }
            Event::Frame(Ok(Some(bytes))) => self.take(bytes)?,
            Event::Frame(Ok(None)) => self.ended()?,
            Event::Frame(Err(error)) => self.broke(error)?,
            Event::ShimMessage => self.take_late()?,
            Event::Time => {
                let now = tokio::time::Instant::now();
                if !wants_bytes || self.reading.is_none() {
                    // The session is not waiting for this answer; opening a connection has its own time limit.
                    self.last_bytes = now;
                } else if now >= self.last_bytes + idle {
                    self.broke(NetError::Timeout("the rest of the body"))?;
                }
            }
        }
        Ok(!self.bytes.is_closed())
    }

    /// Stores bytes of the main answer, as far as there is room.
    fn take(&mut self, bytes: Bytes) -> Result<(), NetError> {
        let now = self.now();
        self.last_bytes = tokio::time::Instant::now();
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let reached = self.repair.reached();
        // A whole answer to a request for a part begins with bytes that were received before.
        let skip = reached.saturating_sub(reading.at).min(bytes.len() as u64);
        let fits = bytes.len().min(usize::try_from(skip + self.repair.room()).unwrap_or(usize::MAX));
        let mut bytes = bytes;
        reading.kept = bytes.split_off(fits);
        let end = reading.at + fits as u64;
        for hole in reading.take_holes(end) {
            reading.main.connection.watch.count_placeholders(hole.bytes());
            if let Some(hole) = hole.common(Range { start: reached.min(end), end }) {
                self.repair.hole(now, hole);
            }
        }
        let start = reading.at + skip;
        if end > reached {
            // Only new bytes count as progress: a server that cuts each answer at the same place is given up as early
            // as a silent one.
            (self.resumes, self.last_progress) = (0, self.last_bytes);
        }
        let is_in_doubt = self.registered && !reading.main.is_proven;
        reading.at = end;
        if let Some(fresh) = Range::new(start, end) {
            if is_in_doubt {
                self.doubt(fresh.start);
            }
            self.store.write(fresh.start, &bytes[skip as usize..]);
            self.repair.arrived(now, fresh.end);
        }
        self.take_late()
    }

    /// Stores originals that arrived late, once their placeholders have been read.
    fn take_late(&mut self) -> Result<(), NetError> {
        let now = self.now();
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let Some(flow) = &reading.main.connection.watch.flow else { return Ok(()) };
        flow.drain()?;
        {
            let switched_off = flow.switched_off();
            let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
            report.switched_off += switched_off - reading.switched_off;
            reading.switched_off = switched_off;
        }
        reading.late.extend(flow.take_late());
        let reached = self.repair.reached();
        // All bytes below this stream position have been read.
        let stream_reached = reading.stream + reached.saturating_sub(reading.main.has.start);
        let (come, early) = std::mem::take(&mut reading.late)
            .into_iter()
            .partition(|(start, bytes)| start + bytes.len() as u64 <= stream_reached);
        reading.late = early;
        // Dropped bytes are requested instead.
        reading.late.truncate(LATE_MAX);
        let come: Vec<(u64, Vec<u8>)> = come;
        let come: Vec<_> = come
            .into_iter()
            .filter_map(|(start, bytes)| Some((reading.entity_position(start)?, bytes)))
            .collect();
        for (start, bytes) in come {
            if let Some(range) = Range::new(start, start + bytes.len() as u64) {
                self.put(range, &bytes, true);
                self.repair.late(now, range);
            }
        }
        Ok(())
    }

    /// Stores those of `bytes` that are missing.
    fn put(&mut self, range: Range, bytes: &[u8], is_proven: bool) {
        let first = self.repair.missing_in(range).next();
        if let Some(first) = first.filter(|_| !is_proven) {
            self.doubt(first.start);
        }
        for part in self.repair.missing_in(range) {
            let from = (part.start - range.start) as usize;
            self.store.write(part.start, &bytes[from..from + part.bytes() as usize]);
            if let Some(reading) = &self.reading {
                reading.repaired(part);
            }
        }
    }

    /// Marks bytes from `start` on as unproven: nothing has named their version of the file.
    fn doubt(&mut self, start: u64) {
        self.doubts.add(self.entity.asked.load(Ordering::Relaxed), start);
        self.repair.hold_from(self.now(), self.doubts.first());
    }

    /// The answer to request `number` confirms that the file has not changed.
    fn settle(&mut self, number: u64) {
        self.doubts.settle(number);
        self.repair.hold_from(self.now(), self.doubts.first());
    }

    /// Keeps a connection ready while bytes are unproven, and sends a HEAD request when they hold back received bytes:
    /// at once if no other request in progress could settle the question.
    fn request_proof(&mut self) {
        let Some(first) = self.doubts.first() else { return self.prover.rest() };
        let end = self.repair.end();
        let is_rest = self.repair.reached() == end
            && self.repair.missing_in(Range { start: first, end }).next().is_none();
        let is_held = first == self.repair.released();
        self.prover.step(tokio::time::Instant::now(), &self.entity, is_held, is_rest);
    }

    /// The main answer has ended.
    fn ended(&mut self) -> Result<(), NetError> {
        let Some(reading) = self.reading.take() else { return Ok(()) };
        if reading.at < reading.main.has.end {
            return self.broke(NetError::Broken("the body ended early".to_owned()));
        }
        if self.repair.reached() < self.repair.end() {
            self.reopen(Some(reading.main.connection));
        } else {
            // Late bytes can still fill holes.
            self.reading = Some(Reading { is_over: true, ..reading });
        }
        Ok(())
    }

    /// The main connection is lost. Opens another one, unless that cannot help.
    fn broke(&mut self, error: NetError) -> Result<(), NetError> {
        self.reading = None;
        self.resumes += 1;
        let helps = matches!(
            error,
            NetError::Broken(_) | NetError::Timeout(_) | NetError::Connect { .. } | NetError::Misplaced
        ) || is_passing(&error);
        // The first retry after a silence is allowed regardless of how long the silence was.
        let is_out_of_time =
            self.resumes > 1 && self.last_progress.elapsed() >= self.entity.connector.settings.idle_timeout;
        if !helps || self.resumes > RESUMES_MAX || is_out_of_time {
            return Err(error);
        }
        self.report.lock().unwrap_or_else(PoisonError::into_inner).resumed += 1;
        Ok(())
    }

    /// Requests the bytes that have not been read yet.
    fn reopen(&mut self, connection: Option<Connection>) {
        let Some(rest) = Range::new(self.repair.reached(), self.repair.end()) else { return };
        let (entity, registered) = (Arc::clone(&self.entity), self.registered);
        let wait = match self.resumes {
            0 => Duration::ZERO,
            resumes => RESUME_WAIT * (1 << resumes.min(6)),
        };
        let connection = connection.filter(Connection::is_reusable);
        let worthwhile =
            connection.as_ref().filter(|_| registered).map_or(0, |first| hedge::worthwhile(first, rest));
        let hedges_max = self.pool.lend(worthwhile);
        self.opening = Some(Box::pin(async move {
            tokio::time::sleep(wait).await;
            match connection {
                Some(connection) if registered => hedge::request(entity, connection, rest, hedges_max).await,
                connection => entity.request_on(connection, rest, registered).await,
            }
        }));
    }

    /// When a step is due that no event announces.
    fn timeout(&self) -> Option<tokio::time::Instant> {
        let now = tokio::time::Instant::now();
        let pipelined = self.entity.shape().pipelined();
        let repair = self.repair.poll_timeout().map(|at| self.started + Duration::from_nanos(at.as_nanos()));
        // Holes that are due are waiting for more holes, or for a connection; those have timers or events of their own.
        let repair = repair.and_then(|at| {
            let has_room = self.pool.has_room(pipelined);
            if at > now { Some(at) } else { has_room.then_some(self.ask_at) }
        });
        let quiet = self.pool.quiet_at(std_time(self.patience.time()));
        repair.into_iter().chain(quiet).chain(self.pool.opens_at(now)).chain(self.prover.poll_timeout()).min()
    }

    /// Requests holes, as many in one request as the server answers.
    fn request_holes(&mut self, now: Instant) {
        let at = tokio::time::Instant::now();
        self.pool.open(at, &self.entity);
        for id in self.pool.give_up_quiet(at, std_time(self.patience.time())) {
            self.repair.failed(now, id);
        }
        self.pool.end_quiet(at, std_time(self.patience.longest()));
        let (is_known, ranges_max, pipelined) = {
            let shape = self.entity.shape();
            (shape.is_known(), shape.most_ranges(), shape.pipelined())
        };
        if !is_known || at < self.ask_at {
            return;
        }
        while self.pool.has_room(pipelined) {
            let holes = std::iter::from_fn(|| self.repair.poll_request(now)).take(ranges_max);
            let holes: Vec<_> = holes.map(|hole| (hole.id, hole.range)).collect();
            if holes.is_empty() {
                return;
            }
            if ranges_max > 1 {
                self.ask_at = at + GATHER;
            }
            let request = Request::new(self.entity.next_number(), &holes, &self.entity.shape());
            let is_rest = holes.len() <= FEW && self.repair.reached() == self.repair.end();
            let copies = if is_rest { COPIES } else { 0 };
            self.pool.send(at, pipelined, request.clone(), holes.into_iter().map(|(id, _)| id));
            for _ in 0..copies {
                self.pool.send_copy(at, request.clone());
            }
        }
    }

    fn on_repair_event(&mut self, id: ConnectionId, event: RepairEvent) -> Result<(), NetError> {
        let now = self.now();
        match event {
            RepairEvent::Open => self.pool.opened(id),
            RepairEvent::Received(received) => {
                let at = tokio::time::Instant::now();
                for Piece { id, position, bytes, is_proven } in received.pieces {
                    if let Some(range) = Range::new(position, position + bytes.len() as u64) {
                        self.put(range, &bytes, is_proven);
                        self.repair.answered(now, id, range);
                    }
                }
                received.proven.into_iter().for_each(|number| self.settle(number));
                if let Some(after) = self.pool.received(at, id, &received.ended, received.answered) {
                    self.patience.answered(core_time(after));
                }
                for id in received.ended {
                    self.repair.ended(now, id);
                }
            }
            RepairEvent::Over(why) => {
                let at = tokio::time::Instant::now();
                for id in self.pool.over(at, id) {
                    self.repair.failed(now, id);
                }
                self.ended_connections += 1;
                if !self.entity.shape().is_known() && self.ended_connections >= ENDED_BEFORE_SHAPE_MAX {
                    self.entity.shape().several = Several::No;
                }
                match why {
                    Unusable::Refuses(ranges) => self.entity.shape().refuses(ranges),
                    Unusable::Net(error) if self.pool.cannot_open() => return Err(error),
                    // A repeated request would fail in the same way.
                    Unusable::Net(error @ NetError::Range(_)) if !is_passing(&error) => return Err(error),
                    // Another connection may succeed.
                    Unusable::Net(_) | Unusable::Over => (),
                }
            }
        }
        Ok(())
    }
}

impl Reading {
    fn new(main: MainAnswer) -> Self {
        let stream = main.connection.watch.body().map_or(0, |body| body.start);
        Self {
            stream,
            at: main.has.start,
            kept: Bytes::new(),
            late: Vec::new(),
            switched_off: 0,
            is_over: false,
            main,
        }
    }

    fn entity_position(&self, stream: u64) -> Option<u64> {
        Some(stream.checked_sub(self.stream)? + self.main.has.start)
    }

    /// Reports to the shim that a hole of this answer is filled. `hole` is in file positions.
    fn repaired(&self, hole: Range) {
        if let (Some(flow), Some(hole)) = (&self.main.connection.watch.flow, hole.common(self.main.has)) {
            let stream = |position| self.stream + (position - self.main.has.start);
            flow.repaired(Range { start: stream(hole.start), end: stream(hole.end) });
        }
    }

    /// Holes before `end`, in file positions.
    fn take_holes(&self, end: u64) -> Vec<Range> {
        let Some(flow) = &self.main.connection.watch.flow else { return Vec::new() };
        let stream_end = self.stream + (end - self.main.has.start);
        let holes = flow.take_holes(stream_end).into_iter();
        holes
            .filter_map(|hole| Range::new(self.entity_position(hole.start)?, self.entity_position(hole.end)?))
            .collect()
    }
}

/// The next bytes of the main answer.
async fn frame(reading: &mut Option<Reading>) -> Result<Option<Bytes>, NetError> {
    let Some(reading) = reading else { return std::future::pending().await };
    if !reading.kept.is_empty() {
        return Ok(Some(std::mem::take(&mut reading.kept)));
    }
    if reading.is_over {
        return std::future::pending().await;
    }
    loop {
        match reading.main.incoming.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(NetError::of_hyper(&error)),
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

/// Waits for a message from the shim apart from those that accompany data on TCP.
async fn shim_message(watch: Option<&Watch>) {
    match watch.and_then(|watch| watch.flow.as_ref()) {
        Some(flow) => flow.readable().await,
        None => std::future::pending().await,
    }
}

async fn next(opening: &mut Option<Opening>) -> Result<MainAnswer, NetError> {
    match opening {
        Some(opening) => opening.await,
        None => std::future::pending().await,
    }
}
