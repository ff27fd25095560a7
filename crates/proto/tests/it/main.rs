//! Protocols from outside: packets, HACK, FastACK, FWP; the rooms and the uses permitted to them.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod fastack;
mod fastack_property;
mod fwp;
mod fwp_property;
mod hack;
mod hack_rule;
mod layers;
mod tack_wire;
mod wire;
