//! Live hops: real programs, real kernels, real time.
//!
//! They need privileges, and programs from Debian's packages: `./ci.sh setup` installs those. Where
//! something is missing a test says so on standard error, counts it, and passes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod behaviour;
mod browser;
mod conformance;
mod copies;
mod fetch;
mod fwp;
mod helper;
mod killed;
mod links;
mod offload;
mod own_tcp;
mod player;
mod rre;
mod servers;
mod support;
mod transfers;
