//! What an agent counts.

/// What an [`Agent`](super::Agent) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// ACKs made in clients' stead.
    pub forged_acks: u64,
    /// Pure ACKs of clients that went no further: their senders knew already.
    pub suppressed_acks: u64,
    /// Packets of clients that went on with a later acknowledgment number.
    pub raised_acks: u64,
    /// Copies sent again to clients.
    pub local_retransmissions: u64,
    /// Of them, those that a client's silence caused, not its ACKs.
    pub local_timeouts: u64,
    /// Of them, those that found no room in the queue.
    pub refused_copies: u64,
    /// Retransmissions of senders that went no further: acknowledged already.
    pub answered_retransmissions: u64,
    /// Flows that made room for others.
    pub evicted_flows: u64,
    /// Flows left alone for lack of room.
    pub refused_flows: u64,
    /// Flows given up because their client no longer answered.
    pub abandoned_flows: u64,
    /// Segments left to the client for lack of room in the cache.
    pub uncached_segments: u64,
    /// Most segments kept at once of one flow; never reset.
    pub cached_segments_max: u64,
}

impl Counters {
    /// `self - earlier`, field by field; the largest cache is that of `self`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            forged_acks: self.forged_acks - earlier.forged_acks,
            suppressed_acks: self.suppressed_acks - earlier.suppressed_acks,
            raised_acks: self.raised_acks - earlier.raised_acks,
            local_retransmissions: self.local_retransmissions - earlier.local_retransmissions,
            local_timeouts: self.local_timeouts - earlier.local_timeouts,
            refused_copies: self.refused_copies - earlier.refused_copies,
            answered_retransmissions: self.answered_retransmissions - earlier.answered_retransmissions,
            evicted_flows: self.evicted_flows - earlier.evicted_flows,
            refused_flows: self.refused_flows - earlier.refused_flows,
            abandoned_flows: self.abandoned_flows - earlier.abandoned_flows,
            uncached_segments: self.uncached_segments - earlier.uncached_segments,
            cached_segments_max: self.cached_segments_max,
        }
    }
}
