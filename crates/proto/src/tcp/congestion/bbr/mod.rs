//! BBR: a model of the path, bandwidth and round-trip time, instead of a reaction to loss
//! (Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue
//! 14(5), 2016).
//!
//! `v1` is the state machine; `filter`, `aggregation` and `policer` are parts it is made of, and that
//! another version would share.

mod aggregation;
mod filter;
mod policer;
mod v1;

pub(crate) use v1::Bbr;
