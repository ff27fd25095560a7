//! The 802.11 MAC, one module per part.

pub(crate) mod access;
pub(crate) mod ack_hook;
pub(crate) mod ack_times;
pub(crate) mod aggregation;
pub(crate) mod amsdu;
pub(crate) mod block_ack;
pub(crate) mod buffer_status;
pub(crate) mod exchange;
pub(crate) mod fates;
pub(crate) mod link_role;
pub(crate) mod mpdu;
pub(crate) mod noise;
pub(crate) mod originator;
pub(crate) mod peer;
pub(crate) mod plan;
pub(crate) mod protection;
pub(crate) mod random_access;
pub(crate) mod rate_control;
pub(crate) mod repair;
pub(crate) mod room_forecast;
pub(crate) mod rules;
pub(crate) mod sent_buffer;
pub(crate) mod station;
mod streams;
pub(crate) mod triggered_rates;
pub(crate) mod upper;

/// Sequence numbers count modulo 4096 (802.11-2020 clause 9.2.4.4.2).
pub(crate) const SEQUENCE_MODULUS: u16 = 4096;

/// Steps forward from `from` to `to`, modulo the sequence number space.
pub(crate) const fn sequence_distance(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) % SEQUENCE_MODULUS
}

/// `sequence + steps`, modulo the sequence number space.
pub(crate) const fn sequence_add(sequence: u16, steps: u16) -> u16 {
    sequence.wrapping_add(steps) % SEQUENCE_MODULUS
}
