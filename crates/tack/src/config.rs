//! What an endpoint may be told before it starts.

use std::num::NonZeroU16;

use tacit_proto::tack;
use tacit_proto::units::{Bytes, Duration};

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The transport: congestion control, ACK clock, windows, streams, idle time.
    pub transport: tack::Config,
    /// Connections at once at most, of clients that connected and of those that are about to; each shard has its part of them.
    pub max_connections: usize,
    /// Octets that the buffers of all connections' streams take at most, those of all shards together: what waits for readers, and what
    /// was written and peers may lack. Half of it is lent for windows beyond `min_stream_buffer`. Where three quarters are full writers
    /// wait; where all is, the fullest stream of the peer that holds most is given up ([`NoMemory`](crate::StreamError::NoMemory)).
    pub max_memory: Bytes,
    /// Sockets that share a server's address (`SO_REUSEPORT`), each with a task of its own, so that a runtime of several threads
    /// serves on as many of them. A connection's number says which socket it is of, and datagrams go there wherever the client
    /// moves.
    pub shards: NonZeroU16,
    /// Where what happens to each connection is written down.
    #[cfg(feature = "qlog")]
    pub qlog: Option<crate::Qlog>,
}

impl Config {
    /// This configuration, with which a connection ends when nothing comes from the peer for `time`; three probes may be lost.
    #[must_use]
    pub fn with_idle_timeout(mut self, time: std::time::Duration) -> Self {
        let time = Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 1000));
        self.transport.idle_timeout = time;
        self.transport.keep_alive = Some(time / 4);
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        let transport = tack::Config {
            // RFC 9000 section 14.1: 1,200 octets of payload pass; the largest that an Ethernet takes are tried.
            mtu: Bytes(1228),
            max_mtu: Bytes(1500),
            fit_sync: true,
            reader: tack::Reader::Explicit,
            ecn: true,
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            // Half of all datagrams may be lost: a first one is repeated a dozen times in 10 s. Ours.
            hello_timeout: Duration::from_millis(250),
            max_hello_timeout: Duration::from_secs(1),
            probe_silence: true,
            ..tack::Config::default()
        };
        Self {
            transport,
            max_connections: 4096,
            // Eight connections that borrow all they may. Ours.
            max_memory: Bytes(512 << 20),
            shards: NonZeroU16::MIN,
            #[cfg(feature = "qlog")]
            qlog: None,
        }
    }
}
