//! One end of a TACK connection.

mod driver;
mod streams;

use std::collections::VecDeque;
use std::sync::Arc;

use tacit_ack::AckClock;

use super::config::{Config, Reader};
use super::incoming::Accepted;
use super::receiver::Receiver;
use super::sender::Sender;
use super::silence::Silence;
use super::violation::Violation;
use tacit_packet::endpoint::{Endpoint, Ends, Event};
use tacit_packet::tack::packet::{
    self, Body, CloseCode, ConnectionId, Control, Hello, Reason, Stamp, StreamId,
};
use tacit_packet::units::{Bytes, Duration, Instant, SeqNumber};
use tacit_packet::{Ecn, IpHeader, Packet, Stats, Transport};

pub use driver::{Received, TooLong, Transmit};

/// How often an end says that all is done before it goes without an answer.
const MAX_FAREWELLS: u32 = 12;

/// The smallest UDP payload that a peer may limit us to.
const LEAST_PAYLOAD: u32 = 512;

/// Bounds of the ACKs per round trip that a peer may ask for.
const BETA: core::ops::RangeInclusive<u8> = 2..=64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for an [`Open`](Body::Open).
    Listening,
    /// Has sent one.
    Opening,
    /// Has answered one, and heard nothing since.
    Accepted,
    Established,
    /// All is done; how often that was sent. The peer has to confirm it.
    Closing {
        farewells: u32,
        again_at: Instant,
    },
    Closed,
}

/// The hello of an end that opens a connection, or answers one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greeting {
    /// None is to be sent.
    Idle,
    Due,
    /// One is on its way, and is sent again where nothing answers it.
    Sent {
        at: Instant,
    },
}

/// State of the user's writes, on any stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Nothing,
    /// Something that the peer has completely and the user does not know of yet.
    Unreported,
    Reported,
}

/// One end of a connection: several streams both ways, each reliable and in order.
///
/// A sans-IO [`Endpoint`]; see there for how it is driven. Stream 0 is open from the start; either end opens others with
/// [`open_stream`](Self::open_stream), and hears of them by [`poll_stream_event`](Self::poll_stream_event). Contents are no
/// matter of this type: it says which bytes of a stream a packet carries ([`poll_packet`](Self::poll_packet)), and where
/// those that arrive belong ([`receive`](Self::receive)).
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    ends: Ends,
    state: State,
    seed: u32,
    local: ConnectionId,
    peer: ConnectionId,
    sender: Sender,
    receiver: Receiver,
    greeting: Greeting,
    /// How often it was sent.
    hellos: u32,
    /// Departure in the peer's hello, and when the hello came.
    echo: Stamp,
    echo_at: Instant,
    close_due: Option<CloseCode>,
    /// Why our user gave up, and that is said again to a peer that did not hear it; why the peer's user did.
    gave_up: Option<CloseCode>,
    reason: Option<Arc<Reason>>,
    peer_gave_up: Option<CloseCode>,
    peer_reason: Option<Arc<Reason>>,
    /// An event to report: streams may be opened, which could not.
    may_open: bool,
    /// The client lets the server know that it heard its answer.
    confirm_due: bool,
    received_at: Instant,
    silence: Silence,
    written: Written,
    /// The user knows that all streams of the peer have ended.
    reported_peer_closed: bool,
    /// Once this end has said that all is done: how often it said so to an end that said the same.
    farewell_answers: Option<u32>,
    events: VecDeque<Event>,
    identification: u16,
    packets_sent: u64,
    packets_received: u64,
    data_packets_received: u64,
    bytes_received: u64,
    acks_sent: u64,
    acks_received: u64,
    dropped_bytes: u64,
}

impl Connection {
    /// Opens a connection. `seed` determines its random choices.
    pub fn connect(config: Config, ends: Ends, seed: u32, now: Instant) -> Self {
        let mut connection = Self::new(config, ends, seed, State::Opening);
        connection.greeting = Greeting::Due;
        connection.received_at = now;
        connection
    }

    /// Waits for a peer to open a connection; `seed` as in [`connect`](Self::connect).
    pub fn listen(config: Config, ends: Ends, seed: u32) -> Self {
        Self::new(config, ends, seed, State::Listening)
    }

    fn new(config: Config, ends: Ends, seed: u32, state: State) -> Self {
        // Odd constants near 2^32 over the golden ratio and its square: values derived from one seed should differ.
        let clock_offset = seed.wrapping_mul(0x9E37_79B1);
        let sender = Sender::new(&config, clock_offset, seed);
        let receiver = Receiver::new(&config, state == State::Opening, sender.mss(), clock_offset);
        Self {
            config,
            ends,
            state,
            seed,
            local: Self::first_number(seed, state),
            peer: ConnectionId(0),
            sender,
            receiver,
            greeting: Greeting::Idle,
            hellos: 0,
            echo: Stamp::default(),
            echo_at: Instant::ZERO,
            close_due: None,
            gave_up: None,
            reason: None,
            peer_gave_up: None,
            peer_reason: None,
            may_open: false,
            confirm_due: false,
            received_at: Instant::ZERO,
            silence: Silence::default(),
            written: Written::Nothing,
            reported_peer_closed: false,
            farewell_answers: None,
            events: VecDeque::new(),
            identification: seed as u16,
            packets_sent: 0,
            packets_received: 0,
            data_packets_received: 0,
            bytes_received: 0,
            acks_sent: 0,
            acks_received: 0,
            dropped_bytes: 0,
        }
    }

    /// A client's socket has one connection unless its driver says otherwise.
    fn first_number(seed: u32, state: State) -> ConnectionId {
        ConnectionId(seed.wrapping_mul(0x61C8_8647)).implied_or_not(state == State::Opening)
    }

    /// Adds `bytes` to stream 0: see [`write_stream`](Self::write_stream).
    #[inline]
    pub fn write(&mut self, bytes: u64) {
        self.write_stream(StreamId(0), bytes);
    }

    /// Ends the sending direction of every stream. Data of the peer is still received.
    pub fn close(&mut self) {
        self.sender.streams.close_all();
    }

    /// Gives the connection up at once.
    pub fn abort(&mut self) {
        self.abort_for(CloseCode::Aborted);
    }

    fn abort_for(&mut self, code: CloseCode) {
        if self.is_open() {
            self.finish(code, Event::Closed);
        }
    }

    /// Bytes delivered in order and once, of all streams.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.receiver.incoming.delivered()
    }

    /// Bytes that wait in the receive buffer for others before them.
    pub fn blocked_bytes(&self) -> u64 {
        self.receiver.incoming.blocked()
    }

    /// Bytes written and not yet sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.sender.streams.unsent()
    }

    /// Bytes of it that may lie in the queue of its own host, by [`own_queue`](Config::own_queue); `None` where nothing limits them, or
    /// nothing new waits to be sent.
    pub fn small_queue(&self) -> Option<Bytes> {
        let queue = self.config.own_queue.filter(|_| self.unsent() > 0)?;
        Some(Bytes(u64::from(queue.most) * self.config.mtu.0))
    }

    /// Smallest round-trip time of the last ten seconds, once measured.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.sender.rtt_min()
    }

    /// Blocks of each list that the peer is asked to repeat (TACK paper equations 6 to 8).
    pub fn requested_blocks(&self) -> u8 {
        self.sender.blocks()
    }

    /// Counts so far, and readings as of now.
    pub fn stats(&self) -> Stats {
        let sent = &self.sender.counters;
        Stats {
            packets_sent: self.packets_sent,
            packets_received: self.packets_received,
            data_packets_sent: sent.data_packets,
            data_packets_received: self.data_packets_received,
            packets_retransmitted: sent.packets_again + u64::from(self.hellos.saturating_sub(1)),
            acks_sent: self.acks_sent,
            acks_received: self.acks_received,
            bytes_sent: sent.data_bytes,
            bytes_retransmitted: sent.bytes_again,
            bytes_acked: self.sender.streams.acked(),
            bytes_received: self.bytes_received,
            delivered_bytes: self.delivered_bytes(),
            duplicate_bytes: self.receiver.incoming.duplicate,
            dropped_bytes: self.dropped_bytes,
            bytes_in_flight: self.sender.in_flight(),
            srtt: self.sender.smoothed_rtt(),
            cwnd: Some(self.sender.cwnd()),
            rto: Some(if self.greets() { self.hello_timeout() } else { self.sender.backed_off() }),
            timeouts: Some(sent.timeouts),
            fast_recoveries: Some(sent.recoveries),
            rtt_min: self.rtt_min(),
            blocked_bytes: Some(self.blocked_bytes()),
            pacing_rate: self.sender.pacing_rate(),
            congestion_state: self.sender.congestion_state(),
        }
    }

    /// Verifies the invariants that hold after all packets to send were taken.
    ///
    /// # Errors
    /// Where data or packets would wait for ever if the peer said nothing more.
    pub fn check(&self) -> Result<(), String> {
        if self.state == State::Established { self.sender.check() } else { Ok(()) }
    }

    fn is_open(&self) -> bool {
        matches!(self.state, State::Opening | State::Accepted | State::Established)
    }

    /// Says `code` to the peer and `event` to the user.
    fn finish(&mut self, code: CloseCode, event: Event) {
        self.close_due = Some(code);
        self.gave_up = Some(code);
        self.state = State::Closed;
        self.events.push_back(event);
    }

    fn hello(&self, now: Instant) -> Hello {
        let (beta, every, min_interval) = match self.config.wished_clock() {
            AckClock::Tack { beta, every, min_interval } => (beta, every, min_interval),
            AckClock::Paper { beta, every } => (beta, every, Duration::ZERO),
            AckClock::Delayed { .. } => (0, 0, Duration::ZERO),
        };
        Hello {
            version: Hello::VERSION,
            source: self.local,
            departed: Stamp::at(now, self.clock_offset()),
            // As if the hello had come just now: an answer may be sent again much later.
            echo: match self.state {
                State::Opening => Stamp::default(),
                _ => self.echo.later(now.saturating_since(self.echo_at)),
            },
            window: u32::try_from(self.config.receive_buffer.0).unwrap_or(u32::MAX >> 1),
            stream_window: u32::try_from(self.receiver.incoming.first_window()).unwrap_or(u32::MAX >> 1),
            streams: self.receiver.incoming.numbers.first_allowance(),
            max_payload: self.config.max_payload() as u16,
            beta,
            every,
            min_interval_ms: u8::try_from(min_interval.as_micros() / 1000).unwrap_or(u8::MAX),
        }
    }

    fn clock_offset(&self) -> u32 {
        self.seed.wrapping_mul(0x9E37_79B1)
    }

    /// The peer's hello: its limits are ours.
    fn greet(&mut self, now: Instant, hello: &Hello, rtt: Option<Duration>) {
        self.peer = hello.source;
        self.sender.set_peer(u32::from(hello.max_payload), hello.source.is_implied());
        self.receiver.incoming.numbers.greet(hello.streams);
        self.sender.streams.open(u64::from(hello.window), u64::from(hello.stream_window));
        self.sender.open(now, self.seed, rtt);
        if BETA.contains(&hello.beta) && hello.every > 0 {
            let min_interval = Duration::from_millis(hello.min_interval_ms.into());
            self.receiver.set_rule(hello.beta, hello.every, min_interval);
        }
        if let Some(rtt) = rtt {
            self.receiver.set_rtt(rtt);
        }
    }

    /// The peer answered a hello, perhaps an earlier one than the last.
    fn guess_rtt(&mut self, now: Instant) {
        if let Greeting::Sent { at } = self.greeting {
            self.sender.guess_rtt(now.saturating_since(at));
        }
    }

    fn acceptable(hello: &Hello) -> bool {
        hello.version == Hello::VERSION
            && hello.source.0 != 0
            && u32::from(hello.max_payload) >= LEAST_PAYLOAD
    }

    fn on_open(&mut self, now: Instant, hello: &Hello) {
        match self.state {
            State::Listening if Self::acceptable(hello) => {
                self.state = State::Accepted;
                self.greet(now, hello, None);
            }
            State::Listening => {
                self.peer = hello.source;
                self.close_due = Some(CloseCode::Refused);
                return;
            }
            // Our answer was lost.
            State::Accepted if hello.source == self.peer => {}
            _ => return,
        }
        self.received_at = now;
        (self.echo, self.echo_at) = (hello.departed, now);
        self.greeting = Greeting::Due;
    }

    fn on_answer(&mut self, now: Instant, hello: &Hello) {
        if self.state != State::Opening {
            // A second answer: the first confirmation was lost.
            self.confirm_due |= self.state == State::Established && hello.source == self.peer;
            return;
        }
        if !Self::acceptable(hello) {
            return self.finish(CloseCode::Refused, Event::Reset);
        }
        let micros = Stamp::at(now, self.clock_offset()).since(hello.echo).filter(|micros| *micros > 0);
        // An answer echoes the hello that it answers, so that one sent twice is no doubt.
        self.guess_rtt(now);
        self.greet(now, hello, micros.map(|micros| Duration::from_micros(u64::from(micros))));
        self.state = State::Established;
        self.greeting = Greeting::Idle;
        self.confirm_due = true;
        self.events.push_back(Event::Connected);
    }

    fn on_close(&mut self, code: CloseCode) {
        if self.is_open() {
            self.peer_gave_up = Some(code);
        }
        let was = core::mem::replace(&mut self.state, State::Closed);
        match was {
            State::Opening | State::Accepted | State::Established => {}
            State::Closing { .. } => return self.events.push_back(Event::Closed),
            State::Closed => {
                // Our answer was lost; or it was not, and two ends that are done would answer each other for ever.
                if code == CloseCode::Done
                    && let Some(answers) =
                        self.farewell_answers.as_mut().filter(|answers| **answers < MAX_FAREWELLS)
                {
                    *answers += 1;
                    self.close_due = Some(CloseCode::Done);
                }
                return;
            }
            State::Listening => {
                self.state = was;
                return;
            }
        }
        let arrived = code == CloseCode::Done && self.receiver.incoming.all_ended();
        // The peer has all of it, or it would not be done.
        if arrived && self.sender.streams.acknowledge_all() {
            self.report_send_done();
            self.queue_farewell();
            self.events.push_back(Event::Closed);
        } else {
            self.events.push_back(Event::Reset);
        }
    }

    fn send_farewell(&mut self, now: Instant, farewells: u32) {
        self.queue_farewell();
        let wait = self.sender.probe_timeout().saturating_mul(1 << farewells.min(4));
        self.state = State::Closing { farewells: farewells + 1, again_at: now + wait };
    }

    /// Says to the peer that all is done.
    fn queue_farewell(&mut self) {
        self.farewell_answers.get_or_insert(0);
        self.close_due = Some(CloseCode::Done);
    }

    fn report_send_done(&mut self) {
        if self.written == Written::Unreported {
            self.written = Written::Reported;
            self.events.push_back(Event::SendDone);
        }
    }

    /// Consequences of a packet that was processed.
    fn settle(&mut self, now: Instant) {
        self.open_what_peer_opened();
        if self.written == Written::Unreported && self.sender.streams.is_done() {
            self.report_send_done();
        }
        let all_ended = self.receiver.incoming.all_ended();
        if all_ended && !self.reported_peer_closed {
            self.reported_peer_closed = true;
            self.events.push_back(Event::PeerClosed);
        }
        let streams = &self.sender.streams;
        if self.state == State::Established && all_ended && streams.is_closing() && streams.is_finished() {
            self.send_farewell(now, 0);
        }
    }

    fn handle(&mut self, now: Instant, packet: &packet::Packet, ecn: Ecn) -> Option<Received> {
        self.packets_received += 1;
        self.bytes_received += u64::from(packet.payload_len());
        self.data_packets_received += u64::from(packet.payload_len() > 0);
        self.acks_received += u64::from(packet.is_feedback());
        match &packet.body {
            Body::Open(hello) => {
                self.receiver.on_hello(now, packet.number, hello.departed);
                self.on_open(now, hello);
                return None;
            }
            _ if packet.connection != self.local && !(packet.is_short() && self.local.is_implied()) => {
                return None;
            }
            Body::Answer(hello) => {
                self.received_at = now;
                self.receiver.on_hello(now, packet.number, hello.departed);
                self.on_answer(now, hello);
                return None;
            }
            Body::Close(code) => {
                self.on_close(*code);
                return None;
            }
            Body::CloseWith(reason) => {
                if self.is_open() {
                    self.peer_reason = Some(Arc::clone(reason));
                }
                self.on_close(CloseCode::Aborted);
                return None;
            }
            _ => {}
        }
        match self.state {
            State::Established => {}
            State::Accepted => {
                self.state = State::Established;
                self.guess_rtt(now);
                self.greeting = Greeting::Idle;
                self.events.push_back(Event::Connected);
            }
            // The peer did not hear that all is done.
            State::Closing { .. } | State::Closed if self.farewell_answers.is_some() && packet.elicits() => {
                self.close_due = Some(CloseCode::Done);
                return None;
            }
            // Or that it was given up.
            State::Closed if packet.elicits() => {
                self.close_due = self.gave_up;
                return None;
            }
            _ => return None,
        }
        self.received_at = now;
        self.sender.on_packet();
        if packet.is_feedback() {
            self.silence.on_feedback();
        }
        let Ok(received) = self.take(now, packet, ecn == Ecn::Ce) else {
            self.finish(CloseCode::Violation, Event::Reset);
            return None;
        };
        self.settle(now);
        received
    }

    fn take(
        &mut self,
        now: Instant,
        packet: &packet::Packet,
        marked: bool,
    ) -> Result<Option<Received>, Violation> {
        let number = packet.number;
        match &packet.body {
            Body::Data(data) => {
                let accepted = self.receiver.on_data(now, number, data, marked)?;
                if self.config.reader == Reader::Immediate {
                    self.receiver.incoming.on_read(data.stream, u64::MAX);
                }
                self.receiver.incoming.free_delivered();
                if self.config.probe_silence {
                    let open = self.receiver.incoming.expects(data.stream);
                    let rtt = self.sender.smoothed_rtt().max(self.receiver.known_rtt());
                    self.silence.on_data(now, open, rtt);
                }
                return Ok(accepted.map(Received::Bytes));
            }
            Body::Datagram(datagram) => {
                let fresh = self.receiver.on_datagram(now, number, datagram, marked);
                return Ok(fresh.then_some(Received::Datagram(datagram.payload_len)));
            }
            Body::Control(control) => {
                if self.receiver.on_control(now, number) {
                    self.on_control(*control)?;
                }
            }
            Body::Probe { .. } => self.receiver.on_probe(now, number),
            Body::Tack(tack) => {
                if self.receiver.on_number(now, number) {
                    let ack_loss = self.receiver.ack_loss();
                    self.sender.on_tack(now, tack, ack_loss).map_err(|_| Violation)?;
                }
            }
            Body::Instant(instant) => {
                if self.receiver.on_number(now, number) {
                    self.sender.on_instant(now, instant).map_err(|_| Violation)?;
                }
            }
            Body::Sync(sync) => {
                if self.receiver.on_number(now, number) {
                    self.receiver.synchronise(sync);
                }
            }
            Body::PathChallenge(token) => {
                let fresh = self.receiver.on_number(now, number);
                return Ok(fresh.then_some(Received::PathChallenge(token.token)));
            }
            Body::PathResponse(token) => {
                let fresh = self.receiver.on_number(now, number);
                return Ok(fresh.then_some(Received::PathResponse(token.token)));
            }
            Body::Open(_) | Body::Answer(_) | Body::Close(_) | Body::CloseWith(_) => {}
        }
        Ok(None)
    }

    fn next_body(&mut self, now: Instant) -> Option<Body> {
        if let Some(code) = self.close_due.take() {
            let reason = self.reason.clone().filter(|_| code == CloseCode::Aborted);
            return Some(reason.map_or(Body::Close(code), Body::CloseWith));
        }
        match self.state {
            State::Opening | State::Accepted => {
                if self.greeting != Greeting::Due {
                    return None;
                }
                self.hellos += 1;
                self.greeting = Greeting::Sent { at: now };
                let hello = self.hello(now);
                return Some(if self.state == State::Opening {
                    Body::Open(hello)
                } else {
                    Body::Answer(hello)
                });
            }
            State::Established => {}
            State::Listening | State::Closing { .. } | State::Closed => return None,
        }
        if !self.receiver.is_quiet(now)
            && let Some(feedback) = self.receiver.next(now)
        {
            self.acks_sent += 1;
            return Some(feedback);
        }
        if let Some(data) = self.sender.next(now) {
            self.confirm_due = false;
            return Some(data);
        }
        if core::mem::take(&mut self.confirm_due) {
            return Some(self.sender.next_ping(now));
        }
        self.sender.next_urgent_sync(now).map(Body::Sync)
    }

    fn next_packet(&mut self, now: Instant) -> Option<packet::Packet> {
        let quiet = self.state == State::Established
            && self.close_due.is_none()
            && !self.confirm_due
            && self.receiver.is_quiet(now)
            && self.sender.is_idle(now);
        if quiet {
            return None;
        }
        let body = self.next_body(now)?;
        Some(self.numbered(now, body))
    }

    fn numbered(&mut self, now: Instant, body: Body) -> packet::Packet {
        let connection = if matches!(body, Body::Open(_)) { ConnectionId(0) } else { self.peer };
        let mut packet = packet::Packet { connection, number: Default::default(), body };
        // Those that are acknowledged have their numbers.
        if !packet.elicits() {
            self.sender.push_silent(now);
        }
        packet.number = self.sender.latest().wire();
        if matches!(packet.body, Body::Open(_) | Body::Answer(_)) {
            self.sender.on_hello(now);
        }
        if packet.is_short() {
            packet.number = SeqNumber(packet.number.0 & 0xffff);
            if self.peer.is_implied() {
                packet.connection = ConnectionId(0);
            }
        }
        self.packets_sent += 1;
        packet
    }

    /// How the IP packet around `packet` is marked.
    fn ecn(&self, packet: &packet::Packet) -> Ecn {
        if self.config.ecn && packet.payload_len() > 0 { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// When the hello in hand is given up.
    fn hello_expires(&self) -> Option<Instant> {
        match self.greeting {
            Greeting::Sent { at } => Some(at + self.hello_timeout()),
            Greeting::Idle | Greeting::Due => None,
        }
    }

    fn greets(&self) -> bool {
        matches!(self.state, State::Opening | State::Accepted)
    }

    fn hello_timeout(&self) -> Duration {
        self.config.hello_wait(self.hellos.saturating_sub(1))
    }

    /// When the peer has been silent for too long.
    fn idle_expires(&self) -> Option<Instant> {
        self.is_open().then(|| self.received_at + self.config.idle_timeout)
    }

    /// When a probe keeps the path alive.
    fn keep_alive_at(&self) -> Option<Instant> {
        let period = self.config.keep_alive.filter(|_| self.state == State::Established)?;
        Some(self.received_at.max(self.sender.last_sent()) + period)
    }
}

impl Endpoint for Connection {
    type Packet = Packet;
    type Event = Event;

    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        if let Transport::Tack(body) = &packet.transport {
            self.handle(now, body, packet.ip.ecn);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.idle_expires()) {
            self.state = State::Closed;
            self.events.push_back(Event::TimedOut);
        }
        match self.state {
            State::Opening | State::Accepted => {
                if due(self.hello_expires()) {
                    self.greeting = Greeting::Due;
                }
            }
            State::Established => {
                self.confirm_due |= due(self.keep_alive_at()) | self.silence.poll_probe(now);
                self.sender.handle_timeout(now);
            }
            State::Closing { farewells, again_at } if again_at <= now => {
                if farewells < MAX_FAREWELLS {
                    self.send_farewell(now, farewells);
                } else {
                    self.state = State::Closed;
                    self.events.push_back(Event::Closed);
                }
            }
            State::Closing { .. } | State::Listening | State::Closed => {}
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let packet = self.next_packet(now)?;
        let ecn = self.ecn(&packet);
        Some(Packet {
            flow: self.ends.flow,
            source: self.ends.local,
            destination: self.ends.remote,
            ip: IpHeader::numbered(self.config.ip, ecn, &mut self.identification),
            transport: Transport::Tack(packet),
        })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Listening | State::Closed => None,
            State::Closing { again_at, .. } => Some(again_at),
            State::Opening | State::Accepted => {
                [self.hello_expires(), self.idle_expires()].into_iter().flatten().min()
            }
            State::Established => {
                let halves = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
                let path = [self.idle_expires(), self.keep_alive_at(), self.silence.poll_timeout()];
                halves.into_iter().chain(path).flatten().min()
            }
        }
    }
}
