//! Statistics of a connection over any transport.

use crate::units::{BitRate, Duration};

/// Counters of one end of a connection since it was made, and current readings.
///
/// The optional ones exist only in some transports: `None` is no such number, which is something else than
/// none so far. Counters of one transport alone are in its own room, such as [`tcp::Counters`](crate::tcp::Counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets sent, of any kind.
    pub packets_sent: u64,
    /// Packets taken in, of any kind and whether acceptable or not.
    pub packets_received: u64,
    /// Packets sent with data or the end of it, including those sent again.
    pub data_packets_sent: u64,
    /// Packets received with data.
    pub data_packets_received: u64,
    /// Packets whose contents were sent before, those of the handshake included.
    pub packets_retransmitted: u64,
    /// Packets sent that only acknowledge.
    pub acks_sent: u64,
    /// Packets received that only acknowledge.
    pub acks_received: u64,
    /// Bytes of data sent, including those sent again.
    pub bytes_sent: u64,
    /// Bytes of data that were sent before.
    pub bytes_retransmitted: u64,
    /// Bytes that the peer acknowledged without a gap.
    pub bytes_acked: u64,
    /// Bytes of data received, duplicates included.
    pub bytes_received: u64,
    /// Bytes handed to the application, in order and once.
    pub delivered_bytes: u64,
    /// Bytes that arrived although they had been received before.
    pub duplicate_bytes: u64,
    /// Bytes that arrived and found no room.
    pub dropped_bytes: u64,
    /// Bytes sent and not yet acknowledged. A reading.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time; `None` before the first measurement. A reading.
    pub srtt: Option<Duration>,
    /// Congestion window in bytes. A reading.
    pub cwnd: Option<u64>,
    /// Retransmission timeout, backing off included. A reading.
    pub rto: Option<Duration>,
    /// Times that timeout passed with data outstanding.
    pub timeouts: Option<u64>,
    /// Times fast recovery began.
    pub fast_recoveries: Option<u64>,
    /// Smallest round-trip time that it believes in now; `None` before the first measurement too. A reading.
    pub rtt_min: Option<Duration>,
    /// Bytes received that wait for others before them. A reading.
    pub blocked_bytes: Option<u64>,
    /// Rate at which it may send, payload only; `None` for one that does not pace, or has no rate yet. A reading.
    pub pacing_rate: Option<BitRate>,
    /// State of congestion control, by its own name. A reading.
    pub congestion_state: Option<&'static str>,
}
