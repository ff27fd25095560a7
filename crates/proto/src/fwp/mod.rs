//! FWP: a receiver that acknowledges TCP segments a Wi-Fi link without retransmissions lost, and fetches them again over
//! HTTP (Havey and Almeroth, "Fast Wireless Protocol: A Network Stack Design for Wireless Transmission").
//!
//! The rules, and where they are ours, stand in `docs/design/fwp.md`.

pub mod control;
pub mod repair;
