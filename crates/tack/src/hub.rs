//! All connections of a socket, without the socket: which of them a datagram is for, who may open one, whose turn it is.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tacit_proto::packet::Ecn;
use tacit_proto::tack::wire::Prefix;
use tacit_proto::units::Instant;
use zeroize::Zeroizing;

use crate::config::Config;
use crate::error::ConnectionError;
use crate::handshake::{Initiation, addressed, datagram, kind};
use crate::identity::{Identity, PublicKey};
use crate::session::{Expect, Session};
use crate::token::Mint;

/// Half-open connections from which on a client has to show first that it is where it says it is. Ours.
const SHOW_FROM: usize = 32;

/// Half-open connections at most; what comes then is not answered. Ours.
const MAX_HALF_OPEN: usize = 1024;

/// Who may connect to a server: what it says of a client's key.
pub type Clients = Arc<dyn Fn(&PublicKey) -> bool + Send + Sync>;

/// What a hub counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Datagrams for no connection, or of no form.
    pub datagrams_strange: u64,
    /// Clients that were asked to show that they are where they say they are.
    pub retries_sent: u64,
    /// Handshakes that were not begun, for too many were half open.
    pub handshakes_refused: u64,
    /// Clients that proved who they are and may not connect.
    pub clients_refused: u64,
}

struct Entry {
    session: Session,
    /// In the line of those that may have something to send.
    queued: bool,
    deadline: Option<Instant>,
    /// It counts as half open; where it came from.
    half_open: Option<(SocketAddr, u32)>,
    /// It was handed to who accepts, or is a client's.
    announced: bool,
}

pub(crate) struct Hub {
    config: Config,
    identity: Identity,
    clients: Option<Clients>,
    mint: Mint,
    entries: FxHashMap<u32, Entry>,
    half_open: HashMap<(SocketAddr, u32), u32>,
    line: VecDeque<u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    accepted: VecDeque<u32>,
    /// Datagrams of the hub itself.
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
    pub counters: Counters,
    /// A connection went.
    went: bool,
    /// The socket is gone, and why.
    pub failed: Option<ConnectionError>,
}

/// Four octets from the system.
///
/// # Panics
/// Where the system has no random numbers to give.
fn random() -> u32 {
    getrandom::u32().expect("the system has random numbers")
}

impl Hub {
    /// A hub that takes the clients that `clients` says; none where that is `None`.
    pub fn new(config: Config, identity: Identity, clients: Option<Clients>) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut_slice()).expect("the system has random numbers");
        Self {
            config,
            identity,
            clients,
            mint: Mint::new(&secret),
            entries: FxHashMap::default(),
            half_open: HashMap::new(),
            line: VecDeque::new(),
            deadlines: BTreeSet::new(),
            accepted: VecDeque::new(),
            outbox: VecDeque::new(),
            counters: Counters::default(),
            went: false,
            failed: None,
        }
    }

    /// A number for a new connection, and what chance derives from in it.
    fn numbers(&self) -> [u32; 2] {
        loop {
            let own = random();
            if own != 0 && !self.entries.contains_key(&own) {
                return [own, random()];
            }
        }
    }

    /// Begins a connection to `remote`, with one handle.
    pub fn connect(&mut self, now: Instant, remote: SocketAddr, expect: Expect) -> u32 {
        let numbers = self.numbers();
        let mut session =
            Session::connect(now, &self.identity, &self.config.transport, numbers, remote, expect);
        session.handles = 1;
        self.insert(
            numbers[0],
            Entry { session, queued: false, deadline: None, half_open: None, announced: true },
        );
        numbers[0]
    }

    fn insert(&mut self, id: u32, entry: Entry) {
        self.entries.insert(id, entry);
        self.touch(id);
    }

    /// The next connection that a client opened, with one handle.
    pub fn accept(&mut self) -> Option<u32> {
        self.accepted.pop_front()
    }

    /// The session `id`, for something that may leave it with something to send.
    pub fn session(&mut self, id: u32) -> Option<&mut Session> {
        self.touch(id);
        self.entries.get_mut(&id).map(|entry| &mut entry.session)
    }

    /// The session `id`, to look at.
    pub fn look(&self, id: u32) -> Option<&Session> {
        self.entries.get(&id).map(|entry| &entry.session)
    }

    /// Connections there are, half-open ones too.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn touch(&mut self, id: u32) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !entry.queued
        {
            entry.queued = true;
            self.line.push_back(id);
        }
    }

    /// A datagram arrived.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, ecn: Ecn, bytes: &mut [u8]) {
        self.counters.datagrams_received += 1;
        match bytes.first() {
            Some(&kind::INITIATION) => return self.on_initiation(now, from, bytes),
            Some(first) if first & kind::MASK == kind::MASK => {
                if let Some((kind, to, body)) = addressed(bytes)
                    && let Some(entry) = self.entries.get_mut(&to.0)
                {
                    let was_half_open = entry.session.is_half_open();
                    entry.session.on_handshake(now, kind, from, body);
                    if was_half_open && !entry.session.is_half_open() {
                        self.on_proved(to.0);
                    }
                    return self.touch(to.0);
                }
            }
            _ => {
                if let Ok(prefix) = Prefix::of(bytes)
                    && let Some(entry) = self.entries.get_mut(&prefix.connection.0)
                {
                    entry.session.on_sealed(now, from, ecn, bytes);
                    if !entry.announced && entry.session.is_connected() {
                        entry.announced = true;
                        // The handle of who accepts it, who may come late.
                        entry.session.handles = 1;
                        self.accepted.push_back(prefix.connection.0);
                    }
                    return self.touch(prefix.connection.0);
                }
            }
        }
        self.counters.datagrams_strange += 1;
    }

    fn on_initiation(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let Some(initiation) = Initiation::of(bytes).filter(|_| self.clients.is_some()) else {
            self.counters.datagrams_strange += 1;
            return;
        };
        let client = initiation.client;
        if let Some(id) = self.half_open.get(&(from, client.0)).copied() {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.session.on_initiation(&initiation);
            }
            return self.touch(id);
        }
        let shown = initiation.token.is_some_and(|token| self.mint.knows(now, &token, from, client));
        if !shown && self.half_open.len() >= SHOW_FROM {
            let token = self.mint.make(now, from, client);
            self.counters.retries_sent += 1;
            self.outbox.push_back((from, datagram(kind::RETRY, client, &token.0)));
            return;
        }
        if self.half_open.len() >= MAX_HALF_OPEN || self.entries.len() >= self.config.max_connections {
            self.counters.handshakes_refused += 1;
            return;
        }
        let numbers = self.numbers();
        let transport = &self.config.transport;
        let Some(session) = Session::accept(now, &self.identity, transport, numbers, from, &initiation)
        else {
            self.counters.datagrams_strange += 1;
            return;
        };
        let half_open = (from, client.0);
        self.half_open.insert(half_open, numbers[0]);
        self.insert(
            numbers[0],
            Entry { session, queued: false, deadline: None, half_open: Some(half_open), announced: false },
        );
    }

    /// A client has proved who it is.
    fn on_proved(&mut self, id: u32) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Some(half_open) = entry.half_open.take() {
            self.half_open.remove(&half_open);
        }
        let may =
            entry.session.peer().is_some_and(|peer| self.clients.as_ref().is_some_and(|may| may(&peer)));
        if !may {
            self.counters.clients_refused += 1;
            entry.announced = true;
            entry.session.close(0, "not allowed");
        }
    }

    /// Appends the next datagram to send, and says where to and how marked. Connections take turns, each as long as it has
    /// something.
    pub fn poll_transmit(&mut self, now: Instant, into: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)> {
        if let Some((to, bytes)) = self.outbox.pop_front() {
            into.extend_from_slice(&bytes);
            return Some((to, Ecn::NotEct));
        }
        while let Some(id) = self.line.front().copied() {
            if let Some(entry) = self.entries.get_mut(&id) {
                if let Some(sent) = entry.session.poll_transmit(now, into) {
                    return Some(sent);
                }
                entry.queued = false;
            }
            self.line.pop_front();
            self.settle(id);
        }
        None
    }

    /// The connection whose turn it is has had enough for now.
    pub fn next_turn(&mut self) {
        self.line.rotate_left(usize::from(self.line.len() > 1));
    }

    /// `id` has sent all it has: when it is to be asked again, or whether it is gone.
    fn settle(&mut self, id: u32) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let next = entry.session.poll_timeout();
        if next != entry.deadline {
            if let Some(old) = entry.deadline.take() {
                self.deadlines.remove(&(old, id));
            }
            if let Some(next) = next {
                self.deadlines.insert((next, id));
            }
            entry.deadline = next;
        }
        if entry.session.is_gone() {
            if let Some(deadline) = entry.deadline {
                self.deadlines.remove(&(deadline, id));
            }
            if let Some(half_open) = entry.half_open {
                self.half_open.remove(&half_open);
            }
            self.entries.remove(&id);
            self.went = true;
        }
    }

    /// True when a connection may have something to send.
    pub fn has_work(&self) -> bool {
        !self.line.is_empty() || !self.outbox.is_empty()
    }

    /// True when a connection waits to be accepted.
    pub fn has_accepted(&self) -> bool {
        !self.accepted.is_empty()
    }

    /// True when a connection went since this was asked last.
    pub fn take_went(&mut self) -> bool {
        std::mem::take(&mut self.went)
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, id)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, id));
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.deadline = None;
                entry.session.handle_timeout(now);
            }
            self.touch(id);
        }
    }

    /// The socket failed: all that wait are told.
    pub fn fail(&mut self, why: &str) {
        let why = ConnectionError::Endpoint(why.to_owned());
        self.failed = Some(why.clone());
        let mut ids: Vec<u32> =
            self.deadlines.iter().map(|(_, id)| *id).chain(self.line.iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.session.fail(why.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
