#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod controller;
mod delivery;
#[cfg(test)]
mod model;
mod windowed;

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory};
use quinn::{AckFrequencyConfig, TransportConfig, VarInt};

use crate::controller::TackController;

/// How long a peer may keep an ACK back.
///
/// The law lets a sender that paces by rate wait for 25 ms. quinn paces by window and round-trip time, so that the room
/// in flight for an interval leaves as a burst after each ACK, and waits at the bottleneck. 10 ms bound that wait, and cost
/// a hundred ACKs a second at most.
const MAX_ACK_DELAY: Duration = Duration::from_millis(10);

/// How many packets may come without an ACK: as many as do within the delay. Time decides in the law, not a count.
const ACK_ELICITING_THRESHOLD: VarInt = VarInt::from_u32(u32::MAX);

/// A gap that makes a sender declare a loss is told at once: its packet threshold less one
/// (draft-ietf-quic-ack-frequency-04 section 4, RFC 9002 section 6.1.1).
const REORDERING_THRESHOLD: VarInt = VarInt::from_u32(2);

/// Makes congestion controllers that pace by the rate of delivery and keep room in flight for what arrives between ACKs.
///
/// For [`TransportConfig::congestion_controller_factory`]. Losses below one packet in eight do not make it send less than
/// arrives; persistent congestion (RFC 9002 section 7.6) does. It needs no help of the peer, but gains most with
/// [`ack_frequency`]: [`configure`] sets both.
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
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(TackController::new(current_mtu))
    }
}

/// What to ask the peer for: an ACK each 10 ms at most while data comes, however much it is, and one at once for a loss.
///
/// quinn sends this once at the start (the ACK_FREQUENCY frame of draft-ietf-quic-ack-frequency-04) if the peer announced
/// that it understands it (`min_ack_delay`). A peer that does not know the extension acknowledges as it always did, and the
/// controller adapts to that.
pub fn ack_frequency() -> AckFrequencyConfig {
    let mut config = AckFrequencyConfig::default();
    config
        .max_ack_delay(Some(MAX_ACK_DELAY))
        .ack_eliciting_threshold(ACK_ELICITING_THRESHOLD)
        .reordering_threshold(REORDERING_THRESHOLD);
    config
}

/// Sets [`ack_frequency`] and [`Tack`]; all else stays as it is.
///
/// Either end may do so: each decides about what it sends, and the ACKs for that.
pub fn configure(transport: &mut TransportConfig) {
    transport
        .ack_frequency_config(Some(ack_frequency()))
        .congestion_controller_factory(Arc::new(Tack::default()));
}
