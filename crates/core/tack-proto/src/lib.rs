//! TACK: a transport with few acknowledgments (Li et al., "TACK: Improving Wireless Transport Performance by Taming
//! Acknowledgments", SIGCOMM 2020; its successor in IEEE/ACM Transactions on Networking 29(6), 2021).

mod ack_path;
mod arrivals;
mod base_loss;
mod config;
mod connection;
mod incoming;
mod outgoing;
mod path_mtu;
mod receiver;
mod sender;
mod silence;
mod skips;
mod streams;
mod timing;
mod violation;
mod windows;

pub use config::{Config, Lists, LossReports, OwnQueue, RateFrom, Reader, Timing};
pub use connection::{Connection, Received, TooLong, Transmit};
pub use incoming::Accepted;
pub use streams::StreamEvent;
pub use tacit_ack::{AckClock, Arriving, StartUp};

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
