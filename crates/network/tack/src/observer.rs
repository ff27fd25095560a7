//! Observation of a connection: log lines, counters, and its qlog.
//!
//! Log lines are `tracing` events with targets below `tacit_tack`. Per-packet events have the level `trace`; without a
//! subscriber they cost a check of one flag.

use std::fmt;
use std::net::SocketAddr;

use tacit_packet::tack::Body;
use tacit_packet::tack::packet::ConnectionId;
use tacit_packet::units::{BitRate, Bytes, Duration, Instant};
use tacit_tack_proto::{self as tack, Transmit};
use tracing::{debug, info, trace};

use crate::error::ConnectionError;
use crate::identity::PublicKey;
use crate::metrics::{Sample, Totals};
#[cfg(feature = "qlog")]
use crate::qlog::Trace;
use crate::seal::{EPOCH, Sealed};

/// Targets of log lines.
pub(crate) mod target {
    pub const CONNECTION: &str = "tacit_tack::connection";
    pub const HANDSHAKE: &str = "tacit_tack::handshake";
    pub const PATH: &str = "tacit_tack::path";
    pub const KEYS: &str = "tacit_tack::keys";
    pub const RECOVERY: &str = "tacit_tack::recovery";
    pub const PACKET: &str = "tacit_tack::packet";
}

/// How often a connection reports its round-trip time and its rate. Ours.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// The number of a connection, formatted as in its packets and in qlog.
struct Id(u32);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Watches one connection.
#[derive(Default)]
pub(crate) struct Observer {
    id: u32,
    /// The latest time that was passed to the session.
    pub now: Instant,
    is_client: bool,
    began: Instant,
    tacks_sent: u64,
    iacks_sent: u64,
    pub streams_opened: u64,
    /// Losses, timeouts and loss episodes that were already reported.
    lost: u64,
    timeouts: u64,
    episodes: u64,
    /// The key epochs of the newest packets sent and received.
    sent_epoch: u64,
    received_epoch: u64,
    pub paths_changed: u64,
    pub keys_updated: u64,
    /// Time of the last sample, and the bytes acknowledged by then.
    sampled: Option<(Instant, u64)>,
    sample: Option<Sample>,
    #[cfg(feature = "qlog")]
    pub qlog: Option<Trace>,
}

/// Name of a packet type in logs.
pub(crate) fn name_of(body: &Body) -> &'static str {
    match body {
        Body::Open(_) => "open",
        Body::Answer(_) => "answer",
        Body::Data(_) => "data",
        Body::Tack(_) => "tack",
        Body::Instant(_) => "iack",
        Body::Sync(_) => "sync",
        Body::Probe { .. } => "probe",
        Body::Control(_) => "control",
        Body::Datagram(_) => "datagram",
        Body::PathChallenge(_) => "path_challenge",
        Body::PathResponse(_) => "path_response",
        Body::Close(_) | Body::CloseWith(_) => "close",
    }
}

impl Observer {
    pub fn new(id: u32, now: Instant, is_client: bool) -> Self {
        Self { id, now, is_client, began: now, ..Self::default() }
    }

    /// Makes the core report the events that are recorded.
    pub fn watch(&self, core: &mut tack::Connection) {
        #[cfg(feature = "qlog")]
        if self.qlog.is_some() {
            core.watch_losses();
        }
        #[cfg(not(feature = "qlog"))]
        let _ = core;
    }

    /// Starts the qlog file: the peer is known, or is the server that the client connects to.
    pub fn begin(&mut self, now: Instant, remote: SocketAddr, peer: ConnectionId) {
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.begin(now, remote, Some(peer));
        }
        #[cfg(not(feature = "qlog"))]
        let _ = (now, remote, peer);
    }

    /// Records that a packet of the core is sent.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, sent: &Transmit) {
        match sent.packet.body {
            Body::Tack(_) => self.tacks_sent += 1,
            Body::Instant(_) => self.iacks_sent += 1,
            _ => {}
        }
        let epoch = sent.number >> EPOCH;
        if epoch > self.sent_epoch {
            self.sent_epoch = epoch;
            self.on_key(now, epoch, true);
        }
        trace!(
            target: target::PACKET,
            connection = %Id(self.id),
            number = sent.number,
            kind = name_of(&sent.packet.body),
            bytes = sent.packet.len(),
            "sent"
        );
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.packet_sent(now, sent);
        }
    }

    /// Records a packet of the peer with its full packet `number`. `start` is the stream offset of the first byte it
    /// carries, if known.
    #[inline]
    pub fn on_received(
        &mut self,
        now: Instant,
        packet: &tacit_packet::tack::Packet,
        number: u64,
        start: Option<u64>,
    ) {
        let epoch = number >> EPOCH;
        if epoch > self.received_epoch {
            self.received_epoch = epoch;
            self.on_key(now, epoch, false);
        }
        trace!(
            target: target::PACKET,
            connection = %Id(self.id),
            number,
            kind = name_of(&packet.body),
            bytes = packet.len(),
            "received"
        );
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.packet_received(now, packet, number, start);
        }
        #[cfg(not(feature = "qlog"))]
        let _ = start;
    }

    fn on_key(&mut self, now: Instant, epoch: u64, is_ours: bool) {
        self.keys_updated += 1;
        let direction = if is_ours { "sending" } else { "receiving" };
        debug!(target: target::KEYS, connection = %Id(self.id), direction, key = epoch, "a new key");
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.key_updated(now, epoch, is_ours == self.is_client, is_ours);
        }
        #[cfg(not(feature = "qlog"))]
        let _ = now;
    }

    /// Records that the connection is established.
    pub fn on_connected(&mut self, remote: SocketAddr, peer: Option<&PublicKey>) {
        let role = if self.is_client { "client" } else { "server" };
        let peer = peer.map(tracing::field::display);
        info!(target: target::CONNECTION, connection = %Id(self.id), role, %remote, peer, "connected");
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.connected(self.now);
        }
    }

    /// Records that the connection has ended or was never established. The peer's reason is escaped.
    pub fn on_end(&mut self, why: &ConnectionError, core: &tack::Connection, was_connected: bool) {
        let lasted_s = self.now.saturating_since(self.began).as_secs_f64();
        let reason = why.to_string();
        if was_connected {
            let stats = core.stats();
            info!(
                target: target::CONNECTION,
                connection = %Id(self.id),
                ?reason,
                lasted_s,
                data_packets_sent = stats.data_packets_sent,
                packets_lost = core.packets_lost(),
                delivered_bytes = stats.delivered_bytes,
                "ended"
            );
        } else {
            debug!(target: target::HANDSHAKE, connection = %Id(self.id), ?reason, lasted_s, "no connection");
        }
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.ended(self.now, why);
        }
    }

    /// Records that a datagram of `bytes` for this connection was rejected. `number` is the packet number that it
    /// claims.
    #[inline]
    pub fn on_not_taken(&mut self, now: Instant, number: u64, bytes: usize, why: Sealed) {
        trace!(target: target::PACKET, connection = %Id(self.id), number, bytes, ?why, "not taken");
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.not_taken(now, number, bytes as u64, why);
        }
        #[cfg(not(feature = "qlog"))]
        let _ = now;
    }

    /// Records that the client has moved to another address.
    pub fn on_path_changed(&mut self, now: Instant, from: SocketAddr, to: SocketAddr) {
        self.paths_changed += 1;
        info!(target: target::PATH, connection = %Id(self.id), %from, %to, "the client has moved");
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.path_updated(now, from, to);
        }
        #[cfg(not(feature = "qlog"))]
        let _ = now;
    }

    /// Records that the server wants the client to prove its address.
    pub fn on_retry(&self) {
        debug!(target: target::HANDSHAKE, connection = %Id(self.id), "the server asks where this client is");
    }

    /// Records losses that the core has declared because time has passed.
    #[inline]
    pub fn on_time(&mut self, now: Instant, core: &mut tack::Connection) {
        if core.timeouts() > self.timeouts {
            self.on_feedback(now, core);
        }
    }

    /// Records changes after acknowledgments or a timeout.
    pub fn on_feedback(&mut self, now: Instant, core: &mut tack::Connection) {
        let stats = core.stats();
        let (timeouts, episodes) = (stats.timeouts.unwrap_or(0), stats.fast_recoveries.unwrap_or(0));
        if episodes > self.episodes {
            let (lost, flight) = (core.packets_lost(), stats.bytes_in_flight);
            let fresh = lost - self.lost;
            debug!(target: target::RECOVERY, connection = %Id(self.id), fresh, lost, in_flight_bytes = flight, "losses");
        }
        if timeouts > self.timeouts {
            debug!(target: target::RECOVERY, connection = %Id(self.id), timeouts, "nothing was heard for too long");
        }
        (self.lost, self.timeouts, self.episodes) = (core.packets_lost(), timeouts, episodes);
        match self.sampled {
            None => self.sampled = Some((now, stats.bytes_acked)),
            Some((at, acked)) if now.saturating_since(at) >= SAMPLE_EVERY => {
                let bytes = Bytes(stats.bytes_acked.saturating_sub(acked));
                let rate = BitRate::from_amount(bytes, now.saturating_since(at)).filter(|_| bytes.0 > 0);
                self.sample = Some(Sample { rtt: stats.srtt, rate });
                self.sampled = Some((now, stats.bytes_acked));
            }
            Some(_) => {}
        }
        #[cfg(feature = "qlog")]
        if let Some(qlog) = &mut self.qlog {
            qlog.feedback(now, &stats, core.take_losses());
            qlog.path_takes(now, core.path_payload());
        }
    }

    /// The sample since the last call.
    #[inline]
    pub fn take_sample(&mut self) -> Option<Sample> {
        self.sample.take()
    }

    /// Adds this connection's counts.
    pub fn add_to(&self, totals: &mut Totals) {
        totals.tacks_sent += self.tacks_sent;
        totals.iacks_sent += self.iacks_sent;
        totals.streams_opened += self.streams_opened;
    }
}
