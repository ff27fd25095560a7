//! Counters of a shim.

tacit_packet::counters! {
    /// Counters of a [`Shim`](super::Shim).
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct Counters {
        /// Flows that were registered.
        registered_flows: u64,
        /// Data segments of registered flows that arrived in order or beyond all data before them.
        segments: u64,
        /// Segments missed before them.
        lost_segments: u64,
        /// Holes filled on detection.
        holes: u64,
        /// Holes first left to TCP, and filled once the retransmission was overdue.
        overdue_holes: u64,
        /// Placeholders injected.
        placeholders: u64,
        /// Bytes in them.
        placeholder_bytes: u64,
        /// Holes left to TCP because losses exceeded what the link's errors explain.
        congested_holes: u64,
        /// Holes left to TCP because too many were outstanding.
        capped_holes: u64,
        /// Holes left to TCP because the reader could not be informed.
        untold_holes: u64,
        /// Holes left to TCP for other reasons: not allowed, beyond the window, or behind a hole that TCP repairs.
        other_holes: u64,
        /// Segments that arrived after their placeholder.
        late_segments: u64,
        /// Of these, segments that were dropped: TCP had the placeholder, and they were not retransmissions.
        swallowed_segments: u64,
        /// Segments that waited for an earlier one, which arrived in time.
        reordered_segments: u64,
        /// How often a flow's switch went off.
        switched_off: u64,
        /// How often it was switched on again.
        switched_on: u64,
        /// Connections reset because a hole could not be repaired.
        failed_flows: u64,
    }
    peaks {
        /// Most bytes of outstanding holes in one flow; whole run.
        hole_bytes_max: u64,
        /// Most bytes of one flow that waited for a hole to settle; whole run.
        held_bytes_max: u64,
    }
}
