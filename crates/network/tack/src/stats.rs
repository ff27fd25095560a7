//! Counters and readings of one connection.

use std::time::Duration;

use tacit_packet::Stats;

/// Counters of a connection since its start, and current readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Packets sent, of any kind.
    pub packets_sent: u64,
    /// Packets received, of any kind.
    pub packets_received: u64,
    /// Packets sent with data, retransmissions included.
    pub data_packets_sent: u64,
    /// Packets received with data.
    pub data_packets_received: u64,
    /// Packets sent that only acknowledge.
    pub acks_sent: u64,
    /// Packets received that only acknowledge.
    pub acks_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets that retransmit data.
    pub packets_retransmitted: u64,
    /// Bytes of data sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes of data retransmitted.
    pub bytes_retransmitted: u64,
    /// Bytes of data received, duplicates included.
    pub bytes_received: u64,
    /// Bytes received in order, each counted once.
    pub bytes_delivered: u64,
    /// Datagrams of [`send_datagram`](crate::Connection::send_datagram) that were dropped before they left: later ones needed
    /// their room, or packets became too short for them.
    pub datagrams_unsent: u64,
    /// Datagrams that arrived and were dropped, because they were not read in time.
    pub datagrams_unread: u64,
    /// Round trips with losses.
    pub loss_episodes: u64,
    /// Probe timeouts.
    pub timeouts: u64,
    /// Bytes sent and not acknowledged. A reading.
    pub bytes_in_flight: u64,
    /// Congestion window in bytes. A reading.
    pub cwnd: u64,
    /// Rate at which data leaves, in bits per second; `None` before the first measurement. A reading.
    pub pacing_rate_bps: Option<u64>,
    /// Smoothed round-trip time; `None` before the first measurement. A reading.
    pub rtt: Option<Duration>,
    /// Smallest round-trip time of the current path; `None` before the first measurement. A reading.
    pub min_rtt: Option<Duration>,
}

impl ConnectionStats {
    pub(crate) fn new(stats: &Stats, packets_lost: u64) -> Self {
        let time = |time: tacit_packet::units::Duration| Duration::from_nanos(time.as_nanos());
        Self {
            packets_sent: stats.packets_sent,
            packets_received: stats.packets_received,
            data_packets_sent: stats.data_packets_sent,
            data_packets_received: stats.data_packets_received,
            acks_sent: stats.acks_sent,
            acks_received: stats.acks_received,
            packets_lost,
            packets_retransmitted: stats.packets_retransmitted,
            bytes_sent: stats.bytes_sent,
            bytes_retransmitted: stats.bytes_retransmitted,
            bytes_received: stats.bytes_received,
            bytes_delivered: stats.delivered_bytes,
            datagrams_unsent: 0,
            datagrams_unread: 0,
            loss_episodes: stats.fast_recoveries.unwrap_or(0),
            timeouts: stats.timeouts.unwrap_or(0),
            bytes_in_flight: stats.bytes_in_flight,
            cwnd: stats.cwnd.unwrap_or(0),
            pacing_rate_bps: stats.pacing_rate.map(|rate| rate.as_bps()),
            rtt: stats.srtt.map(time),
            min_rtt: stats.rtt_min.map(time),
        }
    }
}
