//! TCP/HACK (USENIX ATC 2014): compressed TCP ACKs inside link-layer ACKs.
//!
//! As in the paper (section 3.3.1), the [`Nic`] handles opaque bytes within SIFS, and the [`Driver`] knows TCP and has
//! no such deadline.

mod airtime;
mod codec;
mod config;
mod counters;
mod driver;
mod echoes;
mod nic;
mod packet;
mod peer;

pub use airtime::AckAirtime;
pub use config::{Config, Rule, Variant};
pub use counters::{Counters, FlowCounters};
pub use driver::{Action, Driver};
pub use nic::{MOST_LINKS, Nic, Response, Solicited, SolicitedBy};
pub use packet::{AckPacket, FlowTimestamps, Rides};
pub use tacit_rohc::hack::Coding;
