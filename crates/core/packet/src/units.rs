//! Quantities with their unit in the type. All values that decisions depend on are integers.

mod ids;
mod ratio;
mod seq;

pub use ids::{FlowId, HostId};
pub use ratio::Ratio;
pub use seq::SeqNumber;
pub use tacit_ack::{BitRate, Bytes, Duration, Instant};
