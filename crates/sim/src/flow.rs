//! A flow at work: two transport endpoints, and the traffic that feeds them where no program does.

use tacit_link::random::Stream;
use tacit_proto::Endpoint;
use tacit_proto::endpoint::Ends;
use tacit_proto::packet::{Packet, Transport};
use tacit_proto::tcp;
use tacit_proto::transport::{self, Connection, Stats};
use tacit_proto::udp::{self, Datagram};
use tacit_proto::units::{Bytes, Duration, FlowId, Instant};

use crate::record::{Reports, SeriesPoint};
use crate::setup::{FlowSetup, Traffic};

/// Bytes a bulk source keeps written that its connection has not sent.
const BULK_AHEAD: u64 = 1 << 20;

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where data is sent from.
    Source,
    /// Where it is received.
    Sink,
}

/// Writer of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feeder {
    /// The flow itself, as its traffic says.
    Own,
    /// A program of the world.
    Program {
        /// Which.
        number: u32,
        /// The end that opens a connection.
        opener: End,
    },
}

/// A flow at work.
#[derive(Debug)]
pub(crate) struct Flow {
    pub id: FlowId,
    pub setup: FlowSetup,
    pub transport: Protocol,
    pub feeder: Feeder,
    /// When the sink had everything, for flows of a fixed size.
    pub completed_at: Option<Instant>,
    /// Bytes that had arrived when measuring started.
    pub arrived_before: u64,
    /// Bytes of payload that came to the sink, as often as they came.
    pub carried: u64,
    /// Those that had come when measuring started.
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

/// Datagrams one way; the receiver counts, and reports where it is told to.
#[derive(Debug)]
pub(crate) struct Datagrams {
    sender: udp::Sender,
    receiver: udp::Receiver,
    reporter: Option<Box<udp::Reporter>>,
    packet_len: Bytes,
    /// The number of the datagram that just arrived, where none with that number had.
    new_datagram: Option<u64>,
}

impl Flow {
    pub fn new(id: FlowId, setup: FlowSetup, feeder: Feeder, seed: u64, name: &str) -> Self {
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
                // Slow clocks are receivers' (see the scenario's key).
                let of_source = with_usual_clock(config);
                let mut end = |this, ends| {
                    let config = if this == End::Source { &of_source } else { config };
                    let mut connection = match opener == this {
                        true => Connection::connect(config, ends, seed(), setup.start),
                        false => Connection::listen(config, ends, seed()),
                    };
                    // A server has a socket for all, whichever end begins here. Its host has the lowest number.
                    connection.set_implied(ends.local > ends.remote);
                    connection
                };
                Protocol::Connection(Box::new(Connected {
                    source: end(End::Source, source),
                    sink: end(End::Sink, sink),
                    written: [0; 2],
                    size: size.map(|size| size.0),
                }))
            }
            Traffic::Udp { ip, payload, rate, report_after } => {
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
        // A source of datagrams knows its start.
        if let (Protocol::Connection(connection), Feeder::Own) = (&mut self.transport, self.feeder) {
            connection.feed();
        }
    }

    /// A program writes at `end`. The datagrams this makes must be sent before it writes again.
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
            // A paced sender may send more between two ACKs than the source keeps ahead.
            if end == End::Source && !self.stopped && self.feeder == Feeder::Own {
                connection.feed();
            }
        }
    }

    /// The next packet `end` sends.
    // Always: a call here moves each packet once more.
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

    /// Bytes sent by `end` that may lie in its host's queue, where that is limited.
    pub fn small_queue(&self, end: End) -> Option<Bytes> {
        match (&self.transport, end) {
            (Protocol::Connection(connection), End::Source) => connection.source.small_queue(),
            (Protocol::Connection(connection), End::Sink) => connection.sink.small_queue(),
            (Protocol::Datagrams(_), _) => None,
        }
    }

    /// When `end` wants [`Flow::handle_timeout`] next.
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

    /// The next packet of a flow that keeps its first queue full; `None` for others, or when stopped.
    pub fn next_saturating(&mut self) -> Option<Packet> {
        let saturates = self.saturates();
        match &mut self.transport {
            Protocol::Datagrams(udp) if saturates && !self.stopped => udp.sender.next_packet(),
            _ => None,
        }
    }

    /// Length of the packets [`Flow::next_saturating`] gives.
    pub fn saturating_packet_len(&self) -> Bytes {
        match &self.transport {
            Protocol::Datagrams(udp) => udp.packet_len,
            Protocol::Connection(_) => Bytes(0),
        }
    }

    /// Bytes passed to the receiving application in order.
    pub fn delivered(&self) -> u64 {
        match &self.transport {
            Protocol::Connection(connection) => connection.sink.delivered_bytes(),
            Protocol::Datagrams(udp) => udp.receiver.counts().bytes,
        }
    }

    /// Bytes that came to the sink, each once: those delivered, and those that wait for others before them.
    pub fn arrived(&self) -> u64 {
        match &self.transport {
            Protocol::Connection(connection) => self.delivered() + connection.sink.blocked_bytes(),
            Protocol::Datagrams(_) => self.delivered(),
        }
    }

    /// Results count from now on.
    pub fn start_measuring(&mut self) {
        self.arrived_before = self.arrived();
        self.carried_before = self.carried;
    }

    /// Bytes of payload that came to the sink since measuring started, as often as they came.
    pub fn carried_since(&self) -> u64 {
        self.carried - self.carried_before
    }

    /// Bytes that came to the sink since measuring started, each once. A connection that is reset forgets those that waited.
    pub fn arrived_since(&self) -> u64 {
        self.arrived().saturating_sub(self.arrived_before)
    }

    /// The sink's bytes wait for [`Flow::read`] from here on, where the transport lets them.
    pub fn read_by_hand(&mut self) {
        if let Protocol::Connection(connection) = &mut self.transport
            && let Connection::Tcp(tcp) = &mut connection.sink
        {
            tcp.set_read_policy(tcp::ReadPolicy::Manual);
        }
    }

    /// Takes at most `bytes` that wait at the sink.
    pub fn read(&mut self, bytes: u64) -> u64 {
        match &mut self.transport {
            Protocol::Connection(connection) => match &mut connection.sink {
                Connection::Tcp(tcp) => tcp.read(bytes),
                Connection::Tack(_) => 0,
            },
            Protocol::Datagrams(_) => 0,
        }
    }

    /// Bytes passed to the application at `end` in order.
    pub fn delivered_at(&self, end: End) -> u64 {
        match (&self.transport, end) {
            (Protocol::Connection(connection), End::Source) => connection.source.delivered_bytes(),
            (Protocol::Datagrams(_), End::Source) => 0,
            (_, End::Sink) => self.delivered(),
        }
    }

    /// Bytes that the source has written and its connection not sent; none of datagrams, which do not wait.
    pub fn unsent(&self) -> u64 {
        match &self.transport {
            Protocol::Connection(connection) => connection.source.unsent(),
            Protocol::Datagrams(_) => 0,
        }
    }

    /// Bytes a datagram carries at most; `None` for a connection.
    pub fn datagram_payload(&self) -> Option<u64> {
        match &self.transport {
            Protocol::Connection(_) => None,
            Protocol::Datagrams(udp) => Some(u64::from(udp.sender.payload_len())),
        }
    }

    /// The number of the datagram that arrived last, where none with that number had.
    pub fn new_datagram(&self) -> Option<u64> {
        match &self.transport {
            Protocol::Connection(_) => None,
            Protocol::Datagrams(udp) => udp.new_datagram,
        }
    }

    /// Whether `end` of a connection is gone without having been closed.
    pub fn is_reset(&self, end: End) -> bool {
        let Protocol::Connection(connection) = &self.transport else { return false };
        let end = if end == End::Source { &connection.source } else { &connection.sink };
        matches!(end, Connection::Tcp(tcp) if !self.stopped && tcp.state() == tcp::State::Closed)
    }

    /// Invariants that hold at any time; the error says which one broke.
    pub fn check(&self) -> Result<(), String> {
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
                let awake = |end: &Connection| end.check().map_err(|what| format!("{} {what}", self.id));
                awake(&connection.source).and_then(|()| awake(&connection.sink))
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

    /// How things stand at `at`, when packets on the way wait for `queueing`.
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

/// `config` with the clock for timestamps that ends have unless they are told otherwise.
fn with_usual_clock(config: &transport::Config) -> transport::Config {
    match *config {
        transport::Config::Tcp(tcp) => tcp::Config { timestamp_tick: None, ..tcp }.into(),
        tack @ transport::Config::Tack(_) => tack,
    }
}

impl Connected {
    fn end(&mut self, end: End) -> &mut Connection {
        match end {
            End::Source => &mut self.source,
            End::Sink => &mut self.sink,
        }
    }

    /// Writes the application's data, without getting far ahead of the bytes sent.
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
