//! Live hops: real programs, real kernels, real time.
//!
//! They need privileges and programs from Debian packages, which `./ci.sh setup` installs. If something is missing, a
//! test reports this on standard error, counts as skipped, and passes.

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
mod thin;
mod transfers;
