//! Counters of a connection, for reports and tests.

use tacit_packet::units::Duration;

/// Counters and readings of one end of a connection since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Segments received, of any kind, whether acceptable or not.
    pub segments_received: u64,
    /// Segments sent with payload or FIN, including retransmissions.
    pub data_segments_sent: u64,
    /// Segments received with payload.
    pub data_segments_received: u64,
    /// Payload bytes sent, including retransmissions.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Segments retransmitted, including SYN and FIN.
    pub segments_retransmitted: u64,
    /// Bytes of ours acknowledged cumulatively, without SYN and FIN.
    pub bytes_acked: u64,
    /// Payload bytes received, duplicates included.
    pub bytes_received: u64,
    /// Payload bytes delivered to the application, in order and once.
    pub delivered_bytes: u64,
    /// Payload bytes received that had been received before.
    pub duplicate_bytes: u64,
    /// Duplicates reported to the peer (RFC 2883).
    pub dsacks_sent: u64,
    /// Payload bytes received outside the window or without room.
    pub dropped_bytes: u64,
    /// Segments that arrived above a gap.
    pub out_of_order_segments: u64,
    /// Segments sent that only acknowledge.
    pub acks_sent: u64,
    /// Of those: window updates.
    pub window_updates_sent: u64,
    /// Of those: challenge ACKs (RFC 5961).
    pub challenge_acks_sent: u64,
    /// Segments received that only acknowledge.
    pub acks_received: u64,
    /// Duplicate acknowledgments: with SACK, those with new information in their blocks; otherwise as in RFC 5681.
    pub dup_acks_received: u64,
    /// Duplicates reported by the peer (RFC 2883) that a retransmission of ours explains.
    pub dsacks_received: u64,
    /// Total bytes of ours that the peer has SACKed.
    pub bytes_sacked: u64,
    /// How often fast recovery began.
    pub fast_recoveries: u64,
    /// How often the retransmission timer expired with data outstanding.
    pub timeouts: u64,
    /// How often the window was reduced because the peer echoed congestion (RFC 3168).
    pub ecn_reductions: u64,
    /// Received data segments with a congestion mark (CE).
    pub ce_received: u64,
    /// Fast recoveries that were found unnecessary and undone.
    pub spurious_recoveries: u64,
    /// Timeouts that were found unnecessary and undone.
    pub spurious_timeouts: u64,
    /// SYN and SYN-ACK segments retransmitted.
    pub syn_retransmissions: u64,
    /// Rescue retransmissions (RFC 6675 NextSeg rule (4)).
    pub rescue_retransmissions: u64,
    /// Tail loss probes sent (RFC 8985 section 7).
    pub loss_probes: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Segments dropped by PAWS (RFC 7323 section 5).
    pub paws_drops: u64,
    /// Segments dropped for any other reason: outside the window, impossible ACK, missing timestamps.
    pub unacceptable_segments: u64,
    /// How often the window was reduced after an idle time (RFC 5681 section 4.1).
    pub idle_restarts: u64,
    /// Smoothed round-trip time; `None` before the first measurement. A reading.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time. A reading.
    pub rttvar: Duration,
    /// Latest round-trip time. A reading.
    pub latest_rtt: Option<Duration>,
    /// Retransmission timeout, including back-off; with a closed window the timeout of its probes. A reading.
    pub rto: Duration,
    /// Congestion window in bytes. A reading.
    pub cwnd: u64,
    /// Slow start threshold in bytes, `u64::MAX` before the first congestion event. A reading.
    pub ssthresh: u64,
    /// Bytes sent and not yet acknowledged cumulatively. A reading.
    pub bytes_in_flight: u64,
    /// Estimated bytes in the network (RFC 6675 `pipe`). A reading.
    pub pipe: u64,
    /// Our receive buffer in bytes. A reading.
    pub receive_buffer: u64,
    /// The peer's window in bytes. A reading.
    pub send_window: u64,
}
