//! Quantities with their unit in the type. All values that decisions depend on are integers.

mod ids;
mod rate;
mod ratio;
mod seq;
mod time;

pub use ids::{FlowId, HostId};
pub use rate::{BitRate, Bytes};
pub use ratio::Ratio;
pub use seq::SeqNumber;
pub use time::{Duration, Instant};
