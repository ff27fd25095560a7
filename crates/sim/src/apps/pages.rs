//! Page loads over TCP.

use tacit_link::random::Stream;
use tacit_proto::units::{Bytes, Duration, FlowId, Instant};

use super::Sockets;
use super::chance::exponential_of;
use crate::flow::End;
use crate::record::PageLoads;
use crate::setup::{Objects, RequestResponse};

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    None,
    /// The question is on its way; this many bytes will answer it.
    Asking {
        answer: u64,
    },
    /// The answer is.
    Answering,
}

/// A connection and the bytes due on it so far.
#[derive(Clone, Copy, Debug)]
struct PageConnection {
    exchange: Exchange,
    /// Bytes the responder has when it has been asked everything.
    asked: u64,
    /// Bytes the requester has when everything was answered.
    answered: u64,
}

/// What the user is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    /// Reading, until then.
    Thinks(Instant),
    /// Waiting since then.
    Waits(Instant),
    /// Gone.
    Left,
}

/// Loads pages one after the other.
#[derive(Debug)]
pub(super) struct Pages {
    plan: RequestResponse,
    draws: Stream,
    flows: Vec<FlowId>,
    lines: Vec<PageConnection>,
    user: User,
    opened: bool,
    /// Objects of the page under way, in bytes.
    objects: Vec<u64>,
    /// How many of them were asked for, and how many have arrived.
    asked: usize,
    arrived: usize,
    /// How long finished pages took.
    load_times: Vec<Duration>,
}

impl Pages {
    pub fn new(plan: RequestResponse, flows: Vec<FlowId>, draws: Stream, start: Instant) -> Self {
        let idle = PageConnection { exchange: Exchange::None, asked: 0, answered: 0 };
        Self {
            plan,
            draws,
            lines: vec![idle; flows.len()],
            flows,
            user: User::Thinks(start),
            opened: false,
            objects: Vec::new(),
            asked: 0,
            arrived: 0,
            load_times: Vec::new(),
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.user {
            User::Thinks(until) => Some(until),
            User::Waits(_) | User::Left => None,
        }
    }

    /// The next page, when the user has thought enough.
    pub fn handle_timeout(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        if !matches!(self.user, User::Thinks(until) if until <= now) {
            return;
        }
        if !std::mem::replace(&mut self.opened, true) {
            self.flows.iter().for_each(|flow| sockets.open(*flow, self.plan.requester));
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
        self.ask(sockets);
    }

    /// Asks for the document, or for what it names, over every connection that is free.
    fn ask(&mut self, sockets: &mut Sockets<'_>) {
        for (line, flow) in self.lines.iter_mut().zip(&self.flows) {
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
            self.asked += 1;
            line.exchange = Exchange::Asking { answer };
            line.asked += question;
            line.answered += answer;
            sockets.write(*flow, self.plan.requester, question);
        }
    }

    pub fn arrived(&mut self, now: Instant, flow: FlowId, end: End, sockets: &mut Sockets<'_>) {
        let Some(index) = self.flows.iter().position(|mine| *mine == flow) else { return };
        let line = &mut self.lines[index];
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

    fn object_arrived(&mut self, now: Instant, sockets: &mut Sockets<'_>) {
        self.arrived += 1;
        let User::Waits(since) = self.user else { return };
        if self.arrived < self.objects.len() {
            self.ask(sockets);
            return;
        }
        self.load_times.push(now - since);
        self.user = User::Thinks(now + self.plan.think.drawn(&mut self.draws));
    }

    /// The user leaves; a page under way is never finished.
    pub fn stop(&mut self) {
        self.user = User::Left;
    }

    /// Pages count from when they are finished.
    pub fn start_measuring(&mut self) {
        self.load_times.clear();
    }

    pub fn result(&self) -> PageLoads {
        let mut load_times = self.load_times.clone();
        load_times.sort_unstable();
        let waiting_since = match self.user {
            User::Waits(since) => Some(since),
            User::Thinks(_) | User::Left => None,
        };
        PageLoads { load_times, waiting_since }
    }
}
