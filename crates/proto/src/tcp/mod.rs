//! TCP (RFC 9293), good enough to be put on the wire.
//!
//! A [`Connection`] is one end. Inside, `sender` and `receiver` are its two halves, each with the
//! variables RFC 9293 section 3.3.1 gives it; `sack` keeps the books of what was sent, `reorder` of
//! what arrived early, `ack_policy` says when to answer, and [`congestion`](crate::congestion), which TCP shares
//! with other transports, how much may be on its way.
//! The stream is a count of octets: nothing is stored, and what a payload octet is follows from its
//! place (see [`wire`](crate::wire)).

mod ack_info;
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
mod segment;
mod sender;
mod undo;

pub use ack_info::AckInfo;
pub use ack_policy::{
    AckDecision, AckPolicy, DelayLimit, DelayedAcks, LinuxAcks, PacketAcks, PacketLimit, Reordering,
};
pub use autotune::ReceiveAutotuning;
pub use config::{Config, Unstamped};
pub use connection::{Connection, State};
pub use counters::Counters;
pub use profile::Profile;
pub use prr::Recovery;
pub use rack::LossDetection;
pub use receiver::ReadPolicy;
pub use segment::{Flags, SackBlocks, SackRange, Segment, Timestamps};
pub use undo::Undo;
