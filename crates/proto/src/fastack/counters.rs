//! Counters of an agent.

crate::counters! {
    /// Counters of an [`Agent`](super::Agent).
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct Counters {
        /// ACKs made in clients' stead.
        forged_acks: u64,
        /// Pure ACKs of clients that went no further: their senders knew already.
        suppressed_acks: u64,
        /// Packets of clients that went on with a later acknowledgment number.
        raised_acks: u64,
        /// Copies sent again to clients.
        local_retransmissions: u64,
        /// Of them, those that a client's silence caused, not its ACKs.
        local_timeouts: u64,
        /// Of them, those that found no room in the queue.
        refused_copies: u64,
        /// Retransmissions of senders that went no further: acknowledged already.
        answered_retransmissions: u64,
        /// Flows that made room for others.
        evicted_flows: u64,
        /// Flows left alone for lack of room.
        refused_flows: u64,
        /// Flows given up because their client no longer answered.
        abandoned_flows: u64,
        /// Segments left to the client for lack of room in the cache.
        uncached_segments: u64,
    }
    peaks {
        /// Most segments kept at once of one flow; whole run.
        cached_segments_max: u64,
    }
}
