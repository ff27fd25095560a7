//! 802.11.

pub mod air;
pub mod phy;

pub use air::{AirFrame, StationId};
