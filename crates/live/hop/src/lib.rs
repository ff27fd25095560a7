//! Unmodified Linux programs through a real-time 802.11 hop.
//!
//! The hop is the simulator's [`World`](tacit_sim::World) driven by a wall clock, with two of its hosts bound to TUN
//! devices. It uses the same MAC, TCP/HACK driver, NIC and codec, with bytes instead of structs at the edge. Commands
//! run in namespaces that exist only as long as their processes.
//!
//! Only this crate and `tacit-kernel` make system calls directly, and therefore use `unsafe`. `tacit-c` does for C's pointers.

mod ack_mode;
mod address;
mod checksum;
mod clock;
pub mod congestion;
mod datagram;
pub mod doctor;
mod error;
pub mod hop;
mod merge;
mod meter;
mod namespace;
mod offload;
pub mod parent;
mod readers;
mod report;
mod segments;
pub mod shell;
pub mod signals;
mod socket_owner;
mod table;
pub mod thin;
#[cfg(test)]
mod traffic_tests;
mod tun;
mod waits;

pub use ack_mode::AckMode;
pub use clock::Punctuality;
pub use error::LiveError;
pub use hop::{Oracle, Plan, prefer_this_thread};
pub use report::{Report, Transfer};
pub use tun::Tun;
pub use waits::{Wait, Waits};
