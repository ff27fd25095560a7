//! 802.11.

pub mod air;
mod airtime;
mod config;
mod counters;
pub mod phy;

pub use air::{AirFrame, StationId};
pub use airtime::{Airtime, AirtimeUse};
pub use config::{BssConfig, StationConfig};
pub use counters::StationCounters;
