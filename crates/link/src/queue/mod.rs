//! Queues in front of links.

use tacit_proto::units::Bytes;

/// How much a queue holds; an arrival that would pass either limit is dropped. No limit is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Most packets.
    pub packets: Option<u32>,
    /// Most octets.
    pub bytes: Option<Bytes>,
}
