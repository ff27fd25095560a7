//! 802.11.

pub mod air;
mod airtime;
mod bss;
mod build;
mod category;
mod config;
mod counters;
pub mod error_rate;
mod interrupt;
mod mac;
pub mod phy;
pub mod propagation;
mod queries;
mod verify;

pub use air::{AirFrame, StationId};
pub use airtime::{Airtime, AirtimeUse, StationAirtime};
pub use bss::{Bss, Delivery};
pub use category::{AccessCategory, EdcaParameters};
pub use config::{
    AmsduLimit, BssConfig, Bursts, LinkAcks, Protection, RateControl, ReverseDirection, StationConfig,
};
pub use counters::StationCounters;
pub use interrupt::Interrupt;
pub use propagation::{Decibels, PathLoss, Position, Propagation};
