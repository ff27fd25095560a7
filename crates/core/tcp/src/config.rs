//! Configuration of a TCP endpoint.

use core::num::NonZeroU64;

use super::ack_policy::policy::AckPolicy;
use super::autotune::{ReceiveAutotuning, WindowGrowth};
use super::prr::Recovery;
use super::rack::LossDetection;
use super::undo::Undo;
use tacit_packet::IpVersion;
use tacit_packet::units::{Bytes, Duration};

/// Configuration of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// IP version.
    pub ip: IpVersion,
    /// Size of the largest IP packet; the payload of a full segment is this minus the headers and the options that
    /// every segment has.
    pub mtu: Bytes,
    /// Congestion control and pacing.
    pub congestion: tacit_congestion::Config,
    /// When this end sends acknowledgments.
    pub ack_policy: AckPolicy,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// How to treat segments without timestamps although both ends agreed on them.
    pub unstamped: Unstamped,
    /// Tick length of this end's timestamp clock; `None` is one millisecond, with all such clocks in phase. A clock
    /// with an explicit tick length has its own phase. Its readings are too coarse for times of milliseconds, so its
    /// owner measures round trips as if there were no timestamps.
    pub timestamp_tick: Option<Duration>,
    /// Offer selective acknowledgment (RFC 2018).
    pub sack: bool,
    /// Offer and accept ECN (RFC 3168).
    pub ecn: bool,
    /// Report duplicate data (RFC 2883) if SACK was agreed on.
    pub dsack: bool,
    /// How loss is detected.
    pub loss_detection: LossDetection,
    /// How much is sent during fast recovery.
    pub recovery: Recovery,
    /// How spurious retransmissions are detected, so that their effect on the window can be undone.
    pub undo: Undo,
    /// Receive buffer. The offered window scale is derived from it, or from the size to which it may grow.
    pub receive_buffer: Bytes,
    /// Whether the receive buffer grows.
    pub receive_autotuning: ReceiveAutotuning,
    /// How the offered window follows a buffer that grows.
    pub window_growth: WindowGrowth,
    /// Packets that the receiver's socket holds of those that arrive at one instant; the others are lost, as datagrams of
    /// QUIC are. `None` for no limit, which TCP's have.
    pub socket_packets: Option<u32>,
    /// Bytes that a program reads before its receiver, if it counts packets, announces the room in a packet of its own: QUIC's
    /// MAX_STREAM_DATA. `None` where ACKs announce it.
    pub window_update_bytes: Option<NonZeroU64>,
    /// Most bytes in flight, even if the windows allow more (a send buffer limit).
    pub send_buffer: Bytes,
    /// TCP small queues: limit of the connection's data in the host's own queue, as a time at the connection's rate;
    /// `None` for no limit. The driver of the connection enforces it with
    /// [`Connection::small_queue`](super::Connection::small_queue).
    pub small_queues: Option<Duration>,
    /// Lower bound of the retransmission timeout's variance term, and so of the timeout. RFC 6298: 1 s; Linux: 200 ms.
    pub rto_min: Duration,
    /// Time in TIME-WAIT at the end that closed first: twice the maximum segment lifetime. RFC 9293: 4 minutes; Linux: 60 s.
    pub time_wait: Duration,
}

/// How to treat segments without timestamps if both ends agreed on timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unstamped {
    /// Drop them: "a TCP SHOULD silently drop the segment" (RFC 7323 section 3.2).
    #[default]
    Dropped,
    /// Accept them, as Linux does (`tcp_validate_incoming` checks PAWS only if there is a timestamp).
    Taken,
}

impl Config {
    /// Whether ECN is offered and accepted. A scalable control always needs it.
    pub(crate) fn uses_ecn(&self) -> bool {
        self.ecn || self.congestion.algorithm.is_scalable()
    }

    /// The MSS option of this end: the payload that fits with the fixed headers (RFC 9293 section 3.7.1).
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
            congestion: tacit_congestion::Config::default(),
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
            window_growth: WindowGrowth::AtOnce,
            socket_packets: None,
            window_update_bytes: None,
            send_buffer: Bytes(4 << 20),
            small_queues: None,
            rto_min: Duration::from_millis(200),
            time_wait: Duration::from_secs(60),
        }
    }
}
