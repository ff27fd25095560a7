//! A one-way pipe: a queue, a transmitter of fixed rate, a delay, and perhaps losses.

use tacit_proto::units::{BitRate, Duration};

use crate::loss::Loss;
use crate::queue::QueueLimit;

/// One direction of a wired link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeConfig {
    /// Transmission rate.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Duration,
    /// What waits for the transmitter.
    pub queue: QueueLimit,
    /// What is lost after transmission.
    pub loss: Loss,
}
