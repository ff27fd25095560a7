//! What a station counts.

use tacit_proto::units::Duration;

/// Counters of one station; all monotonic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// Packets the queues took.
    pub accepted: u64,
    /// Packets taken back before they were sent.
    pub retracted: u64,
    /// PPDUs of data sent, collided ones included.
    pub data_ppdus: u64,
    /// MPDUs in them.
    pub data_mpdus: u64,
    /// MPDUs delivered on their first transmission.
    pub delivered_first_try: u64,
    /// MPDUs delivered after one retransmission or more.
    pub delivered_after_retry: u64,
    /// MPDU transmissions that were retransmissions.
    pub retries: u64,
    /// MPDUs given up: retry limit or lifetime.
    pub dropped_mpdus: u64,
    /// Packets the queue refused.
    pub dropped_by_queue: u64,
    /// PPDUs of this station that collided.
    pub collided_ppdus: u64,
    /// ACKs and Block Acks that did not come back.
    pub missed_link_acks: u64,
    /// Block Ack Requests sent.
    pub block_ack_requests: u64,
    /// RTS sent.
    pub rts: u64,
    /// RTS that no CTS answered.
    pub missed_cts: u64,
    /// CTS sent to the sender itself.
    pub cts_to_self: u64,
    /// ACKs and Block Acks sent.
    pub link_acks: u64,
    /// Pure TCP ACKs on the air, retransmissions included.
    pub tcp_acks_on_air: u64,
    /// PPDUs of nothing but pure TCP ACKs.
    pub tcp_ack_ppdus: u64,
    /// Octets of pure TCP ACKs as IP packets, each packet counted on its first transmission.
    pub tcp_ack_octets: u64,
    /// What those octets take at the data rate alone, without preamble, MAC header and padding: the column
    /// "TCP ACK" of the HACK paper's table 3.
    pub tcp_ack_octet_time: Duration,
    /// ACKs and Block Acks sent with something appended.
    pub augmented_link_acks: u64,
    /// Of them, those lengthened by no more than AIFS.
    pub augmented_within_aifs: u64,
    /// AIFS and the slots drawn for each PPDU of nothing but pure TCP ACKs, collided and repeated ones
    /// included: what winning the channel costs when nobody counts down at the same time, as closed forms
    /// and the column "Acquire channel" of the HACK paper's table 3 have it. What it did cost is in
    /// [`StationAirtime`](super::StationAirtime).
    pub tcp_ack_backoff: Duration,
    /// Octets appended to ACKs and Block Acks, repeated ones included.
    pub appended_octets: u64,
    /// What those octets take at the control rate alone: the column "ROHC" of the same table. On the air
    /// they may cost less, where they fit into the padding of the last symbol.
    pub appended_octet_time: Duration,
    /// Octets of IP packets delivered.
    pub delivered_bytes: u64,
}

impl StationCounters {
    /// `self - earlier`, field by field.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            accepted: self.accepted - earlier.accepted,
            retracted: self.retracted - earlier.retracted,
            data_ppdus: self.data_ppdus - earlier.data_ppdus,
            data_mpdus: self.data_mpdus - earlier.data_mpdus,
            delivered_first_try: self.delivered_first_try - earlier.delivered_first_try,
            delivered_after_retry: self.delivered_after_retry - earlier.delivered_after_retry,
            retries: self.retries - earlier.retries,
            dropped_mpdus: self.dropped_mpdus - earlier.dropped_mpdus,
            dropped_by_queue: self.dropped_by_queue - earlier.dropped_by_queue,
            collided_ppdus: self.collided_ppdus - earlier.collided_ppdus,
            missed_link_acks: self.missed_link_acks - earlier.missed_link_acks,
            block_ack_requests: self.block_ack_requests - earlier.block_ack_requests,
            rts: self.rts - earlier.rts,
            missed_cts: self.missed_cts - earlier.missed_cts,
            cts_to_self: self.cts_to_self - earlier.cts_to_self,
            link_acks: self.link_acks - earlier.link_acks,
            tcp_acks_on_air: self.tcp_acks_on_air - earlier.tcp_acks_on_air,
            tcp_ack_ppdus: self.tcp_ack_ppdus - earlier.tcp_ack_ppdus,
            tcp_ack_octets: self.tcp_ack_octets - earlier.tcp_ack_octets,
            tcp_ack_octet_time: self.tcp_ack_octet_time - earlier.tcp_ack_octet_time,
            tcp_ack_backoff: self.tcp_ack_backoff - earlier.tcp_ack_backoff,
            augmented_link_acks: self.augmented_link_acks - earlier.augmented_link_acks,
            augmented_within_aifs: self.augmented_within_aifs - earlier.augmented_within_aifs,
            appended_octets: self.appended_octets - earlier.appended_octets,
            appended_octet_time: self.appended_octet_time - earlier.appended_octet_time,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
        }
    }
}
