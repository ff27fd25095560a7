//! Tests of protocols through their public interfaces: HACK, FastACK, FWP.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod fastack;
mod fastack_property;
mod fwp;
mod fwp_property;
mod hack;
mod hack_rule;
mod nic_vectors;
mod thin;
