//! TACK: a transport with few acknowledgments (Li et al., "TACK: Improving Wireless Transport Performance by Taming
//! Acknowledgments", SIGCOMM 2020; its successor in IEEE/ACM Transactions on Networking 29(6), 2021).

mod ack_path;
mod arrivals;
mod base_loss;
mod config;
mod connection;
mod incoming;
mod layout;
mod outgoing;
pub mod packet;
mod path_mtu;
mod protect;
mod receiver;
mod sender;
mod silence;
mod skips;
mod streams;
mod timing;
mod violation;
mod windows;
pub mod wire;

pub use config::{Config, Lists, LossReports, OwnQueue, RateFrom, Reader, Timing};
pub use connection::{Connection, Received, TooLong, Transmit};
pub use incoming::Accepted;
pub use packet::{Body, Packet};
pub use protect::{Forged, Protector, Tag, Unprotected};
pub use streams::StreamEvent;
pub use tacit_ack::{AckClock, Arriving, StartUp};
