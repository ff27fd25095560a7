//! Packets as bytes; and the dependencies between modules and crates.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod layers;
mod wire;
