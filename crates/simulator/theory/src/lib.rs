//! Closed forms: upper bounds on the goodput of an 802.11 hop without losses and collisions, and the ACK frequency of
//! each policy.
//!
//! These bounds serve to check simulations and measurements; they do not predict them. They include the mean backoff
//! and the duration of every frame, but neither losses nor contention.

mod ack_rate;
mod capacity;
mod figure;
pub mod hop;
mod links;
mod rounds;

pub use ack_rate::{AckPolicy, ack_frequency_hz};
pub use capacity::{
    AckCoding, AckExchange, Airtime, Capacity, Feedback, Hop, Traffic, capacity, single_frame_utilization,
};
pub use figure::{Figure, IDS, Series, UnknownFigure, figure};
pub use links::{
    LinkBound, LinkBounds, SharedWindow, link_bounds, send_or_receive, shared_window, single_radio,
};
pub use rounds::{MultiStaAnswer, Rounds, TriggerAccess, round_capacity};
