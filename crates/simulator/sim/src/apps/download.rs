//! A download over HTTP whose holes are requested again (section V-D of FWP's paper): one flow carries the body, others
//! carry ranges of it. Another program may feed the first flow.

mod oracle;

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use tacit_between::fwp::repair::{Patience, Range, Repair, RequestId};
use tacit_packet::Packet;
use tacit_packet::units::{Bytes, Duration, FlowId, Instant};

use self::oracle::Oracle;
use super::Sockets;
use crate::drivers::fwp::{ReaderRequest, ToReader};
use crate::flow::End;
use crate::record::{Downloaded, Percentiles};
use crate::setup::Download;

/// Written bytes that a server keeps ahead of TCP.
const AHEAD: u64 = 1 << 20;
/// Length of an endless body, longer than any run can transfer.
const ENDLESS: u64 = 1 << 50;
/// Retry interval while there is something to request but no connection for it.
const BUSY: Duration = Duration::from_millis(1);

/// How long holes are collected before they are requested: the paper's round-trip time (Table I). A few more holes in
/// one request cost little, and every further answer has a head that may be hit.
const GATHER: Duration = Duration::from_millis(40);
/// Most ranges of one request: 64 of them need 1.4 kB of the 8 kB that nginx accepts; above its `MaxRanges`, Apache
/// answers 200.
const PARTS_MAX: usize = 64;
/// Most requests in progress on a connection. With two, the server already has the next request while it answers the
/// first, and the next answer shows which bytes of the first one's tail are missing.
const PIPELINE: usize = 2;
/// Requests need no timeout: in the simulation no connection breaks, and quiet connections are given up instead.
const NEVER: Duration = Duration::from_secs(1 << 30);
/// Bytes per range in a request, `123456789-123459999,`.
const RANGE_LEN: u64 = 20;
/// Bytes before each part of a multipart answer by nginx: boundary, type and Content-Range.
const PART_HEAD: u64 = 121;
/// Bytes of the closing boundary.
const PARTS_END: u64 = 28;

/// A repair connection.
#[derive(Debug)]
struct RepairConnection {
    flow: FlowId,
    open: bool,
    /// Requests that are not completely answered, in order.
    exchanges: VecDeque<Exchange>,
    /// Stream position at the server after all requests so far.
    asked: u64,
    /// Stream position at the client after all answers.
    answered: u64,
    /// Bytes that the client has examined.
    consumed: u64,
    /// Placeholders in its stream after those.
    holes: VecDeque<(u64, u64)>,
    /// When the last byte arrived or, if later, when the first request was sent.
    quiet_since: Instant,
    /// When a request was sent on the idle connection; cleared by the first bytes of the answer.
    asked_at: Option<Instant>,
    /// It was quiet for too long, and its requests went to other connections. Bytes that still arrive are used.
    is_given_up: bool,
}

impl RepairConnection {
    fn new(flow: FlowId) -> Self {
        Self {
            flow,
            open: false,
            exchanges: VecDeque::new(),
            asked: 0,
            answered: 0,
            consumed: 0,
            holes: VecDeque::new(),
            quiet_since: Instant::ZERO,
            asked_at: None,
            is_given_up: false,
        }
    }

    /// Since when it has waited for bytes, if a request is in progress.
    fn waits_since(&self) -> Option<Instant> {
        (!self.is_given_up && !self.exchanges.is_empty()).then_some(self.quiet_since)
    }

    fn has_room(&self) -> bool {
        self.open && !self.is_given_up && self.exchanges.len() < PIPELINE
    }
}

/// A request for ranges, and its answer. On one connection the heads of answers differ in length only by digits, so a
/// reader can predict the position of each part. One complete head found there, the answer's or a part's with the
/// requested Content-Range, proves that the answer is the right one, because `If-Range` lets a server send parts of
/// that entity only.
#[derive(Clone, Debug)]
struct Exchange {
    parts: VecDeque<Part>,
    /// Bytes that the server has received when it has this request.
    asked: u64,
    bytes: u64,
    end: u64,
    /// The server has received it and answers.
    answering: bool,
    /// Start and end of the answer's head in the stream.
    head: (u64, u64),
    head_is_hit: bool,
    /// Each part has its own head.
    several: bool,
    /// A complete head was seen.
    is_known: bool,
}

/// A range of an answer.
#[derive(Clone, Copy, Debug)]
struct Part {
    id: RequestId,
    body: Range,
    /// Stream position of its first byte.
    body_at: u64,
    /// There is a placeholder in the head before it.
    head_is_hit: bool,
}

impl Part {
    fn head(&self) -> (u64, u64) {
        (self.body_at - PART_HEAD, self.body_at)
    }

    fn end(&self) -> u64 {
        self.body_at + self.body.bytes()
    }
}

/// Downloads one body.
#[derive(Debug)]
pub(super) struct RepairedDownload {
    plan: Download,
    /// Another program requests and writes the body.
    is_fed: bool,
    /// Stream position at which the body begins.
    body_at: u64,
    /// Ranges in which placeholders are allowed once the connection is registered.
    to_allow: Vec<(u64, u64)>,
    main: FlowId,
    lines: Vec<RepairConnection>,
    start: Instant,
    opened: bool,
    /// The connection of the body is open.
    asked: bool,
    /// The server has begun to answer.
    answering: bool,
    stopped: bool,
    repair: Repair,
    /// Ends of holes in the body, and when they became known.
    holes: VecDeque<(u64, Instant)>,
    oracle: Option<Oracle>,
    broken: Option<String>,
    released: u64,
    released_before: u64,
    /// Bytes received before measuring started, whether released or held.
    there_before: u64,
    completed_at: Option<Instant>,
    /// Counts since measuring started.
    counts: Downloaded,
    delays_us: Histogram<u64>,
    /// No request is sent earlier than this.
    ask_at: Instant,
    /// When the body was requested; cleared by its first bytes.
    asked_at: Option<Instant>,
    /// How long a repair connection may be quiet.
    patience: Patience,
    /// No connection is given up earlier than this.
    give_up_at: Option<Instant>,
    now: Instant,
}

impl RepairedDownload {
    /// Downloads `plan`'s body over the first of `flows`.
    pub fn new(plan: Download, flows: &[FlowId], start: Instant) -> Self {
        Self::with_body(plan, false, flows, start)
    }

    /// Repairs a body that another program requests and writes over the first of `flows`.
    pub fn fed(plan: Download, flows: &[FlowId], start: Instant) -> Self {
        Self::with_body(Download { size: None, ..plan }, true, flows, start)
    }

    fn with_body(plan: Download, is_fed: bool, flows: &[FlowId], start: Instant) -> Self {
        // The setup was checked: there are flows.
        let (main, others) = (flows[0], &flows[1..]);
        let config = tacit_between::fwp::repair::Config {
            parallel_max: others.len() * PIPELINE * PARTS_MAX,
            answer_timeout: NEVER,
            ..plan.repair
        };
        let body = Range { start: 0, end: plan.size.map_or(ENDLESS, |size| size.0) };
        let body_at = if is_fed { 0 } else { plan.head.0 };
        Self {
            is_fed,
            body_at,
            to_allow: Vec::new(),
            main,
            lines: others.iter().copied().map(RepairConnection::new).collect(),
            start,
            opened: false,
            asked: false,
            answering: false,
            stopped: false,
            repair: Repair::new(config, body),
            holes: VecDeque::new(),
            oracle: Some(Oracle::new(flows, body_at)),
            broken: None,
            released: 0,
            released_before: 0,
            there_before: 0,
            completed_at: None,
            counts: Downloaded::default(),
            delays_us: Histogram::new(3).expect("three digits are allowed"),
            ask_at: start,
            asked_at: None,
            patience: Patience::new(plan.repair.answer_timeout),
            give_up_at: None,
            now: start,
            plan,
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.opened {
            return Some(self.start);
        }
        // If something only waits for a connection, or to be requested together with other holes.
        let wait = |due| if due <= self.now { self.ask_at.max(self.now + BUSY) } else { due };
        self.repair.poll_timeout().map(wait).into_iter().chain(self.give_up_at).min()
    }

    pub fn handle_timeout(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        if now < self.start {
            return;
        }
        if !std::mem::replace(&mut self.opened, true) {
            for flow in std::iter::once(self.main).chain(self.lines.iter().map(|line| line.flow)) {
                sockets.open(flow, End::Sink);
            }
            sockets.read_by_hand(self.main);
        }
        self.repair.handle_timeout(now);
        self.give_up_quiet_lines(now);
        self.go_on(now, sockets);
    }

    /// Requests the ranges of quiet connections on others. An answer with a lost tail waits for the server's
    /// retransmission timer, at high loss rates several times.
    fn give_up_quiet_lines(&mut self, now: Instant) {
        if self.give_up_at.is_none_or(|at| at > now) {
            return;
        }
        let patience = self.patience.time();
        let is_quiet =
            |line: &&mut RepairConnection| line.waits_since().is_some_and(|since| since + patience <= now);
        for line in self.lines.iter_mut().filter(is_quiet) {
            line.is_given_up = true;
            for part in line.exchanges.iter().flat_map(|exchange| &exchange.parts) {
                self.repair.failed(now, part.id);
            }
        }
        self.give_up_at =
            self.lines.iter().filter_map(RepairConnection::waits_since).min().map(|since| since + patience);
    }

    /// True if it reads `flow` or uses it for repairs.
    pub fn has(&self, flow: FlowId) -> bool {
        flow == self.main || self.lines.iter().any(|line| line.flow == flow)
    }

    /// The first byte of the body that has not been handed on.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Allows placeholders in bytes `start..end` of the stream of a program.
    pub fn allow(&mut self, start: u64, end: u64, sockets: &mut Sockets<'_>) {
        if self.asked {
            sockets.request(self.main, ReaderRequest::Allow(start, end));
        } else {
            self.allow_when_registered(start, end);
        }
    }

    /// The same as [`RepairedDownload::allow`], before the connection is open.
    pub fn allow_when_registered(&mut self, start: u64, end: u64) {
        self.to_allow.push((start, end));
    }

    /// Stops the source.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    pub fn arrived(&mut self, now: Instant, flow: FlowId, end: End, sockets: &mut Sockets<'_>) {
        match end {
            End::Source => self.serve(flow, sockets),
            End::Sink if flow == self.main => self.body_arrived(now, sockets),
            End::Sink => self.answer_arrived(now, flow, sockets),
        }
        if end == End::Sink {
            self.go_on(now, sockets);
        }
    }

    /// The server: answers requests that have arrived completely.
    fn serve(&mut self, flow: FlowId, sockets: &mut Sockets<'_>) {
        let got = sockets.delivered(flow, End::Source);
        if flow != self.main {
            let Some(line) = self.lines.iter_mut().find(|line| line.flow == flow) else { return };
            let asked = line.exchanges.iter_mut().take_while(|exchange| exchange.asked <= got);
            for exchange in asked.filter(|exchange| !exchange.answering) {
                exchange.answering = true;
                let body = exchange.parts.iter().map(|part| part.body.bytes()).sum();
                self.counts.head_bytes += Bytes(exchange.bytes - body);
                self.counts.answer_bytes += Bytes(body);
                sockets.write(flow, End::Source, exchange.bytes);
            }
            return;
        }
        if self.is_fed || self.stopped || sockets.is_reset(flow) || got < self.plan.request.0 {
            return;
        }
        let begins = !std::mem::replace(&mut self.answering, true);
        match self.plan.size {
            Some(size) if begins => sockets.write(flow, End::Source, self.plan.head.0 + size.0),
            Some(_) => {}
            None => {
                if begins {
                    sockets.write(flow, End::Source, self.plan.head.0);
                }
                let unsent = sockets.unsent(flow);
                if unsent < AHEAD {
                    sockets.write(flow, End::Source, AHEAD - unsent);
                }
            }
        }
    }

    /// Something arrived on the body's connection; the first event is that it is open.
    fn body_arrived(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        if !std::mem::replace(&mut self.asked, true) {
            self.asked_at = Some(now);
            sockets.request(self.main, ReaderRequest::Register);
            for (start, end) in self.to_allow.drain(..) {
                sockets.request(self.main, ReaderRequest::Allow(start, end));
            }
            if self.is_fed {
                return;
            }
            // Placeholders are not allowed in the head, because without it the reader cannot request the rest.
            sockets.request(self.main, ReaderRequest::Allow(self.plan.head.0, u64::MAX));
            sockets.write(self.main, End::Sink, self.plan.request.0);
        }
    }

    fn answer_arrived(&mut self, now: Instant, flow: FlowId, sockets: &mut Sockets<'_>) {
        let Some(line) = self.lines.iter_mut().find(|line| line.flow == flow) else { return };
        if !std::mem::replace(&mut line.open, true) {
            sockets.request(flow, ReaderRequest::Register);
            sockets.request(flow, ReaderRequest::Allow(0, u64::MAX));
        }
        let to = sockets.delivered(flow, End::Sink);
        let mut from = std::mem::replace(&mut line.consumed, to);
        if from < to {
            (line.quiet_since, line.is_given_up) = (now, false);
            if let Some(asked_at) = line.asked_at.take() {
                self.patience.answered(now.saturating_since(asked_at));
            }
            self.give_up_at.get_or_insert(now + self.patience.time());
        }
        while let Some(exchange) = line.exchanges.front_mut() {
            exchange.is_known |= to >= exchange.head.1 && !exchange.head_is_hit;
            while let Some(part) = exchange.parts.front().copied() {
                exchange.is_known |= exchange.several && to >= part.body_at && !part.head_is_hit;
                let until = part.end().min(to);
                let at = from.max(part.body_at);
                if let Some(oracle) = self.oracle.as_mut().filter(|_| at < until && exchange.is_known) {
                    oracle.answered(flow, (at, until), part.body.start + (at - part.body_at));
                }
                from = from.max(until);
                if exchange.is_known {
                    part_arrived(&mut self.repair, now, &part, (at, until), &mut line.holes);
                }
                if part.end() > to {
                    break;
                }
                self.repair.ended(now, part.id);
                exchange.parts.pop_front();
            }
            if to < exchange.end {
                break;
            }
            line.exchanges.pop_front();
            sockets.request(flow, ReaderRequest::Repaired(0, to));
        }
    }

    /// A message from the shim below the sink of `flow`.
    pub fn on_message(&mut self, now: Instant, flow: FlowId, message: ToReader, sockets: &mut Sockets<'_>) {
        let head = self.body_at;
        let in_body = |start: u64, end: u64| Range::new(start.saturating_sub(head), end.saturating_sub(head));
        match message {
            ToReader::Hole(start, end) if flow == self.main => {
                self.count_hole(start, end);
                if let Some(range) = in_body(start, end) {
                    self.repair.hole(now, range);
                    // A hole that was first left to TCP is announced after later ones.
                    let place = self.holes.partition_point(|(end, _)| *end < range.end);
                    self.holes.insert(place, (range.end, now));
                }
            }
            ToReader::Hole(start, end) => {
                self.count_hole(start, end);
                let Some(line) = self.lines.iter_mut().find(|line| line.flow == flow) else { return };
                let place = line.holes.partition_point(|(other, _)| *other < start);
                line.holes.insert(place, (start, end));
                let hits = |(from, to): (u64, u64)| start < to && end > from;
                for exchange in
                    line.exchanges.iter_mut().filter(|exchange| hits((exchange.head.0, exchange.end)))
                {
                    exchange.head_is_hit |= hits(exchange.head);
                    for part in exchange.parts.iter_mut().filter(|part| exchange.several && hits(part.head()))
                    {
                        part.head_is_hit = true;
                    }
                }
            }
            ToReader::Late(start, end) if flow == self.main => {
                if let Some(range) = in_body(start, end) {
                    self.counts.late_bytes += Bytes(range.bytes());
                    self.repair.late(now, range);
                    if let Some(oracle) = &mut self.oracle {
                        oracle.late((range.start, range.end));
                    }
                }
            }
            // Late bytes of answers are not used; the ranges are requested again.
            ToReader::Late(..) | ToReader::Switched => {}
        }
        self.go_on(now, sockets);
    }

    fn count_hole(&mut self, start: u64, end: u64) {
        self.counts.holes += 1;
        self.counts.hole_bytes += Bytes(end - start);
    }

    /// Reads, hands on and requests as much as possible.
    fn go_on(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        self.now = now;
        let head = self.body_at;
        loop {
            let before = sockets.delivered(self.main, End::Sink);
            let wanted = self.repair.room() + head.saturating_sub(before);
            let read = if self.repair.failure().is_some() { 0 } else { sockets.read(self.main, wanted) };
            if read > 0 {
                if let Some(asked_at) = self.asked_at.take() {
                    self.patience.answered(now.saturating_since(asked_at));
                }
                self.repair.arrived(now, (before + read).saturating_sub(head));
            }
            let mut released = false;
            while let Some(range) = self.repair.poll_release(now, u64::MAX) {
                released = true;
                self.release(now, range, sockets);
            }
            if read == 0 && !released {
                break;
            }
        }
        if let Some(failure) = self.repair.failure().filter(|_| self.counts.failure.is_none()) {
            self.counts.failure = Some(failure.to_string());
            self.fail(sockets);
        }
        while self.repair.poll_cancel().is_some() {
            // The answer is already arriving on a connection that is kept; its bytes are ignored.
        }
        self.make_requests(now, sockets);
    }

    /// The host acknowledged bytes that will not be repaired. Resets its connection, which the server learns with its
    /// next segment. Answers on other connections are ignored, and nothing more is requested.
    fn fail(&self, sockets: &mut Sockets<'_>) {
        sockets.request(self.main, ReaderRequest::Fail);
        self.lines.iter().for_each(|line| sockets.request(line.flow, ReaderRequest::Stop));
    }

    fn release(&mut self, now: Instant, range: Range, sockets: &mut Sockets<'_>) {
        if let Some(oracle) = &mut self.oracle
            && let Err(what) = oracle.released((range.start, range.end))
        {
            self.broken = Some(what);
        }
        self.released = range.end;
        let mut done = None;
        while let Some((end, since)) = self.holes.front().copied().filter(|(end, _)| *end <= range.end) {
            self.holes.pop_front();
            // The histogram grows as needed, so this cannot fail.
            let _ = self.delays_us.record((now - since).as_micros());
            done = Some(end);
        }
        if let Some(end) = done {
            sockets.request(self.main, ReaderRequest::Repaired(0, self.body_at + end));
        }
        if self.repair.is_done() {
            self.completed_at.get_or_insert(now);
        }
    }

    fn make_requests(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        if self.stopped || now < self.ask_at {
            return;
        }
        let head = self.plan.head.0;
        // The first one with room, so that busy connections stay busy.
        for line in self.lines.iter_mut().filter(|line| line.open) {
            while line.has_room() {
                let requests = std::iter::from_fn(|| self.repair.poll_request(now)).take(PARTS_MAX);
                let mut parts: VecDeque<_> = requests
                    .map(|request| Part {
                        id: request.id,
                        body: request.range,
                        body_at: 0,
                        head_is_hit: false,
                    })
                    .collect();
                if parts.is_empty() {
                    return;
                }
                self.ask_at = now + GATHER;
                let several = parts.len() > 1;
                let start = line.answered + head;
                let mut at = start;
                for part in &mut parts {
                    part.body_at = at + if several { PART_HEAD } else { 0 };
                    at = part.end();
                }
                let end = at + if several { PARTS_END } else { 0 };
                if line.exchanges.is_empty() {
                    (line.quiet_since, line.asked_at) = (now, Some(now));
                    self.give_up_at.get_or_insert(now + self.patience.time());
                }
                let request = self.plan.request.0 + RANGE_LEN * (parts.len() as u64 - 1);
                line.asked += request;
                let bytes = end - line.answered;
                line.exchanges.push_back(Exchange {
                    parts,
                    asked: line.asked,
                    bytes,
                    end,
                    answering: false,
                    head: (line.answered, start),
                    head_is_hit: false,
                    several,
                    is_known: false,
                });
                line.answered = end;
                self.counts.request_bytes += Bytes(request);
                sockets.write(line.flow, End::Sink, request);
            }
        }
    }

    /// A packet of `flow` is about to be received at `end`.
    pub fn watch(&mut self, flow: FlowId, end: End, packet: &Packet) {
        if let (End::Sink, Some(oracle)) = (end, &mut self.oracle) {
            oracle.watch(flow, packet);
        }
    }

    /// The violated invariant, if any.
    pub fn broken(&mut self) -> Option<String> {
        self.broken.take()
    }

    /// Disables its oracle from now on.
    pub fn dismiss_oracle(&mut self) {
        self.oracle = None;
    }

    pub fn start_measuring(&mut self) {
        let failure = self.counts.failure.take();
        let before = *self.repair.counters();
        self.counts = Downloaded {
            failure,
            // Earlier counts are subtracted in the end.
            repair_requests: before.requests,
            repeated_repairs: before.requests_short,
            ..Downloaded::default()
        };
        self.released_before = self.released;
        self.there_before = self.there();
        self.delays_us.reset();
    }

    /// Received bytes of the body, including those that wait for earlier ones.
    fn there(&self) -> u64 {
        self.released + self.repair.held()
    }

    /// For the first flow: bytes that arrived since measuring started, each counted once; bytes handed to the user
    /// since the start of the run; and when all bytes were handed on. For other flows nothing.
    pub fn user_got(&self, flow: FlowId) -> (u64, u64, Option<Instant>) {
        if flow == self.main {
            (self.there() - self.there_before, self.released, self.completed_at)
        } else {
            (0, 0, None)
        }
    }

    pub fn result(&self) -> Downloaded {
        let counters = self.repair.counters();
        Downloaded {
            released: Bytes(self.released - self.released_before),
            released_total: Bytes(self.released),
            repair_requests: counters.requests - self.counts.repair_requests,
            repeated_repairs: counters.requests_short - self.counts.repeated_repairs,
            repair_delay_us: Percentiles::from(&self.delays_us),
            held_peak: Bytes(counters.held_bytes_max),
            completed_at: self.completed_at,
            ..self.counts.clone()
        }
    }
}

/// Bytes `from..to` of `part` arrived; those outside of `holes` are original.
fn part_arrived(
    repair: &mut Repair,
    now: Instant,
    part: &Part,
    (from, to): (u64, u64),
    holes: &mut VecDeque<(u64, u64)>,
) {
    let place = |at: u64| at - part.body_at + part.body.start;
    let mut at = from;
    while at < to {
        while holes.front().is_some_and(|(_, end)| *end <= at) {
            holes.pop_front();
        }
        let hole = holes.front().copied().filter(|(start, _)| *start < to);
        let until = hole.map_or(to, |(start, _)| start.max(at));
        if let Some(range) = Range::new(place(at), place(until)) {
            repair.answered(now, part.id, range);
        }
        at = hole.map_or(to, |(_, end)| end.min(to));
    }
}
