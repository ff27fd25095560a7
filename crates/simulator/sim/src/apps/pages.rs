//! Page loads over TCP.

use std::ops::Range;

use tacit_link::random::Stream;
use tacit_packet::units::{Bytes, Duration, FlowId, Instant};

use super::Sockets;
use super::chance::exponential_of;
use super::download::RepairedDownload;
use crate::drivers::fwp::ToReader;
use crate::flow::End;
use crate::record::PageLoads;
use crate::setup::{Objects, Repairers, RequestResponse};

/// State of the exchange on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    None,
    /// The request is in transit; its answer has this number of bytes.
    Asking {
        answer: u64,
    },
    /// The answer is in transit.
    Answering,
}

/// A connection and its total bytes so far.
#[derive(Debug)]
struct PageConnection {
    flow: FlowId,
    /// Repairs holes in its answers.
    repair: Option<Box<RepairedDownload>>,
    exchange: Exchange,
    /// Bytes that the responder has received after all requests so far.
    asked: u64,
    /// Bytes that the requester has received after all answers.
    answered: u64,
}

/// State of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    /// Reading until this time.
    Thinks(Instant),
    /// Waiting since this time.
    Waits(Instant),
    /// The user has left.
    Left,
}

/// Loads pages, one after the other.
#[derive(Debug)]
pub(super) struct Pages {
    plan: RequestResponse,
    draws: Stream,
    lines: Vec<PageConnection>,
    user: User,
    opened: bool,
    /// Pages finished so far.
    finished: usize,
    /// Objects of the current page, in bytes.
    objects: Vec<u64>,
    /// Number of requested and of received objects.
    asked: usize,
    arrived: usize,
    /// Load times of finished pages, in the order of their ends.
    load_times: Vec<Duration>,
}

impl Pages {
    pub fn new(plan: RequestResponse, flows: &[FlowId], draws: Stream, start: Instant) -> Self {
        let each = plan.repair.as_ref().map_or(1, Repairers::flows_of_each);
        let (first, others) = flows.split_at(flows.len() / each);
        let mut others = others.chunks(each - 1 + usize::from(each == 1));
        let lines = first.iter().map(|flow| {
            let repair = plan.repair.map(|Repairers { download, .. }| {
                let flows: Vec<_> =
                    std::iter::once(*flow).chain(others.next().into_iter().flatten().copied()).collect();
                Box::new(RepairedDownload::fed(download, &flows, start))
            });
            PageConnection { flow: *flow, repair, exchange: Exchange::None, asked: 0, answered: 0 }
        });
        Self {
            lines: lines.collect(),
            plan,
            draws,
            user: User::Thinks(start),
            opened: false,
            finished: 0,
            objects: Vec::new(),
            asked: 0,
            arrived: 0,
            load_times: Vec::new(),
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let page = match self.user {
            User::Thinks(until) => Some(until),
            User::Waits(_) | User::Left => None,
        };
        page.into_iter().chain(self.repairs().filter_map(RepairedDownload::poll_timeout)).min()
    }

    /// Number of connections that carry objects.
    pub fn connections(&self) -> usize {
        self.lines.len()
    }

    fn repairs(&self) -> impl Iterator<Item = &RepairedDownload> {
        self.lines.iter().filter_map(|line| line.repair.as_deref())
    }

    fn repairs_mut(&mut self) -> impl Iterator<Item = &mut RepairedDownload> {
        self.lines.iter_mut().filter_map(|line| line.repair.as_deref_mut())
    }

    fn line_of(&self, flow: FlowId) -> Option<usize> {
        let has = |line: &PageConnection| line.repair.as_ref().is_some_and(|repair| repair.has(flow));
        self.lines.iter().position(|line| line.flow == flow || has(line))
    }

    /// The repair that uses `flow`.
    pub fn repair_of(&self, flow: FlowId) -> Option<&RepairedDownload> {
        self.repairs().find(|repair| repair.has(flow))
    }

    pub fn repair_of_mut(&mut self, flow: FlowId) -> Option<&mut RepairedDownload> {
        self.repairs_mut().find(|repair| repair.has(flow))
    }

    /// A message from the shim below the sink of `flow`.
    pub fn on_message(&mut self, now: Instant, flow: FlowId, message: ToReader, sockets: &mut Sockets<'_>) {
        if let Some(repair) = self.repair_of_mut(flow) {
            repair.on_message(now, flow, message, sockets);
            self.look_for_answers(now, sockets);
        }
    }

    /// The violated invariant, if any.
    pub fn broken(&mut self) -> Option<String> {
        self.repairs_mut().find_map(RepairedDownload::broken)
    }

    pub fn dismiss_oracle(&mut self) {
        self.repairs_mut().for_each(RepairedDownload::dismiss_oracle);
    }

    /// Starts the next page when the think time is over.
    pub fn handle_timeout(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        self.repairs_mut().for_each(|repair| repair.handle_timeout(now, sockets));
        self.look_for_answers(now, sockets);
        if !matches!(self.user, User::Thinks(until) if until <= now) {
            return;
        }
        if self.connections_of_page().is_empty() {
            self.user = User::Left;
            return;
        }
        if !self.plan.keeps_connections || !std::mem::replace(&mut self.opened, true) {
            let plain = self.lines[self.connections_of_page()].iter().filter(|line| line.repair.is_none());
            plain.for_each(|line| sockets.open(line.flow, self.plan.requester));
        }
        self.user = User::Waits(now);
        (self.asked, self.arrived) = (0, 0);
        self.objects.clear();
        match &self.plan.objects {
            Objects::Listed(sizes) => self.objects.extend(sizes.iter().map(|size| size.0)),
            Objects::Drawn { count, mean: Bytes(mean) } => {
                let draws = &mut self.draws;
                self.objects.extend((0..*count).map(|_| exponential_of(*mean, draws).max(1)));
            }
        }
        self.request_objects(sockets);
    }

    /// Connections of the page that is not finished: all, or the next one; none after the last one.
    fn connections_of_page(&self) -> Range<usize> {
        let all = self.lines.len();
        if self.plan.keeps_connections {
            0..all
        } else {
            self.finished.min(all)..(self.finished + 1).min(all)
        }
    }

    /// Requests the document, or the objects it names, on every free connection.
    fn request_objects(&mut self, sockets: &mut Sockets<'_>) {
        let connections = self.connections_of_page();
        for line in &mut self.lines[connections] {
            let known = if self.arrived == 0 { 1 } else { self.objects.len() };
            if self.asked == known {
                break;
            }
            if line.exchange != Exchange::None {
                continue;
            }
            let object = self.objects[self.asked];
            let (question, answer) = match self.plan.requester {
                End::Sink => (self.plan.request.0, object),
                End::Source => (object, self.plan.request.0),
            };
            if let (Some(repair), Some(repairers)) = (&mut line.repair, &self.plan.repair) {
                // Placeholders are not allowed in the head, because without it the reader cannot request the rest.
                let body = line.answered + repairers.download.head.0.min(answer);
                repair.allow(body, line.answered + answer, sockets);
            }
            self.asked += 1;
            line.exchange = Exchange::Asking { answer };
            line.asked += question;
            line.answered += answer;
            sockets.write(line.flow, self.plan.requester, question);
        }
    }

    pub fn arrived(&mut self, now: Instant, flow: FlowId, end: End, sockets: &mut Sockets<'_>) {
        let Some(index) = self.line_of(flow) else { return };
        let line = &mut self.lines[index];
        if let Some(repair) = &mut line.repair {
            repair.arrived(now, flow, end, sockets);
            if end == End::Sink {
                return self.look_for_answers(now, sockets);
            }
        }
        if flow != line.flow {
            return;
        }
        match line.exchange {
            Exchange::Asking { answer }
                if end != self.plan.requester
                    && self.user != User::Left
                    && sockets.delivered(flow, end) == line.asked =>
            {
                line.exchange = Exchange::Answering;
                sockets.write(flow, end, answer);
            }
            Exchange::Answering
                if end == self.plan.requester && sockets.delivered(flow, end) == line.answered =>
            {
                line.exchange = Exchange::None;
                self.object_arrived(now, sockets);
            }
            _ => {}
        }
    }

    /// Handles answers that repair has completed.
    fn look_for_answers(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        for index in 0..self.lines.len() {
            let line = &mut self.lines[index];
            let is_there = line.repair.as_ref().is_some_and(|repair| repair.released() == line.answered);
            if is_there && line.exchange == Exchange::Answering {
                line.exchange = Exchange::None;
                self.object_arrived(now, sockets);
            }
        }
    }

    fn object_arrived(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        self.arrived += 1;
        let User::Waits(since) = self.user else { return };
        if self.arrived < self.objects.len() {
            self.request_objects(sockets);
            return;
        }
        self.load_times.push(now - since);
        self.finished += 1;
        self.user = User::Thinks(now + self.plan.think.drawn(&mut self.draws));
    }

    /// The user leaves; the current page is never finished.
    pub fn stop(&mut self) {
        self.user = User::Left;
    }

    /// Starts measuring. A page counts at the time when it is finished.
    pub fn start_measuring(&mut self) {
        self.load_times.clear();
        self.repairs_mut().for_each(RepairedDownload::start_measuring);
    }

    pub fn result(&self) -> PageLoads {
        let mut load_times = self.load_times.clone();
        let last = load_times.last().copied();
        load_times.sort_unstable();
        let waiting_since = match self.user {
            User::Waits(since) => Some(since),
            User::Thinks(_) | User::Left => None,
        };
        PageLoads { load_times, last, waiting_since }
    }
}
