//! Configuration of an endpoint.

use std::num::NonZeroU16;

use tacit_proto::tack;
use tacit_proto::units::{Bytes, Duration};

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The transport: congestion control, ACK clock, windows, streams, idle time.
    pub transport: tack::Config,
    /// Limit of connections, handshakes included; each shard has an equal part of it.
    pub max_connections: usize,
    /// Bytes for the stream buffers of all connections of all shards: received data that waits for readers, and written data that is not
    /// acknowledged. Half of it is lent for windows beyond `min_stream_buffer`. Writers wait when three quarters are full. When all is
    /// full, the fullest stream of the peer that holds most is reset ([`NoMemory`](crate::StreamError::NoMemory)).
    pub max_memory: Bytes,
    /// Sockets that share a server's address (`SO_REUSEPORT`), each with a task of its own, to use several threads of a runtime.
    /// A connection's number determines its socket, also after the client has moved.
    pub shards: NonZeroU16,
    /// Writes a qlog file per connection.
    #[cfg(feature = "qlog")]
    pub qlog: Option<crate::Qlog>,
}

impl Config {
    /// Ends a connection after `time` without a packet from the peer. Probes are sent each quarter of it.
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
