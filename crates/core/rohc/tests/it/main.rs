//! Integration tests of ROHC-TCP and the HACK variant.
#![allow(clippy::unwrap_used, reason = "a failure is a panic")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/flow.rs"]
mod flow;
#[path = "../common/headers.rs"]
mod headers;
#[path = "../common/scripts.rs"]
mod scripts;
#[path = "../common/tunnel.rs"]
mod tunnel;

mod arbitrary;
mod bursts;
mod captures;
mod channel;
mod duplex;
mod golden;
mod hostile;
mod late_feedback;
mod peers;
mod pitfalls;
mod replicate;
mod tunnels;

#[cfg(feature = "hack")]
mod hack_captures;
#[cfg(feature = "hack")]
mod hack_hostile;
#[cfg(feature = "hack")]
mod hack_loss;
#[cfg(feature = "hack")]
mod hack_roundtrip;
#[cfg(feature = "hack")]
mod hack_support;
#[cfg(feature = "hack")]
mod hack_vectors;
