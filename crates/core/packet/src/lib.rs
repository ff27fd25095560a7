//! What every protocol of the project shares: quantities with units, packets as structs, their encoding, and the contract between an
//! [`Endpoint`] and its driver.
//!
//! The formats of TCP ([`tcp`]), of TACK ([`tack`]) and of datagrams ([`udp`]) are here, because a [`Packet`] can carry each of them. The
//! protocols are crates above this one.

mod counters;
pub mod endpoint;
pub mod factory;
mod flow_key;
mod packet;
pub mod position;
pub mod ranges;
mod stats;
pub mod tack;
pub mod tcp;
pub mod timer;
pub mod udp;
pub mod units;
pub mod wire;

pub use endpoint::Endpoint;
pub use flow_key::FlowKey;
pub use packet::{Ecn, IpHeader, IpVersion, Packet, Transport};
pub use stats::Stats;

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
