//! Configuration of an endpoint.

use std::num::NonZeroU16;
use std::time;

use tacit_congestion::Algorithm;
use tacit_packet::units::{Bytes, Duration};
use tacit_tack_proto::{self as tack, AckClock};

/// Smallest IP packet size that every path supports: a UDP payload of 1,200 bytes (RFC 9000 section 14.1).
const MIN_MTU: u16 = 1228;

/// Size of the IP packets that a narrower path has to carry: what every host receives (RFC 1122 section 3.3.3).
pub(crate) const NARROW_MTU: u16 = 576;

/// ACKs per round-trip time that a peer accepts (docs/references/tack-wire.md).
const ACKS_PER_RTT: std::ops::RangeInclusive<u8> = 2..=64;

/// Longest configurable time; longer ones mean no limit: 100 years.
const MAX_TIME: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Shortest timeout and probe interval: shorter ones keep a processor busy and detect nothing.
const MIN_TIME: Duration = Duration::from_millis(1);

/// Limits of windows: below the first no full-sized packet fits, and above the second (1 TiB) a window limits nothing.
const WINDOWS: std::ops::RangeInclusive<u64> = 4096..=1 << 40;

/// The algorithm that decides how fast an endpoint sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CongestionControl {
    /// TACK's BBR, which paces by the delivery rate that the receiver measures. The default: it needs the fewest ACKs.
    #[default]
    TackBbr,
    /// BBR version 1, by the delivery rate that the sender measures.
    Bbr,
    /// CUBIC (RFC 9438). The peer acknowledges several times in each round trip, because the window grows with ACKs.
    Cubic,
    /// NewReno (RFC 5681, RFC 6582). The peer acknowledges as for [`Cubic`](Self::Cubic).
    NewReno,
}

impl CongestionControl {
    fn algorithm(self) -> Algorithm {
        match self {
            Self::TackBbr => Algorithm::TACK_BBR,
            Self::Bbr => Algorithm::BBR,
            Self::Cubic => Algorithm::CUBIC,
            Self::NewReno => Algorithm::NewReno,
        }
    }
}

/// Configuration of an endpoint and its connections.
///
/// The defaults suit file transfers and proxies over paths from a local network to a satellite. Each setter has its default in
/// its documentation, and the reason for it.
///
/// ```
/// use std::time::Duration;
///
/// let mut config = tacit_tack::Config::default();
/// config.max_idle_timeout(Duration::from_secs(10)).max_concurrent_bidi_streams(16).max_memory(64 << 20);
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) transport: tack::Config,
    /// The keep-alive interval was set by [`keep_alive_interval`](Self::keep_alive_interval), not derived from the idle
    /// timeout.
    pub(crate) has_keep_alive: bool,
    pub(crate) max_connections: usize,
    pub(crate) max_memory: Bytes,
    pub(crate) shards: NonZeroU16,
    #[cfg(feature = "qlog")]
    pub(crate) qlog: Option<crate::Qlog>,
}

/// Limits of the endpoint.
impl Config {
    /// Limits the connections of the endpoint, half-open ones included. More clients are refused
    /// ([`Busy`](crate::ConnectionError::Busy)).
    ///
    /// Default: 4,096.
    pub fn max_connections(&mut self, count: usize) -> &mut Self {
        self.max_connections = count;
        self
    }

    /// Limits the stream buffers of all connections together, in bytes: received data that its reader has not taken,
    /// and written data that is not acknowledged.
    ///
    /// Half of it is for windows beyond [`min_stream_window`](Self::min_stream_window). When three quarters are used,
    /// writers wait. When all of it is used, the largest stream of the peer that uses most is reset
    /// ([`OutOfMemory`](crate::StreamError::OutOfMemory)).
    ///
    /// Default: 512 MiB, which is eight connections at [`max_receive_window`](Self::max_receive_window).
    pub fn max_memory(&mut self, bytes: u64) -> &mut Self {
        self.max_memory = Bytes(bytes);
        self
    }

    /// Sets the number of sockets that share a server's address (`SO_REUSEPORT`), each with its own task, so that a
    /// multi-threaded runtime uses several threads. A connection stays on its socket even if the client's address
    /// changes. The limit of connections is divided among the sockets.
    ///
    /// Default: 1. Clients have one socket.
    pub fn shards(&mut self, count: NonZeroU16) -> &mut Self {
        self.shards = count;
        self
    }

    /// Writes a qlog file per connection.
    ///
    /// Default: `None`.
    #[cfg(feature = "qlog")]
    pub fn qlog(&mut self, qlog: Option<crate::Qlog>) -> &mut Self {
        self.qlog = qlog;
        self
    }
}

/// Time.
impl Config {
    /// Ends a connection ([`TimedOut`](crate::ConnectionError::TimedOut)) after `time` without a packet from the peer.
    ///
    /// Default: 30 s. Less than 1 ms counts as 1 ms.
    pub fn max_idle_timeout(&mut self, time: time::Duration) -> &mut Self {
        self.transport.idle_timeout = duration(time).max(MIN_TIME);
        if !self.has_keep_alive {
            self.transport.keep_alive = Some(probes(self.transport.idle_timeout));
        }
        self
    }

    /// Sends a probe whenever nothing else was sent for `interval`, so that an idle connection stays open. `None`: an idle
    /// connection ends after the idle timeout.
    ///
    /// Default: a third of [`max_idle_timeout`](Self::max_idle_timeout), so that the loss of a probe ends no connection. Less than
    /// 1 ms counts as 1 ms.
    pub fn keep_alive_interval(&mut self, interval: Option<time::Duration>) -> &mut Self {
        self.transport.keep_alive = interval.map(|interval| duration(interval).max(MIN_TIME));
        self.has_keep_alive = true;
        self
    }
}

/// Streams and flow control. Windows below 4,096 bytes count as 4,096.
impl Config {
    /// Limits the streams that the peer may have open, at least 1. The peer's attempts to open more wait
    /// ([`open_bi`](crate::Connection::open_bi)).
    ///
    /// Default: 256.
    pub fn max_concurrent_bidi_streams(&mut self, count: u16) -> &mut Self {
        self.transport.max_streams = count.max(1);
        self
    }

    /// Sets the initial receive window of a connection in bytes: how much the peer may send before readers take data.
    /// The window grows with the path's bandwidth-delay product, up to
    /// [`max_receive_window`](Self::max_receive_window).
    ///
    /// Default: 256 KiB.
    pub fn receive_window(&mut self, bytes: u64) -> &mut Self {
        self.transport.receive_buffer = window(bytes);
        self
    }

    /// Limits the window of a connection, in bytes.
    ///
    /// Default: 64 MiB, for 1 Gb/s over half a second.
    pub fn max_receive_window(&mut self, bytes: u64) -> &mut Self {
        self.transport.max_receive_buffer = window(bytes);
        self
    }

    /// Reserves a window for each stream, in bytes, independent of other streams. A stalled reader therefore blocks no
    /// other stream: it holds at most its own window plus the rest of the connection's window. Values above
    /// [`receive_window`](Self::receive_window) count as that.
    ///
    /// Default: 256 KiB.
    pub fn min_stream_window(&mut self, bytes: u64) -> &mut Self {
        self.transport.min_stream_buffer = window(bytes);
        self
    }

    /// Limits the window of one stream, in bytes.
    ///
    /// Default: 64 MiB, so that one stream can use the whole window of its connection.
    pub fn max_stream_window(&mut self, bytes: u64) -> &mut Self {
        self.transport.stream_buffer = window(bytes);
        self
    }

    /// Limits the bytes in flight of a connection, even if the peer's windows allow more.
    ///
    /// Default: 64 MiB.
    pub fn send_window(&mut self, bytes: u64) -> &mut Self {
        self.transport.send_buffer = window(bytes);
        self
    }
}

/// The path, congestion control and ACKs.
impl Config {
    /// Sets the initial size of a connection's IP packets, in bytes, at least 1,228.
    ///
    /// Default: 1,228. Every path of QUIC takes a UDP payload of 1,200 bytes (RFC 9000 section 14.1).
    pub fn initial_mtu(&mut self, bytes: u16) -> &mut Self {
        self.transport.mtu = Bytes(bytes.max(MIN_MTU).into());
        self
    }

    /// Limits path MTU discovery (RFC 8899), in bytes of an IP packet. A value up to the first MTU disables it.
    ///
    /// Default: 1,500, the MTU of Ethernet.
    pub fn max_mtu(&mut self, bytes: u16) -> &mut Self {
        self.transport.max_mtu = Bytes(bytes.into());
        self
    }

    /// Marks data as ECN-capable and reduces the rate at marks of congestion (RFC 3168).
    ///
    /// Default: true. If a path removes or rejects the marks, the connection works without ECN.
    pub fn ecn(&mut self, enabled: bool) -> &mut Self {
        self.transport.ecn = enabled;
        self
    }

    /// Chooses the congestion control of the data that this end sends.
    ///
    /// Default: [`CongestionControl::TackBbr`].
    pub fn congestion_control(&mut self, control: CongestionControl) -> &mut Self {
        self.transport.congestion.algorithm = control.algorithm();
        self
    }

    /// Sets the ACKs per round-trip time that the peer sends for this end's data, between 2 and 64: β of the TACK paper. Values
    /// outside count as the nearest one inside. More ACKs detect losses sooner and cost more airtime.
    ///
    /// Default: 4 (TACK paper, section 4.3).
    pub fn acks_per_rtt(&mut self, beta: u8) -> &mut Self {
        let (_, every, min_interval) = self.ack_rule();
        let beta = beta.clamp(*ACKS_PER_RTT.start(), *ACKS_PER_RTT.end());
        self.transport.ack_clock = AckClock::Tack { beta, every, min_interval };
        self
    }

    /// Sets the packets per ACK, at least 1, at data rates so low that this gives fewer ACKs than
    /// [`acks_per_rtt`](Self::acks_per_rtt): L of the TACK paper.
    ///
    /// Default: 16, about as many as Ethernet cards and Wi-Fi drivers deliver at once.
    pub fn packets_per_ack(&mut self, count: u8) -> &mut Self {
        let (beta, _, min_interval) = self.ack_rule();
        self.transport.ack_clock = AckClock::Tack { beta, every: count.max(1), min_interval };
        self
    }

    /// Sets the minimum time between two ACKs, at most 255 ms, in whole milliseconds. Only
    /// [`TackBbr`](CongestionControl::TackBbr) uses it, because other algorithms need ACKs in each round trip. Losses
    /// are still reported at once.
    ///
    /// Default: 25 ms, QUIC's default `max_ack_delay` (RFC 9000 section 18.2).
    pub fn min_ack_interval(&mut self, time: time::Duration) -> &mut Self {
        let (beta, every, _) = self.ack_rule();
        // Rounded as in the opening packet.
        let millis = u8::try_from(time.as_millis()).unwrap_or(u8::MAX);
        let min_interval = Duration::from_millis(millis.into());
        self.transport.ack_clock = AckClock::Tack { beta, every, min_interval };
        self
    }

    /// β, L and the minimum interval.
    fn ack_rule(&self) -> (u8, u8, Duration) {
        let AckClock::Tack { beta, every, min_interval } = self.transport.ack_clock else {
            unreachable!("this configuration sets no other rule")
        };
        (beta, every, min_interval)
    }
}

/// The keep-alive interval for an idle timeout.
fn probes(idle_timeout: Duration) -> Duration {
    (idle_timeout / 3).max(MIN_TIME)
}

/// Converts to the core's unit of time.
fn duration(time: time::Duration) -> Duration {
    u64::try_from(time.as_nanos()).map_or(MAX_TIME, Duration::from_nanos).min(MAX_TIME)
}

fn window(bytes: u64) -> Bytes {
    Bytes(bytes.clamp(*WINDOWS.start(), *WINDOWS.end()))
}

impl Default for Config {
    fn default() -> Self {
        let transport = tack::Config {
            min_mtu: Bytes(NARROW_MTU.into()),
            mtu: Bytes(MIN_MTU.into()),
            max_mtu: Bytes(1500),
            fit_sync: true,
            reader: tack::Reader::Explicit,
            ecn: true,
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(probes(Duration::from_secs(30))),
            // With 50 % loss, the first datagram must be repeated: a dozen times in 10 s. Ours.
            hello_timeout: Duration::from_millis(250),
            max_hello_timeout: Duration::from_secs(1),
            probe_silence: true,
            ..tack::Config::default()
        };
        Self {
            transport,
            has_keep_alive: false,
            max_connections: 4096,
            max_memory: Bytes(512 << 20),
            shards: NonZeroU16::MIN,
            #[cfg(feature = "qlog")]
            qlog: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_their_range_count_as_the_nearest() {
        let mut config = Config::default();
        config.acks_per_rtt(0).packets_per_ack(0).initial_mtu(100).max_concurrent_bidi_streams(0);
        config.max_idle_timeout(time::Duration::MAX);
        assert_eq!(config.ack_rule(), (2, 1, Duration::from_millis(25)));
        config.acks_per_rtt(255).min_ack_interval(time::Duration::ZERO);
        assert_eq!(config.ack_rule(), (64, 1, Duration::ZERO));
        assert_eq!((config.transport.mtu, config.transport.max_streams), (Bytes(1228), 1));
        assert_eq!(config.transport.idle_timeout, MAX_TIME);
    }

    #[test]
    fn probes_follow_the_idle_timeout_unless_their_interval_is_set() {
        let mut config = Config::default();
        assert_eq!(config.transport.keep_alive, Some(Duration::from_secs(10)));
        config.max_idle_timeout(time::Duration::from_secs(6));
        assert_eq!(config.transport.keep_alive, Some(Duration::from_secs(2)));
        config.keep_alive_interval(None).max_idle_timeout(time::Duration::from_secs(60));
        assert_eq!(config.transport.keep_alive, None);
    }
}
