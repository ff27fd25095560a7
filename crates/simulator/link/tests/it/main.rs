//! Tests of channels through the public interface, and of the names that modules may use.
#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../common/mod.rs"]
mod common;

mod bianchi;
mod edca;
mod emlsr;
mod fates;
mod fwp_mac;
mod hidden;
mod layers;
mod mac;
mod multi_link;
mod no_ack;
mod nstr;
mod ofdma;
mod repair;
mod retries;
mod scheduler;
mod settled_acks;
mod txop;
