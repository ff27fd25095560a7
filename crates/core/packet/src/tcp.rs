//! TCP's segments, without the protocol.

mod ack_info;
mod segment;

pub use ack_info::AckInfo;
pub use segment::{Flags, SackBlocks, SackRange, Segment, TIMESTAMP_TICK, Timestamps};
