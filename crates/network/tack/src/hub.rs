//! All connections of a socket, without the socket: demultiplexing of datagrams, admission of clients, and scheduling
//! of sends.

mod entry;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard};

use rustc_hash::FxHashMap;
use tacit_packet::Ecn;
use tacit_packet::tack::packet::ConnectionId;
use tacit_packet::tack::wire::Prefix;
use tacit_packet::units::Instant;
use tacit_tack_proto::OwnQueue;

use crate::admission::{Admission, Clients, Verdict};
use crate::backlog::Arrival;
use crate::config::Config;
use crate::datagram::{Datagram, Route, addressed, datagram, is_handshake, kind, sealed_for};
use crate::error::ConnectionError;
use crate::handshake::{Initiation, OTHER_VERSION};
use crate::identity::{Identity, PublicKey};
use crate::memory::{Memory, Share};
use crate::metrics::{Counters, Distributions, Metrics, Totals};
use crate::observer::{Observer, target};
use crate::outbox::Outbox;
use crate::reset::Resets;
use crate::seal::Sealed;
use crate::session::{Expect, IncomingClient, Session};
use crate::shard::Shard;
use crate::slot::{Marks, Slot};
use entry::Entry;

/// Most datagrams of the hub that wait to be sent; further answers are dropped. Ours: a batch of calls. Where datagrams arrive faster
/// than they can leave, strangers would fill the memory.
const MAX_WAITING: usize = 1024;

/// What the driver does after a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The connection may send more.
    Goes,
    /// Sending stops now; the same connection continues later.
    Pauses,
    /// Sending stops now; the next connection continues later.
    Ends,
}

pub(crate) struct Hub {
    config: Config,
    identity: Identity,
    admission: Admission,
    resets: Resets,
    shard: Shard,
    memory: Arc<Memory>,
    entries: FxHashMap<u32, Entry>,
    /// The connection of short datagrams without a number: one that a client opened while it had no other such
    /// connection.
    implied: Option<u32>,
    /// A client's connections, by the server that may reset them and the server's number for them.
    reset_sources: HashMap<(SocketAddr, u32), u32>,
    send_queue: VecDeque<u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    /// Connections with a backlog whose users have released their sessions.
    behind: Vec<u32>,
    accepted: VecDeque<u32>,
    /// Datagrams that the hub itself sends.
    outbox: Outbox,
    pub counters: Counters,
    pub distributions: Distributions,
    /// Totals of the removed connections.
    ended_totals: Totals,
    /// A connection has ended since the driver's last check.
    connection_ended: bool,
    /// The reason, if the socket has failed.
    pub failed: Option<ConnectionError>,
    /// The user closed the endpoint.
    is_closed: bool,
}

/// Four random bytes from the system.
///
/// # Panics
/// If the system has no random numbers.
fn random() -> u32 {
    getrandom::u32().expect("the system has random numbers")
}

impl Hub {
    /// The hub of a socket at `port`, which admits the clients that `clients` accepts, or no clients if that is `None`.
    pub fn new(
        config: Config,
        identity: Identity,
        clients: Option<Clients>,
        port: u16,
        shard: Shard,
        memory: Arc<Memory>,
    ) -> Self {
        Self {
            config,
            admission: Admission::new(clients),
            resets: Resets::new(&identity, port),
            identity,
            shard,
            memory,
            entries: FxHashMap::default(),
            implied: None,
            reset_sources: HashMap::new(),
            send_queue: VecDeque::new(),
            deadlines: BTreeSet::new(),
            behind: Vec::new(),
            accepted: VecDeque::new(),
            outbox: Outbox::new(MAX_WAITING),
            counters: Counters::default(),
            distributions: Distributions::default(),
            ended_totals: Totals::default(),
            connection_ended: false,
            failed: None,
            is_closed: false,
        }
    }

    /// A number for a new connection, and a seed for its random numbers.
    fn numbers(&self, implied: bool) -> [u32; 2] {
        loop {
            let random_number = random() & !ConnectionId::IMPLIED;
            // Rounding down to this shard before adding its index changes the highest bit only for the last few
            // numbers.
            let id = self.shard.number(random_number).unwrap_or(0);
            let id = if implied { id | ConnectionId::IMPLIED } else { id };
            let is_sound = id & !ConnectionId::IMPLIED != 0 && ConnectionId(id).is_implied() == implied;
            if is_sound && !self.entries.contains_key(&id) {
                return [id, random()];
            }
        }
    }

    /// What connections leave to the queue of this host, if that is limited: those that begin from now on.
    pub fn set_own_queue(&mut self, own_queue: Option<OwnQueue>) {
        self.config.transport.own_queue = own_queue;
    }

    /// Opens a connection to `remote`, with one handle.
    pub fn connect(&mut self, now: Instant, remote: SocketAddr, expect: Expect) -> u32 {
        // Datagrams without a number cannot be steered to a shard.
        let implied = self.implied.is_none() && self.shard.count == 1;
        let numbers = self.numbers(implied);
        if implied {
            self.implied = Some(numbers[0]);
        }
        let observer = self.observer(numbers[0], now, true);
        let mut session =
            Session::connect(now, observer, &self.identity, &self.config.transport, numbers, remote, expect);
        session.handles = 1;
        self.insert(numbers[0], Entry::new(numbers[0], session, None));
        numbers[0]
    }

    fn insert(&mut self, id: u32, entry: Entry) {
        self.entries.insert(id, entry);
        self.touch(id);
    }

    /// The next connection from a client, with one handle.
    pub fn accept(&mut self) -> Option<u32> {
        self.accepted.pop_front()
    }

    /// The slot of connection `id`.
    pub fn slot(&self, id: u32) -> Option<Arc<Slot>> {
        self.entries.get(&id).map(|entry| entry.slot.clone())
    }

    /// The session `id`, for an operation after which it may have something to send.
    #[cfg(any(test, fuzzing))]
    pub fn session(&mut self, id: u32) -> Option<&mut Session> {
        self.touch(id);
        self.entries.get_mut(&id).map(|entry| entry.slot.alone())
    }

    /// The session `id`, for reading.
    #[cfg(any(test, fuzzing))]
    pub fn get(&self, id: u32) -> Option<MutexGuard<'_, Session>> {
        self.entries.get(&id).map(|entry| entry.slot.lock())
    }

    /// Queues the sessions that users have marked, because they may have something to send.
    pub fn take_marks(&mut self, marks: &Marks) {
        for id in marks.numbers().drain(..) {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.slot.clear_mark();
            if !entry.backlog.is_empty() {
                self.behind.push(id);
            }
            if !std::mem::replace(&mut entry.queued, true) {
                self.send_queue.push_back(id);
            }
        }
    }

    /// Number of connections, including half-open ones.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if no connection is open, and none has anything left to send.
    pub fn is_idle(&self) -> bool {
        #[expect(clippy::disallowed_methods, reason = "whether all have ended does not depend on the order")]
        let mut entries = self.entries.values();
        !self.has_work() && entries.all(|entry| entry.has_ended)
    }

    /// The reason why no more connections are opened or accepted.
    pub fn ended(&self) -> Option<ConnectionError> {
        self.failed.clone().or(self.is_closed.then_some(ConnectionError::LocallyClosed))
    }

    /// Closes all connections, and accepts no more.
    pub fn close(&mut self, code: u32, reason: &str) {
        self.is_closed = true;
        for id in self.ids() {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.announced = true;
                entry.slot.lock().close(code, reason);
            }
            self.touch(id);
        }
        // No task will accept these connections, so no task drops their handles.
        for id in std::mem::take(&mut self.accepted) {
            if let Some(entry) = self.entries.get(&id) {
                entry.slot.lock().handles = 0;
            }
        }
    }

    /// The numbers of all connections, sorted.
    fn ids(&self) -> Vec<u32> {
        #[expect(clippy::disallowed_methods, reason = "sorted below")]
        let mut ids: Vec<u32> = self.entries.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    fn touch(&mut self, id: u32) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !entry.queued
        {
            entry.queued = true;
            self.send_queue.push_back(id);
        }
    }

    /// Handles a received datagram.
    #[cfg(any(test, fuzzing))]
    pub fn handle(&mut self, now: Instant, from: impl Into<Route>, ecn: Ecn, bytes: &mut [u8]) {
        self.handle_all(now, [Datagram { from: from.into(), ecn, bytes }]);
    }

    /// Handles received datagrams. Consecutive datagrams for one connection take its lock once.
    pub fn handle_all<'a>(&mut self, now: Instant, datagrams: impl IntoIterator<Item = Datagram<'a>>) {
        let mut datagrams = datagrams.into_iter().peekable();
        while let Some(mut datagram) = datagrams.next() {
            self.count_arrival(&datagram);
            let Some((id, slot)) = self.addressee(&datagram) else {
                self.handle_own(now, datagram);
                continue;
            };
            let mut session = self.enter(now, id, &slot);
            let implied = self.implied;
            loop {
                match &mut session {
                    Some(session) => self.deliver(now, id, session, datagram),
                    None => {
                        let Datagram { from, ecn, bytes } = datagram;
                        self.put_off(now, id, Arrival::Datagram { from, ecn, len: bytes.len() }, bytes);
                    }
                }
                let Some(next) = datagrams.next_if(|next| sealed_for(next.bytes, implied) == Some(id)) else {
                    break;
                };
                self.count_arrival(&next);
                datagram = next;
            }
            if let Some(session) = &mut session {
                self.announce(id, session);
            }
            self.touch(id);
        }
    }

    fn count_arrival(&mut self, datagram: &Datagram<'_>) {
        self.counters.datagrams_received += 1;
        self.counters.bytes_received += datagram.bytes.len() as u64;
    }

    /// The connection that `datagram` is for; `None` if it is for the hub itself or for no connection.
    fn addressee(&self, datagram: &Datagram<'_>) -> Option<(u32, Arc<Slot>)> {
        let id = if is_handshake(datagram.bytes) {
            match addressed(datagram.bytes)? {
                (kind::INITIATION, ..) => return None,
                (kind::RESET, number, _) => *self.reset_sources.get(&(datagram.from.peer, number.0))?,
                (_, number, _) => number.0,
            }
        } else {
            sealed_for(datagram.bytes, self.implied)?
        };
        Some((id, self.slot(id)?))
    }

    /// Locks the session of `id`, which is in `slot`, and first delivers its backlog. `None` while a user has it
    /// locked; that user's mark will bring the driver back.
    fn enter<'s>(&mut self, now: Instant, id: u32, slot: &'s Slot) -> Option<MutexGuard<'s, Session>> {
        let mut session = slot.try_lock()?;
        let entry = self.entries.get_mut(&id)?;
        if !entry.backlog.is_empty() {
            let mut backlog = std::mem::take(&mut entry.backlog);
            backlog.drain(|at, arrival, bytes| match arrival {
                Arrival::Datagram { from, ecn, .. } => {
                    self.deliver(at, id, &mut session, Datagram { from, ecn, bytes });
                }
                Arrival::Unreachable { to, refused } => session.on_unreachable(at, to, refused),
            });
            if std::mem::take(&mut backlog.is_due) {
                session.handle_timeout(now);
            }
            self.announce(id, &mut session);
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.backlog = backlog;
            }
        }
        Some(session)
    }

    /// Delivers a received datagram to the session of `id`.
    fn deliver(&mut self, at: Instant, id: u32, session: &mut Session, datagram: Datagram<'_>) {
        let Datagram { from, ecn, bytes } = datagram;
        if is_handshake(bytes) {
            return self.on_handshake(at, id, session, from, bytes);
        }
        let taken = session.on_sealed(at, from, ecn, bytes);
        if taken != Sealed::Taken
            && let Ok(prefix) = Prefix::parse(bytes)
        {
            session.on_not_taken(at, prefix, bytes.len(), taken);
        }
        match taken {
            Sealed::Taken => {}
            Sealed::Strange => self.counters.datagrams_strange += 1,
            Sealed::Misplaced => self.counters.datagrams_misplaced += 1,
            Sealed::Repeated => self.counters.datagrams_repeated += 1,
            Sealed::Forged => self.counters.datagrams_forged += 1,
        }
        if let Some(sample) = session.take_sample() {
            self.distributions.add(&sample);
        }
    }

    /// Delivers a handshake datagram other than an initiation, or a reset, with which a server reports that it has
    /// forgotten the connection.
    fn on_handshake(&mut self, at: Instant, id: u32, session: &mut Session, from: Route, bytes: &[u8]) {
        let Some((kind, _, body)) = addressed(bytes) else { return };
        if kind == kind::RESET {
            // Not from the server: only the server knows the token.
            self.counters.datagrams_strange += u64::from(!session.on_reset(at, body));
            return;
        }
        let was_half_open = session.is_half_open();
        session.on_handshake(at, kind, from.peer, body);
        if let Some(entry) = self.entries.get_mut(&id)
            && entry.reset_source.is_none()
        {
            entry.reset_source = session.reset_source();
            self.reset_sources.extend(entry.reset_source.map(|known| (known, id)));
        }
        if was_half_open && !session.is_half_open() {
            self.on_proved(id, session);
        }
    }

    /// Queues a connected client for the task that accepts connections.
    fn announce(&mut self, id: u32, session: &mut Session) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !entry.announced
            && session.is_connected()
        {
            entry.announced = true;
            // The handle of the task that will accept it.
            session.handles = 1;
            self.accepted.push_back(id);
        }
    }

    /// A user has locked the session of `id`: stores the event, with the `bytes` of a datagram, in its backlog.
    fn put_off(&mut self, now: Instant, id: u32, arrival: Arrival, bytes: &[u8]) {
        if let Some(entry) = self.entries.get_mut(&id)
            && !entry.backlog.push(now, arrival, bytes)
        {
            tracing::debug!(target: target::CONNECTION, connection = id, "dropped a datagram: the user is slow");
        }
    }

    /// Handles a datagram that belongs to no connection.
    fn handle_own(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Datagram { from, bytes, .. } = datagram;
        if bytes.first() == Some(&kind::INITIATION) {
            return self.on_initiation(now, from, bytes);
        }
        if let Some(number) = sealed_for(bytes, None) {
            self.on_forgotten(now, from, ConnectionId(number), bytes.len());
        }
        self.counters.datagrams_strange += 1;
    }

    /// Handles an ICMP error: a datagram to `to`, which begins with `bytes`, found no listener (`refused`) or no route.
    /// Any host that has seen the bytes can forge it.
    pub fn on_unreachable(&mut self, now: Instant, to: SocketAddr, bytes: &[u8], refused: bool) {
        let Some((kind, number, _)) = addressed(bytes) else { return };
        let id = match kind {
            kind::INITIATION => Some(number.0),
            _ => self.reset_sources.get(&(to, number.0)).copied(),
        };
        if let Some(id) = id
            && let Some(slot) = self.slot(id)
        {
            match self.enter(now, id, &slot) {
                Some(mut session) => session.on_unreachable(now, to, refused),
                None => self.put_off(now, id, Arrival::Unreachable { to, refused }, &[]),
            }
            self.touch(id);
        }
    }

    /// Handles a packet for an unknown connection, possibly one from before this server was restarted.
    fn on_forgotten(&mut self, now: Instant, from: Route, number: ConnectionId, len: usize) {
        if !self.admission.is_server() || number.0 == 0 || !self.shard.has(number.0) {
            return;
        }
        if let Some(answer) = self.resets.answer(now, from.peer, number, len) {
            self.counters.resets_sent += 1;
            self.answer(from, answer);
        }
    }

    /// Answers a datagram of no connection.
    fn answer(&mut self, to: Route, bytes: Vec<u8>) {
        if self.outbox.has_room() {
            self.outbox.push(to, bytes);
        }
    }

    fn on_initiation(&mut self, now: Instant, from: Route, bytes: &[u8]) {
        let is_server = self.admission.is_server() && !self.is_closed;
        let Some(initiation) = Initiation::parse(bytes).filter(|_| is_server) else {
            if let Some(client) = Initiation::client_of_other_version(bytes).filter(|_| is_server) {
                self.counters.handshakes_refused += 1;
                tracing::debug!(target: target::HANDSHAKE, from = %from.peer, "a client of another version");
                self.answer(from, datagram(kind::BUSY, client, &[OTHER_VERSION]));
            } else {
                self.counters.datagrams_strange += 1;
            }
            return;
        };
        let client = initiation.client;
        let has_room = self.entries.len() < self.config.max_connections;
        let attempt = match self.admission.verdict(now, from.peer, &initiation, has_room) {
            Verdict::Begins(attempt) => attempt,
            Verdict::Again(id) => {
                // A half-open connection has no user that could have locked it.
                if let Some(mut session) = self.entries.get(&id).and_then(|entry| entry.slot.try_lock()) {
                    session.on_initiation(&initiation);
                }
                return self.touch(id);
            }
            Verdict::Retry(token) => {
                self.counters.retries_sent += 1;
                tracing::debug!(target: target::HANDSHAKE, from = %from.peer, "asked a client where it is");
                self.answer(from, datagram(kind::RETRY, client, &token.0));
                return;
            }
            Verdict::Busy(busy) => {
                self.counters.handshakes_refused += 1;
                tracing::debug!(target: target::HANDSHAKE, from = %from.peer, "no room for a handshake: {busy}");
                self.answer(from, datagram(kind::BUSY, client, &[busy as u8]));
                return;
            }
        };
        let numbers = self.numbers(false);
        let transport = &self.config.transport;
        let observer = self.observer(numbers[0], now, false);
        let incoming = IncomingClient { remote: from, initiation: &initiation, resets: &self.resets.key };
        let Some(session) = Session::accept(now, observer, &self.identity, transport, numbers, &incoming)
        else {
            self.counters.datagrams_strange += 1;
            return;
        };
        self.counters.handshakes_begun += 1;
        self.admission.begin(attempt.clone(), numbers[0]);
        self.insert(numbers[0], Entry::new(numbers[0], session, Some(attempt)));
    }

    /// Handles a client that has authenticated itself.
    fn on_proved(&mut self, id: u32, session: &mut Session) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Some(half_open) = entry.half_open.take() {
            self.admission.end(&half_open);
        }
        if session.peer().is_some_and(|peer| self.admission.allows(&peer)) {
            session.begin_records();
        } else {
            self.counters.clients_refused += 1;
            entry.announced = true;
            session.close(0, "not allowed");
        }
    }

    /// Appends datagrams to send, one after another. `sent` is called for each with the buffer, the start of the
    /// datagram, its destination and its ECN mark. Connections take turns; each sends until it has nothing left or
    /// `sent` ends its turn.
    pub fn transmit(
        &mut self,
        now: Instant,
        into: &mut Vec<u8>,
        mut sent: impl FnMut(&mut Vec<u8>, usize, Route, Ecn) -> Turn,
    ) {
        loop {
            let before = into.len();
            let Some(to) = self.outbox.pop_into(into) else { break };
            self.count_sent(into.len() - before);
            if sent(into, before, to, Ecn::NotEct) != Turn::Goes {
                return;
            }
        }
        while let Some(id) = self.send_queue.front().copied() {
            let slot = self.slot(id);
            let mut session = slot.as_ref().and_then(|slot| self.enter(now, id, slot));
            let turn =
                session.as_mut().map_or(Turn::Goes, |session| self.turn(now, session, into, &mut sent));
            match (turn, &mut session) {
                (Turn::Pauses, _) => return,
                (Turn::Ends, Some(session)) => {
                    self.share_memory(id, session);
                    self.send_queue.rotate_left(1);
                }
                (_, session) => {
                    self.send_queue.pop_front();
                    if let Some(entry) = self.entries.get_mut(&id) {
                        entry.queued = false;
                    }
                    // A locked session is queued again by its user's mark.
                    if let Some(session) = session {
                        self.settle(id, session);
                    }
                }
            }
            drop(session);
            while self.memory.is_exceeded() && self.give_up_fullest() {}
            if turn == Turn::Ends {
                return;
            }
        }
    }

    /// Lets one connection send its pending datagrams until `sent` ends its turn.
    fn turn(
        &mut self,
        now: Instant,
        session: &mut Session,
        into: &mut Vec<u8>,
        mut sent: impl FnMut(&mut Vec<u8>, usize, Route, Ecn) -> Turn,
    ) -> Turn {
        loop {
            let before = into.len();
            let Some((to, ecn)) = session.poll_transmit(now, into) else { return Turn::Goes };
            self.count_sent(into.len() - before);
            match sent(into, before, to, ecn) {
                Turn::Goes => {}
                turn => return turn,
            }
        }
    }

    fn count_sent(&mut self, bytes: usize) {
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += bytes as u64;
    }

    /// Appends the next datagram to send, and returns its destination and ECN mark.
    #[cfg(any(test, fuzzing))]
    pub fn poll_transmit(&mut self, now: Instant, into: &mut Vec<u8>) -> Option<(Route, Ecn)> {
        let mut next = None;
        self.transmit(now, into, |_, _, to, ecn| {
            next = Some((to, ecn));
            Turn::Pauses
        });
        next
    }

    /// Updates the state of `id` after it has sent all it has: its memory, its deadline, and whether it is gone.
    fn settle(&mut self, id: u32, session: &mut Session) {
        self.share_memory(id, session);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let next = session.poll_timeout();
        if next != entry.deadline {
            if let Some(old) = entry.deadline.take() {
                self.deadlines.remove(&(old, id));
            }
            if let Some(next) = next {
                self.deadlines.insert((next, id));
            }
            entry.deadline = next;
        }
        entry.has_ended = session.end().is_some();
        self.connection_ended |= entry.has_ended;
        if session.is_gone() {
            if let Some(deadline) = entry.deadline {
                self.deadlines.remove(&(deadline, id));
            }
            if let Some(half_open) = &entry.half_open {
                self.admission.end(half_open);
            }
            if let Some(reset_source) = entry.reset_source {
                self.reset_sources.remove(&reset_source);
            }
            self.implied = self.implied.filter(|implied| *implied != id);
            if let Some(entry) = self.entries.remove(&id) {
                self.memory.change(entry.share, Share::default());
                self.count(session);
            }
        }
    }

    /// Updates the memory that `id` uses.
    fn share_memory(&mut self, id: u32, session: &mut Session) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let now = session.share();
        self.memory.change(std::mem::replace(&mut entry.share, now), now);
        entry.peer = session.peer();
        session.set_memory(self.memory.shared_buffer_of(now.borrowed), self.memory.is_tight());
    }

    /// Resets the largest stream of the peer that uses most memory on this socket. Returns false if every peer uses
    /// little. Locks a session, so the caller must have none locked.
    fn give_up_fullest(&mut self) -> bool {
        let mut of_peers: BTreeMap<Option<PublicKey>, u64> = BTreeMap::new();
        #[expect(clippy::disallowed_methods, reason = "sums do not depend on the order")]
        let entries = self.entries.values();
        entries.for_each(|entry| *of_peers.entry(entry.peer).or_default() += entry.share.held);
        let Some((peer, _)) = of_peers.iter().max_by_key(|(_, held)| **held) else { return false };
        #[expect(clippy::disallowed_methods, reason = "the order decides nothing between numbers")]
        let fullest = self.entries.iter().filter(|(_, entry)| entry.peer == *peer);
        let Some((id, _)) = fullest.max_by_key(|(id, entry)| (entry.share.held, **id)) else { return false };
        let id = *id;
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        // If it is locked, its user's mark brings the driver back, which then checks the memory again.
        let Some(mut session) = entry.slot.try_lock() else { return false };
        if !session.give_up_fullest() {
            return false;
        }
        let now = session.share();
        drop(session);
        self.memory.change(std::mem::replace(&mut entry.share, now), now);
        self.counters.streams_given_up += 1;
        self.touch(id);
        true
    }

    /// Adds the counts of a session that is removed to the totals.
    fn count(&mut self, session: &Session) {
        session.add_to(&mut self.ended_totals);
        let counters = &mut self.counters;
        counters.paths_changed += session.observer.paths_changed;
        counters.keys_updated += session.observer.keys_updated;
        if !session.is_connected() {
            counters.handshakes_unfinished += u64::from(session.is_half_open());
            return;
        }
        counters.connections_made += 1;
        match session.end() {
            Some(ConnectionError::TimedOut) => counters.ended_silent += 1,
            Some(ConnectionError::ApplicationClosed { .. }) => counters.ended_by_peer += 1,
            Some(ConnectionError::LocallyClosed) => counters.ended_here += 1,
            _ => counters.ended_broken += 1,
        }
    }

    /// Current counters and readings, except those of the socket.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics {
            counters: self.counters,
            totals: self.ended_totals,
            connections_open: 0,
            handshakes_open: self.admission.half_open() as u64,
            streams_open: 0,
            bytes_in_flight: 0,
            bytes_unread: 0,
            bytes_unread_max: 0,
            bytes_held: self.memory.held(),
            bytes_held_max: self.config.max_memory.0,
            rtt_us: self.distributions.rtt_us.clone(),
            rate_bps: self.distributions.rate_bps.clone(),
            socket_buffers: [0; 2],
            qlog_records_dropped: self.qlog_records_dropped(),
        };
        #[expect(clippy::disallowed_methods, reason = "sums do not depend on the order")]
        let entries = self.entries.values();
        entries.for_each(|entry| {
            let session = entry.slot.lock();
            session.add_to(&mut metrics.totals);
            metrics.counters.paths_changed += session.observer.paths_changed;
            metrics.counters.keys_updated += session.observer.keys_updated;
            metrics.bytes_in_flight += session.stats().bytes_in_flight;
            metrics.counters.connections_made += u64::from(session.is_connected());
            if session.is_connected() && session.alive().is_ok() {
                metrics.connections_open += 1;
                metrics.bytes_unread += session.unread();
                metrics.bytes_unread_max += self.config.transport.max_unread().0;
                metrics.streams_open += session.streams();
            }
        });
        metrics
    }

    fn observer(&self, id: u32, now: Instant, is_client: bool) -> Observer {
        #[cfg_attr(not(feature = "qlog"), expect(unused_mut, reason = "a feature has more to say"))]
        let mut observer = Observer::new(id, now, is_client);
        #[cfg(feature = "qlog")]
        {
            observer.qlog = self.config.qlog.as_ref().map(|qlog| qlog.trace(id, is_client));
        }
        observer
    }

    #[cfg(feature = "qlog")]
    fn qlog_records_dropped(&self) -> u64 {
        self.config.qlog.as_ref().map_or(0, crate::Qlog::dropped)
    }

    #[cfg(not(feature = "qlog"))]
    fn qlog_records_dropped(&self) -> u64 {
        0
    }

    /// True if a connection may have something to send.
    pub fn has_work(&self) -> bool {
        !self.send_queue.is_empty() || !self.outbox.is_empty()
    }

    /// True if a connection waits to be accepted.
    pub fn has_accepted(&self) -> bool {
        !self.accepted.is_empty()
    }

    /// True if a connection has ended since the last call.
    pub fn take_connection_ended(&mut self) -> bool {
        std::mem::take(&mut self.connection_ended)
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Handles expired timers, and the backlogs of sessions that their users have released.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.behind.pop() {
            self.catch_up(now, id);
        }
        while let Some((at, id)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, id));
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.deadline = None;
                entry.backlog.is_due = true;
            }
            self.catch_up(now, id);
            self.touch(id);
        }
    }

    /// Delivers the backlog of `id`, unless its user has it locked.
    fn catch_up(&mut self, now: Instant, id: u32) {
        if let Some(slot) = self.slot(id) {
            drop(self.enter(now, id, &slot));
        }
    }

    /// Fails all sessions because the socket has failed.
    pub fn fail(&mut self, why: &str) {
        let why = ConnectionError::Endpoint(why.to_owned());
        self.failed = Some(why.clone());
        for id in self.ids() {
            if let Some(entry) = self.entries.get(&id) {
                entry.slot.lock().fail(why.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
