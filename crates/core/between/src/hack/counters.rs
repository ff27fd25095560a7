//! Counters of a driver.

tacit_packet::counters! {
    /// Counters of a driver.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct Counters {
        /// Pure ACKs queued as packets.
        native_acks: u64,
        /// Pure ACKs appended to a link-layer ACK, each counted once.
        compressed_acks: u64,
        /// Bytes of the frames of those ACKs, each counted once.
        compressed_bytes: u64,
        /// Bytes of those ACKs as IP packets.
        uncompressed_bytes: u64,
        /// Frames handed to the NIC.
        frames: u64,
        /// ACKs held and then queued as packets.
        flushed_acks: u64,
        /// Pure ACKs refused by the codec.
        refused_acks: u64,
        /// ACKs replaced, before they were appended, by a later one with the same information.
        thinned_acks: u64,
        /// ACKs held and then queued as packets to save airtime.
        cheaper_acks: u64,
        /// How often an ACK reached the hold limit or the timer.
        hold_limits: u64,
        /// Reconstituted ACKs passed up.
        reconstituted_acks: u64,
        /// Frames dropped as duplicates.
        duplicate_frames: u64,
        /// Frames that could not be decoded (wrong CRC, no context, gaps), and invalid packets in them.
        failed_frames: u64,
    }
}

tacit_packet::counters! {
    /// Counters of a driver for one flow.
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct FlowCounters {
        /// Pure ACKs queued as packets.
        native_acks: u64,
        /// Pure ACKs appended to a link-layer ACK, each counted once.
        compressed_acks: u64,
        /// Pure ACKs replaced, before they were appended, by a later one with the same information.
        thinned_acks: u64,
        /// Their share of the bytes of their frames, by number of ACKs if flows share a frame.
        compressed_bytes: u64,
        /// Bytes of these ACKs as IP packets.
        uncompressed_bytes: u64,
    }
}
