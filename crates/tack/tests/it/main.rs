//! Endpoints on loopback, alone and through a relay that does its worst, and the examples.

mod chaos;
mod contention;
mod examples;
mod exchange;
mod memory;
