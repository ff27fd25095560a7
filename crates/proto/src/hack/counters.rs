//! Counters of a driver.

crate::counters! {
    /// Counters of a driver.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct Counters {
        /// Pure ACKs queued as packets.
        native_acks: u64,
        /// Pure ACKs that rode on a link-layer ACK, each counted once.
        compressed_acks: u64,
        /// Bytes of the frames those were in, each counted once.
        compressed_bytes: u64,
        /// Bytes those would have had as IP packets.
        uncompressed_bytes: u64,
        /// Frames handed to the NIC.
        frames: u64,
        /// ACKs held and then queued as packets after all.
        flushed_acks: u64,
        /// Pure ACKs the codec refused.
        refused_acks: u64,
        /// ACKs that gave way, before they rode, to a later one that says as much.
        thinned_acks: u64,
        /// ACKs held and then queued as packets because that takes less airtime.
        cheaper_acks: u64,
        /// Times an ACK had waited for the hold limit, or the timer.
        hold_limits: u64,
        /// Reconstituted ACKs passed up.
        reconstituted_acks: u64,
        /// Frames dropped as duplicates.
        duplicate_frames: u64,
        /// Frames that could not be decoded (wrong CRC, no context, gaps), and packets in them that are none.
        failed_frames: u64,
    }
}

crate::counters! {
    /// Counters of a driver for one flow.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct FlowCounters {
        /// Pure ACKs queued as packets.
        native_acks: u64,
        /// Pure ACKs that rode on a link-layer ACK, each counted once.
        compressed_acks: u64,
        /// Pure ACKs that gave way, before they rode, to a later one that says as much.
        thinned_acks: u64,
        /// Their share of the bytes of the frames they were in, by number where flows share a frame.
        compressed_bytes: u64,
        /// Bytes they would have had as IP packets.
        uncompressed_bytes: u64,
    }
}
