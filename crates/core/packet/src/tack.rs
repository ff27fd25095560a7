//! TACK's packets and their encoding, without the protocol.

mod layout;
pub mod packet;
mod protect;
mod stamp;
pub mod wire;

pub use packet::{Body, Packet};
pub use protect::{Forged, Protector, Tag, Unprotected};
