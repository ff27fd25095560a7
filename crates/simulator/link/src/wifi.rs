//! 802.11.

pub mod air;
mod airtime;
mod bitmap;
mod bss;
mod category;
mod cell;
mod config;
mod counters;
pub mod error_rate;
mod functions;
pub mod ideal_rate;
mod interrupt;
mod link_set;
mod mac;
mod medium;
mod mu_scheduler;
mod multi_link;
mod ofdma;
pub mod phy;
pub mod propagation;
mod turns;

pub use air::{AirFrame, StationId};
pub use airtime::{Airtime, AirtimeUse, StationAirtime};
pub use bitmap::AckBitmap;
pub use bss::{Bss, LinkCounts, Offered, RadioTimes};
pub use category::{AccessCategory, BothWays, EdcaOverride, EdcaParameters, PerCategory, TxopLimits};
pub use cell::Delivery;
pub use config::{
    AmsduLimit, ApScheduler, BssConfig, Bursts, DirectLink, Eifs, LinkAcks, MultiLinkConfig, Protection,
    RateControl, RepairConfig, ReverseDirection, StationConfig, StreamQueues,
};
pub use counters::StationCounters;
pub use functions::{FunctionId, Functions, Peers};
pub use interrupt::Interrupt;
pub use link_set::{LinkId, LinkSet};
pub use mac::ack_times::AckTimes;
pub use mu_scheduler::{ExternalMuScheduler, MuScheduler, MuSchedulerFactory, ReadyUser, UplinkClient};
pub use multi_link::{
    AckLinks, BlockAckScope, ClientLinks, Emlsr, LinkMap, LinkMode, RadioReturn, WindowShare,
};
pub use ofdma::{HackCarrier, HackRoom, MuAcknowledgment, MuEdca, OfdmaConfig, Sharing, Triggers};
pub use propagation::{Decibels, PathLoss, Position, Propagation};
pub use turns::Turns;
