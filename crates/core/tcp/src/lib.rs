//! TCP (RFC 9293), complete enough for real networks.
//!
//! A [`Connection`] is one end. `sender` and `receiver` are its halves, with the variables of RFC 9293 section 3.3.1;
//! `sack` is the scoreboard, `reorder` holds early arrivals, and `ack_policy` decides when to acknowledge.
//! [`congestion`](tacit_congestion), shared with other transports, limits the bytes in flight. The stream is a count
//! of bytes: nothing is stored, and payload bytes are computed from their position (see [`wire`](tacit_packet::wire)).

pub mod ack_policy;
mod autotune;
mod config;
mod connection;
mod counters;
mod dsack;
mod ecn;
mod profile;
mod prr;
mod rack;
mod receiver;
mod reorder;
mod rsfc;
mod sack;
mod sender;
mod small_queues;
mod undo;

pub use ack_policy::{
    AckDecision, AckPolicy, DelayLimit, DelayedAcks, LinuxAcks, PacketAcks, PacketLimit, Reading, Reordering,
};
pub use autotune::{ReceiveAutotuning, WindowGrowth};
pub use config::{Config, Unstamped};
pub use connection::{Connection, State};
pub use counters::Counters;
pub use profile::Profile;
pub use prr::Recovery;
pub use rack::LossDetection;
pub use receiver::ReadPolicy;
pub use undo::Undo;

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
