//! Sans-IO transport protocols: TCP, TACK, datagrams, congestion control, and the protocols that change ACKs on Wi-Fi.
//!
//! No type owns a socket, a clock, a thread or a random generator. Time is an argument, packets are structs, and the
//! same code runs in a simulator and on a live machine. Every protocol implements [`endpoint::Endpoint`]; most users
//! need [`transport::Connection`], which wraps them.

pub mod ack_hold;
pub mod congestion;
mod counters;
pub mod endpoint;
pub mod factory;
pub mod fastack;
mod flow_key;
pub mod fwp;
pub mod hack;
pub mod packet;
mod ranges;
mod stats;
pub mod tack;
pub mod tcp;
pub mod timer;
pub mod transport;
pub mod udp;
pub mod units;
pub mod wire;

pub use endpoint::Endpoint;
pub use flow_key::FlowKey;
pub use packet::{Packet, Transport};

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
