//! Event traces of connections in qlog format.
//!
//! A file is a JSON text sequence (RFC 7464) by draft-ietf-quic-qlog-main-schema-02, which calls itself version 0.3,
//! with the events of draft-ietf-quic-qlog-quic-events-02: the version that qvis reads. Later drafts have other names
//! for the same events. Events that QUIC does not have get names that begin with `tacit:`.
//!
//! The endpoint's thread creates records and passes them on without waiting; a separate thread writes them.

mod format;
mod writer;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tacit_packet::Stats;
use tacit_packet::tack;
use tacit_packet::tack::packet::ConnectionId;
use tacit_packet::units::Instant;
use tacit_tack_proto::Transmit;

use crate::error::ConnectionError;
use crate::seal::Sealed;
use format::{Event, Header, Readings};
use writer::{Order, Writer};

/// Most records of a connection that are kept until its peer is authenticated: the handshake's datagrams, some of them
/// repeated. Ours.
const EARLY_MAX: usize = 16;

/// Most rejected datagrams that one file records: a host that knows a connection's number can send any number of them.
/// Ours.
const NOT_TAKEN_MAX: u32 = 1000;

/// A directory for qlog files, for [`Config::qlog`](crate::Config::qlog). Clones share its writing thread, which ends
/// when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Qlog {
    writer: Arc<Writer>,
    /// The wall-clock time at which the endpoint's clock started, and the endpoint's address.
    began: SystemTime,
    local: Option<SocketAddr>,
}

impl Qlog {
    /// Writes files into the existing `directory`. Their names contain time, connection and role; existing files are
    /// not overwritten.
    ///
    /// # Errors
    /// If it is no directory, or the system refuses a thread.
    pub fn to_directory(directory: &Path) -> io::Result<Self> {
        let writer = Arc::new(Writer::start(directory)?);
        Ok(Self { writer, began: SystemTime::UNIX_EPOCH, local: None })
    }

    /// A copy for an endpoint at `local` whose clock starts now.
    pub(crate) fn began(&self, now: SystemTime, local: SocketAddr) -> Self {
        Self { began: now, local: Some(local), ..self.clone() }
    }

    /// Number of records that were dropped, because they came faster than the disk accepts them or could not be
    /// written.
    pub fn dropped(&self) -> u64 {
        self.writer.dropped()
    }

    /// Waits until all records are written.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// The same without a time limit.
    #[cfg(test)]
    pub(crate) fn flush_without_limit(&self) {
        self.writer.flush_without_limit();
    }

    /// The trace of a connection; nothing is written before [`Trace::begin`].
    pub(crate) fn trace(&self, id: u32, is_client: bool) -> Trace {
        Trace {
            qlog: self.clone(),
            id,
            is_client,
            early: Some(Vec::new()),
            file: 0,
            last: Readings::default(),
            dropped: 0,
            not_taken: NOT_TAKEN_MAX,
            mtu: None,
            sent: 0,
            received: 0,
            acked_below: [0; 2],
        }
    }
}

/// Recorder of one connection.
pub(crate) struct Trace {
    qlog: Qlog,
    id: u32,
    is_client: bool,
    /// Records from before the file was started.
    early: Option<Vec<(Instant, Event)>>,
    file: u64,
    last: Readings,
    dropped: u64,
    /// Number of rejected datagrams that may still be recorded.
    not_taken: u32,
    /// Last recorded MTU in bytes.
    mtu: Option<u32>,
    /// The highest packet numbers so far; truncated numbers in acknowledgments are expanded near them.
    sent: u64,
    received: u64,
    /// Packet numbers below these are acknowledged, by the peer and by this end.
    acked_below: [u64; 2],
}

impl Trace {
    /// Starts the file: the peer is known, or is the server that the client connects to.
    pub fn begin(&mut self, now: Instant, remote: SocketAddr, peer: Option<ConnectionId>) {
        let Some(early) = self.early.take() else { return };
        let header = Header {
            began: self.qlog.began,
            id: self.id,
            is_client: self.is_client,
            local: self.qlog.local,
            remote,
            peer,
        };
        self.file = self.qlog.writer.begin(header);
        let first = early.first().map_or(now, |(at, _)| *at);
        self.record(first, Event::Started(header));
        for (at, event) in early {
            self.record(at, event);
        }
    }

    fn record(&mut self, now: Instant, event: Event) {
        match &mut self.early {
            Some(early) if early.len() < EARLY_MAX => early.push((now, event)),
            Some(_) => {}
            None => self.dropped += u64::from(!self.qlog.writer.record(self.file, now, event)),
        }
    }

    pub fn packet_sent(&mut self, now: Instant, sent: &Transmit) {
        self.sent = self.sent.max(sent.number);
        let acked = self.acked(&sent.packet, self.received, 1);
        let packet = sent.packet.clone();
        self.record(
            now,
            Event::Packet { is_sent: true, number: sent.number, start: sent.start, packet, acked },
        );
    }

    pub fn packet_received(&mut self, now: Instant, packet: &tack::Packet, number: u64, start: Option<u64>) {
        self.received = self.received.max(number);
        let acked = self.acked(packet, self.sent, 0);
        let start = start.unwrap_or_else(|| format::low_offset(packet));
        let packet = packet.clone();
        self.record(now, Event::Packet { is_sent: false, number, start, packet, acked });
    }

    /// The numbers that the low end of `packet` acknowledges for the first time, and a number near those in it.
    fn acked(&mut self, packet: &tack::Packet, near: u64, whose: usize) -> Option<format::Acked> {
        let cumulative = format::whole(near, format::cumulative(packet)?);
        let below = self.acked_below[whose];
        self.acked_below[whose] = cumulative.max(below);
        Some(format::Acked { near, from: below.min(cumulative), below: cumulative })
    }

    /// Records that a datagram of `bytes`, with the packet number `number`, was rejected.
    pub fn not_taken(&mut self, now: Instant, number: u64, bytes: u64, why: Sealed) {
        if let Some(left) = self.not_taken.checked_sub(1) {
            self.not_taken = left;
            self.record(now, Event::NotTaken { number, bytes, why });
        }
    }

    /// Records that the path supports packets with `bytes` of UDP payload.
    pub fn path_takes(&mut self, now: Instant, bytes: u32) {
        if self.mtu != Some(bytes) {
            let before = self.mtu.replace(bytes);
            self.record(now, Event::Mtu { before, now: bytes });
        }
    }

    pub fn key_updated(&mut self, now: Instant, generation: u64, is_clients: bool, is_ours: bool) {
        self.record(now, Event::Key { generation, is_clients, is_ours });
    }

    pub fn connected(&mut self, now: Instant) {
        self.record(now, Event::Connected);
    }

    pub fn path_updated(&mut self, now: Instant, from: SocketAddr, to: SocketAddr) {
        self.record(now, Event::Path { from, to });
    }

    /// After acknowledgments or a timeout, records lost packets and readings that have changed.
    pub fn feedback(&mut self, now: Instant, stats: &Stats, losses: Vec<u64>) {
        for number in losses {
            self.record(now, Event::Lost { number });
        }
        let readings = Readings::new(stats);
        if readings != self.last {
            let before = std::mem::replace(&mut self.last, readings);
            self.record(now, Event::Metrics { readings, before });
        }
    }

    /// Ends the file. For a connection that was never established, no file is written.
    pub fn ended(&mut self, now: Instant, why: &ConnectionError) {
        if self.early.is_some() {
            return;
        }
        if self.dropped > 0 {
            let (id, dropped) = (format!("{:08x}", self.id), self.dropped);
            tracing::warn!(target: "tacit_tack::qlog", connection = id, dropped, "records came too fast to be written");
            self.qlog.writer.order(Order::Event { file: self.file, now, event: Event::Dropped(dropped) });
        }
        self.qlog.writer.order(Order::Event { file: self.file, now, event: Event::Ended(why.clone()) });
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if self.early.is_none() {
            self.qlog.writer.order(Order::End(self.file));
        }
    }
}
