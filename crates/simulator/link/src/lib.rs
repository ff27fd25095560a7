//! Sans-IO links. They move handles of packets and know no content.

pub mod cellular;
pub mod loss;
pub mod packet;
pub mod queue;
pub mod random;
mod waits;
pub mod wifi;
pub mod wired;

pub use cellular::Trace;
pub use loss::{GilbertElliott, Loss};
pub use packet::{Holders, PacketRef, PayloadClass};
pub use queue::{QueueConfig, QueueLimit};
pub use wifi::AirFrame;
