//! Counters of a shim.

crate::counters! {
    /// Counters of a [`Shim`](super::Shim).
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct Counters {
        /// Flows that were registered.
        registered_flows: u64,
        /// Data segments of registered flows that arrived in order or beyond all data before them.
        segments: u64,
        /// Segments missed before them.
        lost_segments: u64,
        /// Holes filled as soon as they were decided.
        holes: u64,
        /// Holes left to TCP at first, and filled once its retransmission was overdue.
        overdue_holes: u64,
        /// Placeholders injected.
        placeholders: u64,
        /// Bytes in them.
        placeholder_bytes: u64,
        /// Holes left to TCP because losses came to more than the link's errors explain.
        congested_holes: u64,
        /// Holes left to TCP because too many were outstanding.
        capped_holes: u64,
        /// Holes left to TCP because the reader could not be told.
        untold_holes: u64,
        /// Holes left to TCP for another reason: not allowed, beyond the window, behind one that TCP repairs.
        other_holes: u64,
        /// Segments that came after their placeholder.
        late_segments: u64,
        /// Of them, those that went no further: TCP had the placeholder and they had not been sent again.
        swallowed_segments: u64,
        /// Segments that waited for one before them that came in time.
        reordered_segments: u64,
        /// Times a flow's switch went off.
        switched_off: u64,
        /// Times it went on again.
        switched_on: u64,
        /// Connections reset because a hole could not be repaired.
        failed_flows: u64,
    }
    peaks {
        /// Most bytes of holes outstanding at once in one flow; whole run.
        hole_bytes_max: u64,
        /// Most bytes that waited at once for a hole to settle, in one flow; whole run.
        held_bytes_max: u64,
    }
}
