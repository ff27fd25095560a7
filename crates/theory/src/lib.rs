//! Closed forms: bounds on the goodput of a lossless, collision-free 802.11 hop, and how often each policy acknowledges.
//!
//! These are bounds to hold simulations and measurements against, not predictions of either: they
//! know the mean backoff and the length of every frame, and neither loss nor contention.

mod ack_rate;
mod capacity;
mod figure;
pub mod hop;
mod rounds;

pub use ack_rate::{AckPolicy, ack_frequency_hz};
pub use capacity::{
    AckCoding, AckExchange, Airtime, Capacity, Feedback, Hop, Traffic, capacity, single_frame_utilization,
};
pub use figure::{Figure, IDS, Series, UnknownFigure, figure};
pub use rounds::{MultiStaAnswer, Rounds, TriggerAccess, round_capacity};
