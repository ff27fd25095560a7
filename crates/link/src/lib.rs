//! Sans-IO links, generic over what they carry.

pub mod payload;
pub mod wifi;

pub use payload::{Payload, PayloadClass};
