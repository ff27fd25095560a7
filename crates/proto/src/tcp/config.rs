//! What a TCP endpoint may be told before it starts.

use super::prr::Recovery;
use super::rack::LossDetection;
use super::undo::Undo;
use crate::packet::IpVersion;
use crate::units::{Bytes, Duration};

/// Congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 5681 with NewReno's window arithmetic.
    NewReno,
    /// RFC 9438; slow start as [`Config::slow_start`] says.
    #[default]
    Cubic,
}

/// How CUBIC's slow start ends. NewReno's always ends as RFC 5681 says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// At ssthresh or at the first loss (RFC 5681 section 3.1).
    Standard,
    /// Also when the round-trip time rises, or the train of ACKs grows as long as half of it: HyStart
    /// (Ha and Rhee 2011), on by default in Linux and ns-3.
    #[default]
    HyStart,
}

/// When a receiver acknowledges in-order data. Out-of-order data, and data that fills a gap, are
/// always acknowledged at once (RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// One ACK per this many full-sized segments (`L`); 1 acknowledges each.
    pub every: u32,
    /// An ACK is never held longer than this (RFC 9293 section 3.8.6.3: below 500 ms).
    pub delay: Duration,
    /// Acknowledge each segment while the connection is young, and after a loss, as Linux does.
    pub quick_ack_segments: u32,
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self {
            every: 2,
            // Linux TCP_DELACK_MIN.
            delay: Duration::from_millis(40),
            // Linux TCP_MAX_QUICKACKS.
            quick_ack_segments: 16,
        }
    }
}

/// Configuration of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// IP version.
    pub ip: IpVersion,
    /// Size of the largest IP packet sent; the payload of a full segment is this less the headers
    /// and the options present on every segment.
    pub mtu: Bytes,
    /// Congestion control.
    pub congestion: Congestion,
    /// How CUBIC leaves slow start.
    pub slow_start: SlowStart,
    /// Most segments the congestion window grows by per ACK in slow start: `L` of RFC 3465. 2 there;
    /// Linux has no such limit, which matters where ACKs are thinned to fewer than one in two.
    pub byte_counting_limit: u32,
    /// ACK policy.
    pub ack_policy: AckPolicy,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer selective acknowledgment (RFC 2018).
    pub sack: bool,
    /// Report data that came twice (RFC 2883), where SACK was agreed on.
    pub dsack: bool,
    /// How loss is detected.
    pub loss_detection: LossDetection,
    /// How much is sent during fast recovery.
    pub recovery: Recovery,
    /// How needless retransmissions are noticed and what they did to the window is undone.
    pub undo: Undo,
    /// Receive buffer; the window scale offered follows from it.
    pub receive_buffer: Bytes,
    /// Most octets in flight whatever the windows say (a send buffer limit).
    pub send_buffer: Bytes,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Lower bound of the retransmission timeout's variance term, hence of the timeout. RFC 6298 says
    /// 1 s; Linux uses 200 ms.
    pub rto_min: Duration,
    /// How long the end that closed first keeps the connection in TIME-WAIT: twice the maximum
    /// segment lifetime. RFC 9293 says 4 minutes; Linux uses 60 s.
    pub time_wait: Duration,
}

impl Config {
    /// The MSS option this end sends: what fits beside the fixed headers (RFC 9293 section 3.7.1).
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
            congestion: Congestion::Cubic,
            slow_start: SlowStart::HyStart,
            byte_counting_limit: 2,
            ack_policy: AckPolicy::default(),
            timestamps: true,
            sack: true,
            dsack: false,
            loss_detection: LossDetection::DupAck,
            recovery: Recovery::Rfc6675,
            undo: Undo::Never,
            receive_buffer: Bytes(4 << 20),
            send_buffer: Bytes(4 << 20),
            initial_window: 10,
            rto_min: Duration::from_millis(200),
            time_wait: Duration::from_secs(60),
        }
    }
}
