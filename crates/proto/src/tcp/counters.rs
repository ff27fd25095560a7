//! What a connection counts.

/// Counters of one end of a connection; all monotonic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent with payload, retransmissions included.
    pub data_segments_sent: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Pure ACKs sent.
    pub acks_sent: u64,
    /// Segments with payload received.
    pub data_segments_received: u64,
    /// Pure ACKs received.
    pub acks_received: u64,
    /// Times fast recovery was entered.
    pub fast_recoveries: u64,
    /// Times the retransmission timer fired.
    pub rtos: u64,
    /// Octets passed to the application in order.
    pub delivered_bytes: u64,
}
