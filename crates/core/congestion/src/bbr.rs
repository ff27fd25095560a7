//! BBR: a model of the path, bandwidth and round-trip time, instead of a reaction to loss
//! (Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue
//! 14(5), 2016).
//!
//! `v1`, `v3` and `tack` are state machines over the state in `common`, and use the other modules as building blocks.

mod aggregation;
mod common;
mod filter;
mod parts;
#[cfg(test)]
mod path;
mod policer;
mod tack;
mod v1;
mod v3;

pub(crate) use tack::TackBbr;
pub use tack::{Bounds, ProbeRtt, Probes, TackConfig};
pub(crate) use v1::Bbr;
pub(crate) use v3::Bbr3;

/// Whether BBR detects token-bucket policers: at a steady rate with losses of a fifth or more it keeps to that rate for
/// a while (`lt_bw` in Linux, where it is always on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicerDetection {
    /// As Linux does.
    #[default]
    On,
    /// Never.
    Off,
}

/// Options of BBR version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether to detect policers.
    pub policer: PolicerDetection,
}

impl Config {
    /// As in Linux.
    pub const USUAL: Self = Self { policer: PolicerDetection::On };
}
