//! What an endpoint may be told before it starts.

use tacit_proto::tack;
use tacit_proto::units::{Bytes, Duration};

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The transport: congestion control, ACK clock, windows, streams, idle time.
    pub transport: tack::Config,
    /// Connections at once at most, of clients that connected and of those that are about to.
    pub max_connections: usize,
    /// Several sockets, each with an endpoint and a thread of its own, share the address (`SO_REUSEPORT`): the system deals out
    /// clients by their addresses. A client that moves to another address may then find itself at another endpoint, which does
    /// not know it.
    pub reuse_port: bool,
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
            ..tack::Config::default()
        };
        Self {
            transport,
            max_connections: 4096,
            reuse_port: false,
            #[cfg(feature = "qlog")]
            qlog: None,
        }
    }
}
