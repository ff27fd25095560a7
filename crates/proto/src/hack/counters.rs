//! What a driver counts.

/// What a driver counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pure ACKs queued as packets.
    pub native_acks: u64,
    /// Pure ACKs that rode on a link-layer ACK, each counted once.
    pub compressed_acks: u64,
    /// Octets of the frames those were in, each counted once.
    pub compressed_octets: u64,
    /// Octets those would have had as IP packets.
    pub uncompressed_octets: u64,
    /// Frames handed to the NIC.
    pub frames: u64,
    /// Pure ACKs the codec refused.
    pub refused_acks: u64,
    /// ACKs held and then queued as packets after all.
    pub flushed_acks: u64,
    /// Times an ACK had waited for the hold limit, or the timer.
    pub hold_limits: u64,
    /// Reconstituted ACKs passed up.
    pub reconstituted_acks: u64,
    /// Frames dropped as duplicates.
    pub duplicate_frames: u64,
    /// Frames that could not be decoded.
    pub failed_frames: u64,
}

impl Counters {
    /// `self - earlier`, field by field.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            native_acks: self.native_acks - earlier.native_acks,
            compressed_acks: self.compressed_acks - earlier.compressed_acks,
            compressed_octets: self.compressed_octets - earlier.compressed_octets,
            uncompressed_octets: self.uncompressed_octets - earlier.uncompressed_octets,
            frames: self.frames - earlier.frames,
            refused_acks: self.refused_acks - earlier.refused_acks,
            flushed_acks: self.flushed_acks - earlier.flushed_acks,
            hold_limits: self.hold_limits - earlier.hold_limits,
            reconstituted_acks: self.reconstituted_acks - earlier.reconstituted_acks,
            duplicate_frames: self.duplicate_frames - earlier.duplicate_frames,
            failed_frames: self.failed_frames - earlier.failed_frames,
        }
    }

    /// `self + other`, field by field.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            native_acks: self.native_acks + other.native_acks,
            compressed_acks: self.compressed_acks + other.compressed_acks,
            compressed_octets: self.compressed_octets + other.compressed_octets,
            uncompressed_octets: self.uncompressed_octets + other.uncompressed_octets,
            frames: self.frames + other.frames,
            refused_acks: self.refused_acks + other.refused_acks,
            flushed_acks: self.flushed_acks + other.flushed_acks,
            hold_limits: self.hold_limits + other.hold_limits,
            reconstituted_acks: self.reconstituted_acks + other.reconstituted_acks,
            duplicate_frames: self.duplicate_frames + other.duplicate_frames,
            failed_frames: self.failed_frames + other.failed_frames,
        }
    }
}

/// What a driver counted of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Pure ACKs queued as packets.
    pub native_acks: u64,
    /// Pure ACKs that rode on a link-layer ACK, each counted once.
    pub compressed_acks: u64,
    /// Their share of the octets of the frames they were in, by number where flows share a frame.
    pub compressed_octets: u64,
    /// Octets they would have had as IP packets.
    pub uncompressed_octets: u64,
}

impl FlowCounters {
    /// `self + other`, field by field.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            native_acks: self.native_acks + other.native_acks,
            compressed_acks: self.compressed_acks + other.compressed_acks,
            compressed_octets: self.compressed_octets + other.compressed_octets,
            uncompressed_octets: self.uncompressed_octets + other.uncompressed_octets,
        }
    }
}
