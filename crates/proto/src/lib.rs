//! Sans-IO transport protocols.
//!
//! Nothing here owns a socket, a clock, a thread or a source of randomness: time comes in as an
//! argument, packets go in and out as plain structs, and the same code runs inside the simulator
//! and on a live machine. The contract every protocol keeps is [`endpoint::Endpoint`].

pub mod brought;
pub mod congestion;
mod counters;
pub mod endpoint;
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
