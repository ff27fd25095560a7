//! Sans-IO links, generic over their payload.

pub mod cellular;
pub mod loss;
pub mod payload;
pub mod queue;
pub mod random;
mod waits;
pub mod wifi;
pub mod wired;

pub use cellular::Trace;
pub use loss::{GilbertElliott, Loss};
pub use payload::{Payload, PayloadClass};
pub use queue::{QueueConfig, QueueLimit};
pub use wifi::AirFrame;
