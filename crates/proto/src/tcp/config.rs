//! What a TCP endpoint may be told before it starts.

use super::ack_policy::AckPolicy;
use super::autotune::ReceiveAutotuning;
use super::pacing::Pacing;
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
    /// BBR version 1 (Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00), with
    /// the compensation for aggregated ACKs of Linux 5.1 and later.
    Bbr,
    /// Vegas (Brakmo and Peterson 1995): 2 to 4 segments in the path's queues, losses as NewReno.
    Vegas,
    /// Copa (Arun and Balakrishnan 2018), default mode and TCP-competitive mode.
    Copa,
}

/// Whether BBR looks for a token-bucket policer: losses of a fifth and more at a steady rate make it
/// keep to that rate for a while (`lt_bw` in Linux, where it is always on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicerDetection {
    /// As Linux does.
    #[default]
    On,
    /// Not at all.
    Off,
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
    /// Whether segments are spaced in time.
    pub pacing: Pacing,
    /// Whether BBR looks for policers.
    pub bbr_policer: PolicerDetection,
    /// Most segments the congestion window grows by per ACK in slow start: `L` of RFC 3465. 2 there;
    /// Linux has no such limit, which matters where ACKs are thinned to fewer than one in two.
    pub byte_counting_limit: u32,
    /// When this end acknowledges.
    pub ack_policy: AckPolicy,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
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
    /// How needless retransmissions are noticed and what they did to the window is undone.
    pub undo: Undo,
    /// Receive buffer; the window scale offered follows from it, or from what it may grow to.
    pub receive_buffer: Bytes,
    /// Whether it grows.
    pub receive_autotuning: ReceiveAutotuning,
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
            pacing: Pacing::Auto,
            bbr_policer: PolicerDetection::On,
            byte_counting_limit: 2,
            ack_policy: AckPolicy::default(),
            timestamps: true,
            sack: true,
            ecn: false,
            dsack: false,
            loss_detection: LossDetection::DupAck,
            recovery: Recovery::Rfc6675,
            undo: Undo::Never,
            receive_buffer: Bytes(4 << 20),
            receive_autotuning: ReceiveAutotuning::Off,
            send_buffer: Bytes(4 << 20),
            initial_window: 10,
            rto_min: Duration::from_millis(200),
            time_wait: Duration::from_secs(60),
        }
    }
}
