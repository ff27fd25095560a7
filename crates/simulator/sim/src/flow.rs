//! A running flow: two transport endpoints, and the traffic that feeds them unless a program does.

use crate::transport::{self, Connection};
use tacit_link::random::Stream;
use tacit_packet::endpoint::Ends;
use tacit_packet::udp::{self, Datagram};
use tacit_packet::units::{Bytes, Duration, FlowId, Instant};
use tacit_packet::{Endpoint, Packet, Stats, Transport};
use tacit_tack_proto::{self as tack, OwnQueue};
use tacit_tcp as tcp;

use crate::clients::Clients;
use crate::record::{Reports, SeriesPoint};
use crate::setup::{FlowSetup, Traffic};

/// Written bytes that a bulk source keeps ahead of its connection.
const BULK_AHEAD: u64 = 1 << 20;

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender of data.
    Source,
    /// The receiver of data.
    Sink,
}

/// What writes a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feeder {
    /// The flow itself, according to its traffic.
    Own,
    /// A program of the world.
    Program {
        /// Its number.
        number: u32,
        /// The end that opens a connection.
        opener: End,
    },
}

/// A running flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub id: FlowId,
    pub setup: FlowSetup,
    pub transport: Protocol,
    pub feeder: Feeder,
    /// When the sink had received everything, for flows of a fixed size.
    pub completed_at: Option<Instant>,
    /// Bytes that had arrived before measuring started.
    pub arrived_before: u64,
    /// Payload bytes that arrived at the sink, including duplicates.
    pub carried: u64,
    /// Those that arrived before measuring started.
    carried_before: u64,
    stopped: bool,
}

/// The two endpoints.
#[derive(Debug)]
pub(crate) enum Protocol {
    Connection(Box<Connected>),
    Datagrams(Box<Datagrams>),
}

/// Both ends of a connection.
#[derive(Debug)]
pub(crate) struct Connected {
    pub source: Connection,
    pub sink: Connection,
    /// Bytes written at the source and at the sink.
    written: [u64; 2],
    size: Option<u64>,
}

/// Datagrams in one direction; the receiver counts them, and reports if configured.
#[derive(Debug)]
pub(crate) struct Datagrams {
    sender: udp::Sender,
    receiver: udp::Receiver,
    reporter: Option<Box<udp::Reporter>>,
    packet_len: Bytes,
    /// The number of the datagram that just arrived, if it is not a duplicate.
    new_datagram: Option<u64>,
}

impl Flow {
    pub fn new(
        id: FlowId,
        setup: FlowSetup,
        feeder: Feeder,
        own_queues: [Option<OwnQueue>; 2],
        clients: &mut Clients,
        seed: u64,
        name: &str,
    ) -> Self {
        let transport = match &setup.traffic {
            Traffic::Connection { config, size } => {
                let mut stream = Stream::new(seed, &format!("initial sequence numbers {name}"));
                let mut seed = || stream.draw();
                let source = Ends { flow: id, local: setup.source, remote: setup.sink };
                let sink = Ends { flow: id, local: setup.sink, remote: setup.source };
                let opener = match feeder {
                    Feeder::Own => End::Source,
                    Feeder::Program { opener, .. } => opener,
                };
                // Slow clocks are configured for receivers only (see the scenario's key).
                let of_source = with_usual_clock(config);
                let mut end = |this, ends| {
                    let config = if this == End::Source { &of_source } else { config };
                    let config = &with_own_queue(config, own_queues[this as usize]);
                    let mut connection = match opener == this {
                        true => Connection::connect(config, ends, seed(), setup.start),
                        false => Connection::listen(config, ends, seed()),
                    };
                    // A server has one socket for all connections, no matter which end opens them. It is the host with the
                    // lowest number.
                    connection.set_connection_id_implied(ends.local > ends.remote);
                    if let Some(client) = clients.get(config, ends) {
                        connection.share_client(client);
                    }
                    connection
                };
                Protocol::Connection(Box::new(Connected {
                    source: end(End::Source, source),
                    sink: end(End::Sink, sink),
                    written: [0; 2],
                    size: size.map(|size| size.0),
                }))
            }
            Traffic::Udp { ip, payload, rate, report_after, .. } => {
                let ends = Ends { flow: id, local: setup.source, remote: setup.sink };
                let payload_len = payload.0 as u32;
                let sender = match rate {
                    _ if feeder != Feeder::Own => udp::Sender::supplied(ends, *ip, payload_len),
                    Some(rate) => {
                        udp::Sender::every(ends, *ip, payload_len, rate.time_for(*payload), setup.start)
                    }
                    None => udp::Sender::saturating(ends, *ip, payload_len),
                };
                let headers = ip.header_len() + Datagram::HEADER_LEN;
                let packet_len = Bytes(u64::from(headers + payload_len.max(Datagram::MIN_PAYLOAD)));
                let back = Ends { flow: id, local: setup.sink, remote: setup.source };
                let reporter = report_after.map(|after| Box::new(udp::Reporter::new(back, *ip, after)));
                Protocol::Datagrams(Box::new(Datagrams {
                    sender,
                    receiver: udp::Receiver::new(),
                    reporter,
                    packet_len,
                    new_datagram: None,
                }))
            }
        };
        Self {
            id,
            setup,
            transport,
            feeder,
            completed_at: None,
            arrived_before: 0,
            carried: 0,
            carried_before: 0,
            stopped: false,
        }
    }

    /// The application starts.
    pub fn start(&mut self) {
        // A source of datagrams starts by itself.
        if let (Protocol::Connection(connection), Feeder::Own) = (&mut self.transport, self.feeder) {
            connection.feed();
        }
    }

    /// A program writes at `end`. The resulting datagrams must be sent before it writes again.
    pub fn write(&mut self, end: End, bytes: u64) {
        match &mut self.transport {
            Protocol::Connection(connection) => {
                connection.end(end).write(bytes);
                connection.written[end as usize] += bytes;
            }
            Protocol::Datagrams(udp) => udp.sender.supply(bytes),
        }
    }

    /// The application stops.
    pub fn stop(&mut self) {
        self.stopped = true;
        if let Protocol::Connection(connection) = &mut self.transport {
            connection.source.close();
        }
    }

    /// A packet of this flow arrived at `end`.
    pub fn handle_packet(&mut self, now: Instant, end: End, packet: Packet) {
        if end == End::Sink {
            self.carried += packet.payload_len();
        }
        match &mut self.transport {
            Protocol::Connection(connection) => {
                connection.end(end).handle_packet(now, packet);
                match end {
                    End::Source if !self.stopped && self.feeder == Feeder::Own => connection.feed(),
                    End::Source => {}
                    End::Sink => {
                        let delivered = connection.sink.delivered_bytes();
                        if self.completed_at.is_none() && connection.size == Some(delivered) {
                            self.completed_at = Some(now);
                        }
                    }
                }
            }
            Protocol::Datagrams(udp) if end == End::Source => udp.sender.handle_packet(now, packet),
            Protocol::Datagrams(udp) => {
                if let Transport::Udp(datagram) = packet.transport {
                    let known = |counts: udp::Received| counts.duplicates + counts.too_late;
                    let before = known(udp.receiver.counts());
                    udp.receiver.receive(datagram);
                    let new = known(udp.receiver.counts()) == before;
                    udp.new_datagram = new.then_some(datagram.number);
                }
                if let Some(reporter) = &mut udp.reporter {
                    reporter.handle_packet(now, packet);
                }
            }
        }
    }

    /// A timer of `end` is due.
    pub fn handle_timeout(&mut self, now: Instant, end: End) {
        if let Protocol::Connection(connection) = &mut self.transport {
            connection.end(end).handle_timeout(now);
        }
        self.feed(end);
    }

    /// The application writes more, if it is the flow itself: a paced sender may send more between two ACKs than the
    /// source has written ahead.
    pub fn feed(&mut self, end: End) {
        if let Protocol::Connection(connection) = &mut self.transport
            && end == End::Source
            && !self.stopped
            && self.feeder == Feeder::Own
        {
            connection.feed();
        }
    }

    /// The next packet `end` sends.
    // Always inlined: otherwise each packet is moved once more.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Instant, end: End) -> Option<Packet> {
        match &mut self.transport {
            Protocol::Connection(connection) => {
                let end = connection.end(end);
                let packet = end.poll_transmit(now);
                if packet.is_none() {
                    while end.poll_event().is_some() {}
                }
                packet
            }
            Protocol::Datagrams(udp) => match end {
                End::Source if self.stopped => None,
                End::Source => udp.sender.poll_transmit(now),
                End::Sink => udp.reporter.as_mut()?.poll_transmit(now),
            },
        }
    }

    /// Limit of the bytes from `end` in its host's queue, if there is one.
    pub fn small_queue(&self, end: End) -> Option<Bytes> {
        match (&self.transport, end) {
            (Protocol::Connection(connection), End::Source) => connection.source.small_queue(),
            (Protocol::Connection(connection), End::Sink) => connection.sink.small_queue(),
            // What a program writes leaves at once: what it writes next would otherwise share a datagram with it.
            (Protocol::Datagrams(_), End::Source) if self.feeder == Feeder::Own => {
                send_buffer(&self.setup.traffic)
            }
            (Protocol::Datagrams(_), _) => None,
        }
    }

    /// When [`Flow::handle_timeout`] is due next for `end`.
    pub fn poll_timeout(&self, end: End) -> Option<Instant> {
        match (&self.transport, end) {
            (Protocol::Connection(connection), End::Source) => connection.source.poll_timeout(),
            (Protocol::Connection(connection), End::Sink) => connection.sink.poll_timeout(),
            (Protocol::Datagrams(_), End::Source) if self.stopped => None,
            (Protocol::Datagrams(udp), End::Source) => udp.sender.poll_timeout(),
            (Protocol::Datagrams(udp), End::Sink) => udp.reporter.as_ref()?.poll_timeout(),
        }
    }

    /// True for a flow that keeps its first queue full.
    pub fn saturates(&self) -> bool {
        self.feeder == Feeder::Own && matches!(self.setup.traffic, Traffic::Udp { rate: None, .. })
    }

    /// The next packet of a flow that keeps its first queue full; `None` for other or stopped flows.
    pub fn next_saturating(&mut self) -> Option<Packet> {
        let saturates = self.saturates();
        match &mut self.transport {
            Protocol::Datagrams(udp) if saturates && !self.stopped => udp.sender.next_packet(),
            _ => None,
        }
    }

    /// Length of the packets from [`Flow::next_saturating`].
    pub fn saturating_packet_len(&self) -> Bytes {
        match &self.transport {
            Protocol::Datagrams(udp) => udp.packet_len,
            Protocol::Connection(_) => Bytes(0),
        }
    }

    /// Bytes delivered to the receiving application in order.
    pub fn delivered(&self) -> u64 {
        match &self.transport {
            Protocol::Connection(connection) => connection.sink.delivered_bytes(),
            Protocol::Datagrams(udp) => udp.receiver.counts().bytes,
        }
    }

    /// Bytes that arrived at the sink, each counted once: delivered ones, and those that wait for earlier bytes.
    pub fn arrived(&self) -> u64 {
        match &self.transport {
            Protocol::Connection(connection) => self.delivered() + connection.sink.blocked_bytes(),
            Protocol::Datagrams(_) => self.delivered(),
        }
    }

    /// Starts measuring.
    pub fn start_measuring(&mut self) {
        self.arrived_before = self.arrived();
        self.carried_before = self.carried;
    }

    /// Payload bytes that arrived at the sink since measuring started, including duplicates.
    pub fn carried_since(&self) -> u64 {
        self.carried - self.carried_before
    }

    /// Bytes that arrived at the sink since measuring started, each counted once. A connection that is reset forgets
    /// waiting bytes.
    pub fn arrived_since(&self) -> u64 {
        self.arrived().saturating_sub(self.arrived_before)
    }

    /// From now on the sink's bytes wait for [`Flow::read`], if the transport supports that.
    pub fn read_by_hand(&mut self) {
        if let Protocol::Connection(connection) = &mut self.transport
            && let Connection::Tcp(tcp) = &mut connection.sink
        {
            tcp.set_read_policy(tcp::ReadPolicy::Manual);
        }
    }

    /// Reads at most `bytes` that wait at the sink.
    pub fn read(&mut self, bytes: u64) -> u64 {
        match &mut self.transport {
            Protocol::Connection(connection) => match &mut connection.sink {
                Connection::Tcp(tcp) => tcp.read(bytes),
                Connection::Tack(_) => 0,
            },
            Protocol::Datagrams(_) => 0,
        }
    }

    /// Bytes delivered to the application at `end` in order.
    pub fn delivered_at(&self, end: End) -> u64 {
        match (&self.transport, end) {
            (Protocol::Connection(connection), End::Source) => connection.source.delivered_bytes(),
            (Protocol::Datagrams(_), End::Source) => 0,
            (_, End::Sink) => self.delivered(),
        }
    }

    /// Bytes that the source has written but the connection has not sent; zero for datagrams, which do not wait.
    pub fn unsent(&self) -> u64 {
        match &self.transport {
            Protocol::Connection(connection) => connection.source.unsent(),
            Protocol::Datagrams(_) => 0,
        }
    }

    /// Most bytes in a datagram; `None` for a connection.
    pub fn datagram_payload(&self) -> Option<u64> {
        match &self.transport {
            Protocol::Connection(_) => None,
            Protocol::Datagrams(udp) => Some(u64::from(udp.sender.payload_len())),
        }
    }

    /// The number of the datagram that arrived last, if it is not a duplicate.
    pub fn new_datagram(&self) -> Option<u64> {
        match &self.transport {
            Protocol::Connection(_) => None,
            Protocol::Datagrams(udp) => udp.new_datagram,
        }
    }

    /// Whether `end` of a connection has ended without being closed.
    pub fn is_reset(&self, end: End) -> bool {
        let Protocol::Connection(connection) = &self.transport else { return false };
        let end = if end == End::Source { &connection.source } else { &connection.sink };
        matches!(end, Connection::Tcp(tcp) if !self.stopped && tcp.state() == tcp::State::Closed)
    }

    /// Checks invariants that always hold; the error describes the violation.
    pub fn check(&self, throttled: [bool; 2]) -> Result<(), String> {
        match &self.transport {
            Protocol::Connection(connection) => {
                let written = |end| connection.written[end as usize];
                for (to, from) in [(End::Sink, End::Source), (End::Source, End::Sink)] {
                    let delivered = self.delivered_at(to);
                    if delivered > written(from) {
                        return Err(format!(
                            "{} delivered {delivered} bytes of {} written",
                            self.id,
                            written(from)
                        ));
                    }
                }
                // An end that waits for its station's queue needs no timer.
                let awake = |end: &Connection, throttled: bool| match throttled {
                    true => Ok(()),
                    false => end.check().map_err(|what| format!("{} {what}", self.id)),
                };
                let [source, sink] = throttled;
                awake(&connection.source, source).and_then(|()| awake(&connection.sink, sink))
            }
            Protocol::Datagrams(udp) if udp.sender.reported() > udp.receiver.counts().datagrams => {
                Err(format!(
                    "{} was told of {} datagrams, but {} arrived",
                    self.id,
                    udp.sender.reported(),
                    udp.receiver.counts().datagrams
                ))
            }
            _ => Ok(()),
        }
    }

    /// Reports of the sink to the source, for datagrams with reports.
    pub fn reports(&self) -> Option<Reports> {
        let Protocol::Datagrams(udp) = &self.transport else { return None };
        let reporter = udp.reporter.as_ref()?;
        Some(Reports {
            sent: reporter.sent(),
            reported_datagrams: udp.sender.reported(),
            arrived_datagrams: udp.receiver.counts().datagrams,
        })
    }

    /// Statistics of both ends; `None` for datagrams, which are not acknowledged.
    pub fn stats(&self) -> Option<(Stats, Stats)> {
        match &self.transport {
            Protocol::Connection(connection) => Some((connection.source.stats(), connection.sink.stats())),
            Protocol::Datagrams(_) => None,
        }
    }

    /// State at `at`; `queueing` is the queueing delay of the path.
    pub fn sample(&self, at: Instant, queueing: Duration) -> SeriesPoint {
        let (sender, receiver) = self.stats().unwrap_or_default();
        SeriesPoint {
            at,
            flow: self.id,
            delivered_total: Bytes(self.delivered()),
            congestion_window: Bytes(sender.cwnd.unwrap_or(0)),
            smoothed_rtt: sender.srtt.unwrap_or(Duration::ZERO),
            acknowledged_total: Bytes(sender.bytes_acked),
            packets_sent: sender.packets_sent,
            packets_retransmitted: sender.packets_retransmitted,
            retransmission_timeout: sender.rto.unwrap_or(Duration::ZERO),
            blocked: receiver.blocked_bytes.map(Bytes),
            queueing,
            pacing_rate: sender.pacing_rate,
            congestion_state: sender.congestion_state,
        }
    }
}

/// `config` with the default timestamp clock.
fn with_usual_clock(config: &transport::Config) -> transport::Config {
    match *config {
        transport::Config::Tcp(tcp) => tcp::Config { timestamp_tick: None, ..tcp }.into(),
        tack @ transport::Config::Tack(_) => tack,
    }
}

/// A connection whose host has `own_queue`, where its configuration says nothing of that.
fn with_own_queue(config: &transport::Config, own_queue: Option<OwnQueue>) -> transport::Config {
    match *config {
        transport::Config::Tack(tack) => {
            tack::Config { own_queue: tack.own_queue.or(own_queue), ..tack }.into()
        }
        tcp @ transport::Config::Tcp(_) => tcp,
    }
}

impl Connected {
    fn end(&mut self, end: End) -> &mut Connection {
        match end {
            End::Source => &mut self.source,
            End::Sink => &mut self.sink,
        }
    }

    /// Writes the application's data, a limited amount ahead of the sent bytes.
    fn feed(&mut self) {
        let more = match self.size {
            Some(size) => size - self.written[End::Source as usize],
            None if self.source.unsent() < BULK_AHEAD / 2 => BULK_AHEAD,
            None => 0,
        };
        if more > 0 {
            self.source.write(more);
            self.written[End::Source as usize] += more;
            if self.size.is_some() {
                self.source.close();
            }
        }
    }
}

/// Most bytes of datagrams that their source leaves in its own queue.
pub fn send_buffer(traffic: &Traffic) -> Option<Bytes> {
    match traffic {
        Traffic::Udp { rate: Some(_), send_buffer, .. } => *send_buffer,
        // One without a rate keeps the queue full by definition.
        Traffic::Udp { rate: None, .. } | Traffic::Connection { .. } => None,
    }
}
