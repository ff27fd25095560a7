//! One connection without sockets: the core, its keys, and the bytes of its streams. Time is an argument.

mod arrivals;
mod user;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tacit_packet::endpoint::{Ends, Event};
use tacit_packet::tack::Body;
use tacit_packet::tack::packet::{CloseCode, ConnectionId, Reason, StreamId};
use tacit_packet::tack::wire::encode_from;
use tacit_packet::units::{Duration, FlowId, HostId, Instant};
use tacit_packet::{Ecn, Endpoint as _};
use tacit_tack_proto::{self as tack, StreamEvent, Transmit};
use tokio::sync::Notify;

use crate::buffers::{StreamBuffers, wake};
use crate::datagram::{Route, datagram, kind};
use crate::error::ConnectionError;
use crate::handshake::{INITIATION_LEN, Initiation, Initiator, Keys, Responder};
use crate::identity::{Identity, PublicKey};
use crate::memory::Share;
use crate::metrics::{Sample, Totals};
use crate::observer::Observer;
use crate::outbox::Outbox;
use crate::path::Path;
use crate::reset::{MOVED_LEN, ResetKey, ResetToken};
use crate::stats::ConnectionStats;

/// Time limit for a client to authenticate itself after the server's answer. Ours.
pub(crate) const HALF_OPEN: Duration = Duration::from_secs(10);

/// How long the server has to disprove an unverified end. Ours: two repetitions of a first datagram, or a few probes.
const UNVERIFIED_DELAY: Duration = Duration::from_millis(600);

/// Bytes that a stream may buffer from its writer in addition to 5/4 of the congestion window. Not more, because data
/// that waits longer falls out of the CPU's cache. Ours.
const SEND_AHEAD: u64 = 256 << 10;
/// Bytes that a stream may buffer from its writer beyond the peer's window. This is the cost per stream of a stalled
/// reader; when the reader continues, these bytes can be sent before the writer has woken up. Ours.
pub(crate) const BEYOND_LIMIT: u64 = 64 << 10;

/// Bytes that the peer has received beyond a gap do not count as buffered, up to this number of congestion windows: a
/// packet that is lost repeatedly holds back the release of that much. If one in three packets is lost, this happens to
/// one in a thousand. Ours.
const BEHIND_GAP_WINDOWS: u64 = 12;

/// Most datagrams beside the core's that wait to be sent: repeated responses of a handshake, and answers to path challenges (an honest
/// peer sends one each 300 ms). Further ones get no answer. Ours.
const MAX_WAITING: usize = 64;

/// The server that a client expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Key(PublicKey),
    /// The client's own key. Of another server the client only learns the key, and leaves before it authenticates itself.
    Own,
}

/// State of the handshake.
enum Stage {
    Initiating(Box<Initiator>),
    Responding { responder: Box<Responder>, reset: ResetToken, response: Option<Vec<u8>>, until: Instant },
    Established(Box<Established>),
    Closed,
}

struct Established {
    keys: Keys,
    /// The client's last handshake datagram, until an answer shows that it has arrived.
    finish: Option<Finish>,
    /// For a client: the token of a server that has forgotten this connection, and the token's first half for the
    /// address to which the client has moved.
    reset: Option<ResetToken>,
    moved: Option<[u8; MOVED_LEN]>,
}

/// A client's third message, without which the server can read nothing. It leaves before the first packet, before each probe, and
/// before each packet after a probe timeout. That timer always runs: the answer to the client's first probe is missing.
struct Finish {
    datagram: Vec<u8>,
    has_left: bool,
}

/// An unverified reason to end: an ICMP error, or a datagram that any host on the path may have sent. It takes effect
/// unless the server answers first.
struct UnverifiedEnd {
    why: ConnectionError,
    /// When it takes effect.
    at: Instant,
}

/// A client that starts a handshake.
pub(crate) struct IncomingClient<'a> {
    pub remote: Route,
    pub initiation: &'a Initiation<'a>,
    /// The key for the reset tokens of its connections.
    pub resets: &'a Arc<ResetKey>,
}

/// Notifies tasks that wait for a change of the connection.
#[derive(Default)]
pub(crate) struct Notifiers {
    /// The connection was established, or ended.
    pub state: Notify,
    /// The peer opened a stream.
    pub accept: Notify,
    /// Another stream may be opened.
    pub open: Notify,
    /// A datagram has arrived.
    pub datagram: Notify,
    /// A datagram has left, so there is room for another.
    pub datagram_room: Notify,
}

impl Notifiers {
    fn all(&self) {
        for notifier in [&self.state, &self.accept, &self.open, &self.datagram, &self.datagram_room] {
            notifier.notify_waiters();
        }
    }
}

pub(crate) struct Session {
    core: tack::Connection,
    stage: Stage,
    remote: Route,
    expect: Option<Expect>,
    peer: Option<PublicKey>,
    path: Path,
    /// For a server: its number of the connection, and the key of its reset tokens.
    reset_key: Option<(ConnectionId, Arc<ResetKey>)>,
    unverified: Option<UnverifiedEnd>,
    streams: BTreeMap<StreamId, StreamBuffers>,
    opened: VecDeque<StreamId>,
    datagrams_out: VecDeque<(u64, Bytes)>,
    datagrams_in: VecDeque<Bytes>,
    /// Datagrams dropped before they left, and before they were read.
    datagrams_dropped: [u64; 2],
    send_limit: u64,
    /// Most bytes that its peer may make it buffer beyond the reserved windows, if other connections leave that much.
    shared_buffer_max: u64,
    /// Capacity of all stream buffers, in bytes.
    buffer_capacity: u64,
    /// Memory is tight, so writers wait.
    is_tight: bool,
    /// Datagrams that do not come from the core.
    outbox: Outbox,
    connected: bool,
    end: Option<ConnectionError>,
    pub notifiers: Arc<Notifiers>,
    pub observer: Observer,
    /// Handles of the user, counted by the hub.
    pub handles: usize,
}

impl Session {
    /// A client's session.
    pub fn connect(
        now: Instant,
        mut observer: Observer,
        identity: &Identity,
        config: &tack::Config,
        [id, seed]: [u32; 2],
        remote: SocketAddr,
        expect: Expect,
    ) -> Self {
        let mut core = tack::Connection::connect(config_for(config, remote), ENDS, seed, now);
        core.set_connection_id(ConnectionId(id));
        let open = core.poll_packet(now).expect("a connection that opens says so first");
        observer.watch(&mut core);
        observer.on_sent(now, &open);
        let initiator = Initiator::new(identity, ConnectionId(id), &open.packet);
        let first = initiator.datagrams();
        let mut session = Self::new(core, Stage::Initiating(Box::new(initiator)), remote.into(), observer);
        session.expect = Some(expect);
        first.into_iter().for_each(|datagram| session.outbox.push(remote.into(), datagram));
        session
    }

    /// A server's session for a client that starts a handshake; `None` if its message contains no opening packet.
    pub fn accept(
        now: Instant,
        mut observer: Observer,
        identity: &Identity,
        config: &tack::Config,
        [id, seed]: [u32; 2],
        incoming: &IncomingClient<'_>,
    ) -> Option<Self> {
        let IncomingClient { remote, initiation, resets } = *incoming;
        let (responder, open) = Responder::new(identity, initiation)?;
        let mut core = tack::Connection::listen(config_for(config, remote.peer), ENDS, seed);
        if initiation.is_short {
            core.begin_at_min_mtu();
        }
        core.set_connection_id(ConnectionId(id));
        observer.watch(&mut core);
        observer.on_received(now, &open, core.whole_number(open.number, false), None);
        core.receive(now, &open, Ecn::NotEct);
        let stage = Stage::Responding {
            responder: Box::new(responder),
            reset: resets.token(ConnectionId(id), remote.peer.ip()),
            response: None,
            until: now + HALF_OPEN,
        };
        let reset_key = Some((ConnectionId(id), resets.clone()));
        Some(Self { reset_key, ..Self::new(core, stage, remote, observer) })
    }

    fn new(core: tack::Connection, stage: Stage, remote: Route, observer: Observer) -> Self {
        Self {
            shared_buffer_max: core.shared_buffer().0,
            core,
            stage,
            remote,
            expect: None,
            peer: None,
            path: Path::default(),
            reset_key: None,
            unverified: None,
            streams: BTreeMap::new(),
            opened: VecDeque::new(),
            datagrams_out: VecDeque::new(),
            datagrams_in: VecDeque::new(),
            datagrams_dropped: [0; 2],
            send_limit: SEND_AHEAD,
            buffer_capacity: 0,
            is_tight: false,
            outbox: Outbox::new(MAX_WAITING),
            connected: false,
            end: None,
            notifiers: Arc::default(),
            observer,
            handles: 0,
        }
    }

    /// True until the client is authenticated.
    pub fn is_half_open(&self) -> bool {
        matches!(self.stage, Stage::Responding { .. })
    }

    /// The peer's key, once the peer has proved to have it.
    pub fn peer(&self) -> Option<PublicKey> {
        self.peer
    }

    pub fn remote(&self) -> SocketAddr {
        self.remote.peer
    }

    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// True if it has ended, has no handles, and has nothing left to send.
    pub fn is_gone(&self) -> bool {
        self.end.is_some() && self.handles == 0 && self.outbox.is_empty()
    }

    pub fn stats(&self) -> tacit_packet::Stats {
        self.core.stats()
    }

    /// Statistics for the user.
    pub fn connection_stats(&self) -> ConnectionStats {
        let mut stats = ConnectionStats::new(&self.core.stats(), self.core.packets_lost());
        [stats.datagrams_unsent, stats.datagrams_unread] = self.datagrams_dropped;
        stats
    }

    /// Its use of the endpoint's memory.
    pub fn share(&self) -> Share {
        Share { borrowed: self.core.borrowed().0, held: self.buffer_capacity }
    }

    /// Sets how much the peer may make it buffer, and whether writers have to wait.
    pub fn set_memory(&mut self, shared_buffer: u64, is_tight: bool) {
        self.core.set_shared_buffer(tacit_packet::units::Bytes(shared_buffer.min(self.shared_buffer_max)));
        self.is_tight = is_tight;
    }

    /// Updates the capacity of the buffers of `stream`, which may have changed.
    fn count(&mut self, stream: StreamId) {
        if let Some(buffers) = self.streams.get_mut(&stream) {
            let now = buffers.buffer_capacity();
            let before = std::mem::replace(&mut buffers.counted, now);
            self.buffer_capacity = self.buffer_capacity - before + buffers.counted;
        }
    }

    /// Received bytes that wait for readers or for missing bytes before them.
    pub fn unread(&self) -> u64 {
        self.streams.values().map(|buffers| buffers.receiving.held()).sum()
    }

    /// Number of open streams.
    pub fn streams(&self) -> u64 {
        self.streams.len() as u64
    }

    /// The sample since the last call.
    #[inline]
    pub fn take_sample(&mut self) -> Option<Sample> {
        self.observer.take_sample()
    }

    /// Adds this session's counts.
    pub fn add_to(&self, totals: &mut Totals) {
        totals.add(&self.core.stats());
        totals.packets_lost += self.core.packets_lost();
        self.observer.add_to(totals);
    }

    /// Starts writing records, including earlier ones: the client is admitted.
    pub fn begin_records(&mut self) {
        self.observer.begin(self.observer.now, self.remote.peer, self.core.peer_id());
    }

    /// The reason why it has ended.
    pub fn end(&self) -> Option<&ConnectionError> {
        self.end.as_ref()
    }

    // Sending.

    /// Appends the next datagram to send, and returns its destination and ECN mark.
    pub fn poll_transmit(&mut self, now: Instant, into: &mut Vec<u8>) -> Option<(Route, Ecn)> {
        loop {
            if let Some(to) = self.outbox.pop_into(into) {
                return Some((to, Ecn::NotEct));
            }
            let Some(sent) = self.core.poll_packet(now) else {
                // Packets may have become too short for datagrams that waited.
                let oldest = self.core.oldest_datagram();
                if self.drop_datagrams_before(oldest) {
                    self.notifiers.datagram_room.notify_waiters();
                }
                return None;
            };
            match (&sent.packet.body, &mut self.stage) {
                (Body::Open(_), Stage::Initiating(initiator)) => {
                    self.observer.on_sent(now, &sent);
                    initiator
                        .repeat()
                        .into_iter()
                        .for_each(|datagram| self.outbox.push(self.remote, datagram));
                }
                (Body::Answer(_), Stage::Responding { responder, reset, response, .. }) => {
                    let response = response.get_or_insert_with(|| responder.respond(&sent.packet, reset));
                    let response = datagram(kind::RESPONSE, sent.packet.connection, response);
                    self.observer.on_sent(now, &sent);
                    self.outbox.push(self.remote, response);
                }
                (Body::Open(_) | Body::Answer(_), _) => {}
                (_, Stage::Established(_)) => {
                    self.queue_finish(matches!(sent.packet.body, Body::Probe { .. }));
                    if self.outbox.is_empty() {
                        if self.seal(now, &sent, into) {
                            return Some((self.remote, sent.ecn));
                        }
                    } else {
                        self.send_aside(now, self.remote, &sent);
                    }
                }
                _ => {}
            }
        }
    }

    /// Drops and counts datagrams with lower numbers than `oldest`, which the core has dropped; true if there were any.
    pub(super) fn drop_datagrams_before(&mut self, oldest: u64) -> bool {
        let before = self.datagrams_out.len();
        while self.datagrams_out.front().is_some_and(|(number, _)| *number < oldest) {
            self.datagrams_out.pop_front();
        }
        let dropped = before - self.datagrams_out.len();
        self.datagrams_dropped[0] += dropped as u64;
        dropped > 0
    }

    /// Sends a packet of the core to another address than the peer's.
    fn send_aside(&mut self, now: Instant, to: Route, sent: &Transmit) {
        let mut bytes = Vec::new();
        if self.seal(now, sent, &mut bytes) {
            self.outbox.push(to, bytes);
        }
    }

    /// A client sends its third message again where that is due before a packet, which is a probe or not.
    fn queue_finish(&mut self, is_probe: bool) {
        let Stage::Established(established) = &mut self.stage else { return };
        let Some(finish) = &mut established.finish else { return };
        if is_probe || self.core.timeouts() > 0 || !finish.has_left {
            finish.has_left = true;
            self.outbox.push(self.remote, finish.datagram.clone());
        }
    }

    /// Appends an encrypted packet with the bytes that it carries.
    fn seal(&mut self, now: Instant, sent: &Transmit, into: &mut Vec<u8>) -> bool {
        self.observer.on_sent(now, sent);
        if let Body::Datagram(_) = &sent.packet.body {
            self.drop_datagrams_before(sent.start);
            self.notifiers.datagram_room.notify_waiters();
        }
        let Stage::Established(established) = &mut self.stage else { return false };
        // On average every 2,048 packets, a packet number is skipped.
        if sent.number.is_multiple_of(64)
            && let Ok(fresh) = getrandom::u32()
        {
            self.core.add_entropy(fresh);
        }
        let (streams, datagrams) = (&self.streams, &mut self.datagrams_out);
        let content = |into: &mut Vec<u8>| match &sent.packet.body {
            Body::Data(data) => {
                if let Some(buffers) = streams.get(&data.stream) {
                    buffers.sending.copy(sent.start, usize::from(data.payload_len), into);
                }
            }
            Body::Datagram(_) => {
                if let Some((_, bytes)) = datagrams.pop_front() {
                    into.extend_from_slice(&bytes);
                }
            }
            _ => {}
        };
        let key = established.keys.sealer.key(sent.number);
        encode_from(&sent.packet, content, sent.number, key, into).is_ok()
    }

    /// Bytes of datagrams that wait to be sent and do not come from the core.
    #[cfg(test)]
    pub fn waiting_bytes(&self) -> usize {
        self.outbox.waiting().map(<[u8]>::len).sum()
    }

    /// A packet with any `body` and `content`, sealed with the keys of this end, as a peer that keeps no rules sends it.
    #[cfg(test)]
    pub fn sealed(&mut self, number: u32, body: Body, content: &[u8]) -> Vec<u8> {
        let connection = self.core.peer_id();
        let Stage::Established(established) = &mut self.stage else { panic!("there are no keys yet") };
        let key = established.keys.sealer.key(number.into());
        let packet =
            tacit_packet::tack::Packet { connection, number: tacit_packet::units::SeqNumber(number), body };
        let mut bytes = Vec::new();
        encode_from(&packet, |into| into.extend_from_slice(content), number.into(), key, &mut bytes)
            .expect("the content is as long as the packet says");
        bytes
    }

    // Time.

    pub fn poll_timeout(&self) -> Option<Instant> {
        let unverified = self.unverified.as_ref().map(|unverified| unverified.at);
        self.poll_stage().into_iter().chain(unverified).min()
    }

    fn poll_stage(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Responding { until, .. } => {
                self.core.poll_timeout().map_or(Some(*until), |at| Some(at.min(*until)))
            }
            Stage::Closed => None,
            Stage::Initiating(_) | Stage::Established(_) => self.core.poll_timeout(),
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.observer.now = now;
        if let Stage::Responding { until, .. } = &self.stage
            && *until <= now
        {
            return self.finish(ConnectionError::TimedOut);
        }
        if let Some(unverified) = self.unverified.take_if(|unverified| unverified.at <= now) {
            self.finish(unverified.why);
            // The peer does not exist, so nothing more is sent.
            self.core.abort();
            self.pump();
            self.stage = Stage::Closed;
            return;
        }
        self.core.handle_timeout(now);
        self.observer.on_time(now, &mut self.core);
        if self.end.is_none() && self.core.is_path_too_narrow(now) {
            self.core.abort_too_narrow();
            self.finish(ConnectionError::PathTooNarrow);
        }
        self.pump();
    }

    /// Ends the connection with `why` unless the server disproves it, because any host may have sent this.
    fn on_unverified(&mut self, now: Instant, why: ConnectionError) {
        if self.end.is_none() && self.unverified.is_none() {
            let round_trips = self.core.rtt_min().unwrap_or_default().saturating_mul(2);
            self.unverified = Some(UnverifiedEnd { why, at: now + UNVERIFIED_DELAY.max(round_trips) });
        }
    }

    // Events of the core.

    fn finish(&mut self, why: ConnectionError) {
        self.unverified = None;
        if self.end.is_none() {
            self.observer.on_end(&why, &self.core, self.connected);
            self.end = Some(why);
        }
        for buffers in self.streams.values_mut() {
            buffers.wake();
        }
        self.notifiers.all();
    }

    fn pump(&mut self) {
        while let Some(event) = self.core.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.observer.on_connected(self.remote.peer, self.peer.as_ref());
                    self.notifiers.state.notify_waiters();
                }
                Event::SendDone | Event::PeerClosed => {}
                Event::TimedOut => self.finish(ConnectionError::TimedOut),
                Event::Closed | Event::Reset => {
                    let of_user = self.core.peer_reason();
                    let why = match (self.core.peer_gave_up(), of_user) {
                        (Some(CloseCode::PathTooNarrow), _) => ConnectionError::PathTooNarrow,
                        (_, Some(Reason { code, text })) => {
                            ConnectionError::ApplicationClosed { code: *code, reason: text.clone() }
                        }
                        _ => ConnectionError::Reset,
                    };
                    self.finish(why);
                }
            }
        }
        while let Some(event) = self.core.poll_stream_event() {
            self.on_stream(event);
        }
    }

    fn on_stream(&mut self, event: StreamEvent) {
        let stream = match event {
            StreamEvent::MayOpen => return self.notifiers.open.notify_waiters(),
            StreamEvent::Opened(stream) => {
                self.observer.streams_opened += 1;
                self.streams.entry(stream).or_default();
                self.opened.push_back(stream);
                return self.notifiers.accept.notify_waiters();
            }
            StreamEvent::Readable(stream)
            | StreamEvent::Ended(stream)
            | StreamEvent::Reset(stream, _)
            | StreamEvent::Writable(stream)
            | StreamEvent::Stopped(stream, _)
            | StreamEvent::Finished(stream) => stream,
        };
        let Some(buffers) = self.streams.get_mut(&stream) else { return };
        match event {
            StreamEvent::Readable(_) => buffers.receiving.on_delivered(self.core.delivered_of(stream)),
            StreamEvent::Ended(_) => {
                buffers.receiving.ended = true;
                wake(&mut buffers.receiving.waker);
            }
            StreamEvent::Reset(_, code) => {
                buffers.receiving.reset = Some(code);
                buffers.receiving.clear();
                wake(&mut buffers.receiving.waker);
            }
            StreamEvent::Writable(_) => {
                let acked = self.core.acked_of(stream);
                buffers.sending.release(acked);
                let cwnd = self.core.stats().cwnd.unwrap_or(0);
                self.send_limit = cwnd + cwnd / 4 + SEND_AHEAD;
                // Both are zero for a stream that has ended.
                let behind_gap = self.core.highest_acked_of(stream).saturating_sub(acked);
                buffers.sending.behind_gap = behind_gap.min(BEHIND_GAP_WINDOWS * cwnd);
                wake(&mut buffers.sending.waker);
            }
            StreamEvent::Stopped(_, code) => {
                buffers.sending.stopped = Some(code);
                buffers.sending.clear();
                wake(&mut buffers.sending.waker);
            }
            StreamEvent::Finished(_) => {
                buffers.sending.finished = true;
                buffers.sending.clear();
                wake(&mut buffers.sending.waker);
            }
            StreamEvent::Opened(_) | StreamEvent::MayOpen => {}
        }
        self.count(stream);
        self.forget_if_over(stream);
    }

    fn forget_if_over(&mut self, stream: StreamId) {
        if self
            .streams
            .get(&stream)
            .is_some_and(|buffers| buffers.is_over() || (self.end.is_some() && buffers.is_dropped()))
        {
            let removed = self.streams.remove(&stream);
            self.buffer_capacity -= removed.map_or(0, |buffers| buffers.counted);
        }
    }
}

/// The core needs source and destination only for building IP packets, which the socket does here.
const ENDS: Ends = Ends { flow: FlowId(0), local: HostId(0), remote: HostId(1) };

/// The configuration for a path to `remote`; IPv6 has longer headers.
fn config_for(config: &tack::Config, remote: SocketAddr) -> tack::Config {
    use tacit_packet::IpVersion;
    let v6 = matches!(remote, SocketAddr::V6(address) if address.ip().to_ipv4_mapped().is_none());
    tack::Config { ip: if v6 { IpVersion::V6 } else { IpVersion::V4 }, ..*config }
}

/// Answers that a server sends to one initiation while it waits for the client ([`HALF_OPEN`]): at once, four at 250 ms, one after 500
/// ms, and then every second.
pub(crate) const ANSWERS: usize = 14;
/// Bytes of the longest of them.
pub(crate) const MAX_ANSWER: usize = 256;
const _: () = assert!(
    3 * INITIATION_LEN >= ANSWERS * MAX_ANSWER,
    "its answers are paid for by one initiation (RFC 9000 section 8)"
);
