//! Counters of an agent.

tacit_packet::counters! {
    /// Counters of an [`Agent`](super::Agent).
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct Counters {
        /// ACKs forged for clients.
        forged_acks: u64,
        /// Pure ACKs of clients that were dropped, because their senders already had the information.
        suppressed_acks: u64,
        /// Packets of clients that were forwarded with a higher acknowledgment number.
        raised_acks: u64,
        /// Copies retransmitted to clients.
        local_retransmissions: u64,
        /// Of these, copies triggered by a client's silence instead of its ACKs.
        local_timeouts: u64,
        /// Of these, copies that found no room in the queue.
        refused_copies: u64,
        /// Retransmissions of senders that were dropped, because the data was already acknowledged.
        answered_retransmissions: u64,
        /// Flows removed to make room for others.
        evicted_flows: u64,
        /// Flows not handled for lack of room.
        refused_flows: u64,
        /// Flows abandoned because their client no longer answered.
        abandoned_flows: u64,
        /// Segments not acknowledged early for lack of room in the cache.
        uncached_segments: u64,
    }
    peaks {
        /// Most segments of one flow cached at the same time; whole run.
        cached_segments_max: u64,
    }
}
