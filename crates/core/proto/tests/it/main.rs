//! Tests of protocols through their public interfaces: packets, HACK, FastACK, FWP; and of the dependencies between
//! modules and crates.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod fastack;
mod fastack_property;
mod fwp;
mod fwp_property;
mod hack;
mod hack_rule;
mod layers;
mod nic_vectors;
mod tack_wire;
mod thin;
mod wire;
