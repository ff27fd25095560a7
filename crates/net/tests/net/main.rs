//! Readers behind a hop that loses segments, in front of servers good and bad.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests, on real time")]

mod bodies;
mod fetch;
mod hop;
mod proxy;
mod server;
mod servers;
