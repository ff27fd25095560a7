//! Endpoints on loopback, directly and through a relay with impairments, and the examples.

mod chaos;
mod contention;
mod examples;
mod exchange;
mod memory;
