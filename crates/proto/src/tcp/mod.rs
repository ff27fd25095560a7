//! TCP (RFC 9293), good enough to be put on the wire.

mod config;
mod counters;
mod segment;

pub use config::{AckPolicy, Config, Congestion};
pub use counters::Counters;
pub use segment::{Flags, SackBlocks, SackRange, Segment, Timestamps};
