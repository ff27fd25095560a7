#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod by_length;
mod controller;
mod delivery;
#[cfg(test)]
mod model;
mod windowed;

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory};
use quinn::{AckFrequencyConfig, TransportConfig, VarInt};

use crate::by_length::ByLength;

/// Longest delay of a peer's ACK.
///
/// The law allows 25 ms for a sender that paces by rate. quinn paces by window and round-trip time, so the room in
/// flight for an ACK interval is sent as a burst after each ACK, and queues at the bottleneck. 10 ms bound that queue,
/// at a hundred ACKs per second.
const MAX_ACK_DELAY: Duration = Duration::from_millis(10);

/// No limit on packets per ACK, because the law limits the time between ACKs instead.
const ACK_ELICITING_THRESHOLD: VarInt = VarInt::from_u32(u32::MAX);

/// A gap that makes the sender declare a loss is acknowledged at once: the sender's packet threshold minus one
/// (draft-ietf-quic-ack-frequency-04 section 4, RFC 9002 section 6.1.1).
const REORDERING_THRESHOLD: VarInt = VarInt::from_u32(2);

/// A congestion controller that paces by the delivery rate and keeps room in flight for the data between two ACKs.
///
/// Pass it to [`TransportConfig::congestion_controller_factory`]. Losses below one packet in eight do not reduce its rate below
/// the delivery rate; persistent congestion (RFC 9002 section 7.6) does. It works with any peer, but gains most with
/// [`ack_frequency`]; [`configure`] sets both.
///
/// ```
/// use std::sync::Arc;
///
/// let mut transport = quinn::TransportConfig::default();
/// transport.congestion_controller_factory(Arc::new(tacit_quinn::Tack::default()));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Tack {}

impl ControllerFactory for Tack {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(ByLength::new(now, current_mtu))
    }
}

/// The ACK frequency to request: at most one ACK per 10 ms, at any data rate, and an immediate one for a loss.
///
/// quinn sends this request once, at the start (the ACK_FREQUENCY frame of draft-ietf-quic-ack-frequency-04), if the peer has
/// announced the extension (`min_ack_delay`). The controller adapts to a peer without it.
pub fn ack_frequency() -> AckFrequencyConfig {
    let mut config = AckFrequencyConfig::default();
    config
        .max_ack_delay(Some(MAX_ACK_DELAY))
        .ack_eliciting_threshold(ACK_ELICITING_THRESHOLD)
        .reordering_threshold(REORDERING_THRESHOLD);
    config
}

/// Sets [`ack_frequency`] and [`Tack`], and nothing else.
///
/// Each end must configure the data that it sends.
pub fn configure(transport: &mut TransportConfig) {
    let arm = std::env::var("ARM").unwrap_or_default();
    if arm != "tack" { transport.ack_frequency_config(Some(ack_frequency())); }
    if arm != "acks" { transport.congestion_controller_factory(Arc::new(Tack::default())); }
}
