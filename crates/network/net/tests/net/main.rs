//! Readers behind a hop that loses segments, with correct and faulty servers.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests, on real time")]

mod bodies;
mod fetch;
mod hop;
mod proxy;
mod server;
mod servers;
