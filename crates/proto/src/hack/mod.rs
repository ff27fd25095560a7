//! TCP/HACK (USENIX ATC 2014): TCP ACKs inside link-layer ACKs.
//!
//! Split as the paper splits it (section 3.3.1): the [`Nic`] handles opaque bytes within SIFS, the
//! [`Driver`] knows TCP and has all the time it needs.

mod codec;
mod driver;
mod nic;
mod packet;

pub use driver::{AckPacket, Action, Config, Counters, Driver, Rides, Variant};
pub use nic::{Heard, Nic, Response};
pub use tacit_rohc::hack::Coding;
