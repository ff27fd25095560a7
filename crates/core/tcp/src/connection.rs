//! One end of a TCP connection (RFC 9293 section 3.3.2 for its states).

mod arrival;
#[cfg(test)]
mod deadline_tests;
mod output;
mod predicted;
#[cfg(test)]
mod predicted_tests;
mod verify;

use std::collections::VecDeque;

use super::config::Config;
use super::counters::Counters;
use super::ecn::Echo;
use super::receiver::{ReadPolicy, Receiver};
use super::sender::{MAX_RETRIES, Sender, Timer, Timers};
use output::Reset;
use tacit_congestion::rre::SharedClient;
use tacit_packet::endpoint::{Endpoint, Ends, Event};
use tacit_packet::position::Position;
use tacit_packet::units::{Bytes, Instant, SeqNumber};
use tacit_packet::{Packet, Stats, Transport};

/// State of a connection (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection yet, or no longer.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was sent and one received.
    SynReceived,
    /// Data can be sent and received.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// We closed and our FIN is acknowledged.
    FinWait2,
    /// The peer closed.
    CloseWait,
    /// Both ends closed at the same time; our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we did; our FIN is not acknowledged.
    LastAck,
    /// Both ends closed; late segments are still answered for [`Config::time_wait`].
    TimeWait,
}

/// Options that both SYNs agreed on.
#[derive(Clone, Copy, Debug, Default)]
struct Negotiated {
    timestamps: bool,
    sack: bool,
    ecn: bool,
    /// Both sent a window scale; `send_scale` is the peer's (Snd.Wind.Shift).
    scaling: bool,
    send_scale: u8,
}

/// TS.Recent and its companions (RFC 7323 section 4.3).
#[derive(Clone, Copy, Debug, Default)]
struct TimestampState {
    recent: u32,
    recent_at: Instant,
    last_ack_sent: Position,
}

/// One end of a TCP connection.
///
/// A sans-IO [`Endpoint`]; see there for how to drive it. Methods that queue something to send ([`write`](Self::write),
/// [`close`](Self::close), [`abort`](Self::abort), [`read`](Self::read)) need no time; their output appears on the next
/// [`poll_transmit`](Endpoint::poll_transmit), so drain it after them as after any other call.
///
/// Costs: no allocation and constant amortised time per packet while nothing is lost.
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    ends: Ends,
    state: State,
    /// Opened by [`connect`](Self::connect).
    active: bool,
    iss: Position,
    /// IRS; meaningful from SYN-RECEIVED on.
    irs: Position,
    sender: Sender,
    receiver: Receiver,
    agreed: Negotiated,
    echo: Echo,
    stamps: TimestampState,
    timers: Timers,
    counters: Counters,
    events: VecDeque<Event>,
    /// When this end was created: no echo can be older.
    opened: Instant,
    syn_due: bool,
    syn_sent_at: Option<Instant>,
    /// More than one SYN was sent, so the peer's answer is ambiguous.
    syn_resent: bool,
    syn_retries: u32,
    ack_due: bool,
    /// An ACK of earlier data that was marked otherwise than the latest.
    owed_ack: Option<Box<Packet>>,
    /// The pending ACK is only a window update.
    update_due: bool,
    reset_due: Option<Reset>,
    last_challenge: Option<Instant>,
    identification: u16,
}

impl Connection {
    /// Opens a connection: the SYN appears on [`poll_transmit`](Endpoint::poll_transmit). `iss` is
    /// the initial send sequence number.
    pub fn connect(config: Config, ends: Ends, iss: SeqNumber, now: Instant) -> Self {
        let mut connection = Self::new(config, ends, iss, State::SynSent);
        connection.active = true;
        connection.opened = now;
        connection.syn_due = true;
        connection
    }

    /// Waits for the peer to open the connection.
    pub fn listen(config: Config, ends: Ends, iss: SeqNumber) -> Self {
        Self::new(config, ends, iss, State::Listen)
    }

    fn new(config: Config, ends: Ends, iss: SeqNumber, state: State) -> Self {
        let first = Position::first(iss);
        Self {
            config,
            ends,
            state,
            active: false,
            iss: first,
            irs: Position::default(),
            sender: Sender::new(&config, first),
            receiver: Receiver::new(&config, ReadPolicy::Immediate),
            agreed: Negotiated::default(),
            echo: Echo::default(),
            stamps: TimestampState::default(),
            timers: Timers::default(),
            counters: Counters::default(),
            events: VecDeque::new(),
            opened: Instant::ZERO,
            syn_due: false,
            syn_sent_at: None,
            syn_resent: false,
            syn_retries: 0,
            ack_due: false,
            owed_ack: None,
            update_due: false,
            reset_due: None,
            last_challenge: None,
            identification: 0,
        }
    }

    /// Shares what TCP-RRE knows of the client with its other connections, before the connection is established.
    pub fn share_client(&mut self, client: SharedClient) {
        self.sender.client = Some(client);
    }

    /// Adds `bytes` to the data to send. The amount saturates: `write(u64::MAX)` is a source that never ends. Before
    /// the connection is established the data waits; after [`close`](Self::close) it is ignored.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// Sends a FIN after everything written; data from the peer is still received. If called before the handshake is
    /// complete, it takes effect after that, so that a whole exchange can be queued in advance. (RFC 9293 section
    /// 3.10.4 would delete a connection in LISTEN or SYN-SENT; [`abort`](Self::abort) does.)
    pub fn close(&mut self) {
        match self.state {
            State::Listen | State::SynSent | State::SynReceived => self.sender.close(),
            State::Established => {
                self.sender.close();
                self.state = State::FinWait1;
            }
            State::CloseWait => {
                self.sender.close();
                self.state = State::LastAck;
            }
            _ => {}
        }
    }

    /// Ends the connection at once, with a RST for a peer that knows of it (RFC 9293 section 3.10.5).
    pub fn abort(&mut self) {
        match self.state {
            State::Closed => return,
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => {
                self.reset_due = Some(Reset { seq: self.sender.snd_nxt.wire(), ack: None });
            }
            _ => {}
        }
        self.end(Event::Closed);
    }

    /// Sets when the application reads data from the receive buffer. Must be called before data arrives.
    pub fn set_read_policy(&mut self, policy: ReadPolicy) {
        self.receiver.set_policy(policy);
    }

    /// Reads up to `bytes` of in-order data from the receive buffer, under [`ReadPolicy::Manual`]; returns the number
    /// of bytes read. May reopen the window.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let (taken, announce) = self.receiver.read(bytes, &mut self.counters);
        if announce && self.can_receive() && !self.receiver.finished() {
            self.update_due = !self.ack_due;
            self.ack_due = true;
        }
        taken
    }

    /// Bytes in order and not yet read.
    pub fn readable(&self) -> u64 {
        self.receiver.unread()
    }

    /// Bytes written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    /// Most of its bytes that may be in its own host's queue; if there are that many, call
    /// [`poll_transmit`](Endpoint::poll_transmit) again when some have left. `None` for no limit: without [small
    /// queues](Config::small_queues), before a round trip was measured, if no new data waits to be sent, if nothing is
    /// outstanding (Linux `tcp_rtx_queue_empty_or_single_skb`), and while losses are repaired.
    pub fn small_queue(&self) -> Option<Bytes> {
        self.sender.small_queue(self.config.small_queues?)
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// The flow and the two hosts of the connection.
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// The configuration of this end.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Payload bytes of a full segment (Eff.snd.MSS); before the handshake is complete, the offered MSS.
    pub fn segment_payload(&self) -> u32 {
        self.sender.mss
    }

    /// Payload bytes delivered to the application, in order and once. The same as in [`counters`](Self::counters), but
    /// cheaper.
    pub fn delivered_bytes(&self) -> u64 {
        self.counters.delivered_bytes
    }

    /// Bytes in the receive buffer that wait for earlier ones.
    pub fn blocked_bytes(&self) -> u64 {
        self.receiver.blocked()
    }

    /// Counters so far, and current readings.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        self.sender.read_out(&mut counters);
        counters.receive_buffer = self.receiver.buffer();
        counters
    }

    /// The counters and readings that all transports have.
    pub fn stats(&self) -> Stats {
        let counters = self.counters();
        Stats {
            packets_sent: counters.segments_sent,
            packets_received: counters.segments_received,
            data_packets_sent: counters.data_segments_sent,
            data_packets_received: counters.data_segments_received,
            packets_retransmitted: counters.segments_retransmitted,
            acks_sent: counters.acks_sent,
            acks_received: counters.acks_received,
            bytes_sent: counters.bytes_sent,
            bytes_retransmitted: counters.bytes_retransmitted,
            bytes_acked: counters.bytes_acked,
            bytes_received: counters.bytes_received,
            delivered_bytes: counters.delivered_bytes,
            duplicate_bytes: counters.duplicate_bytes,
            dropped_bytes: counters.dropped_bytes,
            bytes_in_flight: counters.bytes_in_flight,
            srtt: counters.srtt,
            cwnd: Some(counters.cwnd),
            rto: Some(counters.rto),
            timeouts: Some(counters.timeouts),
            fast_recoveries: Some(counters.fast_recoveries),
            rtt_min: None,
            blocked_bytes: None,
            pacing_rate: self.sender.pacing_rate(),
            congestion_state: self.sender.congestion.state(),
        }
    }

    /// True if the peer may still send data.
    fn can_receive(&self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// Enters CLOSED.
    fn end(&mut self, event: Event) {
        self.state = State::Closed;
        self.timers = Timers::default();
        self.syn_due = false;
        self.ack_due = false;
        self.events.push_back(event);
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.clear(Timer::Retransmit);
        self.timers.clear(Timer::Persist);
        self.timers.set(Timer::TimeWait, now + self.config.time_wait);
    }

    /// When congestion control acts on its own; `None` before data can be sent, and after the end.
    fn congestion_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait => None,
            _ => self.sender.congestion_deadline(),
        }
    }

    fn on_retransmit_timer(&mut self, now: Instant) {
        let alive = match self.state {
            State::SynSent | State::SynReceived => {
                self.syn_due = true;
                self.syn_retries += 1;
                self.sender.rtt.back_off();
                self.syn_retries <= MAX_RETRIES
            }
            _ => self.sender.on_retransmit_timer(now, &mut self.timers, &mut self.counters),
        };
        if !alive {
            self.end(Event::TimedOut);
        }
    }
}

impl Endpoint for Connection {
    type Packet = Packet;
    type Event = Event;

    /// Packets of another flow, from another host, or that are not TCP are ignored.
    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        let Transport::Tcp(segment) = &packet.transport else { return };
        if packet.flow == self.ends.flow && packet.source == self.ends.remote {
            self.counters.segments_received += 1;
            self.arrive(now, segment, packet.ip.ecn);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timers.take_expired(Timer::Retransmit, now) {
            self.on_retransmit_timer(now);
        }
        if self.timers.take_expired(Timer::Persist, now) && !self.sender.on_persist_timeout() {
            self.end(Event::TimedOut);
        }
        if self.timers.take_expired(Timer::DelayedAck, now) {
            let decision = self.receiver.acks.on_timer(now);
            self.schedule_ack(decision);
        }
        if self.timers.take_expired(Timer::TimeWait, now) {
            self.end(Event::Closed);
        }
        // Nothing to do: the held-back data is sent by the next poll_transmit.
        self.timers.take_expired(Timer::Pacing, now);
        if self.congestion_deadline().is_some_and(|at| at <= now) {
            self.sender.congestion.handle_timeout(now);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        // Half of the calls: a receiver is polled once more after each received segment.
        if self.is_quiet() { None } else { self.transmit(now) }
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The earliest of five timers and of congestion control's deadline. It changes with almost every ACK: drivers
    /// should let a scheduled event fire early rather than move it each time.
    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let timer = self.timers.next();
        match self.congestion_deadline() {
            Some(at) => Some(timer.map_or(at, |timer| timer.min(at))),
            None => timer,
        }
    }
}
