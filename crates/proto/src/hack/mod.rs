//! TCP/HACK (USENIX ATC 2014): TCP ACKs inside link-layer ACKs.
//!
//! Split as the paper splits it (section 3.3.1): the [`Nic`] handles opaque bytes within SIFS, the
//! driver knows TCP and has all the time it needs.

mod nic;

pub use nic::{Heard, Nic, Response};
