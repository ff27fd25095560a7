//! Configuration of a TCP endpoint.

use super::ack_policy::AckPolicy;
use super::autotune::ReceiveAutotuning;
use super::prr::Recovery;
use super::rack::LossDetection;
use super::undo::Undo;
use crate::congestion;
use crate::packet::IpVersion;
use crate::units::{Bytes, Duration};

/// Configuration of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// IP version.
    pub ip: IpVersion,
    /// Size of the largest IP packet sent; the payload of a full segment is this less the headers
    /// and the options present on every segment.
    pub mtu: Bytes,
    /// Congestion control and pacing.
    pub congestion: congestion::Config,
    /// When this end acknowledges.
    pub ack_policy: AckPolicy,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Treatment of segments that lack them though both ends agreed on them.
    pub unstamped: Unstamped,
    /// How often the clock of this end's timestamps ticks; `None` is once per millisecond, all such clocks in step. A clock
    /// that is given ticks in a phase of its own, and measures nothing: its readings are too coarse to hold against times of
    /// milliseconds, so its owner measures as one without timestamps does.
    pub timestamp_tick: Option<Duration>,
    /// Offer selective acknowledgment (RFC 2018).
    pub sack: bool,
    /// Offer and accept ECN (RFC 3168).
    pub ecn: bool,
    /// Report data that came twice (RFC 2883), where SACK was agreed on.
    pub dsack: bool,
    /// How loss is detected.
    pub loss_detection: LossDetection,
    /// How much is sent during fast recovery.
    pub recovery: Recovery,
    /// How spurious retransmissions are detected, and their effect on the window undone.
    pub undo: Undo,
    /// Receive buffer. The offered window scale follows from it, or from the size to which it may grow.
    pub receive_buffer: Bytes,
    /// Whether it grows.
    pub receive_autotuning: ReceiveAutotuning,
    /// Most bytes in flight, even where the windows allow more (a send buffer limit).
    pub send_buffer: Bytes,
    /// TCP small queues: limit of the data in the host's own queue, as a time at the rate of the connection. `None` for no
    /// limit. The driver of the connection honours [`Connection::small_queue`](super::Connection::small_queue).
    pub small_queues: Option<Duration>,
    /// Lower bound of the retransmission timeout's variance term, hence of the timeout. RFC 6298: 1 s; Linux: 200 ms.
    pub rto_min: Duration,
    /// Time in TIME-WAIT at the end that closed first: twice the maximum segment lifetime. RFC 9293: 4 minutes; Linux: 60 s.
    pub time_wait: Duration,
}

/// Treatment of segments without timestamps where both ends agreed on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unstamped {
    /// They are dropped: "a TCP SHOULD silently drop the segment" (RFC 7323 section 3.2).
    #[default]
    Dropped,
    /// They are taken, as Linux does (`tcp_validate_incoming` looks at PAWS only where it saw a timestamp).
    Taken,
}

impl Config {
    /// The MSS option of this end: the payload that fits beside the fixed headers (RFC 9293 section 3.7.1).
    pub fn mss(&self) -> u16 {
        let payload = self.mtu.0.saturating_sub(u64::from(self.ip.header_len()) + 20);
        u16::try_from(payload).unwrap_or(u16::MAX)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ip: IpVersion::V4,
            mtu: Bytes(1500),
            congestion: congestion::Config::default(),
            ack_policy: AckPolicy::default(),
            timestamps: true,
            unstamped: Unstamped::Dropped,
            timestamp_tick: None,
            sack: true,
            ecn: false,
            dsack: false,
            loss_detection: LossDetection::DupAck,
            recovery: Recovery::Rfc6675,
            undo: Undo::Never,
            receive_buffer: Bytes(4 << 20),
            receive_autotuning: ReceiveAutotuning::Off,
            send_buffer: Bytes(4 << 20),
            small_queues: None,
            rto_min: Duration::from_millis(200),
            time_wait: Duration::from_secs(60),
        }
    }
}
