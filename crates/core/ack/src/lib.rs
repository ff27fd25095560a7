//! When a receiver acknowledges: TACK's law (Li et al., "TACK: Improving Wireless Transport Performance by Taming
//! Acknowledgments", SIGCOMM 2020), the paper's own rule, and TCP's delayed ACK.
//!
//! [`Clock`] is fed with packets as they arrive and with what the sender says of the path, and names the instant of the
//! next acknowledgment. The meters beside it measure what it needs. [`Requests`] is for a sender whose receiver has a law
//! of its own, and obeys requests, as QUIC's do. Nothing here reads a clock.

// The tests collect what they measure.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod clock;
mod meters;
mod rate;
mod request;
mod rule;
mod time;

pub use clock::{Arriving, Clock, TAIL_MAX};
pub use meters::{BurstMeter, GATHER, QueueingDelay, RateMeter, RelativeDelay, WindowedMin};
pub use rate::{BitRate, Bytes};
pub use request::{Request, Requests, Sending};
pub use rule::{AckClock, StartUp};
pub use time::{Duration, Instant};

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
