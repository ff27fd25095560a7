//! Statistics of a connection over any transport.

use crate::units::{BitRate, Duration};

/// Counters of one end of a connection since it was created, and current readings.
///
/// Optional fields exist only in some transports: `None` means that the transport has no such number, unlike zero.
/// Counters of a single transport are in its own type, such as `Counters` of tacit-tcp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets sent, of any kind.
    pub packets_sent: u64,
    /// Packets received, of any kind, whether acceptable or not.
    pub packets_received: u64,
    /// Packets sent with data or the end of data, including retransmissions.
    pub data_packets_sent: u64,
    /// Packets received with data.
    pub data_packets_received: u64,
    /// Packets with contents that were sent before, including those of the handshake.
    pub packets_retransmitted: u64,
    /// Packets sent that only acknowledge.
    pub acks_sent: u64,
    /// Packets received that only acknowledge.
    pub acks_received: u64,
    /// Bytes of data sent, including retransmissions.
    pub bytes_sent: u64,
    /// Bytes of data retransmitted.
    pub bytes_retransmitted: u64,
    /// Bytes that the peer has acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Bytes of data received, duplicates included.
    pub bytes_received: u64,
    /// Bytes delivered to the application, in order and once.
    pub delivered_bytes: u64,
    /// Bytes received that had been received before.
    pub duplicate_bytes: u64,
    /// Bytes received for which there was no room.
    pub dropped_bytes: u64,
    /// Bytes sent and not yet acknowledged. A reading.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time; `None` before the first measurement. A reading.
    pub srtt: Option<Duration>,
    /// Congestion window in bytes. A reading.
    pub cwnd: Option<u64>,
    /// Retransmission timeout, including back-off. A reading.
    pub rto: Option<Duration>,
    /// How often that timeout expired with data outstanding.
    pub timeouts: Option<u64>,
    /// How often fast recovery began.
    pub fast_recoveries: Option<u64>,
    /// Current estimate of the minimum round-trip time; `None` before the first measurement. A reading.
    pub rtt_min: Option<Duration>,
    /// Bytes received that wait for earlier ones. A reading.
    pub blocked_bytes: Option<u64>,
    /// Pacing rate of the payload; `None` if it is not paced, or has no rate yet. A reading.
    pub pacing_rate: Option<BitRate>,
    /// State of congestion control, as the algorithm names it. A reading.
    pub congestion_state: Option<&'static str>,
}
